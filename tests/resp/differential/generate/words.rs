//! The words of requests: keys, values, numbers, and what is almost one of these.
//!
//! Promise: no word depends on the time of day, so that a seed means the same tomorrow. Must never know a command.

use crate::differential::dice::Dice;

/// Keys that sequences draw theirs from: plain ones, and all that a glob, a scanner or an escape could stumble over.
const KEYS: &[&[u8]] = &[
    b"a",
    b"b",
    b"k1",
    b"k2",
    b"k3",
    b"key:1",
    b"key:2",
    b"key:10",
    b"user:1000:name",
    b"",
    b" ",
    b"two words",
    b"*",
    b"?",
    b"a*",
    b"h[ae]llo",
    b"hello",
    b"hallo",
    b"hxllo",
    b"[",
    b"]",
    b"[^a]",
    b"a\\*",
    b"\\",
    b"{tag}1",
    b"{tag}2",
    b"\x00",
    b"nul\x00inside",
    b"\xff\xfe\x80",
    b"\r\n",
    b"line\nend\r",
    b"'quoted'",
    b"\"",
    b"K1",
    "gr\u{fc}n".as_bytes(),
    b"10",
    b"-1",
    b"NX",
    b"GET",
];

/// Between 3 and 20 keys of a sequence, one of them long now and then.
pub fn keys(dice: &mut Dice) -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = KEYS.iter().map(|key| key.to_vec()).collect();
    dice.shuffle(&mut all);
    all.truncate(dice.between(3, 20));
    if dice.percent(5) {
        all[0] = b"long:".repeat(dice.between(10, 200));
    }
    all
}

/// What KEYS and SCAN are asked for.
const GLOBS: &[&str] = &[
    "*",
    "?",
    "??",
    "k?",
    "k*",
    "key:*",
    "h?llo",
    "h*llo",
    "h[ae]llo",
    "h[^e]llo",
    "h[a-e]llo",
    "h[e-a]llo",
    "[",
    "[]",
    "[^]",
    "[a",
    "h[",
    "a\\*",
    "\\*",
    "\\\\",
    "\\",
    "*:*",
    "**",
    "*a*",
    "",
    "[[]",
    "{tag}[12]",
    "[^a-z]*",
    "\\?",
    "K*",
    "*\\",
    "[\\]]",
    "[a-",
    "a",
    "nul*",
    "*1",
    "?*?",
    "h[a\\-e]llo",
    "nothing*",
];

/// A glob, one of the list or put together at random.
pub fn glob(dice: &mut Dice) -> String {
    const PIECES: &[&str] = &[
        "*", "*", "?", "[a-k]", "[^a]", "[", "]", "^", "-", "\\", "[h-", "a", "h", "l", "lo", "k", "1", ":", "key",
        "[\\", "[]a]", "[^]", "{", "tag", "\\*", "two", " ",
    ];
    if dice.percent(50) {
        return dice.text(GLOBS).to_owned();
    }
    (0..dice.between(1, 6)).map(|_| dice.text(PIECES)).collect()
}

/// Numbers that fit, and look like it.
const INTEGERS: &[&str] = &["0", "1", "-1", "2", "10", "-7", "42", "1000", "9999", "10000", "123456789", "-4096"];

/// Numbers at the edges of what fits.
pub const EDGES: &[&str] = &[
    "9223372036854775807",
    "9223372036854775806",
    "9223372036854775800",
    "-9223372036854775808",
    "-9223372036854775807",
    "-9223372036854775800",
    "4611686018427387904",
    "-4611686018427387905",
    "2147483647",
    "2147483648",
    "4294967296",
];

/// What is no integer, though it may look like one.
pub const NO_INTEGERS: &[&str] = &[
    "+10",
    "010",
    " 10",
    "10 ",
    "1.5",
    "-0",
    "",
    "abc",
    "9223372036854775808",
    "-9223372036854775809",
    "99999999999999999999",
    "18446744073709551616",
    "0x10",
    "5e3",
    "10\n",
    "1\u{0}",
    "-",
    "--1",
    "1_000",
    "1,000",
    "+",
    "00",
    "-010",
    "\u{664}",
    "inf",
    "nan",
];

pub fn integer(dice: &mut Dice) -> String {
    match dice.below(10) {
        0..6 => (dice.text(INTEGERS)).to_owned(),
        6 | 7 => (dice.text(EDGES)).to_owned(),
        _ => (dice.roll() as i32).to_string(),
    }
}

/// Floats in every form.
const FLOATS: &[&str] = &[
    "0",
    "1",
    "-1",
    "0.5",
    "-0.5",
    "1.25",
    "3.75",
    "-2.125",
    "1024.5",
    "5e3",
    "5E3",
    "1e2",
    "-1e1",
    "2.5e1",
    "0.0",
    "-0.0",
    "10",
    "+1",
    "+0.5",
    ".5",
    "5.",
    "0x10",
    "010",
    "1000000",
    "-0",
    "1e0",
    "123456.75",
    "0x1p3",
];

