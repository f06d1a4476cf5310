//! Every log damaged in every place: cut at every byte, every bit flipped of its last two records and their batches'
//! headers, every sector zeroed, alone and with everything behind it.
//!
//! Within `./check` older segments, where any damage is refused, are damaged at fewer bytes, and the larger logs under fewer
//! policies and stops; `HEARTH_DAMAGE=all` leaves nothing out. Must never know what is expected.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use hearth::core::log::FsyncPolicy;
use hearth::core::log::disk::{Disk, MemoryDisk};
use hearth::core::log::frame::{BATCH_HEADER_BYTES, records};
use hearth::core::log::segment::SEGMENT_HEADER_BYTES;
use hearth::core::op::Expiry;
use hearth::core::types::SegmentNo;

use super::oracle::{Damage, Left, Notes, done_to, verdict};
use super::subject::{Shape, Stop, Subject, subject, subject_of};
use super::trial::{Counts, Trial};
use crate::bed::POLICIES;
use crate::script::Dice;
use crate::writer::put;

pub const SECTOR: usize = 512;
const STOPS: [Stop; 3] = [Stop::Clean, Stop::Killed, Stop::KilledNoted];

/// Whether nothing is left out.
pub fn thorough() -> bool {
    std::env::var("HEARTH_DAMAGE").is_ok_and(|wanted| wanted == "all")
}

/// A log and what was done to it, for a failing test's message.
pub struct Case<'c> {
    pub subject: &'c Subject,
    pub damages: &'c [Damage],
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.subject.name, self.damages)
    }
}

/// The log's disk with this left of its files.
fn damaged(subject: &Subject, left: &Left<'_>) -> MemoryDisk {
    let disk = subject.image.after_kill();
    for (file, left) in subject.layout.files.iter().zip(left) {
        match left {
            None => disk.remove(&file.path).expect("it is there"),
            Some(Cow::Borrowed(_)) => {}
            Some(Cow::Owned(bytes)) => {
                let handle = disk.open(&file.path).expect("it is there");
                handle.set_len(bytes.len() as u64).expect("a sound disk");
                handle.write_at(0, bytes).expect("a sound disk");
                handle.flush().expect("a sound disk");
            }
        }
    }
    disk
}

/// Damages a log, opens it twice and compares with the oracle. Zeros over zeros are no damage.
pub fn try_damages(subject: &Subject, damages: &[Damage], then_clean: bool, counts: &mut Counts) {
    let left = done_to(subject, damages);
    let mut files = subject.layout.files.iter().zip(&left);
    if files.all(|(file, left)| left.as_deref() == Some(&file.bytes[..])) {
        return;
    }
    let notes = Notes::of(subject);
    let trial = Trial {
        subject,
        notes,
        verdict: verdict(subject, notes, &left),
        lengths: left.iter().map(|bytes| bytes.as_ref().map_or(0, |bytes| bytes.len())).collect(),
        damaged: damages.first().map(Damage::file),
        then_clean,
        what: &Case { subject, damages },
    };
    trial.run(&subject.world.with_disk(damaged(subject, &left)), counts);
}

/// Does each damage by itself to a fresh copy of the log.
fn try_each(subject: &Subject, damages: impl IntoIterator<Item = Damage>) -> Counts {
    let mut counts = Counts::default();
    for (number, damage) in damages.into_iter().enumerate() {
        try_damages(subject, &[damage], number % 2 == 0, &mut counts);
    }
    counts
}

/// Every byte of the newest segment up to a little behind its end; of an older one every batch's first bytes and every so
/// many others.
fn places_to_cut(subject: &Subject, file: usize) -> BTreeSet<usize> {
    let (end, length) = (subject.end_of(file), subject.layout.files[file].bytes.len());
    let stride = if file == subject.newest() || thorough() { 1 } else { 37 };
    let mut places: BTreeSet<usize> = (0..end + 9).step_by(stride).collect();
    for batch in subject.layout.batches.iter().filter(|batch| batch.file == file) {
        places.extend([batch.at, batch.at + 1, batch.at + BATCH_HEADER_BYTES, batch.extent().end - 1]);
    }
    places.extend([end, end + 64, end + SECTOR, length - 1]);
    places.retain(|at| *at < length);
    places
}

fn cuts(subject: &Subject) -> Vec<Damage> {
    let mut cuts = Vec::new();
    for file in 0..subject.layout.files.len() {
        for at in places_to_cut(subject, file) {
            cuts.push(Damage::Cut { file, at });
            if file < subject.newest() {
                cuts.push(Damage::CutLog { file, at });
            }
        }
        cuts.push(Damage::Gone { from: file });
    }
    cuts
}

