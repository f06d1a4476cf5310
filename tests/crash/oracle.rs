//! What a broker may hold after a crash, told from what was sent and what was acknowledged.
//!
//! A line is the writes of one writer: the only one on its keys, over one connection at a time. So the broker must hold
//! the line cut somewhere between its last acknowledged write and its last sent one:
//!
//! ```text
//! sent          1 2 3 4 5 6 7 8
//! acknowledged  1 2 3 4              settled: what the keys are after 4
//! open                  5 6 7 8      unknown: each may have happened, but 7 only if 5 and 6 did
//! ```
//!
//! What a restarted broker showed is settled from then on, whether it had been acknowledged or not: it was served, so
//! it may not go away in the next crash. Must never know how or why the broker died.

use std::collections::{BTreeMap, VecDeque};

use crate::support::{Client, Random, Reply};

/// Few keys, so that most writes overwrite or delete one that was acknowledged before.
const KEYS_PER_LINE: u64 = 64;
const MAX_VALUE: u64 = 8 * 1024;
/// Read back in pipelines of this many GETs.
const READ_DEPTH: usize = 64;

/// Which write a value comes from; the value's bytes follow from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    round: u32,
    writer: u32,
    sequence: u64,
    length: usize,
}

/// One write: a SET with its stamp, or a DEL.
#[derive(Debug, Clone, Copy)]
pub struct Write {
    pub key: u64,
    pub value: Option<Stamp>,
}

/// What a line may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    SetsAndDels,
    SetsOnly,
}

/// The writes of one writer.
pub struct Line {
    writer: u32,
    sequence: u64,
    settled: BTreeMap<u64, Option<Stamp>>,
    open: VecDeque<Write>,
}

/// What a comparison saw; a test asserts that it saw something.
#[derive(Debug, Clone, Copy, Default)]
pub struct Checked {
    pub keys: u64,
    pub present: u64,
    pub unknown: u64,
    pub unknown_that_happened: u64,
}

type Found = BTreeMap<u64, Option<Vec<u8>>>;

impl Stamp {
    /// `round.writer.sequence.length|` and noise that depends on all four; the shortest values are noise alone.
    pub fn bytes(self) -> Vec<u8> {
        let head = format!("{}.{}.{}.{}|", self.round, self.writer, self.sequence, self.length);
        let mut noise = Random::new((u64::from(self.round) << 48) ^ (u64::from(self.writer) << 40) ^ self.sequence);
        let mut bytes = if self.length > head.len() { head.into_bytes() } else { Vec::new() };
        while bytes.len() < self.length {
            bytes.extend_from_slice(&noise.draw().to_le_bytes());
        }
        bytes.truncate(self.length);
        bytes
    }
}

impl Line {
    pub fn new(writer: u32) -> Self {
        Self { writer, sequence: 0, settled: BTreeMap::new(), open: VecDeque::new() }
    }

    pub fn key_name(&self, key: u64) -> Vec<u8> {
        format!("crash:{}:{key}", self.writer).into_bytes()
    }

    /// Draws the next write. It counts as sent from here on.
    pub fn next(&mut self, round: u32, mix: Mix, random: &mut Random) -> Write {
        self.sequence += 1;
        let key = random.between(0, KEYS_PER_LINE);
        let value = if mix == Mix::SetsAndDels && random.one_in(6) {
            None
        } else {
            let bits = random.between(0, u64::from(MAX_VALUE.ilog2()) + 1);
            let length = random.between(1, (1 << bits) + 1);
            let length = usize::try_from(length).expect("at most 8 KiB");
            Some(Stamp { round, writer: self.writer, sequence: self.sequence, length })
        };
        let write = Write { key, value };
        self.open.push_back(write);
        write
    }

    /// What the reply to the oldest unanswered write must be: nobody else touches these keys.
    pub fn expected_reply(&self) -> Reply {
        let write = self.open.front().expect("a reply to something sent");
        let present = self.settled.get(&write.key).is_some_and(Option::is_some);
        match write.value {
            Some(_) => Reply::Simple(b"OK".to_vec()),
            None => Reply::Integer(i64::from(present)),
        }
    }

    /// The oldest unanswered write was acknowledged: it must survive from here on.
    pub fn acknowledge(&mut self) {
        let write = self.open.pop_front().expect("a reply to something sent");
        self.settled.insert(write.key, write.value);
    }

    /// Compares with what a restarted broker holds and takes that as settled.
    fn settle(&mut self, found: &Found) -> Result<Checked, String> {
        self.each_key_is_possible(found)?;
        let happened = (0..=self.open.len()).find(|happened| self.is_cut_at(*happened, found));
        let Some(happened) = happened else { return Err(self.hole(found)) };
        let unknown = self.open.len() as u64;
        for write in self.open.drain(..).take(happened) {
            self.settled.insert(write.key, write.value);
        }
        let present = found.values().flatten().count() as u64;
        Ok(Checked { keys: found.len() as u64, present, unknown, unknown_that_happened: happened as u64 })
    }

