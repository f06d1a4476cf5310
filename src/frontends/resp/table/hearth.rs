//! The commands that only Hearth has.
//!
//! Promise: sorted by name. Must never run anything.

use crate::frontends::resp::command::{Command, DEFAULT, ONE_KEY};
use crate::frontends::resp::commands::hearth;

pub(super) static ROWS: &[Command] = &[
    Command {
        name: "hearth.get",
        arity: 2,
        flags: &["readonly", "fast"],
        keys: ONE_KEY,
        group: "string",
        since: "0.1.0",
        complexity: "O(1)",
        summary: "Answers a key's value, its revision and when it expires.",
        run: hearth::get,
        ..DEFAULT
    },
    Command {
        name: "hearth.info",
        arity: 1,
        flags: &["loading", "stale"],
        group: "server",
        since: "0.1.0",
        complexity: "O(N) where N is the number of shards",
        summary: "Tells the log of each shard of the selected cache.",
        run: hearth::info,
        ..DEFAULT
    },
    Command {
        name: "hearth.set",
        arity: -3,
        flags: &["write", "denyoom"],
        keys: ONE_KEY,
        group: "string",
        since: "0.1.0",
        complexity: "O(1)",
        summary: "Sets a key as SET does and answers its new revision; IFREV makes it conditional.",
        run: hearth::set,
        ..DEFAULT
    },
];
