//! What the program can be asked for on the command line beside serving.
//!
//! Promise: without a command it is a broker, as ever. Must never know how a command does its work.

pub mod inspect;

use clap::{Parser, Subcommand};

use crate::config::Config;

/// A durable cache that speaks the Redis protocol and is a log: what it acknowledges is on disk
#[derive(Clone, Debug, Parser)]
#[command(name = "hearth", version, about, max_term_width = 100, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(flatten)]
    pub serve: Config,

    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do instead of serving.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Say what stands in a data directory and what opening it would do; changes nothing
    Inspect(inspect::Inspect),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn without_a_command_it_serves_and_a_command_takes_no_flags_of_the_broker() {
        Cli::command().debug_assert();
        let serve = Cli::parse_from(["hearth", "--memory"]);
        assert!(serve.command.is_none() && serve.serve.memory);
        let Some(Command::Inspect(asked)) = Cli::parse_from(["hearth", "inspect", "dir", "--live"]).command else {
            panic!("it is a command")
        };
        assert!(asked.live && !asked.records && asked.dir.ends_with("dir"));
        for bad in
            [&["inspect"][..], &["inspect", "dir", "--memory"], &["--memory", "inspect", "dir"], &["look", "dir"]]
        {
            assert!(Cli::try_parse_from([&["hearth"], bad].concat()).is_err(), "{bad:?}");
        }
    }
}
