//! Compaction: carries what is live in the oldest sealed segment to the tail, then trims that segment off the log.
//!
//! ```text
//! plan -> read a piece of the oldest segment -> stage carries of what is live -> wait until they are applied -> … -> trim
//! ```
//! Promise: the log's beginning goes only when a staged trim has verified that nothing live stands in it; a pass works
//! beside any write storm and holds no lock while it reads; it dies with its generation; a record that does not verify
//! stops it, and the base stays. Steps are handed out, never waited for, so that a test can put anything between two.
//! Must never write a file.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::core::index::Index as KeyIndex;
use crate::core::limits::MAX_PASS_ROUNDS;
use crate::core::log::frame::{BatchType, records};
use crate::core::log::reader::Segment;
use crate::core::log::scan;
use crate::core::record::cache::CacheRecord;
use crate::core::shard::Shard;
use crate::core::shard::carry::{Candidate, Carried, PassError};
use crate::core::shard::frontier::Fate;
use crate::core::shard::pace::{self, Extent, Pieces};
use crate::core::shard::stage::StageError;
use crate::core::types::{Generation, Index, Millis, Offset, SegmentNo};

/// What is to be done next.
pub enum Next {
    /// Nothing: the log is as small as it should be.
    Idle,
    /// Read on; give the result to [`Compactor::read_done`].
    Read(ReadOrder),
    /// Go on once the record at this offset is applied.
    Settle(Offset),
    /// Go on once there is room to stage.
    Room,
    /// Go on at once.
    Again,
    /// The pass is over: something in the log is not as it was written, or could not be read.
    Failed(CompactionFault),
}

/// Why a pass stopped for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactionFault {
    pub segment: SegmentNo,
    /// Bytes from the start of the segment.
    pub position: u64,
    pub what: String,
}

impl std::fmt::Display for CompactionFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { segment, position, what } = self;
        write!(f, "segment {}, byte {position}: {what}", segment.0)
    }
}

/// What compaction has done since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub passes: u64,
    /// Passes that ended because their generation did.
    pub died: u64,
    pub read_bytes: u64,
    pub carried: Carried,
    pub trims: u64,
    pub trimmed_bytes: u64,
    /// How often a trim found something live and the pass went round again.
    pub rounds: u64,
}

/// The compaction of one shard.
pub struct Compactor {
    shard: Arc<Shard>,
    pass: Option<Pass>,
    totals: Totals,
}

/// One pass over one segment.
struct Pass {
    generation: Generation,
    victim: Arc<Segment>,
    /// The segment after it: the new beginning of the log.
    successor: Arc<Segment>,
    cursor: Cursor,
    candidates: VecDeque<Candidate>,
    /// The newest carry that was staged.
    staged: Option<Offset>,
    rounds: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Reading,
    /// Carries were staged behind this one; reading goes on when it is applied.
    Carrying(Offset),
    /// Everything was read: the trim is staged when all that is staged now is applied.
    Ending(Offset),
    /// The trim was staged.
    Trimming(Offset),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cursor {
    at: u64,
    next_index: Index,
}

impl Compactor {
    #[must_use]
    pub fn new(shard: Arc<Shard>) -> Self {
        Self { shard, pass: None, totals: Totals::default() }
    }

    #[must_use]
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Whether a pass is under way.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.pass.is_some()
    }

    /// The next step of the pass under way, or of one that begins now if `extent` asks for it.
    pub fn next(&mut self, extent: &Extent, now: Millis) -> Next {
        if self.pass.is_none() {
            self.pass = self.begin(extent);
        }
        let Some(pass) = &mut self.pass else { return Next::Idle };
        match pass.state {
            State::Reading => self.read_or_carry(pace::pieces(extent), now),
            State::Carrying(offset) => self.when_applied(offset, |pass| pass.state = State::Reading),
            State::Ending(offset) => match self.shard.frontier.fate(offset) {
                Some(Fate::Applied) => self.trim(now),
                None => Next::Settle(offset),
                Some(_) => self.die(),
            },
            State::Trimming(offset) => match self.shard.frontier.fate(offset) {
                Some(Fate::Applied) => {
                    self.totals.passes += 1;
                    self.totals.trims += 1;
                    self.totals.trimmed_bytes += pass.victim.bytes();
                    self.pass = None;
                    Next::Again
                }
                None => Next::Settle(offset),
                Some(_) => self.die(),
            },
        }
    }

