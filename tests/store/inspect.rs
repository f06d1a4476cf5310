//! `hearth inspect` against what opening then really does: each row of the recovery table, a store's own refusals, and
//! damage in many places. Whatever is looked at, nothing on the disk changes.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hearth::cli::inspect::{Inspect, Verdict};
use hearth::core::entropy::Entropy;
use hearth::core::error::OpenError;
use hearth::core::log::FsyncPolicy;
use hearth::core::log::anchor::{Anchor, AnchorRead, AnchorState};
use hearth::core::log::codec::{SECTOR_BYTES, Sector};
use hearth::core::log::disk::Disk;
use hearth::core::log::frame::{BatchBuilder, BatchType, Place};
use hearth::core::log::open::recover;
use hearth::core::log::segment::{HeaderRead, SEGMENT_HEADER_BYTES, SegmentHeader, file_name};
use hearth::core::log::start::LogStart;
use hearth::core::log::writer::LogOptions;
use hearth::core::progress::Progress;
use hearth::core::record::control::{ControlRecord, Trim};
use hearth::core::types::{Epoch, Generation, Index, Millis, SegmentNo};

use crate::bed::{Bed, ROOT, START, World, bytes_of, newest_segment, segment_files, shard_dir, shard_id};

const SEGMENT_BYTES: u32 = 4096;

/// Looks at the world's disk, and that nothing of it changed.
fn look(world: &World, records: bool, live: bool) -> (Verdict, String) {
    let (image, effects) = (world.disk.image_hash(), world.disk.effects());
    let asked = Inspect { dir: PathBuf::from(ROOT), records, live };
    let mut out = Vec::new();
    let verdict = asked.run(&world.disk, world.now(), &mut out).expect("a vector takes everything");
    assert_eq!((world.disk.image_hash(), world.disk.effects()), (image, effects), "looking changed something");
    (verdict, String::from_utf8(out).expect("it prints text"))
}

/// Looks in every way, then opens a copy of the disk, and compares the two.
#[track_caller]
fn agreed(world: &World, what: &str) -> (Verdict, String) {
    let (verdict, text) = look(world, false, false);
    for (records, live) in [(true, false), (false, true)] {
        assert_eq!(look(world, records, live).0, verdict, "{what}: one verdict, however much is printed");
    }
    match world.with_disk(world.disk.after_kill()).open() {
        Err(error) => {
            let expected = match &error {
                OpenError::Damaged { .. } => Verdict::Damaged,
                OpenError::OtherFormat { .. } | OpenError::NotOurs { .. } => Verdict::Foreign,
                other => panic!("{what}: {other}"),
            };
            assert_eq!(verdict, expected, "{what}: {error}\n{text}");
            assert!(text.contains(&format!("\n    hearth: {error}\n  next: ")), "{what}: {error}\n{text}");
        }
        Ok(bed) => {
            assert!(matches!(verdict, Verdict::OpensAsItIs | Verdict::WouldRepair), "{what}: it opens\n{text}");
            let cut = bed.report.cut.map(|(segment, at)| format!("R14: segment {} is cut off at byte {at}", segment.0));
            assert_eq!(text.contains("R14: "), cut.is_some(), "{what}\n{text}");
            assert!(cut.is_none_or(|cut| text.contains(&cut)), "{what}\n{text}");
            assert_eq!(text.contains("is flushed, and goes on"), bed.report.unclean, "{what}\n{text}");
            assert_eq!(text.contains("gets a new epoch"), bed.report.new_epoch, "{what}\n{text}");
            assert_eq!(text.contains("begins a new log"), bed.report.created, "{what}\n{text}");
        }
    }
    (verdict, text)
}

/// Three keys put again and again over four segments or more; then a clean stop, or a kill.
fn log(policy: FsyncPolicy, clean: bool) -> World {
    let world = World::new(policy, SEGMENT_BYTES);
    let mut bed = world.open().expect("a new store");
    for round in 0..14_u8 {
        bed.put(&[b'a' + round % 3], &[round + 1; 900]).expect("room");
        bed.driver.run_to_idle().expect("a sound disk");
        world.clock.advance(1000);
    }
    bed.put(b"last", b"small").expect("room");
    bed.driver.run_to_idle().expect("a sound disk");
    if clean {
        bed.driver.close().expect("a sound disk");
    }
    assert!(newest_segment(&world.disk) >= 4);
    drop(bed);
    world
}

