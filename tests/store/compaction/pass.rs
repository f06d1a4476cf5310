//! Compaction, step by step, with a look at each: what a pass carries and leaves behind is foretold from the map and the
//! index; and what a pass would never do, but whoever stages might: carries of anything ever read, trims to anywhere.
//!
//! Must never look into a pass.

use std::collections::VecDeque;

use hearth::core::log::reader::Wait;
use hearth::core::record::cache::CacheRecord;
use hearth::core::shard::carry::{Candidate, Carried, PassError};
use hearth::core::shard::compact::{CompactionFault, Next, ReadDone, ReadOrder};
use hearth::core::shard::stage::StageError;
use hearth::core::types::{Generation, Offset, SegmentNo};

use super::ops::{KEYS, Lifetime, Shortage, When, Write};
use super::player::{Player, PowerGone, key_of};
use crate::model::Change;

/// More records than this are not remembered at a time.
const MOST_REMEMBERED: usize = 16;
/// Bytes that take all there is in one piece.
const ALL: u64 = u64::MAX / 2;
/// Far more steps than it takes to compact what these tests write.
const MOST_STEPS: usize = 2_000;

/// What is known of the pass under way.
#[derive(Default)]
pub struct PassWatch {
    victim: SegmentNo,
    /// Where the log begins after it.
    successor: Offset,
    reading: Reading,
    /// What it read, in the order of the log, and staged nothing for yet.
    candidates: VecDeque<(Vec<u8>, Offset)>,
    /// Clears that were staged since the store was opened, and how many of them before the read.
    pub clears: u64,
    clears_before: u64,
    /// Trims that were staged: their offset, where the log begins after them, and the victim of their pass.
    trims: Vec<(Offset, Offset, Option<SegmentNo>)>,
    /// Records that were once read.
    remembered: VecDeque<Candidate>,
}

#[derive(Default)]
enum Reading {
    #[default]
    No,
    Ordered(ReadOrder),
    Done(Result<ReadDone, CompactionFault>),
}

/// What is to be expected of a record when a carry of it is staged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Carried,
    Superseded,
    Cleared,
    Lapsed,
}

impl Player {
    /// One step of compaction; whether it asks for another before the driver did something, and whether it is idle.
    pub(super) fn compact_step(&mut self) -> StepTaken {
        match std::mem::take(&mut self.pass.reading) {
            Reading::Ordered(order) => {
                self.read(order);
                StepTaken::Again
            }
            Reading::Done(done) => {
                let next = self.bed_mut().housekeeper.read_done(done);
                self.took(next)
            }
            Reading::No => {
                let next = self.next_step();
                self.took(next)
            }
        }
    }

    fn took(&mut self, next: Next) -> StepTaken {
        if !self.bed().housekeeper.compactor().is_running() {
            self.pass.candidates.clear();
        }
        match next {
            Next::Idle => StepTaken::Idle,
            Next::Read(order) => {
                self.pass.reading = Reading::Ordered(order);
                StepTaken::Again
            }
            Next::Again => StepTaken::Again,
            Next::Settle(_) | Next::Room => StepTaken::Wait,
            Next::Failed(fault) => panic!("compaction met damage: {fault}"),
        }
    }

    /// Carries a read out, on whatever thread; the index goes on meanwhile, so what is live is looked at now.
    fn read(&mut self, order: ReadOrder) {
        let victim = self.pass.victim;
        let mut live: Vec<(Vec<u8>, Offset)> = {
            let view = self.bed().shard.index.view();
            let here = view.iter().filter(|(_, entry)| entry.location.segment == victim);
            here.map(|(key, entry)| (key.to_vec(), entry.offset)).collect()
        };
        live.sort_by_key(|(_, offset)| *offset);
        let done = order.run();
        if done.as_ref().is_ok_and(|done| done.read_bytes > 0) {
            live.iter().for_each(|(key, _)| self.remember(key));
            self.pass.candidates = live.into();
            self.pass.clears_before = self.pass.clears;
        }
        self.seen().count("reads", 1);
        self.pass.reading = Reading::Done(done);
    }

