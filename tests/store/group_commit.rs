//! Group commit, counted at the Disk door: what costs a write, what costs a flush, and what an answer waits for.
//!
//! No clock, only counts.

use hearth::core::api::{Fate, Hold, Progress, WriteError};
use hearth::core::clock::Clock;
use hearth::core::log::FsyncPolicy;
use hearth::core::log::disk::{Disk, EffectCounts, MemoryDisk};
use hearth::core::log::scan::{End, ScannedBatch, scan};
use hearth::core::log::segment::{HeaderRead, SegmentHeader};
use hearth::core::op::{Condition, Put};
use hearth::core::shard::stage::Value;
use hearth::core::types::{Offset, Revision};

use crate::bed::{Bed, POLICIES, World, bytes_of, put, segment_files, shard_id, value_of};

const ROOMY: u32 = 1024 * 1024;

fn open(policy: FsyncPolicy, segment_bytes: u32) -> (World, Bed) {
    let world = World::new(policy, segment_bytes);
    let bed = world.open().expect("a new store");
    (world, bed)
}

/// Writes and flushes of files that `act` costs, after the last clean start left nothing to do.
fn cost_of(disk: &MemoryDisk, act: impl FnOnce()) -> (u64, u64) {
    let before: EffectCounts = disk.counts();
    act();
    let after = disk.counts();
    (after.writes - before.writes, after.flushes - before.flushes)
}

#[test]
fn sixteen_writers_cost_one_write_and_one_flush() {
    for (policy, flushes) in POLICIES.into_iter().zip([1, 0, 0]) {
        let (world, mut bed) = open(policy, ROOMY);
        let mut holds = Vec::new();
        let cost = cost_of(&world.disk, || {
            holds.extend((0..16_u8).map(|writer| bed.put(&[writer], b"value").expect("room")));
            assert!(holds.iter().all(|hold| bed.fate(*hold).is_none()), "nothing is acknowledged before it is written");
            bed.driver.run_to_idle().expect("a sound disk");
        });
        assert_eq!(cost, (1, flushes), "{policy:?}");
        assert!(holds.iter().all(|hold| bed.fate(*hold) == Some(Fate::Applied)));
        assert_eq!(bed.cache.len(), 16);
    }
}

#[test]
fn nothing_staged_costs_nothing() {
    let (world, mut bed) = open(FsyncPolicy::Always, ROOMY);
    bed.put_acknowledged(b"a", b"1");
    assert_eq!(cost_of(&world.disk, || bed.driver.run_to_idle().expect("a sound disk")), (0, 0));
}

#[test]
fn a_pipeline_reads_its_own_writes_in_order_and_costs_one_flush() {
    let (world, mut bed) = open(FsyncPolicy::Always, ROOMY);
    let turns = bed.turns();
    let mut holds: Vec<Hold> = Vec::new();
    let cost = cost_of(&world.disk, || {
        let mut turn = turns.turn();
        for value in [b"1", b"2"] {
            let (outcome, written) = turn.put(&put(b"a", value)).expect("room");
            let (found, read) = turn.get(b"a").expect("readable");
            assert_eq!(value_of(&found.expect("a live value"), b"a").expect("readable"), value);
            assert_eq!(outcome.hold, outcome.written);
            let resting = written.map(|hold| Hold { wrote: false, ..hold });
            assert_eq!(read, resting, "the read waits for the write it saw, and wrote nothing itself");
            holds.extend([written, read].into_iter().flatten());
        }
        drop(turn);
        assert_eq!(holds.len(), 4);
        assert!(holds.iter().all(|hold| bed.fate(*hold).is_none()));
        bed.driver.run_to_idle().expect("a sound disk");
    });
    assert_eq!(cost, (1, 1));
    assert!(holds.iter().all(|hold| bed.fate(*hold) == Some(Fate::Applied)));
}

#[test]
fn another_turn_sees_applied_state_only() {
    let (_, mut bed) = open(FsyncPolicy::Always, ROOMY);
    bed.put_acknowledged(b"old", b"applied");
    let turns = bed.turns();
    let mut turn = turns.turn();
    turn.put(&put(b"old", b"staged")).expect("room");
    turn.put(&put(b"new", b"staged")).expect("room");
    turn.delete(b"old").expect("room");
    drop(turn);
    let get = |bed: &Bed, key: &[u8]| bed.get(key).expect("readable");
    assert_eq!(get(&bed, b"old").as_deref(), Some(&b"applied"[..]));
    assert_eq!(get(&bed, b"new"), None);
    assert_eq!(bed.turns().turn().exists(b"new").expect("readable"), (false, None));
    bed.driver.run_to_idle().expect("a sound disk");
    assert_eq!(get(&bed, b"old"), None);
    assert_eq!(get(&bed, b"new").as_deref(), Some(&b"staged"[..]));
}

