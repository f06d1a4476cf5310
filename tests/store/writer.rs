//! Batches written to an open store, with the plain map kept beside it.
//!
//! Promise: one write is one batch, acknowledged. Must never know a file.

use hearth::core::op::{Condition, Expiry, Put};
use hearth::core::shard::compact::Next;

use crate::bed::Bed;
use crate::model::{Ask, State, apply, decide};

/// Far more steps than it takes to compact a log of a few small segments.
const MOST_STEPS: usize = 1_000;

pub fn put(key: &[u8], value: &[u8], expiry: Expiry) -> Ask {
    Ask { key: key.to_vec(), value: Some(value.to_vec()), expiry, condition: Condition::Always }
}

pub fn delete(key: &[u8]) -> Ask {
    Ask { key: key.to_vec(), value: None, expiry: Expiry::Never, condition: Condition::Always }
}

/// Writes `asks`, each of which must find what it needs, as one batch.
pub fn write_batch(bed: &mut Bed, state: &mut State, asks: &[Ask]) {
    let turns = bed.turns();
    let mut turn = turns.turn();
    for ask in asks {
        let now = turn.now();
        let answer = match &ask.value {
            Some(value) => turn.put(&Put { key: &ask.key, value, expiry: ask.expiry, condition: ask.condition }),
            None => turn.delete(&ask.key),
        };
        let offset = answer.expect("room").0.written.expect("each of these writes").0;
        let (_, change) = decide(state, ask, offset, now);
        apply(state, &[change.expect("each of these writes")]);
    }
    drop(turn);
    bed.driver.run_to_idle().expect("a sound disk");
}

/// Carries and trims until the log is as small as it should be, with something carried and something trimmed.
pub fn compact(bed: &mut Bed) {
    let before = bed.housekeeper.compactor().totals();
    let mut next = bed.housekeeper.compact_step();
    for _ in 0..MOST_STEPS {
        next = match next {
            Next::Idle => break,
            Next::Read(order) => bed.housekeeper.read_done(order.run()),
            Next::Again => bed.housekeeper.compact_step(),
            Next::Settle(_) | Next::Room => {
                bed.driver.run_to_idle().expect("a sound disk");
                bed.housekeeper.compact_step()
            }
            Next::Failed(fault) => panic!("compaction met damage: {fault}"),
        };
    }
    bed.driver.run_to_idle().expect("a sound disk");
    assert!(matches!(next, Next::Idle), "it comes to an end");
    let after = bed.housekeeper.compactor().totals();
    assert!(after.trims > before.trims, "something was trimmed");
    assert!(after.carried.records > before.carried.records, "something was carried");
}
