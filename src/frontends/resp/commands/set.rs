//! Commands that set one key: SET with all its options, SETNX, SETEX, PSETEX, GETSET.
//!
//! Promise: Redis's options, in any order and case, with its errors; decided by the core. Must never know a socket.

use crate::core::api::Value;
use crate::core::op::{Condition, Expiry, Put};
use crate::core::shard::stage::Outcome;
use crate::core::types::{Millis, Revision};
use crate::frontends::resp::args::{eq_ignore_case, parse_i64};
use crate::frontends::resp::call::{Call, CommandError};
use crate::frontends::resp::commands::expiry::{ExpiryWord, expiry};
use crate::frontends::resp::error;

/// The options of SET as given: their words are judged before any of their numbers, as in Redis.
#[derive(Default)]
pub struct SetOptions<'a> {
    /// The word that sets the expiry, and its number unless it is KEEPTTL.
    expiry: Option<(ExpiryWord, &'a [u8])>,
    condition: Option<ConditionWord<'a>>,
    /// Answer the old value instead of OK.
    get: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ConditionWord<'a> {
    Nx,
    Xx,
    IfRev(&'a [u8]),
    IfEq(&'a [u8]),
    IfNe(&'a [u8]),
}

impl<'a> ConditionWord<'a> {
    fn of(word: &[u8], operand: Option<&'a [u8]>) -> Option<Self> {
        let is = |name: &str| eq_ignore_case(word, name.as_bytes());
        match operand {
            _ if is("NX") => Some(Self::Nx),
            _ if is("XX") => Some(Self::Xx),
            Some(revision) if is("IFREV") => Some(Self::IfRev(revision)),
            Some(value) if is("IFEQ") => Some(Self::IfEq(value)),
            Some(value) if is("IFNE") => Some(Self::IfNe(value)),
            _ => None,
        }
    }

    fn has_operand(self) -> bool {
        !matches!(self, Self::Nx | Self::Xx)
    }
}

/// SET key value [NX | XX | IFREV n | IFEQ value | IFNE value] [GET] [EX s | PX ms | EXAT s | PXAT ms | KEEPTTL]
pub fn set(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let options = SetOptions::read(call)?;
    let get = options.get;
    let outcome = options.stage(call, "set")?;
    if get {
        return answer_old(call, &outcome);
    }
    if outcome.held {
        call.reply().ok();
    } else {
        call.reply().null();
    }
    Ok(())
}

/// Answers the value that a put took the place of. It is looked up after staging: it stays where it was, staged or stored.
/// The write stands whether or not the old value can be told.
fn answer_old(call: &mut Call<'_, '_>, outcome: &Outcome) -> Result<(), CommandError> {
    let told = if outcome.written.is_some() { error::of_old_value } else { error::of_read };
    let key = call.arg(1);
    call.write_value(key, outcome.previous.as_ref(), told)
}

/// SETNX key value
pub fn setnx(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let put = Put { key: call.arg(1), value: call.arg(2), expiry: Expiry::Never, condition: Condition::Absent };
    let outcome = call.put(&put)?;
    call.reply().integer(i64::from(outcome.held));
    Ok(())
}

/// SETEX key seconds value
pub fn setex(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    set_expiring(call, ExpiryWord::Ex, "setex")
}

/// PSETEX key milliseconds value
pub fn psetex(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    set_expiring(call, ExpiryWord::Px, "psetex")
}

fn set_expiring(call: &mut Call<'_, '_>, word: ExpiryWord, command: &str) -> Result<(), CommandError> {
    let expires_at = expiry(word, call.arg(2), call.turn.now(), command)?;
    let (key, value) = (call.arg(1), call.arg(3));
    call.set(key, value, expires_at)?;
    call.reply().ok();
    Ok(())
}

/// GETSET key value
pub fn getset(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let (key, value) = (call.arg(1), call.arg(2));
    let outcome = call.set(key, value, Millis::NEVER)?;
    answer_old(call, &outcome)
}

impl<'a> SetOptions<'a> {
    /// Reads what stands behind key and value.
    ///
    /// # Errors
    /// Redis's syntax error.
    pub fn read(call: &Call<'a, '_>) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut i = 3;
        while i < call.args.len() {
            let (word, operand) = (call.arg(i), call.args.get(i + 1));
            if let Some(condition) = ConditionWord::of(word, operand) {
                options.add_condition(condition)?;
                i += usize::from(condition.has_operand());
            } else if let Some(expiry) = ExpiryWord::of(word) {
                let number = if expiry == ExpiryWord::KeepTtl { Some(&b""[..]) } else { operand };
                options.add_expiry(expiry, number.ok_or(error::SYNTAX)?)?;
                i += usize::from(expiry != ExpiryWord::KeepTtl);
            } else if call.is(i, "GET") {
                options.get = true;
            } else {
                return Err(error::SYNTAX.into());
            }
            i += 1;
        }
        Ok(options)
    }

    /// NX or XX again is allowed; different conditions exclude each other, and one with an operand is given once.
    fn add_condition(&mut self, condition: ConditionWord<'a>) -> Result<(), CommandError> {
        if self.condition.is_some_and(|known| known != condition || known.has_operand()) {
            return Err(error::SYNTAX.into());
        }
        self.condition = Some(condition);
        Ok(())
    }

    /// The same word again is allowed and the last one counts; two different ones are not.
    fn add_expiry(&mut self, word: ExpiryWord, number: &'a [u8]) -> Result<(), CommandError> {
        if self.expiry.is_some_and(|known| known.0 != word) {
            return Err(error::SYNTAX.into());
        }
        self.expiry = Some((word, number));
        Ok(())
    }

    /// Whether the old value was asked for.
    #[must_use]
    pub fn asks_for_the_old_value(&self) -> bool {
        self.get
    }

    /// Stages the put of the call's key and value; `command` is named in errors.
    ///
    /// # Errors
    /// [`CommandError`]: nothing was staged.
    pub fn stage(self, call: &mut Call<'_, '_>, command: &str) -> Result<Outcome, CommandError> {
        let expiry = match self.expiry {
            None => Expiry::Never,
            Some((ExpiryWord::KeepTtl, _)) => Expiry::Keep,
            Some((word, number)) => Expiry::At(expiry(word, number, call.turn.now(), command)?),
        };
        let (key, value) = (call.arg(1), call.arg(2));
        let condition = match self.condition {
            None => Condition::Always,
            Some(ConditionWord::Nx) => Condition::Absent,
            Some(ConditionWord::Xx) => Condition::Present,
            Some(ConditionWord::IfRev(number)) => Condition::Revision(revision(number)?),
            Some(ConditionWord::IfEq(wanted)) => {
                let previous = call.look_to_write(key)?;
                if !call.holds_value(key, previous.as_ref(), wanted)? {
                    return Ok(Outcome { written: None, previous, held: false, hold: None });
                }
                Condition::Present
            }
            Some(ConditionWord::IfNe(unwanted)) => {
                let previous = call.look_to_write(key)?;
                if call.holds_value(key, previous.as_ref(), unwanted)? {
                    return Ok(Outcome { written: None, previous, held: false, hold: None });
                }
                Condition::Always
            }
        };
        call.put(&Put { key, value, expiry, condition })
    }
}

impl Call<'_, '_> {
    /// Whether a key holds exactly this value, as it was looked at.
    ///
    /// # Errors
    /// As [`Call::read`].
    pub fn holds_value(&mut self, key: &[u8], held: Option<&Value>, value: &[u8]) -> Result<bool, CommandError> {
        match held {
            Some(held) if held.bytes(key.len()) == value.len() => Ok(self.read(key, held)? == value),
            _ => Ok(false),
        }
    }
}

fn revision(text: &[u8]) -> Result<Revision, CommandError> {
    let number = parse_i64(text).and_then(|number| u64::try_from(number).ok());
    number.map(Revision).ok_or_else(|| error::NOT_AN_INTEGER.into())
}

/// DELEX key [IFEQ value | IFNE value]
pub fn delex(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let key = call.arg(1);
    let deletes = match call.args.len() {
        2 => true,
        4 if call.is(2, "IFEQ") || call.is(2, "IFNE") => {
            let held = call.look_to_write(key)?;
            let same = call.holds_value(key, held.as_ref(), call.arg(3))?;
            held.is_some() && same == call.is(2, "IFEQ")
        }
        4 => return Err("ERR Invalid condition. Use IFEQ or IFNE".into()),
        _ => return Err(crate::frontends::resp::command::wrong_arity("delex").into()),
    };
    let deleted = deletes && call.delete(key)?;
    call.reply().integer(i64::from(deleted));
    Ok(())
}
