//! kill -9 under load: whatever was acknowledged is there after the restart, round after round on the same directory.
//!
//! The page cache outlives the process, so `everysec` must lose nothing either, and nothing here proves anything about
//! flushing (power_cuts.rs does).

use crate::case::Case;
use crate::load::{Load, Manner, Outcome, Stop};
use crate::oracle::{Checked, Line, check};
use crate::support::{Broken, Broker, Random, Scratch};

const WRITERS: u32 = 4;

#[test]
fn what_was_acknowledged_survives_ten_kills_under_always() {
    let case =
        Case::new("kills::what_was_acknowledged_survives_ten_kills_under_always").with_rounds("HEARTH_KILLS", 10);
    survive_kills(&case, "always");
}

#[test]
fn what_was_acknowledged_survives_ten_kills_under_everysec() {
    let case =
        Case::new("kills::what_was_acknowledged_survives_ten_kills_under_everysec").with_rounds("HEARTH_KILLS", 10);
    survive_kills(&case, "everysec");
}

fn survive_kills(case: &Case, fsync: &str) {
    let scratch = Scratch::new("kills");
    let data_dir = scratch.path().join("data");
    let mut random = case.random();
    let mut lines: Vec<Line> = (0..WRITERS).map(Line::new).collect();
    let (mut acknowledged, mut checked) = (0, Checked::default());
    for round in 0..case.rounds() {
        let broker = Broker::start(&data_dir, fsync);
        checked.add(check(&mut broker.client(), &mut lines, &format!("before round {round}")));
        acknowledged += kill_under_load(broker, &mut lines, round, &mut random);
    }
    let broker = Broker::start(&data_dir, fsync);
    checked.add(check(&mut broker.client(), &mut lines, "after the last kill"));
    assert_eq!(broker.terminate(), 0, "a clean stop after all kills");
    let broker = Broker::start(&data_dir, fsync);
    checked.add(check(&mut broker.client(), &mut lines, "after a clean stop"));
    println!("{fsync}: {} kills, {acknowledged} acknowledged, {checked:?}", case.rounds());
    assert!(acknowledged > 0, "no write was acknowledged");
    assert!(checked.unknown > 0, "no kill left a write without an answer");
    assert!(checked.keys > 0, "no key was checked");
}

/// Returns how many writes were acknowledged; the lines keep what is open.
pub fn kill_under_load(broker: Broker, lines: &mut Vec<Line>, round: u32, random: &mut Random) -> u64 {
    let moment = random.between(50, 2000);
    let load = Load::start(std::mem::take(lines), round, Manner::Bursts, random, || broker.client());
    load.wait_for(moment);
    // No announcement: a reply the broker gave before it died counts, also one that is read after.
    broker.kill();
    let (written, outcomes) = load.join();
    *lines = written;
    for outcome in &outcomes {
        assert!(ended_by_a_kill(outcome), "round {round}: a writer stopped on {:?}", outcome.stop);
    }
    let acknowledged: u64 = outcomes.iter().map(|outcome| outcome.acknowledged).sum();
    assert!(
        acknowledged >= moment,
        "round {round}: all writers stopped after {acknowledged} of {moment} acknowledgements"
    );
    acknowledged
}

fn ended_by_a_kill(outcome: &Outcome) -> bool {
    matches!(outcome.stop, Stop::Broken(Broken::Ended | Broken::CutShort | Broken::Reset))
}