/// The bytes of the last two records, of the headers of the batches they are in, and of what fills those up.
fn of_the_last_two_records(subject: &Subject) -> Vec<(usize, Range<usize>)> {
    let (mut ranges, mut seen) = (Vec::new(), 0);
    for batch in subject.layout.batches.iter().rev() {
        let bytes = &subject.layout.files[batch.file].bytes[batch.extent()];
        let framed: Vec<_> = records(&batch.header, bytes).map(|record| (record.position, record.length())).collect();
        let wanted = &framed[framed.len().saturating_sub(2 - seen)..];
        let first = wanted.first().map_or(bytes.len(), |record| record.0);
        ranges.push((batch.file, batch.at..batch.at + BATCH_HEADER_BYTES));
        ranges.push((batch.file, batch.at + first..batch.extent().end));
        seen += wanted.len();
        if seen == 2 {
            break;
        }
    }
    ranges
}

/// Of a value of many bytes one bit a byte is enough within `./check`: CRCs are tested bit by bit where they are made.
fn flips(subject: &Subject) -> Vec<Damage> {
    let mut flips = Vec::new();
    for (file, range) in of_the_last_two_records(subject) {
        let every_bit = thorough() || range.len() <= 700;
        for at in range {
            let bits = (0..8).filter(|bit| every_bit || at % 8 == *bit);
            flips.extend(bits.map(|bit| Damage::Flip { file, at, bit: bit as u8 }));
        }
    }
    for (file, segment) in subject.layout.files.iter().enumerate() {
        // Headers, of which every bit has a test below, and zeros in which nothing should stand.
        let end = subject.end_of(file);
        let behind = end..(end + 2 * SECTOR).min(segment.bytes.len());
        for at in (0..SEGMENT_HEADER_BYTES).chain(behind) {
            let bits = (0..8).filter(|bit| at % 8 == *bit && (thorough() || at % 3 == 0));
            flips.extend(bits.map(|bit| Damage::Flip { file, at, bit: bit as u8 }));
        }
    }
    flips
}

fn zeros(subject: &Subject) -> Vec<Damage> {
    let mut zeros = Vec::new();
    for (file, segment) in subject.layout.files.iter().enumerate() {
        let to = segment.bytes.len();
        let end = subject.end_of(file);
        for from in (0..end).step_by(SECTOR) {
            zeros.push(Damage::Zeros { file, from, to: from + SECTOR });
            zeros.push(Damage::Zeros { file, from, to });
        }
        if file == subject.newest() {
            let stride = if thorough() { 1 } else { 11 };
            zeros.extend((0..end).step_by(stride).map(|from| Damage::Zeros { file, from, to }));
        }
        // As a write leaves it whose last sectors, or first ones, never reached the disk.
        for batch in subject.layout.batches.iter().filter(|batch| batch.file == file) {
            for from in batch.extent().filter(|at| *at == batch.at || at % SECTOR == 0) {
                zeros.push(Damage::Zeros { file, from, to: batch.extent().end });
                zeros.push(Damage::Zeros { file, from: batch.at, to: from });
            }
        }
    }
    zeros
}

/// Does everything to one log.
fn exhaust(subject: &Subject) -> Counts {
    let all = cuts(subject).into_iter().chain(flips(subject)).chain(zeros(subject));
    let counts = try_each(subject, all);
    if subject.stop == Stop::Clean {
        let lost = counts.trimmed + counts.repaired + counts.shortened + counts.in_the_window;
        assert_eq!(lost, 0, "{}: something was given up after a clean stop", subject.name);
    }
    counts
}

/// Logs of so many records; the smallest are damaged after every stop under every policy, the others after some.
fn exhaust_all(shape: Shape, sizes: &[usize]) {
    let mut total = Counts::default();
    for stop in STOPS {
        for policy in POLICIES {
            let mut counts = Counts::default();
            for (number, size) in sizes.iter().enumerate() {
                let turn = number + stop as usize * POLICIES.len() + policy as usize;
                // After a clean stop nearly everything is refused alike.
                let every_time = number < if stop == Stop::Clean { 1 } else { 2 };
                if every_time || turn.is_multiple_of(6) || thorough() {
                    counts = counts.and(exhaust(&subject(shape, *size, policy, stop)));
                }
            }
            println!("{shape:?}, {stop:?}, {policy:?}: {counts:?}");
            total = total.and(counts);
        }
    }
    println!("{shape:?}: {total:?}");
    assert_each_occurred(&total);
}

