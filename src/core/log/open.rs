//! Opening a log: a survey that is carried out and then turns into the writer.
//!
//! Promise: nothing is appended before the log is surveyed, judged by `recovery` and repaired; nothing read here is
//! served before it is flushed. "Recover, then append" cannot be done in the wrong order. Must never know a key.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::core::error::OpenError;
use crate::core::limits::ZERO_FILL_BYTES;
use crate::core::log::anchor::{ANCHOR_FILE, Anchor, AnchorState};
use crate::core::log::disk::{Disk, DiskFile};
use crate::core::log::handles::Handles;
use crate::core::log::reader::{Segment, Segments};
use crate::core::log::recovery::{OpenPlan, Plan};
use crate::core::log::start::LogStart;
use crate::core::log::survey::{FoundBatch, Look, Survey, path_in};
use crate::core::log::writer::{Active, LogOptions, LogWriter, Tail};
use crate::core::progress::Progress;
use crate::core::types::{Configuration, Epoch, Generation, Index, Millis, Offset, ReplicaId, SegmentNo};
use crate::teeth::{Tooth, bites};

/// The first batch of a log has this index: every group starts as if trimmed below it.
pub const FIRST_INDEX: Index = Index(2);
/// The generation of the (never written) batch before the first.
pub const FIRST_GENERATION: Generation = Generation(1);
/// The first offset; 0 is left to mean "no revision".
pub const FIRST_OFFSET: Offset = Offset(1);

