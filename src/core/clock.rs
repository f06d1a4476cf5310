//! The clock door: the only place where the core learns what time it is.
//!
//! Promise: a clock never runs backwards within a process. Must never know who asks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::core::types::Millis;

/// Tells Unix time in milliseconds, never less than it told before.
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Millis;

    /// Microseconds since some moment, to tell how long something took.
    fn micros(&self) -> u64;
}

/// The machine's clock: wall time at start plus monotonic time since, so that a step of the wall clock moves no expiry.
pub struct SystemClock {
    started_at: Millis,
    since: Instant,
}

impl SystemClock {
    /// Reads the wall clock once.
    #[expect(clippy::disallowed_methods, reason = "this is the clock door")]
    #[must_use]
    pub fn new() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { started_at: Millis(u64::try_from(wall.as_millis()).unwrap_or(u64::MAX)), since: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        let elapsed = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        Millis(self.started_at.0.saturating_add(elapsed))
    }

    fn micros(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

/// A clock that moves only when told to; for tests and simulations.
pub struct ManualClock(AtomicU64);

impl ManualClock {
    #[must_use]
    pub fn at(now: Millis) -> Self {
        Self(AtomicU64::new(now.0))
    }

    /// Moves the clock forward by `ms` milliseconds.
    pub fn advance(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Millis {
        Millis(self.0.load(Ordering::SeqCst))
    }

    fn micros(&self) -> u64 {
        self.0.load(Ordering::SeqCst) * 1000
    }
}
