//! How long opening a big log takes, and what of it is reading, replay and sorting.
//!
//! `cargo bench --bench open [-- RECORDS]`. A log of records of 100 bytes in batches of 16 is written once and opened
//! several times from the page cache: what is measured is the work, not the disk. On a busy machine the nanoseconds on
//! the processor say more than those of the clock; both are printed, the best of the rounds.
#![expect(clippy::disallowed_methods, reason = "a bench measures time")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on stops")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use hearth::core::clock::SystemClock;
use hearth::core::entropy::Entropy;
use hearth::core::error::OpenError;
use hearth::core::index::Index as KeyIndex;
use hearth::core::limits::{DEFAULT_MAX_OPEN_SEGMENTS, SEGMENT_BYTES};
use hearth::core::log::FsyncPolicy;
use hearth::core::log::disk::{Disk, RealDisk};
use hearth::core::log::frame::{BatchBuilder, BatchType, Place};
use hearth::core::log::open::recover;
use hearth::core::log::survey::{FoundBatch, Look};
use hearth::core::log::writer::LogOptions;
use hearth::core::progress::Progress;
use hearth::core::record::cache::CacheRecord;
use hearth::core::shard::apply::apply;
use hearth::core::store::{OpenShard, Store, StoreOptions};
use hearth::core::types::{CacheName, Index, Kind, Millis, ShardId, ShardNo};

const BATCH_RECORDS: u64 = 16;
const RECORD_BYTES: usize = 100;
const ROUNDS: usize = 5;

fn shard_id() -> ShardId {
    ShardId { kind: Kind::Cache, cache: CacheName::default_cache(), shard: ShardNo(0) }
}

fn open(root: &Path) -> (Store, OpenShard) {
    let options = StoreOptions { policy: FsyncPolicy::Never, ..StoreOptions::default() };
    let clock = Arc::new(SystemClock::new());
    let mut store = Store::open(Arc::new(RealDisk), root, options, clock, Arc::new(Entropy::System)).unwrap();
    let opened = store.open_shard(&shard_id()).unwrap();
    (store, opened)
}

/// The directory of the one shard.
fn shard_dir(root: &Path) -> PathBuf {
    let caches = root.join("caches");
    caches.join(&RealDisk.list(&caches).unwrap()[0]).join("0")
}

/// Appends `records` puts under `keys` keys to a log that was closed.
fn fill(root: &Path, records: u64, keys: u64) {
    let options = LogOptions {
        shard: shard_id(),
        segment_bytes: SEGMENT_BYTES,
        policy: FsyncPolicy::Never,
        max_open_segments: DEFAULT_MAX_OPEN_SEGMENTS,
        entropy: Arc::new(Entropy::System),
    };
    let recovered = recover(Arc::new(RealDisk), &shard_dir(root), options, &Progress::default(), |_| Ok(()));
    let (mut log, _) = recovered.unwrap().into_writer().unwrap();
    let generation = log.tail().generation;
    let value = [b'v'; RECORD_BYTES - 8 - 14 - 16];
    for first in (0..records).step_by(BATCH_RECORDS as usize) {
        let tail = log.tail();
        let mut batch = BatchBuilder::new(BatchType::Data, tail.next_offset);
        for record in first..first + BATCH_RECORDS {
            // Spread over the keys, as clients would.
            let key = format!("key:{:012}", record.wrapping_mul(0x9e37_79b9_7f4a_7c15) % keys);
            let put = CacheRecord::Put { key: key.as_bytes(), value: &value, expires_at: Millis::NEVER };
            batch.push(|into| put.encode(into));
        }
        let known = Index(tail.next_index.0 - 1);
        let place = Place { index: tail.next_index, generation, durable: known, committed: known };
        log.append(&batch.finish(Millis(1)), place, Millis(1)).unwrap();
    }
    let last = Index(log.tail().next_index.0 - 1);
    log.flushed_upto(last, log.flush_target().unwrap().flush()).unwrap();
    log.note_flushed(true).unwrap();
}

/// Nanoseconds this thread has been on a processor.
fn on_processor() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    stat.split(' ').next().unwrap().parse().unwrap()
}

/// Nanoseconds a record of `work`: on the processor and by the clock, the best of the rounds.
fn measure(what: &str, records: u64, mut work: impl FnMut()) {
    let (mut processor, mut clock) = (f64::MAX, f64::MAX);
    for _ in 0..ROUNDS {
        let (begun, busy) = (Instant::now(), on_processor());
        work();
        processor = processor.min((on_processor() - busy) as f64 / records as f64);
        clock = clock.min(begun.elapsed().as_nanos() as f64 / records as f64);
    }
    println!("  {what:<28} {processor:6.0} ns on the processor, {clock:6.0} ns by the clock");
}

fn survey(dir: &Path, replay: &mut dyn FnMut(&FoundBatch<'_>)) {
    let mut visitor = |batch: &FoundBatch<'_>| -> Result<(), OpenError> {
        replay(batch);
        Ok(())
    };
    let survey = Look::at(&RealDisk, dir).unwrap().survey(&RealDisk, &shard_id(), &Progress::default(), &mut visitor);
    assert!(survey.unwrap().refusal(dir).is_none());
}

fn run(records: u64, keys: u64) {
    let root = std::env::temp_dir().join(format!("hearth-bench-open-{}", std::process::id()));
    let (store, mut opened) = open(&root);
    opened.driver.close().unwrap();
    drop((opened, store));
    fill(&root, records, keys);
    println!(
        "{records} records of {RECORD_BYTES} bytes under {keys} keys, in batches of {BATCH_RECORDS}; a record costs"
    );
    let dir = shard_dir(&root);
    measure("reading and judging", records, || survey(&dir, &mut |_| {}));
    measure("and the index", records, || {
        let index = KeyIndex::loading();
        survey(&dir, &mut |found| drop(apply(&found.header, found.bytes, found.location, &index).unwrap()));
        assert!(index.view().len() as u64 <= keys);
    });
    measure("and its order", records, || {
        let index = KeyIndex::loading();
        survey(&dir, &mut |found| drop(apply(&found.header, found.bytes, found.location, &index).unwrap()));
        index.finish_loading();
    });
    measure("opening the store", records, || {
        let (store, mut opened) = open(&root);
        opened.driver.close().unwrap();
        drop((opened, store));
    });
    std::fs::remove_dir_all(&root).unwrap();
}

fn main() {
    let records = std::env::args().filter_map(|argument| argument.parse().ok()).next().unwrap_or(2_000_000);
    run(records, records);
    run(records, 100_000);
}