fn path(world: &World, number: u64) -> PathBuf {
    shard_dir(&world.disk).join(file_name(SegmentNo(number)))
}

fn write(world: &World, path: &Path, at: u64, bytes: &[u8]) {
    let file = world.disk.open(path).expect("it is there");
    file.write_at(at, bytes).expect("a sound disk");
    file.flush().expect("a sound disk");
}

fn zero_whole(world: &World, number: u64) {
    let path = path(world, number);
    write(world, &path, 0, &vec![0; bytes_of(&world.disk, &path).len()]);
}

fn flip(world: &World, path: &Path, at: usize) {
    let byte = bytes_of(&world.disk, path)[at];
    write(world, path, at as u64, &[byte ^ 1]);
}

fn change_anchor(world: &World, change: impl FnOnce(&mut AnchorState)) {
    let dir = shard_dir(&world.disk);
    let AnchorRead::Sound(state) = Anchor::read(&world.disk, &dir).expect("a sound disk") else {
        panic!("the anchor is sound")
    };
    let mut anchor = Anchor::open(&world.disk, &dir, &state).expect("a sound disk").expect("it says that");
    anchor.update_both(change).expect("a sound disk");
}

fn set_format(world: &World, path: &Path, at: u64, crc_at: usize, format: u32) {
    let mut bytes = [0; SECTOR_BYTES];
    bytes.copy_from_slice(&bytes_of(&world.disk, path)[at as usize..at as usize + SECTOR_BYTES]);
    let mut sector = Sector(bytes);
    sector.put_u32(8, format);
    sector.seal(crc_at);
    write(world, path, at, &sector.0);
}

/// Where the segment begins.
fn start_of(world: &World, number: u64) -> LogStart {
    match SegmentHeader::decode(&bytes_of(&world.disk, &path(world, number)), &shard_id(), SegmentNo(number)) {
        HeaderRead::Sound(header) => header.start(),
        other => panic!("{other:?}"),
    }
}

/// Appends a batch with one record to the log, flushed; `committed` says whether its header tells that it is committed.
fn append(world: &World, batch_type: BatchType, committed: bool, body: &[u8]) {
    let options = LogOptions {
        shard: shard_id(),
        segment_bytes: SEGMENT_BYTES,
        policy: world.options.policy,
        max_open_segments: 2,
        entropy: Arc::new(Entropy::seeded(2)),
    };
    let disk = Arc::new(world.disk.clone());
    let recovered = recover(disk, &shard_dir(&world.disk), options, &Progress::default(), |_| Ok(()));
    let (mut log, _) = recovered.expect("it opens").into_writer().expect("a sound disk");
    let state = log.anchor().state().clone();
    log.save_vote(state.generation, state.vote).expect("a sound disk");
    let mut builder = BatchBuilder::new(batch_type, log.tail().next_offset);
    builder.push(|into| into.extend_from_slice(body));
    let (index, generation) = (log.tail().next_index, log.tail().generation);
    let known = if committed { index } else { log.flushed() };
    let place = Place { index, generation, durable: log.flushed(), committed: known };
    log.append(&builder.finish(world.now()), place, world.now()).expect("room");
    log.flushed_upto(index, log.flush_target().expect("it appended").flush()).expect("a sound disk");
}

fn append_trim(world: &World, start: &LogStart, committed: bool) {
    let trim = ControlRecord::Trim(Trim {
        base_offset: start.offset,
        base_index: start.index,
        base_generation: start.generation,
        epoch: Epoch(7),
        configuration: start.configuration.clone(),
        configuration_index: start.configuration_index,
    });
    let mut body = Vec::new();
    trim.encode(&mut body);
    append(world, BatchType::Control, committed, &body);
}

