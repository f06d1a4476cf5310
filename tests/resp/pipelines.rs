//! Many requests at once: their order, what they cost, and what a client that does not read can cost.
//!
//! Promise: replies in the order of requests; requests of one read are one batch; memory bounded whatever the client
//! does. Memory is measured on a broker in a process of its own.

use std::io::Write;

use crate::broker::{OwnProcess, TestBroker, eventually};
use crate::client::{Client, bulk, request};

const MIB: usize = 1024 * 1024;

/// What a broker may take beside its data while one client misbehaves: buffers of both sides, replies, and room for
/// the allocator.
const ALLOWANCE_BYTES: u64 = 64 * 1024 * 1024;

#[test]
fn a_pipeline_is_one_batch_and_one_flush_and_reads_see_the_writes_before_them() {
    let broker = TestBroker::durable();
    let mut client = broker.client();
    let pipeline = ["SET a 1", "GET a", "SET a 2", "GET a"].map(|text| request(text.split(' ').collect::<Vec<_>>()));
    for round in 1..=20 {
        let before = ["hearth_batches", "hearth_flushes"].map(|field| client.info(field));
        client.send(&pipeline.concat());
        client.expect(b"+OK\r\n$1\r\n1\r\n+OK\r\n$1\r\n2\r\n");
        let after = ["hearth_batches", "hearth_flushes"].map(|field| client.info(field));
        assert_eq!(after, before.map(|count| count + 1), "round {round}");
    }
}

#[test]
fn requests_that_write_nothing_cost_no_batch() {
    let broker = TestBroker::durable();
    let mut client = broker.client();
    client.ask(["SET", "a", "1"]);
    let before = client.info("hearth_batches");
    for text in ["GET a", "SET a 2 NX", "DEL nothing", "SET b 1 XX", "EXISTS a", "SET b 1 EXAT 1", "SET a 1 IFREV 0"] {
        client.ask(text.split(' ').collect::<Vec<_>>());
    }
    assert_eq!(client.info("hearth_batches"), before);
    assert_eq!(client.ask(["GET", "a"]), bulk(b"1"));
}

#[test]
fn an_acknowledged_write_is_seen_by_every_other_client() {
    let broker = TestBroker::durable();
    let (mut writer, mut reader) = (broker.client(), broker.client());
    for round in 0..100 {
        let value = format!("value {round}");
        assert_eq!(writer.ask(["SET", "k", &value]), b"+OK\r\n");
        assert_eq!(reader.ask(["GET", "k"]), bulk(value.as_bytes()));
        if round % 10 == 0 {
            assert_eq!(writer.ask(["DEL", "k"]), b":1\r\n");
            assert_eq!(reader.ask(["EXISTS", "k"]), b":0\r\n");
        }
    }
}

#[test]
fn a_held_back_answer_tells_only_what_is_durable() {
    // The answer to a refused NX rests on the staged write before it, so it must not overtake it either.
    let broker = TestBroker::durable();
    let (mut one, mut other) = (broker.client(), broker.client());
    for round in 0..50 {
        let key = format!("k{round}");
        one.send(&request(["SET", &key, "1"]));
        one.send(&request(["SET", &key, "2", "NX", "GET"]));
        one.expect(b"+OK\r\n$1\r\n1\r\n");
        assert_eq!(other.ask(["GET", &key]), bulk(b"1"));
    }
}

#[test]
fn replies_that_wait_for_the_disk_keep_their_places() {
    let broker = TestBroker::durable();
    let (mut client, value) = (broker.client(), vec![b'v'; 300_000]);
    for _ in 0..20 {
        for key in ["a", "b", "c"] {
            assert_eq!(client.ask([&b"SET"[..], key.as_bytes(), &value]), b"+OK\r\n");
        }
        broker.forget_cached_files();
        let pipeline = ["GET a", "FOO", "GET b", "GET b", "GET", "SET c 1 GET", "SET a 2 GET", "GET c", "PING"];
        client.send(&pipeline.map(|text| request(text.split(' ').collect::<Vec<_>>())).concat());
        let unknown = &b"-ERR unknown command 'FOO', with args beginning with: \r\n"[..];
        let arity = &b"-ERR wrong number of arguments for 'get' command\r\n"[..];
        let value = &bulk(&value)[..];
        let replies = [value, unknown, value, value, arity, value, value, &bulk(b"1"), b"+PONG\r\n"];
        client.expect(&replies.concat());
    }
}

