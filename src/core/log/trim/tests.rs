//! What a trim promises: flushed before it, noted in both places, gone after it, and finished by the next open.

use std::collections::BTreeSet;
use std::path::Path;

use super::*;
use crate::core::entropy::Entropy;
use crate::core::error::OpenError;
use crate::core::log::FsyncPolicy;
use crate::core::log::anchor::ANCHOR_FILE;
use crate::core::log::disk::{MemoryDisk, everything_lost, torn};
use crate::core::log::frame::{BatchBuilder, BatchType, Place};
use crate::core::log::open::{FIRST_INDEX, FIRST_OFFSET, OpenReport, recover};
use crate::core::log::reader::Wait;
use crate::core::log::writer::LogOptions;
use crate::core::progress::Progress;
use crate::core::types::{CacheName, Generation, Kind, Location, Millis, Offset, ShardId, ShardNo};

const SEGMENT_BYTES: u32 = 4096;
const BODY_BYTES: usize = 1000;

fn dir() -> &'static Path {
    Path::new("/log")
}

fn options(policy: FsyncPolicy) -> LogOptions {
    LogOptions {
        shard: ShardId { kind: Kind::Cache, cache: CacheName::default_cache(), shard: ShardNo(0) },
        segment_bytes: SEGMENT_BYTES,
        policy,
        max_open_segments: 2,
        entropy: Arc::new(Entropy::seeded(7)),
    }
}

/// Opens the log; gives the indexes it holds too.
fn open(disk: &MemoryDisk, policy: FsyncPolicy) -> Result<(LogWriter, OpenReport, Vec<u64>), OpenError> {
    let mut found = Vec::new();
    let progress = Progress::default();
    let recovered = recover(Arc::new(disk.clone()), dir(), options(policy), &progress, |batch| {
        found.push(batch.header.index.0);
        Ok(())
    })?;
    found.extend(recovered.survey.uncommitted.iter().map(|batch| batch.header.index.0));
    let (total, done) = progress.read();
    assert_eq!(total, done, "what is read is told");
    let (log, report) = recovered.into_writer()?;
    Ok((log, report, found))
}

fn append(log: &mut LogWriter) -> (Location, Offset) {
    let tail = log.tail();
    let mut builder = BatchBuilder::new(BatchType::Data, tail.next_offset);
    builder.push(|into| into.resize(into.len() + BODY_BYTES, tail.next_index.0 as u8));
    let known = log.flushed();
    let place = Place { index: tail.next_index, generation: Generation(1), durable: known, committed: known };
    let at = log.append(&builder.finish(Millis(0)), place, Millis(0)).unwrap();
    // Where the record begins: behind the header of its batch.
    (Location { position: at.position + 64, length: 8 + BODY_BYTES as u32, ..at }, tail.next_offset)
}

/// A log of twelve batches, three to a segment; the last one is not flushed.
fn log(disk: &MemoryDisk, policy: FsyncPolicy) -> LogWriter {
    let (mut log, _, _) = open(disk, policy).unwrap();
    for _ in 0..12 {
        append(&mut log);
    }
    assert_eq!((log.segments().held().len(), log.has_unflushed()), (4, true));
    log
}

fn files(disk: &MemoryDisk) -> Vec<u64> {
    let names = disk.list(dir()).unwrap();
    names.iter().filter_map(|name| segment::parse_file_name(name)).map(|number| number.0).collect()
}

fn trim_to(log: &mut LogWriter, number: u64) -> io::Result<Removal> {
    let start = log.start_of(SegmentNo(number)).expect("the log holds it");
    log.trim(&start)
}

#[test]
fn a_trim_takes_the_segments_below_and_the_rest_opens_as_it_was() {
    for policy in [FsyncPolicy::Always, FsyncPolicy::EverySec, FsyncPolicy::Never] {
        let disk = MemoryDisk::new();
        let mut log = log(&disk, policy);
        let (log_bytes, disk_bytes) = (log.log_bytes(), log.disk_bytes());
        let removal = trim_to(&mut log, 3).unwrap();
        assert_eq!(files(&disk), [1, 2, 3, 4], "nothing is removed before it is asked for");
        let freed = removal.carry_out().unwrap();
        assert_eq!((files(&disk), freed), (vec![3, 4], log_bytes - log.log_bytes()));
        assert_eq!(freed, disk_bytes - log.disk_bytes());
        let start = log.anchor().state().start.clone();
        assert_eq!((start.index, start.offset), (Index(FIRST_INDEX.0 + 6), Offset(FIRST_OFFSET.0 + 6)));
        append(&mut log);
        let (reopened, _, found) = open(&disk.after_kill(), policy).unwrap();
        assert_eq!(found, (start.index.0..=start.index.0 + 6).collect::<Vec<_>>(), "{policy:?}");
        assert_eq!((reopened.start_at(start.index), reopened.tail().next_index), (Some(start), log.tail().next_index));
    }
}

