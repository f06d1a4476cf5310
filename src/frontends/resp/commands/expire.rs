//! When keys expire: EXPIRE and its kin with NX XX GT LT, PERSIST, TTL and its kin.
//!
//! Promise: a new expiry is the whole value written again, and nothing at all when a condition does not hold; one that has
//! passed is a delete. Must never know a socket.

use crate::core::types::Millis;
use crate::frontends::resp::args::parse_i64;
use crate::frontends::resp::call::{Call, CommandError};
use crate::frontends::resp::command::shown;
use crate::frontends::resp::error;

/// EXPIRE key seconds [NX | XX | GT | LT]
pub fn expire(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let now = call.turn.now();
    set_expiry(call, "expire", 1000, now)
}

/// PEXPIRE key milliseconds [NX | XX | GT | LT]
pub fn pexpire(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let now = call.turn.now();
    set_expiry(call, "pexpire", 1, now)
}

/// EXPIREAT key unix-time-seconds [NX | XX | GT | LT]
pub fn expireat(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    set_expiry(call, "expireat", 1000, Millis(0))
}

/// PEXPIREAT key unix-time-milliseconds [NX | XX | GT | LT]
pub fn pexpireat(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    set_expiry(call, "pexpireat", 1, Millis(0))
}

/// What must hold of the expiry a key has for it to get the new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Conditions {
    /// It has none.
    nx: bool,
    /// It has one.
    xx: bool,
    /// It is earlier than the new one.
    gt: bool,
    /// It is later than the new one.
    lt: bool,
}

impl Conditions {
    /// Reads the words behind key and time; which of them exclude each other is told once all are known, as in Redis.
    fn read<'a>(words: impl Iterator<Item = &'a [u8]>) -> Result<Self, CommandError> {
        let mut conditions = Self::default();
        for word in words {
            let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
            let condition = match () {
                () if is("NX") => &mut conditions.nx,
                () if is("XX") => &mut conditions.xx,
                () if is("GT") => &mut conditions.gt,
                () if is("LT") => &mut conditions.lt,
                () => return Err([b"ERR Unsupported option ", shown(word, word.len())].concat().into()),
            };
            *condition = true;
        }
        if conditions.nx && (conditions.xx || conditions.gt || conditions.lt) {
            return Err("ERR NX and XX, GT or LT options at the same time are not compatible".into());
        }
        if conditions.gt && conditions.lt {
            return Err("ERR GT and LT options at the same time are not compatible".into());
        }
        Ok(conditions)
    }

    /// Whether a key that expires at `held` gets `wanted`. What never expires does so later than anything.
    fn hold(self, held: Millis, wanted: i64) -> bool {
        let held = i64::try_from(held.0).unwrap_or(i64::MAX);
        if held == 0 {
            return !self.xx && !self.gt;
        }
        !self.nx && (!self.gt || wanted > held) && (!self.lt || wanted < held)
    }
}

/// The Unix time in milliseconds that a number of `unit_ms` since `since` means; it may lie before 1970.
fn time_of(number: i64, unit_ms: i64, since: Millis) -> Option<i64> {
    number.checked_mul(unit_ms)?.checked_add(i64::try_from(since.0).ok()?)
}

fn set_expiry(call: &mut Call<'_, '_>, name: &str, unit_ms: i64, since: Millis) -> Result<(), CommandError> {
    let key = call.arg(1);
    let conditions = Conditions::read(call.args.iter().skip(3))?;
    let number = parse_i64(call.arg(2)).ok_or(error::NOT_AN_INTEGER)?;
    let at = time_of(number, unit_ms, since).ok_or_else(|| format!("ERR invalid expire time in '{name}' command"))?;
    let held = call.look_to_write(key)?.filter(|value| conditions.hold(value.expires_at(), at));
    let Some(value) = held else {
        call.reply().integer(0);
        return Ok(());
    };
    match u64::try_from(at).map(Millis) {
        Ok(at) if at != Millis::NEVER && !at.has_lapsed(call.turn.now()) => {
            let value = call.read(key, &value)?;
            call.set(key, &value, at)?;
        }
        _ => {
            call.delete(key)?;
        }
    }
    call.reply().integer(1);
    Ok(())
}

