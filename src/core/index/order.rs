//! The order beside the hash tables: slot numbers, sorted by their keys' bytes, in leaves below branches.
//!
//! Promise: only new and removed keys touch it; keys that come in ascending order fill leaves whole; no leaf and no branch
//! is empty. Must never know an entry.
//!
//! ```text
//! branches (each found by its first key) -> leaves (each by the head of its first key) -> slots (each by its head)
//! ```
//! A branch keeps the number of bytes that the first keys of its leaves begin with, and of each the eight bytes behind
//! them. With the four that a leaf keeps of each key (see `leaf`), a place is found with about as many looks at keys as
//! there are powers of two in the number of branches.

use std::cmp::Ordering;

use crate::core::index::leaf::{Against, FILLED, Leaf, SPARSE, Spot, common_bytes};
use crate::core::index::slab::{Slab, SlotId};

/// The most leaves of a branch. Few in unit tests, as the keys of a leaf.
const BRANCH: usize = if cfg!(test) { 8 } else { 256 };
/// What a branch is filled to when all keys are sorted at once, and at most when two join.
const FILLED_BRANCH: usize = BRANCH / 4 * 3;
/// A branch with fewer leaves joins a neighbour.
const SPARSE_BRANCH: usize = BRANCH / 4;

/// A run of neighbouring leaves; never empty.
struct Branch {
    /// The first key of the first leaf.
    first: SlotId,
    /// Bytes that the first keys of all leaves begin with; maybe fewer than they really have in common.
    common: usize,
    /// Of each leaf's first key.
    heads: Vec<u64>,
    leaves: Vec<Leaf>,
}

/// The keys' order.
#[derive(Default)]
pub(super) struct Order {
    branches: Vec<Branch>,
}

/// The leaf where a key belongs, and how the key compares with its first.
struct Found {
    branch: usize,
    leaf: usize,
    against: Against,
}

impl Order {
    /// The order of keys that are sorted already.
    pub fn of_sorted(ids: impl Iterator<Item = SlotId>, slab: &Slab) -> Self {
        let mut order = Self::default();
        let (mut ids, mut leaves) = (ids.peekable(), Vec::new());
        while ids.peek().is_some() {
            leaves.push(Leaf::of_sorted(ids.by_ref().take(FILLED), slab));
            if leaves.len() == FILLED_BRANCH || ids.peek().is_none() {
                order.branches.push(Branch::of_leaves(std::mem::take(&mut leaves), slab));
            }
        }
        order
    }

    /// Adds a slot whose key is not in it yet.
    pub fn insert(&mut self, id: SlotId, slab: &Slab) {
        let key = slab.key(id);
        let Some(Found { branch: number, leaf, against }) = self.find(key, slab) else {
            return self.branches.push(Branch::of_leaves(vec![Leaf::of_sorted([id].into_iter(), slab)], slab));
        };
        let branch = &mut self.branches[number];
        let spot = branch.leaves[leaf].seek(key, against, slab);
        if !branch.leaves[leaf].is_full() {
            branch.insert(leaf, spot, id, slab);
        } else if spot.at == 0 {
            // Only the first of all leaves takes keys in front of its own: descending keys fill leaves whole, too.
            self.insert_leaf(number, leaf, Leaf::of_sorted([id].into_iter(), slab), slab);
        } else if spot.at < branch.leaves[leaf].len() {
            let behind = branch.leaves[leaf].split(slab);
            self.insert_leaf(number, leaf + 1, behind, slab);
            self.insert(id, slab);
        } else {
            self.insert_behind(number, leaf, id, slab);
        }
    }

    /// Adds a key behind a leaf that is full: it begins the next one, or one of its own. Ascending keys fill leaves whole.
    fn insert_behind(&mut self, number: usize, leaf: usize, id: SlotId, slab: &Slab) {
        let beside = leaf + 1 < self.branches[number].leaves.len();
        let (next, first) = if beside { (number, leaf + 1) } else { (number + 1, 0) };
        match self.branches.get_mut(next) {
            Some(branch) if !branch.leaves[first].is_full() => {
                branch.leaves[first].insert_first(id, slab);
                branch.first_changed(first, slab);
            }
            _ => self.insert_leaf(number, leaf + 1, Leaf::of_sorted([id].into_iter(), slab), slab),
        }
    }

