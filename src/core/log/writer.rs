//! Append and flush: the one writer of a shard's log.
//!
//! Promise: one write per batch, never split over segments; a segment is flushed before the next is begun and a file's
//! entry before a batch in it counts; after the first failure nothing is written any more. The caller says when to
//! flush and may run the flush elsewhere, but never two at once. Must never know a key or who waits.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::core::entropy::Entropy;
use crate::core::limits::AWAITED_ZERO_FILL_BYTES;
use crate::core::log::FsyncPolicy;
use crate::core::log::anchor::{Anchor, AnchorState};
use crate::core::log::disk::{Disk, DiskFile};
use crate::core::log::frame::{self, Place};
use crate::core::log::handles::Handles;
use crate::core::log::reader::{Segment, Segments};
use crate::core::log::segment::{self, SEGMENT_HEADER_BYTES, SegmentHeader};
use crate::core::types::{Generation, Index, Location, Millis, Offset, ReplicaId, SegmentNo, ShardId};

/// What a log needs to know beside its directory.
pub struct LogOptions {
    pub shard: ShardId,
    /// Bytes of a segment file.
    pub segment_bytes: u32,
    pub policy: FsyncPolicy,
    /// Sealed segments whose files are open at a time.
    pub max_open_segments: usize,
    pub entropy: Arc<Entropy>,
}

/// The segment that takes the next batch.
pub(super) struct Active {
    pub(super) segment: Arc<Segment>,
    pub(super) file: Arc<dyn DiskFile>,
    /// Where the next batch begins.
    pub(super) tail: u64,
    /// Bytes of the file.
    pub(super) capacity: u64,
}

/// How far the log reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    pub next_index: Index,
    pub next_offset: Offset,
    /// The generation of the last batch.
    pub generation: Generation,
}

/// The writer; made by [`super::open::Recovered::into_writer`] only, so it cannot exist before the log is repaired.
pub struct LogWriter {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: PathBuf,
    pub(super) options: LogOptions,
    pub(super) anchor: Anchor,
    pub(super) segments: Arc<Segments>,
    pub(super) handles: Arc<Handles>,
    pub(super) active: Option<Active>,
    /// Bytes of the held segments but the active one.
    pub(super) sealed_bytes: u64,
    pub(super) next_segment: SegmentNo,
    pub(super) spare: Option<Spare>,
    pub(super) tail: Tail,
    pub(super) flushed: Index,
    /// The newest time of the expiry clock, to be noted with the next change of the anchor.
    pub(super) clock: Millis,
    pub(super) failed: bool,
    pub(super) buffer: Vec<u8>,
}

/// A zero-filled, flushed file that waits to become the next segment.
pub struct Spare {
    number: SegmentNo,
    bytes: u64,
    file: Arc<dyn DiskFile>,
}

/// A [`Spare`] in the making; the pieces may be filled on another thread, with pauses between them.
pub struct SpareOrder {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    number: SegmentNo,
    bytes: u64,
    /// The file and how much of it is filled, once begun.
    begun: Option<(Arc<dyn DiskFile>, u64)>,
}

impl SpareOrder {
    /// Fills and flushes the next `piece` bytes with zeros; gives the spare after the last. A spare's directory entry is
    /// flushed before it is given out.
    ///
    /// # Errors
    /// Whatever the disk reports; a half-made file is removed.
    pub fn fill(mut self, piece: usize) -> io::Result<Progress> {
        let (file, at) = match self.begun.take() {
            Some(begun) => begun,
            None => (self.create()?, 0),
        };
        let length = (self.bytes - at).min(piece as u64);
        let filled = file.write_at(at, &vec![0; length as usize]).and_then(|()| file.flush());
        if let Err(error) = filled {
            // What there was room for is given back: whoever frees some must not find it taken.
            let _ = self.disk.remove(&self.path());
            return Err(error);
        }
        if at + length < self.bytes {
            self.begun = Some((file, at + length));
            return Ok(Progress::More(self));
        }
        self.disk.flush_dir(&self.dir)?;
        Ok(Progress::Done(Spare { number: self.number, bytes: self.bytes, file }))
    }

    /// Bytes that are still to be filled.
    #[must_use]
    pub fn unfilled_bytes(&self) -> u64 {
        self.bytes - self.begun.as_ref().map_or(0, |(_, filled)| *filled)
    }

    fn path(&self) -> PathBuf {
        self.dir.join(segment::file_name(self.number))
    }

    fn create(&self) -> io::Result<Arc<dyn DiskFile>> {
        let path = self.path();
        if self.disk.exists(&path)? {
            self.disk.remove(&path)?;
        }
        self.disk.create(&path)
    }

    /// Makes the spare without a pause, for a caller who waits for it.
    ///
    /// # Errors
    /// As [`SpareOrder::fill`].
    pub fn fill_all(self) -> io::Result<Spare> {
        let mut order = self;
        loop {
            match order.fill(AWAITED_ZERO_FILL_BYTES)? {
                Progress::More(rest) => order = rest,
                Progress::Done(spare) => return Ok(spare),
            }
        }
    }
}

