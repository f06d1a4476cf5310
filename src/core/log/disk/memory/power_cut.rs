//! What a power cut leaves of the simulated disk, decided thing by thing by a chooser.
//!
//! It promises a fixed order of asking: a directory's changes as they were made, then what survived in
//! it by name, each file's length before its sectors. A chooser is asked only about what its earlier
//! answers left open, so different answers mean different questions, and walking every answer walks
//! every outcome. It must never know effects or faults.

use std::path::{Path, PathBuf};

use super::content::Content;
use super::tree::{Change, Directory, Inode, Node};

/// Whether an unflushed thing reached the medium before the power went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    Kept,
    Lost,
}

/// One thing that was not flushed. Files are called by the name they have after the cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unflushed<'a> {
    /// A sector of 512 bytes. `Lost` means its flushed bytes: zeros if it never had any.
    Sector { file: &'a Path, position: u64 },
    /// The length of a file. `Lost` means the flushed one: what was written beyond is gone, what was
    /// cut off is back.
    Length { file: &'a Path, from: u64, to: u64 },
    /// A change of a directory. `Lost` undoes it and every later one of that directory, unasked.
    Entry { directory: &'a Path, name: &'a str, change: EntryChange<'a> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EntryChange<'a> {
    Created,
    DirectoryCreated,
    /// The name was taken from `from`; a file it named before was replaced.
    Renamed {
        from: &'a str,
    },
    Removed,
}

/// The cautious disk: nothing is there that was not flushed.
pub fn everything_lost() -> impl FnMut(Unflushed<'_>) -> Fate {
    |_| Fate::Lost
}

/// The lucky disk: everything was written just in time.
pub fn everything_kept() -> impl FnMut(Unflushed<'_>) -> Fate {
    |_| Fate::Kept
}

/// Each thing kept or lost by the toss of a seeded coin. A directory's changes are kept with three in
/// four, since otherwise the prefix that survives would nearly always be empty.
pub fn torn(seed: u64) -> impl FnMut(Unflushed<'_>) -> Fate {
    let mut state = seed;
    move |unflushed| {
        let lost_in_four = if matches!(unflushed, Unflushed::Entry { .. }) { 1 } else { 2 };
        if splitmix64(&mut state) >> 62 < lost_in_four { Fate::Lost } else { Fate::Kept }
    }
}

/// A generator of a few lines, so that a seed means the same for ever.
fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

type Chooser<'a> = dyn FnMut(Unflushed<'_>) -> Fate + 'a;

/// Turns a directory and all below it into what is left of it; everything left is flushed.
pub(super) fn cut_directory(directory: &mut Directory, path: &Path, choose: &mut Chooser<'_>) {
    let mut changes = directory.unflushed.iter();
    let first_lost = changes.position(|change| choose(entry(path, change)) == Fate::Lost);
    if let Some(first_lost) = first_lost {
        directory.undo_from(first_lost);
    }
    directory.unflushed.clear();
    for (name, node) in &mut directory.entries {
        let path: PathBuf = path.join(name);
        match node {
            Node::Directory(inner) => cut_directory(inner, &path, choose),
            Node::File(file) => {
                let content = file.read().clone();
                *file = Inode::of(cut_file(content, &path, choose));
            }
        }
    }
}

fn entry<'a>(directory: &'a Path, change: &'a Change) -> Unflushed<'a> {
    let (name, change) = match change {
        Change::Create { name } => (name, EntryChange::Created),
        Change::CreateDir { name } => (name, EntryChange::DirectoryCreated),
        Change::Remove { name, .. } => (name, EntryChange::Removed),
        Change::Rename { from, to, .. } => (to, EntryChange::Renamed { from }),
    };
    Unflushed::Entry { directory, name, change }
}

fn cut_file(content: Content, file: &Path, choose: &mut Chooser<'_>) -> Content {
    let (from, to) = (content.flushed_len(), content.len());
    let len = if from != to && choose(Unflushed::Length { file, from, to }) == Fate::Lost { from } else { to };
    // A sector wholly cut off has nothing new to keep: it comes back with the length it belonged to.
    content.after_cut(len, |position| position >= to || choose(Unflushed::Sector { file, position }) == Fate::Lost)
}
