//! The index against a plain map and sums taken anew after every step, over everything that can happen to it.
//!
//! A case prints the steps that fail, as few as proptest finds; more cases with `PROPTEST_CASES`.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use super::super::*;

const CASES: u32 = 512;

#[derive(Clone, Debug)]
enum Write {
    Put {
        key: usize,
        length: u32,
        lapses_in: Option<u64>,
    },
    /// What compaction does; nothing if the key has no entry.
    Carry {
        key: usize,
    },
    Delete {
        key: usize,
    },
    Clear,
}

#[derive(Clone, Debug)]
enum Step {
    Batch(Vec<Write>),
    NextSegment,
    /// The log starts with one of its segments: the higher the number, the older.
    Trim(usize),
    Wait(u64),
    Sweep(usize),
    DropLapsed {
        key: usize,
        this_record: bool,
    },
    FinishLoading,
}

fn write() -> impl Strategy<Value = Write> {
    prop_oneof![
        120 => (any::<usize>(), 1..500_u32, prop::option::of(1..40_u64))
            .prop_map(|(key, length, lapses_in)| Write::Put { key, length, lapses_in }),
        40 => any::<usize>().prop_map(|key| Write::Carry { key }),
        50 => any::<usize>().prop_map(|key| Write::Delete { key }),
        1 => Just(Write::Clear),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        40 => vec(write(), 1..24).prop_map(Step::Batch),
        8 => Just(Step::NextSegment),
        5 => (0..4_usize).prop_map(Step::Trim),
        8 => (1..20_u64).prop_map(Step::Wait),
        8 => (1..100_usize).prop_map(Step::Sweep),
        6 => (any::<usize>(), any::<bool>()).prop_map(|(key, this_record)| Step::DropLapsed { key, this_record }),
        3 => Just(Step::FinishLoading),
    ]
}

/// A pool of keys: alike for nothing, for long, or for longer than heads and words are, with zeros at the ends.
fn keys() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let begin = prop_oneof![
        Just(Vec::new()),
        Just(b"user:1000:".to_vec()),
        Just(b"user:1000:profile:".to_vec()),
        Just(vec![b'x'; 700]),
        Just(vec![0; 9]),
    ];
    let end = vec(prop_oneof![Just(0_u8), Just(b'a'), Just(255), any::<u8>()], 0..12);
    vec((begin, end).prop_map(|(begin, end)| [begin, end].concat()), 1..150)
}

/// Steps of each kind that did something, over all cases.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    put_over_zombie: u64,
    carried: u64,
    deleted: u64,
    cleared: u64,
    trimmed_entries: u64,
    swept_lapsed: u64,
    swept_zombies: u64,
    dropped_lapsed: u64,
    spared: u64,
    loaded: u64,
}

/// What the index must hold.
#[derive(Default)]
struct Model {
    entries: BTreeMap<Vec<u8>, Entry>,
    /// Keys whose entries a trim made absent and that no sweep has met.
    zombies: BTreeSet<Vec<u8>>,
    next: u64,
    /// The segments the log has, with their first offsets.
    segments: Vec<(u64, u64)>,
    now: u64,
    seen: Seen,
}

