//! The commands about the broker: COMMAND, CONFIG GET, DBSIZE, INFO.
//!
//! Promise: what they tell is true; a setting Hearth has no counterpart of is not listed. Must never change anything.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use crate::core::log::FsyncPolicy;
use crate::frontends::front_end::Session;
use crate::frontends::resp::args::eq_ignore_case;
use crate::frontends::resp::command::{COMMANDS, Call, Command, CommandError, find, unknown_subcommand, wrong_arity};
use crate::frontends::resp::commands::connection::REDIS_VERSION;
use crate::frontends::resp::encode::Frame;
use crate::frontends::resp::glob;

fn text(text: &str) -> Frame {
    Frame::Bulk(text.as_bytes().to_vec())
}

/// COMMAND [COUNT | LIST | INFO [name …] | DOCS [name …] | GETKEYS command arg … | HELP]
pub fn command(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let (subcommand, count) = (call.arg(1), call.args.len());
    let is = |name: &str| eq_ignore_case(subcommand, name.as_bytes());
    let named = |call: &Call<'_, '_>| -> Vec<Option<&'static Command>> {
        if call.args.len() == 2 {
            return COMMANDS.iter().map(Some).collect();
        }
        call.args.iter().skip(2).map(find).collect()
    };
    let frame = if count == 1 {
        Frame::Array(COMMANDS.iter().map(describe).collect())
    } else if is("COUNT") && count == 2 {
        Frame::Integer(COMMANDS.len() as i64)
    } else if is("LIST") && count == 2 {
        Frame::Array(COMMANDS.iter().map(|command| text(command.name)).collect())
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

/// DBSIZE
pub fn dbsize(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let keys = call.session.cache.len() as i64;
    call.reply().integer(keys);
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
    let policy = match metrics.policy {
        FsyncPolicy::Always => "always",
        FsyncPolicy::EverySec => "everysec",
        FsyncPolicy::Never => "no",
    };
    let durable = if metrics.in_memory { "no" } else { "yes" };
    [
        ("appendfsync", policy.to_owned()),
        ("appendonly", durable.to_owned()),
        ("databases", "1".to_owned()),
        ("maxclients", metrics.max_clients.to_string()),
        ("maxmemory", "0".to_owned()),
        ("maxmemory-policy", "noeviction".to_owned()),
        ("port", metrics.port.to_string()),
        ("proto-max-bulk-len", metrics.max_value_bytes.to_string()),
        ("protected-mode", "yes".to_owned()),
        ("save", String::new()),
        ("timeout", "0".to_owned()),
    ]
    .to_vec()
}

/// INFO [section …]
pub fn info(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let all = ["all", "default", "everything"];
    let asked: Vec<&[u8]> = call.args.iter().skip(1).collect();
    let wants = |section: &str| {
        asked.is_empty()
            || asked.iter().any(|word| {
                eq_ignore_case(word, section.as_bytes()) || all.iter().any(|name| eq_ignore_case(word, name.as_bytes()))
            })
    };
    let mut out = String::new();
    for (name, write) in SECTIONS {
        if wants(name) {
            let separator = if out.is_empty() { "" } else { "\r\n" };
            let title = name[..1].to_ascii_uppercase() + &name[1..];
            let _ = write!(out, "{separator}# {title}\r\n");
            write(call.session, &mut out);
        }
    }
    call.reply().frame(&Frame::Verbatim(out));
    Ok(())
}

type Section = fn(&Session, &mut String);

const SECTIONS: &[(&str, Section)] = &[
    ("server", info_server),
    ("clients", info_clients),
    ("memory", info_memory),
    ("persistence", info_persistence),
    ("stats", info_stats),
    ("replication", info_replication),
    ("cluster", info_cluster),
    ("keyspace", info_keyspace),
];

fn line(out: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = write!(out, "{name}:{value}\r\n");
}

fn info_server(session: &Session, out: &mut String) {
    let uptime = session.metrics.uptime_seconds();
    line(out, "redis_version", REDIS_VERSION);
    line(out, "hearth_version", env!("CARGO_PKG_VERSION"));
    line(out, "hearth_format", crate::core::log::FORMAT);
    line(out, "redis_mode", "standalone");
    line(out, "os", format_args!("{} {}", std::env::consts::OS, std::env::consts::ARCH));
    line(out, "arch_bits", usize::BITS);
    line(out, "process_id", std::process::id());
    line(out, "run_id", &session.metrics.run_id);
    line(out, "tcp_port", session.metrics.port);
    line(out, "uptime_in_seconds", uptime);
    line(out, "uptime_in_days", uptime / 86_400);
}

fn info_clients(session: &Session, out: &mut String) {
    line(out, "connected_clients", session.metrics.clients.load(Ordering::Relaxed));
    line(out, "maxclients", session.metrics.max_clients);
    line(out, "blocked_clients", 0);
}

fn info_memory(_session: &Session, out: &mut String) {
    let memory = crate::memory::of_this_process();
    line(out, "used_memory", memory.resident_bytes);
    line(out, "used_memory_human", human(memory.resident_bytes));
    line(out, "used_memory_rss", memory.resident_bytes);
    line(out, "used_memory_peak", memory.peak_bytes);
    line(out, "used_memory_peak_human", human(memory.peak_bytes));
    line(out, "maxmemory", 0);
    line(out, "maxmemory_policy", "noeviction");
    line(out, "mem_fragmentation_ratio", "1.00");
}

fn human(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)];
    let fitting = UNITS.iter().find(|(_, size)| bytes >= *size);
    fitting.map_or_else(|| format!("{bytes}B"), |(unit, size)| format!("{:.2}{unit}", bytes as f64 / *size as f64))
}

