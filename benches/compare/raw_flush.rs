//! The bare flush: one append of a record's size and one fdatasync, over and over, in a file already full of zeros.
//! No server with one client and no pipeline can be faster than this.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::Outcome;

/// A 100-byte value with its key and framing.
const RECORD_LEN: usize = 150;
/// Zero-filled first, so that a flush carries data only and never a change of the file's size.
const FILE_LEN: usize = 8 << 20;
const PROBE_TIME: Duration = Duration::from_millis(500);

/// The file is filled once for a row and goes with the run's folder.
pub struct RawFlush {
    file: File,
    written: usize,
}

/// What one or more probes did.
#[derive(Clone, Copy, Default)]
pub struct Flushed {
    pub appends: u64,
    pub seconds: f64,
}

impl RawFlush {
    pub fn prepare(folder: &Path, name: &str) -> Outcome<RawFlush> {
        let fill = || -> std::io::Result<File> {
            let path = folder.join(format!("raw-flush-{name}"));
            let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
            file.write_all(&vec![0; FILE_LEN])?;
            file.sync_all()?;
            file.seek(SeekFrom::Start(0))?;
            Ok(file)
        };
        let file = fill().map_err(|e| format!("The file for the bare flush could not be prepared: {e}."))?;
        Ok(RawFlush { file, written: 0 })
    }

    /// Appends and flushes for a short while, and adds what it did to `sum`.
    pub fn probe(&mut self, sum: &mut Flushed) -> Outcome<()> {
        let started = Instant::now();
        while started.elapsed() < PROBE_TIME {
            self.append().map_err(|e| format!("The bare flush could not be measured: {e}."))?;
            sum.appends += 1;
        }
        sum.seconds += started.elapsed().as_secs_f64();
        Ok(())
    }

    fn append(&mut self) -> std::io::Result<()> {
        if self.written + RECORD_LEN > FILE_LEN {
            // A fast disk gets to the end; starting over keeps the file's size, which is what matters.
            self.file.seek(SeekFrom::Start(0))?;
            self.written = 0;
        }
        self.file.write_all(&[b'r'; RECORD_LEN])?;
        self.written += RECORD_LEN;
        self.file.sync_data()
    }
}
