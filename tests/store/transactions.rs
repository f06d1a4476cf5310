//! Several writes, all or nothing: the power is cut at every effect of a run of transactions, some of them taken back, some
//! too long for what is left of a batch; and what a transaction taken back leaves behind, which is nothing.
//!
//! Must never know how a front end runs one.

use hearth::core::api::{Fate, Hold, Turn, WriteError};
use hearth::core::error::Refusal;
use hearth::core::log::FsyncPolicy;
use hearth::core::types::Offset;

use crate::bed::{Bed, POLICIES, World, put};
use crate::power_cut::left_by_a_cut;

const SEGMENT_BYTES: u32 = 16 * 1024;
const TRANSACTIONS: u64 = 60;
/// The keys that every transaction sets to its own number.
const KEYS: [&[u8]; 4] = [b"a", b"b", b"c", b"d"];

/// Each value begins with the number of its transaction; some are so long that few transactions fit a batch.
fn value(number: u64, key: &[u8]) -> Vec<u8> {
    let mut value = number.to_le_bytes().to_vec();
    value.resize(if number.is_multiple_of(5) { 1_500 } else { 20 }, key[0]);
    value
}

fn number_in(value: &[u8]) -> u64 {
    u64::from_le_bytes(value[..8].try_into().expect("eight bytes"))
}

/// Stages transaction `number`, again if the batch was too full for it; gives what its answer waits for.
fn stage(turn: &mut Turn<'_>, number: u64) -> Result<Hold, WriteError> {
    for _ in 0..2 {
        assert!(turn.begin(), "no transaction is under way");
        match write(turn, number) {
            Ok(hold) => {
                turn.commit();
                return Ok(hold);
            }
            Err(error) => {
                if !turn.roll_back().fits_alone {
                    return Err(error);
                }
            }
        }
    }
    unreachable!("a batch that begins with it takes it")
}

fn write(turn: &mut Turn<'_>, number: u64) -> Result<Hold, WriteError> {
    let mut last = None;
    for key in KEYS {
        // A key that is deleted and set again in the same transaction, so that the order counts.
        if number.is_multiple_of(3) {
            turn.delete(key)?;
        }
        let (_, hold) = turn.put(&put(key, &value(number, key)))?;
        last = hold;
    }
    Ok(last.expect("a put is held"))
}

/// The number of the transaction that the keys tell; none before the first.
fn told(bed: &Bed) -> Option<u64> {
    let numbers: Vec<Option<u64>> =
        KEYS.iter().map(|key| bed.get(key).expect("readable").map(|value| number_in(&value))).collect();
    assert!(numbers.iter().all(|number| *number == numbers[0]), "half a transaction: {numbers:?}");
    numbers[0]
}

/// Runs transactions, three staged before each wait, until the disk ends it: the newest one that was acknowledged.
fn run(world: &World) -> u64 {
    let mut acknowledged = 0;
    let Ok(mut bed) = world.open() else { return acknowledged };
    for first in (1..=TRANSACTIONS).step_by(3) {
        let mut staged = Vec::new();
        {
            let turns = bed.turns();
            let mut turn = turns.turn();
            for number in first..first + 3 {
                // One that is given up in its middle: what follows takes its offsets.
                turn.begin();
                turn.put(&put(KEYS[1], &value(u64::MAX, b"x"))).ok();
                turn.roll_back();
                match stage(&mut turn, number) {
                    Ok(hold) => staged.push((number, hold)),
                    Err(WriteError::Full(_)) => break,
                    Err(WriteError::Refused(_)) => return acknowledged,
                    Err(other) => unreachable!("{other:?}"),
                }
            }
        }
        if bed.driver.run_to_idle().is_err() {
            return acknowledged;
        }
        for (number, hold) in staged {
            if bed.fate(hold) == Some(Fate::Applied) {
                acknowledged = number;
            }
        }
    }
    acknowledged
}

