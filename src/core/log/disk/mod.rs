//! The Disk door: everything Hearth ever asks of a file system, as two small traits.
//!
//! It promises one contract, held by one suite of behaviours (`behaviour.rs`), for the real disk and
//! for the simulated one in memory: what is durable when, what is atomic, and which error says what.
//!
//! It must never know what is stored: no segment, no record, no file name of the layers above.
//!
//! **Durable means flushed twice**: a file's bytes and length by [`DiskFile::flush`], its name by
//! [`Disk::flush_dir`] of the directory it stands in. Neither implies the other.

mod memory;
mod real;

#[cfg(test)]
mod behaviour;
#[cfg(test)]
mod counting;

#[cfg(test)]
pub(super) use counting::Counting;
pub use memory::{EffectCounts, EntryChange, Fate, MemoryDisk, Unflushed, everything_kept, everything_lost, torn};
pub use real::RealDisk;

use std::io;
use std::path::Path;
use std::sync::Arc;

/// A place with directories and files. Paths are used as given; `..` is never resolved for a caller.
pub trait Disk: Send + Sync + 'static {
    /// Makes a directory and its missing parents, mode 0700. Ok if it is there already.
    ///
    /// Each parent an entry was made in is flushed, so what this call made is durable when it returns.
    /// A directory that was found there is *not* flushed: the process that made it may have died in
    /// between, so after an unclean start its parent wants a [`Disk::flush_dir`].
    fn create_dir(&self, dir: &Path) -> io::Result<()>;

    /// The names in a directory, sorted. A name that is not UTF-8 is an `InvalidData` error: none is ours.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// Makes a new file, mode 0600, open for reading and writing. `AlreadyExists` if the name is taken.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens a file that is there, for reading and writing.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens a file that is there, for reading only: nothing can be changed through it. Also where nothing may be written.
    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Gives a file another name in the same directory; a file of that name is replaced atomically and
    /// stays readable through open handles. Across directories it is refused with `InvalidInput`: two
    /// directories would have to be flushed, and no order of that is safe.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file (not a directory). It stays readable through open handles.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes every create, rename and remove done in the directory durable. Never retried.
    fn flush_dir(&self, dir: &Path) -> io::Result<()>;

    /// Takes the exclusive lock on a file, which is made if missing and never removed. The lock is held
    /// until the returned value is dropped; `WouldBlock` when another holds it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>>;

    /// Whether somebody holds the lock on a file; nobody holds one on a file that is not there. Changes nothing; but whoever
    /// asks for the lock in the very moment in which this looks may be told that it is held.
    fn is_locked(&self, path: &Path) -> io::Result<bool>;

    /// The bytes an unprivileged process may still fill on the file system of this directory.
    fn free_bytes(&self, dir: &Path) -> io::Result<u64>;
}

/// An open file. All positions are absolute; there is no cursor, so a handle may be shared freely.
#[expect(
    clippy::len_without_is_empty,
    reason = "a length costs a call that can fail; nobody asks only whether it is 0"
)]
pub trait DiskFile: Send + Sync {
    /// Fills as much of `into` as there is: short only at the end of the file.
    fn read_at(&self, position: u64, into: &mut [u8]) -> io::Result<usize>;

    /// The same, but only if it needs no access to the disk; otherwise, or where that cannot be told,
    /// `WouldBlock`. What `into` holds after an error is unspecified.
    fn read_at_now(&self, position: u64, into: &mut [u8]) -> io::Result<usize>;

    /// Writes all of it or fails; after a failure any part of it may be there.
    fn write_at(&self, position: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts the file, or lengthens it with zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;

    fn len(&self) -> io::Result<u64>;

    /// Makes bytes and length durable. **Never retried, not even when interrupted**: after a failed
    /// flush the kernel may have dropped the very pages a second one would then call clean.
    fn flush(&self) -> io::Result<()>;

    /// Asks that the whole file be dropped from the page cache, so that the next read comes from the
    /// medium. Only a hint, and only for what was flushed before.
    fn forget_cached(&self) -> io::Result<()>;
}
