//! Clients that send what costs a broker more than it costs them: nesting, declared lengths, floods, and next to nothing.
//!
//! Promise: what is declared costs nothing, what is sent is held once and given back, and others are served meanwhile. Must
//! never know how a request is found.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::abuse::{MIB, grown, nothing_is_left, served_meanwhile, watched};
use crate::client::{Client, bulk, request};

/// What a connection may cost that has sent next to nothing.
const SMALL_CONNECTION_BYTES: u64 = 16 * 1024;

const TOO_LONG: &[u8] = b"-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n";

/// Waits until the broker has read `bytes` more than `before` of everybody but `other`, which has asked nothing since.
fn has_read(other: &mut Client, before: u64, bytes: usize) {
    let mut looks = 0;
    let look = (request(["PING"]).len() + request(["INFO"]).len()) as u64;
    served_meanwhile(other, "all that was sent is read", |other| {
        looks += 1;
        other.info("total_net_input_bytes") == before + bytes as u64 + looks * look
    });
}

#[test]
fn arrays_nested_a_hundred_thousand_deep_are_refused_at_the_second_header_and_cost_nothing() {
    const CLIENTS: usize = 20;
    let (broker, mut other, before) = watched(&[]);
    let nested = b"*1\r\n".repeat(100_000);
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| broker.client()).collect();
    for client in &mut clients {
        client.try_send(&nested);
        assert_eq!(other.ask(["PING"]), b"+PONG\r\n");
    }
    for client in &mut clients {
        assert_eq!(client.until(b"never"), b"-ERR Protocol error: expected '$', got '*'\r\n");
    }
    drop(clients);
    // A connection reads at most 64 KiB at a time.
    assert!(grown(&mut other, before) < (CLIENTS * 128 * 1024) as u64);
    nothing_is_left(&mut other, before);
}

#[test]
fn declared_lengths_cost_nothing_however_many_declare_them() {
    const EACH: usize = 100;
    let (broker, mut other, before) = watched(&[]);
    let declared = [
        &b"*1048576\r\n"[..],
        b"*1048576\r\n$536870912\r\n",
        b"*1048576\r\n$16777216\r\nabc",
        b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$16777216\r\n",
        b"*2\r\n$4\r\nECHO\r\n$536870912\r\nabc",
        b"*1048576\r\n$1\r\na\r\n$1\r\nb\r\n$536870912\r\n",
    ];
    let read = other.info("total_net_input_bytes");
    let mut clients = Vec::new();
    for sent in declared.iter().cycle().take(EACH * declared.len()) {
        let mut client = broker.client();
        client.send(sent);
        clients.push(client);
    }
    has_read(&mut other, read, EACH * declared.concat().len());
    assert_eq!(other.info("connected_clients"), clients.len() as u64 + 1);
    assert!(grown(&mut other, before) < clients.len() as u64 * SMALL_CONNECTION_BYTES);
    drop(clients);
    nothing_is_left(&mut other, before);
}

#[test]
fn a_bulk_of_512_mib_is_dropped_as_it_comes_and_the_connection_stays() {
    let (broker, mut other, before) = watched(&[]);
    let mut client = broker.client();
    let piece = vec![b'x'; MIB];
    client.send(b"*2\r\n$4\r\nECHO\r\n$536870912\r\n");
    for number in 0..512 {
        client.send(&piece);
        if number % 64 == 0 {
            assert_eq!(other.ask(["PING"]), b"+PONG\r\n");
        }
    }
    client.send(&[b"\r\n", &request(["ECHO", "behind"])[..]].concat());
    client.expect(&[TOO_LONG, &bulk(b"behind")].concat());
    assert!(grown(&mut other, before) < MIB as u64);
    drop(client);
    nothing_is_left(&mut other, before);
}

#[test]
fn many_values_too_long_to_keep_in_one_buffer_do_not_keep_others_waiting() {
    const COMMANDS: usize = 5000;
    const ECHOS: usize = 100_000;
    let (broker, mut other, before) = watched(&["--max-value", "100"]);
    let mut client = Client::connect_narrow(broker.address);
    let command = client.ask(["COMMAND"]);
    let echo = request(["ECHO", &"e".repeat(101)]);
    // Replies that are not read hold up what is sent behind them, so that it is found all at once.
    client.send(&[request(["COMMAND"]).repeat(COMMANDS), echo.repeat(ECHOS)].concat());
    served_meanwhile(&mut other, "it is received", |other| {
        other.info("used_memory") > before + (echo.len() * ECHOS / 2) as u64
    });
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (0..COMMANDS).for_each(|_| client.expect(&command));
            client.expect(&TOO_LONG.repeat(ECHOS));
            ended.store(true, Ordering::Release);
        });
        served_meanwhile(&mut other, "everything is answered", |_| ended.load(Ordering::Acquire));
    });
    drop(client);
    nothing_is_left(&mut other, before);
}

