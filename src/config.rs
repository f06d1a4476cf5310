//! What the operator may set, and its bounds.
//!
//! Promise: an impossible setting is refused before anything is touched. Must never know how a setting is used.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use crate::core::limits::{
    DEFAULT_MAX_VALUE_BYTES, DEFAULT_VALUE_CACHE_BYTES, HIGHEST_MAX_VALUE_BYTES, LEAST_MEMORY_SEGMENTS,
    segment_bytes_in_memory,
};
use crate::core::log::FsyncPolicy;
use crate::core::shard::driver::FlushPlace;
use crate::core::types::CacheName;

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

    /// The longest value; at most 64mb. Sizes are bytes, or have a unit: k m g (of 1000), kb mb gb (of 1024)
    #[arg(long, value_name = "SIZE", default_value_t = DEFAULT_MAX_VALUE_BYTES as u64, value_parser = value_size)]
    pub max_value: u64,

    /// The most memory the broker may use before it refuses writes that grow; 0: no bound
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = size)]
    pub max_memory: u64,

    /// The most bytes of live keys and values a cache may hold before it refuses writes that grow; 0: no bound
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = size)]
    pub max_data: u64,

    /// Free disk space below which puts are refused; 0: room for two segment files
    #[arg(long, value_name = "SIZE", default_value = "0", value_parser = size)]
    pub min_free: u64,

    /// Memory for values that are read often; 0: none. Default: 64mb, or a quarter of --max-memory if that is less
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub value_cache: Option<u64>,

    /// Shards of a cache that is made from now on; one that is there keeps its own number
    #[arg(long, value_name = "SHARDS", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=MOST_SHARDS))]
    pub shards: u32,

    /// A cache beside the numbered ones, to be selected by its name, with its shards if not --shards; may be repeated
    #[arg(long, value_name = "TENANT/NAMESPACE/NAME[:SHARDS]", value_parser = named_cache)]
    pub cache: Vec<NamedCache>,

    /// A file whose first line is the password clients must give (else HEARTH_PASSWORD, if that is set); with a password,
    /// clients from other machines are served
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,

    /// The most clients connected at a time
    #[arg(long, value_name = "CLIENTS", default_value_t = 10_000,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_clients: u32,

    /// Worker threads, and where batches are flushed: for the measurements in docs/decisions only
    #[arg(long, hide = true, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub workers: u32,

    #[arg(long, hide = true)]
    pub no_compaction: bool,

    #[arg(long, hide = true, value_enum, default_value_t = FlushOn::Either)]
    pub flush_on: FlushOn,

    /// How long a stop waits for requests under way, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(0..=3600))]
    pub drain: u64,
}

impl Config {
    /// Why these settings cannot go together.
    ///
    /// # Errors
    /// The reason, as a sentence.
    pub fn check(&self) -> Result<(), String> {
        let least = LEAST_MEMORY_SEGMENTS * u64::from(segment_bytes_in_memory(self.max_value as usize));
        if self.memory && self.max_memory > 0 && self.max_memory < least {
            return Err(format!(
                "with --memory and --max-value {}, --max-memory must be at least {least}: the log needs six segments of twice \
                 the longest value; a smaller --max-value needs less",
                self.max_value
            ));
        }
        let mut names: Vec<_> = self.cache.iter().map(|cache| &cache.name).collect();
        names.sort();
        if let Some([twice, _]) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("--cache names {twice} twice"));
        }
        Ok(())
    }

    /// Bytes of values kept in memory. They are not given back when memory is short, so without a word from the operator they
    /// take only a part of what there may be, and none when the log is in memory itself: there they would save nothing.
    #[must_use]
    pub fn value_cache_bytes(&self) -> u64 {
        let most = if self.max_memory == 0 { u64::MAX } else { self.max_memory / VALUE_CACHE_SHARE };
        let unsaid = if self.memory { 0 } else { DEFAULT_VALUE_CACHE_BYTES.min(most) };
        self.value_cache.unwrap_or(unsaid)
    }
}

/// A cache that is selected by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCache {
    pub name: CacheName,
    /// `None`: as `--shards` says.
    pub shards: Option<u32>,
}

/// The most shards of one cache: each has a log of its own, with segments and a thread that flushes.
const MOST_SHARDS: i64 = 64;

