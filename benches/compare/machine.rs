//! What the numbers were taken on: processor, kernel, filesystem, versions and the day. Names no path.

use std::path::Path;
use std::process::Command;

use crate::Outcome;

pub struct Versions {
    pub redis: String,
    pub hearth: String,
}

pub struct Machine {
    date: String,
    processor: String,
    cores: usize,
    kernel: String,
    filesystem: String,
    versions: Versions,
}

pub fn describe(data_dir: &Path, versions: Versions) -> Outcome<Machine> {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    // Not every architecture names its processor there.
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    Ok(Machine {
        date: today()?,
        processor: model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned()),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        kernel: format!("Linux {}", kernel.trim()),
        filesystem: filesystem_of(data_dir),
        versions,
    })
}

impl Machine {
    pub fn as_list(&self) -> String {
        format!(
            "- Date: {}\n- Processor: {}, {} cores, shared with the load generator\n- Kernel: {}\n- Filesystem of both \
             data directories: {}\n- redis {}, hearth {}",
            self.date,
            self.processor,
            self.cores,
            self.kernel,
            self.filesystem,
            self.versions.redis,
            self.versions.hearth
        )
    }
}

/// The date of the local calendar, which the standard library cannot tell.
fn today() -> Outcome<String> {
    let output = Command::new("date").arg("+%F").output().map_err(|e| format!("The date could not be asked: {e}."))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The type of the filesystem mounted nearest above the path. Of two mounts at one place the later hides the former.
fn filesystem_of(path: &Path) -> String {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mut nearest = (0, "unknown".to_owned());
    for line in mounts.lines() {
        let Some((left, right)) = line.split_once(" - ") else { continue };
        let (Some(place), Some(kind)) = (left.split(' ').nth(4), right.split(' ').next()) else { continue };
        let depth = Path::new(place).components().count();
        if path.starts_with(place) && depth >= nearest.0 {
            nearest = (depth, kind.to_owned());
        }
    }
    nearest.1
}
