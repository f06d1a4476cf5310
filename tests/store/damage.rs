//! Small logs, damaged in every place: zeroed from every byte and in every sector, every bit flipped of the last two
//! batches, of segment headers and of the anchor; after a clean stop and after a kill.
//!
//! The outcome is a repair of what nothing proves flushed, or `OpenError::Damaged` with not a byte changed. A proof is the
//! anchor's note, or a sound later batch that says so; bytes that prove nothing are the window the README names.

use std::path::PathBuf;

use hearth::core::error::OpenError;
use hearth::core::log::FsyncPolicy;
use hearth::core::log::disk::{Disk, MemoryDisk};
use hearth::core::log::frame::{BATCH_HEADER_BYTES, BatchHeader};
use hearth::core::log::segment::SEGMENT_HEADER_BYTES;

use crate::bed::{World, bytes_of, segment_files, shard_dir};
use crate::model::State;

const SECTOR: usize = 512;
const ANCHOR_PLACE: usize = 4096;
/// Where the number of the newest flushed batch stands in a place of the anchor, and its sequence number.
const FLUSHED_AT: usize = 16 + 10 * 8;
const SEQUENCE_AT: usize = 16;

/// A batch as it stands in the undamaged log.
struct Standing {
    /// Which of the segment files, oldest first.
    file: usize,
    at: usize,
    header: BatchHeader,
    /// What the log holds when this is its last batch.
    state: State,
}

struct Log {
    world: World,
    image: MemoryDisk,
    clean: bool,
    files: Vec<PathBuf>,
    bytes: Vec<Vec<u8>>,
    anchor: PathBuf,
    anchor_bytes: Vec<u8>,
    batches: Vec<Standing>,
}

#[derive(Debug, Default)]
struct Outcomes {
    refused: u64,
    whole: u64,
    repaired: u64,
    lost: u64,
}

