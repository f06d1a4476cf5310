//! Runs one row: a calibration pair that sizes the work, then redis and Hearth in turn, each on a fresh server.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Outcome;
use crate::generator;
use crate::machine::Versions;
use crate::options::Options;
use crate::procfs;
use crate::raw_flush::{Flushed, RawFlush};
use crate::readback::{self, Found};
use crate::resp::Client;
use crate::rows::{Durability, Row, Verb};
use crate::run_dir::RunDir;
use crate::server::{Kind, Server};

/// A run is sized to take about this long on a server half way between the two.
const RUN_SECONDS: f64 = 2.5;
const LEAST_REQUESTS: f64 = 1_000.0;
const MOST_REQUESTS: f64 = 5_000_000.0;
/// The share of a run's requests that is sent before it, unmeasured.
const WARM_UP_SHARE: u64 = 20;
/// redis-benchmark asks for two configuration values on starting, which a server may refuse. An error reply to the
/// work itself makes it abort, so two are the most that can be innocent.
const INNOCENT_ERROR_REPLIES: u64 = 2;
/// INFO fields that tell of work behind the scenes, by a part of their name; shown with the table where they exist.
const BACKGROUND_FIELDS: [&str; 4] = ["aof_rewrites", "checkpoint", "value_cache", "compaction"];

pub struct Bench {
    hearth: PathBuf,
    dirs: RunDir,
}

/// One server's numbers in one round.
pub struct Sample {
    pub rps: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub cpu_us_per_op: f64,
    pub generator_share: f64,
    pub peak_kib: f64,
}

pub struct RowResult {
    pub row: &'static Row,
    pub requests: u64,
    /// One sample a round, at the same place as its partner.
    pub redis: Vec<Sample>,
    pub hearth: Vec<Sample>,
    /// Bare flushed appends per second, one a round; empty for rows without.
    pub raw_flush: Vec<f64>,
    /// Background work as the servers' INFO told it after the last round.
    pub background: Vec<String>,
}

struct Run {
    sample: Sample,
    found: Found,
    background: Vec<String>,
}

impl Bench {
    pub fn prepare(options: &Options) -> Outcome<Bench> {
        if !options.hearth.is_file() {
            return Err("There is no Hearth binary; build it with `cargo build --release`, or name one in HEARTH_BIN."
                .to_owned());
        }
        let hearth = options.hearth.canonicalize().map_err(|e| format!("The Hearth binary has no full name: {e}."))?;
        Ok(Bench { hearth, dirs: RunDir::create(&options.target_dir)? })
    }

    pub fn run_dir(&self) -> &Path {
        self.dirs.path()
    }

    /// Starts each server once to ask what it is, which also shows early that both can be started.
    pub fn versions(&self) -> Outcome<Versions> {
        let ask = |kind: Kind, field: &str| -> Outcome<Option<String>> {
            let server = Server::start(kind, &self.hearth, Durability::ShippedDefault, &self.dirs)?;
            let fields = server.connect()?.info()?;
            server.stop()?;
            Ok(fields.into_iter().find(|(name, _)| name == field).map(|(_, value)| value))
        };
        let redis = ask(Kind::Redis, "redis_version")?.unwrap_or_else(|| "unknown".to_owned());
        let hearth = match ask(Kind::Hearth, "hearth_version")? {
            Some(version) => version,
            None => self.version_option().unwrap_or_else(|| "unknown".to_owned()),
        };
        Ok(Versions { redis, hearth })
    }

    pub fn measure_row(&self, row: &'static Row, rounds: usize) -> Outcome<RowResult> {
        let requests = self.calibrate(row).map_err(|why| format!("{}, calibration: {why}", row.name))?;
        eprintln!("{}: {}; {requests} requests a run", row.name, row.work);
        let mut result = RowResult {
            row,
            requests,
            redis: Vec::new(),
            hearth: Vec::new(),
            raw_flush: Vec::new(),
            background: Vec::new(),
        };
        let mut raw = match row.with_raw_flush {
            true => Some(RawFlush::prepare(self.dirs.path(), row.name)?),
            false => None,
        };
        for round in 1..=rounds {
            self.measure_round(requests, raw.as_mut(), &mut result)
                .map_err(|why| format!("{}, round {round} of {rounds}: {why}", row.name))?;
        }
        Ok(result)
    }

