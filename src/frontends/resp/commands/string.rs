//! Commands that read one value, some of which change it on the way: GET, STRLEN, GETDEL, GETEX.
//!
//! Promise: what GETDEL and GETEX answer is what they took the place of. Must never know a socket.

use crate::core::types::Millis;
use crate::frontends::resp::call::{Call, CommandError};
use crate::frontends::resp::commands::expiry::{ExpiryWord, expiry};
use crate::frontends::resp::error;

/// GET key
pub fn get(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let key = call.arg(1);
    let value = call.look(key)?;
    call.count_look(value.is_some());
    call.write_value(key, value.as_ref(), error::of_read)
}

/// STRLEN key
pub fn strlen(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let key = call.arg(1);
    let value = call.look(key)?;
    call.count_look(value.is_some());
    call.reply().integer(value.map_or(0, |value| value.bytes(key.len())) as i64);
    Ok(())
}

/// GETDEL key
pub fn getdel(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let key = call.arg(1);
    // The value is read after the delete is staged: its record stays where it was.
    let (outcome, hold) = call.turn.delete(key)?;
    call.replies.hold(hold);
    call.count_look(outcome.previous.is_some());
    call.write_value(key, outcome.previous.as_ref(), error::of_old_value)
}

/// GETEX key [EX s | PX ms | EXAT s | PXAT ms | PERSIST]
pub fn getex(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let (key, mut change) = (call.arg(1), None);
    let mut i = 2;
    while i < call.args.len() {
        let number = call.args.get(i + 1);
        let found = match (ExpiryWord::of(call.arg(i)), number) {
            (Some(ExpiryWord::KeepTtl), _) | (None, _) if !call.is(i, "PERSIST") => return Err(error::SYNTAX.into()),
            (Some(word), Some(number)) => (Some(word), number),
            (Some(_), None) => return Err(error::SYNTAX.into()),
            (None, _) => (None, &b""[..]),
        };
        // The same word again is allowed, and the last one counts.
        if change.is_some_and(|(word, _)| word != found.0) {
            return Err(error::SYNTAX.into());
        }
        change = Some(found);
        i += if found.0.is_some() { 2 } else { 1 };
    }
    let Some((word, number)) = change else { return get(call) };
    let Some(value) = call.look_to_write(key)? else {
        call.count_look(false);
        call.reply().null();
        return Ok(());
    };
    call.count_look(true);
    let expires_at = match word {
        None => Millis::NEVER,
        Some(word) => expiry(word, number, call.turn.now(), "getex")?,
    };
    // PERSIST of what never expires changes nothing.
    if word.is_none() && value.expires_at() == Millis::NEVER {
        return call.write_value(key, Some(&value), error::of_read);
    }
    let old = call.read(key, &value)?;
    call.set(key, &old, expires_at)?;
    call.reply().bulk(&old);
    Ok(())
}
