//! Several keys at once: MGET, MSET, MSETNX.
//!
//! Promise: of one shard, MGET sees one moment and MSET is one batch; over several shards each is whole by itself, and MSETNX
//! is refused. Must never know a socket.

use crate::core::op::{Condition, Expiry, Put};
use crate::frontends::resp::call::{Call, CommandError, Wait};
use crate::frontends::resp::command::wrong_arity;
use crate::frontends::resp::error;

/// MGET key [key …]
pub fn mget(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let keys: Vec<&[u8]> = call.args.iter().skip(1).collect();
    if let Some(hold) = call.turn.wait_before_reading(&keys) {
        return Err(CommandError::Wait(Wait::Applied(hold)));
    }
    let looked = call.turn.look_all(&keys)?;
    for (_, hold) in &looked {
        call.replies.hold(*hold);
    }
    call.reply().array_header(keys.len());
    for (key, (value, _)) in keys.iter().zip(&looked) {
        call.count_look(value.is_some());
        call.write_value(key, value.as_ref(), error::of_read)?;
    }
    Ok(())
}

/// MSET key value [key value …]
pub fn mset(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    require_pairs(call, "mset")?;
    let keys = call.args.iter().skip(1).step_by(2);
    for number in call.turn.numbers_of(keys) {
        if call.progress.is_through(number) {
            continue;
        }
        let holds = call.atomically(|call| {
            let mut newest = None;
            for (key, value) in pairs(call) {
                if call.turn.number_of(key) == number {
                    let (_, hold) = call.turn.put(&put(key, value))?;
                    newest = hold;
                }
            }
            Ok(newest)
        })?;
        call.progress.holds.extend(holds);
        call.progress.went_through(number);
    }
    call.replies.hold(call.progress.holds.iter().copied());
    call.reply().ok();
    Ok(())
}

/// MSETNX key value [key value …]
pub fn msetnx(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    require_pairs(call, "msetnx")?;
    call.require_together(call.args.iter().skip(1).step_by(2))?;
    let written = call.atomically(|call| {
        for (key, _) in pairs(call) {
            if call.look_to_write(key)?.is_some() {
                return Ok(false);
            }
        }
        for (key, value) in pairs(call) {
            call.put(&put(key, value))?;
        }
        Ok(true)
    })?;
    call.reply().integer(i64::from(written));
    Ok(())
}

fn put<'a>(key: &'a [u8], value: &'a [u8]) -> Put<'a> {
    Put { key, value, expiry: Expiry::Never, condition: Condition::Always }
}

fn pairs<'a>(call: &Call<'a, '_>) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
    call.args.iter().skip(1).step_by(2).zip(call.args.iter().skip(2).step_by(2))
}

fn require_pairs(call: &Call<'_, '_>, name: &str) -> Result<(), CommandError> {
    if call.args.len().is_multiple_of(2) { Err(wrong_arity(name).into()) } else { Ok(()) }
}
