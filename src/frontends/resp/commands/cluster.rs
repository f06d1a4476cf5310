//! What clients of a Redis cluster send.
//!
//! Promise: they find out at once that this is none; READONLY, READWRITE and ASKING are accepted, because any key is answered
//! here. Must never decide where a key is.

use crate::frontends::resp::call::{Call, CommandError};

/// CLUSTER, whatever follows.
pub fn cluster(_call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    Err("ERR This instance has cluster support disabled".into())
}

/// READONLY, READWRITE and ASKING.
pub fn accept(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    call.reply().ok();
    Ok(())
}
