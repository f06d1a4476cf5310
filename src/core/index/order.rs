//! The order beside the hash tables: slot numbers, sorted by their keys' bytes, in leaves.
//!
//! Promise: finding a place costs a few looks at keys, whatever their length in common; keys that come in ascending order
//! fill leaves whole; no leaf is empty. Must never know an entry: an overwrite does not touch it.
//!
//! A leaf keeps the number of bytes that all its keys begin with, and of each key the four bytes behind them (its head),
//! so that most comparisons look at nothing but the leaf.

use crate::core::index::slab::{Slab, SlotId};

/// The most keys of a leaf. Few in unit tests, so that leaves split and join within a handful of keys.
const LEAF: usize = if cfg!(test) { 8 } else { 1024 };
/// What a leaf is filled to when all keys are sorted at once: room for a few before it splits.
const FILLED: usize = LEAF / 8 * 7;
/// A leaf with fewer keys joins a neighbour, if both are then at most [`JOINED`].
const SPARSE: usize = LEAF / 4;
const JOINED: usize = LEAF / 4 * 3;

#[derive(Clone, Copy)]
struct Item {
    /// Four bytes of the key behind what the leaf's keys have in common, as a number; zeros behind the key's end.
    head: u32,
    id: SlotId,
}

/// A run of neighbouring keys; never empty.
struct Leaf {
    items: Vec<Item>,
    /// Bytes that all keys of the leaf begin with; maybe fewer than they really have in common.
    common: usize,
}

/// The keys' order.
#[derive(Default)]
pub(super) struct Order {
    leaves: Vec<Leaf>,
}

impl Order {
    /// The order of keys that are sorted already.
    pub fn of_sorted(ids: impl ExactSizeIterator<Item = SlotId>, slab: &Slab) -> Self {
        let mut leaves = Vec::with_capacity(ids.len().div_ceil(FILLED));
        let mut ids = ids.peekable();
        while ids.peek().is_some() {
            let items = ids.by_ref().take(FILLED).map(|id| Item { head: 0, id }).collect();
            let mut leaf = Leaf { items, common: 0 };
            leaf.find_heads(slab);
            leaves.push(leaf);
        }
        Self { leaves }
    }

    /// Adds a slot whose key is not in it yet.
    pub fn insert(&mut self, id: SlotId, slab: &Slab) {
        let key = slab.key(id);
        let mut number = self.leaf_of(key, slab);
        let Some(leaf) = self.leaves.get_mut(number) else {
            self.leaves.push(Leaf::of_one(id, slab));
            return;
        };
        let mut at = leaf.seek(key, slab);
        if leaf.items.len() == LEAF {
            if at == 0 {
                // Only the first leaf takes keys in front of its own: descending keys fill leaves whole, too.
                self.leaves.insert(number, Leaf::of_one(id, slab));
                return;
            }
            number += 1;
            if at < LEAF {
                let behind = leaf.split(slab);
                self.leaves.insert(number, behind);
                number = self.leaf_of(key, slab);
                at = self.leaves[number].seek(key, slab);
            } else if self.leaves.get(number).is_none_or(|next| next.items.len() == LEAF) {
                self.leaves.insert(number, Leaf::of_one(id, slab));
                return;
            } else {
                at = 0;
            }
        }
        self.leaves[number].insert(at, id, slab);
    }

    /// Takes a slot out whose key is in it.
    pub fn remove(&mut self, id: SlotId, slab: &Slab) {
        let key = slab.key(id);
        let number = self.leaf_of(key, slab);
        let leaf = &mut self.leaves[number];
        let at = leaf.seek(key, slab);
        assert!(leaf.items.get(at).is_some_and(|item| item.id == id), "slot {} is not where its key belongs", id.0);
        leaf.items.remove(at);
        if leaf.items.len() * 2 < leaf.items.capacity() {
            leaf.items.shrink_to(leaf.items.len() / 4 * 5);
        }
        if leaf.items.is_empty() {
            self.leaves.remove(number);
        } else if leaf.items.len() < SPARSE {
            self.join(number, slab);
        }
        if self.leaves.len() * 4 < self.leaves.capacity() {
            self.leaves.shrink_to(self.leaves.len() * 2);
        }
    }

    /// Joins a leaf with a neighbour if both fit in one.
    fn join(&mut self, number: usize, slab: &Slab) {
        let fits = |left: usize| {
            self.leaves.get(left..left + 2).is_some_and(|two| two[0].items.len() + two[1].items.len() <= JOINED)
        };
        let left = if number > 0 && fits(number - 1) {
            number - 1
        } else if fits(number) {
            number
        } else {
            return;
        };
        let right = self.leaves.remove(left + 1);
        let leaf = &mut self.leaves[left];
        leaf.items.reserve_exact(right.items.len());
        leaf.items.extend(right.items);
        leaf.find_heads(slab);
    }

