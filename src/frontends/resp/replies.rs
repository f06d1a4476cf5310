//! The replies of one round of requests, in request order, some of them not yet allowed to leave.
//!
//! Promise: what leaves is in request order; a held reply leaves as it was written only if what it waits for was
//! applied, else as the error that says what became of it. Must never know a command.

use std::ops::Range;

use crate::core::api::{Fate, Hold};
use crate::core::error::ReadError;
use crate::core::shard::read::Pinned;
use crate::frontends::resp::encode::{Protocol, Reply};

/// A value that could not be read without waiting for the disk; its reply goes to `at`.
pub struct ColdValue {
    /// The number of the reply it is part of: a reply without bytes of its own yet has no other mark.
    number: usize,
    at: usize,
    pub pinned: Pinned,
    pub key: Box<[u8]>,
    pub protocol: Protocol,
    /// The text when it cannot be read.
    pub told: fn(&ReadError) -> String,
}

struct Held {
    number: usize,
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
    /// Its number in this round.
    number: usize,
    /// What the reply being written waits for.
    holds: Vec<Hold>,
    held: Vec<Held>,
    /// What the round waits for beside what its replies do.
    also: Vec<Hold>,
    cold: Vec<ColdValue>,
    /// Bytes that reading them will add.
    cold_bytes: usize,
    /// Error replies written.
    pub errors: u64,
}

