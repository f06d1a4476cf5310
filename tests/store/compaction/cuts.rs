//! The power is cut, or the process killed, at every effect of a run that compacts and trims, under each policy; what is left
//! is opened, judged, written to, compacted and cut again. Where the cut fell in a trim, the recovery is cut, too.
//!
//! Must never know what is promised: the journal does.

use std::collections::BTreeMap;
use std::sync::Arc;

use hearth::core::log::FsyncPolicy;
use hearth::core::log::disk::{MemoryDisk, torn};

use super::journal::{Journal, Mark, Seen, Stop};
use super::ops::{Left, Op, script};
use super::player::{Opener, Player, PowerGone};
use super::trace::{Inside, Trace, Traced};
use crate::bed::{POLICIES, World};
use crate::judge::{Case, wanted, wanted_effect};
use crate::power_cut::left_by_a_cut;

const SCRIPT_SEED: u64 = 11;
const ROUNDS: usize = 70;
const SEGMENT_BYTES: u32 = 4096;

/// Of the places in a trim, every so many is one whose recovery is cut in turn.
const CHOSEN: u64 = 11;

/// Where cuts must have fallen, each more than once.
const PLACES: [Inside; 7] = [
    Inside::Append,
    Inside::Carries,
    Inside::TrimRecord,
    Inside::TrimAnchor,
    Inside::Unlink,
    Inside::Spare,
    Inside::Roll,
];

/// What a run that was ended leaves.
struct Ended {
    world: World,
    journal: Journal,
    mark: Mark,
}

/// What was counted, to be more than zero.
#[derive(Default)]
struct Counts {
    cuts: BTreeMap<Inside, u64>,
    images: u64,
    recoveries_cut: u64,
    seen: Seen,
}

/// Opens a store and plays the script, as far as the power lasts.
fn run(world: World, opener: Opener, checked: bool) -> (Player, Result<(), PowerGone>) {
    let mut player = Player::new(world, true, Journal::default(), opener);
    let ops = script(SCRIPT_SEED, ROUNDS);
    let mut played = player.reopen(Stop::KILL);
    for op in ops {
        if played.is_ok() {
            played = player.play(&op);
        }
        if checked {
            player.check();
        }
    }
    (player, played)
}

/// The run as nothing ends it: what each of its effects is part of.
fn whole_run(policy: FsyncPolicy) -> Vec<Inside> {
    let trace = Arc::new(Trace::default());
    let for_opener = Arc::clone(&trace);
    let opener: Opener = Arc::new(move |world| world.open_on(Arc::new(Traced::new(&world.disk, &for_opener))));
    let (player, played) = run(World::new(policy, SEGMENT_BYTES), opener, true);
    played.expect("nothing ends the whole run");
    let seen = &player.journal.seen;
    println!("the whole run under {policy:?}: {:?}", seen.0);
    seen.assert_all(&["rolls", "passes", "carries", "trims", "trims with nothing alive"]);
    seen.assert_all(&["left behind: superseded", "left behind: lapsed"]);
    assert!(seen.0["trims"] > 5, "it trims several times");
    trace.effects()
}

/// Calls `at` with what the run leaves that is ended at an effect, for each of them.
fn at_every_effect(policy: FsyncPolicy, mut at: impl FnMut(u64, Inside, &Ended, &mut Counts)) -> Counts {
    let mut counts = Counts::default();
    for (effect, inside) in (0..).zip(whole_run(policy)) {
        if wanted_effect().is_some_and(|wanted| wanted != effect) {
            continue;
        }
        let world = World::new(policy, SEGMENT_BYTES);
        world.disk.power_off_after(effect);
        let (player, played) = run(world, Arc::new(World::open), false);
        played.expect_err("the run ends at this effect");
        let (world, journal, mark) = player.end();
        *counts.cuts.entry(inside).or_default() += 1;
        at(effect, inside, &Ended { world, journal, mark }, &mut counts);
    }
    counts
}

/// Opens `disk`, judges it, writes and compacts, cuts the power and opens it again.
fn judge(ended: &Ended, disk: MemoryDisk, power_cut: bool, counts: &mut Counts) {
    counts.images += 1;
    let stop = Stop { mark: ended.mark, power_cut };
    let mut player = Player::open(ended.world.with_disk(disk), true, ended.journal.uncounted(), stop);
    player.check();
    // Not its first round, which writes every key: something is to be carried.
    let mut more = script(7, 4).split_off(2);
    more.extend([Op::Compact, Op::PowerCut(Left::Nothing), Op::Compact, Op::PowerCut(Left::Nothing)]);
    player.play_through(&more);
    counts.seen.add(&player.journal.seen);
}

