//! What is true of an open store at any time, whatever compaction is about to do; and of two others: one that was started
//! from nothing but what the log holds, one whose anchor is as old as an anchor may be.
//!
//! Must never change the store.

use std::collections::BTreeMap;

use hearth::core::index::{Index, Live};
use hearth::core::log::anchor::{Anchor, AnchorRead, AnchorState};
use hearth::core::log::disk::{MemoryDisk, everything_lost};
use hearth::core::log::frame::RECORD_HEADER_BYTES;
use hearth::core::record::cache::CacheRecord;
use hearth::core::record::control::ControlRecord;
use hearth::core::shard::apply::apply;
use hearth::core::types::{Index as BatchIndex, Location, Millis, Offset, SegmentNo};

use crate::bed::{Bed, World, control_of, each_batch, segment_files, shard_dir};
use crate::model::{Held, State};

pub use hearth::core::log::open::FIRST_OFFSET;

/// Everything at once.
pub fn everything(world: &World, bed: &Bed, applied: &State) {
    let contents = bed.contents().expect("everything the index names is readable");
    same(&contents, applied, world.now());
    sums(bed);
    nothing_below_the_base(world, bed);
}

/// `found` holds what the map holds, each with its value, expiry and revision; only lapsed ones may be missing.
fn same(found: &State, expected: &State, now: Millis) {
    for (key, held) in found {
        assert_eq!(Some(held), expected.get(key), "{} came back or changed", String::from_utf8_lossy(key));
    }
    for (key, held) in expected {
        let there = found.contains_key(key) || held.expires_at.has_lapsed(now);
        assert!(there, "{} is gone: {held:?}", String::from_utf8_lossy(key));
    }
}

/// The index's live numbers are those of a recount.
fn sums(bed: &Bed) {
    let view = bed.shard.index.view();
    let mut by_segment: BTreeMap<SegmentNo, Live> = BTreeMap::new();
    let mut expiring = 0;
    for (_, entry) in view.iter() {
        let live = by_segment.entry(entry.location.segment).or_default();
        live.entries += 1;
        live.bytes += u64::from(entry.location.length);
        expiring += usize::from(entry.expires_at != Millis::NEVER);
    }
    let sum = |live: &mut dyn Iterator<Item = &Live>| {
        live.fold(Live::default(), |sum, live| Live {
            entries: sum.entries + live.entries,
            bytes: sum.bytes + live.bytes,
        })
    };
    assert_eq!((view.live(), view.expiring()), (sum(&mut by_segment.values()), expiring), "live in all, and expiring");
    let held = bed.shard.segments.held();
    for number in held.iter().map(|segment| segment.number).chain(by_segment.keys().copied()) {
        let of = by_segment.get(&number).copied().unwrap_or_default();
        let below = sum(&mut by_segment.range(..number).map(|(_, live)| live));
        assert_eq!((view.live_of(number), view.live_below(number)), (of, below), "live in and below {number:?}");
    }
}

/// Nothing is located below the base, and once a trim was carried out no file is there either.
fn nothing_below_the_base(world: &World, bed: &Bed) {
    let held = bed.shard.segments.held();
    let first = held.first().expect("an open log has a segment");
    for (key, entry) in bed.shard.index.view().iter() {
        let there = held.iter().any(|segment| segment.number == entry.location.segment);
        assert!(
            there && entry.offset >= first.base_offset,
            "{} is located in what is gone",
            String::from_utf8_lossy(key)
        );
    }
    if world.disk.is_off() {
        return;
    }
    let start = anchor_state(&world.disk).start;
    assert_eq!(start.offset, first.base_offset, "the anchor says where the log begins");
    let files: Vec<SegmentNo> = segment_files(&world.disk).into_iter().map(|(number, _)| number).collect();
    let held: Vec<SegmentNo> = held.iter().map(|segment| segment.number).collect();
    // A file made ahead has no place in the table yet.
    assert_eq!(&files[..held.len()], held, "the files of the log");
    assert!(files.len() <= held.len() + 1, "{files:?}");
}

