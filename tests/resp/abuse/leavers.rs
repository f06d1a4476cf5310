//! Clients that go in the middle: of a pipeline, of a reply, with a reset, with QUIT.
//!
//! Promise: of their writes a prefix took effect and each of these whole; what they were owed is dropped or, where they
//! said goodbye, sent; nothing of theirs stays. Must never know what a connection holds.

use std::time::Duration;

use crate::abuse::{MIB, grown, nothing_is_left, watched};
use crate::broker::{TestBroker, eventually};
use crate::client::{Client, bulk, request};

/// Leaves so that the peer gets a reset: what was sent and not yet read is lost, too.
fn reset(client: Client) {
    let socket = client.sender();
    socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO)).unwrap();
}

/// How many of the keys `k0`, `k1`, … are there, up to the first that is not. None behind it may be.
fn prefix(other: &mut Client, round: usize, count: usize) -> usize {
    let there: Vec<bool> =
        (0..count).map(|number| other.ask(["EXISTS", &format!("k{round}.{number}")]) == b":1\r\n").collect();
    let prefix = there.iter().take_while(|there| **there).count();
    assert!(there[prefix..].iter().all(|there| !there), "round {round}: a write is there and one before it is not");
    prefix
}

#[test]
fn of_a_pipeline_that_ends_in_a_reset_a_prefix_is_written_and_what_was_acknowledged_is_there() {
    const SETS: usize = 50;
    let broker = TestBroker::durable();
    let mut other = broker.client();
    let mut written = 0;
    for round in 0..40 {
        let sets: Vec<Vec<u8>> =
            (0..SETS).map(|number| request(["SET", &format!("k{round}.{number}"), "value"])).collect();
        let sets = sets.concat();
        let mut client = broker.client();
        // Some rounds end in the middle of a request, some read replies before they leave.
        let end = sets.len() - round % 37;
        client.send(&sets[..end]);
        let acknowledged = round % 4 * 10;
        client.expect(&b"+OK\r\n".repeat(acknowledged));
        reset(client);
        // It may not even have been accepted yet.
        eventually("it was there", || other.info("total_connections_received") == round as u64 + 2);
        eventually("it is gone", || other.info("connected_clients") == 1);
        let prefix = prefix(&mut other, round, SETS);
        assert!(prefix >= acknowledged, "round {round}: {prefix} of {acknowledged} that were acknowledged");
        let whole = if end == sets.len() { SETS } else { SETS - 1 };
        assert!(prefix <= whole, "round {round}: half a request was run");
        written += prefix;
    }
    assert!(written > 0);
    assert_eq!(other.ask(["DBSIZE"]), format!(":{written}\r\n").as_bytes());
}

#[test]
fn resets_in_the_middle_of_replies_leave_nothing_behind() {
    const ROUNDS: usize = 30;
    let (broker, mut other, _) = watched(&[]);
    assert_eq!(other.ask([&b"SET"[..], b"large", &vec![b'v'; 16 * MIB]]), b"+OK\r\n");
    assert_eq!(other.ask([&b"SET"[..], b"small", &vec![b'v'; 10_000]]), b"+OK\r\n");
    let before = other.info("used_memory");
    for round in 0..ROUNDS {
        let mut leaving = Vec::new();
        for key in ["large", "small"] {
            let mut client = Client::connect_narrow(broker.address);
            client.send(&request(["GET", key]).repeat(200));
            client.expect(b"$1");
            leaving.push(client);
        }
        // Some after a part of a value, some in its header.
        leaving[0].expect(b"6777216\r\n");
        leaving[0].expect(&vec![b'v'; round * 1000]);
        let used = other.info("used_memory").saturating_sub(before);
        assert!(used < 8 * MIB as u64, "{used} bytes; a value in memory would be 16 MiB");
        leaving.into_iter().for_each(reset);
    }
    nothing_is_left(&mut other, before);
    assert_eq!(other.ask(["GET", "small"]), bulk(&[b'v'; 10_000]));
}

#[test]
fn resets_of_many_with_half_a_value_sent_leave_nothing_behind() {
    const CLIENTS: usize = 30;
    let (broker, mut other, before) = watched(&[]);
    let half = [&b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$16777216\r\n"[..], &vec![b'v'; MIB]].concat();
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = broker.client();
        client.send(&half);
        clients.push(client);
    }
    eventually("all of it is read", || {
        assert_eq!(other.ask(["PING"]), b"+PONG\r\n");
        other.info("used_memory") > before + (CLIENTS * MIB) as u64
    });
    // Buffers double, and are copied when they do.
    assert!(grown(&mut other, before) < (3 * CLIENTS * MIB) as u64);
    clients.into_iter().for_each(reset);
    nothing_is_left(&mut other, before);
    assert_eq!(other.ask(["EXISTS", "k"]), b":0\r\n");
}

#[test]
fn who_quits_in_a_pipeline_gets_every_reply_before_it_and_nothing_behind_it_is_run() {
    const GETS: usize = 30;
    let (broker, mut other, _) = watched(&[]);
    let value: Vec<u8> = (0..MIB).map(|i| (i % 251) as u8).collect();
    assert_eq!(other.ask([&b"SET"[..], b"k", &value]), b"+OK\r\n");
    let mut client = Client::connect_narrow(broker.address);
    let behind = request(["SET", "behind", "1"]).repeat(10_000);
    client.send(&[request(["GET", "k"]).repeat(GETS), request(["QUIT"]), behind].concat());
    for _ in 0..GETS {
        client.expect(&bulk(&value));
    }
    client.expect(b"+OK\r\n");
    assert_eq!(client.rest(), b"");
    assert_eq!(other.ask(["EXISTS", "behind"]), b":0\r\n");
    drop(client);
    eventually("it is gone", || other.info("connected_clients") == 1);
}

#[test]
fn who_is_refused_in_a_pipeline_gets_every_reply_before_and_the_reason_last() {
    const GETS: usize = 30;
    let (broker, mut other, _) = watched(&[]);
    let value: Vec<u8> = (0..MIB).map(|i| (i % 251) as u8).collect();
    assert_eq!(other.ask([&b"SET"[..], b"k", &value]), b"+OK\r\n");
    let mut client = Client::connect_narrow(broker.address);
    let behind = request(["SET", "behind", "1"]).repeat(10_000);
    client.send(&[request(["GET", "k"]).repeat(GETS), b"*1\r\n:1\r\n".to_vec(), behind].concat());
    for _ in 0..GETS {
        client.expect(&bulk(&value));
    }
    assert_eq!(client.rest(), b"-ERR Protocol error: expected '$', got ':'\r\n");
    assert_eq!(other.ask(["EXISTS", "behind"]), b":0\r\n");
}
