//! One record back from where the index says it stands.
//!
//! Promise: a body is given only when length and CRC say that it is the record at that offset of that segment; a
//! segment stays readable as long as somebody holds it. Must never know what a body means.

use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use crate::core::log::disk::DiskFile;
use crate::core::log::frame;
use crate::core::types::{Location, Offset, SegmentNo};

/// An open segment file, as readers need it.
pub struct Segment {
    pub number: SegmentNo,
    pub salt: u32,
    pub file: Arc<dyn DiskFile>,
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
    /// Reads the record at `offset` into `scratch` and gives its body.
    ///
    /// # Errors
    /// [`ReadFault`]; the caller names shard and place in what it tells.
    pub fn read<'s>(
        &self,
        location: Location,
        offset: Offset,
        wait: Wait,
        scratch: &'s mut Vec<u8>,
    ) -> Result<&'s [u8], ReadFault> {
        scratch.resize(location.length as usize, 0);
        let position = u64::from(location.position);
        let read = match wait {
            Wait::Never => self.file.read_at_now(position, scratch),
            Wait::IfNeeded => self.file.read_at(position, scratch),
        };
        match read {
            Ok(read) if read == scratch.len() => {}
            Ok(_) => return Err(ReadFault::Mismatch("length (the file ends before it)")),
            Err(error) if wait == Wait::Never && error.kind() == io::ErrorKind::WouldBlock => {
                return Err(ReadFault::WouldBlock);
            }
            Err(error) => return Err(ReadFault::Io(error)),
        }
        frame::verified_body(scratch, offset, self.salt).ok_or(ReadFault::Mismatch("CRC"))
    }
}

/// The open segments of a shard, by number.
#[derive(Default)]
pub struct Segments(RwLock<Vec<Arc<Segment>>>);

impl Segments {
    #[must_use]
    pub fn get(&self, number: SegmentNo) -> Option<Arc<Segment>> {
        let segments = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let at = segments.binary_search_by_key(&number, |segment| segment.number).ok()?;
        segments.get(at).cloned()
    }

    /// Adds a segment; its number must be above all others.
    pub(super) fn push(&self, segment: Arc<Segment>) {
        let mut segments = self.0.write().unwrap_or_else(PoisonError::into_inner);
        assert!(segments.last().is_none_or(|last| last.number < segment.number), "segments are added in order");
        segments.push(segment);
    }
}
