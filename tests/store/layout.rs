//! An undamaged shard as it stands on the disk: its files, and every batch in them.
//!
//! Promise: reads headers with the plain codec and follows their lengths; judges nothing. Must never know how a log is
//! opened.

use std::path::PathBuf;

use hearth::core::log::anchor::{ANCHOR_FILE, Anchor, AnchorRead, AnchorState};
use hearth::core::log::disk::MemoryDisk;
use hearth::core::log::frame::{BATCH_HEADER_BYTES, BatchHeader, BatchType, records};
use hearth::core::log::segment::{HeaderRead, SEGMENT_HEADER_BYTES, SegmentHeader};
use hearth::core::record::control::ControlRecord;

use crate::bed::{bytes_of, segment_files, shard_dir, shard_id};

/// A segment file; one made ahead is all zeros.
pub struct SegmentFile {
    pub path: PathBuf,
    pub bytes: Vec<u8>,
    pub salt: u32,
}

/// A batch in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Which of the segment files, oldest first.
    pub file: usize,
    pub at: usize,
    pub header: BatchHeader,
    /// Where each of its records ends, in bytes from where it begins; the last one's end is where its padding begins.
    pub record_ends: Vec<usize>,
    /// Its record, if it is a control batch.
    pub control: Option<ControlRecord>,
}

impl Standing {
    pub fn records_end(&self) -> usize {
        self.record_ends.last().copied().unwrap_or_default()
    }

    pub fn extent(&self) -> std::ops::Range<usize> {
        self.at..self.at + self.header.length as usize
    }
}

/// All of a shard.
pub struct Layout {
    pub files: Vec<SegmentFile>,
    pub batches: Vec<Standing>,
    pub anchor: PathBuf,
    pub anchor_bytes: Vec<u8>,
}

/// What the anchor of the one shard says; `None` if it is not sound.
pub fn anchor_state(disk: &MemoryDisk) -> Option<AnchorState> {
    match Anchor::read(disk, &shard_dir(disk)).expect("a sound disk") {
        AnchorRead::Sound(state) => Some(state),
        _ => None,
    }
}

/// Reads the one shard of an undamaged disk.
pub fn layout(disk: &MemoryDisk) -> Layout {
    let anchor = shard_dir(disk).join(ANCHOR_FILE);
    let mut layout = Layout { files: Vec::new(), batches: Vec::new(), anchor_bytes: bytes_of(disk, &anchor), anchor };
    for (number, path) in segment_files(disk) {
        let bytes = bytes_of(disk, &path);
        let header = match SegmentHeader::decode(&bytes, &shard_id(), number) {
            HeaderRead::Sound(header) => header,
            HeaderRead::Zero if bytes.iter().all(|&byte| byte == 0) => {
                layout.files.push(SegmentFile { path, bytes, salt: 0 });
                continue;
            }
            other => panic!("{}: {other:?}", path.display()),
        };
        let (file, mut at) = (layout.files.len(), SEGMENT_HEADER_BYTES);
        while let Ok(found) = BatchHeader::read(bytes.get(at..at + BATCH_HEADER_BYTES).unwrap_or_default(), header.salt)
        {
            let batch = &bytes[at..];
            let record_ends = records(&found, batch).map(|record| record.position + record.length()).collect();
            layout.batches.push(Standing { file, at, header: found, record_ends, control: control_of(&found, batch) });
            at += found.length as usize;
        }
        assert!(bytes[at.min(bytes.len())..].iter().all(|&byte| byte == 0), "{} ends with zeros", path.display());
        layout.files.push(SegmentFile { path, bytes, salt: header.salt });
    }
    layout
}

fn control_of(header: &BatchHeader, batch: &[u8]) -> Option<ControlRecord> {
    let record = records(header, batch).next().filter(|_| header.batch_type == BatchType::Control)?;
    ControlRecord::decode(record.body).ok()
}
