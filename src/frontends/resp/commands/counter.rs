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

/// A number as Redis reads one, in decimal or hexadecimal: no blanks around it, not "not a number", and infinite only if
/// it says so.
fn parse_float(text: &[u8]) -> Option<f64> {
    let text = str::from_utf8(text).ok()?;
    let number: f64 = hexadecimal(text).or_else(|| text.parse().ok())?;
    let says_infinite = text.contains(['n', 'N']);
    (number.is_finite() || (number.is_infinite() && says_infinite)).then_some(number)
}

/// The number of a text like `-0x1.8p3`, as C reads it.
fn hexadecimal(text: &str) -> Option<f64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1.0, digits),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"))?;
    let (digits, power) = digits.split_once(['p', 'P']).unwrap_or((digits, "0"));
    let power: i32 = power.parse().ok()?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let read = |number: f64, digit: char| Some(number * 16.0 + f64::from(digit.to_digit(16)?));
    let number = whole.chars().chain(fraction.chars()).try_fold(0.0, read)?;
    let places = i32::try_from(fraction.len()).ok()?.checked_mul(4)?;
    Some(sign * number * 2.0_f64.powi(power.checked_sub(places)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_read_as_redis_reads_them() {
        for (text, number) in [
            ("3.5", 3.5),
            (".5", 0.5),
            ("5.", 5.0),
            ("+1e2", 100.0),
            ("0x10", 16.0),
            ("-0X1.8p3", -12.0),
            ("0x.8", 0.5),
            ("0xAp-1", 5.0),
            ("inf", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
        ] {
            assert_eq!(parse_float(text.as_bytes()), Some(number), "{text}");
        }
        for text in ["", " 1", "1 ", "abc", "nan", "1e400", "-1e400", "0x", "0x.", "0x1p", "0xg", "1\0", "0x1p1.5", "."]
        {
            assert_eq!(parse_float(text.as_bytes()), None, "{text}");
        }
    }
}
