//! The core's door: what a front end may ask.
//!
//! ```text
//! let turns = cache.turns();
//! let mut turn = turns.turn();           // synchronous: evaluate every request that was read, in order
//! turn.put(..); turn.get(..); turn.delete(..);
//! drop(turn);                            // staged: the shards' drivers take it from here
//! turns.settle(hold).await               // what an answer was waiting for
//! ```
//! Promise: requests of one turn see each other in order, and no other client's write comes between its writes to one
//! shard; they are one batch unless that would be longer than a batch may be. One request is always whole. An answer
//! with a [`Hold`] may leave only when its fate is [`Fate::Applied`]. Must never know a protocol.

use std::sync::{Arc, MutexGuard};

use crate::core::clock::Clock;
use crate::core::error::{ReadError, Refusal};
use crate::core::index::Entry;
use crate::core::op::Put;
use crate::core::routing::router::{Router, Routes};
use crate::core::shard::Shard;
use crate::core::shard::gate::Ticket;
use crate::core::shard::machine::Machine;
use crate::core::shard::read::Pinned;
use crate::core::shard::space::Purpose;
use crate::core::shard::stage::{Outcome, StageError, Value, record_bytes};
use crate::core::types::{CacheName, Millis, Offset, ShardNo};

pub use crate::core::shard::frontier::Fate;
pub use crate::core::values::ValueCounts;

/// One cache, as a front end holds it. Cheap to clone.
#[derive(Clone)]
pub struct Cache {
    name: CacheName,
    router: Arc<Router>,
    clock: Arc<dyn Clock>,
}

/// An answer may leave only when the record at `offset` of `shard` is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    pub shard: ShardNo,
    pub offset: Offset,
    /// The record is the request's own; otherwise the answer only rests on it, and a lost record costs no write.
    pub wrote: bool,
}

/// A shard was full at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    shard: ShardNo,
    ticket: Option<Ticket>,
}

/// Why a write was not staged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteError {
    Refused(Refusal),
    /// Wait for [`Turns::room`] of this shard, then ask again.
    Full(ShardNo),
}

impl From<Refusal> for WriteError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// How often a look-up is repeated when the log loses the segment it names meanwhile; each time a whole compaction pass
/// must have ended in between.
const MAX_LOOKUPS: usize = 8;

fn refused(error: StageError, number: ShardNo, shard: &Shard) -> WriteError {
    match error {
        StageError::Refused(refusal) => WriteError::Refused(refusal),
        StageError::Full => {
            // The driver may have a segment to make first.
            shard.staged.ring();
            shard.chores.ring();
            WriteError::Full(number)
        }
    }
}

/// A live value, where it can be had.
pub enum Found<'a> {
    /// Staged by an earlier request of this turn or by another client, and not yet applied.
    Staged(&'a [u8]),
    /// Applied, and in memory since it was last read and verified.
    Cached(Arc<[u8]>),
    /// Applied, and in the log.
    Stored(Pinned),
}

impl Cache {
    #[must_use]
    pub fn new(name: CacheName, router: Arc<Router>, clock: Arc<dyn Clock>) -> Self {
        Self { name, router, clock }
    }

    #[must_use]
    pub fn name(&self) -> &CacheName {
        &self.name
    }

    /// Where the cache's shards are now, and the time by its clock.
    #[must_use]
    pub fn turns(&self) -> Turns {
        Turns { routes: self.router.routes(&self.name), now: self.clock.now() }
    }

    /// Keys held here, lapsed ones included until the sweep has seen them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.turns().routes.here().map(|shard| shard.index.view().len()).sum()
    }

    /// Whether it holds no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the live records held here.
    #[must_use]
    pub fn live_bytes(&self) -> u64 {
        self.turns().routes.here().map(|shard| shard.index.view().live().bytes).sum()
    }

    /// What is known of the values kept in memory, by all caches of the process.
    #[must_use]
    pub fn value_counts(&self) -> ValueCounts {
        self.turns().routes.here().next().map(|shard| shard.values.counts()).unwrap_or_default()
    }

    /// Keys held here that have an expiry.
    #[must_use]
    pub fn expiring(&self) -> usize {
        self.turns().routes.here().map(|shard| shard.index.view().expiring()).sum()
    }
}

/// The routes of a cache for one round of requests.
pub struct Turns {
    routes: Arc<Routes>,
    now: Millis,
}