pub fn assert_each_occurred(counts: &Counts) {
    let Counts { damages, recoveries, whole, trimmed, repaired, shortened, refused, refused_by_proof, in_the_window } =
        *counts;
    assert!(whole > 0 && trimmed > 0 && repaired > 0 && shortened > 0 && refused > 0, "{counts:?}");
    assert!(refused_by_proof > 0 && in_the_window > 0, "{counts:?}");
    assert_eq!(whole + trimmed + repaired + shortened + refused, damages, "{counts:?}");
    assert_eq!(recoveries, 2 * damages, "{counts:?}");
}

fn sizes(some: &[usize], stride: usize) -> Vec<usize> {
    if thorough() { (1..=64).step_by(stride).chain(some.iter().copied()).collect() } else { some.to_vec() }
}

#[test]
fn logs_of_one_record_a_batch_are_repaired_or_refused_exactly_as_the_table_says() {
    exhaust_all(Shape::OneRecordABatch, &sizes(&[1, 2, 3, 5, 9, 17, 33, 64], 1));
}

#[test]
fn logs_of_one_batch_are_repaired_or_refused_exactly_as_the_table_says() {
    exhaust_all(Shape::AllInOneBatch, &sizes(&[1, 2, 3, 7, 20, 41, 64], 1));
}

#[test]
fn logs_of_mixed_sizes_are_repaired_or_refused_exactly_as_the_table_says() {
    exhaust_all(Shape::MixedSizes, &sizes(&[1, 2, 4, 6, 11, 16, 23], 5));
}

#[test]
fn logs_of_several_segments_are_repaired_or_refused_exactly_as_the_table_says() {
    exhaust_all(Shape::SeveralSegments, &sizes(&[9, 18, 31, 48, 64], 5));
}

#[test]
fn trimmed_logs_are_repaired_or_refused_exactly_as_the_table_says() {
    let mut total = Counts::default();
    for stop in STOPS {
        let subject = subject(Shape::Trimmed, 80, FsyncPolicy::Always, stop);
        assert!(subject.first_segment() > SegmentNo(1), "{}: it was trimmed", subject.name);
        let counts = exhaust(&subject);
        println!("{}, from segment {}: {counts:?}", subject.name, subject.first_segment().0);
        total = total.and(counts);
    }
    println!("trimmed: {total:?}");
    assert_each_occurred(&total);
}

#[test]
fn any_flipped_bit_of_a_segment_header_or_of_an_older_segment_is_refused() {
    let mut counts = Counts::default();
    for stop in STOPS {
        let subject = subject(Shape::SeveralSegments, 20, FsyncPolicy::Always, stop);
        for (file, segment) in subject.layout.files.iter().enumerate() {
            let end = if file == subject.newest() { SEGMENT_HEADER_BYTES } else { segment.bytes.len() };
            for at in 0..end {
                // One bit of each byte of a batch is enough here.
                for bit in (0..8).filter(|bit| at < SEGMENT_HEADER_BYTES || at % 8 == *bit) {
                    let flip = Damage::Flip { file, at, bit: bit as u8 };
                    try_damages(&subject, &[flip], false, &mut counts);
                }
            }
        }
    }
    println!("bits of headers and older segments: {counts:?}");
    assert!(counts.refused == counts.damages && counts.refused > 20_000, "{counts:?}");
}

#[test]
fn a_file_made_ahead_changes_no_verdict_and_is_refused_once_it_holds_something() {
    let mut total = Counts::default();
    for stop in STOPS {
        for shape in [Shape::OneRecordABatch, Shape::SeveralSegments] {
            total = total.and(exhaust(&subject(shape, 12, FsyncPolicy::Always, stop).with_spare()));
        }
    }
    println!("with a spare: {total:?}");
    assert_each_occurred(&total);
}

#[test]
fn segments_emptied_or_gone_from_any_one_on_are_refused_whatever_the_stop_was() {
    let mut counts = Counts::default();
    for (policy, stop) in POLICIES.into_iter().flat_map(|policy| STOPS.map(|stop| (policy, stop))) {
        let subject = subject(Shape::SeveralSegments, 31, policy, stop);
        let files = 0..subject.layout.files.len();
        for from in files.clone() {
            let emptied: Vec<_> = (from..files.end).map(|file| Damage::Cut { file, at: 0 }).collect();
            for damages in [&emptied[..], &[Damage::Gone { from }], &emptied[..1]] {
                try_damages(&subject, damages, false, &mut counts);
            }
        }
    }
    println!("emptied or gone: {counts:?}");
    assert_eq!(counts.refused, counts.damages, "{counts:?}");
    assert!(counts.damages > 50 && counts.refused_by_proof > 0, "{counts:?}");
}

