//! MULTI, EXEC, DISCARD, WATCH, UNWATCH.
//!
//! Promise: EXEC runs all of it or nothing: one batch of one shard, seen by nobody in parts, whole after any power cut.
//! A command that fails by itself (its argument is no number) fails alone, as in Redis; a write that is refused (no room)
//! takes the whole with it. Must never know a socket.

use crate::core::api::{Progress, Value};
use crate::frontends::resp::call::{Call, CommandError};
use crate::frontends::resp::error;
use crate::frontends::resp::limits::{MAX_ARGUMENTS, MAX_REQUEST_BYTES};
use crate::frontends::resp::transaction::{Transaction, Watched};

/// MULTI
pub fn multi(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    if call.client.transaction.is_some() {
        return Err("ERR MULTI calls can not be nested".into());
    }
    call.client.transaction = Some(Transaction::default());
    call.reply().ok();
    Ok(())
}

/// DISCARD
pub fn discard(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    if call.client.transaction.is_none() {
        return Err("ERR DISCARD without MULTI".into());
    }
    call.client.end_transaction();
    call.reply().ok();
    Ok(())
}

/// WATCH key [key …]
pub fn watch(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    if call.client.transaction.is_some() {
        return Err("ERR WATCH inside MULTI is not allowed".into());
    }
    if call.turn.is_memory_full() {
        return Err(error::OVER_THE_BOUND.into());
    }
    let bytes: usize = call.args.iter().skip(1).map(<[u8]>::len).sum();
    let client = &call.client;
    if client.watched_bytes + bytes > MAX_REQUEST_BYTES || client.watched.len() + call.args.len() > MAX_ARGUMENTS {
        return Err(format!("OOM more than {MAX_ARGUMENTS} keys or {MAX_REQUEST_BYTES} bytes watched").into());
    }
    let mut watched = Vec::new();
    for key in call.args.iter().skip(1) {
        let revision = call.look(key)?.map(|value| value.revision());
        watched.push(Watched { cache: call.turn.cache().clone(), key: key.into(), revision });
    }
    call.client.watched.append(&mut watched);
    call.client.watched_bytes += bytes;
    call.reply().ok();
    Ok(())
}

/// UNWATCH
pub fn unwatch(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    call.client.unwatch();
    call.reply().ok();
    Ok(())
}

/// EXEC
pub fn exec(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let Some(transaction) = call.client.transaction.take() else { return Err("ERR EXEC without MULTI".into()) };
    let watched = std::mem::take(&mut call.client.watched);
    let watched_bytes = std::mem::take(&mut call.client.watched_bytes);
    if transaction.broken {
        return Err("EXECABORT Transaction discarded because of previous errors.".into());
    }
    // What its commands may change of the client is as it was when they have to be run again, or are not run.
    let (cache, protocol, answers) = (call.client.cache.clone(), call.client.protocol, call.client.answers);
    let result = call.atomically(|call| {
        call.client.cache = cache.clone();
        call.turn.select(cache.name());
        (call.client.protocol, call.client.answers) = (protocol, answers);
        run_all(call, &transaction, &watched)
    });
    if let Err(error) = result {
        call.turn.select(cache.name());
        (call.client.cache, call.client.protocol, call.client.answers) = (cache, protocol, answers);
        if matches!(error, CommandError::Wait(_)) {
            call.client.transaction = Some(transaction);
            (call.client.watched, call.client.watched_bytes) = (watched, watched_bytes);
        }
        return Err(error);
    }
    Ok(())
}

fn run_all(call: &mut Call<'_, '_>, transaction: &Transaction, watched: &[Watched]) -> Result<(), CommandError> {
    if has_changed(call, watched)? {
        call.reply().null_array();
        return Ok(());
    }
    call.reply().array_header(transaction.queued.len());
    let mut at_us = call.session.cache.micros();
    for queued in &transaction.queued {
        let mark = call.replies.mark();
        let mut progress = Progress::default();
        let mut part = call.part(queued.args.args(), &mut progress);
        match (queued.command.run)(&mut part) {
            Ok(()) => {}
            Err(CommandError::Text(text)) => {
                call.replies.back_to(mark);
                call.replies.error(call.client.protocol, &text);
            }
            Err(error) => return Err(error),
        }
        let now_us = call.session.cache.micros();
        let took_us = now_us.saturating_sub(at_us);
        at_us = now_us;
        if call.shared.slowlog.is_slow(took_us) {
            let (args, name) = (queued.args.args(), &call.client.name);
            call.shared.slowlog.keep(queued.command, args, took_us, call.turn.now(), call.session.peer, name);
        }
    }
    Ok(())
}

fn has_changed(call: &mut Call<'_, '_>, watched: &[Watched]) -> Result<bool, CommandError> {
    for Watched { cache, key, revision } in watched {
        let (value, hold) = call.turn.within(cache, |turn| turn.look(key))?;
        call.replies.hold(hold);
        if value.as_ref().map(Value::revision) != *revision {
            return Ok(true);
        }
    }
    Ok(false)
}
