//! Where random numbers come from: epochs, salts and ids.
//!
//! Promise: the system's generator in production, a seed in tests, so that a run can be repeated.
//! Must never be used for secrets.

use std::sync::atomic::{AtomicU64, Ordering};

/// A source of random 64-bit numbers.
#[derive(Debug)]
pub enum Entropy {
    System,
    /// splitmix64 (Steele, Lea, Flood 2014) from a seed.
    Seeded(AtomicU64),
}

impl Entropy {
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self::Seeded(AtomicU64::new(seed))
    }

    /// A random number, never zero.
    pub fn number(&self) -> u64 {
        let number = match self {
            Self::System => {
                let mut bytes = [0; 8];
                // The kernel's generator fails only on kernels without it; a constant would repeat an epoch, so stop.
                assert!(getrandom::fill(&mut bytes).is_ok(), "the kernel's random generator does not answer");
                u64::from_le_bytes(bytes)
            }
            Self::Seeded(state) => {
                let z = state.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed).wrapping_add(0x9e37_79b9_7f4a_7c15);
                let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                z ^ (z >> 31)
            }
        };
        number.max(1)
    }
}