/// How far a [`SpareOrder`] got.
pub enum Progress {
    More(SpareOrder),
    Done(Spare),
}

impl LogWriter {
    #[must_use]
    pub fn tail(&self) -> Tail {
        self.tail
    }

    /// The newest batch known to be flushed.
    #[must_use]
    pub fn flushed(&self) -> Index {
        self.flushed
    }

    #[must_use]
    pub fn anchor(&self) -> &Anchor {
        &self.anchor
    }

    #[must_use]
    pub fn segments(&self) -> Arc<Segments> {
        Arc::clone(&self.segments)
    }

    /// Appends one finished batch with a single write; gives where it begins. It is not flushed yet.
    ///
    /// # Errors
    /// The disk's. The writer then takes nothing more: what reached the disk is unknown.
    pub fn append(&mut self, batch: &[u8], place: Place, now: Millis) -> io::Result<Location> {
        self.usable()?;
        let written = self.try_append(batch, place, now);
        self.failed |= written.is_err();
        written
    }

    pub(super) fn usable(&self) -> io::Result<()> {
        if self.failed {
            return Err(io::Error::other("the log failed earlier and takes no more writes"));
        }
        Ok(())
    }

    fn try_append(&mut self, batch: &[u8], place: Place, now: Millis) -> io::Result<Location> {
        assert_eq!(place.index, self.tail.next_index, "batches are appended in order");
        if !self.fits(batch.len()) {
            self.begin_segment(batch.len(), now)?;
        }
        let Some(active) = self.active.as_mut() else { return Err(io::Error::other("no segment to append to")) };
        self.buffer.clear();
        let header = frame::seal_into(&mut self.buffer, batch, place, active.segment.salt)
            .map_err(|error| io::Error::other(format!("a batch that is not as built: {error:?}")))?;
        active.file.write_at(active.tail, &self.buffer)?;
        let position = active.tail as u32;
        active.tail += u64::from(header.length);
        active.segment.reaches(active.tail);
        self.tail =
            Tail { next_index: header.index.next(), next_offset: header.next_offset(), generation: header.generation };
        if self.buffer.capacity() > 4 * 1024 * 1024 {
            self.buffer = Vec::new();
        }
        Ok(Location { segment: active.segment.number, position, length: header.length })
    }

    /// Whether `bytes` more fit into the active segment.
    #[must_use]
    pub fn fits(&self, bytes: usize) -> bool {
        self.active.as_ref().is_some_and(|active| active.tail + bytes as u64 <= active.capacity)
    }

    /// Flushes and ends the active segment and begins the next one. Its header is flushed before a batch follows it, so
    /// that a header of zeros always means that nothing was ever written behind it.
    fn begin_segment(&mut self, batch_bytes: usize, now: Millis) -> io::Result<()> {
        if batch_bytes + SEGMENT_HEADER_BYTES > self.options.segment_bytes as usize {
            return Err(io::Error::other(format!("a batch of {batch_bytes} bytes is larger than a segment")));
        }
        if let Some(active) = self.active.take() {
            active.file.flush()?;
            self.flushed = Index(self.tail.next_index.0 - 1);
            // The unused zeros behind the tail are given back; should a power cut undo this, they are zeros still.
            active.file.set_len(active.tail)?;
            self.sealed_bytes += active.tail;
            active.segment.seal(active.tail);
        }
        let spare = match self.spare.take() {
            Some(spare) => spare,
            None => self.order_spare().fill_all()?,
        };
        let state = self.anchor.state();
        let header = SegmentHeader {
            shard: self.options.shard.clone(),
            number: spare.number,
            epoch: state.epoch,
            salt: self.options.entropy.number() as u32,
            base_offset: self.tail.next_offset,
            base_index: self.tail.next_index,
            previous_generation: self.tail.generation,
            configuration: state.start.configuration.clone(),
            configuration_index: state.start.configuration_index,
            created: now,
        };
        spare.file.write_at(0, &header.encode())?;
        spare.file.flush()?;
        // From here on an open without this segment is refused, and so is one without what stands in those before it.
        let noted = self.noted();
        self.anchor.update(|state| {
            noted.write(state);
            state.newest_segment = header.number;
        })?;
        let tail = SEGMENT_HEADER_BYTES as u64;
        let segment = Segment::sealed(&header, tail, &self.handles);
        segment.keep(Arc::clone(&spare.file));
        self.segments.push(Arc::clone(&segment));
        self.next_segment = SegmentNo(spare.number.0 + 1);
        self.active = Some(Active { segment, file: spare.file, tail, capacity: spare.bytes });
        Ok(())
    }

    fn order_spare(&self) -> SpareOrder {
        SpareOrder {
            disk: Arc::clone(&self.disk),
            dir: self.dir.clone(),
            number: self.next_segment,
            bytes: u64::from(self.options.segment_bytes),
            begun: None,
        }
    }

