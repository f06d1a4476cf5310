//! The scanner against bytes that were requests once: a corpus, and what drawn mutations make of it.
//!
//! Promise: the draws of a run come from a seed that is printed; `HEARTH_SEED` repeats them, `HEARTH_MUTATIONS` sets their
//! number. Must never know what is expected: `reference` says that.

use std::mem::size_of;

use super::reference::{Said, read};
use super::rules::rules;
use super::trial::trial;
use super::*;

/// The files of `tests/fixtures/resp-corpus/`, which `fuzz/` begins with, too.
macro_rules! corpus {
    ($($name:literal)*) => {
        &[$(($name, include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/resp-corpus/", $name)))),*]
    };
}

#[rustfmt::skip]
const CORPUS: &[(&str, &[u8])] = corpus! {
    "array-binary" "array-bulk-of-many-digits" "array-cut-in-a-bulk" "array-cut-in-a-header" "array-del-of-many"
    "array-eleven-arguments" "array-empty-and-null" "array-hello" "array-of-empty-bulks" "array-ping"
    "array-quit-in-the-middle" "array-set-get" "array-set-with-options" "bulk-no-number" "bulk-null"
    "bulk-of-16384" "bulk-of-16385" "bulk-of-512-mib" "bulk-over-512-mib" "bulk-wrong-end" "bulk-wrong-length"
    "count-cr-without-lf" "count-most-arguments" "count-no-number" "count-nothing" "count-over-an-int" "count-plus"
    "count-too-many-arguments" "count-zero-in-front" "element-array" "element-integer" "http-get" "http-post"
    "http2-preface" "inline-and-arrays" "inline-blanks" "inline-double-quotes" "inline-glued" "inline-hello"
    "inline-nul" "inline-ping" "inline-quote-in-a-word" "inline-set-get" "inline-single-quotes" "inline-unbalanced"
    "inline-without-an-end" "pipe-end-of-redis-cli" "tls-client-hello"
};

const MUTATIONS: u64 = 100_000;

/// SplitMix64.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// A part of `bytes`, mostly a short one.
    fn part(&mut self, bytes: &[u8]) -> std::ops::Range<usize> {
        let start = self.below(bytes.len() + 1);
        let longest = if self.below(4) == 0 { bytes.len() } else { 12 };
        start..(start + self.below(longest + 1)).min(bytes.len())
    }
}

/// Numbers at which something changes, and ways to write none.
const NUMBERS: [&str; 24] = [
    "0",
    "1",
    "2",
    "3",
    "4",
    "10",
    "11",
    "-1",
    "-2",
    "-0",
    "+1",
    "01",
    " 1",
    "",
    "1a",
    "16384",
    "16385",
    "1048576",
    "1048577",
    "134217728",
    "536870912",
    "536870913",
    "2147483648",
    "9223372036854775808",
];

/// What means something to somebody.
const TOKENS: [&str; 20] = [
    "\r\n",
    "\r",
    "\n",
    "*",
    "$",
    "*1\r\n",
    "*2\r\n$",
    "$1\r\n",
    "$0\r\n\r\n",
    "*0\r\n",
    "*-1\r\n",
    "\"",
    "'",
    "\\x4",
    "\\",
    " ",
    "\0",
    "POST ",
    "host: ",
    "PING\r\n",
];

/// Changes `bytes` in one of the ways bytes are damaged, or are meant to do damage.
fn mutate(bytes: &mut Vec<u8>, draws: &mut Draws) {
    let (_, other) = draws.of(CORPUS);
    let part = draws.part(bytes);
    match draws.below(10) {
        0 if !bytes.is_empty() => {
            let (at, bit) = (draws.below(bytes.len()), draws.below(8));
            bytes[at] ^= 1 << bit;
        }
        1 => bytes.truncate(part.start),
        2 => drop(bytes.drain(part)),
        3 => bytes.extend_from_within(part),
        4 => {
            let chunk = bytes[part.clone()].to_vec();
            bytes.splice(part.end..part.end, chunk);
        }
        5 => {
            let from = draws.part(other);
            bytes.splice(part, other[from].iter().copied());
        }
        6 => bytes.extend_from_slice(other),
        7 => {
            let token = draws.of(&TOKENS);
            bytes.splice(part.start..part.start, token.bytes());
        }
        // A chunk so often that every bound on what is waited for is crossed; not often, because it takes long.
        8 if draws.below(300) == 0 && !part.is_empty() => {
            let times = (limits::MAX_INLINE_BYTES + draws.below(20)) / part.len();
            let chunk = bytes[part.clone()].repeat(times);
            bytes.splice(part, chunk);
        }
        _ => {
            let digit = |byte: &u8| byte.is_ascii_digit() || *byte == b'-';
            let start = part.start + bytes[part.start..].iter().position(digit).unwrap_or(0);
            let length = bytes[start..].iter().take_while(|byte| digit(byte)).count();
            bytes.splice(start..start + length, draws.of(&NUMBERS).bytes());
        }
    }
}

/// What a scanner may keep room for is what was sent: two bytes of a line are a place, in lists that double.
fn keeps_little(scanner: &Scanner, given: usize, kept: usize) {
    let room = scanner.spans.capacity() * size_of::<Span>() + scanner.unquoted.capacity();
    assert!(room <= 64 + given * (size_of::<Span>() + 2), "{room} bytes of room after {given} bytes");
    assert!(kept <= given);
}

fn try_out(bytes: &[u8], draws: &mut Draws) {
    let authenticated = draws.below(4) > 0;
    let rules = rules(authenticated, draws.of(&[0, 1, 3, 4, 20, 100, 20_000, 1 << 24, usize::MAX]));
    let longest = draws.of(&[1, 2, 5, 20, 100]) + bytes.len() / 64;
    let sizes: Vec<usize> = (0..7).map(|_| 1 + draws.below(longest)).collect();
    if let Err(told) = trial(bytes, &sizes, &rules, keeps_little) {
        panic!("{told}");
    }
}

fn number_of(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

#[test]
fn the_corpus_is_judged_as_the_reference_judges_it_at_every_cut() {
    for (name, bytes) in CORPUS {
        for (authenticated, value_bytes) in [(true, 1 << 24), (true, 3), (false, 1 << 24)] {
            let rules = rules(authenticated, value_bytes);
            for cut in 1..=bytes.len() {
                let tried = trial(bytes, &[cut, bytes.len()], &rules, keeps_little);
                tried.unwrap_or_else(|told| panic!("{name}: {told}"));
            }
            trial(bytes, &[1], &rules, keeps_little).unwrap_or_else(|told| panic!("{name}: {told}"));
        }
    }
}

#[test]
fn a_hundred_thousand_mutations_are_judged_as_the_reference_judges_them_however_they_are_cut() {
    let (seed, mutations) = (number_of("HEARTH_SEED", 20_261_130), number_of("HEARTH_MUTATIONS", MUTATIONS));
    println!("HEARTH_SEED={seed} HEARTH_MUTATIONS={mutations}");
    let mut draws = Draws(seed);
    let mut seen = [0_u64; 4];
    for _ in 0..mutations {
        let mut bytes = draws.of(CORPUS).1.to_vec();
        for _ in 0..=draws.below(4) {
            mutate(&mut bytes, &mut draws);
        }
        try_out(&bytes, &mut draws);
        for said in read(&bytes, &rules(true, 1 << 24)).0 {
            seen[match said {
                Said::Request(_) => 0,
                Said::Nothing => 1,
                Said::Refused(_) => 2,
                Said::Browser => 3,
            }] += 1;
        }
    }
    println!("{seen:?} requests, nothings, refusals, browsers");
    assert!(seen.iter().all(|count| *count > mutations / 100), "what is drawn has become one-sided: {seen:?}");
}

#[test]
fn the_reference_reads_what_the_protocol_says() {
    // So that two readings that share a mistake are not the only witnesses.
    let words = |words: &[&str]| Said::Request(words.iter().map(|word| Some(word.as_bytes().to_vec())).collect());
    let input = b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n\r\nSET k \"a \\x41\"\n*0\r\n*1\r\n$-1\r\nPING\r\n";
    let (said, taken) = read(input, &rules(true, 100));
    let refused = Said::Refused("Protocol error: invalid bulk length".to_owned());
    assert_eq!(said, [words(&["GET", "k"]), Said::Nothing, words(&["SET", "k", "a A"]), Said::Nothing, refused]);
    assert_eq!(taken, input.len() - b"*1\r\n$-1\r\nPING\r\n".len());
    assert_eq!(read(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r", &rules(true, 100)), (vec![], 0));
    assert_eq!(read(b"POST /\r\nPING\r\n", &rules(true, 100)), (vec![Said::Browser], 0));
    assert_eq!(read(b"GET abc\r\n", &rules(true, 2)).0, [Said::Request(vec![None, None])]);
}
