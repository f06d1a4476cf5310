//! The driver: the one place that carries out a machine's work on its log.
//!
//! Promise: a batch is acknowledged only after its flush returned (policy `always`); one flush in flight; after the
//! first failure nothing more is written, waiters are told *unknown*, and the driver ends with the reason.
//! Must never know what a batch holds.
//!
//! The blocking half ([`Driver::run_to_idle`]) serves opening and every test that must be deterministic; the async half
//! ([`Driver::serve`], in `driver/serve.rs`) serves clients. Both go through the same three steps: append, flush, settle.

mod serve;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::core::clock::Clock;
use crate::core::error::Unknown;
use crate::core::limits::{FLUSH_INTERVAL_MS, FRONTIER_NOTE_INTERVAL_MS};
use crate::core::log::FsyncPolicy;
use crate::core::log::trim::Removal;
use crate::core::log::writer::{LogWriter, SpareOrder};
use crate::core::record::RecordError;
use crate::core::record::control::Trim;
use crate::core::shard::Shard;
use crate::core::shard::machine::Work;
use crate::core::shard::space::Allocated;
use crate::core::shard::spare::Spares;
use crate::core::types::{Index, Millis};
use crate::rt;
use crate::teeth::{Tooth, bites};

/// Why a driver ended before it was asked to.
#[derive(Debug)]
pub enum DriverError {
    /// The log could not be written or flushed. Never tried again.
    Log(io::Error),
    /// A committed record is of no shape this build knows.
    Record(RecordError),
}

impl std::fmt::Display for DriverError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Log(error) => write!(f, "the log could not be written or flushed: {error}"),
            Self::Record(error) => write!(f, "the log holds {error}"),
        }
    }
}

impl std::error::Error for DriverError {}

/// Which thread flushes; figures in `docs/decisions/0002-where-the-flush-runs.md`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlushPlace {
    /// The worker itself, which does nothing else meanwhile.
    Worker,
    /// The flush thread, which costs two wake-ups.
    Thread,
    /// The worker while flushes are quick, else the flush thread: on a slow disk, reads must not wait behind a flush.
    #[default]
    Either,
}

/// What a driver counts, for INFO.
#[derive(Debug, Default)]
pub struct DriverCounts {
    pub batches: AtomicU64,
    pub flushes: AtomicU64,
    pub bytes: AtomicU64,
}

/// The driver of one shard.
pub struct Driver {
    shard: Arc<Shard>,
    log: LogWriter,
    policy: FsyncPolicy,
    clock: Arc<dyn Clock>,
    counts: Arc<DriverCounts>,
    closing: Arc<AtomicBool>,
    /// When the oldest unflushed batch was appended.
    unflushed_since: Option<Millis>,
    noted_at: Millis,
    alarm: Option<rt::Alarm>,
    spares: Spares,
    /// Staging is bounded by what is allocated; otherwise the log makes room as it goes.
    reserves: bool,
    /// Segments the log has lost and whose files are still there.
    removals: Vec<Removal>,
    flush_place: FlushPlace,
    /// How long a flush took lately, in microseconds.
    flush_us: u64,
}

/// Asks a driver to write out what is staged, mark a clean stop and end.
#[derive(Clone)]
pub struct Close {
    closing: Arc<AtomicBool>,
    shard: Arc<Shard>,
}

impl Close {
    pub fn ask(&self) {
        self.closing.store(true, Ordering::Release);
        self.shard.staged.ring();
    }
}

impl Driver {
    #[must_use]
    pub fn new(shard: Arc<Shard>, log: LogWriter, policy: FsyncPolicy, clock: Arc<dyn Clock>) -> Self {
        Self {
            shard,
            log,
            policy,
            clock,
            counts: Arc::default(),
            closing: Arc::default(),
            unflushed_since: None,
            noted_at: Millis::default(),
            alarm: None,
            spares: Spares::default(),
            reserves: false,
            removals: Vec::new(),
            flush_place: FlushPlace::default(),
            flush_us: 0,
        }
    }

    /// Chooses another thread to flush on; for measurements.
    pub fn set_flush_place(&mut self, place: FlushPlace) {
        self.flush_place = place;
    }

    #[must_use]
    pub fn close_handle(&self) -> Close {
        Close { closing: Arc::clone(&self.closing), shard: Arc::clone(&self.shard) }
    }

    #[must_use]
    pub fn counts(&self) -> Arc<DriverCounts> {
        Arc::clone(&self.counts)
    }

    /// From here on nothing is staged that does not fit what is allocated.
    pub fn reserve_space(&mut self) {
        self.reserves = true;
        self.tell_space();
    }

