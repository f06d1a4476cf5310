//! When compaction is wanted and how fast it may go: the whole policy as arithmetic.
//!
//! Promise: pure. A log takes about twice its live bytes, or four segments more than them; at most it takes 2.3 times its live
//! bytes, or seven segments more than them; a cache that is mostly live is never compacted; puts wait only where compaction
//! at full speed is too slow.
//! Must never know a segment's content.

use crate::core::limits::{
    CARRY_MOST_PIECE_BYTES, CARRY_PIECE_BYTES, COMPACTION_FULL_SPEED_PERCENT, COMPACTION_MOST_READ_BYTES,
    COMPACTION_RATIO_PERCENT, COMPACTION_READ_BYTES, COMPACTION_SLACK_SEGMENTS, COMPACTION_SLOWEST_BYTES_PER_S,
};

/// How large a log is, and how much of it is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// What the log takes on disk, the allocated rest of the newest segment and the one made ahead included.
    pub disk_bytes: u64,
    /// What stands in sealed segments.
    pub sealed_bytes: u64,
    /// Framed records that the index names, in sealed segments and in all.
    pub sealed_live_bytes: u64,
    pub live_bytes: u64,
    pub segment_bytes: u64,
    /// The disk is near its floor, or there is no room for a segment.
    pub is_short: bool,
}

impl Extent {
    /// What the log may take before it is compacted.
    fn allowed_bytes(&self) -> u64 {
        // A segment less: the log grows and shrinks by whole ones.
        let ratio = (self.live_bytes * COMPACTION_RATIO_PERCENT / 100).saturating_sub(self.segment_bytes);
        ratio.max(self.live_bytes + COMPACTION_SLACK_SEGMENTS * self.segment_bytes)
    }
}

/// Whether a pass over the oldest segment is worth it.
#[must_use]
pub fn is_wanted(extent: &Extent) -> bool {
    let garbage = extent.sealed_bytes.saturating_sub(extent.sealed_live_bytes);
    if extent.is_short {
        // Copying what is live only to regain next to nothing would wear the disk and help nobody.
        return garbage >= extent.segment_bytes / 4;
    }
    extent.disk_bytes > extent.allowed_bytes()
}

/// What the log may take above what it is allowed to before compaction makes no more pauses.
fn margin_bytes(extent: &Extent) -> u64 {
    let full_speed = extent.live_bytes * (COMPACTION_FULL_SPEED_PERCENT - COMPACTION_RATIO_PERCENT) / 100;
    full_speed.max(extent.segment_bytes / 2).max(1)
}

/// How much of the margin above what the log may take is used up, in thousandths; 1000 is all of it.
fn debt_permille(extent: &Extent) -> u64 {
    if extent.is_short {
        return 1000;
    }
    let margin = margin_bytes(extent);
    let debt = extent.disk_bytes.saturating_sub(extent.allowed_bytes());
    (debt.min(margin)) * 1000 / margin
}

/// What the log may take before puts have to wait for compaction, because it is too slow even at full speed: all of its
/// margin. One more segment may be made then for what is staged, and one for what the pass carries.
#[must_use]
pub fn most_bytes(extent: &Extent) -> u64 {
    extent.allowed_bytes() + margin_bytes(extent)
}

/// How many bytes compaction reads, and how many it stages, in one go: the deeper in debt, the larger the pieces.
#[must_use]
pub fn pieces(extent: &Extent) -> Pieces {
    let debt = debt_permille(extent);
    let between = |least: u64, most: u64| least + (most - least) * debt / 1000;
    Pieces {
        read_bytes: between(COMPACTION_READ_BYTES, COMPACTION_MOST_READ_BYTES),
        carry_bytes: between(CARRY_PIECE_BYTES, CARRY_MOST_PIECE_BYTES),
    }
}

/// Bytes to read and to stage in one go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pieces {
    pub read_bytes: u64,
    pub carry_bytes: u64,
}

