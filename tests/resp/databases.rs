//! Databases, named caches and shards: what a client finds where, with one shard and with eight.
//!
//! Promise: whatever the number of shards, a connection sees its own writes in their order, and what cannot be done at once in
//! several shards is refused and leaves nothing behind.

use crate::broker::TestBroker;
use crate::client::{Client, bulk, request};

fn ask(client: &mut Client, text: &str) -> Vec<u8> {
    client.ask(text.split(' ').collect::<Vec<_>>())
}

fn pipeline(texts: &[&str]) -> Vec<u8> {
    texts.iter().flat_map(|text| request(text.split(' ').collect::<Vec<_>>())).collect()
}

const CROSS_SLOT: &[u8] = b"-CROSSSLOT Keys in request don't hash to the same slot\r\n";

fn with_one_and_with_eight_shards(test: impl Fn(&TestBroker)) {
    for shards in ["1", "8"] {
        test(&TestBroker::in_memory(&["--shards", shards, "--max-value", "1mb"]));
    }
}

#[test]
fn a_pipeline_over_many_shards_sees_its_own_writes_at_their_places() {
    with_one_and_with_eight_shards(|broker| {
        let mut client = broker.client();
        let (mut sent, mut expected) = (Vec::new(), Vec::new());
        for round in 0..3 {
            for key in 0..40 {
                sent.extend(pipeline(&[&format!("SET key:{key} {round}")]));
                expected.extend(b"+OK\r\n");
            }
            for key in (0..40).rev() {
                sent.extend(pipeline(&[
                    &format!("GET key:{key}"),
                    &format!("INCR key:{key}"),
                    &format!("STRLEN key:{key}"),
                ]));
                expected.extend(format!("$1\r\n{round}\r\n:{}\r\n:1\r\n", round + 1).into_bytes());
            }
        }
        sent.extend(pipeline(&["DBSIZE", "EXISTS key:0 key:1 key:1 key:99", "DEL key:0 key:1 key:2 key:99", "DBSIZE"]));
        expected.extend(b":40\r\n:3\r\n:3\r\n:37\r\n");
        client.send(&sent);
        client.expect(&expected);
    });
}

#[test]
fn requests_for_many_keys_are_split_and_merged_in_order() {
    with_one_and_with_eight_shards(|broker| {
        let mut client = broker.client();
        let keys: Vec<String> = (0..100).map(|i| format!("k{i}")).collect();
        let mset: Vec<String> = std::iter::once("MSET".to_owned())
            .chain(keys.iter().flat_map(|key| [key.clone(), format!("v-{key}")]))
            .collect();
        assert_eq!(client.ask(&mset), b"+OK\r\n");
        let mget: Vec<String> = std::iter::once("MGET".to_owned()).chain(keys.iter().rev().cloned()).collect();
        let values = keys.iter().rev().flat_map(|key| bulk(format!("v-{key}").as_bytes()));
        assert_eq!(client.ask(&mget), b"*100\r\n".iter().copied().chain(values).collect::<Vec<_>>());
        for command in ["EXISTS", "TOUCH", "UNLINK", "DEL"] {
            let words: Vec<String> = std::iter::once(command.to_owned()).chain(keys.iter().cloned()).collect();
            let count = if command == "DEL" { ":0" } else { ":100" };
            assert_eq!(client.ask(&words), format!("{count}\r\n").into_bytes(), "{command}");
        }
    });
}

#[test]
fn regression_values_staged_in_several_shards_are_read_by_one_request() {
    with_one_and_with_eight_shards(|broker| {
        let mut client = broker.client();
        client.send(&pipeline(&[
            "SET stored 0",
            "SET a 1",
            "SET b 2",
            "SET c 3",
            "MGET a b stored c a x",
            "DEL b",
            "MGET b a",
        ]));
        client.expect(b"+OK\r\n+OK\r\n+OK\r\n+OK\r\n");
        client.expect(b"*6\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n0\r\n$1\r\n3\r\n$1\r\n1\r\n$-1\r\n");
        client.expect(b":1\r\n*2\r\n$-1\r\n$1\r\n1\r\n");
    });
}

