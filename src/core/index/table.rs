//! From a key to its slot: hash tables of slot numbers.
//!
//! Promise: no table is so large that its growing is noticed; what was removed gives its room back. Must never know what
//! a slot holds beside its key.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::core::index::slab::{Slab, SlotId};

/// So many tables that one of them growing is too short to be noticed; figures in `docs/decisions/0004-the-index.md`.
const TABLES: usize = 256;

/// A table of at most this capacity is not worth shrinking.
const SMALL: usize = 32;

pub(super) struct Tables {
    tables: Vec<HashTable<SlotId>>,
    hasher: DefaultHashBuilder,
}

impl Default for Tables {
    fn default() -> Self {
        Self { tables: (0..TABLES).map(|_| HashTable::new()).collect(), hasher: DefaultHashBuilder::default() }
    }
}

/// A key's hash, computed once for looking it up and adding it.
#[derive(Clone, Copy)]
pub(super) struct Hash(u64);

impl Hash {
    /// The number of its table, from bits that the table itself does not look at first.
    fn table(self) -> usize {
        (self.0 >> 40) as usize % TABLES
    }
}

impl Tables {
    pub fn hash(&self, key: &[u8]) -> Hash {
        Hash(self.hasher.hash_one(key))
    }

    pub fn find(&self, hash: Hash, key: &[u8], slab: &Slab) -> Option<SlotId> {
        self.tables[hash.table()].find(hash.0, |id| slab.key(*id) == key).copied()
    }

    /// Adds a slot whose key is in no table yet.
    pub fn insert(&mut self, hash: Hash, id: SlotId, slab: &Slab) {
        let hasher = &self.hasher;
        self.tables[hash.table()].insert_unique(hash.0, id, |id| hasher.hash_one(slab.key(*id)));
    }

    /// Takes a key's slot out.
    pub fn remove(&mut self, hash: Hash, key: &[u8], slab: &Slab) -> Option<SlotId> {
        let table = &mut self.tables[hash.table()];
        let place = table.find_entry(hash.0, |id| slab.key(*id) == key).ok()?;
        let (id, _) = place.remove();
        if table.capacity() > SMALL && table.len() * 8 < table.capacity() {
            let hasher = &self.hasher;
            table.shrink_to(table.len() * 2, |id| hasher.hash_one(slab.key(*id)));
        }
        Some(id)
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.tables.iter().map(HashTable::len).sum()
    }

    #[cfg(test)]
    pub fn capacity(&self) -> usize {
        self.tables.iter().map(HashTable::capacity).sum()
    }
}
