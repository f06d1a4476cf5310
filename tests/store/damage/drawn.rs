//! Damages drawn by a seed, up to three at once: many in memory, and some on real files.
//!
//! Promise: prints its seed; `HEARTH_SEED` repeats it. Must never know what is expected.
#![expect(clippy::disallowed_methods, reason = "writes real files")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hearth::core::error::OpenError;
use hearth::core::log::FsyncPolicy;
use hearth::core::log::disk::{Disk, MemoryDisk, RealDisk};

use super::exhaustive::{Case, SECTOR, assert_each_occurred, thorough, try_damages};
use super::oracle::{Damage, Left, Notes, done_to, verdict};
use super::subject::{Shape, Stop, Subject, subject};
use super::trial::{Counts, Place, Trial};
use crate::bed::{Bed, ROOT, World};
use crate::fixture::copy_to_memory;
use crate::scratch::Scratch;
use crate::script::Dice;

fn seed() -> u64 {
    let seed = std::env::var("HEARTH_SEED").map_or(20_251_130, |seed| seed.parse().expect("HEARTH_SEED is a number"));
    println!("HEARTH_SEED={seed}");
    seed
}

fn subjects() -> Vec<Subject> {
    let mut subjects = Vec::new();
    for (shape, records) in
        [(Shape::OneRecordABatch, 9), (Shape::AllInOneBatch, 12), (Shape::MixedSizes, 16), (Shape::SeveralSegments, 25)]
    {
        for (policy, stop) in [
            (FsyncPolicy::Always, Stop::Clean),
            (FsyncPolicy::Always, Stop::Killed),
            (FsyncPolicy::EverySec, Stop::Killed),
            (FsyncPolicy::EverySec, Stop::KilledNoted),
            (FsyncPolicy::Never, Stop::Killed),
        ] {
            subjects.push(subject(shape, records, policy, stop));
        }
    }
    subjects
}

/// Mostly in the newest segment and near its end, where it is not simply refused.
fn draw(dice: &mut Dice, subject: &Subject) -> Damage {
    let files = subject.layout.files.len() as u64;
    let file = if dice.below(4) == 0 { dice.below(files) as usize } else { subject.newest() };
    let (end, length) = (subject.end_of(file), subject.layout.files[file].bytes.len());
    let reach = (end + 2 * SECTOR).min(length);
    let at = match dice.below(3) {
        0 => dice.below(reach as u64) as usize,
        _ => reach - 1 - dice.below(reach.min(4 * SECTOR) as u64) as usize,
    };
    let sector = at / SECTOR * SECTOR;
    match dice.below(8) {
        0 => Damage::Cut { file, at },
        1 => Damage::CutLog { file, at },
        2 => Damage::Gone { from: file.max(1) },
        3 | 4 => Damage::Flip { file, at, bit: dice.below(8) as u8 },
        5 => Damage::Zeros { file, from: sector, to: sector + SECTOR * (1 + dice.below(3) as usize) },
        6 => Damage::Zeros { file, from: sector, to: length },
        _ => Damage::Zeros { file, from: at, to: at + 1 + dice.below(600) as usize },
    }
}

fn draw_some(dice: &mut Dice, subject: &Subject) -> Vec<Damage> {
    let count = [1, 1, 2, 2, 3][dice.below(5) as usize];
    (0..count).map(|_| draw(dice, subject)).collect()
}

#[test]
fn damages_drawn_together_are_repaired_or_refused_exactly_as_the_table_says() {
    let (mut dice, mut counts) = (Dice::new(seed()), Counts::default());
    let subjects = subjects();
    for _ in 0..if thorough() { 1_000_000 } else { 15_000 } {
        let subject = &subjects[dice.below(subjects.len() as u64) as usize];
        let damages = draw_some(&mut dice, subject);
        try_damages(subject, &damages, dice.below(2) == 0, &mut counts);
    }
    println!("drawn in memory: {counts:?}");
    assert_each_occurred(&counts);
}

/// A data directory on the machine's file system.
struct OnFiles<'f> {
    world: &'f World,
    root: PathBuf,
}

impl Place for OnFiles<'_> {
    fn open(&self) -> Result<Bed, OpenError> {
        self.world.open_in(Arc::new(RealDisk), &self.root)
    }

    fn image(&self) -> MemoryDisk {
        copy_to_memory(&self.root)
    }

    fn stamp(&self) -> u64 {
        self.image().image_hash()
    }
}

/// Writes what is on a disk in memory, from `from` down, into a directory of the machine.
fn copy_out(disk: &MemoryDisk, from: &Path, to: &Path) {
    let Ok(names) = disk.list(from) else {
        fs::write(to, crate::bed::bytes_of(disk, from)).expect("room for a small file");
        return;
    };
    fs::create_dir_all(to).expect("room for a directory");
    for name in names {
        copy_out(disk, &from.join(&name), &to.join(&name));
    }
}

fn damage_files(subject: &Subject, left: &Left<'_>, root: &Path) {
    for (file, left) in subject.layout.files.iter().zip(left) {
        let path = root.join(file.path.strip_prefix(ROOT).expect("below the root"));
        match left {
            Some(bytes) => fs::write(&path, bytes).expect("room for a small file"),
            None => fs::remove_file(&path).expect("it is there"),
        }
    }
}

#[test]
fn real_files_are_repaired_or_refused_exactly_as_the_table_says() {
    let (mut dice, mut counts) = (Dice::new(seed() ^ 1), Counts::default());
    let subjects = subjects();
    let wanted = if thorough() { 2_000 } else { 200 };
    while counts.damages < wanted {
        let subject = &subjects[dice.below(subjects.len() as u64) as usize];
        let damages = draw_some(&mut dice, subject);
        let (notes, left) = (Notes::of(subject), done_to(subject, &damages));
        let scratch = Scratch::new("damage");
        let root = scratch.path().join("data");
        copy_out(&subject.image, Path::new(ROOT), &root);
        damage_files(subject, &left, &root);
        let trial = Trial {
            subject,
            notes,
            verdict: verdict(subject, notes, &left),
            lengths: left.iter().map(|bytes| bytes.as_ref().map_or(0, |bytes| bytes.len())).collect(),
            damaged: damages.first().map(Damage::file),
            then_clean: dice.below(2) == 0,
            what: &Case { subject, damages: &damages },
        };
        trial.run(&OnFiles { world: &subject.world, root }, &mut counts);
    }
    println!("drawn on files: {counts:?}");
    assert_each_occurred(&counts);
}
