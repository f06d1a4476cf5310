//! The slots that hold keys and their entries, cut into chunks; a key's slot never moves while the key is held.
//!
//! Promise: growing copies nothing that is there; a slot is 64 bytes with a key of up to 16; a chunk whose last slot was
//! let go gives its memory back, but one that waits for the next key. Must never know an order, a hash or what is absent.

use std::ops::Range;

use smallvec::SmallVec;

use crate::core::index::Entry;
use crate::core::types::{Location, Millis, Offset, Revision, SegmentNo};

/// Keys of up to 16 bytes stand in the slot itself.
type Key = SmallVec<[u8; 16]>;

/// Slots of a chunk: a quarter of a MiB. Few in unit tests, so that chunks come and go within a handful of keys.
const CHUNK: usize = if cfg!(test) { 16 } else { 4096 };

/// The number of a slot. Given again once its key is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SlotId(pub u32);

impl SlotId {
    /// Ends the list of free slots of a chunk.
    const NONE: Self = Self(u32::MAX);

    fn of(chunk: usize, place: usize) -> Self {
        Self((chunk * CHUNK + place) as u32)
    }

    #[inline]
    fn chunk(self) -> usize {
        self.0 as usize / CHUNK
    }

    #[inline]
    fn place(self) -> usize {
        self.0 as usize % CHUNK
    }
}

/// A key and what is known of it, packed: the numbers of an [`Entry`], its segment in four bytes. One line of the processor's
/// cache, so that a look-up waits for memory once here.
#[repr(align(64))]
pub(super) struct Slot {
    key: Key,
    pub offset: Offset,
    revision: Revision,
    pub expires_at: Millis,
    pub segment: u32,
    /// In a free slot: the next free one of its chunk.
    position: u32,
    pub length: u32,
    taken: bool,
}

const _: () = assert!(size_of::<Slot>() == 64);

impl Slot {
    fn new(key: &[u8], entry: &Entry) -> Self {
        Self {
            key: Key::from_slice(key),
            offset: entry.offset,
            revision: entry.revision,
            expires_at: entry.expires_at,
            segment: packed(entry.location.segment),
            position: entry.location.position,
            length: entry.location.length,
            taken: true,
        }
    }

    #[inline]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    #[inline]
    pub fn entry(&self) -> Entry {
        Entry {
            offset: self.offset,
            revision: self.revision,
            expires_at: self.expires_at,
            location: Location {
                segment: SegmentNo(u64::from(self.segment)),
                position: self.position,
                length: self.length,
            },
        }
    }

    /// The entry becomes another; the key stays.
    pub fn set(&mut self, entry: &Entry) {
        self.offset = entry.offset;
        self.revision = entry.revision;
        self.expires_at = entry.expires_at;
        self.segment = packed(entry.location.segment);
        self.position = entry.location.position;
        self.length = entry.location.length;
    }
}

/// A segment's number in the four bytes that a slot has for it.
///
/// Segments of 64 MiB reach the end of them after 256 PiB of log. A number beyond would name another segment, so the
/// shard stops instead.
pub(super) fn packed(segment: SegmentNo) -> u32 {
    let Ok(number) = u32::try_from(segment.0) else {
        panic!("the index cannot name segment {}: its slots hold numbers up to {}", segment.0, u32::MAX)
    };
    number
}

/// A run of slots that is allocated and given back as one.
struct Chunk {
    /// Empty while no slot is taken and the memory is given back.
    slots: Vec<Slot>,
    /// The first of its free slots.
    free: SlotId,
    taken: usize,
}

impl Chunk {
    fn is_full(&self) -> bool {
        self.taken == CHUNK
    }
}

/// All slots of an index.
#[derive(Default)]
pub(super) struct Slab {
    chunks: Vec<Chunk>,
    /// The chunks with room; the last is filled first, so that those that drain can drain.
    with_room: Vec<usize>,
    taken: usize,
}

