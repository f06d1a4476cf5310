//! Writes and flushes that fail, bytes that rot, directories that are not ours: nothing is retried, nothing is guessed.
//!
//! Must never know how a broker ends after a failure; only what it had told by then.

use std::path::Path;

use hearth::core::api::{Fate, WriteError};
use hearth::core::error::{OpenError, ReadError, Refusal};
use hearth::core::log::FsyncPolicy;
use hearth::core::log::disk::{Disk, MemoryDisk};
use hearth::core::log::reader::Wait;
use hearth::core::shard::read::Pinned;
use hearth::core::types::Location;

use crate::bed::{Bed, POLICIES, ROOT, UNKNOWN, World, bytes_of, segment_files, shard_dir, shard_id};
use crate::judge::{Case, End, SEGMENT_BYTES, at_every, judge, wanted, wanted_effect};
use crate::power_cut::left_by_a_cut;
use crate::script::script;

fn fail_everywhere(end: End, test: &'static str) {
    for policy in POLICIES.into_iter().filter(|policy| wanted(*policy)) {
        let counts = at_every(end, 1, policy, &script(5, 120), |effect, world, told, counts| {
            let failed = world.disk.counts();
            assert_eq!(failed.failed_flushes + failed.failed_writes, 1, "one fault, and nothing after it");
            for (tear, disk) in left_by_a_cut(&world.disk, effect) {
                let _case = Case { test, policy, effect, tear };
                judge(world, disk, told, counts);
            }
            let _case = Case { test, policy, effect, tear: "the page cache".into() };
            judge(world, world.disk.after_kill(), &told.after_kill(), counts);
        });
        println!("{end:?} under {policy:?}: {counts:?}");
        if wanted_effect().is_none() {
            assert!(counts.cuts > 20 && counts.recoveries > 2 * counts.cuts, "{counts:?}");
            let told_of_failures = policy == FsyncPolicy::Always || end == End::WriteFails;
            assert!(counts.seen.unknown > 0 && counts.seen.refused > 0 || !told_of_failures, "{counts:?}");
        }
    }
}

#[test]
fn a_failed_flush_is_never_retried_and_what_was_told_survives() {
    fail_everywhere(End::FlushFails, "a_failed_flush_is_never_retried_and_what_was_told_survives");
}

#[test]
fn a_failed_write_is_never_retried_and_what_was_told_survives() {
    fail_everywhere(End::WriteFails, "a_failed_write_is_never_retried_and_what_was_told_survives");
}

#[test]
fn after_a_failed_flush_its_batch_is_unknown_and_later_ones_are_refused() {
    let world = World::new(FsyncPolicy::Always, SEGMENT_BYTES);
    let mut bed = world.open().expect("a new store");
    let applied = bed.put(b"a", b"1").expect("room");
    bed.driver.run_to_idle().expect("a sound disk");
    // More than one batch takes, so that some of it is not proposed when the flush fails.
    let staged: Vec<_> = (0..14_u8).map(|key| bed.put(&[key], &[key; 1000]).expect("room")).collect();
    world.disk.fail_flush(1);
    bed.driver.run_to_idle().expect_err("the flush fails");
    assert_eq!(bed.fate(applied), Some(Fate::Applied));
    let fates: Vec<_> = staged.iter().map(|hold| bed.fate(*hold).expect("settled")).collect();
    let unknown = fates.iter().take_while(|fate| **fate == UNKNOWN).count();
    assert!(unknown > 0 && unknown < fates.len(), "{fates:?}");
    assert!(fates[unknown..].iter().all(|fate| *fate == Fate::Refused(Refusal::Poisoned)), "{fates:?}");
    assert_eq!(bed.put(b"b", b""), Err(WriteError::Refused(Refusal::Poisoned)));
    assert_eq!(bed.get(b"a").expect("reads go on").as_deref(), Some(&b"1"[..]));
    assert_eq!(bed.get(&[0]).expect("reads go on"), None, "what is unknown is not served");
}

#[test]
fn under_everysec_a_failed_flush_ends_the_shard_and_is_not_tried_again_when_due() {
    let world = World::new(FsyncPolicy::EverySec, SEGMENT_BYTES);
    let mut bed = world.open().expect("a new store");
    bed.put_acknowledged(b"a", b"1");
    world.clock.advance(1_000);
    world.disk.fail_flush(1);
    bed.driver.flush_if_due().expect_err("the flush fails");
    let counts = world.disk.counts();
    world.clock.advance(10_000);
    let _ = bed.driver.flush_if_due();
    assert_eq!(bed.put(b"b", b""), Err(WriteError::Refused(Refusal::Poisoned)));
    bed.driver.close().expect_err("no clean stop after a failed flush");
    assert_eq!(world.disk.counts(), counts, "a failed flush was tried again");
    assert!(world.with_disk(world.disk.after_kill()).open().expect("it opens").report.unclean);
}

