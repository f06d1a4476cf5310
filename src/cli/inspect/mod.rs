//! `hearth inspect`: what stands in a data directory, and what opening it would do.
//!
//! Reading order: `shard` (one log, surveyed and told), `opening` (what opening would do about it, and the way on for a
//! person), `lines` (a record as a line of text).
//!
//! Promise: strictly read-only, also where nothing may be written, and no lock is kept; it says what the broker would do and
//! in the broker's own words, because both go through one survey and one table; what it prints is not gathered first.
//! Must never know how a log is repaired.

mod lines;
mod opening;
mod shard;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::core::error::OpenError;
use crate::core::log::FORMAT;
use crate::core::log::disk::Disk;
use crate::core::store::node::{LOCK_FILE, NODE_FILE, Node, shard_dir};
use crate::core::types::{CacheName, Kind, Millis, ShardId, ShardNo};

/// What to look at, and how closely.
#[derive(Args, Clone, Debug)]
pub struct Inspect {
    /// The data directory
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// Print every record of the logs, one a line
    #[arg(long)]
    pub records: bool,

    /// Print only records that are the newest of their key and have not lapsed, and how much of each segment is live
    #[arg(long)]
    pub live: bool,
}

/// What was found out, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Opening would change nothing that stands there.
    OpensAsItIs,
    /// Opening would cut, remove, flush or convert something first.
    WouldRepair,
    /// It cannot be read.
    Unreadable,
    /// Of another format, or not ours.
    Foreign,
    /// Opening refuses it.
    Damaged,
}

impl Verdict {
    fn of(error: &OpenError) -> Self {
        match error {
            OpenError::Damaged { .. } => Self::Damaged,
            OpenError::OtherFormat { .. } | OpenError::NotOurs { .. } => Self::Foreign,
            OpenError::Locked { .. } | OpenError::Unusable { .. } | OpenError::FlushFailed { .. } => Self::Unreadable,
        }
    }

    /// The exit code of the process, as the README lists them.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::OpensAsItIs => 0,
            Self::Unreadable => 5,
            Self::WouldRepair => 6,
            Self::Damaged => 7,
            Self::Foreign => 8,
        }
    }
}

impl Inspect {
    /// Looks at the directory on `disk` and prints what is there; `now` is the wall clock's time.
    ///
    /// # Errors
    /// Only of `out`.
    pub fn run(&self, disk: &dyn Disk, now: Millis, out: &mut dyn Write) -> io::Result<Verdict> {
        let root = &self.dir;
        let node = match Node::read(disk, root) {
            Ok(Some(node)) => node,
            Ok(None) => {
                writeln!(out, "{}: no data is here; a broker would begin a new data directory", root.display())?;
                return Ok(Verdict::Foreign);
            }
            Err(error) => {
                writeln!(out, "{}:", root.display())?;
                return opening::tell_refusal(&error, None, out);
            }
        };
        writeln!(out, "{}: the data of broker {}, format {}", root.display(), node.broker, node.format)?;
        let lock = root.join(LOCK_FILE);
        let in_use = match disk.is_locked(&lock) {
            Ok(in_use) => in_use,
            // Who may not read the lock's file may not know.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => false,
            Err(error) => return opening::tell_refusal(&OpenError::unusable(root, "locking it")(error), None, out),
        };
        if in_use {
            writeln!(out, "in use by a broker: this report is of a moment, and the end of a log may look torn in it")?;
        }
        let mut worst = Verdict::OpensAsItIs;
        if node.format != FORMAT {
            writeln!(
                out,
                "{NODE_FILE} would be rewritten with format {FORMAT}, and an older build refuse it from then on"
            )?;
            worst = Verdict::WouldRepair;
        }
        for shard in self.shards(disk, &node, out)? {
            let report = shard::Report { disk, root, node: &node, asked: self, now, in_use };
            worst = worst.max(report.tell(&shard, out)?);
        }
        Ok(worst)
    }

    /// The shards that a broker would open: those that live here, and the one that is begun at the first start.
    fn shards(&self, disk: &dyn Disk, node: &Node, out: &mut dyn Write) -> io::Result<Vec<ShardId>> {
        let mut shards = Vec::new();
        for shard in node.shards() {
            match shard {
                Ok(shard) => shards.push(shard),
                Err(name) => writeln!(out, "{NODE_FILE} names \"{name}\", which this build does not know")?,
            }
        }
        let first = ShardId { kind: Kind::Cache, cache: CacheName::default_cache(), shard: ShardNo(0) };
        if !shards.contains(&first) && disk.exists(&shard_dir(&self.dir, &first)).unwrap_or(false) {
            shards.push(first);
        }
        for stray in strays(disk, &self.dir, &shards) {
            writeln!(out, "{}: {NODE_FILE} does not name it, so no broker opens it", stray.display())?;
        }
        Ok(shards)
    }
}

/// Directories of shards that do not live here.
fn strays(disk: &dyn Disk, root: &Path, shards: &[ShardId]) -> Vec<PathBuf> {
    let caches = root.join(Kind::Cache.root());
    let ours: Vec<PathBuf> = shards.iter().map(|shard| shard_dir(root, shard)).collect();
    let within = |dir: &Path| -> Vec<PathBuf> {
        // What is no directory holds no shard, and what cannot be listed is told where it is needed.
        disk.list(dir).unwrap_or_default().iter().map(|name| dir.join(name)).collect()
    };
    within(&caches).iter().flat_map(|cache| within(cache)).filter(|dir| !ours.contains(dir)).collect()
}
