//! What scripts do that count in fixed windows, and those that compare a value and set it.
//!
//! Promise: each does what docs/scripts.md says under its name, with the errors of the bodies it stands for. Must never know
//! a library.
//!
//! The number behind a call is its place among the calls of the bodies, in their order; the table has its line. Places
//! behind the last call are those of Lua's own errors.

use crate::core::op::Condition;
use crate::frontends::resp::commands::expiry::ExpiryWord;
use crate::frontends::resp::error;
use crate::frontends::resp::scripts::number;
use crate::frontends::resp::scripts::run::{Answer, Held, OK, Ran, Script, Stop, int};

/// The greatest whole number that JavaScript counts to.
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

fn pair(first: f64, second: f64) -> Ran {
    Ok(Answer::Array(vec![Answer::Number(first), Answer::Number(second)]))
}

pub fn incrby_if_exists(script: &mut Script<'_, '_, '_>) -> Ran {
    let key = script.key(0);
    if !script.exists(key)? {
        return Ok(Answer::Nil);
    }
    Ok(Answer::Number(script.incrby(1, key, script.arg(0))?))
}

pub fn incrby(script: &mut Script<'_, '_, '_>) -> Ran {
    Ok(Answer::Number(script.incrby(0, script.key(0), script.arg(0))?))
}

pub fn incr_expire_first(script: &mut Script<'_, '_, '_>) -> Ran {
    let key = script.key(0);
    let count = script.incrby(0, key, b"1")?;
    if count == 1.0 {
        script.expire(1, key, script.arg(0))?;
    }
    Ok(Answer::Number(count))
}

pub fn incr_pexpire_first(script: &mut Script<'_, '_, '_>) -> Ran {
    let key = script.key(0);
    let count = script.incrby(0, key, b"1")?;
    if count == 1.0 {
        script.pexpire(1, key, script.arg(0))?;
    }
    Ok(Answer::Number(count))
}

pub fn incrby_expire_first(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, amount) = (script.key(0), script.number(1));
    let count = script.incrby(0, key, &script.given(0, amount)?)?;
    if Some(count) == amount {
        script.expire(1, key, script.arg(0))?;
    }
    Ok(Answer::Number(count))
}

pub fn incrby_pexpire_one(script: &mut Script<'_, '_, '_>) -> Ran {
    let key = script.key(0);
    let count = script.incrby(0, key, script.arg(0))?;
    if count == 1.0 {
        script.pexpire(1, key, script.arg(1))?;
    }
    Ok(Answer::Number(count))
}

pub fn expire_first_incrby(script: &mut Script<'_, '_, '_>) -> Ran {
    let key = script.key(0);
    let count = script.incrby(0, key, script.arg(1))?;
    if Some(count) == script.number(1) {
        script.expire(1, key, script.arg(0))?;
    }
    Ok(Answer::Number(count))
}

pub fn pexpire_first_incrby(script: &mut Script<'_, '_, '_>) -> Ran {
    let key = script.key(0);
    let count = script.incrby(0, key, script.arg(1))?;
    if Some(count) == script.number(1) {
        script.pexpire(1, key, script.arg(0))?;
    }
    Ok(Answer::Number(count))
}

pub fn incrby_never_expiring(script: &mut Script<'_, '_, '_>) -> Ran {
    Ok(Answer::Number(script.incrby(0, script.key(0), script.arg(1))?))
}

pub fn used(script: &mut Script<'_, '_, '_>) -> Ran {
    Ok(script.get(script.key(0))?.map_or(int(0), Answer::Bytes))
}

pub fn fixed_window(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, period, limit, cost) = (script.key(0), script.number(0), script.number(1), script.number(2));
    let count = script.incrby(0, key, &script.given(0, cost)?)?;
    if Some(count) == cost {
        script.expire(1, key, &script.given(1, period)?)?;
    }
    let limited = script.is_less(2, limit, Some(count))?;
    pair(f64::from(u8::from(limited)), count)
}

pub fn hits_reset_when_due(script: &mut Script<'_, '_, '_>) -> Ran {
    let key = script.key(0);
    let hits = script.incrby(0, key, b"1")?;
    let mut left = script.pttl(key)?;
    if left <= 0.0 || script.arg(0) == b"1" {
        let window = script.number(1);
        script.pexpire(2, key, &script.given(2, window)?)?;
        left = window.unwrap_or_default();
    }
    pair(hits, left)
}

