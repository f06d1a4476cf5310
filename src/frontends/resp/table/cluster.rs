//! The commands of the group `cluster`: what clients of a cluster send.
//!
//! Promise: sorted by name. Must never run anything.

use crate::frontends::resp::command::{Command, DEFAULT};
use crate::frontends::resp::commands::cluster;

pub(super) static ROWS: &[Command] = &[
    Command {
        name: "asking",
        arity: 1,
        flags: &["fast"],
        group: "cluster",
        since: "3.0.0",
        summary: "Accepted, and without effect: any key is answered here.",
        run: cluster::accept,
        ..DEFAULT
    },
    Command {
        name: "cluster",
        arity: -2,
        flags: &[],
        group: "cluster",
        since: "3.0.0",
        complexity: "Depends on subcommand.",
        summary: "An error: there is no cluster.",
        run: cluster::cluster,
        ..DEFAULT
    },
    Command {
        name: "readonly",
        arity: 1,
        flags: &["loading", "stale", "fast"],
        group: "cluster",
        since: "3.0.0",
        summary: "Accepted, and without effect: any key is answered here.",
        run: cluster::accept,
        ..DEFAULT
    },
    Command {
        name: "readwrite",
        arity: 1,
        flags: &["loading", "stale", "fast"],
        group: "cluster",
        since: "3.0.0",
        summary: "Accepted, and without effect: any key is answered here.",
        run: cluster::accept,
        ..DEFAULT
    },
];
