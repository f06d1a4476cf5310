//! The errors of the core: few, each a sentence with the facts, each saying whether a write may have happened.
//!
//! Promise: [`Refusal`] means nothing was written; [`Unknown`] means it may have been; a [`ReadError`] is never a miss.
//! Must never know a protocol's words: each front end has one table from these to its own.

use std::fmt;
use std::path::PathBuf;

use crate::core::log::{FORMAT, OLDEST_FORMAT};
use crate::core::types::{BrokerId, SegmentNo, ShardId};

/// Why a request was turned away. Nothing was written and nothing will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No broker is known to own the shard, or it cannot be reached from here.
    NoOwner { owner: Option<BrokerId> },
    /// The shard is here but its doors are closed: it has not yet applied the start of its generation.
    NotReady,
    /// Nobody has written to the cache yet, so it has no shard. Reads find nothing in it; the first write makes it.
    NotCreated,
    /// An earlier flush or write of the log failed; the shard takes no more writes.
    Poisoned,
    /// The broker is stopping.
    Stopping,
    /// The key is longer than the bound in bytes.
    KeyTooLong { bytes: usize, bound: usize },
    /// The value is longer than the bound in bytes.
    ValueTooLong { bytes: usize, bound: usize },
    /// The records of one request take more bytes than a batch may have.
    BatchTooLarge { bytes: usize, bound: usize },
    /// The outcome rested on a staged write that was lost.
    LostGround,
    /// The process uses more memory than it may.
    MemoryFull { used: u64, bound: u64 },
    /// The cache's live records take more bytes than they may.
    DataFull { live: u64, bound: u64 },
    /// The disk has less free space than must stay free.
    DiskLow { free: u64, floor: u64 },
    /// What the log has allocated is used up, and there is no more to be had yet.
    NoRoom,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoOwner { owner: None } => write!(f, "no broker owns this key at the moment; nothing was written"),
            Self::NoOwner { owner: Some(BrokerId(id)) } => {
                write!(f, "broker {id} owns this key and cannot be reached from here; nothing was written")
            }
            Self::NotReady => write!(f, "the shard of this key is still opening; nothing was written"),
            Self::NotCreated => write!(f, "the cache is not made yet; nothing was written"),
            Self::Poisoned => {
                write!(
                    f,
                    "an earlier write could not be made durable, so this broker takes no more writes; nothing was written"
                )
            }
            Self::Stopping => write!(f, "the broker is stopping; nothing was written"),
            Self::KeyTooLong { bytes, bound } => write!(f, "the key has {bytes} bytes, the bound is {bound}"),
            Self::ValueTooLong { bytes, bound } => write!(f, "the value has {bytes} bytes, the bound is {bound}"),
            Self::BatchTooLarge { bytes, bound } => {
                write!(f, "the request takes {bytes} bytes of one batch, the bound is {bound}; nothing was written")
            }
            Self::LostGround => write!(f, "a write this answer rested on was lost; nothing was written, try again"),
            Self::MemoryFull { used, bound } => {
                write!(f, "the broker uses {used} bytes of memory, the bound is {bound}; nothing was written")
            }
            Self::DataFull { live, bound } => {
                write!(f, "the cache holds {live} bytes, the bound is {bound}; nothing was written")
            }
            Self::DiskLow { free, floor } => write!(
                f,
                "the disk has {free} bytes free and {floor} must stay free; nothing was written, deletes and reads go on"
            ),
            Self::NoRoom => write!(
                f,
                "the log has no room left, and no file for more can be made now (space, inodes, open files or a limit on file sizes); nothing was written"
            ),
        }
    }
}

/// Why the outcome of a write cannot be told: it may or may not be in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// Writing or flushing the batch failed.
    FlushFailed,
    /// The broker stopped before the batch was durable.
    Stopped,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FlushFailed => write!(f, "the log could not be flushed, the write may or may not survive"),
            Self::Stopped => write!(f, "the broker stopped before the write was durable"),
        }
    }
}

/// A value that is in the index but could not be read. Never to be told as a miss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The shard cannot answer at all.
    Refused(Refusal),
    /// The disk reported an error.
    Io { shard: ShardId, segment: SegmentNo, position: u32, message: String },
    /// The transaction it is part of stays with another shard.
    Apart,
    /// What stands there is not the record the index names.
    Mismatch { shard: ShardId, segment: SegmentNo, position: u32, what: &'static str },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Apart => write!(f, "a transaction cannot go to several shards"),
            Self::Io { shard, segment, position, message } => {
                write!(f, "reading {shard}, segment {}, byte {position} failed: {message}", segment.0)
            }
            Self::Mismatch { shard, segment, position, what } => {
                write!(
                    f,
                    "{shard}, segment {}, byte {position}: the record there has another {what} than the index says",
                    segment.0
                )
            }
        }
    }
}

/// Why a data directory or a shard in it was not opened. Each is told to the operator as one sentence.
#[derive(Debug)]
pub enum OpenError {
    /// Another process holds the directory.
    Locked { path: PathBuf },
    /// The directory or a file in it cannot be used.
    Unusable { path: PathBuf, doing: &'static str, source: std::io::Error },
    /// The directory holds something, and it is not a broker's data.
    NotOurs { path: PathBuf, holds: String },
    /// The bytes are of a format this build does not know.
    OtherFormat { path: PathBuf, found: String },
    /// The bytes are ours and wrong; opening would lose or invent data.
    Damaged { path: PathBuf, at: u64, what: String },
    /// The log could not be made durable while opening.
    FlushFailed { path: PathBuf, source: std::io::Error },
}

impl OpenError {
    /// For `map_err`: an I/O error while `doing` something to `path`.
    pub fn unusable(path: impl Into<PathBuf>, doing: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Unusable { path, doing, source }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Locked { path } => {
                write!(
                    f,
                    "the data directory {} is in use by another hearth process; stop it or choose another with --data-dir",
                    path.display()
                )
            }
            Self::Unusable { path, doing, source } => {
                write!(f, "cannot use {}: {doing} failed: {source}", path.display())
            }
            Self::NotOurs { path, holds } => {
                write!(
                    f,
                    "{} is not a Hearth data directory: it holds \"{holds}\" and no node.toml; choose another with --data-dir",
                    path.display()
                )
            }
            Self::OtherFormat { path, found } => {
                write!(
                    f,
                    "{} is of another format ({found}); this build reads formats {OLDEST_FORMAT} to {FORMAT} and has changed nothing",
                    path.display()
                )
            }
            Self::Damaged { path, at, what } => {
                write!(
                    f,
                    "{} is damaged at byte {at}: {what}; nothing was changed, and the broker does not start on it",
                    path.display()
                )
            }
            Self::FlushFailed { path, source } => write!(f, "flushing {} failed: {source}", path.display()),
        }
    }
}

impl std::error::Error for OpenError {}
impl std::error::Error for Refusal {}
impl std::error::Error for ReadError {}
