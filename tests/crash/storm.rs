//! A storm: keys are overwritten without a gap until many times their bytes were written. All the while the log stays small,
//! by the kernel's count of its blocks, and whatever was acknowledged is there, also after a kill in its middle.
//!
//! Counted in bytes, never in seconds; the long form, which measures, is `benches/storm.py`.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::case::Case;
use crate::ledger::{Answer, Ledger, Seen};
use crate::support::{Broker, Client, Info, Random, Scratch, Word, until};

const WRITERS: u32 = 4;
const KEYS_EACH: u32 = 70_000;
const VALUE_BYTES: usize = 1024;
/// Sent before the first reply of the burst before is read.
const BURST: usize = 256;
/// The storm writes so many times the bytes that are live, half of them before the kill.
const TIMES: u64 = 8;
/// A sample of the disk after so many replies.
const SAMPLE_EVERY: u64 = 5_000;
/// The most that the files may take, in tenths of the live bytes.
const MOST_TENTHS: u64 = 23;

/// What the files below a directory take, as the file system counts it.
pub fn allocated_bytes(below: &Path) -> u64 {
    let Ok(about) = std::fs::symlink_metadata(below) else { return 0 };
    let mut bytes = about.blocks() * 512;
    // A file may go while we look.
    for entry in std::fs::read_dir(below).into_iter().flatten().flatten() {
        bytes += if entry.path().is_dir() {
            allocated_bytes(&entry.path())
        } else {
            entry.metadata().map_or(0, |about| about.blocks() * 512)
        };
    }
    bytes
}

/// One writer's part: overwrites its keys at random until it hears that it is enough, or the broker is gone.
fn blow(mut ledger: Ledger, mut client: Client, mut random: Random, replies: &AtomicU64, enough: &Word) -> Ledger {
    let send = |ledger: &mut Ledger, client: &mut Client, random: &mut Random| {
        (0..BURST).for_each(|_| ledger.put(client, random.between(0, u64::from(KEYS_EACH)) as u32));
        client.flush().is_ok()
    };
    if !send(&mut ledger, &mut client, &mut random) {
        return ledger;
    }
    // A burst is always on its way while the one before it is answered.
    while !enough.was_said() && send(&mut ledger, &mut client, &mut random) {
        if !read(&mut ledger, &mut client, replies, BURST) {
            return ledger;
        }
    }
    let left = ledger.unanswered();
    read(&mut ledger, &mut client, replies, left);
    ledger
}

/// False when the connection is gone.
fn read(ledger: &mut Ledger, client: &mut Client, replies: &AtomicU64, count: usize) -> bool {
    for _ in 0..count {
        let Ok(reply) = client.read() else { return false };
        assert_eq!(ledger.answer(reply), Answer::Done, "a write in a storm on a disk with room");
        replies.fetch_add(1, Ordering::Relaxed);
    }
    true
}

/// What the samples of one storm showed.
#[derive(Debug, Default)]
struct Sampled {
    samples: u64,
    /// The most that the files took, in hundredths of the live bytes.
    most_percent: u64,
    passes: u64,
    trims: u64,
    carried_bytes: u64,
}

impl Sampled {
    fn take(&mut self, data_dir: &Path, client: &mut Client) {
        let allocated = allocated_bytes(data_dir);
        let info = Info::of(client, "persistence");
        let live = info.number("hearth_live_bytes");
        assert!(allocated * 10 <= live * MOST_TENTHS, "{allocated} bytes on disk for {live} live ones: {self:?}");
        self.samples += 1;
        self.most_percent = self.most_percent.max(allocated * 100 / live);
        self.passes = info.number("hearth_compaction_passes");
        self.trims = info.number("hearth_trims");
        self.carried_bytes = info.number("hearth_carried_bytes");
    }

    fn add(&mut self, other: &Self) {
        self.samples += other.samples;
        self.most_percent = self.most_percent.max(other.most_percent);
        self.passes += other.passes;
        self.trims += other.trims;
        self.carried_bytes += other.carried_bytes;
    }
}

