//! What a pin promises, and how many files are open: many segments on a disk that counts its open handles.

use std::path::{Path, PathBuf};

use super::*;
use crate::core::log::disk::{Counting, Disk};
use crate::core::log::frame::{BATCH_HEADER_BYTES, BatchBuilder, BatchType, Place, seal_into};
use crate::core::log::segment::{SEGMENT_HEADER_BYTES, file_name};
use crate::core::types::{CacheName, Epoch, Kind, Millis, ShardId, ShardNo};

fn header(number: u64) -> SegmentHeader {
    SegmentHeader {
        shard: ShardId { kind: Kind::Cache, cache: CacheName::default_cache(), shard: ShardNo(0) },
        number: SegmentNo(number),
        epoch: Epoch(9),
        salt: number as u32,
        base_offset: Offset(number),
        base_index: Index(number + 1),
        previous_generation: Generation(1),
        configuration: Configuration::default(),
        configuration_index: Index(1),
        created: Millis(0),
    }
}

/// `count` segments from number 1 on, each with one record whose body is the number of its segment.
fn segments(count: u64, most: usize) -> (Arc<Counting>, Segments) {
    let disk = Arc::new(Counting::default());
    let dir = PathBuf::from("/d");
    disk.create_dir(&dir).unwrap();
    let handles = Handles::new(Arc::clone(&disk) as Arc<dyn Disk>, dir.clone(), most);
    let segments = Segments::default();
    for number in 1..=count {
        let header = header(number);
        let mut builder = BatchBuilder::new(BatchType::Data, header.base_offset);
        builder.push(|into| into.extend_from_slice(&number.to_le_bytes()));
        let place =
            Place { index: header.base_index, generation: Generation(1), durable: Index(0), committed: Index(0) };
        let mut bytes = header.encode().to_vec();
        seal_into(&mut bytes, &builder.finish(Millis(0)), place, header.salt).unwrap();
        disk.disk.create(&dir.join(file_name(header.number))).unwrap().write_at(0, &bytes).unwrap();
        segments.push(Segment::sealed(&header, bytes.len() as u64, &handles));
    }
    (disk, segments)
}

fn record(segment: &Arc<Segment>, wait: Wait) -> Result<u64, ReadFault> {
    let position = (SEGMENT_HEADER_BYTES + BATCH_HEADER_BYTES) as u32;
    let location = Location { segment: segment.number, position, length: 16 };
    let mut scratch = Vec::new();
    let body = segment.read(location, segment.base_offset, wait, &mut scratch)?;
    Ok(u64::from_le_bytes(body.try_into().unwrap()))
}

fn read(segments: &Segments, number: u64) -> u64 {
    record(&segments.get(SegmentNo(number)).unwrap(), Wait::IfNeeded).unwrap()
}

#[test]
fn ten_thousand_segments_are_read_with_a_handful_of_files_open() {
    let (disk, segments) = segments(10_000, 8);
    assert_eq!(disk.open_now(), 0, "nothing is opened before it is read");
    for number in (1..=10_000).step_by(7).chain((1..=10_000).rev().step_by(11)) {
        assert_eq!(read(&segments, number), number);
        assert!(disk.open_now() <= 8, "{} are open", disk.open_now());
    }
    assert_eq!(disk.open_now(), 8);
}

#[test]
fn a_segment_that_is_read_again_and_again_stays_open_while_others_come_and_go() {
    let (disk, segments) = segments(50, 4);
    for number in 2..=50 {
        assert_eq!(read(&segments, 1), 1);
        assert_eq!(read(&segments, number), number);
    }
    assert_eq!(disk.opened(), 50, "each once, the first one too");
}

#[test]
fn a_read_that_may_not_wait_opens_no_file() {
    let (disk, segments) = segments(2, 4);
    let segment = segments.get(SegmentNo(1)).unwrap();
    assert!(matches!(record(&segment, Wait::Never), Err(ReadFault::WouldBlock)));
    assert_eq!(disk.open_now(), 0);
    assert_eq!(read(&segments, 1), 1);
    assert_eq!(record(&segment, Wait::Never).unwrap(), 1);
}

#[test]
fn a_reader_goes_on_with_a_file_that_was_closed_for_others() {
    let (disk, segments) = segments(3, 1);
    let segment = segments.get(SegmentNo(1)).unwrap();
    let file = segment.file().unwrap();
    assert_eq!((read(&segments, 2), read(&segments, 3)), (2, 3));
    assert_eq!(disk.open_now(), 2, "the reader's and the last one");
    assert_eq!(file.read_at(0, &mut [0; 8]).unwrap(), 8);
}

#[test]
fn a_held_segment_stays_readable_when_the_log_has_lost_it_and_its_name_is_gone() {
    let (disk, segments) = segments(6, 1);
    let (opened, unopened) = (segments.get(SegmentNo(1)).unwrap(), segments.get(SegmentNo(2)).unwrap());
    assert_eq!(record(&opened, Wait::IfNeeded).unwrap(), 1);
    let dropped: Vec<u64> = segments.drop_below(SegmentNo(5)).unwrap().iter().map(|segment| segment.number.0).collect();
    assert_eq!(dropped, [1, 2, 3, 4]);
    for number in dropped {
        disk.remove(&Path::new("/d").join(file_name(SegmentNo(number)))).unwrap();
        assert!(segments.get(SegmentNo(number)).is_none());
    }
    // Others are read, so that the one place there is changes hands; the held ones are not asked to close.
    for round in 0..4 {
        assert_eq!(read(&segments, 5 + round % 2), 5 + round % 2);
        assert_eq!(record(&opened, Wait::Never).unwrap(), 1);
        assert_eq!(record(&unopened, Wait::Never).unwrap(), 2);
    }
    assert_eq!(disk.open_now(), 3);
    drop((opened, unopened));
    assert_eq!(disk.open_now(), 1, "let go, they are closed");
}

#[test]
fn a_segment_that_nobody_holds_is_not_opened_to_be_dropped() {
    let (disk, segments) = segments(4, 4);
    segments.drop_below(SegmentNo(4)).unwrap();
    assert_eq!((disk.opened(), segments.held().len()), (0, 1));
}

#[test]
fn the_segment_that_takes_batches_stays_open_until_it_is_sealed() {
    let (disk, segments) = segments(4, 1);
    let active = segments.get(SegmentNo(4)).unwrap();
    active.keep_open().unwrap();
    for number in 1..=3 {
        assert_eq!(read(&segments, number), number);
        assert_eq!(record(&active, Wait::Never).unwrap(), 4);
    }
    active.seal(600);
    assert_eq!(active.bytes(), 600);
    assert_eq!(read(&segments, 1), 1);
    assert_eq!(disk.open_now(), 1);
}

#[test]
fn a_start_is_found_by_the_index_it_begins_at() {
    let (_, segments) = segments(5, 1);
    assert_eq!(segments.beginning_at(Index(4)).map(|segment| segment.number), Some(SegmentNo(3)));
    assert!(segments.beginning_at(Index(1)).is_none() && segments.beginning_at(Index(7)).is_none());
    assert_eq!(segments.first().map(|segment| segment.number), Some(SegmentNo(1)));
}