    /// A step that reads nothing: it may stage carries, or a trim.
    fn next_step(&mut self) -> Next {
        let expected: Vec<Expected> =
            self.pass.candidates.iter().map(|(key, offset)| self.expect_of(key, *offset)).collect();
        let was_running = self.bed().housekeeper.compactor().is_running();
        if !was_running && let Some((victim, successor)) = self.bed().shard.segments.oldest_sealed() {
            (self.pass.victim, self.pass.successor) = (victim.number, successor.base_offset);
        }
        let (before, staged_before) = (self.bed().housekeeper.compactor().totals(), self.next_offset());
        let next = self.bed_mut().housekeeper.compact_step();
        let after = self.bed().housekeeper.compactor().totals();
        let carried = after.carried.records - before.carried.records;
        let left_behind = after.carried.left_behind - before.carried.left_behind;
        self.check_carried(&expected, carried, left_behind);
        match self.next_offset().0 - staged_before.0 - carried {
            0 => {}
            1 => self.pass.trims.push((staged_before, self.pass.successor, Some(self.pass.victim))),
            more => panic!("{more} records were staged beside the carries"),
        }
        self.seen().count("passes", after.passes - before.passes);
        self.seen().count("passes that ended for want of room", after.died - before.died);
        assert!(after.died == before.died || self.shortage == Shortage::Allocated, "a pass died");
        assert_eq!(after.rounds, 0, "the index named something that a read of the whole segment did not find");
        next
    }

    fn check_carried(&mut self, expected: &[Expected], carried: u64, left_behind: u64) {
        let done = (carried + left_behind) as usize;
        assert!(done <= expected.len(), "{done} records of {expected:?}");
        let count = |wanted| expected[..done].iter().filter(|expected| **expected == wanted).count() as u64;
        assert_eq!(count(Expected::Carried), carried, "of {:?}, expected {expected:?}", self.pass.candidates);
        self.seen().count("carries", carried);
        self.seen().count("left behind: superseded", count(Expected::Superseded));
        self.seen().count("left behind: cleared", count(Expected::Cleared));
        self.seen().count("left behind: lapsed", count(Expected::Lapsed));
        self.pass.candidates.drain(..done);
    }

    /// Writes to a key that was read and not carried yet.
    pub(super) fn overtake(&mut self, delete: bool) -> Result<(), PowerGone> {
        let Some((next, _)) = self.pass.candidates.front() else { return Ok(()) };
        let Some(key) = (0..KEYS).find(|key| key_of(*key) == *next) else { return Ok(()) };
        let (lifetime, when) = (Lifetime::Never, When::Always);
        self.turn(&[if delete { Write::Delete { key } } else { Write::Put { key, bytes: 30, lifetime, when } }])
    }

    /// Whether a carry of the record of `key` at `offset` may be staged now.
    fn expect_of(&self, key: &[u8], offset: Offset) -> Expected {
        let touched = self.staged.iter().any(|staged| match &staged.change {
            Change::Put { key: other, .. } | Change::Delete { key: other } => other == key,
            Change::Clear => true,
        });
        let entry = self.bed().shard.index.view().get(key).filter(|entry| entry.offset == offset);
        let held = self.applied.get(key);
        match entry {
            Some(entry) if !touched && entry.expires_at.has_lapsed(self.now()) => Expected::Lapsed,
            Some(_) if !touched => Expected::Carried,
            _ if self.pass.clears > self.pass.clears_before => Expected::Cleared,
            // A sweep was there first.
            None if held.is_some_and(|held| held.expires_at.has_lapsed(self.now())) => Expected::Lapsed,
            _ => Expected::Superseded,
        }
    }

    fn next_offset(&self) -> Offset {
        self.bed().shard.machine().next_offset()
    }

    /// Compacts until there is nothing to do.
    pub(super) fn compact(&mut self) -> Result<(), PowerGone> {
        for _ in 0..MOST_STEPS {
            match self.compact_step() {
                StepTaken::Idle => return Ok(()),
                StepTaken::Again => {}
                StepTaken::Wait => self.drive()?,
            }
        }
        // A disk that is short is compacted as long as a quarter of a segment is gained, which headers may be when
        // segments are so small.
        assert_eq!(self.shortage, Shortage::Disk, "compaction never comes to an end");
        Ok(())
    }

    /// The trims that were staged are applied now: where the log must begin, `base` having been before.
    pub(super) fn trims_carried_out(&mut self, mut base: Offset) -> Offset {
        for (offset, successor, victim) in std::mem::take(&mut self.pass.trims) {
            if successor > base {
                base = successor;
                // Whatever the policy.
                self.journal.flushed_below(offset.0 + 1);
            }
            let first = self.bed().shard.segments.first().map(|first| first.number);
            assert!(victim < first, "segment {victim:?} was compacted and is still there");
        }
        let found = self.bed().shard.segments.first().map_or(base, |first| first.base_offset);
        assert_eq!(found, base, "where the log begins after a trim");
        base
    }

    fn remember(&mut self, key: &[u8]) {
        let shard = &self.bed().shard;
        let Some(entry) = shard.index.view().get(key) else { return };
        let segment = shard.segments.get(entry.location.segment).expect("what the index names is there");
        let mut scratch = Vec::new();
        let body = segment.read(entry.location, entry.offset, Wait::IfNeeded, &mut scratch).expect("readable").to_vec();
        self.pass.remembered.push_back(Candidate { offset: entry.offset, body });
        if self.pass.remembered.len() > MOST_REMEMBERED {
            self.pass.remembered.pop_front();
        }
    }

