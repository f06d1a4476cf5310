//! Whether two replies say the same.
//!
//! Promise: bytes decide, but for the commands in `NORMALISERS`, whose replies cannot be the same bytes twice even of one
//! server; each says why. Must never know which of the two is Hearth.

use crate::differential::label::command;
use crate::differential::reply::Reply;
use crate::differential::sequence::Request;

/// Replies that are not compared byte by byte.
pub struct Normaliser {
    pub name: &'static str,
    pub reason: &'static str,
    commands: &'static [&'static str],
    same: fn(&Two<'_>) -> bool,
}

/// Two replies to one request, whose bytes differ.
struct Two<'a> {
    request: &'a Request,
    a: &'a Reply,
    b: &'a Reply,
    before: &'a Before,
}

impl Two<'_> {
    fn each(&self, holds: impl Fn(&Reply) -> bool) -> bool {
        holds(self.a) && holds(self.b)
    }

    fn integers(&self) -> Option<(i64, i64)> {
        self.a.integer().zip(self.b.integer())
    }

    /// Whether both are numbers above nothing and this near to each other.
    fn positive_and_near(&self, tolerance: i64) -> bool {
        self.integers().is_some_and(|(a, b)| a > 0 && b > 0 && a.abs_diff(b) <= tolerance as u64)
    }

    /// Whether one of them is a time that sequences name, in this many to a second: see `words::far_ahead_s`.
    fn names_a_time(&self, per_second: i64) -> bool {
        let named = |reply: &Reply| {
            reply.integer().is_some_and(|time| (4_000_000_000..5_000_000_000).contains(&(time / per_second)))
        };
        named(self.a) || named(self.b)
    }
}

/// What a sequence did before, and may still show.
#[derive(Clone, Copy, Default)]
pub struct Before {
    /// Keys that have lapsed.
    pub lapsed: usize,
    /// Keys that were given an expiry that had passed.
    pub past: usize,
}

/// How far apart two readings of one thing may be on a busy machine.
const TOLERANCE_MS: i64 = 60_000;

pub const NORMALISERS: &[Normaliser] = &[
    Normaliser {
        name: "seconds-left",
        reason: "the two were not asked in the same moment",
        commands: &["ttl"],
        same: |two| two.positive_and_near(TOLERANCE_MS / 1000),
    },
    Normaliser {
        name: "milliseconds-left",
        reason: "the two were not asked in the same moment",
        commands: &["pttl"],
        same: |two| two.positive_and_near(TOLERANCE_MS),
    },
    Normaliser {
        name: "expiry-in-seconds",
        reason: "a time to live was not begun in the same moment; an expiry at a certain time is compared exactly",
        commands: &["expiretime"],
        same: |two| two.positive_and_near(TOLERANCE_MS / 1000) && !two.names_a_time(1),
    },
    Normaliser {
        name: "expiry-in-milliseconds",
        reason: "a time to live was not begun in the same moment; an expiry at a certain time is compared exactly",
        commands: &["pexpiretime"],
        same: |two| two.positive_and_near(TOLERANCE_MS) && !two.names_a_time(1000),
    },
    Normaliser {
        name: "keys-in-any-order",
        reason: "Redis answers them in the order of its hash table, which has a random seed",
        commands: &["keys"],
        same: |two| sorted(two.a).is_some_and(|a| Some(a) == sorted(two.b)),
    },
    Normaliser {
        name: "one-page-of-scan",
        reason: "cursor and keys of a page depend on a hash table, unless it is the only page; whole scans are a step of their own",
        commands: &["scan"],
        same: same_page,
    },
    Normaliser {
        name: "any-key",
        reason: "it is a random one; that it is there is looked at by a step of its own",
        commands: &["randomkey"],
        same: |two| two.each(|key| key.bulk().is_some()),
    },
    Normaliser {
        name: "keys-past-when-set",
        reason: "SET with an expiry that has passed leaves a key in Redis that counts until something comes upon it",
        commands: &["dbsize"],
        same: |two| {
            let past = two.before.past as u64;
            two.integers().is_some_and(|(a, b)| a >= 0 && b >= 0 && a.abs_diff(b) <= past)
        },
    },
    Normaliser {
        name: "time-of-day",
        reason: "the two were not asked in the same moment",
        commands: &["time"],
        same: |two| two.each(is_time),
    },
    Normaliser {
        name: "version-and-id",
        reason: "they are two servers; Hearth says 7.2.4, because clients look at it",
        commands: &["hello"],
        same: |two| {
            let comparable = |reply: &Reply| (std::mem::discriminant(reply), without_version_and_id(reply));
            two.a.parts().is_some() && comparable(two.a) == comparable(two.b)
        },
    },
    Normaliser {
        name: "connection-number",
        reason: "each server counts its own connections",
        commands: &["client|id"],
        same: |two| two.each(|number| number.integer().is_some_and(|number| number > 0)),
    },
    Normaliser {
        name: "idle-seconds",
        reason: "the two were not asked in the same moment",
        commands: &["object|idletime"],
        same: |two| two.each(|seconds| seconds.integer().is_some_and(|seconds| seconds >= 0)),
    },
    Normaliser {
        name: "bytes-of-a-key",
        reason: "it depends on how a server keeps a key in memory; Redis also tells it of a key past its expiry",
        commands: &["memory|usage"],
        same: |two| {
            let is_gone = |reply: &Reply| two.before.past > 0 && matches!(reply, Reply::Nothing(_));
            two.each(|reply| is_gone(reply) || reply.integer().is_some_and(|bytes| bytes > 0))
        },
    },
    Normaliser {
        name: "what-a-command-is",
        reason: "Redis tells subcommands in the order of a hash table; those that only one of the two has are not compared",
        commands: &["command|info"],
        same: same_commands,
    },
];

