//! How much of the log is live, by segment: what compaction and the bounds on size go by.
//!
//! Promise: always the sum over what the index names, without a scan. Must never know a key.

use crate::core::types::{Offset, SegmentNo};

/// What the index names, or some segments' part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    pub entries: u64,
    /// Bytes of their framed records in the log.
    pub bytes: u64,
}

impl Live {
    fn add(&mut self, other: Self) {
        self.entries += other.entries;
        self.bytes += other.bytes;
    }

    fn take(&mut self, other: Self) {
        self.entries -= other.entries;
        self.bytes -= other.bytes;
    }
}

/// One record as the ledger counts it.
#[derive(Clone, Copy)]
pub(super) struct Counted {
    pub segment: u32,
    pub offset: Offset,
    pub bytes: u32,
    pub expires: bool,
}

impl Counted {
    fn live(self) -> Live {
        Live { entries: 1, bytes: u64::from(self.bytes) }
    }
}

/// One segment's part.
struct Part {
    segment: u32,
    live: Live,
    expiring: u64,
    /// The lowest and highest offset ever counted here, to notice a log start that is not where its segment begins.
    lowest: Offset,
    highest: Offset,
}

/// The sums, whole and by segment.
#[derive(Default)]
pub(super) struct Ledger {
    /// Ascending by segment. A part stays when nothing of it is live; it goes with its segment.
    parts: Vec<Part>,
    live: Live,
    expiring: u64,
}

impl Ledger {
    pub fn live(&self) -> Live {
        self.live
    }

    /// Entries that have an expiry.
    pub fn expiring(&self) -> u64 {
        self.expiring
    }

    pub fn live_of(&self, segment: SegmentNo) -> Live {
        let found = self.parts.binary_search_by_key(&segment.0, |part| u64::from(part.segment));
        found.map_or_else(|_| Live::default(), |at| self.parts[at].live)
    }

    pub fn live_below(&self, segment: SegmentNo) -> Live {
        let mut live = Live::default();
        self.parts.iter().take_while(|part| u64::from(part.segment) < segment.0).for_each(|part| live.add(part.live));
        live
    }

    /// A record became the newest of its key.
    pub fn add(&mut self, record: Counted) {
        self.live.add(record.live());
        self.expiring += u64::from(record.expires);
        let part = self.part_of(record.segment);
        part.live.add(record.live());
        part.expiring += u64::from(record.expires);
        part.lowest = part.lowest.min(record.offset);
        part.highest = part.highest.max(record.offset);
    }

    /// A record that was added no longer is.
    pub fn take(&mut self, record: Counted) {
        self.live.take(record.live());
        self.expiring -= u64::from(record.expires);
        let part = self.part_of(record.segment);
        part.live.take(record.live());
        part.expiring -= u64::from(record.expires);
    }

    fn part_of(&mut self, segment: u32) -> &mut Part {
        // Nearly always the newest segment.
        let at = match self.parts.last() {
            Some(last) if last.segment == segment => self.parts.len() - 1,
            _ => self.parts.binary_search_by_key(&segment, |part| part.segment).unwrap_or_else(|at| {
                let part =
                    Part { segment, live: Live::default(), expiring: 0, lowest: Offset(u64::MAX), highest: Offset(0) };
                self.parts.insert(at, part);
                at
            }),
        };
        &mut self.parts[at]
    }

    /// Forgets the segments below `first`, which begins with the record at `base`.
    pub fn trim(&mut self, base: Offset, first: SegmentNo) {
        let below = self.parts.partition_point(|part| u64::from(part.segment) < first.0);
        for part in self.parts.drain(..below) {
            assert!(
                part.highest < base,
                "the log is to start at offset {}, but segment {} below its first one, {}, has offset {}",
                base.0,
                part.segment,
                first.0,
                part.highest.0
            );
            self.live.take(part.live);
            self.expiring -= part.expiring;
        }
        if let Some(part) = self.parts.first() {
            assert!(
                part.lowest >= base,
                "the log is to start at offset {} with segment {}, but segment {} has offset {}",
                base.0,
                first.0,
                part.segment,
                part.lowest.0
            );
        }
    }
}
