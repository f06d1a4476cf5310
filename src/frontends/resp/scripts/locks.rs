//! What scripts do with the lock of one key: let it go, hold it longer, take it.
//!
//! Promise: each does what docs/scripts.md says under its name, with the errors of the bodies it stands for. Must never know
//! a library.
//!
//! The number behind a call is its place among the calls of the bodies, in their order; the table has its line.

use crate::core::op::Condition;
use crate::frontends::resp::args::parse_i64;
use crate::frontends::resp::commands::expiry::ExpiryWord;
use crate::frontends::resp::error;
use crate::frontends::resp::scripts::number;
use crate::frontends::resp::scripts::run::{Answer, Held, OK, Ran, Script, Stop, int};

pub fn delete_if_equal(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, token) = (script.key(0), script.arg(0));
    delete_held(script, key, token, int(1), int(0), int(0))
}

pub fn delete_if_equal_key(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, token) = (script.key(0), script.key(1));
    delete_held(script, key, token, int(1), int(0), int(0))
}

pub fn delete_if_equal_or_nil(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, token) = (script.key(0), script.arg(0));
    delete_held(script, key, token, int(1), Answer::Nil, Answer::Nil)
}

pub fn delete_if_equal_or_missing(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, token) = (script.key(0), script.arg(0));
    delete_held(script, key, token, int(1), int(-1), int(0))
}

pub fn unset_lock(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, token) = (script.key(0), script.arg(0));
    delete_held(script, key, token, int(1), OK, error_reply())
}

fn delete_held(
    script: &mut Script<'_, '_, '_>,
    key: &[u8],
    token: &[u8],
    deleted: Answer,
    nothing: Answer,
    other: Answer,
) -> Ran {
    match script.held(key, token)? {
        Held::Nothing => Ok(nothing),
        Held::Other => Ok(other),
        Held::Same => {
            script.del(1, key)?;
            Ok(deleted)
        }
    }
}

/// `redis.error_reply('ERROR')`
pub fn error_reply() -> Answer {
    Answer::Error("ERR ERROR".to_owned())
}

/// Whether the first key holds the first argument.
fn is_held(script: &mut Script<'_, '_, '_>) -> Result<bool, Stop> {
    let (key, token) = (script.key(0), script.arg(0));
    Ok(script.held(key, token)? == Held::Same)
}

pub fn pexpire_if_equal(script: &mut Script<'_, '_, '_>) -> Ran {
    if !is_held(script)? {
        return Ok(int(0));
    }
    script.pexpire(1, script.key(0), script.arg(1))?;
    Ok(int(1))
}

pub fn pexpire_if_equal_or_nil(script: &mut Script<'_, '_, '_>) -> Ran {
    if !is_held(script)? {
        return Ok(Answer::Nil);
    }
    script.pexpire(1, script.key(0), script.arg(1))?;
    Ok(int(1))
}

pub fn expire_if_equal(script: &mut Script<'_, '_, '_>) -> Ran {
    if !is_held(script)? {
        return Ok(int(0));
    }
    script.expire(1, script.key(0), script.arg(1))?;
    Ok(int(1))
}

pub fn expire_number_if_equal(script: &mut Script<'_, '_, '_>) -> Ran {
    if !is_held(script)? {
        return Ok(int(0));
    }
    let seconds = script.given(1, script.number(1))?;
    script.expire(1, script.key(0), &seconds)?;
    Ok(int(1))
}

pub fn expire_if_equal_inverted(script: &mut Script<'_, '_, '_>) -> Ran {
    if !is_held(script)? {
        return Ok(int(1));
    }
    script.expire(1, script.key(0), script.arg(1))?;
    Ok(int(0))
}

pub fn expire_or_persist_if_equal(script: &mut Script<'_, '_, '_>) -> Ran {
    if !is_held(script)? {
        return Ok(int(0));
    }
    if script.is_less(3, Some(0.0), script.number(1))? {
        script.expire(1, script.key(0), script.arg(1))?;
    } else {
        script.persist(2, script.key(0))?;
    }
    Ok(int(1))
}

/// What a key that holds the first argument has left, in milliseconds; `None` when it holds something else.
fn left_of_held(script: &mut Script<'_, '_, '_>) -> Result<Option<f64>, Stop> {
    let (key, token) = (script.key(0), script.arg(0));
    let value = script.look(key)?;
    let held = script.held_in(key, value.as_ref(), token)?;
    Ok((held == Held::Same).then(|| script.pttl_of(value.as_ref())))
}

pub fn extend_by(script: &mut Script<'_, '_, '_>) -> Ran {
    let Some(left) = left_of_held(script)?.filter(|left| *left >= 0.0) else { return Ok(int(0)) };
    let more = script.operand(3, "field '?'", script.arg(1))?;
    script.pexpire(2, script.key(0), &number::to_argument(left + more))?;
    Ok(int(1))
}

