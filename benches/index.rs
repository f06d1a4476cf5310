//! Measures candidates for the index: key -> where the newest record of that key lies.
//!
//! Prints a Markdown table for each number of keys. Each candidate runs in a process of its own (this program started
//! again with arguments), because the memory of one would colour the next; the candidates take turns in every round,
//! and figures are medians over the rounds; times are the processor's, not the wall's, but beside a writer.
//! `cargo bench --bench index -- WORD ...` takes only the candidates whose name has one of the words in it. It knows
//! nothing of the log.
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "a bench measures time and stops at the first surprise"
)]

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::BuildHasher;
use std::ops::Bound;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_skiplist::SkipMap;
use hearth::core::record::cache::CacheRecord;
use hearth::core::types::{Location, Millis, Offset, Revision, SegmentNo};
use scc::{Guard, TreeIndex};
use smallvec::SmallVec;

const ROUNDS: usize = 7;
const KEY_COUNTS: [usize; 2] = [100_000, 2_000_000];
const KEY_BYTES: usize = 16;
const READS: usize = 300_000;
const OVERWRITES: usize = 200_000;
/// New keys put between the others when all of those are there.
const NEW_KEYS: usize = 50_000;
const PREFIX_READS: usize = 500;
/// Keys that share all but the last two digits.
const KEYS_PER_PREFIX: usize = 100;
/// Inserts under one write guard.
const INSERT_GROUP: usize = 16;
/// Overwrites applied under one write guard, and the pause after it, beside the timed reader.
const APPLY_BATCH: usize = 64;
const APPLY_PAUSE: Duration = Duration::from_micros(150);
const READS_BESIDE_WRITER: usize = 200_000;

/// Tables that `HashParts` is cut into.
const PARTS: usize = 256;

type Key = [u8; KEY_BYTES];

/// What the index holds for a key.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    offset: u64,
    revision: u64,
    expires_at_millis: u64,
    segment: u32,
    position: u32,
    length: u32,
}

/// What the broker asks of an index. `put_batch` is one apply: one write guard where there is a lock.
trait Index: Sync {
    fn get(&self, key: &[u8]) -> Option<Entry>;
    fn put_batch(&self, batch: &[(Key, Entry)]);
    /// `None` when the index cannot answer in order short of looking at every key.
    fn prefix(&self, prefix: &[u8]) -> Option<Vec<(Box<[u8]>, Entry)>>;
    /// ns a key of a load as at the start of a broker, when nobody asks for an order, and ms to sort at its end; `None`
    /// when there is no such load.
    fn timed_load(&self, _load: &[(Key, Entry)]) -> Option<(f64, f64)> {
        None
    }
}

/// The broker's own.
impl Index for hearth::core::index::Index {
    fn get(&self, key: &[u8]) -> Option<Entry> {
        self.view().get(key).map(of_ours)
    }

    fn put_batch(&self, batch: &[(Key, Entry)]) {
        self.apply(batch.iter().map(|(key, entry)| {
            let (expires_at, revision) = (Millis(entry.expires_at_millis), Revision(entry.revision));
            let segment = SegmentNo(u64::from(entry.segment));
            let location = Location { segment, position: entry.position, length: entry.length };
            (Offset(entry.offset), location, CacheRecord::Carried { key, value: b"", expires_at, revision })
        }));
    }

    fn prefix(&self, prefix: &[u8]) -> Option<Vec<(Box<[u8]>, Entry)>> {
        Some(self.view().prefix(prefix).map(|(key, entry)| (key.into(), of_ours(entry))).collect())
    }

    fn timed_load(&self, load: &[(Key, Entry)]) -> Option<(f64, f64)> {
        let index: &Self = Box::leak(Box::new(Self::loading()));
        let load_ns = timed_inserts(index, load);
        let start = Busy::now();
        index.finish_loading();
        let sort_ms = start.elapsed().as_secs_f64() * 1e3;
        assert!(index.view().prefix(b"").is_sorted_by(|(one, _), (next, _)| one < next));
        Some((load_ns, sort_ms))
    }
}