/// How long to pause after `bytes` were read or carried, in milliseconds; `None` when there is no time for pauses.
#[must_use]
pub fn pause_ms(extent: &Extent, bytes: u64) -> Option<u64> {
    // Twice as fast when half of the margin is used up, ten times when nine tenths are.
    match 1000 - debt_permille(extent) {
        0 => None,
        left => Some(bytes * left / COMPACTION_SLOWEST_BYTES_PER_S),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    fn extent(disk_mib: u64, live_mib: u64) -> Extent {
        Extent {
            disk_bytes: disk_mib * MIB,
            sealed_bytes: disk_mib.saturating_sub(128) * MIB,
            sealed_live_bytes: live_mib.min(disk_mib.saturating_sub(128)) * MIB,
            live_bytes: live_mib * MIB,
            segment_bytes: 64 * MIB,
            is_short: false,
        }
    }

    #[test]
    fn a_log_past_twice_its_live_bytes_is_compacted_and_a_mostly_live_or_small_one_never() {
        assert!(is_wanted(&extent(1937, 1000)));
        assert!(!is_wanted(&extent(1936, 1000)));
        assert!(!is_wanted(&extent(1100, 1000)));
        // Below the minimum nothing is gained.
        assert!(!is_wanted(&extent(256, 0)));
        assert!(is_wanted(&extent(257, 0)));
        assert!(!is_wanted(&extent(356, 100)));
    }

    #[test]
    fn when_space_is_short_any_garbage_worth_having_is_collected_whatever_the_ratio() {
        let short = |garbage_mib: u64| {
            let live = 1000 - garbage_mib;
            is_wanted(&Extent {
                sealed_bytes: 1000 * MIB,
                sealed_live_bytes: live * MIB,
                is_short: true,
                ..extent(1128, live)
            })
        };
        assert!(short(16) && short(500));
        assert!(!short(15) && !short(0));
    }

    #[test]
    fn the_deeper_in_debt_the_larger_the_pieces() {
        let pieces: Vec<Pieces> = (1936..2200).map(|disk| pieces(&extent(disk, 1000))).collect();
        assert_eq!(pieces[0], Pieces { read_bytes: COMPACTION_READ_BYTES, carry_bytes: CARRY_PIECE_BYTES });
        assert!(pieces.is_sorted_by_key(|piece| (piece.read_bytes, piece.carry_bytes)));
        let most = Pieces { read_bytes: COMPACTION_MOST_READ_BYTES, carry_bytes: CARRY_MOST_PIECE_BYTES };
        assert_eq!(pieces[pieces.len() - 1], most);
    }

    #[test]
    fn the_pause_shrinks_to_nothing_as_the_debt_grows() {
        let pauses: Vec<Option<u64>> = (1937..2200).map(|disk| pause_ms(&extent(disk, 1000), MIB)).collect();
        assert!(pauses[0] >= Some(50), "{:?}", pauses[0]);
        assert!(pauses.is_sorted_by(|a, b| a >= b));
        assert_eq!(pauses[pauses.len() - 1], None);
        assert_eq!(pause_ms(&Extent { is_short: true, ..extent(1937, 1000) }, MIB), None);
    }

    #[test]
    fn puts_wait_only_when_compaction_at_full_speed_is_too_slow_and_then_the_bound_on_space_holds() {
        for live_mib in [0, 10, 300, 344, 345, 1000, 10_000] {
            let most = most_bytes(&extent(0, live_mib));
            let at_most = extent(most / MIB, live_mib);
            assert!(is_wanted(&at_most), "{live_mib}");
            assert!(pause_ms(&Extent { disk_bytes: most, ..at_most }, MIB).is_none(), "{live_mib}");
            assert!(pause_ms(&Extent { disk_bytes: most - MIB, ..at_most }, MIB).is_some(), "{live_mib}");
            // One segment more for what is staged then, and one for what the pass carries.
            let promised = (live_mib * MIB * 23 / 10).max((live_mib + 7 * 64) * MIB);
            assert!(most + 2 * 64 * MIB <= promised, "{live_mib}");
        }
    }
}
