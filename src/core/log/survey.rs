//! What stands in a shard's directory, read from its beginning to its end and judged.
//!
//! Promise: read-only: nothing is written, flushed or dropped from a cache, so that looking and opening tell the same;
//! files are open one at a time; a batch is handed on without a copy unless nothing says yet that it is committed.
//! Must never know a key, nor what is done about the judgement.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use crate::core::error::OpenError;
use crate::core::log::anchor::{ANCHOR_FILE, Anchor, AnchorRead};
use crate::core::log::disk::Disk;
use crate::core::log::frame::BatchHeader;
use crate::core::log::open::{FIRST_INDEX, FIRST_OFFSET};
use crate::core::log::recovery::{self, AnchorFacts, LogFacts, Plan, SegmentFacts};
use crate::core::log::scan::{self, ScannedBatch};
use crate::core::log::segment::{self, HeaderRead, SEGMENT_HEADER_BYTES, SegmentHeader};
use crate::core::log::start::LogStart;
use crate::core::progress::Progress;
use crate::core::types::{Index, Location, Offset, SegmentNo, ShardId};

/// A batch found in the log, with where it begins.
#[derive(Clone, Copy, Debug)]
pub struct FoundBatch<'a> {
    pub header: BatchHeader,
    pub location: Location,
    pub bytes: &'a [u8],
}

/// A batch that stands in the log and that nothing says is committed.
#[derive(Clone, Debug)]
pub struct UncommittedBatch {
    pub header: BatchHeader,
    pub location: Location,
    pub bytes: Vec<u8>,
}

impl UncommittedBatch {
    fn found(&self) -> FoundBatch<'_> {
        FoundBatch { header: self.header, location: self.location, bytes: &self.bytes }
    }
}

/// Who is told what a survey meets, in the order in which it stands in the log.
pub trait Visitor {
    /// A segment file is looked into next.
    fn begins(&mut self, _number: SegmentNo) {}

