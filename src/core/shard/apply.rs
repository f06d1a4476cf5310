//! A committed batch becomes visible: the one function that live apply and replay share.
//!
//! Promise: deterministic and clock-free; depends on the batch and the index alone. Must never know who wrote it.

use crate::core::index::Index;
use crate::core::log::frame::{BatchHeader, BatchType, records};
use crate::core::record::RecordError;
use crate::core::record::cache::CacheRecord;
use crate::core::record::control::ControlRecord;
use crate::core::types::{Location, Offset};

/// What applying a batch gives: the log's own record, if it was one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    Data,
    Control(ControlRecord),
}

/// The records of a whole batch.
pub enum Decoded<'a> {
    Data(Vec<(Offset, Location, CacheRecord<'a>)>),
    Control(ControlRecord),
}

impl Decoded<'_> {
    /// What applying it gives.
    #[must_use]
    pub fn applied(self) -> Applied {
        match self {
            Self::Data(_) => Applied::Data,
            Self::Control(record) => Applied::Control(record),
        }
    }
}

/// Decodes a whole batch that begins at `at`.
///
/// # Errors
/// [`RecordError`] when a record is of no shape this build knows.
pub fn decode<'a>(header: &BatchHeader, bytes: &'a [u8], at: Location) -> Result<Decoded<'a>, RecordError> {
    if header.batch_type == BatchType::Control {
        let mut all = records(header, bytes);
        let (Some(record), None) = (all.next(), all.next()) else {
            return Err(RecordError::Field("number of control records"));
        };
        return ControlRecord::decode(record.body).map(Decoded::Control);
    }
    let decoded = records(header, bytes).map(|framed| {
        let location = Location {
            segment: at.segment,
            position: at.position + framed.position as u32,
            length: framed.length() as u32,
        };
        Ok((framed.offset, location, CacheRecord::decode(framed.body)?))
    });
    decoded.collect::<Result<_, _>>().map(Decoded::Data)
}

/// Applies a whole batch that begins at `at` to the index.
///
/// # Errors
/// [`RecordError`] when a record is of no shape this build knows; the index is then unchanged.
pub fn apply(header: &BatchHeader, bytes: &[u8], at: Location, index: &Index) -> Result<Applied, RecordError> {
    // Decoded before the first is applied, so that a batch is applied whole or not at all.
    match decode(header, bytes, at)? {
        Decoded::Control(record) => Ok(Applied::Control(record)),
        Decoded::Data(records) => {
            index.apply(records);
            Ok(Applied::Data)
        }
    }
}
