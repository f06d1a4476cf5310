//! Room for what is staged: in the segments that are already allocated, on the disk, in memory, in the cache's own bound.
//!
//! Promise: pure. A write is refused or made to wait *before* it is staged; what was staged fits what is allocated, so a
//! full disk never takes anything back. What makes room goes on longer than what takes it:
//!
//! | | goes on |
//! |---|---|
//! | puts | above the floor of free space, and in all but a sixteenth of what is allocated |
//! | deletes | below it, as long as they leave what the next pass carries |
//! | carries | as long as they leave room for trims |
//! | clears, trims | to the last byte |
//!
//! Must never ask the disk itself.

use crate::core::error::Refusal;
use crate::core::limits::{PUT_RESERVE_DIVISOR, TRIM_RESERVE_DIVISOR};
use crate::core::shard::stage::StageError;

/// What a write is for, which decides how far it may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A put; `growth` is how many bytes of live records it adds, 0 when it adds none.
    Put { growth: u64 },
    /// A delete: it makes room once a pass has run.
    Delete,
    /// A carry: it makes room once the trim of its pass is applied.
    Carry,
    /// A clear or a trim: it makes room itself.
    MakesRoom,
}

/// Bytes that are allocated for the log and hold nothing yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocated {
    /// Behind the tail of the active segment.
    pub active_bytes: u64,
    /// In the segment made ahead; 0 while there is none.
    pub spare_bytes: u64,
    /// In the segment that is being made; 0 while none is, or the disk seemed to have no room for it.
    pub coming_bytes: u64,
    /// Whether a segment ahead may still come: it is being made, or will be when it is asked for.
    pub spare_may_come: bool,
    /// Bytes of a segment.
    pub segment_bytes: u64,
}

impl Allocated {
    /// What a write must leave for those that make more room.
    fn kept_from(&self, purpose: Purpose) -> u64 {
        match purpose {
            Purpose::Put { .. } => self.segment_bytes / PUT_RESERVE_DIVISOR,
            Purpose::Delete | Purpose::Carry => self.segment_bytes / TRIM_RESERVE_DIVISOR,
            Purpose::MakesRoom => 0,
        }
    }
}

/// The free space of the file system, against what must stay free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Free {
    /// Beside the segment that is being made, once it is there.
    pub free_bytes: u64,
    pub floor_bytes: u64,
}

/// What is staged and stored already, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SoFar {
    /// Staged and not yet appended: what takes room in the segments that are allocated.
    pub unappended: u64,
    /// Of these, staged by the same request: it cannot wait for them to be appended.
    pub own: u64,
    /// Live, and staged and not yet applied: what the cache will hold at most.
    pub held: u64,
}

/// Everything that bounds staging.
#[derive(Clone, Debug, Default)]
pub struct Space {
    /// `None`: whoever drives the shard makes room as it goes.
    pub allocated: Option<Allocated>,
    /// `None`: nobody looked yet.
    pub free: Option<Free>,
    /// Bytes of memory in use and their bound, when the bound is reached.
    pub memory_full: Option<(u64, u64)>,
    /// The disk is memory: whatever is written takes some until compaction has given it back.
    pub in_memory: bool,
    /// The bound on the bytes of live records; 0 for none.
    pub max_data_bytes: u64,
    /// What the log takes on the disk, files that are still to be removed included.
    pub disk_bytes: u64,
    /// Above this the log is much larger than it should be: puts wait until a pass has made it smaller. `None` while no pass
    /// could.
    pub overdue_above: Option<u64>,
}

impl Space {
    /// Whether what is written for `purpose` waits for compaction, and for nothing that the driver could do.
    #[must_use]
    pub fn waits_for_compaction(&self, purpose: Purpose) -> bool {
        self.is_overdue() && self.allocated.is_some() && matches!(purpose, Purpose::Put { .. })
    }

    /// Whether the log is much larger than it should be.
    #[must_use]
    pub fn is_overdue(&self) -> bool {
        self.overdue_above.is_some_and(|most| self.disk_bytes > most)
    }

    /// Whether `bytes` more may be staged. `next_pass` says what the next pass of compaction carries at most; it is asked
    /// when room is short.
    ///
    /// # Errors
    /// [`StageError::Full`] when room is on its way, else the refusal with the facts.
    pub fn admit(
        &self,
        purpose: Purpose,
        bytes: u64,
        so_far: SoFar,
        next_pass: impl FnOnce() -> u64,
    ) -> Result<(), StageError> {
        if let Purpose::Put { growth } = purpose {
            self.admit_put(growth, so_far.held)?;
        }
        if self.waits_for_compaction(purpose) {
            return Err(StageError::Full);
        }
        let Some(allocated) = self.allocated else { return Ok(()) };
        if purpose == Purpose::Delete && !self.leaves_a_pass(&allocated, so_far.unappended, bytes, next_pass) {
            return Err(Refusal::NoRoom.into());
        }
        // A batch is not split over segments, so what the active one cannot take whole goes into the spare whole.
        let needed = so_far.unappended + bytes + allocated.kept_from(purpose);
        if needed <= allocated.active_bytes.max(allocated.spare_bytes) {
            return Ok(());
        }
        if so_far.unappended > so_far.own || allocated.spare_may_come {
            return Err(StageError::Full);
        }
        Err(Refusal::NoRoom.into())
    }

