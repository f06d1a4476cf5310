//! The power is cut at every effect of a run of 200 writes, under each policy, and the disk is left in four ways; then it
//! is cut again while the recovery is under way, at every effect of that.
//!
//! Must never know what is promised: `judge` does.

use hearth::core::log::FsyncPolicy;
use hearth::core::log::disk::{MemoryDisk, everything_kept, everything_lost, torn};

use crate::bed::{POLICIES, World};
use crate::judge::{Case, Counts, End, at_every, judge, wanted, wanted_effect};
use crate::script::{Told, script};

pub const SCRIPT_SEED: u64 = 3;
pub const WRITES: usize = 200;

/// The disks a cut may leave, by name; alike ones only once.
pub fn left_by_a_cut(disk: &MemoryDisk, effect: u64) -> Vec<(String, MemoryDisk)> {
    let mut left: Vec<(String, MemoryDisk)> = vec![
        ("everything lost".into(), disk.after_power_cut(&mut everything_lost())),
        ("everything kept".into(), disk.after_power_cut(&mut everything_kept())),
    ];
    for seed in [2 * effect, 2 * effect + 1] {
        left.push((format!("torn with seed {seed}"), disk.after_power_cut(&mut torn(seed))));
    }
    let mut hashes = Vec::new();
    left.retain(|(_, disk)| {
        let hash = disk.image_hash();
        let new = !hashes.contains(&hash);
        hashes.push(hash);
        new
    });
    left
}

fn cut_everywhere(policy: FsyncPolicy, test: &'static str) {
    let counts = at_every(End::PowerOff, 1, policy, &script(SCRIPT_SEED, WRITES), |effect, world, told, counts| {
        for (tear, disk) in left_by_a_cut(&world.disk, effect) {
            let _case = Case { test, policy, effect, tear };
            judge(world, disk, told, counts);
        }
    });
    println!("power cuts under {policy:?}: {counts:?}");
    if wanted(policy) && wanted_effect().is_none() {
        assert_nothing_is_missing(&counts, policy);
    }
}

fn assert_nothing_is_missing(counts: &Counts, policy: FsyncPolicy) {
    let Counts { cuts, images, recoveries, torn_tails, lost_batches, kept_unknown, new_epochs, rolls, seen } = *counts;
    assert!(cuts > 200 && images > cuts && recoveries == 2 * images, "{counts:?}");
    assert!(torn_tails > 0 && lost_batches > 0 && rolls > 5, "{counts:?}");
    assert!(seen.acknowledged > 0 && seen.unknown > 0 && seen.refused > 0, "{counts:?}");
    assert!(seen.writes_nothing > 0 && seen.expired_reads > 0, "{counts:?}");
    // Only a flush that is cut can leave what no one was told of: without it a batch is acknowledged once written.
    assert_eq!(kept_unknown > 0, policy == FsyncPolicy::Always, "{counts:?}");
    assert_eq!(new_epochs > 0, policy.may_lose(), "{counts:?}");
}

#[test]
fn under_always_no_power_cut_takes_back_what_was_told() {
    cut_everywhere(FsyncPolicy::Always, "under_always_no_power_cut_takes_back_what_was_told");
}

#[test]
fn under_everysec_a_power_cut_takes_back_two_seconds_at_most() {
    cut_everywhere(FsyncPolicy::EverySec, "under_everysec_a_power_cut_takes_back_two_seconds_at_most");
}

#[test]
fn under_never_a_power_cut_leaves_a_prefix() {
    cut_everywhere(FsyncPolicy::Never, "under_never_a_power_cut_leaves_a_prefix");
}

/// Every so many effects of the run a cut is chosen whose recovery is cut in turn.
const CHOSEN: usize = 17;

/// What a tear leaves, how many effects its recovery has, and whether a tail is cut by it.
fn torn_image(world: &World, seed: u64) -> (MemoryDisk, u64, bool) {
    let image = world.disk.after_power_cut(&mut torn(seed));
    let whole = world.with_disk(image.after_kill());
    let bed = whole.open().expect("a recovery that is not cut");
    (image, whole.disk.effects(), bed.report.cut.is_some())
}

fn cut_the_recovery(world: &World, told: &Told, seed: u64, case: &mut Case, counts: &mut Counts) -> u64 {
    // A tear that leaves a tail to be cut, if one of eight does: then the cutting is cut.
    let tears = (0..8).map(|nth| 8 * seed + nth).find_map(|seed| {
        let (image, effects, cut) = torn_image(world, seed);
        cut.then_some((seed, image, effects))
    });
    let (seed, image, effects) = tears.unwrap_or_else(|| {
        let (image, effects, _) = torn_image(world, 8 * seed);
        (8 * seed, image, effects)
    });
    for effect in 0..effects {
        let cut = world.with_disk(image.after_kill());
        cut.disk.power_off_after(effect);
        assert!(cut.open().is_err(), "the recovery ends at effect {effect} of {effects}");
        let left = [
            ("lost", cut.disk.after_power_cut(&mut everything_lost())),
            ("kept", cut.disk.after_power_cut(&mut everything_kept())),
            ("torn", cut.disk.after_power_cut(&mut torn(effect))),
            ("the page cache", cut.disk.after_kill()),
        ];
        for (tear, disk) in left {
            case.tear = format!("torn with seed {seed}, then recovery cut at its effect {effect}: {tear}");
            judge(world, disk, told, counts);
        }
    }
    effects
}

#[test]
fn a_recovery_that_is_cut_is_recovered_from() {
    for policy in POLICIES.into_iter().filter(|policy| wanted(*policy)) {
        let mut recovery_effects = 0;
        let counts =
            at_every(End::PowerOff, CHOSEN, policy, &script(SCRIPT_SEED, WRITES), |effect, world, told, counts| {
                let tear = String::new();
                let mut case = Case { test: "a_recovery_that_is_cut_is_recovered_from", policy, effect, tear };
                recovery_effects += cut_the_recovery(world, told, effect, &mut case, counts);
            });
        println!("recoveries cut under {policy:?}: at {recovery_effects} effects, {counts:?}");
        if wanted_effect().is_none() {
            assert!(recovery_effects > 50 && counts.recoveries > 200 && counts.torn_tails > 0, "{counts:?}");
            assert_eq!(counts.new_epochs > 0, policy != FsyncPolicy::Always);
        }
    }
}
