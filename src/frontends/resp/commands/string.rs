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
use crate::frontends::resp::limits::{HELD_VALUE_BYTES, STREAMED_VALUE_BYTES};
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
    let held = (call.client.protocol, hold.is_some());
    write_value(call.replies, held, call.scratch, key, Ok(found), error::of_read);
    call.replies.hold(hold);
    Ok(())
}

/// Writes a value or nil as the reply, reading it if that needs no waiting; `told` is the text when it cannot be read. A
/// large value of an answer that is `held` is read when the answer may leave, else everybody who waits for the same flush
/// would have one in memory; a very large one is sent in pieces.
fn write_value(
    replies: &mut Replies,
    (protocol, held): (Protocol, bool),
    scratch: &mut Vec<u8>,
    key: &[u8],
    found: Result<Option<Found<'_>>, ReadError>,
    told: fn(&ReadError) -> String,
) {
    let pinned = match found {
        Ok(None) => return replies.writer(protocol).null(),
        Ok(Some(Found::Staged(value))) => return replies.writer(protocol).bulk(value),
        Ok(Some(Found::Cached(value))) => return replies.writer(protocol).bulk(&value),
        Ok(Some(Found::Stored(pinned))) => pinned,
        Err(fault) => return replies.error(protocol, &told(&fault)),
    };
    if (held && pinned.bytes() > HELD_VALUE_BYTES) || pinned.bytes() > STREAMED_VALUE_BYTES {
        return replies.cold(protocol, pinned, key, told);
    }
    match pinned.read(key, Wait::Never, scratch) {
        Ok(Some(value)) => replies.writer(protocol).bulk(value),
        Ok(None) => replies.cold(protocol, pinned, key, told),
        Err(fault) => replies.error(protocol, &told(&fault)),
    }
}

/// The options of SET as given: their words are judged before any of their numbers, as in Redis.
#[derive(Default)]
struct SetOptions<'a> {
    /// The word that sets the expiry, and its number unless it is KEEPTTL.
    expiry: Option<(ExpiryWord, &'a [u8])>,
    condition: Option<ConditionWord<'a>>,
    /// Answer the old value instead of OK.
    get: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ExpiryWord {
    Ex,
    Px,
    ExAt,
    PxAt,
    KeepTtl,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ConditionWord<'a> {
    Nx,
    Xx,
    IfRev(&'a [u8]),
}

/// SET key value [NX | XX | IFREV n] [GET] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL]
pub fn set(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let options = set_options(call)?;
    let (key, value) = (call.arg(1), call.arg(2));
    let expiry = match options.expiry {
        None => Expiry::Never,
        Some((word, number)) => expiry(word, number, call.turn.now())?,
    };
    let condition = match options.condition {
        None => Condition::Always,
        Some(ConditionWord::Nx) => Condition::Absent,
        Some(ConditionWord::Xx) => Condition::Present,
        Some(ConditionWord::IfRev(number)) => Condition::Revision(revision(number)?),
    };
    let put = Put { key, value, expiry, condition };
    let (outcome, hold) = call.turn.put(&put)?;
    if options.get {
        // The old value is looked up after staging: it stays where it was, staged or stored. The write stands whether or
        // not the old value can be told.
        let found = outcome.previous.as_ref().map(|value| call.turn.found(key, value)).transpose();
        let told = if outcome.written.is_some() { error::of_old_value } else { error::of_read };
        let held = (call.client.protocol, hold.is_some());
        write_value(call.replies, held, call.scratch, key, found, told);
    } else if outcome.held {
        call.reply().ok();
    } else {
        call.reply().null();
    }
    call.replies.hold(hold);
    Ok(())
}

fn set_options<'a>(call: &Call<'a, '_>) -> Result<SetOptions<'a>, CommandError> {
    let mut options = SetOptions::default();
    let mut i = 3;
    while i < call.args.len() {
        let word = call.arg(i);
        let number = call.args.get(i + 1);
        let is = |name: &str| eq_ignore_case(word, name.as_bytes());
        let condition = match number {
            _ if is("NX") => Some(ConditionWord::Nx),
            _ if is("XX") => Some(ConditionWord::Xx),
            Some(number) if is("IFREV") => Some(ConditionWord::IfRev(number)),
            _ => None,
        };
        let expiry = match number {
            _ if is("KEEPTTL") => Some((ExpiryWord::KeepTtl, &[][..])),
            Some(number) if is("EX") => Some((ExpiryWord::Ex, number)),
            Some(number) if is("PX") => Some((ExpiryWord::Px, number)),
            Some(number) if is("EXAT") => Some((ExpiryWord::ExAt, number)),
            Some(number) if is("PXAT") => Some((ExpiryWord::PxAt, number)),
            _ => None,
        };
        if let Some(condition) = condition {
            // The same word again is allowed; NX and XX exclude each other, and IFREV is given once.
            if options.condition.is_some_and(|known| known != condition || matches!(known, ConditionWord::IfRev(_))) {
                return Err(error::SYNTAX.into());
            }
            options.condition = Some(condition);
            i += usize::from(matches!(condition, ConditionWord::IfRev(_)));
        } else if let Some(expiry) = expiry {
            // The same word again is allowed and the last one counts; two different ones are not.
            if options.expiry.is_some_and(|known| known.0 != expiry.0) {
                return Err(error::SYNTAX.into());
            }
            options.expiry = Some(expiry);
            i += usize::from(expiry.0 != ExpiryWord::KeepTtl);
        } else if is("GET") {
            options.get = true;
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
fn expiry(word: ExpiryWord, text: &[u8], now: Millis) -> Result<Expiry, CommandError> {
    let invalid = || CommandError::from("ERR invalid expire time in 'set' command");
    let (unit_ms, since) = match word {
        ExpiryWord::KeepTtl => return Ok(Expiry::Keep),
        ExpiryWord::Ex => (1000, now.0),
        ExpiryWord::Px => (1, now.0),
        ExpiryWord::ExAt => (1000, 0),
        ExpiryWord::PxAt => (1, 0),
    };
    let number = parse_i64(text).ok_or(error::NOT_AN_INTEGER)?;
    if number <= 0 {
        return Err(invalid());
    }
    let since = i64::try_from(since).unwrap_or(i64::MAX);
    let at = number.checked_mul(unit_ms).and_then(|ms| ms.checked_add(since)).ok_or_else(invalid)?;
    Ok(Expiry::At(Millis(at as u64)))
}
