//! The shard's machine: events in, work out. No socket, no file, no clock, no runtime.
//!
//! ```text
//! stage::*  ->  open batch  ->  next_work (propose)  ->  [driver: append, flush]  ->  persisted  ->  apply
//! ```
//! Promise: offsets are claimed in the order of staging and become visible in that order; what was staged while the
//! last batch was flushed is the next batch. Must never do I/O or ask what time it is.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use crate::core::consensus::{Consensus, NumberedBatch, Vote, generation_start};
use crate::core::error::Refusal;
use crate::core::index::Index as KeyIndex;
use crate::core::limits;
use crate::core::log::frame::{BatchBuilder, BatchHeader, BatchType, Place, records};
use crate::core::log::reader::Segments;
use crate::core::record::RecordError;
use crate::core::record::cache::CacheRecord;
use crate::core::record::control::{ControlRecord, Trim};
use crate::core::shard::apply::{Applied, apply};
use crate::core::shard::growth::Growth;
use crate::core::shard::overlay::Overlay;
use crate::core::shard::space::Space;
use crate::core::shard::transaction::Transaction;
use crate::core::types::{Epoch, Generation, Index, Location, Millis, Offset, ShardId};

/// The bounds a machine keeps.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub max_value_bytes: usize,
    pub max_batch_bytes: usize,
    pub max_staged_bytes: usize,
}

impl Bounds {
    /// The bounds that follow from a segment size.
    #[must_use]
    pub fn of(max_value_bytes: usize, segment_bytes: u32) -> Self {
        Self {
            max_value_bytes,
            max_batch_bytes: limits::max_batch_bytes(segment_bytes),
            max_staged_bytes: limits::max_staged_bytes(segment_bytes),
        }
    }
}

/// A batch the driver is to append.
#[derive(Clone, Debug)]
pub struct AppendOrder {
    pub place: Place,
    pub bytes: Bytes,
}

/// What the driver is to do: first the vote, then the appends, then one flush, then [`Machine::persisted`].
#[derive(Clone, Debug, Default)]
pub struct Work {
    pub vote: Option<Vote>,
    pub append: Vec<AppendOrder>,
}

/// A batch between proposal and apply.
struct InFlight {
    index: Index,
    first_offset: Offset,
    bytes: Bytes,
    /// Where it begins, once appended.
    location: Option<Location>,
}

/// The state of one shard's owner.
pub struct Machine {
    pub(super) id: ShardId,
    pub(super) bounds: Bounds,
    consensus: Consensus,
    pub(super) index: Arc<KeyIndex>,
    pub(super) overlay: Overlay,
    /// Takes what is staged.
    pub(super) open: Option<BatchBuilder>,
    /// Finished batches that wait for their turn to be proposed.
    pub(super) full: VecDeque<Vec<u8>>,
    in_flight: VecDeque<InFlight>,
    pub(super) next_offset: Offset,
    /// Bytes of the batches in `full`.
    full_bytes: usize,
    /// Bytes of the batches that were ordered and are not appended yet.
    ordered_bytes: usize,
    /// The history this log tells.
    pub(super) epoch: Epoch,
    pub(super) space: Space,
    /// By how much each staged and not yet applied record will change the live bytes, while there is a bound on them.
    pub(super) growth: Growth,
    /// What the transaction under way began from.
    pub(super) transaction: Option<Transaction>,
    /// Somebody was told to wait until there is more room.
    pub(super) room_wanted: bool,
    applied_next: Offset,
    pub(super) segments: Arc<Segments>,
    /// The newest trim that was applied and whose segments are still there.
    trimmed: Option<Trim>,
    /// The newest batch known to be flushed here, for the headers of later ones.
    flushed: Index,
    pub(super) doors_open: bool,
    /// Why nothing more is staged, once nothing is.
    pub(super) ended: Option<Refusal>,
    /// To be written into the log once the doors open.
    epoch_due: bool,
}