/// A log with one thing done to it, and what is said of it.
struct Case {
    /// What the report must say.
    says: &'static str,
    verdict: Verdict,
    clean: bool,
    done: fn(&World),
}

const fn case(says: &'static str, verdict: Verdict, clean: bool, done: fn(&World)) -> Case {
    Case { says, verdict, clean, done }
}

const CASES: &[Case] = &[
    case("refused (R1)", Verdict::Foreign, true, |world| {
        let anchor = shard_dir(&world.disk).join("anchor");
        set_format(world, &anchor, 0, 12, 3);
        set_format(world, &anchor, 4096, 12, 3);
    }),
    case("of format 3 (R1)", Verdict::Foreign, false, |world| set_format(world, &path(world, 3), 0, 16, 3)),
    case("R2: segment 1: left by a trim, removed unread", Verdict::WouldRepair, true, |world| {
        let start = start_of(world, 2);
        change_anchor(world, |state| state.start = start);
        write(world, &path(world, 1), 0, &[0xee; 2000]);
    }),
    case("segments 1 to 3: below the log start, left by a trim, not read (R2)", Verdict::WouldRepair, true, |world| {
        let start = start_of(world, 4);
        change_anchor(world, |state| state.start = start);
    }),
    case("refused at byte 0 (R3)", Verdict::Damaged, true, |world| {
        write(world, &path(world, 4), 0, &[0; SEGMENT_HEADER_BYTES]);
    }),
    case("there is no log in its directory", Verdict::Damaged, true, |world| {
        for (_, path) in segment_files(&world.disk) {
            world.disk.remove(&path).expect("it is there");
        }
        world.disk.remove(&shard_dir(&world.disk).join("anchor")).expect("it is there");
    }),
    case("refused (R5)", Verdict::Damaged, true, |world| {
        world.disk.remove(&shard_dir(&world.disk).join("anchor")).expect("it is there");
    }),
    case("refused (R6)", Verdict::Damaged, false, |world| {
        for place in [0, 4096] {
            write(world, &shard_dir(&world.disk).join("anchor"), place, &[0xee; SECTOR_BYTES]);
        }
    }),
    case("refused (R7)", Verdict::Damaged, false, |world| change_anchor(world, |s| s.start.index = Index(1000))),
    case("made ahead and empty (R8)", Verdict::OpensAsItIs, true, |world| {
        let file = world.disk.create(&path(world, newest_segment(&world.disk) + 1)).expect("a free name");
        file.set_len(u64::from(SEGMENT_BYTES)).expect("a sound disk");
    }),
    case("refused at byte 0 (R9)", Verdict::Damaged, false, |world| flip(world, &path(world, 4), 30)),
    case("refused at byte 0 (R10)", Verdict::Damaged, true, |world| zero_whole(world, 2)),
    case("refused at byte 0 (R11)", Verdict::Damaged, true, |world| {
        world.disk.remove(&path(world, 1)).expect("it is there");
    }),
    case("refused at byte 0 (R12)", Verdict::Damaged, false, |world| {
        world.disk.remove(&path(world, 2)).expect("it is there");
    }),
    case("refused at byte 512 (R13): record 0", Verdict::Damaged, true, |world| flip(world, &path(world, 2), 700)),
    case("sound up to byte", Verdict::WouldRepair, false, |world| {
        // The last batch is not noted yet: one of its sectors never reached the disk.
        let newest = path(world, newest_segment(&world.disk));
        let bytes = bytes_of(&world.disk, &newest);
        let end = bytes.iter().rposition(|byte| *byte != 0).expect("it holds batches");
        write(world, &newest, (end / SECTOR_BYTES * SECTOR_BYTES) as u64, &[0; SECTOR_BYTES]);
    }),
    case("refused (R15)", Verdict::Damaged, true, |world| {
        world.disk.remove(&path(world, newest_segment(&world.disk))).expect("it is there");
    }),
    case("(R16)", Verdict::Damaged, true, |world| {
        change_anchor(world, |state| (state.commit_floor, state.flushed) = (Index(9), Index(9)));
    }),
    case("(R17)", Verdict::Damaged, true, |world| change_anchor(world, |s| s.generation = Generation(1))),
    case("opening finds everything as it was left (R18)", Verdict::OpensAsItIs, true, |_| {}),
    case("R18: the last stop was not clean", Verdict::WouldRepair, false, |_| {}),
    case("but its directory is gone", Verdict::Damaged, true, |world| {
        // The simulated disk removes no directory: the name of the shard's own is taken from it by another root.
        let node = Path::new(ROOT).join("node.toml");
        let text = String::from_utf8(bytes_of(&world.disk, &node)).expect("text");
        world.disk.remove(&node).expect("it is there");
        let moved = text.replace("shards = [", "shards = [\"caches/t/n/gone/0\", ");
        world.disk.create(&node).expect("a free name").write_at(0, moved.as_bytes()).expect("a sound disk");
    }),
    case("a record of version 9", Verdict::Damaged, true, |world| append(world, BatchType::Data, true, &[9, 0])),
    case("a record of version 9", Verdict::Damaged, false, |world| append(world, BatchType::Control, false, &[9, 0])),
    case("a trim to batch 7 is finished: the segments below 2 are removed", Verdict::WouldRepair, false, |world| {
        assert_eq!(start_of(world, 2).index, Index(7), "the case names the batch");
        append_trim(world, &start_of(world, 2), true);
    }),
    case("a trim to batch 7 is finished: the segments below 2 are removed", Verdict::WouldRepair, true, |world| {
        // Opening learns only from the group that it is committed.
        append_trim(world, &start_of(world, 2), false);
    }),
    case("but no segment begins there", Verdict::Damaged, true, |world| {
        let nowhere = LogStart { index: Index(8), ..start_of(world, 2) };
        append_trim(world, &nowhere, true);
    }),
    case("is of another format (format 3)", Verdict::Foreign, true, |world| {
        write(world, &Path::new(ROOT).join("node.toml"), 0, b"format = 3");
    }),
    case("node.toml would be rewritten with format 2", Verdict::WouldRepair, true, |world| {
        write(world, &Path::new(ROOT).join("node.toml"), 0, b"format = 1");
    }),
    case("put node.toml back", Verdict::Foreign, true, |world| {
        world.disk.remove(&Path::new(ROOT).join("node.toml")).expect("it is there");
    }),
];

