//! Bytes of a client, whole and in pieces, against the scanner and the reference of its unit tests.
//!
//! Promise: any difference is a panic. Must never know a command.
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

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let sizes = [1 + input.len() % 13, 1, 5];
    // A value may be long; values are too long; the client is a stranger.
    for (authenticated, value_bytes) in [(true, 1 << 24), (true, 3), (false, 1 << 24)] {
        if let Err(told) = trial::trial(input, &sizes, &rules::rules(authenticated, value_bytes), |_, _, _| {}) {
            panic!("{told}");
        }
    }
});