    /// Does everything there is to do, on the calling thread.
    ///
    /// # Errors
    /// [`DriverError`]; the shard is then failed.
    pub fn run_to_idle(&mut self) -> Result<(), DriverError> {
        let result = self.try_run_to_idle();
        self.fail_on_error(result)
    }

    fn try_run_to_idle(&mut self) -> Result<(), DriverError> {
        while let Some(work) = self.next_work()? {
            self.append(&work)?;
            if bites(Tooth::AcknowledgeBeforeFlush) {
                self.settle()?;
            }
            if self.flushes_each_batch() {
                self.flush_here()?;
            }
            self.settle()?;
        }
        self.remove_here();
        if self.reserves
            && let Some(order) = self.spare_wanted()
        {
            self.spares.make_here(order, &self.shard);
            self.take_spare()?;
        }
        self.tell_space();
        Ok(())
    }

    /// Flushes what the policy left unflushed if that is due, on the calling thread.
    ///
    /// # Errors
    /// As [`Driver::run_to_idle`].
    pub fn flush_if_due(&mut self) -> Result<(), DriverError> {
        if !self.flush_is_due() {
            return Ok(());
        }
        let result = self.flush_here();
        self.fail_on_error(result)
    }

    /// Marks a clean stop: everything is flushed, and what is staged from here on is refused.
    ///
    /// # Errors
    /// As [`Driver::run_to_idle`].
    pub fn close(&mut self) -> Result<(), DriverError> {
        self.run_to_idle()?;
        let result = self.flush_here().and_then(|()| self.log.note_flushed(true).map_err(DriverError::Log));
        if result.is_ok() {
            // Whoever staged since the last batch is told that it was never written; nobody may write behind the mark.
            let unproposed = self.shard.machine().close();
            self.shard.frontier.fail(Unknown::Stopped, unproposed);
            self.shard.room.open();
        }
        self.fail_on_error(result)
    }

    /// Notes in the anchor how far the log is flushed, about once a second, under load too: what is noted cannot get
    /// lost without opening noticing.
    fn note_if_due(&mut self) -> Result<(), DriverError> {
        let now = self.clock.now();
        let to_note = self.log.anchor().state().flushed < self.log.flushed();
        if !to_note || now.0 < self.noted_at.0 + FRONTIER_NOTE_INTERVAL_MS {
            return Ok(());
        }
        self.noted_at = now;
        self.log.note_clock(now);
        self.log.note_flushed(false).map_err(DriverError::Log)
    }

    fn next_work(&mut self) -> Result<Option<Work>, DriverError> {
        let mut machine = self.shard.machine();
        let work = machine.next_work(self.clock.now()).map_err(DriverError::Record)?;
        let applied_next = machine.applied_next();
        drop(machine);
        if applied_next > self.shard.frontier.applied_next() {
            self.shard.frontier.publish(applied_next);
        }
        Ok(work)
    }

    fn append(&mut self, work: &Work) -> Result<(), DriverError> {
        if let Some(vote) = work.vote {
            self.log.save_vote(vote.generation, vote.vote).map_err(DriverError::Log)?;
        }
        let now = self.clock.now();
        for order in &work.append {
            let location = self.log.append(&order.bytes, order.place, now).map_err(DriverError::Log)?;
            // Room first, then what takes it: in between it is counted twice, never not at all.
            self.tell_space();
            self.shard.machine().appended(order.place.index, location);
            self.counts.batches.fetch_add(1, Ordering::Relaxed);
            self.counts.bytes.fetch_add(order.bytes.len() as u64, Ordering::Relaxed);
        }
        if self.unflushed_since.is_none() && self.log.has_unflushed() {
            self.unflushed_since = Some(now);
        }
        Ok(())
    }

    /// Tells the machine, and everybody who looks, how much is allocated and how large the log is.
    fn tell_space(&self) {
        let (active_bytes, spare_bytes) = (self.log.active_left(), self.log.spare_left());
        if self.reserves {
            self.shard.machine().space().allocated = Some(Allocated {
                active_bytes,
                spare_bytes,
                coming_bytes: self.spares.coming_bytes(),
                spare_may_come: !self.spares.is_out_of_room(),
                segment_bytes: self.log.segment_bytes(),
            });
        }
        let counters = &self.shard.counters;
        let disk_bytes = self.log.disk_bytes() + self.spares.ordered_bytes();
        counters.log_bytes.store(self.log.log_bytes(), Ordering::Relaxed);
        counters.disk_bytes.store(disk_bytes, Ordering::Relaxed);
        counters.segments.store(self.shard.segments.count() as u64, Ordering::Relaxed);
        counters.next_offset.store(self.log.tail().next_offset.0, Ordering::Relaxed);
        counters.base_offset.store(self.log.anchor().state().start.offset.0, Ordering::Relaxed);
        self.shard.log_changed();
    }

