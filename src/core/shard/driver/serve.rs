//! The async half of the driver: serves clients, with the flush where it costs least and everything slow on other threads.
//!
//! Promise: the same three steps as the blocking half, in the same order. Must never do anything that half cannot do.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::core::limits::{FLUSH_INTERVAL_MS, FRONTIER_NOTE_INTERVAL_MS, SLOW_FLUSH_US};
use crate::core::log::FsyncPolicy;
use crate::core::shard::driver::{Driver, DriverError, FlushPlace, removed};
use crate::core::shard::flusher::Flusher;
use crate::rt;
use crate::teeth::{Tooth, bites};

impl Driver {
    /// Serves the shard until it is asked to close.
    ///
    /// # Errors
    /// As [`Driver::run_to_idle`]. Must not be cancelled: a flush in flight would be left behind.
    pub async fn serve(mut self, flusher: Flusher) -> Result<(), DriverError> {
        let result = self.try_serve(&flusher).await;
        self.fail_on_error(result)
    }

    async fn try_serve(&mut self, flusher: &Flusher) -> Result<(), DriverError> {
        self.reserve_space();
        loop {
            // Every connection that is ready stages first; then all that is staged becomes one batch.
            rt::yield_now().await;
            self.take_spare()?;
            let Some(work) = self.next_work()? else {
                if self.closing.load(Ordering::Acquire) {
                    // A file still being made would be in the way of whoever opens the log next.
                    while self.spares.is_ordered() {
                        self.shard.staged.wait().await;
                        self.take_spare()?;
                    }
                    return self.close();
                }
                self.order_spare();
                self.idle(flusher).await?;
                continue;
            };
            self.append(&work)?;
            if self.flushes_each_batch() || self.flush_is_due() {
                self.flush_elsewhere(flusher).await?;
            }
            self.settle()?;
            self.note_if_due()?;
            self.order_spare();
            self.remove_elsewhere();
        }
    }

    /// Waits for something to be staged, and meanwhile flushes and notes what became due. One alarm serves many waits: a
    /// timer per batch would cost more than the batch.
    async fn idle(&mut self, flusher: &Flusher) -> Result<(), DriverError> {
        let to_flush = self.policy == FsyncPolicy::EverySec && self.unflushed_since.is_some();
        let to_note = self.log.anchor().state().flushed < self.log.flushed();
        if !to_flush && !to_note {
            self.alarm = None;
            self.shard.staged.wait().await;
            return Ok(());
        }
        let alarm =
            self.alarm.get_or_insert_with(|| rt::Alarm::in_ms(FLUSH_INTERVAL_MS.min(FRONTIER_NOTE_INTERVAL_MS)));
        if alarm.or(self.shard.staged.wait()).await.is_some() {
            return Ok(());
        }
        self.alarm = None;
        if self.flush_is_due() {
            return self.flush_elsewhere(flusher).await;
        }
        self.note_if_due()
    }

    /// Flushes where [`FlushPlace`] says.
    async fn flush_elsewhere(&mut self, flusher: &Flusher) -> Result<(), DriverError> {
        if !self.log.has_unflushed() {
            return Ok(());
        }
        let here = match self.flush_place {
            FlushPlace::Worker => true,
            FlushPlace::Thread => false,
            FlushPlace::Either => self.flush_us <= SLOW_FLUSH_US,
        };
        let begun = self.clock.micros();
        let flushed = if here { self.flush_here() } else { self.flush_on_thread(flusher).await };
        let took = self.clock.micros().saturating_sub(begun);
        // One hiccup does not decide: an average over about the last eight.
        self.flush_us = (self.flush_us * 7 + took) / 8;
        flushed
    }

    async fn flush_on_thread(&mut self, flusher: &Flusher) -> Result<(), DriverError> {
        let Some(file) = self.log.flush_target().filter(|_| !bites(Tooth::SkipFlush)) else {
            return self.flushed(Ok(()));
        };
        let result = flusher.flush(file).await;
        self.flushed(result)
    }

    fn order_spare(&mut self) {
        if let Some(order) = self.spare_wanted() {
            self.spares.order(order, &self.shard);
            self.tell_space();
        }
    }

    /// The same on the blocking pool.
    fn remove_elsewhere(&mut self) {
        for removal in self.removals.drain(..) {
            let (shard, bytes) = (Arc::clone(&self.shard), removal.bytes());
            drop(rt::spawn(async move {
                removed(&shard, bytes, &rt::unblock(move || removal.carry_out()).await);
            }));
        }
    }
}
