//! The index: key -> where its newest record stands. Derived from the log, never trusted beyond it.
//!
//! Promise: holds exactly what applying the log's records in order gives; readers see a batch whole or not at all; no
//! insertion stops readers while a large table grows. Must never know a file, a clock or a client: an expired entry is in
//! it until somebody overwrites it.
//!
//! The first form is a hash map cut into tables, because so far only points are read; figures, and what an order beside
//! it will cost, in `docs/decisions/0004-the-index.md`.

use std::hash::BuildHasher;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use hashbrown::hash_table::Entry as Place;
use hashbrown::{DefaultHashBuilder, HashTable};
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

/// Keys of up to 16 bytes stand in the table itself.
type Key = SmallVec<[u8; 16]>;

/// So many tables that one of them growing is too short to be noticed: 2 ms at 2 M keys instead of 300 ms.
const TABLES: usize = 256;

struct Map {
    tables: Vec<HashTable<(Key, Entry)>>,
    hasher: DefaultHashBuilder,
    keys: usize,
}

impl Default for Map {
    fn default() -> Self {
        Self { tables: (0..TABLES).map(|_| HashTable::new()).collect(), hasher: DefaultHashBuilder::default(), keys: 0 }
    }
}

impl Map {
    /// The hash of a key and the number of its table, from bits that the table itself does not look at first.
    fn place(&self, key: &[u8]) -> (u64, usize) {
        let hash = self.hasher.hash_one(key);
        (hash, (hash >> 40) as usize % TABLES)
    }

    fn get(&self, key: &[u8]) -> Option<Entry> {
        let (hash, table) = self.place(key);
        self.tables[table].find(hash, |(known, _)| known.as_slice() == key).map(|(_, entry)| *entry)
    }

    fn put(&mut self, key: &[u8], entry: Entry) {
        let (hash, table) = self.place(key);
        let hasher = &self.hasher;
        let same = |(known, _): &(Key, Entry)| known.as_slice() == key;
        match self.tables[table].entry(hash, same, |(known, _)| hasher.hash_one(known.as_slice())) {
            Place::Occupied(mut place) => place.get_mut().1 = entry,
            Place::Vacant(place) => {
                place.insert((Key::from_slice(key), entry));
                self.keys += 1;
            }
        }
    }

    fn remove(&mut self, key: &[u8]) {
        let (hash, table) = self.place(key);
        if let Ok(place) = self.tables[table].find_entry(hash, |(known, _)| known.as_slice() == key) {
            place.remove();
            self.keys -= 1;
        }
    }

    fn clear(&mut self) {
        self.tables.iter_mut().for_each(|table| *table = HashTable::new());
        self.keys = 0;
    }
}

/// The index of one shard.
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
        self.0.get(key)
    }

    /// Keys held, lapsed ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.keys
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Every key with its entry, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &Entry)> {
        self.0.tables.iter().flatten().map(|(key, entry)| (key.as_slice(), entry))
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
            map.put(key, Entry { offset, revision, expires_at, location });
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
