//! A simulated disk for tests that knows how many files are open.
//!
//! It promises to be the memory disk in everything else. It must never know who opens what.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::{Disk, DiskFile, MemoryDisk};

/// A [`MemoryDisk`] that counts its open files.
#[derive(Default)]
pub struct Counting {
    pub disk: MemoryDisk,
    opened: AtomicU64,
    peak: AtomicUsize,
    open: Arc<()>,
}

struct CountedFile {
    file: Arc<dyn DiskFile>,
    _open: Arc<()>,
}

impl Counting {
    pub fn of(disk: MemoryDisk) -> Self {
        Self { disk, ..Self::default() }
    }

    /// Files that are open now.
    pub fn open_now(&self) -> usize {
        Arc::strong_count(&self.open) - 1
    }

    /// The most that ever were.
    pub fn peak(&self) -> usize {
        self.peak.load(Ordering::Relaxed)
    }

    /// How often a file was opened.
    pub fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    fn count(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        let counted = CountedFile { file, _open: Arc::clone(&self.open) };
        self.opened.fetch_add(1, Ordering::Relaxed);
        self.peak.fetch_max(self.open_now(), Ordering::Relaxed);
        Arc::new(counted)
    }
}

impl Disk for Counting {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.count(self.disk.create(path)?))
    }
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.count(self.disk.open(path)?))
    }
    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.count(self.disk.open_to_read(path)?))
    }
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.create_dir(dir)
    }
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.disk.list(dir)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.disk.exists(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }
    fn flush_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.flush_dir(dir)
    }
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        self.disk.lock(path)
    }
    fn is_locked(&self, path: &Path) -> io::Result<bool> {
        self.disk.is_locked(path)
    }
    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.disk.free_bytes(dir)
    }
}

impl DiskFile for CountedFile {
    fn read_at(&self, position: u64, into: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(position, into)
    }
    fn read_at_now(&self, position: u64, into: &mut [u8]) -> io::Result<usize> {
        self.file.read_at_now(position, into)
    }
    fn write_at(&self, position: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(position, bytes)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
    fn flush(&self) -> io::Result<()> {
        self.file.flush()
    }
    fn forget_cached(&self) -> io::Result<()> {
        self.file.forget_cached()
    }
}
