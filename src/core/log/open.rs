//! Opening a log: a reader that hands on what is there and then turns into the writer.
//!
//! Promise: nothing is appended before the log is scanned, judged by `recovery` and repaired; nothing read here is
//! served before it is flushed. "Recover, then append" cannot be done in the wrong order. Must never know a key.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::core::error::OpenError;
use crate::core::limits::ZERO_FILL_BYTES;
use crate::core::log::anchor::{ANCHOR_FILE, Anchor, AnchorRead, AnchorState};
use crate::core::log::disk::{Disk, DiskFile};
use crate::core::log::frame::BatchHeader;
use crate::core::log::handles::Handles;
use crate::core::log::reader::{Segment, Segments};
use crate::core::log::recovery::{self, AnchorFacts, Damage, LogFacts, OpenPlan, Plan, SegmentFacts};
use crate::core::log::scan::{self, ScannedBatch};
use crate::core::log::segment::{self, HeaderRead, SEGMENT_HEADER_BYTES, SegmentHeader};
use crate::core::log::start::LogStart;
use crate::core::log::writer::{Active, LogOptions, LogWriter, Tail};
use crate::core::types::{Configuration, Epoch, Generation, Index, Location, Millis, Offset, ReplicaId, SegmentNo};
use crate::teeth::{Tooth, bites};

/// The first batch of a log has this index: every group starts as if trimmed below it.
pub const FIRST_INDEX: Index = Index(2);
/// The generation of the (never written) batch before the first.
pub const FIRST_GENERATION: Generation = Generation(1);
/// The first offset; 0 is left to mean "no revision".
pub const FIRST_OFFSET: Offset = Offset(1);

/// A batch found in the log, with where it begins.
#[derive(Clone, Debug)]
pub struct FoundBatch {
    pub header: BatchHeader,
    pub location: Location,
    pub bytes: Vec<u8>,
}

/// A log that was scanned and judged; not yet repaired and not yet writable.
pub struct Recovered {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    options: LogOptions,
    anchor: Option<Anchor>,
    plan: Plan,
    handles: Arc<Handles>,
    segments: Vec<Arc<Segment>>,
    newest: SegmentNo,
    /// Batches that stand in the log but are not known to be committed, oldest first.
    pub uncommitted: VecDeque<FoundBatch>,
    /// Everything up to and including this index was handed on as committed.
    pub committed: Index,
}

/// What opening did, for the operator's log line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenReport {
    pub created: bool,
    pub unclean: bool,
    /// Segment and byte where an unfinished batch was cut off.
    pub cut: Option<(SegmentNo, u64)>,
    /// The log's history got a new id, to be written as a control record once the doors open.
    pub new_epoch: bool,
    pub epoch: Epoch,
}

