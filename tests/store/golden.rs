//! Frozen bytes of every durable shape, as whole sectors: this build reads them as it always did, and writes the same.
//!
//! The sectors were put together from `docs/formats.md` by `tests/fixtures/sectors.py`, not by the code under test. With a new format number the
//! old sectors stay, to be read; new ones are added for what the build now writes. Must never be edited.

use std::path::Path;

use hearth::core::log::anchor::{ANCHOR_FILE, Anchor, AnchorRead, AnchorState};
use hearth::core::log::disk::{Disk, MemoryDisk};
use hearth::core::log::frame::{BatchBuilder, BatchHeader, BatchType, Place, records, seal_into, verify_records};
use hearth::core::log::segment::{HeaderRead, SegmentHeader};
use hearth::core::log::{FORMAT, FsyncPolicy};
use hearth::core::record::cache::CacheRecord;
use hearth::core::record::control::{ControlRecord, Trim};
use hearth::core::types::{
    CacheName, Configuration, Epoch, Generation, Index, Kind, Millis, Offset, ReplicaId, Revision, SegmentNo, ShardId,
    ShardNo,
};

use crate::bed::bytes_of;

const SECTOR: usize = 512;
/// The place that the first state of a new anchor is written to.
const FIRST_PLACE: u64 = 4096;
const SALT: u32 = 0xa1b2_c3d4;
const EPOCH: Epoch = Epoch(0x1122_3344_5566_7788);

/// Segment headers by format.
const SEGMENT_HEADERS: &[(u32, &str)] = &[(1, SEGMENT_HEADER_1), (2, SEGMENT_HEADER_2)];
/// Places of the anchor by format.
const ANCHORS: &[(u32, &str)] = &[(1, ANCHOR_1), (2, ANCHOR_2)];
/// The first segment and the expiry clock that they name; format 1 knew neither.
const STARTS_AND_CLOCKS: [(SegmentNo, Millis); 2] =
    [(SegmentNo(0), Millis(0)), (SegmentNo(11), Millis(1_700_000_000_789))];

/// A segment header of format 1.
const SEGMENT_HEADER_1: &str = "
    000: 48 45 41 52 54 48 53 47 01 00 00 00 00 00 00 00
    010: d3 db 02 55 d4 c3 b2 a1 0c 00 00 00 00 00 00 00
    020: 88 77 66 55 44 33 22 11 64 00 00 00 00 00 00 00
    030: 09 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00
    040: 08 00 00 00 00 00 00 00 7b 68 e5 cf 8b 01 00 00
    050: 03 00 00 00 01 15 03 01 00 00 00 00 00 00 00 00
    060: 01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00
    070: 03 00 00 00 00 00 00 00 04 00 00 00 00 00 00 00
    0e0: 74 65 6e 61 6e 74 2f 6e 61 6d 65 73 70 61 63 65
    0f0: 2f 6e 61 6d 65 00 00 00 00 00 00 00 00 00 00 00
";
/// A place of the anchor of format 1, as the first one written to a new file.
const ANCHOR_1: &str = "
    000: 48 45 41 52 54 48 41 4e 01 00 00 00 fc e4 ce c6
    010: 01 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00
    020: 07 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00
    030: 88 77 66 55 44 33 22 11 64 00 00 00 00 00 00 00
    040: 09 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00
    050: 08 00 00 00 00 00 00 00 28 00 00 00 00 00 00 00
    060: 32 00 00 00 00 00 00 00 83 00 00 00 00 00 00 00
    070: 01 02 03 01 00 00 00 00 00 00 00 00 00 00 00 00
    080: 01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00
    090: 03 00 00 00 00 00 00 00 04 00 00 00 00 00 00 00
    100: 0c 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