pub fn extend_by_or_to(script: &mut Script<'_, '_, '_>) -> Ran {
    let Some(left) = left_of_held(script)?.filter(|left| *left >= 0.0) else { return Ok(int(0)) };
    if script.arg(2) == b"0" {
        let more = script.operand(3, "field '?'", script.arg(1))?;
        script.pexpire(2, script.key(0), &number::to_argument(left + more))?;
    } else {
        script.pexpire(2, script.key(0), script.arg(1))?;
    }
    Ok(int(1))
}

pub fn extend_seconds_by(script: &mut Script<'_, '_, '_>) -> Ran {
    // As TTL rounds.
    let left = left_of_held(script)?.map(|left| ((left + 500.0) / 1000.0).floor());
    let Some(left) = left.filter(|left| *left > 0.0) else { return Ok(int(0)) };
    let more = script.operand(3, "field '?'", script.arg(1))?;
    script.expire(2, script.key(0), &number::to_argument(left + more))?;
    Ok(int(1))
}

pub fn extend_if_enough_left(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, token) = (script.key(0), script.arg(0));
    let Some(value) = script.look(key)? else { return Ok(Answer::Array(vec![int(-1), int(-2)])) };
    let left = script.pttl_of(Some(&value));
    let and_left = |answer| Ok(Answer::Array(vec![int(answer), Answer::Number(left)]));
    if script.is_less(3, Some(left), script.number(1))? {
        return and_left(0);
    }
    if script.held_in(key, Some(&value), token)? != Held::Same {
        return and_left(-1);
    }
    let ms = script.given(2, script.number(2))?;
    script.pexpire(2, key, &ms)?;
    and_left(1)
}

pub fn refresh_by_set(script: &mut Script<'_, '_, '_>) -> Ran {
    if !is_held(script)? {
        return Ok(int(0));
    }
    script.set_px(1, script.key(0), script.arg(0), script.arg(1))?;
    Ok(int(1))
}

pub fn refresh_by_set_keys(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, ms, token) = (script.key(0), script.key(1), script.key(2));
    if script.held(key, token)? != Held::Same {
        return Ok(int(0));
    }
    script.set_px(1, key, token, ms)?;
    Ok(OK)
}

pub fn refresh_by_set_or_err(script: &mut Script<'_, '_, '_>) -> Ran {
    if !is_held(script)? {
        return Ok(Answer::Bytes(b"ERR".to_vec()));
    }
    script.set_px(1, script.key(0), script.arg(0), script.arg(1))?;
    Ok(OK)
}

pub fn set_nx_px(script: &mut Script<'_, '_, '_>) -> Ran {
    let set = script.set_nx_px(0, script.key(0), script.arg(0), script.arg(1))?;
    Ok(if set { OK } else { Answer::Nil })
}

pub fn set_nx_maybe_px(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, token) = (script.key(0), script.arg(0));
    let set = match script.arg_if_any(1) {
        Some(ms) if !ms.is_empty() => script.set_nx_px(0, key, token, ms)?,
        _ => script.set(1, key, token, None, Condition::Absent)?,
    };
    Ok(if set { OK } else { Answer::Nil })
}

pub fn setnx_pexpire(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, ms) = (script.key(0), script.arg(1));
    if !script.set(0, key, script.arg(0), None, Condition::Absent)? {
        return Ok(int(0));
    }
    if !ms.is_empty() {
        script.pexpire(1, key, ms)?;
    }
    Ok(int(1))
}

pub fn setnx_expire(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, token, seconds) = (script.key(0), script.arg(0), script.arg(1));
    setnx_and_expire(script, key, token, seconds)
}

pub fn setnx_expire_keys(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, token, seconds) = (script.key(0), script.key(1), script.key(2));
    setnx_and_expire(script, key, token, seconds)
}

fn setnx_and_expire(script: &mut Script<'_, '_, '_>, key: &[u8], token: &[u8], seconds: &[u8]) -> Ran {
    if !script.set(0, key, token, None, Condition::Absent)? {
        return Ok(int(0));
    }
    script.expire(1, key, seconds)?;
    Ok(int(1))
}

pub fn add(script: &mut Script<'_, '_, '_>) -> Ran {
    let key = script.key(0);
    if script.exists(key)? {
        return Ok(Answer::Nil);
    }
    script.setex(1, key, script.arg(1), script.arg(0))?;
    Ok(OK)
}

pub fn hold_or_take(script: &mut Script<'_, '_, '_>) -> Ran {
    let held = is_held(script)? || script.set_nx_px(1, script.key(0), script.arg(0), script.arg(1))?;
    Ok(int(i64::from(held)))
}

pub fn take_or_refresh(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, token) = (script.key(0), script.arg(0));
    if script.held(key, token)? == Held::Other {
        return Ok(error_reply());
    }
    script.set_px(1, key, token, script.arg(1))?;
    Ok(OK)
}

pub fn take_or_refresh_else_nil(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, token) = (script.key(0), script.arg(0));
    if script.held(key, token)? == Held::Other {
        return Ok(Answer::Nil);
    }
    script.set_px(2, key, token, script.arg(1))?;
    Ok(OK)
}

