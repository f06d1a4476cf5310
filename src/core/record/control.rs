//! The control record: what the log says about itself. Version 1; one to a control batch.
//!
//! ```text
//! version u8 | what u8 | fields
//! what: 0 generation start (no fields)
//!       1 epoch: epoch u64
//!       2 trim: base offset u64 | base index u64 | base generation u64 | epoch u64 | configuration index u64
//!               | voters u8 | learners u8 | their ids, u64 each
//! ```
//! Promise: reads back what was written; anything else is refused. Must never know what the shard does about it.

use crate::core::record::RecordError;
use crate::core::types::{Configuration, Epoch, Generation, Index, Offset, ReplicaId};

const VERSION: u8 = 1;
const GENERATION_START: u8 = 0;
const EPOCH: u8 = 1;
const TRIM: u8 = 2;

/// The body of a control record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlRecord {
    /// The first batch of a generation; once it is applied the owner's doors open.
    GenerationStart,
    /// The log's history has this id from here on.
    Epoch(Epoch),
    /// The log begins later from here on.
    Trim(Trim),
}

/// What a trim leaves: everything a replica needs to know of what is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trim {
    /// The first offset still held.
    pub base_offset: Offset,
    /// The first index still held.
    pub base_index: Index,
    /// The generation of the batch before `base_index`.
    pub base_generation: Generation,
    /// The history that the log tells; the record that said so may be gone.
    pub epoch: Epoch,
    pub configuration: Configuration,
    pub configuration_index: Index,
}

impl ControlRecord {
    /// Appends the body to `into`.
    pub fn encode(&self, into: &mut Vec<u8>) {
        match self {
            Self::GenerationStart => into.extend_from_slice(&[VERSION, GENERATION_START]),
            Self::Epoch(epoch) => {
                into.extend_from_slice(&[VERSION, EPOCH]);
                into.extend_from_slice(&epoch.0.to_le_bytes());
            }
            Self::Trim(trim) => {
                into.extend_from_slice(&[VERSION, TRIM]);
                trim.encode(into);
            }
        }
    }

    /// Reads a body.
    ///
    /// # Errors
    /// [`RecordError`] says what is not as any build writes it.
    pub fn decode(body: &[u8]) -> Result<Self, RecordError> {
        let (&[version, what], rest) = body.split_first_chunk::<2>().ok_or(RecordError::Short)?;
        if version != VERSION {
            return Err(RecordError::UnknownVersion(version));
        }
        match what {
            GENERATION_START if rest.is_empty() => Ok(Self::GenerationStart),
            GENERATION_START => Err(RecordError::Field("length")),
            EPOCH => {
                let epoch = rest.try_into().map_err(|_| RecordError::Short)?;
                Ok(Self::Epoch(Epoch(u64::from_le_bytes(epoch))))
            }
            TRIM => Trim::decode(rest).map(Self::Trim),
            _ => Err(RecordError::UnknownOp(what)),
        }
    }
}

impl Trim {
    fn encode(&self, into: &mut Vec<u8>) {
        let Configuration { voters, learners } = &self.configuration;
        let numbers =
            [self.base_offset.0, self.base_index.0, self.base_generation.0, self.epoch.0, self.configuration_index.0];
        into.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        into.extend_from_slice(&[voters.len() as u8, learners.len() as u8]);
        into.extend(voters.iter().chain(learners).flat_map(|id| id.0.to_le_bytes()));
    }

