//! Clients that ask for more than they read: slow ones, ones that said all they had to say, ones that never read.
//!
//! Promise: what they ask is served as far as the bounds go and no further, costs memory within the bounds whatever its
//! replies weigh, and comes whole when they do read. Must never know how a reply is kept back.

use std::io::Write;
use std::net::Shutdown;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::abuse::{MIB, grown, nothing_is_left, served_meanwhile, watched};
use crate::client::{Client, bulk, request};

/// Replies that may wait in memory, and what may be received meanwhile (README, "Limits").
const REPLIES_BYTES: u64 = MIB as u64;
const RECEIVED_BYTES: u64 = 16 * MIB as u64;

/// What the sockets between a broker and a client that does not read take at most (`tcp_wmem` of Linux, and the client's own).
const SOCKETS_BYTES: u64 = 6 * MIB as u64;

/// Waits until `count` has not changed for a while, which shows that the broker waits for its clients.
fn stuck(other: &mut Client, count: impl Fn(&mut Client) -> u64) {
    let (mut last, mut quiet) = (0, 0);
    served_meanwhile(other, "the broker waits", |other| {
        let now = count(other);
        quiet = if now == last { quiet + 1 } else { 0 };
        last = now;
        quiet == 10
    });
}

fn hits(other: &mut Client) -> u64 {
    other.info("keyspace_hits")
}

#[test]
fn values_of_16_mib_asked_for_many_times_cost_no_memory_and_come_whole() {
    const CLIENTS: usize = 3;
    const GETS: usize = 10;
    let (broker, mut other, _) = watched(&[]);
    let value: Vec<u8> = (0..16 * MIB).map(|i| (i % 251) as u8).collect();
    assert_eq!(other.ask([&b"SET"[..], b"k", &value]), b"+OK\r\n");
    let before = other.info("used_memory");
    let mut slow: Vec<Client> = (0..CLIENTS).map(|_| Client::connect_narrow(broker.address)).collect();
    for client in &mut slow {
        client.send(&[request(["GET", "k"]).repeat(GETS), request(["PING"])].concat());
    }
    let expected = bulk(&value);
    for _ in 0..GETS {
        for client in &mut slow {
            client.expect(&expected);
            // The others are in the middle of a value, or before one.
            let used = other.info("used_memory").saturating_sub(before);
            assert!(used < 8 * MIB as u64, "{used} bytes; a value in memory would be 16 MiB");
        }
    }
    for client in &mut slow {
        client.expect(b"+PONG\r\n");
    }
}

#[test]
fn a_reader_that_never_reads_is_taken_from_up_to_the_bounds_and_costs_no_more() {
    let (broker, mut other, before) = watched(&[]);
    let mut client = Client::connect_narrow(broker.address);
    let mut sender = client.sender();
    let echo = request(["ECHO", &"e".repeat(1000)]).repeat(100);
    let sent = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // More than may be taken, and not without end should everything be.
            while sent.load(Ordering::Relaxed) < 10 * RECEIVED_BYTES && sender.write_all(&echo).is_ok() {
                sent.fetch_add(echo.len() as u64, Ordering::Relaxed);
            }
        });
        served_meanwhile(&mut other, "what it sends is taken", |other| {
            other.info("used_memory") > before + RECEIVED_BYTES / 2
        });
        stuck(&mut other, |_| sent.load(Ordering::Relaxed));
        let used = other.info("used_memory") - before;
        println!("{} bytes were sent, {used} bytes are in use", sent.load(Ordering::Relaxed));
        // Buffers double, and are copied when they do.
        assert!(used < 2 * RECEIVED_BYTES + 3 * REPLIES_BYTES, "{used}");
        assert!(grown(&mut other, before) < 3 * RECEIVED_BYTES + 3 * REPLIES_BYTES);
        // It is still answered, in order, should it begin to read.
        for _ in 0..10_000 {
            client.expect(&bulk(&[b'e'; 1000]));
        }
        client.sender().shutdown(Shutdown::Both).unwrap();
    });
    drop((client, sender));
    nothing_is_left(&mut other, before);
}

