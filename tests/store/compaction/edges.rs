//! What no random run meets: an index that is wrong, a segment that rots, one that is read in pieces, and what random runs
//! found.

use hearth::core::limits::{
    CARRY_MOST_PIECE_BYTES, COMPACTION_FAULT_REST_MS, COMPACTION_MOST_READ_BYTES, COMPACTION_SLACK_SEGMENTS,
    MAX_PASS_ROUNDS,
};
use hearth::core::log::FsyncPolicy;
use hearth::core::log::disk::{Disk, everything_lost};
use hearth::core::record::cache::CacheRecord;
use hearth::core::shard::compact::{CompactionFault, Next, Totals};
use hearth::core::types::{Location, Millis, Offset};

use crate::bed::{Bed, World, segment_files};

/// Far more steps than any of these takes.
const MOST_STEPS: usize = 10_000;

/// A log of small segments with hardly anything alive in it.
fn garbage(policy: FsyncPolicy) -> (World, Bed) {
    let world = World::new(policy, 4096);
    let mut bed = world.open().expect("a new store");
    bed.put_acknowledged(b"cold", b"value");
    write_garbage(&mut bed);
    (world, bed)
}

fn write_garbage(bed: &mut Bed) {
    for _ in 0..40 {
        bed.put_acknowledged(b"hot", &[7; 700]);
    }
    assert!(bed.shard.segments.held().len() as u64 > COMPACTION_SLACK_SEGMENTS);
}

fn base(bed: &Bed) -> Offset {
    bed.shard.segments.first().expect("an open log has a segment").base_offset
}

/// Compacts until there is nothing to do, or a pass ends for good. `between` is called before each step.
fn compact(bed: &mut Bed, mut between: impl FnMut(&mut Bed, &Next)) -> Result<(), CompactionFault> {
    let mut next = Next::Again;
    for _ in 0..MOST_STEPS {
        between(bed, &next);
        next = match next {
            Next::Idle => return Ok(()),
            Next::Failed(fault) => return Err(fault),
            Next::Read(order) => bed.housekeeper.read_done(order.run()),
            Next::Settle(_) | Next::Room => {
                bed.driver.run_to_idle().expect("a sound disk");
                bed.housekeeper.compact_step()
            }
            Next::Again => bed.housekeeper.compact_step(),
        };
        if matches!(next, Next::Idle) && bed.housekeeper.compactor().is_running() {
            panic!("idle in the middle of a pass");
        }
    }
    panic!("compaction never comes to an end");
}

#[test]
fn regression_a_first_segment_without_a_batch_is_trimmed_like_any_other() {
    let first = World::new(FsyncPolicy::EverySec, 4096);
    drop(first.open().expect("a new store"));
    // The first segment was begun, and its first batch was not flushed.
    let world = first.with_disk(first.disk.after_power_cut(&mut everything_lost()));
    let mut bed = world.open().expect("it opens");
    let held = bed.shard.segments.held();
    assert_eq!((held[0].number.0, held[0].base_index), (1, held[1].base_index), "the first one holds nothing");
    drop(held);
    write_garbage(&mut bed);
    compact(&mut bed, |_, _| {}).expect("a sound disk");
    assert!(base(&bed) > Offset(1) && segment_files(&world.disk)[0].0.0 > 1);
}

#[test]
fn a_trim_verifies_so_an_index_that_is_wrong_stops_it_and_the_base_stays() {
    let (_, mut bed) = garbage(FsyncPolicy::Always);
    let victim = bed.shard.segments.first().expect("an open log has a segment");
    let before = base(&bed);
    // An entry whose record stands nowhere.
    let at = Location { segment: victim.number, position: 1024, length: 20 };
    let ghost = CacheRecord::Put { key: b"ghost", value: b"", expires_at: Millis::NEVER };
    bed.shard.index.apply([(victim.base_offset, at, ghost)]);
    let fault = compact(&mut bed, |_, _| {}).expect_err("the trim would lose it");
    assert_eq!(fault.segment, victim.number);
    assert!(fault.what.contains("names 1 records here"), "{fault}");
    assert_eq!(bed.housekeeper.compactor().totals().rounds, u64::from(MAX_PASS_ROUNDS));
    assert_eq!(base(&bed), before);
    assert_eq!(bed.get(b"cold").expect("readable").as_deref(), Some(&b"value"[..]));
}

