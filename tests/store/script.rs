//! The run that is cut: 200 writes over 30 keys in groups of one to six, some groups too large for one batch, with clean
//! stops, kills and reopens in between; and how it is driven, step by step, until the disk ends it.
//!
//! Promise: the same run every time; every answer on the way is checked against the plain map. Must never retry anything.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use hearth::core::api::{Fate, Hold, WriteError};
use hearth::core::error::{OpenError, Refusal};
use hearth::core::log::FsyncPolicy;
use hearth::core::op::{Condition, Expiry, Put};
use hearth::core::shard::driver::DriverError;
use hearth::core::shard::stage::Value;
use hearth::core::types::{Epoch, Millis, Offset};

use crate::bed::{Bed, START, UNKNOWN, World, value_of};
use crate::model::{Ask, Batch, Change, History, State, apply, decide, live};

/// What happens between two waits for the driver.
#[derive(Clone, Debug)]
pub enum Step {
    /// Turns that are all staged before the driver runs; then time passes.
    Writes {
        turns: Vec<Vec<Ask>>,
        then_ms: u64,
    },
    CleanStop,
    Kill,
}

/// A generator of a few lines, so that the run is the same for ever.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }
}

/// About `writes` writes; a seed for each run.
pub fn script(seed: u64, writes: usize) -> Vec<Step> {
    let mut dice = Dice::new(seed);
    let (mut steps, mut done, mut groups) = (Vec::new(), 0, 0);
    while done < writes {
        let large = groups % 9 == 4;
        let turns = if large { large_turns(&mut dice, done) } else { small_turns(&mut dice, done) };
        done += turns.iter().map(Vec::len).sum::<usize>();
        groups += 1;
        steps.push(Step::Writes { turns, then_ms: dice.below(800) });
        match groups % 22 {
            8 | 19 => steps.push(Step::CleanStop),
            13 => steps.push(Step::Kill),
            _ => {}
        }
    }
    steps
}

fn small_turns(dice: &mut Dice, done: usize) -> Vec<Vec<Ask>> {
    let (turns, mut number) = (1 + dice.below(3) as usize, done);
    let mut ask_next = |dice: &mut Dice| {
        number += 1;
        ask(dice, number)
    };
    (0..turns).map(|_| (0..=dice.below(2)).map(|_| ask_next(dice)).collect()).collect()
}

/// More than one batch takes: each turn ends with a plain put, by which the batches are told apart.
fn large_turns(dice: &mut Dice, done: usize) -> Vec<Vec<Ask>> {
    (0..3)
        .map(|turn| {
            let mut asks = vec![ask(dice, done + turn), ask(dice, done + turn)];
            for ask in &mut asks {
                ask.value = Some(vec![dice.below(256) as u8; 1700]);
            }
            asks.push(Ask { expiry: Expiry::Never, condition: Condition::Always, ..asks[1].clone() });
            asks
        })
        .collect()
}

fn ask(dice: &mut Dice, number: usize) -> Ask {
    let key = format!("key-{}", dice.below(30)).into_bytes();
    let bytes = match dice.below(4) {
        0 => 0,
        1 => dice.below(40),
        2 => dice.below(600),
        _ => dice.below(2048),
    };
    // A quarter of the values are zeros: they must not pass for sectors that never reached the disk.
    let fill = if dice.below(4) == 0 { 0 } else { number as u8 };
    let value = (dice.below(6) > 0).then(|| vec![fill; bytes as usize]);
    let condition = match dice.below(6) {
        0 => Condition::Absent,
        1 => Condition::Present,
        _ => Condition::Always,
    };
    let expiry = match dice.below(8) {
        0 => Expiry::At(Millis(START.0 + dice.below(12_000))),
        1 => Expiry::Keep,
        _ => Expiry::Never,
    };
    let condition = if value.is_none() { Condition::Always } else { condition };
    Ask { key, expiry: if value.is_none() { Expiry::Never } else { expiry }, value, condition }
}

/// What the last stop was, as far as the one who stopped it knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Unclean,
    /// A clean stop was on its way to the disk, or on its way to be cleared.
    Either,
}

/// What a run counts, to be more than zero.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub acknowledged: u64,
    pub unknown: u64,
    pub refused: u64,
    pub writes_nothing: u64,
    pub expired_reads: u64,
}

