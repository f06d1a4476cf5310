//! Crash tests of the shipped binary, seen from outside: kill -9, power cuts, flush counts, shutdown and refusals,
//! full disks, too few descriptors, and a storm of overwrites.
//!
//! They promise that a write is judged only by what the broker said about it: acknowledged means it survives, anything
//! else is unknown and may go either way. They must never know how the broker stores anything: they see a command line,
//! exit codes, two text streams, RESP2, and what the kernel was asked to flush.
//!
//! `HEARTH_BIN` names another binary to try; `HEARTH_SEED` repeats the draws of a run (thread timing stays free).

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "these tests stand outside the broker: they have the machine's own files and threads, and they fail by panicking"
)]

#[path = "../support/mod.rs"]
mod support;

mod case;
mod ext4;
mod ledger;
mod load;
mod oracle;
mod tmpfs;

mod bounds;
mod flushes;
mod kills;
mod loading;
mod power_cuts;
mod shutdown;
mod slow_reader;
mod storm;
mod walls;
