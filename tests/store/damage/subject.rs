//! The logs that are damaged: 1 to 80 records in five shapes, stopped in three ways, under each fsync policy.
//!
//! Promise: beside the log it is known, from what was done and not from what was found, which batches were flushed, how far
//! the anchor notes that, and what the log holds after each of its batches. Must never know how a log is opened.

use hearth::core::log::FsyncPolicy;
use hearth::core::log::anchor::Anchor;
use hearth::core::log::disk::{Disk, MemoryDisk};
use hearth::core::log::segment::file_name;
use hearth::core::op::Expiry;
use hearth::core::types::{Epoch, Index, Offset, SegmentNo};

use crate::bed::{Bed, World, policy_name, segment_files, shard_dir};
use crate::layout::{Layout, Standing, anchor_state, layout};
use crate::model::{Ask, State};
use crate::writer::{compact, delete, put, write_batch};

/// How the records of a log stand in batches and segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    OneRecordABatch,
    AllInOneBatch,
    /// Values of no byte up to several sectors, some of zeros; batches of one to four records; deletes.
    MixedSizes,
    /// The same over several small segments, with a clean stop and a kill on the way.
    SeveralSegments,
    /// Several small segments, of which compaction has trimmed the first away before the last records were written.
    Trimmed,
}

/// How the last process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Clean,
    /// Before the anchor noted any batch of the end.
    Killed,
    /// After the anchor noted everything that was flushed.
    KilledNoted,
}

/// One log, stopped.
pub struct Subject {
    pub name: String,
    pub stop: Stop,
    pub policy: FsyncPolicy,
    pub world: World,
    /// The disk after the stop, with everything of it flushed.
    pub image: MemoryDisk,
    pub layout: Layout,
    /// What the log holds when the batch of the same place in `layout.batches` is its last one.
    pub states: Vec<State>,
    /// The newest batch that was flushed.
    pub flushed: u64,
    /// The newest batch of which the anchor says so.
    pub noted: u64,
    pub epoch: Epoch,
}

impl Shape {
    fn segment_bytes(self) -> u32 {
        match self {
            Self::OneRecordABatch | Self::AllInOneBatch => 16 * 1024,
            Self::MixedSizes => 32 * 1024,
            Self::SeveralSegments | Self::Trimmed => 4096,
        }
    }

    /// The writes of a log of `records` records, batch by batch.
    fn batches(self, records: usize) -> Vec<Vec<Ask>> {
        let small = |number: usize| {
            put(format!("k{}", number % 7).as_bytes(), &vec![number as u8; 1 + number * 5 % 23], Expiry::Never)
        };
        match self {
            Self::OneRecordABatch => (1..=records).map(|number| vec![small(number)]).collect(),
            Self::AllInOneBatch => vec![(1..=records).map(small).collect()],
            Self::MixedSizes => mixed(records, &[0, 3, 600, 40, 1100, 513, 8, 17, 250, 1500]),
            Self::SeveralSegments => mixed(records, &[120, 0, 460, 31, 512, 8]),
            Self::Trimmed => {
                let stays = vec![put(b"stays", &[7; 300], Expiry::Never)];
                std::iter::once(stays).chain(mixed(records - 1, &[600, 0, 460, 350, 31, 512])).collect()
            }
        }
    }
}

/// Batches of one to four records with values of these lengths. Every third value is zeros, some end in zeros, some
/// begin with them: a written zero must not be taken for a sector that never reached the disk, nor the other way round.
fn mixed(records: usize, lengths: &[usize]) -> Vec<Vec<Ask>> {
    let (mut batches, mut open, mut live) = (Vec::new(), Vec::new(), std::collections::BTreeSet::new());
    for number in 1..=records {
        let key = format!("key-{}", number * 3 % 11).into_bytes();
        let length = lengths[number * 7 % lengths.len()];
        let mut value = vec![number as u8; length];
        match number % 6 {
            0 | 3 => value.fill(0),
            1 => value[length / 2..].fill(0),
            4 => value[..length / 2].fill(0),
            _ => {}
        }
        if number % 5 == 4 && live.remove(&key) {
            open.push(delete(&key));
        } else {
            open.push(put(&key, &value, Expiry::Never));
            live.insert(key);
        }
        if open.len() > batches.len() % 4 || number == records {
            batches.push(std::mem::take(&mut open));
        }
    }
    batches
}

