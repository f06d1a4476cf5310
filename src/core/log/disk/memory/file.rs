//! An open file of the simulated disk.
//!
//! It promises that a handle reads and writes its file whatever has become of the name, and that each
//! call that changes something is one effect. It must never know names or directories.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use super::Shared;
use super::gauge::Effect;
use super::tree::Inode;
use crate::core::log::disk::DiskFile;

const EBADF: i32 = 9;
const EINVAL: i32 = 22;

/// The operating system's bound on positions and lengths.
const MAX_LEN: u64 = i64::MAX as u64;

pub(super) struct MemoryFile {
    shared: Arc<Shared>,
    inode: Arc<Inode>,
    read_only: bool,
}

impl MemoryFile {
    pub(super) fn handle(shared: &Arc<Shared>, inode: &Arc<Inode>) -> Arc<dyn DiskFile> {
        Arc::new(MemoryFile { shared: Arc::clone(shared), inode: Arc::clone(inode), read_only: false })
    }

    pub(super) fn reader(shared: &Arc<Shared>, inode: &Arc<Inode>) -> Arc<dyn DiskFile> {
        Arc::new(MemoryFile { shared: Arc::clone(shared), inode: Arc::clone(inode), read_only: true })
    }

    /// What the operating system says of a change through a descriptor that is open for reading: EBADF, or EINVAL for a
    /// length.
    fn writable(&self, code: i32) -> io::Result<()> {
        if self.read_only { Err(io::Error::from_raw_os_error(code)) } else { Ok(()) }
    }
}

impl DiskFile for MemoryFile {
    fn read_at(&self, position: u64, into: &mut [u8]) -> io::Result<usize> {
        self.shared.powered()?;
        Ok(self.inode.read().read(position, into))
    }

    fn read_at_now(&self, position: u64, into: &mut [u8]) -> io::Result<usize> {
        self.read_at(position, into)
    }

    fn write_at(&self, position: u64, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return self.shared.powered();
        }
        self.writable(EBADF)?;
        let end = position.checked_add(bytes.len() as u64);
        let mut world = self.shared.world()?;
        if end.is_none_or(|end| end > MAX_LEN) {
            return Err(ErrorKind::InvalidInput.into());
        }
        self.shared.admit(&mut world.gauge, Effect::Write(bytes.len()))?;
        self.inode.write().write(position, bytes);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.writable(EINVAL)?;
        let mut world = self.shared.world()?;
        if len > MAX_LEN {
            return Err(ErrorKind::InvalidInput.into());
        }
        self.shared.admit(&mut world.gauge, Effect::SetLen)?;
        self.inode.write().set_len(len);
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        self.shared.powered()?;
        Ok(self.inode.read().len())
    }

    fn flush(&self) -> io::Result<()> {
        let mut world = self.shared.world()?;
        self.shared.admit(&mut world.gauge, Effect::Flush)?;
        self.inode.write().flush();
        Ok(())
    }

    /// There is no cache between this disk and its reader: what is read is what was written.
    fn forget_cached(&self) -> io::Result<()> {
        self.shared.powered()
    }
}
