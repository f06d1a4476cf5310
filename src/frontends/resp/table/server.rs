//! The commands of the group `server`: about the broker.
//!
//! Promise: sorted by name. Must never run anything.

use crate::frontends::resp::command::{Command, DEFAULT};
use crate::frontends::resp::commands::{flush, info, object, scan, server};

pub(super) static ROWS: &[Command] = &[
    Command {
        name: "command",
        arity: -1,
        flags: &["loading", "stale"],
        group: "server",
        since: "2.8.13",
        complexity: "O(N) where N is the total number of Redis commands",
        summary: "Tells which commands there are.",
        run: server::command,
        ..DEFAULT
    },
    Command {
        name: "config",
        arity: -2,
        flags: &[],
        group: "server",
        since: "2.0.0",
        complexity: "Depends on subcommand.",
        summary: "Tells the settings, and changes those that can be.",
        run: server::config,
        ..DEFAULT
    },
    Command {
        name: "dbsize",
        arity: 1,
        flags: &["readonly", "fast"],
        group: "server",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Answers how many keys there are.",
        run: scan::dbsize,
        ..DEFAULT
    },
    Command {
        name: "flushall",
        arity: -1,
        flags: &["write"],
        group: "server",
        since: "1.0.0",
        complexity: "O(N) where N is the total number of keys in all databases",
        summary: "Removes every key of every numbered database.",
        run: flush::flushall,
        ..DEFAULT
    },
    Command {
        name: "flushdb",
        arity: -1,
        flags: &["write"],
        group: "server",
        since: "1.0.0",
        complexity: "O(N) where N is the number of keys in the selected database",
        summary: "Removes every key of the database.",
        run: flush::flushdb,
        ..DEFAULT
    },
    Command {
        name: "info",
        arity: -1,
        flags: &["loading", "stale"],
        group: "server",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Tells about the broker, by section.",
        run: info::info,
        ..DEFAULT
    },
    Command {
        name: "memory",
        arity: -2,
        flags: &[],
        group: "server",
        since: "4.0.0",
        complexity: "Depends on subcommand.",
        summary: "USAGE of a key, and what tools ask for.",
        run: object::memory,
        ..DEFAULT
    },
];