impl Slab {
    /// Slots with a key.
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// Slot numbers in use lie below this.
    pub fn end(&self) -> usize {
        self.chunks.len() * CHUNK
    }

    /// The slot, if it has a key.
    #[inline]
    pub fn get(&self, id: SlotId) -> Option<&Slot> {
        self.chunks.get(id.chunk())?.slots.get(id.place()).filter(|slot| slot.taken)
    }

    /// The slot of an id that the caller knows to have a key.
    #[inline]
    pub fn slot(&self, id: SlotId) -> &Slot {
        &self.chunks[id.chunk()].slots[id.place()]
    }

    #[inline]
    pub fn slot_mut(&mut self, id: SlotId) -> &mut Slot {
        &mut self.chunks[id.chunk()].slots[id.place()]
    }

    #[inline]
    pub fn key(&self, id: SlotId) -> &[u8] {
        self.slot(id).key()
    }

    /// Takes a slot for a key.
    pub fn insert(&mut self, key: &[u8], entry: &Entry) -> SlotId {
        let number = match self.with_room.last() {
            Some(&number) => number,
            None => self.add_chunk(),
        };
        let slot = Slot::new(key, entry);
        let chunk = &mut self.chunks[number];
        let id = if chunk.free == SlotId::NONE {
            if chunk.slots.capacity() == 0 {
                chunk.slots.reserve_exact(CHUNK);
            }
            chunk.slots.push(slot);
            SlotId::of(number, chunk.slots.len() - 1)
        } else {
            let id = chunk.free;
            let free = &mut chunk.slots[id.place()];
            chunk.free = SlotId(free.position);
            *free = slot;
            id
        };
        chunk.taken += 1;
        self.taken += 1;
        if chunk.is_full() {
            self.with_room.pop();
        }
        id
    }

    fn add_chunk(&mut self) -> usize {
        let number = self.chunks.len();
        assert!((number + 1) * CHUNK < u32::MAX as usize, "the index holds as many keys as it has numbers for");
        self.chunks.push(Chunk { slots: Vec::new(), free: SlotId::NONE, taken: 0 });
        self.with_room.push(number);
        number
    }

    /// Lets go of a slot that has a key.
    pub fn remove(&mut self, id: SlotId) {
        let chunk = &mut self.chunks[id.chunk()];
        if chunk.is_full() {
            self.with_room.push(id.chunk());
        }
        let slot = &mut chunk.slots[id.place()];
        assert!(slot.taken, "slot {} was let go twice", id.0);
        slot.taken = false;
        slot.key = Key::new();
        slot.position = chunk.free.0;
        chunk.free = id;
        chunk.taken -= 1;
        self.taken -= 1;
        // One empty chunk is kept if it is the only one with room: its key may be put and deleted all day.
        if chunk.taken == 0 && self.with_room.len() > 1 {
            chunk.slots = Vec::new();
            chunk.free = SlotId::NONE;
        }
    }

    /// The slots that have a key, in no order of theirs.
    pub fn iter(&self) -> impl Iterator<Item = (SlotId, &Slot)> {
        self.iter_in(0..self.end())
    }

    /// Those whose numbers are in `range`, which must not reach beyond [`Slab::end`].
    pub fn iter_in(&self, range: Range<usize>) -> impl Iterator<Item = (SlotId, &Slot)> {
        let chunks = range.start / CHUNK..range.end.div_ceil(CHUNK);
        chunks.flat_map(move |number| {
            let slots = &self.chunks[number].slots;
            let from = range.start.saturating_sub(number * CHUNK).min(slots.len());
            let to = (range.end - number * CHUNK).min(slots.len());
            let slots = (from..).zip(&slots[from..to]).filter(|(_, slot)| slot.taken);
            slots.map(move |(place, slot)| (SlotId::of(number, place), slot))
        })
    }

    #[cfg(test)]
    pub fn chunks_in_memory(&self) -> usize {
        self.chunks.iter().filter(|chunk| chunk.slots.capacity() > 0).count()
    }
}
