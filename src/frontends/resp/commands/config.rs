//! CONFIG: the settings by Redis's names.
//!
//! Promise: what is told is true, and a setting Hearth has no counterpart of is not listed; what cannot be changed is refused,
//! and several changes of one request are made all or none. Must never tell a password.

use std::sync::atomic::Ordering;

use crate::core::log::FsyncPolicy;
use crate::frontends::resp::args::parse_i64;
use crate::frontends::resp::call::{Call, CommandError};
use crate::frontends::resp::command::around;
use crate::frontends::resp::encode::Frame;
use crate::frontends::resp::error;
use crate::frontends::resp::glob;
use crate::frontends::resp::limits::DATABASES;
use crate::frontends::resp::slowlog::HIGHEST_MOST_ENTRIES;

const SLOWER_THAN: &str = "slowlog-log-slower-than";
const MAX_LEN: &str = "slowlog-max-len";

/// CONFIG GET pattern [pattern …]
pub fn get(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let text = |text: &str| Frame::Bulk(text.as_bytes().to_vec());
    let wanted =
        |name: &str| call.args.iter().skip(2).any(|pattern| glob::matches_ignore_case(pattern, name.as_bytes()));
    let settings = settings(call).into_iter().filter(|(name, _)| wanted(name));
    let frame = Frame::Map(settings.map(|(name, value)| (text(name), text(&value))).collect());
    call.reply().frame(&frame);
    Ok(())
}

/// The settings that clients and tools ask for, by name.
fn settings(call: &Call<'_, '_>) -> Vec<(&'static str, String)> {
    let (facts, slowlog) = (&call.session.metrics.facts, &call.shared.slowlog);
    let policy = match facts.policy {
        FsyncPolicy::Always => "always",
        FsyncPolicy::EverySec => "everysec",
        FsyncPolicy::Never => "no",
    };
    let password = if call.shared.password.is_some() { "(set)" } else { "" };
    vec![
        ("appendfsync", policy.to_owned()),
        ("appendonly", if facts.in_memory { "no" } else { "yes" }.to_owned()),
        ("bind", facts.bind.to_string()),
        ("cluster-enabled", "no".to_owned()),
        ("cluster-require-full-coverage", "yes".to_owned()),
        ("databases", DATABASES.to_string()),
        ("maxclients", facts.max_clients.to_string()),
        ("maxmemory", facts.max_memory_bytes.to_string()),
        ("maxmemory-policy", "noeviction".to_owned()),
        ("notify-keyspace-events", String::new()),
        ("port", facts.port.to_string()),
        ("proto-max-bulk-len", facts.max_value_bytes.to_string()),
        ("protected-mode", "yes".to_owned()),
        ("replica-read-only", "yes".to_owned()),
        ("requirepass", password.to_owned()),
        ("save", String::new()),
        ("slave-read-only", "yes".to_owned()),
        (SLOWER_THAN, slowlog.slower_than_us.load(Ordering::Relaxed).to_string()),
        (MAX_LEN, slowlog.most_entries.load(Ordering::Relaxed).to_string()),
        ("timeout", "0".to_owned()),
    ]
}

/// CONFIG SET name value [name value …]
pub fn set(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    if call.args.len() % 2 == 1 {
        return Err(error::SYNTAX.into());
    }
    let settings = settings(call);
    let mut asked: Vec<(&'static str, &[u8])> = Vec::new();
    for i in (2..call.args.len()).step_by(2) {
        let Some((name, now)) = settings.iter().find(|(name, _)| call.is(i, name)) else {
            return Err(around("ERR Unknown option or number of arguments for CONFIG SET - '", call.arg(i), "'"));
        };
        if asked.iter().any(|(other, _)| other == name) {
            return Err(failed(name, "duplicate parameter"));
        }
        let changeable = [SLOWER_THAN, MAX_LEN].contains(name);
        if !changeable && !call.is(i + 1, now) {
            return Err(failed(name, "can't set immutable config"));
        }
        asked.push((name, call.arg(i + 1)));
    }
    // All are judged before one is set.
    let (mut slower_than, mut max_len) = (None, None);
    for (name, value) in asked {
        match name {
            SLOWER_THAN => slower_than = Some(number(name, value, -1, i64::MAX)?),
            MAX_LEN => max_len = Some(number(name, value, 0, HIGHEST_MOST_ENTRIES as i64)?),
            _ => {}
        }
    }
    if let Some(us) = slower_than {
        call.shared.slowlog.slower_than_us.store(us, Ordering::Relaxed);
    }
    if let Some(entries) = max_len {
        call.shared.slowlog.most_entries.store(entries as usize, Ordering::Relaxed);
    }
    call.reply().ok();
    Ok(())
}

fn number(name: &str, value: &[u8], least: i64, most: i64) -> Result<i64, CommandError> {
    match parse_i64(value) {
        None => Err(failed(name, "argument couldn't be parsed into an integer")),
        Some(number) if (least..=most).contains(&number) => Ok(number),
        Some(_) => Err(failed(name, &format!("argument must be between {least} and {most} inclusive"))),
    }
}

fn failed(name: &str, why: &str) -> CommandError {
    format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {why}").into()
}

/// CONFIG RESETSTAT
pub fn resetstat(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    call.session.metrics.reset();
    call.reply().ok();
    Ok(())
}

/// CONFIG REWRITE
pub fn rewrite(_call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    Err("ERR The server is running without a config file".into())
}
