//! Formats: what an earlier build wrote opens for ever with everything in it, and what a later build may write is refused
//! with not a byte changed.
//!
//! Must never know how a frozen directory was written.

use std::path::Path;

use hearth::core::error::OpenError;
use hearth::core::log::FORMAT;
use hearth::core::log::disk::{Disk, MemoryDisk};
use hearth::core::log::frame::{BATCH_HEADER_BYTES, BatchType, Place, RECORD_HEADER_BYTES, seal_into};
use hearth::core::types::SegmentNo;
use hearth::server::ServerError;

use crate::bed::{Bed, ROOT, bytes_of, segment_files};
use crate::fixture::{ENDS, copied, expected, fixture_formats, render, world_after_the_run};
use crate::layout::{Layout, Standing, layout};

const SECTOR: usize = 512;
const ANCHOR_PLACES: [usize; 2] = [0, 4096];
/// Where the CRC of its sector stands in an anchor's place and in a segment header.
const ANCHOR_CRC_AT: usize = 12;
const SEGMENT_CRC_AT: usize = 16;
const FORMAT_AT: usize = 8;
const OTHER_FORMATS: [u32; 3] = [0, FORMAT + 1, u32::MAX];
/// From this format on compaction had trimmed the frozen log.
const FIRST_WITH_TRIMS: u32 = 2;
const EXIT_DAMAGED: u8 = 7;
const EXIT_OTHER_FORMAT: u8 = 8;

/// One past the last record that was there before opening, which writes one of its own.
fn next_offset_before(bed: &Bed) -> u64 {
    bed.shard.frontier.applied_next().0 - 1
}

#[test]
fn every_format_up_to_this_one_has_a_frozen_directory() {
    let all: Vec<u32> = (1..=FORMAT).collect();
    let advice = "cargo test --release --test store make_fixture -- --ignored";
    assert_eq!(fixture_formats(), all, "write the missing one with: {advice}");
}

#[test]
fn every_frozen_directory_opens_with_everything_in_it_and_takes_more() {
    let mut opened = 0;
    for format in fixture_formats() {
        for end in ENDS {
            let what = format!("format {format}, {end}");
            let world = world_after_the_run().with_disk(copied(format, end));
            assert!(segment_files(&world.disk).len() >= 4, "{what}: several segments");
            let trimmed = segment_files(&world.disk)[0].0 > SegmentNo(1);
            assert_eq!(trimmed, format >= FIRST_WITH_TRIMS, "{what}: where the log begins");
            let mut bed = world.open().unwrap_or_else(|error| panic!("{what}: {error}"));
            let contents = bed.contents().expect("readable");
            assert_eq!(render(bed.report.epoch, next_offset_before(&bed), &contents), expected(format), "{what}");
            assert_eq!(bed.report.unclean, end == "killed", "{what}");
            assert_eq!(formats_written(&world.disk), [FORMAT; 3], "{what}: no older build opens it from here on");
            assert_eq!((bed.report.created, bed.report.new_epoch, bed.report.cut), (false, false, None), "{what}");
            for (key, held) in &contents {
                assert_eq!(bed.get(key).expect("readable").as_ref(), Some(&held.value), "{what}");
            }
            bed.put_acknowledged(b"more", &[end.as_bytes()[0]; 1000]);
            bed.driver.close().expect("a sound disk");
            drop(bed);
            let again = world.open().unwrap_or_else(|error| panic!("{what}, again: {error}"));
            let mut with_more = again.contents().expect("readable");
            assert!(with_more.remove(&b"more"[..]).is_some_and(|held| held.value.len() == 1000), "{what}");
            assert_eq!(with_more, contents, "{what}");
            world.clock.advance(600_000);
            assert_eq!(again.get(b"soon").expect("readable"), None, "{what}: its expiry came back too");
            assert!(again.get(b"far").expect("readable").is_some(), "{what}: its expiry came back too");
            opened += 1;
        }
    }
    println!("{opened} frozen directories opened");
    assert!(opened >= 2);
}

/// The formats that `node.toml` and the two places of the anchor name.
fn formats_written(disk: &MemoryDisk) -> [u32; 3] {
    let node = String::from_utf8(bytes_of(disk, &Path::new(ROOT).join("node.toml"))).expect("text");
    let line = node.lines().find_map(|line| line.strip_prefix("format = "));
    let anchor = layout(disk).anchor_bytes;
    let in_anchor = ANCHOR_PLACES.map(|place| {
        let number = &anchor[place + FORMAT_AT..place + FORMAT_AT + 4];
        u32::from_le_bytes(number.try_into().expect("four bytes"))
    });
    [line.and_then(|line| line.parse().ok()).expect("a number"), in_anchor[0], in_anchor[1]]
}