fn of_ours(entry: hearth::core::index::Entry) -> Entry {
    Entry {
        offset: entry.offset.0,
        revision: entry.revision.0,
        expires_at_millis: entry.expires_at.0,
        segment: entry.location.segment.0 as u32,
        position: entry.location.position,
        length: entry.location.length,
    }
}

/// A B-tree under a lock; `K` is how it owns a key.
struct Tree<K>(RwLock<BTreeMap<K, Entry>>);

impl<K> Index for Tree<K>
where
    K: Ord + Borrow<[u8]> + for<'a> From<&'a [u8]> + Send + Sync,
{
    fn get(&self, key: &[u8]) -> Option<Entry> {
        self.0.read().expect("not poisoned").get(key).copied()
    }

    fn put_batch(&self, batch: &[(Key, Entry)]) {
        let mut map = self.0.write().expect("not poisoned");
        for (key, entry) in batch {
            match map.get_mut(key.as_slice()) {
                Some(place) => *place = *entry,
                None => drop(map.insert(K::from(key), *entry)),
            }
        }
    }

    fn prefix(&self, prefix: &[u8]) -> Option<Vec<(Box<[u8]>, Entry)>> {
        let map = self.0.read().expect("not poisoned");
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let found = map.range::<[u8], _>(from).take_while(|(key, _)| (*key).borrow().starts_with(prefix));
        Some(found.map(|(key, entry)| ((*key).borrow().into(), *entry)).collect())
    }
}

/// A hash map under a lock, without order.
#[derive(Default)]
struct Hash(RwLock<hashbrown::HashMap<Box<[u8]>, Entry>>);

impl Index for Hash {
    fn get(&self, key: &[u8]) -> Option<Entry> {
        self.0.read().expect("not poisoned").get(key).copied()
    }

    fn put_batch(&self, batch: &[(Key, Entry)]) {
        let mut map = self.0.write().expect("not poisoned");
        for (key, entry) in batch {
            match map.get_mut(key.as_slice()) {
                Some(place) => *place = *entry,
                None => drop(map.insert(key.as_slice().into(), *entry)),
            }
        }
    }

    fn prefix(&self, _prefix: &[u8]) -> Option<Vec<(Box<[u8]>, Entry)>> {
        None
    }
}

/// A hash map cut into `PARTS` tables under one lock, so that a table that grows moves a small part of the keys; `K` is
/// how it owns a key. Without order.
struct HashParts<K> {
    hasher: hashbrown::DefaultHashBuilder,
    parts: RwLock<Vec<hashbrown::HashTable<(K, Entry)>>>,
}

impl<K: Borrow<[u8]>> HashParts<K> {
    fn new() -> Self {
        let parts = (0..PARTS).map(|_| hashbrown::HashTable::new()).collect();
        HashParts { hasher: hashbrown::DefaultHashBuilder::default(), parts: RwLock::new(parts) }
    }

    /// The part comes from bits that the table itself does not use: it takes the lowest for the place, the highest for
    /// the tag.
    fn part_and_hash(&self, key: &[u8]) -> (usize, u64) {
        let hash = self.hasher.hash_one(key);
        ((hash >> 40) as usize % PARTS, hash)
    }
}

impl<K> Index for HashParts<K>
where
    K: Borrow<[u8]> + for<'a> From<&'a [u8]> + Send + Sync,
{
    fn get(&self, key: &[u8]) -> Option<Entry> {
        let (part, hash) = self.part_and_hash(key);
        let parts = self.parts.read().expect("not poisoned");
        let found = parts[part].find(hash, |(owned, _)| owned.borrow() == key);
        found.map(|(_, entry)| *entry)
    }

    fn put_batch(&self, batch: &[(Key, Entry)]) {
        let mut parts = self.parts.write().expect("not poisoned");
        for (key, entry) in batch {
            let (part, hash) = self.part_and_hash(key);
            let table = &mut parts[part];
            match table.find_mut(hash, |(owned, _)| owned.borrow() == key.as_slice()) {
                Some((_, place)) => *place = *entry,
                None => {
                    let rehash = |(owned, _): &(K, Entry)| self.hasher.hash_one(owned.borrow());
                    table.insert_unique(hash, (K::from(key), *entry), rehash);
                }
            }
        }
    }

    fn prefix(&self, _prefix: &[u8]) -> Option<Vec<(Box<[u8]>, Entry)>> {
        None
    }
}