#[test]
fn a_pipeline_that_is_sent_whole_before_anything_is_read_is_answered() {
    const GETS: usize = 200_000;
    let broker = OwnProcess::start(&[]);
    let mut client = broker.client();
    let value = [b'v'; 1000];
    assert_eq!(client.ask([&b"SET"[..], b"k", &value]), b"+OK\r\n");
    // 200 MB of replies: more than any buffer between us takes.
    client.send(&request(["GET", "k"]).repeat(GETS));
    for _ in 0..GETS {
        client.expect(&bulk(&value));
    }
    assert_eq!(client.ask(["PING"]), b"+PONG\r\n");
}

#[test]
fn large_values_behind_writes_of_many_clients_are_not_in_memory_at_once() {
    const CLIENTS: usize = 400;
    let broker = OwnProcess::start(&[]);
    let mut other = broker.client();
    assert_eq!(other.ask([&b"SET"[..], b"big", &vec![7; 8 * MIB]]), b"+OK\r\n");
    let before = other.info("used_memory_peak");
    for number in 0..CLIENTS {
        let write = request(["SET", &format!("k{number}"), "x"]);
        broker.client().try_send(&[write, request(["GET", "big"])].concat());
    }
    assert_eq!(other.ask(["PING"]), b"+PONG\r\n");
    let grown = other.info("used_memory_peak").saturating_sub(before);
    assert!(
        grown < 40 * 8 * MIB as u64,
        "grown by {grown} bytes, a value for each client would be {}",
        CLIENTS * 8 * MIB
    );
}

#[test]
fn a_hundred_thousand_requests_are_answered_in_order_and_cost_no_memory_while_nobody_reads() {
    const REQUESTS: usize = 100_000;
    let broker = OwnProcess::start(&[]);
    let mut other = broker.client();
    let before = other.info("used_memory_rss");
    let mut client = Client::connect_narrow(broker.address);
    let mut sender = client.sender();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for first in (0..REQUESTS).step_by(1000) {
                let pipeline = (first..first + 1000).map(|number| request(["ECHO", &padded(number)]));
                sender.write_all(&pipeline.collect::<Vec<_>>().concat()).unwrap();
            }
        });
        // The broker is stuck when, between two looks, only the looking was read.
        let look = request(["INFO"]).len() as u64;
        let mut read = 0;
        eventually("the broker stops reading", || {
            assert_eq!(other.ask(["PING"]), b"+PONG\r\n");
            let now = other.info("total_net_input_bytes");
            let still = now - read == look + request(["PING"]).len() as u64;
            read = now;
            still
        });
        assert!(read < (REQUESTS * 1000) as u64, "everything was read: this test shows nothing");
        let grown = other.info("used_memory_rss").saturating_sub(before);
        assert!(grown < ALLOWANCE_BYTES, "grown by {grown} bytes");
        for number in 0..REQUESTS {
            client.expect(&bulk(padded(number).as_bytes()));
        }
    });
    assert_eq!(client.ask(["PING"]), b"+PONG\r\n");
}

fn padded(number: usize) -> String {
    format!("{number:01000}")
}

#[test]
fn a_thousand_gets_of_one_mib_to_a_slow_reader_cost_no_memory() {
    const GETS: usize = 1000;
    let broker = OwnProcess::start(&[]);
    let mut other = broker.client();
    let value: Vec<u8> = (0..MIB).map(|i| (i % 251) as u8).collect();
    assert_eq!(other.ask([&b"SET"[..], b"k", &value]), b"+OK\r\n");
    let before = other.info("used_memory_rss");
    let mut slow = Client::connect_narrow(broker.address);
    slow.send(&request(["GET", "k"]).repeat(GETS));
    let expected = bulk(&value);
    for number in 0..GETS {
        slow.expect(&expected);
        if number % 50 == 0 {
            let grown = other.info("used_memory_rss").saturating_sub(before);
            assert!(grown < ALLOWANCE_BYTES, "grown by {grown} bytes at reply {number}");
        }
    }
    assert_eq!(slow.ask(["PING"]), b"+PONG\r\n");
}

#[test]
fn a_client_that_floods_with_requests_does_not_keep_others_waiting() {
    others_are_served_beside(request(["PING"]).repeat(10_000));
}

#[test]
fn a_client_that_floods_with_empty_lines_does_not_keep_others_waiting() {
    others_are_served_beside(b"\r\n".repeat(70_000));
}

#[test]
fn a_client_that_sends_a_value_nobody_keeps_does_not_keep_others_waiting() {
    // 100 MB a request, dropped as they come.
    let head = b"*2\r\n$4\r\nECHO\r\n$100000000\r\n";
    others_are_served_beside([&head[..], &vec![b'x'; 100_000_000], b"\r\n"].concat());
}