    /// A pass over the oldest sealed segment, when that is worth it.
    fn begin(&self, extent: &Extent) -> Option<Pass> {
        if !pace::is_wanted(extent) {
            return None;
        }
        let (victim, successor) = self.shard.segments.oldest_sealed()?;
        let machine = self.shard.machine();
        // What is not applied yet is in nobody's index: it could not be told from garbage.
        if !machine.doors_open() || successor.base_offset > machine.applied_next() {
            return None;
        }
        let generation = machine.generation();
        let last = Offset(machine.next_offset().0 - 1);
        drop(machine);
        let nothing_live = self.shard.index.view().live_of(victim.number).entries == 0;
        let cursor = Cursor::start_of(&victim);
        let state = if nothing_live { State::Ending(last) } else { State::Reading };
        Some(Pass {
            generation,
            victim,
            successor,
            cursor,
            candidates: VecDeque::new(),
            staged: None,
            rounds: 0,
            state,
        })
    }

    fn read_or_carry(&mut self, pieces: Pieces, now: Millis) -> Next {
        let Some(pass) = &mut self.pass else { return Next::Idle };
        if pass.candidates.is_empty() {
            return Next::Read(ReadOrder {
                segment: Arc::clone(&pass.victim),
                index: Arc::clone(&self.shard.index),
                cursor: pass.cursor,
                end: pass.successor.base_index,
                budget_bytes: pieces.read_bytes,
            });
        }
        let carried = &mut self.totals.carried;
        carried.last = None;
        let staged =
            self.shard.machine().stage_carries(pass.generation, &mut pass.candidates, pieces.carry_bytes, now, carried);
        if let Some(last) = carried.last {
            self.shard.staged.ring();
            // The piece before this one must be applied first: one is being flushed while the next is read.
            if let Some(before) = pass.staged.replace(last) {
                pass.state = State::Carrying(before);
            }
        }
        match staged {
            Ok(()) => Next::Again,
            Err(PassError::Stage(StageError::Full)) if carried.last.is_none() => self.wait_for_room(),
            Err(PassError::Stage(StageError::Full)) => Next::Again,
            Err(_) => self.die(),
        }
    }

    /// Takes what a [`ReadOrder`] found.
    pub fn read_done(&mut self, done: Result<ReadDone, CompactionFault>) -> Next {
        let Some(pass) = &mut self.pass else { return Next::Again };
        match done {
            Ok(done) => {
                self.totals.read_bytes += done.read_bytes;
                pass.candidates = done.candidates;
                pass.cursor = done.cursor;
                if done.ended && pass.candidates.is_empty() {
                    pass.state = State::Ending(Offset(self.shard.machine().next_offset().0 - 1));
                }
                Next::Again
            }
            Err(fault) => {
                self.pass = None;
                Next::Failed(fault)
            }
        }
    }

    fn when_applied(&mut self, offset: Offset, go_on: impl FnOnce(&mut Pass)) -> Next {
        match self.shard.frontier.fate(offset) {
            None => Next::Settle(offset),
            Some(Fate::Applied) => {
                if let Some(pass) = &mut self.pass {
                    go_on(pass);
                }
                Next::Again
            }
            Some(_) => self.die(),
        }
    }

