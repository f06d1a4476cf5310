//! Room for what is staged: in the segments that are already allocated, on the disk, in memory, in the cache's own bound.
//!
//! Promise: pure. A write is refused or made to wait *before* it is staged; what was staged fits what is allocated, so a
//! full disk never takes anything back. Puts that grow stop first; deletes, clears, carries and trims go on in the reserve
//! below the floor, because they are what makes room. Must never ask the disk itself.

use crate::core::error::Refusal;
use crate::core::shard::stage::StageError;

/// What a write is for, which decides how far it may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A put; `growth` is how many bytes of live records it adds, 0 when it adds none.
    Put { growth: u64 },
    /// A delete, clear, carry or trim: it makes room, now or later.
    MakesRoom,
}

/// Bytes that are allocated for the log and hold nothing yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocated {
    /// Behind the tail of the active segment.
    pub active_bytes: u64,
    /// In the segment made ahead; 0 while there is none.
    pub spare_bytes: u64,
    /// Whether a segment ahead may still come: it is being made, or will be when it is asked for.
    pub spare_may_come: bool,
}

/// The free space of the file system, against what must stay free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Free {
    pub free_bytes: u64,
    pub floor_bytes: u64,
}

/// What is staged and stored already, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SoFar {
    /// Staged and not yet appended: what takes room in the segments that are allocated.
    pub unappended: u64,
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
    /// The bound on the bytes of live records; 0 for none.
    pub max_data_bytes: u64,
}

impl Space {
    /// Whether `bytes` more may be staged.
    ///
    /// # Errors
    /// [`StageError::Full`] when room is on its way, else the refusal with the facts.
    pub fn admit(&self, purpose: Purpose, bytes: u64, so_far: SoFar) -> Result<(), StageError> {
        if let Purpose::Put { growth } = purpose {
            self.admit_put(growth, so_far.held)?;
        }
        let Some(allocated) = self.allocated else { return Ok(()) };
        // A batch is not split over segments, so what the active one cannot take whole goes into the spare whole.
        if so_far.unappended + bytes <= allocated.active_bytes.max(allocated.spare_bytes) {
            return Ok(());
        }
        if so_far.unappended > 0 || allocated.spare_may_come {
            return Err(StageError::Full);
        }
        Err(Refusal::NoRoom.into())
    }

    fn admit_put(&self, growth: u64, held: u64) -> Result<(), Refusal> {
        if let Some(Free { free_bytes, floor_bytes }) = self.free
            && free_bytes < floor_bytes
        {
            return Err(Refusal::DiskLow { free: free_bytes, floor: floor_bytes });
        }
        if growth == 0 {
            return Ok(());
        }
        if let Some((used, bound)) = self.memory_full {
            return Err(Refusal::MemoryFull { used, bound });
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

    fn so_far(unappended: u64, held: u64) -> SoFar {
        SoFar { unappended, held }
    }

    fn allocated(active_bytes: u64, spare_bytes: u64, spare_may_come: bool) -> Space {
        Space { allocated: Some(Allocated { active_bytes, spare_bytes, spare_may_come }), ..Space::default() }
    }

    #[test]
    fn what_is_staged_fits_what_is_allocated_or_waits_or_is_refused() {
        let space = allocated(100, 0, true);
        assert_eq!(space.admit(PUT, 100, so_far(0, 0)), Ok(()));
        assert_eq!(space.admit(PUT, 60, so_far(41, 41)), Err(StageError::Full));
        assert_eq!(space.admit(PUT, 101, so_far(0, 0)), Err(StageError::Full));
        let space = allocated(100, 500, false);
        assert_eq!(space.admit(PUT, 100, so_far(400, 400)), Ok(()));
        // The spare is taken whole or not at all: 100 and 500 are not 600.
        assert_eq!(space.admit(PUT, 101, so_far(400, 400)), Err(StageError::Full));
        let space = allocated(100, 0, false);
        assert_eq!(space.admit(PUT, 101, so_far(0, 0)), Err(Refusal::NoRoom.into()));
        assert_eq!(space.admit(Purpose::MakesRoom, 101, so_far(0, 0)), Err(Refusal::NoRoom.into()));
    }

    #[test]
    fn below_the_floor_puts_are_refused_and_what_makes_room_goes_on() {
        let space = Space { free: Some(Free { free_bytes: 9, floor_bytes: 10 }), ..Space::default() };
        let low = Refusal::DiskLow { free: 9, floor: 10 };
        assert_eq!(space.admit(PUT, 1, so_far(0, 0)), Err(low.into()));
        assert_eq!(space.admit(OVERWRITE, 1, so_far(0, 0)), Err(low.into()));
        assert_eq!(space.admit(Purpose::MakesRoom, 1, so_far(0, 0)), Ok(()));
    }

    #[test]
    fn over_a_bound_only_what_grows_is_refused() {
        let space = Space { memory_full: Some((7, 5)), ..Space::default() };
        assert_eq!(space.admit(PUT, 1, so_far(0, 0)), Err(Refusal::MemoryFull { used: 7, bound: 5 }.into()));
        assert_eq!(space.admit(OVERWRITE, 1, so_far(0, 0)), Ok(()));
        let space = Space { max_data_bytes: 100, ..Space::default() };
        assert_eq!(space.admit(PUT, 1, so_far(30, 90)), Ok(()));
        assert_eq!(space.admit(PUT, 1, so_far(31, 91)), Err(Refusal::DataFull { live: 91, bound: 100 }.into()));
        assert_eq!(space.admit(OVERWRITE, 1, so_far(31, 231)), Ok(()));
    }
}
