//! What must be true of a disk after a crash: it opens, holds a prefix of the batches with everything promised in it,
//! serves it, takes more writes, and keeps all that it served through a second cut.
//!
//! Must never know how the disk came to be as it is.

use hearth::core::log::FsyncPolicy;
use hearth::core::log::disk::{MemoryDisk, everything_lost};
use hearth::core::types::Millis;

use crate::bed::{Bed, START, World, logged_epoch, newest_segment, policy_name};
use crate::model::{State, live};
use crate::script::{Seen, Step, Stop, Told, run, script};

/// Segments this small roll several times in 200 writes.
pub const SEGMENT_BYTES: u32 = 16 * 1024;
/// Under `everysec` what was acknowledged longer ago than this survives.
const EVERYSEC_GRACE_MS: u64 = 2_001;

/// What a suite counts and prints; every field must end above zero.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub cuts: u64,
    pub images: u64,
    pub recoveries: u64,
    pub torn_tails: u64,
    pub lost_batches: u64,
    pub kept_unknown: u64,
    pub new_epochs: u64,
    pub rolls: u64,
    pub seen: Seen,
}

impl Counts {
    pub fn saw(&mut self, seen: Seen) {
        self.seen.acknowledged += seen.acknowledged;
        self.seen.unknown += seen.unknown;
        self.seen.refused += seen.refused;
        self.seen.writes_nothing += seen.writes_nothing;
        self.seen.expired_reads += seen.expired_reads;
    }
}

/// One crash; tells how to run just it when a check fails while it is alive.
pub struct Case {
    pub test: &'static str,
    pub policy: FsyncPolicy,
    pub effect: u64,
    pub tear: String,
}

impl Drop for Case {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (policy, effect) = (policy_name(self.policy), self.effect);
            eprintln!("failed under {policy}, ended at effect {effect}, left: {}", self.tear);
            eprintln!(
                "just this one: HEARTH_CUT_POLICY={policy} HEARTH_CUT_AT={effect} cargo test --test store {} -- --nocapture",
                self.test
            );
        }
    }
}

/// Whether the environment asks for this policy; all when it does not say.
pub fn wanted(policy: FsyncPolicy) -> bool {
    std::env::var("HEARTH_CUT_POLICY").map_or(true, |wanted| wanted == policy_name(policy))
}

/// The one effect the environment asks for.
pub fn wanted_effect() -> Option<u64> {
    std::env::var("HEARTH_CUT_AT").ok().map(|at| at.parse().expect("HEARTH_CUT_AT is a number"))
}

/// What ends a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The power goes, after so many effects.
    PowerOff,
    /// The flush with this number fails, and the broker stops.
    FlushFails,
    /// The write with this number fails, and the broker stops.
    WriteFails,
}

impl End {
    fn arm(self, disk: &MemoryDisk, number: u64) {
        match self {
            Self::PowerOff => disk.power_off_after(number),
            Self::FlushFails => disk.fail_flush(number),
            Self::WriteFails => disk.fail_writes(number),
        }
    }

    /// The numbers at which a whole run can be ended.
    fn places(self, whole: &MemoryDisk) -> std::ops::Range<u64> {
        match self {
            Self::PowerOff => 0..whole.effects(),
            Self::FlushFails => 1..whole.counts().flushes + 1,
            Self::WriteFails => 1..whole.counts().writes + 1,
        }
    }
}

/// Calls `at` for each place where `end` can end the run, or every so many of them, with the world as it then is.
pub fn at_every(
    end: End,
    stride: usize,
    policy: FsyncPolicy,
    steps: &[Step],
    mut at: impl FnMut(u64, &World, &Told, &mut Counts),
) -> Counts {
    let mut counts = Counts::default();
    let whole = World::new(policy, SEGMENT_BYTES);
    drop(run(&whole, steps, &mut Told::default()).expect("nothing ends the whole run"));
    counts.rolls = newest_segment(&whole.disk) - 1;
    let wanted_places = match wanted_effect() {
        Some(place) => place..place + 1,
        None => end.places(&whole.disk),
    };
    for place in wanted_places.step_by(stride).filter(|_| wanted(policy)) {
        let world = World::new(policy, SEGMENT_BYTES);
        end.arm(&world.disk, place);
        let mut told = Told::default();
        assert!(run(&world, steps, &mut told).is_err(), "{end:?} at {place} ends the run");
        counts.cuts += 1;
        counts.saw(told.seen);
        at(place, &world, &told, &mut counts);
    }
    counts
}