fn anchor_state(disk: &MemoryDisk) -> AnchorState {
    match Anchor::read(disk, &shard_dir(disk)).expect("a sound disk") {
        AnchorRead::Sound(state) => state,
        _ => panic!("an open log has a sound anchor"),
    }
}

/// Applies what the log holds from its base on to a fresh index, as a follower does that starts there; the whole state must
/// come of it. Gives whether the base stands behind the beginning of the log.
pub fn bootstrap(disk: &MemoryDisk, applied: &State, now: Millis) -> bool {
    let mut base = anchor_state(disk).start.index;
    each_batch(disk, |_, batch| {
        if let Some(ControlRecord::Trim(trim)) = control_of(batch) {
            base = base.max(trim.base_index);
        }
    });
    let (index, mut values) = (Index::default(), BTreeMap::new());
    let mut begins_later = false;
    each_batch(disk, |segment, batch| {
        if batch.header.index < base {
            begins_later = true;
            return;
        }
        let at = Location { segment, position: batch.position as u32, length: batch.header.length };
        apply(&batch.header, batch.bytes, at, &index).expect("a sound record");
        for (_, entry) in index.view().iter().filter(|(_, entry)| entry.location.segment == segment) {
            let at = entry.location.position as usize;
            if let Some(frame) = at.checked_sub(batch.position as usize).and_then(|at| batch.bytes.get(at..)) {
                let body = &frame[RECORD_HEADER_BYTES..entry.location.length as usize];
                values.insert(entry.offset, value_in(body));
            }
        }
    });
    let mut found = State::new();
    for (key, entry) in index.view().iter() {
        let value = values[&entry.offset].clone();
        found.insert(key.to_vec(), Held { value, expires_at: entry.expires_at, revision: entry.revision.0 });
    }
    same(&found, applied, now);
    begins_later || base > hearth::core::log::open::FIRST_INDEX
}

fn value_in(body: &[u8]) -> Vec<u8> {
    match CacheRecord::decode(body) {
        Ok(CacheRecord::Put { value, .. } | CacheRecord::Carried { value, .. }) => value.to_vec(),
        other => panic!("the index names {other:?}"),
    }
}

/// Opens a copy of the log whose anchor knows only that everything below the base is committed and flushed, as it may be
/// right after a trim; then once more after a power cut. Gives whether that was less than the true one knew.
pub fn with_oldest_anchor(world: &World, applied: &State) -> bool {
    let world = world.with_disk(world.disk.after_kill());
    let state = anchor_state(&world.disk);
    let anchor = Anchor::open(&world.disk, &shard_dir(&world.disk), &state).expect("a sound disk");
    let mut anchor = anchor.expect("it still says that");
    let written = anchor.update_both(|state| {
        let before = BatchIndex(state.start.index.0 - 1);
        (state.commit_floor, state.flushed, state.flushed_next_offset) = (before, before, state.start.offset);
        state.clean_stop = false;
    });
    written.expect("a sound disk");
    let told_less = state.commit_floor > anchor.state().commit_floor;
    let next_offset = tail_of(&world.disk);
    let bed = world.open().expect("an old anchor is no damage");
    assert!(bed.report.unclean && bed.shard.frontier.applied_next() > next_offset);
    everything(&world, &bed, applied);
    drop(bed);
    let again = world.with_disk(world.disk.after_power_cut(&mut everything_lost()));
    let mut bed = again.open().expect("it opens again");
    everything(&again, &bed, applied);
    bed.put_acknowledged(b"one more", b"value");
    told_less
}

/// One past the last offset that stands in the log.
fn tail_of(disk: &MemoryDisk) -> Offset {
    let mut next = FIRST_OFFSET;
    each_batch(disk, |_, batch| next = batch.header.next_offset());
    next
}
