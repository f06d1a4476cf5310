//! What opening needs and tells, whatever the length of the log: few open files, no batch held that is known to be
//! committed, how far it has come.

use std::path::Path;

use super::*;
use crate::core::entropy::Entropy;
use crate::core::log::FsyncPolicy;
use crate::core::log::disk::{Counting, MemoryDisk};
use crate::core::log::frame::{BatchBuilder, BatchType, Place};
use crate::core::types::{CacheName, Kind, ShardId, ShardNo};

const SEGMENTS: u64 = 600;

fn dir() -> &'static Path {
    Path::new("/log")
}

fn options() -> LogOptions {
    LogOptions {
        shard: ShardId { kind: Kind::Cache, cache: CacheName::default_cache(), shard: ShardNo(0) },
        segment_bytes: 1024,
        policy: FsyncPolicy::Always,
        max_open_segments: 3,
        entropy: Arc::new(Entropy::seeded(7)),
    }
}

fn open(disk: Arc<dyn Disk>, progress: &Progress) -> (Recovered, Vec<u64>) {
    let mut replayed = Vec::new();
    let recovered = recover(disk, dir(), options(), progress, |batch| {
        replayed.push(batch.header.index.0);
        Ok(())
    });
    (recovered.unwrap(), replayed)
}

/// One batch to a segment, each saying that the one before is committed; flushed and noted up to the last but `unnoted`.
fn log(unnoted: u64, clean: bool) -> MemoryDisk {
    let disk = MemoryDisk::new();
    let (mut log, _) = open(Arc::new(disk.clone()), &Progress::default()).0.into_writer().unwrap();
    for _ in 0..SEGMENTS {
        let tail = log.tail();
        let mut builder = BatchBuilder::new(BatchType::Data, tail.next_offset);
        builder.push(|into| into.resize(into.len() + 400, 7));
        let before = Index(tail.next_index.0 - 1);
        let place = Place { index: tail.next_index, generation: FIRST_GENERATION, durable: before, committed: before };
        log.append(&builder.finish(Millis(0)), place, Millis(0)).unwrap();
    }
    let last = Index(log.tail().next_index.0 - 1);
    log.flushed_upto(last, log.flush_target().unwrap().flush()).unwrap();
    log.note_flushed(clean).unwrap();
    assert_eq!(log.segments().held().len() as u64, SEGMENTS);
    if unnoted > 0 {
        let state = log.anchor().state().clone();
        let mut anchor = Anchor::open(&disk, dir(), &state).unwrap().unwrap();
        let noted = Index(last.0 - unnoted);
        anchor.update_both(|state| (state.commit_floor, state.flushed) = (noted, noted)).unwrap();
    }
    disk
}

#[test]
fn a_log_of_many_segments_is_opened_with_a_handful_of_files() {
    for clean in [false, true] {
        let disk = Arc::new(Counting::of(log(0, clean)));
        let (recovered, replayed) = open(Arc::clone(&disk) as Arc<dyn Disk>, &Progress::default());
        assert_eq!(disk.open_now(), 0, "nothing stays open behind a survey");
        let (log, _) = recovered.into_writer().unwrap();
        assert_eq!(replayed.len() as u64, SEGMENTS);
        assert!(disk.opened() > SEGMENTS && disk.peak() <= 3, "{} at a time", disk.peak());
        // The anchor, and after a clean stop the segment that takes the next batch.
        assert_eq!(disk.open_now(), 1 + usize::from(clean));
        drop(log);
    }
}

#[test]
fn only_batches_that_nothing_says_are_committed_are_held() {
    // Each batch says that the one before it is committed, so nothing but the last is ever in doubt.
    for (unnoted, held) in [(0, 0), (1, 1), (100, 1)] {
        let (recovered, replayed) = open(Arc::new(log(unnoted, false)), &Progress::default());
        assert_eq!(recovered.survey.uncommitted.len(), held, "{unnoted} not noted");
        assert_eq!(replayed.len() as u64 + held as u64, SEGMENTS);
        assert!(replayed.windows(2).all(|pair| pair[0] + 1 == pair[1]), "in order");
        assert_eq!(replayed.last(), Some(&recovered.survey.committed.0));
    }
}

#[test]
fn progress_is_told_while_batches_are_replayed_and_ends_at_the_whole() {
    let disk = Arc::new(log(0, true));
    let progress = Progress::default();
    let mut seen = Vec::new();
    recover(disk, dir(), options(), &progress, |_| {
        seen.push(progress.read());
        Ok(())
    })
    .unwrap();
    assert!(seen.iter().all(|(total, done)| *total == seen[0].0 && done < total));
    assert!(seen.windows(2).all(|pair| pair[0].1 < pair[1].1));
    let (total, done) = progress.read();
    assert_eq!((total, done), (seen[0].0, seen[0].0));
}

#[test]
fn an_anchor_that_changed_while_the_log_was_read_is_not_written_over() {
    let disk = log(0, true);
    let (recovered, _) = open(Arc::new(disk.clone()), &Progress::default());
    let state = recovered.survey.facts.anchor.state().unwrap().clone();
    Anchor::open(&disk, dir(), &state).unwrap().unwrap().update(|state| state.generation = Generation(9)).unwrap();
    let before = disk.image_hash();
    let Err(error) = recovered.into_writer() else { panic!("it must not go on") };
    assert!(error.to_string().contains("somebody changed it"), "{error}");
    assert_eq!(disk.image_hash(), before);
}
