//! The commands of the group `connection`: about the connection.
//!
//! Promise: sorted by name. Must never run anything.

use crate::frontends::resp::command::{Command, DEFAULT};
use crate::frontends::resp::commands::connection;
use crate::frontends::resp::table::subcommands;

pub(super) static ROWS: &[Command] = &[
    Command {
        name: "auth",
        arity: -2,
        flags: &["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"],
        group: "connection",
        since: "1.0.0",
        complexity: "O(N) where N is the number of passwords defined for the user",
        summary: "Authenticates the connection.",
        run: connection::auth,
        ..DEFAULT
    },
    Command {
        name: "client",
        arity: -2,
        flags: &[],
        group: "connection",
        since: "2.4.0",
        complexity: "Depends on subcommand.",
        summary: "Tells and sets what is known of connections.",
        subcommands: subcommands::CLIENT,
        ..DEFAULT
    },
    Command {
        name: "echo",
        arity: 2,
        flags: &["loading", "stale", "fast"],
        group: "connection",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Answers the given string.",
        run: connection::echo,
        ..DEFAULT
    },
    Command {
        name: "hello",
        arity: -1,
        flags: &["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"],
        group: "connection",
        since: "6.0.0",
        complexity: "O(1)",
        summary: "Shakes hands and chooses RESP2 or RESP3.",
        run: connection::hello,
        ..DEFAULT
    },
    Command {
        name: "ping",
        arity: -1,
        flags: &["fast"],
        group: "connection",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Answers PONG, or the given string.",
        run: connection::ping,
        ..DEFAULT
    },
    Command {
        name: "quit",
        arity: -1,
        flags: &["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"],
        group: "connection",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Closes the connection.",
        queued: false,
        run: connection::quit,
        ..DEFAULT
    },
    Command {
        name: "reset",
        arity: 1,
        flags: &["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"],
        group: "connection",
        since: "6.2.0",
        complexity: "O(1)",
        summary: "Brings the connection back to its first state.",
        queued: false,
        run: connection::reset,
        ..DEFAULT
    },
    Command {
        name: "select",
        arity: 2,
        flags: &["loading", "stale", "fast"],
        group: "connection",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Selects a database, by number or name.",
        run: connection::select,
        ..DEFAULT
    },
];
