//! What one writer sent and was told, over many keys: the only writer of its keys, over one connection at a time.
//!
//! Every put has a version of its own, and its value follows from key and version. A write that was refused did not happen;
//! one that was never answered may have, but only if all that were sent before it did (see `oracle`, which does the same
//! for few keys and values of all lengths). Must never know how or why a broker died or refused.

use std::collections::{BTreeMap, VecDeque};

use crate::support::{Client, Random, Reply};

/// Read back in pipelines of this many bytes.
const READ_BYTES: usize = 1 << 20;

/// No value.
const ABSENT: u32 = 0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Write {
    key: u32,
    version: u32,
}

/// What became of the oldest write without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Done,
    /// With the error's text.
    Refused(String),
}

pub struct Ledger {
    owner: u32,
    key_bytes: usize,
    value_bytes: usize,
    newest: u32,
    /// The version that each key has, as far as it was told.
    settled: Vec<u32>,
    open: VecDeque<Write>,
}

/// What a comparison saw; a test asserts that it saw something.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seen {
    pub present: u64,
    pub absent: u64,
    pub unknown: u64,
    pub unknown_that_happened: u64,
}

impl Ledger {
    /// Of keys `0..keys`, whose names have at least `key_bytes`.
    pub fn new(owner: u32, keys: u32, key_bytes: usize, value_bytes: usize) -> Self {
        let settled = vec![ABSENT; keys as usize];
        Self { owner, key_bytes, value_bytes, newest: ABSENT, settled, open: VecDeque::new() }
    }

    pub fn keys(&self) -> u32 {
        u32::try_from(self.settled.len()).expect("made from a u32")
    }

    /// Writes without an answer.
    pub fn unanswered(&self) -> usize {
        self.open.len()
    }

    pub fn present(&self) -> impl Iterator<Item = u32> {
        (0..self.keys()).filter(|key| self.settled[*key as usize] != ABSENT)
    }

    pub fn name(&self, key: u32) -> Vec<u8> {
        let mut name = format!("{}:{key}:", self.owner).into_bytes();
        name.resize(name.len().max(self.key_bytes), b'k');
        name
    }

    /// `owner.key.version|` and noise that depends on all three.
    fn value(&self, write: Write) -> Vec<u8> {
        let Write { key, version } = write;
        let mut bytes = Vec::with_capacity(self.value_bytes + 32);
        bytes.extend_from_slice(format!("{}.{key}.{version}|", self.owner).as_bytes());
        let mut noise = Random::new((u64::from(self.owner) << 56) ^ (u64::from(key) << 32) ^ u64::from(version));
        while bytes.len() < self.value_bytes {
            bytes.extend_from_slice(&noise.draw().to_le_bytes());
        }
        bytes.truncate(self.value_bytes);
        bytes
    }

    /// Adds a SET of a version that nobody had yet. It counts as sent from here on.
    pub fn put(&mut self, client: &mut Client, key: u32) {
        self.newest += 1;
        let write = Write { key, version: self.newest };
        client.queue(&[b"SET", &self.name(key), &self.value(write)]);
        self.open.push_back(write);
    }

    /// Adds a DEL.
    pub fn delete(&mut self, client: &mut Client, key: u32) {
        client.queue(&[b"DEL", &self.name(key)]);
        self.open.push_back(Write { key, version: ABSENT });
    }

    /// Takes the reply to the oldest write without one.
    pub fn answer(&mut self, reply: Reply) -> Answer {
        let write = self.open.pop_front().expect("a reply to something sent");
        let settled = &mut self.settled[write.key as usize];
        let expected = match write.version {
            ABSENT => Reply::Integer(i64::from(*settled != ABSENT)),
            _ => Reply::Simple(b"OK".to_vec()),
        };
        match reply {
            reply if reply == expected => {
                *settled = write.version;
                Answer::Done
            }
            Reply::Error(text) if text.starts_with(b"MISCONF ") || text.starts_with(b"OOM ") => {
                Answer::Refused(String::from_utf8_lossy(&text).into_owned())
            }
            other => panic!("{write:?} of owner {} got {other:?}, not {expected:?}", self.owner),
        }
    }

    /// Puts many keys and waits for the answers; gives how many were done, and the first refusal.
    pub fn put_all(&mut self, client: &mut Client, keys: impl Iterator<Item = u32>) -> (u64, Option<String>) {
        self.write_all(client, keys, Self::put)
    }

    pub fn delete_all(&mut self, client: &mut Client, keys: impl Iterator<Item = u32>) -> (u64, Option<String>) {
        self.write_all(client, keys, Self::delete)
    }

