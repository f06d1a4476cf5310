//! Seeded draws (splitmix64): the same seed gives the same draws on every machine. Not for anything secret.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// A stream of draws.
#[derive(Clone)]
pub struct Random {
    state: u64,
}

impl Random {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A seed nobody chose; print it.
    pub fn fresh_seed() -> u64 {
        // Two keys of the operating system's randomness stand behind every RandomState. Short seeds are easier to copy.
        RandomState::new().build_hasher().finish() >> 32
    }

    /// A stream of its own for one part of a case, so that one part's draws do not move another's.
    pub fn fork(&mut self) -> Self {
        Self::new(self.draw())
    }

    pub fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number in `low..high`; the slight bias of the remainder does not matter here.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        assert!(low < high, "an empty range {low}..{high}");
        low + self.draw() % (high - low)
    }

    /// True once in `times` on average.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.between(0, times) == 0
    }
}