#[test]
fn regression_a_transaction_that_lists_keys_sees_what_its_connection_wrote_to_other_shards() {
    with_one_and_with_eight_shards(|broker| {
        let mut client = broker.client();
        client.send(&pipeline(&[
            "MSET a 1 b 2 c 3",
            "MULTI",
            "SET {x}1 4",
            "DBSIZE",
            "KEYS ?",
            "SCAN 0 COUNT 100",
            "EXEC",
        ]));
        client.expect(b"+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*4\r\n+OK\r\n:4\r\n");
        let keys = client.reply();
        assert!(keys.starts_with(b"*3\r\n"), "{}", keys.escape_ascii());
        let scanned = client.reply();
        assert!(scanned.starts_with(b"*2\r\n$1\r\n0\r\n*4\r\n"), "{}", scanned.escape_ascii());
    });
}

#[test]
fn what_must_be_whole_is_refused_over_several_shards_and_leaves_nothing_behind() {
    let broker = TestBroker::in_memory(&["--shards", "8"]);
    let mut client = broker.client();
    for text in ["MSETNX a 1 b 2 c 3 d 4", "RENAME a b", "RENAMENX a b", "COPY a b"] {
        assert_eq!(ask(&mut client, "SET a 0"), b"+OK\r\n");
        assert_eq!(ask(&mut client, text), CROSS_SLOT, "{text}");
    }
    client.send(&pipeline(&["MULTI", "SET a 1", "INCR a", "SET b 1", "EXEC", "GET a", "GET b"]));
    client.expect(b"+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n");
    client.expect(CROSS_SLOT);
    client.expect(b"$1\r\n0\r\n$-1\r\n");
    client.send(&pipeline(&["WATCH b", "MULTI", "SET a 1", "EXEC", "GET a", "MULTI", "MGET a b", "EXEC"]));
    client.expect(b"+OK\r\n+OK\r\n+QUEUED\r\n");
    client.expect(CROSS_SLOT);
    client.expect(b"$1\r\n0\r\n+OK\r\n+QUEUED\r\n");
    client.expect(CROSS_SLOT);
    // With a tag the keys stand together.
    client.send(&pipeline(&[
        "MSETNX {t}a 1 {t}b 2",
        "WATCH {t}a",
        "MULTI",
        "INCR {t}a",
        "RENAME {t}b {t}c",
        "MGET {t}a {t}c",
        "EXEC",
    ]));
    client.expect(
        b":1\r\n+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n:2\r\n+OK\r\n*2\r\n$1\r\n2\r\n$1\r\n2\r\n",
    );
}

#[test]
fn databases_hold_keys_of_their_own_and_are_made_by_their_first_write() {
    with_one_and_with_eight_shards(|broker| {
        let mut client = broker.client();
        client.send(&pipeline(&[
            "SET k 0",
            "SELECT 7",
            "GET k",
            "DEL k",
            "EXISTS k",
            "EXPIRE k 5",
            "SET k 7 XX",
            "DBSIZE",
        ]));
        client.expect(b"+OK\r\n+OK\r\n$-1\r\n:0\r\n:0\r\n:0\r\n$-1\r\n:0\r\n");
        let before = ask(&mut client, "HEARTH.INFO");
        assert_eq!(before, b"*0\r\n", "nothing that reads or deletes makes it");
        client.send(&pipeline(&["SET k 7", "GET k", "SELECT 0", "GET k", "SELECT 7", "INCR k", "SELECT 15", "INCR k"]));
        client.expect(b"+OK\r\n$1\r\n7\r\n+OK\r\n$1\r\n0\r\n+OK\r\n:8\r\n+OK\r\n:1\r\n");
        assert_eq!(ask(&mut client, "SELECT 16"), b"-ERR DB index is out of range\r\n");
        assert_eq!(ask(&mut client, "INFO keyspace"), bulk(b"# Keyspace\r\ndb0:keys=1,expires=0,avg_ttl=0\r\ndb7:keys=1,expires=0,avg_ttl=0\r\ndb15:keys=1,expires=0,avg_ttl=0\r\n"));
        client.send(&pipeline(&[
            "SELECT default/default/7",
            "GET k",
            "FLUSHDB",
            "GET k",
            "SELECT 15",
            "GET k",
            "FLUSHALL",
            "DBSIZE",
        ]));
        client.expect(b"+OK\r\n$1\r\n8\r\n+OK\r\n$-1\r\n+OK\r\n$1\r\n1\r\n+OK\r\n:0\r\n");
        assert_eq!(ask(&mut client, "INFO keyspace"), bulk(b"# Keyspace\r\n"));
    });
}