#[test]
fn fifty_readers_that_never_read_cost_what_fifty_may_and_leave_nothing() {
    const CLIENTS: usize = 50;
    const GETS: usize = 1000;
    let (broker, mut other, _) = watched(&[]);
    let value = vec![b'v'; 64 * 1024];
    assert_eq!(other.ask([&b"SET"[..], b"k", &value]), b"+OK\r\n");
    let before = other.info("used_memory");
    let hits_before = hits(&mut other);
    let mut stuck_ones = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = Client::connect_narrow(broker.address);
        client.send(&request(["GET", "k"]).repeat(GETS));
        stuck_ones.push(client);
    }
    for client in &mut stuck_ones {
        client.expect(b"$65536\r\n");
    }
    stuck(&mut other, hits);
    let served = (hits(&mut other) - hits_before) * value.len() as u64;
    println!("{} bytes served to each", served / CLIENTS as u64);
    assert!(served <= CLIENTS as u64 * (SOCKETS_BYTES + 2 * REPLIES_BYTES), "{served}");
    assert!(grown(&mut other, before) < CLIENTS as u64 * 3 * REPLIES_BYTES, "a list that doubles, and the requests");
    drop(stuck_ones);
    nothing_is_left(&mut other, before);
}

#[test]
fn a_client_that_ends_sending_with_everything_unread_gets_every_reply() {
    const LARGE: usize = 30;
    const SMALL: usize = 10_000;
    let (broker, mut other, _) = watched(&[]);
    let value: Vec<u8> = (0..MIB).map(|i| (i % 251) as u8).collect();
    assert_eq!(other.ask([&b"SET"[..], b"k", &value]), b"+OK\r\n");
    let text = "e".repeat(1000);
    let mut client = Client::connect_narrow(broker.address);
    client.send(&[request(["GET", "k"]).repeat(LARGE), request(["ECHO", &text]).repeat(SMALL)].concat());
    client.send(b"*3\r\n$3\r\nSET\r\n$4\r\nhalf\r\n");
    client.end_sending();
    stuck(&mut other, hits);
    for _ in 0..LARGE {
        client.expect(&bulk(&value));
    }
    for _ in 0..SMALL {
        client.expect(&bulk(text.as_bytes()));
    }
    assert_eq!(client.rest(), b"");
    assert_eq!(other.ask(["EXISTS", "half"]), b":0\r\n");
}

#[test]
fn a_client_that_ends_sending_at_any_byte_gets_the_replies_to_what_was_whole() {
    let (broker, mut other, _) = watched(&[]);
    let requests: [(&[u8], &[u8]); 6] = [
        (b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\n1\r\n", b"+OK\r\n"),
        (b"PING\r\n", b"+PONG\r\n"),
        (b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", b"$1\r\n1\r\n"),
        (b"\r\n", b""),
        (b"ECHO 'a b'\n", b"$3\r\na b\r\n"),
        (b"*3\r\n$3\r\nSET\r\n$4\r\nlast\r\n$1\r\n1\r\n", b"+OK\r\n"),
    ];
    let sent = requests.map(|(sent, _)| sent).concat();
    for end in 0..=sent.len() {
        let mut client = broker.client();
        client.send(&sent[..end]);
        client.end_sending();
        let mut whole = 0;
        let answered = requests.iter().take_while(|(sent, _)| {
            whole += sent.len();
            whole <= end
        });
        let expected: Vec<u8> = answered.flat_map(|(_, reply)| reply.iter().copied()).collect();
        assert_eq!(client.rest().escape_ascii().to_string(), expected.escape_ascii().to_string(), "{end} bytes");
        let last = if end == sent.len() { b":1\r\n" } else { b":0\r\n" };
        assert_eq!(other.ask(["EXISTS", "last"]), last, "{end} bytes");
    }
    let before = other.info("used_memory");
    nothing_is_left(&mut other, before);
}
