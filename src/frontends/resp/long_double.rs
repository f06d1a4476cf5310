//! Numbers of 80 bits, as Redis on x86-64 counts in: read like C's `strtold`, added, and written like `%.17Lf`.
//!
//! Promise: the very digits Redis answers, on every machine. Must never know a command.

use rustc_apfloat::ieee::X87DoubleExtended;
use rustc_apfloat::{Float, Round};

/// Redis reads numbers shorter than this only, in bytes.
const TEXT_BYTES: usize = 5 * 1024;

/// Digits behind the point.
const DECIMALS: u32 = 17;
const ONE: u128 = 10_u128.pow(DECIMALS);

/// Bits of the exponent and what is added to it; then 64 bits of the number itself.
const EXPONENT_BITS: u32 = 15;
const EXPONENT_BIAS: i32 = 16_383;
const FRACTION_BITS: i32 = 63;

/// A number, possibly infinite.
#[derive(Clone, Copy, Debug)]
pub struct LongDouble(X87DoubleExtended);

impl LongDouble {
    pub const ZERO: Self = Self(X87DoubleExtended::ZERO);

    /// The number that all of `text` is: decimal with or without exponent, hexadecimal, or infinity, in any case. `None` for
    /// what is no number, or one that is too large or too near to zero to be told from it.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = str::from_utf8(text).ok().filter(|text| text.len() < TEXT_BYTES)?;
        let (negative, magnitude) = match text.as_bytes() {
            [b'-', ..] => (true, &text[1..]),
            [b'+', ..] => (false, &text[1..]),
            _ => (false, text),
        };
        let number = if ["inf", "infinity"].iter().any(|name| magnitude.eq_ignore_ascii_case(name)) {
            X87DoubleExtended::INFINITY
        } else {
            let form = Form::of(magnitude)?;
            // The library wants every hexadecimal number to have an exponent.
            let exponent = if form.hexadecimal && !form.exponent { "p0" } else { "" };
            let written = format!("{magnitude}{exponent}");
            let number = X87DoubleExtended::from_str_r(&written, Round::NearestTiesToEven).ok()?.value;
            if number.is_infinite() || (number.is_zero() && !form.zero) {
                return None;
            }
            number
        };
        Some(Self(if negative { -number } else { number }))
    }

    /// The sum; `None` when it is no number that can be written.
    #[must_use]
    pub fn plus(self, other: Self) -> Option<Self> {
        let sum = self.0.add_r(other.0, Round::NearestTiesToEven).value;
        sum.is_finite().then_some(Self(sum))
    }

    /// Its digits, seventeen behind the point, without the zeros they end with.
    #[must_use]
    pub fn to_text(self) -> String {
        let bits = self.0.to_bits();
        let number = bits as u64;
        let exponent = ((bits >> 64) & ((1 << EXPONENT_BITS) - 1)) as i32;
        // The smallest numbers have the exponent 0 and are scaled as those with 1.
        let scale = exponent.max(1) - EXPONENT_BIAS - FRACTION_BITS;
        let mut text = match u32::try_from(-scale) {
            Ok(shift) => with_decimals(number, shift),
            Err(_) => shifted(number, scale.unsigned_abs()),
        };
        if self.0.is_negative() && text != "0" {
            text.insert(0, '-');
        }
        text
    }
}

/// `number` / 2^`shift`, to the nearest of what seventeen decimals can say.
fn with_decimals(number: u64, shift: u32) -> String {
    // At most 121 bits: nothing is lost.
    let scaled = u128::from(number) * ONE;
    let quotient = scaled.checked_shr(shift).unwrap_or_default();
    // A number of less than half a unit is nothing, however small it is.
    let rest = if shift >= 127 { scaled.min(1) } else { scaled & ((1 << shift) - 1) };
    let half = if shift == 0 { u128::MAX } else { 1 << (shift - 1).min(126) };
    let up = rest > half || (rest == half && quotient % 2 == 1);
    let quotient = quotient + u128::from(up);
    let text = format!("{}.{:017}", quotient / ONE, quotient % ONE);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// `number` * 2^`shift`.
fn shifted(number: u64, shift: u32) -> String {
    // Nine digits each, the lowest first.
    const GROUP: u64 = 1_000_000_000;
    let mut groups = vec![number % GROUP, number / GROUP % GROUP, number / GROUP / GROUP];
    let mut left = shift;
    while left > 0 {
        let step = left.min(29);
        let mut carry = 0;
        for group in &mut groups {
            let shifted = (*group << step) + carry;
            *group = shifted % GROUP;
            carry = shifted / GROUP;
        }
        if carry > 0 {
            groups.push(carry);
        }
        left -= step;
    }
    let digits: String = groups.iter().rev().map(|group| format!("{group:09}")).collect();
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() { "0".to_owned() } else { digits.to_owned() }
}

/// What a number is written like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Form {
    hexadecimal: bool,
    exponent: bool,
    /// All its digits are zeros.
    zero: bool,
}