#[test]
fn a_transaction_may_make_a_cache_and_is_run_once() {
    with_one_and_with_eight_shards(|broker| {
        let mut client = broker.client();
        client.send(&pipeline(&[
            "SELECT 3",
            "MULTI",
            "INCR {a}n",
            "INCR {a}n",
            "EXEC",
            "MULTI",
            "SELECT 4",
            "INCR n",
            "EXEC",
            "GET n",
        ]));
        client.expect(b"+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n:1\r\n:2\r\n");
        client.expect(b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n:1\r\n$1\r\n1\r\n");
    });
}

#[test]
fn named_caches_are_selected_by_name_and_flushall_is_not_about_them() {
    let broker = TestBroker::in_memory(&["--cache", "shop/eu/sessions:2", "--max-value", "1mb"]);
    let mut client = broker.client();
    client.send(&pipeline(&[
        "SELECT shop/eu/sessions",
        "SET k 1",
        "FLUSHALL",
        "GET k",
        "SELECT shop/eu/other",
        "GET k",
    ]));
    client.expect(b"+OK\r\n+OK\r\n+OK\r\n$1\r\n1\r\n");
    client.expect(b"-ERR no such cache; start the broker with --cache shop/eu/other\r\n$1\r\n1\r\n");
    assert!(ask(&mut client, "HEARTH.INFO").starts_with(b"*2\r\n"));
    let keyspace = ask(&mut client, "INFO keyspace");
    assert_eq!(keyspace, bulk(b"# Keyspace\r\nhearth_cache_shop/eu/sessions:keys=1,expires=0,avg_ttl=0\r\n"));
    client.send(&pipeline(&["FLUSHDB", "DBSIZE"]));
    client.expect(b"+OK\r\n:0\r\n");
}

#[test]
fn databases_and_their_shards_are_there_after_a_restart() {
    let broker = TestBroker::durable_with(&["--shards", "3", "--cache", "a/b/c:2"]);
    let mut client = broker.client();
    client.send(&pipeline(&["SET k 0", "SELECT 5", "MSET a 1 b 2 c 3 d 4", "SELECT a/b/c", "SET k named"]));
    client.expect(b"+OK\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n");
    drop(client);
    // Another number of shards is for caches that are made from now on, and what lives here needs no flag.
    let broker = broker.restarted(&["--shards", "1"]);
    let mut client = broker.client();
    client.send(&pipeline(&["GET k", "SELECT 5", "MGET a b c d", "SELECT a/b/c", "GET k"]));
    client.expect(b"$1\r\n0\r\n+OK\r\n*4\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n4\r\n+OK\r\n$5\r\nnamed\r\n");
    assert!(ask(&mut client, "HEARTH.INFO").starts_with(b"*2\r\n"));
    assert_eq!(ask(&mut client, "SELECT 5"), b"+OK\r\n");
    assert!(ask(&mut client, "HEARTH.INFO").starts_with(b"*3\r\n"));
}

#[test]
fn a_database_is_not_made_when_the_disk_is_short_and_the_others_go_on() {
    let broker = TestBroker::durable_with(&["--min-free", "1000000gb"]);
    let mut client = broker.client();
    client.send(&pipeline(&["SELECT 1", "GET k"]));
    client.expect(b"+OK\r\n$-1\r\n");
    for text in ["SET k 1", "INCR k", "MSET a 1 b 2", "APPEND k x"] {
        let reply = ask(&mut client, text);
        assert!(reply.starts_with(b"-MISCONF "), "{text}: {}", reply.escape_ascii());
    }
    client.send(&pipeline(&["MULTI", "INCR k", "EXEC", "EXEC", "HEARTH.INFO", "DEL k", "SELECT 0", "GET k"]));
    client.expect(b"+OK\r\n+QUEUED\r\n");
    assert!(client.reply().starts_with(b"-MISCONF "));
    // Refused or not, what is not to be answered is not answered.
    client.send(&pipeline(&["CLIENT REPLY SKIP", "SET k 1"]));
    client.expect(b"-ERR EXEC without MULTI\r\n*0\r\n:0\r\n+OK\r\n$-1\r\n");
}

#[test]
fn who_hangs_up_while_a_database_is_made_has_not_written() {
    let broker = TestBroker::durable();
    // They are made one after the other, so the last ones are long given up when their turn comes.
    let mut clients: Vec<Client> = (1..=8).map(|_| broker.client()).collect();
    for (database, client) in (1..).zip(&mut clients) {
        client.send(&pipeline(&[&format!("SELECT {database}"), "INCR n"]));
    }
    drop(clients);
    let mut patient = broker.client();
    for database in [8, 7, 6] {
        patient.send(&pipeline(&[&format!("SELECT {database}"), "INCR n"]));
        patient.expect(b"+OK\r\n:1\r\n");
    }
}
