//! The anchor: the small durable state beside a shard's segments, in two places that are written in turn.
//!
//! Promise: a write never touches the newest sound place, so a torn write costs only itself; a vote is flushed to both
//! places before it counts, whatever the fsync policy; the commit floor never exceeds what is flushed.
//! Must never know a batch's content. Layout: `docs/formats.md`, section "Anchor".

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::core::log::codec::{SECTOR_BYTES, Sector};
use crate::core::log::disk::{Disk, DiskFile};
use crate::core::log::start::LogStart;
use crate::core::log::{FORMAT, FsyncPolicy, is_readable};
use crate::core::types::{Epoch, Generation, Index, Millis, Offset, ReplicaId, SegmentNo};

const MAGIC: &[u8; 8] = b"HEARTHAN";
/// The two places stand this many bytes apart, so that no disk block holds both.
const PLACE_BYTES: u64 = 4096;
const CRC_AT: usize = 12;
/// The file's name in the shard's directory.
pub const ANCHOR_FILE: &str = "anchor";

/// What an anchor says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnchorState {
    pub replica: ReplicaId,
    pub generation: Generation,
    /// Whom this replica voted for in `generation`.
    pub vote: Option<ReplicaId>,
    pub epoch: Epoch,
    /// Decides what exists: a segment below it is removed when the log is opened, whatever is in it.
    pub start: LogStart,
    /// Everything up to and including this index is committed and flushed.
    pub commit_floor: Index,
    /// Everything up to and including this index is flushed; the offset is one past its last record.
    pub flushed: Index,
    pub flushed_next_offset: Offset,
    /// The newest segment that was begun, its header flushed. 0 before the first.
    pub newest_segment: SegmentNo,
    /// The log was closed with nothing unflushed.
    pub clean_stop: bool,
    /// The policy of the process that wrote this.
    pub policy: FsyncPolicy,
    /// The newest time of the expiry clock that was noted, 0 for none.
    pub clock: Millis,
}

/// An open anchor file and the state it holds.
pub struct Anchor {
    file: Arc<dyn DiskFile>,
    sequence: u64,
    state: AnchorState,
}

/// What was found where an anchor should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnchorRead {
    /// No file, or a file nothing was ever made durable in.
    Absent,
    Sound(AnchorState),
    OtherFormat(u32),
    /// Neither place is sound, at least one is not zeros.
    Damaged,
}

impl AnchorState {
    fn encode(&self, sequence: u64) -> [u8; SECTOR_BYTES] {
        let mut sector = Sector::zeroed();
        sector.put(0, MAGIC);
        sector.put_u32(8, FORMAT);
        sector.put_u64s(
            16,
            &[
                sequence,
                self.replica.0,
                self.generation.0,
                self.vote.map_or(0, |id| id.0),
                self.epoch.0,
                self.start.offset.0,
                self.start.index.0,
                self.start.generation.0,
                self.start.configuration_index.0,
                self.commit_floor.0,
                self.flushed.0,
                self.flushed_next_offset.0,
            ],
        );
        sector.put(112, &[u8::from(self.clean_stop), self.policy as u8]);
        sector.put_configuration(114, 128, &self.start.configuration);
        sector.put_u64s(256, &[self.newest_segment.0, self.start.segment.0, self.clock.0]);
        sector.seal(CRC_AT);
        sector.0
    }

    fn decode(sector: &Sector) -> Option<(u64, Self)> {
        let number = |i: usize| sector.u64(16 + i * 8);
        let state = Self {
            replica: ReplicaId(number(1)),
            generation: Generation(number(2)),
            vote: Some(ReplicaId(number(3))).filter(|id| id.0 != 0),
            epoch: Epoch(number(4)),
            start: LogStart {
                segment: SegmentNo(sector.u64(264)),
                offset: Offset(number(5)),
                index: Index(number(6)),
                generation: Generation(number(7)),
                configuration: sector.configuration(114, 128)?,
                configuration_index: Index(number(8)),
            },
            commit_floor: Index(number(9)),
            flushed: Index(number(10)),
            flushed_next_offset: Offset(number(11)),
            newest_segment: SegmentNo(sector.u64(256)),
            clean_stop: sector.0[112] != 0,
            policy: FsyncPolicy::from_byte(sector.0[113])?,
            clock: Millis(sector.u64(272)),
        };
        Some((number(0), state))
    }
}

