//! Frozen data directories, `tests/fixtures/format-N/`: how one is written, and how one is read back to be compared.
//!
//! Promise: written once for each format, through the store and on the real disk, by the build that first had that format,
//! and never again: a directory that is there is not overwritten. Must never know a byte of what it writes.
#![expect(clippy::disallowed_methods, reason = "fixtures are files of the project")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hearth::core::log::disk::{Disk, MemoryDisk, RealDisk};
use hearth::core::log::{FORMAT, FsyncPolicy};
use hearth::core::op::Expiry;
use hearth::core::types::{Epoch, Millis, SegmentNo};

use crate::bed::{Bed, ROOT, START, World};
use crate::model::{Ask, State};
use crate::writer::{compact, delete, put, write_batch};

/// So small that the run below fills several.
pub const SEGMENT_BYTES: u32 = 4096;
/// The two ways a fixture ends; the same run comes before.
pub const ENDS: [&str; 2] = ["clean", "killed"];
/// Everything of one fixture; the repository carries it for ever.
const MAX_FIXTURE_BYTES: u64 = 100 * 1024;

/// Where the fixture of a format stands.
pub fn fixture_dir(format: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/format-{format}"))
}

/// The formats that have a fixture, oldest first.
pub fn fixture_formats() -> Vec<u32> {
    let names = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")).expect("fixtures are there");
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("readable").file_name().into_string().ok();
    let mut formats: Vec<u32> = names.filter_map(|entry| name(entry)?.strip_prefix("format-")?.parse().ok()).collect();
    formats.sort_unstable();
    formats
}

/// A world as it was when the run below had ended; nothing of its disk.
pub fn world_after_the_run() -> World {
    let world = World::new(FsyncPolicy::Always, SEGMENT_BYTES);
    world.clock.advance(40_000);
    world
}

/// A copy of a frozen data directory on a disk in memory.
pub fn copied(format: u32, end: &str) -> MemoryDisk {
    copy_to_memory(&fixture_dir(format).join(end))
}

/// What is in a data directory of the machine, on a disk in memory.
pub fn copy_to_memory(root: &Path) -> MemoryDisk {
    let disk = MemoryDisk::new();
    copy(root, &disk, Path::new(ROOT));
    disk
}

fn copy(from: &Path, disk: &MemoryDisk, to: &Path) {
    disk.create_dir(to).expect("a sound disk");
    for entry in fs::read_dir(from).expect("a fixture") {
        let entry = entry.expect("readable");
        let to = to.join(entry.file_name());
        if entry.file_type().expect("readable").is_dir() {
            copy(&entry.path(), disk, &to);
            continue;
        }
        let bytes = fs::read(entry.path()).expect("readable");
        let file = disk.create(&to).expect("a new file");
        file.write_at(0, &bytes).expect("a sound disk");
        file.flush().expect("a sound disk");
    }
    disk.flush_dir(to).expect("a sound disk");
}

/// What `expected.txt` of a format says.
pub fn expected(format: u32) -> String {
    fs::read_to_string(fixture_dir(format).join("expected.txt")).expect("a fixture has its expected.txt")
}

/// A state in the form of `expected.txt`: one key a line, escaped as in a byte string, with its value, revision and expiry.
pub fn render(epoch: Epoch, next_offset: u64, state: &State) -> String {
    let mut text = String::from("# \"key\" \"value\" revision expiry (Unix milliseconds, 0 = never)\n");
    let _ = writeln!(text, "epoch {epoch}\nnext offset {next_offset}");
    for (key, held) in state {
        let (key, value) = (key.escape_ascii(), held.value.escape_ascii());
        let _ = writeln!(text, "\"{key}\" \"{value}\" {} {}", held.revision, held.expires_at.0);
    }
    text
}

/// An open store that is being written to, and what must be in it.
struct Run<'w> {
    world: &'w World,
    root: &'w Path,
    bed: Bed,
    state: State,
}

