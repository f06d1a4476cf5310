//! A known script being run: its keys and arguments, the commands its body calls, and its answer.
//!
//! Promise: what a body calls behaves as the command of that name, with the error that Redis makes of it inside a script;
//! what is not the script's fault stops it with nothing staged. Must never know what a script is for.

use crate::core::api::Value;
use crate::core::op::{Condition, Expiry, Put};
use crate::core::types::Millis;
use crate::frontends::resp::args::parse_i64;
use crate::frontends::resp::call::{Call, CommandError};
use crate::frontends::resp::commands::expiry::{ExpiryWord, expiry};
use crate::frontends::resp::error;
use crate::frontends::resp::scripts::number;
use crate::frontends::resp::scripts::table::Body;

/// What a script returns.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// `nil`, and `false`.
    Nil,
    Number(f64),
    Bytes(Vec<u8>),
    Status(&'static str),
    Error(String),
    Array(Vec<Answer>),
}

impl Answer {
    /// `true` or `false`.
    #[must_use]
    pub fn of_bool(truth: bool) -> Self {
        if truth { Self::Number(1.0) } else { Self::Nil }
    }

    /// Writes it as the reply, or as a part of it.
    pub fn write(&self, call: &mut Call<'_, '_>) {
        match self {
            Self::Nil => call.reply().null(),
            Self::Number(number) => call.reply().integer(number::to_integer(*number)),
            Self::Bytes(bytes) => call.reply().bulk(bytes),
            Self::Status(text) => call.reply().simple(text),
            Self::Error(text) => call.replies.error(call.client.protocol, text),
            Self::Array(answers) => {
                call.reply().array_header(answers.len());
                for answer in answers {
                    answer.write(call);
                }
            }
        }
    }
}

/// `OK` as `SET` answers it.
pub const OK: Answer = Answer::Status("OK");

/// A whole number as an answer.
#[must_use]
pub fn int(number: i64) -> Answer {
    Answer::Number(number as f64)
}

/// Why a script came to no answer.
pub enum Stop {
    /// An error of the script itself: what it did before stays done.
    Script(String),
    /// Something else: nothing of it is done.
    Call(CommandError),
}

impl From<CommandError> for Stop {
    fn from(error: CommandError) -> Self {
        Self::Call(error)
    }
}

/// How a script ends.
pub type Ran = Result<Answer, Stop>;

/// What a key holds, compared with a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    Nothing,
    Same,
    Other,
}

/// A script being run.
pub struct Script<'c, 'a, 't> {
    pub call: &'c mut Call<'a, 't>,
    pub body: &'static Body,
    /// How many of the arguments are keys.
    pub keys: usize,
    /// It was sent with a command that must not write.
    pub read_only: bool,
}

/// Where the first key stands: behind the command, the script and the number of keys.
const FIRST_KEY: usize = 3;