/// A hash map with an ordered set of its keys beside it, under one lock; `K` is how each owns a key.
struct HashAndSet<K>(RwLock<(hashbrown::HashMap<K, Entry>, BTreeSet<K>)>);

impl<K> Index for HashAndSet<K>
where
    K: Ord + std::hash::Hash + Clone + Borrow<[u8]> + for<'a> From<&'a [u8]> + Send + Sync,
{
    fn get(&self, key: &[u8]) -> Option<Entry> {
        self.0.read().expect("not poisoned").0.get(key).copied()
    }

    fn put_batch(&self, batch: &[(Key, Entry)]) {
        let mut guard = self.0.write().expect("not poisoned");
        let (map, order) = &mut *guard;
        for (key, entry) in batch {
            match map.get_mut(key.as_slice()) {
                Some(place) => *place = *entry,
                None => {
                    let owned = K::from(key);
                    order.insert(owned.clone());
                    map.insert(owned, *entry);
                }
            }
        }
    }

    fn prefix(&self, prefix: &[u8]) -> Option<Vec<(Box<[u8]>, Entry)>> {
        let guard = self.0.read().expect("not poisoned");
        let (map, order) = &*guard;
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let found = order.range::<[u8], _>(from).take_while(|key| (*key).borrow().starts_with(prefix));
        Some(found.map(|key| ((*key).borrow().into(), map[(*key).borrow()])).collect())
    }
}

/// A concurrent skip list. Nothing holds a batch together, and an overwrite is remove and insert.
struct Skip(SkipMap<Box<[u8]>, Entry>);

impl Index for Skip {
    fn get(&self, key: &[u8]) -> Option<Entry> {
        self.0.get(key).map(|found| *found.value())
    }

    fn put_batch(&self, batch: &[(Key, Entry)]) {
        for (key, entry) in batch {
            self.0.insert(key.as_slice().into(), *entry);
        }
    }

    fn prefix(&self, prefix: &[u8]) -> Option<Vec<(Box<[u8]>, Entry)>> {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let found = self.0.range::<[u8], _>(from).take_while(|found| found.key().starts_with(prefix));
        Some(found.map(|found| (found.key().clone(), *found.value())).collect())
    }
}

/// A concurrent B+ tree. Nothing holds a batch together; an overwrite is an atomic remove and insert.
struct Scc(TreeIndex<Box<[u8]>, Entry>);

impl Index for Scc {
    fn get(&self, key: &[u8]) -> Option<Entry> {
        self.0.peek_with(key, |_, entry| *entry)
    }

    fn put_batch(&self, batch: &[(Key, Entry)]) {
        for (key, entry) in batch {
            self.0.upsert_sync(key.as_slice().into(), *entry);
        }
    }

    fn prefix(&self, prefix: &[u8]) -> Option<Vec<(Box<[u8]>, Entry)>> {
        let guard = Guard::new();
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let found = self.0.range::<[u8], _>(from, &guard).take_while(|(key, _)| key.starts_with(prefix));
        Some(found.map(|(key, entry)| (key.clone(), *entry)).collect())
    }
}

/// `SmallVec` holds a key of at most 16 bytes in place; a longer one goes to the heap.
type InPlace = SmallVec<[u8; KEY_BYTES]>;
type MakeIndex = fn() -> Box<dyn Index>;

