//! The anchor damaged: one of its two places costs no batch, both are refused.
//!
//! Must never know what an anchor's fields mean; what the other place says is read with the plain codec.

use std::fmt;

use hearth::core::log::FsyncPolicy;
use hearth::core::log::anchor::AnchorState;
use hearth::core::log::disk::{Disk, MemoryDisk};
use hearth::core::types::SegmentNo;

use super::exhaustive::SECTOR;
use super::oracle::{Notes, Verdict, done_to, verdict};
use super::subject::{Shape, Stop, Subject, subject};
use super::trial::{Counts, Trial};
use crate::layout::anchor_state;

const PLACES: [usize; 2] = [0, 4096];

struct Case<'c> {
    subject: &'c Subject,
    damage: String,
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: anchor, {}", self.subject.name, self.damage)
    }
}

/// The log's disk with these bytes for its anchor.
fn with_anchor(subject: &Subject, bytes: &[u8]) -> MemoryDisk {
    let disk = subject.image.after_kill();
    let file = disk.open(&subject.layout.anchor).expect("it is there");
    file.set_len(bytes.len() as u64).expect("a sound disk");
    file.write_at(0, bytes).expect("a sound disk");
    file.flush().expect("a sound disk");
    disk
}

/// What is noted when only this place counts.
fn says(subject: &Subject, place: usize) -> (Notes, AnchorState) {
    let mut bytes = vec![0; subject.layout.anchor_bytes.len()];
    bytes[place..place + SECTOR].copy_from_slice(&subject.layout.anchor_bytes[place..place + SECTOR]);
    let state = anchor_state(&with_anchor(subject, &bytes)).expect("an undamaged place");
    let newest = SegmentNo(subject.newest() as u64 + 1);
    let begun = state.newest_segment == newest;
    (Notes { clean: state.clean_stop, flushed: state.flushed.0, begun }, state)
}

/// Replaces the anchor, and expects what the newer of its `sound` places says, if there is one.
fn try_anchor(subject: &Subject, bytes: &[u8], damage: String, counts: &mut Counts) {
    let sound: Vec<usize> = PLACES.into_iter().filter(|place| is_whole(subject, bytes, *place)).collect();
    let undamaged = anchor_state(&subject.image).expect("an undamaged anchor");
    let newest = |place: &usize| says(subject, *place).1 == undamaged;
    let counted = sound.iter().copied().find(newest).or(sound.first().copied());
    let left = done_to(subject, &[]);
    let (notes, expected) = match counted {
        Some(place) => {
            let notes = says(subject, place).0;
            (notes, verdict(subject, notes, &left))
        }
        // R5 where it looks as if there were none, R6 otherwise.
        None if PLACES.iter().all(|place| is_zero(bytes, *place)) => {
            (Notes::of(subject), Verdict::Refused { file: Some(subject.newest()), at: 0 })
        }
        None => (Notes::of(subject), Verdict::Refused { file: None, at: 0 }),
    };
    let trial = Trial {
        subject,
        notes,
        verdict: expected,
        lengths: left.iter().flatten().map(|bytes| bytes.len()).collect(),
        damaged: None,
        then_clean: counts.damages.is_multiple_of(2),
        what: &Case { subject, damage },
    };
    trial.run(&subject.world.with_disk(with_anchor(subject, bytes)), counts);
}

fn place(bytes: &[u8], at: usize) -> impl Iterator<Item = u8> + '_ {
    bytes.iter().copied().chain(std::iter::repeat(0)).skip(at).take(SECTOR)
}

fn is_whole(subject: &Subject, bytes: &[u8], at: usize) -> bool {
    place(bytes, at).eq(place(&subject.layout.anchor_bytes, at))
}

fn is_zero(bytes: &[u8], at: usize) -> bool {
    place(bytes, at).all(|byte| byte == 0)
}

fn subjects() -> [Subject; 3] {
    [
        subject(Shape::SeveralSegments, 12, FsyncPolicy::Always, Stop::Clean),
        subject(Shape::OneRecordABatch, 3, FsyncPolicy::Always, Stop::Killed),
        subject(Shape::SeveralSegments, 9, FsyncPolicy::EverySec, Stop::KilledNoted),
    ]
}

#[test]
fn any_flipped_bit_of_the_anchor_costs_no_batch() {
    for subject in subjects() {
        let mut counts = Counts::default();
        for at in PLACES.into_iter().flat_map(|place| place..place + SECTOR) {
            for bit in 0..8 {
                let mut bytes = subject.layout.anchor_bytes.clone();
                bytes[at] ^= 1 << bit;
                try_anchor(&subject, &bytes, format!("byte {at}, bit {bit}"), &mut counts);
            }
        }
        println!("bits of the anchor, {}: {counts:?}", subject.name);
        assert_eq!(counts.whole, 8192, "{counts:?}");
    }
}

#[test]
fn an_anchor_cut_short_or_without_a_place_is_the_other_place_or_refused() {
    for subject in subjects() {
        let mut counts = Counts::default();
        let whole = &subject.layout.anchor_bytes;
        let cuts = (0..SECTOR + 8).chain(PLACES[1] - 8..PLACES[1] + SECTOR + 8).chain([2048, whole.len() - 1]);
        for at in cuts {
            try_anchor(&subject, &whole[..at], format!("cut at byte {at}"), &mut counts);
        }
        for spoil in [0, 0xff] {
            for spoiled in [&PLACES[..1], &PLACES[1..], &PLACES] {
                let mut bytes = whole.clone();
                spoiled.iter().for_each(|place| bytes[*place..place + SECTOR].fill(spoil));
                try_anchor(&subject, &bytes, format!("places at {spoiled:?} are {spoil}"), &mut counts);
            }
        }
        println!("the anchor cut and spoiled, {}: {counts:?}", subject.name);
        assert!(counts.whole > 0 && counts.refused > 0, "{counts:?}");
        assert_eq!(counts.whole + counts.refused, counts.damages, "{counts:?}");
    }
}
