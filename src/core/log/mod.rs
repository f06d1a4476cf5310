//! The log of one shard: bytes at offsets, on a [`disk::Disk`]. Synchronous.
//!
//! Reading order: `disk` (the door), `codec` and `frame` (bytes of a batch), `segment` (bytes of a file), `anchor` (the
//! small state beside them), `scan` (what stands in a segment), `recovery` (what opening does about it), `open` (the
//! reader that becomes the writer), `writer` (append and flush), `reader` (one record back).
//!
//! Promise: what was flushed is found again or opening refuses; a torn tail is cut, anything else is never guessed at.
//! Must never know a key, a client, the consensus engine or the runtime.

pub mod anchor;
pub mod codec;
pub mod disk;
pub mod frame;
pub mod open;
pub mod reader;
pub mod recovery;
pub mod scan;
pub mod segment;
pub mod writer;

/// The number of the on-disk format this build reads and writes.
pub const FORMAT: u32 = 1;

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
