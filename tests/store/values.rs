//! Values kept in memory beside the log: what is read from there is what the log would give, and nothing else.
//!
//! Must never know how many values fit; only that some do.

use hearth::core::api::Found;
use hearth::core::error::ReadError;
use hearth::core::log::FsyncPolicy;
use hearth::core::log::disk::Disk;
use hearth::core::op::{Condition, Expiry, Put};
use hearth::core::types::Millis;

use crate::bed::{Bed, World, segment_files, value_of};
use crate::model::{Held, State};
use crate::script::Dice;

fn world(value_cache_bytes: u64) -> World {
    let mut world = World::new(FsyncPolicy::Always, 256 * 1024);
    world.options.value_cache_bytes = value_cache_bytes;
    world
}

/// Zeros over everything that the log holds.
fn wipe(world: &World) {
    for (_, path) in segment_files(&world.disk) {
        let file = world.disk.open(&path).expect("it is there");
        let zeros = vec![0; file.len().expect("a sound disk") as usize];
        file.write_at(0, &zeros).expect("a sound disk");
    }
}

fn is_cached(bed: &Bed, key: &[u8]) -> bool {
    let turns = bed.turns();
    let mut turn = turns.turn();
    let (found, _) = turn.get(key).expect("a key's place is known");
    matches!(found, Some(Found::Cached(_)))
}

#[test]
fn a_value_that_was_read_is_had_without_the_log_and_one_that_could_not_be_read_is_not_kept() {
    let world = world(64 * 1024);
    let mut bed = world.open().expect("a new store");
    bed.put_acknowledged(b"read", b"value");
    bed.put_acknowledged(b"unread", b"value");
    assert!(!is_cached(&bed, b"read"), "a write keeps nothing");
    assert_eq!(bed.get(b"read").expect("a sound disk"), Some(b"value".to_vec()));
    wipe(&world);
    assert!(is_cached(&bed, b"read"));
    assert_eq!(bed.get(b"read").expect("no disk is needed"), Some(b"value".to_vec()));
    for _ in 0..2 {
        assert!(matches!(bed.get(b"unread"), Err(ReadError::Mismatch { .. })), "and not from memory the second time");
    }
    let counts = bed.shard.values.counts();
    assert_eq!((counts.hits, counts.entries), (2, 1));
}

#[test]
fn what_is_written_over_deleted_or_lapsed_is_not_had_from_memory() {
    let world = world(64 * 1024);
    let mut bed = world.open().expect("a new store");
    let read = |bed: &Bed, key: &[u8]| bed.get(key).expect("a sound disk");
    bed.put_acknowledged(b"k", b"old");
    assert_eq!(read(&bed, b"k"), Some(b"old".to_vec()));
    let hold = bed.put(b"k", b"new").expect("room");
    assert_eq!(read(&bed, b"k"), Some(b"old".to_vec()), "the write is not applied");
    assert!(is_cached(&bed, b"k"), "so the old value may come back");
    bed.driver.run_to_idle().expect("a sound disk");
    assert!(bed.fate(hold).is_some() && !is_cached(&bed, b"k"));
    assert_eq!(read(&bed, b"k"), Some(b"new".to_vec()));
    bed.turns().turn().delete(b"k").expect("room");
    bed.driver.run_to_idle().expect("a sound disk");
    assert_eq!(read(&bed, b"k"), None);
    let expiry = Expiry::At(Millis(world.now().0 + 5));
    let put = Put { key: b"k", value: b"short", expiry, condition: Condition::Always };
    bed.turns().turn().put(&put).expect("room");
    bed.driver.run_to_idle().expect("a sound disk");
    assert_eq!(read(&bed, b"k"), Some(b"short".to_vec()));
    assert!(is_cached(&bed, b"k"));
    world.clock.advance(5);
    assert_eq!(read(&bed, b"k"), None);
}

#[test]
fn a_key_that_is_written_and_read_in_turn_takes_room_for_one_value() {
    let mut bed = world(64 * 1024).open().expect("a new store");
    for round in 0..100_u8 {
        bed.put_acknowledged(b"k", &[round; 40]);
        assert_eq!(bed.get(b"k").expect("a sound disk"), Some(vec![round; 40]));
        assert_eq!(bed.shard.values.counts().entries, 1);
    }
    bed.turns().turn().delete(b"k").expect("room");
    assert_eq!(bed.shard.values.counts().entries, 0);
}

/// A run over a few keys, with room for fewer values than there are, so that they come and go.
#[test]
fn whatever_is_kept_every_read_gives_what_was_written_last() {
    let world = world(3 * 1024);
    let mut bed = world.open().expect("a new store");
    let (mut dice, mut state) = (Dice::new(11), State::new());
    let (mut cached, mut stored, mut absent) = (0, 0, 0);
    for step in 0..6_000_u64 {
        let key = format!("key-{}", dice.below(30)).into_bytes();
        match dice.below(10) {
            0 | 1 => {
                let value = vec![step as u8; dice.below(200) as usize];
                let offset = bed.put_acknowledged(&key, &value);
                state.insert(key, Held { value, expires_at: Millis::NEVER, revision: offset.0 });
            }
            2 => {
                bed.turns().turn().delete(&key).expect("room");
                bed.driver.run_to_idle().expect("a sound disk");
                state.remove(&key);
            }
            _ => {
                let turns = bed.turns();
                let mut turn = turns.turn();
                let (found, _) = turn.get(&key).expect("a sound disk");
                match &found {
                    None => absent += 1,
                    Some(Found::Cached(_)) => cached += 1,
                    Some(_) => stored += 1,
                }
                let value = found.map(|found| value_of(&found, &key).expect("a sound disk"));
                assert_eq!(value.as_ref(), state.get(&key).map(|held| &held.value), "step {step}");
            }
        }
    }
    println!("{cached} from memory, {stored} from the log, {absent} absent, {:?}", bed.shard.values.counts());
    let counts = bed.shard.values.counts();
    assert!(cached > 100 && stored > 100 && absent > 100);
    assert_eq!((counts.hits, counts.misses), (cached, stored));
    assert!(counts.bytes <= 3 * 1024 && counts.entries > 0);
}
