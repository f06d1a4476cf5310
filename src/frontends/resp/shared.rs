//! What all Redis clients of a broker share.
//!
//! Promise: every part of it is bounded. Must never know one connection's state.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::core::entropy::Entropy;
use crate::frontends::resp::clients::Clients;
use crate::frontends::resp::cursors::Cursors;
use crate::frontends::resp::password::Password;
use crate::frontends::resp::slowlog::Slowlog;

/// State beside the caches.
pub struct Shared {
    pub clients: Clients,
    pub password: Option<Password>,
    pub slowlog: Slowlog,
    cursors: Mutex<Cursors>,
    random: Entropy,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            clients: Clients::default(),
            password: None,
            slowlog: Slowlog::default(),
            cursors: Mutex::default(),
            // The kernel is asked once: what RANDOMKEY gives is no secret.
            random: Entropy::seeded(Entropy::System.number()),
        }
    }
}

impl Shared {
    /// What clients share who have to know this password.
    #[must_use]
    pub fn with_password(password: Option<Password>) -> Self {
        Self { password, ..Self::default() }
    }

    /// Where scans go on.
    pub fn cursors(&self) -> MutexGuard<'_, Cursors> {
        self.cursors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A random number; not for secrets.
    pub fn random(&self) -> u64 {
        self.random.number()
    }
}