/// A run and everything that was told on the way.
#[derive(Clone)]
pub struct Told {
    pub history: History,
    pub state: State,
    pub stop: Stop,
    pub epoch: Option<Epoch>,
    pub former_epochs: BTreeSet<u64>,
    pub seen: Seen,
}

impl Default for Told {
    fn default() -> Self {
        Self {
            history: History::default(),
            state: State::default(),
            stop: Stop::Unclean,
            epoch: None,
            former_epochs: BTreeSet::new(),
            seen: Seen::default(),
        }
    }
}

/// The disk ended the run; why, for a run that nothing should end.
#[derive(Debug)]
#[expect(dead_code, reason = "read by a failing test's message only")]
pub struct Ended(String);

fn not_opened(error: OpenError) -> Ended {
    Ended(error.to_string())
}

/// Opens a store in `world` and drives it through `steps` until they or the disk's power end.
pub fn run(world: &World, steps: &[Step], told: &mut Told) -> Result<Bed, Ended> {
    let mut bed = world.open().map_err(not_opened)?;
    told.epoch = Some(bed.report.epoch);
    for step in steps {
        match step {
            Step::Writes { turns, then_ms } => told.writes(world, &mut bed, turns, *then_ms)?,
            Step::CleanStop => bed = told.clean_stop(world, bed)?,
            Step::Kill => {
                drop(bed);
                bed = world.open().map_err(not_opened)?;
                told.reopened_unclean(world, &bed);
            }
        }
    }
    Ok(bed)
}

impl Told {
    /// The same record for a crash that takes only the process: then nothing acknowledged goes, whatever the policy.
    pub fn after_kill(&self) -> Self {
        let mut told = self.clone();
        let acknowledged = told.history.batches.iter().rposition(|batch| batch.acknowledged_at.is_some());
        told.history.floor = told.history.floor.max(acknowledged.map_or(0, |at| at + 1));
        told
    }

    fn clean_stop(&mut self, world: &World, mut bed: Bed) -> Result<Bed, Ended> {
        self.stop = Stop::Either;
        bed.driver.close().map_err(|error| ended(world, &mut bed, &error))?;
        self.history.floor = self.history.batches.len();
        drop(bed);
        let bed = world.open().map_err(not_opened)?;
        assert!(!bed.report.unclean, "a clean stop was not believed");
        assert_eq!(Some(bed.report.epoch), self.epoch, "a clean stop changed the epoch");
        self.stop = Stop::Unclean;
        Ok(bed)
    }

    fn reopened_unclean(&mut self, world: &World, bed: &Bed) {
        assert!(bed.report.unclean, "a kill passed for a clean stop");
        let same = Some(bed.report.epoch) == self.epoch;
        assert_eq!(same, world.options.policy == FsyncPolicy::Always, "the epoch after a kill");
        self.former_epochs.extend(self.epoch.filter(|_| !same).map(|epoch| epoch.0));
        self.epoch = Some(bed.report.epoch);
        // What a killed process had applied was flushed by this open, whatever the policy.
        self.history.floor = self.history.batches.len();
        assert_eq!(bed.contents().expect("readable"), self.state, "a kill lost or invented something");
    }

    /// Stages turns, runs the driver, and takes what each writer is told.
    pub fn writes(&mut self, world: &World, bed: &mut Bed, turns: &[Vec<Ask>], then_ms: u64) -> Result<(), Ended> {
        let now = world.now();
        let mut staged = Vec::new();
        let mut starts = BTreeSet::new();
        let mut holds = Vec::new();
        for asks in turns {
            self.stage_turn(bed, asks, &mut staged, &mut holds);
            // Which batches hold the turn's puts, as the machine names them.
            for ask in asks {
                if let Some(Value::Staged { batch, .. }) = bed.shard.machine().look(&ask.key, now).value {
                    starts.insert(batch.0);
                }
            }
        }
        starts.extend(staged.first().map(|(offset, _)| *offset));
        let batches = in_batches(staged, &starts);
        let before = bed.driver.counts().batches.load(Ordering::Relaxed);
        let ran = bed.driver.run_to_idle();
        let after = bed.driver.counts().batches.load(Ordering::Relaxed);
        if ran.is_ok() {
            assert_eq!(after - before, batches.len() as u64, "the test knows the batches");
        }
        self.take_fates(bed, batches, &holds, ran.is_ok(), now);
        ran.map_err(|error| ended(world, bed, &error))?;
        for number in 0..5 {
            self.read_back(world, bed, format!("key-{}", (before + 6 * number) % 30).as_bytes());
        }
        world.clock.advance(then_ms);
        bed.driver.flush_if_due().map_err(|error| ended(world, bed, &error))
    }

