//! One record back from where the index says it stands.
//!
//! Promise: a body is given only when length and CRC say that it is the record at that offset of that segment; a
//! segment stays readable as long as somebody holds it, also when the log has lost it meanwhile. Must never know what a
//! body means.
//!
//! Lock order: the table, then nothing; a segment's handle is locked alone.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::core::log::disk::DiskFile;
use crate::core::log::frame;
use crate::core::log::handles::Handles;
use crate::core::log::segment::SegmentHeader;
use crate::core::log::start::LogStart;
use crate::core::types::{Configuration, Generation, Index, Location, Offset, SegmentNo};

/// A segment file that the log holds. An `Arc` of it is a pin: what stands in it can be read as long as that lives.
pub struct Segment {
    pub number: SegmentNo,
    pub salt: u32,
    pub base_offset: Offset,
    pub base_index: Index,
    /// The generation of the batch before the first one here.
    pub previous_generation: Generation,
    pub configuration: Configuration,
    pub configuration_index: Index,
    /// Bytes up to the tail while it takes batches, of the file once it is sealed.
    bytes: AtomicU64,
    handles: Arc<Handles>,
    handle: RwLock<Handle>,
    /// Whether somebody read in it since it was last asked.
    used: AtomicBool,
}

#[derive(Default)]
struct Handle {
    file: Option<Arc<dyn DiskFile>>,
    /// Never to be closed: it takes batches, or its name is gone.
    kept: bool,
}

/// Why a record could not be read.
#[derive(Debug)]
pub enum ReadFault {
    /// Only for [`Wait::Never`]: the disk would have to be waited for.
    WouldBlock,
    Io(io::Error),
    /// What stands there is not that record.
    Mismatch(&'static str),
}

/// Whether a read may wait for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    Never,
    IfNeeded,
}

impl Segment {
    /// A segment whose file is not open yet.
    pub(super) fn sealed(header: &SegmentHeader, bytes: u64, handles: &Arc<Handles>) -> Arc<Self> {
        Arc::new(Self {
            number: header.number,
            salt: header.salt,
            base_offset: header.base_offset,
            base_index: header.base_index,
            previous_generation: header.previous_generation,
            configuration: header.configuration.clone(),
            configuration_index: header.configuration_index,
            bytes: AtomicU64::new(bytes),
            handles: Arc::clone(handles),
            handle: RwLock::default(),
            used: AtomicBool::new(false),
        })
    }

    /// Where it begins, as a log that holds nothing older would begin.
    #[must_use]
    pub fn start(&self) -> LogStart {
        LogStart {
            segment: self.number,
            offset: self.base_offset,
            index: self.base_index,
            generation: self.previous_generation,
            configuration: self.configuration.clone(),
            configuration_index: self.configuration_index,
        }
    }

    /// Bytes up to the tail while it takes batches, of the file once it is sealed.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn reaches(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// The open file; opened if it is not.
    ///
    /// # Errors
    /// Whatever the disk reports.
    pub fn file(self: &Arc<Self>) -> io::Result<Arc<dyn DiskFile>> {
        if let Some(file) = Self::use_file(&self.look(), &self.used) {
            return Ok(file);
        }
        let mut handle = self.change();
        if let Some(file) = Self::use_file(&handle, &self.used) {
            return Ok(file);
        }
        let file = self.handles.open(self.number)?;
        handle.file = Some(Arc::clone(&file));
        drop(handle);
        self.handles.admit(self);
        Ok(file)
    }

    /// The file if it is open: to open one is to wait for the disk.
    fn file_now(&self) -> Option<Arc<dyn DiskFile>> {
        Self::use_file(&*self.handle.try_read().ok()?, &self.used)
    }

    fn use_file(handle: &Handle, used: &AtomicBool) -> Option<Arc<dyn DiskFile>> {
        let file = handle.file.as_ref()?;
        // Looked at first: readers on several threads must not write to one cache line at each read.
        if !used.load(Ordering::Relaxed) {
            used.store(true, Ordering::Relaxed);
        }
        Some(Arc::clone(file))
    }

    /// Keeps the file open until [`Segment::seal`], or for good.
    pub(super) fn keep_open(&self) -> io::Result<Arc<dyn DiskFile>> {
        let mut handle = self.change();
        let file = match &handle.file {
            Some(file) => Arc::clone(file),
            None => self.handles.open(self.number)?,
        };
        *handle = Handle { file: Some(Arc::clone(&file)), kept: true };
        Ok(file)
    }

    /// As [`Segment::keep_open`], with a file that is open.
    pub(super) fn keep(&self, file: Arc<dyn DiskFile>) {
        *self.change() = Handle { file: Some(file), kept: true };
    }

    /// It takes no more batches: from here on it may be closed.
    pub(super) fn seal(self: &Arc<Self>, bytes: u64) {
        self.reaches(bytes);
        self.change().kept = false;
        self.handles.admit(self);
    }

