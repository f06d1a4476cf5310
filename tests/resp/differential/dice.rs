//! Numbers drawn from a seed.
//!
//! Promise: the same seed draws the same numbers for ever, on every machine. Must never know what they decide.

/// SplitMix64.
pub struct Dice(u64);

fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

impl Dice {
    pub fn of(seed: u64) -> Self {
        // Mixed, because the draws of neighbouring states are one row, begun a draw later.
        Self(mixed(seed ^ 0x5DEE_CE66_D1CE_4E5B))
    }

    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed(self.0)
    }

    /// Less than `count`.
    pub fn below(&mut self, count: usize) -> usize {
        (self.roll() % count as u64) as usize
    }

    /// From `least` to `most`, both included.
    pub fn between(&mut self, least: usize, most: usize) -> usize {
        least + self.below(most - least + 1)
    }

    /// True this often out of a hundred.
    pub fn percent(&mut self, often: usize) -> bool {
        self.below(100) < often
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    pub fn text<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    /// One of rows that have a weight each.
    pub fn weighted<'a, T>(&mut self, rows: &'a [(usize, T)]) -> &'a T {
        let mut left = self.below(rows.iter().map(|(weight, _)| weight).sum());
        for (weight, row) in rows {
            if left < *weight {
                return row;
            }
            left -= weight;
        }
        unreachable!("what is left is less than the sum of the weights")
    }

    pub fn shuffle<T>(&mut self, rows: &mut [T]) {
        for last in (1..rows.len()).rev() {
            rows.swap(last, self.below(last + 1));
        }
    }
}
