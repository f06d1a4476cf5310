//! Numbers in values: INCR, DECR, INCRBY, DECRBY, INCRBYFLOAT.
//!
//! Promise: a whole new value is written, with the expiry the old one had; nobody comes in between. Must never know a
//! socket.

use crate::core::types::Millis;
use crate::frontends::resp::args::parse_i64;
use crate::frontends::resp::call::{Call, CommandError};
use crate::frontends::resp::error;

/// INCR key
pub fn incr(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    add(call, 1)
}

/// DECR key
pub fn decr(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    add(call, -1)
}

/// INCRBY key increment
pub fn incrby(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let increment = parse_i64(call.arg(2)).ok_or(error::NOT_AN_INTEGER)?;
    add(call, increment)
}

/// DECRBY key decrement
pub fn decrby(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let decrement = parse_i64(call.arg(2)).ok_or(error::NOT_AN_INTEGER)?;
    add(call, decrement.checked_neg().ok_or("ERR decrement would overflow")?)
}

fn add(call: &mut Call<'_, '_>, increment: i64) -> Result<(), CommandError> {
    let key = call.arg(1);
    let sum = add_to(call, key, increment)?;
    call.reply().integer(sum);
    Ok(())
}

/// Adds to the number that a key holds, and gives the sum; a key without a value holds 0.
///
/// # Errors
/// Redis's, when it holds no number or the sum is none; [`CommandError`] as [`Call::set`].
pub fn add_to(call: &mut Call<'_, '_>, key: &[u8], increment: i64) -> Result<i64, CommandError> {
    let current = call.current(key)?;
    let (number, expires_at) = match &current {
        None => (0, Millis::NEVER),
        Some(current) => (parse_i64(&current.value).ok_or(error::NOT_AN_INTEGER)?, current.expires_at),
    };
    let sum = number.checked_add(increment).ok_or("ERR increment or decrement would overflow")?;
    call.set(key, itoa::Buffer::new().format(sum).as_bytes(), expires_at)?;
    Ok(sum)
}

/// INCRBYFLOAT key increment
pub fn incrbyfloat(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let key = call.arg(1);
    let current = call.current(key)?;
    let (number, expires_at) = match &current {
        None => (0.0, Millis::NEVER),
        Some(current) => (parse_float(&current.value).ok_or(error::NOT_A_FLOAT)?, current.expires_at),
    };
    let increment = parse_float(call.arg(2)).ok_or(error::NOT_A_FLOAT)?;
    let sum: f64 = number + increment;
    if !sum.is_finite() {
        return Err("ERR increment would produce NaN or Infinity".into());
    }
    let text = if sum == 0.0 { "0".to_owned() } else { sum.to_string() };
    call.set(key, text.as_bytes(), expires_at)?;
    call.reply().bulk(text.as_bytes());
    Ok(())
}

/// A number as Redis reads one: no blanks around it, and not "not a number".
fn parse_float(text: &[u8]) -> Option<f64> {
    let text = str::from_utf8(text).ok()?;
    text.parse().ok().filter(|number: &f64| !number.is_nan())
}
