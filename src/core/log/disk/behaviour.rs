//! The suite of behaviours every disk must show: one `check` that runs against the real disk and the
//! simulated one, so that what is tested on the one holds on the other.
//!
//! It promises to cover each sentence of the traits that can be seen without a power cut; those that
//! need one are in `memory/tests.rs`. It must never know which disk it is given.

use std::io::ErrorKind;
use std::path::Path;

use super::{Disk, DiskFile};

type Behaviour = fn(&dyn Disk, &Path);

/// Runs every behaviour, each in a directory of its own under `root`, which exists and is empty.
pub(super) fn check(disk: &dyn Disk, root: &Path) {
    let behaviours: [(&str, Behaviour); 12] = [
        ("directories", directories_are_made_with_their_parents),
        ("names", names_are_listed_sorted),
        ("create", create_takes_a_free_name_only),
        ("open", open_wants_a_file),
        ("open-to-read", a_file_opened_to_read_changes_nothing),
        ("rename", rename_replaces_and_stays_in_its_directory),
        ("remove", remove_takes_the_name_not_the_open_file),
        ("read", a_read_is_short_only_at_the_end),
        ("read-now", a_read_now_is_a_read_or_would_block),
        ("write", writes_land_where_they_are_sent),
        ("length", a_cut_file_grows_back_with_zeros),
        ("lock", a_lock_has_one_holder),
    ];
    for (name, behaviour) in behaviours {
        let dir = root.join(name);
        disk.create_dir(&dir).unwrap();
        behaviour(disk, &dir);
    }
    assert!(disk.free_bytes(root).unwrap() > 0);
    assert_eq!(refusal(disk.free_bytes(&root.join("absent"))), ErrorKind::NotFound);
}

fn refusal<T>(result: std::io::Result<T>) -> ErrorKind {
    match result {
        Ok(_) => panic!("this should have been refused"),
        Err(error) => error.kind(),
    }
}

fn content(file: &dyn DiskFile) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
    assert_eq!(file.read_at(0, &mut bytes).unwrap(), bytes.len());
    bytes
}

fn file_with(disk: &dyn Disk, path: &Path, bytes: &[u8]) {
    disk.create(path).unwrap().write_at(0, bytes).unwrap();
}

fn directories_are_made_with_their_parents(disk: &dyn Disk, dir: &Path) {
    disk.create_dir(&dir.join("a/b/c")).unwrap();
    disk.create_dir(&dir.join("a/b/c")).unwrap();
    disk.create_dir(&dir.join("a/b/d")).unwrap();
    assert_eq!(disk.list(&dir.join("a/b")).unwrap(), ["c", "d"]);
    file_with(disk, &dir.join("file"), b"x");
    assert_eq!(refusal(disk.create_dir(&dir.join("file"))), ErrorKind::NotADirectory);
    assert_eq!(refusal(disk.create_dir(&dir.join("file/e"))), ErrorKind::NotADirectory);
}

fn names_are_listed_sorted(disk: &dyn Disk, dir: &Path) {
    assert!(disk.list(dir).unwrap().is_empty());
    for name in ["10", "b", "2", "a"] {
        disk.create(&dir.join(name)).unwrap();
    }
    disk.create_dir(&dir.join("3")).unwrap();
    assert_eq!(disk.list(dir).unwrap(), ["10", "2", "3", "a", "b"]);
    assert_eq!(refusal(disk.list(&dir.join("absent"))), ErrorKind::NotFound);
    assert_eq!(refusal(disk.list(&dir.join("a"))), ErrorKind::NotADirectory);
    assert_eq!(refusal(disk.flush_dir(&dir.join("absent"))), ErrorKind::NotFound);
    disk.flush_dir(dir).unwrap();
}

fn create_takes_a_free_name_only(disk: &dyn Disk, dir: &Path) {
    let path = dir.join("file");
    assert!(!disk.exists(&path).unwrap());
    file_with(disk, &path, b"first");
    assert!(disk.exists(&path).unwrap());
    assert_eq!(refusal(disk.create(&path)), ErrorKind::AlreadyExists);
    assert_eq!(refusal(disk.create(dir)), ErrorKind::AlreadyExists);
    assert_eq!(refusal(disk.create(&dir.join("absent/file"))), ErrorKind::NotFound);
    assert_eq!(content(&*disk.open(&path).unwrap()), b"first");
}

