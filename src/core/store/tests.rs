//! What opening a directory promises beside its log: older formats, and trims that a process left half done.

use super::*;
use crate::core::api::Cache;
use crate::core::clock::ManualClock;
use crate::core::log::anchor::{ANCHOR_FILE, Anchor, AnchorRead, AnchorState};
use crate::core::log::codec::{SECTOR_BYTES, Sector};
use crate::core::log::disk::MemoryDisk;
use crate::core::log::frame::{BatchBuilder, BatchType, Place};
use crate::core::log::segment;
use crate::core::log::start::LogStart;
use crate::core::op::{Condition, Expiry, Put};
use crate::core::record::control::{ControlRecord, Trim};
use crate::core::routing::placement::{Placement, Spot};
use crate::core::routing::router::Router;
use crate::core::store::node::{NODE_FILE, shard_dir};
use crate::core::types::{CacheName, Kind, Millis, ShardNo};
use crate::core::types::{Index, SegmentNo};

const ROOT: &str = "/data";

fn shard_id() -> ShardId {
    ShardId { kind: Kind::Cache, cache: CacheName::default_cache(), shard: ShardNo(0) }
}

fn options() -> StoreOptions {
    StoreOptions { segment_bytes: Some(4096), max_value_bytes: 1024, ..StoreOptions::default() }
}

fn store(disk: &MemoryDisk) -> Result<Store, OpenError> {
    let clock = Arc::new(ManualClock::at(Millis(1_700_000_000_000)));
    Store::open(Arc::new(disk.clone()), Path::new(ROOT), options(), clock, Arc::new(Entropy::seeded(3)))
}

fn open(disk: &MemoryDisk) -> Result<OpenShard, OpenError> {
    store(disk)?.open_shard(&shard_id())
}

/// Puts `count` values of 900 bytes under three keys in turn, one batch each.
fn put(opened: &mut OpenShard, count: u8) {
    let router = Arc::new(Router::default());
    router.publish(Placement::default().with(Kind::Cache, CacheName::default_cache(), vec![Spot::Here]));
    router.open([Arc::clone(&opened.shard)]);
    let clock = Arc::new(ManualClock::at(Millis(1_700_000_000_000)));
    let turns = Cache::new(CacheName::default_cache(), router, clock).turns();
    for i in 0..count {
        let put = Put { key: &[b'a' + i % 3], value: &[i; 900], expiry: Expiry::Never, condition: Condition::Always };
        turns.turn().put(&put).unwrap();
        opened.driver.run_to_idle().unwrap();
    }
}

fn dir() -> PathBuf {
    shard_dir(Path::new(ROOT), &shard_id())
}