#[test]
fn after_a_clean_stop_nothing_is_staged_and_nothing_is_written_behind_its_mark() {
    let world = World::new(FsyncPolicy::Always, SEGMENT_BYTES);
    let mut bed = world.open().expect("a new store");
    bed.put_acknowledged(b"a", b"1");
    bed.driver.close().expect("a sound disk");
    let stopped = world.disk.image_hash();
    if let Ok(hold) = bed.put(b"b", b"2") {
        bed.driver.run_to_idle().expect("a sound disk");
        panic!("staged after the stop, and its writer is told {:?}", bed.fate(hold));
    }
    bed.driver.run_to_idle().expect("nothing to do");
    assert_eq!(world.disk.image_hash(), stopped);
    assert_eq!(bed.get(b"a").expect("reads go on").as_deref(), Some(&b"1"[..]));
    assert!(!world.with_disk(world.disk.after_kill()).open().expect("it opens").report.unclean);
}

/// A store with two values of one length in one batch, and where they stand.
fn two_values() -> (World, Bed, [Location; 2]) {
    let world = World::new(FsyncPolicy::Always, SEGMENT_BYTES);
    let mut bed = world.open().expect("a new store");
    bed.put(b"a", b"one").expect("room");
    bed.put_acknowledged(b"b", b"two");
    let at = [&b"a"[..], b"b"].map(|key| bed.shard.index.view().get(key).expect("it is there").location);
    (world, bed, at)
}

fn assert_mismatch(bed: &Bed, key: &[u8], what: &str) {
    match bed.get(key) {
        Err(ReadError::Mismatch { shard, .. }) => assert_eq!(shard, shard_id()),
        other => panic!("{what}: {other:?}"),
    }
}

#[test]
fn a_damaged_record_is_an_error_and_never_a_miss() {
    let (world, bed, [at, _]) = two_values();
    let (_, path) = &segment_files(&world.disk)[0];
    let sound = bytes_of(&world.disk, path);
    let file = world.disk.open(path).expect("it is there");
    for position in at.position..at.position + at.length {
        for bit in 0..8 {
            let byte = sound[position as usize];
            file.write_at(position.into(), &[byte ^ (1 << bit)]).expect("a sound disk");
            assert_mismatch(&bed, b"a", &format!("byte {position}, bit {bit}"));
            file.write_at(position.into(), &[byte]).expect("a sound disk");
        }
    }
    assert_eq!(bed.get(b"a").expect("whole again").as_deref(), Some(&b"one"[..]));
    file.set_len(u64::from(at.position + at.length) - 1).expect("a sound disk");
    assert_mismatch(&bed, b"a", "a file that ends within the record");
}

#[test]
fn a_large_value_comes_back_in_pieces_and_a_damaged_one_does_not() {
    let mut world = World::new(FsyncPolicy::Always, 4 * 1024 * 1024);
    world.options.max_value_bytes = 1024 * 1024;
    let mut bed = world.open().expect("a new store");
    let value: Vec<u8> = (0..700_001_u32).map(|i| (i % 253) as u8).collect();
    bed.put_acknowledged(b"large", &value);
    let entry = bed.shard.index.view().get(b"large").expect("it is there");
    let pinned = Pinned::new(&bed.shard, entry).expect("its segment is there");
    let mut pieces = pinned.verify(b"large").expect("a sound disk");
    assert_eq!(pieces.remaining(), value.len());
    let (mut whole, mut piece) = (Vec::new(), Vec::new());
    while pieces.remaining() > 0 {
        pieces.next(Wait::IfNeeded, &mut piece).expect("a sound disk");
        whole.extend_from_slice(&piece);
    }
    assert!(whole == value);
    assert!(pinned.verify(b"other").is_err(), "the record of another key");
    // Damaged between the verification and the sending: the last piece is not given out.
    let mut pieces = pinned.verify(b"large").expect("a sound disk");
    let (_, path) = &segment_files(&world.disk)[0];
    let middle = u64::from(entry.location.position) + 400_000;
    world.disk.open(path).expect("it is there").write_at(middle, &[255]).expect("a sound disk");
    assert!(matches!(pinned.verify(b"large"), Err(ReadError::Mismatch { .. })));
    let sent = std::iter::from_fn(|| pieces.next(Wait::IfNeeded, &mut piece).ok().flatten()).take_while(|more| *more);
    assert!(sent.count() > 0 && pieces.next(Wait::IfNeeded, &mut piece).is_err());
}

