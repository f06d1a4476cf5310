//! An open store with one shard on a simulated disk, driven on the calling thread.
//!
//! Promise: everything a test reads comes through the doors a front end uses, and every value is read back from the log.
//! Must never know what a value should be.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hearth::core::api::{Cache, Fate, Found, Hold, Turns, WriteError};
use hearth::core::clock::{Clock, ManualClock};
use hearth::core::entropy::Entropy;
use hearth::core::error::{OpenError, ReadError, Unknown};
use hearth::core::limits;
use hearth::core::log::FsyncPolicy;
use hearth::core::log::disk::{Disk, MemoryDisk};
use hearth::core::log::frame::{BatchType, records};
use hearth::core::log::open::OpenReport;
use hearth::core::log::reader::Wait;
use hearth::core::log::scan::{ScannedBatch, scan};
use hearth::core::log::segment::{HeaderRead, SegmentHeader, parse_file_name};
use hearth::core::op::{Condition, Expiry, Put};
use hearth::core::record::control::ControlRecord;
use hearth::core::routing::placement::{Placement, Spot};
use hearth::core::routing::router::Router;
use hearth::core::shard::Shard;
use hearth::core::shard::driver::Driver;
use hearth::core::shard::housekeeper::Housekeeper;
use hearth::core::shard::read::Pinned;
use hearth::core::store::{OpenShard, Store, StoreOptions};
use hearth::core::types::{CacheName, Epoch, Kind, Millis, Offset, SegmentNo, ShardId, ShardNo};

use crate::model::{Held, State};

pub const ROOT: &str = "/srv/hearth";
pub const START: Millis = Millis(1_700_000_000_000);
pub const POLICIES: [FsyncPolicy; 3] = [FsyncPolicy::Always, FsyncPolicy::EverySec, FsyncPolicy::Never];

/// What outlives a process: the disk, the time, and where random numbers come from.
#[derive(Clone)]
pub struct World {
    pub disk: MemoryDisk,
    pub clock: Arc<ManualClock>,
    pub entropy: Arc<Entropy>,
    pub options: StoreOptions,
}

impl World {
    pub fn new(policy: FsyncPolicy, segment_bytes: u32) -> Self {
        let max_value_bytes = (segment_bytes as usize / 4).min(4096);
        Self {
            disk: MemoryDisk::new(),
            clock: Arc::new(ManualClock::at(START)),
            entropy: Arc::new(Entropy::seeded(1)),
            options: StoreOptions {
                policy,
                segment_bytes: Some(segment_bytes),
                max_value_bytes,
                // So few that a test with several segments opens and closes them.
                max_open_segments: 2,
                // Every read is to be read from the log.
                value_cache_bytes: 0,
                ..StoreOptions::default()
            },
        }
    }

    /// The world as it is now, with another disk: what a restart finds. Its time goes on without this one's.
    pub fn with_disk(&self, disk: MemoryDisk) -> Self {
        Self { disk, clock: Arc::new(ManualClock::at(self.now())), ..self.clone() }
    }

    pub fn now(&self) -> Millis {
        self.clock.now()
    }

    pub fn max_batch_bytes(&self) -> usize {
        limits::max_batch_bytes(self.options.segment_bytes.unwrap_or_default())
    }

    pub fn open_store(&self) -> Result<Store, OpenError> {
        self.open_store_in(Arc::new(self.disk.clone()), Path::new(ROOT))
    }

    fn open_store_in(&self, disk: Arc<dyn Disk>, root: &Path) -> Result<Store, OpenError> {
        let (clock, entropy) = (Arc::clone(&self.clock) as Arc<dyn Clock>, Arc::clone(&self.entropy));
        Store::open(disk, root, self.options.clone(), clock, entropy)
    }

    pub fn open(&self) -> Result<Bed, OpenError> {
        self.open_on(Arc::new(self.disk.clone()))
    }

    /// Opens through another door to this world's disk.
    pub fn open_on(&self, disk: Arc<dyn Disk>) -> Result<Bed, OpenError> {
        self.open_in(disk, Path::new(ROOT))
    }

    /// The same options, time and random numbers on any disk, in any directory.
    pub fn open_in(&self, disk: Arc<dyn Disk>, root: &Path) -> Result<Bed, OpenError> {
        let mut store = self.open_store_in(disk, root)?;
        let OpenShard { shard, driver, housekeeper, report } = store.open_shard(&shard_id())?;
        let router = Arc::new(Router::default());
        router.publish(Placement::default().with(Kind::Cache, CacheName::default_cache(), vec![Spot::Here]));
        router.open([Arc::clone(&shard)]);
        let cache = Cache::new(CacheName::default_cache(), router, Arc::clone(&self.clock) as Arc<dyn Clock>);
        Ok(Bed { cache, shard, driver, housekeeper, report, _store: store })
    }
}

pub fn shard_id() -> ShardId {
    ShardId { kind: Kind::Cache, cache: CacheName::default_cache(), shard: ShardNo(0) }
}

/// The directory of the one shard.
pub fn shard_dir(disk: &MemoryDisk) -> PathBuf {
    let caches = Path::new(ROOT).join("caches");
    let names = disk.list(&caches).expect("a shard was made");
    assert_eq!(names.len(), 1, "{names:?}");
    caches.join(&names[0]).join("0")
}