/// At the edges of 64 bits, of 80 bits, and of what prints.
const HUGE_AND_TINY: &[&str] = &[
    "1e308",
    "-1e308",
    "1.7976931348623157e308",
    "1e400",
    "1e4932",
    "-1e4931",
    "1.18973149535723176502e4932",
    "4.9e-324",
    "1e-320",
    "1e-400",
    "3.6e-4951",
    "1e-17",
    "5e-18",
    "4.9999e-18",
    "1e17",
    "18446744073709551616",
    "9223372036854775807.5",
    "0.1",
    "3000.1",
    "0x1.fffffffffffffffep0",
    "0x1p-64",
    "0x1p16383",
];

/// What is no float, or is not finite.
pub const NO_FLOATS: &[&str] = &[
    "abc", "", " 1", "1 ", "1.5.2", "1e", "e5", "1,5", "nan", "NaN", "-nan", "0x", "--1", "1\u{0}", "1e400x", "+-1",
    "1_0", ".", "-", "infinit", "1\n", " ", "nan(1)",
];

/// What is infinite, or becomes it.
pub const INFINITIES: &[&str] = &["inf", "-inf", "+inf", "Inf", "INFINITY", "infinity", "1e5000", "-1e5000"];

pub fn float(dice: &mut Dice) -> String {
    match dice.below(10) {
        0..5 => dice.text(FLOATS).to_owned(),
        5..9 => drawn_float(dice),
        _ => dice.text(HUGE_AND_TINY).to_owned(),
    }
}

/// Digits, a point somewhere and a power now and then: what shows how many bits a sum has.
fn drawn_float(dice: &mut Dice) -> String {
    let mut text = String::from(dice.text(&["", "", "-", "+"]));
    for _ in 0..dice.between(1, 12) {
        text.push(char::from(b'0' + dice.below(10) as u8));
    }
    if dice.percent(70) {
        text.push('.');
        for _ in 0..dice.between(1, 20) {
            text.push(char::from(b'0' + dice.below(10) as u8));
        }
    }
    if dice.percent(25) {
        text.push_str(&format!("e{}", dice.between(0, 80) as i64 - 40));
    }
    text
}

pub fn value(dice: &mut Dice) -> Vec<u8> {
    match dice.below(40) {
        0..12 => integer(dice).into_bytes(),
        12..16 => float(dice).into_bytes(),
        16..19 => dice.text(NO_INTEGERS).as_bytes().to_vec(),
        19..21 => Vec::new(),
        21..25 => binary(dice, 24),
        25..28 => text_of_length(dice, 36, 52),
        28 => dice.text(NO_FLOATS).as_bytes().to_vec(),
        29 if dice.percent(15) => text_of_length(dice, 1000, 100_000),
        30 => text_of_length(dice, 60, 1000),
        _ => dice
            .pick(&["v", "hello", "value 1", "OK", "x", "{\"a\": 1}", "long enough to be told apart"])
            .as_bytes()
            .to_vec(),
    }
}

fn binary(dice: &mut Dice, most: usize) -> Vec<u8> {
    (0..dice.between(1, most)).map(|_| dice.roll() as u8).collect()
}

fn text_of_length(dice: &mut Dice, least: usize, most: usize) -> Vec<u8> {
    let length = dice.between(least, most);
    let letter = dice.between(usize::from(b'a'), usize::from(b'z')) as u8;
    vec![letter; length]
}

/// Times to live long enough to outlive a run, and so far apart that no two are ever compared with each other on the edge.
pub fn lasting_ms(dice: &mut Dice) -> u64 {
    100_000 + dice.roll() % 999_900_000
}

/// Seconds since 1970 that are far ahead, between 4e9 and 5e9: what is read back of them is compared exactly.
pub fn far_ahead_s(dice: &mut Dice) -> u64 {
    4_100_000_000 + dice.roll() % 800_000_000
}

/// Seconds since 1970 that are past.
pub fn past_s(dice: &mut Dice) -> u64 {
    *dice.pick(&[1, 2, 1000, 1_000_000_000, 1_600_000_000])
}

/// A word in capitals, small letters or both.
pub fn in_some_case(dice: &mut Dice, word: &str) -> Vec<u8> {
    match dice.below(10) {
        0..7 => word.as_bytes().to_vec(),
        7 | 8 => word.to_ascii_lowercase().into_bytes(),
        _ => word.bytes().map(|byte| if dice.percent(50) { byte.to_ascii_lowercase() } else { byte }).collect(),
    }
}
