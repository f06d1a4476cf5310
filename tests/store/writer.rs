//! Batches written to an open store, with the plain map kept beside it.
//!
//! Promise: one call is one batch, acknowledged. Must never know a file.

use hearth::core::op::{Condition, Expiry, Put};

use crate::bed::Bed;
use crate::model::{Ask, State, apply, decide};

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
