//! The commands of the group `server`: about the broker.
//!
//! WAIT and FUNCTION are of other groups in Redis, and stand here because they are about the broker, too.
//!
//! Promise: sorted by name. Must never run anything.

use crate::frontends::resp::command::{Command, DEFAULT};
use crate::frontends::resp::commands::{command, flush, info, scan, server};
use crate::frontends::resp::table::subcommands;

pub(super) static ROWS: &[Command] = &[
    Command {
        name: "acl",
        arity: -2,
        flags: &[],
        group: "server",
        since: "6.0.0",
        complexity: "Depends on subcommand.",
        summary: "WHOAMI, and what tools ask of the one user.",
        subcommands: subcommands::ACL,
        ..DEFAULT
    },
    Command {
        name: "command",
        arity: -1,
        flags: &["loading", "stale"],
        group: "server",
        since: "2.8.13",
        complexity: "O(N) where N is the total number of Redis commands",
        summary: "Tells which commands there are.",
        subcommands: subcommands::COMMAND,
        run: command::command,
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
        subcommands: subcommands::CONFIG,
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
        name: "function",
        arity: -2,
        flags: &[],
        group: "scripting",
        since: "7.0.0",
        complexity: "Depends on subcommand.",
        summary: "FLUSH, for clients that clean up; there are no functions.",
        subcommands: subcommands::FUNCTION,
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
        name: "lastsave",
        arity: 1,
        flags: &["loading", "stale", "fast"],
        group: "server",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Answers when the data was last saved.",
        run: server::lastsave,
        ..DEFAULT
    },
    Command {
        name: "latency",
        arity: -2,
        flags: &[],
        group: "server",
        since: "2.8.13",
        complexity: "Depends on subcommand.",
        summary: "What tools ask for; nothing is monitored.",
        subcommands: subcommands::LATENCY,
        ..DEFAULT
    },
    Command {
        name: "lolwut",
        arity: -1,
        flags: &["readonly", "fast"],
        group: "server",
        since: "5.0.0",
        complexity: "O(1)",
        summary: "Shows the version.",
        run: server::lolwut,
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
        subcommands: subcommands::MEMORY,
        ..DEFAULT
    },
    Command {
        name: "module",
        arity: -2,
        flags: &[],
        group: "server",
        since: "4.0.0",
        complexity: "Depends on subcommand.",
        summary: "LIST: there are no modules.",
        subcommands: subcommands::MODULE,
        ..DEFAULT
    },
    Command {
        name: "role",
        arity: 1,
        flags: &["noscript", "loading", "stale", "fast"],
        group: "server",
        since: "2.8.12",
        complexity: "O(1)",
        summary: "Tells that this broker is the owner.",
        run: server::role,
        ..DEFAULT
    },
    Command {
        name: "slowlog",
        arity: -2,
        flags: &[],
        group: "server",
        since: "2.2.12",
        complexity: "Depends on subcommand.",
        summary: "Tells which requests took long.",
        subcommands: subcommands::SLOWLOG,
        ..DEFAULT
    },
    Command {
        name: "time",
        arity: 1,
        flags: &["loading", "stale", "fast"],
        group: "server",
        since: "2.6.0",
        complexity: "O(1)",
        summary: "Answers the Unix time.",
        run: server::time,
        ..DEFAULT
    },
    Command {
        name: "wait",
        arity: 3,
        flags: &["noscript"],
        group: "generic",
        since: "3.0.0",
        complexity: "O(1)",
        summary: "Waits for replicas, of which there are none yet.",
        run: server::wait,
        ..DEFAULT
    },
];
