//! What the index's one lock is over: slots, tables, order and ledger, changed together.
//!
//! Promise: they agree with each other after every call. A key below the log's start (a zombie) is absent by comparison:
//! it is in slots, tables and order until it is swept or written over, and nowhere else. Must never know a lock.

use crate::core::index::Entry;
use crate::core::index::live::{Counted, Ledger};
use crate::core::index::order::Order;
use crate::core::index::slab::{Slab, Slot, SlotId};
use crate::core::index::sort::sorted;
use crate::core::index::table::Tables;
use crate::core::types::{Millis, Offset, SegmentNo};
use crate::teeth::{Tooth, bites};

#[derive(Default)]
pub(super) struct Map {
    pub slab: Slab,
    pub tables: Tables,
    /// `None` while a log is replayed: sorting once at the end costs less than a place for each key.
    pub order: Option<Order>,
    pub ledger: Ledger,
    /// The first offset that the log still has.
    base: Offset,
}

/// What a clear left; taking it down takes a while, so that is done outside of the lock.
#[expect(dead_code, reason = "held to be dropped")]
pub(super) struct Remains(Slab, Tables, Option<Order>);

impl Map {
    pub fn ordered() -> Self {
        Self { order: Some(Order::default()), ..Self::default() }
    }

    pub fn get(&self, key: &[u8]) -> Option<Entry> {
        let id = self.tables.find(self.tables.hash(key), key, &self.slab)?;
        Some(self.slab.slot(id)).filter(|slot| self.shows(slot)).map(Slot::entry)
    }

    /// Whether readers find the slot's record.
    pub fn shows(&self, slot: &Slot) -> bool {
        self.holds(slot) || bites(Tooth::ReadBelowBase)
    }

    /// Whether the log still has the slot's record.
    pub fn holds(&self, slot: &Slot) -> bool {
        slot.offset >= self.base
    }

    pub fn put(&mut self, key: &[u8], entry: &Entry) {
        let hash = self.tables.hash(key);
        let id = if let Some(id) = self.tables.find(hash, key, &self.slab) {
            self.uncount(id);
            self.slab.slot_mut(id).set(entry);
            id
        } else {
            let id = self.slab.insert(key, entry);
            self.tables.insert(hash, id);
            if let Some(order) = &mut self.order {
                order.insert(id, &self.slab);
            }
            id
        };
        self.ledger.add(counted(self.slab.slot(id)));
    }

    pub fn remove(&mut self, key: &[u8]) {
        if let Some(id) = self.tables.remove(self.tables.hash(key), key, &self.slab) {
            self.let_go(id);
        }
    }

    /// Takes the record at `offset` out of slot `id`, if it is still there and is a zombie or lapsed at `now`: bytes that
    /// were live so far.
    pub fn sweep_out(&mut self, id: SlotId, offset: Offset, now: Millis) -> Option<u64> {
        let slot = self.slab.get(id).filter(|slot| slot.offset == offset)?;
        let live = self.holds(slot);
        if live && !slot.expires_at.has_lapsed(now) {
            return None;
        }
        let bytes = if live { u64::from(slot.length) } else { 0 };
        let hash = self.tables.hash(slot.key());
        self.tables.remove(hash, self.slab.key(id), &self.slab);
        self.let_go(id);
        Some(bytes)
    }

    /// Lets a slot go that is in no table any more.
    fn let_go(&mut self, id: SlotId) {
        self.uncount(id);
        if let Some(order) = &mut self.order {
            order.remove(id, &self.slab);
        }
        self.slab.remove(id);
    }

    fn uncount(&mut self, id: SlotId) {
        let slot = self.slab.slot(id);
        if self.holds(slot) {
            self.ledger.take(counted(slot));
        }
    }

    /// The slot of a key, whatever is in it.
    pub fn slot_of(&self, key: &[u8]) -> Option<SlotId> {
        self.tables.find(self.tables.hash(key), key, &self.slab)
    }

    #[must_use]
    pub fn clear(&mut self) -> Remains {
        let fresh = if self.order.is_some() { Self::ordered() } else { Self::default() };
        let cleared = std::mem::replace(self, Self { base: self.base, ..fresh });
        Remains(cleared.slab, cleared.tables, cleared.order)
    }

    pub fn trim(&mut self, base: Offset, first: SegmentNo) {
        if base > self.base {
            self.ledger.trim(base, first);
            self.base = base;
        }
    }

    pub fn sort(&mut self) {
        if self.order.is_none() {
            self.order = Some(Order::of_sorted(sorted(&self.slab), &self.slab));
        }
    }
}

fn counted(slot: &Slot) -> Counted {
    Counted {
        segment: slot.segment,
        offset: slot.offset,
        bytes: slot.length,
        expires: slot.expires_at != Millis::NEVER,
    }
}
