//! One value back from the log: the record the index names, verified.
//!
//! Promise: CRC (with the offset in it), key and revision are checked on every read; what does not match is an error,
//! never a miss. Must never know how the value is told to a client.

use std::io;
use std::sync::Arc;

use crate::core::error::ReadError;
use crate::core::index::Entry;
use crate::core::limits::MAX_KEY_BYTES;
use crate::core::log::frame::{RECORD_HEADER_BYTES, RunningCrc};
use crate::core::log::reader::{ReadFault, Segment, Wait};
use crate::core::record::cache::{CacheRecord, PUT_OVERHEAD_BYTES};
use crate::core::shard::Shard;
use crate::core::types::{Revision, Seat};

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

    /// Which value it is: no other one of this process has both.
    #[must_use]
    pub fn identity(&self) -> (Seat, Revision) {
        (self.shard.seat, self.entry.revision)
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
            Err(ReadFault::Io(error)) => return Err(self.io(&error)),
        };
        let value = self.value_of(key, body)?;
        self.shard.values.keep(entry.revision, value);
        Ok(Some(value))
    }

    /// The value in a verified body, or in its beginning, when key and revision are those of the index.
    fn value_of<'b>(&self, key: &[u8], body: &'b [u8]) -> Result<&'b [u8], ReadError> {
        let entry = &self.entry;
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
        Ok(value)
    }

    /// Verifies the whole record piece by piece, waiting for the disk if needed; the value can then be had in pieces.
    ///
    /// # Errors
    /// As [`Pinned::read`].
    pub fn verify(&self, key: &[u8]) -> Result<Pieces, ReadError> {
        let mut buffer = vec![0; FIRST_PIECE_BYTES.min(self.bytes())];
        self.read_exactly(0, &mut buffer, Wait::IfNeeded)?;
        let salt = self.segment.salt;
        let begun = RunningCrc::begin(&buffer, self.entry.offset, salt);
        let (mut crc, length) = begun.ok_or_else(|| mismatch(&self.shard, &self.entry, "length"))?;
        if length + RECORD_HEADER_BYTES != self.bytes() {
            return Err(mismatch(&self.shard, &self.entry, "length"));
        }
        let body = &buffer[RECORD_HEADER_BYTES..];
        let prefix = body.len() - self.value_of(key, body)?.len();
        crc.update(&body[..prefix]);
        let mut pieces =
            Pieces { pinned: self.clone(), crc, at: RECORD_HEADER_BYTES + prefix, length: length - prefix };
        let unread = pieces.clone();
        while pieces.next(Wait::IfNeeded, &mut buffer)?.is_some_and(|more| more) {}
        Ok(unread)
    }

    /// Fills `into` from byte `at` of the record; false when the disk would have to be waited for.
    fn read_exactly(&self, at: usize, into: &mut [u8], wait: Wait) -> Result<bool, ReadError> {
        let position = u64::from(self.entry.location.position) + at as u64;
        match self.segment.read_exactly(position, into, wait) {
            Ok(()) => Ok(true),
            Err(ReadFault::WouldBlock) => Ok(false),
            Err(ReadFault::Mismatch(what)) => Err(mismatch(&self.shard, &self.entry, what)),
            Err(ReadFault::Io(error)) => Err(self.io(&error)),
        }
    }

    fn io(&self, error: &io::Error) -> ReadError {
        ReadError::Io {
            shard: self.shard.id.clone(),
            segment: self.entry.location.segment,
            position: self.entry.location.position,
            message: error.to_string(),
        }
    }
}

/// Bytes read first: enough for the longest key and everything before it.
const FIRST_PIECE_BYTES: usize = 128 * 1024;
/// Bytes of the further pieces.
const PIECE_BYTES: usize = 64 * 1024;

const _: () = assert!(FIRST_PIECE_BYTES > RECORD_HEADER_BYTES + PUT_OVERHEAD_BYTES + 8 + MAX_KEY_BYTES);

/// A verified value that is read once more, piece by piece, and checked again on the way.
#[derive(Clone)]
pub struct Pieces {
    pinned: Pinned,
    crc: RunningCrc,
    /// Bytes from the start of the record to the next piece.
    at: usize,
    /// Bytes of the value that are still to come.
    length: usize,
}

impl Pieces {
    /// Bytes of the value that are still to come.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.length
    }

    /// Reads the next piece into `into`; `Some(false)` after the last, `None` when the disk would have to be waited for.
    ///
    /// # Errors
    /// As [`Pinned::read`]; also when the whole no longer matches, before the last piece is given out.
    pub fn next(&mut self, wait: Wait, into: &mut Vec<u8>) -> Result<Option<bool>, ReadError> {
        into.resize(self.length.min(PIECE_BYTES), 0);
        if !self.pinned.read_exactly(self.at, into, wait)? {
            return Ok(None);
        }
        self.crc.update(into);
        self.at += into.len();
        self.length -= into.len();
        if self.length == 0 && !self.crc.matches() {
            return Err(mismatch(&self.pinned.shard, &self.pinned.entry, "CRC"));
        }
        Ok(Some(self.length > 0))
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