#[test]
fn a_trim_to_the_active_segment_leaves_numbers_that_never_rewind() {
    let disk = MemoryDisk::new();
    let mut log = log(&disk, FsyncPolicy::Always);
    trim_to(&mut log, 4).unwrap().carry_out().unwrap();
    assert_eq!(files(&disk), [4]);
    log.note_flushed(true).unwrap();
    let tail = log.tail();
    drop(log);
    let (reopened, report, _) = open(&disk, FsyncPolicy::Always).unwrap();
    assert_eq!((reopened.tail(), report.unclean), (tail, false));
    assert_eq!((reopened.log_bytes(), reopened.disk_bytes()), (512 + 3 * 1072, u64::from(SEGMENT_BYTES)));
}

#[test]
fn everything_is_flushed_before_the_first_file_goes_whatever_the_policy() {
    for policy in [FsyncPolicy::Always, FsyncPolicy::EverySec, FsyncPolicy::Never] {
        let disk = MemoryDisk::new();
        let mut log = log(&disk, policy);
        let last = log.tail().next_index.0 - 1;
        let removal = trim_to(&mut log, 3).unwrap();
        assert_eq!((log.flushed(), log.has_unflushed()), (Index(last), false));
        removal.carry_out().unwrap();
        let (_, _, found) = open(&disk.after_power_cut(&mut everything_lost()), policy).unwrap();
        assert_eq!(found.last(), Some(&last), "{policy:?}");
    }
}

#[test]
fn a_trim_at_or_below_the_start_of_the_log_does_nothing() {
    let disk = MemoryDisk::new();
    let mut log = log(&disk, FsyncPolicy::Always);
    let (first, second) = (log.start_of(SegmentNo(1)).unwrap(), log.start_of(SegmentNo(2)).unwrap());
    assert!(log.trim(&first).unwrap().is_empty());
    trim_to(&mut log, 3).unwrap().carry_out().unwrap();
    let effects = disk.effects();
    assert!(log.trim(&second).unwrap().is_empty());
    assert_eq!(log.trim(&second).unwrap().carry_out().unwrap(), 0);
    assert_eq!(disk.effects(), effects);
}

#[test]
fn a_power_cut_at_any_effect_of_a_trim_leaves_the_log_or_its_rest() {
    let (mut whole, mut trimmed, mut finished) = (0, 0, 0);
    for effects in 0.. {
        let mut reached = true;
        for seed in 0..8 {
            let disk = MemoryDisk::new();
            let mut log = log(&disk, FsyncPolicy::Always);
            let last = log.tail().next_index.0 - 1;
            log.flushed_upto(Index(last), log.flush_target().unwrap().flush()).unwrap();
            disk.power_off_after(disk.effects() + effects);
            let done = trim_to(&mut log, 3).and_then(Removal::carry_out);
            reached &= done.is_ok();
            let disk = disk.after_power_cut(&mut torn(seed));
            let left = files(&disk);
            let (_, _, found) = open(&disk, FsyncPolicy::Always).unwrap_or_else(|error| panic!("{effects}: {error}"));
            assert_eq!(found.last(), Some(&last), "after {effects} effects");
            let first = found[0];
            assert!([2, 8].contains(&first), "after {effects} effects it begins at {first}");
            (whole, trimmed) = (whole + u64::from(first == 2), trimmed + u64::from(first == 8));
            if first == 8 {
                // What the trim left behind is gone now; and both places of the anchor say so.
                finished += u64::from(left != [3, 4]);
                assert!(files(&disk).iter().all(|number| *number >= 3), "{:?}", files(&disk));
                for place in [0, 4096] {
                    let disk = disk.after_kill();
                    disk.open(&dir().join(ANCHOR_FILE)).unwrap().write_at(place, &[0xff; 512]).unwrap();
                    let (_, _, again) = open(&disk, FsyncPolicy::Always).unwrap();
                    assert_eq!(again, found, "place {place} lost after {effects} effects");
                }
            }
        }
        if reached {
            break;
        }
    }
    println!("whole {whole}, trimmed {trimmed}, finished by the open {finished}");
    assert!(whole > 0 && trimmed > 0 && finished > 0);
}