#[test]
fn after_any_power_cut_a_transaction_is_there_whole_or_not_at_all() {
    for policy in POLICIES {
        let effects = {
            let world = World::new(policy, SEGMENT_BYTES);
            let acknowledged = run(&world);
            assert!(acknowledged > TRANSACTIONS - 6, "nearly all of {TRANSACTIONS} were run: {acknowledged}");
            world.disk.effects()
        };
        let (mut images, mut partly) = (0, 0);
        for effect in 0..effects {
            let world = World::new(policy, SEGMENT_BYTES);
            world.disk.power_off_after(effect);
            let acknowledged = run(&world);
            for (tear, disk) in left_by_a_cut(&world.disk, effect) {
                let after = world.with_disk(disk);
                let found = told(&after.open().unwrap_or_else(|error| panic!("effect {effect}, {tear}: {error}")));
                if policy == FsyncPolicy::Always {
                    assert!(found.unwrap_or(0) >= acknowledged, "effect {effect}, {tear}: {found:?} < {acknowledged}");
                }
                images += 1;
                partly += u64::from(found.is_some_and(|found| found < TRANSACTIONS));
            }
        }
        assert!(images > 300 && partly > 100, "{policy:?}: {images} images, {partly} in the middle of the run");
    }
}

#[test]
fn a_transaction_taken_back_leaves_nothing_behind() {
    let world = World::new(FsyncPolicy::Always, SEGMENT_BYTES);
    let mut bed = world.open().expect("a new store");
    bed.put_acknowledged(b"stored", b"1");
    bed.put(b"staged", b"2").expect("room");
    let staged = |bed: &Bed| {
        let machine = bed.shard.machine();
        (machine.next_offset(), machine.staged_bytes())
    };
    let before = staged(&bed);
    let turns = bed.turns();
    let mut turn = turns.turn();
    turn.begin();
    turn.put(&put(b"staged", b"3")).expect("room");
    turn.delete(b"stored").expect("room");
    turn.put(&put(b"new", b"4")).expect("room");
    turn.clear().expect("room");
    turn.put(&put(b"stored", b"5")).expect("room");
    assert!(turn.exists(b"stored").expect("readable").0 && !turn.exists(b"staged").expect("readable").0);
    let left = turn.roll_back();
    assert!(!left.fits_alone);
    assert_eq!(left.rests_on.map(|hold| hold.offset), Some(Offset(before.0.0 - 1)), "the write that was staged before");
    for (key, there) in [(&b"stored"[..], true), (b"staged", true), (b"new", false)] {
        assert_eq!(turn.exists(key).expect("readable").0, there, "{}", key.escape_ascii());
    }
    // Dropped in its middle, it is taken back, too.
    turn.begin();
    turn.put(&put(b"new", b"6")).expect("room");
    drop(turn);
    assert_eq!(staged(&bed), before);
    bed.driver.run_to_idle().expect("a sound disk");
    assert_eq!(bed.get(b"staged").expect("readable").as_deref(), Some(&b"2"[..]));
    assert_eq!(bed.get(b"new").expect("readable"), None);
}

#[test]
fn a_transaction_longer_than_a_batch_is_refused_and_one_that_only_came_late_is_not() {
    let world = World::new(FsyncPolicy::Always, SEGMENT_BYTES);
    let bed = world.open().expect("a new store");
    // Values may have half a batch, so it takes two of them and a little more to need two batches.
    let value = vec![2; world.max_batch_bytes() / 2 - 512];
    bed.put(b"before", &value).expect("room");
    let turns = bed.turns();
    let mut turn = turns.turn();
    let two = |turn: &mut Turn<'_>| {
        turn.begin();
        turn.put(&put(b"late", &value)).and_then(|_| turn.put(&put(b"more", &value[..200])))?;
        turn.put(&put(b"last", &value[..value.len() - 100]))
    };
    let late = two(&mut turn);
    assert!(matches!(late, Err(WriteError::Refused(Refusal::BatchTooLarge { .. }))), "{late:?}");
    assert!(turn.roll_back().fits_alone);
    two(&mut turn).expect("it begins a batch");
    let more = turn.put(&put(b"too much", &value));
    assert!(matches!(more, Err(WriteError::Refused(Refusal::BatchTooLarge { .. }))), "{more:?}");
    assert!(!turn.roll_back().fits_alone, "no batch takes it");
    assert!(!turn.exists(b"late").expect("readable").0);
}
