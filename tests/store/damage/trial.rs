//! One damaged log, opened twice.
//!
//! Promise: the first opening does exactly what the oracle says: it refuses and names that file and byte, with nothing
//! changed, and does so again; or it holds exactly those batches, cuts exactly there, and adds to the log only what every
//! opening adds. The second one finds what the first left: the same keys, nothing to repair, the same bytes in every
//! segment up to where its batches ended. Must never know what was damaged.
//!
//! **What every opening adds**: a generation start behind the last batch, and the epoch if the log does not name it yet (a
//! new one after an unclean stop under a policy that may lose). After an unclean stop they stand in a new segment, and the
//! file before it ends with its last batch; after a clean one they stand in the same file if there is room.

use std::fmt::Display;
use std::path::Path;

use hearth::core::error::OpenError;
use hearth::core::log::disk::MemoryDisk;
use hearth::core::log::open::OpenReport;
use hearth::core::log::segment::{SEGMENT_HEADER_BYTES, parse_file_name};
use hearth::core::record::control::ControlRecord;
use hearth::core::types::{Epoch, SegmentNo};

use super::oracle::{Notes, Verdict};
use super::subject::Subject;
use crate::bed::{Bed, World};
use crate::layout::{Layout, Standing, anchor_state, layout};
use crate::model::State;

/// Where a damaged log stands.
pub trait Place {
    fn open(&self) -> Result<Bed, OpenError>;
    /// All that is there, to be looked at.
    fn image(&self) -> MemoryDisk;
    /// Another number whenever something there was changed.
    fn stamp(&self) -> u64;
}

impl Place for World {
    fn open(&self) -> Result<Bed, OpenError> {
        World::open(self)
    }

    fn image(&self) -> MemoryDisk {
        self.disk.clone()
    }

    /// Flushes change nothing that is read.
    fn stamp(&self) -> u64 {
        let counts = self.disk.counts();
        counts.create_dirs + counts.creates + counts.renames + counts.removes + counts.writes + counts.set_lens
    }
}

/// What a suite counts, prints, and wants to have seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub damages: u64,
    pub recoveries: u64,
    /// Opened with every batch and nothing to cut.
    pub whole: u64,
    /// Opened with every batch; something behind them was cut off.
    pub trimmed: u64,
    /// Opened without the batches that were cut off.
    pub repaired: u64,
    /// Opened without batches of which nothing is left to be cut.
    pub shortened: u64,
    pub refused: u64,
    /// Refused, and the file that is named is not the damaged one but the one that proves it.
    pub refused_by_proof: u64,
    /// Of those opened: with batches gone that had been flushed, but of which nothing that is left says so.
    pub in_the_window: u64,
}

impl Counts {
    pub fn and(self, other: Self) -> Self {
        Self {
            damages: self.damages + other.damages,
            recoveries: self.recoveries + other.recoveries,
            whole: self.whole + other.whole,
            trimmed: self.trimmed + other.trimmed,
            repaired: self.repaired + other.repaired,
            shortened: self.shortened + other.shortened,
            refused: self.refused + other.refused,
            refused_by_proof: self.refused_by_proof + other.refused_by_proof,
            in_the_window: self.in_the_window + other.in_the_window,
        }
    }

    fn saw(&mut self, subject: &Subject, verdict: &Verdict, damaged: Option<usize>) {
        self.damages += 1;
        match *verdict {
            Verdict::Refused { file, .. } => {
                self.refused += 1;
                self.refused_by_proof += u64::from(file != damaged);
            }
            Verdict::Opened { kept, cut, .. } => {
                let all = kept == subject.layout.batches.len();
                self.whole += u64::from(all && cut.is_none());
                self.trimmed += u64::from(all && cut.is_some());
                self.repaired += u64::from(!all && cut.is_some());
                self.shortened += u64::from(!all && cut.is_none());
                let last = kept.checked_sub(1).map_or(1, |at| subject.layout.batches[at].header.index.0);
                self.in_the_window += u64::from(last < subject.flushed);
            }
        }
    }
}

