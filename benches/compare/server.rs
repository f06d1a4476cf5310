//! Starts one server on a free port and a fresh data directory, waits until it answers, and stops it by its own
//! process id. A server never outlives its value: dropping it ends the process and removes the data.

use std::fmt;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::resp::Client;
use crate::rows::Durability;
use crate::run_dir::RunDir;

const START_TIMEOUT: Duration = Duration::from_secs(20);
const STOP_TIMEOUT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(10);
/// How much of a failed server's output goes into the error.
const LOG_TAIL_LINES: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Redis,
    Hearth,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Redis => "redis",
            Kind::Hearth => "hearth",
        })
    }
}

pub struct Server {
    kind: Kind,
    child: Child,
    port: u16,
    data_dir: PathBuf,
    log: PathBuf,
}

impl Server {
    pub fn start(kind: Kind, hearth: &Path, durability: Durability, dirs: &RunDir) -> Outcome<Server> {
        let data_dir = dirs.fresh(&kind.to_string())?;
        let log = data_dir.with_extension("log");
        let port = free_port()?;
        let mut command = match kind {
            Kind::Redis => redis_command(port, &data_dir, durability),
            Kind::Hearth => hearth_command(hearth, port, &data_dir, durability),
        };
        let output =
            std::fs::File::create(&log).map_err(|e| format!("The log of {kind} could not be created: {e}."))?;
        let errors = output.try_clone().map_err(|e| format!("The log of {kind} could not be shared: {e}."))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .spawn()
            .map_err(|e| format!("{kind} could not be started as {:?}: {e}.", command.get_program()))?;
        let mut server = Server { kind, child, port, data_dir, log };
        server.wait_until_it_answers()?;
        Ok(server)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn connect(&self) -> Outcome<Client> {
        Client::connect(self.port).map_err(|why| format!("{}: {why}", self.kind))
    }

    /// Asks the server to end and waits for it. One that has ended before, or does not end, is a failure: its
    /// numbers are those of a broken server.
    pub fn stop(mut self) -> Outcome<()> {
        if let Ok(Some(status)) = self.child.try_wait() {
            return Err(format!("{} ended by itself ({status}). {}", self.kind, self.log_tail()));
        }
        let asked = Command::new("kill").arg("-TERM").arg(self.pid().to_string()).status();
        if !asked.is_ok_and(|status| status.success()) {
            return Err(format!("SIGTERM could not be sent to {}, process {}.", self.kind, self.pid()));
        }
        let deadline = Instant::now() + STOP_TIMEOUT;
        while Instant::now() < deadline {
            match self.child.try_wait() {
                Ok(None) => sleep(POLL),
                Ok(Some(_)) => return Ok(()),
                Err(e) => return Err(format!("{} could not be waited for: {e}.", self.kind)),
            }
        }
        Err(format!("{} did not end within {STOP_TIMEOUT:?} of SIGTERM and was killed. {}", self.kind, self.log_tail()))
    }

    fn wait_until_it_answers(&mut self) -> Outcome<()> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            let why = match Client::connect(self.port).and_then(|mut client| client.ping()) {
                Ok(()) => return Ok(()),
                Err(why) => why,
            };
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("{} ended while starting ({status}). {}", self.kind, self.log_tail()));
            }
            if Instant::now() > deadline {
                let tail = self.log_tail();
                return Err(format!("{} did not answer PING within {START_TIMEOUT:?}: {why} {tail}", self.kind));
            }
            sleep(POLL);
        }
    }

    fn log_tail(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let tail = &lines[lines.len().saturating_sub(LOG_TAIL_LINES)..];
        if tail.is_empty() {
            "It printed nothing.".to_owned()
        } else {
            format!("It printed last:\n{}", tail.join("\n"))
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After `stop` both are no-ops; otherwise an error is already on its way to the user.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.data_dir);
        let _ = std::fs::remove_file(&self.log);
    }
}

fn redis_command(port: u16, data_dir: &Path, durability: Durability) -> Command {
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", ""]).arg("--dir").arg(data_dir);
    match durability {
        Durability::Always => command.args(["--appendonly", "yes", "--appendfsync", "always"]),
        Durability::EverySecond => command.args(["--appendonly", "yes", "--appendfsync", "everysec"]),
        Durability::ShippedDefault => command.args(["--appendonly", "no"]),
    };
    command
}

fn hearth_command(hearth: &Path, port: u16, data_dir: &Path, durability: Durability) -> Command {
    let mut command = Command::new(hearth);
    command.args(["--resp", &format!("127.0.0.1:{port}")]).arg("--data-dir").arg(data_dir);
    match durability {
        Durability::Always => command.args(["--fsync", "always"]),
        Durability::EverySecond => command.args(["--fsync", "everysec"]),
        Durability::ShippedDefault => &mut command,
    };
    command
}

/// A port the system says is free. Another process could take it before the server does; the server then fails to
/// start, loudly.
fn free_port() -> Outcome<u16> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|e| format!("The system gave no free port: {e}."))
}