/// What a machine starts from.
pub struct MachineStart {
    pub id: ShardId,
    pub bounds: Bounds,
    pub consensus: Consensus,
    pub index: Arc<KeyIndex>,
    /// Batches in the log that are not yet committed, with where they begin.
    pub uncommitted: Vec<(BatchHeader, Bytes, Location)>,
    pub applied_next: Offset,
    pub next_offset: Offset,
    pub flushed: Index,
    pub epoch: Epoch,
    /// `epoch` is to be written into the log once the doors open.
    pub epoch_due: bool,
    /// Where segments begin, which a trim's record does not know.
    pub segments: Arc<Segments>,
    pub max_data_bytes: u64,
}

impl Machine {
    #[must_use]
    pub fn new(start: MachineStart) -> Self {
        let in_flight = start
            .uncommitted
            .into_iter()
            .map(|(header, bytes, location)| InFlight {
                index: header.index,
                first_offset: header.first_offset,
                bytes,
                location: Some(location),
            })
            .collect();
        Self {
            id: start.id,
            bounds: start.bounds,
            consensus: start.consensus,
            index: start.index,
            overlay: Overlay::default(),
            open: None,
            full: VecDeque::new(),
            in_flight,
            next_offset: start.next_offset,
            full_bytes: 0,
            ordered_bytes: 0,
            epoch: start.epoch,
            space: Space { max_data_bytes: start.max_data_bytes, ..Space::default() },
            growth: Growth::default(),
            transaction: None,
            room_wanted: false,
            applied_next: start.applied_next,
            trimmed: None,
            segments: start.segments,
            flushed: start.flushed,
            doors_open: false,
            ended: None,
            epoch_due: start.epoch_due,
        }
    }

    #[must_use]
    pub fn id(&self) -> &ShardId {
        &self.id
    }

    #[must_use]
    pub fn index(&self) -> Arc<KeyIndex> {
        Arc::clone(&self.index)
    }

    /// What is staged and not yet applied.
    #[must_use]
    pub fn overlay(&self) -> &Overlay {
        &self.overlay
    }

    /// The newest record that is staged and not yet applied.
    #[must_use]
    pub fn newest_staged(&self) -> Option<Offset> {
        (self.next_offset > self.applied_next).then(|| Offset(self.next_offset.0 - 1))
    }

    /// One past the last applied record.
    #[must_use]
    pub fn applied_next(&self) -> Offset {
        self.applied_next
    }

    /// One past the last staged record.
    #[must_use]
    pub fn next_offset(&self) -> Offset {
        self.next_offset
    }

    /// The history that its log tells.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The generation under which this replica stages.
    #[must_use]
    pub fn generation(&self) -> Generation {
        self.consensus.generation()
    }

    /// Whether nothing more is staged.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// What bounds staging; whoever knows the disk keeps it current.
    pub fn space(&mut self) -> &mut Space {
        &mut self.space
    }

    /// Whether somebody waits for more room than is allocated; asked once.
    pub fn take_room_wanted(&mut self) -> bool {
        std::mem::take(&mut self.room_wanted)
    }

    /// The newest trim applied since this was last asked: the log's beginning may go.
    pub fn take_trimmed(&mut self) -> Option<Trim> {
        self.trimmed.take()
    }

    /// Whether this replica owns the shard and has applied the start of its own generation.
    #[must_use]
    pub fn doors_open(&self) -> bool {
        self.doors_open
    }

    /// Asks the group to make this replica the owner.
    ///
    /// # Errors
    /// The engine's reason.
    pub fn campaign(&mut self) -> Result<(), String> {
        self.consensus.campaign()
    }

