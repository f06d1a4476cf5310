//! What a scan says of a segment's end, one kind of end after the other.
//!
//! The file is zero-filled ahead, as the writer makes it; batches stand from the end of the header on.

use super::*;
use crate::core::log::disk::{Disk, MemoryDisk};
use crate::core::log::frame::{BatchBuilder, BatchType, Place, seal_into};
use crate::core::types::{CacheName, Configuration, Epoch, Kind, Millis, SegmentNo, ShardId, ShardNo};
use std::path::Path;

const FILE_BYTES: usize = 16 * 1024;
const FIRST: usize = SEGMENT_HEADER_BYTES;

fn header() -> SegmentHeader {
    SegmentHeader {
        shard: ShardId { kind: Kind::Cache, cache: CacheName::default_cache(), shard: ShardNo(0) },
        number: SegmentNo(1),
        epoch: Epoch(9),
        salt: 77,
        base_offset: Offset(10),
        base_index: Index(5),
        previous_generation: Generation(2),
        configuration: Configuration::default(),
        configuration_index: Index(1),
        created: Millis(0),
    }
}

/// A batch with one record of `bytes` bytes; says that the one before it is flushed.
fn batch(index: u64, offset: u64, generation: u64, bytes: usize) -> Vec<u8> {
    let mut builder = BatchBuilder::new(BatchType::Data, Offset(offset));
    builder.push(|into| into.extend(std::iter::repeat_n(0xab, bytes)));
    let place = Place {
        index: Index(index),
        generation: Generation(generation),
        durable: Index(index - 1),
        committed: Index(index - 1),
    };
    let mut sealed = Vec::new();
    seal_into(&mut sealed, &builder.finish(Millis(0)), place, header().salt).unwrap();
    sealed
}

/// A segment with three batches, indexes 5 to 7; the middle one is several sectors long. Gives where each begins.
fn segment() -> (Vec<u8>, [usize; 4]) {
    let mut bytes = header().encode().to_vec();
    let mut at = [0; 4];
    for (i, length) in [100, 2000, 300].into_iter().enumerate() {
        at[i] = bytes.len();
        bytes.extend(batch(5 + i as u64, 10 + i as u64, 2, length));
    }
    at[3] = bytes.len();
    bytes.resize(FILE_BYTES, 0);
    (bytes, at)
}

fn scanned(bytes: &[u8]) -> (SegmentScan, Vec<u64>) {
    let disk = MemoryDisk::new();
    let file = disk.create(Path::new("/s")).unwrap();
    file.write_at(0, bytes).unwrap();
    let mut seen = Vec::new();
    let found = scan(&*file, &header(), |batch| -> io::Result<()> {
        assert_eq!(&bytes[batch.position as usize..batch.position as usize + batch.bytes.len()], batch.bytes);
        seen.push(batch.header.index.0);
        Ok(())
    });
    (found.unwrap(), seen)
}

#[track_caller]
fn unsound(bytes: &[u8]) -> (u64, bool, Option<u64>, String) {
    let (found, _) = scanned(bytes);
    match found.end {
        End::Unsound { may_be_torn, later_claim, what } => {
            (found.end_at, may_be_torn, later_claim.map(|index| index.0), what)
        }
        End::Clean => panic!("a clean end at {}", found.end_at),
    }
}

#[test]
fn sound_batches_are_handed_on_in_order_and_zeros_end_them() {
    let (bytes, at) = segment();
    let (found, seen) = scanned(&bytes);
    assert_eq!(seen, [5, 6, 7]);
    let expected = SegmentScan {
        next_index: Index(8),
        next_offset: Offset(13),
        generation: Generation(2),
        claim: Index(6),
        batches: 3,
        end_at: at[3] as u64,
        end: End::Clean,
    };
    assert_eq!(found, expected);
    assert_eq!(scanned(&bytes[..at[3]]).0, expected, "a file that was cut to its content");
    let (empty, seen) = scanned(&bytes[..FIRST]);
    assert_eq!((empty.next_index, empty.end, seen.len()), (Index(5), End::Clean, 0));
}

#[test]
fn a_sector_that_never_reached_the_disk_may_be_torn() {
    let (whole, at) = segment();
    for sector in (at[1].next_multiple_of(SECTOR_BYTES)..at[2]).step_by(SECTOR_BYTES) {
        let mut bytes = whole[..at[2]].to_vec();
        bytes.resize(FILE_BYTES, 0);
        bytes[sector..(sector + SECTOR_BYTES).min(at[2])].fill(0);
        let (end_at, may_be_torn, later_claim, what) = unsound(&bytes);
        assert_eq!((end_at, may_be_torn, later_claim), (at[1] as u64, true, None), "sector at {sector}: {what}");
    }
}

