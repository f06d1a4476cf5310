//! A filesystem of its own whose power can be cut: ext4 in a sparse file, mounted through a loop device.
//!
//! FS_IOC_SHUTDOWN with NOLOGFLUSH stops every write at once and drops the journal that is not on the device yet; what
//! remains after the next mount is what a power cut would have left. Promises to unmount and remove everything, also on
//! panic. Must never know what is on the filesystem.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::support::Scratch;

/// Sparse: only what is written takes space. Each restart may leave a segment behind, so it must hold a few dozen of
/// them.
const IMAGE_BYTES: u64 = 1 << 30;
/// EXT4_IOC_SHUTDOWN and EXT4_GOING_FLAGS_NOLOGFLUSH; Python, because Rust's std has no ioctl. It says when it is ready
/// and then waits for its input, so that no start of an interpreter lies between the moment that was drawn and the cut.
const CUT: &str = "import fcntl, os, struct, sys
point = os.open(sys.argv[1], os.O_RDONLY)
print('armed', flush=True)
if sys.stdin.readline() == 'cut\\n':
    fcntl.ioctl(point, 0x8004587d, struct.pack('I', 2))
    print('cut', flush=True)";
const UNMOUNT_TRIES: u32 = 100;

pub struct Ext4 {
    /// Held for its drop, which comes after ours.
    _scratch: Scratch,
    image: PathBuf,
    point: PathBuf,
    mounted: bool,
}

/// A process that can cut the power of one filesystem.
pub struct Switch {
    process: Child,
    said: BufReader<ChildStdout>,
}

impl Ext4 {
    /// None after one clear line where the machine does not allow it. `HEARTH_POWER_CUTS_REQUIRED=1` makes that a
    /// failure.
    pub fn mounted() -> Option<Self> {
        let made = Self::make();
        if let Err(why) = &made {
            let required = std::env::var_os("HEARTH_POWER_CUTS_REQUIRED").is_some();
            assert!(!required, "power cuts are required here: {why}");
            eprintln!("SKIPPED power cuts: needs root and a loop device ({why})");
        }
        made.ok()
    }

    pub fn path(&self) -> &Path {
        &self.point
    }

    /// Makes a cut possible at once.
    pub fn arm(&self) -> Switch {
        let mut command = Command::new("python3");
        command.args(["-c", CUT]).arg(&self.point).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("running python3");
        let said = BufReader::new(process.stdout.take().expect("stdout is piped"));
        let mut switch = Switch { process, said };
        switch.hears("armed");
        switch
    }

    /// The next boot: the page cache is gone, the journal is replayed. No process may have a file open here.
    pub fn boot(&mut self) {
        self.unmount().expect("unmounting after the cut");
        self.mount().expect("mounting after the cut");
    }

    fn make() -> Result<Self, String> {
        let user = run(Command::new("id").arg("-u"))?;
        if user.trim() != "0" {
            return Err(format!("user id {}", user.trim()));
        }
        run(Command::new("losetup").arg("-f"))?;
        let scratch = Scratch::new("power");
        let (image, point) = (scratch.path().join("image"), scratch.path().join("mounted"));
        std::fs::create_dir(&point).map_err(|error| error.to_string())?;
        File::create(&image).and_then(|file| file.set_len(IMAGE_BYTES)).map_err(|error| error.to_string())?;
        run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image))?;
        let mut made = Self { _scratch: scratch, image, point, mounted: false };
        made.mount()?;
        Ok(made)
    }

    fn mount(&mut self) -> Result<(), String> {
        run(Command::new("mount").args(["-o", "loop"]).arg(&self.image).arg(&self.point))?;
        self.mounted = true;
        Ok(())
    }

    /// A process that was just reaped may hold the filesystem for a moment longer.
    fn unmount(&mut self) -> Result<(), String> {
        let mut last = Ok(());
        for _ in 0..UNMOUNT_TRIES {
            last = run(Command::new("umount").arg(&self.point)).map(drop);
            if last.is_ok() {
                self.mounted = false;
                return Ok(());
            }
            thread::sleep(Duration::from_millis(20));
        }
        last
    }
}

impl Switch {
    /// Cuts the power: nothing is written or flushed any more once this has returned.
    pub fn cut(mut self) {
        let mut input = self.process.stdin.take().expect("stdin is piped");
        input.write_all(b"cut\n").expect("the switch listens");
        self.hears("cut");
    }

    fn hears(&mut self, word: &str) {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("reading from the switch");
        assert_eq!(line.trim_end(), word, "what the switch said (its stderr is above)");
    }
}

impl Drop for Switch {
    /// It holds the mount point open, so it must be gone before the next boot.
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Ext4 {
    fn drop(&mut self) {
        if self.mounted && self.unmount().is_err() {
            // Lazily: the mount point is free at once, the device when its last user is gone.
            let _ = run(Command::new("umount").arg("-l").arg(&self.point));
        }
    }
}

/// Runs a command to its end and gives what it printed, or why it failed.
pub fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}