/// A log being written, and what is known of its flushes.
struct Writing {
    world: World,
    bed: Bed,
    state: State,
    /// The offset after each batch that was written, with what the log held then.
    states: Vec<(Offset, State)>,
    /// Everything below these offsets was flushed when the log ended there.
    flushed_below: Vec<Offset>,
    /// Everything below this offset was flushed, and noted, when the last process opened the log.
    noted_below: Offset,
}

impl Writing {
    fn new(policy: FsyncPolicy, segment_bytes: u32) -> Self {
        let world = World::new(policy, segment_bytes);
        let bed = world.open().expect("a new store");
        let noted_below = Offset(1);
        Self { world, bed, state: State::new(), states: Vec::new(), flushed_below: vec![noted_below], noted_below }
    }

    fn end(&self) -> Offset {
        self.bed.shard.frontier.applied_next()
    }

    /// Under `everysec` every third batch is followed by a flush.
    fn batch(&mut self, asks: &[Ask]) {
        write_batch(&mut self.bed, &mut self.state, asks);
        self.states.push((self.end(), self.state.clone()));
        self.world.clock.advance(400);
        let flushes = self.bed.driver.counts().flushes.load(std::sync::atomic::Ordering::Relaxed);
        self.bed.driver.flush_if_due().expect("a sound disk");
        let flushed = self.bed.driver.counts().flushes.load(std::sync::atomic::Ordering::Relaxed) > flushes;
        if flushed || self.world.options.policy == FsyncPolicy::Always {
            self.flushed_below.push(self.end());
        }
    }

    /// A trim flushes, and notes, everything before it.
    fn compacted(&mut self) {
        compact(&mut self.bed);
        self.flushed_below.push(self.end());
        self.noted_below = self.end();
    }

    fn close(&mut self) {
        self.bed.driver.close().expect("a sound disk");
        self.flushed_below.push(self.end());
        self.noted_below = self.end();
    }

    /// The process is gone, and the next one flushes whatever it finds before it serves it.
    fn restarted(self) -> Self {
        let Self { world, bed, state, states, mut flushed_below, .. } = self;
        let noted_below = bed.shard.frontier.applied_next();
        flushed_below.push(noted_below);
        drop(bed);
        let bed = world.open().expect("it opens again");
        Self { world, bed, state, states, flushed_below, noted_below }
    }
}

/// A log of `records` records in `shape`, stopped.
pub fn subject(shape: Shape, records: usize, policy: FsyncPolicy, stop: Stop) -> Subject {
    subject_of(shape, &shape.batches(records), shape.segment_bytes(), policy, stop)
}

/// A log of these batches, stopped.
pub fn subject_of(shape: Shape, batches: &[Vec<Ask>], segment_bytes: u32, policy: FsyncPolicy, stop: Stop) -> Subject {
    let mut writing = Writing::new(policy, segment_bytes);
    for (number, asks) in batches.iter().enumerate() {
        if shape == Shape::SeveralSegments && number == batches.len() / 3 {
            writing.close();
            writing = writing.restarted();
        }
        if shape == Shape::SeveralSegments && number == batches.len() * 2 / 3 {
            writing = writing.restarted();
        }
        if shape == Shape::Trimmed && number == batches.len() * 5 / 6 {
            writing.compacted();
        }
        writing.batch(asks);
    }
    if stop == Stop::Clean {
        writing.close();
    }
    let records: usize = batches.iter().map(Vec::len).sum();
    let name = format!("{shape:?}, {records} records, {}, {stop:?}", policy_name(policy));
    stopped(writing, name, policy, stop)
}

