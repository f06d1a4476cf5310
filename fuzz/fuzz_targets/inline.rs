//! One line of an inline request: its quotes, escapes and blanks, against the reference of the scanner's unit tests.
//!
//! Whatever the fuzzer gives is made one line: it does not begin like an array, and has one end. Promise: any difference is
//! a panic. Must never know a command.
#![no_main]

#[path = "../../src/frontends/resp/scan/tests/reference.rs"]
mod reference;
#[path = "../../src/frontends/resp/scan/tests/rules.rs"]
mod rules;
#[path = "../../src/frontends/resp/scan/tests/trial.rs"]
mod trial;

// What these name.
use hearth::frontends::resp::limits;
use hearth::frontends::resp::scan::{Args, Scan, Scanner};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut input: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != b'\n').collect();
    if input.first() == Some(&b'*') {
        input[0] = b' ';
    }
    input.push(b'\n');
    for value_bytes in [1 << 24, 3] {
        if let Err(told) = trial::trial(&input, &[1], &rules::rules(true, value_bytes), |_, _, _| {}) {
            panic!("{told}");
        }
    }
});
