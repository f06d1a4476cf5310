//! What keeps a shard small: looks at the disk, sweeps lapsed entries, and runs compaction, each when it is due.
//!
//! Promise: clients never wait for it but for the records it stages; it stops when the shard takes no more writes. What it
//! learns is in the shard's counters. Must never append or flush: that is the driver's.
//!
//! The steps are there for whoever must be deterministic; [`Housekeeper::serve`] runs them by the clock.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::core::clock::Clock;
use crate::core::index::SweepCursor;
use crate::core::limits::{
    COMPACTION_FAULT_REST_MS, HOUSEKEEPING_INTERVAL_MS, LEAST_FLOOR_SEGMENTS, SWEEP_PERIOD_MS, SWEEP_PIECE_SLOTS,
};
use crate::core::log::disk::Disk;
use crate::core::shard::Shard;
use crate::core::shard::compact::{CompactionFault, Compactor, Next};
use crate::core::shard::pace::{self, Extent};
use crate::core::shard::space::Free;
use crate::core::types::Millis;
use crate::rt;

/// How the housekeeping of a shard is set.
pub struct Housekeeping {
    pub disk: Arc<dyn Disk>,
    /// The shard's directory: where free space is looked at.
    pub dir: PathBuf,
    pub segment_bytes: u32,
    /// Bytes that must stay free; 0 for two segments.
    pub min_free_bytes: u64,
    /// The disk is memory: a bound on memory is one on space.
    pub in_memory: bool,
    /// Whether passes are made at all.
    pub compacts: bool,
}

/// The housekeeper of one shard.
pub struct Housekeeper {
    shard: Arc<Shard>,
    clock: Arc<dyn Clock>,
    setting: Housekeeping,
    compactor: Compactor,
    cursor: SweepCursor,
    /// Bytes read and carried when the last pause was made.
    paced_bytes: u64,
    /// The disk had less than must stay free when it was last looked at.
    is_low: bool,
    /// The bound on data, and the one on memory, was reached when it was last looked at.
    is_full: bool,
    is_over_memory: bool,
    /// No pass before this time: the last one met damage.
    rest_until: Millis,
}

impl Housekeeper {
    #[must_use]
    pub fn new(shard: Arc<Shard>, clock: Arc<dyn Clock>, setting: Housekeeping) -> Self {
        shard.machine().space().in_memory = setting.in_memory;
        Self {
            compactor: Compactor::new(Arc::clone(&shard)),
            shard,
            clock,
            setting,
            cursor: SweepCursor::default(),
            paced_bytes: 0,
            is_low: false,
            is_full: false,
            is_over_memory: false,
            rest_until: Millis::default(),
        }
    }

    #[must_use]
    pub fn compactor(&self) -> &Compactor {
        &self.compactor
    }

    /// What must stay free on the disk, in bytes.
    #[must_use]
    pub fn floor_bytes(&self) -> u64 {
        let segment = u64::from(self.setting.segment_bytes);
        match self.setting.min_free_bytes {
            // What the next pass needs is a segment at most, and so is what a delete may need.
            0 => LEAST_FLOOR_SEGMENTS * segment,
            asked => asked.max(segment),
        }
    }

    /// Takes the free space of the disk into account.
    pub fn disk_has(&mut self, free_bytes: u64) {
        let floor_bytes = self.floor_bytes();
        // What the segment in the making will take is taken.
        let left_bytes = free_bytes.saturating_sub(self.shard.unfilled_bytes.load(Ordering::Relaxed));
        // A little more must be free to leave the low state than to enter it: space comes and goes by whole segments.
        let enough = if self.is_low { floor_bytes + u64::from(self.setting.segment_bytes) / 4 } else { floor_bytes };
        self.shard.machine().space().free = Some(Free { free_bytes: left_bytes, floor_bytes: enough });
        let is_low = left_bytes < enough;
        let was_low = std::mem::replace(&mut self.is_low, is_low);
        if is_low && !was_low {
            tracing::error!(
                free_bytes = left_bytes,
                floor_bytes,
                "{}: the disk is nearly full: puts are refused until there is room, reads and deletes go on",
                self.shard.id
            );
        } else if was_low && !is_low {
            tracing::info!(
                free_bytes = left_bytes,
                floor_bytes,
                "{}: the disk has room again, puts are taken",
                self.shard.id
            );
        }
        let counters = &self.shard.counters;
        counters.free_bytes.store(left_bytes, Ordering::Relaxed);
        counters.floor_bytes.store(floor_bytes, Ordering::Relaxed);
        if free_bytes > u64::from(self.setting.segment_bytes) {
            self.shard.room_again.store(true, Ordering::Release);
            self.shard.staged.ring();
        }
        self.set_alarm();
        self.shard.room.open();
    }

