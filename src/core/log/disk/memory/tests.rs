//! What the simulated disk promises about power cuts and kills, one test a promise.
//!
//! Faults and counting are in `tests/faults.rs`, the model-based property tests in `tests/model.rs`,
//! and the contract both disks share is in `behaviour.rs`.

mod faults;
mod model;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::core::log::disk::behaviour;

fn path(name: &str) -> &Path {
    Path::new(name)
}

fn content(disk: &MemoryDisk, name: &str) -> Option<Vec<u8>> {
    disk.exists(path(name)).unwrap().then(|| {
        let file = disk.open(path(name)).unwrap();
        let mut bytes = vec![0; file.len().unwrap() as usize];
        assert_eq!(file.read_at(0, &mut bytes).unwrap(), bytes.len());
        bytes
    })
}

/// A file in `/d` whose name and bytes are durable.
fn durable_file(disk: &MemoryDisk, name: &str, bytes: &[u8]) -> Arc<dyn DiskFile> {
    disk.create_dir(path("/d")).unwrap();
    let file = disk.create(path(name)).unwrap();
    file.write_at(0, bytes).unwrap();
    file.flush().unwrap();
    disk.flush_dir(path("/d")).unwrap();
    file
}

fn all_lost(disk: &MemoryDisk) -> MemoryDisk {
    disk.after_power_cut(&mut everything_lost())
}

fn all_kept(disk: &MemoryDisk) -> MemoryDisk {
    disk.after_power_cut(&mut everything_kept())
}

/// Every disk a power cut could leave, by walking the tree of answers to its end.
fn every_outcome(disk: &MemoryDisk) -> Vec<MemoryDisk> {
    let mut outcomes = Vec::new();
    let mut answers: Vec<Fate> = Vec::new();
    loop {
        let mut asked = 0;
        outcomes.push(disk.after_power_cut(&mut |_| {
            if asked == answers.len() {
                answers.push(Fate::Kept);
            }
            asked += 1;
            answers[asked - 1]
        }));
        while answers.last() == Some(&Fate::Lost) {
            answers.pop();
        }
        match answers.last_mut() {
            Some(last) => *last = Fate::Lost,
            None => return outcomes,
        }
    }
}

fn distinct(outcomes: &[MemoryDisk]) -> usize {
    outcomes.iter().map(MemoryDisk::image_hash).collect::<BTreeSet<_>>().len()
}

#[test]
fn the_simulated_disk_keeps_the_contract() {
    behaviour::check(&MemoryDisk::new(), path("/"));
}

#[test]
fn what_was_flushed_survives_and_what_was_not_may_not() {
    let disk = MemoryDisk::new();
    let file = durable_file(&disk, "/d/f", b"flushed");
    file.write_at(0, b"CHANGED and longer").unwrap();
    assert_eq!(content(&all_lost(&disk), "/d/f").unwrap(), b"flushed");
    assert_eq!(content(&all_kept(&disk), "/d/f").unwrap(), b"CHANGED and longer");
    assert_eq!(content(&disk, "/d/f").unwrap(), b"CHANGED and longer");
}

#[test]
fn a_file_whose_directory_was_not_flushed_is_gone() {
    let disk = MemoryDisk::new();
    disk.create_dir(path("/d")).unwrap();
    let file = disk.create(path("/d/f")).unwrap();
    file.write_at(0, b"bytes").unwrap();
    file.flush().unwrap();
    assert_eq!(content(&all_lost(&disk), "/d/f"), None);
    disk.flush_dir(path("/d")).unwrap();
    assert_eq!(content(&all_lost(&disk), "/d/f").unwrap(), b"bytes");
}

#[test]
fn a_directory_is_durable_when_create_dir_returns_and_not_before() {
    let disk = MemoryDisk::new();
    disk.create_dir(path("/a/b")).unwrap();
    assert_eq!(disk.effects(), 4);
    assert_eq!(all_lost(&disk).list(path("/a")).unwrap(), ["b"]);
    for effects in 0..4 {
        let disk = MemoryDisk::new();
        disk.power_off_after(effects);
        disk.create_dir(path("/a/b")).unwrap_err();
        let left = all_lost(&disk);
        assert_eq!(left.exists(path("/a")).unwrap(), effects >= 2, "after {effects}");
        assert!(!left.exists(path("/a/b")).unwrap());
        assert_eq!(every_outcome(&disk).len(), 1 + (effects % 2) as usize);
    }
}