/// A place in a reply.
#[derive(Clone, Copy)]
pub struct Mark {
    bytes: usize,
    cold: usize,
    errors: u64,
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
        self.also.clear();
        self.cold.clear();
        self.cold_bytes = 0;
        self.begun = 0;
        self.number = 0;
        self.errors = 0;
    }

    /// Bytes gathered, values that are still to be read included: what the round will take in memory.
    #[must_use]
    pub fn gathered_bytes(&self) -> usize {
        self.out.len() + self.cold_bytes
    }

    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.out
    }

    /// Bytes of the reply begun last, values that are still to be read not included.
    #[must_use]
    pub fn reply_bytes(&self) -> usize {
        self.out.len() - self.begun
    }

    /// Whether the reply begun last waits for anything.
    #[must_use]
    pub fn is_held(&self) -> bool {
        !self.holds.is_empty()
    }

    /// One of what the reply begun last waits for.
    #[must_use]
    pub fn first_hold(&self) -> Option<Hold> {
        self.holds.first().copied()
    }

    /// What the reply begun last waits for.
    #[must_use]
    pub fn holds(&self) -> &[Hold] {
        &self.holds
    }

    /// From here on the reply begun last waits for nothing but these.
    pub fn hold_only(&mut self, holds: &[Hold]) {
        self.holds.clear();
        self.holds.extend_from_slice(holds);
    }

    /// A place in the reply begun last, to come back to.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark { bytes: self.out.len(), cold: self.cold.len(), errors: self.errors }
    }

    /// Takes back what was written since `mark` was taken; what it waits for stays.
    pub fn back_to(&mut self, mark: Mark) {
        self.out.truncate(mark.bytes);
        self.cold.truncate(mark.cold);
        self.cold_bytes = self.cold.iter().map(|cold| cold.pinned.bytes()).sum();
        self.errors = mark.errors;
    }

    /// Puts `bytes` in at `mark`: the header of a list whose length was not known before. No value that is read late may
    /// stand behind it.
    pub fn insert(&mut self, mark: Mark, bytes: &[u8]) {
        self.out.splice(mark.bytes..mark.bytes, bytes.iter().copied());
    }

    /// Begins the reply to the next request.
    pub fn begin(&mut self) {
        self.begun = self.out.len();
        self.number += 1;
        self.holds.clear();
    }

    /// Takes back what was written of the reply begun last. What it waits for stays: an error in its place rests on the same.
    pub fn restart(&mut self) {
        self.out.truncate(self.begun);
        self.cold.retain(|cold| cold.number != self.number);
        self.cold_bytes = self.cold.iter().map(|cold| cold.pinned.bytes()).sum();
    }

    /// Takes back the reply begun last: its request will be run again, or is not to be answered.
    pub fn take_back(&mut self) {
        self.restart();
        self.holds.clear();
    }

    /// Writes to the reply begun last.
    pub fn writer(&mut self, protocol: Protocol) -> Reply<'_> {
        Reply::new(&mut self.out, protocol)
    }

    /// Writes an error as the reply, or as a part of it.
    pub fn error(&mut self, protocol: Protocol, text: impl AsRef<[u8]>) {
        self.errors += 1;
        self.writer(protocol).error(text);
    }

    /// The reply begun last may leave only when this is applied.
    pub fn hold(&mut self, hold: impl IntoIterator<Item = Hold>) {
        for hold in hold {
            match self.holds.iter_mut().find(|known| known.seat == hold.seat) {
                Some(known) => {
                    known.offset = known.offset.max(hold.offset);
                    known.wrote |= hold.wrote;
                }
                None => self.holds.push(hold),
            }
        }
    }

    /// What is sent next waits for this, though no reply rests on it.
    pub fn wait_for(&mut self, hold: Hold) {
        self.also.push(hold);
    }

    /// A value that has to be waited for stands here in the reply; `told` is the text when it cannot be read.
    pub fn cold(&mut self, protocol: Protocol, pinned: Pinned, key: &[u8], told: fn(&ReadError) -> String) {
        self.cold_bytes += pinned.bytes();
        self.cold.push(ColdValue { number: self.number, at: self.out.len(), pinned, key: key.into(), protocol, told });
    }

    /// Ends the reply begun last.
    pub fn end(&mut self, protocol: Protocol) {
        let (number, reply) = (self.number, self.begun..self.out.len());
        self.held.extend(self.holds.drain(..).map(|hold| Held { number, reply: reply.clone(), hold, protocol }));
    }

    /// For each shard the newest record any reply waits for.
    #[must_use]
    pub fn newest_holds(&self) -> Vec<Hold> {
        let mut newest: Vec<Hold> = Vec::new();
        for hold in self.held.iter().map(|held| &held.hold).chain(&self.also) {
            match newest.iter_mut().find(|known| known.seat == hold.seat) {
                Some(known) => known.offset = known.offset.max(hold.offset),
                None => newest.push(*hold),
            }
        }
        newest
    }

    /// Whether values are still to be read.
    #[must_use]
    pub fn has_cold(&self) -> bool {
        !self.cold.is_empty()
    }

    /// Takes out what has to be changed before the replies may leave, in the order of the replies: an error in the place of
    /// each whose ground was lost, and each value that is still to be read.
    pub fn take_patches(&mut self, mut fate_of: impl FnMut(Hold) -> Fate) -> Vec<Patch> {
        // By the number of the reply: several that wait for the disk begin at the same byte.
        let mut patches: Vec<(usize, Patch)> = Vec::new();
        for Held { number, reply, hold, protocol } in self.held.drain(..) {
            let fate = fate_of(hold);
            if fate != Fate::Applied && patches.last().is_none_or(|(patched, _)| *patched != number) {
                patches.push((number, Patch::Lost { reply, protocol, fate, wrote: hold.wrote }));
            }
        }
        let lost: Vec<usize> = patches.iter().map(|(number, _)| *number).collect();
        for cold in self.cold.drain(..) {
            if lost.binary_search(&cold.number).is_err() {
                patches.push((cold.number, Patch::Value(cold)));
            }
        }
        patches.sort_by_key(|(number, patch)| (*number, patch.at()));
        patches.into_iter().map(|(_, patch)| patch).collect()
    }
}

/// A change to the gathered bytes.
pub enum Patch {
    /// This reply's ground was lost: an error takes its place.
    Lost { reply: Range<usize>, protocol: Protocol, fate: Fate, wrote: bool },
    /// A value is put in here.
    Value(ColdValue),
}

impl Patch {
    /// Where in the gathered bytes it begins.
    #[must_use]
    pub fn at(&self) -> usize {
        match self {
            Self::Lost { reply, .. } => reply.start,
            Self::Value(cold) => cold.at,
        }
    }

    /// Where the gathered bytes go on behind it.
    #[must_use]
    pub fn end(&self) -> usize {
        match self {
            Self::Lost { reply, .. } => reply.end,
            Self::Value(cold) => cold.at,
        }
    }
}
