//! Looks at a few slots ahead of the one that is given out.
//!
//! Neighbours in order are not neighbours in memory. When the next slots are looked at one right after the other, the
//! processor waits for all of them at once; with whatever is done with a key in between, it would wait for each.
//!
//! Promise: gives what `take_while` gives. Must never know a key.

use smallvec::SmallVec;

use crate::core::index::slab::Slot;

const AHEAD: usize = 16;

pub(super) struct Ahead<'s, I, W> {
    slots: I,
    wanted: W,
    /// Looked at and wanted; the next to be given out is the last.
    ready: SmallVec<[&'s Slot; AHEAD]>,
    ended: bool,
}

impl<'s, I: Iterator<Item = &'s Slot>, W: Fn(&Slot) -> bool> Ahead<'s, I, W> {
    pub fn new(slots: I, wanted: W) -> Self {
        Self { slots, wanted, ready: SmallVec::new(), ended: false }
    }

    fn look(&mut self) {
        while !self.ended && self.ready.len() < AHEAD {
            match self.slots.next() {
                Some(slot) if (self.wanted)(slot) => self.ready.push(slot),
                _ => self.ended = true,
            }
        }
        self.ready.reverse();
    }
}

impl<'s, I: Iterator<Item = &'s Slot>, W: Fn(&Slot) -> bool> Iterator for Ahead<'s, I, W> {
    type Item = &'s Slot;

    fn next(&mut self) -> Option<&'s Slot> {
        if self.ready.is_empty() {
            self.look();
        }
        self.ready.pop()
    }
}