    /// In pipelines of about a quarter of a megabyte; stops behind the first that had a refusal.
    fn write_all(
        &mut self,
        client: &mut Client,
        keys: impl Iterator<Item = u32>,
        write: impl Fn(&mut Self, &mut Client, u32),
    ) -> (u64, Option<String>) {
        let depth = (READ_BYTES / 4 / (self.key_bytes + self.value_bytes + 64)).clamp(1, 256);
        let mut keys = keys.peekable();
        let (mut done, mut refused) = (0, None);
        while keys.peek().is_some() && refused.is_none() {
            keys.by_ref().take(depth).for_each(|key| write(self, client, key));
            client.flush().expect("sending a pipeline");
            while self.unanswered() > 0 {
                match self.answer(client.read().expect("a reply to every write")) {
                    Answer::Done => done += 1,
                    Answer::Refused(text) => drop(refused.get_or_insert(text)),
                }
            }
        }
        (done, refused)
    }

    /// Everything was removed, and that was acknowledged.
    pub fn was_cleared(&mut self) {
        assert_eq!(self.unanswered(), 0, "a clear among writes without an answer");
        self.settled.fill(ABSENT);
    }

    /// Reads every key, and settles what was open: it must be what the keys show.
    pub fn check(&mut self, client: &mut Client, when: &str) -> Seen {
        let found = self.read_back(client, when);
        let open: BTreeMap<u32, u32> =
            self.open.iter().map(|write| (write.key, self.settled[write.key as usize])).collect();
        for (key, version) in (0..).zip(&found) {
            let settled = self.settled[key as usize];
            let possible = *version == settled || self.open.contains(&Write { key, version: *version });
            assert!(
                possible,
                "{when}: key {key} of owner {} has version {version}, but {settled} was acknowledged (0: absent), later without an answer {:?}",
                self.owner,
                self.open.iter().filter(|write| write.key == key).collect::<Vec<_>>()
            );
        }
        let cut = (0..=self.open.len()).find(|cut| {
            let mut state = open.clone();
            state.extend(self.open.iter().take(*cut).map(|write| (write.key, write.version)));
            state.iter().all(|(key, version)| found[*key as usize] == *version)
        });
        let Some(cut) = cut else {
            panic!("{when}: a later write of owner {} survived without an earlier one: {:?}", self.owner, self.open)
        };
        let unknown = self.open.len() as u64;
        self.open.clear();
        self.settled = found;
        let present = self.present().count() as u64;
        Seen { present, absent: u64::from(self.keys()) - present, unknown, unknown_that_happened: cut as u64 }
    }

    /// Reads every key while nobody writes: each is as it was told.
    pub fn agrees(&self, client: &mut Client, when: &str) {
        assert_eq!(self.unanswered(), 0, "{when}: somebody writes");
        assert!(self.read_back(client, when) == self.settled, "{when}: not what was acknowledged");
    }

    /// Whether this is the value that a key was given, to the byte.
    pub fn is_value(&self, key: u32, value: &[u8], when: &str) {
        assert_eq!(self.version_of(key, value, when), self.settled[key as usize], "{when}: another value of key {key}");
    }

    /// The version of each key; each value is that version's to the byte.
    fn read_back(&self, client: &mut Client, when: &str) -> Vec<u32> {
        let depth = (READ_BYTES / (self.key_bytes + self.value_bytes + 64)).clamp(1, 256) as u32;
        let mut found = Vec::with_capacity(self.settled.len());
        let mut next = 0;
        while next < self.keys() {
            let end = self.keys().min(next + depth);
            (next..end).for_each(|key| client.queue(&[b"GET", &self.name(key)]));
            client.flush().expect("sending GETs");
            for key in next..end {
                match client.read() {
                    Ok(Reply::Bulk(value)) => {
                        found.push(value.map_or(ABSENT, |value| self.version_of(key, &value, when)))
                    }
                    other => panic!("{when}: GET of key {key} of owner {} got {other:?}", self.owner),
                }
            }
            next = end;
        }
        found
    }

    fn version_of(&self, key: u32, value: &[u8], when: &str) -> u32 {
        let head = value.split(|byte| *byte == b'|').next().unwrap_or_default();
        let version = std::str::from_utf8(head).ok().and_then(|head| head.rsplit('.').next()?.parse().ok());
        let version = version.filter(|version| self.value(Write { key, version: *version }) == value);
        version.unwrap_or_else(|| {
            panic!(
                "{when}: key {key} of owner {} has a value nobody wrote: {}",
                self.owner,
                value[..value.len().min(60)].escape_ascii()
            )
        })
    }
}

impl Seen {
    pub fn add(&mut self, other: Self) {
        self.present += other.present;
        self.absent += other.absent;
        self.unknown += other.unknown;
        self.unknown_that_happened += other.unknown_that_happened;
    }
}
