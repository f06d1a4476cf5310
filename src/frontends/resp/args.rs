//! Reading single arguments of a request: strict integers, words in any case.
//!
//! Promises: an integer is accepted exactly when Redis' `string2ll` accepts it, so `+10`, `010`, ` 10`, `1.5`
//! and `-0` are refused, in commands and in the headers of requests alike. No allocation.
//!
//! Must never know: which command an argument belongs to, or the text of the error its refusal becomes.

/// The number written in `text`, or `None` unless it is the one canonical way to write an `i64`.
#[must_use]
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] => {}
        _ => return None,
    }
    // Gathered below zero, because the smallest number has no positive counterpart.
    let mut value: i64 = 0;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_sub(i64::from(digit))?;
    }
    if negative { Some(value) } else { value.checked_neg() }
}

/// Digits a number in a header may have to be read in one pass. No accepted length has more.
pub(super) const SHORT_NUMBER_DIGITS: usize = 9;

/// The number at the front of `line`, if it is written in at most [`SHORT_NUMBER_DIGITS`] digits
/// and its CR LF is there, and the size of all that in bytes. It answers nearly every header of a
/// request in one pass; `None` decides nothing.
#[inline]
pub(super) fn short_number_line(line: &[u8]) -> Option<(i64, usize)> {
    let mut number = 0;
    for (at, byte) in line.iter().take(SHORT_NUMBER_DIGITS + 1).enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            let canonical = at == 1 || (at > 1 && line.first() != Some(&b'0'));
            let ended = *byte == b'\r' && line.get(at + 1) == Some(&b'\n');
            return (canonical && ended).then_some((number, at + 2));
        }
        number = number * 10 + i64::from(digit);
    }
    None
}

/// Whether two words are the same when ASCII case is ignored; bytes outside ASCII compare as they are.
#[must_use]
pub fn eq_ignore_case(a: &[u8], b: &[u8]) -> bool {
    a.eq_ignore_ascii_case(b)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: Option<i64>) {
        assert_eq!(parse_i64(text.as_bytes()), expected, "{text:?}");
    }

    #[test]
    fn canonical_integers_are_read_over_the_full_range() {
        check("0", Some(0));
        check("7", Some(7));
        check("-7", Some(-7));
        check("10", Some(10));
        check("9223372036854775807", Some(i64::MAX));
        check("-9223372036854775808", Some(i64::MIN));
    }

    #[test]
    fn everything_but_the_canonical_form_is_refused() {
        for text in ["", "-", "+", "+10", "010", "00", "-0", "-01", " 10", "10 ", "1.5", "1e3", "0x10", "--1", "1-"] {
            check(text, None);
        }
        assert_eq!(parse_i64(b"1\0"), None);
        assert_eq!(parse_i64(&[0xff]), None);
    }

    #[test]
    fn out_of_range_is_refused_and_never_wraps() {
        check("9223372036854775808", None);
        check("-9223372036854775809", None);
        check("18446744073709551616", None);
        check("99999999999999999999999999999999", None);
        check(&"9".repeat(70_000), None);
    }

    #[test]
    fn a_short_line_is_read_as_its_number_and_every_other_left_to_a_second_look() {
        let check = |line: &[u8], expected| assert_eq!(short_number_line(line), expected);
        check(b"0\r\n", Some((0, 3)));
        check(b"16\r\nrest", Some((16, 4)));
        check(b"999999999\r\n", Some((999_999_999, 11)));
        for line in [
            &b""[..],
            b"1",
            b"1\r",
            b"1\rX",
            b"1\n",
            b"\r\n",
            b"01\r\n",
            b"00\r\n",
            b"-1\r\n",
            b"+1\r\n",
            b"1a\r\n",
            b"1000000000\r\n",
            b"99999999999999999999\r\n",
        ] {
            check(line, None);
        }
    }

    #[test]
    fn words_match_in_any_case_and_only_whole() {
        assert!(eq_ignore_case(b"KeepTTL", b"KEEPTTL"));
        assert!(eq_ignore_case(b"", b""));
        assert!(!eq_ignore_case(b"EX", b"EXAT"));
        assert!(!eq_ignore_case(&[0xe4], &[0xc4]));
        // '@' and '`' differ in the case bit only, and are not letters.
        assert!(!eq_ignore_case(b"@", b"`"));
    }

    proptest! {
        #[test]
        fn every_integer_survives_writing_and_reading(value in any::<i64>()) {
            prop_assert_eq!(parse_i64(value.to_string().as_bytes()), Some(value));
        }

        #[test]
        fn a_text_is_accepted_only_if_it_is_how_its_number_is_written(text in "[-+ 0-9]{0,21}") {
            let canonical = text.parse::<i64>().ok().filter(|value| value.to_string() == text);
            prop_assert_eq!(parse_i64(text.as_bytes()), canonical);
        }
    }
}
