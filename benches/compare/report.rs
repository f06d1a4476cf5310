//! Turns results into tables and the tables into docs/performance.md. Pure: measures nothing.

use crate::Outcome;
use crate::machine::Machine;
use crate::measure::{RowResult, Sample};
use crate::options::Options;
use crate::rows::RAW_FLUSH_GOAL;
use crate::stats::{Spread, median, spread};

/// Above this share of a core the load generator, not the server, sets the rate.
const GENERATOR_BOUND_SHARE: f64 = 0.9;

const HOW_TO_READ: &str = "\
Only ratios mean anything: the machine is shared, and the load generator runs on the same cores as the servers.

- Each row runs redis and Hearth in turn, every run on a fresh server and an empty data directory, with the same
  number of requests: SET or GET of 100-byte values, keys drawn uniformly out of 100,000, driven by redis-benchmark.
  A calibration pair sizes the runs to about 2.5 seconds and is not counted.
- `requests/s` is the median of the rounds with the least and the most. `ratio` is Hearth's rate over redis' in the
  same round, again median with least and most; above 1 Hearth is faster. It need not equal the ratio of the medians.
- Flushed means that redis runs with `--appendfsync always` and Hearth with `--fsync always`; flushed each second
  means `everysec` for both. For GET, redis runs without persistence and Hearth as shipped, its value cache included:
  that is P5; there is no row of P6 (the cache off) yet.
- `bare flush` is one append of 150 bytes and one fdatasync, repeated, in a file already filled with zeros, just before and after Hearth's
  run: `cost over it` is the time of one request of a single client over the time of one such flush, round by round.
- `server CPU` is user and system time of all threads, with finished child processes, per request. `generator` is
  redis-benchmark's CPU time as a share of one core. A row where that is over 90 % for either server is marked
  `generator-bound`: the generator then sets the rate, and the row is judged by server CPU (redis' over Hearth's).
- `peak memory` is the largest resident size of the server process at the end of the run.
- After every run the whole key space is read back: each value must be the one written, and as many keys must exist
  as that many random writes hit. One error reply or one difference, and there is no table.";

pub fn tables(results: &[RowResult], rounds: usize) -> String {
    let mut text = format!("Throughput, pairs measured in each row: {rounds}.\n\n");
    text += &table(
        &["row", "work", "redis requests/s", "hearth requests/s", "ratio", "goal", "reached"],
        &results.iter().map(throughput_cells).collect::<Vec<_>>(),
    );
    text += "\nCost, medians, redis / hearth.\n\n";
    text += &table(
        &["row", "p50 ms", "p99 ms", "server CPU µs/request", "CPU ratio", "generator", "peak memory MiB", "mark"],
        &results.iter().map(cost_cells).collect::<Vec<_>>(),
    );
    let raw: Vec<Vec<String>> = results.iter().filter(|r| !r.raw_flush.is_empty()).map(raw_cells).collect();
    if !raw.is_empty() {
        text += "\nAgainst the bare flush.\n\n";
        text +=
            &table(&["row", "bare flushes/s", "redis: cost over it", "hearth: cost over it", "goal", "reached"], &raw);
    }
    let background: Vec<String> = results.iter().filter_map(background_line).collect();
    if !background.is_empty() {
        text += &format!("\nBackground work in the last round, as INFO told it:\n\n{}\n", background.join("\n"));
    }
    text
}

pub fn document(machine: &Machine, options: &Options, tables: &str) -> Outcome<String> {
    let named = if options.hearth_was_named { "HEARTH_BIN=… " } else { "" };
    let command = format!("{named}cargo bench --bench compare -- {}", options.given.join(" "));
    Ok(format!(
        "# Performance\n\nHearth against redis on one machine, written by `benches/compare`; do not edit by hand.\n\n{}\n- \
         Command: `{}`\n\n{tables}\n## How to read it\n\n{HOW_TO_READ}\n",
        machine.as_list(),
        command.trim_end()
    ))
}

fn throughput_cells(result: &RowResult) -> Vec<String> {
    let redis = spread(result.redis.iter().map(|sample| sample.rps));
    let hearth = spread(result.hearth.iter().map(|sample| sample.rps));
    let ratio = spread(pairs(result).map(|(redis, hearth)| hearth.rps / redis.rps));
    let goal = match result.row.p6_goal {
        Some(lower) => format!(">= {:.1}x, P6 >= {lower:.1}x", result.row.goal),
        None => format!(">= {:.1}x", result.row.goal),
    };
    vec![
        result.row.name.to_owned(),
        result.row.work.to_owned(),
        rates(&redis),
        rates(&hearth),
        times(&ratio),
        goal,
        verdict(result, ratio.median),
    ]
}