    fn decode(fields: &[u8]) -> Result<Self, RecordError> {
        let (numbers, rest) = fields.split_first_chunk::<40>().ok_or(RecordError::Short)?;
        let number = |at: usize| u64_at(numbers, at * 8);
        let (&[voters, learners], ids) = rest.split_first_chunk::<2>().ok_or(RecordError::Short)?;
        let members = usize::from(voters) + usize::from(learners);
        if members > Configuration::MAX_MEMBERS {
            return Err(RecordError::Field("number of members"));
        }
        if ids.len() != members * 8 {
            return Err(if ids.len() < members * 8 { RecordError::Short } else { RecordError::Field("length") });
        }
        let id = |at: usize| ReplicaId(u64_at(ids, at * 8));
        let (voters, learners) = (usize::from(voters), usize::from(learners));
        let trim = Self {
            base_offset: Offset(number(0)),
            base_index: Index(number(1)),
            base_generation: Generation(number(2)),
            epoch: Epoch(number(3)),
            configuration_index: Index(number(4)),
            configuration: Configuration {
                voters: (0..voters).map(id).collect(),
                learners: (voters..voters + learners).map(id).collect(),
            },
        };
        // Offsets and indexes are counted from 1, and no member ever has the number 0.
        if trim.base_offset.0 == 0 || trim.base_index.0 == 0 {
            return Err(RecordError::Field("log start"));
        }
        if (0..members).any(|at| id(at).0 == 0) || voters == 0 {
            return Err(RecordError::Field("configuration"));
        }
        Ok(trim)
    }
}

/// The number at byte `at`, 0 beyond the end.
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trim() -> Trim {
        Trim {
            base_offset: Offset(0x0102),
            base_index: Index(7),
            base_generation: Generation(3),
            epoch: Epoch(u64::MAX - 1),
            configuration: Configuration { voters: vec![ReplicaId(1), ReplicaId(4)], learners: vec![ReplicaId(9)] },
            configuration_index: Index(5),
        }
    }

    fn encoded(record: &ControlRecord) -> Vec<u8> {
        let mut body = Vec::new();
        record.encode(&mut body);
        body
    }

    #[test]
    fn control_records_read_back_and_others_are_refused() {
        let mut largest = trim();
        largest.configuration = Configuration { voters: vec![ReplicaId(1); 16], learners: Vec::new() };
        let epoch = ControlRecord::Epoch(Epoch(u64::MAX - 1));
        for record in [ControlRecord::GenerationStart, epoch, ControlRecord::Trim(trim()), ControlRecord::Trim(largest)]
        {
            assert_eq!(ControlRecord::decode(&encoded(&record)), Ok(record));
        }
        for other in [&[][..], &[1], &[2, 0], &[1, 9], &[1, 0, 0], &[1, 1, 0, 0], &[1, 2]] {
            assert!(ControlRecord::decode(other).is_err(), "{other:?}");
        }
    }

    #[test]
    fn the_bytes_of_a_trim_are_these() {
        let expected = b"\x01\x02\
            \x02\x01\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x03\0\0\0\0\0\0\0\xfe\xff\xff\xff\xff\xff\xff\xff\x05\0\0\0\0\0\0\0\
            \x02\x01\x01\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0";
        assert_eq!(encoded(&ControlRecord::Trim(trim())), expected);
    }

    #[test]
    fn a_trim_that_no_build_writes_is_refused() {
        let whole = encoded(&ControlRecord::Trim(trim()));
        for cut in 2..whole.len() {
            assert_eq!(ControlRecord::decode(&whole[..cut]), Err(RecordError::Short), "cut at {cut}");
        }
        let longer = [&whole[..], &[0]].concat();
        assert_eq!(ControlRecord::decode(&longer), Err(RecordError::Field("length")));
        let with = |change: &dyn Fn(&mut Trim)| {
            let mut trim = trim();
            change(&mut trim);
            ControlRecord::decode(&encoded(&ControlRecord::Trim(trim)))
        };
        assert_eq!(with(&|trim| trim.base_offset = Offset(0)), Err(RecordError::Field("log start")));
        assert_eq!(with(&|trim| trim.base_index = Index(0)), Err(RecordError::Field("log start")));
        for voters in [vec![], vec![ReplicaId(0)]] {
            let refused = with(&|trim| trim.configuration.voters.clone_from(&voters));
            assert_eq!(refused, Err(RecordError::Field("configuration")));
        }
        let too_many = with(&|trim| trim.configuration.voters = vec![ReplicaId(1); 16]);
        assert_eq!(too_many, Err(RecordError::Field("number of members")));
    }
}
