//! The commands of the group `scripting`: scripts that are known.
//!
//! Promise: sorted by name. Must never run anything.

use crate::frontends::resp::command::{Command, DEFAULT};
use crate::frontends::resp::commands::script;
use crate::frontends::resp::table::subcommands;

pub(super) static ROWS: &[Command] = &[
    Command {
        name: "eval",
        arity: -3,
        flags: &["noscript", "stale", "skip_monitor", "no_mandatory_keys", "movablekeys"],
        group: "scripting",
        since: "2.6.0",
        complexity: "Depends on the script that is executed.",
        summary: "Runs a script that is known by its SHA1.",
        run: script::eval,
        ..DEFAULT
    },
    Command {
        name: "eval_ro",
        arity: -3,
        flags: &["readonly", "noscript", "stale", "skip_monitor", "no_mandatory_keys", "movablekeys"],
        group: "scripting",
        since: "7.0.0",
        complexity: "Depends on the script that is executed.",
        summary: "Runs a script that is known by its SHA1, unless it writes.",
        run: script::eval_ro,
        ..DEFAULT
    },
    Command {
        name: "evalsha",
        arity: -3,
        flags: &["noscript", "stale", "skip_monitor", "no_mandatory_keys", "movablekeys"],
        group: "scripting",
        since: "2.6.0",
        complexity: "Depends on the script that is executed.",
        summary: "Runs a known script, named by its SHA1; it need not have been loaded.",
        run: script::evalsha,
        ..DEFAULT
    },
    Command {
        name: "evalsha_ro",
        arity: -3,
        flags: &["readonly", "noscript", "stale", "skip_monitor", "no_mandatory_keys", "movablekeys"],
        group: "scripting",
        since: "7.0.0",
        complexity: "Depends on the script that is executed.",
        summary: "Runs a known script, named by its SHA1, unless it writes.",
        run: script::evalsha_ro,
        ..DEFAULT
    },
    Command {
        name: "script",
        arity: -2,
        flags: &[],
        group: "scripting",
        since: "2.6.0",
        complexity: "Depends on subcommand.",
        summary: "Tells about scripts: LOAD and EXISTS of those that are known, FLUSH, HELP.",
        subcommands: subcommands::SCRIPT,
        ..DEFAULT
    },
];
