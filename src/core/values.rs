//! Values that were read lately, in memory beside the log: a hit costs no read of the log.
//!
//! Promise: never stale. A value is kept by the revision that wrote it, in one shard's one history, and what has a revision
//! never changes: an overwrite makes another one, which is another key here. Bounded in bytes, what they cost beside the
//! values included. Must never know a key or a file: only what was verified is kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use crate::core::limits::{CACHED_VALUE_OVERHEAD_BYTES, MAX_CACHED_VALUE_BYTES};
use crate::core::types::{Epoch, Revision};

/// Whose value it is. The number tells shards of one process apart, and a shard from itself opened anew.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Written {
    shard: u32,
    epoch: u64,
    revision: u64,
}

#[derive(Clone)]
struct Weight;

impl Weighter<Written, Arc<[u8]>> for Weight {
    fn weight(&self, _: &Written, value: &Arc<[u8]>) -> u64 {
        (value.len() + CACHED_VALUE_OVERHEAD_BYTES) as u64
    }
}

/// The values kept by one process, for all its shards.
pub struct Values {
    /// `None` when it is off.
    kept: Option<Cache<Written, Arc<[u8]>, Weight>>,
    shards: AtomicU32,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// What is known of the values kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueCounts {
    /// Looked for and found, since the process started.
    pub hits: u64,
    /// Looked for and not found; values that are too large to be kept are not looked for.
    pub misses: u64,
    /// Values kept now.
    pub entries: u64,
    /// Bytes they take now.
    pub bytes: u64,
}

impl Values {
    /// Keeps at most `capacity_bytes`; with 0, nothing.
    #[must_use]
    pub fn new(capacity_bytes: u64) -> Arc<Self> {
        let typical = (TYPICAL_VALUE_BYTES + CACHED_VALUE_OVERHEAD_BYTES) as u64;
        let options = OptionsBuilder::new()
            .estimated_items_capacity((capacity_bytes / typical) as usize)
            .weight_capacity(capacity_bytes)
            .build();
        // Refused only when one of the two is missing.
        let options = options.ok().filter(|_| capacity_bytes > 0);
        let kept = options.map(|options| {
            Cache::with_options(options, Weight, DefaultHashBuilder::default(), DefaultLifecycle::default())
        });
        Arc::new(Self { kept, shards: AtomicU32::new(0), hits: AtomicU64::new(0), misses: AtomicU64::new(0) })
    }

    /// The part of a shard that is opened now, in the history `epoch`.
    #[must_use]
    pub fn of_shard(self: &Arc<Self>, epoch: Epoch) -> ShardValues {
        let shard = self.shards.fetch_add(1, Ordering::Relaxed);
        ShardValues { values: Arc::clone(self), shard, epoch }
    }

    #[must_use]
    pub fn counts(&self) -> ValueCounts {
        let (entries, bytes) = self.kept.as_ref().map_or((0, 0), |kept| (kept.len() as u64, kept.weight()));
        let (hits, misses) = (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed));
        ValueCounts { hits, misses, entries, bytes }
    }
}

/// A value's bytes when nothing is known of it: for how many of those that were pushed out are remembered, to know them
/// again.
const TYPICAL_VALUE_BYTES: usize = 256;

/// The values kept of one shard.
pub struct ShardValues {
    values: Arc<Values>,
    shard: u32,
    epoch: Epoch,
}

impl ShardValues {
    /// The value that `revision` wrote, if it is kept; `bytes` is its length or a little more.
    #[must_use]
    pub fn get(&self, revision: Revision, bytes: usize) -> Option<Arc<[u8]>> {
        let kept = self.values.kept.as_ref().filter(|_| bytes <= MAX_CACHED_VALUE_BYTES)?;
        let found = kept.get(&self.written(revision));
        let count = if found.is_some() { &self.values.hits } else { &self.values.misses };
        count.fetch_add(1, Ordering::Relaxed);
        found
    }

    /// Keeps a value that was read and verified, if it is not too large.
    pub fn keep(&self, revision: Revision, value: &[u8]) {
        if let Some(kept) = self.values.kept.as_ref().filter(|_| value.len() <= MAX_CACHED_VALUE_BYTES) {
            kept.insert(self.written(revision), Arc::from(value));
        }
    }

