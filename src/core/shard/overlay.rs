//! The overlay: what staged and not yet applied writes will make of each key.
//!
//! Promise: an entry leaves only by its own offset, so a newer staged write of the same key is never forgotten with an
//! older one; behind a staged clear every other key is absent. Must never know the index or the log.

use std::ops::Range;

use hashbrown::HashMap;

use crate::core::types::{Millis, Offset};

/// What a staged record will make of its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StagedEffect {
    Put {
        expires_at: Millis,
        /// The first offset of the batch that holds the record.
        batch: Offset,
        /// Where in that batch the value stands.
        value: Range<usize>,
    },
    Delete,
}

/// The newest staged record of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staged {
    pub offset: Offset,
    pub effect: StagedEffect,
}

/// The newest staged record of each key that has one.
#[derive(Default)]
pub struct Overlay {
    newest: HashMap<Box<[u8]>, Staged>,
    /// The newest staged clear: keys without a staged record of their own are absent.
    cleared: Option<Offset>,
    /// What has to be put back if the transaction under way is taken back; `None` while none is.
    journal: Option<Vec<Undo>>,
}

/// What one change of a transaction took the place of.
enum Undo {
    Key(Box<[u8]>, Option<Staged>),
    Clear { newest: HashMap<Box<[u8]>, Staged>, cleared: Option<Offset> },
}

/// What the overlay says about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Covered<'o> {
    /// Nothing staged touches it: applied state decides.
    No,
    By(&'o Staged),
    /// A staged clear is the newest that touches it.
    Cleared(Offset),
}

impl Overlay {
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Covered<'_> {
        match (self.newest.get(key), self.cleared) {
            (Some(staged), _) => Covered::By(staged),
            (None, Some(offset)) => Covered::Cleared(offset),
            (None, None) => Covered::No,
        }
    }

    /// A clear was staged at `offset`: it covers everything staged before it.
    pub fn insert_clear(&mut self, offset: Offset) {
        let newest = std::mem::take(&mut self.newest);
        let cleared = self.cleared.replace(offset);
        if let Some(journal) = &mut self.journal {
            journal.push(Undo::Clear { newest, cleared });
        }
    }

    /// The clear at `offset` is applied: the index is empty of what came before it.
    pub fn applied_clear(&mut self, offset: Offset) {
        self.cleared.take_if(|newest| *newest == offset);
    }

    pub fn insert(&mut self, key: &[u8], staged: Staged) {
        let before = match self.newest.get_mut(key) {
            Some(place) => Some(std::mem::replace(place, staged)),
            None => self.newest.insert(key.into(), staged),
        };
        if let Some(journal) = &mut self.journal {
            journal.push(Undo::Key(key.into(), before));
        }
    }

    /// From here on every change can be taken back.
    pub fn begin(&mut self) {
        self.journal = Some(Vec::new());
    }

    /// What was changed since [`Overlay::begin`] stays.
    pub fn commit(&mut self) {
        self.journal = None;
    }

    /// Takes back what was changed since [`Overlay::begin`].
    pub fn roll_back(&mut self) {
        for undo in self.journal.take().into_iter().flatten().rev() {
            match undo {
                Undo::Key(key, Some(before)) => {
                    self.newest.insert(key, before);
                }
                Undo::Key(key, None) => {
                    self.newest.remove(&key);
                }
                Undo::Clear { newest, cleared } => (self.newest, self.cleared) = (newest, cleared),
            }
        }
    }

    /// Every key with its newest staged record, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &Staged)> {
        self.newest.iter().map(|(key, staged)| (&**key, staged))
    }

    /// Whether a staged clear covers what is stored.
    #[must_use]
    pub fn is_cleared(&self) -> bool {
        self.cleared.is_some()
    }

    /// The record at `offset` is applied: drops the entry if it is that record's.
    pub fn applied(&mut self, key: &[u8], offset: Offset) {
        if let hashbrown::hash_map::EntryRef::Occupied(entry) = self.newest.entry_ref(key)
            && entry.get().offset == offset
        {
            entry.remove();
        }
    }

    /// Drops everything: what was staged is lost.
    pub fn clear(&mut self) {
        self.newest.clear();
        self.cleared = None;
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.newest.is_empty() && self.cleared.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_leaves_only_by_its_own_offset() {
        let mut overlay = Overlay::default();
        let staged = |offset| Staged { offset: Offset(offset), effect: StagedEffect::Delete };
        overlay.insert(b"k", staged(1));
        overlay.insert(b"k", staged(2));
        overlay.applied(b"k", Offset(1));
        assert_eq!(overlay.get(b"k"), Covered::By(&staged(2)));
        overlay.applied(b"other", Offset(2));
        overlay.applied(b"k", Offset(2));
        assert!(overlay.is_empty());
    }

    #[test]
    fn a_transaction_taken_back_leaves_everything_as_it_was() {
        let staged = |offset| Staged { offset: Offset(offset), effect: StagedEffect::Delete };
        let mut overlay = Overlay::default();
        overlay.insert(b"a", staged(1));
        overlay.insert_clear(Offset(2));
        overlay.insert(b"b", staged(3));
        overlay.begin();
        overlay.insert(b"b", staged(4));
        overlay.insert(b"c", staged(5));
        overlay.insert_clear(Offset(6));
        overlay.insert(b"b", staged(7));
        overlay.roll_back();
        assert_eq!(overlay.get(b"a"), Covered::Cleared(Offset(2)));
        assert_eq!(overlay.get(b"b"), Covered::By(&staged(3)));
        assert_eq!(overlay.get(b"c"), Covered::Cleared(Offset(2)));
        overlay.begin();
        overlay.insert(b"b", staged(8));
        overlay.commit();
        overlay.roll_back();
        assert_eq!(overlay.get(b"b"), Covered::By(&staged(8)));
    }

    #[test]
    fn a_clear_covers_what_was_staged_before_it_and_leaves_by_its_own_offset() {
        let mut overlay = Overlay::default();
        let staged = |offset| Staged { offset: Offset(offset), effect: StagedEffect::Delete };
        overlay.insert(b"before", staged(1));
        overlay.insert_clear(Offset(2));
        overlay.insert(b"after", staged(3));
        assert_eq!(overlay.get(b"before"), Covered::Cleared(Offset(2)));
        assert_eq!(overlay.get(b"never"), Covered::Cleared(Offset(2)));
        assert_eq!(overlay.get(b"after"), Covered::By(&staged(3)));
        overlay.insert_clear(Offset(4));
        overlay.applied_clear(Offset(2));
        assert_eq!(overlay.get(b"after"), Covered::Cleared(Offset(4)));
        overlay.applied_clear(Offset(4));
        assert!(overlay.is_empty());
    }
}
