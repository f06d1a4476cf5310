//! What opening must make of a damaged log, told from what was written, flushed and noted.
//!
//! Promise: knows the undamaged bytes, so it never reads a CRC, and asks nothing of the code it judges. It says the recovery
//! table of `docs/formats.md` once more in its own words. Must never know a disk.

use std::borrow::Cow;

use hearth::core::log::frame::BATCH_HEADER_BYTES;
use hearth::core::log::segment::SEGMENT_HEADER_BYTES;

use super::subject::{Stop, Subject};
use crate::layout::Standing;

const SECTOR: usize = 512;

/// What happened to the segment files of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The file ends here.
    Cut {
        file: usize,
        at: usize,
    },
    /// The file ends here, and every later one is gone.
    CutLog {
        file: usize,
        at: usize,
    },
    Flip {
        file: usize,
        at: usize,
        bit: u8,
    },
    Zeros {
        file: usize,
        from: usize,
        to: usize,
    },
    /// This file and every later one is gone.
    Gone {
        from: usize,
    },
}

/// What is left of each segment file; `None` is gone.
pub type Left<'s> = Vec<Option<Cow<'s, [u8]>>>;

impl Damage {
    /// The file that is damaged, the first of several.
    pub fn file(&self) -> usize {
        match *self {
            Self::Cut { file, .. } | Self::CutLog { file, .. } | Self::Flip { file, .. } | Self::Zeros { file, .. } => {
                file
            }
            Self::Gone { from } => from,
        }
    }

    fn do_to(&self, left: &mut Left<'_>) {
        let damaged = self.file();
        let later_too = matches!(self, Self::CutLog { .. } | Self::Gone { .. });
        for (file, bytes) in left.iter_mut().enumerate().skip(damaged) {
            if later_too && (file > damaged || matches!(self, Self::Gone { .. })) {
                *bytes = None;
            }
            let Some(there) = bytes.as_mut().filter(|_| file == damaged) else { continue };
            match *self {
                Self::Cut { at, .. } | Self::CutLog { at, .. } if at < there.len() => there.to_mut().truncate(at),
                Self::Flip { at, bit, .. } if at < there.len() => there.to_mut()[at] ^= 1 << bit,
                Self::Zeros { from, to, .. } => {
                    let to = to.min(there.len());
                    there.to_mut()[from.min(to)..to].fill(0);
                }
                _ => {}
            }
        }
    }
}

/// What is left of each file of the log when all of these have happened to it, one after the other.
pub fn done_to<'s>(subject: &'s Subject, damages: &[Damage]) -> Left<'s> {
    let whole = subject.layout.files.iter().map(|file| Some(Cow::Borrowed(&file.bytes[..])));
    let mut left: Left<'s> = whole.collect();
    for damage in damages {
        damage.do_to(&mut left);
    }
    left
}

/// What opening must do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Opened {
        /// How many batches are left.
        kept: usize,
        /// The segment files that are left.
        held: usize,
        /// Where an unfinished batch is cut off.
        cut: Option<(usize, usize)>,
    },
    /// The file (`None` is the anchor) and the byte that are named.
    Refused { file: Option<usize>, at: usize },
}

/// What the anchor says, as far as it decides anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notes {
    pub clean: bool,
    pub flushed: u64,
    /// Whether the newest segment is known to have been begun.
    pub begun: bool,
}

impl Notes {
    pub fn of(subject: &Subject) -> Self {
        Self { clean: subject.stop == Stop::Clean, flushed: subject.noted, begun: true }
    }
}

enum Header {
    Sound,
    /// Zeros, and whether anything but zeros follows.
    Zeros {
        content: bool,
    },
    Damaged,
}

/// What the first sector of a file became; a short file is as good as one that goes on with zeros.
fn header(left: &[u8], written: &[u8]) -> Header {
    let there = &left[..left.len().min(SEGMENT_HEADER_BYTES)];
    let (same, rest) = written[..SEGMENT_HEADER_BYTES].split_at(there.len());
    if is_zero(there) {
        return Header::Zeros { content: !is_zero(&left[there.len()..]) };
    }
    if there == same && is_zero(rest) { Header::Sound } else { Header::Damaged }
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == 0)
}

/// Whether at least one sector between these bytes shows nothing but zeros; what the file does not reach never got there.
fn shows_a_lost_sector(left: &[u8], from: usize, to: usize) -> bool {
    let mut at = from;
    while at < to {
        let end = ((at / SECTOR + 1) * SECTOR).min(to);
        let there = left.get(at.min(left.len())..end.min(left.len())).unwrap_or_default();
        if is_zero(there) {
            return true;
        }
        at = end;
    }
    false
}

