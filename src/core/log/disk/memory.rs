//! The simulated disk: the Disk door in memory, for `--memory` brokers and for crash tests.
//!
//! It promises the contract of the traits, that flushed and unflushed are told apart for ever, that
//! the power goes off exactly where a test says, and that what a cut leaves is a fresh, independent
//! disk. Clones share one disk.
//!
//! It must never know what is stored, the wall clock, or chance: choosers and seeds come from the caller.
//!
//! Lock order: `world`, then one `Inode`. Every effect runs under `world` from its admission to its
//! end; a read takes only the inode's lock, so that reads never wait for each other.

mod content;
mod file;
mod gauge;
mod power_cut;
mod tree;

#[cfg(test)]
mod tests;

pub use gauge::EffectCounts;
pub use power_cut::{EntryChange, Fate, Unflushed, everything_kept, everything_lost, torn};

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Disk, DiskFile};
use file::MemoryFile;
use gauge::{Effect, Gauge, Refusal};
use tree::{Directory, Node, names};

/// A disk in memory; cheap to clone, every clone is the same disk.
#[derive(Clone)]
pub struct MemoryDisk {
    shared: Arc<Shared>,
}

struct Shared {
    world: Mutex<World>,
    /// Apart from the world, so that reads can look without taking its lock.
    off: AtomicBool,
    free_bytes: AtomicU64,
    /// Apart from the world, so that a lock is let go whatever the disk is doing.
    locks: Mutex<BTreeSet<String>>,
}

#[derive(Default)]
struct World {
    root: Directory,
    gauge: Gauge,
}

impl Shared {
    fn powered(&self) -> io::Result<()> {
        if self.off.load(Ordering::Acquire) { Err(Refusal::PowerOff.into()) } else { Ok(()) }
    }

    /// The world, whether the power is on or not.
    fn look(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn world(&self) -> io::Result<MutexGuard<'_, World>> {
        let world = self.look();
        self.powered()?;
        Ok(world)
    }

    /// Counts an effect about to happen, or refuses it.
    fn admit(&self, gauge: &mut Gauge, effect: Effect) -> io::Result<()> {
        gauge.admit(effect).map_err(|refusal| {
            if matches!(refusal, Refusal::PowerOff) {
                self.off.store(true, Ordering::Release);
            }
            refusal.into()
        })
    }

