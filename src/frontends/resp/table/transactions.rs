//! The commands of the group `transactions`: about transactions.
//!
//! Promise: sorted by name. Must never run anything.

use crate::frontends::resp::command::{ALL_KEYS, Command, DEFAULT};
use crate::frontends::resp::commands::transaction;

pub(super) static ROWS: &[Command] = &[
    Command {
        name: "discard",
        arity: 1,
        flags: &["noscript", "loading", "stale", "fast", "allow_busy"],
        group: "transactions",
        since: "2.0.0",
        complexity: "O(N), when N is the number of queued commands",
        summary: "Drops the queued commands.",
        queued: false,
        run: transaction::discard,
        ..DEFAULT
    },
    Command {
        name: "exec",
        arity: 1,
        flags: &["noscript", "loading", "stale", "skip_slowlog"],
        group: "transactions",
        since: "1.2.0",
        complexity: "Depends on commands in the transaction",
        summary: "Runs the queued commands: all of them, or none.",
        queued: false,
        run: transaction::exec,
        ..DEFAULT
    },
    Command {
        name: "multi",
        arity: 1,
        flags: &["noscript", "loading", "stale", "fast", "allow_busy"],
        group: "transactions",
        since: "1.2.0",
        complexity: "O(1)",
        summary: "Begins a transaction: commands are queued until EXEC.",
        queued: false,
        run: transaction::multi,
        ..DEFAULT
    },
    Command {
        name: "unwatch",
        arity: 1,
        flags: &["noscript", "loading", "stale", "fast", "allow_busy"],
        group: "transactions",
        since: "2.2.0",
        complexity: "O(1)",
        summary: "Forgets the watched keys.",
        run: transaction::unwatch,
        ..DEFAULT
    },
    Command {
        name: "watch",
        arity: -2,
        flags: &["noscript", "loading", "stale", "fast", "allow_busy"],
        keys: ALL_KEYS,
        group: "transactions",
        since: "2.2.0",
        complexity: "O(1) for every key.",
        summary: "Makes the next EXEC run nothing if one of the keys has changed by then.",
        queued: false,
        run: transaction::watch,
        ..DEFAULT
    },
];