impl Form {
    /// The form of all of `text`, which has no sign; `None` when it is no number.
    fn of(text: &str) -> Option<Self> {
        let hexadecimal = text.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("0x"));
        let (digits, mark, radix) = if hexadecimal { (&text[2..], 'p', 16) } else { (text, 'e', 10) };
        let (digits, exponent) = match digits.find(|c: char| c.eq_ignore_ascii_case(&mark)) {
            Some(at) => (&digits[..at], Some(&digits[at + 1..])),
            None => (digits, None),
        };
        let exponent_is_one = exponent.is_none_or(|exponent| {
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        });
        let points = digits.matches('.').count();
        let all_digits = digits.chars().all(|c| c == '.' || c.is_digit(radix));
        let is_number = exponent_is_one && all_digits && points <= 1 && digits.len() > points;
        is_number.then(|| Self {
            hexadecimal,
            exponent: exponent.is_some(),
            zero: digits.bytes().all(|byte| matches!(byte, b'0' | b'.')),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum(a: &str, b: &str) -> Option<String> {
        LongDouble::parse(a.as_bytes())?.plus(LongDouble::parse(b.as_bytes())?).map(LongDouble::to_text)
    }

    #[test]
    fn sums_have_redis_digits() {
        for (a, b, expected) in [
            ("0.1", "0.2", "0.3"),
            ("3000.1", "0", "3000.10000000000000009"),
            ("1e17", "0", "100000000000000000"),
            ("5e-324", "0", "0"),
            ("-5e-324", "0", "0"),
            ("1", "-1", "0"),
            ("0x10", "0X.8p1", "17"),
            ("1e-17", "0", "0.00000000000000001"),
            ("18446744073709551615", "1", "18446744073709551616"),
            ("1", "18446744073709551615", "18446744073709551616"),
            ("-3", "0.25", "-2.75"),
        ] {
            assert_eq!(sum(a, b).as_deref(), Some(expected), "{a} + {b}");
        }
        // The nearest number of 64 bits is a little less.
        assert_eq!(sum("1e4000", "0").map(|text| text.len()), Some(4000));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "",
            " 1",
            "1 ",
            "1x",
            "x",
            "nan",
            "NaN",
            "-nan",
            "nan(1)",
            ".",
            "-",
            "+",
            "+-1",
            "--1",
            "1e",
            "1e+",
            "e1",
            "1.2.3",
            "0x",
            "0x.",
            "0x1p",
            "0xg",
            "1_000",
            "1,5",
            "1e5000",
            "-1e5000",
            "1e-5000",
            "0x1p-20000",
            "infinit",
            "\u{661}",
        ] {
            assert!(LongDouble::parse(text.as_bytes()).is_none(), "{text:?}");
        }
        assert!(LongDouble::parse(b"1\0").is_none() && LongDouble::parse(&[0xff]).is_none());
        assert!(LongDouble::parse("1".repeat(TEXT_BYTES).as_bytes()).is_none());
        assert!(LongDouble::parse(&[&b"0."[..], &[b'1'; TEXT_BYTES - 3]].concat()).is_some());
    }

    #[test]
    fn infinity_is_read_and_never_written() {
        for text in ["inf", "-INF", "+Infinity", "iNfInItY"] {
            assert!(LongDouble::parse(text.as_bytes()).is_some(), "{text}");
            assert_eq!(sum(text, "1"), None);
        }
        assert_eq!(sum("inf", "-inf"), None);
        assert_eq!(sum("1.1e4932", "1.1e4932"), None);
    }

    proptest! {
        #[test]
        fn integers_of_sixty_three_bits_are_exact(a in any::<i64>(), b in any::<i64>()) {
            if let Some(exact) = a.checked_add(b) {
                prop_assert_eq!(sum(&a.to_string(), &b.to_string()), Some(exact.to_string()));
            }
        }

        #[test]
        fn no_text_makes_it_panic(text in "[-+]?(0[xX])?[0-9a-fA-F.]{0,40}([eEpP][-+]?[0-9]{0,12})?") {
            let _ = LongDouble::parse(text.as_bytes()).map(LongDouble::to_text);
        }
    }
}