    /// The slots from the first key on that is at least `from`, or greater if `beyond`.
    pub fn range<'s>(&'s self, from: &[u8], beyond: bool, slab: &Slab) -> impl Iterator<Item = SlotId> + use<'s> {
        let number = self.leaf_of(from, slab);
        let at = self.leaves.get(number).map_or(0, |leaf| {
            let at = leaf.seek(from, slab);
            let same = leaf.items.get(at).is_some_and(|item| slab.key(item.id) == from);
            at + usize::from(beyond && same)
        });
        let skipped = move |place: usize| if place == 0 { at } else { 0 };
        let leaves = self.leaves.get(number..).unwrap_or_default().iter().enumerate();
        leaves.flat_map(move |(place, leaf)| leaf.items[skipped(place)..].iter().map(|item| item.id))
    }

    /// The leaf where a key belongs: the last whose first key is not greater, or the first of all.
    fn leaf_of(&self, key: &[u8], slab: &Slab) -> usize {
        self.leaves.partition_point(|leaf| slab.key(leaf.items[0].id) <= key).saturating_sub(1)
    }
}

impl Leaf {
    fn of_one(id: SlotId, slab: &Slab) -> Self {
        let mut leaf = Self { items: vec![Item { head: 0, id }], common: 0 };
        leaf.find_heads(slab);
        leaf
    }

    /// What the keys begin with.
    fn shared<'s>(&self, slab: &'s Slab) -> &'s [u8] {
        &slab.key(self.items[0].id)[..self.common]
    }

    /// The place of the first key that is at least `key`.
    fn seek(&self, key: &[u8], slab: &Slab) -> usize {
        let shared = self.shared(slab);
        let begin = &key[..key.len().min(self.common)];
        if begin != shared {
            // It differs from all of them within what they have in common.
            return if begin < shared { 0 } else { self.items.len() };
        }
        let head = head(key, self.common);
        let from = self.items.partition_point(|item| item.head < head);
        let alike = self.items[from..].partition_point(|item| item.head == head);
        let rest = &key[self.common..];
        from + self.items[from..from + alike].partition_point(|item| &slab.key(item.id)[self.common..] < rest)
    }

    fn insert(&mut self, at: usize, id: SlotId, slab: &Slab) {
        let key = slab.key(id);
        let common = common_bytes(self.shared(slab), key);
        if self.items.len() == self.items.capacity() {
            // By a quarter, not by doubling: half-empty leaves would be what the order costs.
            self.items.reserve_exact((self.items.len() / 4).max(4).min(LEAF - self.items.len()));
        }
        self.items.insert(at, Item { head: head(key, common), id });
        if common < self.common {
            self.set_common(common, slab);
        }
    }

    /// Splits off the second half.
    fn split(&mut self, slab: &Slab) -> Self {
        let mut behind = Self { items: self.items.split_off(LEAF / 2), common: 0 };
        self.items.shrink_to(LEAF / 2 + LEAF / 8);
        self.find_heads(slab);
        behind.find_heads(slab);
        behind
    }

    /// Finds what the keys have in common, which is what the first and the last have, and their heads behind it.
    fn find_heads(&mut self, slab: &Slab) {
        let [first, .., last] = self.items.as_slice() else {
            let key = slab.key(self.items[0].id);
            return self.set_common(key.len(), slab);
        };
        let common = common_bytes(slab.key(first.id), slab.key(last.id));
        self.set_common(common, slab);
    }

    fn set_common(&mut self, common: usize, slab: &Slab) {
        self.common = common;
        self.items.iter_mut().for_each(|item| item.head = head(slab.key(item.id), common));
    }
}

/// Four bytes of a key from `at` on, as a number that sorts like them.
fn head(key: &[u8], at: usize) -> u32 {
    let rest = &key[at..];
    u32::from_be_bytes(rest.first_chunk().copied().unwrap_or_else(|| {
        let mut bytes = [0; 4];
        bytes[..rest.len()].copy_from_slice(rest);
        bytes
    }))
}

/// How many bytes two keys begin with alike.
pub(super) fn common_bytes(one: &[u8], other: &[u8]) -> usize {
    let (ones, _) = one.as_chunks::<8>();
    let (others, _) = other.as_chunks::<8>();
    let whole = 8 * ones.iter().zip(others).take_while(|(one, other)| one == other).count();
    whole + one[whole..].iter().zip(&other[whole..]).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
impl Order {
    pub fn leaves(&self) -> usize {
        self.leaves.len()
    }

    /// What holds between any two calls; gives the number of keys.
    pub fn check(&self, slab: &Slab) -> usize {
        let keys: Vec<&[u8]> = self.leaves.iter().flat_map(|leaf| &leaf.items).map(|item| slab.key(item.id)).collect();
        assert!(keys.is_sorted_by(|one, next| one < next), "{keys:?}");
        for leaf in &self.leaves {
            assert!((1..=LEAF).contains(&leaf.items.len()), "a leaf of {}", leaf.items.len());
            assert!(leaf.items.capacity() <= LEAF, "room for {}", leaf.items.capacity());
            let shared = leaf.shared(slab);
            for item in &leaf.items {
                let key = slab.key(item.id);
                assert!(key.starts_with(shared), "{key:?} does not begin with {shared:?}");
                assert_eq!(item.head, head(key, leaf.common));
            }
        }
        for two in self.leaves.windows(2) {
            assert!(two[0].items.len() + two[1].items.len() > SPARSE, "two neighbours are sparse");
        }
        keys.len()
    }
}