/// Everything [`judge`] asks of one disk after a crash of the run that `told` is the record of.
pub fn judge(world: &World, disk: MemoryDisk, told: &Told, counts: &mut Counts) {
    let world = world.with_disk(disk);
    let mut told = told.clone();
    counts.images += 1;
    let bed = recover(&world, &mut told, counts);
    serve(&world, &bed, &told.state);
    write_more(&world, bed, &mut told);
    let again = world.with_disk(world.disk.after_power_cut(&mut everything_lost()));
    told.stop = Stop::Unclean;
    let bed = recover(&again, &mut told, counts);
    serve(&again, &bed, &told.state);
}

/// Opens, and checks that what is found is a prefix with everything promised in it. Nothing of it may ever go again.
fn recover(world: &World, told: &mut Told, counts: &mut Counts) -> Bed {
    let bed = match world.open() {
        Ok(bed) => bed,
        Err(error) => panic!("it does not open again: {error}"),
    };
    let found = bed.contents().expect("every value is readable");
    let history = &mut told.history;
    let grace_ms = match world.options.policy {
        FsyncPolicy::Always => Some(0),
        FsyncPolicy::EverySec => Some(EVERYSEC_GRACE_MS),
        FsyncPolicy::Never => None,
    };
    let promised = history.promised(world.now(), grace_ms);
    let Some(survived) = history.prefix_of(&found) else {
        panic!("what is found is the state after no prefix of the batches: {}", history.nearest(&found));
    };
    let staged = history.batches.len();
    assert!(
        survived >= promised,
        "{promised} of {staged} batches were promised at {}, {survived} survived; acknowledged at {:?}",
        world.now().0 - START.0,
        history
            .batches
            .iter()
            .map(|batch| batch.acknowledged_at.map(|at| at.0.saturating_sub(START.0)))
            .collect::<Vec<_>>()
    );
    check_epoch(world, &bed, told, survived);
    let history = &mut told.history;
    counts.recoveries += 1;
    counts.torn_tails += u64::from(bed.report.cut.is_some());
    counts.lost_batches += (staged - survived) as u64;
    counts.kept_unknown +=
        history.batches[..survived].iter().filter(|batch| batch.acknowledged_at.is_none()).count() as u64;
    counts.new_epochs += u64::from(bed.report.new_epoch);
    history.batches.truncate(survived);
    history.floor = survived;
    // Found and served is as good as acknowledged.
    for batch in &mut history.batches {
        batch.acknowledged_at.get_or_insert(Millis(0));
    }
    let next = bed.shard.frontier.applied_next().0;
    assert!(history.batches.last().is_none_or(|batch| batch.last_offset < next), "an offset would be used twice");
    told.state = found;
    bed
}

fn check_epoch(world: &World, bed: &Bed, told: &mut Told, survived: usize) {
    let epoch = bed.report.epoch;
    if let Some(before) = told.epoch {
        if bed.report.unclean {
            let may_change = world.options.policy.may_lose();
            assert_eq!(epoch != before, may_change, "the epoch after an unclean stop");
            told.former_epochs.extend(may_change.then_some(before.0));
        } else {
            assert_eq!(told.stop, Stop::Either, "an unclean stop passed for a clean one");
            assert_eq!(epoch, before, "a clean stop changed the epoch");
            assert_eq!(survived, told.history.batches.len(), "a clean stop lost something");
        }
    }
    assert!(!told.former_epochs.contains(&epoch.0), "an epoch came back");
    assert_eq!(logged_epoch(&world.disk), Some(epoch), "the log does not say which epoch it is of");
    told.epoch = Some(epoch);
}

fn serve(world: &World, bed: &Bed, state: &State) {
    for number in 0..30 {
        let key = format!("key-{number}").into_bytes();
        let expected = live(state, &key, world.now()).map(|held| held.value.clone());
        assert_eq!(bed.get(&key).expect("readable"), expected, "key-{number}");
    }
}

fn write_more(world: &World, mut bed: Bed, told: &mut Told) {
    let before = told.history.batches.len();
    for step in script(7, 6) {
        if let Step::Writes { turns, then_ms } = step {
            told.writes(world, &mut bed, &turns, then_ms).expect("nothing ends this");
        }
    }
    let batches = &told.history.batches;
    assert!(batches.len() > before, "something was written");
    if let (Some(last), Some(first)) = (before.checked_sub(1).map(|at| &batches[at]), batches.get(before)) {
        assert!(first.first_offset > last.last_offset, "an offset was used twice");
    }
}
