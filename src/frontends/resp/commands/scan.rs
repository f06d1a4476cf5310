//! Which keys there are: KEYS, SCAN, RANDOMKEY, DBSIZE.
//!
//! Promise: a key that is there from the first SCAN to the last is answered, whatever is written meanwhile: keys are looked at
//! in their order, shard after shard, and a cursor stands for the last one. KEYS sees each shard at one moment. Must never
//! know a socket.

use std::ops::ControlFlow;

use crate::core::types::ShardNo;
use crate::frontends::resp::args::parse_i64;
use crate::frontends::resp::call::{Call, CommandError};
use crate::frontends::resp::cursors::Place;
use crate::frontends::resp::encode::Reply;
use crate::frontends::resp::limits::{MAX_KEYS_REPLY_BYTES, MAX_SCANNED_KEYS, SCAN_REPLY_BYTES};
use crate::frontends::resp::{error, glob};

const INVALID_CURSOR: &str = "ERR invalid cursor";

/// DBSIZE
pub fn dbsize(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    call.before_listing()?;
    let (keys, holds) = call.turn.count()?;
    call.replies.hold(holds);
    call.reply().integer(keys as i64);
    Ok(())
}

/// RANDOMKEY
pub fn randomkey(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    call.before_listing()?;
    let (key, hold) = call.turn.random_key(call.shared.random())?;
    call.replies.hold(hold);
    match key {
        Some(key) => call.reply().bulk(&key),
        None => call.reply().null(),
    }
    Ok(())
}

/// KEYS pattern
pub fn keys(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    call.before_listing()?;
    let names = Names::matching(call.arg(1));
    let (mark, protocol) = (call.replies.mark(), call.client.protocol);
    let mut count = 0;
    for number in call.turn.numbers() {
        let replies = &mut *call.replies;
        let mut fits = true;
        let hold = call.turn.visit_keys(number, &names.prefix, None, |key| {
            if names.has(key) {
                fits = replies.reply_bytes() + key.len() <= MAX_KEYS_REPLY_BYTES;
                if !fits {
                    return ControlFlow::Break(());
                }
                replies.writer(protocol).bulk(key);
                count += 1;
            }
            ControlFlow::Continue(())
        })?;
        call.replies.hold(hold);
        if !fits {
            return Err(
                format!("OOM the names are more than {MAX_KEYS_REPLY_BYTES} bytes: ask for them with SCAN").into()
            );
        }
    }
    let mut header = Vec::new();
    Reply::new(&mut header, protocol).array_header(count);
    call.replies.insert(mark, &header);
    Ok(())
}

/// The names that a pattern matches.
struct Names<'a> {
    pattern: &'a [u8],
    /// What they begin with.
    prefix: Vec<u8>,
}

impl<'a> Names<'a> {
    fn matching(pattern: &'a [u8]) -> Self {
        Self { pattern, prefix: glob::literal_prefix(pattern) }
    }

    fn has(&self, key: &[u8]) -> bool {
        self.pattern == b"*" || glob::matches(self.pattern, key)
    }
}

/// What stands behind the cursor of SCAN.
#[derive(Debug, PartialEq, Eq)]
struct ScanOptions<'a> {
    pattern: &'a [u8],
    /// How many keys are looked at.
    count: usize,
    /// Keys of the wanted type can be there.
    any: bool,
}

impl<'a> ScanOptions<'a> {
    fn read(mut words: impl Iterator<Item = &'a [u8]>) -> Result<Self, CommandError> {
        let mut options = Self { pattern: b"*", count: 10, any: true };
        while let Some(word) = words.next() {
            let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
            let Some(operand) = words.next() else { return Err(error::SYNTAX.into()) };
            if is("COUNT") {
                let count = parse_i64(operand).ok_or(error::NOT_AN_INTEGER)?;
                options.count = usize::try_from(count).ok().filter(|count| *count > 0).ok_or(error::SYNTAX)?;
            } else if is("MATCH") {
                options.pattern = operand;
            } else if is("TYPE") {
                options.any = operand.eq_ignore_ascii_case(b"string");
            } else {
                return Err(error::SYNTAX.into());
            }
        }
        Ok(options)
    }
}

