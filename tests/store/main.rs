//! The storage core against a simulated disk: compaction with anything between its steps, power cuts at every effect, group
//! commit counted at the Disk door, failed writes and flushes, and damage.
//!
//! Reading order: `bed` (an open store without a runtime), `model` (what it must hold), `script` (the run that is cut),
//! `judge` (what must be true after it), then the suites. Must never use a wall clock, a thread of its own, or the runtime.
#![expect(clippy::expect_used, reason = "a test stops at the first surprise")]

#[path = "../support/scratch.rs"]
mod scratch;

mod bed;
mod judge;
mod layout;
mod model;
mod script;
mod writer;

mod caches;
mod compaction;
mod damage;
mod expiry;
mod failures;
mod fixture;
mod formats;
mod golden;
mod group_commit;
mod inspect;
mod kill;
mod overdue;
mod power_cut;
mod transactions;
mod values;