    /// Tells the machine that what it ordered is persisted, and the waiters what that applied.
    fn settle(&mut self) -> Result<(), DriverError> {
        let mut machine = self.shard.machine();
        machine.persisted(self.log.flushed(), self.clock.now()).map_err(DriverError::Record)?;
        let applied_next = machine.applied_next();
        let trimmed = machine.take_trimmed();
        drop(machine);
        self.shard.frontier.publish(applied_next);
        if let Some(trim) = trimmed {
            self.trim(&trim)?;
        }
        self.shard.room.open();
        Ok(())
    }

    /// A trim is applied: the log's beginning goes.
    fn trim(&mut self, trim: &Trim) -> Result<(), DriverError> {
        let Some(segment) = self.shard.segments.beginning_at(trim.base_index) else { return Ok(()) };
        self.log.note_clock(self.clock.now());
        let removal = self.log.trim(&segment.start()).map_err(DriverError::Log)?;
        // The trim flushed what was not, whatever the policy.
        if !self.log.has_unflushed() {
            self.unflushed_since = None;
        }
        self.shard.leaving_bytes.fetch_add(removal.bytes(), Ordering::Relaxed);
        self.removals.push(removal);
        self.tell_space();
        Ok(())
    }

    /// Unlinks the files of segments that the log has lost, on the calling thread.
    fn remove_here(&mut self) {
        for removal in self.removals.drain(..) {
            let bytes = removal.bytes();
            removed(&self.shard, bytes, &removal.carry_out());
        }
    }

    fn flushes_each_batch(&self) -> bool {
        self.policy == FsyncPolicy::Always
    }

    fn flush_is_due(&self) -> bool {
        self.policy == FsyncPolicy::EverySec
            && self.unflushed_since.is_some_and(|since| self.clock.now().0 >= since.0 + FLUSH_INTERVAL_MS)
    }

    fn last_appended(&self) -> Index {
        Index(self.log.tail().next_index.0 - 1)
    }

    fn flush_here(&mut self) -> Result<(), DriverError> {
        if !self.log.has_unflushed() {
            return Ok(());
        }
        let result = match self.log.flush_target() {
            Some(file) if !bites(Tooth::SkipFlush) => file.flush(),
            _ => Ok(()),
        };
        self.flushed(result)
    }

    fn flushed(&mut self, result: io::Result<()>) -> Result<(), DriverError> {
        self.counts.flushes.fetch_add(1, Ordering::Relaxed);
        self.log.flushed_upto(self.last_appended(), result).map_err(DriverError::Log)?;
        self.unflushed_since = None;
        Ok(())
    }

    /// The order for a segment ahead, if one is wanted now: the active one is half full, or somebody waits for more room
    /// than there is.
    fn spare_wanted(&mut self) -> Option<SpareOrder> {
        if self.shard.room_again.swap(false, Ordering::AcqRel) {
            self.spares.try_again();
        }
        let waited_for = self.shard.machine().take_room_wanted();
        if self.spares.is_ordered() {
            if waited_for {
                self.spares.hurry();
            }
            return None;
        }
        if self.spares.is_out_of_room() {
            return None;
        }
        self.log.spare_wanted(waited_for)
    }

    /// Takes a segment that was made ahead, and lets those go on who waited for it.
    fn take_spare(&mut self) -> Result<(), DriverError> {
        let was_ordered = self.spares.is_ordered();
        if let Some(spare) = self.spares.take().map_err(DriverError::Log)? {
            self.log.accept_spare(spare);
        }
        if was_ordered && !self.spares.is_ordered() {
            self.tell_space();
            self.shard.room.open();
        }
        Ok(())
    }

    fn fail_on_error(&mut self, result: Result<(), DriverError>) -> Result<(), DriverError> {
        if result.is_err() {
            let unproposed = self.shard.machine().fail();
            self.shard.frontier.fail(Unknown::FlushFailed, unproposed);
            self.shard.room.open();
        }
        result
    }
}

fn removed(shard: &Shard, bytes: u64, outcome: &io::Result<u64>) {
    shard.leaving_bytes.fetch_sub(bytes, Ordering::Relaxed);
    shard.log_changed();
    shard.chores.ring();
    if let Err(error) = outcome {
        // Nothing is lost by it: the anchor says that they are gone, and the next start removes them.
        tracing::error!(%error, "segments behind the log's start could not be removed; their space is not free yet");
    }
}
