//! Between our batches and the engine's entries: one entry per batch.
//!
//! Promise: the engine's empty entry, with which a leader begins its term, is our generation-start batch and nothing
//! else is. Must never know what a data batch holds.

use bytes::Bytes;
use raft::eraftpb::{Entry, EntryType};

use crate::core::log::frame::{BatchBuilder, BatchHeader, BatchType, records};
use crate::core::record::control::ControlRecord;
use crate::core::types::{Generation, Index, Millis, Offset};

/// A batch with its place in the log's order.
#[derive(Clone, Debug)]
pub struct NumberedBatch {
    pub index: Index,
    pub generation: Generation,
    /// What [`BatchBuilder::finish`] made, or `None` for the start of a generation, which has no offset until staged.
    pub batch: Option<Bytes>,
}

/// The batch with which a generation begins.
#[must_use]
pub fn generation_start(first_offset: Offset, time: Millis) -> Bytes {
    let mut builder = BatchBuilder::new(BatchType::Control, first_offset);
    builder.push(|into| ControlRecord::GenerationStart.encode(into));
    builder.finish(time).into()
}

/// The engine's entry for a batch found in the log.
#[must_use]
pub fn entry_of(header: &BatchHeader, bytes: &[u8]) -> Entry {
    let starts_generation = header.batch_type == BatchType::Control
        && records(header, bytes)
            .next()
            .is_some_and(|record| ControlRecord::decode(record.body) == Ok(ControlRecord::GenerationStart));
    let mut entry = Entry { index: header.index.0, term: header.generation.0, ..Entry::default() };
    if !starts_generation {
        entry.data = Bytes::copy_from_slice(bytes);
    }
    entry
}

/// Our words for an entry the engine hands out.
pub(super) fn batch_of(entry: Entry) -> NumberedBatch {
    assert_eq!(entry.get_entry_type(), EntryType::EntryNormal, "configuration changes are not proposed yet");
    NumberedBatch {
        index: Index(entry.index),
        generation: Generation(entry.term),
        batch: (!entry.data.is_empty()).then_some(entry.data),
    }
}
