//! What compaction stages: carries and trims, which are writes like any other.
//!
//! Promise: a carry is staged only while applied state and overlay still name the very record it copies, so a staged carry
//! is never dead and apply needs no condition. A trim is staged only when the applied index holds nothing located below
//! the new base: it verifies, it does not remember. Must never read the log.

use std::collections::VecDeque;

use crate::core::limits::CARRY_MOST_PIECE_BYTES;
use crate::core::log::start::LogStart;
use crate::core::record::cache::{CacheRecord, REVISION_BYTES};
use crate::core::record::control::{ControlRecord, Trim};
use crate::core::shard::machine::Machine;
use crate::core::shard::overlay::Covered;
use crate::core::shard::space::Purpose;
use crate::core::shard::stage::{StageError, carried_bytes};
use crate::core::types::{Generation, Millis, Offset, Revision};
use crate::teeth::{Tooth, bites};

/// A record that was live when compaction read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub offset: Offset,
    /// The verified body of the record.
    pub body: Vec<u8>,
}

/// What became of some candidates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    pub records: u64,
    pub bytes: u64,
    /// Superseded, deleted, cleared or lapsed since they were read: they stay behind.
    pub left_behind: u64,
    /// The newest carry that was staged.
    pub last: Option<Offset>,
}

/// Why a pass cannot go on as it meant to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PassError {
    /// The pass is of another generation and dies with it.
    OtherGeneration,
    /// So many live entries stand below the new base: go round again.
    StillLive(u64),
    Stage(StageError),
}

impl From<StageError> for PassError {
    fn from(error: StageError) -> Self {
        Self::Stage(error)
    }
}

impl Machine {
    /// Stages carries of the first candidates, about `budget_bytes` of them, and takes them off the queue.
    ///
    /// # Errors
    /// [`PassError`]; what was staged before it stays staged and counted in `carried`.
    pub fn stage_carries(
        &mut self,
        generation: Generation,
        candidates: &mut VecDeque<Candidate>,
        budget_bytes: u64,
        now: Millis,
        carried: &mut Carried,
    ) -> Result<(), PassError> {
        self.admit_pass(generation)?;
        let until = carried.bytes + budget_bytes;
        while let Some(candidate) = candidates.front()
            && carried.bytes < until
        {
            match self.stage_carry(candidate, now)? {
                Some((offset, bytes)) => {
                    carried.records += 1;
                    carried.bytes += bytes as u64;
                    carried.last = Some(offset);
                }
                None => carried.left_behind += 1,
            }
            candidates.pop_front();
        }
        Ok(())
    }

    /// Stages one carry; `None` when the record is no longer what its key stands for.
    fn stage_carry(&mut self, candidate: &Candidate, now: Millis) -> Result<Option<(Offset, usize)>, StageError> {
        let (key, value, expires_at, revision) = match CacheRecord::decode(&candidate.body) {
            Ok(CacheRecord::Put { key, value, expires_at }) => (key, value, expires_at, Revision(candidate.offset.0)),
            Ok(CacheRecord::Carried { key, value, expires_at, revision }) => (key, value, expires_at, revision),
            _ => return Ok(None),
        };
        let entry = self.index.view().get(key);
        let named = entry.is_some_and(|entry| entry.offset == candidate.offset);
        if !(named && self.overlay.get(key) == Covered::No || bites(Tooth::CarryUnconditionally)) {
            return Ok(None);
        }
        if expires_at.has_lapsed(now) {
            self.index.drop_lapsed(key, candidate.offset, now);
            return Ok(None);
        }
        let bytes = carried_bytes(key.len() + value.len());
        let record = CacheRecord::Carried { key, value, expires_at, revision };
        let (offset, _, _) = self.push(record, Purpose::Carry, bytes, now)?;
        Ok(Some((offset, bytes)))
    }

    /// Stages the trim after which the log begins at `start`; gives its offset.
    ///
    /// # Errors
    /// [`PassError::StillLive`] while the applied index names anything below; nothing was staged.
    pub fn stage_trim(&mut self, generation: Generation, start: &LogStart, now: Millis) -> Result<Offset, PassError> {
        self.admit_pass(generation)?;
        let live = self.index.view().live_below(start.segment).entries;
        if live > 0 && !bites(Tooth::TrimWithoutVerifying) {
            return Err(PassError::StillLive(live));
        }
        let trim = Trim {
            base_offset: start.offset,
            base_index: start.index,
            base_generation: start.generation,
            epoch: self.epoch,
            configuration: start.configuration.clone(),
            configuration_index: start.configuration_index,
        };
        self.make_room(Purpose::MakesRoom, TRIM_BYTES, now)?;
        Ok(self.stage_control(&ControlRecord::Trim(trim), now))
    }

    /// What the next pass may take: what is live in the oldest segment, what carries are longer than the puts they copy, there
    /// and a little further on, and what is lost where one segment ends and another begins.
    pub(super) fn next_pass_bytes(&self) -> u64 {
        let Some((oldest, _)) = self.segments.oldest_sealed() else { return 0 };
        let view = self.index.view();
        let longer = view.live().entries * REVISION_BYTES as u64;
        view.live_of(oldest.number).bytes + longer.min(oldest.bytes() / 2) + 2 * CARRY_MOST_PIECE_BYTES
    }

    fn admit_pass(&self, generation: Generation) -> Result<(), PassError> {
        self.admit(&[]).map_err(StageError::from)?;
        if self.generation() != generation {
            return Err(PassError::OtherGeneration);
        }
        Ok(())
    }
}

/// More than any trim takes.
const TRIM_BYTES: usize = 512;