impl Turns {
    /// Begins a turn. It holds a shard's lock while it lasts: finish it without waiting for anything.
    #[must_use]
    pub fn turn(&self) -> Turn<'_> {
        Turn { routes: &self.routes, now: self.now, writing: None }
    }

    /// Waits until the fate of a held answer is known. May be cancelled.
    pub async fn settle(&self, hold: Hold) -> Fate {
        match self.routes.shard(hold.shard) {
            Some(shard) => shard.frontier.wait(hold.offset).await,
            None => Fate::Refused(Refusal::NotReady),
        }
    }

    /// The fate of a held answer, once it is known.
    #[must_use]
    pub fn fate(&self, hold: Hold) -> Option<Fate> {
        self.routes
            .shard(hold.shard)
            .map_or(Some(Fate::Refused(Refusal::NotReady)), |shard| shard.frontier.fate(hold.offset))
    }

    /// What to [wait](Self::wait_for_room) for before there may be room to stage again. To be asked while the turn that
    /// found the shard full is alive: nothing can make room before, so what does is still to come.
    #[must_use]
    pub fn room(&self, shard: ShardNo) -> Room {
        Room { shard, ticket: self.routes.shard(shard).map(|shard| shard.room.ticket()) }
    }

    /// Waits until there may be room to stage again. May be cancelled.
    pub async fn wait_for_room(&self, room: Room) {
        if let (Some(shard), Some(ticket)) = (self.routes.shard(room.shard), room.ticket) {
            shard.room.wait(ticket).await;
        }
    }
}

/// One synchronous round of requests.
pub struct Turn<'t> {
    routes: &'t Routes,
    now: Millis,
    /// The shard this turn last wrote to, still locked: its writes are staged as one piece, and its reads see them.
    writing: Option<(ShardNo, &'t Arc<Shard>, MutexGuard<'t, Machine>)>,
}

impl<'t> Turn<'t> {
    /// The time by the cache's clock when the turn began.
    #[must_use]
    pub fn now(&self) -> Millis {
        self.now
    }

    /// Stages a put.
    ///
    /// # Errors
    /// [`WriteError`]: nothing was staged.
    pub fn put(&mut self, put: &Put<'_>) -> Result<(Outcome, Option<Hold>), WriteError> {
        self.write(put.key, |machine, now| machine.put(put, now))
    }

    /// Stages a delete, if the key has a live value.
    ///
    /// # Errors
    /// [`WriteError`]: nothing was staged.
    pub fn delete(&mut self, key: &[u8]) -> Result<(Outcome, Option<Hold>), WriteError> {
        self.write(key, |machine, now| machine.delete(key, now))
    }