#[test]
fn a_request_over_128_mib_is_refused_from_its_headers() {
    let (broker, mut other, before) = watched(&["--max-value", "64mb"]);
    let mut client = broker.client();
    client.send(b"*4\r\n$3\r\nDEL\r\n$67108864\r\n");
    for _ in 0..64 {
        client.send(&vec![b'x'; MIB]);
        assert_eq!(other.ask(["PING"]), b"+PONG\r\n");
    }
    // Three bytes of the name are too much for a second one.
    client.send(b"\r\n$67108864\r\n");
    assert_eq!(client.rest(), b"-ERR Protocol error: request larger than 134217728 bytes\r\n");
    drop(client);
    assert!(grown(&mut other, before) < 200 * MIB as u64, "a buffer that doubles, and the one before it");
    nothing_is_left(&mut other, before);
}

#[test]
fn a_million_arguments_are_held_once_and_given_back() {
    const ARGUMENTS: usize = 1_048_576;
    let (broker, mut other, before) = watched(&[]);
    let mut client = broker.client();
    let head = format!("*{ARGUMENTS}\r\n$6\r\nEXISTS\r\n").into_bytes();
    client.send(&[head, b"$1\r\na\r\n".repeat(ARGUMENTS - 1)].concat());
    client.expect(b":0\r\n");
    assert_eq!(client.ask(["PING"]), b"+PONG\r\n");
    // 7 bytes of each are sent and 8 say where it is, both in lists that double and are copied when they do.
    assert!(grown(&mut other, before) < 3 * 16 * ARGUMENTS as u64);
    assert_eq!(client.ask(["PING"]), b"+PONG\r\n");
    let kept = other.info("used_memory").saturating_sub(before);
    assert!(kept < 256 * 1024, "{kept} bytes are kept for a client that is served and quiet");
}

#[test]
fn a_hundred_thousand_writes_and_reads_in_one_go_are_answered_in_order_beside_others() {
    const PAIRS: usize = 50_000;
    let (broker, mut other, before) = watched(&[]);
    let mut client = broker.client();
    let pipeline: Vec<Vec<u8>> = (0..PAIRS)
        .flat_map(|number| {
            let (key, value) = (format!("k{}", number % 100), number.to_string());
            [request(["SET", &key, &value]), request(["GET", &key])]
        })
        .collect();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            client.send(&pipeline.concat());
            for number in 0..PAIRS {
                client.expect(&[b"+OK\r\n", &bulk(number.to_string().as_bytes())[..]].concat());
            }
            ended.store(true, Ordering::Release);
        });
        served_meanwhile(&mut other, "the pipeline is answered", |_| ended.load(Ordering::Acquire));
    });
    assert_eq!(client.ask(["PING"]), b"+PONG\r\n");
    assert!(grown(&mut other, before) < 64 * MIB as u64);
    drop(client);
}

#[test]
fn requests_that_come_byte_by_byte_from_many_are_answered() {
    const CLIENTS: usize = 40;
    let (broker, mut other, before) = watched(&[]);
    let sent = [&request(["SET", "k", "value"])[..], b"PING\r\n\r\n", &request(["GET", "k"]), b"ECHO 'a b'\n"].concat();
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| broker.client()).collect();
    for byte in &sent {
        let read = other.info("total_net_input_bytes");
        for client in &mut clients {
            client.send(&[*byte]);
        }
        has_read(&mut other, read, CLIENTS);
    }
    for client in &mut clients {
        client.expect(b"+OK\r\n+PONG\r\n$5\r\nvalue\r\n$3\r\na b\r\n");
    }
    assert!(grown(&mut other, before) < CLIENTS as u64 * 2 * SMALL_CONNECTION_BYTES);
    drop(clients);
    other.ask(["FLUSHALL"]);
    nothing_is_left(&mut other, before);
}

#[test]
fn a_thousand_connections_with_half_a_request_each_cost_little_and_are_served_when_they_go_on() {
    const CLIENTS: usize = 1000;
    raise_the_limit_on_open_files();
    let (broker, mut other, before) = watched(&[]);
    let halves = |number: usize| {
        let mut first = request(["SET", &format!("k{number}"), &"v".repeat(100)]);
        let second = first.split_off(1 + number % (first.len() - 1));
        (first, second)
    };
    let read = other.info("total_net_input_bytes");
    let mut clients: Vec<Client> = (0..CLIENTS)
        .map(|number| {
            let mut client = broker.client();
            client.send(&halves(number).0);
            client
        })
        .collect();
    has_read(&mut other, read, (0..CLIENTS).map(|number| halves(number).0.len()).sum());
    assert_eq!(other.info("connected_clients"), 1 + CLIENTS as u64);
    assert!(grown(&mut other, before) < CLIENTS as u64 * SMALL_CONNECTION_BYTES);
    assert_eq!(other.ask(["DBSIZE"]), b":0\r\n");
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(&halves(number).1);
    }
    for client in &mut clients {
        client.expect(b"+OK\r\n");
    }
    assert_eq!(other.ask(["DBSIZE"]), format!(":{CLIENTS}\r\n").as_bytes());
    other.ask(["FLUSHALL"]);
    drop(clients);
    // The log has grown by what they wrote.
    nothing_is_left(&mut other, before + CLIENTS as u64 * 400);
}

/// As far as this process may: each client here is a descriptor.
fn raise_the_limit_on_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }).unwrap();
}