impl<'a> Script<'_, 'a, '_> {
    /// `KEYS[i + 1]`.
    #[must_use]
    pub fn key(&self, i: usize) -> &'a [u8] {
        self.call.arg(FIRST_KEY + i)
    }

    /// All of `KEYS`.
    #[must_use]
    pub fn all_keys(&self) -> Vec<&'a [u8]> {
        (0..self.keys).map(|i| self.key(i)).collect()
    }

    /// `ARGV[i + 1]`; the table says how many there are at least.
    #[must_use]
    pub fn arg(&self, i: usize) -> &'a [u8] {
        self.arg_if_any(i).unwrap_or_default()
    }

    /// `ARGV[i + 1]`, or `nil`.
    #[must_use]
    pub fn arg_if_any(&self, i: usize) -> Option<&'a [u8]> {
        self.call.args.get(FIRST_KEY + self.keys + i)
    }

    /// `#ARGV`.
    #[must_use]
    pub fn arg_count(&self) -> usize {
        self.call.args.len().saturating_sub(FIRST_KEY + self.keys)
    }

    /// `tonumber(ARGV[i + 1])`.
    #[must_use]
    pub fn number(&self, i: usize) -> Option<f64> {
        self.arg_if_any(i).and_then(number::of_text)
    }

    /// The error of a command that the body calls at this place.
    #[must_use]
    pub fn fail(&self, place: usize, text: &str) -> Stop {
        let line = self.body.lines.get(place).copied().unwrap_or_default();
        Stop::Script(format!("{text} script: {}, on @user_script:{line}.", self.body.sha1))
    }

    /// An error of Lua itself at this place.
    #[must_use]
    pub fn fault(&self, place: usize, what: &str) -> Stop {
        let line = self.body.lines.get(place).copied().unwrap_or_default();
        self.fail(place, &format!("ERR user_script:{line}: attempt to {what}"))
    }

    /// A number as an argument of a command; there must be one.
    ///
    /// # Errors
    /// Redis's.
    pub fn given(&self, place: usize, number: Option<f64>) -> Result<Vec<u8>, Stop> {
        number.map(number::to_argument).ok_or_else(|| self.no_argument(place))
    }

    /// The error of a `nil` among the arguments of a command.
    #[must_use]
    pub fn no_argument(&self, place: usize) -> Stop {
        self.fail(place, "ERR Lua redis lib command arguments must be strings or integers")
    }

    /// What `<` and its kin do with numbers that may be `nil`; `left` is the smaller one that is asked for.
    ///
    /// # Errors
    /// Lua's, when either is `nil`.
    pub fn is_less(&self, place: usize, left: Option<f64>, right: Option<f64>) -> Result<bool, Stop> {
        let kind = |number: Option<f64>| if number.is_some() { "number" } else { "nil" };
        match (left, right) {
            (Some(left), Some(right)) => Ok(left < right),
            (None, None) => Err(self.fault(place, "compare two nil values")),
            _ => Err(self.fault(place, &format!("compare {} with {}", kind(left), kind(right)))),
        }
    }

    /// A text as an operand of arithmetic; `name` is what Lua calls it in its error.
    ///
    /// # Errors
    /// Lua's.
    pub fn operand(&self, place: usize, name: &str, text: &[u8]) -> Result<f64, Stop> {
        let fault = || self.fault(place, &format!("perform arithmetic on {name} (a string value)"));
        number::of_text(text).ok_or_else(fault)
    }

    /// A number as an operand of arithmetic, which may be `nil`.
    ///
    /// # Errors
    /// Lua's.
    pub fn operand_if_any(&self, place: usize, name: &str, number: Option<f64>) -> Result<f64, Stop> {
        number.ok_or_else(|| self.fault(place, &format!("perform arithmetic on {name} (a nil value)")))
    }

    /// What a key holds.
    ///
    /// # Errors
    /// [`Stop::Call`].
    pub fn look(&mut self, key: &[u8]) -> Result<Option<Value>, Stop> {
        Ok(self.call.look(key)?)
    }

    /// GET
    ///
    /// # Errors
    /// [`Stop::Call`].
    pub fn get(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>, Stop> {
        let Some(value) = self.call.look(key)? else { return Ok(None) };
        Ok(Some(self.call.read(key, &value)?))
    }

    /// GET, and whether that is `token`.
    ///
    /// # Errors
    /// [`Stop::Call`].
    pub fn held(&mut self, key: &[u8], token: &[u8]) -> Result<Held, Stop> {
        let value = self.call.look(key)?;
        self.held_in(key, value.as_ref(), token)
    }

    /// The same of a value that was looked at.
    ///
    /// # Errors
    /// [`Stop::Call`].
    pub fn held_in(&mut self, key: &[u8], value: Option<&Value>, token: &[u8]) -> Result<Held, Stop> {
        match value {
            None => Ok(Held::Nothing),
            Some(_) if self.call.holds_value(key, value, token)? => Ok(Held::Same),
            Some(_) => Ok(Held::Other),
        }
    }

    /// EXISTS
    ///
    /// # Errors
    /// [`Stop::Call`].
    pub fn exists(&mut self, key: &[u8]) -> Result<bool, Stop> {
        Ok(self.call.look(key)?.is_some())
    }

    /// PTTL
    ///
    /// # Errors
    /// [`Stop::Call`].
    pub fn pttl(&mut self, key: &[u8]) -> Result<f64, Stop> {
        let value = self.call.look(key)?;
        Ok(self.pttl_of(value.as_ref()))
    }

    /// The same of a value that was looked at.
    #[must_use]
    pub fn pttl_of(&self, value: Option<&Value>) -> f64 {
        match value.map(Value::expires_at) {
            None => -2.0,
            Some(Millis::NEVER) => -1.0,
            Some(at) => at.0.saturating_sub(self.call.turn.now().0) as f64,
        }
    }

    /// The first bytes of a value, `end` being GETRANGE's: its last byte, from the end when negative.
    ///
    /// # Errors
    /// [`Stop::Call`].
    pub fn beginning(&mut self, key: &[u8], end: i64) -> Result<Vec<u8>, Stop> {
        let mut value = self.get(key)?.unwrap_or_default();
        let length = value.len() as i64;
        let end = if end < 0 { end.saturating_add(length).max(0) } else { end };
        value.truncate(usize::try_from(end.saturating_add(1)).unwrap_or_default());
        Ok(value)
    }

    /// The command at this place writes, whatever comes of it.
    ///
    /// # Errors
    /// Redis's, when the script must not write.
    pub fn writes(&self, place: usize) -> Result<(), Stop> {
        if self.read_only {
            return Err(self.fail(place, "ERR Write commands are not allowed from read-only scripts."));
        }
        Ok(())
    }

    /// DEL
    ///
    /// # Errors
    /// [`Stop`]: nothing was staged.
    pub fn del(&mut self, place: usize, key: &[u8]) -> Result<(), Stop> {
        self.writes(place)?;
        self.call.delete(key)?;
        Ok(())
    }

    /// SET, with an expiry and a condition; whether it was set.
    ///
    /// # Errors
    /// [`Stop`]: nothing was staged.
    pub fn set(
        &mut self,
        place: usize,
        key: &[u8],
        value: &[u8],
        expires: Option<(ExpiryWord, &[u8])>,
        condition: Condition,
    ) -> Result<bool, Stop> {
        self.writes(place)?;
        let expiry = match expires {
            None => Expiry::Never,
            Some((word, number)) => Expiry::At(self.until(place, word, number, "set")?),
        };
        Ok(self.call.put(&Put { key, value, expiry, condition })?.held)
    }

    /// SET key value PX ms
    ///
    /// # Errors
    /// [`Stop`]: nothing was staged.
    pub fn set_px(&mut self, place: usize, key: &[u8], value: &[u8], ms: &[u8]) -> Result<(), Stop> {
        self.set(place, key, value, Some((ExpiryWord::Px, ms)), Condition::Always).map(|_| ())
    }

    /// SET key value NX PX ms
    ///
    /// # Errors
    /// [`Stop`]: nothing was staged.
    pub fn set_nx_px(&mut self, place: usize, key: &[u8], value: &[u8], ms: &[u8]) -> Result<bool, Stop> {
        self.set(place, key, value, Some((ExpiryWord::Px, ms)), Condition::Absent)
    }

    /// SETEX
    ///
    /// # Errors
    /// [`Stop`]: nothing was staged.
    pub fn setex(&mut self, place: usize, key: &[u8], seconds: &[u8], value: &[u8]) -> Result<(), Stop> {
        self.writes(place)?;
        let at = self.until(place, ExpiryWord::Ex, seconds, "setex")?;
        self.call.set(key, value, at)?;
        Ok(())
    }

    fn until(&self, place: usize, word: ExpiryWord, number: &[u8], command: &str) -> Result<Millis, Stop> {
        expiry(word, number, self.call.turn.now(), command).map_err(|error| match error {
            CommandError::Text(text) => self.fail(place, &String::from_utf8_lossy(&text)),
            error => Stop::Call(error),
        })
    }

    /// INCRBY
    ///
    /// # Errors
    /// [`Stop`]: nothing was staged.
    pub fn incrby(&mut self, place: usize, key: &[u8], increment: &[u8]) -> Result<f64, Stop> {
        self.writes(place)?;
        let no_integer = || self.fail(place, error::NOT_AN_INTEGER);
        let increment = parse_i64(increment).ok_or_else(no_integer)?;
        let current = self.call.current(key)?;
        let (held, expires_at) = match &current {
            None => (0, Millis::NEVER),
            Some(current) => {
                let held = parse_i64(&current.value).ok_or_else(|| self.fail(place, error::NOT_AN_INTEGER))?;
                (held, current.expires_at)
            }
        };
        let overflow = || self.fail(place, "ERR increment or decrement would overflow");
        let sum = held.checked_add(increment).ok_or_else(overflow)?;
        self.call.set(key, itoa::Buffer::new().format(sum).as_bytes(), expires_at)?;
        Ok(sum as f64)
    }

    /// PEXPIRE; whether there is such a key.
    ///
    /// # Errors
    /// [`Stop`]: nothing was staged.
    pub fn pexpire(&mut self, place: usize, key: &[u8], ms: &[u8]) -> Result<bool, Stop> {
        self.expire_in(place, key, ms, 1, "pexpire")
    }

    /// EXPIRE; whether there is such a key.
    ///
    /// # Errors
    /// [`Stop`]: nothing was staged.
    pub fn expire(&mut self, place: usize, key: &[u8], seconds: &[u8]) -> Result<bool, Stop> {
        self.expire_in(place, key, seconds, 1000, "expire")
    }

    fn expire_in(&mut self, place: usize, key: &[u8], time: &[u8], unit_ms: i64, name: &str) -> Result<bool, Stop> {
        self.writes(place)?;
        let time = parse_i64(time).ok_or_else(|| self.fail(place, error::NOT_AN_INTEGER))?;
        let now = i64::try_from(self.call.turn.now().0).unwrap_or(i64::MAX);
        let at = time.checked_mul(unit_ms).and_then(|ms| ms.checked_add(now));
        let at = at.ok_or_else(|| self.fail(place, &format!("ERR invalid expire time in '{name}' command")))?;
        let Some(current) = self.call.current(key)? else { return Ok(false) };
        // A time before the beginning of time has passed like any other.
        self.call.set(key, &current.value, Millis(u64::try_from(at).unwrap_or_default()))?;
        Ok(true)
    }

    /// PERSIST
    ///
    /// # Errors
    /// [`Stop`]: nothing was staged.
    pub fn persist(&mut self, place: usize, key: &[u8]) -> Result<(), Stop> {
        self.writes(place)?;
        if let Some(current) = self.call.current(key)?
            && current.expires_at != Millis::NEVER
        {
            self.call.set(key, &current.value, Millis::NEVER)?;
        }
        Ok(())
    }

    /// RENAME of a key that there is.
    ///
    /// # Errors
    /// [`Stop`].
    pub fn rename(&mut self, place: usize, from: &[u8], to: &[u8]) -> Result<(), Stop> {
        self.writes(place)?;
        if let Some(current) = self.call.current(from)?
            && from != to
        {
            self.call.set(to, &current.value, current.expires_at)?;
            self.call.delete(from)?;
        }
        Ok(())
    }
}
