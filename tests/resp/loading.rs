//! A broker that listens and has not opened its data yet, as its clients meet it.
//!
//! Promise: commands that need the data answer `-LOADING …` and change nothing, the others are answered, and the same
//! connections are served once the data is there.

use std::sync::atomic::Ordering;

use crate::broker::OpeningBroker;
use crate::client::{Client, bulk, request};

const LOADING: &[u8] = b"-LOADING Redis is loading the dataset in memory\r\n";

fn info(client: &mut Client, section: &str) -> String {
    String::from_utf8(client.ask(["INFO", section])).unwrap()
}

#[test]
fn what_needs_the_data_is_told_that_it_is_loading_and_the_rest_is_answered() {
    let broker = OpeningBroker::listen(&["--memory"]);
    let mut client = broker.client();
    for refused in ["PING", "GET k", "SET k v", "DEL k", "EXISTS k", "DBSIZE", "FLUSHALL", "FLUSHDB ASYNC"] {
        assert_eq!(client.ask(refused.split(' ').collect::<Vec<_>>()), LOADING, "{refused}");
    }
    assert_eq!(client.ask(["ECHO", "hello"]), bulk(b"hello"));
    assert_eq!(client.ask(["CLIENT", "SETNAME", "me"]), b"+OK\r\n");
    assert_eq!(client.ask(["CONFIG", "GET", "save"]), b"*2\r\n$4\r\nsave\r\n$0\r\n\r\n");
    assert_eq!(client.ask(["SELECT", "0"]), b"+OK\r\n");
    assert_eq!(client.ask(["GET"]), b"-ERR wrong number of arguments for 'get' command\r\n");
    assert!(client.ask(["NOTHING"]).starts_with(b"-ERR unknown command"));
    assert_eq!(client.ask(["CLIENT", "GETNAME"]), bulk(b"me"));
    // Which commands are answered is a flag of each; `describe` holds the flags to redis-server's.
    for answered in ["TIME", "CONFIG RESETSTAT", "SLOWLOG LEN", "ACL WHOAMI", "COMMAND COUNT", "MULTI", "DISCARD"] {
        assert!(!client.ask(answered.split(' ').collect::<Vec<_>>()).starts_with(b"-"), "{answered}");
    }
    for refused in ["MODULE LIST", "FUNCTION FLUSH", "WAIT 0 0", "OBJECT ENCODING k"] {
        assert_eq!(client.ask(refused.split(' ').collect::<Vec<_>>()), LOADING, "{refused}");
    }
}

#[test]
fn a_pipeline_that_was_sent_while_loading_is_answered_in_order_and_the_connection_is_served_later() {
    let broker = OpeningBroker::listen(&["--memory"]);
    let mut client = broker.client();
    client.send(&[request(["SET", "k", "1"]), request(["ECHO", "a"]), request(["GET", "k"])].concat());
    client.expect(&[LOADING, &bulk(b"a"), LOADING].concat());
    let (mut other, mut idle) = (broker.client(), broker.client());
    assert_eq!(other.ask(["PING"]), LOADING);
    let broker = broker.open();
    assert_eq!(client.ask(["GET", "k"]), b"$-1\r\n", "a refused write changed nothing");
    assert_eq!(client.ask(["SET", "k", "2"]), b"+OK\r\n");
    assert_eq!(other.ask(["GET", "k"]), bulk(b"2"));
    assert_eq!(idle.ask(["PING"]), b"+PONG\r\n");
    assert_eq!(broker.client().ask(["PING"]), b"+PONG\r\n");
}

#[test]
fn info_tells_how_far_loading_is_and_no_more_once_it_is_done() {
    let broker = OpeningBroker::listen(&["--memory"]);
    let mut client = broker.client();
    let progress = broker.opening.progress();
    progress.total_bytes.store(4_000, Ordering::Relaxed);
    progress.done_bytes.store(1_000, Ordering::Relaxed);
    let loading = info(&mut client, "persistence");
    for line in [
        "loading:1",
        "loading_total_bytes:4000",
        "loading_loaded_bytes:1000",
        "loading_loaded_perc:25.00",
        "loading_start_time:",
        "loading_eta_seconds:",
    ] {
        assert!(loading.contains(&format!("\r\n{line}")), "no {line} in {loading}");
    }
    let started = client.info("loading_start_time");
    assert!(started > 1_700_000_000 && started < 10_000_000_000, "{started} is no Unix time in seconds");
    let _broker = broker.open();
    let loaded = info(&mut client, "persistence");
    assert!(loaded.contains("\r\nloading:0\r\n") && !loaded.contains("\r\nloading_"), "{loaded}");
}

#[test]
fn a_client_that_quits_while_loading_is_let_go() {
    let broker = OpeningBroker::listen(&["--memory"]);
    let mut client = broker.client();
    assert_eq!(client.ask(["QUIT"]), b"+OK\r\n");
    assert_eq!(client.rest(), b"");
}
