//! The cluster of one.
//!
//! Promise: every shard of the caches it is given is here. Must never know a front end.

use crate::core::routing::placement::{Placement, Spot};
use crate::core::types::{CacheName, Kind};

/// The placement in which all `width` shards of each cache are here.
#[must_use]
pub fn placement<'c>(caches: impl IntoIterator<Item = (&'c CacheName, &'c u32)>) -> Placement {
    caches.into_iter().fold(Placement::default(), |placement, (cache, width)| {
        placement.with(Kind::Cache, cache.clone(), vec![Spot::Here; *width as usize])
    })
}
