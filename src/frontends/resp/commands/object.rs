//! How values are kept, in Redis's words: OBJECT and MEMORY.
//!
//! Promise: what Redis would tell of a value is told from the value itself; nothing is kept for these commands. Must never
//! change anything.

use crate::core::api::Holdings;
use crate::core::shard::stage::record_bytes;
use crate::frontends::resp::args::parse_i64;
use crate::frontends::resp::call::{Call, CommandError};
use crate::frontends::resp::encode::Frame;
use crate::frontends::resp::error;

/// Longest value that Redis keeps in one piece with its head, in bytes.
const EMBEDDED_BYTES: usize = 44;
/// Numbers below this are one object each in Redis, for all keys that hold them.
const SHARED_NUMBERS: i64 = 10_000;
/// How many users Redis says a shared object has.
const SHARED_REFERENCES: i64 = 2_147_483_647;
/// About what the index takes for a key beside the key itself; `docs/decisions/0004-the-index.md` has the figures.
const INDEX_BYTES: usize = 80;

const NO_FREQUENCIES: &str = "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that \
                              when switching between policies at runtime LRU and LFU data will take some time to adjust.";

fn encoding_of(value: &[u8]) -> &'static str {
    // Redis keeps as a number what it can write back as it was.
    if parse_i64(value).is_some() {
        "int"
    } else if value.len() <= EMBEDDED_BYTES {
        "embstr"
    } else {
        "raw"
    }
}

fn references_of(value: &[u8]) -> i64 {
    match parse_i64(value) {
        Some(0..SHARED_NUMBERS) => SHARED_REFERENCES,
        _ => 1,
    }
}

/// Whether a value of this length has to be read to be told about: no number is as long as the others.
fn may_be_short(bytes: usize) -> bool {
    bytes <= EMBEDDED_BYTES
}

/// OBJECT ENCODING key
pub fn encoding(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let key = call.arg(2);
    let Some(value) = call.look(key)? else {
        call.reply().null();
        return Ok(());
    };
    let told = if may_be_short(value.bytes(key.len())) { encoding_of(&call.read(key, &value)?) } else { "raw" };
    call.reply().bulk(told.as_bytes());
    Ok(())
}

/// OBJECT REFCOUNT key
pub fn refcount(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let key = call.arg(2);
    let Some(value) = call.look(key)? else {
        call.reply().null();
        return Ok(());
    };
    let told = if may_be_short(value.bytes(key.len())) { references_of(&call.read(key, &value)?) } else { 1 };
    call.reply().integer(told);
    Ok(())
}

/// OBJECT FREQ key
pub fn freq(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    if call.look(call.arg(2))?.is_some() {
        return Err(NO_FREQUENCIES.into());
    }
    call.reply().null();
    Ok(())
}

/// OBJECT IDLETIME key. When a key was last read is not kept: nothing is evicted by it.
pub fn idletime(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    match call.look(call.arg(2))? {
        Some(_) => call.reply().integer(0),
        None => call.reply().null(),
    }
    Ok(())
}

/// MEMORY USAGE key [SAMPLES count]
pub fn usage(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let key = call.arg(2);
    let mut i = 3;
    while i < call.args.len() {
        let (true, Some(samples)) = (call.is(i, "SAMPLES"), call.args.get(i + 1)) else {
            return Err(error::SYNTAX.into());
        };
        // A string is one piece: it is never sampled.
        if parse_i64(samples).ok_or(error::NOT_AN_INTEGER)? < 0 {
            return Err(error::SYNTAX.into());
        }
        i += 2;
    }
    match call.look(key)? {
        Some(value) => {
            let bytes = record_bytes(key.len() + value.bytes(key.len())) + key.len() + INDEX_BYTES;
            call.reply().integer(bytes as i64);
        }
        None => call.reply().null(),
    }
    Ok(())
}

/// MEMORY DOCTOR
pub fn doctor(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let text = "Nothing was examined: Hearth has no memory doctor. INFO memory and MEMORY STATS tell the figures.\n";
    call.reply().frame(&Frame::Verbatim(text.to_owned()));
    Ok(())
}

/// MEMORY MALLOC-STATS
pub fn malloc_stats(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    // Redis's words for an allocator that tells nothing.
    call.reply().bulk(b"Stats not supported for the current allocator");
    Ok(())
}

/// MEMORY PURGE
pub fn purge(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    // The allocator keeps nothing that could be given back by asking.
    call.reply().ok();
    Ok(())
}

/// MEMORY STATS: those of Redis's figures that Hearth has, too.
pub fn stats(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let memory = crate::memory::of_this_process();
    let caches = &call.session.caches;
    let holdings = caches.names().into_iter().filter_map(|name| caches.get(&name)).map(|cache| cache.holds());
    let (keys, live) = holdings
        .fold((0_u64, 0_u64), |(keys, live), holds: Holdings| (keys + holds.keys as u64, live + holds.live_bytes));
    let figures = [
        ("peak.allocated", memory.peak_bytes),
        ("total.allocated", memory.used_bytes),
        ("keys.count", keys),
        ("keys.bytes-per-key", memory.used_bytes.checked_div(keys).unwrap_or_default()),
        ("dataset.bytes", live),
        ("allocator.allocated", memory.used_bytes),
        ("allocator.resident", memory.resident_bytes),
    ];
    call.reply().map_header(figures.len());
    for (name, figure) in figures {
        call.reply().bulk(name.as_bytes());
        call.reply().integer(figure as i64);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_and_references_are_redis_own() {
        for (value, encoding, references) in [
            (&b"0"[..], "int", SHARED_REFERENCES),
            (b"9999", "int", SHARED_REFERENCES),
            (b"10000", "int", 1),
            (b"-1", "int", 1),
            (b"-9223372036854775808", "int", 1),
            (b"9223372036854775808", "embstr", 1),
            (b"010", "embstr", 1),
            (b"1.5", "embstr", 1),
            (b"", "embstr", 1),
            (&[b'x'; 44], "embstr", 1),
            (&[b'x'; 45], "raw", 1),
        ] {
            assert_eq!((encoding_of(value), references_of(value)), (encoding, references), "{value:?}");
        }
    }
}