const CANDIDATES: [(&str, MakeIndex); 10] = [
    ("hearth::core::index", || Box::new(hearth::core::index::Index::default())),
    ("RwLock<BTreeMap<Box<[u8]>, _>>", || Box::new(Tree::<Box<[u8]>>(RwLock::default()))),
    ("RwLock<BTreeMap<SmallVec<[u8; 16]>, _>>", || Box::new(Tree::<InPlace>(RwLock::default()))),
    ("RwLock<HashMap<Box<[u8]>, _>> (no order)", || Box::new(Hash::default())),
    ("RwLock<[HashTable<(Box<[u8]>, _)>; 256]> (no order)", || Box::new(HashParts::<Box<[u8]>>::new())),
    ("RwLock<[HashTable<(SmallVec<[u8; 16]>, _)>; 256]> (no order)", || Box::new(HashParts::<InPlace>::new())),
    ("RwLock<(HashMap, BTreeSet)>, Box<[u8]> twice", || Box::new(HashAndSet::<Box<[u8]>>(RwLock::default()))),
    ("RwLock<(HashMap, BTreeSet)>, shared Arc<[u8]>", || Box::new(HashAndSet::<Arc<[u8]>>(RwLock::default()))),
    ("crossbeam SkipMap<Box<[u8]>, _>", || Box::new(Skip(SkipMap::new()))),
    ("scc TreeIndex<Box<[u8]>, _>", || Box::new(Scc(TreeIndex::new()))),
];

/// What else runs on the machine only makes it longer, so of this the least is told.
const LONGEST: &str = "longest insert ms (least of the rounds)";

/// The figures of one run, as the child prints them.
const COLUMNS: [&str; 14] = [
    "read ns",
    "overwrite ns",
    "insert ns",
    "new key ns",
    "prefix of 100 µs",
    "read beside a writer ns",
    "p99.9 of it µs",
    "overwrites/s beside",
    "B/key beside the key",
    "peak B/key",
    "load without order ns",
    "sort at its end ms",
    "B/key, keys ascending",
    LONGEST,
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [child, candidate, keys, order] = arguments.as_slice()
        && child == "--child"
    {
        let make = CANDIDATES[candidate.parse::<usize>().expect("a candidate's number")].1;
        run_child(make, keys.parse().expect("a number of keys"), order == "ascending");
        return;
    }
    let wanted = |name: &str| arguments.is_empty() || arguments.iter().any(|word| name.contains(word.as_str()));
    let chosen: Vec<usize> = (0..CANDIDATES.len()).filter(|&candidate| wanted(CANDIDATES[candidate].0)).collect();
    for keys in KEY_COUNTS {
        print_table(keys, &chosen);
    }
}

fn print_table(keys: usize, chosen: &[usize]) {
    let mut rows = vec![vec![Vec::new(); COLUMNS.len()]; chosen.len()];
    for round in 0..ROUNDS {
        for (&candidate, row) in chosen.iter().zip(&mut rows) {
            let mut figures = start_child(candidate, keys, "random");
            figures.extend(start_child(candidate, keys, "ascending"));
            eprintln!("{keys} keys, round {round}, {}: {figures:.2?}", CANDIDATES[candidate].0);
            for (column, figure) in row.iter_mut().zip(figures) {
                column.push(figure);
            }
        }
    }
    println!("\n### {keys} keys (median of {ROUNDS} rounds)\n");
    println!("| index | {} |", COLUMNS.join(" | "));
    println!("|{}", "---|".repeat(COLUMNS.len() + 1));
    for (&candidate, row) in chosen.iter().zip(&mut rows) {
        let name = CANDIDATES[candidate].0;
        let of_rounds = |(column, name): (&mut Vec<f64>, &&str)| {
            figure_text(if *name == LONGEST { least(column) } else { median(column) })
        };
        let figures: Vec<String> = row.iter_mut().zip(&COLUMNS).map(of_rounds).collect();
        println!("| `{name}` | {} |", figures.join(" | "));
    }
}

fn start_child(candidate: usize, keys: usize, order: &str) -> Vec<f64> {
    let output = Command::new(std::env::current_exe().expect("this program has a path"))
        .args(["--child", &candidate.to_string(), &keys.to_string(), order])
        .output()
        .expect("this program starts again");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("figures are text");
    text.split_whitespace().map(|word| word.parse().expect("a figure")).collect()
}

