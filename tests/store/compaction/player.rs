//! Plays operations against a store: stages, drives, compacts, stops and opens again; keeps the plain map beside it and
//! checks everything after each.
//!
//! Reading order: here the stops and starts, then `staging` (what clients ask for), `pass` (compaction, step by step),
//! `checks`. Promise: whatever a client is told on the way is compared with the map.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hearth::core::api::{Fate, Found, Hold};
use hearth::core::error::OpenError;
use hearth::core::index::SweepCursor;
use hearth::core::log::FsyncPolicy;
use hearth::core::log::disk::{MemoryDisk, everything_kept, everything_lost, torn};
use hearth::core::log::reader::Wait;
use hearth::core::shard::driver::DriverError;
use hearth::core::shard::read::Pinned;
use hearth::core::shard::space::Allocated;
use hearth::core::types::{Millis, Offset};

use super::checks;
use super::journal::{Journal, Mark, Seen, Staged, Stop};
use super::ops::{Left, Op, Shortage, Write};
use super::pass::PassWatch;
use crate::bed::{Bed, UNKNOWN, World, newest_segment, value_of};
use crate::model::{State, live};

/// More values than this are not held at a time.
const MOST_PINS: usize = 4;
/// More time than this does not pass without a look at what is due.
const TICK_MS: u64 = 500;

/// The power went while something was done.
#[derive(Debug)]
pub struct PowerGone;

/// A value that a reader holds.
struct Pin {
    key: Vec<u8>,
    value: Vec<u8>,
    pinned: Pinned,
    segment: u64,
}

/// How a store is opened: a test may look on at the disk's door.
pub type Opener = Arc<dyn Fn(&World) -> Result<Bed, OpenError>>;

pub struct Player {
    pub world: World,
    pub journal: Journal,
    /// Whether staging is bounded by what is allocated.
    pub(super) reserves: bool,
    opener: Opener,
    bed: Option<Bed>,
    /// The plain map as the next write finds it, and as readers do.
    pub(super) state: State,
    pub(super) applied: State,
    /// What is staged and not written yet, and the answers that wait for it.
    pub(super) staged: Vec<Staged>,
    pub(super) holds: Vec<Hold>,
    pub(super) shortage: Shortage,
    pub(super) pass: PassWatch,
    pub(super) values: u8,
    pins: Vec<Pin>,
    sweep: SweepCursor,
    /// Where the log begins.
    base: Offset,
    newest_segment: u64,
    /// What a cut leaves, once the power goes as it was told to.
    armed: Left,
    /// What the next open finds if the power goes now.
    mark: Mark,
}

pub fn key_of(key: u8) -> Vec<u8> {
    format!("key-{key:02}").into_bytes()
}

/// The disk that a power cut leaves.
pub fn left_of(disk: &MemoryDisk, left: Left) -> MemoryDisk {
    match left {
        Left::Nothing => disk.after_power_cut(&mut everything_lost()),
        Left::Everything => disk.after_power_cut(&mut everything_kept()),
        Left::Torn(seed) => disk.after_power_cut(&mut torn(seed)),
    }
}

impl Player {
    /// One who has opened nothing yet.
    pub fn new(world: World, reserves: bool, journal: Journal, opener: Opener) -> Self {
        Self {
            world,
            journal,
            reserves,
            opener,
            bed: None,
            state: State::new(),
            applied: State::new(),
            staged: Vec::new(),
            holds: Vec::new(),
            shortage: Shortage::None,
            pass: PassWatch::default(),
            values: 0,
            pins: Vec::new(),
            sweep: SweepCursor::default(),
            base: Offset::default(),
            newest_segment: 0,
            armed: Left::Nothing,
            mark: Mark::NotLeft,
        }
    }

    /// Opens what `stop` left in `world`, which must be what `journal` says.
    pub fn open(world: World, reserves: bool, journal: Journal, stop: Stop) -> Self {
        let mut player = Self::new(world, reserves, journal, Arc::new(World::open));
        player.reopen(stop).expect("nothing ends this");
        player
    }

    pub fn bed(&self) -> &Bed {
        self.bed.as_ref().expect("a store is open")
    }

    pub(super) fn bed_mut(&mut self) -> &mut Bed {
        self.bed.as_mut().expect("a store is open")
    }

    pub(super) fn now(&self) -> Millis {
        self.world.now()
    }

    pub(super) fn seen(&mut self) -> &mut Seen {
        &mut self.journal.seen
    }

    /// Plays all of it, through power cuts too.
    pub fn play_through(&mut self, ops: &[Op]) {
        for op in ops {
            if self.play(op).is_err() {
                self.seen().count("power cuts in the middle of something", 1);
                self.power_cut(self.armed);
            }
            self.check();
        }
    }