    /// Lets go of a value that is about to be written over or deleted. Whoever reads it until then may bring it back, and it
    /// is then pushed out by use; without this, all values of keys that are often written would have to be.
    pub fn forget(&self, revision: Revision, bytes: usize) {
        if let Some(kept) = self.values.kept.as_ref().filter(|_| bytes <= MAX_CACHED_VALUE_BYTES) {
            kept.remove(&self.written(revision));
        }
    }

    /// What is kept by the whole process.
    #[must_use]
    pub fn counts(&self) -> ValueCounts {
        self.values.counts()
    }

    fn written(&self, revision: Revision) -> Written {
        Written { shard: self.shard, epoch: self.epoch.0, revision: revision.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH: Epoch = Epoch(7);

    fn kept(values: &ShardValues, revision: u64) -> Option<Vec<u8>> {
        values.get(Revision(revision), 1).map(|value| value.to_vec())
    }

    #[test]
    fn a_value_is_found_by_the_revision_that_wrote_it_in_its_own_shard_and_history_only() {
        let values = Values::new(1024 * 1024);
        let (one, other, anew) = (values.of_shard(EPOCH), values.of_shard(EPOCH), values.of_shard(Epoch(8)));
        one.keep(Revision(1), b"one");
        other.keep(Revision(2), b"other");
        assert_eq!((kept(&one, 1), kept(&one, 2)), (Some(b"one".to_vec()), None));
        assert_eq!((kept(&other, 1), kept(&other, 2)), (None, Some(b"other".to_vec())));
        assert_eq!((kept(&anew, 1), kept(&anew, 2)), (None, None));
        let next_history = ShardValues { values: Arc::clone(&values), epoch: Epoch(8), ..one };
        assert_eq!(kept(&next_history, 1), None);
        other.forget(Revision(1), 1);
        let counts = values.counts();
        assert_eq!((counts.hits, counts.misses, counts.entries), (2, 5, 2));
        assert_eq!(counts.bytes, (3 + 5 + 2 * CACHED_VALUE_OVERHEAD_BYTES) as u64);
    }

    #[test]
    fn what_is_forgotten_makes_room_at_once() {
        let values = Values::new(1024 * 1024);
        let shard = values.of_shard(EPOCH);
        (1..=3).for_each(|revision| shard.keep(Revision(revision), b"v"));
        shard.forget(Revision(2), 1);
        shard.forget(Revision(9), 1);
        assert_eq!(values.counts().entries, 2);
        assert_eq!((kept(&shard, 1), kept(&shard, 2)), (Some(b"v".to_vec()), None));
    }

    #[test]
    fn values_take_no_more_than_they_may_and_those_in_use_stay() {
        let (capacity, bytes) = (64 * 1024, 100);
        let values = Values::new(capacity);
        let shard = values.of_shard(EPOCH);
        for revision in 1..10_000 {
            shard.keep(Revision(revision), &vec![b'v'; bytes]);
            assert!(values.counts().bytes <= capacity);
            let _ = shard.get(Revision(1), bytes);
        }
        let counts = values.counts();
        assert!(counts.bytes > capacity / 2 && counts.entries < 300, "{counts:?}");
        assert_eq!(kept(&shard, 1), Some(vec![b'v'; bytes]), "it was read all the time");
        let others = (2..10_000).filter(|revision| kept(&shard, *revision).is_some()).count();
        assert!(others < 300, "{others} of the others are kept");
    }

    #[test]
    fn a_value_longer_than_the_bound_is_neither_kept_nor_looked_for() {
        let values = Values::new(1024 * 1024);
        let shard = values.of_shard(EPOCH);
        let longest = vec![b'v'; MAX_CACHED_VALUE_BYTES];
        shard.keep(Revision(1), &longest);
        shard.keep(Revision(2), &[&longest[..], b"v"].concat());
        assert_eq!(shard.get(Revision(1), longest.len()).as_deref(), Some(&longest[..]));
        assert_eq!(kept(&shard, 2), None);
        let before = values.counts();
        assert_eq!(shard.get(Revision(1), longest.len() + 1), None);
        assert_eq!(values.counts(), before);
    }

    #[test]
    fn without_room_nothing_is_kept_nor_counted() {
        let values = Values::new(0);
        let shard = values.of_shard(EPOCH);
        shard.keep(Revision(1), b"v");
        assert_eq!(kept(&shard, 1), None);
        assert_eq!(values.counts(), ValueCounts::default());
    }
}