#[test]
fn a_sound_record_in_another_records_place_is_an_error() {
    let (world, bed, [a, b]) = two_values();
    let (_, path) = &segment_files(&world.disk)[0];
    let bytes = bytes_of(&world.disk, path);
    let record = &bytes[b.position as usize..(b.position + b.length) as usize];
    assert_eq!(a.length, b.length);
    world.disk.open(path).expect("it is there").write_at(a.position.into(), record).expect("a sound disk");
    assert_mismatch(&bed, b"a", "the record of b in the place of a");
    assert_eq!(bed.get(b"b").expect("untouched").as_deref(), Some(&b"two"[..]));
}

#[test]
fn a_second_process_is_refused_until_the_first_is_gone() {
    let world = World::new(FsyncPolicy::Always, SEGMENT_BYTES);
    let bed = world.open().expect("a new store");
    let before = world.disk.image_hash();
    assert!(matches!(world.open_store(), Err(OpenError::Locked { path }) if path == Path::new(ROOT)));
    assert_eq!(world.disk.image_hash(), before);
    drop(bed);
    assert!(world.open().is_ok());
}

/// Opens the shard of `disk`, expects a refusal, and that not a byte or name of it was changed.
fn refused(disk: &MemoryDisk) -> OpenError {
    let before = disk.image_hash();
    let error = World::new(FsyncPolicy::Always, SEGMENT_BYTES).with_disk(disk.clone()).open().err();
    assert_eq!(disk.image_hash(), before, "a refused directory was changed");
    error.expect("this must be refused")
}

fn disk_with(files: &[(&str, &[u8])]) -> MemoryDisk {
    let disk = MemoryDisk::new();
    for (name, bytes) in files {
        let path = Path::new(ROOT).join(name);
        disk.create_dir(path.parent().expect("below the root")).expect("a sound disk");
        disk.create(&path).expect("a sound disk").write_at(0, bytes).expect("a sound disk");
    }
    disk
}

fn node_file(disk: &MemoryDisk) -> Vec<u8> {
    bytes_of(disk, &Path::new(ROOT).join("node.toml"))
}

#[test]
fn a_directory_of_somebody_else_is_left_alone() {
    for name in ["dump.rdb", "caches/x/0/anchor", "node.toml.old"] {
        assert!(matches!(refused(&disk_with(&[(name, b"theirs")])), OpenError::NotOurs { .. }), "{name}");
    }
}

#[test]
fn a_node_file_of_another_format_or_none_is_left_alone() {
    let with_node = |node: &[u8]| refused(&disk_with(&[("hearth.lock", b""), ("node.toml", node)]));
    assert!(matches!(with_node(b"format = 3\nnew = true\n"), OpenError::OtherFormat { .. }));
    for damaged in
        [&b""[..], b"format = ", b"broker = \"x\"", b"format = 1", b"format = 1\nbroker = \"x\"\nmore = 1", b"\xff"]
    {
        assert!(matches!(with_node(damaged), OpenError::Damaged { .. }), "{damaged:?}");
    }
}

#[test]
fn a_known_shard_without_its_directory_or_its_log_is_refused_and_never_made_anew() {
    let (world, bed, _) = two_values();
    drop(bed);
    let node = node_file(&world.disk);
    let gone = disk_with(&[("hearth.lock", b""), ("node.toml", &node)]);
    assert!(matches!(refused(&gone), OpenError::Damaged { what, .. } if what.contains("directory is gone")));
    // The directory is there and the log is not.
    gone.create_dir(&shard_dir(&world.disk)).expect("a sound disk");
    assert!(matches!(refused(&gone), OpenError::Damaged { what, .. } if what.contains("no log")));
    // The anchor is gone, or a segment that the next one says was before it.
    for (name, reason) in [("anchor", "anchor file is missing"), ("0000000000000001.seg", "the log begins at")] {
        let disk = world.disk.after_kill();
        let mut bed = world.with_disk(disk.clone()).open().expect("it opens");
        bed.put_acknowledged(b"c", b"in segment 2");
        drop(bed);
        disk.remove(&shard_dir(&disk).join(name)).expect("it was there");
        let error = refused(&disk);
        assert!(matches!(&error, OpenError::Damaged { what, .. } if what.contains(reason)), "{error}");
    }
}