/// A cursor as Redis reads it, which is as C's `strtoul` does, but without blanks before it: nothing at all is 0, too.
fn cursor(text: &[u8]) -> Option<u64> {
    let (negative, digits) = match text {
        [] => return Some(0),
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: u64 = str::from_utf8(digits).ok()?.parse().ok()?;
    Some(if negative { number.wrapping_neg() } else { number })
}

/// SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]
pub fn scan(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let number = cursor(call.arg(1)).ok_or(INVALID_CURSOR)?;
    let options = ScanOptions::read(call.args.iter().skip(2))?;
    let now = call.session.cache.micros();
    let (first, mut after) = match number {
        0 => (ShardNo(0), None),
        number => {
            let place = call.shared.cursors().find(number, call.turn.cache(), now).ok_or(INVALID_CURSOR)?;
            (place.shard, place.after)
        }
    };
    call.before_listing()?;
    let names = Names::matching(options.pattern);
    let (mark, protocol) = (call.replies.mark(), call.client.protocol);
    let mut left = options.count.min(MAX_SCANNED_KEYS);
    let (mut found, mut bytes) = (0, 0);
    let mut next = None;
    let numbers = call.turn.numbers().filter(|number| options.any && *number >= first);
    for shard in numbers {
        let mut last: Option<Vec<u8>> = None;
        let mut more = false;
        let hold = call.turn.visit_keys(shard, &names.prefix, after.as_deref(), |key| {
            // One more than is wanted is looked at: a cursor means that there is something behind it.
            more = left == 0 || bytes >= SCAN_REPLY_BYTES;
            if more {
                return ControlFlow::Break(());
            }
            left -= 1;
            last.get_or_insert_default().clear();
            last.get_or_insert_default().extend_from_slice(key);
            if names.has(key) {
                call.replies.writer(protocol).bulk(key);
                found += 1;
                bytes += key.len();
            }
            ControlFlow::Continue(())
        })?;
        call.replies.hold(hold);
        if more {
            let after = last.map(Vec::into_boxed_slice).or(after);
            next = Some(Place { cache: call.turn.cache().clone(), shard, after });
            break;
        }
        after = None;
    }
    let next = next.map_or(0, |place| call.shared.cursors().give(place, now));
    let mut header = Vec::new();
    let mut reply = Reply::new(&mut header, protocol);
    reply.array_header(2);
    reply.bulk(itoa::Buffer::new().format(next).as_bytes());
    reply.array_header(found);
    call.replies.insert(mark, &header);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Option<(Vec<u8>, usize, bool)> {
        let options = ScanOptions::read(words.split_whitespace().map(str::as_bytes)).ok()?;
        Some((options.pattern.to_vec(), options.count, options.any))
    }

    #[test]
    fn options_are_read_in_any_case_and_the_last_of_one_kind_counts() {
        assert_eq!(read(""), Some((b"*".to_vec(), 10, true)));
        assert_eq!(read("match a* COUNT 3 Type STRING"), Some((b"a*".to_vec(), 3, true)));
        assert_eq!(read("COUNT 3 COUNT 4 TYPE string TYPE hash"), Some((b"*".to_vec(), 4, false)));
        for words in ["COUNT", "COUNT 0", "COUNT -1", "COUNT x", "MATCH", "TYPE", "FOO", "FOO 1", "MATCH a b"] {
            assert_eq!(read(words), None, "{words}");
        }
    }

    #[test]
    fn a_cursor_is_read_as_redis_reads_it() {
        for (text, expected) in [
            ("0", Some(0)),
            ("", Some(0)),
            ("00012", Some(12)),
            ("+7", Some(7)),
            ("-1", Some(u64::MAX)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("x", None),
            ("1x", None),
            (" 1", None),
            ("1 ", None),
            ("-", None),
            ("+-1", None),
        ] {
            assert_eq!(cursor(text.as_bytes()), expected, "{text:?}");
        }
    }
}