";
/// A put, a delete, a carried put and a clear.
const DATA_BATCH_1: &str = "
    000: c1 5b 74 e1 b8 00 00 00 01 00 00 00 04 00 00 00
    010: 09 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00
    020: 64 00 00 00 00 00 00 00 c8 69 e5 cf 8b 01 00 00
    030: 08 00 00 00 00 00 00 00 07 00 00 00 00 00 00 00
    040: 18 00 00 00 3c 9a d2 0f 01 00 c0 8f ee cf 8b 01
    050: 00 00 03 00 00 00 6b 65 79 61 20 76 61 6c 75 65
    060: 12 00 00 00 b6 26 eb 52 01 01 00 00 00 00 00 00
    070: 00 00 04 00 00 00 67 6f 6e 65 1c 00 00 00 ad db
    080: c1 03 01 02 00 00 00 00 00 00 00 00 29 00 00 00
    090: 00 00 00 00 06 00 00 00 00 ff 0d 0a 22 6b 0e 00
    0a0: 00 00 22 9f c6 b7 01 03 00 00 00 00 00 00 00 00
";
/// The start of a generation.
const GENERATION_START_1: &str = "
    000: 98 f7 be 12 50 00 00 00 02 00 00 00 01 00 00 00
    010: 0a 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00
    020: 68 00 00 00 00 00 00 00 c8 69 e5 cf 8b 01 00 00
    030: 09 00 00 00 00 00 00 00 08 00 00 00 00 00 00 00
    040: 02 00 00 00 77 a9 33 8f 01 00 00 00 00 00 00 00
";
/// An epoch.
const EPOCH_1: &str = "
    000: bf c1 9e db 58 00 00 00 02 00 00 00 01 00 00 00
    010: 0b 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00
    020: 69 00 00 00 00 00 00 00 c8 69 e5 cf 8b 01 00 00
    030: 0a 00 00 00 00 00 00 00 09 00 00 00 00 00 00 00
    040: 0a 00 00 00 ef c3 c0 eb 01 01 88 77 66 55 44 33
    050: 22 11 00 00 00 00 00 00 00 00 00 00 00 00 00 00
";
/// A segment header of format 2.
const SEGMENT_HEADER_2: &str = "
    000: 48 45 41 52 54 48 53 47 02 00 00 00 00 00 00 00
    010: f4 c4 53 41 d4 c3 b2 a1 0c 00 00 00 00 00 00 00
    020: 88 77 66 55 44 33 22 11 64 00 00 00 00 00 00 00
    030: 09 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00
    040: 08 00 00 00 00 00 00 00 7b 68 e5 cf 8b 01 00 00
    050: 03 00 00 00 01 15 03 01 00 00 00 00 00 00 00 00
    060: 01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00
    070: 03 00 00 00 00 00 00 00 04 00 00 00 00 00 00 00
    0e0: 74 65 6e 61 6e 74 2f 6e 61 6d 65 73 70 61 63 65
    0f0: 2f 6e 61 6d 65 00 00 00 00 00 00 00 00 00 00 00
";
/// A place of the anchor of format 2: it also names the first segment of a trimmed log, and the expiry clock.
const ANCHOR_2: &str = "
    000: 48 45 41 52 54 48 41 4e 02 00 00 00 62 ed 65 b4
    010: 01 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00
    020: 07 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00
    030: 88 77 66 55 44 33 22 11 64 00 00 00 00 00 00 00
    040: 09 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00
    050: 08 00 00 00 00 00 00 00 28 00 00 00 00 00 00 00
    060: 32 00 00 00 00 00 00 00 83 00 00 00 00 00 00 00
    070: 01 02 03 01 00 00 00 00 00 00 00 00 00 00 00 00
    080: 01 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00
    090: 03 00 00 00 00 00 00 00 04 00 00 00 00 00 00 00
    100: 0c 00 00 00 00 00 00 00 0b 00 00 00 00 00 00 00
    110: 15 6b e5 cf 8b 01 00 00 00 00 00 00 00 00 00 00
";
/// A trim, which format 2 brought.
const TRIM_2: &str = "
    000: 52 18 e2 37 98 00 00 00 02 00 00 00 01 00 00 00
    010: 0c 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00
    020: 6a 00 00 00 00 00 00 00 c8 69 e5 cf 8b 01 00 00
    030: 0b 00 00 00 00 00 00 00 0a 00 00 00 00 00 00 00
    040: 4c 00 00 00 58 b6 4f 0e 01 02 64 00 00 00 00 00
    050: 00 00 09 00 00 00 00 00 00 00 02 00 00 00 00 00
    060: 00 00 88 77 66 55 44 33 22 11 08 00 00 00 00 00
    070: 00 00 03 01 01 00 00 00 00 00 00 00 02 00 00 00
    080: 00 00 00 00 03 00 00 00 00 00 00 00 04 00 00 00
