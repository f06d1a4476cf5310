//! What clients ask for: each write is decided by the plain map, too, and every answer compared.
//!
//! Must never know how a record is written.

use hearth::core::api::{Progress, Turn, WriteError};
use hearth::core::error::Refusal;
use hearth::core::op::{Condition, Expiry, Put};
use hearth::core::shard::stage::Value;
use hearth::core::types::{Millis, Revision};

use super::journal::Staged;
use super::ops::{Lifetime, Shortage, When, Write};
use super::player::{Player, PowerGone, key_of};
use crate::bed::value_of;
use crate::model::{Ask, Change, apply, decide, live};

impl Player {
    /// Stages writes as one turn, or as several when there is no room for them at once.
    pub(super) fn turn(&mut self, writes: &[Write]) -> Result<(), PowerGone> {
        let mut rest = writes;
        for _ in 0..=2 * writes.len() {
            rest = self.stage(rest);
            if rest.is_empty() {
                return Ok(());
            }
            self.seen().count("turns that waited for room", 1);
            self.drive()?;
            if self.bed().shard.machine().space().is_overdue() {
                self.seen().count("turns that waited for compaction", 1);
                self.compact()?;
            }
        }
        panic!("there never is room for {rest:?}");
    }

    /// Stages writes in one turn; gives those for which there is no room now.
    fn stage<'w>(&mut self, writes: &'w [Write]) -> &'w [Write] {
        let (turns, before) = (self.bed().turns(), self.staged.len());
        let mut turn = turns.turn();
        let mut done = 0;
        while let Some(write) = writes.get(done)
            && self.stage_one(&mut turn, write)
        {
            done += 1;
        }
        drop(turn);
        self.name_batches(before);
        &writes[done..]
    }

    /// Which batches hold the puts that were just staged, as the machine names them.
    fn name_batches(&mut self, from: usize) {
        let (now, shard) = (self.now(), std::sync::Arc::clone(&self.bed().shard));
        let machine = shard.machine();
        for staged in &mut self.staged[from..] {
            let Change::Put { key, .. } = &staged.change else { continue };
            if let Some(Value::Staged { batch, revision, .. }) = machine.look(key, now).value
                && revision == Revision(staged.offset)
            {
                staged.batch = Some(batch.0);
            }
        }
    }

    /// Stages one write; false when there is no room for it now.
    fn stage_one(&mut self, turn: &mut Turn<'_>, write: &Write) -> bool {
        match write {
            Write::Put { key, bytes, lifetime, when } => {
                let ask = self.ask(*key, *bytes, *lifetime, *when);
                self.put_or_delete(turn, &ask)
            }
            Write::Delete { key } => {
                let (expiry, condition) = (Expiry::Never, Condition::Always);
                self.put_or_delete(turn, &Ask { key: key_of(*key), value: None, expiry, condition })
            }
            Write::DeleteAll { keys } => self.delete_all(turn, keys),
            Write::Clear => self.clear(turn),
        }
    }

    fn ask(&mut self, key: u8, bytes: u16, lifetime: Lifetime, when: When) -> Ask {
        let (key, now) = (key_of(key), self.now());
        let revision = live(&self.state, &key, now).map_or(0, |held| held.revision);
        // Values differ from those before them, so that an old one is known when it comes back.
        self.values = self.values.wrapping_add(1);
        Ask {
            key,
            value: Some(vec![self.values; usize::from(bytes)]),
            expiry: match lifetime {
                Lifetime::Never => Expiry::Never,
                Lifetime::Lasts(ms) => Expiry::At(Millis(now.0 + ms)),
                Lifetime::Past(ms) => Expiry::At(Millis(now.0 - ms)),
                Lifetime::Keep => Expiry::Keep,
            },
            condition: match when {
                When::Always => Condition::Always,
                When::Absent => Condition::Absent,
                When::Present => Condition::Present,
                When::Unchanged => Condition::Revision(Revision(revision)),
                When::Changed => Condition::Revision(Revision(revision + 1)),
            },
        }
    }

    fn put_or_delete(&mut self, turn: &mut Turn<'_>, ask: &Ask) -> bool {
        let now = turn.now();
        let answer = match &ask.value {
            Some(value) => turn.put(&Put { key: &ask.key, value, expiry: ask.expiry, condition: ask.condition }),
            None => turn.delete(&ask.key),
        };
        let (outcome, hold) = match answer {
            Ok(answer) => answer,
            Err(WriteError::Full(_)) => return false,
            Err(WriteError::Refused(refusal)) => {
                let (_, change) = decide(&self.state, ask, 0, now);
                self.refused(refusal, change.as_ref());
                return true;
            }
            Err(other) => unreachable!("{other:?} of one shard that is there"),
        };
        let offset = outcome.written.map_or(0, |offset| offset.0);
        let (held, change) = decide(&self.state, ask, offset, now);
        assert_eq!((outcome.held, outcome.written.is_some()), (held, change.is_some()), "{ask:?}");
        let previous = live(&self.state, &ask.key, now).map(|held| (held.revision, held.expires_at));
        let found = outcome.previous.as_ref().map(|value| (value.revision().0, value.expires_at()));
        assert_eq!(found, previous, "what {ask:?} found");
        self.holds.extend(hold);
        self.seen().count("conditions that failed", u64::from(!held));
        match change {
            Some(change) => self.take(offset, change),
            None => self.seen().count("writes that wrote nothing", 1),
        }
        // A read behind it in the same turn sees it at once.
        let expected = live(&self.state, &ask.key, now).map(|held| held.value.clone());
        let (found, _) = turn.get(&ask.key).expect("readable");
        assert_eq!(found.map(|found| value_of(&found, &ask.key).expect("readable")), expected);
        true
    }

    /// A record was staged.
    fn take(&mut self, offset: u64, change: Change) {
        let now = self.now();
        let is_put = matches!(change, Change::Put { .. });
        let is_new = matches!(&change, Change::Put { key, .. } if live(&self.state, key, now).is_none());
        let in_order = match self.shortage {
            Shortage::None => true,
            Shortage::Disk => !is_put,
            Shortage::Data => !is_new,
            Shortage::Allocated => false,
        };
        assert!(in_order, "{change:?} was staged while short of {:?}", self.shortage);
        apply(&mut self.state, std::slice::from_ref(&change));
        self.pass.clears += u64::from(matches!(change, Change::Clear));
        self.staged.push(Staged { offset, batch: None, change, acknowledged_at: None });
    }

    /// A write that would have made `change` was refused.
    fn refused(&mut self, refusal: Refusal, change: Option<&Change>) {
        let is_put = matches!(change, Some(Change::Put { .. }));
        let event = match (self.shortage, refusal) {
            (Shortage::Disk, Refusal::DiskLow { .. }) if is_put => "puts refused below the floor",
            (Shortage::Data, Refusal::DataFull { .. }) if is_put => "puts refused over the bound on data",
            (Shortage::Allocated, Refusal::NoRoom) if change.is_some() => "writes refused without room",
            (shortage, refusal) => panic!("{change:?} was refused while short of {shortage:?}: {refusal}"),
        };
        let in_pass = self.bed().housekeeper.compactor().is_running();
        self.seen().count(event, 1);
        self.seen().count("refusals in the middle of a pass", u64::from(in_pass));
    }

    fn delete_all(&mut self, turn: &mut Turn<'_>, keys: &[u8]) -> bool {
        let (now, keys) = (turn.now(), keys.iter().map(|key| key_of(*key)).collect::<Vec<_>>());
        let mut progress = Progress::default();
        match turn.delete_all(keys.iter().map(Vec::as_slice), &mut progress) {
            Ok(()) => {}
            Err(WriteError::Full(_)) => return false,
            Err(WriteError::Refused(refusal)) => {
                self.refused(refusal, Some(&Change::Delete { key: keys[0].clone() }));
                return true;
            }
            Err(other) => unreachable!("{other:?} of one shard that is there"),
        }
        let Progress { count: removed, holds, .. } = progress;
        let mut wrote =
            holds.iter().filter(|hold| hold.wrote).map(|hold| hold.offset.0).collect::<Vec<_>>().into_iter();
        self.holds.extend(holds);
        let mut expected = 0;
        for key in keys {
            if live(&self.state, &key, now).is_some() {
                self.take(wrote.next().expect("a live key is deleted"), Change::Delete { key });
                expected += 1;
            }
        }
        assert_eq!((removed, wrote.next()), (expected, None));
        true
    }

    fn clear(&mut self, turn: &mut Turn<'_>) -> bool {
        match turn.clear() {
            Ok(holds) => {
                let nothing = self.state.values().all(|held| held.expires_at.has_lapsed(turn.now()));
                assert!(!holds.is_empty() || nothing, "a clear of something that stages nothing");
                holds.iter().for_each(|hold| self.take(hold.offset.0, Change::Clear));
                self.holds.extend(holds);
            }
            Err(WriteError::Full(_)) => return false,
            Err(WriteError::Refused(refusal)) => self.refused(refusal, Some(&Change::Clear)),
            Err(other) => unreachable!("{other:?} of one shard that is there"),
        }
        true
    }
}