/// Scans the log in `dir` and hands every batch known to be committed, in order, to `replay`.
///
/// # Errors
/// [`OpenError`] when the log may not be opened; nothing was changed then.
pub fn recover(
    disk: Arc<dyn Disk>,
    dir: &Path,
    options: LogOptions,
    mut replay: impl FnMut(&FoundBatch) -> Result<(), OpenError>,
) -> Result<Recovered, OpenError> {
    disk.create_dir(dir).map_err(OpenError::unusable(dir, "creating the shard's directory"))?;
    let read = Anchor::open(&*disk, dir).map_err(OpenError::unusable(dir.join(ANCHOR_FILE), "reading"))?;
    let (anchor, anchor_facts) = match read {
        AnchorRead::Absent => (None, AnchorFacts::Absent),
        AnchorRead::Damaged => (None, AnchorFacts::Damaged),
        AnchorRead::OtherFormat(format) => (None, AnchorFacts::OtherFormat(format)),
        AnchorRead::Sound(anchor) => {
            let facts = AnchorFacts::Sound(anchor.state().clone());
            (Some(anchor), facts)
        }
    };
    let state = anchor.as_ref().map(Anchor::state);
    let floor = state.map_or(Index(0), |state| state.commit_floor);
    let clean = state.is_some_and(|state| state.clean_stop);
    let first_index = state.map_or(FIRST_INDEX, |state| state.start.index);
    let names = disk.list(dir).map_err(OpenError::unusable(dir, "listing"))?;
    let numbers: Vec<SegmentNo> = names.iter().filter_map(|name| segment::parse_file_name(name)).collect();
    let (below, numbers) = numbers.split_at(numbers.partition_point(|number| *number < anchor_facts.first_segment()));
    let mut recovered = Recovered {
        newest: numbers.last().copied().unwrap_or_default(),
        handles: Handles::new(Arc::clone(&disk), dir.to_owned(), options.max_open_segments),
        plan: Plan::Create { remove: Vec::new() },
        segments: Vec::new(),
        uncommitted: VecDeque::new(),
        committed: Index(first_index.0.saturating_sub(1)),
        disk,
        dir: dir.to_owned(),
        options,
        anchor,
    };
    let mut facts = LogFacts { anchor: anchor_facts, below: below.to_vec(), segments: Vec::new() };
    for (i, &number) in numbers.iter().enumerate() {
        // Only the newest segment and the file made ahead for the next one can hold bytes that were never flushed.
        let refresh = !clean && i + 2 >= numbers.len();
        facts.segments.push(recovered.scan_segment(number, refresh, floor, &mut replay)?);
    }
    recovered.plan = recovery::plan(&facts);
    recovered.refuse_or_go_on()
}

impl Recovered {
    fn path(&self, number: SegmentNo) -> PathBuf {
        self.dir.join(segment::file_name(number))
    }

    fn scan_segment(
        &mut self,
        number: SegmentNo,
        refresh: bool,
        floor: Index,
        replay: &mut impl FnMut(&FoundBatch) -> Result<(), OpenError>,
    ) -> Result<SegmentFacts, OpenError> {
        let path = self.path(number);
        let reading = |source| OpenError::Unusable { path: path.clone(), doing: "reading", source };
        let file = self.disk.open(&path).map_err(reading)?;
        if refresh && !bites(Tooth::NoFlushAfterRecovery) {
            // A tail that was only in the page cache when the process died must not be served and then lost: make it
            // durable, drop the cache, and judge what the disk gives back.
            file.flush().map_err(|source| OpenError::FlushFailed { path: path.clone(), source })?;
            file.forget_cached().map_err(reading)?;
        }
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        let read = file.read_at(0, &mut bytes).map_err(reading)?;
        let header = SegmentHeader::decode(&bytes[..read], &self.options.shard, number);
        let HeaderRead::Sound(sound) = &header else {
            let content_behind_zeros = header == HeaderRead::Zero
                && !scan::is_zero_from(&*file, SEGMENT_HEADER_BYTES as u64).map_err(reading)?;
            return Ok(SegmentFacts { number, header, scan: None, content_behind_zeros });
        };
        let length = file.len().map_err(reading)?;
        self.segments.push(Segment::sealed(sound, length, &self.handles));
        let scan = scan::scan(&*file, sound, |batch| self.take(number, &batch, floor, replay).map_err(ScanError::Open))
            .map_err(|error| match error {
                ScanError::Open(error) => error,
                ScanError::Io(source) => reading(source),
            })?;
        Ok(SegmentFacts { number, header, scan: Some(scan), content_behind_zeros: false })
    }

    /// Holds a batch back until a later one, or the anchor, says that it is committed.
    fn take(
        &mut self,
        segment: SegmentNo,
        batch: &ScannedBatch<'_>,
        floor: Index,
        replay: &mut impl FnMut(&FoundBatch) -> Result<(), OpenError>,
    ) -> Result<(), OpenError> {
        let location = Location { segment, position: batch.position as u32, length: batch.header.length };
        self.uncommitted.push_back(FoundBatch { header: batch.header, location, bytes: batch.bytes.to_vec() });
        let committed = floor.max(batch.header.committed);
        while let Some(oldest) = self.uncommitted.pop_front_if(|oldest| oldest.header.index <= committed) {
            self.committed = oldest.header.index;
            replay(&oldest)?;
        }
        Ok(())
    }