impl Run<'_> {
    /// One batch; then half a second passes.
    fn batch(&mut self, asks: &[Ask]) {
        write_batch(&mut self.bed, &mut self.state, asks);
        self.world.clock.advance(500);
    }

    fn stop_cleanly(&mut self) {
        self.bed.driver.close().expect("a sound disk");
    }

    /// The former process is gone, whether it stopped cleanly or not; the next one opens.
    fn restarted(self) -> Self {
        let Self { world, root, bed, state } = self;
        drop(bed);
        let bed = world.open_in(Arc::new(RealDisk), root).expect("it opens again");
        assert_eq!(bed.contents().expect("readable"), state);
        Self { world, root, bed, state }
    }

    fn everything_there_is(&mut self) {
        let far = Expiry::At(Millis(4_102_444_800_000));
        let soon = Expiry::At(Millis(START.0 + 600_000));
        let binary: Vec<u8> = (0..=255).collect();
        self.batch(&[put(b"plain", b"one", Expiry::Never)]);
        self.batch(&[put(b"far", b"expires in 2100", far), put(b"soon", b"expires in ten minutes", soon)]);
        self.batch(&[put(b"", b"the empty key", Expiry::Never), put(b"empty value", b"", Expiry::Never)]);
        self.batch(&[put(&binary, b"a key of every byte", far), put(b"every byte", &binary, Expiry::Never)]);
        self.batch(&[put(b"zeros", &[0; 1024], Expiry::Never)]);
        self.batch(&[put(b"goes", b"first", Expiry::Never), put(b"lapsed", b"", Expiry::At(Millis(START.0 + 4_000)))]);
        self.batch(&[put(b"plain", b"two", soon), delete(b"goes")]);
        self.batch(&[put(b"gone and back", b"first", far)]);
        self.batch(&[delete(b"gone and back")]);
    }

    /// Some keys, and then none.
    fn cleared(&mut self) {
        self.batch(&[put(b"plain", b"before the clear", Expiry::Never), put(b"cleared", b"too", Expiry::Never)]);
        let holds = self.bed.turns().turn().clear().expect("room");
        self.bed.driver.run_to_idle().expect("a sound disk");
        assert_eq!(holds.len(), 1, "there was something to clear");
        self.state.clear();
    }

    fn first_segment(&self) -> SegmentNo {
        self.bed.shard.segments.first().expect("a segment").number
    }

    /// Makes the log as small as it should be.
    fn compacted(&mut self) {
        let first = self.first_segment();
        compact(&mut self.bed);
        assert!(self.first_segment() > first, "something was trimmed");
    }

    fn more(&mut self, fill: u8) {
        for round in 0..4 {
            self.batch(&[
                put(b"long", &[fill + round; 700], Expiry::Never),
                put(&[0, fill, round], b"\r\n", Expiry::Never),
            ]);
        }
        self.batch(&[delete(&[0, fill, 0]), put(b"keeps", &[fill], Expiry::Never)]);
        self.batch(&[put(b"plain", b"again", Expiry::Keep), put(b"lapsed", b"and back", Expiry::Never)]);
        self.batch(&[put(b"gone and back", &[fill; 3], Expiry::Never)]);
    }
}

/// Writes the run into `root`, ends it as `end` says, and gives what `expected.txt` must say of it.
fn write_directory(root: &Path, end: &str) -> String {
    let world = World::new(FsyncPolicy::Always, SEGMENT_BYTES);
    let bed = world.open_in(Arc::new(RealDisk), root).expect("a new store");
    let mut run = Run { world: &world, root, bed, state: State::new() };
    run.cleared();
    run.everything_there_is();
    run.stop_cleanly();
    let mut run = run.restarted();
    [b'a', b'e', b'i', b'm', b'q'].into_iter().for_each(|fill| run.more(fill));
    run.compacted();
    let mut run = run.restarted();
    run.more(b'u');
    run.compacted();
    run.more(b'y');
    if end == "clean" {
        run.stop_cleanly();
    }
    let text = render(run.bed.report.epoch, run.bed.shard.frontier.applied_next().0, &run.state);
    assert!(world.clock_is_within_the_run(), "the run takes longer than the tests think");
    text
}

impl World {
    fn clock_is_within_the_run(&self) -> bool {
        self.now() <= world_after_the_run().now()
    }
}

fn bytes_below(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).expect("readable").map(|entry| entry.expect("readable"));
    let of = |entry: fs::DirEntry| match entry.file_type().expect("readable").is_dir() {
        true => bytes_below(&entry.path()),
        false => entry.metadata().expect("readable").len(),
    };
    entries.map(of).sum()
}

#[test]
#[ignore = "writes the fixture of a new format; run by hand, once for each format"]
fn make_fixture() {
    let dir = fixture_dir(FORMAT);
    assert!(!dir.exists(), "{} is frozen; only a build of another format writes another", dir.display());
    fs::create_dir_all(&dir).expect("a new directory");
    let texts = ENDS.map(|end| write_directory(&dir.join(end), end));
    assert_eq!(texts[0], texts[1], "the same run was written twice");
    fs::write(dir.join("expected.txt"), &texts[0]).expect("a new file");
    let bytes = bytes_below(&dir);
    println!("{} bytes in {}", bytes, dir.display());
    assert!(bytes < MAX_FIXTURE_BYTES, "too large to keep");
}