    fn trim(&mut self, now: Millis) -> Next {
        let Some(pass) = &mut self.pass else { return Next::Idle };
        let start = pass.successor.start();
        let staged = self.shard.machine().stage_trim(pass.generation, &start, now);
        match staged {
            Ok(offset) => {
                self.shard.staged.ring();
                pass.state = State::Trimming(offset);
                Next::Again
            }
            Err(PassError::Stage(StageError::Full)) => self.wait_for_room(),
            Err(PassError::StillLive(live)) => {
                self.totals.rounds += 1;
                pass.rounds += 1;
                if pass.rounds < MAX_PASS_ROUNDS {
                    pass.cursor = Cursor::start_of(&pass.victim);
                    pass.state = State::Reading;
                    return Next::Again;
                }
                let what = format!("the index names {live} records here that the segment does not hold");
                let fault = CompactionFault { segment: pass.victim.number, position: 0, what };
                self.pass = None;
                Next::Failed(fault)
            }
            Err(_) => self.die(),
        }
    }

    fn wait_for_room(&self) -> Next {
        // The driver may have a segment to make first.
        self.shard.staged.ring();
        Next::Room
    }

    /// The generation is over, or the shard takes no more writes: so is the pass.
    fn die(&mut self) -> Next {
        self.pass = None;
        self.totals.died += 1;
        Next::Idle
    }
}

impl Cursor {
    fn start_of(segment: &Segment) -> Self {
        Self { at: crate::core::log::segment::SEGMENT_HEADER_BYTES as u64, next_index: segment.base_index }
    }
}

/// A piece of a segment to be read, on whatever thread may wait for the disk.
pub struct ReadOrder {
    segment: Arc<Segment>,
    index: Arc<KeyIndex>,
    cursor: Cursor,
    /// The index of the first batch behind the segment.
    end: Index,
    budget_bytes: u64,
}

/// What a piece held.
pub struct ReadDone {
    candidates: VecDeque<Candidate>,
    cursor: Cursor,
    pub read_bytes: u64,
    ended: bool,
}

impl ReadOrder {
    /// Reads and verifies the next batches and copies the records that are live now.
    ///
    /// # Errors
    /// [`CompactionFault`] when the segment cannot be read or does not hold what it was written with.
    pub fn run(self) -> Result<ReadDone, CompactionFault> {
        let mut done = ReadDone { candidates: VecDeque::new(), cursor: self.cursor, read_bytes: 0, ended: false };
        let fault = |position: u64, what: String| CompactionFault { segment: self.segment.number, position, what };
        let file = self.segment.file().map_err(|error| fault(0, error.to_string()))?;
        let walked = scan::walk(&*file, self.segment.salt, self.cursor.at, |batch| {
            if batch.header.index != done.cursor.next_index || batch.header.index >= self.end {
                return false;
            }
            if batch.header.batch_type == BatchType::Data {
                self.gather(&batch, &mut done.candidates);
            }
            done.cursor =
                Cursor { at: batch.position + u64::from(batch.header.length), next_index: batch.header.index.next() };
            done.read_bytes += u64::from(batch.header.length);
            done.read_bytes < self.budget_bytes
        });
        walked.map_err(|error| fault(done.cursor.at, error.to_string()))?;
        done.ended = done.cursor.next_index == self.end;
        if !done.ended && done.read_bytes < self.budget_bytes {
            let what = format!("the batch with index {} is not there", done.cursor.next_index.0);
            return Err(fault(done.cursor.at, what));
        }
        Ok(done)
    }

    fn gather(&self, batch: &scan::ScannedBatch<'_>, candidates: &mut VecDeque<Candidate>) {
        let view = self.index.view();
        for framed in records(&batch.header, batch.bytes) {
            let Ok(CacheRecord::Put { key, .. } | CacheRecord::Carried { key, .. }) = CacheRecord::decode(framed.body)
            else {
                continue;
            };
            if view.get(key).is_some_and(|entry| entry.offset == framed.offset) {
                candidates.push_back(Candidate { offset: framed.offset, body: framed.body.to_vec() });
            }
        }
    }
}
