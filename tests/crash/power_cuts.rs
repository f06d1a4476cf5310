//! Power cuts: what was acknowledged before the cut, or read after a restart, is there after the next boot.
//!
//! Runs as root on Linux with loop devices, and says so in one line where it cannot. The exit code of a broker whose
//! disk has gone is part of the promise: it must notice, answer nothing good any more, and end with 9.

use std::collections::BTreeMap;

use crate::case::Case;
use crate::ext4::Ext4;
use crate::kills::kill_under_load;
use crate::load::{Load, Manner, Outcome, Stop};
use crate::oracle::{Checked, Line, check};
use crate::support::{Broken, Broker, Random, Reply};

const WRITERS: u32 = 4;
const FLUSH_FAILED: i32 = 9;

/// Sums over all cuts; each must be more than nothing.
#[derive(Debug, Default)]
struct Seen {
    acknowledged: u64,
    late: u64,
    /// How many writers ended on which error reply.
    errors: BTreeMap<String, u64>,
    /// None: did not end by itself.
    exits: BTreeMap<Option<i32>, u32>,
    checked: Checked,
}

#[test]
fn what_was_acknowledged_survives_twenty_power_cuts() {
    let case =
        Case::new("power_cuts::what_was_acknowledged_survives_twenty_power_cuts").with_rounds("HEARTH_POWER_CUTS", 20);
    let Some(mut disk) = Ext4::mounted() else { return };
    let mut random = case.random();
    let mut lines: Vec<Line> = (0..WRITERS).map(Line::new).collect();
    let mut seen = Seen::default();
    for cut in 0..case.rounds() {
        let broker = start_and_check(&disk, "always", &mut lines, &mut seen, &format!("before cut {cut}"));
        cut_under_load(&disk, broker, &mut lines, cut, &mut random, &mut seen);
        disk.boot();
    }
    let broker = start_and_check(&disk, "always", &mut lines, &mut seen, "after the last cut");
    assert_eq!(broker.terminate(), 0, "a clean stop after all cuts");
    println!("{} power cuts: {seen:?}", case.rounds());
    assert!(seen.acknowledged > 0, "no write was acknowledged");
    assert!(seen.checked.unknown > 0, "no cut left a write without an answer");
    assert!(seen.checked.keys > 0, "no key was checked");
    let only_the_right_exit = BTreeMap::from([(Some(FLUSH_FAILED), case.rounds())]);
    assert_eq!(seen.exits, only_the_right_exit, "exit codes after a failed flush (None: did not end by itself)");
}

/// kill -9 leaves bytes that only the page cache holds; what a restarted broker has shown of them must not go with the
/// power. The load runs under `never` so that there are many such bytes: under `always` the kill itself waits for the
/// flush in flight.
#[test]
fn what_was_served_after_a_kill_survives_a_power_cut() {
    let name = "power_cuts::what_was_served_after_a_kill_survives_a_power_cut";
    let case = Case::new(name).with_rounds("HEARTH_POWER_CUTS", 20);
    let Some(mut disk) = Ext4::mounted() else { return };
    let mut random = case.random();
    let mut lines: Vec<Line> = (0..WRITERS).map(Line::new).collect();
    let mut seen = Seen::default();
    for cut in 0..case.rounds() {
        let broker = start_and_check(&disk, "never", &mut lines, &mut seen, &format!("before kill {cut}"));
        seen.acknowledged += kill_under_load(broker, &mut lines, cut, &mut random);
        let broker = start_and_check(&disk, "always", &mut lines, &mut seen, &format!("after kill {cut}"));
        // No write in between: nothing but the recovery itself has had a reason to flush.
        disk.arm().cut();
        broker.kill();
        disk.boot();
    }
    start_and_check(&disk, "always", &mut lines, &mut seen, "after the last cut");
    println!("{} kills, each with a power cut: {seen:?}", case.rounds());
    assert!(seen.acknowledged > 0, "no write was acknowledged");
    assert!(seen.checked.keys > 0, "no key was checked");
}

fn start_and_check(disk: &Ext4, fsync: &str, lines: &mut [Line], seen: &mut Seen, when: &str) -> Broker {
    let broker = Broker::start(&disk.path().join("data"), fsync);
    seen.checked.add(check(&mut broker.client(), lines, when));
    broker
}

fn cut_under_load(disk: &Ext4, broker: Broker, lines: &mut Vec<Line>, cut: u32, random: &mut Random, seen: &mut Seen) {
    let moment = random.between(50, 2000);
    let switch = disk.arm();
    let load = Load::start(std::mem::take(lines), cut, Manner::Bursts, random, || broker.client());
    load.wait_for(moment);
    load.announce();
    switch.cut();
    load.done();
    *seen.exits.entry(broker.exit_by_itself()).or_default() += 1;
    let (written, outcomes) = load.join();
    *lines = written;
    for outcome in &outcomes {
        assert!(!outcome.early, "cut {cut}: a writer stopped before the cut, on {:?}", outcome.stop);
        assert_eq!(outcome.lies, 0, "cut {cut}: writes sent after the power was gone were acknowledged");
        seen.acknowledged += outcome.acknowledged;
        seen.late += outcome.late;
        note_the_end(outcome, cut, seen);
    }
}

/// A connection may end at any point of a failing broker; an error reply must be one of the two that say what happened.
fn note_the_end(outcome: &Outcome, cut: u32, seen: &mut Seen) {
    match &outcome.stop {
        Stop::Broken(Broken::Ended | Broken::CutShort | Broken::Reset) => {}
        Stop::Reply(Reply::Error(text)) if text.starts_with(b"UNKNOWN ") || text.starts_with(b"MISCONF ") => {
            let text = String::from_utf8_lossy(text).into_owned();
            *seen.errors.entry(text).or_default() += 1;
        }
        other => panic!("cut {cut}: a writer stopped on {other:?}"),
    }
}
