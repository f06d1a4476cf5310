//! The placement: an immutable table of who owns each shard, which the cluster publishes and the core loads.
//!
//! Promise: a table is replaced as a whole, never changed. Must never know how the cluster came to it.

use std::collections::HashMap;

use crate::core::types::{BrokerId, CacheName, Kind};

/// Where a shard is owned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    Here,
    There(BrokerId),
    Nowhere,
}

/// For each kind and cache the owner of each of its shards; the number of spots is the cache's width.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    spots: HashMap<(Kind, CacheName), Vec<Spot>>,
}

impl Placement {
    /// Says where the shards of a cache are; at least one.
    #[must_use]
    pub fn with(mut self, kind: Kind, cache: CacheName, spots: Vec<Spot>) -> Self {
        assert!(!spots.is_empty(), "a cache has at least one shard");
        self.spots.insert((kind, cache), spots);
        self
    }

    /// The owners of a cache's shards; `None` for a cache nobody placed.
    #[must_use]
    pub fn of(&self, kind: Kind, cache: &CacheName) -> Option<&[Spot]> {
        self.spots.get(&(kind, cache.clone())).map(Vec::as_slice)
    }

    /// Every cache of a kind.
    pub fn caches(&self, kind: Kind) -> impl Iterator<Item = (&CacheName, &[Spot])> {
        self.spots.iter().filter(move |((of, _), _)| *of == kind).map(|((_, cache), spots)| (cache, spots.as_slice()))
    }
}
