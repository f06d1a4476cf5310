//! The content of one file of the simulated disk: what is there now, and what was there when it was
//! last flushed.
//!
//! It promises that no write or flush costs more than the bytes it touches, that zeros cost nothing
//! until something else is written near them, and that the flushed content can always be had back.
//! It must never know names, directories, effects or faults.
//!
//! **Invariant**: the flushed content is the current one with every image in `before` laid over it,
//! cut to `flushed_len`. **Invariant**: bytes at and above `len` are zero in every page.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What a power cut tears: a sector is kept or lost as a whole.
pub(super) const SECTOR: u64 = 512;
/// What memory is taken in.
const PAGE: u64 = 4096;

const SECTOR_BYTES: usize = SECTOR as usize;
const PAGE_BYTES: usize = PAGE as usize;
const ZEROS: [u8; PAGE_BYTES] = [0; PAGE_BYTES];
const _: () = assert!(PAGE.is_multiple_of(SECTOR));

type Page = [u8; PAGE_BYTES];

/// The flushed content of a sector changed since. Zeros are the common case of a log that is appended
/// to, and are kept without memory.
#[derive(Clone)]
enum Image {
    Zeros,
    Bytes(Box<[u8; SECTOR_BYTES]>),
}

/// Cloning is cheap: pages are shared until one side writes to them.
#[derive(Clone, Default)]
pub(super) struct Content {
    len: u64,
    flushed_len: u64,
    /// By number; an absent page is all zeros.
    pages: BTreeMap<u64, Arc<Page>>,
    /// By sector number; saved at the first change since the last flush.
    before: BTreeMap<u64, Image>,
}

impl Content {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn flushed_len(&self) -> u64 {
        self.flushed_len
    }

    pub(super) fn read(&self, position: u64, into: &mut [u8]) -> usize {
        let there = self.len.saturating_sub(position);
        let count = usize::try_from(there).map_or(into.len(), |there| there.min(into.len()));
        let mut at = position;
        let mut rest = &mut into[..count];
        while !rest.is_empty() {
            let within = (at % PAGE) as usize;
            let (now, later) = rest.split_at_mut(rest.len().min(PAGE_BYTES - within));
            match self.pages.get(&(at / PAGE)) {
                Some(page) => now.copy_from_slice(&page[within..within + now.len()]),
                None => now.fill(0),
            }
            at += now.len() as u64;
            rest = later;
        }
        count
    }

    /// The caller has checked that the end is a valid length.
    pub(super) fn write(&mut self, position: u64, bytes: &[u8]) {
        let mut at = position;
        let mut rest = bytes;
        while !rest.is_empty() {
            let within = (at % PAGE) as usize;
            let (now, later) = rest.split_at(rest.len().min(PAGE_BYTES - within));
            self.write_in_page(at, now);
            at += now.len() as u64;
            rest = later;
        }
        self.len = self.len.max(at);
    }

    fn write_in_page(&mut self, position: u64, bytes: &[u8]) {
        let page = match self.pages.entry(position / PAGE) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(_) if *bytes == ZEROS[..bytes.len()] => return,
            Entry::Vacant(absent) => absent.insert(Arc::new(ZEROS)),
        };
        let page = Arc::make_mut(page);
        let mut at = (position % PAGE) as usize;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(SECTOR_BYTES - at % SECTOR_BYTES));
            if page[at..at + now.len()] != *now {
                save(&mut self.before, position / PAGE, page, at / SECTOR_BYTES);
                page[at..at + now.len()].copy_from_slice(now);
            }
            at += now.len();
            rest = later;
        }
    }

    pub(super) fn set_len(&mut self, len: u64) {
        if len < self.len {
            for (number, page) in self.pages.split_off(&len.div_ceil(PAGE)) {
                for sector in 0..PAGE_BYTES / SECTOR_BYTES {
                    save_unless_zeros(&mut self.before, number, &page, sector);
                }
            }
            let kept = (len % PAGE) as usize;
            if let Some(page) = self.pages.get_mut(&(len / PAGE)).filter(|_| kept > 0) {
                let page = Arc::make_mut(page);
                for sector in kept / SECTOR_BYTES..PAGE_BYTES / SECTOR_BYTES {
                    save_unless_zeros(&mut self.before, len / PAGE, page, sector);
                }
                page[kept..].fill(0);
            }
        }
        self.len = len;
    }

    pub(super) fn flush(&mut self) {
        self.before.clear();
        self.flushed_len = self.len;
    }

    /// What the medium holds after a power cut that left `len` and lost the sectors (by position) for
    /// which `lost` says so. It is asked only about changed sectors below `len`, in rising order.
    pub(super) fn after_cut(mut self, len: u64, mut lost: impl FnMut(u64) -> bool) -> Content {
        for (sector, image) in std::mem::take(&mut self.before) {
            let position = sector * SECTOR;
            if position < len && lost(position) {
                self.len = self.len.max(position + SECTOR);
                match image {
                    Image::Zeros => self.write_in_page(position, &ZEROS[..SECTOR_BYTES]),
                    Image::Bytes(bytes) => self.write_in_page(position, &bytes[..]),
                }
            }
        }
        self.set_len(len);
        self.flush();
        self
    }

    /// The content as it was last flushed.
    pub(super) fn flushed(&self) -> Content {
        self.clone().after_cut(self.flushed_len, |_| true)
    }

    /// Hashes the current length and bytes; how zeros are represented makes no difference.
    pub(super) fn hash_into(&self, hasher: &mut impl Hasher) {
        self.len.hash(hasher);
        for (number, page) in self.pages.iter().filter(|(_, page)| ***page != ZEROS) {
            number.hash(hasher);
            page.hash(hasher);
        }
        // No page has this number, so the end of one file is never the start of the next.
        u64::MAX.hash(hasher);
    }
}

