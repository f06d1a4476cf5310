//! How much memory the process has: what it has allocated, counted at the allocator, and what the kernel says it takes.
//!
//! Promise: what was allocated is counted exactly, for the cost of one atomic addition each time; what the kernel does not
//! tell is zero, never an error. Must never know who asks.

use std::alloc::System;
use std::sync::atomic::{AtomicU64, Ordering};

use cap::Cap;

/// Every allocation of the process goes through this.
/// Figures and the choice are in `docs/decisions/0006-the-allocator.md`.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// The most bytes that were allocated whenever somebody looked.
static PEAK: AtomicU64 = AtomicU64::new(0);

/// Bytes of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Allocated and not given back.
    pub used_bytes: u64,
    /// The most that was seen allocated.
    pub peak_bytes: u64,
    /// What the process takes of the machine's memory.
    pub resident_bytes: u64,
}

impl Memory {
    /// What the process takes for each byte it uses.
    #[must_use]
    pub fn fragmentation(&self) -> f64 {
        if self.used_bytes == 0 { 1.0 } else { self.resident_bytes as f64 / self.used_bytes as f64 }
    }
}

/// Bytes allocated now; cheap enough to be asked before every write.
#[must_use]
pub fn used() -> u64 {
    let used = ALLOCATOR.allocated() as u64;
    // Mostly it is no new peak, and a look costs nothing.
    if used > PEAK.load(Ordering::Relaxed) {
        PEAK.fetch_max(used, Ordering::Relaxed);
    }
    used
}

/// All of it; reads `/proc/self/status`.
#[expect(clippy::disallowed_methods, reason = "the kernel's own numbers, not data of ours")]
#[must_use]
pub fn of_this_process() -> Memory {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let used_bytes = used();
    Memory { used_bytes, peak_bytes: PEAK.load(Ordering::Relaxed), resident_bytes: resident(&status) }
}

fn resident(status: &str) -> u64 {
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
    kilobytes.and_then(|number| number.parse::<u64>().ok()).unwrap_or_default() * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_lines_are_read_in_bytes() {
        assert_eq!(resident("Name:\thearth\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n"), 1024 * 1024);
        assert_eq!(resident("nothing"), 0);
    }

    #[test]
    fn what_is_allocated_is_counted_and_what_is_given_back_is_not() {
        const BLOCK: usize = 256 * 1024 * 1024;
        // Other tests allocate meanwhile, but far less than this.
        const NOISE: u64 = 100 * 1024 * 1024;
        let before = used();
        let block = std::hint::black_box(vec![0_u8; BLOCK]);
        let with = used();
        assert!(with >= before + BLOCK as u64 - NOISE, "{before} {with}");
        drop(block);
        let after = used();
        assert!(after + BLOCK as u64 - NOISE <= with, "{with} {after}");
        let memory = of_this_process();
        assert!(memory.peak_bytes >= with && memory.used_bytes > 0 && memory.resident_bytes > 0);
        assert!(memory.fragmentation() > 0.0);
    }
}