#[test]
fn what_stands_below_the_start_of_the_log_is_removed_unread() {
    let disk = MemoryDisk::new();
    let mut log = log(&disk, FsyncPolicy::Always);
    drop(trim_to(&mut log, 3).unwrap());
    drop(log);
    for (number, bytes) in [(1, &[0xee; 700][..]), (2, &[][..])] {
        let path = dir().join(segment::file_name(SegmentNo(number)));
        disk.remove(&path).unwrap();
        disk.create(&path).unwrap().write_at(0, bytes).unwrap();
    }
    let (_, _, found) = open(&disk, FsyncPolicy::Always).unwrap();
    assert_eq!((found[0], files(&disk)), (8, vec![3, 4]));
}

#[test]
fn a_refused_log_keeps_what_stands_below_its_start() {
    let disk = MemoryDisk::new();
    let mut log = log(&disk, FsyncPolicy::Always);
    drop(trim_to(&mut log, 3).unwrap());
    drop(log);
    let path = dir().join(segment::file_name(SegmentNo(3)));
    disk.open(&path).unwrap().write_at(600, &[0xee; 100]).unwrap();
    disk.open(&path).unwrap().flush().unwrap();
    let before = disk.image_hash();
    assert!(matches!(open(&disk, FsyncPolicy::Always), Err(OpenError::Damaged { .. })));
    assert_eq!(disk.image_hash(), before);
}

#[test]
fn a_failure_before_the_first_file_goes_is_the_last_thing_the_log_does() {
    for fault in 1..=3 {
        let disk = MemoryDisk::new();
        let mut log = log(&disk, FsyncPolicy::Always);
        // The flush of the active file, then one for each place of the anchor.
        disk.fail_flush(fault);
        assert!(trim_to(&mut log, 3).is_err(), "flush {fault}");
        disk.fail_flush(0);
        assert_eq!(files(&disk), [1, 2, 3, 4]);
        assert!(log.trim(&log.start_of(SegmentNo(4)).unwrap()).is_err(), "flush {fault}");
        assert!(log.note_flushed(false).is_err() && log.flush_target().is_none());
        let (_, _, found) = open(&disk.after_power_cut(&mut everything_lost()), FsyncPolicy::Always).unwrap();
        assert!(found.len() >= 6);
    }
}

#[test]
fn a_record_of_a_lost_segment_is_read_by_whoever_holds_it() {
    let disk = MemoryDisk::new();
    let (mut log, _, _) = open(&disk, FsyncPolicy::Always).unwrap();
    let written: Vec<(Location, Offset)> = (0..12).map(|_| append(&mut log)).collect();
    let segments = log.segments();
    let held: Vec<_> = written.iter().map(|(at, _)| segments.get(at.segment).unwrap()).collect();
    trim_to(&mut log, 4).unwrap().carry_out().unwrap();
    let gone: BTreeSet<u64> = written.iter().map(|(at, _)| at.segment.0).filter(|number| *number < 4).collect();
    assert!(gone.iter().all(|number| segments.get(SegmentNo(*number)).is_none()) && gone.len() == 3);
    let mut scratch = Vec::new();
    for ((at, offset), segment) in written.iter().zip(&held) {
        let body = segment.read(*at, *offset, Wait::IfNeeded, &mut scratch).unwrap();
        assert_eq!(body, [(offset.0 + 1) as u8; BODY_BYTES]);
    }
}

#[test]
fn the_clock_is_noted_with_the_next_change_of_the_anchor_and_never_falls() {
    let disk = MemoryDisk::new();
    let (mut log, _, _) = open(&disk, FsyncPolicy::Always).unwrap();
    log.note_clock(Millis(50));
    log.note_clock(Millis(40));
    assert_eq!(log.anchor().state().clock, Millis(0));
    append(&mut log);
    assert_eq!(log.anchor().state().clock, Millis(50), "a segment was begun");
    log.note_clock(Millis(60));
    log.note_flushed(false).unwrap();
    drop(log);
    let (mut log, _, _) = open(&disk, FsyncPolicy::Always).unwrap();
    log.save_vote(Generation(2), None).unwrap();
    assert_eq!(log.anchor().state().clock, Millis(60), "it outlives the process");
}

#[test]
fn what_is_left_to_write_is_told_before_and_after_a_spare_is_there() {
    let disk = MemoryDisk::new();
    let (mut log, _, _) = open(&disk, FsyncPolicy::Always).unwrap();
    assert_eq!((log.active_left(), log.spare_left(), log.disk_bytes()), (0, 0, 0));
    append(&mut log);
    append(&mut log);
    assert_eq!((log.active_left(), log.spare_left()), (4096 - 512 - 2 * 1072, 0));
    let spare = log.spare_wanted(false).unwrap().fill_all().unwrap();
    log.accept_spare(spare);
    assert_eq!((log.spare_left(), log.disk_bytes()), (4096 - 512, 2 * 4096));
    assert_eq!(log.log_bytes(), 512 + 2 * 1072);
}
