//! Staging: a write is decided against applied state plus overlay, and its outcome takes its place in the log's order.
//!
//! Promise: a condition is decided once, here; the record holds the outcome. An outcome that writes nothing names the
//! newest staged record it looked at, because its answer may leave only when that one is applied.
//! Must never wait.

use crate::core::error::Refusal;
use crate::core::index::Entry;
use crate::core::limits::MAX_KEY_BYTES;
use crate::core::log::frame::{BATCH_ALIGN, BATCH_HEADER_BYTES, BatchBuilder, BatchType, RECORD_HEADER_BYTES};
use crate::core::op::{Condition, Expiry, Put};
use crate::core::record::cache::{CacheRecord, PUT_OVERHEAD_BYTES, REVISION_BYTES};
use crate::core::shard::machine::Machine;
use crate::core::shard::overlay::{Covered, Staged, StagedEffect};
use crate::core::shard::space::{Purpose, SoFar};
use crate::core::types::{Millis, Offset, Revision};
use crate::teeth::{Tooth, bites};

/// Where a key's live value stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// In the log, applied.
    Stored(Entry),
    /// In a staged batch: its first offset and the value's bytes in it.
    Staged { batch: Offset, bytes: std::ops::Range<usize>, revision: Revision, expires_at: Millis },
}

impl Value {
    #[must_use]
    pub fn revision(&self) -> Revision {
        match self {
            Self::Stored(entry) => entry.revision,
            Self::Staged { revision, .. } => *revision,
        }
    }

    /// Bytes of the value; its key has `key_bytes`.
    #[must_use]
    pub fn bytes(&self, key_bytes: usize) -> usize {
        match self {
            Self::Stored(entry) => {
                // A carried record says which revision it copies.
                let carried = entry.offset.0 != entry.revision.0;
                let around = if carried { carried_bytes(key_bytes) } else { record_bytes(key_bytes) };
                (entry.location.length as usize).saturating_sub(around)
            }
            Self::Staged { bytes, .. } => bytes.len(),
        }
    }

    #[must_use]
    pub fn expires_at(&self) -> Millis {
        match self {
            Self::Stored(entry) => entry.expires_at,
            Self::Staged { expires_at, .. } => *expires_at,
        }
    }
}

/// A key as a request at this place in the order sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its live value; `None` when it has none.
    pub value: Option<Value>,
    /// The staged record that says so; `None` when applied state does.
    pub hold: Option<Offset>,
}

/// The outcome of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The offset of the record it staged; `None` when it wrote nothing.
    pub written: Option<Offset>,
    /// The live value the key had before.
    pub previous: Option<Value>,
    /// Whether the condition held. A put whose expiry has passed can hold and write nothing.
    pub held: bool,
    /// The answer may leave once the record at this offset is applied; `None`: at once.
    pub hold: Option<Offset>,
}

/// Why nothing was staged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StageError {
    Refused(Refusal),
    /// As much is staged as may be, or the next segment is still being made: wait for room, then ask again.
    Full,
}

impl From<Refusal> for StageError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Bytes that a carry takes in a batch, for `payload` bytes of key and value.
#[must_use]
pub const fn carried_bytes(payload: usize) -> usize {
    record_bytes(payload) + REVISION_BYTES
}

/// Bytes that a put or delete takes in a batch, for `payload` bytes of key and value.
#[must_use]
pub const fn record_bytes(payload: usize) -> usize {
    RECORD_HEADER_BYTES + PUT_OVERHEAD_BYTES + payload
}

/// Bytes of the live record that a write of `key` takes the place of.
fn replaced_bytes(key: &[u8], previous: Option<&Value>) -> usize {
    match previous {
        None => 0,
        Some(Value::Stored(entry)) => entry.location.length as usize,
        Some(Value::Staged { bytes, .. }) => record_bytes(key.len() + bytes.len()),
    }
}

