//! The real disk: the Disk door over the operating system's files.
//!
//! It promises what the traits say and adds nothing: no buffer, no cache, no retry of a flush, no
//! descriptor kept after the call or the handle that needed it.
//!
//! It must never know what is stored, nor where: every path comes from the caller. It is the only file
//! of the project that touches `std::fs`.

#![expect(clippy::disallowed_methods, reason = "this is the disk door")]

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, IoSliceMut};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Advice, FlockOperation};
use rustix::io::{Errno, ReadWriteFlags};

use super::{Disk, DiskFile};

/// What is stored belongs to the user the broker runs as, and to nobody else.
const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// The file system of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        match fs::metadata(dir) {
            Ok(found) if found.is_dir() => return Ok(()),
            Ok(_) => return Err(ErrorKind::NotADirectory.into()),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let parent = parent_of(dir);
        self.create_dir(parent)?;
        match DirBuilder::new().mode(DIRECTORY_MODE).create(dir) {
            Ok(()) => {}
            // Another thread was faster, and may not have flushed yet: it must be durable for us too.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        self.flush_dir(parent)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(dir)? {
            let name = entry?.file_name().into_string().map_err(|name| {
                let message = format!("the file name {name:?} is not UTF-8");
                io::Error::new(ErrorKind::InvalidData, message)
            })?;
            names.push(name);
        }
        names.sort_unstable();
        Ok(names)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        fs::exists(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        let file = options.mode(FILE_MODE).open(path)?;
        Ok(Arc::new(RealFile { file }))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = open_regular(OpenOptions::new().read(true).write(true), path)?;
        Ok(Arc::new(RealFile { file }))
    }

    fn open_to_read(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = open_regular(OpenOptions::new().read(true), path)?;
        Ok(Arc::new(RealFile { file }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        if parent_of(from) != parent_of(to) {
            return Err(ErrorKind::InvalidInput.into());
        }
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn flush_dir(&self, dir: &Path) -> io::Result<()> {
        let options = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
        let directory = rustix::fs::open(dir, options, rustix::fs::Mode::empty())?;
        // Not `File::sync_all`: the standard library repeats an interrupted flush.
        rustix::fs::fsync(&directory)?;
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = open_regular(options.mode(FILE_MODE), path)?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        // The lock belongs to the open file description: closing it is letting go.
        Ok(Box::new(file))
    }

    fn is_locked(&self, path: &Path) -> io::Result<bool> {
        let file = match open_regular(OpenOptions::new().read(true), path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        // There is no way to ask for a lock of this kind but to try. A shared one does not stand in the way of others who
        // only ask, and is let go at once.
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(false),
            Err(Errno::WOULDBLOCK) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        let found = rustix::fs::statvfs(dir)?;
        Ok(found.f_bavail.saturating_mul(found.f_frsize))
    }
}

/// Opens a regular file, or makes one if the options say so. What else is there is refused unopened: to open a pipe is to
/// wait for its other end.
fn open_regular(options: &OpenOptions, path: &Path) -> io::Result<File> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(ErrorKind::IsADirectory.into()),
        Ok(found) if !found.is_file() => return Err(io::Error::new(ErrorKind::InvalidInput, "it is no regular file")),
        // Opening says what is wrong, or makes it.
        Ok(_) | Err(_) => {}
    }
    options.open(path)
}

/// The directory a name stands in; a bare name stands in the current one.
fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        None => Path::new("/"),
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
    }
}

struct RealFile {
    file: File,
}

