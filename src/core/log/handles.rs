//! How few of a log's files are open: sealed segments are opened when somebody reads in them, and closed again when
//! others are wanted more.
//!
//! Promise: at most so many sealed segments are open as was asked for, beside those that readers hold and those kept for
//! good; which one is closed is decided by second chance, so a read costs a flag and no list. Must never know a record.
//!
//! Lock order: the ring, then nothing: files are opened and closed outside it.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::core::log::disk::{Disk, DiskFile};
use crate::core::log::reader::Segment;
use crate::core::log::segment;
use crate::core::types::SegmentNo;

/// The open sealed segments of one log.
pub struct Handles {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// How many may be open.
    most: usize,
    /// The open ones, in the order in which they are asked whether they are still used.
    ring: Mutex<VecDeque<Weak<Segment>>>,
}

impl Handles {
    #[must_use]
    pub fn new(disk: Arc<dyn Disk>, dir: PathBuf, most: usize) -> Arc<Self> {
        Arc::new(Self { disk, dir, most, ring: Mutex::default() })
    }

    pub(super) fn open(&self, number: SegmentNo) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.open_to_read(&self.dir.join(segment::file_name(number)))
    }

    /// Takes a segment that was just opened into the ring, and closes others if there are too many.
    pub(super) fn admit(&self, opened: &Arc<Segment>) {
        let mut unused = Vec::new();
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        // Busy readers set their flags again meanwhile: one chance each, then the oldest goes.
        let mut chances = ring.len();
        while ring.len() >= self.most {
            let Some(oldest) = ring.pop_front() else { break };
            let Some(segment) = oldest.upgrade() else { continue };
            if segment.was_used() && chances > 0 {
                chances -= 1;
                ring.push_back(oldest);
            } else {
                unused.push(segment);
            }
        }
        ring.push_back(Arc::downgrade(opened));
        drop(ring);
        unused.iter().for_each(|segment| segment.close());
    }
}
