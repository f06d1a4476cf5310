//! What the broker counts about itself, and whether it is still opening; read by INFO.
//!
//! Promise: counting is one relaxed atomic addition; a number is what happened, never an estimate.
//! Must never know how a number is shown.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::core::clock::{Clock, Gap};
use crate::core::log::FsyncPolicy;
use crate::core::progress::Progress;
use crate::core::shard::counters::ShardCounters;
use crate::core::shard::driver::DriverCounts;
use crate::core::types::Millis;

/// What the process was started with.
pub struct Facts {
    pub run_id: String,
    /// Where it listens.
    pub bind: IpAddr,
    pub port: u16,
    pub policy: FsyncPolicy,
    /// Whether the data is only in memory.
    pub in_memory: bool,
    pub max_clients: usize,
    pub max_value_bytes: usize,
    /// The bounds on memory and on the live bytes of a cache; 0: none.
    pub max_memory_bytes: u64,
    pub max_data_bytes: u64,
}

/// The counters of one open shard.
pub struct ShardMetrics {
    pub driver: Arc<DriverCounts>,
    pub shard: Arc<ShardCounters>,
}

/// The counters of a process and what it was started with.
pub struct Metrics {
    pub facts: Facts,
    clock: Arc<dyn Clock>,
    started: Millis,
    started_us: u64,
    /// Connected clients.
    pub clients: AtomicUsize,
    pub total_connections: AtomicU64,
    pub rejected_connections: AtomicU64,
    pub commands: AtomicU64,
    pub keyspace_hits: AtomicU64,
    pub keyspace_misses: AtomicU64,
    pub error_replies: AtomicU64,
    pub input_bytes: AtomicU64,
    pub output_bytes: AtomicU64,
    /// Keys that had been swept when the counters were reset.
    swept_before: AtomicU64,
    loading: AtomicBool,
    progress: Arc<Progress>,
    shards: Mutex<Vec<ShardMetrics>>,
    last_rate: Mutex<LastRate>,
}

/// Commands per second, and what it was computed from.
struct LastRate {
    at_us: u64,
    commands: u64,
    per_second: u64,
}

/// How far a broker is that is still opening.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loading {
    pub since: Millis,
    pub total_bytes: u64,
    pub loaded_bytes: u64,
    pub eta_seconds: u64,
}

impl Loading {
    /// From 0 to 100.
    #[must_use]
    pub fn percent(&self) -> f64 {
        if self.total_bytes == 0 { 0.0 } else { self.loaded_bytes as f64 * 100.0 / self.total_bytes as f64 }
    }
}

impl Metrics {
    /// Those of a broker that begins to open; `progress` says how far that is.
    #[must_use]
    pub fn new(facts: Facts, clock: Arc<dyn Clock>, progress: Arc<Progress>) -> Self {
        let (started, started_us) = (clock.now(), clock.micros());
        Self {
            facts,
            clock,
            started,
            started_us,
            clients: AtomicUsize::new(0),
            total_connections: AtomicU64::new(0),
            rejected_connections: AtomicU64::new(0),
            commands: AtomicU64::new(0),
            keyspace_hits: AtomicU64::new(0),
            keyspace_misses: AtomicU64::new(0),
            error_replies: AtomicU64::new(0),
            input_bytes: AtomicU64::new(0),
            output_bytes: AtomicU64::new(0),
            swept_before: AtomicU64::new(0),
            loading: AtomicBool::new(true),
            progress,
            shards: Mutex::default(),
            last_rate: Mutex::new(LastRate { at_us: started_us, commands: 0, per_second: 0 }),
        }
    }

    /// When it was started.
    #[must_use]
    pub fn started(&self) -> Millis {
        self.started
    }

    /// Lapsed keys that were taken out since the counters were reset.
    #[must_use]
    pub fn expired_keys(&self) -> u64 {
        self.of_shards(|shard| &shard.swept_keys).saturating_sub(self.swept_before.load(Ordering::Relaxed))
    }

    /// Sets what is counted of clients and keys back to nothing, as if the broker had just been started.
    pub fn reset(&self) {
        let mut last = self.last_rate.lock().unwrap_or_else(PoisonError::into_inner);
        for counter in [
            &self.total_connections,
            &self.rejected_connections,
            &self.commands,
            &self.keyspace_hits,
            &self.keyspace_misses,
            &self.error_replies,
            &self.input_bytes,
            &self.output_bytes,
        ] {
            counter.store(0, Ordering::Relaxed);
        }
        self.swept_before.store(self.of_shards(|shard| &shard.swept_keys), Ordering::Relaxed);
        *last = LastRate { at_us: self.clock.micros(), commands: 0, per_second: 0 };
    }

    /// Everything is open.
    pub fn loaded(&self) {
        self.loading.store(false, Ordering::Release);
    }

    /// Whether data is still being opened.
    #[must_use]
    pub fn is_loading(&self) -> bool {
        self.loading.load(Ordering::Acquire)
    }

    /// How far opening is; `None` when it is done.
    #[must_use]
    pub fn loading(&self) -> Option<Loading> {
        if !self.is_loading() {
            return None;
        }
        let (total_bytes, loaded_bytes) = self.progress.read();
        let elapsed_us = u128::from(self.uptime_us());
        let eta_us = elapsed_us * u128::from(total_bytes - loaded_bytes) / u128::from(loaded_bytes + 1);
        let eta_seconds = u64::try_from(eta_us / 1_000_000).unwrap_or(u64::MAX);
        Some(Loading { since: self.started, total_bytes, loaded_bytes, eta_seconds })
    }

