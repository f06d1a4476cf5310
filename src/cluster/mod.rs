//! The cluster: who else there is and which shards live where. It carries; the core decides.
//!
//! There is one broker so far: `standalone` publishes the placement in which every shard is here. That is the same path
//! a larger cluster takes, not a special case of it.

pub mod standalone;
