//! MULTI to EXEC over real sockets: all of it or nothing, seen by nobody in parts, stopped by a change of a watched key.
//!
//! Promise: what redis-server answers is compared elsewhere (`strings`, `differential`); here stands what only a log can
//! show: batches, flushes, and other clients in between.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::broker::TestBroker;
use crate::client::{Client, bulk, request};

fn ask(client: &mut Client, text: &str) -> Vec<u8> {
    client.ask(text.split(' ').collect::<Vec<_>>())
}

fn pipeline(texts: &[&str]) -> Vec<u8> {
    texts.iter().flat_map(|text| request(text.split(' ').collect::<Vec<_>>())).collect()
}

#[test]
fn a_transaction_is_one_batch_and_one_flush_with_what_comes_before_and_behind() {
    let broker = TestBroker::durable();
    let mut client = broker.client();
    for round in 1..=10 {
        let before = ["hearth_batches", "hearth_flushes"].map(|field| client.info(field));
        client.send(&pipeline(&["SET a 1", "MULTI", "INCR a", "SET b 2", "DEL a", "EXEC", "SET c 3"]));
        client.expect(b"+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n:2\r\n+OK\r\n:1\r\n+OK\r\n");
        let after = ["hearth_batches", "hearth_flushes"].map(|field| client.info(field));
        assert_eq!(after, before.map(|count| count + 1), "round {round}");
    }
}

#[test]
fn nobody_sees_half_of_a_transaction_or_of_an_mset() {
    let broker = TestBroker::durable();
    let address = broker.address;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let (mut client, mut seen) = (Client::connect(address), 0);
                    while !done.load(Ordering::Acquire) {
                        let reply = ask(&mut client, "MGET a b c d");
                        let lines: Vec<&[u8]> = reply.split(|byte| *byte == b'\n').skip(2).step_by(2).take(4).collect();
                        assert!(lines.iter().all(|line| *line == lines[0]), "{}", reply.escape_ascii());
                        seen += 1;
                    }
                    seen
                })
            })
            .collect();
        let mut client = broker.client();
        ask(&mut client, "MSET a 0 b 0 c 0 d 0");
        for round in 1..=300 {
            if round % 2 == 0 {
                let text = format!("MSET a {round} b {round} c {round} d {round}");
                assert_eq!(ask(&mut client, &text), b"+OK\r\n");
            } else {
                client.send(&pipeline(&[
                    "MULTI",
                    "INCR a",
                    "DEL b",
                    &format!("SET b {round}"),
                    "INCR c",
                    "INCR d",
                    "EXEC",
                ]));
                client.expect(b"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n");
                let reply = client.reply();
                assert!(reply.starts_with(b"*5\r\n"), "{}", reply.escape_ascii());
            }
        }
        done.store(true, Ordering::Release);
        assert!(readers.into_iter().map(|reader| reader.join().unwrap()).sum::<u64>() > 100);
    });
}

#[test]
fn a_watched_key_that_changed_stops_the_transaction_whoever_changed_it_and_however() {
    let broker = TestBroker::in_memory(&[]);
    let (mut one, mut other) = (broker.client(), broker.client());
    let changes = [
        "SET w 2",
        "APPEND w x",
        "DEL w",
        "EXPIRE w 100",
        "FLUSHDB",
        "FLUSHALL",
        "RENAME w v",
        "GETSET w 1",
        "INCRBY w 5",
        "SETRANGE w 0 9",
        "GETEX w EX 10",
        "MSET a 1 w 1",
    ];
    for change in changes {
        ask(&mut other, "SET w 1");
        one.send(&pipeline(&["WATCH w", "GET w"]));
        one.expect(b"+OK\r\n$1\r\n1\r\n");
        ask(&mut other, change);
        one.send(&pipeline(&["MULTI", "SET t 1", "EXEC", "EXISTS t"]));
        one.expect(b"+OK\r\n+QUEUED\r\n*-1\r\n:0\r\n");
    }
    let harmless = ["GET w", "SET w 2 NX", "PERSIST w", "EXPIRE w 100 XX", "DEL nothing", "SET elsewhere 1", "GETEX w"];
    for harmless in harmless {
        ask(&mut other, "SET w 1");
        one.send(&pipeline(&["WATCH w"]));
        one.expect(b"+OK\r\n");
        ask(&mut other, harmless);
        one.send(&pipeline(&["MULTI", "GET w", "EXEC"]));
        one.expect(b"+OK\r\n+QUEUED\r\n*1\r\n$1\r\n1\r\n");
    }
}

