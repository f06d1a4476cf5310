//! A look at a disk's door: what each effect on it is part of, so that a cut can be told by where it fell.
//!
//! Must never change what is done.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hearth::core::log::anchor::ANCHOR_FILE;
use hearth::core::log::disk::{Disk, DiskFile, MemoryDisk};
use hearth::core::log::frame::{BatchHeader, BatchType, records};
use hearth::core::record::cache::CacheRecord;
use hearth::core::record::control::ControlRecord;

/// Where the anchor's sector says which segment is the newest, and which one is the first of the log.
const NEWEST_SEGMENT_AT: usize = 256;
const FIRST_SEGMENT_AT: usize = 264;

/// What an effect is part of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Inside {
    /// Opening, votes, marks of a clean stop.
    #[default]
    Other,
    Append,
    Carries,
    TrimRecord,
    /// The anchor learns where the log begins.
    TrimAnchor,
    Unlink,
    /// The next segment is made.
    Spare,
    /// It is begun.
    Roll,
}

/// A disk and what its effects were part of, by number.
pub struct Traced {
    disk: MemoryDisk,
    trace: Arc<Trace>,
}

#[derive(Default)]
pub struct Trace {
    effects: Mutex<Vec<Inside>>,
    /// What the entries of a directory were last changed for.
    entries: Mutex<Inside>,
}

fn set(place: &Mutex<Inside>, to: Inside) {
    *place.lock().unwrap_or_else(PoisonError::into_inner) = to;
}

fn get(place: &Mutex<Inside>) -> Inside {
    *place.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Trace {
    pub fn effects(&self) -> Vec<Inside> {
        self.effects.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn count<T>(&self, disk: &MemoryDisk, inside: Inside, act: impl FnOnce() -> T) -> T {
        let before = disk.effects();
        let done = act();
        let effects = (disk.effects() - before) as usize;
        let mut all = self.effects.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(all.len() as u64, before, "an effect came by another door");
        all.extend(std::iter::repeat_n(inside, effects));
        done
    }
}

impl Traced {
    pub fn new(disk: &MemoryDisk, trace: &Arc<Trace>) -> Self {
        Self { disk: disk.clone(), trace: Arc::clone(trace) }
    }

    fn file(&self, path: &Path, file: Arc<dyn DiskFile>, last: Inside) -> Arc<dyn DiskFile> {
        let (disk, trace) = (self.disk.clone(), Arc::clone(&self.trace));
        Arc::new(TracedFile { file, disk, trace, path: path.to_owned(), last: Mutex::new(last) })
    }

    fn change<T>(&self, path: &Path, of_segment: Inside, act: impl FnOnce() -> T) -> T {
        let inside = if is_segment(path) { of_segment } else { Inside::Other };
        set(&self.trace.entries, inside);
        self.trace.count(&self.disk, inside, act)
    }
}

fn is_segment(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "seg")
}

impl Disk for Traced {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.trace.count(&self.disk, Inside::Other, || self.disk.create_dir(dir))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.disk.list(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.disk.exists(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.change(path, Inside::Spare, || self.disk.create(path))?;
        Ok(self.file(path, file, get(&self.trace.entries)))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.file(path, self.disk.open(path)?, Inside::Other))
    }

    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.open_to_read(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.change(to, Inside::Other, || self.disk.rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.change(path, Inside::Unlink, || self.disk.remove(path))
    }

    fn flush_dir(&self, dir: &Path) -> io::Result<()> {
        self.trace.count(&self.disk, get(&self.trace.entries), || self.disk.flush_dir(dir))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        self.trace.count(&self.disk, Inside::Other, || self.disk.lock(path))
    }

    fn is_locked(&self, path: &Path) -> io::Result<bool> {
        self.disk.is_locked(path)
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.disk.free_bytes(dir)
    }
}

struct TracedFile {
    file: Arc<dyn DiskFile>,
    disk: MemoryDisk,
    trace: Arc<Trace>,
    path: PathBuf,
    /// What it was last written for: a flush is part of the same.
    last: Mutex<Inside>,
}

impl TracedFile {
    fn written_for(&self, position: u64, bytes: &[u8]) -> Inside {
        if self.path.ends_with(ANCHOR_FILE) {
            let mut before = vec![0; bytes.len()];
            let there = self.file.read_at(position, &mut before).is_ok_and(|read| read == bytes.len());
            let differs = |at: usize| there && before[at..at + 8] != bytes[at..at + 8];
            return match (differs(FIRST_SEGMENT_AT), differs(NEWEST_SEGMENT_AT)) {
                (true, _) => Inside::TrimAnchor,
                (false, true) => Inside::Roll,
                (false, false) => Inside::Other,
            };
        }
        match BatchHeader::read_fields(bytes) {
            _ if !is_segment(&self.path) => Inside::Other,
            _ if bytes.iter().all(|byte| *byte == 0) => Inside::Spare,
            _ if position == 0 => Inside::Roll,
            Ok(header) => batch_for(&header, bytes),
            Err(_) => Inside::Other,
        }
    }
}

fn batch_for(header: &BatchHeader, bytes: &[u8]) -> Inside {
    let mut bodies = records(header, bytes).map(|record| record.body);
    match header.batch_type {
        BatchType::Data if bodies.any(|body| matches!(CacheRecord::decode(body), Ok(CacheRecord::Carried { .. }))) => {
            Inside::Carries
        }
        BatchType::Control if bodies.any(|body| matches!(ControlRecord::decode(body), Ok(ControlRecord::Trim(_)))) => {
            Inside::TrimRecord
        }
        BatchType::Data | BatchType::Control => Inside::Append,
    }
}

impl DiskFile for TracedFile {
    fn read_at(&self, position: u64, into: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(position, into)
    }

    fn read_at_now(&self, position: u64, into: &mut [u8]) -> io::Result<usize> {
        self.file.read_at_now(position, into)
    }

    fn write_at(&self, position: u64, bytes: &[u8]) -> io::Result<()> {
        let inside = self.written_for(position, bytes);
        set(&self.last, inside);
        self.trace.count(&self.disk, inside, || self.file.write_at(position, bytes))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let inside = if get(&self.last) == Inside::Other { Inside::Other } else { Inside::Roll };
        self.trace.count(&self.disk, inside, || self.file.set_len(len))
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn flush(&self) -> io::Result<()> {
        self.trace.count(&self.disk, get(&self.last), || self.file.flush())
    }

    fn forget_cached(&self) -> io::Result<()> {
        self.file.forget_cached()
    }
}
