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
    /// Shards of each database.
    pub shards: u32,
    /// What EXEC was to run.
    pub queued: &'a [Request],
    /// Keys that this connection watches and that were not there when it began to.
    pub watched_absent: &'a [Vec<u8>],
    /// Whether it watches keys of another database than it has selected now.
    pub watched_elsewhere: bool,
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
        name: "object-is-told-from-the-value",
        reason: "encoding and references are those of the value itself; Redis's also depend on the command that wrote it",
        matches: |seen| match command(seen.request) {
            "object|encoding" => is_kept_apart(seen),
            "object|refcount" => {
                // One more while the request that wrote it is not over; many for small numbers, of which Redis has one each.
                matches!(seen.redis.integer(), Some(1 | 2)) && matches!(seen.hearth.integer(), Some(1 | 2_147_483_647))
            }
            _ => false,
        },
        ends: false,
    },
    Difference {
        name: "watch-of-an-absent-key",
        reason: "WATCH compares revisions, and a key that came and went has none again",
        matches: |seen| {
            let parts = seen.hearth.parts().filter(|_| is_nothing(seen.redis) && command(seen.request) == "exec");
            parts.is_some_and(|parts| seen.watched_absent.iter().any(|key| !is_found_first(seen.queued, parts, key)))
        },
        ends: true,
    },
    Difference {
        name: "exec-over-several-databases",
        reason: "each database is a cache with a log of its own, and a transaction is one batch of one log",
        matches: |seen| {
            let reaches_far = |request: &Request| ["select", "flushall", "copy"].contains(&command(request));
            command(seen.request) == "exec"
                && (seen.redis.parts().is_some() || is_nothing(seen.redis))
                && seen.hearth.error().is_some_and(|text| text.starts_with(b"CROSSSLOT "))
                && (seen.watched_elsewhere || seen.queued.iter().any(reaches_far))
        },
        ends: true,
    },
    Difference {
        name: "whole-over-several-shards",
        reason: "of a cache made with several shards each has a log of its own, and what must be whole is one batch of one log",
        matches: |seen| {
            let must_be_whole = ["exec", "msetnx", "rename", "renamenx", "copy"];
            seen.shards > 1
                && must_be_whole.contains(&command(seen.request))
                && seen.hearth.error() == Some(b"CROSSSLOT Keys in request don't hash to the same slot")
        },
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

/// Whether Redis keeps a value in a more general way than its bytes need.
fn is_kept_apart(seen: &Seen<'_>) -> bool {
    let order = [&b"int"[..], b"embstr", b"raw"];
    let place = |reply: &Reply| order.iter().position(|told| reply.bulk() == Some(told));
    place(seen.redis).zip(place(seen.hearth)).is_some_and(|(redis, hearth)| redis > hearth)
}

fn is_nothing(reply: &Reply) -> bool {
    matches!(reply, Reply::Nothing(_))
}

/// Whether a transaction that began with GET of this key found it, so that it did not only come and go.
fn is_found_first(queued: &[Request], parts: &[Reply], key: &[u8]) -> bool {
    let first = queued.first().filter(|first| command(first) == "get" && first.word(1) == key);
    first.is_some() && parts.first().is_some_and(|part| part.bulk().is_some())
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
