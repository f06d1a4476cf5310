//! One folder for a whole run, below the target folder; every data directory lives in it and goes with it.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use crate::Outcome;

const PREFIX: &str = "run-";

pub struct RunDir {
    root: PathBuf,
    next: Cell<u32>,
}

impl RunDir {
    pub fn create(target_dir: &Path) -> Outcome<RunDir> {
        let parent = target_dir.join("compare");
        remove_abandoned(&parent);
        let root = parent.join(format!("{PREFIX}{}", std::process::id()));
        std::fs::create_dir_all(&root).map_err(|e| {
            format!("The folder for data directories could not be created below the target folder: {e}.")
        })?;
        let root =
            root.canonicalize().map_err(|e| format!("The folder for data directories has no full name: {e}."))?;
        Ok(RunDir { root, next: Cell::new(0) })
    }

    pub fn path(&self) -> &Path {
        &self.root
    }

    /// A fresh, empty directory that no earlier server has used.
    pub fn fresh(&self, label: &str) -> Outcome<PathBuf> {
        let number = self.next.get();
        self.next.set(number + 1);
        let path = self.root.join(format!("{number:04}-{label}"));
        std::fs::create_dir(&path).map_err(|e| format!("A fresh data directory could not be created: {e}."))?;
        Ok(path)
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        // A leftover costs disk space only, and the next run removes it.
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

/// An interrupted run leaves its folder. It is named after a process, so it is abandoned when that process is gone.
fn remove_abandoned(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(|pid| pid.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
