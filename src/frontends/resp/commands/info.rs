//! INFO: what the broker tells about itself, by section.
//!
//! Promise: Redis's names where Redis has one for the same thing, `hearth_…` otherwise; every number is true or not there.
//! Must never change anything.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use crate::core::api::Holdings;
use crate::core::types::CacheName;
use crate::frontends::front_end::Session;
use crate::frontends::resp::args::eq_ignore_case;
use crate::frontends::resp::call::{Call, CommandError};
use crate::frontends::resp::commands::connection::REDIS_VERSION;
use crate::frontends::resp::encode::Frame;
use crate::frontends::resp::limits::DATABASES;
use crate::metrics::Metrics;

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
    line(out, "run_id", &session.metrics.facts.run_id);
    line(out, "tcp_port", session.metrics.facts.port);
    line(out, "uptime_in_seconds", uptime);
    line(out, "uptime_in_days", uptime / 86_400);
}

fn info_clients(session: &Session, out: &mut String) {
    line(out, "connected_clients", session.metrics.clients.load(Ordering::Relaxed));
    line(out, "maxclients", session.metrics.facts.max_clients);
    line(out, "blocked_clients", 0);
}

fn info_memory(session: &Session, out: &mut String) {
    let memory = crate::memory::of_this_process();
    let bound = session.metrics.facts.max_memory_bytes;
    line(out, "used_memory", memory.used_bytes);
    line(out, "used_memory_human", human(memory.used_bytes));
    line(out, "used_memory_rss", memory.resident_bytes);
    line(out, "used_memory_rss_human", human(memory.resident_bytes));
    line(out, "used_memory_peak", memory.peak_bytes);
    line(out, "used_memory_peak_human", human(memory.peak_bytes));
    line(out, "maxmemory", bound);
    line(out, "maxmemory_human", human(bound));
    line(out, "maxmemory_policy", "noeviction");
    let values = session.caches.value_counts();
    line(out, "hearth_value_cache_bytes", values.bytes);
    line(out, "hearth_value_cache_values", values.entries);
    line(out, "hearth_value_cache_hits", values.hits);
    line(out, "hearth_value_cache_misses", values.misses);
    line(out, "mem_fragmentation_ratio", format_args!("{:.2}", memory.fragmentation()));
}

fn human(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)];
    let fitting = UNITS.iter().find(|(_, size)| bytes >= *size);
    fitting.map_or_else(|| format!("{bytes}B"), |(unit, size)| format!("{:.2}{unit}", bytes as f64 / *size as f64))
}

fn info_persistence(session: &Session, out: &mut String) {
    let metrics = &session.metrics;
    line(out, "loading", u8::from(metrics.is_loading()));
    line(out, "async_loading", 0);
    line(out, "rdb_bgsave_in_progress", 0);
    line(out, "rdb_last_bgsave_status", "ok");
    line(out, "aof_enabled", u8::from(!metrics.facts.in_memory));
    line(out, "aof_last_write_status", "ok");
    info_loading(metrics, out);
    line(out, "hearth_batches", metrics.of_drivers(|counts| &counts.batches));
    line(out, "hearth_flushes", metrics.of_drivers(|counts| &counts.flushes));
    line(out, "hearth_batch_bytes", metrics.of_drivers(|counts| &counts.bytes));
    info_log(session, out);
    let gap = metrics.clock_gap();
    line(out, "hearth_clock_behind_ms", gap.behind_ms);
    line(out, "hearth_clock_ahead_ms", gap.ahead_ms);
}

/// Only while it is so, as in Redis.
fn info_loading(metrics: &Metrics, out: &mut String) {
    if let Some(loading) = metrics.loading() {
        line(out, "loading_start_time", loading.since.0 / 1000);
        line(out, "loading_total_bytes", loading.total_bytes);
        line(out, "loading_loaded_bytes", loading.loaded_bytes);
        line(out, "loading_loaded_perc", format_args!("{:.2}", loading.percent()));
        line(out, "loading_eta_seconds", loading.eta_seconds);
    }
}

/// The log and what compaction did to it; of several shards, the sums.
fn info_log(session: &Session, out: &mut String) {
    let metrics = &session.metrics;
    line(out, "hearth_log_bytes", metrics.of_shards(|shard| &shard.log_bytes));
    line(out, "hearth_disk_bytes", metrics.of_shards(|shard| &shard.disk_bytes));
    line(out, "hearth_live_bytes", live_bytes(session));
    line(out, "hearth_max_data_bytes", metrics.facts.max_data_bytes);
    line(out, "hearth_base_offset", metrics.of_shards(|shard| &shard.base_offset));
    line(out, "hearth_next_offset", metrics.of_shards(|shard| &shard.next_offset));
    line(out, "hearth_segments", metrics.of_shards(|shard| &shard.segments));
    line(out, "hearth_compaction_passes", metrics.of_shards(|shard| &shard.compaction_passes));
    line(out, "hearth_carried_records", metrics.of_shards(|shard| &shard.carried_records));
    line(out, "hearth_carried_bytes", metrics.of_shards(|shard| &shard.carried_bytes));
    line(out, "hearth_trims", metrics.of_shards(|shard| &shard.trims));
    line(out, "hearth_trimmed_bytes", metrics.of_shards(|shard| &shard.trimmed_bytes));
    // Shards share a disk: what is free is free once.
    line(out, "hearth_free_bytes", metrics.lowest_of_shards(|shard| &shard.free_bytes));
    line(out, "hearth_floor_bytes", metrics.highest_of_shards(|shard| &shard.floor_bytes));
    line(out, "hearth_alarm", metrics.highest_of_shards(|shard| &shard.alarm));
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
    line(out, "expired_keys", metrics.expired_keys());
    line(out, "evicted_keys", 0);
}

fn info_replication(session: &Session, out: &mut String) {
    line(out, "role", "master");
    line(out, "connected_slaves", 0);
    line(out, "master_replid", &session.metrics.facts.run_id);
    line(out, "master_repl_offset", 0);
}

fn info_cluster(_session: &Session, out: &mut String) {
    line(out, "cluster_enabled", 0);
}

/// Bytes of the live records of all caches.
fn live_bytes(session: &Session) -> u64 {
    session
        .caches
        .names()
        .iter()
        .filter_map(|name| session.caches.get(name))
        .map(|cache| cache.holds().live_bytes)
        .sum()
}

fn info_keyspace(session: &Session, out: &mut String) {
    let told = |holds: Holdings| format!("keys={},expires={},avg_ttl=0", holds.keys, holds.expiring);
    for number in 0..DATABASES {
        if let Some(holds) = held(session, &CacheName::numbered(number)) {
            line(out, &format!("db{number}"), told(holds));
        }
    }
    let numbered = |name: &CacheName| (0..DATABASES).any(|number| *name == CacheName::numbered(number));
    for name in session.caches.names().iter().filter(|name| !numbered(name)) {
        if let Some(holds) = held(session, name) {
            line(out, &format!("hearth_cache_{name}"), told(holds));
        }
    }
}

/// What a cache holds, if it holds anything.
fn held(session: &Session, name: &CacheName) -> Option<Holdings> {
    session.caches.get(name).map(|cache| cache.holds()).filter(|holds| holds.keys > 0)
}