";

/// A sector from lines of an offset and 16 bytes; lines that are left out are zeros.
fn sector(text: &str) -> [u8; SECTOR] {
    let mut bytes = [0; SECTOR];
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let (at, line) = line.trim().split_once(':').expect("an offset");
        let at = usize::from_str_radix(at, 16).expect("in hexadecimal");
        for (byte, digits) in bytes[at..].iter_mut().zip(line.split_whitespace()) {
            *byte = u8::from_str_radix(digits, 16).expect("in hexadecimal");
        }
    }
    bytes
}

/// The sector of the format this build writes.
fn of_this_format(sectors: &[(u32, &str)]) -> [u8; SECTOR] {
    let found = sectors.iter().find(|(format, _)| *format == FORMAT);
    sector(found.unwrap_or_else(|| panic!("format {FORMAT} has no frozen bytes yet: add some, keep the others")).1)
}

fn header() -> SegmentHeader {
    let cache = CacheName::parse("tenant/namespace/name").expect("a name");
    let members = |ids: &[u64]| ids.iter().map(|id| ReplicaId(*id)).collect();
    SegmentHeader {
        shard: ShardId { kind: Kind::Cache, cache, shard: ShardNo(3) },
        number: SegmentNo(12),
        epoch: EPOCH,
        salt: SALT,
        base_offset: Offset(100),
        base_index: Index(9),
        previous_generation: Generation(2),
        configuration: Configuration { voters: members(&[1, 2, 3]), learners: members(&[4]) },
        configuration_index: Index(8),
        created: Millis(1_700_000_000_123),
    }
}

#[test]
fn a_segment_header_of_every_format_is_read_and_this_builds_is_written_to_the_byte() {
    let expected = header();
    for (format, text) in SEGMENT_HEADERS {
        let read = SegmentHeader::decode(&sector(text), &expected.shard, expected.number);
        assert_eq!(read, HeaderRead::Sound(expected.clone()), "format {format}");
    }
    assert_eq!(expected.encode(), of_this_format(SEGMENT_HEADERS));
}

fn anchor_of(disk: &MemoryDisk, dir: &Path) -> AnchorState {
    match Anchor::read(disk, dir).expect("a sound disk") {
        AnchorRead::Sound(state) => state,
        _ => panic!("the anchor is sound"),
    }
}

#[test]
fn an_anchor_of_every_format_is_read_and_this_builds_is_written_to_the_byte() {
    let (disk, dir) = (MemoryDisk::new(), Path::new("/shard"));
    disk.create_dir(dir).expect("a sound disk");
    let file = disk.create(&dir.join(ANCHOR_FILE)).expect("a sound disk");
    for ((format, text), start_and_clock) in ANCHORS.iter().zip(STARTS_AND_CLOCKS) {
        file.write_at(FIRST_PLACE, &sector(text)).expect("a sound disk");
        let state = anchor_of(&disk, dir);
        let numbers = [state.replica.0, state.generation.0, state.epoch.0, state.newest_segment.0];
        assert_eq!(numbers, [3, 7, EPOCH.0, 12], "format {format}");
        assert_eq!(state.vote, Some(ReplicaId(2)), "format {format}");
        let start = &state.start;
        let base = (start.offset, start.index, start.generation);
        assert_eq!(base, (Offset(100), Index(9), Generation(2)), "format {format}");
        let configuration = (&start.configuration, start.configuration_index);
        assert_eq!(configuration, (&header().configuration, Index(8)), "format {format}");
        assert_eq!((start.segment, state.clock), start_and_clock, "format {format}");
        let flushed = (state.commit_floor, state.flushed, state.flushed_next_offset);
        assert_eq!(flushed, (Index(40), Index(50), Offset(131)), "format {format}");
        assert_eq!((state.clean_stop, state.policy), (true, FsyncPolicy::EverySec), "format {format}");
    }
    let state = anchor_of(&disk, dir);
    drop(Anchor::create(&disk, dir, state).expect("a sound disk"));
    let bytes = bytes_of(&disk, &dir.join(ANCHOR_FILE));
    assert_eq!(bytes[FIRST_PLACE as usize..][..SECTOR], of_this_format(ANCHORS));
    assert!(bytes[..FIRST_PLACE as usize].iter().all(|&byte| byte == 0), "the other place waits for its turn");
}

