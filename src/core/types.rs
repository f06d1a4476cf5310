//! The words every layer shares: one newtype for each number that must not be mistaken for another.
//!
//! Promise: plain values with no behaviour beyond arithmetic and printing. Must never know a layer, a file or a socket.

use std::fmt;

/// The number of a record in its shard's log. Once visible it is never reused, and it never rewinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(pub u64);

impl Offset {
    /// The offset `records` further on.
    #[must_use]
    pub fn plus(self, records: u64) -> Self {
        Self(self.0 + records)
    }
}

/// The offset of the put that gave a key its current value; what CAS compares. Compaction never changes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

/// The number of a batch in its shard's log. Counted by the consensus engine and the log; no client ever sees one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Index(pub u64);

impl Index {
    /// The index after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// The term under which a record was written; the consensus engine's term under the house's own name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u64);

/// A random id of one history of a log; new after anything that may lose visible records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Epoch(pub u64);

/// One member of a shard's consensus group. Never zero, never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplicaId(pub u64);

/// The members of a shard's consensus group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    pub voters: Vec<ReplicaId>,
    pub learners: Vec<ReplicaId>,
}

impl Configuration {
    /// The most voters and learners together: what one disk sector has room for beside the rest of an anchor.
    pub const MAX_MEMBERS: usize = 16;
}

/// One broker of the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BrokerId(pub u64);

/// Milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(pub u64);

impl Millis {
    /// The expiry of a value that never expires.
    pub const NEVER: Self = Self(0);

    /// Whether a value with this expiry is absent at `now`. [`Millis::NEVER`] never is.
    #[must_use]
    pub fn has_lapsed(self, now: Self) -> bool {
        self != Self::NEVER && self <= now
    }
}

/// One of the 16,384 hash slots of the key space; routing only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u16);

/// The number of a shard within its cache, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardNo(pub u32);

/// One open shard of this process: what an answer waits for is named by it, whichever cache it is of. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seat(pub u32);

/// The running number of a segment within its shard, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentNo(pub u64);

/// Where one record stands on disk: its frame begins at `position` of segment `segment` and is `length` bytes long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Location {
    pub segment: SegmentNo,
    /// Bytes from the start of the file.
    pub position: u32,
    /// Bytes of the framed record: length, CRC and body.
    pub length: u32,
}

/// What a log holds. Everything keyed by a shard carries the kind, so that logs of the same name never mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Kind {
    Cache = 1,
}

impl Kind {
    /// The folder below the data directory that holds this kind's logs.
    #[must_use]
    pub fn root(self) -> &'static str {
        match self {
            Self::Cache => "caches",
        }
    }
}

/// The full name of a cache: `tenant/namespace/name`.
///
/// Each part is 1 to [`CacheName::MAX_PART_BYTES`] bytes of printable text without `/`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CacheName {
    tenant: String,
    namespace: String,
    name: String,
}

impl CacheName {
    /// The most bytes one part may have; three parts and a segment header fit into one disk sector.
    pub const MAX_PART_BYTES: usize = 64;

    /// Reads `tenant/namespace/name`; `None` when it is not of that form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('/');
        let (tenant, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
        let valid =
            |part: &str| !part.is_empty() && part.len() <= Self::MAX_PART_BYTES && !part.chars().any(char::is_control);
        if parts.next().is_some() || ![tenant, namespace, name].into_iter().all(valid) {
            return None;
        }
        Some(Self { tenant: tenant.into(), namespace: namespace.into(), name: name.into() })
    }

    /// The cache that a client reaches without selecting another: `default/default/0`.
    #[must_use]
    pub fn default_cache() -> Self {
        Self::numbered(0)
    }

    /// One of the caches that clients select by number: `default/default/<number>`.
    #[must_use]
    pub fn numbered(number: u32) -> Self {
        Self { tenant: "default".into(), namespace: "default".into(), name: number.to_string() }
    }
}

impl fmt::Display for CacheName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.tenant, self.namespace, self.name)
    }
}

/// One shard: one log with one index, one order, one owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId {
    pub kind: Kind,
    pub cache: CacheName,
    pub shard: ShardNo,
}

impl fmt::Display for ShardId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} shard {}", self.cache, self.shard.0)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_name_has_exactly_three_short_printable_parts() {
        for good in ["a/b/c", "default/default/0", "t/n/with space"] {
            assert_eq!(CacheName::parse(good).map(|name| name.to_string()).as_deref(), Some(good));
        }
        for bad in ["", "a", "a/b", "a/b/c/d", "a//c", "a/b/\n", &format!("a/b/{}", "x".repeat(65))] {
            assert_eq!(CacheName::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn never_does_not_lapse_and_an_expiry_lapses_at_its_own_millisecond() {
        assert!(!Millis::NEVER.has_lapsed(Millis(u64::MAX)));
        assert!(!Millis(10).has_lapsed(Millis(9)));
        assert!(Millis(10).has_lapsed(Millis(10)));
    }
}
