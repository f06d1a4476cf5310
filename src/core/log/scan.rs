//! What stands in one segment: its sound batches in order, and what follows the last of them.
//!
//! Promise: a batch is handed on only when its header and every record verified and its numbers follow the last one's;
//! what follows is described, never judged (that is `recovery`). Memory is bounded by the largest batch.
//! Must never know a key or the consensus engine.

use std::io;

use crate::core::log::codec::SECTOR_BYTES;
use crate::core::log::disk::DiskFile;
use crate::core::log::frame::{self, BATCH_ALIGN, BATCH_HEADER_BYTES, BatchHeader, FrameError};
use crate::core::log::segment::{SEGMENT_HEADER_BYTES, SegmentHeader};
use crate::core::types::{Generation, Index, Offset};

/// Bytes read at a time.
const WINDOW_BYTES: usize = 1024 * 1024;

/// What follows the last sound batch of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Zeros, or nothing, to the end of the file.
    Clean,
    /// Bytes that are no sound batch.
    Unsound {
        /// Whether a write that a power cut left unfinished can look like this: part of it never reached the disk, so at
        /// least one of its sectors is still all zeros.
        may_be_torn: bool,
        /// The newest batch that a sound batch further on claims to be flushed.
        later_claim: Option<Index>,
        what: String,
    },
}

/// What a scan of one segment found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentScan {
    /// The index and offset the next batch would have, and the generation of the last one.
    pub next_index: Index,
    pub next_offset: Offset,
    pub generation: Generation,
    /// The newest batch that any sound batch here claims to be flushed.
    pub claim: Index,
    pub batches: u64,
    /// Bytes up to the end of the last sound batch.
    pub end_at: u64,
    pub end: End,
}

/// A sound batch as the scan hands it on.
#[derive(Debug)]
pub struct ScannedBatch<'a> {
    pub header: BatchHeader,
    /// Bytes from the start of the file.
    pub position: u64,
    pub bytes: &'a [u8],
}