#[test]
fn counters_that_clients_raise_by_watching_lose_nothing() {
    let broker = TestBroker::durable();
    let address = broker.address;
    let raised: u64 = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let (mut client, mut raised) = (Client::connect(address), 0);
                    while raised < 50 {
                        assert_eq!(ask(&mut client, "WATCH n"), b"+OK\r\n");
                        let reply = ask(&mut client, "GET n");
                        let text = String::from_utf8(reply).unwrap();
                        let number: u64 = text.lines().nth(1).map_or(0, |line| line.parse().unwrap());
                        client.send(&pipeline(&["MULTI", &format!("SET n {}", number + 1), "EXEC"]));
                        client.expect(b"+OK\r\n+QUEUED\r\n");
                        raised += u64::from(client.reply() == b"*1\r\n+OK\r\n");
                    }
                    raised
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    });
    assert_eq!(broker.client().ask(["GET", "n"]), bulk(raised.to_string().as_bytes()));
}

#[test]
fn increments_of_many_clients_lose_nothing() {
    let broker = TestBroker::durable();
    let address = broker.address;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = Client::connect(address);
                for _ in 0..20 {
                    client.send(&pipeline(&["INCR n"; 25]));
                    (0..25).for_each(|_| assert!(client.reply().starts_with(b":")));
                }
            });
        }
    });
    assert_eq!(broker.client().ask(["GET", "n"]), bulk(b"2000"));
}

#[test]
fn a_transaction_that_does_not_fit_a_batch_writes_nothing() {
    let broker = TestBroker::in_memory(&["--max-value", "1mb"]);
    let (mut client, value) = (broker.client(), vec![b'v'; 1_000_000]);
    client.send(&pipeline(&["SET k before", "MULTI"]));
    for key in 0..10 {
        client.send(&request([b"SET".to_vec(), format!("k{key}").into_bytes(), value.clone()]));
    }
    client.send(&pipeline(&["SET k behind", "EXEC", "GET k", "DBSIZE"]));
    client.expect(b"+OK\r\n+OK\r\n");
    (0..11).for_each(|_| client.expect(b"+QUEUED\r\n"));
    let reply = client.reply();
    assert!(reply.starts_with(b"-OOM "), "{}", reply.escape_ascii());
    client.expect(b"$6\r\nbefore\r\n:1\r\n");
}

#[test]
fn a_value_that_a_transaction_wrote_is_not_repeated_without_bound() {
    let broker = TestBroker::in_memory(&["--max-value", "4mb"]);
    let (mut client, value) = (broker.client(), vec![b'v'; 3_000_000]);
    // In a pipeline the reply waits until the value is stored, and is then read piece by piece.
    client.send(&request([&b"SET"[..], b"k", &value]));
    client.send(&request([&b"MGET"[..]].into_iter().chain([&b"k"[..]; 100]).collect::<Vec<_>>()));
    client.expect(b"+OK\r\n*100\r\n");
    (0..100).for_each(|_| assert_eq!(client.reply().len(), bulk(&value).len()));
    // In a transaction it cannot wait for itself.
    client.send(&request(["MULTI"]));
    client.send(&request([&b"SET"[..], b"k", b"new"]));
    client.send(&request([&b"SET"[..], b"j", &value]));
    client.send(&request([&b"MGET"[..]].into_iter().chain([&b"j"[..]; 100]).collect::<Vec<_>>()));
    client.send(&pipeline(&["EXEC", "EXISTS j", "STRLEN k"]));
    client.expect(b"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n");
    let reply = client.reply();
    assert!(reply.starts_with(b"-OOM "), "{}", reply.escape_ascii());
    client.expect(b":0\r\n:3000000\r\n");
}

#[test]
fn while_memory_is_short_nothing_that_grows_is_queued_and_nothing_is_watched() {
    let broker = TestBroker::durable_with(&["--max-memory", "1"]);
    let mut client = broker.client();
    let full = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    client.send(&pipeline(&[
        "SET k 1", "WATCH k", "MULTI", "GET k", "DEL k", "SET k 1", "EXEC", "MULTI", "GET k", "EXEC",
    ]));
    client.expect(full);
    client.expect(full);
    client.expect(b"+OK\r\n+QUEUED\r\n+QUEUED\r\n");
    client.expect(full);
    client.expect(b"-EXECABORT Transaction discarded because of previous errors.\r\n+OK\r\n+QUEUED\r\n*1\r\n$-1\r\n");
}