impl Model {
    fn live<'m>(&self, of: impl Iterator<Item = &'m Entry>) -> Live {
        of.fold(Live::default(), |sum, entry| Live {
            entries: sum.entries + 1,
            bytes: sum.bytes + u64::from(entry.location.length),
        })
    }

    fn write<'k>(&mut self, write: &Write, keys: &'k [Vec<u8>]) -> Option<(Offset, Location, CacheRecord<'k>)> {
        let key_of = |key: &usize| keys[key % keys.len()].as_slice();
        let offset = Offset(self.next);
        let segment = SegmentNo(self.segments.last().unwrap().0);
        let at = |length| Location { segment, position: offset.0 as u32, length };
        let (location, record) = match write {
            Write::Put { key, length, lapses_in } => {
                let (key, expires_at) = (key_of(key), lapses_in.map_or(Millis::NEVER, |ms| Millis(self.now + ms)));
                self.seen.put_over_zombie += u64::from(self.zombies.remove(key));
                let entry = Entry { offset, revision: Revision(offset.0), expires_at, location: at(*length) };
                self.entries.insert(key.to_vec(), entry);
                (at(*length), CacheRecord::Put { key, value: b"", expires_at })
            }
            Write::Carry { key } => {
                let key = key_of(key);
                let entry = self.entries.get_mut(key)?;
                self.seen.carried += 1;
                (entry.offset, entry.location) = (offset, at(entry.location.length + 8));
                let (expires_at, revision) = (entry.expires_at, entry.revision);
                (entry.location, CacheRecord::Carried { key, value: b"", expires_at, revision })
            }
            Write::Delete { key } => {
                let key = key_of(key);
                self.zombies.remove(key);
                self.seen.deleted += u64::from(self.entries.remove(key).is_some());
                (at(30), CacheRecord::Delete { key })
            }
            Write::Clear => {
                self.seen.cleared += u64::from(!self.entries.is_empty());
                self.entries.clear();
                self.zombies.clear();
                (at(20), CacheRecord::Clear)
            }
        };
        self.next += 1;
        Some((offset, location, record))
    }

    fn trim(&mut self, back: usize) -> (Offset, SegmentNo) {
        let first = self.segments.len().saturating_sub(back + 1);
        self.segments.drain(..first);
        let (number, base) = self.segments[0];
        let absent: Vec<_> =
            self.entries.iter().filter(|(_, entry)| entry.offset.0 < base).map(|(k, _)| k.clone()).collect();
        self.seen.trimmed_entries += absent.len() as u64;
        self.entries.retain(|_, entry| entry.offset.0 >= base);
        self.zombies.extend(absent);
        (Offset(base), SegmentNo(number))
    }

    /// Which slots a sweep passes is the index's own; that nothing but lapsed entries and zombies went is not.
    fn sweep(&mut self, index: &Index, cursor: &mut SweepCursor, slots: usize) {
        let began = cursor_is_at_start(cursor);
        let swept = index.sweep(cursor, slots, Millis(self.now));
        assert!(swept.visited <= slots);
        let map = index.read();
        let (now, mut dropped, mut bytes) = (Millis(self.now), 0, 0);
        self.entries.retain(|key, entry| {
            let kept = map.slot_of(key).is_some();
            assert!(kept || entry.expires_at.has_lapsed(now), "{key:?} was swept and had not lapsed");
            dropped += u64::from(!kept);
            bytes += if kept { 0 } else { u64::from(entry.location.length) };
            kept
        });
        let zombies = self.zombies.len();
        self.zombies.retain(|key| map.slot_of(key).is_some());
        let zombies = (zombies - self.zombies.len()) as u64;
        assert_eq!((swept.dropped as u64, swept.dropped_bytes), (dropped + zombies, bytes));
        if began && swept.wrapped {
            assert!(self.zombies.is_empty(), "a whole pass left {:?}", self.zombies);
            assert!(
                !self.entries.values().any(|entry| entry.expires_at.has_lapsed(now)),
                "a whole pass left lapsed ones"
            );
        }
        self.seen.swept_lapsed += dropped;
        self.seen.swept_zombies += zombies;
    }

    fn drop_lapsed(&mut self, index: &Index, key: usize, this_record: bool, keys: &[Vec<u8>]) {
        // One that has lapsed, if there is one.
        let has_lapsed = |entry: &Entry| entry.expires_at.has_lapsed(Millis(self.now));
        let lapsed: Vec<Vec<u8>> =
            self.entries.iter().filter(|(_, entry)| has_lapsed(entry)).map(|(key, _)| key.clone()).collect();
        let key = lapsed.get(key % (lapsed.len() + 1)).unwrap_or(&keys[key % keys.len()]).as_slice();
        let entry = self.entries.get(key).copied();
        let offset = entry.map_or(0, |entry| entry.offset.0) + u64::from(!this_record);
        let expected = this_record && entry.as_ref().is_some_and(has_lapsed);
        assert_eq!(index.drop_lapsed(key, Offset(offset), Millis(self.now)), expected);
        if expected {
            self.entries.remove(key);
            self.seen.dropped_lapsed += 1;
        } else {
            self.seen.spared += u64::from(entry.is_some());
        }
    }

    fn compare(&self, index: &Index, keys: &[Vec<u8>], loading: bool) {
        index.check();
        let view = index.view();
        let unordered: BTreeMap<Vec<u8>, Entry> = view.iter().map(|(key, entry)| (key.to_vec(), entry)).collect();
        assert_eq!(unordered, self.entries);
        keys.iter().for_each(|key| assert_eq!(view.get(key), self.entries.get(key).copied()));
        assert_eq!(view.len(), self.entries.len());
        assert_eq!(view.live(), self.live(self.entries.values()));
        assert_eq!(view.expiring(), self.entries.values().filter(|entry| entry.expires_at != Millis::NEVER).count());
        for number in 0..=self.segments.last().unwrap().0 + 1 {
            let segment = SegmentNo(number);
            let of = self.entries.values().filter(|entry| entry.location.segment == segment);
            let below = self.entries.values().filter(|entry| entry.location.segment < segment);
            assert_eq!((view.live_of(segment), view.live_below(segment)), (self.live(of), self.live(below)));
        }
        if loading {
            return;
        }
        let all: Vec<(&[u8], Entry)> = self.entries.iter().map(|(key, entry)| (key.as_slice(), *entry)).collect();
        assert_eq!(view.prefix(b"").collect::<Vec<_>>(), all);
        for key in keys.iter().take(5) {
            let prefix = &key[..key.len() / 2];
            let expected = || all.iter().filter(|(key, _)| key.starts_with(prefix)).copied();
            assert_eq!(view.prefix(prefix).collect::<Vec<_>>(), expected().collect::<Vec<_>>());
            let after = expected().filter(|(found, _)| *found > key.as_slice()).collect::<Vec<_>>();
            assert_eq!(view.range_after(prefix, Some(key)).collect::<Vec<_>>(), after);
        }
    }
}