    /// Whether somebody read in it since this was last asked.
    pub(super) fn was_used(&self) -> bool {
        self.used.swap(false, Ordering::Relaxed)
    }

    /// Closes the file unless it is kept; a reader that has it goes on reading.
    pub(super) fn close(&self) {
        let mut handle = self.change();
        if !handle.kept {
            handle.file = None;
        }
    }

    fn look(&self) -> RwLockReadGuard<'_, Handle> {
        self.handle.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self) -> RwLockWriteGuard<'_, Handle> {
        self.handle.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fills `into` with the bytes from `position` on.
    ///
    /// # Errors
    /// [`ReadFault`], also when the file ends before `into` is full.
    pub fn read_exactly(self: &Arc<Self>, position: u64, into: &mut [u8], wait: Wait) -> Result<(), ReadFault> {
        let read = match wait {
            Wait::Never => self.file_now().ok_or(ReadFault::WouldBlock)?.read_at_now(position, into),
            Wait::IfNeeded => self.file().map_err(ReadFault::Io)?.read_at(position, into),
        };
        match read {
            Ok(read) if read == into.len() => Ok(()),
            Ok(_) => Err(ReadFault::Mismatch("length (the file ends before it)")),
            Err(error) if wait == Wait::Never && error.kind() == io::ErrorKind::WouldBlock => {
                Err(ReadFault::WouldBlock)
            }
            Err(error) => Err(ReadFault::Io(error)),
        }
    }

    /// Reads the record at `offset` into `scratch` and gives its body.
    ///
    /// # Errors
    /// [`ReadFault`]; the caller names shard and place in what it tells.
    pub fn read<'s>(
        self: &Arc<Self>,
        location: Location,
        offset: Offset,
        wait: Wait,
        scratch: &'s mut Vec<u8>,
    ) -> Result<&'s [u8], ReadFault> {
        scratch.resize(location.length as usize, 0);
        self.read_exactly(u64::from(location.position), scratch, wait)?;
        frame::verified_body(scratch, offset, self.salt).ok_or(ReadFault::Mismatch("CRC"))
    }
}

/// The segments that a log holds, by number.
#[derive(Default)]
pub struct Segments(RwLock<Vec<Arc<Segment>>>);

impl Segments {
    #[must_use]
    pub fn get(&self, number: SegmentNo) -> Option<Arc<Segment>> {
        let segments = self.look();
        let at = segments.binary_search_by_key(&number, |segment| segment.number).ok()?;
        segments.get(at).cloned()
    }

    /// All of them, oldest first. Each is pinned as long as the caller holds it.
    #[must_use]
    pub fn held(&self) -> Vec<Arc<Segment>> {
        self.look().clone()
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.look().len()
    }

    /// The oldest.
    #[must_use]
    pub fn first(&self) -> Option<Arc<Segment>> {
        self.look().first().cloned()
    }

    /// The newest.
    #[must_use]
    pub fn newest(&self) -> Option<Arc<Segment>> {
        self.look().last().cloned()
    }

    /// The oldest and the one after it, when there is one: then the oldest takes no more batches.
    #[must_use]
    pub fn oldest_sealed(&self) -> Option<(Arc<Segment>, Arc<Segment>)> {
        match &**self.look() {
            [oldest, next, ..] => Some((Arc::clone(oldest), Arc::clone(next))),
            _ => None,
        }
    }

    /// The one whose first batch has this index.
    #[must_use]
    pub fn beginning_at(&self, index: Index) -> Option<Arc<Segment>> {
        let segments = self.look();
        // Bases never fall, and rise with each batch: of several without a batch, the last has what follows.
        let after = segments.partition_point(|segment| segment.base_index <= index);
        segments[..after].last().filter(|segment| segment.base_index == index).cloned()
    }

    /// Adds a segment; its number must be above all others.
    pub(super) fn push(&self, segment: Arc<Segment>) {
        let mut segments = self.0.write().unwrap_or_else(PoisonError::into_inner);
        assert!(segments.last().is_none_or(|last| last.number < segment.number), "segments are added in order");
        segments.push(segment);
    }

    /// Takes out every segment below `number` and gives them. Those that somebody holds are opened first and stay open:
    /// their names may go, and no read of them fails.
    ///
    /// # Errors
    /// The disk's, when one of those could not be opened; all are out of the table then.
    pub(super) fn drop_below(&self, number: SegmentNo) -> io::Result<Vec<Arc<Segment>>> {
        let dropped: Vec<Arc<Segment>> = {
            let mut segments = self.0.write().unwrap_or_else(PoisonError::into_inner);
            let below = segments.partition_point(|segment| segment.number < number);
            segments.drain(..below).collect()
        };
        // Nobody finds them any more, so whoever is not counted now never will be.
        for segment in dropped.iter().filter(|segment| Arc::strong_count(segment) > 1) {
            segment.keep_open()?;
        }
        Ok(dropped)
    }

    fn look(&self) -> RwLockReadGuard<'_, Vec<Arc<Segment>>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