/// Two batches, a clean stop that notes them in the anchor, then enough to roll, and small batches at the end.
fn log(clean: bool) -> Log {
    let world = World::new(FsyncPolicy::Always, 4096);
    let mut states = vec![(0, State::new())];
    let mut bed = world.open().expect("a new store");
    for round in 0..9_u8 {
        if round == 2 {
            bed.driver.close().expect("a sound disk");
            drop(bed);
            bed = world.open().expect("a clean stop");
        }
        let length = if (3..6).contains(&round) { 1000 } else { 90 };
        bed.put(&[b'a' + round % 4], &vec![round + 1; length]).expect("room");
        bed.put(b"both", &[round; 30]).expect("room");
        bed.driver.run_to_idle().expect("a sound disk");
        states.push((bed.shard.frontier.applied_next().0, bed.contents().expect("readable")));
    }
    if clean {
        bed.driver.close().expect("a sound disk");
    }
    drop(bed);
    let image = world.disk.after_kill();
    let files: Vec<PathBuf> = segment_files(&image).into_iter().map(|(_, path)| path).collect();
    assert!(files.len() >= 2, "it rolled");
    let bytes: Vec<Vec<u8>> = files.iter().map(|path| bytes_of(&image, path)).collect();
    let mut batches = Vec::new();
    for (file, content) in bytes.iter().enumerate() {
        let mut at = SEGMENT_HEADER_BYTES;
        while let Ok(header) = BatchHeader::read_fields(content.get(at..at + BATCH_HEADER_BYTES).unwrap_or_default()) {
            let holds = |next: u64| next <= header.next_offset().0;
            let state = states.iter().rev().find(|(next, _)| holds(*next)).expect("the empty state").1.clone();
            batches.push(Standing { file, at, header, state });
            at += header.length as usize;
        }
    }
    let anchor = shard_dir(&image).join("anchor");
    let anchor_bytes = bytes_of(&image, &anchor);
    Log { world, image, clean, files, bytes, anchor, anchor_bytes, batches }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

impl Log {
    fn newest(&self) -> usize {
        self.files.len() - 1
    }

    /// Replaces the bytes of a segment from `at` on and checks what opening makes of it.
    fn damage_segment(&self, file: usize, at: usize, to: &[u8], outcomes: &mut Outcomes) {
        let mut damaged = self.bytes[file].clone();
        damaged[at..at + to.len()].copy_from_slice(to);
        if damaged == self.bytes[file] {
            return;
        }
        let disk = self.image.after_kill();
        let handle = disk.open(&self.files[file]).expect("it is there");
        handle.write_at(at as u64, to).expect("a sound disk");
        handle.flush().expect("a sound disk");
        let touched =
            |from: usize, length: usize| damaged[from..from + length] != self.bytes[file][from..from + length];
        // What still proves that batches were flushed, now that these bytes are gone.
        let header_gone = touched(0, SEGMENT_HEADER_BYTES);
        let claims = self
            .batches
            .iter()
            .filter(|batch| batch.file != file || !(header_gone || touched(batch.at, BATCH_HEADER_BYTES)));
        let proof = claims.map(|batch| batch.header.durable.0).max().unwrap_or(0).max(self.noted(None));
        let may_be_torn = |batch: &Standing| {
            let extent = batch.at..batch.at + batch.header.length as usize;
            // A header is flushed before a batch follows it: only a file of nothing but zeros was never begun.
            (header_gone && damaged.iter().all(|&byte| byte == 0))
                || extent.clone().any(|from| {
                    let sector_end = (from / SECTOR + 1) * SECTOR;
                    (from == extent.start || from % SECTOR == 0)
                        && damaged[from..sector_end.min(extent.end)].iter().all(|&byte| byte == 0)
                })
        };
        let hit = self
            .batches
            .iter()
            .find(|batch| batch.file == file && (header_gone || touched(batch.at, batch.header.length as usize)));
        let what = format!("segment file {file}, {} bytes from byte {at}", to.len());
        let lost = self.check(&disk, proof, &what, outcomes);
        match (hit, lost) {
            (Some(hit), Some(lost)) => {
                assert!(lost <= hit.header.index.0, "{what}: batch {} is damaged and served", hit.header.index.0);
                assert!(may_be_torn(hit), "{what}: batch {} cannot be torn, and was cut", hit.header.index.0);
                assert!(file == self.newest() && !self.clean, "{what}: only an unclean newest segment is repaired");
            }
            (None, Some(lost)) => assert!(lost > self.last(), "{what}: undamaged batches from {lost} on were lost"),
            (_, None) => {}
        }
    }

    fn last(&self) -> u64 {
        self.batches.last().map_or(0, |batch| batch.header.index.0)
    }

    /// The newest batch the anchor notes as flushed, when the place at `spoiled` does not count.
    fn noted(&self, spoiled: Option<usize>) -> u64 {
        let places = [0, ANCHOR_PLACE].into_iter().filter(|place| Some(*place) != spoiled);
        let newest = places.max_by_key(|place| u64_at(&self.anchor_bytes, place + SEQUENCE_AT));
        newest.map_or(0, |place| u64_at(&self.anchor_bytes, place + FLUSHED_AT))
    }

    /// Opens a damaged log; gives the index of the first batch that is gone, or `None` when it was refused.
    fn check(&self, disk: &MemoryDisk, proof: u64, what: &str, outcomes: &mut Outcomes) -> Option<u64> {
        let world = self.world.with_disk(disk.clone());
        let before = disk.image_hash();
        let bed = match world.open() {
            Ok(bed) => bed,
            Err(error) => {
                let OpenError::Damaged { .. } = &error else { panic!("{what}: {error}") };
                assert_eq!(disk.image_hash(), before, "{what}: refused, and changed");
                let again = world.open().err().map(|again| again.to_string());
                assert_eq!(again, Some(error.to_string()), "{what}: refused once and not twice");
                outcomes.refused += 1;
                return None;
            }
        };
        let found = bed.contents().unwrap_or_else(|error| panic!("{what}: {error}"));
        let survived = self.batches.iter().rposition(|batch| batch.state == found);
        let kept = survived.map_or(0, |at| at + 1);
        assert!(kept > 0 || found.is_empty(), "{what}: it holds what no prefix of the log does");
        let lost = self.batches.get(kept).map_or(self.last() + 1, |batch| batch.header.index.0);
        assert!(lost > proof, "{what}: batch {lost} is gone, but everything up to {proof} is proved flushed");
        outcomes.whole += u64::from(lost > self.last());
        outcomes.lost += u64::from(lost <= self.last());
        outcomes.repaired += u64::from(bed.report.cut.is_some());
        // Recovered once or twice, it holds the same, and there is nothing left to repair.
        drop(bed);
        let again = world.open().unwrap_or_else(|error| panic!("{what}: opened once and not twice: {error}"));
        assert_eq!(again.report.cut, None, "{what}: repaired twice");
        assert_eq!(again.contents().expect("readable"), found, "{what}: the second recovery differs");
        Some(lost)
    }

    fn end_of_content(&self) -> usize {
        self.batches.last().map_or(0, |batch| batch.at + batch.header.length as usize)
    }
}

fn assert_all_kinds(outcomes: &Outcomes, clean: bool) {
    assert!(outcomes.refused > 0, "{outcomes:?}");
    assert_eq!(outcomes.repaired > 0 && outcomes.lost > 0, !clean, "{outcomes:?}");
}

#[test]
fn a_newest_segment_zeroed_from_any_byte_is_repaired_or_refused() {
    for clean in [false, true] {
        let (log, mut outcomes) = (log(clean), Outcomes::default());
        let length = log.bytes[log.newest()].len();
        for at in 0..log.end_of_content() {
            log.damage_segment(log.newest(), at, &vec![0; length - at], &mut outcomes);
        }
        println!("zeroed from every byte, clean {clean}: {outcomes:?}");
        assert_all_kinds(&outcomes, clean);
    }
}

#[test]
fn any_zeroed_sector_is_repaired_or_refused() {
    for clean in [false, true] {
        let (log, mut outcomes) = (log(clean), Outcomes::default());
        for file in 0..log.files.len() {
            for at in (0..log.bytes[file].len()).step_by(SECTOR) {
                let sector = SECTOR.min(log.bytes[file].len() - at);
                log.damage_segment(file, at, &vec![0; sector], &mut outcomes);
            }
        }
        println!("every sector zeroed, clean {clean}: {outcomes:?}");
        assert_all_kinds(&outcomes, clean);
    }
}

#[test]
fn a_segment_that_is_gone_or_empty_is_refused_whatever_the_stop_was() {
    for clean in [false, true] {
        let log = log(clean);
        for from in 0..log.files.len() {
            for emptied in [false, true] {
                let disk = log.image.after_kill();
                for path in &log.files[from..] {
                    if emptied {
                        disk.open(path).expect("it is there").set_len(0).expect("a sound disk");
                    } else {
                        disk.remove(path).expect("it is there");
                    }
                }
                let opened = log.world.with_disk(disk).open();
                let refused = matches!(opened, Err(OpenError::Damaged { .. }));
                assert!(refused, "clean {clean}, segment files from {from} on, emptied {emptied}");
            }
        }
    }
}

#[test]
fn any_flipped_bit_of_the_last_two_batches_or_behind_them_is_repaired_or_refused() {
    for clean in [false, true] {
        let (log, mut outcomes) = (log(clean), Outcomes::default());
        let from = log.batches[log.batches.len() - 2].at;
        for at in from..(log.end_of_content() + 2 * SECTOR).min(log.bytes[log.newest()].len()) {
            for bit in 0..8 {
                let flipped = log.bytes[log.newest()][at] ^ (1 << bit);
                log.damage_segment(log.newest(), at, &[flipped], &mut outcomes);
            }
        }
        println!("bits of the last two batches, clean {clean}: {outcomes:?}");
        assert!(outcomes.refused > 0 && (outcomes.repaired > 0 || clean), "{outcomes:?}");
    }
}

#[test]
fn any_flipped_bit_of_a_header_or_of_an_older_segment_is_refused() {
    for clean in [false, true] {
        let (log, mut outcomes) = (log(clean), Outcomes::default());
        for file in 0..log.files.len() {
            let end = if file == log.newest() { SEGMENT_HEADER_BYTES } else { log.bytes[file].len() };
            for at in 0..end {
                // One bit of each byte of the older batches is enough: CRCs are tested bit by bit where they are made.
                for bit in (0..8).filter(|bit| at < SEGMENT_HEADER_BYTES || at % 8 == *bit) {
                    log.damage_segment(file, at, &[log.bytes[file][at] ^ (1 << bit)], &mut outcomes);
                }
            }
        }
        println!("bits of headers and older segments, clean {clean}: {outcomes:?}");
        assert_eq!((outcomes.whole, outcomes.lost, outcomes.repaired), (0, 0, 0), "{outcomes:?}");
        assert!(outcomes.refused > 4096, "{outcomes:?}");
    }
}

#[test]
fn any_flipped_bit_of_the_anchor_costs_no_batch() {
    for clean in [false, true] {
        let (log, mut outcomes) = (log(clean), Outcomes::default());
        for place in [0, ANCHOR_PLACE] {
            for at in place..place + SECTOR {
                for bit in 0..8 {
                    let disk = log.image.after_kill();
                    let file = disk.open(&log.anchor).expect("it is there");
                    file.write_at(at as u64, &[log.anchor_bytes[at] ^ (1 << bit)]).expect("a sound disk");
                    let what = format!("anchor, byte {at}, bit {bit}");
                    let lost = log.check(&disk, log.noted(Some(place)), &what, &mut outcomes);
                    assert_eq!(lost, Some(log.last() + 1), "{what}");
                }
            }
        }
        println!("bits of the anchor, clean {clean}: {outcomes:?}");
        assert_eq!(outcomes.whole, 8192, "{outcomes:?}");
    }
}

#[test]
fn an_anchor_without_a_sound_place_is_refused() {
    let log = log(false);
    for spoil in [0, 0xff_u8] {
        let disk = log.image.after_kill();
        let file = disk.open(&log.anchor).expect("it is there");
        for place in [0, ANCHOR_PLACE] {
            file.write_at(place as u64, &[spoil; SECTOR]).expect("a sound disk");
        }
        let outcome = log.check(&disk, 0, "both places of the anchor", &mut Outcomes::default());
        assert_eq!(outcome, None);
    }
}
