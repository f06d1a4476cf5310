//! What scripts do that count in sliding windows: two keys, the current window and the one before it, weighed by time.
//!
//! Promise: each does what docs/scripts.md says under its name, with the errors of the bodies it stands for. Must never know
//! a library.
//!
//! The number behind a call is its place among the calls of the bodies, in their order; the table has its line. Places
//! behind the last call are those of Lua's own errors.

use crate::core::op::Condition;
use crate::frontends::resp::commands::expiry::ExpiryWord;
use crate::frontends::resp::scripts::number;
use crate::frontends::resp::scripts::run::{Answer, Ran, Script, Stop, int};

/// `tonumber(ARGV[i + 1]) * 1000`
fn in_ms(script: &Script<'_, '_, '_>, i: usize, place: usize) -> Result<f64, Stop> {
    let number = script.number(i).ok_or_else(|| script.fault(place, "perform arithmetic on a nil value"))?;
    Ok(number * 1000.0)
}

/// Makes the current window the one before, when it has come so far; the places are those of RENAME and SET.
fn shift(script: &mut Script<'_, '_, '_>, expiry: f64, (rename, set): (usize, usize)) -> Result<(), Stop> {
    let (previous, current) = (script.key(0), script.key(1));
    let left = script.pttl(current)?;
    if left > 0.0 && left < expiry {
        script.rename(rename, current, previous)?;
        script.set_px(set, current, b"0", &number::to_argument(left + expiry))?;
    }
    Ok(())
}

/// A counter as a number, 0 when it is none, and what it has left, at least 0.
fn counter(script: &mut Script<'_, '_, '_>, key: &[u8]) -> Result<(f64, f64), Stop> {
    let Some(value) = script.look(key)? else { return Ok((0.0, 0.0)) };
    let left = script.pttl_of(Some(&value)).max(0.0);
    Ok((number::of_text(&script.call.read(key, &value)?).unwrap_or(0.0), left))
}

pub fn window_acquire(script: &mut Script<'_, '_, '_>) -> Ran {
    let (previous, current) = (script.key(0), script.key(1));
    let (limit, expiry, amount) = (script.number(0), in_ms(script, 1, 10)?, script.number(2));
    if script.is_less(11, limit, amount)? {
        return Ok(Answer::Nil);
    }
    let amount = amount.unwrap_or_default();
    shift(script, expiry, (1, 2))?;
    let (before, left) = counter(script, previous)?;
    let (now, _) = counter(script, current)?;
    let weighted = (before * left / expiry).floor() + now;
    if script.is_less(12, limit, Some(weighted + amount))? {
        return Ok(Answer::Nil);
    }
    let amount = number::to_argument(amount);
    if script.exists(current)? {
        script.incrby(8, current, &amount)?;
    } else {
        script.set_px(9, current, &amount, &number::to_argument(expiry * 2.0))?;
    }
    Ok(int(1))
}

pub fn window_read(script: &mut Script<'_, '_, '_>) -> Ran {
    let expiry = in_ms(script, 0, 10)?;
    shift(script, expiry, (4, 5))?;
    let mut answers = Vec::new();
    for key in [script.key(0), script.key(1)] {
        let value = script.look(key)?;
        let left = script.pttl_of(value.as_ref());
        answers.push(match &value {
            Some(value) => Answer::Bytes(script.call.read(key, value)?),
            None => Answer::Nil,
        });
        answers.push(Answer::Number(left));
    }
    Ok(Answer::Array(answers))
}

/// A counter as an operand, as Lua names it.
fn requests(script: &mut Script<'_, '_, '_>, key: &[u8], place: usize, name: &str) -> Result<f64, Stop> {
    match script.get(key)? {
        None => Ok(0.0),
        Some(held) => script.operand(place, name, &held),
    }
}

/// What the previous window still weighs, and what the current one holds. `i` is the place of the time among the arguments,
/// the window's length the next; the errors' places are those of the share, of the weight and of the sum.
fn weigh(script: &mut Script<'_, '_, '_>, i: usize, places: [usize; 3]) -> Result<(f64, f64), Stop> {
    let (current, previous) = (script.key(0), script.key(1));
    // Lua comes to the current window's count last.
    let now = script.operand(places[0], "local 'now'", script.arg(i))?;
    let window = script.operand(places[0], "local 'window'", script.arg(i + 1))?;
    let share = number::modulo(now, window) / window;
    let before = requests(script, previous, places[1], "local 'requestsInPreviousWindow'")?;
    let weight = ((1.0 - share) * before).floor();
    let held = requests(script, current, places[2], "local 'requestsInCurrentWindow'")?;
    Ok((weight, held))
}

