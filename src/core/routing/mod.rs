//! Routing: key -> slot -> shard -> here, there or nowhere.
//!
//! Reading order: `hash` (key to slot), `placement` (who owns a shard, as the cluster published it), `router` (both).
//!
//! Promise: what cannot be routed is refused, never served locally. Must never reach another broker.

pub mod hash;
pub mod placement;
pub mod router;