    /// Each key by itself: the last acknowledged write or a later one.
    fn each_key_is_possible(&self, found: &Found) -> Result<(), String> {
        for (key, value) in found {
            let settled = self.settled.get(key).copied().flatten();
            let later: Vec<Option<Stamp>> =
                self.open.iter().filter(|write| write.key == *key).map(|write| write.value).collect();
            let possible = |stamp: &Option<Stamp>| stamp.map(Stamp::bytes) == *value;
            if !possible(&settled) && !later.iter().any(possible) {
                return Err(format!(
                    "{} holds {}, but {} was acknowledged (or read after a restart) and later writes without an answer were {:?}",
                    String::from_utf8_lossy(&self.key_name(*key)),
                    describe(value.as_deref()),
                    settled.map_or("its absence".to_owned(), |stamp| format!("{stamp:?}")),
                    later,
                ));
            }
        }
        Ok(())
    }

    /// All keys together: the settled state and the first `happened` open writes, nothing of the rest.
    fn is_cut_at(&self, happened: usize, found: &Found) -> bool {
        let mut state: BTreeMap<u64, Option<Stamp>> = self.settled.clone();
        state.extend(self.open.iter().take(happened).map(|write| (write.key, write.value)));
        found.iter().all(|(key, value)| state.get(key).copied().flatten().map(Stamp::bytes) == *value)
    }

    fn hole(&self, found: &Found) -> String {
        let values: Vec<String> = self
            .open
            .iter()
            .map(|write| {
                format!("{write:?}, the key holds {}", describe(found.get(&write.key).and_then(Option::as_deref)))
            })
            .collect();
        format!(
            "writer {}: a later write of the connection survived without an earlier one; open writes in order:\n{}",
            self.writer,
            values.join("\n")
        )
    }

    fn read_back(&self, client: &mut Client) -> Found {
        let mut keys: Vec<u64> = self.settled.keys().copied().chain(self.open.iter().map(|write| write.key)).collect();
        keys.sort_unstable();
        keys.dedup();
        let mut found = Found::new();
        for some in keys.chunks(READ_DEPTH) {
            for key in some {
                client.queue(&[b"GET", &self.key_name(*key)]);
            }
            client.flush().expect("sending GETs");
            for key in some {
                match client.read() {
                    Ok(Reply::Bulk(value)) => found.insert(*key, value),
                    other => panic!("GET {} got {other:?}", String::from_utf8_lossy(&self.key_name(*key))),
                };
            }
        }
        found
    }
}

/// Reads every key of every line from a restarted broker, and counts its keys so that none is there that nobody wrote.
pub fn check(client: &mut Client, lines: &mut [Line], when: &str) -> Checked {
    let mut sum = Checked::default();
    for line in lines.iter_mut() {
        let found = line.read_back(client);
        let seen = line.settle(&found).unwrap_or_else(|what| panic!("{when}: {what}"));
        sum.add(seen);
    }
    let size = client.call(&[b"DBSIZE"]).expect("DBSIZE");
    assert_eq!(size, Reply::Integer(sum.present.cast_signed()), "{when}: DBSIZE against the keys read");
    sum
}

impl Checked {
    pub fn add(&mut self, other: Self) {
        self.keys += other.keys;
        self.present += other.present;
        self.unknown += other.unknown;
        self.unknown_that_happened += other.unknown_that_happened;
    }
}

fn describe(value: Option<&[u8]>) -> String {
    value.map_or("nothing".to_owned(), |bytes| {
        format!("{} bytes \"{}\"", bytes.len(), bytes[..bytes.len().min(40)].escape_ascii())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line with one acknowledged write and two open ones on other keys, and what a broker holds if the marked ones
    /// happened.
    fn settle(acknowledged: bool, first_open: bool, second_open: bool) -> Result<Checked, String> {
        let stamp = |sequence| Stamp { round: 0, writer: 0, sequence, length: 50 };
        let mut line = Line::new(0);
        line.open.extend((0..3).map(|key| Write { key, value: Some(stamp(key)) }));
        line.acknowledge();
        let happened = [acknowledged, first_open, second_open];
        let found = (0..3).zip(happened).map(|(key, happened)| (key, happened.then(|| stamp(key).bytes()))).collect();
        line.settle(&found)
    }

    #[test]
    fn an_open_write_may_go_either_way_and_an_acknowledged_one_may_not() {
        for (open, happened) in [([false, false], 0), ([true, false], 1), ([true, true], 2)] {
            let checked = settle(true, open[0], open[1]).expect("a possible state");
            assert_eq!((checked.unknown, checked.unknown_that_happened), (2, happened));
        }
        assert!(settle(false, false, false).is_err_and(|what| what.contains("was acknowledged")));
    }

    #[test]
    fn a_later_write_without_an_earlier_one_is_a_hole() {
        assert!(settle(true, false, true).is_err_and(|what| what.contains("without an earlier one")));
    }

    #[test]
    fn values_have_their_length_and_differ() {
        for length in [1, 2, 10, 100, 8192] {
            let bytes = |sequence| Stamp { round: 1, writer: 2, sequence, length }.bytes();
            assert_eq!(bytes(3).len(), length);
            assert_ne!(bytes(3), bytes(5), "length {length}");
        }
    }
}