/// A log that was surveyed and may be opened; not yet repaired and not yet writable.
pub struct Recovered {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    options: LogOptions,
    pub survey: Survey,
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

/// Surveys the log in `dir` and hands every batch known to be committed, in order, to `replay`. After an unclean stop,
/// what was never flushed is made durable first, so that what is judged is what the disk gives back.
///
/// # Errors
/// [`OpenError`] when the log may not be opened; nothing was changed then.
pub fn recover(
    disk: Arc<dyn Disk>,
    dir: &Path,
    options: LogOptions,
    progress: &Progress,
    mut replay: impl FnMut(&FoundBatch<'_>) -> Result<(), OpenError>,
) -> Result<Recovered, OpenError> {
    let look = Look::at(&*disk, dir)?;
    for number in look.unflushed() {
        if !bites(Tooth::NoFlushAfterRecovery) {
            refresh(&*disk, &path_in(dir, Some(*number)))?;
        }
    }
    let survey = look.survey(&*disk, &options.shard, progress, &mut replay)?;
    match survey.refusal(dir) {
        Some(error) => Err(error),
        None => Ok(Recovered { disk, dir: dir.to_owned(), options, survey }),
    }
}

/// A tail that was only in the page cache when the process died must not be served and then lost: makes it durable, and
/// drops the cache.
fn refresh(disk: &dyn Disk, path: &Path) -> Result<(), OpenError> {
    let file = disk.open(path).map_err(OpenError::unusable(path, "reading"))?;
    file.flush().map_err(|source| OpenError::FlushFailed { path: path.to_owned(), source })?;
    file.forget_cached().map_err(OpenError::unusable(path, "reading"))
}

impl Recovered {
    fn path(&self, number: SegmentNo) -> PathBuf {
        path_in(&self.dir, Some(number))
    }

    /// Carries the plan out and gives the writer.
    ///
    /// # Errors
    /// [`OpenError`]; the log is then as it was or partly repaired, and the next open begins again.
    pub fn into_writer(self) -> Result<(LogWriter, OpenReport), OpenError> {
        let plan = self.survey.plan.clone();
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
        self.disk.create_dir(&self.dir).map_err(OpenError::unusable(&self.dir, "creating the shard's directory"))?;
        self.remove(remove)?;
        let anchor = Anchor::create(&*self.disk, &self.dir, state)
            .map_err(OpenError::unusable(anchor_path, "creating the anchor"))?;
        let tail = Tail { next_index: FIRST_INDEX, next_offset: FIRST_OFFSET, generation: FIRST_GENERATION };
        let handles = self.handles();
        Ok((self.writer(anchor, tail, handles, Vec::new(), None), report))
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

    fn repair(self, plan: &OpenPlan) -> Result<(LogWriter, OpenReport), OpenError> {
        let mut anchor = self.open_anchor()?;
        if !plan.below.is_empty() {
            // The trim may have ended between the anchor's two places: the other learns the start before its files go.
            anchor
                .update(|_| {})
                .map_err(OpenError::unusable(self.dir.join(ANCHOR_FILE), "writing where the log begins"))?;
            self.remove(&plan.below)?;
        }
        self.remove(&plan.remove)?;
        let handles = self.handles();
        let segments: Vec<Arc<Segment>> =
            self.survey.headers().map(|(header, facts)| Segment::sealed(header, facts.bytes, &handles)).collect();
        let mut active = None;
        if let Some((number, at)) = plan.active {
            let segment = segments.last().filter(|segment| segment.number == number);
            let Some(segment) = segment else { unreachable!("the tail is in the newest sound segment") };
            active = self.go_on_in(segment, at, plan)?;
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
        Ok((self.writer(anchor, tail, handles, segments, active), report))
    }

    fn open_anchor(&self) -> Result<Anchor, OpenError> {
        let Some(state) = self.survey.facts.anchor.state() else {
            unreachable!("a log is opened only with a sound anchor")
        };
        let path = path_in(&self.dir, None);
        let opened = Anchor::open(&*self.disk, &self.dir, state).map_err(OpenError::unusable(&path, "opening"))?;
        opened.ok_or_else(|| {
            let changed = io::Error::other("somebody changed it while the log was read");
            OpenError::Unusable { path, doing: "opening", source: changed }
        })
    }

    /// Makes `segment`, which ends at byte `at`, durable or the one that takes the next batch.
    fn go_on_in(&self, segment: &Arc<Segment>, at: u64, plan: &OpenPlan) -> Result<Option<Active>, OpenError> {
        let path = self.path(segment.number);
        let failed = |source| OpenError::FlushFailed { path: path.clone(), source };
        let file = self.disk.open(&path).map_err(failed)?;
        if !plan.unclean {
            let capacity = segment.bytes();
            segment.keep(Arc::clone(&file));
            segment.reaches(at);
            return Ok(Some(Active { segment: Arc::clone(segment), file, tail: at, capacity }));
        }
        if plan.cut.is_some() {
            fill_with_zeros(&*file, at).map_err(failed)?;
        }
        if !bites(Tooth::NoFlushAfterRecovery) {
            file.flush().map_err(failed)?;
        }
        self.disk.flush_dir(&self.dir).map_err(failed)?;
        file.set_len(at).map_err(failed)?;
        segment.reaches(at);
        Ok(None)
    }

    fn handles(&self) -> Arc<Handles> {
        Handles::new(Arc::clone(&self.disk), self.dir.clone(), self.options.max_open_segments)
    }

    fn writer(
        self,
        anchor: Anchor,
        tail: Tail,
        handles: Arc<Handles>,
        held: Vec<Arc<Segment>>,
        active: Option<Active>,
    ) -> LogWriter {
        let segments = Arc::new(Segments::default());
        let mut sealed_bytes = 0;
        for segment in held {
            sealed_bytes += segment.bytes();
            segments.push(segment);
        }
        let newest = self.survey.facts.segments.last().map(|segment| segment.number).unwrap_or_default();
        sealed_bytes -= active.as_ref().map_or(0, |active| active.segment.bytes());
        LogWriter {
            disk: self.disk,
            dir: self.dir,
            options: self.options,
            clock: anchor.state().clock,
            anchor,
            segments,
            handles,
            active,
            sealed_bytes,
            next_segment: SegmentNo(newest.0 + 1),
            spare: None,
            tail,
            flushed: Index(tail.next_index.0 - 1),
            failed: false,
            buffer: Vec::new(),
        }
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

#[cfg(test)]
mod tests;