    fn refuse_or_go_on(self) -> Result<Self, OpenError> {
        let file = |segment: Option<SegmentNo>| segment.map_or_else(|| self.dir.join(ANCHOR_FILE), |n| self.path(n));
        match &self.plan {
            Plan::Create { .. } | Plan::Open(_) => Ok(self),
            Plan::Refuse(Damage { segment, at, what }) => {
                Err(OpenError::Damaged { path: file(*segment), at: *at, what: what.clone() })
            }
            Plan::OtherFormat { file: segment, format } => {
                Err(OpenError::OtherFormat { path: file(*segment), found: format!("format {format}") })
            }
        }
    }

    /// Carries the plan out and gives the writer.
    ///
    /// # Errors
    /// [`OpenError`]; the log is then as it was or partly repaired, and the next open begins again.
    pub fn into_writer(self) -> Result<(LogWriter, OpenReport), OpenError> {
        let plan = self.plan.clone();
        match plan {
            Plan::Create { remove } => self.create(&remove),
            Plan::Open(plan) => self.repair(&plan),
            Plan::Refuse(_) | Plan::OtherFormat { .. } => unreachable!("a refused log never becomes a `Recovered`"),
        }
    }

    fn create(self, remove: &[SegmentNo]) -> Result<(LogWriter, OpenReport), OpenError> {
        let anchor_path = self.dir.join(ANCHOR_FILE);
        let replica = ReplicaId(1);
        let state = AnchorState {
            replica,
            generation: FIRST_GENERATION,
            vote: None,
            epoch: Epoch(self.options.entropy.number()),
            start: LogStart {
                segment: SegmentNo(0),
                offset: FIRST_OFFSET,
                index: FIRST_INDEX,
                generation: FIRST_GENERATION,
                configuration: Configuration { voters: vec![replica], learners: Vec::new() },
                configuration_index: Index(FIRST_INDEX.0 - 1),
            },
            commit_floor: Index(FIRST_INDEX.0 - 1),
            flushed: Index(FIRST_INDEX.0 - 1),
            flushed_next_offset: FIRST_OFFSET,
            newest_segment: SegmentNo(0),
            clean_stop: false,
            policy: self.options.policy,
            clock: Millis(0),
        };
        let report = OpenReport { created: true, unclean: false, cut: None, new_epoch: false, epoch: state.epoch };
        self.remove(remove)?;
        let anchor = Anchor::create(&*self.disk, &self.dir, state)
            .map_err(OpenError::unusable(anchor_path, "creating the anchor"))?;
        let tail = Tail { next_index: FIRST_INDEX, next_offset: FIRST_OFFSET, generation: FIRST_GENERATION };
        Ok((self.writer(anchor, tail, None), report))
    }

    fn remove(&self, numbers: &[SegmentNo]) -> Result<(), OpenError> {
        for &number in numbers {
            let path = self.path(number);
            self.disk.remove(&path).map_err(OpenError::unusable(path, "removing an unused segment"))?;
        }
        if !numbers.is_empty() {
            self.disk.flush_dir(&self.dir).map_err(OpenError::unusable(&self.dir, "flushing the directory"))?;
        }
        Ok(())
    }

