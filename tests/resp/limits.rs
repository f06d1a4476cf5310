//! The bounds of a broker as its clients meet them: how many there may be, and what happens when it ends.
//!
//! Promise: who is turned away is told why; who was read is answered.

use hearth::server::Ended;

use crate::broker::{TestBroker, eventually};
use crate::client::{bulk, request};

const TURNED_AWAY: &[u8] = b"-ERR max number of clients reached\r\n";

#[test]
fn one_client_too_many_is_told_so_and_closed_and_a_place_left_is_a_place_free() {
    let broker = TestBroker::in_memory(&["--max-clients", "3"]);
    let mut clients: Vec<_> = (0..3).map(|_| broker.client()).collect();
    for client in &mut clients {
        assert_eq!(client.ask(["PING"]), b"+PONG\r\n");
    }
    for _ in 0..4 {
        assert_eq!(broker.client().rest(), TURNED_AWAY);
    }
    let mut first = clients.remove(0);
    assert_eq!(first.info("rejected_connections"), 4);
    assert_eq!(first.info("total_connections_received"), 3);
    assert_eq!(first.info("connected_clients"), 3);
    assert_eq!(first.info("maxclients"), 3);
    drop(clients.pop());
    eventually("a place is free", || first.info("connected_clients") == 2);
    let mut next = broker.client();
    assert_eq!(next.ask(["PING"]), b"+PONG\r\n");
    assert_eq!(broker.client().rest(), TURNED_AWAY);
    assert_eq!(first.info("rejected_connections"), 5);
    assert_eq!(first.info("total_connections_received"), 4);
}

#[test]
fn a_client_that_quits_leaves_its_place_though_it_does_not_close() {
    let broker = TestBroker::in_memory(&["--max-clients", "2"]);
    let (mut stays, mut quits) = (broker.client(), broker.client());
    assert_eq!(quits.ask(["QUIT"]), b"+OK\r\n");
    assert_eq!(quits.rest(), b"");
    eventually("the place is free", || stays.info("connected_clients") == 1);
    assert_eq!(broker.client().ask(["PING"]), b"+PONG\r\n");
}

#[test]
fn the_counters_of_info_are_what_happened() {
    let broker = TestBroker::in_memory(&[]);
    let mut client = broker.client();
    let asked = request(["PING"]).len() + request(["GET"]).len();
    client.ask(["PING"]);
    client.ask(["GET"]);
    assert_eq!(client.info("total_error_replies"), 1);
    assert_eq!(client.info("total_commands_processed"), 3);
    let infos = 2 * request(["INFO"]).len();
    assert_eq!(client.info("total_net_input_bytes") as usize, asked + infos + request(["INFO"]).len());
    assert!(client.info("total_net_output_bytes") > 1000);
}

#[test]
fn a_broker_that_ends_answers_what_it_has_read_and_then_closes() {
    const GETS: usize = 50;
    let broker = TestBroker::in_memory(&[]);
    let value = vec![b'v'; 1024 * 1024];
    let mut client = broker.client();
    assert_eq!(client.ask([&b"SET"[..], b"k", &value]), b"+OK\r\n");
    // One write, so one read; more than the sockets hold, so most is not answered when the end is asked for.
    let mut slow = crate::client::Client::connect_narrow(broker.address);
    slow.send(&request(["GET", "k"]).repeat(GETS));
    slow.expect(b"$1048576\r\n");
    let (mut idle, mut half) = (broker.client(), broker.client());
    half.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nhal");
    assert_eq!(idle.ask(["PING"]), b"+PONG\r\n");
    broker.stop();
    assert_eq!(idle.rest(), b"");
    assert_eq!(half.rest(), b"");
    slow.expect(&[&value, &b"\r\n"[..]].concat());
    for _ in 1..GETS {
        slow.expect(&bulk(&value));
    }
    assert_eq!(slow.rest(), b"");
    assert!(matches!(broker.ended(), Ok(Ended::Drained)));
    assert!(std::net::TcpStream::connect(broker.address).is_err(), "the address is still taken");
}

#[test]
fn a_reader_that_never_reads_does_not_keep_a_broker_from_ending() {
    let broker = TestBroker::in_memory(&["--drain", "0"]);
    let mut client = broker.client();
    assert_eq!(client.ask([&b"SET"[..], b"k", &vec![b'v'; 1024 * 1024]]), b"+OK\r\n");
    let mut stuck = crate::client::Client::connect_narrow(broker.address);
    stuck.send(&request(["GET", "k"]).repeat(50));
    stuck.expect(b"$1048576\r\n");
    broker.stop();
    assert!(matches!(broker.ended(), Ok(Ended::DrainTimedOut)));
}

#[test]
fn writes_before_the_end_are_acknowledged_and_kept_in_order() {
    let broker = TestBroker::durable();
    let mut client = broker.client();
    client.send(&request(["SET", "k", "1"]).repeat(1000));
    client.expect(b"+OK\r\n");
    broker.stop();
    let rest = client.rest();
    assert!(rest.chunks(5).all(|reply| reply == b"+OK\r\n"), "half a reply, or an error");
    assert!(matches!(broker.ended(), Ok(Ended::Drained)));
}