/// Scans the batches of a segment whose header is `header`.
///
/// # Errors
/// Whatever the disk or `visit` reports.
pub fn scan<E: From<io::Error>>(
    file: &dyn DiskFile,
    header: &SegmentHeader,
    mut visit: impl FnMut(ScannedBatch<'_>) -> Result<(), E>,
) -> Result<SegmentScan, E> {
    let mut window = Window::new(file)?;
    let mut found = SegmentScan {
        next_index: header.base_index,
        next_offset: header.base_offset,
        generation: header.previous_generation,
        claim: Index(0),
        batches: 0,
        end_at: SEGMENT_HEADER_BYTES as u64,
        end: End::Clean,
    };
    loop {
        let at = found.end_at;
        let (batch, bytes) = match read_batch(&mut window, at, header.salt)? {
            Ok(read) => read,
            Err(fault) => {
                found.end = describe_end(&mut window, at, header.salt, fault)?;
                return Ok(found);
            }
        };
        let follows = batch.index == found.next_index
            && batch.first_offset == found.next_offset
            && batch.generation >= found.generation;
        if !follows {
            let what = format!(
                "the batch there has index {} and first offset {}, expected {} and {}",
                batch.index.0, batch.first_offset.0, found.next_index.0, found.next_offset.0
            );
            found.end = End::Unsound { may_be_torn: false, later_claim: None, what };
            return Ok(found);
        }
        visit(ScannedBatch { header: batch, position: at, bytes })?;
        found.next_index = batch.index.next();
        found.next_offset = batch.next_offset();
        found.generation = batch.generation;
        found.claim = found.claim.max(batch.durable);
        found.batches += 1;
        found.end_at = at + u64::from(batch.length);
    }
}

/// Hands the sound batches of a segment from `at` on to `visit`, until that says stop or no sound batch follows. Judges
/// nothing: whoever knows which batches must be there does.
///
/// # Errors
/// Whatever the disk reports.
pub fn walk(
    file: &dyn DiskFile,
    salt: u32,
    mut at: u64,
    mut visit: impl FnMut(ScannedBatch<'_>) -> bool,
) -> io::Result<()> {
    let mut window = Window::new(file)?;
    while let Ok((header, bytes)) = read_batch(&mut window, at, salt)? {
        if !visit(ScannedBatch { header, position: at, bytes }) {
            return Ok(());
        }
        at += u64::from(header.length);
    }
    Ok(())
}

/// Whether a file holds nothing but zeros from `at` on.
///
/// # Errors
/// Whatever the disk reports.
pub fn is_zero_from(file: &dyn DiskFile, at: u64) -> io::Result<bool> {
    Window::new(file)?.is_zero_from(at)
}

/// Why no sound batch stands at a position; the length is known when the header was sound.
struct Fault {
    error: FrameError,
    length: Option<u32>,
    /// Bytes of the batch that verified, and so reached the disk.
    sound: usize,
}

fn read_batch<'w>(
    window: &'w mut Window<'_>,
    at: u64,
    salt: u32,
) -> io::Result<Result<(BatchHeader, &'w [u8]), Fault>> {
    let head = window.bytes(at, BATCH_HEADER_BYTES)?;
    let header = match BatchHeader::read(head, salt) {
        Ok(header) => header,
        Err(error) => return Ok(Err(Fault { error, length: None, sound: 0 })),
    };
    // The header's CRC has passed, and the window never reads beyond the file, so this length may be believed.
    let bytes = window.bytes(at, header.length as usize)?;
    Ok(match frame::verify_records(&header, bytes, salt) {
        Ok(()) => Ok((header, bytes)),
        Err(error) => {
            let sound = match error {
                FrameError::Record(number) => frame::position_of(number, bytes),
                _ => 0,
            };
            Err(Fault { error, length: Some(header.length), sound })
        }
    })
}

fn describe_end(window: &mut Window<'_>, at: u64, salt: u32, fault: Fault) -> io::Result<End> {
    if window.is_zero_from(at)? {
        return Ok(End::Clean);
    }
    let what = match (fault.error, fault.length) {
        (FrameError::Record(number), Some(length)) => {
            format!("record {number} of the batch of {length} bytes there does not match its CRC")
        }
        (FrameError::HeaderField(field), _) => format!("the batch there has an impossible {field}"),
        (_, Some(length)) => format!("the batch of {length} bytes there is not whole"),
        (_, None) => "neither zeros nor a batch header stand there".to_owned(),
    };
    if matches!(fault.error, FrameError::HeaderField(_)) {
        return Ok(End::Unsound { may_be_torn: false, later_claim: None, what });
    }
    let extent = fault.length.unwrap_or(BATCH_HEADER_BYTES as u32);
    // Zeros in what verified were written as zeros: only sectors that hold something that did not verify prove anything.
    let unsound = at + fault.sound as u64;
    let from = (unsound - unsound % SECTOR_BYTES as u64).max(at);
    let may_be_torn = window.has_zero_sector(from, at + u64::from(extent) - from)?;
    let later_claim = newest_claim_after(window, at, salt)?;
    Ok(End::Unsound { may_be_torn, later_claim, what })
}

/// Looks for sound batch headers anywhere after `at` and gives the newest batch they claim to be flushed.
fn newest_claim_after(window: &mut Window<'_>, at: u64, salt: u32) -> io::Result<Option<Index>> {
    let mut claim = None;
    let mut position = at + BATCH_ALIGN as u64;
    while position + BATCH_HEADER_BYTES as u64 <= window.length {
        let bytes = window.bytes(position, WINDOW_BYTES)?;
        let last = bytes.len().saturating_sub(BATCH_HEADER_BYTES);
        for start in (0..=last).step_by(BATCH_ALIGN) {
            let head = &bytes[start..start + BATCH_HEADER_BYTES];
            // Cheap look first: a type byte no build writes is the rule in values and zeros.
            if matches!(head[8], 1 | 2)
                && let Ok(header) = BatchHeader::read(head, salt)
            {
                claim = claim.max(Some(header.durable));
            }
        }
        position += (last - last % BATCH_ALIGN) as u64 + BATCH_ALIGN as u64;
    }
    Ok(claim)
}

/// A moving view of a file; what lies beyond its end is not there.
struct Window<'f> {
    file: &'f dyn DiskFile,
    length: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl<'f> Window<'f> {
    fn new(file: &'f dyn DiskFile) -> io::Result<Self> {
        Ok(Self { file, length: file.len()?, start: 0, bytes: Vec::new() })
    }

    /// The bytes `[at, at + length)`, fewer at the end of the file.
    fn bytes(&mut self, at: u64, length: usize) -> io::Result<&[u8]> {
        let available = usize::try_from(self.length.saturating_sub(at)).unwrap_or(usize::MAX);
        let length = length.min(available);
        let inside = at >= self.start && at + length as u64 <= self.start + self.bytes.len() as u64;
        if !inside {
            self.start = at;
            self.bytes.resize(length.max(WINDOW_BYTES).min(available), 0);
            let read = self.file.read_at(at, &mut self.bytes)?;
            self.bytes.truncate(read);
        }
        let from = (at - self.start) as usize;
        Ok(self.bytes.get(from..(from + length).min(self.bytes.len())).unwrap_or_default())
    }

    fn is_zero_from(&mut self, mut at: u64) -> io::Result<bool> {
        while at < self.length {
            let bytes = self.bytes(at, WINDOW_BYTES)?;
            if bytes.is_empty() || bytes.iter().any(|&byte| byte != 0) {
                return Ok(bytes.is_empty());
            }
            at += bytes.len() as u64;
        }
        Ok(true)
    }

    /// Whether a sector that `[at, at + length)` touches holds only zeros within it (or lies beyond the file).
    fn has_zero_sector(&mut self, at: u64, length: u64) -> io::Result<bool> {
        let (mut position, end) = (at, at + length);
        while position < end {
            let sector_end = (position / SECTOR_BYTES as u64 + 1) * SECTOR_BYTES as u64;
            let part = (sector_end.min(end) - position) as usize;
            if self.bytes(position, part)?.iter().all(|&byte| byte == 0) {
                return Ok(true);
            }
            position = sector_end;
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests;
