//! The overlay: what staged and not yet applied writes will make of each key.
//!
//! Promise: an entry leaves only by its own offset, so a newer staged write of the same key is never forgotten with an
//! older one. Must never know the index or the log.

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
}

impl Overlay {
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<&Staged> {
        self.newest.get(key)
    }

    pub fn insert(&mut self, key: &[u8], staged: Staged) {
        match self.newest.get_mut(key) {
            Some(place) => *place = staged,
            None => {
                self.newest.insert(key.into(), staged);
            }
        }
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
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.newest.is_empty()
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
        assert_eq!(overlay.get(b"k"), Some(&staged(2)));
        overlay.applied(b"other", Offset(2));
        overlay.applied(b"k", Offset(2));
        assert!(overlay.is_empty());
    }
}