fn cursor_is_at_start(cursor: &SweepCursor) -> bool {
    format!("{cursor:?}") == format!("{:?}", SweepCursor::default())
}

fn run(keys: &[Vec<u8>], loads: bool, steps: &[Step], seen: Seen) -> Seen {
    let (index, mut loading) = if loads { (Index::loading(), true) } else { (Index::default(), false) };
    let mut model = Model { next: 1, segments: vec![(1, 1)], now: 1000, seen, ..Model::default() };
    let mut cursor = SweepCursor::default();
    for step in steps {
        match step {
            Step::Batch(writes) => {
                let records: Vec<_> = writes.iter().filter_map(|write| model.write(write, keys)).collect();
                index.apply(records);
            }
            Step::NextSegment => model.segments.push((model.segments.last().unwrap().0 + 1, model.next)),
            Step::Trim(back) => {
                let (base, first) = model.trim(*back);
                index.trim(base, first);
            }
            Step::Wait(ms) => model.now += ms,
            Step::Sweep(slots) => model.sweep(&index, &mut cursor, *slots),
            Step::DropLapsed { key, this_record } => model.drop_lapsed(&index, *key, *this_record, keys),
            Step::FinishLoading => {
                index.finish_loading();
                model.seen.loaded += u64::from(loading && !model.entries.is_empty());
                loading = false;
            }
        }
        model.compare(&index, keys, loading);
    }
    model.seen
}

#[test]
fn the_index_holds_what_a_plain_map_holds_and_its_sums_never_drift() {
    let config = ProptestConfig::default();
    let config = ProptestConfig { cases: config.cases.max(CASES), failure_persistence: None, ..config };
    let seen = RefCell::new(Seen::default());
    let case = (keys(), any::<bool>(), vec(step(), 1..40));
    let result = TestRunner::new(config).run(&case, |(keys, loads, steps)| {
        let counted = run(&keys, loads, &steps, *seen.borrow());
        *seen.borrow_mut() = counted;
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
    let seen = seen.into_inner();
    println!("{seen:?}");
    let Seen { put_over_zombie, carried, deleted, cleared, trimmed_entries, .. } = seen;
    let Seen { swept_lapsed, swept_zombies, dropped_lapsed, spared, loaded, .. } = seen;
    let first = [put_over_zombie, carried, deleted, cleared, trimmed_entries];
    let second = [swept_lapsed, swept_zombies, dropped_lapsed, spared, loaded];
    assert!(first.iter().chain(&second).all(|count| *count > 0), "{seen:?}");
}
