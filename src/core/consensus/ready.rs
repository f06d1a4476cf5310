//! The group in our words: propose a batch, take the next step, say what is persisted.
//!
//! Promise: a step is handed out only after the one before it was persisted, so batches reach the log one flush at a
//! time; votes come with the step that depends on them. Must never do I/O.

use raft::eraftpb::{ConfState, Entry, HardState};
use raft::{Config, RawNode, StateRole};

use crate::core::consensus::storage::EntryStore;
use crate::core::consensus::translate::{NumberedBatch, batch_of, entry_of};
use crate::core::limits::MAX_COMMITTED_BYTES_PER_STEP;
use crate::core::log::anchor::AnchorState;
use crate::core::log::survey::UncommittedBatch;
use crate::core::types::{Generation, Index, ReplicaId};

/// This replica does not lead its group: nothing was proposed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotOwner;

/// A vote that must be durable before anything that depends on it leaves this replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vote {
    pub generation: Generation,
    pub vote: Option<ReplicaId>,
}

/// What is to be done next.
#[derive(Debug, Default)]
pub struct Step {
    /// To be flushed first, whatever the fsync policy.
    pub vote: Option<Vote>,
    /// To be appended in this order, then persisted as one.
    pub append: Vec<NumberedBatch>,
    /// To be applied in this order.
    pub committed: Vec<NumberedBatch>,
}

/// What a group starts from: the anchor and the log as recovered.
pub struct Start<'a> {
    pub anchor: &'a AnchorState,
    /// The first index of each generation among the applied batches, ascending.
    pub generations: Vec<(Index, Generation)>,
    /// The last applied batch.
    pub applied: Index,
    pub uncommitted: Vec<&'a UncommittedBatch>,
}

/// One shard's group, as seen from this replica.
pub struct Consensus {
    node: RawNode<EntryStore>,
    replica: ReplicaId,
    /// The number of the step that waits to be persisted.
    awaiting: Option<u64>,
}

impl Consensus {
    /// Starts the group where the recovered log ends.
    ///
    /// # Errors
    /// The engine's reason, when anchor and log contradict each other.
    pub fn start(start: &Start<'_>) -> Result<Self, String> {
        let anchor = start.anchor;
        let log_start = &anchor.start;
        let base = (Index(log_start.index.0 - 1), log_start.generation);
        let applied = start.applied;
        let hard_state = HardState {
            term: anchor.generation.0.max(log_start.generation.0),
            vote: anchor.vote.map_or(0, |id| id.0),
            commit: applied.0,
            ..HardState::default()
        };
        let ids = |members: &[ReplicaId]| members.iter().map(|id| id.0).collect::<Vec<_>>();
        let members = ConfState {
            voters: ids(&log_start.configuration.voters),
            learners: ids(&log_start.configuration.learners),
            ..ConfState::default()
        };
        let mut generations = start.generations.clone();
        // Replay may have gone over batches that a trim has taken from the log since.
        generations.retain(|(first, _)| *first > base.0);
        let mut store = EntryStore::new(hard_state, members, base, generations, applied);
        let entries: Vec<Entry> = start.uncommitted.iter().map(|found| entry_of(&found.header, &found.bytes)).collect();
        store.append(&entries);
        let config = Config {
            id: anchor.replica.0,
            applied: applied.0,
            election_tick: 10,
            heartbeat_tick: 1,
            pre_vote: true,
            check_quorum: true,
            max_committed_size_per_ready: MAX_COMMITTED_BYTES_PER_STEP,
            ..Config::default()
        };
        let logger = slog::Logger::root(slog::Discard, slog::o!());
        let node = RawNode::new(&config, store, &logger).map_err(|error| error.to_string())?;
        Ok(Self { node, replica: anchor.replica, awaiting: None })
    }

    /// Asks the group to make this replica its owner; a group of one agrees at once.
    ///
    /// # Errors
    /// The engine's reason.
    pub fn campaign(&mut self) -> Result<(), String> {
        self.node.campaign().map_err(|error| error.to_string())
    }

    #[must_use]
    pub fn is_owner(&self) -> bool {
        self.node.raft.state == StateRole::Leader
    }

    #[must_use]
    pub fn generation(&self) -> Generation {
        Generation(self.node.raft.term)
    }

    #[must_use]
    pub fn replica(&self) -> ReplicaId {
        self.replica
    }

    /// The newest batch known to be committed.
    #[must_use]
    pub fn committed(&self) -> Index {
        Index(self.node.raft.raft_log.committed)
    }

    /// Whether a batch may be proposed: only by the owner, and never while a step waits to be persisted.
    #[must_use]
    pub fn accepts(&self) -> bool {
        self.is_owner() && self.awaiting.is_none()
    }

    /// Puts a finished batch into the group's order; the next step appends it.
    ///
    /// # Errors
    /// [`NotOwner`]: nothing was proposed.
    pub fn propose(&mut self, batch: Vec<u8>) -> Result<(), NotOwner> {
        assert!(self.awaiting.is_none(), "the step before is not persisted yet");
        if !self.is_owner() {
            return Err(NotOwner);
        }
        self.node.propose(Vec::new(), batch).map_err(|_| NotOwner)
    }

    /// The next step, if there is one. While one waits to be persisted there is none.
    pub fn step(&mut self) -> Option<Step> {
        if self.awaiting.is_some() || !self.node.has_ready() {
            return None;
        }
        let mut ready = self.node.ready();
        let old = self.node.store().hard_state();
        let vote = ready.hs().filter(|new| (new.term, new.vote) != old).map(|new| Vote {
            generation: Generation(new.term),
            vote: Some(ReplicaId(new.vote)).filter(|id| id.0 != 0),
        });
        if let Some(new) = ready.hs() {
            let state = (new.term, new.vote);
            self.node.mut_store().set_hard_state(state);
        }
        let entries = ready.take_entries();
        let committed = ready.take_committed_entries().into_iter().map(batch_of).collect();
        let must_persist = vote.is_some() || !entries.is_empty();
        self.node.mut_store().append(&entries);
        let number = ready.number();
        self.node.advance_append_async(ready);
        if must_persist {
            self.awaiting = Some(number);
        } else {
            self.node.on_persist_ready(number);
        }
        Some(Step { vote, append: entries.into_iter().map(batch_of).collect(), committed })
    }

    /// The last step's vote and batches are persisted as the fsync policy asks.
    pub fn persisted(&mut self) {
        if let Some(number) = self.awaiting.take() {
            self.node.on_persist_ready(number);
        }
    }

    /// Everything up to and including `index` is applied.
    pub fn applied(&mut self, index: Index) {
        self.node.advance_apply_to(index.0);
        self.node.mut_store().forget(index);
    }

    /// The log begins at `base_index` from here on; the generation is that of the batch before. All of what is gone was
    /// applied.
    pub fn trim(&mut self, base_index: Index, base_generation: Generation) {
        let before = Index(base_index.0.saturating_sub(1));
        assert!(before.0 <= self.node.raft.raft_log.applied, "a log never loses what is not applied");
        self.node.mut_store().trim((before, base_generation));
    }
}
