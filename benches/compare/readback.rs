//! Loads the keys that GET rows read, and reads everything back after each run.
//!
//! The whole key space is read rather than a sample: it costs well under a second, and the exact number of keys
//! found is what shows a lost write. redis-benchmark draws keys uniformly, so that number is known to a fraction
//! of a percent for the writes that were acknowledged.

use crate::Outcome;
use crate::resp::Client;
use crate::rows::{KEY_SPACE, VALUE_LEN};
use crate::stats;

/// Keys per write; requests and replies of one batch fit the socket buffers, so neither side waits for the other.
const BATCH: usize = 500;
/// A deviation that chance brings about once in hundreds of millions of runs.
const DEVIATIONS: f64 = 6.0;

/// What one server knew after a run.
pub struct Found {
    pub keys: u64,
    /// The value of every key where all are the same (redis-benchmark writes one value); None where each key has
    /// its own and was already compared with it.
    pub shared_value: Option<Vec<u8>>,
}

/// Writes every key of the key space with a value of its own.
pub fn load(client: &mut Client) -> Outcome<()> {
    let pairs: Vec<(Vec<u8>, Vec<u8>)> = (0..KEY_SPACE).map(|number| (key(number), own_value(number))).collect();
    pairs.chunks(BATCH).try_for_each(|batch| client.set_all(batch))
}

/// After a GET row: every key is there with its own value.
pub fn check_loaded(client: &mut Client) -> Outcome<Found> {
    let mut number = 0;
    for_each_value(client, |key, value| {
        let expected = own_value(number);
        number += 1;
        match value {
            Some(value) if value == expected => Ok(()),
            Some(value) => Err(format!("{key} read back differs: {} bytes, not the value loaded.", value.len())),
            None => Err(format!("{key} was loaded and acknowledged, but reads back as absent.")),
        }
    })?;
    Ok(Found { keys: u64::from(KEY_SPACE), shared_value: None })
}

/// After a SET row of `requests` draws: every key found has one value of the right length, and as many keys are
/// found as that many draws must have hit.
pub fn check_written(client: &mut Client, requests: u64) -> Outcome<Found> {
    let mut keys = 0;
    let mut shared_value: Option<Vec<u8>> = None;
    for_each_value(client, |key, value| {
        let Some(value) = value else { return Ok(()) };
        keys += 1;
        if value.len() != VALUE_LEN {
            return Err(format!("{key} reads back as {} bytes; {VALUE_LEN} were written.", value.len()));
        }
        let first = shared_value.get_or_insert_with(|| value.clone());
        if *first == value {
            Ok(())
        } else {
            Err(format!("{key} reads back with another value than the key before it."))
        }
    })?;
    let (expected, deviation) = stats::distinct_keys(f64::from(KEY_SPACE), requests as f64);
    if (keys as f64 - expected).abs() > DEVIATIONS * deviation + 2.0 {
        return Err(format!(
            "{keys} keys read back after {requests} acknowledged writes to random keys; {expected:.0} were to be \
             expected, give or take {:.0}.",
            DEVIATIONS * deviation + 2.0
        ));
    }
    Ok(Found { keys, shared_value })
}

/// Both servers were given the same work, so they must know about the same number of keys, with the same value.
pub fn check_alike(redis: &Found, hearth: &Found, requests: u64) -> Outcome<()> {
    let (_, deviation) = stats::distinct_keys(f64::from(KEY_SPACE), requests as f64);
    // The difference of two independent counts deviates by the square root of two more than one count.
    let allowed = DEVIATIONS * std::f64::consts::SQRT_2 * deviation + 2.0;
    if redis.keys.abs_diff(hearth.keys) as f64 > allowed {
        return Err(format!(
            "After the same {requests} writes redis knows {} keys and hearth {}; at most {allowed:.0} apart is chance.",
            redis.keys, hearth.keys
        ));
    }
    if redis.shared_value != hearth.shared_value {
        return Err("The value read back from hearth is not the one read back from redis.".to_owned());
    }
    Ok(())
}

fn for_each_value(client: &mut Client, mut check: impl FnMut(&str, Option<Vec<u8>>) -> Outcome<()>) -> Outcome<()> {
    let keys: Vec<Vec<u8>> = (0..KEY_SPACE).map(key).collect();
    for batch in keys.chunks(BATCH) {
        for (key, value) in batch.iter().zip(client.get_all(batch)?) {
            check(&String::from_utf8_lossy(key), value)?;
        }
    }
    Ok(())
}

/// The name redis-benchmark gives the key with this number.
fn key(number: u32) -> Vec<u8> {
    format!("key:{number:012}").into_bytes()
}

/// A value that differs from every other key's, so that an answer for the wrong key is seen.
fn own_value(number: u32) -> Vec<u8> {
    format!("value of {number:012};").into_bytes().into_iter().cycle().take(VALUE_LEN).collect()
}
