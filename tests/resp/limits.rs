//! The bounds of a broker as its clients meet them: how many there may be, and what happens when it ends.
//!
//! Promise: who is turned away is told why; who was read is answered.

use hearth::server::Ended;

use crate::broker::{OwnProcess, TestBroker, eventually};
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

const OVER_THE_BOUND: &[u8] = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n";

#[test]
fn over_the_bound_on_data_a_put_is_told_so_in_redis_words_and_a_delete_makes_room() {
    let broker = TestBroker::in_memory(&["--max-data", "1mb"]);
    let mut client = broker.client();
    let value = vec![b'v'; 100 * 1000];
    let mut put = |key: &str, value: &[u8]| client.ask([b"SET", key.as_bytes(), value]);
    let taken = (0..20).take_while(|number| put(&format!("k{number}"), &value) == b"+OK\r\n").count();
    assert_eq!(taken, 10, "1,048,576 bytes hold ten such records and no eleventh");
    assert_eq!(put("another", &value), OVER_THE_BOUND);
    assert_eq!(client.ask(["GET", "k0"]), bulk(&value));
    assert_eq!(client.ask(["EXISTS", "another"]), b":0\r\n");
    assert_eq!(client.ask(["DEL", "k0"]), b":1\r\n");
    assert_eq!(client.ask([&b"SET"[..], b"another", &value]), b"+OK\r\n");
    assert_eq!(client.info("hearth_max_data_bytes"), 1024 * 1024);
}

#[test]
fn over_the_bound_on_memory_a_put_is_told_so_and_reads_and_deletes_go_on() {
    const BOUND: u64 = 100 * 1024 * 1024;
    let broker = OwnProcess::start(&["--max-memory", "100mb", "--max-value", "2mb"]);
    let mut client = broker.client();
    assert_eq!(client.ask(["CONFIG", "GET", "maxmemory"]), b"*2\r\n$9\r\nmaxmemory\r\n$9\r\n104857600\r\n");
    assert_eq!(client.info("maxmemory"), BOUND);
    let before = client.info("used_memory");
    let value = vec![b'v'; 1024 * 1024];
    let mut refused = 0;
    for number in 0..200 {
        let reply = client.ask([b"SET", format!("k{number}").as_bytes(), &value]);
        if reply == OVER_THE_BOUND {
            refused += 1;
        } else {
            assert!(reply == b"+OK\r\n" && refused == 0, "{}", reply.escape_ascii());
        }
    }
    let used = client.info("used_memory");
    println!("{refused} refused, {before} bytes used before and {used} after");
    assert!((1..190).contains(&refused), "{refused}");
    assert!(before < BOUND / 10 && used > BOUND / 2 && used <= BOUND + 4 * 1024 * 1024, "{before} {used}");
    assert!(client.info("used_memory_peak") >= used && client.info("used_memory_rss") > used / 2);
    assert_eq!(client.ask(["GET", "k0"]), bulk(&value));
    assert_eq!(client.ask(["DEL", "k0", "k1"]), b":2\r\n");
    assert_eq!(client.ask(["PING"]), b"+PONG\r\n");
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