/// Storms until about `enough` replies, with a kill right then or an orderly end; the disk is sampled all the while.
fn storm(
    broker: Broker,
    data_dir: &Path,
    ledgers: &mut Vec<Ledger>,
    random: &mut Random,
    enough: u64,
    kill: bool,
) -> (Option<Broker>, Sampled) {
    let (replies, enough_of_it) = (AtomicU64::new(0), Word::default());
    let mut sampled = Sampled::default();
    let mut observer = broker.client();
    let mut broker = Some(broker);
    *ledgers = thread::scope(|scope| {
        let _end = enough_of_it.at_the_end();
        let writers: Vec<_> = std::mem::take(ledgers)
            .into_iter()
            .map(|ledger| {
                let (client, random) = (broker.as_ref().expect("it runs").client(), random.fork());
                let (replies, enough) = (&replies, &enough_of_it);
                scope.spawn(move || blow(ledger, client, random, replies, enough))
            })
            .collect();
        let mut next = SAMPLE_EVERY;
        while next <= enough {
            until("more replies", || replies.load(Ordering::Relaxed) >= next);
            sampled.take(data_dir, &mut observer);
            next = replies.load(Ordering::Relaxed).max(next) + SAMPLE_EVERY;
        }
        // Whoever is killed is killed among writes on their way.
        if kill {
            broker.take().expect("it runs").kill();
        }
        enough_of_it.say();
        writers.into_iter().map(|writer| writer.join().expect("a writer")).collect()
    });
    (broker, sampled)
}

fn check(broker: &Broker, ledgers: &mut [Ledger], when: &str) -> Seen {
    let mut seen = Seen::default();
    ledgers.iter_mut().for_each(|ledger| seen.add(ledger.check(&mut broker.client(), when)));
    seen
}

#[test]
fn a_storm_of_overwrites_leaves_the_log_small_and_every_key_as_it_was_told() {
    let case = Case::new("storm::a_storm_of_overwrites_leaves_the_log_small_and_every_key_as_it_was_told");
    let scratch = Scratch::new("storm");
    let data_dir = scratch.path().join("data");
    let mut random = case.random();
    let broker = Broker::start(&data_dir, "always");
    let mut ledgers: Vec<Ledger> = (0..WRITERS).map(|owner| Ledger::new(owner, KEYS_EACH, 0, VALUE_BYTES)).collect();
    thread::scope(|scope| {
        for ledger in &mut ledgers {
            let mut client = broker.client();
            scope.spawn(move || assert_eq!(ledger.put_all(&mut client, 0..KEYS_EACH), (u64::from(KEYS_EACH), None)));
        }
    });
    let keys = u64::from(WRITERS * KEYS_EACH);
    let (_, mut sampled) = storm(broker, &data_dir, &mut ledgers, &mut random, keys * TIMES / 2, true);
    let broker = Broker::start(&data_dir, "always");
    let mut seen = check(&broker, &mut ledgers, "after a kill in the storm");
    let (broker, second) = storm(broker, &data_dir, &mut ledgers, &mut random, keys * TIMES / 2, false);
    assert!(second.trims > 0 && second.passes > 0 && sampled.trims > 0 && sampled.passes > 0, "{sampled:?} {second:?}");
    sampled.add(&second);
    let broker = broker.expect("it was not killed");
    seen.add(check(&broker, &mut ledgers, "after the storm"));
    assert_eq!(broker.terminate(), 0);
    let broker = Broker::start(&data_dir, "always");
    seen.add(check(&broker, &mut ledgers, "after a restart"));
    println!("{} puts over {keys} keys: {sampled:?}, {seen:?}", keys * TIMES);
    assert!(sampled.samples > 100 && sampled.carried_bytes > 0, "{sampled:?}");
    assert_eq!((seen.present, seen.absent), (3 * keys, 0), "every key has a value");
    assert!(seen.unknown > 0, "the kill left no write without an answer");
}