/// Reads the frozen batch, checks its header, and gives the bodies with their offsets.
fn batch(text: &str, batch_type: BatchType, index: u64, first_offset: u64) -> Vec<(u64, Vec<u8>)> {
    let bytes = sector(text);
    let header = BatchHeader::read(&bytes, SALT).expect("a sound header");
    let bodies = records(&header, &bytes).map(|record| (record.offset.0, record.body.to_vec())).collect::<Vec<_>>();
    let length = header.length as usize;
    let expected = BatchHeader {
        length: header.length,
        batch_type,
        records: bodies.len() as u32,
        index: Index(index),
        generation: Generation(3),
        first_offset: Offset(first_offset),
        time: Millis(1_700_000_000_456),
        durable: Index(index - 1),
        committed: Index(index - 2),
    };
    assert_eq!(header, expected);
    verify_records(&header, &bytes[..length], SALT).expect("sound records");
    assert!(bytes[length..].iter().all(|&byte| byte == 0), "the sector goes on with zeros");
    bodies
}

/// What this build writes for the same bodies in the same place, filled up to a sector.
fn written(bodies: &[(u64, Vec<u8>)], batch_type: BatchType, index: u64) -> Vec<u8> {
    let mut builder = BatchBuilder::new(batch_type, Offset(bodies[0].0));
    for (_, body) in bodies {
        builder.push(|into| into.extend_from_slice(body));
    }
    let batch = builder.finish(Millis(1_700_000_000_456));
    let (durable, committed) = (Index(index - 1), Index(index - 2));
    let place = Place { index: Index(index), generation: Generation(3), durable, committed };
    let mut bytes = Vec::new();
    seal_into(&mut bytes, &batch, place, SALT).expect("as the builder makes it");
    bytes.resize(SECTOR, 0);
    bytes
}

#[test]
fn a_data_batch_and_its_four_kinds_of_records_are_read_and_written_to_the_byte() {
    let bodies = batch(DATA_BATCH_1, BatchType::Data, 9, 100);
    let expected = [
        CacheRecord::Put { key: b"key", value: b"a value", expires_at: Millis(1_700_000_600_000) },
        CacheRecord::Delete { key: b"gone" },
        CacheRecord::Carried { key: b"\0\xff\r\n\"k", value: b"", expires_at: Millis::NEVER, revision: Revision(41) },
        CacheRecord::Clear,
    ];
    assert_eq!(bodies.len(), expected.len());
    for ((number, (offset, body)), record) in bodies.iter().enumerate().zip(expected) {
        assert_eq!((*offset, CacheRecord::decode(body)), (100 + number as u64, Ok(record)));
        let mut encoded = Vec::new();
        record.encode(&mut encoded);
        assert_eq!(encoded, *body, "{record:?}");
    }
    assert_eq!(written(&bodies, BatchType::Data, 9), sector(DATA_BATCH_1));
}

fn trim() -> Trim {
    let SegmentHeader { base_offset, base_index, previous_generation, configuration, configuration_index, .. } =
        header();
    let base_generation = previous_generation;
    Trim { base_offset, base_index, base_generation, epoch: EPOCH, configuration, configuration_index }
}

#[test]
fn control_batches_are_read_and_written_to_the_byte() {
    let kinds = [
        (GENERATION_START_1, 10, 104, ControlRecord::GenerationStart),
        (EPOCH_1, 11, 105, ControlRecord::Epoch(EPOCH)),
        (TRIM_2, 12, 106, ControlRecord::Trim(trim())),
    ];
    for (text, index, offset, record) in kinds {
        let bodies = batch(text, BatchType::Control, index, offset);
        let [(_, body)] = &bodies[..] else { panic!("a control batch has one record: {bodies:?}") };
        assert_eq!(ControlRecord::decode(body).as_ref(), Ok(&record));
        let mut encoded = Vec::new();
        record.encode(&mut encoded);
        assert_eq!(encoded, *body, "{record:?}");
        assert_eq!(written(&bodies, BatchType::Control, index), sector(text), "{record:?}");
    }
}