/// How many bytes of a batch that is not as it was written are: up to its first unsound record. Of one that the file cuts
/// short, or without its header, none are known to be.
fn reached_the_disk(batch: &Standing, left: &[u8], intact: impl Fn(std::ops::Range<usize>) -> bool) -> usize {
    if left.len() < batch.extent().end || !intact(batch.at..batch.at + BATCH_HEADER_BYTES) {
        return 0;
    }
    let starts = std::iter::once(BATCH_HEADER_BYTES).chain(batch.record_ends.iter().copied());
    let mut records = starts.zip(&batch.record_ends);
    let unsound = records.find(|(start, end)| !intact(batch.at + start..batch.at + **end));
    unsound.map_or(batch.records_end(), |(start, _)| start)
}

/// What a walk over the batches of one file found.
struct Walk {
    /// The first batch that is not as it was written, as a place in the layout; or the first of the next file.
    next: usize,
    at: usize,
    /// Bytes follow that are no batch.
    unsound: bool,
    /// They may come from a write that was not finished.
    torn: bool,
    /// The newest batch that a header behind them says was flushed.
    claim_behind: u64,
}

fn walk(subject: &Subject, file: usize, left: &[u8], first: usize) -> Walk {
    let written = &subject.layout.files[file].bytes;
    let batches = &subject.layout.batches;
    let (mut next, mut at) = (first, SEGMENT_HEADER_BYTES);
    let intact = |range: std::ops::Range<usize>| left.get(range.clone()).is_some_and(|left| *left == written[range]);
    while let Some(batch) = batches.get(next).filter(|batch| batch.file == file && intact(batch.extent())) {
        next += 1;
        at = batch.extent().end;
    }
    let unsound = left.len() > at && !is_zero(&left[at..]);
    let hit = batches.get(next).filter(|batch| batch.file == file);
    let header_of = |at: usize| at..at + BATCH_HEADER_BYTES;
    let length = match hit {
        Some(hit) if intact(header_of(hit.at)) => hit.header.length as usize,
        _ => BATCH_HEADER_BYTES,
    };
    // What stands in the padding of records that are all there was written by nobody.
    let padded = |hit: &&Standing| intact(hit.at..hit.at + hit.records_end()) && left.len() >= hit.extent().end;
    let reached = hit.map_or(0, |hit| reached_the_disk(hit, left, intact));
    // A sector that holds something unsound was lost only if all that the batch has in it is zeros.
    let from = ((at + reached) / SECTOR * SECTOR).max(at);
    let torn = unsound && !hit.as_ref().is_some_and(padded) && shows_a_lost_sector(left, from, at + length);
    let behind = batches.iter().skip(next + 1).take_while(|batch| batch.file == file);
    let claims = behind.filter(|batch| intact(header_of(batch.at))).map(|batch| batch.header.durable.0);
    Walk { next, at, unsound, torn, claim_behind: claims.max().unwrap_or(0) }
}

/// What opening must make of what is left of the files.
pub fn verdict(subject: &Subject, notes: Notes, left: &Left<'_>) -> Verdict {
    let files: Vec<(usize, &[u8], Header)> = left
        .iter()
        .enumerate()
        .filter_map(|(number, bytes)| bytes.as_deref().map(|bytes| (number, bytes)))
        .map(|(number, bytes)| (number, bytes, header(bytes, &subject.layout.files[number].bytes)))
        .collect();
    // R3
    if let Some((file, ..)) = files.iter().find(|(.., header)| matches!(header, Header::Zeros { content: true })) {
        return Verdict::Refused { file: Some(*file), at: 0 };
    }
    // R8
    let held = files.iter().rposition(|(.., header)| !matches!(header, Header::Zeros { .. })).map_or(0, |at| at + 1);
    let (mut kept, mut cut, mut end, mut claim) = (0, None, (None, 0), notes.flushed);
    for (place, (file, bytes, header)) in files[..held].iter().enumerate() {
        // R9, R10
        if !matches!(header, Header::Sound) {
            return Verdict::Refused { file: Some(*file), at: 0 };
        }
        // R11, R12
        let first = subject.layout.batches.iter().position(|batch| batch.file == *file);
        if first.unwrap_or(subject.layout.batches.len()) != kept {
            return Verdict::Refused { file: Some(*file), at: 0 };
        }
        let walk = walk(subject, *file, bytes, kept);
        // R13
        if walk.unsound && !(walk.torn && place + 1 == held) {
            return Verdict::Refused { file: Some(*file), at: walk.at };
        }
        // R14
        if walk.unsound {
            cut = Some((*file, walk.at));
            claim = claim.max(walk.claim_behind);
        }
        let claims = subject.layout.batches[kept..walk.next].iter().map(|batch| batch.header.durable.0);
        claim = claim.max(claims.max().unwrap_or(0));
        (kept, end) = (walk.next, (Some(*file), walk.at));
    }
    let last = kept.checked_sub(1).map_or(1, |at| subject.layout.batches[at].header.index.0);
    let lost_segment = notes.begun && end.0 != Some(subject.newest());
    let behind_a_clean_stop = notes.clean && (cut.is_some() || last != notes.flushed);
    // R15, R16
    if claim > last || lost_segment || behind_a_clean_stop {
        return Verdict::Refused { file: end.0, at: end.1 };
    }
    Verdict::Opened { kept, held, cut }
}
