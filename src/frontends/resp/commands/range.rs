//! Parts of values: APPEND, SETRANGE, GETRANGE and its old name SUBSTR.
//!
//! Promise: a value is never made longer than it may be, nor is room taken for one. Must never know a socket.

use crate::core::types::Millis;
use crate::frontends::resp::args::parse_i64;
use crate::frontends::resp::call::{Call, CommandError};
use crate::frontends::resp::error;

/// APPEND key value
pub fn append(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let (key, tail) = (call.arg(1), call.arg(2));
    let current = call.current(key)?;
    let expires_at = current.as_ref().map_or(Millis::NEVER, |current| current.expires_at);
    let mut value = current.map(|current| current.value).unwrap_or_default();
    require_fitting(call, value.len() + tail.len())?;
    value.extend_from_slice(tail);
    call.set(key, &value, expires_at)?;
    call.reply().integer(value.len() as i64);
    Ok(())
}

/// SETRANGE key offset value
pub fn setrange(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let (key, part) = (call.arg(1), call.arg(3));
    let offset = parse_i64(call.arg(2)).ok_or(error::NOT_AN_INTEGER)?;
    let offset = usize::try_from(offset).map_err(|_| "ERR offset is out of range")?;
    let Some(held) = call.look_to_write(key)? else {
        if part.is_empty() {
            call.reply().integer(0);
            return Ok(());
        }
        require_fitting(call, offset.saturating_add(part.len()))?;
        let mut value = vec![0; offset];
        value.extend_from_slice(part);
        call.set(key, &value, Millis::NEVER)?;
        call.reply().integer(value.len() as i64);
        return Ok(());
    };
    if part.is_empty() {
        call.reply().integer(held.bytes(key.len()) as i64);
        return Ok(());
    }
    let end = offset.saturating_add(part.len());
    require_fitting(call, end)?;
    let mut value = call.read(key, &held)?;
    if value.len() < end {
        value.resize(end, 0);
    }
    value[offset..end].copy_from_slice(part);
    call.set(key, &value, held.expires_at())?;
    call.reply().integer(value.len() as i64);
    Ok(())
}

fn require_fitting(call: &Call<'_, '_>, bytes: usize) -> Result<(), CommandError> {
    if bytes > call.session.metrics.facts.max_value_bytes { Err(error::TOO_LONG.into()) } else { Ok(()) }
}

/// GETRANGE key start end
pub fn getrange(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let key = call.arg(1);
    let start = parse_i64(call.arg(2)).ok_or(error::NOT_AN_INTEGER)?;
    let end = parse_i64(call.arg(3)).ok_or(error::NOT_AN_INTEGER)?;
    let value = call.look(key)?;
    call.count_look(value.is_some());
    let range = value.as_ref().and_then(|value| range(start, end, value.bytes(key.len())));
    match (value, range) {
        (Some(value), Some(range)) => {
            let bytes = call.read(key, &value)?;
            call.reply().bulk(bytes.get(range).unwrap_or_default());
        }
        _ => call.reply().bulk(b""),
    }
    Ok(())
}

/// The bytes from `start` to `end`, both included and counted from the end when negative, of a value of `length` bytes.
fn range(start: i64, end: i64, length: usize) -> Option<std::ops::Range<usize>> {
    let length = length as i64;
    // Redis looks at this before it adds the length.
    if start < 0 && end < 0 && start > end {
        return None;
    }
    let place = |number: i64| if number < 0 { (number + length).max(0) } else { number };
    let (start, end) = (place(start), place(end).min(length - 1));
    (start <= end && length > 0).then(|| start as usize..end as usize + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_cut_to_the_value_and_never_turned_round() {
        let cases = [
            (0, -1, 5, Some(0..5)),
            (1, 2, 5, Some(1..3)),
            (-3, -2, 5, Some(2..4)),
            (-100, 2, 5, Some(0..3)),
            (3, 100, 5, Some(3..5)),
            (5, 10, 5, None),
            (3, 1, 5, None),
            (-1, -5, 5, None),
            (-9, -8, 5, Some(0..1)),
            (0, 0, 0, None),
            (i64::MIN, i64::MAX, 5, Some(0..5)),
            (i64::MAX, i64::MIN, 5, None),
        ];
        for (start, end, length, expected) in cases {
            assert_eq!(range(start, end, length), expected, "{start} {end} of {length}");
        }
    }
}
