//! Where a log begins: its first segment and what came before it.
//!
//! Promise: plain values; the start of a log is always the start of a segment. Must never know why the log begins there.

use crate::core::types::{Configuration, Generation, Index, Offset, SegmentNo};

/// The beginning of a log, or of a segment: everything before it is gone, or stands in older segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogStart {
    /// The first segment still held; 0 while none was ever trimmed away.
    pub segment: SegmentNo,
    /// The first offset still held.
    pub offset: Offset,
    /// The first index still held.
    pub index: Index,
    /// The generation of the batch before `index`.
    pub generation: Generation,
    /// The members of the group as of `index`.
    pub configuration: Configuration,
    /// The batch that made them so.
    pub configuration_index: Index,
}
