//! Measures what a durable append costs on the kinds of file a segment could be, what it costs to prepare the next
//! segment, and what that preparation does to appends running beside it.
//!
//! Prints Markdown tables. Every round runs all candidates one after the other (A B C D, A B C D, ...), figures are
//! medians over the rounds, and ratios are taken inside a round first. It knows nothing of the log's own formats.
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "a bench measures time and stops at the first surprise"
)]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, OFlags, fallocate};

const ROUNDS: usize = 9;
const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;
const SEGMENT_BYTES: usize = 64 * MIB;
const APPENDS_PER_ROUND: usize = 150;
const BATCH_BYTES: [usize; 3] = [150, 8 * KIB, 112 * KIB];
const BATCH_BESIDE_FILLER_BYTES: usize = 8 * KIB;
/// Appends measured in a round of the quiet case of the filler table.
const QUIET_APPENDS: usize = 10_000;

/// The kinds of file an append may go to.
#[derive(Clone, Copy, PartialEq)]
enum Target {
    Growing,
    Unwritten,
    ZeroFilled,
    ZeroFilledDsync,
}

impl Target {
    const ALL: [Target; 4] = [Target::Growing, Target::Unwritten, Target::ZeroFilled, Target::ZeroFilledDsync];

    fn name(self) -> &'static str {
        match self {
            Target::Growing => "growing, fdatasync",
            Target::Unwritten => "fallocate'd, unwritten, fdatasync",
            Target::ZeroFilled => "zero-filled, fdatasync",
            Target::ZeroFilledDsync => "zero-filled, O_DSYNC",
        }
    }
}

/// How the next segment is zero-filled.
#[derive(Clone, Copy, PartialEq)]
struct Filling {
    piece_bytes: usize,
    flush_each_piece: bool,
    pause_ms: u64,
    name: &'static str,
}

const FILLINGS: [Filling; 4] = [
    Filling { piece_bytes: MIB, flush_each_piece: false, pause_ms: 0, name: "in one go, one flush" },
    Filling { piece_bytes: MIB, flush_each_piece: true, pause_ms: 0, name: "1 MiB pieces, each flushed" },
    Filling { piece_bytes: 256 * KIB, flush_each_piece: true, pause_ms: 0, name: "256 KiB pieces, each flushed" },
    Filling {
        piece_bytes: 256 * KIB,
        flush_each_piece: true,
        pause_ms: 4,
        name: "256 KiB pieces, each flushed, 4 ms pause after each",
    },
];

fn main() -> io::Result<()> {
    // The build directory and not the system's temporary one, which may live in memory.
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("segments-bench");
    fs::create_dir_all(&dir)?;
    append_table(&dir)?;
    filling_table(&dir)?;
    beside_filler_table(&dir)?;
    fs::remove_dir_all(&dir)
}

fn append_table(dir: &Path) -> io::Result<()> {
    println!("\n### Append + flush, ms per batch (median of {ROUNDS} rounds of {APPENDS_PER_ROUND} appends)\n");
    println!("| batch | file | p50 | p99 | mean | mean against growing |");
    println!("|---|---|---|---|---|---|");
    for batch_bytes in BATCH_BYTES {
        // One row of samples for each target, one sample for each round.
        let mut p50 = [const { Vec::new() }; 4];
        let mut p99 = [const { Vec::new() }; 4];
        let mut mean = [const { Vec::new() }; 4];
        let mut ratio = [const { Vec::new() }; 4];
        for _ in 0..ROUNDS {
            for (row, target) in Target::ALL.into_iter().enumerate() {
                let path = dir.join("append");
                let file = prepare(&path, target, batch_bytes)?;
                let mut times_ms = timed_appends(&file, target, batch_bytes)?;
                drop(file);
                fs::remove_file(&path)?;
                let mean_ms = times_ms.iter().sum::<f64>() / times_ms.len() as f64;
                p50[row].push(percentile(&mut times_ms, 50.0));
                p99[row].push(percentile(&mut times_ms, 99.0));
                mean[row].push(mean_ms);
                let growing_ms = *mean[0].last().expect("growing is measured first");
                ratio[row].push(mean_ms / growing_ms);
            }
        }
        for (row, target) in Target::ALL.into_iter().enumerate() {
            println!(
                "| {} | {} | {:.3} | {:.3} | {:.3} | {:.2}x |",
                bytes_text(batch_bytes),
                target.name(),
                median(&mut p50[row]),
                median(&mut p99[row]),
                median(&mut mean[row]),
                median(&mut ratio[row]),
            );
        }
    }
    Ok(())
}