#[test]
fn every_row_of_the_table_is_told_as_opening_then_does_it() {
    let mut verdicts = BTreeSet::new();
    for Case { says, verdict, clean, done } in CASES {
        let world = log(FsyncPolicy::Always, *clean);
        done(&world);
        // The other shard's directory is not what opening the first one looks for.
        let (found, text) = match says.contains("directory is gone") {
            true => look(&world, false, false),
            false => agreed(&world, says),
        };
        assert_eq!(found, *verdict, "{says}\n{text}");
        assert!(text.contains(says), "{says} is not in\n{text}");
        verdicts.insert(found.exit_code());
    }
    assert_eq!(verdicts.into_iter().collect::<Vec<_>>(), [0, 6, 7, 8]);
}

#[test]
fn an_unclean_stop_begins_a_new_epoch_only_where_a_power_cut_may_lose_writes() {
    for (policy, epoch) in [(FsyncPolicy::Always, false), (FsyncPolicy::EverySec, true), (FsyncPolicy::Never, true)] {
        for clean in [false, true] {
            let (_, text) = agreed(&log(policy, clean), "an untouched log");
            assert_eq!(text.contains("R18: a power cut may have taken"), epoch && !clean, "{policy} {clean}\n{text}");
        }
    }
}

#[test]
fn a_first_start_that_was_cut_short_is_told_as_one() {
    let world = log(FsyncPolicy::Always, true);
    let node = Path::new(ROOT).join("node.toml");
    for (_, path) in segment_files(&world.disk) {
        world.disk.remove(&path).expect("it is there");
    }
    world.disk.remove(&shard_dir(&world.disk).join("anchor")).expect("it is there");
    let file = world.disk.create(&path(&world, 1)).expect("a free name");
    file.set_len(u64::from(SEGMENT_BYTES)).expect("a sound disk");
    world.disk.remove(&node).expect("it is there");
    world.disk.create(&node).expect("a free name").write_at(0, b"format = 2\nbroker = \"b\"\n").expect("a sound disk");
    let (verdict, text) = agreed(&world, "leftovers");
    assert!(text.contains("R4: segment 1: leftovers of a first start, removed"), "{text}");
    assert_eq!(verdict, Verdict::WouldRepair);
}

