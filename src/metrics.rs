//! What the broker counts about itself; read by INFO.
//!
//! Promise: counting is one relaxed atomic addition; a number is what happened, never an estimate.
//! Must never know how a number is shown.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::core::clock::Clock;
use crate::core::log::FsyncPolicy;
use crate::core::shard::driver::DriverCounts;
use crate::core::types::Millis;

/// The counters of a process and what it was started with.
pub struct Metrics {
    pub run_id: String,
    pub port: u16,
    pub policy: FsyncPolicy,
    /// Whether the data is only in memory.
    pub in_memory: bool,
    pub max_clients: usize,
    pub max_value_bytes: usize,
    clock: Arc<dyn Clock>,
    started: Millis,
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
    /// One per shard.
    pub drivers: Vec<Arc<DriverCounts>>,
    last_rate: Mutex<(Millis, u64, u64)>,
}

/// What [`Metrics::new`] is told.
pub struct Facts {
    pub run_id: String,
    pub port: u16,
    pub policy: FsyncPolicy,
    pub in_memory: bool,
    pub max_clients: usize,
    pub max_value_bytes: usize,
    pub drivers: Vec<Arc<DriverCounts>>,
}

impl Metrics {
    #[must_use]
    pub fn new(facts: Facts, clock: Arc<dyn Clock>) -> Self {
        let started = clock.now();
        Self {
            run_id: facts.run_id,
            port: facts.port,
            policy: facts.policy,
            in_memory: facts.in_memory,
            max_clients: facts.max_clients,
            max_value_bytes: facts.max_value_bytes,
            drivers: facts.drivers,
            clock,
            started,
            clients: AtomicUsize::new(0),
            total_connections: AtomicU64::new(0),
            rejected_connections: AtomicU64::new(0),
            commands: AtomicU64::new(0),
            keyspace_hits: AtomicU64::new(0),
            keyspace_misses: AtomicU64::new(0),
            error_replies: AtomicU64::new(0),
            input_bytes: AtomicU64::new(0),
            output_bytes: AtomicU64::new(0),
            last_rate: Mutex::new((started, 0, 0)),
        }
    }

    #[must_use]
    pub fn uptime_seconds(&self) -> u64 {
        (self.clock.now().0 - self.started.0) / 1000
    }

    /// Commands per second since this was last asked, at least a tenth of a second apart.
    #[must_use]
    pub fn commands_per_second(&self) -> u64 {
        let (now, commands) = (self.clock.now(), self.commands.load(Ordering::Relaxed));
        let mut last = self.last_rate.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed_ms = now.0 - last.0.0;
        if elapsed_ms >= 100 {
            *last = (now, commands, (commands - last.1) * 1000 / elapsed_ms);
        }
        last.2
    }

    /// The sum of one of the drivers' counters.
    #[must_use]
    pub fn of_drivers(&self, counter: impl Fn(&DriverCounts) -> &AtomicU64) -> u64 {
        self.drivers.iter().map(|counts| counter(counts).load(Ordering::Relaxed)).sum()
    }
}