    /// Plays one operation.
    pub fn play(&mut self, op: &Op) -> Result<(), PowerGone> {
        match op {
            Op::Turn(writes) => self.turn(writes)?,
            Op::Drive => self.drive()?,
            Op::Wait(ms) => self.wait(*ms)?,
            Op::Overtake { delete } => self.overtake(*delete)?,
            Op::Steps(steps) => {
                for _ in 0..*steps {
                    self.compact_step();
                }
            }
            Op::Compact => self.compact()?,
            Op::ClearAndCompact => {
                self.turn(&[Write::Clear])?;
                self.drive()?;
                self.compact()?;
            }
            Op::Sweep(slots) => self.sweep(usize::from(*slots)),
            Op::Short(shortage) => self.run_short(*shortage),
            Op::CarryRemembered => self.carry_remembered(),
            Op::TrimTo(nth) => self.trim_to(usize::from(*nth)),
            Op::OfOldGeneration => self.of_old_generation(),
            Op::Pin(key) => self.pin(&key_of(*key)),
            Op::Bootstrap => self.bootstrap(),
            Op::OldestAnchor => self.with_oldest_anchor(),
            Op::CleanStop => self.clean_stop()?,
            Op::Kill => self.kill()?,
            Op::PowerCut(left) => self.power_cut(*left),
            Op::PowerCutAfter(effects, left) => {
                self.armed = *left;
                self.world.disk.power_off_after(self.world.disk.effects() + effects);
            }
        }
        Ok(())
    }

    pub fn check(&mut self) {
        let now = self.now();
        checks::everything(&self.world, self.bed(), &self.applied);
        let first = self.bed().shard.segments.first().map_or(0, |first| first.number.0);
        let mut scratch = Vec::new();
        let mut outlived = 0;
        self.pins.retain(|pin| {
            let found = pin.pinned.read(&pin.key, Wait::IfNeeded, &mut scratch);
            let found = found.expect("a value that is held stays readable").expect("a read that may wait");
            assert_eq!(found, pin.value, "a value that is held changed");
            outlived += u64::from(pin.segment < first);
            pin.segment >= first
        });
        self.seen().count("values held beyond their segment", outlived);
        let lapsed = self.applied.values().any(|held| held.expires_at.has_lapsed(now));
        self.seen().count("checks with a lapsed value", u64::from(lapsed));
    }

    /// Lets the driver do all there is to do, and takes what everybody is told.
    pub(super) fn drive(&mut self) -> Result<(), PowerGone> {
        let ran = self.bed_mut().driver.run_to_idle();
        let (now, staged) = (self.now(), std::mem::take(&mut self.staged));
        let mut wrote = Vec::new();
        for mut record in staged {
            match self.bed().shard.frontier.fate(Offset(record.offset)) {
                Some(Fate::Applied) => {
                    record.acknowledged_at = Some(now);
                    wrote.push(record);
                }
                // What is refused was never written, so it has no place in the journal.
                Some(Fate::Refused(_)) => self.journal.never_wrote(record.offset),
                fate => {
                    assert_eq!((fate, ran.is_ok()), (Some(UNKNOWN), false));
                    wrote.push(record);
                }
            }
        }
        self.journal.wrote(wrote);
        let holds = std::mem::take(&mut self.holds);
        let settled = |hold: &Hold| self.bed().fate(*hold).is_some_and(|fate| fate == Fate::Applied || ran.is_err());
        assert!(holds.iter().all(settled), "a held answer is settled");
        let applied_next = self.bed().shard.frontier.applied_next().0;
        self.journal.applied_below(applied_next);
        if self.world.options.policy == FsyncPolicy::Always {
            self.journal.flushed_below(applied_next);
        }
        if let Err(error) = ran {
            return Err(self.gone(&error));
        }
        if self.world.disk.is_off() {
            // It went while files were removed that the log had lost: nobody waits for that.
            return Err(PowerGone);
        }
        self.applied = self.state.clone();
        if self.reserves && self.shortage == Shortage::Allocated {
            // The driver has told how much is allocated.
            self.shortage = Shortage::None;
        }
        self.look_at_log();
        Ok(())
    }

    fn gone(&self, error: &DriverError) -> PowerGone {
        assert!(self.world.disk.is_off(), "the driver ended on a sound disk: {error}");
        PowerGone
    }

    /// What became of the log's two ends.
    fn look_at_log(&mut self) {
        let newest = newest_segment(&self.world.disk);
        let rolled = newest.saturating_sub(self.newest_segment);
        self.seen().count("rolls", rolled);
        self.newest_segment = newest;
        let before = self.base;
        self.base = self.trims_carried_out(before);
        if self.base > before {
            self.seen().count("trims", 1);
            let nothing_alive = self.applied.is_empty();
            self.seen().count("trims with nothing alive", u64::from(nothing_alive));
            self.bootstrap();
            if before == checks::FIRST_OFFSET {
                self.with_oldest_anchor();
            }
        }
    }

    fn wait(&mut self, ms: u64) -> Result<(), PowerGone> {
        let mut rest = ms;
        while rest > 0 {
            let tick = rest.min(TICK_MS);
            self.world.clock.advance(tick);
            if let Err(error) = self.bed_mut().driver.flush_if_due() {
                return Err(self.gone(&error));
            }
            rest -= tick;
        }
        Ok(())
    }

