//! What scripts do with locks of several keys, all or none.
//!
//! Promise: each does what docs/scripts.md says under its name, with the errors of the bodies it stands for. Must never know
//! a library.
//!
//! The number behind a call is its place among the calls of the bodies, in their order; the table has its line.

use crate::core::op::Condition;
use crate::core::types::CacheName;
use crate::frontends::resp::args::parse_i64;
use crate::frontends::resp::limits::DATABASES;
use crate::frontends::resp::scripts::locks::begins_with;
use crate::frontends::resp::scripts::number;
use crate::frontends::resp::scripts::run::{Answer, Held, OK, Ran, Script, Stop, int};

pub fn acquire_all(script: &mut Script<'_, '_, '_>) -> Ran {
    let (token, ms) = (script.arg(0), script.arg(1));
    let taken = take_all(script, token, ms, 0)?;
    Ok(int(if taken { script.keys as i64 } else { 0 }))
}

pub fn acquire_all_selected(script: &mut Script<'_, '_, '_>) -> Ran {
    select(script)?;
    let (token, ms) = (script.arg(1), script.arg(2));
    let taken = take_all(script, token, ms, 1)?;
    Ok(int(if taken { script.keys as i64 } else { 0 }))
}

pub fn acquire_free(script: &mut Script<'_, '_, '_>) -> Ran {
    let (token, ms) = (script.arg(0), script.arg(1));
    Ok(int(i64::from(take_all(script, token, ms, 0)?)))
}

/// Sets all keys if there is none of them; `place` is that of EXISTS, SET's is the next.
fn take_all(script: &mut Script<'_, '_, '_>, token: &[u8], ms: &[u8], place: usize) -> Result<bool, Stop> {
    for key in script.all_keys() {
        if script.exists(key)? {
            return Ok(false);
        }
    }
    for key in script.all_keys() {
        script.set_px(place + 1, key, token, ms)?;
    }
    Ok(true)
}

pub fn acquire_batch(script: &mut Script<'_, '_, '_>) -> Ran {
    for (i, key) in script.all_keys().into_iter().enumerate() {
        if script.exists(key)? {
            return Ok(Answer::Array(vec![int(0), int(i as i64 + 1), Answer::Bytes(key.to_vec())]));
        }
    }
    let ms = script.arg_count().checked_sub(1).and_then(|last| script.number(last));
    for (i, key) in script.all_keys().into_iter().enumerate() {
        let token = script.arg_if_any(i).ok_or_else(|| script.no_argument(1))?;
        let ms = script.given(1, ms)?;
        script.set_px(1, key, token, &ms)?;
    }
    Ok(Answer::Array(vec![int(1), int(script.keys as i64)]))
}

pub fn extend_all(script: &mut Script<'_, '_, '_>) -> Ran {
    let (token, ms) = (script.arg(0), script.arg(1));
    let extended = keep_all(script, token, ms, 0)?;
    Ok(int(if extended { script.keys as i64 } else { 0 }))
}

pub fn extend_all_selected(script: &mut Script<'_, '_, '_>) -> Ran {
    select(script)?;
    let (token, ms) = (script.arg(1), script.arg(2));
    let extended = keep_all(script, token, ms, 1)?;
    Ok(int(if extended { script.keys as i64 } else { 0 }))
}

pub fn extend_if_all_equal(script: &mut Script<'_, '_, '_>) -> Ran {
    let (token, ms) = (script.arg(0), script.arg(1));
    Ok(int(i64::from(keep_all(script, token, ms, 0)?)))
}

/// Sets all keys anew if all hold the token; `place` is that of GET, SET's is the next.
fn keep_all(script: &mut Script<'_, '_, '_>, token: &[u8], ms: &[u8], place: usize) -> Result<bool, Stop> {
    if !are_all_held(script, token)? {
        return Ok(false);
    }
    for key in script.all_keys() {
        script.set_px(place + 1, key, token, ms)?;
    }
    Ok(true)
}

fn are_all_held(script: &mut Script<'_, '_, '_>, token: &[u8]) -> Result<bool, Stop> {
    for key in script.all_keys() {
        if script.held(key, token)? != Held::Same {
            return Ok(false);
        }
    }
    Ok(true)
}

pub fn release_all(script: &mut Script<'_, '_, '_>) -> Ran {
    let token = script.arg(0);
    release_held(script, token, 1, true)
}

pub fn release_all_selected(script: &mut Script<'_, '_, '_>) -> Ran {
    select(script)?;
    let token = script.arg(1);
    release_held(script, token, 2, true)
}

pub fn release_each(script: &mut Script<'_, '_, '_>) -> Ran {
    let token = script.arg(0);
    release_held(script, token, 1, false)
}

/// Deletes the keys that hold the token; whether the bodies look away from DEL's errors.
fn release_held(script: &mut Script<'_, '_, '_>, token: &[u8], place: usize, protected: bool) -> Ran {
    let mut count = 0;
    for key in script.all_keys() {
        if script.held(key, token)? != Held::Same {
            continue;
        }
        match script.del(place, key) {
            Err(Stop::Script(_)) if protected => {}
            deleted => deleted?,
        }
        count += 1;
    }
    Ok(int(count))
}

/// `redis.pcall("SELECT", tonumber(ARGV[1]))`: a number that is none, or of no database, is looked away from.
fn select(script: &mut Script<'_, '_, '_>) -> Result<(), Stop> {
    let number = script.number(0).map(number::to_argument);
    let number = number.and_then(|number| parse_i64(&number));
    let Some(number) = number.and_then(|number| u32::try_from(number).ok()) else { return Ok(()) };
    if number >= DATABASES || script.call.client.cache.name() == &CacheName::numbered(number) {
        return Ok(());
    }
    Err(Stop::Call("ERR this broker runs a script in the database that its connection has selected".into()))
}

pub fn obtain_all(script: &mut Script<'_, '_, '_>) -> Ran {
    let (token, ms) = (script.arg(0), script.arg(2));
    // MSETNX.
    script.writes(2)?;
    let mut free = true;
    for key in script.all_keys() {
        free = free && !script.exists(key)?;
    }
    if !free {
        let length = script.number(1);
        for key in script.all_keys() {
            if !begins_with(script, key, token, length, 1)? {
                return Ok(Answer::Nil);
            }
        }
    }
    for key in script.all_keys() {
        script.set(if free { 2 } else { 3 }, key, token, None, Condition::Always)?;
    }
    for key in script.all_keys() {
        script.pexpire(0, key, ms)?;
    }
    Ok(OK)
}

pub fn refresh_if_all_equal(script: &mut Script<'_, '_, '_>) -> Ran {
    let (token, ms) = (script.arg(0), script.arg(1));
    if !are_all_held(script, token)? {
        return Ok(Answer::Nil);
    }
    for key in script.all_keys() {
        script.pexpire(1, key, ms)?;
    }
    Ok(OK)
}

pub fn release_if_all_equal(script: &mut Script<'_, '_, '_>) -> Ran {
    let token = script.arg(0);
    if !are_all_held(script, token)? {
        return Ok(Answer::Nil);
    }
    for key in script.all_keys() {
        script.del(1, key)?;
    }
    Ok(OK)
}

pub fn shortest_pttl(script: &mut Script<'_, '_, '_>) -> Ran {
    let token = script.arg(0);
    if !are_all_held(script, token)? {
        return Ok(Answer::Nil);
    }
    let mut shortest = 0.0;
    for key in script.all_keys() {
        let left = script.pttl(key)?;
        if left > 0.0 && (shortest == 0.0 || left < shortest) {
            shortest = left;
        }
    }
    Ok(Answer::Number(shortest))
}