/// One log in one place, and what must come of it.
pub struct Trial<'t> {
    pub subject: &'t Subject,
    pub notes: Notes,
    pub verdict: Verdict,
    /// Bytes that are left of each segment file.
    pub lengths: Vec<usize>,
    /// The file that was damaged.
    pub damaged: Option<usize>,
    /// Whether the second opening comes after a clean stop of the first, or after a kill.
    pub then_clean: bool,
    pub what: &'t dyn Display,
}

/// A log before an opening: its files up to the end of their batches, and how long they are.
struct Before<'b> {
    files: Vec<(&'b Path, &'b [u8], usize)>,
    batches: &'b [Standing],
    /// Everything up to this index is known to be committed, whatever the batches say.
    floor: u64,
}

impl Trial<'_> {
    pub fn run(self, place: &impl Place, counts: &mut Counts) {
        counts.saw(self.subject, &self.verdict, self.damaged);
        counts.recoveries += 2;
        let stamp = place.stamp();
        match (place.open(), &self.verdict) {
            (Ok(bed), Verdict::Opened { kept, held, cut }) => self.opened(place, bed, *kept, *held, *cut),
            (Err(error), Verdict::Refused { file, at }) => {
                self.refused(&error, *file, *at);
                let again = place.open().err().map(|again| again.to_string());
                assert_eq!(again, Some(error.to_string()), "{}: refused once and not twice", self.what);
                assert_eq!(place.stamp(), stamp, "{}: refused, and changed", self.what);
            }
            (Ok(bed), expected) => {
                panic!("{}: expected {expected:?}, but it opened with {:?}", self.what, bed.report)
            }
            (Err(error), expected) => panic!("{}: expected {expected:?}, but: {error}", self.what),
        }
    }

    fn refused(&self, error: &OpenError, file: Option<usize>, byte: usize) {
        let OpenError::Damaged { path, at, .. } = error else { panic!("{}: {error}", self.what) };
        let named = file.map_or(&self.subject.layout.anchor, |file| &self.subject.layout.files[file].path);
        assert_eq!((path.file_name(), *at), (named.file_name(), byte as u64), "{}: {error}", self.what);
    }

    fn opened(&self, place: &impl Place, bed: Bed, kept: usize, held: usize, cut: Option<(usize, usize)>) {
        let (subject, what) = (self.subject, self.what);
        let unclean = !self.notes.clean;
        let cut = cut.map(|(file, at)| (number_of(&subject.layout.files[file].path), at as u64));
        self.reported(&bed, unclean, cut, subject.epoch);
        let empty = State::new();
        let state = kept.checked_sub(1).map_or(&empty, |at| &subject.states[at]);
        assert_eq!(bed.contents().as_ref(), Ok(state), "{what}: it holds something else");
        let batches = &subject.layout.batches[..kept];
        let files = (0..held).map(|file| {
            let end = batches.iter().rfind(|batch| batch.file == file);
            let end = end.map_or(SEGMENT_HEADER_BYTES, |batch| batch.extent().end);
            let file = (&subject.layout.files[file], self.lengths[file]);
            (&*file.0.path, &file.0.bytes[..end], file.1)
        });
        let before = Before { files: files.collect(), batches, floor: self.notes.flushed };
        let first = layout(&place.image());
        self.added(&before, &first, &bed, unclean);
        self.second(place, bed, &first, state);
    }

    fn second(&self, place: &impl Place, mut bed: Bed, first: &Layout, state: &State) {
        let epoch = bed.report.epoch;
        if self.then_clean {
            bed.driver.close().expect("a sound disk");
        }
        drop(bed);
        let Some(anchor) = anchor_state(&place.image()) else {
            panic!("{}: its anchor is not sound after the first opening", self.what);
        };
        let floor = anchor.commit_floor.0;
        let bed = match place.open() {
            Ok(bed) => bed,
            Err(error) => panic!("{}: opened once and not twice: {error}", self.what),
        };
        self.reported(&bed, !self.then_clean, None, epoch);
        assert_eq!(bed.contents().as_ref(), Ok(state), "{}: the second opening holds something else", self.what);
        let files = first.files.iter().enumerate().map(|(number, file)| {
            let end = first.batches.iter().rfind(|batch| batch.file == number);
            let end = end.map_or(SEGMENT_HEADER_BYTES, |batch| batch.extent().end);
            (&*file.path, &file.bytes[..end], file.bytes.len())
        });
        let before = Before { files: files.collect(), batches: &first.batches, floor };
        self.added(&before, &layout(&place.image()), &bed, !self.then_clean);
    }

    fn reported(&self, bed: &Bed, unclean: bool, cut: Option<(SegmentNo, u64)>, former: Epoch) {
        let new_epoch = unclean && self.subject.policy.may_lose();
        let epoch = if new_epoch { bed.report.epoch } else { former };
        let expected = OpenReport { created: false, unclean, cut, new_epoch, epoch };
        assert_eq!(bed.report, expected, "{}", self.what);
        assert_eq!(epoch != former, new_epoch, "{}: the epoch", self.what);
    }

    /// The log is what it was before, and what every opening adds.
    fn added(&self, before: &Before<'_>, after: &Layout, bed: &Bed, unclean: bool) {
        let what = self.what;
        let committed = before.batches.iter().map(|batch| batch.header.committed.0).max().unwrap_or(0);
        let committed = before.floor.max(committed);
        let known = before.batches.iter().filter(|batch| batch.header.index.0 <= committed);
        let named = known.rev().find_map(|batch| match &batch.control {
            Some(ControlRecord::Epoch(epoch)) => Some(*epoch),
            // The record that named it may be gone.
            Some(ControlRecord::Trim(trim)) => Some(trim.epoch),
            _ => None,
        });
        let mut due = vec![ControlRecord::GenerationStart];
        due.extend((named != Some(bed.report.epoch)).then_some(ControlRecord::Epoch(bed.report.epoch)));
        // Nothing that was there is elsewhere or otherwise.
        let (kept, new) = after.batches.split_at_checked(before.batches.len()).unwrap_or_default();
        let same = |(found, batch): (&Standing, &Standing)| found == batch;
        assert!(
            kept.len() == before.batches.len() && kept.iter().zip(before.batches).all(same),
            "{what}: batches moved"
        );
        for ((path, bytes, length), file) in before.files.iter().zip(&after.files) {
            assert_eq!(*path, file.path, "{what}: another file");
            assert!(file.bytes.starts_with(bytes), "{what}: {} was changed", path.display());
            let is_last = before.files.last().is_some_and(|last| last.0 == *path);
            let expected = if is_last && unclean { bytes.len() } else { *length };
            let grown = is_last && !unclean;
            assert!(file.bytes.len() == expected || grown, "{what}: {} has another length", path.display());
        }
        let controls: Vec<_> = new.iter().filter_map(|batch| batch.control.clone()).collect();
        assert_eq!((controls.len(), controls), (new.len(), due), "{what}: what opening added");
        let room = before.files.last().map_or(0, |last| last.2.saturating_sub(last.1.len()));
        let needed = new.first().map_or(0, |batch| batch.header.length as usize);
        let in_new_file = unclean || before.files.is_empty() || room < needed;
        assert_eq!(after.files.len(), before.files.len() + usize::from(in_new_file), "{what}: files");
        assert!(new.iter().all(|batch| batch.file + 1 == after.files.len()), "{what}: not at the end");
        // Numbers go on without a gap.
        let base = before.batches.last().map_or((1, 1), |last| (last.header.index.0, last.header.next_offset().0));
        let first = new.first().map_or((0, 0), |batch| (batch.header.index.0, batch.header.first_offset.0));
        assert_eq!(first, (base.0 + 1, base.1), "{what}: a number was skipped or used twice");
        let end = after.batches.last().map_or(0, |last| last.header.next_offset().0);
        assert_eq!(bed.shard.frontier.applied_next().0, end, "{what}: not everything is applied");
    }
}

fn number_of(path: &Path) -> SegmentNo {
    let name = path.file_name().and_then(|name| name.to_str());
    name.and_then(parse_file_name).expect("a segment's name")
}