#[test]
fn an_outcome_that_writes_nothing_waits_for_the_staged_record_it_rests_on() {
    let (_, mut bed) = open(FsyncPolicy::Always, ROOMY);
    bed.put_acknowledged(b"applied", b"1");
    let turns = bed.turns();
    let mut turn = turns.turn();
    let absent = |key| Put { condition: Condition::Absent, ..put(key, b"x") };
    // Resting on applied state, or on nothing at all: at once.
    assert_eq!(turn.put(&absent(b"applied")).expect("room").1, None);
    assert_eq!(turn.delete(b"missing").expect("room").1, None);
    let (staged, hold) = turn.put(&put(b"k", b"1")).expect("room");
    drop(turn);
    // Of another client, resting on that put.
    let other = bed.turns();
    let mut turn = other.turn();
    let (refused, refused_hold) = turn.put(&absent(b"k")).expect("room");
    assert_eq!((refused.held, refused.written, refused.hold), (false, None, staged.written));
    assert_eq!(hold.map(|hold| hold.wrote), Some(true));
    assert_eq!(refused_hold, hold.map(|hold| Hold { wrote: false, ..hold }));
    assert!(matches!(refused.previous, Some(Value::Staged { .. })));
    let cas = Put { condition: Condition::Revision(Revision(1)), ..put(b"k", b"x") };
    assert_eq!(turn.put(&cas).expect("room").0.hold, staged.written);
    // A delete, and a second one that rests on the first.
    let (deleted, _) = turn.delete(b"k").expect("room");
    let (nothing, _) = turn.delete(b"k").expect("room");
    assert_eq!((nothing.written, nothing.hold), (None, deleted.written));
    drop(turn);
    let newest = nothing.hold.expect("it rests on the delete");
    assert_eq!(bed.shard.frontier.fate(newest), None);
    bed.driver.run_to_idle().expect("a sound disk");
    assert_eq!(bed.shard.frontier.fate(newest), Some(Fate::Applied));
}

#[test]
fn everysec_flushes_once_for_all_that_is_a_second_old() {
    let (world, mut bed) = open(FsyncPolicy::EverySec, ROOMY);
    let cost = cost_of(&world.disk, || {
        for key in 0..5_u8 {
            bed.put_acknowledged(&[key], b"value");
            world.clock.advance(199);
            bed.driver.flush_if_due().expect("a sound disk");
        }
    });
    assert_eq!(cost, (5, 0));
    world.clock.advance(5);
    let cost = cost_of(&world.disk, || {
        for _ in 0..3 {
            bed.driver.flush_if_due().expect("a sound disk");
        }
    });
    assert_eq!(cost, (0, 1));
}

#[test]
fn what_is_staged_is_bounded_and_there_is_room_again_after_applying() {
    const SEGMENT: u32 = 16 * 1024;
    let (world, mut bed) = open(FsyncPolicy::Always, SEGMENT);
    let bound = 2 * world.max_batch_bytes();
    let (mut staged, mut rounds) = (0, 0);
    for round in 0..3 {
        let (mut bytes, mut last) = (0, None);
        loop {
            match bed.put(b"key", &[round; 500]) {
                Ok(hold) => {
                    bytes += 8 + 14 + 3 + 500;
                    last = Some(hold);
                }
                Err(full) => {
                    assert!(matches!(full, WriteError::Full(_)));
                    break;
                }
            }
            assert!(bytes <= bound, "{bytes} bytes are staged, the bound is {bound}");
        }
        assert!(bytes + 2 * (525 + 64 + 8) > bound, "refused at {bytes} of {bound}");
        // A refusal for room stages nothing and says so again.
        assert!(matches!(bed.put(b"other", &[0; 500]), Err(WriteError::Full(_))));
        bed.driver.run_to_idle().expect("a sound disk");
        assert_eq!(bed.fate(last.expect("something fits")), Some(Fate::Applied));
        assert_eq!(bed.get(b"other").expect("readable"), None);
        (staged, rounds) = (staged + bytes, rounds + 1);
    }
    assert!(rounds == 3 && staged > 2 * bound);
}

