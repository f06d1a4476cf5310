//! The sweep: what is absent already leaves memory, too.
//!
//! Promise: removes nothing that a reader could have seen at the time it was given; holds the lock shortly, however many
//! slots it is to look at. Must never know a clock: the caller says what time it is.

use crate::core::index::Index;
use crate::core::index::slab::SlotId;
use crate::core::limits::{SWEEP_REMOVALS_PER_GUARD, SWEEP_SLOTS_PER_GUARD};
use crate::core::types::{Millis, Offset};

/// Where the next sweep goes on.
#[derive(Clone, Copy, Debug, Default)]
pub struct SweepCursor(usize);

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Slots it passed, with a key or without.
    pub visited: usize,
    /// Lapsed entries and zombies that it removed.
    pub dropped: usize,
    /// Bytes that left the live numbers by that; zombies were not in them.
    pub dropped_bytes: u64,
    /// It came to the end; the next one begins anew.
    pub wrapped: bool,
}

impl Index {
    /// Removes what lies below the log's start and what lapsed by `now` among the next `slots` slots, or fewer at the end.
    /// An index has [`View::slots`](super::View::slots) of them.
    pub fn sweep(&self, cursor: &mut SweepCursor, slots: usize, now: Millis) -> Swept {
        let mut swept = Swept::default();
        while swept.visited < slots && !swept.wrapped {
            let found = self.find_absent(cursor, slots - swept.visited, now, &mut swept);
            for few in found.chunks(SWEEP_REMOVALS_PER_GUARD) {
                let mut map = self.write();
                for (id, offset) in few {
                    // It may have been written over, or its slot taken by another key, since the lock was let go.
                    if let Some(bytes) = map.sweep_out(*id, *offset, now) {
                        swept.dropped += 1;
                        swept.dropped_bytes += bytes;
                    }
                }
            }
        }
        swept
    }

    fn find_absent(
        &self,
        cursor: &mut SweepCursor,
        slots: usize,
        now: Millis,
        swept: &mut Swept,
    ) -> Vec<(SlotId, Offset)> {
        let map = self.read();
        let end = map.slab.end();
        // A clear may have left fewer slots than the last sweep passed.
        let from = cursor.0.min(end);
        let to = end.min(from.saturating_add(slots.min(SWEEP_SLOTS_PER_GUARD)));
        let absent = map.slab.iter_in(from..to).filter(|(_, slot)| !map.holds(slot) || slot.expires_at.has_lapsed(now));
        let found = absent.map(|(id, slot)| (id, slot.offset)).collect();
        swept.visited += to - from;
        swept.wrapped = to == end;
        cursor.0 = if swept.wrapped { 0 } else { to };
        found
    }

    /// Removes the entry of `key` if it is still the record at `offset` and has lapsed by `now`; whether it did.
    pub fn drop_lapsed(&self, key: &[u8], offset: Offset, now: Millis) -> bool {
        let mut map = self.write();
        let lapsed = map.get(key).is_some_and(|entry| entry.expires_at.has_lapsed(now));
        lapsed && map.slot_of(key).is_some_and(|id| map.sweep_out(id, offset, now).is_some())
    }
}