impl Machine {
    /// The key as the next staged record would find it.
    #[must_use]
    pub fn look(&self, key: &[u8], now: Millis) -> Seen {
        let staged = match self.overlay.get(key) {
            Covered::By(staged) => staged,
            Covered::Cleared(offset) => return Seen { value: None, hold: Some(offset) },
            Covered::No => {
                let entry = self.index.view().get(key).filter(|entry| !entry.expires_at.has_lapsed(now));
                return Seen { value: entry.map(Value::Stored), hold: None };
            }
        };
        let value = match &staged.effect {
            StagedEffect::Put { expires_at, batch, value } if !expires_at.has_lapsed(now) => Some(Value::Staged {
                batch: *batch,
                bytes: value.clone(),
                revision: Revision(staged.offset.0),
                expires_at: *expires_at,
            }),
            _ => None,
        };
        Seen { value, hold: Some(staged.offset) }
    }

    /// Stages a put.
    ///
    /// # Errors
    /// [`StageError`]; nothing was staged.
    pub fn put(&mut self, put: &Put<'_>, now: Millis) -> Result<Outcome, StageError> {
        self.admit(put.key)?;
        if put.value.len() > self.bounds.max_value_bytes {
            let (bytes, bound) = (put.value.len(), self.bounds.max_value_bytes);
            return Err(Refusal::ValueTooLong { bytes, bound }.into());
        }
        let Seen { value: previous, hold } = self.look(put.key, now);
        let held = match put.condition {
            Condition::Always => true,
            Condition::Absent => previous.is_none(),
            Condition::Present => previous.is_some(),
            Condition::Revision(revision) => previous.as_ref().map_or(Revision(0), Value::revision) == revision,
        };
        if !held {
            return Ok(Outcome { written: None, previous, held, hold });
        }
        let expires_at = match put.expiry {
            Expiry::Never => Millis::NEVER,
            Expiry::At(at) => at,
            Expiry::Keep => previous.as_ref().map_or(Millis::NEVER, Value::expires_at),
        };
        let lapsed = expires_at.has_lapsed(now) || put.expiry == Expiry::At(Millis::NEVER);
        if lapsed {
            // A value that is gone before it is written leaves the key absent, which takes a delete if it is not.
            return self.remove(put.key, previous, hold, now);
        }
        let record = CacheRecord::Put { key: put.key, value: put.value, expires_at };
        let bytes = record_bytes(put.key.len() + put.value.len());
        let replaced = replaced_bytes(put.key, previous.as_ref());
        let purpose = Purpose::Put { growth: bytes.saturating_sub(replaced) as u64 };
        let (offset, batch, range) = self.push(record, purpose, bytes, now)?;
        self.will_grow(offset, bytes as i64 - replaced as i64);
        let value = range.end - put.value.len()..range.end;
        self.overlay.insert(put.key, Staged { offset, effect: StagedEffect::Put { expires_at, batch, value } });
        Ok(Outcome { written: Some(offset), previous, held, hold: Some(offset) })
    }

    /// Stages a delete, if the key has a live value.
    ///
    /// # Errors
    /// [`StageError`]; nothing was staged.
    pub fn delete(&mut self, key: &[u8], now: Millis) -> Result<Outcome, StageError> {
        self.admit(key)?;
        let Seen { value: previous, hold } = self.look(key, now);
        self.remove(key, previous, hold, now)
    }

    /// Stages a clear: everything staged or stored before it is gone. `None` when there is nothing to clear.
    ///
    /// # Errors
    /// [`StageError`]; nothing was staged.
    pub fn clear(&mut self, now: Millis) -> Result<Option<Offset>, StageError> {
        self.admit(&[])?;
        if self.overlay.is_empty() && self.index.view().is_empty() {
            return Ok(None);
        }
        let (offset, _, _) = self.push(CacheRecord::Clear, Purpose::MakesRoom, record_bytes(0), now)?;
        self.overlay.insert_clear(offset);
        self.will_grow(offset, -(self.held_bytes() as i64));
        Ok(Some(offset))
    }

