//! The index: key -> where its newest record stands. Derived from the log, never trusted beyond it.
//!
//! Promise: holds exactly what applying the log's records in order gives; readers see a batch whole or not at all.
//! Must never know a file, a clock or a client: an expired entry is in it until somebody overwrites it.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use smallvec::SmallVec;

use crate::core::record::cache::CacheRecord;
use crate::core::types::{Location, Millis, Offset, Revision};

/// What the index knows of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The offset of the key's newest record.
    pub offset: Offset,
    pub revision: Revision,
    pub expires_at: Millis,
    pub location: Location,
}

/// Keys of up to 16 bytes stand in the tree's own nodes; figures in `docs/decisions/0004-the-index.md`.
type Key = SmallVec<[u8; 16]>;
type Map = BTreeMap<Key, Entry>;

/// The index of one shard. Ordered by key, so that a prefix is a range.
#[derive(Default)]
pub struct Index {
    map: RwLock<Map>,
}

/// A look at the index that no batch can change while it lasts.
pub struct View<'a>(RwLockReadGuard<'a, Map>);

impl View<'_> {
    /// The entry of `key`, lapsed or not.
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<Entry> {
        self.0.get(key).copied()
    }

    /// Keys held, lapsed ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every key with its entry, in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &Entry)> {
        self.0.iter().map(|(key, entry)| (&**key, entry))
    }
}

impl Index {
    #[must_use]
    pub fn view(&self) -> View<'_> {
        View(self.map.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Applies the records of one batch; no reader sees a part of it.
    pub fn apply<'r>(&self, records: impl IntoIterator<Item = (Offset, Location, CacheRecord<'r>)>) {
        let mut map = self.map.write().unwrap_or_else(PoisonError::into_inner);
        for (offset, location, record) in records {
            let (key, revision, expires_at) = match record {
                CacheRecord::Put { key, expires_at, .. } => (key, Revision(offset.0), expires_at),
                CacheRecord::Carried { key, expires_at, revision, .. } => (key, revision, expires_at),
                CacheRecord::Delete { key } => {
                    map.remove(key);
                    continue;
                }
                CacheRecord::Clear => {
                    map.clear();
                    continue;
                }
            };
            let entry = Entry { offset, revision, expires_at, location };
            // Overwriting is the rule for a cache: look before allocating a key.
            match map.get_mut(key) {
                Some(place) => *place = entry,
                None => {
                    map.insert(Key::from_slice(key), entry);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::types::SegmentNo;

    fn place(position: u32) -> Location {
        Location { segment: SegmentNo(1), position, length: 10 }
    }

    #[test]
    fn the_newest_record_of_a_key_decides() {
        let index = Index::default();
        let put = |key, expires_at| CacheRecord::Put { key, value: b"", expires_at };
        index.apply([
            (Offset(1), place(0), put(b"a", Millis::NEVER)),
            (Offset(2), place(10), put(b"b", Millis(5))),
            (Offset(3), place(20), put(b"a", Millis(9))),
            (Offset(4), place(30), CacheRecord::Delete { key: b"b" }),
        ]);
        let view = index.view();
        let expected = Entry { offset: Offset(3), revision: Revision(3), expires_at: Millis(9), location: place(20) };
        assert_eq!(view.get(b"a"), Some(expected));
        assert_eq!(view.get(b"b"), None);
        assert_eq!(view.len(), 1);
    }

    #[test]
    fn a_carried_record_moves_and_keeps_its_revision_and_a_clear_leaves_nothing() {
        let index = Index::default();
        let carried = CacheRecord::Carried { key: b"k", value: b"v", expires_at: Millis::NEVER, revision: Revision(3) };
        index.apply([(Offset(9), place(50), carried)]);
        let entry = index.view().get(b"k").unwrap();
        assert_eq!((entry.offset, entry.revision, entry.location), (Offset(9), Revision(3), place(50)));
        index.apply([(Offset(10), place(60), CacheRecord::Clear)]);
        assert!(index.view().is_empty());
    }
}
