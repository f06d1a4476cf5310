//! FLUSHDB and FLUSHALL.
//!
//! Promise: every key of a shard goes with one record, so ASYNC and SYNC are the same. FLUSHALL is about the numbered caches
//! and never about named ones. Must never know a socket.

use crate::core::types::CacheName;
use crate::frontends::resp::call::{Call, CommandError};
use crate::frontends::resp::error;
use crate::frontends::resp::limits::DATABASES;

/// FLUSHDB [ASYNC | SYNC]
pub fn flushdb(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    judge(call)?;
    let holds = call.turn.clear()?;
    call.replies.hold(holds);
    call.reply().ok();
    Ok(())
}

/// FLUSHALL [ASYNC | SYNC]
pub fn flushall(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    judge(call)?;
    for number in 0..DATABASES {
        let cleared = call.turn.within(&CacheName::numbered(number), |turn| turn.clear());
        let holds = cleared?;
        // Kept there, too: run again after a wait, it finds these caches empty.
        call.progress.holds.extend(holds);
    }
    call.replies.hold(call.progress.holds.iter().copied());
    call.reply().ok();
    Ok(())
}

fn judge(call: &Call<'_, '_>) -> Result<(), CommandError> {
    let known = call.is(1, "ASYNC") || call.is(1, "SYNC");
    match call.args.len() {
        1 => Ok(()),
        2 if known => Ok(()),
        _ => Err(error::SYNTAX.into()),
    }
}
