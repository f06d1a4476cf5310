//! What the engine may look up: the batches not yet applied, and the generation of every index.
//!
//! Promise: answers from memory only, because the engine calls synchronously and takes an error as the end of the group;
//! memory is bounded by what is staged and not yet applied. Must never touch the log.

use std::collections::VecDeque;

use raft::eraftpb::{ConfState, Entry, HardState, Snapshot};
use raft::{GetEntriesContext, RaftState, Storage, StorageError};

use crate::core::types::{Generation, Index};

/// The engine's view of the log.
pub struct EntryStore {
    state: RaftState,
    /// The index and generation before the first batch of the log.
    base: (Index, Generation),
    /// The first index of each generation after `base`, ascending: the generation of any index without reading it.
    generations: Vec<(Index, Generation)>,
    tail: Index,
    /// The batches after the applied one, contiguous up to the tail.
    entries: VecDeque<Entry>,
}

impl EntryStore {
    /// A view of a log whose batches up to `applied` are applied and will never be asked for again.
    pub(super) fn new(
        hard_state: HardState,
        members: ConfState,
        base: (Index, Generation),
        generations: Vec<(Index, Generation)>,
        applied: Index,
    ) -> Self {
        let state = RaftState { hard_state, conf_state: members };
        Self { state, base, generations, tail: applied, entries: VecDeque::new() }
    }

    /// Keeps batches that follow the tail.
    pub(super) fn append(&mut self, entries: &[Entry]) {
        for entry in entries {
            self.note(Index(entry.index), Generation(entry.term));
            self.entries.push_back(entry.clone());
        }
    }

    /// Term and vote as last handed out.
    pub(super) fn hard_state(&self) -> (u64, u64) {
        (self.state.hard_state.term, self.state.hard_state.vote)
    }

    pub(super) fn set_hard_state(&mut self, (term, vote): (u64, u64)) {
        self.state.hard_state.term = term;
        self.state.hard_state.vote = vote;
    }

    fn note(&mut self, index: Index, generation: Generation) {
        assert_eq!(index, self.tail.next(), "one voter never replaces a batch");
        if self.generations.last().map_or(self.base.1, |last| last.1) != generation {
            self.generations.push((index, generation));
        }
        self.tail = index;
    }

    /// The log begins after `base`: nothing older than it will be asked for again.
    pub(super) fn trim(&mut self, base: (Index, Generation)) {
        assert!(base.0 >= self.base.0 && base.0 <= self.tail, "a log begins between its old start and its end");
        // The generation that `base` stands in is known from `base` itself.
        let gone = self.generations.partition_point(|(first, _)| *first <= base.0);
        self.generations.drain(..gone);
        self.base = base;
    }

    /// Forgets batches up to and including `applied`.
    pub(super) fn forget(&mut self, applied: Index) {
        while self.entries.pop_front_if(|entry| entry.index <= applied.0).is_some() {}
    }
}

impl Storage for EntryStore {
    fn initial_state(&self) -> raft::Result<RaftState> {
        Ok(self.state.clone())
    }

    fn entries(
        &self,
        low: u64,
        high: u64,
        max_size: impl Into<Option<u64>>,
        _context: GetEntriesContext,
    ) -> raft::Result<Vec<Entry>> {
        let Some(first) = self.entries.front().map(|entry| entry.index) else {
            return if low >= high { Ok(Vec::new()) } else { Err(StorageError::Compacted.into()) };
        };
        if low < first {
            return Err(StorageError::Compacted.into());
        }
        let (from, to) = ((low - first) as usize, ((high - first) as usize).min(self.entries.len()));
        let mut entries: Vec<Entry> = self.entries.range(from..to).cloned().collect();
        raft::util::limit_size(&mut entries, max_size.into());
        Ok(entries)
    }

    fn term(&self, index: u64) -> raft::Result<u64> {
        let index = Index(index);
        if index < self.base.0 {
            return Err(StorageError::Compacted.into());
        }
        if index > self.tail {
            return Err(StorageError::Unavailable.into());
        }
        let after = self.generations.partition_point(|(first, _)| *first <= index);
        Ok(after.checked_sub(1).map_or(self.base.1, |at| self.generations[at].1).0)
    }

    fn first_index(&self) -> raft::Result<u64> {
        Ok(self.base.0.next().0)
    }

    fn last_index(&self) -> raft::Result<u64> {
        Ok(self.tail.0)
    }

    fn snapshot(&self, _request_index: u64, _to: u64) -> raft::Result<Snapshot> {
        // Only asked for by followers that are behind the base; a group of one has none.
        Err(StorageError::SnapshotTemporarilyUnavailable.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Batches 2 to 9, all applied, in generations 2 (from 2), 3 (from 4) and 5 (from 8); before them generation 1.
    fn store() -> EntryStore {
        let generations = [(2, 2), (4, 3), (8, 5)].map(|(index, generation)| (Index(index), Generation(generation)));
        let base = (Index(1), Generation(1));
        EntryStore::new(HardState::default(), ConfState::default(), base, generations.to_vec(), Index(9))
    }

    fn terms(store: &EntryStore) -> Vec<(u64, u64)> {
        (0..12).filter_map(|index| store.term(index).ok().map(|term| (index, term))).collect()
    }

    #[test]
    fn a_trim_answers_for_the_batch_before_the_log_and_for_none_older() {
        let whole = terms(&store());
        assert_eq!(whole.first(), Some(&(1, 1)));
        for before in 1..=9 {
            let mut store = store();
            let generation = Generation(store.term(before).unwrap());
            store.trim((Index(before), generation));
            assert_eq!(store.first_index().unwrap(), before + 1);
            assert_eq!(terms(&store), whole[before as usize - 1..], "the same answers, from {before} on");
            assert!(matches!(store.term(before - 1), Err(raft::Error::Store(StorageError::Compacted))));
            // The next batch of the same generation begins none.
            store.note(Index(10), Generation(5));
            assert_eq!(store.term(10).unwrap(), 5);
            assert_eq!(store.generations.len(), [3, 2, 2, 1, 1, 1, 1, 0, 0][before as usize - 1], "from {before} on");
        }
    }

    #[test]
    #[should_panic(expected = "between its old start and its end")]
    fn a_log_is_never_trimmed_beyond_its_end() {
        store().trim((Index(10), Generation(5)));
    }
}
