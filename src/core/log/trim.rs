//! The log loses its beginning.
//!
//! Promise: before a file goes, everything that replaces it is flushed, whatever the policy, and both places of the
//! anchor say where the log begins now; whoever holds a segment goes on reading it. Must never know why nothing before
//! that is needed any more.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::core::log::disk::Disk;
use crate::core::log::segment;
use crate::core::log::start::LogStart;
use crate::core::log::writer::LogWriter;
use crate::core::types::{Index, SegmentNo};
use crate::teeth::{Tooth, bites};

/// The files that a trim left without a use. They may be removed on another thread and in any order: should the process
/// die first, the next open removes them.
#[must_use = "the files take room until this is carried out"]
pub struct Removal {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// The segments with the bytes of their files.
    files: Vec<(SegmentNo, u64)>,
}

impl Removal {
    /// Whether there is nothing to remove.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// What the files take.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, bytes)| bytes).sum()
    }

    /// Removes the files and flushes the directory; gives the bytes they took.
    ///
    /// # Errors
    /// The first thing the disk reported. The other files are gone nevertheless, and nothing is lost by any of it.
    pub fn carry_out(self) -> io::Result<u64> {
        let mut outcome = Ok(0);
        for (number, bytes) in &self.files {
            let removed = self.disk.remove(&self.dir.join(segment::file_name(*number)));
            outcome = outcome.and_then(|sum| removed.map(|()| sum + bytes));
        }
        if !self.files.is_empty() {
            outcome = outcome.and_then(|sum| self.disk.flush_dir(&self.dir).map(|()| sum));
        }
        outcome
    }
}

impl LogWriter {
    /// Where the log would begin if `segment` were its first.
    #[must_use]
    pub fn start_of(&self, segment: SegmentNo) -> Option<LogStart> {
        self.segments.get(segment).map(|segment| segment.start())
    }

    /// Where the log would begin if `index` were its first: only where a segment begins.
    #[must_use]
    pub fn start_at(&self, index: Index) -> Option<LogStart> {
        self.segments.beginning_at(index).map(|segment| segment.start())
    }

    /// Lets the log begin at `start`, which [`LogWriter::start_of`] gave: flushes what is unflushed, notes the start in
    /// the anchor, forgets the segments below, and gives their files to be removed. At or below the present start it
    /// does nothing. No flush may be under way.
    ///
    /// # Errors
    /// The disk's; the writer then takes nothing more.
    pub fn trim(&mut self, start: &LogStart) -> io::Result<Removal> {
        self.usable()?;
        let trimmed = self.try_trim(start);
        self.failed |= trimmed.is_err();
        trimmed
    }

    fn try_trim(&mut self, start: &LogStart) -> io::Result<Removal> {
        // By segment, not by index: one that was begun and holds no batch has the same index as the next.
        if self.segments.first().is_none_or(|first| start.segment <= first.number) {
            return Ok(self.removal(Vec::new()));
        }
        assert_eq!(self.start_of(start.segment).as_ref(), Some(start), "a log begins where one of its segments does");
        if bites(Tooth::UnlinkBeforeFlush) {
            let files = self.lose_below(start.segment)?;
            self.removal(files).carry_out()?;
        }
        if self.has_unflushed()
            && let Some(file) = self.flush_target()
        {
            let last = Index(self.tail.next_index.0 - 1);
            self.flushed_upto(last, file.flush())?;
        }
        let noted = self.noted();
        // Both places: one that still told of the old start would, once the other is lost, ask for files that are gone.
        self.anchor.update_both(|state| {
            noted.write(state);
            state.start = start.clone();
        })?;
        let files = self.lose_below(start.segment)?;
        Ok(self.removal(files))
    }

    fn removal(&self, files: Vec<(SegmentNo, u64)>) -> Removal {
        Removal { disk: Arc::clone(&self.disk), dir: self.dir.clone(), files }
    }

    /// Forgets the segments below `first`; gives their files.
    fn lose_below(&mut self, first: SegmentNo) -> io::Result<Vec<(SegmentNo, u64)>> {
        let lost = self.segments.drop_below(first)?;
        let files: Vec<(SegmentNo, u64)> = lost.iter().map(|segment| (segment.number, segment.bytes())).collect();
        self.sealed_bytes -= files.iter().map(|(_, bytes)| bytes).sum::<u64>();
        Ok(files)
    }
}

#[cfg(test)]
mod tests;
