//! Lua's numbers: how a text is read as one, and how one is written as an argument or a reply.
//!
//! Promise: as Lua 5.1 in Redis 7.0 does it, on every processor as on x86-64. Must never know a script.

/// `tonumber` of a text, which is also what arithmetic does with one: blanks around it, hexadecimal digits and infinity are
/// accepted, and nothing behind a zero byte is looked at.
#[must_use]
pub fn of_text(text: &[u8]) -> Option<f64> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let text = str::from_utf8(text).ok()?.trim_matches(|c| matches!(c, ' ' | '\t' | '\n' | '\x0b' | '\x0c' | '\r'));
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    // A second sign is none.
    let first = digits.bytes().next()?;
    let size = match digits.get(..2) {
        Some("0x" | "0X") => hexadecimal(&digits[2..])?,
        _ if first.is_ascii_alphabetic() => word(digits)?,
        _ if first.is_ascii_digit() || first == b'.' => digits.parse().ok()?,
        _ => return None,
    };
    Some(if negative { -size } else { size })
}

fn word(text: &str) -> Option<f64> {
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    if is("inf") || is("infinity") {
        return Some(f64::INFINITY);
    }
    is("nan").then_some(f64::NAN)
}

/// Digits, a fraction, and an exponent of two.
fn hexadecimal(text: &str) -> Option<f64> {
    let (digits, exponent) = match text.split_once(['p', 'P']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut number = 0.0;
    for digit in whole.chars().chain(fraction.chars()) {
        number = number * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let places = i32::try_from(fraction.len()).ok()?;
    Some(number * 2_f64.powi(exponent.saturating_sub(places.saturating_mul(4))))
}

/// A number as an argument of a command: `%.17g`.
#[must_use]
pub fn to_argument(number: f64) -> Vec<u8> {
    general(number, 17).into_bytes()
}

/// `tostring` of a number: `%.14g`.
#[must_use]
pub fn to_text(number: f64) -> String {
    general(number, 14)
}

/// `%.<digits>g`.
fn general(number: f64, digits: i32) -> String {
    if !number.is_finite() {
        let sign = if number.is_sign_negative() { "-" } else { "" };
        return format!("{sign}{}", if number.is_nan() { "nan" } else { "inf" });
    }
    let places = usize::try_from(digits - 1).unwrap_or_default();
    let scientific = format!("{number:.places$e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if exponent < -4 || exponent >= digits {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.abs());
    }
    let places = usize::try_from(digits - 1 - exponent).unwrap_or_default();
    without_zeros(&format!("{number:.places$}")).to_owned()
}

fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// A number as a reply: cut towards zero; what does not fit is the smallest.
#[must_use]
pub fn to_integer(number: f64) -> i64 {
    const BOUND: f64 = 9_223_372_036_854_775_808.0;
    if (-BOUND..BOUND).contains(&number) { number as i64 } else { i64::MIN }
}

/// The remainder, with the sign of the divisor.
#[must_use]
pub fn modulo(number: f64, divisor: f64) -> f64 {
    number - (number / divisor).floor() * divisor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_numbers_as_lua_reads_them() {
        let numbers = [
            ("10", 10.0),
            (" 16 \n", 16.0),
            ("0x10", 16.0),
            ("-0X1p3", -8.0),
            ("0x.8", 0.5),
            ("1e3", 1000.0),
            (".5", 0.5),
            ("5.", 5.0),
            ("+7", 7.0),
            ("-0", 0.0),
            ("inf", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("12\0abc", 12.0),
            ("1e400", f64::INFINITY),
        ];
        for (text, number) in numbers {
            assert_eq!(of_text(text.as_bytes()), Some(number), "{text:?}");
        }
        for text in ["", " ", "abc", "1x", "0x", "0xg", "--1", "+-1", "1 2", "e3", ".", "infi", "1_000"] {
            assert_eq!(of_text(text.as_bytes()), None, "{text:?}");
        }
        assert!(of_text(b"nan").is_some_and(f64::is_nan));
        assert_eq!(of_text(&[0xff]), None);
    }

    #[test]
    fn numbers_are_written_as_printf_writes_them() {
        let arguments = [
            (0.0, "0"),
            (16000.0, "16000"),
            (-3.0, "-3"),
            (5.5, "5.5"),
            (0.1, "0.10000000000000001"),
            (1e30, "1e+30"),
            (9_007_199_254_740_991.0, "9007199254740991"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (0.0001, "0.0001"),
            (0.00001, "1.0000000000000001e-05"),
            (f64::INFINITY, "inf"),
        ];
        for (number, text) in arguments {
            assert_eq!(to_argument(number), text.as_bytes());
        }
        let texts =
            [(0.1, "0.1"), (1.0 / 3.0, "0.33333333333333"), (1e14, "1e+14"), (99_999_999_999_999.0, "99999999999999")];
        for (number, text) in texts {
            assert_eq!(to_text(number), text);
        }
    }

    #[test]
    fn replies_are_cut_towards_zero_and_what_does_not_fit_is_the_smallest() {
        for (number, integer) in
            [(1.9, 1), (-1.9, -1), (1e30, i64::MIN), (f64::NAN, i64::MIN), (i64::MIN as f64, i64::MIN)]
        {
            assert_eq!(to_integer(number), integer);
        }
        assert_eq!((modulo(7.0, 5.0), modulo(-7.0, 5.0)), (2.0, 3.0));
    }
}
