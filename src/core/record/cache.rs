//! The cache record: one put, delete, carried put or clear. Version 1; all numbers little-endian.
//!
//! ```text
//! put, delete:  version u8 | op u8 | expires_at_millis u64 |                key_len u32 | key | value
//! carried put:  version u8 | op u8 | expires_at_millis u64 | revision u64 | key_len u32 | key | value
//! clear:        version u8 | op u8 | 0 u64 | 0 u32
//! ```
//! `op`: 0 put, 1 delete (no value, no expiry), 2 carried put, 3 clear. `expires_at_millis` is Unix time, 0 = never.
//!
//! Promise: reads back what was written; an unknown version or op is refused. Must never know a log or an index.

use crate::core::limits::MAX_KEY_BYTES;
use crate::core::record::RecordError;
use crate::core::types::{Millis, Revision};

const VERSION: u8 = 1;
/// Bytes of a put's body beside key and value.
pub const PUT_OVERHEAD_BYTES: usize = 14;
/// Bytes more in a carried put.
pub const REVISION_BYTES: usize = 8;

/// The body of a cache record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheRecord<'a> {
    Put {
        key: &'a [u8],
        value: &'a [u8],
        expires_at: Millis,
    },
    Delete {
        key: &'a [u8],
    },
    /// A live record copied to the tail by compaction: it changes no value and keeps its revision.
    Carried {
        key: &'a [u8],
        value: &'a [u8],
        expires_at: Millis,
        revision: Revision,
    },
    /// Everything before it is gone.
    Clear,
}

impl<'a> CacheRecord<'a> {
    /// Appends the body to `into`.
    pub fn encode(&self, into: &mut Vec<u8>) {
        let (op, expires_at, revision, key, value): (u8, Millis, Option<Revision>, &[u8], &[u8]) = match *self {
            Self::Put { key, value, expires_at } => (0, expires_at, None, key, value),
            Self::Delete { key } => (1, Millis::NEVER, None, key, &[]),
            Self::Carried { key, value, expires_at, revision } => (2, expires_at, Some(revision), key, value),
            Self::Clear => (3, Millis::NEVER, None, &[], &[]),
        };
        into.reserve(PUT_OVERHEAD_BYTES + REVISION_BYTES + key.len() + value.len());
        into.extend_from_slice(&[VERSION, op]);
        into.extend_from_slice(&expires_at.0.to_le_bytes());
        if let Some(revision) = revision {
            into.extend_from_slice(&revision.0.to_le_bytes());
        }
        into.extend_from_slice(&(key.len() as u32).to_le_bytes());
        into.extend_from_slice(key);
        into.extend_from_slice(value);
    }

    /// Reads a body.
    ///
    /// # Errors
    /// [`RecordError`] says what is not as any build writes it.
    pub fn decode(body: &'a [u8]) -> Result<Self, RecordError> {
        let (&[version, op], rest) = body.split_first_chunk::<2>().ok_or(RecordError::Short)?;
        if version != VERSION {
            return Err(RecordError::UnknownVersion(version));
        }
        let (expires_at, rest) = split_u64(rest)?;
        let (revision, rest) = match op {
            0 | 1 | 3 => (0, rest),
            2 => split_u64(rest)?,
            _ => return Err(RecordError::UnknownOp(op)),
        };
        let (key_len, rest) = rest.split_first_chunk::<4>().ok_or(RecordError::Short)?;
        let key_len = u32::from_le_bytes(*key_len) as usize;
        if key_len > MAX_KEY_BYTES {
            return Err(RecordError::Field("key length"));
        }
        let (key, value) = rest.split_at_checked(key_len).ok_or(RecordError::Short)?;
        let expires_at = Millis(expires_at);
        match op {
            0 => Ok(Self::Put { key, value, expires_at }),
            2 => Ok(Self::Carried { key, value, expires_at, revision: Revision(revision) }),
            _ if !value.is_empty() => Err(RecordError::Field("value")),
            _ if expires_at != Millis::NEVER => Err(RecordError::Field("expiry")),
            1 => Ok(Self::Delete { key }),
            _ if !key.is_empty() => Err(RecordError::Field("key")),
            _ => Ok(Self::Clear),
        }
    }
}

fn split_u64(bytes: &[u8]) -> Result<(u64, &[u8]), RecordError> {
    let (number, rest) = bytes.split_first_chunk::<8>().ok_or(RecordError::Short)?;
    Ok((u64::from_le_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(record: CacheRecord<'_>) {
        let mut body = Vec::new();
        record.encode(&mut body);
        assert_eq!(CacheRecord::decode(&body), Ok(record));
    }

    #[test]
    fn every_operation_reads_back_also_with_empty_and_binary_parts() {
        for key in [&b""[..], b"k", &[0, 255, 10, 13], &[7; MAX_KEY_BYTES]] {
            for value in [&b""[..], b"v", &[0; 300]] {
                round_trip(CacheRecord::Put { key, value, expires_at: Millis(5) });
                round_trip(CacheRecord::Carried { key, value, expires_at: Millis::NEVER, revision: Revision(9) });
            }
            round_trip(CacheRecord::Delete { key });
        }
        round_trip(CacheRecord::Clear);
    }

    #[test]
    fn the_bytes_of_version_1_are_these() {
        let mut body = Vec::new();
        CacheRecord::Put { key: b"key", value: b"value", expires_at: Millis(0x0102) }.encode(&mut body);
        assert_eq!(body, b"\x01\x00\x02\x01\0\0\0\0\0\0\x03\0\0\0keyvalue");
        body.clear();
        CacheRecord::Carried { key: b"k", value: b"v", expires_at: Millis(0), revision: Revision(7) }.encode(&mut body);
        assert_eq!(body, b"\x01\x02\0\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\0\x01\0\0\0kv");
    }

    #[test]
    fn unknown_versions_ops_and_every_cut_are_refused() {
        let mut body = Vec::new();
        CacheRecord::Delete { key: b"key" }.encode(&mut body);
        for cut in 0..body.len() {
            assert!(CacheRecord::decode(&body[..cut]).is_err(), "cut at {cut}");
        }
        let mut other = body.clone();
        other[0] = 2;
        assert_eq!(CacheRecord::decode(&other), Err(RecordError::UnknownVersion(2)));
        body[1] = 4;
        assert_eq!(CacheRecord::decode(&body), Err(RecordError::UnknownOp(4)));
    }
}