#[test]
fn a_pass_that_meets_damage_stops_with_an_alarm_and_goes_on_once_it_is_mended() {
    let (world, mut bed) = garbage(FsyncPolicy::Always);
    let (number, path) = segment_files(&world.disk).remove(0);
    let file = world.disk.open(&path).expect("it is there");
    let (before, length) = (base(&bed), file.len().expect("a sound disk"));
    let entry = bed.shard.index.view().get(b"cold").expect("it is there");
    assert_eq!(entry.location.segment, number);
    let mut places = 0;
    for position in (600..length).step_by(97) {
        let mut byte = [0];
        file.read_at(position, &mut byte).expect("a sound disk");
        file.write_at(position, &[byte[0] ^ 4]).expect("a sound disk");
        let fault = compact(&mut bed, |_, _| {}).expect_err("a record that does not verify");
        assert!(fault.segment == number && fault.position <= position, "{fault}, but byte {position} is wrong");
        bed.housekeeper.failed(&fault);
        let alarm = || bed.shard.counters.alarm.load(std::sync::atomic::Ordering::Relaxed);
        assert_eq!((base(&bed), alarm()), (before, 1));
        // It rests; then, as long as nothing is mended, it ends there again.
        assert!(matches!(bed.housekeeper.compact_step(), Next::Idle));
        world.clock.advance(COMPACTION_FAULT_REST_MS);
        assert_eq!(compact(&mut bed, |_, _| {}), Err(fault));
        file.write_at(position, &byte).expect("a sound disk");
        places += 1;
    }
    assert!(places > 20, "{places}");
    compact(&mut bed, |_, _| {}).expect("all is mended");
    assert!(base(&bed) > before);
    assert_eq!(bed.get(b"cold").expect("readable").as_deref(), Some(&b"value"[..]));
}

#[test]
fn a_large_segment_is_read_and_carried_in_pieces_with_writes_between_them() {
    let mut world = World::new(FsyncPolicy::Never, 16 * 1024 * 1024);
    world.options.max_value_bytes = 32 * 1024;
    let mut bed = world.open().expect("a new store");
    let (key, keys, every) = (|number: u32| format!("key-{number:04}").into_bytes(), 480, 32);
    for number in 0..keys {
        bed.put_acknowledged(&key(number), &[1; 32 * 1024]);
    }
    let mut expected = bed.contents().expect("readable");
    for _ in 0..2_600 {
        bed.put_acknowledged(b"hot", &[2; 32 * 1024]);
    }
    let (mut reads, mut carries, mut largest, mut written) = (0, 0, 0, 0);
    let mut before = bed.housekeeper.compactor().totals();
    compact(&mut bed, |bed, next| {
        let totals = bed.housekeeper.compactor().totals();
        let carried = totals.carried.bytes - before.carried.bytes;
        largest = largest.max(carried);
        carries += u64::from(carried > 0);
        reads += u64::from(totals.read_bytes > before.read_bytes);
        before = totals;
        // Some of them are read already, some not yet, some are carried.
        if matches!(next, Next::Settle(_)) && written < every {
            for number in (written..keys).step_by(every as usize) {
                bed.put(&key(number), b"new").expect("room");
            }
            written += 1;
        }
    })
    .expect("a sound disk");
    bed.driver.run_to_idle().expect("a sound disk");
    let Totals { read_bytes, carried, .. } = before;
    println!("{reads} reads, {carries} carries, {largest} bytes at most, {before:?}");
    assert!(reads > 3 && read_bytes > 3 * COMPACTION_MOST_READ_BYTES, "{reads}, {before:?}");
    assert!(carries > 8 && largest <= CARRY_MOST_PIECE_BYTES + 64 * 1024, "{carries}, {largest}");
    assert!(carried.left_behind > 0 && carried.records > 100 && written > 4, "{written}, {before:?}");
    let found = bed.contents().expect("readable");
    expected.insert(b"hot".to_vec(), found[&b"hot"[..]].clone());
    for (key, held) in &expected {
        let now = &found[key];
        assert!(now == held || now.value == b"new" && now.revision > held.revision, "{}", String::from_utf8_lossy(key));
    }
    assert_eq!(found.len(), expected.len());
    let again = world.with_disk(world.disk.after_power_cut(&mut everything_lost()));
    let reopened = again.open().expect("it opens");
    assert_eq!(base(&reopened), base(&bed), "the trims were durable");
}
