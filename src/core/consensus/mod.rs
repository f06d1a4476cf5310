//! Consensus: one group per shard on an existing engine, over the shard's own log.
//!
//! Reading order: `translate` (our batches and the engine's entries), `storage` (what the engine may look up), `ready`
//! (the group in our words: propose, step, persisted).
//!
//! Promise: nothing outside this folder names the engine or sees its types; its bytes never reach disk or wire, our own
//! frames do. Must never know a key, a file or a client.

mod ready;
mod storage;
mod translate;

pub use ready::{Consensus, NotOwner, Start, Step, Vote};
pub use translate::{NumberedBatch, generation_start};
