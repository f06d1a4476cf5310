//! Clients that are wrong, slow, greedy or not clients at all.
//!
//! Promise: every row of the protocol's limits is here by its name, each sent whole and cut in every place, and compared with
//! what redis-server answered; nobody who misbehaves costs more than the bounds, keeps others waiting, or leaves anything
//! behind. Must never know how a broker is built.
//!
//! Reading order: `rows` (the table), `cutting` (how it is sent), then who misbehaves: `senders`, `readers`, `leavers`,
//! `foreigners`, `strangers`; last `reports`, faults that others had.

mod cutting;
mod foreigners;
mod leavers;
mod readers;
mod reports;
pub mod rows;
mod senders;
mod strangers;

use crate::broker::{OwnProcess, eventually};
use crate::client::Client;

const MIB: usize = 1024 * 1024;

/// What a broker that nobody uses may keep beside what it had before: the room of a connection that is served, lists that have
/// grown with the clients.
const NOTHING_LEFT_BYTES: u64 = 128 * 1024;

/// Waits until everybody but `other` is gone, and no more memory is in use than `before`.
fn nothing_is_left(other: &mut Client, before: u64) {
    eventually("all who left are gone", || other.info("connected_clients") == 1);
    eventually("what they took is given back", || {
        let used = other.info("used_memory");
        used <= before + NOTHING_LEFT_BYTES
    });
}

/// Asks again and again until `condition` holds, and so does `other` get an answer each time.
fn served_meanwhile(other: &mut Client, what: &str, mut condition: impl FnMut(&mut Client) -> bool) {
    eventually(what, || {
        assert_eq!(other.ask(["PING"]), b"+PONG\r\n");
        condition(other)
    });
}

/// How much more memory than `before` was in use at any time.
fn grown(other: &mut Client, before: u64) -> u64 {
    let grown = other.info("used_memory_peak").saturating_sub(before);
    println!("grown by {grown} bytes at most");
    grown
}

/// A broker whose memory is its own, a client that watches it, and what is in use once everything has been used once.
fn watched(arguments: &[&str]) -> (OwnProcess, Client, u64) {
    let broker = OwnProcess::start(arguments);
    let mut other = broker.client();
    assert_eq!(other.ask(["SET", "k", "1"]), b"+OK\r\n");
    assert_eq!(broker.client().ask(["FLUSHALL"]), b"+OK\r\n");
    eventually("the second client is gone", || other.info("connected_clients") == 1);
    let before = other.info("used_memory");
    (broker, other, before)
}
