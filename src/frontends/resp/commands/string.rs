//! SET and GET.
//!
//! Promise: Redis's options, in any order and case, with its errors; decided by the core. Must never know a socket.

use crate::core::api::Found;
use crate::core::error::ReadError;
use crate::core::log::reader::Wait;
use crate::core::op::{Condition, Expiry, Put};
use crate::core::types::{Millis, Revision};
use crate::frontends::resp::args::{eq_ignore_case, parse_i64};
use crate::frontends::resp::command::{Call, CommandError};
use crate::frontends::resp::encode::Protocol;
use crate::frontends::resp::error;
use crate::frontends::resp::replies::Replies;

/// GET key
pub fn get(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let key = call.arg(1);
    let (found, hold) = call.turn.get(key).map_err(|fault| error::of_read(&fault))?;
    if found.is_some() {
        *call.hits += 1;
    } else {
        *call.misses += 1;
    }
    write_value(call.replies, call.client.protocol, call.scratch, key, Ok(found), error::of_read);
    call.replies.hold(hold);
    Ok(())
}

/// Writes a value or nil as the reply, reading it if that needs no waiting; `told` is the text when it cannot be read.
fn write_value(
    replies: &mut Replies,
    protocol: Protocol,
    scratch: &mut Vec<u8>,
    key: &[u8],
    found: Result<Option<Found<'_>>, ReadError>,
    told: fn(&ReadError) -> String,
) {
    let pinned = match found {
        Ok(None) => return replies.writer(protocol).null(),
        Ok(Some(Found::Staged(value))) => return replies.writer(protocol).bulk(value),
        Ok(Some(Found::Stored(pinned))) => pinned,
        Err(fault) => return replies.error(protocol, &told(&fault)),
    };
    match pinned.read(key, Wait::Never, scratch) {
        Ok(Some(value)) => replies.writer(protocol).bulk(value),
        Ok(None) => replies.cold(protocol, pinned, key, told),
        Err(fault) => replies.error(protocol, &told(&fault)),
    }
}

/// The options of SET.
struct SetOptions {
    expiry: Expiry,
    condition: Condition,
    /// Answer the old value instead of OK.
    get: bool,
}

/// SET key value [NX | XX | IFREV n] [GET] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL]
pub fn set(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let options = set_options(call)?;
    let (key, value) = (call.arg(1), call.arg(2));
    let put = Put { key, value, expiry: options.expiry, condition: options.condition };
    let (outcome, hold) = call.turn.put(&put)?;
    if options.get {
        // The old value is looked up after staging: it stays where it was, staged or stored. The write stands whether or
        // not the old value can be told.
        let found = outcome.previous.as_ref().map(|value| call.turn.found(key, value)).transpose();
        let told = if outcome.written.is_some() { error::of_old_value } else { error::of_read };
        write_value(call.replies, call.client.protocol, call.scratch, key, found, told);
    } else if outcome.held {
        call.reply().ok();
    } else {
        call.reply().null();
    }
    call.replies.hold(hold);
    Ok(())
}

fn set_options(call: &Call<'_, '_>) -> Result<SetOptions, CommandError> {
    let mut options = SetOptions { expiry: Expiry::Never, condition: Condition::Always, get: false };
    let mut expiry_word: Option<&'static str> = None;
    let mut i = 3;
    while i < call.args.len() {
        let word = call.arg(i);
        let is = |name: &str| eq_ignore_case(word, name.as_bytes());
        let mut expiry_is = |name: &'static str| {
            // The same option again is allowed and the last one counts; two different ones are not.
            let fits = eq_ignore_case(word, name.as_bytes()) && expiry_word.is_none_or(|known| known == name);
            if fits {
                expiry_word = Some(name);
            }
            fits
        };
        if is("GET") {
            options.get = true;
        } else if is("NX") && matches!(options.condition, Condition::Always | Condition::Absent) {
            options.condition = Condition::Absent;
        } else if is("XX") && matches!(options.condition, Condition::Always | Condition::Present) {
            options.condition = Condition::Present;
        } else if is("IFREV") && options.condition == Condition::Always && i + 1 < call.args.len() {
            i += 1;
            options.condition = Condition::Revision(revision(call.arg(i))?);
        } else if expiry_is("KEEPTTL") {
            options.expiry = Expiry::Keep;
        } else if i + 1 < call.args.len() {
            let (unit_ms, absolute) = match () {
                () if expiry_is("EX") => (1000, false),
                () if expiry_is("PX") => (1, false),
                () if expiry_is("EXAT") => (1000, true),
                () if expiry_is("PXAT") => (1, true),
                () => return Err(error::SYNTAX.into()),
            };
            i += 1;
            options.expiry = Expiry::At(expiry_at(call.arg(i), unit_ms, absolute, call.turn.now())?);
        } else {
            return Err(error::SYNTAX.into());
        }
        i += 1;
    }
    Ok(options)
}

fn revision(text: &[u8]) -> Result<Revision, CommandError> {
    let number = parse_i64(text).and_then(|number| u64::try_from(number).ok());
    number.map(Revision).ok_or_else(|| error::NOT_AN_INTEGER.into())
}

/// Redis's bounds: more than nothing, and in milliseconds within an `i64`.
fn expiry_at(text: &[u8], unit_ms: i64, absolute: bool, now: Millis) -> Result<Millis, CommandError> {
    let invalid = || CommandError::from("ERR invalid expire time in 'set' command");
    let number = parse_i64(text).ok_or(error::NOT_AN_INTEGER)?;
    if number <= 0 {
        return Err(invalid());
    }
    let since = if absolute { 0 } else { i64::try_from(now.0).unwrap_or(i64::MAX) };
    let at = number.checked_mul(unit_ms).and_then(|ms| ms.checked_add(since)).ok_or_else(invalid)?;
    Ok(Millis(at as u64))
}