#[test]
fn what_is_not_there_is_told_so() {
    let world = World::new(FsyncPolicy::Always, SEGMENT_BYTES);
    let (verdict, text) = look(&world, false, false);
    assert_eq!(verdict, Verdict::Unreadable, "{text}");
    assert!(text.contains("cannot be read: cannot use /srv/hearth"), "{text}");
    world.disk.create_dir(Path::new(ROOT)).expect("a sound disk");
    let (verdict, text) = look(&world, false, false);
    assert_eq!(verdict, Verdict::Foreign);
    assert!(text.contains("no data is here"), "{text}");
}

#[test]
fn a_report_on_a_directory_in_use_says_so_and_keeps_no_lock() {
    let world = log(FsyncPolicy::Always, true);
    let bed = world.open().expect("a clean stop");
    let (_, text) = look(&world, false, false);
    assert!(text.contains("in use by a broker") && text.contains("were the broker killed now"), "{text}");
    drop(bed);
    let (_, text) = look(&world, false, false);
    assert!(!text.contains("in use") && !text.contains("killed now"), "{text}");
    world.open().expect("looking keeps no lock");
}

#[test]
fn a_directory_that_node_toml_does_not_name_is_pointed_out() {
    let world = log(FsyncPolicy::Always, true);
    world.disk.create_dir(&Path::new(ROOT).join("caches/left-behind/0")).expect("a sound disk");
    let (verdict, text) = look(&world, false, false);
    assert!(text.contains("left-behind/0: node.toml does not name it"), "{text}");
    assert_eq!(verdict, Verdict::OpensAsItIs);
}

fn record_lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with("  offset=")).collect()
}

#[test]
fn every_record_is_printed_once_in_its_order() {
    let world = log(FsyncPolicy::Always, false);
    let bed = world.with_disk(world.disk.after_kill()).open().expect("it opens");
    let (_, text) = look(&world, true, false);
    let lines = record_lines(&text);
    let offsets: Vec<String> = (1..=lines.len()).map(|offset| format!("  offset={offset} ")).collect();
    assert!(lines.iter().zip(&offsets).all(|(line, offset)| line.starts_with(offset)), "{text}");
    assert_eq!(lines.len(), 17, "two of the log's own and fifteen puts\n{text}");
    // Opening wrote the start of its generation behind them.
    assert_eq!(bed.shard.frontier.applied_next().0, 17 + 2);
    let last = lines.last().expect("there are some");
    assert!(last.contains("op=put key=\"last\" value_bytes=5 expires=never revision=17"), "{last}");
    assert!(text.contains("15 batches") || text.contains("3 batches, 3 records"), "{text}");
}

fn put_expiring(bed: &mut Bed, key: &[u8], lapses: Millis) {
    use hearth::core::op::{Condition, Expiry, Put};
    let put = Put { key, value: b"short-lived", expiry: Expiry::At(lapses), condition: Condition::Always };
    bed.turns().turn().put(&put).expect("room");
    bed.driver.run_to_idle().expect("a sound disk");
}