fn save(before: &mut BTreeMap<u64, Image>, number: u64, page: &Page, sector_in_page: usize) {
    let sector = number * (PAGE / SECTOR) + sector_in_page as u64;
    before.entry(sector).or_insert_with(|| {
        let mut image = [0; SECTOR_BYTES];
        let start = sector_in_page * SECTOR_BYTES;
        image.copy_from_slice(&page[start..start + SECTOR_BYTES]);
        if image == ZEROS[..SECTOR_BYTES] { Image::Zeros } else { Image::Bytes(Box::new(image)) }
    });
}

fn save_unless_zeros(before: &mut BTreeMap<u64, Image>, number: u64, page: &Page, sector: usize) {
    let start = sector * SECTOR_BYTES;
    if page[start..start + SECTOR_BYTES] != ZEROS[..SECTOR_BYTES] {
        save(before, number, page, sector);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: u64 = 64 << 20;

    #[test]
    fn zeros_take_no_memory() {
        let mut content = Content::default();
        content.set_len(SEGMENT / 2);
        for position in (0..SEGMENT).step_by(1 << 20) {
            content.write(position, &[0; 1 << 20]);
        }
        assert_eq!((content.len(), content.pages.len(), content.before.len()), (SEGMENT, 0, 0));
        content.write(SEGMENT - 10, b"something");
        assert_eq!((content.pages.len(), content.before.len()), (1, 1));
    }

    #[test]
    fn only_sectors_that_change_are_remembered_and_once() {
        let mut content = Content::default();
        content.write(0, &[1; 4096]);
        content.flush();
        content.write(0, &[1; 4096]);
        assert_eq!(content.before.len(), 0);
        content.write(511, &[2; 2]);
        content.write(511, &[3; 2]);
        assert_eq!(content.before.keys().copied().collect::<Vec<_>>(), [0, 1]);
        let mut bytes = [0; 4096];
        assert_eq!(content.flushed().read(0, &mut bytes), 4096);
        assert_eq!(bytes, [1; 4096]);
    }

    #[test]
    fn zeros_hash_alike_however_they_came_about() {
        let hash = |content: &Content| {
            let mut hasher = std::hash::DefaultHasher::new();
            content.hash_into(&mut hasher);
            hasher.finish()
        };
        let (mut never, mut wiped) = (Content::default(), Content::default());
        never.set_len(9000);
        wiped.write(0, &[1; 9000]);
        wiped.write(0, &[0; 9000]);
        assert_eq!(hash(&never), hash(&wiped));
        wiped.set_len(9001);
        assert_ne!(hash(&never), hash(&wiped));
    }

    #[test]
    fn a_clone_does_not_see_later_writes() {
        let mut content = Content::default();
        content.write(0, b"before");
        let copy = content.clone();
        content.write(0, b"behind");
        let mut bytes = [0; 6];
        copy.read(0, &mut bytes);
        assert_eq!(&bytes, b"before");
    }
}