    /// The next thing to do, if there is one: proposes what is staged as one batch. Applies what became committed.
    ///
    /// # Errors
    /// [`RecordError`] when a committed record is of no shape this build knows.
    pub fn next_work(&mut self, now: Millis) -> Result<Option<Work>, RecordError> {
        if self.ended.is_some() {
            return Ok(None);
        }
        if self.doors_open
            && self.consensus.accepts()
            && let Some(batch) = self.next_batch(now)
        {
            let proposed = self.consensus.propose(batch);
            assert!(proposed.is_ok(), "a group of one that accepts proposals took none");
        }
        while let Some(step) = self.consensus.step() {
            for batch in step.committed {
                self.apply_committed(&batch, now)?;
            }
            if step.vote.is_some() || !step.append.is_empty() {
                let append = step.append.into_iter().map(|batch| self.order(batch, now)).collect();
                return Ok(Some(Work { vote: step.vote, append }));
            }
        }
        Ok(None)
    }

    fn next_batch(&mut self, now: Millis) -> Option<Vec<u8>> {
        if let Some(batch) = self.full.pop_front() {
            self.full_bytes -= batch.len();
            return Some(batch);
        }
        self.open.take().map(|open| open.finish(now))
    }

    /// Ends the open batch: it waits for its turn, and the next record begins another.
    pub(super) fn close_batch(&mut self, open: BatchBuilder, now: Millis) {
        let batch = open.finish(now);
        self.full_bytes += batch.len();
        self.full.push_back(batch);
    }

    /// Bytes staged and not yet proposed.
    #[must_use]
    pub fn staged_bytes(&self) -> usize {
        self.full_bytes + self.open.as_ref().map_or(0, BatchBuilder::len)
    }

    /// What the cache will hold when all that is staged is applied: bytes of live records.
    pub(super) fn held_bytes(&self) -> u64 {
        self.index.view().live().bytes.saturating_add_signed(self.growth.bytes())
    }

    /// The record staged at `offset` will change the live bytes by this much.
    pub(super) fn will_grow(&mut self, offset: Offset, bytes: i64) {
        if self.space.max_data_bytes > 0 {
            self.growth.add(offset, bytes);
        }
    }

    /// Bytes staged and not yet appended.
    pub(super) fn unappended_bytes(&self) -> usize {
        self.staged_bytes() + self.ordered_bytes
    }

    fn order(&mut self, batch: NumberedBatch, now: Millis) -> AppendOrder {
        let bytes = batch.batch.unwrap_or_else(|| {
            assert!(self.open.is_none() && self.full.is_empty(), "nothing is staged before a generation begins");
            let start = generation_start(self.next_offset, now);
            self.next_offset = self.next_offset.plus(1);
            start
        });
        let place = Place {
            index: batch.index,
            generation: batch.generation,
            durable: self.flushed,
            committed: self.consensus.committed(),
        };
        let first_offset = BatchHeader::read_fields(&bytes).map(|header| header.first_offset).unwrap_or_default();
        self.ordered_bytes += bytes.len();
        self.in_flight.push_back(InFlight { index: batch.index, first_offset, bytes: bytes.clone(), location: None });
        AppendOrder { place, bytes }
    }

    /// A batch was appended and begins at `location`.
    pub fn appended(&mut self, index: Index, location: Location) {
        if let Some(batch) = self.in_flight.iter_mut().find(|batch| batch.index == index) {
            batch.location = Some(location);
            self.ordered_bytes -= batch.bytes.len();
        }
    }

    /// Everything ordered so far is persisted as the policy asks; `flushed` is the newest batch really flushed.
    /// What became committed is applied: one past the last applied record is in [`Machine::applied_next`].
    ///
    /// # Errors
    /// As [`Machine::next_work`].
    pub fn persisted(&mut self, flushed: Index, now: Millis) -> Result<(), RecordError> {
        self.flushed = self.flushed.max(flushed);
        self.consensus.persisted();
        while let Some(step) = self.consensus.step() {
            assert!(step.vote.is_none() && step.append.is_empty(), "nothing was proposed since the last step");
            for batch in step.committed {
                self.apply_committed(&batch, now)?;
            }
        }
        Ok(())
    }

