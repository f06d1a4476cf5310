//! Whether keys are there, what they hold, and their removal: EXISTS, TOUCH, TYPE, DEL, UNLINK.
//!
//! Promise: a key named twice is deleted once and counted twice by EXISTS, as in Redis. Must never know a socket.

use crate::frontends::resp::call::{Call, CommandError};

/// DEL key [key …] and UNLINK, which is the same: one record each takes the keys away, and nothing is left to free later.
pub fn del(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    call.turn.delete_all(call.args.iter().skip(1), call.progress)?;
    call.replies.hold(call.progress.holds.iter().copied());
    let count = call.progress.count;
    call.reply().integer(count);
    Ok(())
}

/// EXISTS key [key …] and TOUCH, which is the same: no key is dropped for not having been used.
pub fn exists(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let keys: Vec<&[u8]> = call.args.iter().skip(1).collect();
    let looked = call.turn.look_all(&keys)?;
    let mut count = 0;
    for (value, hold) in looked {
        count += i64::from(value.is_some());
        call.replies.hold(hold);
    }
    call.reply().integer(count);
    Ok(())
}

/// TYPE key
pub fn type_of(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let value = call.look(call.arg(1))?;
    call.count_look(value.is_some());
    call.reply().simple(if value.is_some() { "string" } else { "none" });
    Ok(())
}
