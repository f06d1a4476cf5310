//! What the operator may set, and its bounds.
//!
//! Promise: an impossible setting is refused before anything is touched. Must never know how a setting is used.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::core::limits::{DEFAULT_MAX_VALUE_BYTES, HIGHEST_MAX_VALUE_BYTES};
use crate::core::log::FsyncPolicy;
use crate::core::shard::driver::FlushPlace;

/// A durable cache that speaks the Redis protocol and is a log: what it acknowledges is on disk
#[derive(Clone, Debug, Parser)]
#[command(name = "hearth", version, about, max_term_width = 100)]
pub struct Config {
    /// Where Redis clients connect, an IP address and a port; port 0 lets the system choose
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:6379")]
    pub resp: SocketAddr,

    /// Where the data lives; created if it is not there
    #[arg(long, value_name = "DIR", default_value = "hearth-data")]
    pub data_dir: PathBuf,

    /// Keep everything in memory: nothing survives the process; not with --data-dir or --fsync
    #[arg(long, conflicts_with_all = ["data_dir", "fsync"])]
    pub memory: bool,

    /// When an acknowledged write is on disk
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Fsync::Always)]
    pub fsync: Fsync,

    /// The longest value, in bytes; at most 67108864
    #[arg(long, value_name = "BYTES", default_value_t = DEFAULT_MAX_VALUE_BYTES as u64,
          value_parser = clap::value_parser!(u64).range(1..=HIGHEST_MAX_VALUE_BYTES as u64))]
    pub max_value: u64,

    /// The most clients connected at a time
    #[arg(long, value_name = "CLIENTS", default_value_t = 10_000,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_clients: u32,

    /// Worker threads, and where batches are flushed: for the measurements in docs/decisions only
    #[arg(long, hide = true, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub workers: u32,

    #[arg(long, hide = true, value_enum, default_value_t = FlushOn::Either)]
    pub flush_on: FlushOn,

    /// How long a stop waits for requests under way, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(0..=3600))]
    pub drain: u64,
}

/// The choices of `--fsync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Fsync {
    /// Before it is acknowledged: a power cut loses nothing acknowledged
    Always,
    /// At most about a second later: a power cut may lose that second
    Everysec,
    /// When the system likes: a power cut may lose more
    Never,
}

impl From<Fsync> for FsyncPolicy {
    fn from(fsync: Fsync) -> Self {
        match fsync {
            Fsync::Always => Self::Always,
            Fsync::Everysec => Self::EverySec,
            Fsync::Never => Self::Never,
        }
    }
}

/// The choices of the hidden `--flush-on`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FlushOn {
    Worker,
    Thread,
    Either,
}

impl From<FlushOn> for FlushPlace {
    fn from(flush_on: FlushOn) -> Self {
        match flush_on {
            FlushOn::Worker => Self::Worker,
            FlushOn::Thread => Self::Thread,
            FlushOn::Either => Self::Either,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_defaults_are_safe_and_local() {
        Config::command().debug_assert();
        let config = Config::parse_from(["hearth"]);
        assert!(config.resp.ip().is_loopback() && config.fsync == Fsync::Always && !config.memory);
    }

    #[test]
    fn impossible_settings_are_refused() {
        for bad in [
            &["--fsync", "sometimes"][..],
            &["--resp", "6379"],
            &["--max-value", "0"],
            &["--max-value", "67108865"],
            &["--memory", "--data-dir", "x"],
            &["--memory", "--fsync", "always"],
            &["--unknown"],
        ] {
            assert!(Config::try_parse_from([&["hearth"], bad].concat()).is_err(), "{bad:?}");
        }
    }
}