    /// Says once when a bound on size is reached, and when it no longer is.
    fn tell_bounds(&mut self) {
        let live = self.shard.index.view().live().bytes;
        let bound = self.shard.machine().space().max_data_bytes;
        let is_full = bound > 0 && live >= bound - bound / 100;
        if std::mem::replace(&mut self.is_full, is_full) != is_full {
            let state = if is_full {
                "the bound on data is reached: puts that grow are refused"
            } else {
                "below the bound on data"
            };
            tracing::warn!(live_bytes = live, max_data_bytes = bound, "{}: {state}", self.shard.id);
        }
        let over = self.shard.memory_full();
        if std::mem::replace(&mut self.is_over_memory, over.is_some()) != over.is_some() {
            let (used, bound) = over.unwrap_or_default();
            let state = if over.is_some() {
                "the bound on memory is reached: puts that grow are refused"
            } else {
                "below the bound on memory"
            };
            tracing::warn!(used_bytes = used, max_memory_bytes = bound, "{}: {state}", self.shard.id);
        }
    }

    fn set_alarm(&self) {
        let resting = self.clock.now() < self.rest_until;
        let allocated = self.shard.machine().space().allocated;
        let out_of_room = allocated.is_some_and(|allocated| !allocated.spare_may_come);
        self.shard.counters.alarm.store(u64::from(self.is_low || resting || out_of_room), Ordering::Relaxed);
    }

    /// Visits some entries of the index and takes lapsed ones out of it; false when it has been all through.
    pub fn sweep_piece(&mut self) -> bool {
        let swept = self.shard.index.sweep(&mut self.cursor, SWEEP_PIECE_SLOTS, self.clock.now());
        self.shard.counters.swept_keys.fetch_add(swept.dropped as u64, Ordering::Relaxed);
        !swept.wrapped
    }

    /// How large the log is now.
    #[must_use]
    pub fn extent(&self) -> Extent {
        let counters = &self.shard.counters;
        let newest = self.shard.segments.newest();
        let (number, in_newest) = newest.map_or((Default::default(), 0), |newest| (newest.number, newest.bytes()));
        let (live, sealed) = {
            let view = self.shard.index.view();
            (view.live().bytes, view.live_below(number).bytes)
        };
        counters.live_bytes.store(live, Ordering::Relaxed);
        let free = self.shard.machine().space().clone();
        let out_of_room = free.allocated.is_some_and(|allocated| !allocated.spare_may_come);
        Extent {
            disk_bytes: counters.disk_bytes.load(Ordering::Relaxed),
            sealed_bytes: counters.log_bytes.load(Ordering::Relaxed).saturating_sub(in_newest),
            sealed_live_bytes: sealed,
            live_bytes: live,
            segment_bytes: u64::from(self.setting.segment_bytes),
            is_short: out_of_room
                || (self.setting.in_memory && self.shard.memory_left() < 2 * u64::from(self.setting.segment_bytes))
                || free.free.is_some_and(|free| free.free_bytes < free.floor_bytes),
        }
    }

    /// The next step of compaction.
    pub fn compact_step(&mut self) -> Next {
        let now = self.clock.now();
        if now < self.rest_until || !self.setting.compacts {
            self.shard.machine().space().overdue_above = None;
            self.shard.log_changed();
            return Next::Idle;
        }
        let extent = self.extent();
        let next = self.compactor.next(&extent, now);
        self.count();
        // Near its floor the disk says who has to wait.
        let most = (!extent.is_short).then(|| pace::most_bytes(&extent));
        self.shard.machine().space().overdue_above = most;
        self.shard.log_changed();
        next
    }