fn named_cache(text: &str) -> Result<NamedCache, String> {
    let (name, shards) = match text.rsplit_once(':') {
        Some((name, shards)) => {
            let shards = shards.parse().ok().filter(|shards| (1..=MOST_SHARDS).contains(&i64::from(*shards)));
            (
                name,
                Some(shards.ok_or_else(|| format!("behind the colon stands a number of shards, 1 to {MOST_SHARDS}"))?),
            )
        }
        None => (text, None),
    };
    let name =
        CacheName::parse(name).ok_or("a cache is named tenant/namespace/name, each of 1 to 64 printable bytes")?;
    Ok(NamedCache { name, shards })
}

/// The part of `--max-memory` that the value cache takes at most by itself.
const VALUE_CACHE_SHARE: u64 = 4;

/// A size as Redis's configuration has it: digits, and a unit in any case.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit_bytes: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1_000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return Err(format!("{unit:?} is no unit; there are b, k, kb, m, mb, g and gb")),
    };
    let number: u64 = number.parse().map_err(|_| "a size begins with a number of bytes below 2^64".to_owned())?;
    number.checked_mul(unit_bytes).ok_or_else(|| "a size is a number of bytes below 2^64".to_owned())
}

fn value_size(text: &str) -> Result<u64, String> {
    const HIGHEST: u64 = HIGHEST_MAX_VALUE_BYTES as u64;
    match size(text)? {
        bytes @ 1..=HIGHEST => Ok(bytes),
        bytes => Err(format!("{bytes} is not in 1..={HIGHEST}")),
    }
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
            &["--max-value", "65mb"],
            &["--max-memory", "-1"],
            &["--max-memory", "lots"],
            &["--max-memory", "1kbb"],
            &["--max-memory", "1 mb"],
            &["--max-memory", ""],
            &["--max-memory", "mb"],
            &["--max-memory", "17179869184gb"],
            &["--max-data", "18446744073709551616"],
            &["--min-free", "5%"],
            &["--value-cache", "1.5gb"],
            &["--shards", "0"],
            &["--shards", "65"],
            &["--cache", "a/b"],
            &["--cache", "a/b/c:0"],
            &["--cache", "a/b/c:x"],
            &["--memory", "--data-dir", "x"],
            &["--memory", "--fsync", "always"],
            &["--unknown"],
        ] {
            assert!(Config::try_parse_from([&["hearth"], bad].concat()).is_err(), "{bad:?}");
        }
    }
    #[test]
    fn sizes_are_read_as_redis_reads_them() {
        let sizes = [
            ("0", 0),
            ("123", 123),
            ("123b", 123),
            ("1k", 1000),
            ("1kb", 1024),
            ("2m", 2_000_000),
            ("2MB", 2 * 1024 * 1024),
            ("3g", 3_000_000_000),
            ("3Gb", 3 * 1024 * 1024 * 1024),
            ("18446744073709551615", u64::MAX),
        ];
        for (text, bytes) in sizes {
            assert_eq!(Config::parse_from(["hearth", "--max-memory", text]).max_memory, bytes, "{text}");
        }
        let config = Config::parse_from(["hearth", "--max-value", "64mb", "--max-data", "1gb", "--min-free", "10mb"]);
        assert_eq!((config.max_value, config.max_data, config.min_free), (64 << 20, 1 << 30, 10 << 20));
    }

    #[test]
    fn without_a_word_nothing_is_bounded_and_the_value_cache_leaves_most_of_a_bound_to_the_rest() {
        let config = Config::parse_from(["hearth"]);
        assert_eq!((config.max_memory, config.max_data, config.min_free), (0, 0, 0));
        let cache = |arguments: &[&str]| Config::parse_from([&["hearth"], arguments].concat()).value_cache_bytes();
        assert_eq!(cache(&[]), 64 << 20);
        assert_eq!(cache(&["--max-memory", "1gb"]), 64 << 20);
        assert_eq!(cache(&["--max-memory", "100mb"]), 25 << 20);
        assert_eq!(cache(&["--max-memory", "100mb", "--value-cache", "80mb"]), 80 << 20);
        assert_eq!(cache(&["--value-cache", "0"]), 0);
        assert_eq!((cache(&["--memory"]), cache(&["--memory", "--value-cache", "1kb"])), (0, 1024));
    }
}