#[test]
fn only_what_a_client_would_get_is_live_and_each_segment_says_how_much() {
    let world = log(FsyncPolicy::Always, true);
    let mut bed = world.open().expect("a clean stop");
    put_expiring(&mut bed, b"lapsing", Millis(world.now().0 + 10));
    put_expiring(&mut bed, b"staying", Millis(world.now().0 + 1_000_000));
    bed.turns().turn().delete(b"b").expect("room");
    bed.driver.run_to_idle().expect("a sound disk");
    world.clock.advance(100);
    drop(bed);
    let (_, text) = look(&world, false, true);
    let keys: BTreeSet<&str> =
        record_lines(&text).iter().filter_map(|line| line.split("key=\"").nth(1)?.split('"').next()).collect();
    assert_eq!(keys, BTreeSet::from(["a", "c", "last", "staying"]), "{text}");
    assert_eq!(record_lines(&text).len(), keys.len(), "each once\n{text}");
    assert!(text.contains("  live at 2023-11-14T22:13:34.100Z:"), "{text}");
    let live: u64 = text
        .lines()
        .filter_map(|line| {
            line.split_once(" records are live, ")?.0.split_once(": ")?.1.split_once(" of ")?.0.parse().ok()
        })
        .reduce(|sum: u64, of_segment| sum + of_segment)
        .expect("segments are told");
    assert_eq!(live, 4, "{text}");
    assert_eq!(START, Millis(1_700_000_000_000), "what the time above counts from");
}

#[test]
fn what_a_trim_took_is_not_live_though_its_files_are_there() {
    let world = log(FsyncPolicy::Always, true);
    append_trim(&world, &start_of(&world, 5), true);
    let (_, text) = look(&world, false, true);
    let lines = record_lines(&text);
    let base = start_of(&world, 5).offset.0;
    assert!(!lines.is_empty() && lines.len() < 4, "{text}");
    for line in lines {
        let offset: u64 = line["  offset=".len()..].split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
        assert!(offset >= base, "{line}");
    }
}

/// Takes some bytes, then is a pipe that nobody reads.
struct ClosedAfter(usize);

impl Write for ClosedAfter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_pipe_ends_the_report_wherever_it_is() {
    let world = log(FsyncPolicy::Always, true);
    let mut ended = 0;
    for (records, live) in [(false, false), (true, false), (false, true)] {
        let whole = look(&world, records, live).1.len();
        for bytes in (0..whole).step_by(13) {
            let asked = Inspect { dir: PathBuf::from(ROOT), records, live };
            let told = asked.run(&world.disk, world.now(), &mut ClosedAfter(bytes));
            assert_eq!(told.map_err(|error| error.kind()), Err(ErrorKind::BrokenPipe), "after {bytes} of {whole}");
            ended += 1;
        }
    }
    assert!(ended > 100, "{ended}");
}

#[test]
fn damage_anywhere_is_told_as_opening_then_finds_it() {
    let (mut refused, mut repaired, mut whole) = (0_u64, 0_u64, 0_u64);
    for clean in [false, true] {
        let world = log(FsyncPolicy::EverySec, clean);
        let mut damage: Vec<(PathBuf, usize, usize)> = Vec::new();
        for (number, path) in segment_files(&world.disk) {
            let length = bytes_of(&world.disk, &path).len();
            damage
                .extend((0..length).step_by(SECTOR_BYTES).map(|at| (path.clone(), at, SECTOR_BYTES.min(length - at))));
            let step = if number.0 == newest_segment(&world.disk) { 7 } else { 61 };
            damage.extend((0..length).step_by(step).map(|at| (path.clone(), at, 0)));
        }
        let anchor = shard_dir(&world.disk).join("anchor");
        damage.extend(
            (0..SECTOR_BYTES).step_by(5).flat_map(|at| [(anchor.clone(), at, 0), (anchor.clone(), 4096 + at, 0)]),
        );
        for (path, at, zeros) in damage {
            let world = world.with_disk(world.disk.after_kill());
            match zeros {
                0 => flip(&world, &path, at),
                _ => write(&world, &path, at as u64, &vec![0; zeros]),
            }
            let what = format!("{}, byte {at}, {zeros} zeros, clean {clean}", path.display());
            match agreed(&world, &what).0 {
                Verdict::Damaged => refused += 1,
                Verdict::WouldRepair => repaired += 1,
                _ => whole += 1,
            }
        }
    }
    println!("refused {refused}, repaired {repaired}, whole {whole}");
    assert!(refused > 200 && repaired > 200 && whole > 50);
}