    fn uptime_us(&self) -> u64 {
        self.clock.micros().saturating_sub(self.started_us)
    }

    #[must_use]
    pub fn uptime_seconds(&self) -> u64 {
        self.uptime_us() / 1_000_000
    }

    /// How far the expiry clock is from the machine's.
    #[must_use]
    pub fn clock_gap(&self) -> Gap {
        self.clock.gap()
    }

    /// Commands per second since this was last asked, at least a tenth of a second apart.
    #[must_use]
    pub fn commands_per_second(&self) -> u64 {
        let (now_us, commands) = (self.clock.micros(), self.commands.load(Ordering::Relaxed));
        let mut last = self.last_rate.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed_us = now_us.saturating_sub(last.at_us);
        if elapsed_us >= 100_000 {
            // A reset may come between reading the two.
            let per_second = commands.saturating_sub(last.commands) * 1_000_000 / elapsed_us;
            *last = LastRate { at_us: now_us, commands, per_second };
        }
        last.per_second
    }

    /// Adds a shard that is open now.
    pub fn add_shard(&self, shard: ShardMetrics) {
        self.shards().push(shard);
    }

    fn shards(&self) -> MutexGuard<'_, Vec<ShardMetrics>> {
        self.shards.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The sum of one of the drivers' counters.
    #[must_use]
    pub fn of_drivers(&self, counter: impl Fn(&DriverCounts) -> &AtomicU64) -> u64 {
        self.shards().iter().map(|shard| counter(&shard.driver).load(Ordering::Relaxed)).sum()
    }

    /// The sum of one of the shards' counters.
    #[must_use]
    pub fn of_shards(&self, counter: impl Fn(&ShardCounters) -> &AtomicU64) -> u64 {
        self.shards().iter().map(|shard| counter(&shard.shard).load(Ordering::Relaxed)).sum()
    }

    /// The lowest of one of the shards' counters: for what they share, like a disk. 0 when no shard is open.
    #[must_use]
    pub fn lowest_of_shards(&self, counter: impl Fn(&ShardCounters) -> &AtomicU64) -> u64 {
        self.shards().iter().map(|shard| counter(&shard.shard).load(Ordering::Relaxed)).min().unwrap_or_default()
    }

    /// The highest of one of the shards' counters.
    #[must_use]
    pub fn highest_of_shards(&self, counter: impl Fn(&ShardCounters) -> &AtomicU64) -> u64 {
        self.shards().iter().map(|shard| counter(&shard.shard).load(Ordering::Relaxed)).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::clock::ManualClock;
    use std::net::Ipv4Addr;

    fn metrics(clock: &Arc<ManualClock>) -> Metrics {
        let facts = Facts {
            run_id: String::new(),
            bind: Ipv4Addr::LOCALHOST.into(),
            port: 0,
            policy: FsyncPolicy::Never,
            in_memory: true,
            max_clients: 1,
            max_value_bytes: 1,
            max_memory_bytes: 0,
            max_data_bytes: 0,
        };
        Metrics::new(facts, Arc::clone(clock) as Arc<dyn Clock>, Arc::default())
    }

    #[test]
    fn opening_tells_how_far_it_is_and_how_long_it_will_take_at_this_rate() {
        let clock = Arc::new(ManualClock::at(Millis(1_000)));
        let metrics = metrics(&clock);
        let begun = metrics.loading().unwrap();
        assert_eq!((begun.total_bytes, begun.percent(), begun.eta_seconds), (0, 0.0, 0));
        metrics.progress.total_bytes.store(1_000_000, Ordering::Relaxed);
        metrics.progress.done_bytes.store(249_999, Ordering::Relaxed);
        clock.advance(10_000);
        let quarter = metrics.loading().unwrap();
        assert_eq!((quarter.since, quarter.eta_seconds), (Millis(1_000), 30));
        assert!((quarter.percent() - 25.0).abs() < 0.01);
        // A file that grew since it was looked at.
        metrics.progress.done_bytes.store(2_000_000, Ordering::Relaxed);
        assert_eq!(metrics.loading().map(|loading| (loading.loaded_bytes, loading.eta_seconds)), Some((1_000_000, 0)));
        metrics.loaded();
        assert_eq!(metrics.loading(), None);
    }

    #[test]
    fn what_shards_count_is_added_up_and_what_they_share_is_not() {
        let metrics = metrics(&Arc::new(ManualClock::at(Millis(1))));
        assert_eq!(metrics.lowest_of_shards(|shard| &shard.free_bytes), 0);
        for number in [3, 5] {
            let shard = Arc::new(ShardCounters::default());
            shard.live_bytes.store(number, Ordering::Relaxed);
            shard.free_bytes.store(number, Ordering::Relaxed);
            metrics.add_shard(ShardMetrics { driver: Arc::default(), shard });
        }
        assert_eq!(metrics.of_shards(|shard| &shard.live_bytes), 8);
        assert_eq!(metrics.lowest_of_shards(|shard| &shard.free_bytes), 3);
        assert_eq!(metrics.highest_of_shards(|shard| &shard.free_bytes), 5);
    }
}