    /// Whether the next pass still has room for what it carries. What is too little for it anyway is not kept for it: the
    /// deletes may be those that make it smaller.
    fn leaves_a_pass(&self, allocated: &Allocated, staged: u64, bytes: u64, next_pass: impl FnOnce() -> u64) -> bool {
        let Some(free) = self.free else { return true };
        // The disk gives whole segments only.
        let to_come = free.free_bytes - free.free_bytes % allocated.segment_bytes;
        let room = allocated.active_bytes + allocated.spare_bytes + allocated.coming_bytes;
        let room = room.saturating_add(to_come).saturating_sub(staged);
        if room >= bytes.saturating_add(2 * allocated.segment_bytes) {
            return true;
        }
        let pass = next_pass();
        room < pass || room >= pass + bytes
    }

    fn admit_put(&self, growth: u64, held: u64) -> Result<(), Refusal> {
        if let Some(Free { free_bytes, floor_bytes }) = self.free
            && free_bytes < floor_bytes
        {
            return Err(Refusal::DiskLow { free: free_bytes, floor: floor_bytes });
        }
        if let Some((used, bound)) = self.memory_full
            && (growth > 0 || self.in_memory)
        {
            return Err(Refusal::MemoryFull { used, bound });
        }
        if growth == 0 {
            return Ok(());
        }
        if self.max_data_bytes > 0 && held + growth > self.max_data_bytes {
            return Err(Refusal::DataFull { live: held, bound: self.max_data_bytes });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUT: Purpose = Purpose::Put { growth: 10 };
    const OVERWRITE: Purpose = Purpose::Put { growth: 0 };
    const SEGMENT_BYTES: u64 = 1 << 20;
    const KEPT_FROM_PUTS: u64 = SEGMENT_BYTES / PUT_RESERVE_DIVISOR;
    const KEPT_FROM_DELETES: u64 = SEGMENT_BYTES / TRIM_RESERVE_DIVISOR;

    fn so_far(unappended: u64, held: u64) -> SoFar {
        SoFar { unappended, own: 0, held }
    }

    fn allocated(active_bytes: u64, spare_bytes: u64, spare_may_come: bool) -> Space {
        let allocated =
            Allocated { active_bytes, spare_bytes, coming_bytes: 0, spare_may_come, segment_bytes: SEGMENT_BYTES };
        Space { allocated: Some(allocated), ..Space::default() }
    }

    fn admit(space: &Space, purpose: Purpose, bytes: u64, staged: u64) -> Result<(), StageError> {
        space.admit(purpose, bytes, so_far(staged, staged), || 0)
    }

    #[test]
    fn what_is_staged_fits_what_is_allocated_or_waits_or_is_refused() {
        let space = allocated(100 + KEPT_FROM_PUTS, 0, true);
        assert_eq!(admit(&space, PUT, 100, 0), Ok(()));
        assert_eq!(admit(&space, PUT, 60, 41), Err(StageError::Full));
        assert_eq!(admit(&space, PUT, 101, 0), Err(StageError::Full));
        let space = allocated(100, 500 + KEPT_FROM_PUTS, false);
        assert_eq!(admit(&space, PUT, 100, 400), Ok(()));
        // The spare is taken whole or not at all: 100 and 500 are not 600.
        assert_eq!(admit(&space, PUT, 101, 400), Err(StageError::Full));
        let space = allocated(100, 0, false);
        for purpose in [PUT, Purpose::Delete, Purpose::Carry, Purpose::MakesRoom] {
            assert_eq!(admit(&space, purpose, 101, 0), Err(Refusal::NoRoom.into()));
        }
    }

    #[test]
    fn a_request_does_not_wait_for_what_it_staged_itself() {
        let space = allocated(100 + KEPT_FROM_PUTS, 0, false);
        let so_far = |own| SoFar { unappended: 90, own, held: 0 };
        assert_eq!(space.admit(PUT, 20, so_far(0), || 0), Err(StageError::Full));
        assert_eq!(space.admit(PUT, 20, so_far(90), || 0), Err(Refusal::NoRoom.into()));
    }

    #[test]
    fn the_last_of_what_is_allocated_is_kept_for_what_makes_room() {
        let space = allocated(KEPT_FROM_PUTS, 0, false);
        assert_eq!(admit(&space, PUT, 1, 0), Err(Refusal::NoRoom.into()));
        assert_eq!(admit(&space, Purpose::Delete, 1, 0), Ok(()));
        let space = allocated(KEPT_FROM_DELETES, 0, false);
        for purpose in [Purpose::Delete, Purpose::Carry] {
            assert_eq!(admit(&space, purpose, 1, 0), Err(Refusal::NoRoom.into()));
        }
        assert_eq!(admit(&space, Purpose::MakesRoom, KEPT_FROM_DELETES, 0), Ok(()));
    }

    #[test]
    fn below_the_floor_puts_are_refused_and_what_makes_room_goes_on() {
        let space = Space { free: Some(Free { free_bytes: 9, floor_bytes: 10 }), ..Space::default() };
        let low = Refusal::DiskLow { free: 9, floor: 10 };
        assert_eq!(admit(&space, PUT, 1, 0), Err(low.into()));
        assert_eq!(admit(&space, OVERWRITE, 1, 0), Err(low.into()));
        for purpose in [Purpose::Delete, Purpose::Carry, Purpose::MakesRoom] {
            assert_eq!(admit(&space, purpose, 1, 0), Ok(()));
        }
    }

    #[test]
    fn deletes_leave_the_next_pass_what_it_carries_unless_that_is_not_there_anyway() {
        let with_free = |free_bytes| Space {
            free: Some(Free { free_bytes, floor_bytes: 2 * SEGMENT_BYTES }),
            ..allocated(SEGMENT_BYTES / 2, SEGMENT_BYTES / 2, true)
        };
        let delete =
            |free_bytes, bytes, pass| with_free(free_bytes).admit(Purpose::Delete, bytes, so_far(0, 0), move || pass);
        for (free, room) in [(0, 1), (SEGMENT_BYTES - 1, 1), (SEGMENT_BYTES, 2)] {
            let room = room * SEGMENT_BYTES;
            assert_eq!(delete(free, 10, room - 10), Ok(()), "{free} free");
            assert_eq!(delete(free, 11, room - 10), Err(Refusal::NoRoom.into()), "{free} free");
            assert_eq!(delete(free, 11, room + 1), Ok(()), "there is no room for that pass");
        }
        assert_eq!(delete(0, 11, 0), Ok(()), "the next pass carries nothing");
        // With room enough nobody is asked.
        let roomy = with_free(2 * SEGMENT_BYTES);
        assert_eq!(roomy.admit(Purpose::Delete, 1, so_far(0, 0), || unreachable!("there is room")), Ok(()));
        let carry = with_free(0).admit(Purpose::Carry, SEGMENT_BYTES / 4, so_far(0, 0), || SEGMENT_BYTES);
        assert_eq!(carry, Ok(()), "that is what it was kept for");
    }

    #[test]
    fn while_compaction_is_overdue_puts_wait_and_what_makes_room_goes_on() {
        let space = Space { disk_bytes: 11, overdue_above: Some(10), ..allocated(2 * KEPT_FROM_PUTS, 0, true) };
        assert_eq!(admit(&space, PUT, 1, 0), Err(StageError::Full));
        assert_eq!(admit(&space, OVERWRITE, 1, 0), Err(StageError::Full));
        for purpose in [Purpose::Delete, Purpose::Carry, Purpose::MakesRoom] {
            assert_eq!(admit(&space, purpose, 1, 0), Ok(()));
        }
        // What can only be refused is not made to wait first.
        let space = Space { free: Some(Free { free_bytes: 0, floor_bytes: 1 }), ..space };
        assert_eq!(admit(&space, PUT, 1, 0), Err(Refusal::DiskLow { free: 0, floor: 1 }.into()));
    }

    #[test]
    fn over_a_bound_only_what_grows_is_refused() {
        let space = Space { memory_full: Some((7, 5)), ..Space::default() };
        assert_eq!(space.admit(PUT, 1, so_far(0, 0), || 0), Err(Refusal::MemoryFull { used: 7, bound: 5 }.into()));
        assert_eq!(space.admit(OVERWRITE, 1, so_far(0, 0), || 0), Ok(()));
        let space = Space { max_data_bytes: 100, ..Space::default() };
        assert_eq!(space.admit(PUT, 1, so_far(30, 90), || 0), Ok(()));
        assert_eq!(space.admit(PUT, 1, so_far(31, 91), || 0), Err(Refusal::DataFull { live: 91, bound: 100 }.into()));
        assert_eq!(space.admit(OVERWRITE, 1, so_far(31, 231), || 0), Ok(()));
    }
}
