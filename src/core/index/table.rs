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
    tables: Vec<HashTable<Item>>,
    hasher: DefaultHashBuilder,
}

/// A slot by its key's hash, of which half is kept: a table that grows looks at no key.
#[derive(Clone, Copy)]
struct Item {
    half: u32,
    id: SlotId,
}

impl Item {
    /// The hash by which the table places it.
    fn hash(&self) -> u64 {
        u64::from(self.half) << 32 | u64::from(self.half)
    }
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
    /// The number of its table, from the half that the table does not look at.
    fn table(self) -> usize {
        self.0 as usize % TABLES
    }

    fn item(self, id: SlotId) -> Item {
        Item { half: (self.0 >> 32) as u32, id }
    }

    fn within(self) -> u64 {
        self.item(SlotId(0)).hash()
    }
}

impl Tables {
    pub fn hash(&self, key: &[u8]) -> Hash {
        Hash(self.hasher.hash_one(key))
    }

    pub fn find(&self, hash: Hash, key: &[u8], slab: &Slab) -> Option<SlotId> {
        let same = |item: &Item| slab.key(item.id) == key;
        self.tables[hash.table()].find(hash.within(), same).map(|item| item.id)
    }

    /// Adds a slot whose key is in no table yet.
    pub fn insert(&mut self, hash: Hash, id: SlotId) {
        self.tables[hash.table()].insert_unique(hash.within(), hash.item(id), Item::hash);
    }

    /// Takes a key's slot out.
    pub fn remove(&mut self, hash: Hash, key: &[u8], slab: &Slab) -> Option<SlotId> {
        let table = &mut self.tables[hash.table()];
        let place = table.find_entry(hash.within(), |item| slab.key(item.id) == key).ok()?;
        let (item, _) = place.remove();
        if table.capacity() > SMALL && table.len() * 8 < table.capacity() {
            table.shrink_to(table.len() * 2, Item::hash);
        }
        Some(item.id)
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
