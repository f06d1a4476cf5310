//! The next segment's file, made ahead while clients write.
//!
//! Promise: made in small flushed pieces with pauses, so that no batch waits long behind one; without pauses once somebody
//! waits for it. A disk that has no room for it is no failure: the log then takes what fits until there is room again.
//! Must never know what a segment holds.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::core::limits::{ZERO_FILL_BYTES, ZERO_FILL_PAUSE_MS};
use crate::core::log::writer::{Progress, Spare, SpareOrder};
use crate::core::shard::Shard;
use crate::rt;

/// How far the next segment is.
enum Stage {
    /// Not asked for.
    None,
    /// So many bytes are being made; whether the disk seems to have room for them.
    Ordered { bytes: u64, fits: bool },
    /// There was no room for it.
    NoRoom,
}

/// Orders spares, one at a time, and takes them when they are done.
pub struct Spares {
    stage: Stage,
    /// Where the maker leaves its result.
    made: Arc<Mutex<Option<io::Result<Spare>>>>,
    hurry: Arc<AtomicBool>,
}

impl Default for Spares {
    fn default() -> Self {
        Self { stage: Stage::None, made: Arc::default(), hurry: Arc::default() }
    }
}

impl Spares {
    /// Whether a spare is being made.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        self.ordered_bytes() > 0
    }

    /// Bytes of the spare that is being made; 0 while none is.
    #[must_use]
    pub fn ordered_bytes(&self) -> u64 {
        if let Stage::Ordered { bytes, .. } = self.stage { bytes } else { 0 }
    }

    /// The same, unless the disk seems to have no room for them.
    #[must_use]
    pub fn coming_bytes(&self) -> u64 {
        if let Stage::Ordered { bytes, fits: true } = self.stage { bytes } else { 0 }
    }

    /// Whether the last one could not be made for want of room.
    #[must_use]
    pub fn is_out_of_room(&self) -> bool {
        matches!(self.stage, Stage::NoRoom)
    }

    /// There may be room again.
    pub fn try_again(&mut self) {
        if self.is_out_of_room() {
            self.stage = Stage::None;
        }
    }

    /// Somebody waits for the spare: no more pauses.
    pub fn hurry(&self) {
        self.hurry.store(true, Ordering::Relaxed);
    }

    /// Makes a spare on the blocking pool; the shard's bell rings when it is done.
    pub fn order(&mut self, order: SpareOrder, shard: &Arc<Shard>) {
        self.begin(&order, shard);
        self.hurry.store(false, Ordering::Relaxed);
        let (made, hurry, shard) = (Arc::clone(&self.made), Arc::clone(&self.hurry), Arc::clone(shard));
        drop(rt::spawn(async move {
            let spare = make(order, &hurry, &shard).await;
            shard.unfilled_bytes.store(0, Ordering::Relaxed);
            *made.lock().unwrap_or_else(PoisonError::into_inner) = Some(spare);
            shard.staged.ring();
        }));
    }

    /// Makes a spare on the calling thread.
    pub fn make_here(&mut self, order: SpareOrder, shard: &Shard) {
        self.begin(&order, shard);
        shard.unfilled_bytes.store(0, Ordering::Relaxed);
        *self.made.lock().unwrap_or_else(PoisonError::into_inner) = Some(order.fill_all());
    }

    /// What the spare takes is not free any more, from the moment it is ordered: until the next look at the disk, nobody else
    /// would know.
    fn begin(&mut self, order: &SpareOrder, shard: &Shard) {
        let bytes = order.unfilled_bytes();
        let mut fits = true;
        if let Some(free) = &mut shard.machine().space().free {
            fits = free.free_bytes >= bytes;
            free.free_bytes = free.free_bytes.saturating_sub(bytes);
        }
        self.stage = Stage::Ordered { bytes, fits };
        shard.unfilled_bytes.store(bytes, Ordering::Relaxed);
    }

    /// The spare that was made since this was last asked; want of room is noted and gives none.
    ///
    /// # Errors
    /// The disk's, when it is anything but want of room.
    pub fn take(&mut self) -> io::Result<Option<Spare>> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner).take();
        match made {
            None => Ok(None),
            Some(Ok(spare)) => {
                self.stage = Stage::None;
                Ok(Some(spare))
            }
            Some(Err(error)) if lacks_room(&error) => {
                tracing::warn!(%error, "no room for the next segment: writes go on only as far as what is allocated");
                self.stage = Stage::NoRoom;
                Ok(None)
            }
            Some(Err(error)) => Err(error),
        }
    }
}

async fn make(mut order: SpareOrder, hurry: &AtomicBool, shard: &Shard) -> io::Result<Spare> {
    loop {
        match rt::unblock(move || order.fill(ZERO_FILL_BYTES)).await? {
            Progress::Done(spare) => return Ok(spare),
            Progress::More(rest) => order = rest,
        }
        shard.unfilled_bytes.store(order.unfilled_bytes(), Ordering::Relaxed);
        if !hurry.load(Ordering::Relaxed) {
            rt::sleep_ms(ZERO_FILL_PAUSE_MS).await;
        }
    }
}

/// The machine has no room for another file, or no descriptor for it: nothing is wrong with what is there.
#[must_use]
pub fn lacks_room(error: &io::Error) -> bool {
    use std::io::ErrorKind;
    const TOO_MANY_OPEN_FILES: [i32; 2] = [23, 24];
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
        || error.raw_os_error().is_some_and(|code| TOO_MANY_OPEN_FILES.contains(&code))
}