    /// Puts a leaf into a branch, which splits if it is full.
    fn insert_leaf(&mut self, number: usize, at: usize, leaf: Leaf, slab: &Slab) {
        let branch = &mut self.branches[number];
        if branch.leaves.len() < BRANCH {
            return branch.insert_leaf(at, leaf, slab);
        }
        if at == BRANCH {
            return self.branches.insert(number + 1, Branch::of_leaves(vec![leaf], slab));
        }
        let behind = Branch::of_leaves(branch.leaves.split_off(BRANCH / 2), slab);
        *branch = Branch::of_leaves(std::mem::take(&mut branch.leaves), slab);
        self.branches.insert(number + 1, behind);
        let (number, at) = if at > BRANCH / 2 { (number + 1, at - BRANCH / 2) } else { (number, at) };
        self.branches[number].insert_leaf(at, leaf, slab);
    }

    /// Takes a slot out whose key is in it.
    pub fn remove(&mut self, id: SlotId, slab: &Slab) {
        let key = slab.key(id);
        let Some(Found { branch: number, leaf, against }) = self.find(key, slab) else {
            unreachable!("a key is taken out of an order that has none")
        };
        let branch = &mut self.branches[number];
        let at = branch.leaves[leaf].seek(key, against, slab).at;
        assert_eq!(branch.leaves[leaf].get(at), Some(id), "slot {} is not where its key belongs", id.0);
        branch.leaves[leaf].remove(at);
        if branch.leaves[leaf].len() == 0 {
            branch.remove_leaf(leaf, slab);
        } else {
            if at == 0 {
                branch.first_changed(leaf, slab);
            }
            branch.join_leaf(leaf, slab);
        }
        if branch.leaves.is_empty() {
            self.branches.remove(number);
        } else if branch.leaves.len() < SPARSE_BRANCH {
            self.join_branch(number, slab);
        }
    }

    /// Joins a branch with a neighbour if both fit in one.
    fn join_branch(&mut self, number: usize, slab: &Slab) {
        let leaves = |number: usize| self.branches.get(number).map_or(BRANCH, |branch| branch.leaves.len());
        let left = match number {
            1.. if leaves(number - 1) + leaves(number) <= FILLED_BRANCH => number - 1,
            _ if leaves(number) + leaves(number + 1) <= FILLED_BRANCH => number,
            _ => return,
        };
        let right = self.branches.remove(left + 1);
        let mut leaves = std::mem::take(&mut self.branches[left].leaves);
        let seam = leaves.len();
        leaves.extend(right.leaves);
        self.branches[left] = Branch::of_leaves(leaves, slab);
        self.branches[left].join_leaf(seam, slab);
    }

    /// The slots from the first key on that is at least `from`, or greater if `beyond`.
    pub fn range<'s>(&'s self, from: &[u8], beyond: bool, slab: &Slab) -> impl Iterator<Item = SlotId> + use<'s> {
        let start = self.find(from, slab).map(|found| {
            let leaf = &self.branches[found.branch].leaves[found.leaf];
            let at = leaf.seek(from, found.against, slab).at;
            let same = leaf.get(at).is_some_and(|id| slab.key(id) == from);
            (found, leaf.ids_from(at + usize::from(beyond && same)))
        });
        start.into_iter().flat_map(|(found, ids)| {
            let leaves = self.branches[found.branch].leaves[found.leaf + 1..].iter();
            let others = self.branches[found.branch + 1..].iter().flat_map(|branch| &branch.leaves);
            ids.chain(leaves.chain(others).flat_map(|leaf| leaf.ids_from(0)))
        })
    }

    /// The last leaf whose first key is not greater, or the first of all; `None` when there is none.
    fn find(&self, key: &[u8], slab: &Slab) -> Option<Found> {
        let number = self.branches.partition_point(|branch| slab.key(branch.first) <= key).saturating_sub(1);
        let branch = self.branches.get(number)?;
        let (leaf, against) = branch.find(key, slab);
        Some(Found { branch: number, leaf, against })
    }
}

impl Branch {
    /// A branch of leaves, of which there is one at least.
    fn of_leaves(leaves: Vec<Leaf>, slab: &Slab) -> Self {
        let mut branch = Self { first: leaves[0].first(), common: 0, heads: vec![0; leaves.len()], leaves };
        let last = &branch.leaves[branch.leaves.len() - 1];
        branch.set_common(common_bytes(slab.key(branch.first), slab.key(last.first())), slab);
        branch
    }

    fn set_common(&mut self, common: usize, slab: &Slab) {
        self.common = common;
        let heads = self.heads.iter_mut().zip(&self.leaves);
        heads.for_each(|(known, leaf)| *known = head(slab.key(leaf.first()), common));
    }

