//! The core: logs, indexes, sequencing, consensus and routing. It decides; front ends translate, the cluster carries.
//!
//! Reading order: the words (`types`, `op`, `error`, `limits`, `clock`, `entropy`, `progress`), then bottom up `log`, `record`,
//! `consensus`, `index`, `shard`, `routing`, and the two doors: `store` (to a data directory) and `api` (to front ends).
//!
//! Must never know a protocol, a socket or another broker.

pub mod clock;
pub mod entropy;
pub mod error;
pub mod limits;
pub mod op;
pub mod progress;
pub mod types;

pub mod log;
pub mod record;

pub mod consensus;
pub mod index;
pub mod shard;
pub mod values;

pub mod routing;

pub mod api;
pub mod store;
