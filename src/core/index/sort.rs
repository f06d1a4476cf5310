//! All keys sorted at once, when a log was replayed.
//!
//! Promise: looks at each key a few times, whatever the number of keys, and compares cached bytes otherwise; needs 16
//! bytes a key while it lasts; does not recurse. Must never know an entry.

use crate::core::index::leaf::common_bytes;
use crate::core::index::slab::{Slab, SlotId};

/// Bytes of a key that are compared at once.
const HEAD: usize = 8;
/// So few keys are sorted by comparing them whole.
const FEW: usize = 16;

/// A key by the bytes that are compared now.
#[derive(Clone, Copy)]
struct Cut {
    head: [u8; HEAD],
    /// How many bytes of `head` are the key's, or one more than it has room for if the key goes on.
    filled: u8,
    id: SlotId,
}

const _: () = assert!(size_of::<Cut>() == 16);

impl Cut {
    fn new(id: SlotId, slab: &Slab, at: usize) -> Self {
        let rest = slab.key(id).get(at..).unwrap_or_default();
        let mut head = [0; HEAD];
        let filled = rest.len().min(HEAD);
        head[..filled].copy_from_slice(&rest[..filled]);
        Self { head, filled: rest.len().min(HEAD + 1) as u8, id }
    }

    /// Sorts as the keys do that are alike up to here. A key that ends sorts before those it begins: they have the same
    /// head if they go on with zeros.
    fn rank(&self) -> (u64, u8) {
        (u64::from_be_bytes(self.head), self.filled)
    }
}

/// The slots of all keys in the order of the keys.
pub(super) fn sorted(slab: &Slab) -> impl ExactSizeIterator<Item = SlotId> {
    let mut first: Option<&[u8]> = None;
    let mut common = 0;
    for (_, slot) in slab.iter() {
        match first {
            None => common = slot.key().len(),
            Some(first) => common = common_bytes(&first[..common], slot.key()),
        }
        first = first.or(Some(slot.key()));
    }
    let mut cuts = Vec::with_capacity(slab.taken());
    cuts.extend(slab.iter().map(|(id, _)| Cut::new(id, slab, common)));
    // Runs of keys that are alike up to some byte, still to be sorted from there on.
    let mut alike = vec![(0, cuts.len(), common)];
    while let Some((from, length, at)) = alike.pop() {
        let cuts = &mut cuts[from..from + length];
        cuts.sort_unstable_by_key(Cut::rank);
        let mut from = from;
        for run in cuts.chunk_by_mut(|one, next| one.rank() == next.rank()) {
            if run.len() > FEW {
                let at = at + HEAD + common_of(run, slab, at + HEAD);
                run.iter_mut().for_each(|cut| *cut = Cut::new(cut.id, slab, at));
                alike.push((from, run.len(), at));
            } else if run.len() > 1 {
                run.sort_unstable_by(|one, other| slab.key(one.id)[at..].cmp(&slab.key(other.id)[at..]));
            }
            from += run.len();
        }
    }
    cuts.into_iter().map(|cut| cut.id)
}

/// How many bytes all keys of a run have in common from `at` on.
fn common_of(run: &[Cut], slab: &Slab, at: usize) -> usize {
    let first = &slab.key(run[0].id)[at..];
    run.iter().fold(first.len(), |common, cut| common_bytes(&first[..common], &slab.key(cut.id)[at..]))
}
