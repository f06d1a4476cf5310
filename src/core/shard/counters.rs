//! What one shard tells about itself: sizes as they are now, and what happened since it was opened.
//!
//! Promise: reading costs the shard nothing; each number is one relaxed atomic. Must never know how a number is shown.

use std::sync::atomic::AtomicU64;

/// The numbers of one shard. Sizes are in bytes.
#[derive(Debug, Default)]
pub struct ShardCounters {
    /// The log from its start to its tail.
    pub log_bytes: AtomicU64,
    /// What the log takes on the disk, with what is made ahead.
    pub disk_bytes: AtomicU64,
    /// The records that the index names.
    pub live_bytes: AtomicU64,
    /// The log begins with this offset.
    pub base_offset: AtomicU64,
    /// One past the last offset of the log.
    pub next_offset: AtomicU64,
    pub segments: AtomicU64,
    /// Compaction passes that were begun.
    pub compaction_passes: AtomicU64,
    pub carried_records: AtomicU64,
    pub carried_bytes: AtomicU64,
    pub trims: AtomicU64,
    /// Bytes given back to the disk by trims.
    pub trimmed_bytes: AtomicU64,
    /// Lapsed entries that were taken out of the index.
    pub swept_keys: AtomicU64,
    /// What the disk had free when it was last asked.
    pub free_bytes: AtomicU64,
    /// What must stay free.
    pub floor_bytes: AtomicU64,
    /// 1 while something needs a person: a pass met damage, or the disk is below its floor.
    pub alarm: AtomicU64,
}