fn sorted(reply: &Reply) -> Option<Vec<Reply>> {
    let mut parts = reply.parts()?.to_vec();
    parts.sort();
    Some(parts)
}

/// The cursor and the keys of a page.
fn page(reply: &Reply) -> Option<(u64, Vec<Reply>)> {
    let [cursor, keys @ Reply::Array(_)] = reply.parts()? else { return None };
    let cursor = str::from_utf8(cursor.bulk()?).ok()?.parse().ok()?;
    let keys = sorted(keys)?;
    // More than 53 bits would not survive clients that keep numbers as floats; Redis's have no more than its table.
    (cursor < 1 << 53 && keys.iter().all(|key| key.bulk().is_some())).then_some((cursor, keys))
}

fn same_page(two: &Two<'_>) -> bool {
    match (page(two.a), page(two.b)) {
        // Both are the only page, so that nothing is left for another.
        (Some((0, a)), Some((0, b))) if two.request.word(1) == b"0" => a == b,
        (a, b) => a.is_some() && b.is_some(),
    }
}

fn is_time(reply: &Reply) -> bool {
    let numbers = |parts: &[Reply]| {
        let number = |part: &Reply| str::from_utf8(part.bulk()?).ok()?.parse::<u64>().ok();
        parts.iter().map(number).collect::<Option<Vec<u64>>>()
    };
    let read = reply.parts().and_then(numbers);
    read.is_some_and(|read| matches!(read[..], [seconds, micros] if seconds > 1_700_000_000 && micros < 1_000_000))
}

fn without_version_and_id(hello: &Reply) -> Vec<Reply> {
    let mut parts = hello.parts().unwrap_or_default().to_vec();
    for at in 1..parts.len() {
        if [&b"version"[..], b"id"].iter().any(|field| parts[at - 1].bulk() == Some(field)) {
            parts[at] = Reply::Nothing("varies");
        }
    }
    parts
}

/// Whether two tell the same of a command: nine facts, and the subcommands that both have.
fn same_command(a: &Reply, b: &Reply) -> bool {
    let ten = |reply: &'_ Reply| -> Option<(Vec<Reply>, Vec<Reply>)> {
        let parts = reply.parts().filter(|parts| parts.len() == 10)?;
        Some((parts[..9].to_vec(), parts[9].parts()?.to_vec()))
    };
    let name = |subcommand: &Reply| subcommand.parts().and_then(|parts| parts.first().cloned());
    let (Some((a, a_has)), Some((b, b_has))) = (ten(a), ten(b)) else { return a == b };
    a == b && a_has.iter().all(|one| b_has.iter().all(|other| name(one) != name(other) || one == other))
}

fn same_commands(two: &Two<'_>) -> bool {
    let (Some(a), Some(b)) = (two.a.parts(), two.b.parts()) else { return false };
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_command(a, b))
}

/// Whether two replies to a request say the same; names the normaliser if it took one.
pub fn same(request: &Request, a: &Reply, b: &Reply, before: &Before) -> (bool, Option<&'static str>) {
    if a == b {
        return (true, None);
    }
    let command = command(request);
    let judge = NORMALISERS.iter().find(|normaliser| normaliser.commands.contains(&command));
    judge.map_or((false, None), |judge| ((judge.same)(&Two { request, a, b, before }), Some(judge.name)))
}

#[test]
fn every_normaliser_has_a_name_of_its_own_and_a_reason() {
    let mut names: Vec<&str> = NORMALISERS.iter().map(|normaliser| normaliser.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), NORMALISERS.len());
    assert!(NORMALISERS.iter().all(|normaliser| !normaliser.reason.is_empty()));
}

#[test]
fn what_could_be_the_same_bytes_must_be() {
    let judge = |text: &str, a: &[u8], b: &[u8], before: &Before| {
        same(&Request::of(text.split(' ')), &Reply::of(a), &Reply::of(b), before).0
    };
    let never = Before::default();
    assert!(judge("PTTL k", b":5000\r\n", b":4990\r\n", &never));
    assert!(!judge("PTTL k", b":5000\r\n", b":-1\r\n", &never));
    assert!(!judge("TTL k", b":5000\r\n", b":4930\r\n", &never));
    assert!(!judge("PEXPIRETIME k", b":4200000000001\r\n", b":4200000000000\r\n", &never));
    assert!(judge("PEXPIRETIME k", b":1800000000001\r\n", b":1800000000000\r\n", &never));
    assert!(judge("KEYS *", b"*2\r\n$1\r\na\r\n$1\r\nb\r\n", b"*2\r\n$1\r\nb\r\n$1\r\na\r\n", &never));
    assert!(!judge("MGET a b", b"*2\r\n$1\r\na\r\n$1\r\nb\r\n", b"*2\r\n$1\r\nb\r\n$1\r\na\r\n", &never));
    assert!(!judge("KEYS *", b"*1\r\n$1\r\na\r\n", b"*1\r\n$1\r\nb\r\n", &never));
    assert!(!judge("DBSIZE", b":1\r\n", b":0\r\n", &never));
    assert!(judge("DBSIZE", b":1\r\n", b":0\r\n", &Before { lapsed: 0, past: 1 }));
    assert!(!judge("GET k", b"$-1\r\n", b"_\r\n", &never));
}