fn info_persistence(session: &Session, out: &mut String) {
    let metrics = &session.metrics;
    line(out, "loading", 0);
    line(out, "async_loading", 0);
    line(out, "rdb_bgsave_in_progress", 0);
    line(out, "rdb_last_bgsave_status", "ok");
    line(out, "aof_enabled", u8::from(!metrics.in_memory));
    line(out, "aof_last_write_status", "ok");
    line(out, "hearth_batches", metrics.of_drivers(|counts| &counts.batches));
    line(out, "hearth_flushes", metrics.of_drivers(|counts| &counts.flushes));
    line(out, "hearth_batch_bytes", metrics.of_drivers(|counts| &counts.bytes));
}

fn info_stats(session: &Session, out: &mut String) {
    let metrics = &session.metrics;
    let counters = [
        ("total_connections_received", &metrics.total_connections),
        ("total_commands_processed", &metrics.commands),
        ("total_net_input_bytes", &metrics.input_bytes),
        ("total_net_output_bytes", &metrics.output_bytes),
        ("rejected_connections", &metrics.rejected_connections),
        ("keyspace_hits", &metrics.keyspace_hits),
        ("keyspace_misses", &metrics.keyspace_misses),
        ("total_error_replies", &metrics.error_replies),
    ];
    for (name, counter) in counters {
        line(out, name, counter.load(Ordering::Relaxed));
    }
    line(out, "instantaneous_ops_per_sec", metrics.commands_per_second());
    line(out, "expired_keys", 0);
    line(out, "evicted_keys", 0);
}

fn info_replication(session: &Session, out: &mut String) {
    line(out, "role", "master");
    line(out, "connected_slaves", 0);
    line(out, "master_replid", &session.metrics.run_id);
    line(out, "master_repl_offset", 0);
}

fn info_cluster(_session: &Session, out: &mut String) {
    line(out, "cluster_enabled", 0);
}

fn info_keyspace(session: &Session, out: &mut String) {
    let keys = session.cache.len();
    if keys > 0 {
        line(out, "db0", format_args!("keys={keys},expires={},avg_ttl=0", session.cache.expiring()));
    }
}