    /// Makes room for a request that stages several records, so that they stand in one batch.
    ///
    /// # Errors
    /// [`StageError`]; nothing was staged.
    pub fn make_room(&mut self, purpose: Purpose, bytes: usize, now: Millis) -> Result<(), StageError> {
        let bound = self.bounds.max_batch_bytes - BATCH_HEADER_BYTES - BATCH_ALIGN;
        if bytes > bound {
            return Err(Refusal::BatchTooLarge { bytes, bound }.into());
        }
        // A batch is bounded, and never split afterwards: the next one begins here.
        let is_full = |open: &BatchBuilder| open.len() + bytes + BATCH_ALIGN > self.bounds.max_batch_bytes;
        let begins = self.open.as_ref().is_none_or(is_full);
        let splits = begins && self.open.is_some() && self.transaction.is_some();
        if splits && !bites(Tooth::SplitTransaction) {
            return Err(self.transaction_overflows(bytes, bound).into());
        }
        let own = self.transaction_bytes();
        // The padding of the batch that ends and the header of the next one count, too: what room was made for here must
        // not find it gone half-way.
        let ends = if begins && self.open.is_some() { BATCH_ALIGN } else { 0 };
        let taken = bytes + BATCH_ALIGN + if begins { ends + BATCH_HEADER_BYTES } else { 0 };
        if self.staged_bytes() > own && self.staged_bytes() + taken > self.bounds.max_staged_bytes {
            return Err(StageError::Full);
        }
        let held = if self.space.max_data_bytes > 0 { self.held_bytes() } else { 0 };
        let so_far = SoFar { unappended: self.unappended_bytes() as u64, own: own as u64, held };
        let admitted = self.space.admit(purpose, taken as u64, so_far, || self.next_pass_bytes());
        self.room_wanted |= admitted == Err(StageError::Full) && !self.space.waits_for_compaction(purpose);
        admitted?;
        if let Some(open) = self.open.take_if(|_| begins) {
            self.close_batch(open, now);
        }
        Ok(())
    }

    pub(super) fn admit(&self, key: &[u8]) -> Result<(), Refusal> {
        if let Some(refusal) = self.ended {
            return Err(refusal);
        }
        if !self.doors_open {
            return Err(Refusal::NotReady);
        }
        if key.len() > MAX_KEY_BYTES {
            return Err(Refusal::KeyTooLong { bytes: key.len(), bound: MAX_KEY_BYTES });
        }
        Ok(())
    }

    fn remove(
        &mut self,
        key: &[u8],
        previous: Option<Value>,
        hold: Option<Offset>,
        now: Millis,
    ) -> Result<Outcome, StageError> {
        if previous.is_none() {
            return Ok(Outcome { written: None, previous, held: true, hold });
        }
        let (offset, _, _) = self.push(CacheRecord::Delete { key }, Purpose::Delete, record_bytes(key.len()), now)?;
        self.overlay.insert(key, Staged { offset, effect: StagedEffect::Delete });
        self.will_grow(offset, -(replaced_bytes(key, previous.as_ref()) as i64));
        Ok(Outcome { written: Some(offset), previous, held: true, hold: Some(offset) })
    }

    /// Adds a record of `bytes` to the open batch: its offset, its batch's first offset, and where its frame stands there.
    pub(super) fn push(
        &mut self,
        record: CacheRecord<'_>,
        purpose: Purpose,
        bytes: usize,
        now: Millis,
    ) -> Result<(Offset, Offset, std::ops::Range<usize>), StageError> {
        self.make_room(purpose, bytes, now)?;
        let offset = self.next_offset;
        let open = self.open.get_or_insert_with(|| BatchBuilder::new(BatchType::Data, offset));
        let range = open.push(|into| record.encode(into));
        self.next_offset = offset.plus(1);
        Ok((offset, open.first_offset(), range))
    }
}
