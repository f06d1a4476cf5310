//! Several writes, all or nothing: what is staged between begin and commit stands in one batch, or is taken back.
//!
//! Promise: nothing of a transaction is proposed before it is committed, because whoever runs it holds the machine's lock;
//! taken back, the machine is as it was, offsets included. It shares a batch, and so a flush, with what was staged before it.
//! Must never know which requests it is made of.

use crate::core::error::Refusal;
use crate::core::log::frame::{BatchBuilder, Mark};
use crate::core::shard::growth::GrowthMark;
use crate::core::shard::machine::Machine;
use crate::core::types::{Millis, Offset};
use crate::teeth::{Tooth, bites};

/// Where a machine stood when a transaction began.
pub(super) struct Transaction {
    next_offset: Offset,
    /// The open batch's end; `None` when there was no open batch.
    open: Option<Mark>,
    growth: GrowthMark,
    /// It did not fit what was left of the open batch.
    overflowed: bool,
}

impl Machine {
    /// Begins a transaction.
    ///
    /// # Panics
    /// When one is under way.
    pub fn begin(&mut self) {
        assert!(self.transaction.is_none(), "a transaction was begun inside another");
        self.overlay.begin();
        self.transaction = Some(Transaction {
            next_offset: self.next_offset,
            open: self.open.as_ref().map(BatchBuilder::mark),
            growth: self.growth.mark(),
            overflowed: false,
        });
    }

    /// What was staged since [`Machine::begin`] stays.
    pub fn commit(&mut self) {
        self.transaction = None;
        self.overlay.commit();
    }

    /// Takes back what was staged since [`Machine::begin`]. True when it may fit if it is run again: it was only too long for
    /// what was left of a batch, and the next one begins with it.
    pub fn roll_back(&mut self, now: Millis) -> bool {
        let Some(begun) = self.transaction.take() else { return false };
        if bites(Tooth::KeepRolledBack) {
            self.overlay.commit();
        } else {
            self.overlay.roll_back();
        }
        self.next_offset = begun.next_offset;
        self.growth.back_to(begun.growth);
        match begun.open {
            Some(mark) => {
                if let Some(open) = &mut self.open {
                    open.back_to(mark);
                }
            }
            None => self.open = None,
        }
        if !begun.overflowed {
            return false;
        }
        match self.open.take() {
            Some(open) => {
                self.close_batch(open, now);
                true
            }
            None => false,
        }
    }

    /// Bytes staged by the transaction under way.
    pub(super) fn transaction_bytes(&self) -> usize {
        let Some(begun) = &self.transaction else { return 0 };
        let before = begun.open.map_or(0, |mark| mark.bytes);
        self.open.as_ref().map_or(0, BatchBuilder::len).saturating_sub(before)
    }

    /// The refusal of a transaction that would need more than one batch.
    pub(super) fn transaction_overflows(&mut self, bytes: usize, bound: usize) -> Refusal {
        let bytes = self.transaction_bytes() + bytes;
        if let Some(begun) = &mut self.transaction {
            begun.overflowed = begun.open.is_some();
        }
        Refusal::BatchTooLarge { bytes, bound }
    }
}
