//! What the simulated disk promises about faults, power and counting, one test a promise.

use std::io::ErrorKind;

use super::*;

#[test]
fn a_failed_flush_leaves_everything_unflushed_and_fails_once() {
    let disk = MemoryDisk::new();
    let file = durable_file(&disk, "/d/f", b"old");
    file.write_at(0, b"new").unwrap();
    disk.fail_flush(2);
    let before = disk.effects();
    durable_file(&disk, "/d/other", b"its flush is the first");
    let error = file.flush().unwrap_err();
    assert_eq!(error.raw_os_error(), Some(5));
    assert_eq!(content(&all_lost(&disk), "/d/f").unwrap(), b"old");
    assert_eq!((disk.counts().failed_flushes, disk.effects()), (1, before + 4));
    file.flush().unwrap();
    assert_eq!(content(&all_lost(&disk), "/d/f").unwrap(), b"new");
}

#[test]
fn a_failed_write_writes_nothing_and_fails_once() {
    let disk = MemoryDisk::new();
    let file = durable_file(&disk, "/d/f", b"old");
    disk.fail_writes(2);
    file.write_at(0, b"new").unwrap();
    assert_eq!(file.write_at(0, b"???").unwrap_err().raw_os_error(), Some(5));
    assert_eq!(content(&disk, "/d/f").unwrap(), b"new");
    file.write_at(0, b"???").unwrap();
    assert_eq!((disk.counts().writes, disk.counts().failed_writes), (3, 1));
}

#[test]
fn effects_are_what_happened_and_nothing_else() {
    let disk = MemoryDisk::new();
    let file = durable_file(&disk, "/d/f", b"12345");
    disk.create_dir(path("/d")).unwrap();
    disk.create(path("/d/f")).err().unwrap();
    disk.remove(path("/d/absent")).unwrap_err();
    disk.rename(path("/d/f"), path("/d/f")).unwrap();
    file.write_at(0, b"").unwrap();
    file.read_at(0, &mut [0; 5]).unwrap();
    file.set_len(2).unwrap();
    disk.rename(path("/d/f"), path("/d/g")).unwrap();
    disk.remove(path("/d/g")).unwrap();
    let expected = EffectCounts {
        create_dirs: 1,
        creates: 1,
        renames: 1,
        removes: 1,
        dir_flushes: 2,
        writes: 1,
        bytes_written: 5,
        set_lens: 1,
        flushes: 1,
        ..EffectCounts::default()
    };
    assert_eq!((disk.counts(), disk.effects()), (expected, 9));
}

#[test]
fn without_power_every_call_fails_and_says_so() {
    let disk = MemoryDisk::new();
    let file = durable_file(&disk, "/d/f", b"bytes");
    let held = disk.lock(path("/d/lock")).unwrap();
    let before = disk.image_hash();
    disk.power_off_after(disk.effects());
    // Nothing is off until an effect meets the end.
    assert_eq!(file.read_at(0, &mut [0; 5]).unwrap(), 5);
    assert!(!disk.is_off());
    file.write_at(0, b"BYTES").unwrap_err();
    assert!(disk.is_off());
    let (d, f, into) = (path("/d"), path("/d/f"), &mut [0; 5][..]);
    let failures = [
        disk.create_dir(d).err(),
        disk.list(d).err(),
        disk.exists(f).err(),
        disk.create(f).err(),
        disk.create(path("..")).err(),
        disk.open(f).err(),
        disk.rename(f, f).err(),
        disk.remove(f).err(),
        disk.flush_dir(d).err(),
        disk.lock(path("/d/lock")).err(),
        disk.free_bytes(d).err(),
        file.read_at(0, into).err(),
        file.read_at_now(0, into).err(),
        file.write_at(0, b"x").err(),
        file.write_at(0, b"").err(),
        file.write_at(u64::MAX, b"x").err(),
        file.set_len(9).err(),
        file.set_len(u64::MAX).err(),
        file.len().err(),
        file.flush().err(),
        file.forget_cached().err(),
    ];
    for (number, error) in failures.into_iter().enumerate() {
        let error = error.unwrap_or_else(|| panic!("call {number} got through"));
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Other, "the power is off"));
    }
    assert_eq!(disk.image_hash(), before);
    drop(held);
    all_kept(&disk).lock(path("/d/lock")).unwrap();
    assert!(disk.shared.held().is_empty());
}

#[test]
fn free_space_is_what_it_was_set_to() {
    let disk = MemoryDisk::new();
    assert_eq!(disk.free_bytes(path("/")).unwrap(), u64::MAX / 2);
    disk.set_free_bytes(7);
    assert_eq!(all_kept(&disk).free_bytes(path("/")).unwrap(), 7);
}
