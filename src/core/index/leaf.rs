//! A leaf of the order: some neighbouring keys.
//!
//! Promise: never empty; finds a place with few looks at keys, whatever their length in common. Must never know which
//! keys its neighbours have.
//!
//! A leaf keeps the number of bytes that all its keys begin with, and of each key the four bytes behind them (its head),
//! so that most comparisons look at nothing but the leaf.

use std::cmp::Ordering;

use crate::core::index::slab::{Slab, SlotId};

/// The most keys of a leaf. Few in unit tests, so that leaves split and join within a handful of keys.
pub(super) const LEAF: usize = if cfg!(test) { 8 } else { 256 };
/// What a leaf is filled to when all keys are sorted at once: room for a few before it splits.
pub(super) const FILLED: usize = LEAF / 8 * 7;
/// A leaf with fewer keys joins a neighbour, if both are then at most [`JOINED`].
pub(super) const SPARSE: usize = LEAF / 4;
const JOINED: usize = LEAF / 4 * 3;

#[derive(Clone, Copy)]
struct Item {
    /// Four bytes of the key behind what the leaf's keys have in common, as a number; zeros behind the key's end.
    head: u32,
    id: SlotId,
}

pub(super) struct Leaf {
    items: Vec<Item>,
    /// Bytes that all keys of the leaf begin with; maybe fewer than they really have in common.
    common: usize,
}

/// How a key compares with the first key of a leaf, as far as it is known.
#[derive(Clone, Copy)]
pub(super) struct Against {
    pub order: Ordering,
    /// They begin with this many bytes alike, or `more`.
    pub alike: usize,
    pub more: bool,
}

/// Where a key belongs in a leaf.
#[derive(Clone, Copy)]
pub(super) struct Spot {
    pub at: usize,
    /// Bytes of what the leaf's keys have in common that the key begins with, too.
    common: usize,
}

impl Leaf {
    /// A leaf of sorted keys, of which there is one at least.
    pub fn of_sorted(ids: impl Iterator<Item = SlotId>, slab: &Slab) -> Self {
        let mut leaf = Self { items: ids.map(|id| Item { head: 0, id }).collect(), common: 0 };
        leaf.find_heads(slab);
        leaf
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn is_full(&self) -> bool {
        self.items.len() == LEAF
    }

    #[inline]
    pub fn first(&self) -> SlotId {
        self.items[0].id
    }

    #[inline]
    pub fn get(&self, at: usize) -> Option<SlotId> {
        self.items.get(at).map(|item| item.id)
    }

    pub fn ids_from(&self, at: usize) -> impl Iterator<Item = SlotId> {
        self.items[at..].iter().map(|item| item.id)
    }

    /// The place of the first key that is at least `key`.
    pub fn seek(&self, key: &[u8], against: Against, slab: &Slab) -> Spot {
        let alike = if against.more && against.alike < self.common {
            common_bytes(&slab.key(self.first())[..self.common], key)
        } else {
            against.alike.min(self.common)
        };
        if alike < self.common {
            // It differs from all keys where it differs from the first.
            let at = if against.order == Ordering::Less { 0 } else { self.items.len() };
            return Spot { at, common: alike };
        }
        let head = head(key, self.common);
        let from = self.items.partition_point(|item| item.head < head);
        let same = self.items[from..].partition_point(|item| item.head == head);
        let rest = &key[self.common..];
        let less = |item: &Item| &slab.key(item.id)[self.common..] < rest;
        Spot { at: from + self.items[from..from + same].partition_point(less), common: self.common }
    }

    /// Adds a key where [`seek`](Self::seek) says. The leaf must not be full.
    pub fn insert(&mut self, spot: Spot, id: SlotId, slab: &Slab) {
        let length = self.items.len();
        if length == self.items.capacity() {
            // By a quarter, not by doubling: half-empty leaves would be what the order costs.
            self.items.reserve_exact((length / 4).max(4).min(LEAF - length));
        }
        self.items.insert(spot.at, Item { head: head(slab.key(id), spot.common), id });
        if spot.common < self.common {
            self.set_common(spot.common, slab);
        }
    }

    /// Adds a key that is less than all others.
    pub fn insert_first(&mut self, id: SlotId, slab: &Slab) {
        let common = common_bytes(&slab.key(self.first())[..self.common], slab.key(id));
        self.insert(Spot { at: 0, common }, id, slab);
    }

    /// Takes a key out; the leaf may be empty then, and must go.
    pub fn remove(&mut self, at: usize) {
        self.items.remove(at);
        if self.items.len() * 2 < self.items.capacity() {
            self.items.shrink_to(self.items.len() / 4 * 5);
        }
    }

    /// Splits off the second half.
    pub fn split(&mut self, slab: &Slab) -> Self {
        let mut behind = Self { items: self.items.split_off(LEAF / 2), common: 0 };
        self.items.shrink_to(LEAF / 2 + LEAF / 8);
        self.find_heads(slab);
        behind.find_heads(slab);
        behind
    }

    pub fn may_join(&self, next: &Self) -> bool {
        self.len() + next.len() <= JOINED
    }

    pub fn join(&mut self, next: &Self, slab: &Slab) {
        self.items.reserve_exact(next.items.len());
        self.items.extend_from_slice(&next.items);
        self.find_heads(slab);
    }

    /// Finds what the keys have in common, which is what the first and the last have, and their heads behind it.
    fn find_heads(&mut self, slab: &Slab) {
        let common = match self.items.as_slice() {
            [first, .., last] => common_bytes(slab.key(first.id), slab.key(last.id)),
            _ => slab.key(self.first()).len(),
        };
        self.set_common(common, slab);
    }

    fn set_common(&mut self, common: usize, slab: &Slab) {
        self.common = common;
        self.items.iter_mut().for_each(|item| item.head = head(slab.key(item.id), common));
    }
}

/// Four bytes of a key from `at` on, as a number that sorts like them.
#[inline]
fn head(key: &[u8], at: usize) -> u32 {
    let rest = &key[at..];
    u32::from_be_bytes(rest.first_chunk().copied().unwrap_or_else(|| {
        let mut bytes = [0; 4];
        bytes[..rest.len()].copy_from_slice(rest);
        bytes
    }))
}

/// How many bytes two keys begin with alike.
#[inline]
pub(super) fn common_bytes(one: &[u8], other: &[u8]) -> usize {
    let (ones, _) = one.as_chunks::<8>();
    let (others, _) = other.as_chunks::<8>();
    let whole = 8 * ones.iter().zip(others).take_while(|(one, other)| one == other).count();
    whole + one[whole..].iter().zip(&other[whole..]).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
impl Leaf {
    /// What holds between any two calls.
    pub fn check(&self, slab: &Slab) {
        assert!((1..=LEAF).contains(&self.len()), "a leaf of {}", self.len());
        assert!(self.items.capacity() <= LEAF, "room for {}", self.items.capacity());
        let shared = &slab.key(self.first())[..self.common];
        for item in &self.items {
            let key = slab.key(item.id);
            assert!(key.starts_with(shared), "{key:?} does not begin with {shared:?}");
            assert_eq!(item.head, head(key, self.common));
        }
    }
}
