//! Nanoseconds of one SET and one GET inside the core: no socket, no protocol, no flush.
//!
//! `cargo bench --bench core`. The memory disk takes the place of the files, so that what is measured is the way from
//! the core's door to the log and back. Medians of rounds; the parts are measured beside the whole.
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on stops")]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use hearth::cluster::standalone;
use hearth::core::api::{Cache, Found};
use hearth::core::clock::SystemClock;
use hearth::core::entropy::Entropy;
use hearth::core::log::FsyncPolicy;
use hearth::core::log::disk::{Disk, MemoryDisk, RealDisk};
use hearth::core::log::reader::Wait;
use hearth::core::op::{Condition, Expiry, Put};
use hearth::core::routing::router::Router;
use hearth::core::shard::driver::Driver;
use hearth::core::store::{OpenShard, Store, StoreOptions};
use hearth::core::types::{CacheName, Kind, ShardId, ShardNo};

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
    fn open(disk: Arc<dyn Disk>, root: &Path) -> Self {
        let clock = Arc::new(SystemClock::new());
        let options = StoreOptions { policy: FsyncPolicy::Never, ..StoreOptions::default() };
        let mut store = Store::open(disk, root, options, clock.clone(), Arc::new(Entropy::seeded(1))).unwrap();
        let name = CacheName::default_cache();
        let id = ShardId { kind: Kind::Cache, cache: name.clone(), shard: ShardNo(0) };
        let OpenShard { shard, driver, .. } = store.open_shard(&id).unwrap();
        let router = Arc::new(Router::default());
        router.publish(standalone::placement(&[(name.clone(), 1)]));
        router.open(shard);
        let seeded = Entropy::seeded(7);
        let keys = (0..KEYS).map(|i| format!("key:{i:012}").into_bytes()).collect();
        let order = (0..OPERATIONS).map(|_| (seeded.number() % KEYS as u64) as usize).collect();
        Self { cache: Cache::new(name, router, clock), driver, _store: store, keys, order }
    }

    /// `batch` puts to a turn, each turn one batch of the log; nanoseconds of one put.
    fn set(&mut self, batch: usize) -> f64 {
        let value = [b'x'; 100];
        let begun = Instant::now();
        for chunk in self.order.chunks(batch) {
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
        begun.elapsed().as_nanos() as f64 / OPERATIONS as f64
    }

    /// The look-up alone, and with the value read from the log; nanoseconds of one get.
    fn get(&self, read: bool) -> f64 {
        let mut scratch = Vec::new();
        let begun = Instant::now();
        for chunk in self.order.chunks(16) {
            let turns = self.cache.turns();
            let turn = turns.turn();
            for &i in chunk {
                let key = &self.keys[i];
                if !read {
                    black_box(turn.exists(key).unwrap());
                    continue;
                }
                let (Some(Found::Stored(pinned)), _) = turn.get(key).unwrap() else { panic!("every key is stored") };
                black_box(pinned.read(key, Wait::IfNeeded, &mut scratch).unwrap());
            }
        }
        begun.elapsed().as_nanos() as f64 / OPERATIONS as f64
    }
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn main() {
    let root = std::env::temp_dir().join(format!("hearth-bench-core-{}", std::process::id()));
    println!("| disk | SET, 1 to a batch | 16 to a batch | 800 to a batch | look-up | GET |");
    println!("|---|---|---|---|---|---|");
    let disks: [(&str, Arc<dyn Disk>, &Path); 2] = [
        ("memory", Arc::new(MemoryDisk::new()), Path::new("/bench")),
        ("files, not flushed", Arc::new(RealDisk), &root),
    ];
    for (name, disk, root) in disks {
        let mut bench = Bench::open(disk, root);
        bench.set(800);
        let mut figures = [const { Vec::new() }; 5];
        for _ in 0..ROUNDS {
            let round = [bench.set(1), bench.set(16), bench.set(800), bench.get(false), bench.get(true)];
            figures.iter_mut().zip(round).for_each(|(all, one)| all.push(one));
        }
        let [one, sixteen, many, look, get] = figures.map(median);
        println!("| {name} | {one:.0} ns | {sixteen:.0} ns | {many:.0} ns | {look:.0} ns | {get:.0} ns |");
    }
    let _ = std::fs::remove_dir_all(root);
}
