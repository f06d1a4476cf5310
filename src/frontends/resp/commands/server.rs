//! The commands about the broker: COMMAND, CONFIG GET. INFO has a file of its own.
//!
//! Promise: what they tell is true; a setting Hearth has no counterpart of is not listed. Must never change anything.

use crate::core::log::FsyncPolicy;
use crate::frontends::front_end::Session;
use crate::frontends::resp::args::eq_ignore_case;
use crate::frontends::resp::call::{Call, CommandError};
use crate::frontends::resp::command::{Command, unknown_subcommand, wrong_arity};
use crate::frontends::resp::encode::Frame;
use crate::frontends::resp::glob;
use crate::frontends::resp::limits::DATABASES;
use crate::frontends::resp::table::{all, find};

fn text(text: &str) -> Frame {
    Frame::Bulk(text.as_bytes().to_vec())
}

/// COMMAND [COUNT | LIST | INFO [name …] | DOCS [name …] | GETKEYS command arg … | HELP]
pub fn command(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let (subcommand, count) = (call.arg(1), call.args.len());
    let is = |name: &str| eq_ignore_case(subcommand, name.as_bytes());
    let named = |call: &Call<'_, '_>| -> Vec<Option<&'static Command>> {
        if call.args.len() == 2 {
            return all().iter().copied().map(Some).collect();
        }
        call.args.iter().skip(2).map(find).collect()
    };
    let frame = if count == 1 {
        Frame::Array(all().iter().copied().map(describe).collect())
    } else if is("COUNT") && count == 2 {
        Frame::Integer(all().len() as i64)
    } else if is("LIST") && count == 2 {
        Frame::Array(all().iter().map(|command| text(command.name)).collect())
    } else if is("INFO") {
        Frame::Array(named(call).into_iter().map(|command| command.map_or(Frame::Null, describe)).collect())
    } else if is("DOCS") {
        Frame::Map(named(call).into_iter().flatten().map(document).collect())
    } else if is("GETKEYS") && count > 3 {
        return get_keys(call);
    } else if is("HELP") && count == 2 {
        let lines =
            ["COMMAND <subcommand> [<arg> ...]. Subcommands are:", "COUNT", "DOCS", "GETKEYS", "INFO", "LIST", "HELP"];
        Frame::Array(lines.iter().map(|line| Frame::Simple((*line).to_owned())).collect())
    } else if ["COUNT", "LIST", "GETKEYS", "HELP"].iter().any(|name| is(name)) {
        let name = String::from_utf8_lossy(subcommand).to_ascii_lowercase();
        return Err(wrong_arity(&format!("command|{name}")).into());
    } else {
        return Err(unknown_subcommand("command", subcommand).into());
    };
    call.reply().frame(&frame);
    Ok(())
}

/// The ten elements that Redis 7 answers for each command.
fn describe(command: &Command) -> Frame {
    let flags = command.flags.iter().map(|flag| Frame::Simple((*flag).to_owned())).collect();
    let (category, kind) = match command.group {
        "connection" => ("@connection", "@fast"),
        "string" => ("@string", if command.flags.contains(&"write") { "@write" } else { "@read" }),
        "generic" => ("@keyspace", if command.flags.contains(&"write") { "@write" } else { "@read" }),
        "server" if command.flags.contains(&"write") => ("@keyspace", "@write"),
        _ => ("@slow", "@connection"),
    };
    Frame::Array(vec![
        text(command.name),
        Frame::Integer(command.arity),
        Frame::Set(flags),
        Frame::Integer(command.keys.first),
        Frame::Integer(command.keys.last),
        Frame::Integer(command.keys.step),
        Frame::Set(vec![Frame::Simple(category.to_owned()), Frame::Simple(kind.to_owned())]),
        Frame::Array(Vec::new()),
        Frame::Array(Vec::new()),
        Frame::Array(Vec::new()),
    ])
}

fn document(command: &'static Command) -> (Frame, Frame) {
    let fields = [
        ("summary", command.summary),
        ("since", command.since),
        ("group", command.group),
        ("complexity", command.complexity),
    ];
    (text(command.name), Frame::Map(fields.iter().map(|(name, value)| (text(name), text(value))).collect()))
}

fn get_keys(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let count = call.args.len() - 2;
    let Some(command) = find(call.arg(2)) else { return Err("ERR Invalid command specified".into()) };
    let arity = command.arity.unsigned_abs() as usize;
    if count < arity || (command.arity > 0 && count != arity) {
        return Err("ERR Invalid number of arguments specified for command".into());
    }
    if command.keys.step == 0 {
        return Err("ERR The command has no key arguments".into());
    }
    let last = if command.keys.last < 0 { count as i64 + command.keys.last } else { command.keys.last };
    let keys = (command.keys.first..=last).step_by(command.keys.step as usize);
    let frame = Frame::Array(keys.map(|i| Frame::Bulk(call.arg(2 + i as usize).to_vec())).collect());
    call.reply().frame(&frame);
    Ok(())
}

/// CONFIG GET pattern [pattern …]
pub fn config(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let subcommand = call.arg(1);
    if eq_ignore_case(subcommand, b"HELP") && call.args.len() == 2 {
        let lines = ["CONFIG <subcommand> [<arg> ...]. Subcommands are:", "GET <pattern>", "HELP"];
        let frame = Frame::Array(lines.iter().map(|line| Frame::Simple((*line).to_owned())).collect());
        call.reply().frame(&frame);
        return Ok(());
    }
    if !eq_ignore_case(subcommand, b"GET") {
        return Err(unknown_subcommand("config", subcommand).into());
    }
    if call.args.len() < 3 {
        return Err(wrong_arity("config|get").into());
    }
    let settings = settings(call.session);
    let wanted =
        |name: &str| call.args.iter().skip(2).any(|pattern| glob::matches_ignore_case(pattern, name.as_bytes()));
    let pairs = settings.iter().filter(|(name, _)| wanted(name)).map(|(name, value)| (text(name), text(value)));
    let frame = Frame::Map(pairs.collect());
    call.reply().frame(&frame);
    Ok(())
}

/// The settings that clients and tools ask for, by Redis's names.
fn settings(session: &Session) -> Vec<(&'static str, String)> {
    let metrics = &session.metrics;
    let policy = match metrics.facts.policy {
        FsyncPolicy::Always => "always",
        FsyncPolicy::EverySec => "everysec",
        FsyncPolicy::Never => "no",
    };
    let durable = if metrics.facts.in_memory { "no" } else { "yes" };
    [
        ("appendfsync", policy.to_owned()),
        ("appendonly", durable.to_owned()),
        ("databases", DATABASES.to_string()),
        ("maxclients", metrics.facts.max_clients.to_string()),
        ("maxmemory", metrics.facts.max_memory_bytes.to_string()),
        ("maxmemory-policy", "noeviction".to_owned()),
        ("port", metrics.facts.port.to_string()),
        ("proto-max-bulk-len", metrics.facts.max_value_bytes.to_string()),
        ("protected-mode", "yes".to_owned()),
        ("save", String::new()),
        ("timeout", "0".to_owned()),
    ]
    .to_vec()
}
