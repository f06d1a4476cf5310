//! One synchronous round of requests: which shard is locked, what a key holds as this round sees it, all or nothing.
//!
//! Promise: behind a write of this turn, a read of that shard sees what the turn staged, and its answer is held until that
//! is applied; any other read sees applied state only. A turn holds one shard's lock at a time. A transaction stays with
//! the first shard it touches, sees what is staged there, and leaves nothing behind unless it is committed.
//! Must never wait.

use std::sync::{Arc, MutexGuard};

use crate::core::api::{Hold, WriteError};
use crate::core::error::{ReadError, Refusal};
use crate::core::index::Entry;
use crate::core::routing::router::{Routes, Table};
use crate::core::shard::Shard;
use crate::core::shard::machine::Machine;
use crate::core::shard::read::Pinned;
use crate::core::shard::stage::{Value, record_bytes};
use crate::core::types::{CacheName, Millis, Offset, Seat};

/// How often a look-up is repeated when the log loses the segment it names meanwhile; each time a whole compaction pass
/// must have ended in between.
const MAX_LOOKUPS: usize = 8;

/// A live value, where it can be had.
pub enum Found<'a> {
    /// Staged by an earlier request of this turn or by another client, and not yet applied.
    Staged(&'a [u8]),
    /// Applied, and in memory since it was last read and verified.
    Cached(Arc<[u8]>),
    /// Applied, and in the log.
    Stored(Pinned),
}

/// What a key holds: its live value, if it has one, and what the answer waits for.
pub type Looked = (Option<Value>, Option<Hold>);

/// What is left of a transaction that was taken back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RolledBack {
    /// It was only too long for what was left of a batch: run it again, at the beginning of the next one.
    pub fits_alone: bool,
    /// What an answer waits for that tells why it was taken back: it may rest on anything that is still staged.
    pub rests_on: Option<Hold>,
}

/// One synchronous round of requests.
pub struct Turn<'t> {
    table: &'t Table,
    pub(super) routes: &'t Routes,
    pub(super) now: Millis,
    /// The shard that is locked: writes to it are staged as one piece, and reads of it see them.
    locked: Option<(&'t Arc<Shard>, MutexGuard<'t, Machine>)>,
    /// The shards this turn has written to, each with the newest record of this turn there.
    wrote: Vec<(Seat, Offset)>,
    transaction: Transaction,
    /// The same as it was before the transaction under way.
    wrote_before: Vec<(Seat, Offset)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Transaction {
    No,
    /// It has touched no shard yet.
    Begun,
    /// It stays with the shard that is locked.
    Bound,
}

impl<'t> Turn<'t> {
    pub(super) fn new(table: &'t Table, routes: &'t Routes, now: Millis) -> Self {
        Self {
            table,
            routes,
            now,
            locked: None,
            wrote: Vec::new(),
            transaction: Transaction::No,
            wrote_before: Vec::new(),
        }
    }

    /// The time by the cache's clock when the turn began.
    #[must_use]
    pub fn now(&self) -> Millis {
        self.now
    }

    /// Whether as much memory is in use as may be, so that what grows is refused.
    #[must_use]
    pub fn is_memory_full(&self) -> bool {
        self.routes.here().next().is_some_and(|shard| shard.memory_full().is_some())
    }

    /// The cache that requests go to from here on.
    pub fn select(&mut self, cache: &CacheName) {
        self.routes = self.table.routes(cache);
    }

