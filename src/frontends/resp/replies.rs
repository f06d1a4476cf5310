//! The replies of one round of requests, in request order, some of them not yet allowed to leave.
//!
//! Promise: what leaves is in request order; a held reply leaves as it was written only if what it waits for was
//! applied, else as the error that says what became of it. Must never know a command.

use std::ops::Range;

use crate::core::api::{Fate, Hold};
use crate::core::error::ReadError;
use crate::core::shard::read::Pinned;
use crate::frontends::resp::encode::{Protocol, Reply};
use crate::frontends::resp::error;

/// A value that could not be read without waiting for the disk; its reply goes to `at`.
pub struct ColdValue {
    at: usize,
    pub pinned: Pinned,
    pub key: Box<[u8]>,
    protocol: Protocol,
}

struct Held {
    reply: Range<usize>,
    hold: Hold,
    protocol: Protocol,
}

/// Replies being gathered.
#[derive(Default)]
pub struct Replies {
    out: Vec<u8>,
    /// Where the reply being written begins.
    begun: usize,
    /// What the reply being written waits for.
    holds: Vec<Hold>,
    held: Vec<Held>,
    pub cold: Vec<ColdValue>,
    /// Error replies written.
    pub errors: u64,
}

/// How many bytes of room are kept from one round to the next.
const KEPT_BYTES: usize = 64 * 1024;

impl Replies {
    /// Forgets what left.
    pub fn clear(&mut self) {
        if self.out.capacity() > KEPT_BYTES {
            self.out = Vec::new();
        }
        self.out.clear();
        self.holds.clear();
        self.held.clear();
        self.cold.clear();
        self.begun = 0;
        self.errors = 0;
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.out.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.out
    }

    /// Begins the reply to the next request.
    pub fn begin(&mut self) {
        self.begun = self.out.len();
        self.holds.clear();
    }

    /// Takes back what was written of the reply begun last: its request will be run again.
    pub fn take_back(&mut self) {
        self.out.truncate(self.begun);
        self.cold.retain(|cold| cold.at < self.begun);
        self.holds.clear();
    }

    /// Writes to the reply begun last.
    pub fn writer(&mut self, protocol: Protocol) -> Reply<'_> {
        Reply::new(&mut self.out, protocol)
    }

    /// Writes an error as the reply, or as a part of it.
    pub fn error(&mut self, protocol: Protocol, text: &str) {
        self.errors += 1;
        self.writer(protocol).error(text);
    }

    /// The reply begun last may leave only when this is applied.
    pub fn hold(&mut self, hold: impl IntoIterator<Item = Hold>) {
        for hold in hold {
            match self.holds.iter_mut().find(|known| known.shard == hold.shard) {
                Some(known) => known.offset = known.offset.max(hold.offset),
                None => self.holds.push(hold),
            }
        }
    }

    /// A value that has to be waited for stands here in the reply.
    pub fn cold(&mut self, protocol: Protocol, pinned: Pinned, key: &[u8]) {
        self.cold.push(ColdValue { at: self.out.len(), pinned, key: key.into(), protocol });
    }

    /// Ends the reply begun last.
    pub fn end(&mut self, protocol: Protocol) {
        let reply = self.begun..self.out.len();
        self.held.extend(self.holds.drain(..).map(|hold| Held { reply: reply.clone(), hold, protocol }));
    }

    /// For each shard the newest record any reply waits for.
    #[must_use]
    pub fn newest_holds(&self) -> Vec<Hold> {
        let mut newest: Vec<Hold> = Vec::new();
        for Held { hold, .. } in &self.held {
            match newest.iter_mut().find(|known| known.shard == hold.shard) {
                Some(known) => known.offset = known.offset.max(hold.offset),
                None => newest.push(*hold),
            }
        }
        newest
    }

    /// Puts values that were waited for in their places, and errors in the places of replies whose ground was lost.
    pub fn patch(&mut self, values: Vec<Result<Vec<u8>, ReadError>>, mut fate_of: impl FnMut(Hold) -> Fate) {
        let mut patches: Vec<(Range<usize>, Vec<u8>)> = Vec::new();
        for Held { reply, hold, protocol } in &self.held {
            let fate = fate_of(*hold);
            if fate != Fate::Applied && patches.last().is_none_or(|(patched, _)| patched != reply) {
                let mut bytes = Vec::new();
                Reply::new(&mut bytes, *protocol).error(&error::of_fate(fate));
                self.errors += 1;
                patches.push((reply.clone(), bytes));
            }
        }
        let lost: Vec<Range<usize>> = patches.iter().map(|(range, _)| range.clone()).collect();
        for (cold, value) in self.cold.iter().zip(values) {
            if lost.iter().any(|range| range.contains(&cold.at)) {
                continue;
            }
            let mut bytes = Vec::new();
            let mut reply = Reply::new(&mut bytes, cold.protocol);
            match value {
                Ok(value) => reply.bulk(&value),
                Err(fault) => {
                    self.errors += 1;
                    reply.error(&error::of_read(&fault));
                }
            }
            patches.push((cold.at..cold.at, bytes));
        }
        patches.sort_by_key(|(range, _)| range.start);
        let mut patched = Vec::with_capacity(self.out.len());
        let mut from = 0;
        for (range, bytes) in patches {
            patched.extend_from_slice(&self.out[from..range.start]);
            patched.extend_from_slice(&bytes);
            from = range.end;
        }
        patched.extend_from_slice(&self.out[from..]);
        self.out = patched;
        self.cold.clear();
        self.held.clear();
    }
}
