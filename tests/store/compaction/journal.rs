//! What outlives a process: every record that clients staged, what they were told, and so what a restart must find.
//!
//! Which records a restart found is read off the log: the first batch of the new generation stands behind them. They must
//! be all that was promised and nothing that was refused, and the state must be the plain map after exactly those.
//! Must never know how the store stopped, but what that may cost.

use std::collections::{BTreeMap, BTreeSet};

use hearth::core::log::FsyncPolicy;
use hearth::core::log::disk::MemoryDisk;
use hearth::core::record::control::ControlRecord;
use hearth::core::types::{Epoch, Generation, Millis};

use crate::bed::{Bed, START, World, control_of, each_batch, logged_epoch};
use crate::model::{Change, State, apply};

/// Under `everysec` what was acknowledged longer ago than this survives.
const EVERYSEC_GRACE_MS: u64 = 2_001;

/// Whether the last process left the mark of a clean stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Left,
    NotLeft,
    /// It was on its way to the disk, or on its way to be cleared.
    Unknown,
}

/// How the last process ended, as far as that is known.
#[derive(Clone, Copy, Debug)]
pub struct Stop {
    pub mark: Mark,
    /// The page cache is gone too.
    pub power_cut: bool,
}

impl Stop {
    pub const CLEAN: Self = Self { mark: Mark::Left, power_cut: false };
    pub const KILL: Self = Self { mark: Mark::NotLeft, power_cut: false };
}

/// One record that a client staged.
#[derive(Clone, Debug)]
pub struct Staged {
    pub offset: u64,
    /// The first offset of its batch, where that is known.
    pub batch: Option<u64>,
    pub change: Change,
    pub acknowledged_at: Option<Millis>,
}