    fn repair(mut self, plan: &OpenPlan) -> Result<(LogWriter, OpenReport), OpenError> {
        let Some(mut anchor) = self.anchor.take() else { unreachable!("a log is opened only with a sound anchor") };
        if !plan.below.is_empty() {
            // The trim may have ended between the anchor's two places: none may tell of a start whose files are gone.
            anchor
                .update_both(|_| {})
                .map_err(OpenError::unusable(self.dir.join(ANCHOR_FILE), "writing where the log begins"))?;
            self.remove(&plan.below)?;
        }
        self.remove(&plan.remove)?;
        let mut active = None;
        if let Some((number, at)) = plan.active {
            let path = self.path(number);
            let failed = |source| OpenError::FlushFailed { path: path.clone(), source };
            let segment = self.segments.last().filter(|segment| segment.number == number);
            let Some(segment) = segment else { unreachable!("the tail is in the newest scanned segment") };
            if plan.unclean {
                let file = segment.file().map_err(failed)?;
                if plan.cut.is_some() {
                    fill_with_zeros(&*file, at).map_err(failed)?;
                }
                if !bites(Tooth::NoFlushAfterRecovery) {
                    file.flush().map_err(failed)?;
                }
                self.disk.flush_dir(&self.dir).map_err(failed)?;
                file.set_len(at).map_err(failed)?;
                segment.reaches(at);
            } else {
                let file = segment.keep_open().map_err(failed)?;
                let capacity = segment.bytes();
                segment.reaches(at);
                active = Some(Active { segment: Arc::clone(segment), file, tail: at, capacity });
            }
        }
        if plan.new_epoch {
            let epoch = Epoch(self.options.entropy.number());
            anchor
                .update_both(|state| state.epoch = epoch)
                .map_err(OpenError::unusable(self.dir.join(ANCHOR_FILE), "writing a new epoch"))?;
        }
        let report = OpenReport {
            created: false,
            unclean: plan.unclean,
            cut: plan.cut,
            new_epoch: plan.new_epoch,
            epoch: anchor.state().epoch,
        };
        let tail = Tail { next_index: plan.next_index, next_offset: plan.next_offset, generation: plan.generation };
        Ok((self.writer(anchor, tail, active), report))
    }

    fn writer(self, anchor: Anchor, tail: Tail, active: Option<Active>) -> LogWriter {
        let segments = Arc::new(Segments::default());
        let mut sealed_bytes = 0;
        for segment in self.segments {
            sealed_bytes += segment.bytes();
            segments.push(segment);
        }
        sealed_bytes -= active.as_ref().map_or(0, |active| active.segment.bytes());
        LogWriter {
            disk: self.disk,
            dir: self.dir,
            options: self.options,
            clock: anchor.state().clock,
            anchor,
            segments,
            handles: self.handles,
            active,
            sealed_bytes,
            next_segment: SegmentNo(self.newest.0 + 1),
            spare: None,
            tail,
            flushed: Index(tail.next_index.0 - 1),
            failed: false,
            buffer: Vec::new(),
        }
    }

    /// The first offset that the log holds, or will hold.
    #[must_use]
    pub fn first_offset(&self) -> Offset {
        self.anchor.as_ref().map_or(FIRST_OFFSET, |anchor| anchor.state().start.offset)
    }

    /// The first index that the log holds, or will hold.
    #[must_use]
    pub fn first_index(&self) -> Index {
        self.anchor.as_ref().map_or(FIRST_INDEX, |anchor| anchor.state().start.index)
    }

    /// Where the log would begin if `index` were its first: only where a segment begins.
    #[must_use]
    pub fn start_at(&self, index: Index) -> Option<LogStart> {
        self.segments.iter().rfind(|segment| segment.base_index == index).map(|segment| segment.start())
    }

    /// Whether there is no log yet, so that [`Recovered::into_writer`] will begin one.
    #[must_use]
    pub fn is_new(&self) -> bool {
        matches!(self.plan, Plan::Create { .. })
    }
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

/// Overwrites everything from `at` to the end of the file with zeros.
fn fill_with_zeros(file: &dyn DiskFile, mut at: u64) -> io::Result<()> {
    let zeros = vec![0; ZERO_FILL_BYTES];
    let end = file.len()?;
    while at < end {
        let length = zeros.len().min((end - at) as usize);
        file.write_at(at, &zeros[..length])?;
        at += length as u64;
    }
    Ok(())
}
