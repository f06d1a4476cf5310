//! Numbers in values: INCR, DECR, INCRBY, DECRBY, INCRBYFLOAT.
//!
//! Promise: a whole new value is written, with the expiry the old one had; nobody comes in between. Must never know a
//! socket.

use crate::core::types::Millis;
use crate::frontends::resp::args::parse_i64;
use crate::frontends::resp::call::{Call, CommandError};
use crate::frontends::resp::error;
use crate::frontends::resp::long_double::LongDouble;

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
        None => (LongDouble::ZERO, Millis::NEVER),
        Some(current) => (LongDouble::parse(&current.value).ok_or(error::NOT_A_FLOAT)?, current.expires_at),
    };
    let increment = LongDouble::parse(call.arg(2)).ok_or(error::NOT_A_FLOAT)?;
    let sum = number.plus(increment).ok_or("ERR increment would produce NaN or Infinity")?;
    let text = sum.to_text();
    call.set(key, text.as_bytes(), expires_at)?;
    call.reply().bulk(text.as_bytes());
    Ok(())
}
