//! A key's value under another name: RENAME, RENAMENX, COPY.
//!
//! Promise: the value goes along with its expiry, in one batch: nobody sees it twice or not at all. Only a copy to another
//! database reads here and writes there. Must never know a socket.

use crate::core::op::{Condition, Expiry, Put};
use crate::core::types::{CacheName, Millis};
use crate::frontends::resp::args::parse_i64;
use crate::frontends::resp::call::{Call, CommandError, Current};
use crate::frontends::resp::error;
use crate::frontends::resp::limits::DATABASES;

const NO_SUCH_KEY: &str = "ERR no such key";

/// RENAME key newkey
pub fn rename(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    give_name(call, true)?;
    call.reply().ok();
    Ok(())
}

/// RENAMENX key newkey
pub fn renamenx(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let renamed = give_name(call, false)?;
    call.reply().integer(i64::from(renamed));
    Ok(())
}

/// Whether the key has its new name: a name that is taken is given only when it `replaces`.
fn give_name(call: &mut Call<'_, '_>, replaces: bool) -> Result<bool, CommandError> {
    let (from, to) = (call.arg(1), call.arg(2));
    call.require_together([from, to].into_iter())?;
    call.atomically(|call| {
        let value = call.look_to_write(from)?.ok_or(NO_SUCH_KEY)?;
        if from == to || (!replaces && call.look_to_write(to)?.is_some()) {
            return Ok(false);
        }
        let bytes = call.read(from, &value)?;
        // In this order, so that a cache at its bound has the room that the old name gives back.
        call.delete(from)?;
        call.set(to, &bytes, value.expires_at())?;
        Ok(true)
    })
}

/// What stands behind the names of COPY.
#[derive(Default)]
struct CopyOptions {
    database: Option<CacheName>,
    replaces: bool,
}

impl CopyOptions {
    fn read(call: &Call<'_, '_>) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut i = 3;
        while i < call.args.len() {
            if call.is(i, "REPLACE") {
                options.replaces = true;
            } else if let (true, Some(number)) = (call.is(i, "DB"), call.args.get(i + 1)) {
                options.database = Some(CacheName::numbered(database(number)?));
                i += 1;
            } else {
                return Err(error::SYNTAX.into());
            }
            i += 1;
        }
        if let Some(database) = &options.database
            && call.session.caches.get(database).is_none()
        {
            return Err(error::DB_OUT_OF_RANGE.into());
        }
        Ok(options)
    }
}

fn database(number: &[u8]) -> Result<u32, CommandError> {
    let number = parse_i64(number).ok_or(error::NOT_AN_INTEGER)?;
    if i32::try_from(number).is_err() {
        return Err(format!("ERR value is out of range, value must between {} and {}", i32::MIN, i32::MAX).into());
    }
    u32::try_from(number).ok().filter(|number| *number < DATABASES).ok_or_else(|| error::DB_OUT_OF_RANGE.into())
}

/// COPY source destination [DB number] [REPLACE]
pub fn copy(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let (from, to) = (call.arg(1), call.arg(2));
    let CopyOptions { database, replaces } = CopyOptions::read(call)?;
    let copied = match database.filter(|database| database != call.turn.cache()) {
        Some(database) => copy_to(call, &database, replaces)?,
        None if from == to => return Err("ERR source and destination objects are the same".into()),
        None => {
            call.require_together([from, to].into_iter())?;
            call.atomically(|call| {
                let Some(value) = call.look_to_write(from)? else { return Ok(false) };
                if !replaces && call.look_to_write(to)?.is_some() {
                    return Ok(false);
                }
                let bytes = call.read(from, &value)?;
                call.set(to, &bytes, value.expires_at())?;
                Ok(true)
            })?
        }
    };
    call.reply().integer(i64::from(copied));
    Ok(())
}

/// Copies to another database: what is applied here when it is read, or what this turn wrote.
fn copy_to(call: &mut Call<'_, '_>, database: &CacheName, replaces: bool) -> Result<bool, CommandError> {
    let (from, to) = (call.arg(1), call.arg(2));
    let Some(Current { value, expires_at, .. }) = call.value_of(from)? else { return Ok(false) };
    let expiry = if expires_at == Millis::NEVER { Expiry::Never } else { Expiry::At(expires_at) };
    let condition = if replaces { Condition::Always } else { Condition::Absent };
    let put = Put { key: to, value: &value, expiry, condition };
    let (outcome, hold) = call.turn.within(database, |turn| turn.put(&put))?;
    call.replies.hold(hold);
    Ok(outcome.held)
}
