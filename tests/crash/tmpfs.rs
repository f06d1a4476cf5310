//! A small disk of its own, and a neighbour who takes what is free on it.
//!
//! A tmpfs of a given size: full is full, to the byte, and nobody else's disk is touched. Promises to unmount it, also on
//! panic. Must never know what is on it.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::ext4::run;
use crate::support::Scratch;

const PAGE_BYTES: u64 = 4096;
const PIECE_BYTES: u64 = 1 << 20;

pub struct Tmpfs {
    /// Held for its drop, which comes after ours.
    _scratch: Scratch,
    point: PathBuf,
}

impl Tmpfs {
    /// None after one clear line where the machine does not allow it. `HEARTH_WALLS_REQUIRED=1` makes that a failure.
    pub fn mounted(bytes: u64) -> Option<Self> {
        let made = Self::make(bytes);
        if let Err(why) = &made {
            let required = std::env::var_os("HEARTH_WALLS_REQUIRED").is_some();
            assert!(!required, "full disks are required here: {why}");
            eprintln!("SKIPPED a full disk: needs root to mount a tmpfs ({why})");
        }
        made.ok()
    }

    pub fn path(&self) -> &Path {
        &self.point
    }

    /// What may still be filled.
    pub fn free_bytes(&self) -> u64 {
        free_bytes(&self.point)
    }

    fn make(bytes: u64) -> Result<Self, String> {
        let user = run(Command::new("id").arg("-u"))?;
        if user.trim() != "0" {
            return Err(format!("user id {}", user.trim()));
        }
        let scratch = Scratch::new("tmpfs");
        let point = scratch.path().join("mounted");
        std::fs::create_dir(&point).map_err(|error| error.to_string())?;
        let size = format!("size={bytes},mode=0700");
        run(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "hearth-test"]).arg(&point))?;
        Ok(Self { _scratch: scratch, point })
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // Lazily: the mount point is free at once, the memory when its last user is gone.
        let _ = run(Command::new("umount").arg("-l").arg(&self.point));
    }
}

fn free_bytes(path: &Path) -> u64 {
    let found = rustix::fs::statvfs(path).expect("a mounted filesystem");
    found.f_bavail * found.f_frsize
}

/// A file of somebody else that grows into whatever becomes free, until it is removed.
pub struct Neighbour {
    path: PathBuf,
    enough: Arc<AtomicBool>,
    taken: Arc<AtomicU64>,
    eater: Option<JoinHandle<()>>,
}

impl Neighbour {
    /// Takes everything but `leave` bytes, and what becomes free later, too.
    pub fn moves_in(disk: &Tmpfs, leave: u64) -> Self {
        let path = disk.path().join("neighbour");
        let file = OpenOptions::new().append(true).create(true).open(&path).expect("a file on the disk");
        let (enough, taken) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let mut appetite = Appetite { file, at: disk.path().to_path_buf(), leave, taken: Arc::clone(&taken) };
        appetite.eat();
        let stop = Arc::clone(&enough);
        let eater = thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                appetite.eat();
                thread::sleep(Duration::from_millis(1));
            }
        });
        Self { path, enough, taken, eater: Some(eater) }
    }

    /// What the file takes.
    pub fn taken_bytes(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Removes the file.
    pub fn moves_out(mut self) -> u64 {
        self.stop();
        self.taken_bytes()
    }

    fn stop(&mut self) {
        self.enough.store(true, Ordering::Relaxed);
        if let Some(eater) = self.eater.take() {
            let _ = eater.join();
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Appetite {
    file: File,
    at: PathBuf,
    leave: u64,
    taken: Arc<AtomicU64>,
}

impl Appetite {
    fn eat(&mut self) {
        let zeros = [0; PIECE_BYTES as usize];
        loop {
            let free = free_bytes(&self.at).saturating_sub(self.leave);
            let piece = if free >= PIECE_BYTES { PIECE_BYTES } else { PAGE_BYTES };
            if free < piece {
                return;
            }
            // Somebody else may be faster.
            if self.file.write_all(&zeros[..piece as usize]).is_err() {
                return;
            }
            self.taken.fetch_add(piece, Ordering::Relaxed);
        }
    }
}
