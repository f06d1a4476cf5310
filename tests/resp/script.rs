//! Scripts: what is sent, and where the expected replies come from.
//!
//! Promise: a reply that does not depend on Hearth is redis-server's own, recorded by sending the same script; one that
//! differs on purpose stands beside its script with the reason. Must never know which commands there are.

#![expect(clippy::disallowed_methods, reason = "the recording is a file of the source tree, not data of the broker")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use crate::client::{Client, bulk, request};
use crate::redis::Redis;

/// Where the reply to compare with comes from.
pub enum Expected {
    /// From redis-server.
    Recorded,
    /// Hearth's own, because of the reason.
    Own(Vec<u8>, &'static str),
}

/// Bytes sent on a new connection, and the bytes that must come back.
pub struct Script {
    pub name: &'static str,
    pub sent: Vec<u8>,
    pub expected: Expected,
    /// Whether a last request follows that shows whether the connection stays.
    pub probed: bool,
    /// Whether the connection is closed without a protocol error.
    pub closes: bool,
}

impl Script {
    /// Requests as text: words between blanks, requests between `|`; `''` is an empty word.
    pub fn of(name: &'static str, text: &str) -> Self {
        let requests = text.split(" | ").map(|line| request(line.split(' ').map(word).collect::<Vec<_>>()));
        Self::raw(name, requests.collect::<Vec<_>>().concat())
    }

    /// Bytes as they are.
    pub fn raw(name: &'static str, sent: impl Into<Vec<u8>>) -> Self {
        Self { name, sent: sent.into(), expected: Expected::Recorded, probed: true, closes: false }
    }

    /// Hearth answers something else than Redis, because of `reason`.
    pub fn differs(mut self, reply: impl Into<Vec<u8>>, reason: &'static str) -> Self {
        self.expected = Expected::Own(reply.into(), reason);
        self
    }

    /// Closes the connection without an error that says so.
    pub fn closing(mut self) -> Self {
        self.closes = true;
        self
    }

    /// Nothing may follow the script, or it would mean something else.
    pub fn unprobed(mut self) -> Self {
        self.probed = false;
        self
    }
}

fn word(text: &str) -> &str {
    if text == "''" { "" } else { text }
}

const PROBE: &str = "still there";

/// What is sent behind a script, and comes back only while the connection stays.
pub fn probe() -> (Vec<u8>, Vec<u8>) {
    (request(["ECHO", PROBE]), bulk(PROBE.as_bytes()))
}

/// Sends `pieces` as a write each and gives what comes back until the connection's last word.
pub fn converse<'a>(client: &mut Client, pieces: impl IntoIterator<Item = &'a [u8]>, probed: bool) -> Vec<u8> {
    let (asked, answered) = probe();
    let mut waiting: &[u8] = b"";
    for piece in pieces {
        client.try_send(waiting);
        waiting = piece;
    }
    // The probe goes with the last piece: what follows at once is what a scanner could get wrong.
    client.try_send(&if probed { [waiting, &asked].concat() } else { waiting.to_vec() });
    masked(client.until(&answered))
}

/// Numbers that change from run to run, and the versions, are not compared.
pub fn masked(reply: Vec<u8>) -> Vec<u8> {
    let mut masked = Vec::with_capacity(reply.len());
    let mut rest = reply.as_slice();
    while let Some(byte) = rest.first() {
        let varies = [(&b"id\r\n:"[..], &b"\r\n"[..]), (b"version\r\n$", b"\r\n$5\r\nproto")]
            .into_iter()
            .find(|(before, _)| rest.starts_with(before));
        let end = varies.and_then(|(before, after)| {
            let at = rest.windows(after.len()).skip(before.len()).position(|window| window == after)?;
            Some((before, before.len() + at))
        });
        if let Some((before, end)) = end {
            masked.extend_from_slice(before);
            masked.push(b'#');
            rest = &rest[end..];
        } else {
            masked.push(*byte);
            rest = &rest[1..];
        }
    }
    masked
}

/// A script longer than this is not written down, only its reply.
pub const LONG_BYTES: usize = 4096;

/// Longer bytes are not written down line by line.
const MANY_BYTES: usize = 512;

/// What redis-server answers to scripts, by their names: what was sent and what came back.
pub type Recording = BTreeMap<String, (Vec<u8>, Vec<u8>)>;

fn recorded_file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/resp/recorded.txt")
}

/// Reads `recorded.txt`: `[name]`, then lines that begin with `> ` (sent) or `< ` (came back), escaped.
pub fn recording() -> Recording {
    let text = std::fs::read_to_string(recorded_file()).unwrap();
    let mut recording = Recording::new();
    let mut name = String::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(rest) = line.strip_prefix('[') {
            name = rest.strip_suffix(']').unwrap().to_owned();
            recording.insert(name.clone(), Default::default());
        } else if let Some(sent) = line.strip_prefix("> ") {
            recording.get_mut(&name).unwrap().0.extend(unescaped(sent));
        } else if let Some(reply) = line.strip_prefix("< ") {
            recording.get_mut(&name).unwrap().1.extend(unescaped(reply));
        }
    }
    recording
}

/// Sends every script to a redis-server of its own and writes down what it answers.
pub fn record(scripts: &[Script], clean: impl Fn(&mut Client)) {
    let redis = Redis::start();
    let mut text = String::from("# Written by `HEARTH_RECORD=1 cargo test --test resp record`; not to be edited.\n");
    for script in scripts.iter().filter(|script| matches!(script.expected, Expected::Recorded)) {
        clean(&mut Client::connect(redis.address));
        let reply = converse(&mut Client::connect(redis.address), [script.sent.as_slice()], script.probed);
        let _ = write!(text, "\n[{}]\n", script.name);
        for (mark, bytes) in [('>', &script.sent), ('<', &reply)] {
            if mark == '>' && bytes.len() > LONG_BYTES {
                let _ = writeln!(text, "# {mark} {} bytes", bytes.len());
                continue;
            }
            // A line each, so that a change is seen where it is; what is long, as much on a line as it takes.
            let by_lines = bytes.len() <= MANY_BYTES;
            for line in bytes.split_inclusive(|byte| by_lines && *byte == b'\n') {
                for part in line.chunks(200) {
                    let _ = writeln!(text, "{mark} {}", part.escape_ascii());
                }
            }
        }
    }
    std::fs::write(recorded_file(), text).unwrap();
}

/// The reverse of `escape_ascii`.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    loop {
        let (byte, tail) = match rest {
            [] => return bytes,
            [b'\\', b'x', high, low, tail @ ..] => {
                (u8::from_str_radix(str::from_utf8(&[*high, *low]).unwrap(), 16).unwrap(), tail)
            }
            [b'\\', b'r', tail @ ..] => (b'\r', tail),
            [b'\\', b'n', tail @ ..] => (b'\n', tail),
            [b'\\', b't', tail @ ..] => (b'\t', tail),
            [b'\\', other, tail @ ..] => (*other, tail),
            [other, tail @ ..] => (*other, tail),
        };
        bytes.push(byte);
        rest = tail;
    }
}

#[test]
fn what_is_escaped_is_read_back() {
    let all: Vec<u8> = (0..=255).collect();
    assert_eq!(unescaped(&all.escape_ascii().to_string()), all);
}
