//! The process is killed at every effect, its page cache lives on, the next process serves what it finds, and only then
//! the power is cut.
//!
//! A kill alone proves nothing about flushing; what is served after it must have been flushed by whoever served it.

use hearth::core::log::FsyncPolicy;
use hearth::core::log::disk::everything_lost;

use crate::bed::{POLICIES, World, logged_epoch};
use crate::judge::{Case, End, SEGMENT_BYTES, at_every, judge, wanted, wanted_effect};
use crate::power_cut::{SCRIPT_SEED, WRITES};
use crate::script::script;

#[test]
fn what_is_served_after_a_kill_survives_a_power_cut() {
    let test = "what_is_served_after_a_kill_survives_a_power_cut";
    for policy in POLICIES.into_iter().filter(|policy| wanted(*policy)) {
        let counts = at_every(End::PowerOff, 1, policy, &script(SCRIPT_SEED, WRITES), |effect, world, told, counts| {
            let _case = Case { test, policy, effect, tear: "the page cache".into() };
            judge(world, world.disk.after_kill(), &told.after_kill(), counts);
        });
        println!("kills under {policy:?}: {counts:?}");
        if wanted_effect().is_none() {
            assert!(counts.cuts > 200 && counts.seen.unknown > 0 && counts.seen.refused > 0, "{counts:?}");
        }
    }
}

#[test]
fn a_directory_made_by_a_killed_process_is_durable_before_a_write_in_it_is_acknowledged() {
    let effects = {
        let world = World::new(FsyncPolicy::Always, SEGMENT_BYTES);
        drop(world.open().expect("a new store"));
        world.disk.effects()
    };
    assert!(effects > 10);
    for effect in 0..effects {
        let _case = Case {
            test: "a_directory_made_by_a_killed_process",
            policy: FsyncPolicy::Always,
            effect,
            tear: "the page cache".into(),
        };
        let first = World::new(FsyncPolicy::Always, SEGMENT_BYTES);
        first.disk.power_off_after(effect);
        assert!(first.open().is_err());
        let second = first.with_disk(first.disk.after_kill());
        let mut bed = second.open().expect("what a killed process left opens");
        bed.put_acknowledged(b"key", b"value");
        let third = second.with_disk(second.disk.after_power_cut(&mut everything_lost()));
        let bed = third.open().expect("it opens again");
        assert_eq!(bed.get(b"key").expect("readable").as_deref(), Some(&b"value"[..]));
    }
}

#[test]
fn what_a_killed_everysec_broker_left_is_of_a_new_epoch_also_under_always() {
    for former in [FsyncPolicy::EverySec, FsyncPolicy::Never] {
        let mut first = World::new(former, SEGMENT_BYTES);
        let mut bed = first.open().expect("a new store");
        let epoch = bed.report.epoch;
        bed.put_acknowledged(b"key", b"value");
        drop(bed);
        first.options.policy = FsyncPolicy::Always;
        let whole = first.with_disk(first.disk.after_kill());
        drop(whole.open().expect("it opens"));
        for effect in 0..=whole.disk.effects() {
            let (test, tear) = ("what_a_killed_everysec_broker_left", "the page cache, twice".into());
            let _case = Case { test, policy: former, effect, tear };
            let second = first.with_disk(first.disk.after_kill());
            second.disk.power_off_after(effect);
            drop(second.open());
            let third = second.with_disk(second.disk.after_kill());
            let bed = third.open().expect("it opens");
            assert_ne!(bed.report.epoch, epoch);
            assert_eq!(logged_epoch(&third.disk), Some(bed.report.epoch));
            assert_eq!(bed.get(b"key").expect("readable").as_deref(), Some(&b"value"[..]));
            let last = third.with_disk(third.disk.after_power_cut(&mut everything_lost()));
            let again = last.open().expect("it opens");
            assert_eq!(again.report.epoch, bed.report.epoch, "nothing was lost under always");
            assert_eq!(again.get(b"key").expect("readable").as_deref(), Some(&b"value"[..]));
        }
    }
}
