//! One value back from the log: the record the index names, verified.
//!
//! Promise: CRC (with the offset in it), key and revision are checked on every read; what does not match is an error,
//! never a miss. Must never know how the value is told to a client.

use std::sync::Arc;

use crate::core::error::ReadError;
use crate::core::index::Entry;
use crate::core::log::reader::{ReadFault, Segment, Wait};
use crate::core::record::cache::CacheRecord;
use crate::core::shard::Shard;
use crate::core::types::Revision;

/// A stored value, pinned: it stays readable whatever is written meanwhile.
#[derive(Clone)]
pub struct Pinned {
    shard: Arc<Shard>,
    segment: Arc<Segment>,
    entry: Entry,
}

impl Pinned {
    /// Pins the record of `entry`.
    ///
    /// # Errors
    /// [`ReadError::Mismatch`] when the segment the index names is not there.
    pub fn new(shard: &Arc<Shard>, entry: Entry) -> Result<Self, ReadError> {
        let Some(segment) = shard.segments.get(entry.location.segment) else {
            return Err(mismatch(shard, &entry, "segment"));
        };
        Ok(Self { shard: Arc::clone(shard), segment, entry })
    }

    /// Bytes of the record, which the value is most of.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.entry.location.length as usize
    }

    /// Reads the value of `key` into `scratch` and gives it; `None` when the disk would have to be waited for.
    ///
    /// # Errors
    /// [`ReadError`] when it cannot be read or is not that value.
    pub fn read<'s>(&self, key: &[u8], wait: Wait, scratch: &'s mut Vec<u8>) -> Result<Option<&'s [u8]>, ReadError> {
        let entry = &self.entry;
        let body = match self.segment.read(entry.location, entry.offset, wait, scratch) {
            Ok(body) => body,
            Err(ReadFault::WouldBlock) => return Ok(None),
            Err(ReadFault::Mismatch(what)) => return Err(mismatch(&self.shard, entry, what)),
            Err(ReadFault::Io(error)) => {
                return Err(ReadError::Io {
                    shard: self.shard.id.clone(),
                    segment: entry.location.segment,
                    position: entry.location.position,
                    message: error.to_string(),
                });
            }
        };
        let (found, value, revision) = match CacheRecord::decode(body) {
            Ok(CacheRecord::Put { key, value, .. }) => (key, value, Revision(entry.offset.0)),
            Ok(CacheRecord::Carried { key, value, revision, .. }) => (key, value, revision),
            _ => return Err(mismatch(&self.shard, entry, "operation")),
        };
        if found != key {
            return Err(mismatch(&self.shard, entry, "key"));
        }
        if revision != entry.revision {
            return Err(mismatch(&self.shard, entry, "revision"));
        }
        Ok(Some(value))
    }
}

fn mismatch(shard: &Shard, entry: &Entry, what: &'static str) -> ReadError {
    ReadError::Mismatch {
        shard: shard.id.clone(),
        segment: entry.location.segment,
        position: entry.location.position,
        what,
    }
}