#[test]
fn unflushed_sectors_tear_independently() {
    let disk = MemoryDisk::new();
    let file = durable_file(&disk, "/d/f", &[1; 2048]);
    file.write_at(100, &[2; 1500]).unwrap();
    let outcomes = every_outcome(&disk);
    assert_eq!((outcomes.len(), distinct(&outcomes)), (16, 16));
    let mut edges = BTreeSet::new();
    for left in &outcomes {
        let bytes = content(left, "/d/f").unwrap();
        assert_eq!(bytes.len(), 2048);
        assert_eq!((&bytes[..100], &bytes[1600..]), (&[1; 100][..], &[1; 448][..]));
        for piece in [100..512, 512..1024, 1024..1536, 1536..1600] {
            assert!(bytes[piece.clone()].iter().all(|byte| *byte == bytes[piece.start]));
        }
        edges.insert([bytes[100], bytes[512], bytes[1024], bytes[1536]]);
    }
    assert_eq!(edges.len(), 16);
}

#[test]
fn a_lost_length_takes_what_lies_beyond_and_a_kept_one_shows_zeros() {
    let disk = MemoryDisk::new();
    let file = durable_file(&disk, "/d/f", &[1; 100]);
    file.write_at(100, &[2; 1000]).unwrap();
    let left = disk.after_power_cut(&mut |unflushed| match unflushed {
        Unflushed::Length { from: 100, to: 1100, .. } => Fate::Lost,
        Unflushed::Sector { position: 0, .. } => Fate::Kept,
        other => panic!("{other:?} lies beyond the end"),
    });
    assert_eq!(content(&left, "/d/f").unwrap(), [1; 100]);
    left.open(path("/d/f")).unwrap().set_len(200).unwrap();
    let grown = [[1; 100], [0; 100]].concat();
    assert_eq!(content(&left, "/d/f").unwrap(), grown);
    let left = disk.after_power_cut(&mut |unflushed| match unflushed {
        Unflushed::Sector { position: 512, .. } => Fate::Lost,
        _ => Fate::Kept,
    });
    let bytes = content(&left, "/d/f").unwrap();
    assert_eq!(bytes[..512], [vec![1; 100], vec![2; 412]].concat());
    assert_eq!(bytes[512..], [vec![0; 512], vec![2; 76]].concat());
}

#[test]
fn a_lost_cut_brings_back_what_was_cut_off() {
    let disk = MemoryDisk::new();
    let file = durable_file(&disk, "/d/f", &[7; 10_000]);
    file.set_len(300).unwrap();
    assert_eq!(content(&all_lost(&disk), "/d/f").unwrap(), [7; 10_000]);
    assert_eq!(content(&all_kept(&disk), "/d/f").unwrap(), [7; 300]);
    // One question for the length, and one for the sector the cut went through.
    let mut asked = 0;
    disk.after_power_cut(&mut |_| {
        asked += 1;
        Fate::Lost
    });
    assert_eq!(asked, 2);
    file.flush().unwrap();
    assert_eq!(content(&all_lost(&disk), "/d/f").unwrap(), [7; 300]);
}

#[test]
fn a_removed_file_comes_back_with_its_flushed_content() {
    let disk = MemoryDisk::new();
    let file = durable_file(&disk, "/d/f", b"flushed");
    file.write_at(0, b"CHANGED").unwrap();
    disk.remove(path("/d/f")).unwrap();
    let left = disk.after_power_cut(&mut |unflushed| match unflushed {
        Unflushed::Entry { .. } => Fate::Lost,
        other => panic!("{other:?} has no way back"),
    });
    assert_eq!(content(&left, "/d/f").unwrap(), b"flushed");
    assert_eq!(content(&all_kept(&disk), "/d/f"), None);
    disk.flush_dir(path("/d")).unwrap();
    assert_eq!(content(&all_lost(&disk), "/d/f"), None);
}

/// The classic way to replace a small file: the new one beside it, flushed, then renamed over it.
fn replace(disk: &MemoryDisk, flush: bool) -> io::Result<()> {
    let file = disk.create(path("/d/new"))?;
    file.write_at(0, &[2; 1024])?;
    if flush {
        file.flush()?;
    }
    disk.rename(path("/d/new"), path("/d/f"))?;
    disk.flush_dir(path("/d"))
}

