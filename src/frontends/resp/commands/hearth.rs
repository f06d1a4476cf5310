//! What only Hearth has: values with their revisions, and the logs behind a cache.
//!
//! Promise: a revision told here is what IFREV compares. Must never know a socket.

use crate::frontends::resp::call::{Call, CommandError};
use crate::frontends::resp::commands::set::SetOptions;
use crate::frontends::resp::encode::Frame;
use crate::frontends::resp::error;

/// HEARTH.GET key: a map of value, revision and expiry (Unix milliseconds, -1 for never); nil when there is none.
pub fn get(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let key = call.arg(1);
    let value = call.look(key)?;
    call.count_look(value.is_some());
    let Some(value) = value else {
        call.reply().null();
        return Ok(());
    };
    call.reply().map_header(3);
    call.reply().bulk(b"value");
    call.write_value(key, Some(&value), error::of_read)?;
    call.reply().bulk(b"revision");
    call.reply().integer(value.revision().0 as i64);
    call.reply().bulk(b"expiry");
    let expires_at = value.expires_at().0;
    call.reply().integer(if expires_at == 0 { -1 } else { expires_at as i64 });
    Ok(())
}

/// HEARTH.SET key value [the options of SET but GET]: the new revision, nil when the condition did not hold, 0 when the
/// expiry has passed and the key is absent.
pub fn set(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let options = SetOptions::read(call)?;
    if options.asks_for_the_old_value() {
        return Err(error::SYNTAX.into());
    }
    let outcome = options.stage(call, "hearth.set")?;
    if !outcome.held {
        call.reply().null();
        return Ok(());
    }
    let lives = call.look(call.arg(1))?;
    call.reply().integer(lives.map_or(0, |value| value.revision().0 as i64));
    Ok(())
}

/// HEARTH.INFO: for each shard of the selected cache a map of its facts.
pub fn info(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let text = |text: &str| Frame::Bulk(text.as_bytes().to_vec());
    let shards = call.client.cache.shards();
    let frames = shards.into_iter().map(|shard| {
        Frame::Map(vec![
            (text("cache"), text(&call.client.cache.name().to_string())),
            (text("shard"), Frame::Integer(i64::from(shard.number.0))),
            (text("epoch"), text(&shard.epoch.to_string())),
            (text("base"), Frame::Integer(shard.base.0 as i64)),
            (text("next"), Frame::Integer(shard.applied.0 as i64)),
            (text("keys"), Frame::Integer(shard.keys as i64)),
            (text("expiring"), Frame::Integer(shard.expiring as i64)),
            (text("live_bytes"), Frame::Integer(shard.live_bytes as i64)),
            (text("log_bytes"), Frame::Integer(shard.log_bytes as i64)),
            (text("disk_bytes"), Frame::Integer(shard.disk_bytes as i64)),
        ])
    });
    let frame = Frame::Array(frames.collect());
    call.reply().frame(&frame);
    Ok(())
}