    /// Stages carries of whatever was once read: only those may be staged that still are what their keys stand for.
    pub(super) fn carry_remembered(&mut self) {
        if let Some(key) = self.applied.keys().next().cloned() {
            self.remember(&key);
        }
        let mut candidates = std::mem::take(&mut self.pass.remembered);
        let expected: Vec<Expected> = candidates.iter().map(|candidate| self.expect_of_body(candidate)).collect();
        let (now, mut carried) = (self.now(), Carried::default());
        let staged = {
            let mut machine = self.bed().shard.machine();
            let generation = machine.generation();
            machine.stage_carries(generation, &mut candidates, ALL, now, &mut carried)
        };
        let done = expected.len() - candidates.len();
        assert_eq!(carried.records + carried.left_behind, done as u64);
        let may = expected[..done].iter().filter(|expected| **expected == Expected::Carried).count() as u64;
        assert_eq!(carried.records, may, "{expected:?}");
        match staged {
            Ok(()) => assert!(candidates.is_empty()),
            Err(error) => self.lacked_room(&error),
        }
        self.seen().count("carries of what was once read", carried.records);
        self.seen().count("carries of what is no more, refused", carried.left_behind);
    }

    fn expect_of_body(&self, candidate: &Candidate) -> Expected {
        let (CacheRecord::Put { key, .. } | CacheRecord::Carried { key, .. }) =
            CacheRecord::decode(&candidate.body).expect("a sound record")
        else {
            panic!("only puts are remembered")
        };
        self.expect_of(key, candidate.offset)
    }

    fn lacked_room(&mut self, error: &PassError) {
        match error {
            PassError::Stage(StageError::Full) => self.seen().count("carries and trims that waited for room", 1),
            PassError::Stage(StageError::Refused(_)) if self.shortage == Shortage::Allocated => {
                self.seen().count("carries and trims refused without room", 1);
            }
            error => panic!("refused while short of {:?}: {error:?}", self.shortage),
        }
    }

    /// Stages a trim to the beginning of some segment: only if nothing live stands below.
    pub(super) fn trim_to(&mut self, nth: usize) {
        let shard = std::sync::Arc::clone(&self.bed().shard);
        let applied_next = shard.frontier.applied_next();
        let held = shard.segments.held();
        let starts: Vec<_> = held.iter().skip(1).filter(|segment| segment.base_offset <= applied_next).collect();
        let Some(start) = starts.get(nth % starts.len().max(1)).map(|segment| segment.start()) else { return };
        let below = shard.index.view().iter().filter(|(_, entry)| entry.location.segment < start.segment).count();
        let staged = {
            let mut machine = shard.machine();
            let generation = machine.generation();
            machine.stage_trim(generation, &start, self.now())
        };
        match staged {
            Ok(offset) => {
                assert_eq!(below, 0, "a trim was staged over live records");
                self.pass.trims.push((offset, start.offset, None));
                self.seen().count("trims to anywhere", 1);
            }
            Err(PassError::StillLive(live)) => {
                assert_eq!(live, below as u64, "live records below the new base");
                self.seen().count("trims refused over live records", 1);
            }
            Err(error) => self.lacked_room(&error),
        }
    }

    /// A pass of the generation before stages nothing.
    pub(super) fn of_old_generation(&mut self) {
        let (shard, now) = (std::sync::Arc::clone(&self.bed().shard), self.now());
        let Some((_, successor)) = shard.segments.oldest_sealed() else { return };
        let key = self.applied.keys().next().cloned();
        key.iter().for_each(|key| self.remember(key));
        let mut machine = shard.machine();
        let (old, next) = (Generation(machine.generation().0 - 1), machine.next_offset());
        let (remembered, mut carried) = (self.pass.remembered.len(), Carried::default());
        let staged = machine.stage_carries(old, &mut self.pass.remembered, ALL, now, &mut carried);
        assert_eq!((staged, carried), (Err(PassError::OtherGeneration), Carried::default()));
        assert_eq!(machine.stage_trim(old, &successor.start(), now), Err(PassError::OtherGeneration));
        assert_eq!((machine.next_offset(), self.pass.remembered.len()), (next, remembered));
        drop(machine);
        self.seen().count("carries of an old generation, refused", u64::from(remembered > 0));
        self.seen().count("trims of an old generation, refused", 1);
    }
}

/// What a step of compaction asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepTaken {
    Idle,
    Again,
    /// The driver is to do something first.
    Wait,
}
