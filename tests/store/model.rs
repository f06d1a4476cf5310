//! The oracle: a plain map, and the history of staged batches it must be a prefix of.
//!
//! All writes of a shard are in one log, so after any crash the whole state must equal the plain map after some prefix of
//! the staged batches; a batch is whole or absent, so the prefix ends between two batches. Everything promised is in it,
//! nothing refused is. Must never know a file or the code it judges.

use std::collections::BTreeMap;

use hearth::core::op::{Condition, Expiry};
use hearth::core::types::Millis;

/// What a key holds, lapsed or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub revision: u64,
    pub expires_at: Millis,
    pub value: Vec<u8>,
}

pub type State = BTreeMap<Vec<u8>, Held>;

/// One staged record.
#[derive(Clone, Debug)]
pub enum Change {
    Put { key: Vec<u8>, held: Held },
    Delete { key: Vec<u8> },
    Clear,
}

/// What one batch of the log makes of the state.
#[derive(Clone, Debug)]
pub struct Batch {
    pub first_offset: u64,
    pub last_offset: u64,
    pub changes: Vec<Change>,
    /// When its writers were told that it is applied.
    pub acknowledged_at: Option<Millis>,
}

pub fn apply(state: &mut State, changes: &[Change]) {
    for change in changes {
        match change {
            Change::Put { key, held } => {
                state.insert(key.clone(), held.clone());
            }
            Change::Delete { key } => {
                state.remove(key);
            }
            Change::Clear => state.clear(),
        }
    }
}

/// The live value of a key.
pub fn live<'s>(state: &'s State, key: &[u8], now: Millis) -> Option<&'s Held> {
    state.get(key).filter(|held| !held.expires_at.has_lapsed(now))
}

/// What a write asks for, in the model's own words.
#[derive(Clone, Debug)]
pub struct Ask {
    pub key: Vec<u8>,
    /// `None` deletes.
    pub value: Option<Vec<u8>>,
    pub expiry: Expiry,
    pub condition: Condition,
}

/// What the plain map makes of a write: whether its condition holds, and the record it takes, if any.
pub fn decide(state: &State, ask: &Ask, offset: u64, now: Millis) -> (bool, Option<Change>) {
    let previous = live(state, &ask.key, now);
    let held = match ask.condition {
        Condition::Always => true,
        Condition::Absent => previous.is_none(),
        Condition::Present => previous.is_some(),
        Condition::Revision(revision) => previous.map_or(0, |held| held.revision) == revision.0,
    };
    let expires_at = match ask.expiry {
        Expiry::Never => Millis::NEVER,
        Expiry::At(at) => at,
        Expiry::Keep => previous.map_or(Millis::NEVER, |held| held.expires_at),
    };
    let key = ask.key.clone();
    let change = match &ask.value {
        _ if !held => None,
        Some(value) if !expires_at.has_lapsed(now) => {
            Some(Change::Put { key, held: Held { revision: offset, expires_at, value: value.clone() } })
        }
        _ => previous.is_some().then_some(Change::Delete { key }),
    };
    (held, change)
}

/// Every batch that may be in the log, in order, and how much of it must be.
#[derive(Clone, Debug, Default)]
pub struct History {
    pub batches: Vec<Batch>,
    /// This many batches were served from a flushed log, so nothing may take them back.
    pub floor: usize,
}

impl History {
    /// How many batches must survive a crash at `now`: all that were acknowledged at least `grace_ms`
    /// ago, and the floor.
    pub fn promised(&self, now: Millis, grace_ms: Option<u64>) -> usize {
        let due = |batch: &Batch| grace_ms.zip(batch.acknowledged_at).is_some_and(|(grace, at)| at.0 + grace <= now.0);
        self.batches.iter().rposition(due).map_or(0, |at| at + 1).max(self.floor)
    }

    /// How many batches `found` is the state after; the longest such prefix.
    pub fn prefix_of(&self, found: &State) -> Option<usize> {
        let mut state = State::new();
        let mut longest = state.eq(found).then_some(0);
        for (number, batch) in self.batches.iter().enumerate() {
            apply(&mut state, &batch.changes);
            if state == *found {
                longest = Some(number + 1);
            }
        }
        longest
    }

    /// Why `found` is no prefix, for a failing test's message.
    pub fn nearest(&self, found: &State) -> String {
        let newest = found.values().map(|held| held.revision).max().unwrap_or(0);
        let mut state = State::new();
        for batch in self.batches.iter().take_while(|batch| batch.first_offset <= newest) {
            apply(&mut state, &batch.changes);
        }
        let name = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
        let brief = |held: Option<&Held>| held.map(|held| (held.revision, held.value.len(), held.expires_at.0));
        let keys = state.keys().chain(found.keys()).filter(|key| state.get(*key) != found.get(*key));
        let differences: Vec<String> = keys
            .map(|key| {
                format!("{}: expected {:?}, found {:?}", name(key), brief(state.get(key)), brief(found.get(key)))
            })
            .collect();
        format!("newest revision found is {newest}; (revision, bytes, expiry) by key: {}", differences.join("; "))
    }
}
