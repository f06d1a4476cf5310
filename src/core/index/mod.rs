//! The index: key -> where its newest record stands, and the order of the keys. Derived from the log, never trusted beyond
//! it.
//!
//! Reading order: `map` (what the lock is over), `slab` (the slots that hold keys and entries), `table` (from a key to its
//! slot), `order` and `sort` (the keys in order), `live` (what of the log is live), `sweep`.
//!
//! Promise: holds exactly what applying the log's records in order gives, but for what was absent already and is swept;
//! readers see a batch whole or not at all; no insertion stops readers while a large table grows. Must never know a file,
//! a clock or a client: a lapsed entry is in it until somebody overwrites it or says that it lapsed.
//!
//! Figures, and what else was measured, in `docs/decisions/0004-the-index.md`.

mod ahead;
mod leaf;
mod live;
mod map;
mod order;
mod slab;
mod sort;
mod sweep;
mod table;
#[cfg(test)]
mod tests;

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::core::record::cache::CacheRecord;
use crate::core::types::{Location, Millis, Offset, Revision, SegmentNo};

use ahead::Ahead;
use map::Map;

pub use live::Live;
pub use sweep::{SweepCursor, Swept};

/// What the index knows of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The offset of the key's newest record.
    pub offset: Offset,
    pub revision: Revision,
    pub expires_at: Millis,
    pub location: Location,
}

/// The index of one shard.
pub struct Index {
    map: RwLock<Map>,
}

/// A look at the index that no batch can change while it lasts.
pub struct View<'a>(RwLockReadGuard<'a, Map>);

impl View<'_> {
    /// The entry of `key`, lapsed or not.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<Entry> {
        self.0.get(key)
    }

    /// Keys held, lapsed ones included that no sweep has met.
    #[must_use]
    pub fn len(&self) -> usize {
        self.live().entries as usize
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keys held that have an expiry.
    #[must_use]
    pub fn expiring(&self) -> usize {
        self.0.ledger.expiring() as usize
    }

    /// What is held, in all.
    #[must_use]
    pub fn live(&self) -> Live {
        self.0.ledger.live()
    }

    /// What is held in one segment.
    #[must_use]
    pub fn live_of(&self, segment: SegmentNo) -> Live {
        self.0.ledger.live_of(segment)
    }

    /// What is held in all segments with smaller numbers.
    #[must_use]
    pub fn live_below(&self, segment: SegmentNo) -> Live {
        self.0.ledger.live_below(segment)
    }

    /// Slots that a sweep of everything passes.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.0.slab.end()
    }

    /// Every key with its entry, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Entry)> {
        let slots = self.0.slab.iter().map(|(_, slot)| slot);
        slots.filter(|slot| self.0.shows(slot)).map(|slot| (slot.key(), slot.entry()))
    }

    /// Every key with its entry, in no order, beginning at slot `slot` and round to it.
    pub fn iter_from(&self, slot: usize) -> impl Iterator<Item = (&[u8], Entry)> {
        let (end, slab) = (self.0.slab.end(), &self.0.slab);
        let slots = slab.iter_in(slot.min(end)..end).chain(slab.iter_in(0..slot.min(end))).map(|(_, slot)| slot);
        slots.filter(|slot| self.0.shows(slot)).map(|slot| (slot.key(), slot.entry()))
    }

    /// The keys that begin with `prefix`, in their order.
    ///
    /// # Panics
    /// As [`View::range_after`].
    pub fn prefix(&self, prefix: &[u8]) -> impl Iterator<Item = (&[u8], Entry)> {
        self.range_after(prefix, None)
    }

    /// The keys that begin with `prefix` and are greater than `after`, in their order: bytewise, a key before those it
    /// begins.
    ///
    /// # Panics
    /// While the log is replayed ([`Index::loading`]): there is no order then, and nobody to ask for it.
    pub fn range_after(&self, prefix: &[u8], after: Option<&[u8]>) -> impl Iterator<Item = (&[u8], Entry)> {
        let Some(order) = &self.0.order else {
            panic!("the order of an index was asked for while its log is replayed")
        };
        let beyond = after.filter(|after| *after >= prefix);
        let ids = order.range(beyond.unwrap_or(prefix), beyond.is_some(), &self.0.slab);
        let slots = Ahead::new(ids.map(|id| self.0.slab.slot(id)), move |slot| slot.key().starts_with(prefix));
        slots.filter(|slot| self.0.shows(slot)).map(|slot| (slot.key(), slot.entry()))
    }
}

impl Default for Index {
    /// An empty index that keeps the order of its keys.
    fn default() -> Self {
        Self { map: RwLock::new(Map::ordered()) }
    }
}

impl Index {
    /// An empty index for the replay of a log: it keeps no order until [`Index::finish_loading`].
    #[must_use]
    pub fn loading() -> Self {
        Self { map: RwLock::default() }
    }

    /// Sorts the keys once; the order is kept from here on.
    pub fn finish_loading(&self) {
        self.write().sort();
    }

    #[must_use]
    pub fn view(&self) -> View<'_> {
        View(self.read())
    }

    /// Applies the records of one batch; no reader sees a part of it.
    ///
    /// # Panics
    /// When a segment's number is greater than the index can hold, [`u32::MAX`]: after 256 PiB of log.
    pub fn apply<'r>(&self, records: impl IntoIterator<Item = (Offset, Location, CacheRecord<'r>)>) {
        // Taken down after the lock is let go.
        let mut cleared = Vec::new();
        let mut map = self.write();
        for (offset, location, record) in records {
            let (key, revision, expires_at) = match record {
                CacheRecord::Put { key, expires_at, .. } => (key, Revision(offset.0), expires_at),
                CacheRecord::Carried { key, expires_at, revision, .. } => (key, revision, expires_at),
                CacheRecord::Delete { key } => {
                    map.remove(key);
                    continue;
                }
                CacheRecord::Clear => {
                    cleared.push(map.clear());
                    continue;
                }
            };
            map.put(key, &Entry { offset, revision, expires_at, location });
        }
        drop(map);
    }

    /// The log starts at offset `base`, with which segment `first` begins: every entry below is absent from here on. A
    /// start at or before the present one changes nothing.
    ///
    /// # Panics
    /// When an entry shows that `first` does not begin with `base`: the index would name records that are gone, or miss
    /// some that are not.
    pub fn trim(&self, base: Offset, first: SegmentNo) {
        self.write().trim(base, first);
    }

    fn read(&self) -> RwLockReadGuard<'_, Map> {
        self.map.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Map> {
        self.map.write().unwrap_or_else(PoisonError::into_inner)
    }
}
