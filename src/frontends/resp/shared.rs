//! What all Redis clients of a broker share.
//!
//! Promise: every part of it is bounded. Must never know one connection's state.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::core::entropy::Entropy;
use crate::frontends::resp::cursors::Cursors;

/// State beside the caches.
pub struct Shared {
    cursors: Mutex<Cursors>,
    random: Entropy,
}

impl Default for Shared {
    fn default() -> Self {
        // The kernel is asked once: what RANDOMKEY gives is no secret.
        Self { cursors: Mutex::default(), random: Entropy::seeded(Entropy::System.number()) }
    }
}

impl Shared {
    /// Where scans go on.
    pub fn cursors(&self) -> MutexGuard<'_, Cursors> {
        self.cursors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A random number; not for secrets.
    pub fn random(&self) -> u64 {
        self.random.number()
    }
}
