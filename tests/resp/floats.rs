//! What INCRBYFLOAT counts: its digits against those of redis-server, for many numbers of every kind.
//!
//! Promise: `floats.txt` is redis-server's own, recorded by asking for the same sums. Must never know how a number is kept.

#![expect(clippy::disallowed_methods, reason = "the recording is a file of the source tree, not data of the broker")]

use std::fmt::Write as _;
use std::path::PathBuf;

use hearth::core::entropy::Entropy;
use hearth::frontends::resp::long_double::LongDouble;

use crate::client::{Client, bulk};
use crate::redis::Redis;

/// How many sums of numbers made up at random.
const SUMS: usize = 2_000;

/// Where a mistake would be: the largest and smallest of each kind, halves of the last digit, and what is no number.
const CORNERS: [&str; 44] = [
    "0",
    "-0",
    "+0.0",
    "0x0p99",
    "0e99999",
    "5.",
    "-.5",
    ".",
    "",
    "0.1",
    "0.2",
    "-0.3",
    "3000.1",
    "1e17",
    "1e-17",
    "5e-18",
    "15e-18",
    "-5e-18",
    "5e-324",
    "1e308",
    "1e400",
    "3.6e-4951",
    "1e-4951",
    "1e-4960",
    "0x1p-16445",
    "0x1p-16446",
    "0x.8p-16445",
    "0x1.8p-16446",
    "1.2e4932",
    "1e4933",
    "1e99999999999999999999",
    "1e-99999999999999999999",
    "inf",
    "-Infinity",
    "nan",
    "18446744073709551615",
    "-9223372036854775808",
    "0x1.8",
    "0x",
    "1p3",
    "1e",
    "1.5.5",
    "1_0",
    "infi",
];

struct Numbers(Entropy);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.number() % bound
    }

    fn digits(&mut self, most: u64, radix: u64) -> String {
        let count = 1 + self.below(most);
        (0..count).map(|_| char::from_digit(self.below(radix) as u32, radix as u32).unwrap_or('0')).collect()
    }

    fn number(&mut self) -> String {
        let sign = ["", "-", "+", ""][self.below(4) as usize];
        let number = match self.below(9) {
            0 => self.digits(6, 10),
            1 => format!("{}.{}", self.digits(7, 10), self.digits(20, 10)),
            2 => format!("{}.{}", self.digits(30, 10), self.digits(40, 10)),
            3 => format!("{}e-{}", self.digits(6, 10), self.below(30)),
            4 => format!("{}.{}E+{}", self.digits(1, 10), self.digits(25, 10), self.below(40)),
            5 => format!("0x{}", self.digits(20, 16)),
            6 => format!("0X{}.{}p-{}", self.digits(3, 16), self.digits(16, 16), self.below(70)),
            // What the last digit has to be rounded for, often exactly in the middle.
            7 => format!("0x{}p-{}", self.digits(16, 16), 50 + self.below(20)),
            _ => (1_u128 << self.below(70)).saturating_sub(1).saturating_add(u128::from(self.below(3))).to_string(),
        };
        format!("{sign}{number}")
    }
}

fn sums() -> Vec<[String; 2]> {
    let mut numbers = Numbers(Entropy::seeded(20_260_101));
    let corners = CORNERS.iter().flat_map(|corner| {
        let (zero, one) = ([corner.to_string(), "0".to_owned()], ["1".to_owned(), corner.to_string()]);
        [zero, one]
    });
    let mut sums: Vec<[String; 2]> = corners.collect();
    sums.extend((0..SUMS).map(|_| [numbers.number(), numbers.number()]));
    sums
}

fn recorded_file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/resp/floats.txt")
}

/// What Hearth answers, as a line of the recording.
fn answer(held: &str, increment: &str) -> String {
    let (Some(held), Some(increment)) = (LongDouble::parse(held.as_bytes()), LongDouble::parse(increment.as_bytes()))
    else {
        return "ERR value is not a valid float".to_owned();
    };
    let sum = held.plus(increment).map(LongDouble::to_text);
    sum.unwrap_or_else(|| "ERR increment would produce NaN or Infinity".to_owned())
}

#[test]
fn sums_have_the_digits_of_redis() {
    let text = std::fs::read_to_string(recorded_file()).unwrap();
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    for [held, increment] in sums() {
        assert_eq!(lines.next(), Some(format!("{held} + {increment} = {}", answer(&held, &increment)).as_str()));
    }
    assert_eq!(lines.next(), None);
}

/// Writes `floats.txt` when asked to by `HEARTH_RECORD=1`.
#[test]
fn record_sums_from_redis_when_asked() {
    if std::env::var_os("HEARTH_RECORD").is_none() {
        return;
    }
    let redis = Redis::start();
    let mut client = Client::connect(redis.address);
    let mut text = String::from("# Written by `HEARTH_RECORD=1 cargo test --test resp record`; not to be edited.\n");
    for [held, increment] in sums() {
        assert_eq!(client.ask(["SET", "k", &held]), b"+OK\r\n");
        let reply = String::from_utf8(client.ask(["INCRBYFLOAT", "k", &increment])).unwrap();
        let answer = match reply.strip_prefix('-') {
            Some(error) => error.trim_end().to_owned(),
            None => reply.lines().nth(1).unwrap().to_owned(),
        };
        assert!(reply.starts_with('-') || bulk(answer.as_bytes()) == reply.as_bytes());
        let _ = writeln!(text, "{held} + {increment} = {answer}");
    }
    std::fs::write(recorded_file(), text).unwrap();
}