impl Anchor {
    /// Creates the file with `state` in it and flushes file and directory.
    ///
    /// # Errors
    /// Whatever the disk reports.
    pub fn create(disk: &dyn Disk, dir: &Path, state: AnchorState) -> io::Result<Self> {
        let path = dir.join(ANCHOR_FILE);
        if disk.exists(&path)? {
            disk.remove(&path)?;
        }
        let file = disk.create(&path)?;
        file.set_len(2 * PLACE_BYTES)?;
        let mut anchor = Self { file, sequence: 0, state };
        anchor.write()?;
        disk.flush_dir(dir)?;
        Ok(anchor)
    }

    /// Reads both places and takes the newest sound one, without a way to change it.
    ///
    /// # Errors
    /// Whatever the disk reports.
    pub fn read(disk: &dyn Disk, dir: &Path) -> io::Result<AnchorRead> {
        let path = dir.join(ANCHOR_FILE);
        if !disk.exists(&path)? {
            return Ok(AnchorRead::Absent);
        }
        Ok(match read_places(&*disk.open_to_read(&path)?)? {
            Places::Sound(_, state) => AnchorRead::Sound(state),
            Places::Zero => AnchorRead::Absent,
            Places::OtherFormat(format) => AnchorRead::OtherFormat(format),
            Places::Damaged => AnchorRead::Damaged,
        })
    }

    /// Opens an anchor that [`Anchor::read`] found sound, to change it; `None` when it no longer says `state`.
    ///
    /// # Errors
    /// Whatever the disk reports.
    pub fn open(disk: &dyn Disk, dir: &Path, state: &AnchorState) -> io::Result<Option<Self>> {
        let file = disk.open(&dir.join(ANCHOR_FILE))?;
        Ok(match read_places(&*file)? {
            Places::Sound(sequence, found) if found == *state => Some(Self { file, sequence, state: found }),
            _ => None,
        })
    }

    #[must_use]
    pub fn state(&self) -> &AnchorState {
        &self.state
    }

    /// Changes the state and flushes it to the older place.
    ///
    /// # Errors
    /// Whatever the disk reports; the file then holds the old state or the new one.
    pub fn update(&mut self, change: impl FnOnce(&mut AnchorState)) -> io::Result<()> {
        change(&mut self.state);
        assert!(
            self.state.commit_floor <= self.state.flushed,
            "a commit floor above what is flushed would be believed"
        );
        self.write()
    }

    /// Changes the state and flushes it to both places, one after the other: no older state can come back.
    ///
    /// # Errors
    /// As [`Anchor::update`].
    pub fn update_both(&mut self, change: impl FnOnce(&mut AnchorState)) -> io::Result<()> {
        self.update(change)?;
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        let sequence = self.sequence + 1;
        self.file.write_at((sequence % 2) * PLACE_BYTES, &self.state.encode(sequence))?;
        self.file.flush()?;
        self.sequence = sequence;
        Ok(())
    }
}

/// What an anchor's two places say together.
enum Places {
    Zero,
    Sound(u64, AnchorState),
    OtherFormat(u32),
    Damaged,
}

fn read_places(file: &dyn DiskFile) -> io::Result<Places> {
    let (mut newest, mut all_zero, mut other) = (None::<(u64, AnchorState)>, true, None);
    for place in 0..2 {
        let mut bytes = [0; SECTOR_BYTES];
        file.read_at(place * PLACE_BYTES, &mut bytes)?;
        let sector = Sector(bytes);
        all_zero &= sector.is_zero();
        if &sector.0[..8] != MAGIC || !sector.is_sound(CRC_AT) {
            continue;
        }
        if !is_readable(sector.u32(8)) {
            other = Some(sector.u32(8));
            continue;
        }
        match AnchorState::decode(&sector) {
            Some(read) if newest.as_ref().is_none_or(|(sequence, _)| *sequence < read.0) => newest = Some(read),
            _ => {}
        }
    }
    Ok(match (newest, other) {
        (_, Some(format)) => Places::OtherFormat(format),
        (Some((sequence, state)), None) => Places::Sound(sequence, state),
        (None, None) if all_zero => Places::Zero,
        (None, None) => Places::Damaged,
    })
}

#[cfg(test)]
mod tests;
