//! The log of one shard: bytes at offsets, on a [`disk::Disk`]. Synchronous.
//!
//! Reading order: `disk` (the door), `codec` and `frame` (bytes of a batch), `segment` (bytes of a file), `start` (where
//! the log begins), `anchor` (the small state beside the segments), `scan` (what stands in a segment), `recovery` (what
//! opening does about it), `survey` (the whole read and judged), `open` (the repair, after which one may write), `writer`
//! (append and flush), `trim` (the log loses its beginning), `reader` (one record back), `handles` (how few files are open
//! for that).
//!
//! Promise: what was flushed is found again or opening refuses; a torn tail is cut, anything else is never guessed at.
//! Must never know a key, a client, the consensus engine or the runtime.

pub mod anchor;
pub mod codec;
pub mod disk;
pub mod frame;
pub mod handles;
pub mod open;
pub mod reader;
pub mod recovery;
pub mod scan;
pub mod segment;
pub mod start;
pub mod survey;
pub mod trim;
pub mod writer;

/// The number of the on-disk format this build writes.
pub const FORMAT: u32 = 2;

/// The oldest format this build reads: its bytes mean the same, and what format 2 added stands there as zeros.
pub const OLDEST_FORMAT: u32 = 1;

/// Whether this build reads a file of this format.
#[must_use]
pub fn is_readable(format: u32) -> bool {
    (OLDEST_FORMAT..=FORMAT).contains(&format)
}

/// When an acknowledged write is flushed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum FsyncPolicy {
    /// Before it is acknowledged.
    #[default]
    Always = 1,
    /// At most about a second after.
    EverySec = 2,
    /// When the operating system likes.
    Never = 3,
}

impl FsyncPolicy {
    fn from_byte(byte: u8) -> Option<Self> {
        [Self::Always, Self::EverySec, Self::Never].into_iter().find(|policy| *policy as u8 == byte)
    }

    /// Whether an acknowledged write may be lost by a power cut.
    #[must_use]
    pub fn may_lose(self) -> bool {
        self != Self::Always
    }
}

impl std::fmt::Display for FsyncPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Always => "always",
            Self::EverySec => "everysec",
            Self::Never => "never",
        })
    }
}
