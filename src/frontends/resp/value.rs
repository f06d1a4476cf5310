//! A value written as a reply, or as a part of one: at once when that needs no waiting and little memory, else later.
//!
//! Promise: however often a reply names a value, it takes no more memory than the high-water mark and what names them.
//! Must never know a command.

use crate::core::api::{Found, Turn, Value};
use crate::core::error::ReadError;
use crate::core::log::reader::Wait as DiskWait;
use crate::core::shard::read::Pinned;
use crate::frontends::resp::call::{Call, CommandError, Wait};
use crate::frontends::resp::encode::Protocol;
use crate::frontends::resp::error;
use crate::frontends::resp::limits::{
    HELD_VALUE_BYTES, MAX_STAGED_REPLY_BYTES, OUTPUT_HIGH_WATER_BYTES, STREAMED_VALUE_BYTES,
};
use crate::frontends::resp::replies::Replies;

/// The text when a value cannot be read.
pub type Told = fn(&ReadError) -> String;

impl Call<'_, '_> {
    /// Writes the value of `key` or nil, as it was looked at.
    ///
    /// # Errors
    /// [`CommandError`] when too much is staged to be kept in the reply.
    pub fn write_value(&mut self, key: &[u8], value: Option<&Value>, told: Told) -> Result<(), CommandError> {
        let protocol = self.client.protocol;
        let Some(value) = value else {
            self.replies.writer(protocol).null();
            return Ok(());
        };
        let long = self.replies.reply_bytes() > OUTPUT_HIGH_WATER_BYTES;
        if long && let Value::Staged { bytes, .. } = value {
            self.bound_staged(bytes.len())?;
        }
        let placed = Placed { protocol, held: self.replies.is_held(), key, told };
        match (long, value) {
            (true, Value::Stored(entry)) => {
                let pinned = self.turn.pinned(key, entry);
                write_pinned(self.replies, &placed, pinned);
            }
            _ => write_found(self.replies, &placed, self.scratch, self.turn, value),
        }
        Ok(())
    }

    /// What is staged has to be copied: a reply that names it again and again waits until it is stored.
    fn bound_staged(&mut self, bytes: usize) -> Result<(), CommandError> {
        if self.replies.reply_bytes() + bytes <= MAX_STAGED_REPLY_BYTES {
            return Ok(());
        }
        match self.replies.first_hold().filter(|_| !self.turn.is_transaction()) {
            Some(hold) => Err(CommandError::Wait(Wait::Applied(hold))),
            None => Err(CommandError::Refused(error::reply_too_large(MAX_STAGED_REPLY_BYTES))),
        }
    }
}

/// Where a value goes, and what is said when it cannot be read.
struct Placed<'k> {
    protocol: Protocol,
    /// The reply waits for a flush: a large value is read when it may leave, else everybody who waits for the same flush
    /// would have one in memory.
    held: bool,
    key: &'k [u8],
    told: Told,
}

fn write_found(replies: &mut Replies, placed: &Placed<'_>, scratch: &mut Vec<u8>, turn: &mut Turn<'_>, value: &Value) {
    let Placed { protocol, held, key, told } = *placed;
    let found = match turn.found(key, value) {
        // The log has lost the segment since the key was looked at: the record was carried, and the index knows where to.
        Err(ReadError::Mismatch { .. }) => turn.get(key).map(|(found, _)| found),
        found => found.map(Some),
    };
    let pinned = match found {
        Ok(None) => return replies.writer(protocol).null(),
        Ok(Some(Found::Staged(value))) => return replies.writer(protocol).bulk(value),
        Ok(Some(Found::Cached(value))) => return replies.writer(protocol).bulk(&value),
        Ok(Some(Found::Stored(pinned))) => pinned,
        Err(fault) => return replies.error(protocol, told(&fault)),
    };
    if (held && pinned.bytes() > HELD_VALUE_BYTES) || pinned.bytes() > STREAMED_VALUE_BYTES {
        return replies.cold(protocol, pinned, key, told);
    }
    match pinned.read(key, DiskWait::Never, scratch) {
        Ok(Some(value)) => replies.writer(protocol).bulk(value),
        Ok(None) => replies.cold(protocol, pinned, key, told),
        Err(fault) => replies.error(protocol, told(&fault)),
    }
}

fn write_pinned(replies: &mut Replies, placed: &Placed<'_>, pinned: Result<Pinned, ReadError>) {
    match pinned {
        Ok(pinned) => replies.cold(placed.protocol, pinned, placed.key, placed.told),
        Err(fault) => replies.error(placed.protocol, (placed.told)(&fault)),
    }
}