    /// Stages deletes of all of `keys` that have a live value: how many that were, and what their answer waits for.
    /// Those of one shard stand in one batch.
    ///
    /// # Errors
    /// [`WriteError`]: nothing was staged in the shard that refused, nor in those after it.
    pub fn delete_all<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k [u8]> + Clone,
    ) -> Result<(i64, Vec<Hold>), WriteError> {
        let (mut removed, mut holds) = (0, Vec::new());
        for number in self.shards_of(keys.clone())? {
            let here = |key: &&[u8]| self.routes.of_key(key).is_ok_and(|(shard, _)| shard == number);
            let bytes = keys.clone().filter(here).map(|key| record_bytes(key.len())).sum();
            let mut room_made = false;
            for key in keys.clone().filter(here) {
                let (outcome, hold) = self.write(key, |machine, now| {
                    if !room_made {
                        machine.make_room(Purpose::Delete, bytes, now)?;
                    }
                    machine.delete(key, now)
                })?;
                room_made = true;
                removed += i64::from(outcome.written.is_some());
                holds.extend(hold);
            }
        }
        Ok((removed, holds))
    }

    /// Stages the removal of every key of the cache: what the answer waits for, nothing where there was nothing.
    ///
    /// # Errors
    /// [`WriteError`]: nothing was staged in the shard that refused, nor in those after it.
    pub fn clear(&mut self) -> Result<Vec<Hold>, WriteError> {
        let (now, mut holds) = (self.now, Vec::new());
        for number in self.routes.numbers() {
            let (shard, machine) = self.lock(number)?;
            let cleared = machine.clear(now).map_err(|error| refused(error, number, shard))?;
            if let Some(offset) = cleared {
                shard.staged.ring();
                holds.push(Hold { shard: number, offset, wrote: true });
            }
        }
        Ok(holds)
    }

    /// The shards that answer for `keys`, ascending, each once.
    fn shards_of<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) -> Result<Vec<ShardNo>, Refusal> {
        let mut numbers = Vec::new();
        for key in keys {
            let (number, _) = self.routes.of_key(key)?;
            if let Err(at) = numbers.binary_search(&number) {
                numbers.insert(at, number);
            }
        }
        Ok(numbers)
    }

    fn write(
        &mut self,
        key: &[u8],
        stage: impl FnOnce(&mut Machine, Millis) -> Result<Outcome, StageError>,
    ) -> Result<(Outcome, Option<Hold>), WriteError> {
        let now = self.now;
        let (number, _) = self.routes.of_key(key)?;
        let (shard, machine) = self.lock(number)?;
        let outcome = stage(machine, now).map_err(|error| refused(error, number, shard))?;
        if outcome.written.is_some() {
            shard.staged.ring();
            if let Some(Value::Stored(entry)) = &outcome.previous {
                shard.values.forget(entry.revision, value_bytes(key, entry));
            }
        }
        let wrote = outcome.written.is_some();
        let hold = outcome.hold.map(|offset| Hold { shard: number, offset, wrote });
        Ok((outcome, hold))
    }

    fn lock(&mut self, number: ShardNo) -> Result<(&'t Arc<Shard>, &mut Machine), Refusal> {
        let shard = self.routes.get(number)?;
        if self.writing.as_ref().is_none_or(|(held, _, _)| *held != number) {
            // The other shard's lock is let go first: no turn ever holds two.
            self.writing = None;
            let mut machine = shard.machine();
            machine.space().memory_full = shard.memory_full();
            self.writing = Some((number, shard, machine));
        }
        match &mut self.writing {
            Some((_, _, machine)) => Ok((shard, machine)),
            None => Err(Refusal::NotReady),
        }
    }

    /// The live value of a key. Behind a write of this turn to the same shard it is what that write made it, and held
    /// until that is applied; otherwise applied state.
    ///
    /// # Errors
    /// [`ReadError`]: never a miss.
    pub fn get(&self, key: &[u8]) -> Result<(Option<Found<'_>>, Option<Hold>), ReadError> {
        let mut last = None;
        for _ in 0..MAX_LOOKUPS {
            let (value, hold) = self.look(key)?;
            match value.map(|value| self.found(key, &value)).transpose() {
                // Between look-up and pin the log may have lost the segment: the record was carried, superseded or
                // deleted before that, and the index knows.
                Err(gone @ ReadError::Mismatch { .. }) => last = Some(gone),
                found => return Ok((found?, hold)),
            }
        }
        Err(last.unwrap_or(ReadError::Refused(Refusal::NotReady)))
    }

    /// Whether a key has a live value; as [`Turn::get`].
    ///
    /// # Errors
    /// [`ReadError`]: never "no".
    pub fn exists(&self, key: &[u8]) -> Result<(bool, Option<Hold>), ReadError> {
        self.look(key).map(|(value, hold)| (value.is_some(), hold))
    }

    fn look(&self, key: &[u8]) -> Result<(Option<Value>, Option<Hold>), ReadError> {
        let (number, shard) = self.routes.of_key(key).map_err(ReadError::Refused)?;
        if let Some((held, _, machine)) = &self.writing
            && *held == number
        {
            let seen = machine.look(key, self.now);
            return Ok((seen.value, seen.hold.map(|offset| Hold { shard: number, offset, wrote: false })));
        }
        let entry = shard.index.view().get(key).filter(|entry| !entry.expires_at.has_lapsed(self.now));
        Ok((entry.map(Value::Stored), None))
    }

    /// Where a value that an [`Outcome`] of this turn named can be had.
    ///
    /// # Errors
    /// [`ReadError`]: never a miss.
    pub fn found(&self, key: &[u8], value: &Value) -> Result<Found<'_>, ReadError> {
        let (_, shard) = self.routes.of_key(key).map_err(ReadError::Refused)?;
        match (value, &self.writing) {
            (Value::Stored(entry), _) => match shard.values.get(entry.revision, value_bytes(key, entry)) {
                Some(value) => Ok(Found::Cached(value)),
                None => Pinned::new(shard, *entry).map(Found::Stored),
            },
            (Value::Staged { batch, bytes, .. }, Some((_, _, machine))) => machine
                .staged_bytes_of(*batch, bytes.clone())
                .map(Found::Staged)
                .ok_or(ReadError::Refused(Refusal::LostGround)),
            (Value::Staged { .. }, None) => Err(ReadError::Refused(Refusal::LostGround)),
        }
    }
}

/// Bytes of a key's stored value; of a carried one a few more.
fn value_bytes(key: &[u8], entry: &Entry) -> usize {
    (entry.location.length as usize).saturating_sub(record_bytes(key.len()))
}
