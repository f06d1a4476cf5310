//! By how much what is staged will change the bytes that a cache holds, while there is a bound on them.
//!
//! Promise: the sum is that of the records that are staged and not applied. Must never know what a record is.

use std::collections::VecDeque;

use crate::core::types::Offset;

/// The change that each staged and not yet applied record makes, in the order of their offsets.
#[derive(Default)]
pub struct Growth {
    staged: VecDeque<(Offset, i64)>,
    sum: i64,
}

/// What was staged at one moment.
#[derive(Clone, Copy)]
pub struct GrowthMark {
    staged: usize,
    sum: i64,
}

impl Growth {
    /// The record staged at `offset` will change the live bytes by `bytes`.
    pub fn add(&mut self, offset: Offset, bytes: i64) {
        self.staged.push_back((offset, bytes));
        self.sum += bytes;
    }

    /// Everything below `next` is applied.
    pub fn applied(&mut self, next: Offset) {
        while let Some((_, bytes)) = self.staged.pop_front_if(|(offset, _)| *offset < next) {
            self.sum -= bytes;
        }
    }

    /// What all of it will change the live bytes by.
    #[must_use]
    pub fn bytes(&self) -> i64 {
        self.sum
    }

    /// What is staged now, to come back to; nothing may be applied in between.
    #[must_use]
    pub fn mark(&self) -> GrowthMark {
        GrowthMark { staged: self.staged.len(), sum: self.sum }
    }

    /// Takes back what was staged since `mark` was taken.
    pub fn back_to(&mut self, mark: GrowthMark) {
        self.staged.truncate(mark.staged);
        self.sum = mark.sum;
    }
}