fn print_and_check(what: &str, policy: FsyncPolicy, counts: &Counts) {
    let Counts { cuts, images, recoveries_cut, seen } = counts;
    println!("{what} under {policy:?}: {cuts:?}, {images} images, {recoveries_cut} recoveries cut, {:?}", seen.0);
    if wanted_effect().is_some() {
        return;
    }
    for place in PLACES {
        assert!(cuts.get(&place).is_some_and(|cuts| *cuts > 1), "no cut fell into {place:?}: {cuts:?}");
    }
    seen.assert_all(&["passes", "carries", "trims"]);
}

#[test]
fn a_power_cut_anywhere_in_compaction_takes_back_nothing_promised() {
    let test = "a_power_cut_anywhere_in_compaction_takes_back_nothing_promised";
    for policy in POLICIES.into_iter().filter(|policy| wanted(*policy)) {
        let counts = at_every_effect(policy, |effect, _, ended, counts| {
            for (tear, disk) in left_by_a_cut(&ended.world.disk, effect) {
                let _case = Case { test, policy, effect, tear };
                judge(ended, disk, true, counts);
            }
        });
        print_and_check("power cuts", policy, &counts);
        let may_lose = ["torn tails", "acknowledged records lost within the policy"];
        let told_late = ["torn tails", "records that nobody was told of and that survived"];
        if wanted_effect().is_none() {
            counts.seen.assert_all(if policy.may_lose() { &may_lose } else { &told_late });
        }
    }
}

#[test]
fn a_kill_anywhere_in_compaction_takes_back_nothing_that_was_told() {
    let test = "a_kill_anywhere_in_compaction_takes_back_nothing_that_was_told";
    for policy in POLICIES.into_iter().filter(|policy| wanted(*policy)) {
        let counts = at_every_effect(policy, |effect, _, ended, counts| {
            let _case = Case { test, policy, effect, tear: "the page cache".into() };
            judge(ended, ended.world.disk.after_kill(), false, counts);
        });
        print_and_check("kills", policy, &counts);
    }
}

#[test]
fn a_recovery_that_finishes_a_trim_is_recovered_from_wherever_it_is_cut() {
    let test = "a_recovery_that_finishes_a_trim_is_recovered_from_wherever_it_is_cut";
    for policy in POLICIES.into_iter().filter(|policy| wanted(*policy)) {
        let mut places = 0;
        let counts = at_every_effect(policy, |effect, inside, ended, counts| {
            let in_trim = matches!(inside, Inside::TrimRecord | Inside::TrimAnchor | Inside::Unlink);
            places += u64::from(in_trim);
            if !in_trim || wanted_effect().is_none() && !places.is_multiple_of(CHOSEN) {
                return;
            }
            let power_cut = (places / CHOSEN).is_multiple_of(2);
            let disk = &ended.world.disk;
            let image = if power_cut { disk.after_power_cut(&mut torn(effect)) } else { disk.after_kill() };
            let mut case = Case { test, policy, effect, tear: String::new() };
            cut_the_recovery(ended, &image, power_cut, &mut case, counts);
        });
        println!("recoveries of trims under {policy:?}: {} cut, {} images", counts.recoveries_cut, counts.images);
        assert!(wanted_effect().is_some() || counts.recoveries_cut > 50, "{}", counts.recoveries_cut);
    }
}

/// Cuts the recovery of `image` at each of its effects.
fn cut_the_recovery(ended: &Ended, image: &MemoryDisk, power_cut: bool, case: &mut Case, counts: &mut Counts) {
    let whole = ended.world.with_disk(image.after_kill());
    drop(whole.open().expect("a recovery that is not cut"));
    for effect in 0..whole.disk.effects() {
        let cut = ended.world.with_disk(image.after_kill());
        cut.disk.power_off_after(effect);
        // A file that a trim left may be the last that goes, and nobody waits for that.
        assert!(cut.open().is_err() || cut.disk.is_off(), "the recovery ends at effect {effect}");
        counts.recoveries_cut += 1;
        for (tear, disk) in left_by_a_cut(&cut.disk, effect) {
            case.tear = format!("power cut: {power_cut}, then recovery cut at its effect {effect}: {tear}");
            judge(ended, disk, true, counts);
        }
        case.tear = format!("power cut: {power_cut}, then recovery killed at its effect {effect}");
        judge(ended, cut.disk.after_kill(), power_cut, counts);
    }
}