#[test]
fn a_batch_is_in_one_segment_and_within_its_bound() {
    const SEGMENT: u32 = 8 * 1024;
    let (world, mut bed) = open(FsyncPolicy::Always, SEGMENT);
    for round in 0..60_u32 {
        for key in 0..(1 + round % 7) {
            let value = vec![7; (round * 37 % 1100) as usize];
            bed.put(&key.to_le_bytes(), &value).expect("room");
        }
        bed.driver.run_to_idle().expect("a sound disk");
    }
    let (mut batches, mut longest, mut next) = (0, 0, None::<(Offset, u64)>);
    let files = segment_files(&world.disk);
    for (number, path) in &files {
        let bytes = bytes_of(&world.disk, path);
        let HeaderRead::Sound(header) = SegmentHeader::decode(&bytes, &shard_id(), *number) else {
            panic!("segment {number:?} has no sound header");
        };
        assert!(next.is_none_or(|next| next == (header.base_offset, header.base_index.0)));
        let file = world.disk.open(path).expect("it is there");
        let found = scan(&*file, &header, |batch: ScannedBatch<'_>| -> std::io::Result<()> {
            batches += 1;
            longest = longest.max(batch.bytes.len());
            assert!(batch.position as usize + batch.bytes.len() <= bytes.len());
            Ok(())
        });
        let found = found.expect("a sound disk");
        assert_eq!(found.end, End::Clean);
        next = Some((found.next_offset, found.next_index.0));
    }
    assert!(files.len() > 10 && batches > 60, "{} segments, {batches} batches", files.len());
    assert!(longest <= world.max_batch_bytes(), "{longest} bytes");
    assert!(longest > world.max_batch_bytes() / 2, "the longest batch has only {longest} bytes");
    assert_eq!(bed.turns().turn().now(), world.clock.now());
}

#[test]
fn regression_the_deletes_of_one_request_are_staged_all_or_none_however_little_room_is_left() {
    let (_, mut bed) = open(FsyncPolicy::Always, 4096);
    let keys = [&b"a"[..], b"b", b"c", b"d", b"e", b"f"];
    let (mut staged, mut full) = (0, 0);
    // Nearly two batches, which is all that may be staged: the second one ends with so much room, or so little.
    for bytes in 700..=1024 {
        for key in keys {
            bed.put_acknowledged(key, b"value");
        }
        for (filler, bytes) in [(b"1", 900), (b"2", 900), (b"3", 900), (b"4", bytes)] {
            bed.put(filler, &vec![0; bytes]).expect("room");
        }
        let next = bed.shard.machine().next_offset();
        let mut progress = Progress::default();
        let deleted = bed.turns().turn().delete_all(keys.into_iter(), &mut progress);
        let now = bed.shard.machine().next_offset();
        match deleted {
            Ok(()) => assert_eq!((progress.count, now), (6, next.plus(6))),
            Err(error) => {
                assert!(matches!(error, WriteError::Full(_)) && now == next, "{bytes}: some were staged");
            }
        }
        staged += u64::from(now > next);
        full += u64::from(now == next);
        bed.driver.run_to_idle().expect("a sound disk");
    }
    assert!(staged > 20 && full > 20, "{staged} staged, {full} waited");
}

#[test]
fn the_deletes_of_one_request_are_in_one_batch() {
    let (world, mut bed) = open(FsyncPolicy::Always, 16 * 1024);
    let keys: Vec<[u8; 1]> = (0..40).map(|i| [i]).collect();
    for key in &keys {
        bed.put_acknowledged(key, b"value");
    }
    // Room for some of the deletes, not for all of them.
    for filler in [&b"filler 1"[..], b"filler 2"] {
        bed.put(filler, &[0; 3800]).expect("room");
    }
    let turns = bed.turns();
    let mut turn = turns.turn();
    let mut progress = Progress::default();
    turn.delete_all(keys.iter().map(<[u8; 1]>::as_slice), &mut progress).expect("room");
    drop(turn);
    let Progress { count: removed, holds, .. } = progress;
    assert_eq!((removed, holds.len()), (40, 40));
    bed.driver.run_to_idle().expect("a sound disk");
    let (first, last) = (holds[0].offset, holds[39].offset);
    let mut sizes = Vec::new();
    for (number, path) in segment_files(&world.disk) {
        let HeaderRead::Sound(header) = SegmentHeader::decode(&bytes_of(&world.disk, &path), &shard_id(), number)
        else {
            continue;
        };
        let file = world.disk.open(&path).expect("it is there");
        let scanned = scan::<std::io::Error>(&*file, &header, |batch: ScannedBatch<'_>| {
            let deletes = (first.0..=last.0)
                .filter(|offset| (batch.header.first_offset.0..batch.header.next_offset().0).contains(offset));
            sizes.push(deletes.count());
            Ok(())
        });
        assert_eq!(scanned.expect("a sound disk").end, End::Clean);
    }
    sizes.retain(|&count| count > 0);
    assert_eq!(sizes, [40], "deletes of the request in each batch that has one");
}
