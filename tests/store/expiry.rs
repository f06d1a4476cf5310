//! Expired data frees disk: write-once keys lapse, and the log shrinks to its minimum without one read of them.
//!
//! Time passes by the clock of the test only, and every step of the housekeeping is made by the test.

use hearth::core::api::Fate;
use hearth::core::limits::COMPACTION_SLACK_SEGMENTS;
use hearth::core::log::FsyncPolicy;
use hearth::core::log::disk::Disk;
use hearth::core::op::{Condition, Expiry, Put};
use hearth::core::shard::compact::Next;
use hearth::core::types::Millis;

use crate::bed::{Bed, START, World, segment_files};

const KEYS: u32 = 1_000_000;
/// One in so many stays for good.
const STAYS: u32 = 1_000;
const TTL_MS: u64 = 60_000;
const SEGMENT_BYTES: u32 = 1 << 20;
/// Puts of one turn.
const TURN: u32 = 1_000;

/// Bytes of the segment files.
fn on_disk(world: &World) -> u64 {
    let files = segment_files(&world.disk);
    files.iter().map(|(_, path)| world.disk.open(path).and_then(|file| file.len()).expect("a sound disk")).sum()
}

fn key(number: u32) -> Vec<u8> {
    format!("key:{number}").into_bytes()
}

fn write_once(bed: &mut Bed) {
    for first in (0..KEYS).step_by(TURN as usize) {
        let mut last = None;
        {
            let turns = bed.turns();
            let mut turn = turns.turn();
            for number in first..first + TURN {
                let expiry = if number % STAYS == 0 { Expiry::Never } else { Expiry::At(Millis(START.0 + TTL_MS)) };
                let key = key(number);
                let put = Put { key: &key, value: &number.to_le_bytes(), expiry, condition: Condition::Always };
                last = turn.put(&put).expect("room for a turn").1;
            }
        }
        bed.driver.run_to_idle().expect("a sound disk");
        assert_eq!(bed.fate(last.expect("a put waits")), Some(Fate::Applied));
    }
}

/// Compacts until there is nothing to do.
pub fn compact(bed: &mut Bed) {
    loop {
        let next = match bed.housekeeper.compact_step() {
            Next::Read(order) => bed.housekeeper.read_done(order.run()),
            next => next,
        };
        match next {
            Next::Idle => return,
            Next::Failed(fault) => panic!("{fault}"),
            Next::Settle(_) | Next::Room => bed.driver.run_to_idle().expect("a sound disk"),
            Next::Again | Next::Read(_) => {}
        }
    }
}

#[test]
fn a_million_lapsed_write_once_keys_leave_the_disk_without_one_read() {
    let minimum = COMPACTION_SLACK_SEGMENTS * u64::from(SEGMENT_BYTES);
    let world = World::new(FsyncPolicy::Never, SEGMENT_BYTES);
    let mut bed = world.open().expect("a new store");
    write_once(&mut bed);
    compact(&mut bed);
    let full = on_disk(&world);
    assert_eq!(bed.cache.len(), KEYS as usize);
    assert!(full > 8 * minimum, "{full} bytes hold a million keys");
    // The time has come, and still nobody knows.
    world.clock.advance(TTL_MS + 1);
    compact(&mut bed);
    assert_eq!(on_disk(&world), full, "nothing has looked at a key");
    let mut pieces = 1;
    while bed.housekeeper.sweep_piece() {
        pieces += 1;
    }
    compact(&mut bed);
    let left = on_disk(&world);
    let totals = bed.housekeeper.compactor().totals();
    println!(
        "{KEYS} keys, {full} bytes; after {pieces} pieces of the sweep and {} trims {left} bytes: {totals:?}",
        totals.trims
    );
    let live = bed.shard.index.view().live();
    assert_eq!(live.entries, u64::from(KEYS / STAYS));
    assert!(left <= minimum + live.bytes, "{left} bytes for {live:?}");
    assert!(
        totals.trims > 10 && totals.carried.records > 0 && totals.carried.records <= 2 * live.entries,
        "{totals:?}"
    );
    // What stays is whole, also for the next process.
    let kept = bed.contents().expect("a sound disk");
    drop(bed);
    let mut bed = world.with_disk(world.disk.after_kill()).open().expect("it opens");
    // Replay brings back what stands in the segments that are left; the sweep takes it away again.
    while bed.housekeeper.sweep_piece() {}
    assert!(bed.contents().expect("a sound disk") == kept, "other keys than before the restart");
    assert_eq!(kept.len(), (KEYS / STAYS) as usize);
    assert!((0..KEYS).step_by(STAYS as usize).all(|number| kept[&key(number)].value == number.to_le_bytes()));
}
