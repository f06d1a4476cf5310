//! What replaying a log tells: the index, and what stands in the log beside the keys.
//!
//! Promise: opening and looking go through the same code, so what the one would refuse the other says; nothing here
//! changes the log. Must never know a file.

use std::path::Path;

use crate::core::error::OpenError;
use crate::core::index::Index as KeyIndex;
use crate::core::log::start::LogStart;
use crate::core::log::survey::{FoundBatch, Survey, path_in};
use crate::core::record::RecordError;
use crate::core::record::control::{ControlRecord, Trim};
use crate::core::shard::apply::{Applied, apply, decode};
use crate::core::store::node::NODE_FILE;
use crate::core::types::{Epoch, Generation, Index, Millis, Offset, ShardId};

/// What replaying the committed batches told beside the index.
#[derive(Default)]
pub struct Replayed {
    /// The first index of each generation.
    pub generations: Vec<(Index, Generation)>,
    /// One past the last record replayed.
    pub applied_next: Offset,
    /// The newest epoch the log names.
    pub epoch: Option<Epoch>,
    /// The newest time of a batch.
    pub time: Millis,
    /// The newest trim.
    trim: Option<Trim>,
}

impl Replayed {
    /// Replays a committed batch of the log in `dir`.
    ///
    /// # Errors
    /// [`OpenError::Damaged`] when a record is of no shape this build knows.
    pub fn replay(&mut self, dir: &Path, found: &FoundBatch<'_>, index: &KeyIndex) -> Result<(), OpenError> {
        let applied = apply(&found.header, found.bytes, found.location, index).map_err(damaged(dir, found))?;
        self.note(found, applied);
        Ok(())
    }

    /// The same without an index: for whoever only wants to know whether it can be replayed.
    ///
    /// # Errors
    /// As [`Replayed::replay`].
    pub fn check(&mut self, dir: &Path, found: &FoundBatch<'_>) -> Result<(), OpenError> {
        let decoded = decode(&found.header, found.bytes, found.location).map_err(damaged(dir, found))?;
        self.note(found, decoded.applied());
        Ok(())
    }

    fn note(&mut self, found: &FoundBatch<'_>, applied: Applied) {
        let generation = found.header.generation;
        if self.generations.last().is_none_or(|last| last.1 != generation) {
            self.generations.push((found.header.index, generation));
        }
        self.applied_next = found.header.next_offset();
        self.time = self.time.max(found.header.time);
        match applied {
            Applied::Control(ControlRecord::Epoch(epoch)) => self.epoch = Some(epoch),
            Applied::Control(ControlRecord::Trim(trim)) => {
                // The record that named the epoch may be gone.
                self.epoch = Some(trim.epoch);
                self.trim = Some(trim);
            }
            Applied::Control(ControlRecord::GenerationStart) | Applied::Data => {}
        }
    }

    /// The last word before anything is changed: gives where a log begins whose trim was applied, and the process died
    /// before the anchor knew.
    ///
    /// # Errors
    /// [`OpenError::Damaged`] when the log is not what `node.toml` or its own trim says, or holds a record of no shape this
    /// build knows.
    pub fn judge(&self, id: &ShardId, dir: &Path, known: bool, survey: &Survey) -> Result<Option<LogStart>, OpenError> {
        let broken = |what: String| OpenError::Damaged { path: dir.to_owned(), at: 0, what };
        if known && survey.is_new() {
            return Err(broken(format!("{NODE_FILE} knows {id}, but there is no log in its directory")));
        }
        // Also what the group has yet to commit: a log that cannot be applied is refused while it is as it was.
        for batch in &survey.uncommitted {
            let found = FoundBatch { header: batch.header, location: batch.location, bytes: &batch.bytes };
            decode(&found.header, found.bytes, found.location).map_err(damaged(dir, &found))?;
        }
        let unfinished = self.trim.as_ref().filter(|trim| trim.base_index > survey.first_index());
        let start = unfinished.map(|trim| {
            let what = format!("it was trimmed to batch {}, but no segment begins there", trim.base_index.0);
            survey.start_at(trim.base_index).ok_or_else(|| broken(what))
        });
        start.transpose()
    }
}

/// The error of a batch with a record that is of no shape this build knows.
fn damaged<'a>(dir: &'a Path, found: &'a FoundBatch<'_>) -> impl FnOnce(RecordError) -> OpenError + 'a {
    move |error| OpenError::Damaged {
        path: path_in(dir, Some(found.location.segment)),
        at: u64::from(found.location.position),
        what: error.to_string(),
    }
}