/// PERSIST key
pub fn persist(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let key = call.arg(1);
    let expiring = call.look_to_write(key)?.filter(|value| value.expires_at() != Millis::NEVER);
    if let Some(value) = &expiring {
        let value = call.read(key, value)?;
        call.set(key, &value, Millis::NEVER)?;
    }
    call.reply().integer(i64::from(expiring.is_some()));
    Ok(())
}

/// TTL key
pub fn ttl(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let now = call.turn.now();
    tell(call, |at| seconds(at.0.saturating_sub(now.0)))
}

/// PTTL key
pub fn pttl(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let now = call.turn.now();
    tell(call, |at| at.0.saturating_sub(now.0))
}

/// EXPIRETIME key
pub fn expiretime(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    tell(call, |at| seconds(at.0))
}

/// PEXPIRETIME key
pub fn pexpiretime(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    tell(call, |at| at.0)
}

/// To the nearest second, as Redis tells it.
fn seconds(ms: u64) -> u64 {
    ms.saturating_add(500) / 1000
}

/// Tells a key's expiry in the way asked for: -1 when it has none, -2 when there is no key.
fn tell(call: &mut Call<'_, '_>, told: impl FnOnce(Millis) -> u64) -> Result<(), CommandError> {
    let value = call.look(call.arg(1))?;
    call.count_look(value.is_some());
    let answer = match value.map(|value| value.expires_at()) {
        None => -2,
        Some(Millis::NEVER) => -1,
        Some(at) => i64::try_from(told(at)).unwrap_or(i64::MAX),
    };
    call.reply().integer(answer);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Conditions, String> {
        Conditions::read(words.split_whitespace().map(str::as_bytes)).map_err(|error| match error {
            CommandError::Text(text) => String::from_utf8_lossy(&text).into_owned(),
            other => format!("{other:?}"),
        })
    }

    #[test]
    fn conditions_are_read_in_any_case_and_excluded_by_one_error() {
        let none = Conditions::default();
        assert_eq!(read(""), Ok(none));
        assert_eq!(read("nx Nx"), Ok(Conditions { nx: true, ..none }));
        assert_eq!(read("XX gt"), Ok(Conditions { xx: true, gt: true, ..none }));
        assert_eq!(read("lt XX"), Ok(Conditions { xx: true, lt: true, ..none }));
        assert_eq!(read("NX XX FOO BAR"), Err("ERR Unsupported option FOO".to_owned()));
        for words in ["NX XX", "GT NX", "LT NX", "XX GT LT NX"] {
            assert!(read(words).is_err_and(|text| text.starts_with("ERR NX and XX, GT or LT")), "{words}");
        }
        assert!(read("GT XX LT").is_err_and(|text| text.starts_with("ERR GT and LT ")));
    }

    #[test]
    fn what_never_expires_is_later_than_anything() {
        let holds = |words: &str, held: u64, wanted| read(words).is_ok_and(|found| found.hold(Millis(held), wanted));
        for (words, held, wanted, expected) in [
            ("", 0, 5, true),
            ("", 9, 5, true),
            ("NX", 0, 5, true),
            ("NX", 9, 5, false),
            ("XX", 0, 5, false),
            ("XX", 9, 5, true),
            ("GT", 0, 5, false),
            ("GT", 5, 5, false),
            ("GT", 4, 5, true),
            ("LT", 0, 5, true),
            ("LT", 5, 5, false),
            ("LT", 6, 5, true),
            ("LT", 6, -5, true),
            ("XX LT", 0, 5, false),
        ] {
            assert_eq!(holds(words, held, wanted), expected, "{words} {held} {wanted}");
        }
    }

    #[test]
    fn a_time_past_the_clock_is_none_and_seconds_are_rounded() {
        assert_eq!(time_of(2, 1000, Millis(500)), Some(2500));
        assert_eq!(time_of(-2, 1000, Millis(500)), Some(-1500));
        assert_eq!(time_of(i64::MAX, 1000, Millis(0)), None);
        assert_eq!(time_of(i64::MAX, 1, Millis(0)), Some(i64::MAX));
        assert_eq!(time_of(i64::MAX, 1, Millis(1)), None);
        assert_eq!(time_of(i64::MIN, 1, Millis(1)), Some(i64::MIN + 1));
        assert_eq!([0, 499, 500, 1499, 1500].map(seconds), [0, 0, 1, 1, 2]);
    }
}