/// Makes the file an append run writes to, flushed, so that only the appends are left to measure.
fn prepare(path: &Path, target: Target, batch_bytes: usize) -> io::Result<File> {
    let mut file = OpenOptions::new().create_new(true).write(true).open(path)?;
    let length_bytes = batch_bytes * APPENDS_PER_ROUND + MIB;
    match target {
        Target::Growing => {}
        Target::Unwritten => fallocate(&file, FallocateFlags::empty(), 0, length_bytes as u64)?,
        Target::ZeroFilled | Target::ZeroFilledDsync => file.write_all(&vec![0; length_bytes])?,
    }
    file.sync_all()?;
    sync_directory(path)?;
    let mut options = OpenOptions::new();
    options.write(true);
    if target == Target::ZeroFilledDsync {
        options.custom_flags(OFlags::DSYNC.bits() as i32);
    }
    options.open(path)
}

fn timed_appends(file: &File, target: Target, batch_bytes: usize) -> io::Result<Vec<f64>> {
    let batch = filler_bytes(batch_bytes);
    let mut times_ms = Vec::with_capacity(APPENDS_PER_ROUND);
    for append in 0..APPENDS_PER_ROUND {
        let start = Instant::now();
        file.write_all_at(&batch, (append * batch_bytes) as u64)?;
        if target != Target::ZeroFilledDsync {
            file.sync_data()?;
        }
        times_ms.push(elapsed_ms(start));
    }
    Ok(times_ms)
}

fn filling_table(dir: &Path) -> io::Result<()> {
    println!("\n### Create, zero-fill and flush a 64 MiB segment, ms (median of {ROUNDS} rounds)\n");
    println!("| filling | ms | against one go |");
    println!("|---|---|---|");
    let mut time = [const { Vec::new() }; 4];
    let mut ratio = [const { Vec::new() }; 4];
    for _ in 0..ROUNDS {
        for (row, filling) in FILLINGS.into_iter().enumerate() {
            let path = dir.join("fill");
            let start = Instant::now();
            fill(&path, filling)?;
            time[row].push(elapsed_ms(start));
            fs::remove_file(&path)?;
            let one_go_ms = time[0].last().expect("one go is measured first");
            let this_ms = time[row].last().expect("pushed above");
            ratio[row].push(this_ms / one_go_ms);
        }
    }
    for (row, filling) in FILLINGS.into_iter().enumerate() {
        println!("| {} | {:.0} | {:.2}x |", filling.name, median(&mut time[row]), median(&mut ratio[row]));
    }
    Ok(())
}

fn fill(path: &Path, filling: Filling) -> io::Result<()> {
    let mut file = OpenOptions::new().create_new(true).write(true).open(path)?;
    let zeros = vec![0; filling.piece_bytes];
    for _ in 0..SEGMENT_BYTES / filling.piece_bytes {
        file.write_all(&zeros)?;
        if filling.flush_each_piece {
            file.sync_data()?;
        }
        if filling.pause_ms > 0 {
            thread::sleep(Duration::from_millis(filling.pause_ms));
        }
    }
    file.sync_all()?;
    sync_directory(path)
}

