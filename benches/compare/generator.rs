//! Runs redis-benchmark once and reads its table. It aborts on the first error reply; anything it says beyond its
//! table is a failure here too.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::procfs;
use crate::rows::{KEY_SPACE, Row, VALUE_LEN, Verb};

/// Far above the few seconds a run is sized for; only a stuck server reaches it.
const RUN_TIMEOUT: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(10);

pub struct Load {
    pub rps: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// The generator's own CPU time over its run time, as a share of one core.
    pub cpu_share: f64,
}

/// Drives the row's work over the whole key space.
pub fn run(row: &Row, port: u16, requests: u64) -> Outcome<Load> {
    drive(row, port, requests, &["-r", &KEY_SPACE.to_string()])
}

/// Warms connections, buffers and the first pages. Without -r redis-benchmark writes one literal key outside the key
/// space, so the count of keys read back later is not disturbed.
pub fn warm_up(row: &Row, port: u16, requests: u64) -> Outcome<()> {
    drive(row, port, requests, &[]).map(|_| ())
}

fn drive(row: &Row, port: u16, requests: u64, more: &[&str]) -> Outcome<Load> {
    let verb = match row.verb {
        Verb::Set => "set",
        Verb::Get => "get",
    };
    let cpu_before = procfs::waited_children_cpu_us()?;
    let started = Instant::now();
    let mut child = Command::new("redis-benchmark")
        .args(["-h", "127.0.0.1", "-p", &port.to_string(), "-t", verb, "-d", &VALUE_LEN.to_string()])
        .args(["-c", &row.clients.to_string(), "-P", &row.pipeline.to_string(), "-n", &requests.to_string(), "--csv"])
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("redis-benchmark could not be started: {e}."))?;
    let succeeded = wait(&mut child)?;
    let elapsed_us = started.elapsed().as_micros() as f64;
    let cpu_us = procfs::waited_children_cpu_us()?.saturating_sub(cpu_before) as f64;
    let output = read_all(child.stdout.take())?;
    let complaints = read_all(child.stderr.take())?;
    // The one warning allowed: the tool could not read the server's configuration, which it only prints.
    let complaint = complaints.lines().find(|line| !line.trim().is_empty() && !line.starts_with("WARNING"));
    let error_line = output.lines().find(|line| line.to_ascii_lowercase().starts_with("error"));
    if let Some(line) = complaint.or(error_line) {
        return Err(format!("redis-benchmark reported: {}", line.trim()));
    }
    if !succeeded {
        return Err("redis-benchmark failed without a word.".to_owned());
    }
    let mut load = parse(&output, verb)?;
    load.cpu_share = cpu_us / elapsed_us;
    Ok(load)
}

fn wait(child: &mut Child) -> Outcome<bool> {
    let deadline = Instant::now() + RUN_TIMEOUT;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status.success()),
            Ok(None) if Instant::now() < deadline => sleep(POLL),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("redis-benchmark did not end within {RUN_TIMEOUT:?}, so the server is stuck."));
            }
            Err(e) => return Err(format!("redis-benchmark could not be waited for: {e}.")),
        }
    }
}

/// Reads after the end of the process: its output is a few hundred bytes, which the pipe holds.
fn read_all(pipe: Option<impl Read>) -> Outcome<String> {
    let mut text = String::new();
    if let Some(mut pipe) = pipe {
        pipe.read_to_string(&mut text).map_err(|e| format!("redis-benchmark's output could not be read: {e}."))?;
    }
    Ok(text)
}

/// The table is a header and one line; columns are found by name, since versions add some.
fn parse(output: &str, verb: &str) -> Outcome<Load> {
    let cells = |line: &str| -> Vec<String> { line.split(',').map(|cell| cell.trim_matches('"').to_owned()).collect() };
    let mut lines = output.lines().map(cells);
    let header = lines.find(|line| line.first().is_some_and(|cell| cell == "test"));
    let values = lines.find(|line| line.first().is_some_and(|cell| cell.eq_ignore_ascii_case(verb)));
    let (Some(header), Some(values)) = (header, values) else {
        return Err(format!("redis-benchmark printed no table for {verb}: {:?}.", output.trim()));
    };
    let column = |name: &str| -> Outcome<f64> {
        let place = header.iter().position(|cell| cell == name);
        let value = place.and_then(|place| values.get(place)?.parse::<f64>().ok());
        value.ok_or_else(|| format!("redis-benchmark's table has no number for {name}."))
    };
    let load = Load {
        rps: column("rps")?,
        p50_ms: column("p50_latency_ms")?,
        p99_ms: column("p99_latency_ms")?,
        cpu_share: 0.0,
    };
    if load.rps > 0.0 { Ok(load) } else { Err("redis-benchmark reported no requests per second.".to_owned()) }
}