pub fn hits_new_window(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, window) = (script.key(0), script.number(1));
    let mut left = script.pttl(key)?;
    if left <= 0.0 {
        return begin_window(script, window);
    }
    let hits = script.incrby(2, key, b"1")?;
    if script.arg(0) == b"1" {
        script.pexpire(3, key, &script.given(3, window)?)?;
        left = window.unwrap_or_default();
    }
    pair(hits, left)
}

pub fn hits_new_window_only(script: &mut Script<'_, '_, '_>) -> Ran {
    let key = script.key(0);
    let left = script.pttl(key)?;
    if left <= 0.0 {
        let window = script.number(0);
        return begin_window(script, window);
    }
    pair(script.incrby(2, key, b"1")?, left)
}

fn begin_window(script: &mut Script<'_, '_, '_>, window: Option<f64>) -> Ran {
    let ms = script.given(1, window)?;
    script.set_px(1, script.key(0), b"1", &ms)?;
    pair(1.0, window.unwrap_or_default())
}

pub fn consume(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, seconds) = (script.key(0), script.arg(1));
    script.set(0, key, b"0", Some((ExpiryWord::Ex, seconds)), Condition::Absent)?;
    let consumed = script.incrby(1, key, script.arg(0))?;
    let mut left = script.pttl(key)?;
    if left == -1.0 {
        script.expire(3, key, seconds)?;
        left = 1000.0 * script.operand(3, "field '?'", seconds)?;
    }
    pair(consumed, left)
}

/// INCR and PTTL, and PEXPIRE when the key has no TTL, or when the limit is exceeded and `renews` says so. Gives the count,
/// what is left, and whether it was set.
fn count_hit(script: &mut Script<'_, '_, '_>, renews: bool) -> Result<(f64, f64, bool), Stop> {
    let (key, window, max) = (script.key(0), script.number(0), script.number(1));
    let hits = script.incrby(0, key, b"1")?;
    let left = script.pttl(key)?;
    if left == -1.0 || (renews && script.is_less(3, max, Some(hits))?) {
        script.pexpire(2, key, &script.given(2, window)?)?;
        return Ok((hits, window.unwrap_or_default(), true));
    }
    Ok((hits, left, false))
}

pub fn hits_with_ban(script: &mut Script<'_, '_, '_>) -> Ran {
    let renews = script.arg(3) == b"true";
    let (hits, left, _) = count_hit(script, renews)?;
    let (max, ban) = (script.number(1), script.number(2));
    let banned = ban != Some(-1.0) && {
        let over = hits - script.operand_if_any(4, "local 'max'", max)?;
        script.is_less(4, ban, Some(over))?
    };
    Ok(Answer::Array(vec![Answer::Number(hits), Answer::Number(left), Answer::of_bool(banned)]))
}

pub fn hits_continued(script: &mut Script<'_, '_, '_>) -> Ran {
    let renews = script.arg(2) == b"true";
    let (hits, left, _) = count_hit(script, renews)?;
    pair(hits, left)
}

pub fn hits_backoff_ttl(script: &mut Script<'_, '_, '_>) -> Ran {
    let (renews, backs_off) = (script.arg(2) == b"true", script.arg(3) == b"true");
    let (key, max) = (script.key(0), script.number(1));
    let hits = script.incrby(0, key, b"1")?;
    let left = script.pttl(key)?;
    if left == -1.0 || (renews && script.is_less(4, max, Some(hits))?) {
        return begin_hits(script, hits, 2);
    }
    if backs_off && script.is_less(5, max, Some(hits))? {
        return back_off(script, hits, (6, 3));
    }
    pair(hits, left)
}

pub fn hits_backoff(script: &mut Script<'_, '_, '_>) -> Ran {
    let (renews, backs_off) = (script.arg(2) == b"true", script.arg(3) == b"true");
    let (key, max) = (script.key(0), script.number(1));
    let hits = script.incrby(0, key, b"1")?;
    if hits == 1.0 || (renews && script.is_less(4, max, Some(hits))?) {
        return begin_hits(script, hits, 1);
    }
    if backs_off && script.is_less(5, max, Some(hits))? {
        return back_off(script, hits, (6, 2));
    }
    pair(hits, script.pttl(key)?)
}

fn begin_hits(script: &mut Script<'_, '_, '_>, hits: f64, place: usize) -> Ran {
    let window = script.number(0);
    script.pexpire(place, script.key(0), &script.given(place, window)?)?;
    pair(hits, window.unwrap_or_default())
}