    /// The cache that requests go to.
    #[must_use]
    pub fn cache(&self) -> &'t CacheName {
        self.routes.name()
    }

    /// Runs `requests` against another cache.
    pub fn within<R>(&mut self, cache: &CacheName, requests: impl FnOnce(&mut Self) -> R) -> R {
        let before = self.routes;
        self.select(cache);
        let result = requests(self);
        self.routes = before;
        result
    }

    /// Whether all keys are of one shard.
    #[must_use]
    pub fn are_together<'k>(&self, mut keys: impl Iterator<Item = &'k [u8]>) -> bool {
        let Some(first) = keys.next() else { return true };
        let first = self.routes.number_of(first);
        keys.all(|key| self.routes.number_of(key) == first)
    }

    /// Begins a transaction: what is staged until [`Turn::commit`] is one batch, and nothing of it is left after
    /// [`Turn::roll_back`]. False when one is under way: this one is then a part of that one.
    pub fn begin(&mut self) -> bool {
        let begins = self.transaction == Transaction::No;
        if begins {
            self.transaction = Transaction::Begun;
            self.wrote_before.clone_from(&self.wrote);
        }
        begins
    }

    /// Whether a transaction is under way.
    #[must_use]
    pub fn is_transaction(&self) -> bool {
        self.transaction != Transaction::No
    }

    /// What the transaction staged stays.
    pub fn commit(&mut self) {
        if std::mem::replace(&mut self.transaction, Transaction::No) == Transaction::Bound
            && let Some((shard, machine)) = &mut self.locked
        {
            machine.commit();
            shard.staged.ring();
        }
    }

    /// Takes back what the transaction staged.
    pub fn roll_back(&mut self) -> RolledBack {
        let bound = std::mem::replace(&mut self.transaction, Transaction::No) == Transaction::Bound;
        let Some((shard, machine)) = self.locked.as_mut().filter(|_| bound) else { return RolledBack::default() };
        self.wrote.clone_from(&self.wrote_before);
        let fits_alone = machine.roll_back(self.now);
        let rests_on = machine.newest_staged().map(|offset| Hold { seat: shard.seat, offset, wrote: false });
        RolledBack { fits_alone, rests_on }
    }

    /// Locks the shard of `key`: from here on this turn sees what is staged there, and nobody comes in between.
    ///
    /// # Errors
    /// [`WriteError`] when there is no such shard here, or a transaction stays with another one.
    pub fn lock_for(&mut self, key: &[u8]) -> Result<(), WriteError> {
        let shard = self.shard_of(key)?;
        self.lock(shard).map(drop)
    }

    pub(super) fn shard_of(&self, key: &[u8]) -> Result<&'t Arc<Shard>, WriteError> {
        self.routes.of_key(key).map_err(|refusal| self.refused(refusal))
    }

    pub(super) fn refused(&self, refusal: Refusal) -> WriteError {
        match refusal {
            Refusal::NotCreated => WriteError::NotCreated(Box::new(self.routes.name().clone())),
            refusal => WriteError::Refused(refusal),
        }
    }

    pub(super) fn lock(&mut self, shard: &'t Arc<Shard>) -> Result<&mut Machine, WriteError> {
        if self.locked.as_ref().is_none_or(|(held, _)| held.seat != shard.seat) {
            if self.transaction == Transaction::Bound {
                return Err(WriteError::Apart);
            }
            // The other shard's lock is let go first: no turn ever holds two.
            self.locked = None;
            let mut machine = shard.machine();
            machine.space().memory_full = shard.memory_full();
            self.locked = Some((shard, machine));
        }
        let Some((_, machine)) = &mut self.locked else { return Err(WriteError::Refused(Refusal::NotReady)) };
        if self.transaction == Transaction::Begun {
            machine.begin();
            self.transaction = Transaction::Bound;
        }
        Ok(machine)
    }

    /// This turn wrote a record to the shard.
    pub(super) fn note_write(&mut self, shard: &Shard, offset: Offset) {
        shard.staged.ring();
        match self.wrote.iter_mut().find(|(seat, _)| *seat == shard.seat) {
            Some((_, newest)) => *newest = offset,
            None => self.wrote.push((shard.seat, offset)),
        }
    }

    fn written_to(&self, shard: &Shard) -> Option<Hold> {
        let wrote = self.wrote.iter().find(|(seat, _)| *seat == shard.seat);
        wrote.map(|(seat, offset)| Hold { seat: *seat, offset: *offset, wrote: false })
    }

    /// The machine of a shard, locked, when this turn is to see what is staged there.
    pub(super) fn staged_view(&mut self, shard: &'t Arc<Shard>) -> Result<Option<&mut Machine>, ReadError> {
        let held = self.locked.as_ref().is_some_and(|(held, _)| held.seat == shard.seat);
        if !held && self.transaction == Transaction::No && self.written_to(shard).is_none() {
            return Ok(None);
        }
        self.lock(shard).map(Some).map_err(|error| match error {
            WriteError::Refused(refusal) => ReadError::Refused(refusal),
            _ => ReadError::Apart,
        })
    }

    /// The same for whatever asks which keys there are: it may ask all shards, so a transaction shows it only what is staged in
    /// its own.
    pub(super) fn listed_view(&mut self, shard: &'t Arc<Shard>) -> Result<Option<&mut Machine>, ReadError> {
        let held = self.locked.as_ref().is_some_and(|(held, _)| held.seat == shard.seat);
        let elsewhere = self.transaction != Transaction::No && !held && self.routes.numbers().len() > 1;
        if elsewhere { Ok(None) } else { self.staged_view(shard) }
    }

    /// What a key holds. Behind a write of this turn to the same shard it is what that write made it, and held until that
    /// is applied; otherwise applied state.
    ///
    /// # Errors
    /// [`ReadError`]: never a miss.
    pub fn look(&mut self, key: &[u8]) -> Result<Looked, ReadError> {
        let shard = match self.routes.of_key(key) {
            Ok(shard) => shard,
            Err(Refusal::NotCreated) => return Ok((None, None)),
            Err(refusal) => return Err(ReadError::Refused(refusal)),
        };
        let now = self.now;
        if let Some(machine) = self.staged_view(shard)? {
            let seen = machine.look(key, now);
            return Ok((seen.value, seen.hold.map(|offset| Hold { seat: shard.seat, offset, wrote: false })));
        }
        let entry = shard.index.view().get(key).filter(|entry| !entry.expires_at.has_lapsed(now));
        Ok((entry.map(Value::Stored), None))
    }

    /// What each of `keys` holds, those of one shard at one moment; as [`Turn::look`].
    ///
    /// # Errors
    /// [`ReadError`]: never a miss.
    pub fn look_all(&mut self, keys: &[&[u8]]) -> Result<Vec<Looked>, ReadError> {
        let mut looked: Vec<Looked> = Vec::new();
        looked.resize_with(keys.len(), Default::default);
        for number in self.routes.numbers() {
            let here = |key: &[u8]| self.routes.number_of(key) == number;
            let mut places = (0..keys.len()).filter(|place| here(keys[*place])).peekable();
            if places.peek().is_none() {
                continue;
            }
            let places: Vec<usize> = places.collect();
            let shard = match self.routes.get(number) {
                Ok(shard) => shard,
                Err(Refusal::NotCreated) => continue,
                Err(refusal) => return Err(ReadError::Refused(refusal)),
            };
            let now = self.now;
            if let Some(machine) = self.staged_view(shard)? {
                for place in places {
                    let seen = machine.look(keys[place], now);
                    let hold = seen.hold.map(|offset| Hold { seat: shard.seat, offset, wrote: false });
                    looked[place] = (seen.value, hold);
                }
                continue;
            }
            let view = shard.index.view();
            for place in places {
                let entry = view.get(keys[place]).filter(|entry| !entry.expires_at.has_lapsed(now));
                looked[place] = (entry.map(Value::Stored), None);
            }
        }
        Ok(looked)
    }

    /// What to wait for before values of all these keys can be read at once, if anything: they are of several shards, this turn
    /// wrote to one of them, and what is staged can be read only while its own shard is locked.
    #[must_use]
    pub fn wait_before_reading(&self, keys: &[&[u8]]) -> Option<Hold> {
        if self.wrote.is_empty() || self.transaction != Transaction::No || self.are_together(keys.iter().copied()) {
            return None;
        }
        keys.iter().filter_map(|key| self.routes.of_key(key).ok()).find_map(|shard| self.written_to(shard))
    }

    /// What to wait for before a transaction can tell which keys there are, if anything: this turn wrote to a shard that is not
    /// the transaction's own.
    #[must_use]
    pub fn wait_before_listing(&self) -> Option<Hold> {
        if self.transaction == Transaction::No || self.routes.numbers().len() == 1 {
            return None;
        }
        let own = self.locked.as_ref().map(|(shard, _)| shard.seat);
        self.routes.here().filter(|shard| Some(shard.seat) != own).find_map(|shard| self.written_to(shard))
    }

    /// The live value of a key, as [`Turn::look`] sees it.
    ///
    /// # Errors
    /// [`ReadError`]: never a miss.
    pub fn get(&mut self, key: &[u8]) -> Result<(Option<Found<'_>>, Option<Hold>), ReadError> {
        let (mut value, mut hold) = self.look(key)?;
        let mut looked = 1;
        while let Some(Value::Stored(entry)) = &value {
            match self.stored(key, entry) {
                // Between look-up and pin the log may have lost the segment: the record was carried, superseded or
                // deleted before that, and the index knows.
                Err(ReadError::Mismatch { .. }) if looked < MAX_LOOKUPS => {
                    (value, hold) = self.look(key)?;
                    looked += 1;
                }
                found => return Ok((Some(found?), hold)),
            }
        }
        let found = value.map(|value| self.found(key, &value)).transpose()?;
        Ok((found, hold))
    }

    /// Whether a key has a live value; as [`Turn::look`].
    ///
    /// # Errors
    /// [`ReadError`]: never "no".
    pub fn exists(&mut self, key: &[u8]) -> Result<(bool, Option<Hold>), ReadError> {
        self.look(key).map(|(value, hold)| (value.is_some(), hold))
    }

    /// Where a value that an answer of this turn named can be had.
    ///
    /// # Errors
    /// [`ReadError`]: never a miss.
    pub fn found(&self, key: &[u8], value: &Value) -> Result<Found<'_>, ReadError> {
        match (value, &self.locked) {
            (Value::Stored(entry), _) => self.stored(key, entry),
            (Value::Staged { batch, bytes, .. }, Some((_, machine))) => machine
                .staged_bytes_of(*batch, bytes.clone())
                .map(Found::Staged)
                .ok_or(ReadError::Refused(Refusal::LostGround)),
            (Value::Staged { .. }, None) => Err(ReadError::Refused(Refusal::LostGround)),
        }
    }

    /// A stored value pinned where it stands, whether or not it is in memory.
    ///
    /// # Errors
    /// [`ReadError`]: never a miss.
    pub fn pinned(&self, key: &[u8], entry: &Entry) -> Result<Pinned, ReadError> {
        let shard = self.routes.of_key(key).map_err(ReadError::Refused)?;
        Pinned::new(shard, *entry)
    }

    fn stored(&self, key: &[u8], entry: &Entry) -> Result<Found<'static>, ReadError> {
        let shard = self.routes.of_key(key).map_err(ReadError::Refused)?;
        match shard.values.get(entry.revision, value_bytes(key, entry)) {
            Some(value) => Ok(Found::Cached(value)),
            None => Pinned::new(shard, *entry).map(Found::Stored),
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // Whoever began a transaction and did not come to its end has not committed it.
        self.roll_back();
    }
}

/// Bytes of a key's stored value; of a carried one a few more.
pub(super) fn value_bytes(key: &[u8], entry: &Entry) -> usize {
    (entry.location.length as usize).saturating_sub(record_bytes(key.len()))
}
