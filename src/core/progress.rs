//! How far opening has come, for whoever waits for it.
//!
//! Promise: `done_bytes` never exceeds `total_bytes` once that is known, and neither goes back. Must never know who looks.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of the logs that are being opened.
#[derive(Debug, Default)]
pub struct Progress {
    /// 0 until the files were looked at.
    pub total_bytes: AtomicU64,
    pub done_bytes: AtomicU64,
}

impl Progress {
    /// Total and done; done is never more.
    #[must_use]
    pub fn read(&self) -> (u64, u64) {
        let done = self.done_bytes.load(Ordering::Relaxed);
        let total = self.total_bytes.load(Ordering::Relaxed);
        (total, done.min(total))
    }
}