    fn apply_committed(&mut self, batch: &NumberedBatch, now: Millis) -> Result<(), RecordError> {
        let Some(in_flight) = self.in_flight.pop_front() else { unreachable!("a committed batch was in flight") };
        assert_eq!(in_flight.index, batch.index, "batches are applied in the order of the log");
        let Some(location) = in_flight.location else { unreachable!("a committed batch was appended") };
        let header = BatchHeader::read_fields(&in_flight.bytes).map_err(|_| RecordError::Short)?;
        match apply(&header, &in_flight.bytes, location, &self.index)? {
            Applied::Data => self.leave_overlay(&header, &in_flight.bytes),
            Applied::Control(ControlRecord::GenerationStart) if batch.generation == self.consensus.generation() => {
                self.open_doors(now);
            }
            Applied::Control(ControlRecord::Trim(trim)) => {
                if let Some(first) = self.segments.beginning_at(trim.base_index) {
                    self.index.trim(trim.base_offset, first.number);
                    self.consensus.trim(trim.base_index, trim.base_generation);
                    self.trimmed = Some(trim);
                }
            }
            Applied::Control(_) => {}
        }
        self.applied_next = header.next_offset();
        self.growth.applied(self.applied_next);
        self.consensus.applied(batch.index);
        Ok(())
    }

    fn leave_overlay(&mut self, header: &BatchHeader, bytes: &[u8]) {
        for framed in records(header, bytes) {
            match CacheRecord::decode(framed.body) {
                Ok(CacheRecord::Put { key, .. } | CacheRecord::Delete { key }) => {
                    self.overlay.applied(key, framed.offset);
                }
                Ok(CacheRecord::Clear) => self.overlay.applied_clear(framed.offset),
                // A carry changes no value, so it never was in the overlay.
                Ok(CacheRecord::Carried { .. }) | Err(_) => {}
            }
        }
    }

    fn open_doors(&mut self, now: Millis) {
        self.doors_open = self.consensus.is_owner();
        if self.doors_open && std::mem::take(&mut self.epoch_due) {
            self.stage_control(&ControlRecord::Epoch(self.epoch), now);
        }
    }

    /// Stages a record of the log itself, in a batch of its own; gives its offset.
    pub(super) fn stage_control(&mut self, record: &ControlRecord, now: Millis) -> Offset {
        if let Some(open) = self.open.take() {
            self.close_batch(open, now);
        }
        let offset = self.next_offset;
        let mut batch = BatchBuilder::new(BatchType::Control, offset);
        batch.push(|into| record.encode(into));
        self.next_offset = batch.next_offset();
        self.close_batch(batch, now);
        offset
    }

    /// The value bytes of a staged record, wherever its batch waits.
    #[must_use]
    pub fn staged_bytes_of(&self, batch: Offset, range: std::ops::Range<usize>) -> Option<&[u8]> {
        let built = self.open.as_ref().filter(|open| open.first_offset() == batch).map(BatchBuilder::bytes);
        let first = |bytes: &[u8]| BatchHeader::read_fields(bytes).map(|header| header.first_offset);
        built
            .or_else(|| self.full.iter().map(Vec::as_slice).find(|bytes| first(bytes) == Ok(batch)))
            .or_else(|| self.in_flight.iter().find(|flight| flight.first_offset == batch).map(|flight| &*flight.bytes))
            .and_then(|bytes| bytes.get(range))
    }

    /// The log failed: nothing more is staged. Gives the first offset that was never proposed, hence never written.
    pub fn fail(&mut self) -> Offset {
        self.ended = Some(Refusal::Poisoned);
        self.overlay.clear();
        self.unproposed()
    }

    /// The log was closed: nothing more is staged or proposed. Gives what [`Machine::fail`] gives.
    pub fn close(&mut self) -> Offset {
        self.ended = Some(Refusal::Stopping);
        self.overlay.clear();
        self.unproposed()
    }

    fn unproposed(&self) -> Offset {
        let full = self.full.front().and_then(|bytes| BatchHeader::read_fields(bytes).ok());
        let open = self.open.as_ref().map(BatchBuilder::first_offset);
        full.map(|header| header.first_offset).or(open).unwrap_or(self.next_offset)
    }
}
