//! What a front end may ask of the core, as plain data: one write with its condition and expiry.
//!
//! Promise: an op says everything the shard needs to decide it. Must never know a protocol or its words.

use crate::core::types::{Millis, Revision};

/// When a written value ceases to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// It never does; a former expiry of the key is dropped.
    Never,
    /// At this Unix time. A time that has passed makes the write a delete.
    At(Millis),
    /// Whenever the value it replaces would have.
    Keep,
}

/// What must hold, when the write is staged, for it to write anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    Always,
    /// The key holds no live value.
    Absent,
    /// The key holds a live value.
    Present,
    /// The key's live value has this revision; revision 0 means the key is absent.
    Revision(Revision),
}

/// One put.
#[derive(Clone, Copy, Debug)]
pub struct Put<'a> {
    pub key: &'a [u8],
    pub value: &'a [u8],
    pub expiry: Expiry,
    pub condition: Condition,
}