    /// One pair. The bare flush is probed on both sides of Hearth's run, since a shared disk changes within seconds.
    fn measure_round(&self, requests: u64, mut raw: Option<&mut RawFlush>, result: &mut RowResult) -> Outcome<()> {
        let row = result.row;
        let mut flushed = Flushed::default();
        let redis = self.run(row, Kind::Redis, requests)?;
        if let Some(raw) = &mut raw {
            raw.probe(&mut flushed)?;
        }
        let hearth = self.run(row, Kind::Hearth, requests)?;
        if let Some(raw) = &mut raw {
            raw.probe(&mut flushed)?;
            result.raw_flush.push(flushed.appends as f64 / flushed.seconds);
        }
        readback::check_alike(&redis.found, &hearth.found, requests)?;
        let (a, b) = (redis.sample.rps, hearth.sample.rps);
        eprintln!("  redis {a:.0}/s, hearth {b:.0}/s, {:.2}x", b / a);
        result.background = redis.background.into_iter().chain(hearth.background).collect();
        result.redis.push(redis.sample);
        result.hearth.push(hearth.sample);
        Ok(())
    }

    /// Both servers get the same number of requests, so that they know as many keys and grow as large. It is sized
    /// by the geometric mean of their rates, which favours neither.
    fn calibrate(&self, row: &Row) -> Outcome<u64> {
        let guess = round_up(u64::from(row.first_guess_rps), row.granularity());
        let redis = self.run(row, Kind::Redis, guess)?.sample.rps;
        let hearth = self.run(row, Kind::Hearth, guess)?.sample.rps;
        let requests = (RUN_SECONDS * (redis * hearth).sqrt()).clamp(LEAST_REQUESTS, MOST_REQUESTS);
        Ok(round_up(requests as u64, row.granularity()))
    }

    fn run(&self, row: &Row, kind: Kind, requests: u64) -> Outcome<Run> {
        let server = Server::start(kind, &self.hearth, row.durability, &self.dirs)?;
        let run = run_on(&server, row, kind, requests).map_err(|why| format!("{kind}: {why}"));
        // A server that died explains the failure better than the broken connection does.
        match (run, server.stop()) {
            (Ok(run), Ok(())) => Ok(run),
            (Ok(_), Err(why)) => Err(why),
            (Err(why), Ok(())) => Err(why),
            (Err(why), Err(also)) => Err(format!("{why} {also}")),
        }
    }

    fn version_option(&self) -> Option<String> {
        let output = Command::new(&self.hearth).arg("--version").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines()
            .next()
            .map(|line| line.trim_start_matches("hearth").trim().to_owned())
            .filter(|line| !line.is_empty())
    }
}

fn run_on(server: &Server, row: &Row, kind: Kind, requests: u64) -> Outcome<Run> {
    let mut client = server.connect()?;
    match row.verb {
        Verb::Set => generator::warm_up(row, server.port(), round_up(requests / WARM_UP_SHARE, row.granularity()))?,
        Verb::Get => readback::load(&mut client)?,
    }
    let errors_before = error_replies(&client.info()?);
    let cpu_before_us = procfs::cpu_us(server.pid())?;
    let load = generator::run(row, server.port(), requests)?;
    let cpu_us = procfs::cpu_us(server.pid())?.saturating_sub(cpu_before_us);
    let peak_kib = procfs::peak_memory_kib(server.pid())?;
    let fields = client.info()?;
    refuse_error_replies(errors_before, error_replies(&fields))?;
    let found = check_data(&mut client, row, requests)?;
    let sample = Sample {
        rps: load.rps,
        p50_ms: load.p50_ms,
        p99_ms: load.p99_ms,
        cpu_us_per_op: cpu_us as f64 / requests as f64,
        generator_share: load.cpu_share,
        peak_kib: peak_kib as f64,
    };
    Ok(Run { sample, found, background: background(kind, &fields) })
}

fn check_data(client: &mut Client, row: &Row, requests: u64) -> Outcome<Found> {
    match row.verb {
        Verb::Set => readback::check_written(client, requests),
        Verb::Get => readback::check_loaded(client),
    }
}

/// The number of error replies so far, where the server counts them.
fn error_replies(fields: &[(String, String)]) -> Option<u64> {
    fields.iter().find(|(name, _)| name == "total_error_replies").and_then(|(_, value)| value.parse().ok())
}

fn refuse_error_replies(before: Option<u64>, after: Option<u64>) -> Outcome<()> {
    let (Some(before), Some(after)) = (before, after) else { return Ok(()) };
    let during = after.saturating_sub(before);
    if during > INNOCENT_ERROR_REPLIES {
        return Err(format!("The server counted {during} error replies during the run."));
    }
    Ok(())
}

fn background(kind: Kind, fields: &[(String, String)]) -> Vec<String> {
    let told = fields.iter().filter(|(name, _)| {
        // redis counts failed rewrites under a longer name that says nothing about work done.
        BACKGROUND_FIELDS.iter().any(|part| name.contains(part)) && !name.contains("failures")
    });
    told.map(|(name, value)| format!("{kind} {name}={value}")).collect()
}

fn round_up(number: u64, granularity: u64) -> u64 {
    number.max(1).div_ceil(granularity) * granularity
}