/// Changes a copy of this build's frozen directory, expects that it is refused twice in the same words with nothing
/// changed, and gives the words and the exit code.
fn refused(end: &str, change: impl FnOnce(&MemoryDisk, &Layout)) -> (String, u8) {
    let disk = copied(FORMAT, end);
    change(&disk, &layout(&disk));
    let world = world_after_the_run().with_disk(disk);
    let before = world.disk.image_hash();
    let [first, again] = [(); 2].map(|()| match world.open() {
        Ok(_) => panic!("this must be refused"),
        Err(error) => error,
    });
    assert_eq!(world.disk.image_hash(), before, "refused, and changed: {first}");
    assert_eq!(first.to_string(), again.to_string());
    assert!(matches!(first, OpenError::Damaged { .. } | OpenError::OtherFormat { .. }), "{first}");
    (first.to_string(), ServerError::Open(first).exit_code())
}

fn write(disk: &MemoryDisk, path: &Path, at: usize, bytes: &[u8]) {
    let file = disk.open(path).expect("it is there");
    file.write_at(at as u64, bytes).expect("a sound disk");
    file.flush().expect("a sound disk");
}

/// The sector with `bytes` written into it at `at`, and sound again.
fn resealed(sector: &[u8], at: usize, bytes: &[u8], crc_at: usize) -> Vec<u8> {
    let mut sector = sector[..SECTOR].to_vec();
    sector[at..at + bytes.len()].copy_from_slice(bytes);
    sector[crc_at..crc_at + 4].fill(0);
    let crc = crc32fast::hash(&sector);
    sector[crc_at..crc_at + 4].copy_from_slice(&crc.to_le_bytes());
    sector
}

fn in_anchor(disk: &MemoryDisk, layout: &Layout, places: &[usize], at: usize, bytes: &[u8]) {
    for &place in places {
        let sector = resealed(&layout.anchor_bytes[place..], at, bytes, ANCHOR_CRC_AT);
        write(disk, &layout.anchor, place, &sector);
    }
}

fn in_segment_header(disk: &MemoryDisk, layout: &Layout, file: usize, at: usize, bytes: &[u8]) {
    let file = &layout.files[file];
    write(disk, &file.path, 0, &resealed(&file.bytes, at, bytes, SEGMENT_CRC_AT));
}

#[test]
fn a_resealed_sector_that_says_the_same_is_the_same() {
    let layout = layout(&copied(FORMAT, "clean"));
    let place = &layout.anchor_bytes[..SECTOR];
    assert_eq!(resealed(place, FORMAT_AT, &FORMAT.to_le_bytes(), ANCHOR_CRC_AT), place);
    let header = &layout.files[0].bytes[..SECTOR];
    assert_eq!(resealed(header, FORMAT_AT, &FORMAT.to_le_bytes(), SEGMENT_CRC_AT), header);
}

#[test]
fn another_format_number_anywhere_is_refused_as_another_format() {
    let mut seen = 0;
    for (end, other) in ENDS.into_iter().flat_map(|end| OTHER_FORMATS.map(|other| (end, other))) {
        let number = other.to_le_bytes();
        let mut expect = |what: &str, (words, code): (String, u8)| {
            assert_eq!(code, EXIT_OTHER_FORMAT, "{end}, {what}: {words}");
            assert!(words.contains(&format!("format {other})")), "{end}, {what}: {words}");
            seen += 1;
        };
        let node = Path::new(ROOT).join("node.toml");
        let in_node = |disk: &MemoryDisk, _: &Layout| {
            let text = String::from_utf8(bytes_of(disk, &node)).expect("text");
            let other = text.replace(&format!("format = {FORMAT}"), &format!("format = {other}"));
            assert_ne!(text, other);
            write(disk, &node, 0, other.as_bytes());
        };
        expect("node.toml", refused(end, in_node));
        for places in [&ANCHOR_PLACES[..1], &ANCHOR_PLACES[1..], &ANCHOR_PLACES] {
            let refusal = refused(end, |disk, layout| in_anchor(disk, layout, places, FORMAT_AT, &number));
            expect("the anchor", refusal);
        }
        for file in 0..layout(&copied(FORMAT, end)).files.len() {
            let refusal = refused(end, |disk, layout| in_segment_header(disk, layout, file, FORMAT_AT, &number));
            expect("a segment", refusal);
        }
    }
    println!("{seen} other formats refused");
    assert!(seen > 40);
}

