//! The command line and the environment, read once. Knows nothing of servers.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::Outcome;
use crate::rows::{self, Row};

pub const USAGE: &str = "\
cargo bench --bench compare -- [--rows P1,P3a] [--rounds N] [--write]

  --rows LIST   rows to measure, by name; P3 means P3a and P3b. Default: all.
  --rounds N    pairs of runs per row, 1 to 101. Default: 5.
  --write       also write docs/performance.md (needs at least 5 rounds).

HEARTH_BIN names the Hearth binary; without it target/release/hearth is used. redis-server and redis-benchmark
are found on PATH. Data directories are made below the target folder, both servers' on the same filesystem.";

/// Fewer pairs than this are too noisy to publish on a shared machine.
const LEAST_ROUNDS_TO_WRITE: usize = 5;
const MOST_ROUNDS: usize = 101;

pub struct Options {
    pub rows: Vec<&'static Row>,
    pub rounds: usize,
    pub write: bool,
    pub hearth: PathBuf,
    /// True when HEARTH_BIN named the binary: the document then says so, since the command alone would not repeat it.
    pub hearth_was_named: bool,
    pub package_dir: PathBuf,
    pub target_dir: PathBuf,
    /// The arguments as given, for the document.
    pub given: Vec<String>,
}

pub enum Action {
    Help,
    NotABenchRun,
    Measure(Options),
}

pub fn parse(arguments: &[String]) -> Outcome<Action> {
    let mut rows = rows::all();
    let mut rounds = LEAST_ROUNDS_TO_WRITE;
    let mut write = false;
    let mut under_bench = false;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--help" | "-h" => return Ok(Action::Help),
            "--bench" => under_bench = true,
            "--write" => write = true,
            "--rows" => rows = rows::select(value_of("--rows", rest.next())?)?,
            "--rounds" => rounds = parse_rounds(value_of("--rounds", rest.next())?)?,
            other => return Err(format!("The option {other} is unknown.\n{USAGE}")),
        }
    }
    if !under_bench {
        return Ok(Action::NotABenchRun);
    }
    if write && rounds < LEAST_ROUNDS_TO_WRITE {
        return Err(format!("--write needs at least {LEAST_ROUNDS_TO_WRITE} rounds, and {rounds} were asked for."));
    }
    let given = arguments.iter().filter(|a| *a != "--bench").cloned().collect();
    Ok(Action::Measure(from_environment(rows, rounds, write, given)))
}

fn from_environment(rows: Vec<&'static Row>, rounds: usize, write: bool, given: Vec<String>) -> Options {
    let package_dir =
        std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| OsString::from(env!("CARGO_MANIFEST_DIR")));
    let package_dir = PathBuf::from(package_dir);
    let target_dir = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| package_dir.join("target"), PathBuf::from);
    let named = std::env::var_os("HEARTH_BIN");
    let hearth_was_named = named.is_some();
    let hearth = named.map_or_else(|| target_dir.join("release").join("hearth"), PathBuf::from);
    Options { rows, rounds, write, hearth, hearth_was_named, package_dir, target_dir, given }
}

fn value_of<'a>(option: &str, next: Option<&'a String>) -> Outcome<&'a str> {
    next.map(String::as_str).ok_or_else(|| format!("The option {option} needs a value."))
}

fn parse_rounds(text: &str) -> Outcome<usize> {
    match text.parse() {
        Ok(rounds) if (1..=MOST_ROUNDS).contains(&rounds) => Ok(rounds),
        _ => Err(format!("--rounds takes a number from 1 to {MOST_ROUNDS}, not {text:?}.")),
    }
}