fn run_child(make: MakeIndex, keys: usize, ascending: bool) {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut load: Vec<(Key, Entry)> = (0..keys).map(|id| (key_of(id), entry_of(id, 1))).collect();
    if !ascending {
        shuffle(&mut load, &mut random);
    }
    let probes: Vec<(Key, Entry)> =
        (0..READS.max(OVERWRITES)).map(|_| random.below(keys)).map(|id| (key_of(id), entry_of(id, 2))).collect();

    let before = memory_bytes("smaps_rollup", "Rss:");
    // Never freed: taking two million keys down again is not what is measured.
    let index: &dyn Index = Box::leak(make());
    let insert_ns = timed_inserts(index, &load);
    let per_key = |bytes: f64| bytes / keys as f64 - KEY_BYTES as f64;
    let bytes_per_key = per_key(memory_bytes("smaps_rollup", "Rss:") - before);
    let peak_per_key = per_key(memory_bytes("status", "VmHWM:") - before);
    if ascending {
        println!("{bytes_per_key} {}", longest_insert_ms(make, load, &mut random));
        return;
    }
    let read_ns = timed_reads(index, &probes[..READS]);
    let overwrite_ns = timed_overwrites(index, &probes[..OVERWRITES]);
    let prefix_us = timed_prefix_reads(index, keys, &mut random);
    let beside = reads_beside_writer(index, &probes);
    let new_key_ns = timed_new_keys(index, keys, &mut random);
    let (load_ns, sort_ms) = index.timed_load(&load).unwrap_or((f64::NAN, f64::NAN));
    println!(
        "{read_ns} {overwrite_ns} {insert_ns} {new_key_ns} {prefix_us} {} {} {} {bytes_per_key} \
         {peak_per_key} {load_ns} {sort_ms}",
        beside.mean_ns, beside.p999_us, beside.overwrites_per_s
    );
}

/// ns an insert, `INSERT_GROUP` to a guard.
fn timed_inserts(index: &dyn Index, load: &[(Key, Entry)]) -> f64 {
    let start = Busy::now();
    load.chunks(INSERT_GROUP).for_each(|group| index.put_batch(group));
    ns_each(&start, load.len())
}

/// The longest group of inserts in random order, in ms: what a writer (and every reader behind it) waits for a table that
/// moves house. In a load of its own, because looking at the processor's time costs as much as an insert.
fn longest_insert_ms(make: MakeIndex, mut load: Vec<(Key, Entry)>, random: &mut Random) -> f64 {
    shuffle(&mut load, random);
    let index: &dyn Index = Box::leak(make());
    let longest = load.chunks(INSERT_GROUP).map(|group| {
        let start = Busy::now();
        index.put_batch(group);
        start.elapsed()
    });
    longest.max().unwrap_or_default().as_secs_f64() * 1e3
}

fn shuffle(load: &mut [(Key, Entry)], random: &mut Random) {
    for at in (1..load.len()).rev() {
        load.swap(at, random.below(at + 1));
    }
}

fn timed_reads(index: &dyn Index, probes: &[(Key, Entry)]) -> f64 {
    let start = Busy::now();
    for (key, expected) in probes {
        let found = index.get(key).expect("every key is there");
        assert_eq!(found.offset, expected.offset);
    }
    ns_each(&start, probes.len())
}

/// One overwrite per guard, as the dearest case.
fn timed_overwrites(index: &dyn Index, probes: &[(Key, Entry)]) -> f64 {
    let start = Busy::now();
    for probe in probes {
        index.put_batch(std::slice::from_ref(probe));
    }
    let each_ns = ns_each(&start, probes.len());
    assert_eq!(index.get(&probes[0].0), Some(probes[0].1));
    each_ns
}

/// A key that was not there, between two that were; one to a guard.
fn timed_new_keys(index: &dyn Index, keys: usize, random: &mut Random) -> f64 {
    let mut new: Vec<(Key, Entry)> = Vec::with_capacity(NEW_KEYS);
    for number in 0..NEW_KEYS {
        let mut key = key_of(random.below(keys));
        key[KEY_BYTES - 1] = b'a' + (number % 26) as u8;
        new.push((key, entry_of(number, 3)));
    }
    let start = Busy::now();
    for one in &new {
        index.put_batch(std::slice::from_ref(one));
    }
    ns_each(&start, NEW_KEYS)
}

