//! EVAL, EVALSHA, EVAL_RO, EVALSHA_RO and SCRIPT: the scripts that are known are run, any other is refused.
//!
//! Promise: Redis's argument rules and errors; a known script needs no SCRIPT LOAD. Must never run a text.

use crate::frontends::resp::args::parse_i64;
use crate::frontends::resp::call::{Call, CommandError};
use crate::frontends::resp::error;
use crate::frontends::resp::scripts;

/// Digits of a SHA1.
const SHA1_DIGITS: usize = 40;
const NO_SCRIPT: &str = "NOSCRIPT No matching script. Please use EVAL.";

/// EVAL script numkeys [key …] [argument …]
pub fn eval(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    run_body(call, false)
}

/// `EVAL_RO` script numkeys [key …] [argument …]
pub fn eval_ro(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    run_body(call, true)
}

/// EVALSHA sha1 numkeys [key …] [argument …]
pub fn evalsha(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    run_named(call, false)
}

/// `EVALSHA_RO` sha1 numkeys [key …] [argument …]
pub fn evalsha_ro(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    run_named(call, true)
}

fn run_body(call: &mut Call<'_, '_>, read_only: bool) -> Result<(), CommandError> {
    let keys = number_of_keys(call)?;
    let sha1 = scripts::sha1_of(call.arg(1));
    let known = scripts::find(sha1.as_bytes()).ok_or_else(|| scripts::unknown(&sha1))?;
    scripts::run(call, known, keys, read_only)
}

fn run_named(call: &mut Call<'_, '_>, read_only: bool) -> Result<(), CommandError> {
    if call.arg(1).len() != SHA1_DIGITS {
        return Err(NO_SCRIPT.into());
    }
    let keys = number_of_keys(call)?;
    let known = scripts::find(call.arg(1)).ok_or(NO_SCRIPT)?;
    scripts::run(call, known, keys, read_only)
}

fn number_of_keys(call: &Call<'_, '_>) -> Result<usize, CommandError> {
    let keys = parse_i64(call.arg(2)).ok_or(error::NOT_AN_INTEGER)?;
    if keys > call.args.len() as i64 - 3 {
        return Err("ERR Number of keys can't be greater than number of args".into());
    }
    usize::try_from(keys).map_err(|_| "ERR Number of keys can't be negative".into())
}

/// SCRIPT LOAD script
pub fn load(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let sha1 = scripts::sha1_of(call.arg(2));
    if scripts::find(sha1.as_bytes()).is_none() {
        return Err(scripts::unknown(&sha1).into());
    }
    call.reply().bulk(sha1.as_bytes());
    Ok(())
}

/// SCRIPT EXISTS sha1 [sha1 …]
pub fn exists(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let count = call.args.len();
    call.reply().array_header(count - 2);
    for i in 2..count {
        let known = scripts::find(call.arg(i)).is_some();
        call.reply().integer(i64::from(known));
    }
    Ok(())
}

/// SCRIPT FLUSH [ASYNC | SYNC]
pub fn flush(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let count = call.args.len();
    if count > 3 || (count == 3 && !call.is(2, "SYNC") && !call.is(2, "ASYNC")) {
        return Err("ERR SCRIPT FLUSH only support SYNC|ASYNC option".into());
    }
    call.reply().ok();
    Ok(())
}