    /// The last leaf whose first key is not greater, or the first.
    fn find(&self, key: &[u8], slab: &Slab) -> (usize, Against) {
        let shared = &slab.key(self.first)[..self.common];
        let begin = &key[..key.len().min(self.common)];
        if begin != shared {
            // It differs from all of them within what they have in common.
            let (leaf, order) =
                if begin < shared { (0, Ordering::Less) } else { (self.leaves.len() - 1, Ordering::Greater) };
            return (leaf, Against { order, alike: common_bytes(begin, shared), more: false });
        }
        let wanted = head(key, self.common);
        let from = self.heads.partition_point(|head| *head < wanted);
        let same = self.heads[from..].partition_point(|head| *head == wanted);
        let not_greater = |leaf: &Leaf| slab.key(leaf.first())[self.common..] <= key[self.common..];
        let at = from + self.leaves[from..from + same].partition_point(not_greater);
        let leaf = at.saturating_sub(1);
        let differ = (self.heads[leaf] ^ wanted).leading_zeros() as usize / 8;
        // Zeros behind a key's end are alike with zeros that are another key's own.
        let alike = key.len().min(self.common + differ);
        (leaf, Against { order: if at == 0 { Ordering::Less } else { Ordering::Greater }, alike, more: differ == 8 })
    }

    fn insert(&mut self, leaf: usize, spot: Spot, id: SlotId, slab: &Slab) {
        self.leaves[leaf].insert(spot, id, slab);
        if spot.at == 0 {
            self.first_changed(leaf, slab);
        }
    }

    fn insert_leaf(&mut self, at: usize, leaf: Leaf, slab: &Slab) {
        self.heads.insert(at, 0);
        self.leaves.insert(at, leaf);
        self.first_changed(at, slab);
    }

    fn remove_leaf(&mut self, at: usize, slab: &Slab) {
        self.heads.remove(at);
        self.leaves.remove(at);
        if at == 0 && !self.leaves.is_empty() {
            self.first_changed(0, slab);
        }
    }

    /// Joins a leaf that is sparse with a neighbour if both fit in one.
    fn join_leaf(&mut self, at: usize, slab: &Slab) {
        if self.leaves[at].len() >= SPARSE {
            return;
        }
        let fits = |left: usize| self.leaves.get(left..left + 2).is_some_and(|two| two[0].may_join(&two[1]));
        let left = match at {
            1.. if fits(at - 1) => at - 1,
            _ if fits(at) => at,
            _ => return,
        };
        self.heads.remove(left + 1);
        let right = self.leaves.remove(left + 1);
        self.leaves[left].join(&right, slab);
    }

    /// A leaf has another first key.
    fn first_changed(&mut self, leaf: usize, slab: &Slab) {
        let key = slab.key(self.leaves[leaf].first());
        self.first = self.leaves[0].first();
        let Some(other) = self.leaves.get(usize::from(leaf == 0)) else {
            return self.set_common(key.len(), slab);
        };
        let common = common_bytes(&slab.key(other.first())[..self.common], key);
        self.heads[leaf] = head(key, common);
        if common < self.common {
            self.set_common(common, slab);
        }
    }
}

/// Eight bytes of a key from `at` on, as a number that sorts like them; zeros behind its end.
#[inline]
fn head(key: &[u8], at: usize) -> u64 {
    let rest = &key[at..];
    u64::from_be_bytes(rest.first_chunk().copied().unwrap_or_else(|| {
        let mut bytes = [0; 8];
        bytes[..rest.len()].copy_from_slice(rest);
        bytes
    }))
}

#[cfg(test)]
impl Order {
    pub fn leaves(&self) -> usize {
        self.branches.iter().map(|branch| branch.leaves.len()).sum()
    }

    /// What holds between any two calls; gives the number of keys.
    pub fn check(&self, slab: &Slab) -> usize {
        for branch in &self.branches {
            assert!((1..=BRANCH).contains(&branch.leaves.len()), "a branch of {}", branch.leaves.len());
            assert_eq!((branch.first, branch.heads.len()), (branch.leaves[0].first(), branch.leaves.len()));
            let shared = &slab.key(branch.first)[..branch.common];
            for (known, leaf) in branch.heads.iter().zip(&branch.leaves) {
                leaf.check(slab);
                let key = slab.key(leaf.first());
                assert!(key.starts_with(shared), "{key:?} does not begin with {shared:?}");
                assert_eq!(*known, head(key, branch.common));
            }
            for two in branch.leaves.windows(2) {
                assert!(two[0].len() + two[1].len() > SPARSE, "two neighbours are sparse");
            }
        }
        let leaves = self.branches.iter().flat_map(|branch| &branch.leaves);
        let keys: Vec<&[u8]> = leaves.flat_map(|leaf| leaf.ids_from(0)).map(|id| slab.key(id)).collect();
        assert!(keys.is_sorted_by(|one, next| one < next), "{keys:?}");
        keys.len()
    }
}
