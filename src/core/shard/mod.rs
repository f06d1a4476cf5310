//! One shard: a machine that decides, a driver that does its I/O, and what readers and waiters see of it.
//!
//! Reading order: `machine` (events in, work out; sans-IO), `stage` (what a write decides when it is staged), `space` and
//! `growth` (whether there is room for it), `transaction` (several writes, all or nothing), `overlay` (staged and not yet
//! applied), `apply` (a committed batch becomes visible), `frontier` and `gate` (who waits for it, who for room), `read` (one
//! value back from the log), `driver` (the one place that appends and flushes), `flusher` (its thread), `spare` (the next
//! segment). Then what keeps a log for ever: `pace` (when it is too large), `compact` (passes), `carry` (what a pass stages),
//! `housekeeper` (when all that runs), `counters`.
//!
//! Lock order: `machine`, then `index`, then `segments`, then the waiters of frontier and gate. No lock is held across an await.
//!
//! Promise: visibility, notification and acknowledgement happen at apply, strictly by offset. Must never know a protocol
//! or which broker it is on.

pub mod apply;
pub mod carry;
pub mod compact;
pub mod counters;
pub mod driver;
pub mod flusher;
pub mod frontier;
pub mod gate;
pub mod growth;
pub mod housekeeper;
pub mod machine;
pub mod overlay;
pub mod pace;
pub mod read;
pub mod space;
pub mod spare;
pub mod stage;
pub mod transaction;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::core::index::Index;
use crate::core::log::reader::Segments;
use crate::core::types::{Seat, ShardId};
use crate::core::values::ShardValues;
use crate::rt::Bell;

use counters::ShardCounters;
use frontier::Frontier;
use gate::Gate;
use machine::Machine;

/// A bound on the memory of the process, and how to learn what it uses now.
#[derive(Clone, Copy, Debug)]
pub struct MemoryBound {
    pub bound_bytes: u64,
    pub used: fn() -> u64,
}

/// A shard as front ends (through `api`) and its driver share it.
pub struct Shard {
    pub id: ShardId,
    /// Tells it from every other shard that this process opens.
    pub seat: Seat,
    machine: Mutex<Machine>,
    pub index: Arc<Index>,
    pub segments: Arc<Segments>,
    /// Values that were read lately.
    pub values: ShardValues,
    pub frontier: Frontier,
    /// Rung when something was staged; the driver listens.
    pub staged: Bell,
    /// Where those wait who found no room to stage.
    pub room: Gate,
    /// The disk may have room for a segment again; the driver looks.
    pub room_again: AtomicBool,
    /// Rung when somebody found no room to stage; the housekeeper looks whether compaction can make some.
    pub chores: Bell,
    /// What is still to be written of the segment that is being made: a look at the disk takes it for free.
    pub unfilled_bytes: AtomicU64,
    /// What the files take that the log has lost and that are not removed yet.
    pub leaving_bytes: AtomicU64,
    pub counters: Arc<ShardCounters>,
    memory: Option<MemoryBound>,
}

impl Shard {
    #[must_use]
    pub fn new(machine: Machine, segments: Arc<Segments>, values: ShardValues) -> Self {
        static NEXT_SEAT: AtomicU32 = AtomicU32::new(0);
        Self {
            id: machine.id().clone(),
            seat: Seat(NEXT_SEAT.fetch_add(1, Ordering::Relaxed)),
            index: machine.index(),
            frontier: Frontier::new(machine.applied_next()),
            machine: Mutex::new(machine),
            segments,
            values,
            staged: Bell::default(),
            room: Gate::default(),
            room_again: AtomicBool::default(),
            chores: Bell::default(),
            unfilled_bytes: AtomicU64::default(),
            leaving_bytes: AtomicU64::default(),
            counters: Arc::default(),
            memory: None,
        }
    }

    /// The size of the log, or how large it may be, is another: those go on who waited for compaction, if they may.
    pub fn log_changed(&self) {
        use Ordering::Relaxed;
        let disk_bytes = self.counters.disk_bytes.load(Relaxed) + self.leaving_bytes.load(Relaxed);
        let mut machine = self.machine();
        let space = machine.space();
        let (was, before) = (space.is_overdue(), std::mem::replace(&mut space.disk_bytes, disk_bytes));
        let went_on = was && !space.is_overdue() || disk_bytes < before;
        drop(machine);
        if went_on {
            self.room.open();
        }
    }

    /// Bounds the memory of the process while this shard is written to.
    #[must_use]
    pub fn with_memory_bound(self, memory: Option<MemoryBound>) -> Self {
        Self { memory, ..self }
    }

    /// The bytes of memory in use and their bound, when there is one and it is reached.
    #[must_use]
    pub fn memory_full(&self) -> Option<(u64, u64)> {
        let MemoryBound { bound_bytes, used } = self.memory?;
        let used = used();
        (used > bound_bytes).then_some((used, bound_bytes))
    }

    /// The bytes of memory that may still be used.
    #[must_use]
    pub fn memory_left(&self) -> u64 {
        self.memory.map_or(u64::MAX, |MemoryBound { bound_bytes, used }| bound_bytes.saturating_sub(used()))
    }

    /// The machine, for one short, synchronous piece of work.
    pub fn machine(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