fn open_wants_a_file(disk: &dyn Disk, dir: &Path) {
    assert_eq!(refusal(disk.open(&dir.join("absent"))), ErrorKind::NotFound);
    assert_eq!(refusal(disk.open(dir)), ErrorKind::IsADirectory);
    file_with(disk, &dir.join("file"), b"one");
    let (left, right) = (disk.open(&dir.join("file")).unwrap(), disk.open(&dir.join("file")).unwrap());
    left.write_at(3, b" two").unwrap();
    assert_eq!(content(&*right), b"one two");
    assert_eq!(refusal(disk.open(&dir.join("file/x"))), ErrorKind::NotADirectory);
    assert_eq!(refusal(disk.exists(&dir.join("file/x"))), ErrorKind::NotADirectory);
}

fn a_file_opened_to_read_changes_nothing(disk: &dyn Disk, dir: &Path) {
    let path = dir.join("file");
    file_with(disk, &path, b"as it is");
    let (reader, writer) = (disk.open_to_read(&path).unwrap(), disk.open(&path).unwrap());
    assert!(reader.write_at(0, b"X").is_err() && reader.set_len(2).is_err());
    assert_eq!((content(&*reader), reader.len().unwrap()), (b"as it is".to_vec(), 8));
    writer.write_at(0, b"AS").unwrap();
    assert_eq!(content(&*reader), b"AS it is");
    reader.forget_cached().unwrap();
    assert_eq!(refusal(disk.open_to_read(&dir.join("absent"))), ErrorKind::NotFound);
    assert_eq!(refusal(disk.open_to_read(dir)), ErrorKind::IsADirectory);
}

fn rename_replaces_and_stays_in_its_directory(disk: &dyn Disk, dir: &Path) {
    let (from, to) = (dir.join("from"), dir.join("to"));
    file_with(disk, &from, b"new");
    file_with(disk, &to, b"old");
    let replaced = disk.open(&to).unwrap();
    let moved = disk.open(&from).unwrap();
    disk.rename(&from, &to).unwrap();
    assert_eq!(disk.list(dir).unwrap(), ["to"]);
    assert_eq!(content(&*disk.open(&to).unwrap()), b"new");
    assert_eq!(content(&*replaced), b"old");
    moved.write_at(0, b"N").unwrap();
    assert_eq!(content(&*disk.open(&to).unwrap()), b"New");

    disk.rename(&to, &to).unwrap();
    assert_eq!(disk.list(dir).unwrap(), ["to"]);
    assert_eq!(refusal(disk.rename(&from, &to)), ErrorKind::NotFound);
    disk.create_dir(&dir.join("other")).unwrap();
    assert_eq!(refusal(disk.rename(&to, &dir.join("other/to"))), ErrorKind::InvalidInput);
    assert_eq!(refusal(disk.rename(&to, &dir.join("other"))), ErrorKind::IsADirectory);
    disk.create(&dir.join("other/inside")).unwrap();
    disk.rename(&dir.join("other"), &dir.join("another")).unwrap();
    assert_eq!(disk.list(&dir.join("another")).unwrap(), ["inside"]);
}

fn remove_takes_the_name_not_the_open_file(disk: &dyn Disk, dir: &Path) {
    let path = dir.join("file");
    file_with(disk, &path, b"kept open");
    let open = disk.open(&path).unwrap();
    disk.remove(&path).unwrap();
    assert!(!disk.exists(&path).unwrap());
    assert_eq!(content(&*open), b"kept open");
    open.write_at(0, b"K").unwrap();
    open.flush().unwrap();
    assert_eq!(content(&*open), b"Kept open");
    assert_eq!(refusal(disk.remove(&path)), ErrorKind::NotFound);
    assert_eq!(refusal(disk.remove(dir)), ErrorKind::IsADirectory);
    // The name is free again, for a file that has nothing to do with the first.
    file_with(disk, &path, b"second");
    assert_eq!(content(&*open), b"Kept open");
}

