//! Compaction that is overdue: puts wait while passes are under way, so that a log stays small however fast it is written to,
//! and only then: where no pass can help, nobody waits for one.

use hearth::core::api::{Fate, WriteError};
use hearth::core::limits::COMPACTION_SLACK_SEGMENTS;
use hearth::core::log::FsyncPolicy;
use hearth::core::log::disk::Disk;
use hearth::core::shard::compact::Next;

use crate::bed::{Bed, World, bytes_of, segment_files};
use crate::expiry::compact;

const SEGMENT_BYTES: u32 = 64 * 1024;

/// A log of twice as many segments as it should have: one key that stays, in the oldest, and another written again and again.
fn overdue(world: &World) -> Bed {
    let mut bed = world.open().expect("a new store");
    bed.driver.reserve_space();
    bed.put_acknowledged(b"stays", b"value");
    while segment_files(&world.disk).len() < 2 * COMPACTION_SLACK_SEGMENTS as usize + 2 {
        // No pass is under way, so nobody waits.
        bed.put_acknowledged(b"again", &[7; 4000]);
    }
    bed
}

#[test]
fn while_an_overdue_pass_is_under_way_puts_wait_and_deletes_do_not() {
    let world = World::new(FsyncPolicy::Never, SEGMENT_BYTES);
    let mut bed = overdue(&world);
    let (mut waited, mut deleted) = (0, 0);
    let most = (COMPACTION_SLACK_SEGMENTS + 1) * u64::from(SEGMENT_BYTES);
    loop {
        let next = match bed.housekeeper.compact_step() {
            Next::Read(order) => bed.housekeeper.read_done(order.run()),
            next => next,
        };
        match bed.put(b"tried", b"value") {
            Err(full) => {
                assert!(matches!(full, WriteError::Full(_)), "{full:?}");
                waited += 1;
                let turns = bed.turns();
                let (outcome, _) = turns.turn().delete(b"tried").expect("a delete does not wait");
                deleted += u32::from(outcome.held);
            }
            Ok(_) => break,
        }
        match next {
            Next::Failed(fault) => panic!("{fault}"),
            Next::Idle => panic!("puts wait for no pass"),
            _ => bed.driver.run_to_idle().expect("a sound disk"),
        }
    }
    let disk_bytes = bed.housekeeper.extent().disk_bytes;
    assert!(waited > 10 && deleted > 10, "{waited} {deleted}");
    assert!(disk_bytes <= most, "{disk_bytes} bytes on disk when puts are taken again");
    compact(&mut bed);
    assert_eq!(bed.get(b"stays").expect("a sound disk").as_deref(), Some(&b"value"[..]));
    assert!(bed.put(b"after", b"value").is_ok());
    println!("puts waited for {waited} steps, {deleted} deletes among them; then the log has {disk_bytes} bytes");
}

#[test]
fn a_pass_that_meets_damage_keeps_nobody_waiting() {
    let world = World::new(FsyncPolicy::Never, SEGMENT_BYTES);
    let mut bed = overdue(&world);
    let stays = bed.shard.index.view().get(b"stays").expect("it is there").location;
    let (_, oldest) = segment_files(&world.disk).swap_remove(0);
    let at = stays.position as usize;
    let byte = bytes_of(&world.disk, &oldest)[at];
    world.disk.open(&oldest).expect("it is there").write_at(at as u64, &[byte ^ 1]).expect("a sound disk");
    let mut faults = 0;
    for _ in 0..100 {
        let next = match bed.housekeeper.compact_step() {
            Next::Read(order) => bed.housekeeper.read_done(order.run()),
            next => next,
        };
        if let Next::Failed(fault) = next {
            bed.housekeeper.failed(&fault);
            faults += 1;
        }
        bed.driver.run_to_idle().expect("a sound disk");
    }
    assert_eq!(faults, 1, "it rests after a fault");
    let hold = bed.put(b"after", b"value").expect("nobody waits for what does not come");
    bed.driver.run_to_idle().expect("a sound disk");
    assert_eq!(bed.fate(hold), Some(Fate::Applied));
}