    /// Takes the result of a read that [`Housekeeper::compact_step`] asked for.
    pub fn read_done(&mut self, done: Result<crate::core::shard::compact::ReadDone, CompactionFault>) -> Next {
        let next = self.compactor.read_done(done);
        self.count();
        next
    }

    /// A pass met damage: the base stays where it is, and a person must know.
    pub fn failed(&mut self, fault: &CompactionFault) {
        tracing::error!(
            "{}: compaction stopped at {fault}; nothing was removed and the log grows until this is mended: see hearth inspect",
            self.shard.id
        );
        self.rest_until = Millis(self.clock.now().0 + COMPACTION_FAULT_REST_MS);
        self.set_alarm();
    }

    fn count(&self) {
        let (totals, counters) = (self.compactor.totals(), &self.shard.counters);
        counters.compaction_passes.store(totals.passes, Ordering::Relaxed);
        counters.carried_records.store(totals.carried.records, Ordering::Relaxed);
        counters.carried_bytes.store(totals.carried.bytes, Ordering::Relaxed);
        counters.trims.store(totals.trims, Ordering::Relaxed);
        counters.trimmed_bytes.store(totals.trimmed_bytes, Ordering::Relaxed);
    }

    /// Keeps the shard small until it takes no more writes.
    pub async fn serve(mut self) {
        let mut due = Millis::default();
        while !self.shard.machine().has_ended() {
            let now = self.clock.now();
            if now >= due {
                due = Millis(now.0 + HOUSEKEEPING_INTERVAL_MS);
                self.look_at_disk().await;
                self.sweep().await;
                self.tell_bounds();
                self.set_alarm();
            }
            if !self.compact_until(due).await {
                let rest = due.0.saturating_sub(self.clock.now().0);
                // Who finds no room to stage asks for it at once.
                let _ = rt::within_ms(rest.max(1), self.shard.chores.wait()).await;
            }
        }
    }

    async fn look_at_disk(&mut self) {
        let (disk, dir) = (Arc::clone(&self.setting.disk), self.setting.dir.clone());
        let free: io::Result<u64> = rt::unblock(move || disk.free_bytes(&dir)).await;
        match free {
            Ok(free_bytes) => self.disk_has(free_bytes),
            Err(error) => tracing::warn!(%error, "{}: the free space of the disk cannot be told", self.shard.id),
        }
    }

    /// Sweeps as much as is due, so that the whole index is seen in time.
    async fn sweep(&mut self) {
        let keys = self.shard.index.view().slots() as u64;
        let pieces = keys * HOUSEKEEPING_INTERVAL_MS / SWEEP_PERIOD_MS / SWEEP_PIECE_SLOTS as u64 + 1;
        for _ in 0..pieces {
            if !self.sweep_piece() {
                break;
            }
            rt::yield_now().await;
        }
    }

    /// Compacts until there is nothing to do (false) or something else is due (true).
    async fn compact_until(&mut self, due: Millis) -> bool {
        loop {
            let ticket = self.shard.room.ticket();
            let next = match self.compact_step() {
                Next::Read(order) => {
                    let done = rt::unblock(move || order.run()).await;
                    self.read_done(done)
                }
                next => next,
            };
            match next {
                Next::Idle => return false,
                Next::Failed(fault) => {
                    self.failed(&fault);
                    return false;
                }
                Next::Settle(offset) => drop(self.shard.frontier.wait(offset).await),
                Next::Room => {
                    // A closed gate must not keep the look at the disk from coming due: that may be what opens it.
                    let _ = rt::within_ms(HOUSEKEEPING_INTERVAL_MS, self.shard.room.wait(ticket)).await;
                }
                Next::Again | Next::Read(_) => self.pause().await,
            }
            if self.clock.now() >= due {
                return true;
            }
        }
    }

    /// Lets others run, for as long as the size of the log allows.
    async fn pause(&mut self) {
        let totals = self.compactor.totals();
        let done = totals.read_bytes + totals.carried.bytes;
        // What is too little for a pause is added to the next.
        match pace::pause_ms(&self.extent(), done - self.paced_bytes) {
            Some(0) => rt::yield_now().await,
            Some(pause) => {
                self.paced_bytes = done;
                rt::sleep_ms(pause).await;
            }
            None => {
                self.paced_bytes = done;
                rt::yield_now().await;
            }
        }
    }
}