pub fn weighted_window(script: &mut Script<'_, '_, '_>) -> Ran {
    limit_weighted(script, b"1", Some(1.0))
}

pub fn weighted_window_by(script: &mut Script<'_, '_, '_>) -> Ran {
    let (increment, number) = (script.arg(3), script.number(3));
    limit_weighted(script, increment, number)
}

fn limit_weighted(script: &mut Script<'_, '_, '_>, increment: &[u8], number: Option<f64>) -> Ran {
    let (current, tokens) = (script.key(0), script.number(0));
    let (weight, held) = weigh(script, 1, [4, 5, 6])?;
    // `a >= b` is `b <= a`, of which only the errors are those of `<`.
    script.is_less(6, tokens, Some(weight + held))?;
    let tokens = tokens.unwrap_or_default();
    if tokens <= weight + held {
        return Ok(int(-1));
    }
    let count = script.incrby(2, current, increment)?;
    if Some(count) == number {
        let window = script.operand(3, "local 'window'", script.arg(2))?;
        script.pexpire(3, current, &number::to_argument(window * 2.0 + 1000.0))?;
    }
    Ok(Answer::Number(tokens - (count + weight)))
}

pub fn weighted_usage(script: &mut Script<'_, '_, '_>) -> Ran {
    let (weight, held) = weigh(script, 0, [2, 3, 4])?;
    Ok(Answer::Number(weight + held))
}

/// The share of the period that is still to come, and the period: `1 - now % period / period`.
fn rest_of_period(script: &Script<'_, '_, '_>, places: (usize, usize)) -> Result<(f64, f64), Stop> {
    let period = script.operand_if_any(places.0, "local 'period'", script.number(0))?;
    let now = script.operand_if_any(places.1, "local 'now_ms'", script.number(3))?;
    let period_ms = period * 1000.0;
    Ok((1.0 - number::modulo(now, period_ms) / period_ms, period))
}

/// How long to wait when the limit is reached.
fn wait(rest: f64, period: f64, cost: f64, previous: f64) -> f64 {
    if cost <= previous { rest * period * cost / previous } else { rest * period }
}

fn usage(limited: bool, used: f64, wait: f64) -> Ran {
    let wait = Answer::Bytes(number::to_text(wait).into_bytes());
    Ok(Answer::Array(vec![Answer::of_bool(limited), Answer::Number(used), wait]))
}

pub fn weighted_usage_limited(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, before, limit, cost) = (script.key(0), script.key(1), script.number(1), script.number(2));
    let current = script.get(key)?;
    let previous = script.get(before)?;
    let (rest, period) = rest_of_period(script, (4, 5))?;
    let previous = previous.map_or(Ok(0.0), |held| script.operand(6, "local 'previous'", &held))?;
    let previous = (rest * previous).floor();
    let held = current.as_ref().map_or(Ok(0.0), |held| script.operand(7, "local 'current'", held))?;
    let cost = script.operand_if_any(7, "local 'cost'", cost)?;
    let used = previous + held + cost;
    if script.is_less(8, limit, Some(used))? && cost != 0.0 {
        return usage(true, used, wait(rest, period, cost, previous));
    }
    let amount = number::to_argument(cost);
    if current.is_some() {
        script.incrby(2, key, &amount)?;
    } else {
        let seconds = number::to_argument(3.0 * period);
        script.set(3, key, &amount, Some((ExpiryWord::Ex, &seconds)), Condition::Always)?;
    }
    usage(false, used, 0.0)
}

pub fn weighted_usage_counted(script: &mut Script<'_, '_, '_>) -> Ran {
    let (key, before, limit, cost) = (script.key(0), script.key(1), script.number(1), script.number(2));
    let current = script.incrby(0, key, &script.given(0, cost)?)?;
    if Some(current) == cost {
        let period = script.operand_if_any(3, "local 'period'", script.number(0))?;
        script.expire(1, key, &number::to_argument(3.0 * period))?;
    }
    let previous = script.get(before)?;
    let (rest, period) = rest_of_period(script, (4, 5))?;
    let previous = previous.map_or(Ok(0.0), |held| script.operand(6, "local 'previous'", &held))?;
    let previous = (rest * previous).floor();
    let used = previous + current;
    let limited = script.is_less(7, limit, Some(used))?;
    let wait = if limited { wait(rest, period, cost.unwrap_or_default(), previous) } else { 0.0 };
    usage(limited, used, wait)
}
