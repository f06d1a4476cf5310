//! Reading when a value is to expire, as SET, GETEX and their kin are told.
//!
//! Promise: Redis's bounds and error texts. Must never decide whether a time has passed.

use crate::core::types::Millis;
use crate::frontends::resp::args::{eq_ignore_case, parse_i64};
use crate::frontends::resp::call::CommandError;
use crate::frontends::resp::error;

/// The words that say when a value expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpiryWord {
    Ex,
    Px,
    ExAt,
    PxAt,
    KeepTtl,
}

impl ExpiryWord {
    /// The word, in any case.
    #[must_use]
    pub fn of(text: &[u8]) -> Option<Self> {
        let words = [
            ("EX", Self::Ex),
            ("PX", Self::Px),
            ("EXAT", Self::ExAt),
            ("PXAT", Self::PxAt),
            ("KEEPTTL", Self::KeepTtl),
        ];
        words.into_iter().find(|(word, _)| eq_ignore_case(text, word.as_bytes())).map(|(_, word)| word)
    }
}

/// The time that a word and its number name, for the command of this name; [`Millis::NEVER`] for KEEPTTL.
///
/// # Errors
/// Redis's texts: the number must be more than nothing, and in milliseconds within an `i64`.
pub fn expiry(word: ExpiryWord, number: &[u8], now: Millis, command: &str) -> Result<Millis, CommandError> {
    let invalid = || CommandError::from(format!("ERR invalid expire time in '{command}' command"));
    let (unit_ms, since) = match word {
        ExpiryWord::KeepTtl => return Ok(Millis::NEVER),
        ExpiryWord::Ex => (1000, now.0),
        ExpiryWord::Px => (1, now.0),
        ExpiryWord::ExAt => (1000, 0),
        ExpiryWord::PxAt => (1, 0),
    };
    let number = parse_i64(number).ok_or(error::NOT_AN_INTEGER)?;
    if number <= 0 {
        return Err(invalid());
    }
    let since = i64::try_from(since).unwrap_or(i64::MAX);
    let at = number.checked_mul(unit_ms).and_then(|ms| ms.checked_add(since)).ok_or_else(invalid)?;
    Ok(Millis(at as u64))
}