    fn sweep(&mut self, slots: usize) {
        let now = self.now();
        let swept = self.bed.as_ref().expect("a store is open").shard.index.sweep(&mut self.sweep, slots, now);
        self.seen().count("swept entries", swept.dropped as u64);
    }

    fn pin(&mut self, key: &[u8]) {
        let turns = self.bed().turns();
        let mut turn = turns.turn();
        let (found, hold) = turn.get(key).expect("readable");
        assert_eq!(hold, None, "a read of applied state waits for nothing");
        let expected = live(&self.applied, key, self.now()).map(|held| held.value.clone());
        assert_eq!(found.as_ref().map(|found| value_of(found, key).expect("readable")), expected);
        let entry = self.bed().shard.index.view().get(key);
        if let (Some(Found::Stored(pinned)), Some(entry), Some(value)) = (found, entry, expected)
            && self.pins.len() < MOST_PINS
        {
            self.pins.push(Pin { key: key.to_vec(), value, pinned, segment: entry.location.segment.0 });
        }
    }

    fn run_short(&mut self, of: Shortage) {
        let reserves = self.reserves;
        let segment_bytes = self.world.options.segment_bytes.map_or(0, u64::from);
        let bed = self.bed_mut();
        bed.shard.machine().space().max_data_bytes = 0;
        bed.shard.machine().space().allocated = None;
        if reserves {
            bed.driver.reserve_space();
        }
        bed.housekeeper.disk_has(u64::MAX / 2);
        match of {
            Shortage::None => {}
            Shortage::Disk => bed.housekeeper.disk_has(bed.housekeeper.floor_bytes() - 1),
            Shortage::Allocated => {
                let none = Allocated {
                    active_bytes: 0,
                    spare_bytes: 0,
                    coming_bytes: 0,
                    spare_may_come: false,
                    segment_bytes,
                };
                bed.shard.machine().space().allocated = Some(none);
            }
            Shortage::Data => bed.shard.machine().space().max_data_bytes = 1,
        }
        self.shortage = of;
    }

    fn bootstrap(&mut self) {
        let seen = checks::bootstrap(&self.world.disk, &self.applied, self.now());
        self.seen().count("bootstraps", 1);
        self.seen().count("bootstraps from beyond the log's start", u64::from(seen));
    }

    fn with_oldest_anchor(&mut self) {
        if self.world.disk.is_off() {
            return;
        }
        let told_less = checks::with_oldest_anchor(&self.world, &self.applied);
        self.seen().count("opens with the oldest anchor there may be", u64::from(told_less));
    }

    // Stops and starts.

    fn clean_stop(&mut self) -> Result<(), PowerGone> {
        self.drive()?;
        self.stops("clean stops in the middle of a pass");
        self.mark = Mark::Unknown;
        if let Err(error) = self.bed_mut().driver.close() {
            return Err(self.gone(&error));
        }
        self.reopen(Stop::CLEAN)
    }

    fn kill(&mut self) -> Result<(), PowerGone> {
        self.stops("kills in the middle of a pass");
        self.reopen(Stop::KILL)
    }

    fn power_cut(&mut self, left: Left) {
        if self.bed.is_some() {
            self.stops("power cuts in the middle of a pass");
        }
        let stop = Stop { mark: self.mark, power_cut: true };
        self.world = self.world.with_disk(left_of(&self.world.disk, left));
        self.reopen(stop).expect("nothing ends this");
    }

    fn stops(&mut self, in_pass: &'static str) {
        let is_running = self.bed().housekeeper.compactor().is_running();
        self.seen().count(in_pass, u64::from(is_running));
        self.forget_process();
    }

    /// What only the process knew is gone: what was staged and not driven was never written.
    fn forget_process(&mut self) {
        if let Some(first) = self.staged.first() {
            self.journal.never_wrote(first.offset);
        }
        self.staged.clear();
        self.holds.clear();
        self.pins.clear();
        self.pass = PassWatch::default();
        self.shortage = Shortage::None;
    }

    /// The process is gone: what it leaves.
    pub fn end(mut self) -> (World, Journal, Mark) {
        self.forget_process();
        (self.world, self.journal, self.mark)
    }

    /// Opens what `stop` left.
    pub fn reopen(&mut self, stop: Stop) -> Result<(), PowerGone> {
        self.bed = None;
        let mut bed = match (self.opener)(&self.world) {
            Ok(bed) => bed,
            Err(error) => {
                assert!(self.world.disk.is_off(), "it does not open again after {stop:?}: {error}");
                return Err(PowerGone);
            }
        };
        self.mark = Mark::NotLeft;
        assert!(!bed.housekeeper.compactor().is_running(), "a pass outlived its generation");
        self.seen().count("torn tails", u64::from(bed.report.cut.is_some()));
        if self.reserves {
            bed.driver.reserve_space();
        }
        self.base = Offset(bed.shard.counters.base_offset.load(Ordering::Relaxed));
        self.journal.reopened(&self.world, &bed, stop);
        self.bed = Some(bed);
        self.newest_segment = newest_segment(&self.world.disk);
        self.state = self.journal.state();
        self.applied = self.state.clone();
        Ok(())
    }
}