/// A log of 1 MiB in one segment, with batches of half a kilobyte to nine.
fn large(policy: FsyncPolicy, stop: Stop) -> Subject {
    let mut dice = Dice::new(11);
    let (mut batches, mut bytes) = (Vec::new(), 0);
    while bytes < 1024 * 1024 {
        let batch: Vec<_> = (0..=dice.below(3))
            .map(|_| {
                let key = format!("key-{}", dice.below(20)).into_bytes();
                let fill = if dice.below(4) == 0 { 0 } else { dice.below(256) as u8 };
                put(&key, &vec![fill; dice.below(4096) as usize], Expiry::Never)
            })
            .collect();
        bytes += batch.iter().map(|ask| ask.value.as_ref().map_or(0, Vec::len)).sum::<usize>();
        batches.push(batch);
    }
    subject_of(Shape::MixedSizes, &batches, 2 * 1024 * 1024, policy, stop)
}

#[test]
fn a_log_of_a_mebibyte_is_repaired_or_refused_exactly_as_the_table_says() {
    let mut total = Counts::default();
    // Sectors by themselves, and every so many bytes: of the last 16 KiB, and of the rest.
    let (sectors, near, far) = if thorough() { (1, 1, 61) } else { (64, 257, 40_009) };
    for (policy, stop) in [
        (FsyncPolicy::Always, Stop::Killed),
        (FsyncPolicy::EverySec, Stop::KilledNoted),
        (FsyncPolicy::Never, Stop::Killed),
        (FsyncPolicy::Always, Stop::Clean),
    ] {
        let subject = large(policy, stop);
        let (end, to) = (subject.end_of(0), subject.layout.files[0].bytes.len());
        assert!(end > 1024 * 1024, "{end}");
        let late = end - 16 * 1024;
        let bytes = (0..late).step_by(far).chain((late..end).step_by(near));
        let cuts = bytes.chain([end, end + 64]).map(|at| Damage::Cut { file: 0, at });
        let zeros = (0..end).step_by(SECTOR * sectors).flat_map(|from| {
            let alone = Damage::Zeros { file: 0, from, to: from + SECTOR };
            [alone, Damage::Zeros { file: 0, from, to }]
        });
        let flips = flips(&subject).into_iter().step_by(if thorough() { 1 } else { 101 });
        let counts = try_each(&subject, cuts.chain(zeros).chain(flips));
        println!("{}, {} batches: {counts:?}", subject.name, subject.layout.batches.len());
        total = total.and(counts);
    }
    assert_each_occurred(&total);
}

// The zeros stand in a record whose CRC passes, so they are what was written, and the record behind them shows no lost
// sector: this is no write that was not finished. Only sectors from the first unsound record on prove anything.
#[test]
fn zeros_in_a_sound_record_do_not_make_the_damaged_one_behind_it_a_torn_one() {
    let batch = vec![put(b"zeros", &[0; 1200], Expiry::Never), put(b"key", b"value", Expiry::Never)];
    let subject = subject_of(Shape::AllInOneBatch, &[batch], 8192, FsyncPolicy::Always, Stop::Killed);
    let last = subject.layout.batches.last().expect("a batch");
    let (file, at) = (last.file, last.at + last.records_end() - 1);
    let left = done_to(&subject, &[Damage::Flip { file, at, bit: 0 }]);
    let opened = subject.world.with_disk(damaged(&subject, &left)).open();
    assert!(opened.is_err(), "a flushed batch was cut off: {:?}", opened.map(|bed| bed.report));
}

// The sector holds the batch's sound header, so it reached the disk, and the record in it with it: by the assumption about
// disks this is no write that was not finished. A sector proves a torn write only if all that the batch has in it is zeros.
#[test]
fn zeros_behind_a_sound_header_in_the_same_sector_do_not_make_a_torn_write() {
    let batch = vec![put(b"key", b"value", Expiry::Never)];
    let subject = subject_of(Shape::AllInOneBatch, &[batch], 8192, FsyncPolicy::Always, Stop::Killed);
    let last = subject.layout.batches.last().expect("a batch");
    let (file, from, to) = (last.file, last.at + BATCH_HEADER_BYTES, last.extent().end);
    assert_eq!(last.at / SECTOR, (to - 1) / SECTOR, "all of the batch is in one sector");
    let left = done_to(&subject, &[Damage::Zeros { file, from, to }]);
    let opened = subject.world.with_disk(damaged(&subject, &left)).open();
    assert!(opened.is_err(), "a flushed batch was cut off: {:?}", opened.map(|bed| bed.report));
}