/// Doubles the window with each hit over the limit. The places are those of the arithmetic and of PEXPIRE.
fn back_off(script: &mut Script<'_, '_, '_>, hits: f64, (arithmetic, place): (usize, usize)) -> Ran {
    let window = script.operand_if_any(arithmetic, "local 'timeWindow'", script.number(0))?;
    let exponent = hits - script.number(1).unwrap_or_default() - 1.0;
    let window = window * 2_f64.powf(exponent);
    let window = if MAX_SAFE_INTEGER < window { MAX_SAFE_INTEGER } else { window };
    script.pexpire(place, script.key(0), &number::to_argument(window))?;
    pair(hits, window)
}

pub fn read_hits(script: &mut Script<'_, '_, '_>) -> Ran {
    let key = script.key(0);
    let Some(value) = script.look(key)? else { return pair(0.0, 0.0) };
    let left = script.pttl_of(Some(&value)).max(0.0);
    let held = script.call.read(key, &value)?;
    match number::of_text(&held) {
        Some(hits) => pair(hits, left),
        // An array ends before its first nil.
        None => Ok(Answer::Array(Vec::new())),
    }
}

pub fn pass_or_pttl(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, limit) = (script.key(0), script.number(0));
    let current = script.get(key)?.map_or(Some(0.0), |held| number::of_text(&held));
    if !script.is_less(4, Some(0.0), current)? {
        script.set_px(3, key, b"1", script.arg(1))?;
        return Ok(int(0));
    }
    if script.is_less(5, limit, current.map(|current| current + 1.0))? {
        return Ok(Answer::Number(script.pttl(key)?));
    }
    script.incrby(2, key, b"1")?;
    Ok(int(0))
}

pub fn hits_and_block(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, block) = (script.key(0), script.key(1));
    let (window, limit, blocks_for) = (script.number(1), script.number(2), script.number(3));
    let mut hits = script.incrby(0, key, b"1")?;
    let mut left = script.pttl(key)?;
    if left <= 0.0 {
        script.pexpire(2, key, &script.given(2, window)?)?;
        left = window.unwrap_or_default();
    }
    let mut blocked_for = None;
    if script.exists(block)? {
        blocked_for = Some(script.pttl(block)?);
    } else if script.is_less(8, limit, Some(hits))? {
        let ms = script.given(5, blocks_for)?;
        script.set_px(5, block, b"1", &ms)?;
        blocked_for = blocks_for;
    }
    let mut is_blocked = blocked_for.is_some();
    if blocked_for.is_some_and(|left| left <= 0.0) {
        script.del(6, block)?;
        let ms = script.given(7, window)?;
        script.set_px(7, key, b"1", &ms)?;
        (hits, left, is_blocked) = (1.0, window.unwrap_or_default(), false);
    }
    let numbers = [hits, left, f64::from(u8::from(is_blocked)), blocked_for.unwrap_or_default()];
    Ok(Answer::Array(numbers.into_iter().map(Answer::Number).collect()))
}

pub fn compare_and_set(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, value, wanted) = (script.key(0), script.arg(0), script.arg(1));
    if script.held(key, wanted)? != Held::Same {
        return Ok(int(0));
    }
    if script.arg_count() != 4 {
        script.set(2, key, value, None, Condition::Always)?;
        return Ok(OK);
    }
    // As in Redis before its words are looked at.
    script.writes(1)?;
    let word = ExpiryWord::of(script.arg(2)).filter(|word| *word != ExpiryWord::KeepTtl);
    let word = word.ok_or_else(|| script.fail(1, error::SYNTAX))?;
    script.set(1, key, value, Some((word, script.arg(3))), Condition::Always)?;
    Ok(OK)
}

pub fn compare_prefix_and_set(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, prefix) = (script.key(0), script.arg(0));
    if script.beginning(key, prefix.len() as i64 - 1)? != prefix {
        return Ok(int(0));
    }
    script.set(1, key, script.arg(1), None, Condition::Always)?;
    Ok(int(1))
}

pub fn next_id(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, next) = (script.key(0), script.number(0));
    let current = script.get(key)?.and_then(|held| number::of_text(&held));
    if current.is_some() && !script.is_less(2, current, next)? {
        return Ok(Answer::Nil);
    }
    let text = script.given(1, next)?;
    script.set(1, key, &text, None, Condition::Always)?;
    Ok(Answer::Number(next.unwrap_or_default()))
}
