//! Nanoseconds of one SET and one GET inside the core: no socket, no protocol, no flush.
//!
//! `cargo bench --bench core`. The memory disk takes the place of the files, so that what is measured is the way from
//! the core's door to the log and back. Medians of rounds, of the processor's time; the parts are measured beside the
//! whole.
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on stops")]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use hearth::cluster::standalone;
use hearth::core::api::{Cache, Found};
use hearth::core::clock::SystemClock;
use hearth::core::entropy::Entropy;
use hearth::core::limits::DEFAULT_VALUE_CACHE_BYTES;
use hearth::core::log::FsyncPolicy;
use hearth::core::log::disk::{Disk, MemoryDisk, RealDisk};
use hearth::core::log::reader::Wait;
use hearth::core::op::{Condition, Expiry, Put};
use hearth::core::routing::router::Router;
use hearth::core::shard::driver::Driver;
use hearth::core::store::{OpenShard, Store, StoreOptions};
use hearth::core::types::{CacheName, Kind, ShardId, ShardNo};
use rustix::time::{ClockId, Timespec, clock_gettime};

const KEYS: usize = 100_000;
const ROUNDS: usize = 9;
const OPERATIONS: usize = 200_000;

struct Bench {
    cache: Cache,
    driver: Driver,
    _store: Store,
    keys: Vec<Vec<u8>>,
    order: Vec<usize>,
}

impl Bench {
    fn open(disk: Arc<dyn Disk>, root: &Path, value_cache_bytes: u64) -> Self {
        let clock = Arc::new(SystemClock::new());
        let options = StoreOptions { policy: FsyncPolicy::Never, value_cache_bytes, ..StoreOptions::default() };
        let mut store = Store::open(disk, root, options, clock.clone(), Arc::new(Entropy::seeded(1))).unwrap();
        let name = CacheName::default_cache();
        let id = ShardId { kind: Kind::Cache, cache: name.clone(), shard: ShardNo(0) };
        let OpenShard { shard, driver, .. } = store.open_shard(&id).unwrap();
        let router = Arc::new(Router::default());
        router.publish(standalone::placement([(&name, &1)]));
        router.open([shard]);
        let seeded = Entropy::seeded(7);
        let keys = (0..KEYS).map(|i| format!("key:{i:012}").into_bytes()).collect();
        let order = (0..OPERATIONS).map(|_| (seeded.number() % KEYS as u64) as usize).collect();
        Self { cache: Cache::new(name, router, clock), driver, _store: store, keys, order }
    }

    /// `batch` puts to a turn, each turn one batch of the log; nanoseconds of one put.
    fn set(&mut self, batch: usize) -> f64 {
        let begun = busy_now();
        self.put_all(&self.order.clone(), batch);
        busy_ns(begun) / OPERATIONS as f64
    }

    fn put_all(&mut self, order: &[usize], batch: usize) {
        let value = [b'x'; 100];
        for chunk in order.chunks(batch) {
            let turns = self.cache.turns();
            let mut turn = turns.turn();
            for &i in chunk {
                let put =
                    Put { key: &self.keys[i], value: &value, expiry: Expiry::Never, condition: Condition::Always };
                black_box(turn.put(&put).unwrap());
            }
            drop(turn);
            self.driver.run_to_idle().unwrap();
        }
    }

    /// Reads every key once, just after it was written: nothing of it is in memory.
    fn first_get(&mut self) -> f64 {
        let mut once: Vec<usize> = (0..KEYS).collect();
        once.sort_by_key(|i| (i * 7919) % KEYS);
        self.put_all(&once, 800);
        self.get_all(&once, true)
    }

    /// The look-up alone, and with the value; nanoseconds of one get.
    fn get(&self, read: bool) -> f64 {
        self.get_all(&self.order, read)
    }

    fn get_all(&self, order: &[usize], read: bool) -> f64 {
        let mut scratch = Vec::new();
        let begun = busy_now();
        for chunk in order.chunks(16) {
            let turns = self.cache.turns();
            let mut turn = turns.turn();
            for &i in chunk {
                let key = &self.keys[i];
                if !read {
                    black_box(turn.exists(key).unwrap());
                    continue;
                }
                match turn.get(key).unwrap() {
                    (Some(Found::Stored(pinned)), _) => {
                        black_box(pinned.read(key, Wait::IfNeeded, &mut scratch).unwrap());
                    }
                    (Some(Found::Cached(value)), _) => {
                        black_box(&value[..]);
                    }
                    _ => panic!("every key is stored"),
                }
            }
        }
        busy_ns(begun) / order.len() as f64
    }
}

/// Time that this thread was given by the processor: others use the machine, too.
type Busy = Timespec;

fn busy_now() -> Busy {
    clock_gettime(ClockId::ThreadCPUTime)
}

fn busy_ns(since: Busy) -> f64 {
    let now = busy_now();
    (now.tv_sec - since.tv_sec) as f64 * 1e9 + (now.tv_nsec - since.tv_nsec) as f64
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn main() {
    let root = std::env::temp_dir().join(format!("hearth-bench-core-{}", std::process::id()));
    println!("| disk | value cache | SET, 1 to a batch | 16 to a batch | 800 to a batch | look-up | first GET | GET |");
    println!("|---|---|---|---|---|---|---|---|");
    for (name, on_files) in [("memory", false), ("files, not flushed", true)] {
        for value_cache_bytes in [0, DEFAULT_VALUE_CACHE_BYTES] {
            let (disk, dir): (Arc<dyn Disk>, _) = match on_files {
                true => (Arc::new(RealDisk), root.join(value_cache_bytes.to_string())),
                false => (Arc::new(MemoryDisk::new()), "/bench".into()),
            };
            let mut bench = Bench::open(disk, &dir, value_cache_bytes);
            bench.set(800);
            let mut figures = [const { Vec::new() }; 6];
            for _ in 0..ROUNDS {
                let sets = [bench.set(1), bench.set(16), bench.set(800)];
                let gets = [bench.get(false), bench.first_get(), bench.get(true)];
                figures.iter_mut().zip(sets.into_iter().chain(gets)).for_each(|(all, one)| all.push(one));
            }
            let figures = figures.map(|figures| format!("{:.0} ns", median(figures))).join(" | ");
            println!("| {name} | {} MiB | {figures} |", value_cache_bytes >> 20);
        }
    }
    let _ = std::fs::remove_dir_all(root);
}