    fn stage_turn(&mut self, bed: &Bed, asks: &[Ask], staged: &mut Vec<(u64, Change)>, holds: &mut Vec<Hold>) {
        let turns = bed.turns();
        let mut turn = turns.turn();
        let now = turn.now();
        for ask in asks {
            let answer = match &ask.value {
                Some(value) => turn.put(&Put { key: &ask.key, value, expiry: ask.expiry, condition: ask.condition }),
                None => turn.delete(&ask.key),
            };
            let (outcome, hold) = answer.expect("room for a group");
            let offset = outcome.written.map_or(0, |offset| offset.0);
            let (held, change) = decide(&self.state, ask, offset, now);
            assert_eq!((outcome.held, outcome.written.is_some()), (held, change.is_some()), "{ask:?}");
            self.seen.writes_nothing += u64::from(change.is_none());
            if let Some(change) = change {
                apply(&mut self.state, std::slice::from_ref(&change));
                staged.push((offset, change));
            }
            holds.extend(hold);
            // A read behind it in the same turn sees it at once.
            let expected = live(&self.state, &ask.key, now).map(|held| held.value.clone());
            let (found, _) = turn.get(&ask.key).expect("readable");
            assert_eq!(found.map(|found| value_of(&found, &ask.key).expect("readable")), expected);
        }
    }

    fn take_fates(&mut self, bed: &Bed, batches: Vec<Batch>, holds: &[Hold], ran: bool, now: Millis) {
        for mut batch in batches {
            match bed.shard.frontier.fate(Offset(batch.first_offset)) {
                Some(Fate::Applied) => {
                    batch.acknowledged_at = Some(now);
                    self.seen.acknowledged += 1;
                }
                // What is refused was never written, so it has no place in the history.
                Some(Fate::Refused(_)) => {
                    self.seen.refused += 1;
                    continue;
                }
                fate => {
                    assert_eq!((fate, ran), (Some(UNKNOWN), false));
                    self.seen.unknown += 1;
                }
            }
            self.history.batches.push(batch);
        }
        for hold in holds {
            assert!(bed.fate(*hold).is_some_and(|fate| fate == Fate::Applied || !ran), "a held answer is settled");
        }
    }

    fn read_back(&mut self, world: &World, bed: &Bed, key: &[u8]) {
        let expected = live(&self.state, key, world.now()).map(|held| held.value.clone());
        self.seen.expired_reads += u64::from(expected.is_none() && self.state.contains_key(key));
        assert_eq!(bed.get(key).expect("readable"), expected);
    }
}

/// The driver gave up: nothing is taken any more, and nothing is tried again.
fn ended(world: &World, bed: &mut Bed, why: &DriverError) -> Ended {
    assert_eq!(bed.put(b"late", b""), Err(WriteError::Refused(Refusal::Poisoned)));
    let before = world.disk.counts();
    let _ = bed.driver.run_to_idle();
    let _ = bed.driver.flush_if_due();
    assert!(bed.driver.close().is_err(), "a failed log was closed as if nothing had been");
    assert_eq!(world.disk.counts(), before, "something was written or flushed after a failure");
    Ended(why.to_string())
}

fn in_batches(staged: Vec<(u64, Change)>, starts: &BTreeSet<u64>) -> Vec<Batch> {
    let mut batches: Vec<Batch> = Vec::new();
    for (offset, change) in staged {
        match batches.last_mut() {
            Some(batch) if !starts.contains(&offset) => {
                batch.last_offset = offset;
                batch.changes.push(change);
            }
            _ => batches.push(Batch {
                first_offset: offset,
                last_offset: offset,
                changes: vec![change],
                acknowledged_at: None,
            }),
        }
    }
    batches
}