fn stopped(writing: Writing, name: String, policy: FsyncPolicy, stop: Stop) -> Subject {
    let Writing { world, bed, states, flushed_below, noted_below, .. } = writing;
    let epoch = bed.report.epoch;
    drop(bed);
    let image = world.disk.after_kill();
    for (_, path) in segment_files(&image) {
        image.open(&path).expect("it is there").flush().expect("a sound disk");
    }
    let found = layout(&image);
    let last_below = |offset: Offset| {
        let below = found.batches.iter().rfind(|batch| batch.header.next_offset() <= offset);
        below.map_or(1, |batch| batch.header.index.0)
    };
    // A segment is flushed, and that is noted, before the next one is begun.
    let last_file = found.files.len() - 1;
    let before_last_file = found.batches.iter().rfind(|batch| batch.file < last_file);
    let rolled = before_last_file.map_or(1, |batch| batch.header.index.0);
    let flushed = flushed_below.iter().map(|offset| last_below(*offset)).max().unwrap_or_default().max(rolled);
    let noted = match stop {
        Stop::Clean | Stop::KilledNoted => flushed,
        Stop::Killed => last_below(noted_below).max(rolled),
    };
    let written_after = |batch: &Standing| {
        let ends = flushed_below.iter().filter(|offset| **offset <= batch.header.first_offset);
        let former = found.batches.iter().rfind(|former| former.file < batch.file);
        let former = former.map_or(1, |former| former.header.index.0);
        ends.map(|offset| last_below(*offset)).max().unwrap_or(1).max(former)
    };
    for batch in &found.batches {
        let claim = batch.header.durable.0;
        match policy {
            FsyncPolicy::Always => {
                assert_eq!(claim, batch.header.index.0 - 1, "{name}: each is flushed before the next")
            }
            _ => assert!(claim <= written_after(batch), "{name}: a batch claims what was not flushed"),
        }
    }
    note(&image, stop, flushed, &found);
    let layout = layout(&image);
    let mut of_batches = Vec::new();
    for batch in &layout.batches {
        let written = states.iter().rfind(|(next, _)| *next <= batch.header.next_offset());
        of_batches.push(written.map(|(_, state)| state.clone()).unwrap_or_default());
    }
    let subject = Subject { name, stop, policy, world, image, layout, states: of_batches, flushed, noted, epoch };
    let anchor = anchor_state(&subject.image).expect("the anchor is sound");
    let says = (anchor.flushed.0, anchor.clean_stop);
    assert_eq!(says, (subject.noted, stop == Stop::Clean), "{}: the anchor", subject.name);
    subject
}

/// Lets the anchor note what was flushed, as it does about a second after a batch.
fn note(image: &MemoryDisk, stop: Stop, flushed: u64, found: &Layout) {
    if stop != Stop::KilledNoted {
        return;
    }
    let state = anchor_state(image).expect("the anchor is sound");
    let anchor = Anchor::open(image, &shard_dir(image), &state).expect("a sound disk");
    let last = found.batches.last().expect("a log has batches").header;
    let noted = anchor.expect("it says that").update(|state| {
        (state.flushed, state.commit_floor) = (Index(flushed), Index(flushed));
        if last.index == state.flushed {
            state.flushed_next_offset = last.next_offset();
        }
    });
    noted.expect("a sound disk");
}

impl Subject {
    /// The same, with a file of zeros made ahead for the next segment.
    pub fn with_spare(mut self) -> Self {
        let (SegmentNo(newest), _) = *segment_files(&self.image).last().expect("a segment");
        let dir = shard_dir(&self.image);
        let file = self.image.create(&dir.join(file_name(SegmentNo(newest + 1)))).expect("a new name");
        file.set_len(4096).expect("a sound disk");
        file.flush().expect("a sound disk");
        self.image.flush_dir(&dir).expect("a sound disk");
        self.layout = layout(&self.image);
        self.name += ", with a spare";
        self
    }

    pub fn first_segment(&self) -> SegmentNo {
        segment_files(&self.image).first().expect("a segment").0
    }

    /// The last file that was begun.
    pub fn newest(&self) -> usize {
        self.layout.batches.last().map_or(0, |batch| batch.file)
    }

    /// Where the batches of a file end.
    pub fn end_of(&self, file: usize) -> usize {
        let last = self.layout.batches.iter().rfind(|batch| batch.file == file);
        last.map_or(hearth::core::log::segment::SEGMENT_HEADER_BYTES, |batch| batch.extent().end)
    }
}