/// While one client sends `flood` again and again, each request of another is answered.
fn others_are_served_beside(flood: Vec<u8>) {
    let broker = OwnProcess::start(&[]);
    let mut flooding = broker.client();
    let mut sender = flooding.sender();
    std::thread::scope(|scope| {
        scope.spawn(move || while sender.write_all(&flood).is_ok() {});
        let mut other = broker.client();
        let hand = flooding.sender();
        let reading = scope.spawn(move || flooding.until(b"never"));
        for _ in 0..100 {
            assert_eq!(other.ask(["PING"]), b"+PONG\r\n");
        }
        let read = other.info("total_net_input_bytes");
        eventually("the flood goes on", || other.info("total_net_input_bytes") > read + 1_000_000);
        hand.shutdown(std::net::Shutdown::Both).unwrap();
        let _ = reading.join();
    });
}

#[test]
fn values_of_1_and_16_mib_come_back() {
    let broker = TestBroker::in_memory(&[]);
    let mut client = broker.client();
    for size in [MIB - 1, MIB, MIB + 1, 16 * MIB - 1, 16 * MIB] {
        let value: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
        // Before and behind it stand small requests, in the same write.
        let pipeline = [
            request(["PING"]),
            request([&b"SET"[..], b"k", &value]),
            request(["GET", "k"]),
            request(["ECHO", "behind"]),
        ];
        client.send(&pipeline.concat());
        client.expect(&[&b"+PONG\r\n+OK\r\n"[..], &bulk(&value), &bulk(b"behind")].concat());
        // Once more, from the log.
        client.send(&request(["GET", "k"]));
        client.expect(&bulk(&value));
    }
    let long = vec![b'x'; 16 * MIB + 1];
    let text = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n";
    assert_eq!(client.ask([&b"SET"[..], b"k", &long]), text.as_bytes());
    assert_eq!(client.ask(["EXISTS", "k"]), b":1\r\n");
}

#[test]
fn more_than_may_be_staged_at_once_is_written_all_the_same() {
    // Six clients whose values take more together than a shard lets be staged, completed at the same moment.
    const CLIENTS: usize = 6;
    let broker = TestBroker::in_memory(&[]);
    let value = vec![b'v'; 15 * MIB];
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| broker.client()).collect();
    let requests: Vec<Vec<u8>> =
        (0..CLIENTS).map(|number| request([&b"SET"[..], format!("k{number}").as_bytes(), &value])).collect();
    for (client, request) in clients.iter_mut().zip(&requests) {
        client.send(&request[..request.len() - 1]);
    }
    for client in &mut clients {
        client.send(&[&b"\n"[..], &request(["SET", "small", "1"]), &request(["GET", "small"])].concat());
    }
    for client in &mut clients {
        client.expect(b"+OK\r\n+OK\r\n$1\r\n1\r\n");
    }
    for number in 0..CLIENTS {
        clients[0].send(&request(["GET", &format!("k{number}")]));
        clients[0].expect(&bulk(&value));
    }
}

#[test]
fn a_client_that_ends_sending_gets_every_reply() {
    let broker = TestBroker::durable();
    for requests in [1, 7, 1000] {
        let mut client = broker.client();
        for number in 0..requests {
            let number = number.to_string();
            client.send(&[request(["SET", "k", &number]), request(["GET", "k"])].concat());
        }
        client.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n");
        client.end_sending();
        for number in 0..requests {
            client.expect(&[b"+OK\r\n", &bulk(number.to_string().as_bytes())[..]].concat());
        }
        assert_eq!(client.rest(), b"");
    }
}

#[test]
fn half_a_request_of_a_client_that_left_does_nothing() {
    let broker = TestBroker::in_memory(&[]);
    let mut other = broker.client();
    for cut in 1..request(["SET", "half", "1"]).len() {
        let mut client = broker.client();
        client.send(&request(["SET", "whole", "1"]));
        client.send(&request(["SET", "half", "1"])[..cut]);
        client.expect(b"+OK\r\n");
        drop(client);
    }
    eventually("all who left are gone", || other.info("connected_clients") == 1);
    assert_eq!(other.ask(["EXISTS", "whole"]), b":1\r\n");
    assert_eq!(other.ask(["EXISTS", "half"]), b":0\r\n");
}

#[test]
fn a_client_that_leaves_without_reading_harms_nobody() {
    let broker = TestBroker::in_memory(&[]);
    let mut other = broker.client();
    assert_eq!(other.ask([&b"SET"[..], b"k", &vec![b'v'; MIB]]), b"+OK\r\n");
    for _ in 0..10 {
        let mut client = Client::connect_narrow(broker.address);
        client.send(&request(["GET", "k"]).repeat(100));
        client.expect(b"$1048576\r\n");
        drop(client);
    }
    eventually("all who left are gone", || other.info("connected_clients") == 1);
    assert_eq!(other.ask(["PING"]), b"+PONG\r\n");
}