fn every_outcome_of_a_replacement(flush: bool) -> BTreeSet<Vec<u8>> {
    let mut seen = BTreeSet::new();
    for effects in 0.. {
        let disk = MemoryDisk::new();
        durable_file(&disk, "/d/f", &[1; 1024]);
        disk.power_off_after(disk.effects() + effects);
        let done = replace(&disk, flush);
        for left in every_outcome(&disk) {
            seen.insert(content(&left, "/d/f").expect("one of the two is there"));
        }
        if done.is_ok() {
            break;
        }
    }
    seen
}

#[test]
fn a_flushed_file_renamed_over_another_is_the_old_or_the_new_one() {
    let expected = BTreeSet::from([vec![1; 1024], vec![2; 1024]]);
    assert_eq!(every_outcome_of_a_replacement(true), expected);
    // And the disk is cruel enough to show what the flush is for: an empty file, a torn one.
    let seen = every_outcome_of_a_replacement(false);
    assert!(seen.contains(&Vec::new()) && seen.contains(&[vec![0; 512], vec![2; 512]].concat()));
}

#[test]
fn changes_of_a_directory_fall_as_a_prefix_and_directories_fall_apart() {
    let disk = MemoryDisk::new();
    disk.create_dir(path("/d")).unwrap();
    disk.create_dir(path("/e")).unwrap();
    for name in ["/d/3", "/e/x", "/d/1", "/d/2"] {
        disk.create(path(name)).unwrap();
    }
    let mut seen = BTreeSet::new();
    for left in every_outcome(&disk) {
        seen.insert((left.list(path("/d")).unwrap().join(""), left.list(path("/e")).unwrap().join("")));
    }
    let expected = ["", "3", "13", "123"].map(|d| ["", "x"].map(|e| (d.to_owned(), e.to_owned())));
    assert_eq!(seen, expected.into_iter().flatten().collect());
}

#[test]
fn questions_come_in_one_order_and_a_seed_means_one_outcome() {
    let disk = MemoryDisk::new();
    let file = durable_file(&disk, "/d/b", &[1; 512]);
    file.write_at(0, &[2; 5000]).unwrap();
    disk.create(path("/d/a")).unwrap().write_at(0, b"x").unwrap();
    disk.rename(path("/d/b"), path("/d/c")).unwrap();
    let ask = || {
        let mut asked = Vec::new();
        disk.after_power_cut(&mut |unflushed| {
            asked.push(format!("{unflushed:?}"));
            Fate::Kept
        });
        asked
    };
    let asked = ask();
    assert_eq!(asked, ask());
    assert_eq!(asked.len(), 2 + 2 + 11);
    assert!(asked[0].contains("Created") && asked[1].contains(r#"Renamed { from: "b" }"#));
    assert!(asked[2].contains("/d/a") && asked[4].contains("/d/c"));
    let states = |seeds: std::ops::Range<u64>| -> Vec<u64> {
        seeds.map(|seed| disk.after_power_cut(&mut torn(seed)).image_hash()).collect()
    };
    assert_eq!(states(0..200), states(0..200));
    assert!(states(0..200).into_iter().collect::<BTreeSet<_>>().len() > 100);
}

#[test]
fn a_kill_takes_nothing_and_flushes_nothing() {
    let disk = MemoryDisk::new();
    let file = durable_file(&disk, "/d/f", b"flushed");
    file.write_at(0, b"CHANGED").unwrap();
    disk.create(path("/d/g")).unwrap();
    let restarted = disk.after_kill();
    assert_eq!(restarted.image_hash(), disk.image_hash());
    assert_eq!(restarted.effects(), 0);
    let left = all_lost(&restarted);
    assert_eq!(content(&left, "/d/f").unwrap(), b"flushed");
    assert_eq!(content(&left, "/d/g"), None);
    file.write_at(0, b"by the dead").unwrap();
    assert_eq!(content(&restarted, "/d/f").unwrap(), b"CHANGED");
}

#[test]
fn what_a_cut_leaves_is_flushed_and_independent() {
    let disk = MemoryDisk::new();
    let file = durable_file(&disk, "/d/f", b"old");
    file.write_at(0, b"new").unwrap();
    disk.create(path("/d/g")).unwrap();
    let left = all_kept(&disk);
    assert_eq!(left.image_hash(), all_lost(&left).image_hash());
    file.write_at(0, b"---").unwrap();
    left.remove(path("/d/f")).unwrap();
    assert_eq!(content(&all_lost(&left), "/d/f").unwrap(), b"new");
    assert_eq!(content(&disk, "/d/f").unwrap(), b"---");
}
