//! The control record: what the log says about itself. Version 1; one to a control batch.
//!
//! ```text
//! version u8 | what u8 | fields
//! what: 0 generation start (no fields)   1 epoch: epoch u64
//! ```
//! Promise: reads back what was written; anything else is refused. Must never know what the shard does about it.

use crate::core::record::RecordError;
use crate::core::types::Epoch;

const VERSION: u8 = 1;

/// The body of a control record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlRecord {
    /// The first batch of a generation; once it is applied the owner's doors open.
    GenerationStart,
    /// The log's history has this id from here on.
    Epoch(Epoch),
}

impl ControlRecord {
    /// Appends the body to `into`.
    pub fn encode(&self, into: &mut Vec<u8>) {
        match self {
            Self::GenerationStart => into.extend_from_slice(&[VERSION, 0]),
            Self::Epoch(epoch) => {
                into.extend_from_slice(&[VERSION, 1]);
                into.extend_from_slice(&epoch.0.to_le_bytes());
            }
        }
    }

    /// Reads a body.
    ///
    /// # Errors
    /// [`RecordError`] says what is not as any build writes it.
    pub fn decode(body: &[u8]) -> Result<Self, RecordError> {
        match body {
            [VERSION, 0] => Ok(Self::GenerationStart),
            [VERSION, 1, rest @ ..] => {
                let epoch = rest.try_into().map_err(|_| RecordError::Short)?;
                Ok(Self::Epoch(Epoch(u64::from_le_bytes(epoch))))
            }
            [VERSION, 0, ..] => Err(RecordError::Field("length")),
            [VERSION, what, ..] => Err(RecordError::UnknownOp(*what)),
            [version, ..] if *version != VERSION => Err(RecordError::UnknownVersion(*version)),
            _ => Err(RecordError::Short),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_records_read_back_and_others_are_refused() {
        for record in [ControlRecord::GenerationStart, ControlRecord::Epoch(Epoch(u64::MAX - 1))] {
            let mut body = Vec::new();
            record.encode(&mut body);
            assert_eq!(ControlRecord::decode(&body), Ok(record));
        }
        for other in [&[][..], &[1], &[2, 0], &[1, 9], &[1, 0, 0], &[1, 1, 0, 0]] {
            assert!(ControlRecord::decode(other).is_err(), "{other:?}");
        }
    }
}
