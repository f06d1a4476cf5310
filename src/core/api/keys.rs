//! Which keys a cache holds: in order, counted, and one at random.
//!
//! Promise: lapsed keys are not told; behind a write of the same turn, what it staged is seen. Must never read a value.

use std::ops::ControlFlow;

use crate::core::api::Hold;
use crate::core::api::turn::Turn;
use crate::core::error::{ReadError, Refusal};
use crate::core::shard::machine::Machine;
use crate::core::shard::overlay::{Staged, StagedEffect};
use crate::core::types::{Millis, ShardNo};

/// How many slots of the index are looked at for a key that has not lapsed before it is taken that there is none.
const RANDOM_TRIES: usize = 4_096;

impl Turn<'_> {
    /// The numbers of the cache's shards, ascending.
    pub fn numbers(&self) -> impl Iterator<Item = ShardNo> + use<> {
        self.routes.numbers()
    }

    /// Visits the live keys of one shard that begin with `prefix` and are greater than `after`, in their order, until
    /// `visit` breaks. Gives what the answer waits for.
    ///
    /// # Errors
    /// [`ReadError`] when there is no such shard here.
    pub fn visit_keys(
        &mut self,
        number: ShardNo,
        prefix: &[u8],
        after: Option<&[u8]>,
        mut visit: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<Option<Hold>, ReadError> {
        let (now, shard) = match self.routes.get(number) {
            Ok(shard) => (self.now, shard),
            Err(Refusal::NotCreated) => return Ok(None),
            Err(refusal) => return Err(ReadError::Refused(refusal)),
        };
        let staged = self.listed_view(shard)?.filter(|machine| !machine.overlay().is_empty());
        let Some(machine) = staged else {
            let view = shard.index.view();
            let live = view.range_after(prefix, after).filter(|(_, entry)| !entry.expires_at.has_lapsed(now));
            for (key, _) in live {
                if visit(key).is_break() {
                    break;
                }
            }
            return Ok(None);
        };
        visit_staged(machine, prefix, after, now, visit);
        // What it saw may rest on any of what is staged.
        Ok(machine.newest_staged().map(|offset| Hold { seat: shard.seat, offset, wrote: false }))
    }

    /// How many keys the cache holds, lapsed ones included that no sweep has met. Gives what the answer waits for, too.
    ///
    /// # Errors
    /// [`ReadError`] when a shard of it is not here.
    pub fn count(&mut self) -> Result<(usize, Vec<Hold>), ReadError> {
        let (mut count, mut holds) = (0, Vec::new());
        for number in self.routes.numbers() {
            let shard = match self.routes.get(number) {
                Ok(shard) => shard,
                Err(Refusal::NotCreated) => continue,
                Err(refusal) => return Err(ReadError::Refused(refusal)),
            };
            let staged = self.listed_view(shard)?.filter(|machine| !machine.overlay().is_empty());
            let Some(machine) = staged else {
                count += shard.index.view().len();
                continue;
            };
            count += count_staged(machine);
            holds.extend(machine.newest_staged().map(|offset| Hold { seat: shard.seat, offset, wrote: false }));
        }
        Ok((count, holds))
    }

    /// A live key, chosen by `random`; `None` when there is none, or nearly none among many lapsed ones.
    ///
    /// # Errors
    /// [`ReadError`] when a shard of the cache is not here.
    pub fn random_key(&mut self, random: u64) -> Result<(Option<Vec<u8>>, Option<Hold>), ReadError> {
        let numbers: Vec<ShardNo> = self.routes.numbers().collect();
        let first = (random >> 32) as usize % numbers.len().max(1);
        let mut rests_on = None;
        for place in 0..numbers.len() {
            let number = numbers[(first + place) % numbers.len()];
            let (now, shard) = match self.routes.get(number) {
                Ok(shard) => (self.now, shard),
                Err(Refusal::NotCreated) => continue,
                Err(refusal) => return Err(ReadError::Refused(refusal)),
            };
            if self.listed_view(shard)?.is_some_and(|machine| !machine.overlay().is_empty()) {
                // Behind own writes: any key will do, and what is staged is little.
                let mut found = None;
                rests_on = self.visit_keys(number, b"", None, |key| {
                    found = Some(key.to_vec());
                    ControlFlow::Break(())
                })?;
                if found.is_some() {
                    return Ok((found, rests_on));
                }
                continue;
            }
            let view = shard.index.view();
            let slots = view.slots();
            if slots > 0 {
                let found = view
                    .iter_from((random as usize) % slots)
                    .take(RANDOM_TRIES)
                    .find(|(_, entry)| !entry.expires_at.has_lapsed(now));
                if let Some((key, _)) = found {
                    return Ok((Some(key.to_vec()), rests_on));
                }
            }
        }
        Ok((None, rests_on))
    }
}

/// Merges what is stored with what is staged, both in order.
fn visit_staged(
    machine: &Machine,
    prefix: &[u8],
    after: Option<&[u8]>,
    now: Millis,
    mut visit: impl FnMut(&[u8]) -> ControlFlow<()>,
) {
    let in_range = |key: &[u8]| key.starts_with(prefix) && after.is_none_or(|after| key > after);
    let mut staged: Vec<(&[u8], &Staged)> = machine.overlay().iter().filter(|(key, _)| in_range(key)).collect();
    staged.sort_unstable_by_key(|(key, _)| *key);
    let mut staged = staged.into_iter().peekable();
    let index = machine.index();
    let view = index.view();
    let stored = view.range_after(prefix, after).filter(|(_, entry)| !entry.expires_at.has_lapsed(now));
    let mut stored = stored.take_while(|_| !machine.overlay().is_cleared()).map(|(key, _)| key).peekable();
    loop {
        let key = match (stored.peek(), staged.peek()) {
            (None, None) => return,
            (Some(key), None) => {
                let key = *key;
                stored.next();
                key
            }
            (Some(key), Some((other, _))) if key < other => {
                let key = *key;
                stored.next();
                key
            }
            (same, Some((key, effect))) => {
                let key = *key;
                let lives = lives(effect, now);
                if same.is_some_and(|same| *same == key) {
                    stored.next();
                }
                staged.next();
                if !lives {
                    continue;
                }
                key
            }
        };
        if visit(key).is_break() {
            return;
        }
    }
}

fn count_staged(machine: &Machine) -> usize {
    let index = machine.index();
    let view = index.view();
    let stored = if machine.overlay().is_cleared() { 0 } else { view.len() };
    let change = machine.overlay().iter().map(|(key, staged)| {
        let before = !machine.overlay().is_cleared() && view.get(key).is_some();
        let after = matches!(staged.effect, StagedEffect::Put { .. });
        i64::from(after) - i64::from(before)
    });
    stored.saturating_add_signed(change.sum::<i64>() as isize)
}

fn lives(staged: &Staged, now: Millis) -> bool {
    matches!(&staged.effect, StagedEffect::Put { expires_at, .. } if !expires_at.has_lapsed(now))
}
