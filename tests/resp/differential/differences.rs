//! What Hearth answers otherwise than Redis on purpose.
//!
//! Promise: each difference is as narrow as it can be told, and is a row of the table in docs/resp.md with the same name. Must
//! never excuse what nobody decided.

#![expect(clippy::disallowed_methods, reason = "reads a document of the source tree")]

use crate::differential::label::command;
use crate::differential::reply::Reply;
use crate::differential::same::Before;
use crate::differential::sequence::Request;

/// Two replies that are not the same.
pub struct Seen<'a> {
    pub request: &'a Request,
    pub redis: &'a Reply,
    pub hearth: &'a Reply,
    pub before: Before,
}

pub struct Difference {
    pub name: &'static str,
    pub reason: &'static str,
    pub matches: fn(&Seen<'_>) -> bool,
    /// Whether the servers hold different data from here on, so that the sequence ends.
    pub ends: bool,
}

pub const DIFFERENCES: &[Difference] = &[
    Difference {
        name: "scan-cursor-never-given-out",
        reason: "a cursor is a place in a list of scans under way, so one that was never given out is an error",
        matches: |seen| {
            command(seen.request) == "scan"
                && seen.request.word(1) != b"0"
                && seen.redis.parts().is_some()
                && seen.hearth.error() == Some(b"ERR invalid cursor")
        },
        ends: false,
    },
    Difference {
        name: "incrbyfloat-has-64-bits",
        reason: "sums are of 64 bits and print in the fewest digits; Redis's have 80 and print up to 17 decimals",
        matches: |seen| command(seen.request) == "incrbyfloat" && (is_same_float(seen) || is_too_large(seen)),
        ends: true,
    },
    Difference {
        name: "dbsize-counts-lapsed-keys",
        reason: "a lapsed key counts until the sweep has seen it",
        matches: |seen| {
            let more = seen.hearth.integer().zip(seen.redis.integer()).map(|(hearth, redis)| hearth - redis);
            command(seen.request) == "dbsize" && more.is_some_and(|more| more > 0 && more <= seen.before.lapsed as i64)
        },
        ends: false,
    },
];

/// Whether the numbers are the same but for what 64 bits cannot tell, and 17 decimals not show.
fn is_same_float(seen: &Seen<'_>) -> bool {
    let both = float(seen.redis).zip(float(seen.hearth));
    both.is_some_and(|(redis, hearth)| (redis - hearth).abs() <= redis.abs() * 1e-15 + 1e-17)
}

/// Whether the sum or a part of it has more than the 308 digits that fit in 64 bits.
fn is_too_large(seen: &Seen<'_>) -> bool {
    float(seen.redis).is_some_and(|sum| sum.is_infinite() || sum.abs() > 1e307) && seen.hearth.error().is_some()
}

fn float(reply: &Reply) -> Option<f64> {
    str::from_utf8(reply.bulk()?).ok()?.parse().ok()
}

/// The difference on purpose that explains two replies.
pub fn explain(seen: &Seen<'_>) -> Option<&'static Difference> {
    DIFFERENCES.iter().find(|difference| (difference.matches)(seen))
}

#[test]
fn the_document_names_the_same_differences() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/resp.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, section) = text.split_once("\n## Differences from Redis\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let mut told: Vec<&str> = rows.collect();
    let mut known: Vec<&str> = DIFFERENCES.iter().map(|difference| difference.name).collect();
    told.sort_unstable();
    known.sort_unstable();
    assert_eq!(told, known, "the table of docs/resp.md and the one here");
    assert!(DIFFERENCES.iter().all(|difference| !difference.reason.is_empty()));
}
