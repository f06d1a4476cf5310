//! The process: arguments, log lines, signals, exit codes. Everything else is the library's.

use std::io::{BufWriter, ErrorKind, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{CommandFactory, Parser};
use hearth::cli::inspect::Inspect;
use hearth::cli::{Cli, Command};
use hearth::config::Config;
use hearth::core::clock::{Clock, SystemClock};
use hearth::core::log::disk::RealDisk;
use hearth::frontends::resp::Resp;
use hearth::server::{Ended, Opening, ServerError};
use hearth::{password, rt};

/// The exit code after a second signal, and of anything unexpected.
const UNEXPECTED: u8 = 1;

fn main() -> ExitCode {
    // Usage errors exit with 2, as clap does by itself.
    let Cli { serve: config, command } = Cli::parse();
    if let Some(Command::Inspect(asked)) = command {
        return inspect(&asked);
    }
    if let Err(reason) = config.check() {
        Cli::command().error(clap::error::ErrorKind::ArgumentConflict, reason).exit();
    }
    let colours = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(colours).with_target(false).init();
    let started = rt::start(config.workers as usize).map_err(ServerError::System);
    let ended = started.and_then(|()| rt::run(serve(config)));
    match ended {
        Ok(Ended::Drained) => ExitCode::SUCCESS,
        Ok(Ended::DrainTimedOut) => {
            eprintln!("hearth: some clients were still busy when the time for draining was over");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("hearth: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

/// Prints what stands in a data directory; the exit code says what was found out.
fn inspect(asked: &Inspect) -> ExitCode {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let told = asked.run(&RealDisk, SystemClock::new().now(), &mut out);
    match told.and_then(|verdict| out.flush().map(|()| verdict)) {
        Ok(verdict) => ExitCode::from(verdict.exit_code()),
        // Whoever reads has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hearth: printing failed: {error}");
            ExitCode::from(UNEXPECTED)
        }
    }
}

async fn serve(config: Config) -> Result<Ended, ServerError> {
    let mut signals = rt::Signals::new().map_err(ServerError::System)?;
    let password = password::of(&config).map_err(ServerError::Password)?;
    let opening = Opening::listen(&config, Arc::new(Resp::new(password))).await?;
    let (first, asked) = rt::channel::bounded::<()>(1);
    drop(rt::spawn(async move {
        signals.next().await;
        let _ = first.try_send(());
        signals.next().await;
        eprintln!("hearth: a second signal ends the broker at once; nothing acknowledged is lost");
        std::process::exit(i32::from(UNEXPECTED));
    }));
    let stop = || async {
        let _ = asked.recv().await;
    };
    let Some(broker) = opening.open(stop()).await? else { return Ok(Ended::Drained) };
    println!("{}", broker.start_line());
    broker.serve(stop(), config.drain * 1000).await
}
