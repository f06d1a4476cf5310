//! What a turn stages: puts, deletes, clears.
//!
//! Promise: refused means that nothing was staged; a request that goes to several shards and is stopped half-way goes on
//! where it stopped when it is run again. Must never wait.

use crate::core::api::turn::{Turn, value_bytes};
use crate::core::api::{Hold, Value};
use crate::core::error::Refusal;
use crate::core::op::{Condition, Put};
use crate::core::shard::machine::Machine;
use crate::core::shard::space::Purpose;
use crate::core::shard::stage::{Outcome, StageError, record_bytes};
use crate::core::types::{CacheName, Millis, Revision, Seat, ShardNo};

/// Why a write was not staged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriteError {
    Refused(Refusal),
    /// Wait for [`Turns::room`](super::Turns::room) of this shard, then ask again.
    Full(Seat),
    /// [Make](super::Caches::make) this cache, then ask again.
    NotCreated(Box<CacheName>),
    /// The transaction under way stays with another shard.
    Apart,
}

impl From<Refusal> for WriteError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// How far a request for several shards has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// What it counts, such as keys that were deleted.
    pub count: i64,
    /// What the answer waits for.
    pub holds: Vec<Hold>,
    /// The first shard it has not been through.
    next: u32,
}

impl Progress {
    /// Whether it has been through this shard.
    #[must_use]
    pub fn is_through(&self, number: ShardNo) -> bool {
        number.0 < self.next
    }

    /// It has been through this shard, and through those before it.
    pub fn went_through(&mut self, number: ShardNo) {
        self.next = number.0 + 1;
    }
}

impl Turn<'_> {
    /// Stages a put.
    ///
    /// # Errors
    /// [`WriteError`]: nothing was staged.
    pub fn put(&mut self, put: &Put<'_>) -> Result<(Outcome, Option<Hold>), WriteError> {
        let needs_a_value = match put.condition {
            Condition::Present => true,
            Condition::Revision(revision) => revision != Revision(0),
            Condition::Always | Condition::Absent => false,
        };
        match self.write(put.key, |machine, now| machine.put(put, now)) {
            // What nobody has written to holds no value: it is not made to learn that.
            Err(WriteError::NotCreated(_)) if needs_a_value => {
                Ok((Outcome { written: None, previous: None, held: false, hold: None }, None))
            }
            staged => staged,
        }
    }

    /// Stages a delete, if the key has a live value.
    ///
    /// # Errors
    /// [`WriteError`]: nothing was staged.
    pub fn delete(&mut self, key: &[u8]) -> Result<(Outcome, Option<Hold>), WriteError> {
        match self.write(key, |machine, now| machine.delete(key, now)) {
            Err(WriteError::NotCreated(_)) => {
                Ok((Outcome { written: None, previous: None, held: true, hold: None }, None))
            }
            staged => staged,
        }
    }

    /// Stages deletes of all of `keys` that have a live value; `progress` tells how many that were. Those of one shard stand
    /// in one batch.
    ///
    /// # Errors
    /// [`WriteError`]: nothing was staged in the shard that refused, nor in those after it. `progress` knows which those are:
    /// given again with the same keys, the rest is staged.
    pub fn delete_all<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k [u8]> + Clone,
        progress: &mut Progress,
    ) -> Result<(), WriteError> {
        for number in self.numbers_of(keys.clone()) {
            if progress.is_through(number) {
                continue;
            }
            let routes = self.routes;
            let here = |key: &&[u8]| routes.number_of(key) == number;
            let bytes = keys.clone().filter(here).map(|key| record_bytes(key.len())).sum();
            let mut room_made = false;
            for key in keys.clone().filter(here) {
                let staged = self.write(key, |machine, now| {
                    if !room_made {
                        machine.make_room(Purpose::Delete, bytes, now)?;
                    }
                    machine.delete(key, now)
                });
                let (outcome, hold) = match staged {
                    Err(WriteError::NotCreated(_)) => break,
                    staged => staged?,
                };
                room_made = true;
                progress.count += i64::from(outcome.written.is_some());
                progress.holds.extend(hold);
            }
            progress.went_through(number);
        }
        Ok(())
    }

    /// Stages the removal of every key of the cache: what the answer waits for, nothing where there was nothing.
    ///
    /// # Errors
    /// [`WriteError`]: nothing was staged in the shard that refused, nor in those after it. Run again, the rest is staged.
    pub fn clear(&mut self) -> Result<Vec<Hold>, WriteError> {
        let mut holds = Vec::new();
        for number in self.routes.numbers() {
            let (now, shard) = match self.routes.get(number) {
                Ok(shard) => (self.now, shard),
                Err(Refusal::NotCreated) => continue,
                Err(refusal) => return Err(refusal.into()),
            };
            let cleared = self.lock(shard)?.clear(now).map_err(|error| self.not_staged(error, shard))?;
            if let Some(offset) = cleared {
                self.note_write(shard, offset);
                holds.push(Hold { seat: shard.seat, offset, wrote: true });
            }
        }
        Ok(holds)
    }

    /// The shards that answer for `keys`, ascending, each once.
    #[must_use]
    pub fn numbers_of<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) -> Vec<ShardNo> {
        let mut numbers = Vec::new();
        for key in keys {
            let number = self.routes.number_of(key);
            if let Err(at) = numbers.binary_search(&number) {
                numbers.insert(at, number);
            }
        }
        numbers
    }

    /// The number of the shard that answers for `key`.
    #[must_use]
    pub fn number_of(&self, key: &[u8]) -> ShardNo {
        self.routes.number_of(key)
    }

    fn write(
        &mut self,
        key: &[u8],
        stage: impl FnOnce(&mut Machine, Millis) -> Result<Outcome, StageError>,
    ) -> Result<(Outcome, Option<Hold>), WriteError> {
        let (now, shard) = (self.now, self.shard_of(key)?);
        let outcome = stage(self.lock(shard)?, now).map_err(|error| self.not_staged(error, shard))?;
        let wrote = outcome.written.is_some();
        if let Some(offset) = outcome.written {
            self.note_write(shard, offset);
            if let Some(Value::Stored(entry)) = &outcome.previous {
                shard.values.forget(entry.revision, value_bytes(key, entry));
            }
        }
        let hold = outcome.hold.map(|offset| Hold { seat: shard.seat, offset, wrote });
        Ok((outcome, hold))
    }

    fn not_staged(&self, error: StageError, shard: &crate::core::shard::Shard) -> WriteError {
        match error {
            StageError::Refused(refusal) => self.refused(refusal),
            StageError::Full => {
                // The driver may have a segment to make first.
                shard.staged.ring();
                shard.chores.ring();
                WriteError::Full(shard.seat)
            }
        }
    }
}