    fn held(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.locks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryDisk {
    fn default() -> MemoryDisk {
        MemoryDisk::holding(Directory::default(), u64::MAX / 2)
    }
}

impl MemoryDisk {
    /// An empty disk, with nothing but its root directory.
    pub fn new() -> MemoryDisk {
        MemoryDisk::default()
    }

    fn holding(root: Directory, free_bytes: u64) -> MemoryDisk {
        let shared = Shared {
            world: Mutex::new(World { root, gauge: Gauge::default() }),
            off: AtomicBool::new(false),
            free_bytes: AtomicU64::new(free_bytes),
            locks: Mutex::default(),
        };
        MemoryDisk { shared: Arc::new(shared) }
    }

    /// How many effects this disk has seen.
    pub fn effects(&self) -> u64 {
        self.shared.look().gauge.effects
    }

    pub fn counts(&self) -> EffectCounts {
        self.shared.look().gauge.counts
    }

    /// Once the disk has seen this many effects in all, the next one does not happen: it, and every
    /// later call of any kind, fails with "the power is off".
    pub fn power_off_after(&self, effects: u64) {
        self.shared.look().gauge.power_off_after = Some(effects);
    }

    /// Whether an effect has met the end that `power_off_after` set.
    pub fn is_off(&self) -> bool {
        self.shared.off.load(Ordering::Acquire)
    }

    /// The `nth` flush of a file from now (1 is the next) fails once with EIO; nothing is flushed by it.
    /// 0 disarms.
    pub fn fail_flush(&self, nth: u64) {
        self.shared.look().gauge.fail_flush = nth;
    }

    /// The `nth` write from now (1 is the next) fails once with EIO; nothing is written by it. 0 disarms.
    pub fn fail_writes(&self, nth: u64) {
        self.shared.look().gauge.fail_write = nth;
    }

    pub fn set_free_bytes(&self, bytes: u64) {
        self.shared.free_bytes.store(bytes, Ordering::Relaxed);
    }

    /// The disk a restart finds after the power was cut now: a new one with all it holds flushed, no
    /// effect counted, no fault armed, no lock held. `choose` decides what of the unflushed is left.
    pub fn after_power_cut(&self, choose: &mut dyn FnMut(Unflushed<'_>) -> Fate) -> MemoryDisk {
        let mut root = self.shared.look().root.copy();
        power_cut::cut_directory(&mut root, Path::new("/"), choose);
        MemoryDisk::holding(root, self.shared.free_bytes.load(Ordering::Relaxed))
    }

    /// The disk a restart finds after the *process* was killed now: a new one with everything there,
    /// and what was unflushed still unflushed, so that a later power cut can take it.
    pub fn after_kill(&self) -> MemoryDisk {
        let root = self.shared.look().root.copy();
        MemoryDisk::holding(root, self.shared.free_bytes.load(Ordering::Relaxed))
    }

    /// A hash of all names and contents as they are now, flushed or not: tells crash states apart.
    pub fn image_hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        hash_directory(&self.shared.look().root, &mut hasher);
        hasher.finish()
    }
}

fn hash_directory(directory: &Directory, hasher: &mut DefaultHasher) {
    directory.entries.len().hash(hasher);
    for (name, node) in &directory.entries {
        name.hash(hasher);
        match node {
            Node::File(file) => file.read().hash_into(hasher),
            Node::Directory(inner) => {
                hasher.write_u8(1);
                hash_directory(inner, hasher);
            }
        }
    }
}

/// The directory of a path and its last name; the root itself has none.
fn split(path: &Path) -> io::Result<(Vec<&str>, &str)> {
    let mut names = names(path)?;
    let name = names.pop().ok_or(ErrorKind::InvalidInput)?;
    Ok((names, name))
}

impl Disk for MemoryDisk {
    /// Two effects a level, as the real one has them: the entry is made, then the parent is flushed.
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        let mut world = self.shared.world()?;
        let names = names(dir)?;
        let World { root, gauge } = &mut *world;
        for depth in 0..names.len() {
            let parent = root.descend_mut(&names[..depth])?;
            if parent.entries.contains_key(names[depth]) {
                continue;
            }
            self.shared.admit(gauge, Effect::CreateDir)?;
            parent.create_dir(names[depth]);
            self.shared.admit(gauge, Effect::FlushDir)?;
            parent.unflushed.clear();
        }
        root.descend(&names).map(|_| ())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let world = self.shared.world()?;
        Ok(world.root.descend(&names(dir)?)?.entries.keys().cloned().collect())
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let world = self.shared.world()?;
        let Ok((parent, name)) = split(path) else {
            return names(path).map(|_| true);
        };
        match world.root.descend(&parent) {
            Ok(parent) => Ok(parent.entries.contains_key(name)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut world = self.shared.world()?;
        let (parent, name) = split(path)?;
        let World { root, gauge } = &mut *world;
        let parent = root.descend_mut(&parent)?;
        if parent.entries.contains_key(name) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        self.shared.admit(gauge, Effect::Create)?;
        Ok(MemoryFile::handle(&self.shared, &parent.create(name)))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let world = self.shared.world()?;
        let (parent, name) = split(path)?;
        let file = world.root.descend(&parent)?.file(name)?;
        Ok(MemoryFile::handle(&self.shared, file))
    }

    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let world = self.shared.world()?;
        let (parent, name) = split(path)?;
        let file = world.root.descend(&parent)?.file(name)?;
        Ok(MemoryFile::reader(&self.shared, file))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut world = self.shared.world()?;
        let ((parent, from), (target, to)) = (split(from)?, split(to)?);
        if parent != target {
            return Err(ErrorKind::InvalidInput.into());
        }
        let World { root, gauge } = &mut *world;
        let parent = root.descend_mut(&parent)?;
        if from == to && parent.entries.contains_key(from) {
            return Ok(());
        }
        parent.may_rename(from, to)?;
        self.shared.admit(gauge, Effect::Rename)?;
        parent.rename(from, to);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut world = self.shared.world()?;
        let (parent, name) = split(path)?;
        let World { root, gauge } = &mut *world;
        let parent = root.descend_mut(&parent)?;
        parent.file(name)?;
        self.shared.admit(gauge, Effect::Remove)?;
        parent.remove(name);
        Ok(())
    }

    fn flush_dir(&self, dir: &Path) -> io::Result<()> {
        let mut world = self.shared.world()?;
        let names = names(dir)?;
        let World { root, gauge } = &mut *world;
        let directory = root.descend_mut(&names)?;
        self.shared.admit(gauge, Effect::FlushDir)?;
        directory.unflushed.clear();
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        if !self.exists(path)?
            && let Err(error) = self.create(path)
            && error.kind() != ErrorKind::AlreadyExists
        {
            return Err(error);
        }
        self.open(path)?;
        let name = names(path)?.join("/");
        if !self.shared.held().insert(name.clone()) {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(HeldLock { shared: Arc::clone(&self.shared), name }))
    }

    fn is_locked(&self, path: &Path) -> io::Result<bool> {
        self.shared.powered()?;
        Ok(self.shared.held().contains(&names(path)?.join("/")))
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.list(dir)?;
        Ok(self.shared.free_bytes.load(Ordering::Relaxed))
    }
}

struct HeldLock {
    shared: Arc<Shared>,
    name: String,
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        self.shared.held().remove(&self.name);
    }
}
