//! SLOWLOG: which requests took long.
//!
//! Promise: Redis's shapes. Must never measure anything.

use crate::frontends::resp::args::parse_i64;
use crate::frontends::resp::call::{Call, CommandError};
use crate::frontends::resp::commands::server::too_many;
use crate::frontends::resp::encode::Frame;
use crate::frontends::resp::slowlog::Entry;

/// Entries that are told when no number is given.
const DEFAULT_COUNT: usize = 10;

/// SLOWLOG GET [count]: the newest so many, all of them for -1.
pub fn get(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let count = match call.args.len() {
        2 => DEFAULT_COUNT,
        3 => match parse_i64(call.arg(2)) {
            Some(-1) => usize::MAX,
            Some(count) if count >= 0 => count as usize,
            _ => return Err("ERR count should be greater than or equal to -1".into()),
        },
        _ => return Err(too_many("slowlog", call.arg(1))),
    };
    let entries = call.shared.slowlog.newest(count);
    let frame = Frame::Array(entries.iter().map(|entry| told(entry)).collect());
    call.reply().frame(&frame);
    Ok(())
}

fn told(entry: &Entry) -> Frame {
    Frame::Array(vec![
        Frame::Integer(entry.id as i64),
        Frame::Integer((entry.at.0 / 1000) as i64),
        Frame::Integer(entry.micros as i64),
        Frame::Array(entry.args.iter().cloned().map(Frame::Bulk).collect()),
        Frame::Bulk(entry.peer.to_string().into_bytes()),
        Frame::Bulk(entry.name.clone()),
    ])
}

/// SLOWLOG LEN
pub fn len(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let len = call.shared.slowlog.len();
    call.reply().integer(len as i64);
    Ok(())
}

/// SLOWLOG RESET
pub fn reset(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    call.shared.slowlog.reset();
    call.reply().ok();
    Ok(())
}