/// How often each kind of event was seen.
#[derive(Clone, Debug, Default)]
pub struct Seen(pub BTreeMap<&'static str, u64>);

impl Seen {
    pub fn count(&mut self, event: &'static str, times: u64) {
        if times > 0 {
            *self.0.entry(event).or_default() += times;
        }
    }

    pub fn add(&mut self, other: &Self) {
        other.0.iter().for_each(|(event, times)| self.count(event, *times));
    }

    /// Every one of `events` was seen.
    pub fn assert_all(&self, events: &[&str]) {
        let missing: Vec<_> = events.iter().filter(|event| !self.0.contains_key(**event)).collect();
        assert!(missing.is_empty(), "never seen: {missing:?}; seen: {:?}", self.0);
    }
}

#[derive(Clone, Debug)]
pub struct Journal {
    /// In the order of the log; what is known to be lost is taken out.
    records: Vec<Staged>,
    /// Every record below it was flushed, so nothing may take it back.
    floor: u64,
    /// From this offset on nothing was ever written.
    unwritten: u64,
    /// Every record below it was applied.
    applied_next: u64,
    generation: Generation,
    epoch: Option<Epoch>,
    former_epochs: BTreeSet<u64>,
    pub seen: Seen,
}

impl Default for Journal {
    fn default() -> Self {
        Self {
            records: Vec::new(),
            floor: 0,
            unwritten: u64::MAX,
            applied_next: 0,
            generation: Generation(0),
            epoch: None,
            former_epochs: BTreeSet::new(),
            seen: Seen::default(),
        }
    }
}

impl Journal {
    /// The same, with nothing counted.
    pub fn uncounted(&self) -> Self {
        Self { seen: Seen::default(), ..self.clone() }
    }

    /// Everything that may be in the log, proposed in this order.
    pub fn wrote(&mut self, records: impl IntoIterator<Item = Staged>) {
        self.records.extend(records);
        assert!(self.records.is_sorted_by_key(|staged| staged.offset), "offsets rise with the order of staging");
    }

    /// The record at `offset` and all behind it were never proposed.
    pub fn never_wrote(&mut self, offset: u64) {
        self.unwritten = self.unwritten.min(offset);
    }

    /// Everything below `offset` is flushed, whatever the policy.
    pub fn flushed_below(&mut self, offset: u64) {
        self.floor = self.floor.max(offset);
    }

    /// Everything below `offset` is applied.
    pub fn applied_below(&mut self, offset: u64) {
        assert!(offset >= self.applied_next, "the applied frontier went back");
        self.applied_next = offset;
    }

    pub fn state(&self) -> State {
        let mut state = State::new();
        self.records.iter().for_each(|staged| apply(&mut state, std::slice::from_ref(&staged.change)));
        state
    }

    fn is_promised(&self, staged: &Staged, world: &World, stop: Stop) -> bool {
        let told = staged.acknowledged_at.is_some_and(|at| match world.options.policy {
            _ if !stop.power_cut => true,
            FsyncPolicy::Always => true,
            FsyncPolicy::EverySec => at.0 + EVERYSEC_GRACE_MS <= world.now().0,
            FsyncPolicy::Never => false,
        });
        told || staged.offset < self.floor
    }

    /// A store was opened again after `stop`: what it found must be right, and is the truth from here on.
    pub fn reopened(&mut self, world: &World, bed: &Bed, stop: Stop) {
        let applied = if stop.power_cut && world.options.policy.may_lose() { 0 } else { self.applied_next };
        let (floor, next) = (self.floor.max(applied), bed.shard.frontier.applied_next().0);
        assert!(next > floor, "offsets go on below {next}, but all below {floor} are taken");
        let found_below = first_of_newer_generation(&world.disk, self.generation);
        for staged in &self.records {
            let (survived, offset) = (staged.offset < found_below, staged.offset);
            let told_at = staged.acknowledged_at.map(|at| at.0.saturating_sub(START.0));
            assert!(
                survived || !self.is_promised(staged, world, stop),
                "the record at {offset}, acknowledged at {told_at:?}, was promised at {} and is lost: the log ended at \
                 {found_below}, everything below {} was flushed",
                world.now().0 - START.0,
                self.floor
            );
            let whole = staged.batch.is_none_or(|first| survived || first >= found_below);
            assert!(whole, "the batch of the record at {offset} survived in part: the log ended at {found_below}");
            self.seen.count("acknowledged records lost within the policy", u64::from(!survived && told_at.is_some()));
            self.seen
                .count("records that nobody was told of and that survived", u64::from(survived && told_at.is_none()));
        }
        assert!(found_below <= self.unwritten, "what was refused at {} is in the log", self.unwritten);
        assert!(found_below >= floor, "offsets go on at {found_below}, but all below {floor} are taken");
        self.records.retain(|staged| staged.offset < found_below);
        // Found and served is as good as acknowledged: opening flushed it.
        self.records.iter_mut().for_each(|staged| staged.acknowledged_at = Some(Millis(0)));
        (self.floor, self.unwritten) = (found_below, u64::MAX);
        self.applied_next = next;
        assert!(next > found_below, "the new generation is not applied: {next}, it began at {found_below}");
        self.check_epoch(world, bed, stop);
        let generation = bed.shard.machine().generation();
        assert!(generation > self.generation, "a generation came back");
        self.generation = generation;
    }

    fn check_epoch(&mut self, world: &World, bed: &Bed, stop: Stop) {
        let (epoch, unclean) = (bed.report.epoch, bed.report.unclean);
        if let Some(before) = self.epoch {
            let expected = match stop.mark {
                Mark::Left => false,
                Mark::NotLeft => true,
                Mark::Unknown => unclean,
            };
            assert_eq!(unclean, expected, "unclean after {stop:?}");
            let changes = unclean && world.options.policy.may_lose();
            assert_eq!(epoch != before, changes, "the epoch after {stop:?}, unclean: {unclean}");
            self.former_epochs.extend(changes.then_some(before.0));
        }
        assert!(!self.former_epochs.contains(&epoch.0), "an epoch came back");
        assert_eq!(logged_epoch(&world.disk), Some(epoch), "the log does not say which epoch it is of");
        self.epoch = Some(epoch);
    }
}

/// The offset of the first batch of a generation newer than `known`.
fn first_of_newer_generation(disk: &MemoryDisk, known: Generation) -> u64 {
    let mut first = None;
    each_batch(disk, |_, batch| {
        if batch.header.generation > known && control_of(batch) == Some(ControlRecord::GenerationStart) {
            first = first.or(Some(batch.header.first_offset.0));
        }
    });
    first.expect("an open store has begun a generation")
}