fn beside_filler_table(dir: &Path) -> io::Result<()> {
    println!(
        "\n### 8 KiB append + fdatasync on a zero-filled segment while the next 64 MiB are filled (median of {ROUNDS} rounds)\n"
    );
    println!(
        "| filler | p50 ms | p99 ms | max ms | p50 against none | p99 against none | filler ran, ms | appends seen |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let segment_path = dir.join("segment");
    fill(&segment_path, FILLINGS[0])?;
    let segment = OpenOptions::new().write(true).open(&segment_path)?;
    let cases: Vec<Option<Filling>> = std::iter::once(None).chain(FILLINGS.into_iter().map(Some)).collect();
    let mut runs: Vec<Vec<BesideFiller>> = vec![Vec::new(); cases.len()];
    for _ in 0..ROUNDS {
        for (row, case) in cases.iter().enumerate() {
            runs[row].push(appends_beside(&segment, &dir.join("next"), *case)?);
        }
    }
    for (row, case) in cases.iter().enumerate() {
        let column = |of: fn(&BesideFiller) -> f64| median(&mut runs[row].iter().map(of).collect::<Vec<_>>());
        let against = |of: fn(&BesideFiller) -> f64| {
            let pairs = runs[row].iter().zip(&runs[0]);
            median(&mut pairs.map(|(run, quiet)| of(run) / of(quiet)).collect::<Vec<_>>())
        };
        println!(
            "| {} | {:.3} | {:.3} | {:.1} | {:.1}x | {:.1}x | {:.0} | {:.0} |",
            case.map_or("none", |filling| filling.name),
            column(|run| run.p50_ms),
            column(|run| run.p99_ms),
            column(|run| run.max_ms),
            against(|run| run.p50_ms),
            against(|run| run.p99_ms),
            column(|run| run.filler_ms),
            column(|run| run.appends as f64),
        );
    }
    Ok(())
}

/// What one run of appends beside a filler saw.
#[derive(Clone)]
struct BesideFiller {
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
    filler_ms: f64,
    appends: usize,
}

/// Appends as long as the filler runs; only appends begun while it ran are counted.
fn appends_beside(segment: &File, next: &Path, filling: Option<Filling>) -> io::Result<BesideFiller> {
    let filler_ended = AtomicBool::new(false);
    let batch = filler_bytes(BATCH_BESIDE_FILLER_BYTES);
    thread::scope(|scope| {
        let filler = filling.map(|filling| {
            let filler_ended = &filler_ended;
            scope.spawn(move || -> io::Result<f64> {
                let start = Instant::now();
                let outcome = fill(next, filling);
                let ran_ms = elapsed_ms(start);
                filler_ended.store(true, Ordering::Release);
                outcome.map(|()| ran_ms)
            })
        });
        let mut times_ms = Vec::new();
        loop {
            let ended = match filler {
                Some(_) => filler_ended.load(Ordering::Acquire),
                None => times_ms.len() >= QUIET_APPENDS,
            };
            if ended {
                break;
            }
            // Wraps over the segment: overwriting what was overwritten costs the same as overwriting zeros.
            let offset_bytes = times_ms.len() * BATCH_BESIDE_FILLER_BYTES % SEGMENT_BYTES;
            let start = Instant::now();
            segment.write_all_at(&batch, offset_bytes as u64)?;
            segment.sync_data()?;
            times_ms.push(elapsed_ms(start));
        }
        let filler_ms = match filler {
            Some(handle) => handle.join().expect("the filler does not panic")?,
            None => 0.0,
        };
        if filling.is_some() {
            fs::remove_file(next)?;
        }
        Ok(BesideFiller {
            p50_ms: percentile(&mut times_ms, 50.0),
            p99_ms: percentile(&mut times_ms, 99.0),
            max_ms: percentile(&mut times_ms, 100.0),
            filler_ms,
            appends: times_ms.len(),
        })
    })
}

/// Bytes that are not zero, so that no layer below may take the write for a hole.
fn filler_bytes(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8 + 1).collect()
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path.parent().expect("a file in a directory"))?.sync_all()
}

fn elapsed_ms(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e3
}

fn percentile(values: &mut [f64], percent: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = (values.len() as f64 * percent / 100.0) as usize;
    values[at.min(values.len() - 1)]
}

fn median(values: &mut [f64]) -> f64 {
    percentile(values, 50.0)
}

fn bytes_text(bytes: usize) -> String {
    if bytes < KIB { format!("{bytes} B") } else { format!("{} KiB", bytes / KIB) }
}