fn bytes_of(disk: &MemoryDisk, path: &Path) -> Vec<u8> {
    let file = disk.open(path).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

fn node(disk: &MemoryDisk) -> String {
    String::from_utf8(bytes_of(disk, &Path::new(ROOT).join(NODE_FILE))).unwrap()
}

fn numbers(disk: &MemoryDisk) -> Vec<u64> {
    disk.list(&dir()).unwrap().iter().filter_map(|name| segment::parse_file_name(name)).map(|n| n.0).collect()
}

fn anchor(disk: &MemoryDisk) -> Anchor {
    let AnchorRead::Sound(state) = Anchor::read(disk, &dir()).unwrap() else { panic!("the anchor is sound") };
    Anchor::open(disk, &dir(), &state).unwrap().unwrap()
}

/// Makes a directory say that an older or newer build wrote it.
fn rewrite_as(disk: &MemoryDisk, format: u32) {
    let rewrite = |path: &Path, at: u64, crc_at: usize| {
        let file = disk.open(path).unwrap();
        let mut bytes = [0; SECTOR_BYTES];
        file.read_at(at, &mut bytes).unwrap();
        let mut sector = Sector(bytes);
        assert!(sector.is_sound(crc_at));
        sector.put_u32(8, format);
        sector.seal(crc_at);
        file.write_at(at, &sector.0).unwrap();
        file.flush().unwrap();
    };
    for number in numbers(disk) {
        rewrite(&dir().join(segment::file_name(SegmentNo(number))), 0, 16);
    }
    rewrite(&dir().join(ANCHOR_FILE), 0, 12);
    rewrite(&dir().join(ANCHOR_FILE), 4096, 12);
    let text = node(disk).replace(&format!("format = {FORMAT}"), &format!("format = {format}"));
    let file = disk.open(&Path::new(ROOT).join(NODE_FILE)).unwrap();
    file.write_at(0, text.as_bytes()).unwrap();
    file.flush().unwrap();
}

#[test]
fn a_directory_of_format_1_opens_and_says_2_before_a_shard_is_touched() {
    for clean in [false, true] {
        let disk = MemoryDisk::new();
        let mut opened = open(&disk).unwrap();
        put(&mut opened, 8);
        if clean {
            opened.driver.close().unwrap();
        }
        let before: Vec<_> = opened.shard.index.view().iter().map(|(key, entry)| (key.to_vec(), entry)).collect();
        drop(opened);
        rewrite_as(&disk, 1);
        let mut store = store(&disk).unwrap();
        assert!(node(&disk).starts_with("format = 2"), "{}", node(&disk));
        assert_eq!(bytes_of(&disk, &dir().join(ANCHOR_FILE))[8], 1, "the shard is as it was");
        let mut opened = store.open_shard(&shard_id()).unwrap();
        let after: Vec<_> = opened.shard.index.view().iter().map(|(key, entry)| (key.to_vec(), entry)).collect();
        let sorted = |mut entries: Vec<(Vec<u8>, crate::core::index::Entry)>| {
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            entries
        };
        assert_eq!(sorted(after), sorted(before));
        // Old and new files in one log.
        put(&mut opened, 8);
        drop((opened, store));
        assert_eq!(bytes_of(&disk, &dir().join(ANCHOR_FILE))[8], 2);
        open(&disk).unwrap();
    }
}

#[test]
fn a_newer_format_is_refused_and_left_as_it_was() {
    let disk = MemoryDisk::new();
    put(&mut open(&disk).unwrap(), 2);
    rewrite_as(&disk, 3);
    let before = disk.image_hash();
    let Err(error) = open(&disk) else { panic!("it must be refused") };
    assert!(matches!(error, OpenError::OtherFormat { .. }));
    assert!(error.to_string().contains("(format 3); this build reads formats 1 to 2"), "{error}");
    assert_eq!(disk.image_hash(), before);
}

/// Appends a control batch to the log of a closed store, as a broker would that died right after it.
fn append_trim(disk: &MemoryDisk, start: &LogStart) {
    let options = LogOptions {
        shard: shard_id(),
        segment_bytes: 4096,
        policy: FsyncPolicy::Always,
        max_open_segments: 2,
        entropy: Arc::new(Entropy::seeded(4)),
    };
    let (mut log, report) = recover(Arc::new(disk.clone()), &dir(), options, &Progress::default(), |_| Ok(()))
        .unwrap()
        .into_writer()
        .unwrap();
    let trim = Trim {
        base_offset: start.offset,
        base_index: start.index,
        base_generation: start.generation,
        epoch: report.epoch,
        configuration: start.configuration.clone(),
        configuration_index: start.configuration_index,
    };
    log.save_vote(log.anchor().state().generation, log.anchor().state().vote).unwrap();
    let mut builder = BatchBuilder::new(BatchType::Control, log.tail().next_offset);
    builder.push(|into| ControlRecord::Trim(trim).encode(into));
    let (index, known) = (log.tail().next_index, log.flushed());
    let place = Place { index, generation: log.tail().generation, durable: known, committed: index };
    log.append(&builder.finish(Millis(0)), place, Millis(0)).unwrap();
    log.flushed_upto(index, log.flush_target().unwrap().flush()).unwrap();
}

/// Where the segment with this number begins.
fn start_of(disk: &MemoryDisk, number: u64) -> LogStart {
    let number = SegmentNo(number);
    let bytes = bytes_of(disk, &dir().join(segment::file_name(number)));
    match segment::SegmentHeader::decode(&bytes, &shard_id(), number) {
        segment::HeaderRead::Sound(header) => header.start(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_trim_that_was_applied_and_not_carried_out_is_finished_by_the_next_open() {
    let disk = MemoryDisk::new();
    let mut opened = open(&disk).unwrap();
    put(&mut opened, 15);
    let newest = *numbers(&disk).last().unwrap();
    let epoch = opened.report.epoch;
    opened.driver.close().unwrap();
    drop(opened);
    // All three keys were put again since.
    let start = start_of(&disk, newest - 1);
    append_trim(&disk, &start);
    let opened = open(&disk).unwrap();
    assert!(numbers(&disk).iter().all(|number| *number >= newest - 1), "{:?}", numbers(&disk));
    assert_eq!((anchor(&disk).state().start.clone(), opened.report.epoch), (start.clone(), epoch));
    assert_eq!(opened.shard.index.view().len(), 3);
    drop(opened);
    // Nothing is left to finish, and what the log still tells is enough.
    let mut opened = open(&disk).unwrap();
    assert_eq!((anchor(&disk).state().start.clone(), opened.shard.index.view().len()), (start, 3));
    put(&mut opened, 6);
}

#[test]
fn a_trim_to_where_no_segment_begins_is_refused() {
    let disk = MemoryDisk::new();
    let mut opened = open(&disk).unwrap();
    put(&mut opened, 15);
    opened.driver.close().unwrap();
    drop(opened);
    let mut start = start_of(&disk, 3);
    start.index = start.index.next();
    append_trim(&disk, &start);
    let Err(error) = open(&disk) else { panic!("it must be refused") };
    assert!(error.to_string().contains("no segment begins there"), "{error}");
}

#[test]
fn a_log_opens_right_after_a_trim_with_the_oldest_commit_floor_there_can_be() {
    let floor_at = |state: &mut AnchorState, floor: Index| (state.commit_floor, state.flushed) = (floor, floor);
    for batches in 12..18 {
        let disk = MemoryDisk::new();
        let mut opened = open(&disk).unwrap();
        put(&mut opened, batches);
        let next = opened.shard.frontier.applied_next();
        drop(opened);
        let start = start_of(&disk, *numbers(&disk).last().unwrap());
        let mut anchor = anchor(&disk);
        anchor
            .update_both(|state| {
                floor_at(state, Index(start.index.0 - 1));
                state.start = start.clone();
            })
            .unwrap();
        let mut opened = open(&disk).unwrap();
        assert!(opened.shard.frontier.applied_next() > next, "offsets go on behind {}", next.0);
        put(&mut opened, 3);
        assert_eq!(opened.shard.index.view().len(), 3);
        assert_eq!(numbers(&disk)[0], start.segment.0);
    }
}