fn timed_prefix_reads(index: &dyn Index, keys: usize, random: &mut Random) -> f64 {
    let prefixes: Vec<Key> = (0..PREFIX_READS).map(|_| key_of(random.below(keys))).collect();
    let start = Busy::now();
    for key in &prefixes {
        match index.prefix(&key[..KEY_BYTES - 2]) {
            Some(found) => assert_eq!(found.len(), KEYS_PER_PREFIX),
            None => return f64::NAN,
        }
    }
    ns_each(&start, PREFIX_READS) / 1e3
}

/// What a reader saw while another thread applied batches.
struct BesideWriter {
    mean_ns: f64,
    p999_us: f64,
    overwrites_per_s: f64,
}

fn reads_beside_writer(index: &dyn Index, probes: &[(Key, Entry)]) -> BesideWriter {
    let reader_ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut written = 0;
            let start = Instant::now();
            for batch in probes.chunks_exact(APPLY_BATCH).rev().cycle() {
                if reader_ended.load(Ordering::Acquire) {
                    break;
                }
                index.put_batch(batch);
                written += batch.len();
                thread::sleep(APPLY_PAUSE);
            }
            written as f64 / start.elapsed().as_secs_f64()
        });
        let mut times_ns: Vec<f64> = Vec::with_capacity(READS_BESIDE_WRITER);
        for (key, _) in &probes[..READS_BESIDE_WRITER] {
            let start = Instant::now();
            std::hint::black_box(index.get(key));
            times_ns.push(start.elapsed().as_nanos() as f64);
        }
        reader_ended.store(true, Ordering::Release);
        times_ns.sort_by(f64::total_cmp);
        BesideWriter {
            mean_ns: times_ns.iter().sum::<f64>() / times_ns.len() as f64,
            p999_us: times_ns[times_ns.len() * 999 / 1000] / 1e3,
            overwrites_per_s: writer.join().expect("the writer does not panic"),
        }
    })
}

fn key_of(id: usize) -> Key {
    let mut key = *b"key:000000000000";
    let mut rest = id;
    for place in key[4..].iter_mut().rev() {
        *place = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

fn entry_of(id: usize, revision: u64) -> Entry {
    Entry {
        offset: id as u64,
        revision,
        expires_at_millis: 0,
        segment: id as u32 >> 16,
        position: id as u32,
        length: 100,
    }
}

/// A line of a file of this process under `/proc`, in bytes. (`smaps_rollup` counts pages exactly; the RSS in `status`
/// lags behind by some hundred KiB.)
fn memory_bytes(file: &str, line: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/self/{file}")).expect("Linux");
    let value = status.lines().find_map(|text| text.strip_prefix(line)).expect("the line is there");
    let kib: f64 = value.trim().trim_end_matches(" kB").parse().expect("a number of kB");
    kib * 1024.0
}

/// Time that this thread was given by the processor: others use the machine, too.
struct Busy(rustix::time::Timespec);

impl Busy {
    fn now() -> Self {
        Self(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime))
    }

    fn elapsed(&self) -> Duration {
        let (now, then) = (Self::now().0, self.0);
        let seconds = (now.tv_sec - then.tv_sec) as f64 + (now.tv_nsec - then.tv_nsec) as f64 / 1e9;
        Duration::from_secs_f64(seconds)
    }
}

fn ns_each(start: &Busy, count: usize) -> f64 {
    start.elapsed().as_secs_f64() * 1e9 / count as f64
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn figure_text(figure: f64) -> String {
    if figure.is_nan() {
        "-".to_string()
    } else if figure < 10.0 {
        format!("{figure:.2}")
    } else {
        format!("{figure:.0}")
    }
}

/// xorshift64*: the same keys in the same order for every candidate.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound
    }
}
