//! What all Redis clients of a broker share.
//!
//! Promise: every part of it is bounded. Must never know one connection's state.

/// State beside the caches.
#[derive(Default)]
pub struct Shared {}