#[test]
fn a_sound_sector_with_a_field_that_no_build_writes_is_refused_as_damaged() {
    const POLICY_AT: usize = 113;
    const VOTERS_IN_ANCHOR_AT: usize = 114;
    const FLAGS_AT: usize = 12;
    const KIND_AT: usize = 84;
    const VOTERS_AT: usize = 86;
    for end in ENDS {
        for (at, byte) in [(POLICY_AT, 0), (POLICY_AT, 4), (POLICY_AT, 255), (VOTERS_IN_ANCHOR_AT, 17)] {
            let (words, code) = refused(end, |disk, layout| in_anchor(disk, layout, &ANCHOR_PLACES, at, &[byte]));
            assert_eq!(code, EXIT_DAMAGED, "{end}: {words}");
        }
        for (at, byte) in [(FLAGS_AT, 1), (KIND_AT, 2), (VOTERS_AT, 17), (0, b'h')] {
            for file in 0..layout(&copied(FORMAT, end)).files.len() {
                let (words, code) = refused(end, |disk, layout| in_segment_header(disk, layout, file, at, &[byte]));
                assert_eq!(code, EXIT_DAMAGED, "{end}: {words}");
                assert!(words.contains(".seg is damaged at byte 0"), "{end}: {words}");
            }
        }
    }
}

/// The batch with one byte of its header changed, and sound again.
fn with_header_byte(layout: &Layout, batch: &Standing, at: usize, byte: u8) -> Vec<u8> {
    let file = &layout.files[batch.file];
    let mut bytes = file.bytes[batch.extent()].to_vec();
    bytes[at] = byte;
    let mut hasher = crc32fast::Hasher::new_with_initial(file.salt);
    hasher.update(&bytes[4..BATCH_HEADER_BYTES]);
    bytes[..4].copy_from_slice(&hasher.finalize().to_le_bytes());
    bytes
}

/// The batch with one byte of its first record's body changed, and sound again.
fn with_body_byte(layout: &Layout, batch: &Standing, at: usize, byte: u8) -> Vec<u8> {
    let file = &layout.files[batch.file];
    let mut bytes = file.bytes[batch.extent()].to_vec();
    bytes[BATCH_HEADER_BYTES + RECORD_HEADER_BYTES + at] = byte;
    let header = batch.header;
    let place = Place {
        index: header.index,
        generation: header.generation,
        durable: header.durable,
        committed: header.committed,
    };
    let mut sealed = Vec::new();
    seal_into(&mut sealed, &bytes, place, file.salt).expect("as the builder makes it");
    sealed
}

fn refused_at(end: &str, number: usize, reason: &str, changed: impl Fn(&Layout, &Standing) -> Vec<u8>) {
    let mut place = String::new();
    let (words, code) = refused(end, |disk, layout| {
        let batch = &layout.batches[number];
        let path = &layout.files[batch.file].path;
        place = format!("{} is damaged at byte {}", path.display(), batch.at);
        write(disk, path, batch.at, &changed(layout, batch));
    });
    assert_eq!(code, EXIT_DAMAGED, "{words}");
    assert!(words.contains(&place) && words.contains(reason), "{words}");
}

#[test]
fn a_sound_batch_of_an_unknown_type_or_with_flags_is_refused_where_it_stands() {
    const TYPE_AT: usize = 8;
    const FLAGS_AT: usize = 9;
    for end in ENDS {
        for number in 0..layout(&copied(FORMAT, end)).batches.len() {
            for (at, byte) in [(TYPE_AT, 0), (TYPE_AT, 3), (TYPE_AT, 255), (FLAGS_AT, 1)] {
                refused_at(end, number, "the batch there has an impossible", |layout, batch| {
                    with_header_byte(layout, batch, at, byte)
                });
            }
        }
    }
}

/// The bytes of a body's version and operation that no build knows; a control record has the same two places.
const UNKNOWN: [(usize, u8); 4] = [(0, 0), (0, 99), (1, 99), (1, 255)];

const NOT_KNOWN: &str = "which this build does not know";

#[test]
fn a_sound_record_of_an_unknown_version_or_operation_is_refused_where_it_stands() {
    let (mut data, mut control) = (0, 0);
    for end in ENDS {
        let layout = layout(&copied(FORMAT, end));
        for (number, batch) in layout.batches.iter().enumerate() {
            for (at, byte) in UNKNOWN {
                refused_at(end, number, NOT_KNOWN, |layout, batch| with_body_byte(layout, batch, at, byte));
            }
            match batch.header.batch_type {
                BatchType::Data => data += UNKNOWN.len(),
                BatchType::Control => control += UNKNOWN.len(),
            }
        }
    }
    println!("{data} unknown data records, {control} unknown control records refused");
    assert!(data > 100 && control > 10);
}

// Nothing says yet that the last batch is committed, and the log would go on in a new segment with a generation of its own.
#[test]
fn an_unknown_record_at_the_end_of_a_killed_log_is_refused_with_nothing_changed() {
    let last = layout(&copied(FORMAT, "killed")).batches.len() - 1;
    for (at, byte) in UNKNOWN {
        refused_at("killed", last, NOT_KNOWN, |layout, batch| with_body_byte(layout, batch, at, byte));
    }
}
