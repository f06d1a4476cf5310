//! One shard: a machine that decides, a driver that does its I/O, and what readers and waiters see of it.
//!
//! Reading order: `machine` (events in, work out; sans-IO), `stage` (what a write decides when it is staged),
//! `overlay` (staged and not yet applied), `apply` (a committed batch becomes visible), `frontier` (who waits for it),
//! `read` (one value back from the log), `driver` (the one place that appends and flushes), `flusher` (its thread).
//!
//! Lock order: `machine`, then `index`, then `segments`, then the frontier's waiters. No lock is held across an await.
//!
//! Promise: visibility, notification and acknowledgement happen at apply, strictly by offset. Must never know a protocol
//! or which broker it is on.

pub mod apply;
pub mod counters;
pub mod driver;
pub mod flusher;
pub mod frontier;
pub mod machine;
pub mod overlay;
pub mod read;
pub mod stage;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::core::index::Index;
use crate::core::log::reader::Segments;
use crate::core::types::ShardId;
use crate::rt::Bell;

use frontier::Frontier;
use machine::Machine;

/// A shard as front ends (through `api`) and its driver share it.
pub struct Shard {
    pub id: ShardId,
    machine: Mutex<Machine>,
    pub index: Arc<Index>,
    pub segments: Arc<Segments>,
    pub frontier: Frontier,
    /// Rung when something was staged; the driver listens.
    pub staged: Bell,
}

impl Shard {
    #[must_use]
    pub fn new(machine: Machine, segments: Arc<Segments>) -> Self {
        Self {
            id: machine.id().clone(),
            index: machine.index(),
            frontier: Frontier::new(machine.applied_next()),
            machine: Mutex::new(machine),
            segments,
            staged: Bell::default(),
        }
    }

    /// The machine, for one short, synchronous piece of work.
    pub fn machine(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
