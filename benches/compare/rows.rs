//! The rows: what is measured, with which durability, and the ratio to reach. Plain data.
//!
//! When you add a row, also: give it a goal from the performance plan, and a `first_guess_rps` low enough that one
//! second of it is short on a slow disk.

use crate::Outcome;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Set,
    Get,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// An acknowledged write is flushed.
    Always,
    /// Writes are flushed each second.
    EverySecond,
    /// Reads only: Hearth as shipped, redis without persistence.
    ShippedDefault,
}

pub struct Row {
    /// The name on the command line and in the table.
    pub name: &'static str,
    pub work: &'static str,
    pub durability: Durability,
    pub verb: Verb,
    pub clients: u32,
    pub pipeline: u32,
    /// Hearth's requests per second over redis', at least.
    pub goal: f64,
    /// For a GET row, the goal of the P6 row it also is.
    pub p6_goal: Option<f64>,
    /// Also measure a bare append and flush, which bounds what one client can get.
    pub with_raw_flush: bool,
    /// Sizes the calibration run only.
    pub first_guess_rps: u32,
}

/// How many keys redis-benchmark draws from, uniformly.
pub const KEY_SPACE: u32 = 100_000;
pub const VALUE_LEN: usize = 100;
/// A single client's flushed write may take at most this many times the bare flush.
pub const RAW_FLUSH_GOAL: f64 = 1.5;

/// P5 is measured as shipped, with the value cache on. P6, the same with `--value-cache 0`, needs rows of its own.
static ROWS: [Row; 8] = [
    Row {
        name: "P1",
        work: "SET, every write flushed, 1 client",
        durability: Durability::Always,
        verb: Verb::Set,
        clients: 1,
        pipeline: 1,
        goal: 1.1,
        p6_goal: None,
        with_raw_flush: true,
        first_guess_rps: 1_500,
    },
    Row {
        name: "P2",
        work: "SET, every write flushed, 50 clients",
        durability: Durability::Always,
        verb: Verb::Set,
        clients: 50,
        pipeline: 1,
        goal: 1.3,
        p6_goal: None,
        with_raw_flush: false,
        first_guess_rps: 10_000,
    },
    Row {
        name: "P3a",
        work: "SET, every write flushed, 50 clients, pipeline 16",
        durability: Durability::Always,
        verb: Verb::Set,
        clients: 50,
        pipeline: 16,
        goal: 1.8,
        p6_goal: None,
        with_raw_flush: false,
        first_guess_rps: 80_000,
    },
    Row {
        name: "P3b",
        work: "SET, every write flushed, 200 clients, pipeline 16",
        durability: Durability::Always,
        verb: Verb::Set,
        clients: 200,
        pipeline: 16,
        goal: 1.5,
        p6_goal: None,
        with_raw_flush: false,
        first_guess_rps: 80_000,
    },
    Row {
        name: "P4a",
        work: "SET, flushed each second, 50 clients",
        durability: Durability::EverySecond,
        verb: Verb::Set,
        clients: 50,
        pipeline: 1,
        goal: 1.0,
        p6_goal: None,
        with_raw_flush: false,
        first_guess_rps: 30_000,
    },
    Row {
        name: "P4b",
        work: "SET, flushed each second, 50 clients, pipeline 16",
        durability: Durability::EverySecond,
        verb: Verb::Set,
        clients: 50,
        pipeline: 16,
        goal: 1.3,
        p6_goal: None,
        with_raw_flush: false,
        first_guess_rps: 150_000,
    },
    Row {
        name: "P5a/P6a",
        work: "GET over 100k keys, read from the log, 50 clients",
        durability: Durability::ShippedDefault,
        verb: Verb::Get,
        clients: 50,
        pipeline: 1,
        goal: 1.0,
        p6_goal: Some(0.8),
        with_raw_flush: false,
        first_guess_rps: 30_000,
    },
    Row {
        name: "P5b/P6b",
        work: "GET over 100k keys, read from the log, 50 clients, pipeline 16",
        durability: Durability::ShippedDefault,
        verb: Verb::Get,
        clients: 50,
        pipeline: 16,
        goal: 1.2,
        p6_goal: Some(0.8),
        with_raw_flush: false,
        first_guess_rps: 150_000,
    },
];

pub fn all() -> Vec<&'static Row> {
    ROWS.iter().collect()
}

/// The rows a list such as `P1,P3` names, in table order. A name nobody has is refused rather than skipped.
pub fn select(list: &str) -> Outcome<Vec<&'static Row>> {
    let wanted: Vec<&str> = list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    for name in &wanted {
        if !ROWS.iter().any(|row| row.answers_to(name)) {
            let known: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
            return Err(format!("There is no row {name:?}; the rows are {}.", known.join(", ")));
        }
    }
    if wanted.is_empty() {
        return Err("--rows needs at least one row.".to_owned());
    }
    Ok(ROWS.iter().filter(|row| wanted.iter().any(|name| row.answers_to(name))).collect())
}

impl Row {
    /// `P3` and `P3a` both mean P3a; `P5a`, `P6a` and `P5a/P6a` are one row.
    fn answers_to(&self, asked: &str) -> bool {
        let group = |name: &str| name.trim_end_matches(|c: char| c.is_ascii_lowercase()).to_owned();
        asked == self.name || self.name.split('/').any(|name| asked == name || asked == group(name))
    }

    /// Requests are a multiple of this, so that redis-benchmark sends exactly as many as it was asked for.
    pub fn granularity(&self) -> u64 {
        u64::from(self.clients) * u64::from(self.pipeline)
    }
}