impl DiskFile for RealFile {
    fn read_at(&self, position: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(rest) = into.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, position.saturating_add(filled as u64)) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn read_at_now(&self, position: u64, into: &mut [u8]) -> io::Result<usize> {
        let wanted = into.len();
        let count = loop {
            let mut buffers = [IoSliceMut::new(into)];
            let flags = ReadWriteFlags::NOWAIT;
            match rustix::io::preadv2(&self.file, &mut buffers, position, flags) {
                Ok(count) => break count,
                Err(Errno::INTR) => {}
                // A file system or kernel that cannot tell: the caller takes the blocking way.
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => return Err(ErrorKind::WouldBlock.into()),
                Err(error) => return Err(error.into()),
            }
        };
        // A page missing half-way ends the read early, and looks just like the end of the file.
        if count < wanted && position.saturating_add(count as u64) < self.len()? {
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(count)
    }

    fn write_at(&self, position: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, position)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn flush(&self) -> io::Result<()> {
        // Not `File::sync_data`: the standard library repeats an interrupted flush.
        rustix::fs::fdatasync(&self.file)?;
        Ok(())
    }

    fn forget_cached(&self) -> io::Result<()> {
        rustix::fs::fadvise(&self.file, 0, None, Advice::DontNeed)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::core::log::disk::behaviour;

    /// A directory of its own for one test, removed with everything in it when the test ends.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new() -> Scratch {
            static NEXT: AtomicU64 = AtomicU64::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("hearth-disk-{}-{number}", std::process::id());
            let dir = std::env::temp_dir().join(name);
            fs::create_dir(&dir).unwrap();
            Scratch(dir)
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn the_real_disk_keeps_the_contract() {
        let scratch = Scratch::new();
        behaviour::check(&RealDisk, &scratch.0);
    }

    #[test]
    fn what_is_made_belongs_to_one_user() {
        let scratch = Scratch::new();
        let dir = scratch.0.join("a/b");
        RealDisk.create_dir(&dir).unwrap();
        RealDisk.create(&dir.join("file")).unwrap();
        let _lock = RealDisk.lock(&dir.join("lock")).unwrap();
        assert_eq!(mode(&scratch.0.join("a")), 0o700);
        assert_eq!(mode(&dir), 0o700);
        assert_eq!(mode(&dir.join("file")), 0o600);
        assert_eq!(mode(&dir.join("lock")), 0o600);
    }

    #[test]
    fn a_name_that_is_not_utf8_is_refused_not_skipped() {
        let scratch = Scratch::new();
        let name = std::ffi::OsStr::from_bytes(b"bad-\xff");
        fs::write(scratch.0.join(name), b"").unwrap();
        let error = RealDisk.list(&scratch.0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn a_read_now_answers_rightly_or_would_block_whatever_the_cache_holds() {
        let scratch = Scratch::new();
        let file = RealDisk.create(&scratch.0.join("file")).unwrap();
        let bytes: Vec<u8> = (0..1u32 << 20).map(|at| (at % 251) as u8).collect();
        file.write_at(0, &bytes).unwrap();
        file.flush().unwrap();
        file.forget_cached().unwrap();
        // Bring back one page in the middle, so that a read over it is cut short on either side.
        file.read_at(500_000, &mut [0; 1]).unwrap();
        for start in (0..bytes.len() - 9_000).step_by(4_000) {
            let mut into = vec![0; 9_000];
            match file.read_at_now(start as u64, &mut into) {
                Ok(count) => {
                    assert_eq!(count, into.len(), "short before the end, at {start}");
                    assert_eq!(into, bytes[start..start + 9_000]);
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
    }

    #[test]
    fn what_is_no_regular_file_is_refused_at_once() {
        let scratch = Scratch::new();
        let path = scratch.0.join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        let refusals = [
            RealDisk.open(&path).err(),
            RealDisk.open_to_read(&path).err(),
            RealDisk.is_locked(&path).err(),
            RealDisk.lock(&path).err(),
        ];
        for refusal in refusals {
            assert_eq!(refusal.map(|error| error.to_string()).as_deref(), Some("it is no regular file"));
        }
    }

    #[test]
    fn a_bare_name_stands_in_the_current_directory() {
        assert_eq!(parent_of(Path::new("name")), Path::new("."));
        assert_eq!(parent_of(Path::new("a/name")), Path::new("a"));
        assert_eq!(parent_of(Path::new("/")), Path::new("/"));
    }
}
