//! Compaction against a plain map: a store with segments of a few KiB, driven through anything that can happen between two
//! steps of a pass, and compared after each operation.
//!
//! Reading order: `ops` (what can happen), `player` with `staging` and `pass` (how it is done), `journal` (what outlives a
//! process), `checks` (what is true at any time), `cuts` with `trace` (a power cut at every effect),
//! `edges`.
//! A case prints the operations that fail, as few as proptest finds; more cases with `PROPTEST_CASES`.

mod checks;
mod cuts;
mod edges;
mod journal;
mod ops;
mod pass;
mod player;
mod staging;
mod trace;

use std::cell::RefCell;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{TestError, TestRunner};

use crate::bed::{POLICIES, World};
use journal::{Journal, Seen, Stop};
use ops::{Op, op};
use player::Player;

const CASES: u32 = 512;

const EVENTS: [&str; 37] = [
    "rolls",
    "reads",
    "passes",
    "carries",
    "trims",
    "trims with nothing alive",
    "left behind: superseded",
    "left behind: cleared",
    "left behind: lapsed",
    "carries of what was once read",
    "carries of what is no more, refused",
    "carries of an old generation, refused",
    "trims to anywhere",
    "trims refused over live records",
    "trims of an old generation, refused",
    "carries and trims that waited for room",
    "carries and trims refused without room",
    "passes that ended for want of room",
    "conditions that failed",
    "writes that wrote nothing",
    "turns that waited for room",
    "turns that waited for compaction",
    "puts refused below the floor",
    "puts refused over the bound on data",
    "writes refused without room",
    "refusals in the middle of a pass",
    "swept entries",
    "checks with a lapsed value",
    "values held beyond their segment",
    "bootstraps from beyond the log's start",
    "opens with the oldest anchor there may be",
    "clean stops in the middle of a pass",
    "kills in the middle of a pass",
    "power cuts in the middle of a pass",
    "power cuts in the middle of something",
    "torn tails",
    "acknowledged records lost within the policy",
];

fn run(policy: usize, segment_bytes: u32, reserves: bool, ops: &[Op]) -> Seen {
    let world = World::new(POLICIES[policy], segment_bytes);
    let mut player = Player::open(world, reserves, Journal::default(), Stop::KILL);
    player.check();
    player.play_through(ops);
    player.journal.seen
}

#[test]
fn compaction_changes_no_value_and_brings_none_back_whatever_comes_between_its_steps() {
    let config = ProptestConfig::default();
    let config =
        ProptestConfig { cases: config.cases.max(CASES), failure_persistence: None, max_shrink_iters: 1024, ..config };
    let seen = RefCell::new(Seen::default());
    let case = (0..POLICIES.len(), prop_oneof![Just(4096_u32), Just(8192)], any::<bool>(), vec(op(), 50..900));
    let result = TestRunner::new(config).run(&case, |(policy, segment_bytes, reserves, ops)| {
        let counted = run(policy, segment_bytes, reserves, &ops);
        seen.borrow_mut().add(&counted);
        Ok(())
    });
    match result {
        Err(TestError::Fail(why, (policy, segment_bytes, reserves, ops))) => {
            panic!("{why}\nunder {:?}, {segment_bytes}, reserves {reserves}: {ops:?}", POLICIES[policy])
        }
        failed => failed.expect("nothing else ends it"),
    }
    let seen = seen.into_inner();
    println!("{:#?}", seen.0);
    seen.assert_all(&EVENTS);
}