#[test]
fn a_header_that_never_reached_the_disk_may_be_torn() {
    let (mut bytes, at) = segment();
    bytes[at[1]..at[1] + BATCH_HEADER_BYTES].fill(0);
    let (end_at, may_be_torn, _, _) = unsound(&bytes);
    assert_eq!((end_at, may_be_torn), (at[1] as u64, true));
}

#[test]
fn a_batch_beyond_the_end_of_the_file_may_be_torn() {
    let (bytes, at) = segment();
    let (end_at, may_be_torn, _, what) = unsound(&bytes[..at[1] + 1024]);
    assert_eq!((end_at, may_be_torn), (at[1] as u64, true));
    assert!(what.contains("not whole"), "{what}");
}

#[test]
fn a_flipped_bit_without_a_zero_sector_cannot_be_torn() {
    let (whole, at) = segment();
    for (position, what) in [(at[2] + 20, "batch header"), (at[2] + 200, "record 0")] {
        let mut bytes = whole.clone();
        bytes[position] ^= 1;
        let (end_at, may_be_torn, _, found) = unsound(&bytes);
        assert_eq!((end_at, may_be_torn), (at[2] as u64, false));
        assert!(found.contains(what), "{found}");
    }
}

#[test]
fn a_sound_batch_further_on_tells_what_was_flushed() {
    let (whole, at) = segment();
    for position in [at[0] + 3, at[0] + 90, at[1] + 3, at[1] + 1500] {
        let mut bytes = whole.clone();
        bytes[position] ^= 1;
        assert_eq!(unsound(&bytes).2, Some(6), "byte {position}");
    }
    // Its records may be damaged too: what its header says was true when it was written.
    let mut bytes = whole;
    bytes[at[1] + 1500] ^= 1;
    bytes[at[2] + 200] ^= 1;
    assert_eq!(unsound(&bytes).2, Some(6));
}

#[test]
fn a_sound_batch_whose_numbers_do_not_follow_is_no_tear() {
    let (whole, at) = segment();
    for (index, offset, generation) in [(9, 13, 2), (8, 14, 2), (7, 12, 2), (8, 13, 1)] {
        let mut bytes = whole.clone();
        let stray = batch(index, offset, generation, 50);
        bytes[at[3]..at[3] + stray.len()].copy_from_slice(&stray);
        let (end_at, may_be_torn, _, what) = unsound(&bytes);
        assert_eq!((end_at, may_be_torn), (at[3] as u64, false), "{what}");
    }
    let mut bytes = whole;
    let next = batch(8, 13, 3, 50);
    bytes[at[3]..at[3] + next.len()].copy_from_slice(&next);
    assert_eq!((scanned(&bytes).0.generation, scanned(&bytes).0.batches), (Generation(3), 4));
}

#[test]
fn bytes_a_client_stored_are_no_later_batch() {
    // A whole batch of another file as a value: only its salt tells it apart.
    let (mut bytes, at) = segment();
    let mut foreign = Vec::new();
    let mut builder = BatchBuilder::new(BatchType::Data, Offset(1));
    builder.push(|into| into.push(1));
    let place = Place { index: Index(99), generation: Generation(2), durable: Index(98), committed: Index(98) };
    seal_into(&mut foreign, &builder.finish(Millis(0)), place, header().salt + 1).unwrap();
    bytes[at[2]..at[3]].fill(0);
    bytes[at[2] + 512..at[2] + 512 + foreign.len()].copy_from_slice(&foreign);
    let (end_at, may_be_torn, later_claim, _) = unsound(&bytes);
    assert_eq!((end_at, may_be_torn, later_claim), (at[2] as u64, true, None));
}

#[test]
fn an_error_of_the_visitor_ends_the_scan() {
    let (bytes, _) = segment();
    let disk = MemoryDisk::new();
    let file = disk.create(Path::new("/s")).unwrap();
    file.write_at(0, &bytes).unwrap();
    let mut seen = 0;
    let found = scan(&*file, &header(), |_| {
        seen += 1;
        if seen == 2 { Err(io::Error::other("enough")) } else { Ok(()) }
    });
    assert_eq!((found.err().map(|error| error.to_string()).as_deref(), seen), (Some("enough"), 2));
}
