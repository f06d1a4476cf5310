//! DEL, EXISTS, FLUSHALL and FLUSHDB.
//!
//! Promise: a key named twice is deleted once and counted twice by EXISTS, as in Redis. Must never know a socket.

use crate::frontends::resp::args::eq_ignore_case;
use crate::frontends::resp::command::{Call, CommandError};
use crate::frontends::resp::error;

/// DEL key [key …]
pub fn del(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let (removed, holds) = call.turn.delete_all(call.args.iter().skip(1))?;
    call.reply().integer(removed);
    call.replies.hold(holds);
    Ok(())
}

/// EXISTS key [key …]
pub fn exists(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let mut count = 0;
    for key in call.args.iter().skip(1) {
        let (exists, hold) = call.turn.exists(key).map_err(|fault| error::of_read(&fault))?;
        count += i64::from(exists);
        call.replies.hold(hold);
    }
    call.reply().integer(count);
    Ok(())
}

/// FLUSHDB [ASYNC | SYNC] and FLUSHALL [ASYNC | SYNC]: there is one database, so they are the same. Every key goes with one
/// record, so there is nothing to do later either.
pub fn flush(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let word = call.arg(1);
    let known = eq_ignore_case(word, b"ASYNC") || eq_ignore_case(word, b"SYNC");
    if call.args.len() > 2 || (call.args.len() == 2 && !known) {
        return Err(error::SYNTAX.into());
    }
    let hold = call.turn.clear()?;
    call.reply().ok();
    call.replies.hold(hold);
    Ok(())
}