pub fn take_or_refresh_if_asked(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, token) = (script.key(0), script.arg(0));
    match script.held(key, token)? {
        Held::Same => {}
        Held::Nothing if script.arg(2) == b"yes" => {}
        Held::Nothing | Held::Other => return Ok(Answer::Nil),
    }
    script.set_px(2, key, token, script.arg(1))?;
    Ok(OK)
}

pub fn take_or_pexpire(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, token, ms) = (script.key(0), script.arg(0), script.arg(1));
    match script.held(key, token)? {
        Held::Other => return Ok(int(0)),
        Held::Same => script.pexpire(1, key, ms)?,
        Held::Nothing => {
            script.set(2, key, token, None, Condition::Always)?;
            script.pexpire(3, key, ms)?
        }
    };
    Ok(int(1))
}

pub fn take_or_pexpire_true(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, token, ms) = (script.key(0), script.arg(0), script.arg(1));
    match script.held(key, token)? {
        Held::Other => return Ok(Answer::Nil),
        Held::Same => {
            script.pexpire(1, key, ms)?;
        }
        Held::Nothing => script.set_px(2, key, token, ms)?,
    }
    Ok(int(1))
}

pub fn take_or_pexpire_or_minus_one(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, token, ms) = (script.key(0), script.arg(0), script.arg(1));
    match script.held(key, token)? {
        Held::Other => return Ok(int(-1)),
        Held::Nothing => script.set_px(1, key, token, ms)?,
        Held::Same => {
            script.pexpire(2, key, ms)?;
        }
    }
    Ok(int(1))
}

pub fn pexpire_or_take(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, token, ms) = (script.key(0), script.arg(0), script.arg(1));
    let done = if is_held(script)? { script.pexpire(1, key, ms)? } else { script.set_nx_px(2, key, token, ms)? };
    Ok(int(i64::from(done)))
}

pub fn take_unless_held(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, token, seconds) = (script.key(0), script.arg(0), script.number(1));
    let expires = if script.is_less(3, Some(0.0), seconds)? { Some(script.given(0, seconds)?) } else { None };
    let expires = expires.as_deref().map(|seconds| (ExpiryWord::Ex, seconds));
    if script.set(0, key, token, expires, Condition::Absent)? {
        return Ok(int(1));
    }
    if script.arg(2) == b"true" || script.held(key, token)? != Held::Same || token == b"*" {
        return Ok(int(0));
    }
    script.set(2, key, token, expires, Condition::Present)?;
    Ok(int(1))
}

pub fn take_by_prefix(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, token, ms) = (script.key(0), script.arg(0), script.arg(2));
    if script.set_nx_px(0, key, token, ms)? {
        return Ok(OK);
    }
    let length = script.number(1);
    if !begins_with(script, key, token, length, 1)? {
        return Ok(Answer::Nil);
    }
    script.set_px(2, key, token, ms)?;
    Ok(OK)
}

/// Whether the first `length` bytes of a value are those of `token`, `place` being that of GETRANGE.
pub fn begins_with(
    script: &mut Script<'_, '_, '_>,
    key: &[u8],
    token: &[u8],
    length: Option<f64>,
    place: usize,
) -> Result<bool, Stop> {
    let length = script.operand_if_any(place, "local 'offset'", length)?;
    let end = number::to_argument(length - 1.0);
    let no_integer = || script.fail(place, error::NOT_AN_INTEGER);
    let end = parse_i64(&end).ok_or_else(no_integer)?;
    let held = script.beginning(key, end)?;
    // string.sub counts a negative end from the end, the last byte being -1.
    let length = number::to_integer(length);
    let length = if length < 0 { length.saturating_add(token.len() as i64 + 1) } else { length };
    let length = usize::try_from(length).unwrap_or_default().min(token.len());
    Ok(held == token[..length])
}

pub fn pttl_if_equal(script: &mut Script<'_, '_, '_>) -> Ran {
    Ok(Answer::Number(left_of_held(script)?.filter(|left| *left > 0.0).unwrap_or(0.0)))
}

pub fn pttl_if_equal_or_minus_three(script: &mut Script<'_, '_, '_>) -> Ran {
    Ok(Answer::Number(left_of_held(script)?.unwrap_or(-3.0)))
}

pub fn ttl_if_equal(script: &mut Script<'_, '_, '_>) -> Ran {
    Ok(match left_of_held(script)? {
        None => error_reply(),
        Some(left) if left < 0.0 => Answer::Number(left),
        Some(left) => Answer::Number(((left + 500.0) / 1000.0).floor()),
    })
}

pub fn value_and_pttl(script: &mut Script<'_, '_, '_>) -> Ran {
    let key = script.key(0);
    let Some(value) = script.look(key)? else { return Ok(Answer::Array(vec![Answer::Nil, int(-2)])) };
    let left = script.pttl_of(Some(&value));
    Ok(Answer::Array(vec![Answer::Bytes(script.call.read(key, &value)?), Answer::Number(left)]))
}

pub fn value_and_pttl_or_nil(script: &mut Script<'_, '_, '_>) -> Ran {
    if script.exists(script.key(0))? { value_and_pttl(script) } else { Ok(Answer::Nil) }
}