fn verdict(result: &RowResult, rate_ratio: f64) -> String {
    let by_cpu = is_generator_bound(result);
    let ratio = if by_cpu { cpu_ratio(result) } else { rate_ratio };
    let reached = if ratio >= result.row.goal {
        "yes"
    } else if result.row.p6_goal.is_some_and(|lower| ratio >= lower) {
        "P6 only"
    } else {
        "no"
    };
    if by_cpu { format!("{reached} (by CPU)") } else { reached.to_owned() }
}

fn cost_cells(result: &RowResult) -> Vec<String> {
    let both = |pick: fn(&Sample) -> f64, shown: fn(f64) -> String| {
        let (redis, hearth) = (median(result.redis.iter().map(pick)), median(result.hearth.iter().map(pick)));
        format!("{} / {}", shown(redis), shown(hearth))
    };
    let mark = if is_generator_bound(result) { "generator-bound" } else { "" };
    vec![
        result.row.name.to_owned(),
        both(|sample| sample.p50_ms, |ms| format!("{ms:.3}")),
        both(|sample| sample.p99_ms, |ms| format!("{ms:.3}")),
        both(|sample| sample.cpu_us_per_op, |us| format!("{us:.2}")),
        format!("{:.2}x", cpu_ratio(result)),
        both(|sample| sample.generator_share, |share| format!("{:.0} %", share * 100.0)),
        both(|sample| sample.peak_kib, |kib| format!("{:.1}", kib / 1024.0)),
        mark.to_owned(),
    ]
}

fn raw_cells(result: &RowResult) -> Vec<String> {
    let cost = |samples: &[Sample]| spread(result.raw_flush.iter().zip(samples).map(|(raw, sample)| raw / sample.rps));
    let (redis, hearth) = (cost(&result.redis), cost(&result.hearth));
    vec![
        result.row.name.to_owned(),
        rates(&spread(result.raw_flush.iter().copied())),
        times(&redis),
        times(&hearth),
        format!("<= {RAW_FLUSH_GOAL:.1}x"),
        if hearth.median <= RAW_FLUSH_GOAL { "yes" } else { "no" }.to_owned(),
    ]
}

fn background_line(result: &RowResult) -> Option<String> {
    let told = !result.background.is_empty();
    told.then(|| format!("- {} ({} requests): {}", result.row.name, result.requests, result.background.join(", ")))
}

fn is_generator_bound(result: &RowResult) -> bool {
    let share = |samples: &[Sample]| median(samples.iter().map(|sample| sample.generator_share));
    share(&result.redis).max(share(&result.hearth)) > GENERATOR_BOUND_SHARE
}

/// How many times more CPU redis needs for a request; above 1 Hearth is cheaper.
fn cpu_ratio(result: &RowResult) -> f64 {
    median(pairs(result).map(|(redis, hearth)| redis.cpu_us_per_op / hearth.cpu_us_per_op))
}

fn pairs(result: &RowResult) -> impl Iterator<Item = (&Sample, &Sample)> {
    result.redis.iter().zip(&result.hearth)
}

fn rates(spread: &Spread) -> String {
    format!("{} ({}..{})", grouped(spread.median), grouped(spread.least), grouped(spread.most))
}

fn times(spread: &Spread) -> String {
    format!("{:.2}x ({:.2}..{:.2})", spread.median, spread.least, spread.most)
}

/// A whole number with a comma between thousands.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A Markdown table whose columns also line up in a terminal.
fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    let width = |place: usize| {
        let cells = rows.iter().map(|row| row[place].chars().count());
        cells.chain([header[place].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |cells: Vec<&str>| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!(" {cell:width$} |"));
        format!("|{}\n", padded.collect::<String>())
    };
    let mut text = line(header.to_vec());
    text += &format!("|{}\n", widths.iter().map(|width| format!("{}|", "-".repeat(width + 2))).collect::<String>());
    for row in rows {
        text += &line(row.iter().map(String::as_str).collect());
    }
    text
}