fn a_read_is_short_only_at_the_end(disk: &dyn Disk, dir: &Path) {
    let file = disk.create(&dir.join("file")).unwrap();
    let bytes: Vec<u8> = (0..10_000u32).map(|at| (at % 251) as u8).collect();
    file.write_at(0, &bytes).unwrap();
    for (position, wanted) in [(0, 10_000), (4_090, 12), (9_990, 100), (10_000, 5), (99_999, 5), (7, 0)] {
        let mut into = vec![0; wanted];
        let count = file.read_at(position as u64, &mut into).unwrap();
        let expected = &bytes[position.min(10_000)..(position + wanted).min(10_000)];
        assert_eq!(&into[..count], expected, "{wanted} bytes at {position}");
    }
}

fn a_read_now_is_a_read_or_would_block(disk: &dyn Disk, dir: &Path) {
    let file = disk.create(&dir.join("file")).unwrap();
    file.write_at(0, &[7; 10_000]).unwrap();
    for (position, wanted, expected) in [(0, 100, 100), (4_000, 6_000, 6_000), (9_990, 100, 10), (10_000, 5, 0)] {
        let mut into = vec![0; wanted];
        match file.read_at_now(position, &mut into) {
            Ok(count) => {
                assert_eq!(count, expected);
                assert!(into[..count].iter().all(|byte| *byte == 7));
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    file.flush().unwrap();
    file.forget_cached().unwrap();
    assert_eq!(content(&*file), [7; 10_000]);
}

fn writes_land_where_they_are_sent(disk: &dyn Disk, dir: &Path) {
    let file = disk.create(&dir.join("file")).unwrap();
    file.write_at(9_000, b"far").unwrap();
    file.write_at(4_094, b"over a page").unwrap();
    file.write_at(0, b"").unwrap();
    file.write_at(99_999, b"").unwrap();
    let mut expected = vec![0; 9_003];
    expected[9_000..].copy_from_slice(b"far");
    expected[4_094..4_105].copy_from_slice(b"over a page");
    assert_eq!(content(&*file), expected);
    file.write_at(9_000, &[0; 3]).unwrap();
    expected[9_000..].fill(0);
    assert_eq!(content(&*file), expected);
    assert_eq!(refusal(file.write_at(u64::MAX - 1, b"abc")), ErrorKind::InvalidInput);
    file.flush().unwrap();
    assert_eq!(content(&*file), expected);
}

fn a_cut_file_grows_back_with_zeros(disk: &dyn Disk, dir: &Path) {
    let file = disk.create(&dir.join("file")).unwrap();
    file.write_at(0, &[9; 9_000]).unwrap();
    for cut in [8_500, 5_000, 4_096, 100] {
        file.set_len(cut).unwrap();
        assert_eq!(file.len().unwrap(), cut);
        file.set_len(9_000).unwrap();
        let mut expected = vec![0; 9_000];
        expected[..cut as usize].fill(9);
        assert_eq!(content(&*file), expected, "cut to {cut}");
    }
    file.set_len(0).unwrap();
    assert!(content(&*file).is_empty());
    assert_eq!(refusal(file.set_len(u64::MAX)), ErrorKind::InvalidInput);
}

fn a_lock_has_one_holder(disk: &dyn Disk, dir: &Path) {
    let path = dir.join("lock");
    assert!(!disk.is_locked(&path).unwrap() && !disk.exists(&path).unwrap(), "to ask makes nothing");
    let held = disk.lock(&path).unwrap();
    assert!(disk.exists(&path).unwrap());
    assert!(disk.is_locked(&path).unwrap() && disk.is_locked(&path).unwrap());
    assert_eq!(refusal(disk.lock(&path)), ErrorKind::WouldBlock);
    let _other = disk.lock(&dir.join("other")).unwrap();
    drop(held);
    assert!(!disk.is_locked(&path).unwrap());
    let again = disk.lock(&path).unwrap();
    assert_eq!(refusal(disk.lock(&path)), ErrorKind::WouldBlock);
    drop(again);
    assert!(disk.exists(&path).unwrap());
    assert_eq!(refusal(disk.lock(&dir.join("absent/lock"))), ErrorKind::NotFound);
}