/// The segment files of the one shard with their numbers, oldest first.
pub fn segment_files(disk: &MemoryDisk) -> Vec<(SegmentNo, PathBuf)> {
    let dir = shard_dir(disk);
    let names = disk.list(&dir).expect("a shard was made");
    names.iter().filter_map(|name| parse_file_name(name).map(|number| (number, dir.join(name)))).collect()
}

pub fn newest_segment(disk: &MemoryDisk) -> u64 {
    segment_files(disk).last().map_or(0, |(number, _)| number.0)
}

pub fn bytes_of(disk: &MemoryDisk, path: &Path) -> Vec<u8> {
    let file = disk.open(path).expect("it is there");
    let mut bytes = vec![0; file.len().expect("a sound disk") as usize];
    let read = file.read_at(0, &mut bytes).expect("a sound disk");
    assert_eq!(read, bytes.len());
    bytes
}

/// Hands every sound batch that stands on the disk to `visit`, oldest first, with the number of its segment.
pub fn each_batch(disk: &MemoryDisk, mut visit: impl FnMut(SegmentNo, &ScannedBatch<'_>)) {
    for (number, path) in segment_files(disk) {
        let HeaderRead::Sound(header) = SegmentHeader::decode(&bytes_of(disk, &path), &shard_id(), number) else {
            continue;
        };
        let file = disk.open(&path).expect("it is there");
        let found = scan(&*file, &header, |batch: ScannedBatch<'_>| -> std::io::Result<()> {
            visit(number, &batch);
            Ok(())
        });
        found.expect("a sound disk");
    }
}

/// The record that a control batch holds.
pub fn control_of(batch: &ScannedBatch<'_>) -> Option<ControlRecord> {
    let mut all = records(&batch.header, batch.bytes).filter(|_| batch.header.batch_type == BatchType::Control);
    all.next().and_then(|record| ControlRecord::decode(record.body).ok())
}

/// The newest epoch that a control record of the log names.
pub fn logged_epoch(disk: &MemoryDisk) -> Option<Epoch> {
    let mut newest = None;
    each_batch(disk, |_, batch| match control_of(batch) {
        Some(ControlRecord::Epoch(epoch)) => newest = Some(epoch),
        // The record that named it may be gone.
        Some(ControlRecord::Trim(trim)) => newest = Some(trim.epoch),
        _ => {}
    });
    newest
}

pub fn policy_name(policy: FsyncPolicy) -> &'static str {
    match policy {
        FsyncPolicy::Always => "always",
        FsyncPolicy::EverySec => "everysec",
        FsyncPolicy::Never => "never",
    }
}

/// A process with an open shard. Dropping it is a kill; [`Driver::close`] before that is a clean stop.
pub struct Bed {
    pub cache: Cache,
    pub shard: Arc<Shard>,
    pub driver: Driver,
    pub housekeeper: Housekeeper,
    pub report: OpenReport,
    _store: Store,
}

impl Bed {
    pub fn turns(&self) -> Turns {
        self.cache.turns()
    }

    pub fn fate(&self, hold: Hold) -> Option<Fate> {
        self.shard.frontier.fate(hold.offset)
    }

    /// Everything the index holds, lapsed or not, each value read back from the log.
    pub fn contents(&self) -> Result<State, ReadError> {
        let entries: Vec<_> = self.shard.index.view().iter().map(|(key, entry)| (key.to_vec(), entry)).collect();
        let mut scratch = Vec::new();
        let mut contents = State::new();
        for (key, entry) in entries {
            let pinned = Pinned::new(&self.shard, entry)?;
            let value = pinned.read(&key, Wait::IfNeeded, &mut scratch)?.unwrap_or_default().to_vec();
            contents.insert(key, Held { value, expires_at: entry.expires_at, revision: entry.revision.0 });
        }
        Ok(contents)
    }

    /// What a client of its own gets for a key: applied state.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, ReadError> {
        let turns = self.turns();
        let mut turn = turns.turn();
        let (found, hold) = turn.get(key)?;
        assert_eq!(hold, None, "a read of applied state waits for nothing");
        found.map(|found| value_of(&found, key)).transpose()
    }

    /// Stages one put in a turn of its own.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<Hold, WriteError> {
        let turns = self.turns();
        let (_, hold) = turns.turn().put(&put(key, value))?;
        Ok(hold.expect("a put without a condition writes"))
    }

    /// Stages one put, runs the driver and expects the acknowledgement.
    pub fn put_acknowledged(&mut self, key: &[u8], value: &[u8]) -> Offset {
        let hold = self.put(key, value).expect("room for one put");
        self.driver.run_to_idle().expect("a sound disk");
        assert_eq!(self.fate(hold), Some(Fate::Applied));
        hold.offset
    }
}

pub const UNKNOWN: Fate = Fate::Unknown(Unknown::FlushFailed);

pub fn put<'a>(key: &'a [u8], value: &'a [u8]) -> Put<'a> {
    Put { key, value, expiry: Expiry::Never, condition: Condition::Always }
}

pub fn value_of(found: &Found<'_>, key: &[u8]) -> Result<Vec<u8>, ReadError> {
    match found {
        Found::Staged(value) => Ok(value.to_vec()),
        Found::Cached(value) => Ok(value.to_vec()),
        Found::Stored(pinned) => {
            let mut scratch = Vec::new();
            let value = pinned.read(key, Wait::IfNeeded, &mut scratch)?;
            Ok(value.expect("a read that may wait gives a value").to_vec())
        }
    }
}