    /// The order for the next segment's file, once the active one is half full, or at once if somebody waits for it, and
    /// none is there; give the result to [`LogWriter::accept_spare`] before asking again.
    #[must_use]
    pub fn spare_wanted(&self, waited_for: bool) -> Option<SpareOrder> {
        let half_full = self.active.as_ref().is_some_and(|active| active.tail > active.capacity / 2);
        ((half_full || waited_for) && self.spare.is_none() && !self.failed).then(|| self.order_spare())
    }

    /// Takes a spare made elsewhere, unless the segment it was meant for was begun meanwhile.
    pub fn accept_spare(&mut self, spare: Spare) {
        if spare.number == self.next_segment {
            self.spare = Some(spare);
        }
    }

    /// Whether batches were appended that no flush covers yet.
    #[must_use]
    pub fn has_unflushed(&self) -> bool {
        self.flushed.next() < self.tail.next_index
    }

    /// The file whose flush makes everything appended so far durable; none after a failure: no flush is tried again.
    #[must_use]
    pub fn flush_target(&self) -> Option<Arc<dyn DiskFile>> {
        self.active.as_ref().filter(|_| !self.failed).map(|active| Arc::clone(&active.file))
    }

    /// Takes the result of flushing [`LogWriter::flush_target`] after batch `upto` was appended.
    ///
    /// # Errors
    /// Passes a failed flush on; the writer then takes nothing more and no flush is ever tried again.
    pub fn flushed_upto(&mut self, upto: Index, result: io::Result<()>) -> io::Result<()> {
        self.usable()?;
        self.failed |= result.is_err();
        result?;
        self.flushed = self.flushed.max(upto);
        Ok(())
    }

    /// Makes a vote durable, in both places of the anchor, whatever the policy.
    ///
    /// # Errors
    /// The disk's; the writer then takes nothing more.
    pub fn save_vote(&mut self, generation: Generation, vote: Option<ReplicaId>) -> io::Result<()> {
        self.usable()?;
        let policy = self.options.policy;
        let noted = self.noted();
        let saved = self.anchor.update_both(|state| {
            noted.write(state);
            state.generation = generation;
            state.vote = vote;
            state.clean_stop = false;
            state.policy = policy;
        });
        self.failed |= saved.is_err();
        saved
    }

    /// Notes in the anchor how far the log is flushed; `clean_stop` when nothing will follow.
    ///
    /// # Errors
    /// The disk's; the writer then takes nothing more.
    pub fn note_flushed(&mut self, clean_stop: bool) -> io::Result<()> {
        self.usable()?;
        let clean_stop = clean_stop && !self.has_unflushed();
        let noted = self.noted();
        let written = self.anchor.update(|state| {
            noted.write(state);
            state.clean_stop = clean_stop;
        });
        self.failed |= written.is_err();
        written
    }

    /// Remembers how far the expiry clock came; the anchor learns it with its next change.
    pub fn note_clock(&mut self, now: Millis) {
        self.clock = self.clock.max(now);
    }

    pub(super) fn noted(&self) -> Noted {
        Noted { flushed: self.flushed, tail: self.tail, clock: self.clock }
    }

    /// Bytes of the log: of all segments held, up to the tail.
    #[must_use]
    pub fn log_bytes(&self) -> u64 {
        self.sealed_bytes + self.active.as_ref().map_or(0, |active| active.tail)
    }

    /// Bytes that the log's files take, what is allocated ahead included.
    #[must_use]
    pub fn disk_bytes(&self) -> u64 {
        let active = self.active.as_ref().map_or(0, |active| active.capacity);
        self.sealed_bytes + active + self.spare.as_ref().map_or(0, |spare| spare.bytes)
    }

    /// Bytes of a segment file that is made now.
    #[must_use]
    pub fn segment_bytes(&self) -> u64 {
        u64::from(self.options.segment_bytes)
    }

    /// Bytes of batches that fit into the active segment.
    #[must_use]
    pub fn active_left(&self) -> u64 {
        self.active.as_ref().map_or(0, |active| active.capacity.saturating_sub(active.tail))
    }

    /// Bytes of batches that fit into the segment made ahead, 0 while there is none.
    #[must_use]
    pub fn spare_left(&self) -> u64 {
        self.spare.as_ref().map_or(0, |spare| spare.bytes.saturating_sub(SEGMENT_HEADER_BYTES as u64))
    }
}

/// What every change of the anchor notes beside its own.
#[derive(Clone, Copy)]
pub(super) struct Noted {
    flushed: Index,
    tail: Tail,
    clock: Millis,
}

impl Noted {
    pub(super) fn write(self, state: &mut AnchorState) {
        state.flushed = self.flushed;
        // One voter: what is flushed here is committed. With more the engine's commit index is the bound.
        state.commit_floor = self.flushed;
        if self.flushed.next() == self.tail.next_index {
            state.flushed_next_offset = self.tail.next_offset;
        }
        state.clock = self.clock;
    }
}