    /// A sound batch stands there.
    fn found(&mut self, _batch: &FoundBatch<'_>) {}

    /// Something says that this batch, which was found before or just now, is committed.
    ///
    /// # Errors
    /// Ends the survey.
    fn committed(&mut self, batch: &FoundBatch<'_>) -> Result<(), OpenError>;

    /// A segment file was looked into.
    fn ends(&mut self, _facts: &SegmentFacts) {}
}

/// A function that only wants the committed batches.
impl<F: FnMut(&FoundBatch<'_>) -> Result<(), OpenError>> Visitor for F {
    fn committed(&mut self, batch: &FoundBatch<'_>) -> Result<(), OpenError> {
        self(batch)
    }
}

/// A shard's directory before its segments are read.
pub struct Look {
    dir: PathBuf,
    anchor: AnchorFacts,
    below: Vec<SegmentNo>,
    numbers: Vec<SegmentNo>,
}

/// A log that was read and judged.
pub struct Survey {
    pub facts: LogFacts,
    pub plan: Plan,
    /// Batches that stand in the log but are not known to be committed, oldest first.
    pub uncommitted: VecDeque<UncommittedBatch>,
    /// Everything up to and including this index was handed on as committed.
    pub committed: Index,
}

/// The file of a segment, or the anchor.
#[must_use]
pub fn path_in(dir: &Path, segment: Option<SegmentNo>) -> PathBuf {
    segment.map_or_else(|| dir.join(ANCHOR_FILE), |number| dir.join(segment::file_name(number)))
}

impl Look {
    /// Reads the anchor and the names of the segment files. A directory that is not there holds nothing.
    ///
    /// # Errors
    /// [`OpenError::Unusable`].
    pub fn at(disk: &dyn Disk, dir: &Path) -> Result<Self, OpenError> {
        let anchor = Anchor::read(disk, dir).map_err(OpenError::unusable(path_in(dir, None), "reading"))?;
        let there = disk.exists(dir).map_err(OpenError::unusable(dir, "looking for it"))?;
        let names = if there { disk.list(dir).map_err(OpenError::unusable(dir, "listing"))? } else { Vec::new() };
        let mut numbers: Vec<SegmentNo> = names.iter().filter_map(|name| segment::parse_file_name(name)).collect();
        let anchor = match anchor {
            AnchorRead::Absent => AnchorFacts::Absent,
            AnchorRead::Damaged => AnchorFacts::Damaged,
            AnchorRead::OtherFormat(format) => AnchorFacts::OtherFormat(format),
            AnchorRead::Sound(anchor) => AnchorFacts::Sound(anchor),
        };
        let kept = numbers.split_off(numbers.partition_point(|number| *number < anchor.first_segment()));
        Ok(Self { dir: dir.to_owned(), anchor, below: numbers, numbers: kept })
    }

    /// The anchor as found.
    #[must_use]
    pub fn anchor(&self) -> &AnchorFacts {
        &self.anchor
    }

    /// The files that may hold bytes that were never flushed: after an unclean stop the newest segment, and the one made
    /// ahead for the next.
    #[must_use]
    pub fn unflushed(&self) -> &[SegmentNo] {
        let clean = matches!(&self.anchor, AnchorFacts::Sound(state) if state.clean_stop);
        &self.numbers[if clean { self.numbers.len() } else { self.numbers.len().saturating_sub(2) }..]
    }

    /// Reads every segment, tells `visitor` what is there, and judges the whole.
    ///
    /// # Errors
    /// What the disk or the visitor reports. What is wrong with the log is in [`Survey::plan`].
    pub fn survey(
        self,
        disk: &dyn Disk,
        shard: &ShardId,
        progress: &Progress,
        visitor: &mut dyn Visitor,
    ) -> Result<Survey, OpenError> {
        let state = self.anchor.state();
        let floor = state.map_or(Index(0), |state| state.commit_floor);
        let start = state.map_or(FIRST_INDEX, |state| state.start.index);
        let mut replay = Replay { known: floor, committed: Index(start.0.saturating_sub(1)), held: VecDeque::new() };
        progress.total_bytes.fetch_add(self.total_bytes(disk)?, Ordering::Relaxed);
        let mut segments = Vec::with_capacity(self.numbers.len());
        for &number in &self.numbers {
            visitor.begins(number);
            let path = path_in(&self.dir, Some(number));
            let facts = read_segment(disk, &path, shard, number, |batch| {
                progress.done_bytes.fetch_add(u64::from(batch.header.length), Ordering::Relaxed);
                visitor.found(&batch);
                replay.take(&batch, visitor)
            })?;
            let in_batches = facts.scan.as_ref().map_or(0, |scan| scan.end_at - SEGMENT_HEADER_BYTES as u64);
            progress.done_bytes.fetch_add(facts.bytes.saturating_sub(in_batches), Ordering::Relaxed);
            visitor.ends(&facts);
            segments.push(facts);
        }
        let facts = LogFacts { anchor: self.anchor, below: self.below, segments };
        let plan = recovery::plan(&facts);
        Ok(Survey { facts, plan, uncommitted: replay.held, committed: replay.committed })
    }

    fn total_bytes(&self, disk: &dyn Disk) -> Result<u64, OpenError> {
        let mut total = 0;
        for &number in &self.numbers {
            let path = path_in(&self.dir, Some(number));
            let length = disk.open_to_read(&path).and_then(|file| file.len());
            total += length.map_err(OpenError::unusable(path, "reading"))?;
        }
        Ok(total)
    }
}

/// Reads one segment file and hands its sound batches on.
fn read_segment(
    disk: &dyn Disk,
    path: &Path,
    shard: &ShardId,
    number: SegmentNo,
    mut visit: impl FnMut(FoundBatch<'_>) -> Result<(), OpenError>,
) -> Result<SegmentFacts, OpenError> {
    let reading = |source| OpenError::Unusable { path: path.to_owned(), doing: "reading", source };
    let file = disk.open_to_read(path).map_err(reading)?;
    let bytes = file.len().map_err(reading)?;
    let mut sector = [0; SEGMENT_HEADER_BYTES];
    let read = file.read_at(0, &mut sector).map_err(reading)?;
    let header = SegmentHeader::decode(&sector[..read], shard, number);
    let mut facts = SegmentFacts { number, bytes, header, scan: None, content_behind_zeros: false };
    if let HeaderRead::Sound(header) = &facts.header {
        let scan = scan::scan(&*file, header, |ScannedBatch { header, position, bytes }| {
            let location = Location { segment: number, position: position as u32, length: header.length };
            visit(FoundBatch { header, location, bytes }).map_err(ScanError::Open)
        });
        facts.scan = Some(scan.map_err(|error| match error {
            ScanError::Open(error) => error,
            ScanError::Io(source) => reading(source),
        })?);
    } else if facts.header == HeaderRead::Zero {
        let nothing = scan::is_zero_from(&*file, SEGMENT_HEADER_BYTES as u64).map_err(reading)?;
        facts.content_behind_zeros = !nothing;
    }
    Ok(facts)
}

enum ScanError {
    Open(OpenError),
    Io(io::Error),
}

impl From<io::Error> for ScanError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Holds each batch back until a later one, or the anchor, says that it is committed.
struct Replay {
    /// The newest batch that anything says is committed.
    known: Index,
    /// The newest batch that was handed on.
    committed: Index,
    held: VecDeque<UncommittedBatch>,
}

impl Replay {
    fn take(&mut self, batch: &FoundBatch<'_>, visitor: &mut dyn Visitor) -> Result<(), OpenError> {
        self.known = self.known.max(batch.header.committed);
        while let Some(oldest) = self.held.pop_front_if(|oldest| oldest.header.index <= self.known) {
            self.committed = oldest.header.index;
            visitor.committed(&oldest.found())?;
        }
        let FoundBatch { header, location, bytes } = *batch;
        if header.index > self.known {
            self.held.push_back(UncommittedBatch { header, location, bytes: bytes.to_vec() });
            return Ok(());
        }
        self.committed = header.index;
        visitor.committed(batch)
    }
}

impl Survey {
    /// Why the log may not be opened, if it may not.
    #[must_use]
    pub fn refusal(&self, dir: &Path) -> Option<OpenError> {
        match &self.plan {
            Plan::Create { .. } | Plan::Open(_) => None,
            Plan::Refuse(damage) => Some(OpenError::Damaged {
                path: path_in(dir, damage.segment),
                at: damage.at,
                what: damage.what.clone(),
            }),
            Plan::OtherFormat { file, format } => {
                Some(OpenError::OtherFormat { path: path_in(dir, *file), found: format!("format {format}") })
            }
        }
    }

    /// Whether there is no log yet.
    #[must_use]
    pub fn is_new(&self) -> bool {
        matches!(self.plan, Plan::Create { .. })
    }

    /// The first offset that the log holds, or will hold.
    #[must_use]
    pub fn first_offset(&self) -> Offset {
        self.facts.anchor.state().map_or(FIRST_OFFSET, |state| state.start.offset)
    }

    /// The first index that the log holds, or will hold.
    #[must_use]
    pub fn first_index(&self) -> Index {
        self.facts.anchor.state().map_or(FIRST_INDEX, |state| state.start.index)
    }

    /// The sound segments, oldest first.
    pub fn headers(&self) -> impl DoubleEndedIterator<Item = (&SegmentHeader, &SegmentFacts)> {
        self.facts.segments.iter().filter_map(|segment| match &segment.header {
            HeaderRead::Sound(header) => Some((header, segment)),
            _ => None,
        })
    }

    /// Where the log would begin if `index` were its first: only where a segment begins.
    #[must_use]
    pub fn start_at(&self, index: Index) -> Option<LogStart> {
        self.headers().rfind(|(header, _)| header.base_index == index).map(|(header, _)| header.start())
    }
}
