//! Which keys there are, under which name and for how long, while others write: with one shard and with eight.
//!
//! Promise: a scan misses no key that is there from its start to its end, a key that is renamed is always there exactly
//! once, and an expiry outlives a restart. Must never know how keys are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use hearth::rt;

use crate::broker::{PATIENCE, TestBroker, eventually};
use crate::client::{Client, bulk, request};

const WIDTHS: [&str; 2] = ["1", "8"];

const CROSS_SLOT: &[u8] = b"-CROSSSLOT Keys in request don't hash to the same slot\r\n";

/// What goes on beside a test until it is ended.
struct Beside {
    stop: Arc<AtomicBool>,
    rounds: mpsc::Receiver<usize>,
}

impl Beside {
    fn repeat(mut round: impl FnMut(usize) + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, (ended, rounds)) = (Arc::clone(&stop), mpsc::sync_channel(1));
        let work = move || {
            let rounds = (0..).take_while(|_| !stopped.load(Ordering::Relaxed)).map(&mut round).count();
            let _ = ended.send(rounds);
        };
        rt::thread("beside", work).unwrap();
        Self { stop, rounds }
    }

    /// Ends it; it must not have failed, and must have been going on.
    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        assert!(self.rounds.recv_timeout(PATIENCE).unwrap() > 0);
    }
}

/// Asks for what is written in words.
fn ask(client: &mut Client, text: &str) -> Vec<u8> {
    client.ask(text.split(' ').collect::<Vec<_>>())
}

fn number(reply: &[u8]) -> i64 {
    let text = str::from_utf8(reply).unwrap();
    text.strip_prefix(':').unwrap_or_else(|| panic!("{text} is no number")).trim_end().parse().unwrap()
}

/// The bulks of a reply, however they are nested.
fn bulks(reply: &[u8]) -> Vec<String> {
    let text = String::from_utf8(reply.to_vec()).unwrap();
    assert!(!text.starts_with('-'), "{text}");
    text.lines().filter(|line| !line.starts_with(['*', '$'])).map(str::to_owned).collect()
}

/// One page of a scan: where it goes on, and the keys.
fn page(client: &mut Client, cursor: &str, options: &str) -> (String, Vec<String>) {
    let mut found = bulks(&ask(client, &format!("SCAN {cursor}{options}")));
    let next = found.remove(0);
    assert!(next.parse::<u64>().unwrap() < 1 << 53, "{next}");
    (next, found)
}

/// All pages of a scan, each over a connection of its own when there are several.
fn scan(clients: &mut [Client], options: &str) -> Vec<String> {
    let (mut cursor, mut found) = ("0".to_owned(), Vec::new());
    for turn in 0.. {
        let at = turn % clients.len();
        let (next, keys) = page(&mut clients[at], &cursor, options);
        found.extend(keys);
        if next == "0" {
            return found;
        }
        cursor = next;
    }
    unreachable!()
}

fn fill(client: &mut Client, keys: impl Iterator<Item = String>) -> usize {
    let keys: Vec<String> = keys.collect();
    client.send(&keys.iter().flat_map(|key| request(["SET", key, "value"])).collect::<Vec<u8>>());
    for _ in &keys {
        client.expect(b"+OK\r\n");
    }
    keys.len()
}

#[test]
fn a_scan_misses_no_key_that_stays_whatever_is_written_meanwhile() {
    for shards in WIDTHS {
        let broker = TestBroker::in_memory(&["--shards", shards]);
        let mut client = broker.client();
        let stable = |number: usize| format!("{}:stable", number * 7919 % 3000);
        fill(&mut client, (0..3000).map(stable));
        let mut writer = broker.client();
        let churn = Beside::repeat(move |round| {
            let other = format!("{}:churn", round * 31 % 3000);
            let kept = format!("{}:stable", round % 3000);
            let renamed = format!("{{{other}}}");
            let requests = [
                request(["SET", &other, "1"]),
                request(["SET", &kept, "2"]),
                request(["RENAME", &other, &renamed]),
                request(["PEXPIRE", &kept, "1000000"]),
                request(["DEL", &renamed]),
                request(["SET", &other, "1", "PX", "1"]),
            ];
            writer.send(&requests.concat());
            writer.expect(b"+OK\r\n+OK\r\n+OK\r\n:1\r\n:1\r\n+OK\r\n");
        });
        let mut clients: Vec<Client> = (0..3).map(|_| broker.client()).collect();
        for options in
            ["", " COUNT 7", " COUNT 100 MATCH *:stable", " COUNT 1000", " COUNT 50 TYPE string MATCH [0-9]*"]
        {
            let found = scan(&mut clients, options);
            let mut times: BTreeMap<&str, usize> = BTreeMap::new();
            for key in found.iter().filter(|key| key.ends_with(":stable")) {
                *times.entry(key).or_default() += 1;
            }
            assert_eq!(times.len(), 3000, "{shards} shards, SCAN{options}");
            assert!(times.values().all(|times| *times == 1), "{shards} shards, SCAN{options}: a key came twice");
        }
        churn.end();
    }
}

#[test]
fn a_cursor_works_again_from_any_connection_and_in_its_own_database_only() {
    for shards in WIDTHS {
        let broker = TestBroker::in_memory(&["--shards", shards]);
        let mut client = broker.client();
        fill(&mut client, (0..100).map(|number| format!("key:{number}")));
        let (first, keys) = page(&mut client, "0", "");
        assert!(first != "0" && keys.len() == 10);
        let second = page(&mut client, &first, "");
        for _ in 0..3 {
            assert_eq!(page(&mut client, &first, ""), second);
            assert_eq!(page(&mut broker.client(), &first, ""), second);
        }
        // The whole scan is done, and its first cursor still works.
        assert_eq!(scan(&mut [broker.client()], "").len(), 100);
        assert_eq!(page(&mut client, &first, ""), second);
        let other = (first.parse::<u64>().unwrap() ^ 1).to_string();
        assert_eq!(ask(&mut client, &format!("SCAN {other}")), b"-ERR invalid cursor\r\n");
        ask(&mut client, "SELECT 1");
        assert_eq!(ask(&mut client, &format!("SCAN {first}")), b"-ERR invalid cursor\r\n");
        assert_eq!(ask(&mut client, "SCAN 0"), b"*2\r\n$1\r\n0\r\n*0\r\n");
    }
}

#[test]
fn pages_are_as_long_as_asked_for_and_an_empty_one_is_not_the_end() {
    for shards in WIDTHS {
        let broker = TestBroker::in_memory(&["--shards", shards]);
        let mut client = broker.client();
        fill(&mut client, (0..200).map(|number| format!("key:{number}")));
        fill(&mut client, (0..20).map(|number| format!("other:{number}")));
        let (next, keys) = page(&mut client, "0", " MATCH *:nothing COUNT 30");
        assert!(next != "0" && keys.is_empty());
        assert_eq!(scan(std::slice::from_mut(&mut client), " MATCH *:nothing"), [""; 0]);
        assert_eq!(scan(std::slice::from_mut(&mut client), " MATCH *5"), by_pattern(&mut client, "*5"));
        // A pattern's beginning is looked up: a page of this one looks at no key that begins with another word.
        let (next, keys) = page(&mut client, "0", " MATCH other:* COUNT 20");
        assert_eq!((next.as_str(), keys.len()), ("0", 20));
        for count in [1, 10, 64, 1000] {
            let (mut cursor, mut all) = ("0".to_owned(), 0);
            loop {
                let (next, keys) = page(&mut client, &cursor, &format!(" COUNT {count}"));
                // A cursor means that there is more, so every page but the last is full.
                assert!(keys.len() == count.min(220) || next == "0", "{} of {count}", keys.len());
                all += keys.len();
                cursor = next;
                if cursor == "0" {
                    break;
                }
            }
            assert_eq!(all, 220);
        }
    }
}

#[test]
fn a_page_of_long_keys_ends_early_however_many_are_asked_for() {
    let broker = TestBroker::in_memory(&[]);
    let mut client = broker.client();
    let key = |number: usize| format!("{number:02}{}", "x".repeat(60_000));
    fill(&mut client, (0..60).map(key));
    let (mut cursor, mut all) = ("0".to_owned(), Vec::new());
    loop {
        let (next, keys) = page(&mut client, &cursor, " COUNT 1000");
        assert!(keys.len() <= 18, "{} keys", keys.len());
        all.extend(keys);
        cursor = next;
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(all, (0..60).map(key).collect::<Vec<_>>());
    assert_eq!(bulks(&ask(&mut client, "KEYS 0*x")), (0..10).map(key).collect::<Vec<_>>());
}

fn by_pattern(client: &mut Client, pattern: &str) -> Vec<String> {
    bulks(&ask(client, &format!("KEYS {pattern}")))
}

#[test]
fn keys_dbsize_and_randomkey_know_every_shard() {
    for shards in WIDTHS {
        let broker = TestBroker::in_memory(&["--shards", shards]);
        let mut client = broker.client();
        let names = || (0..50).map(|number| format!("key:{number}"));
        fill(&mut client, names());
        ask(&mut client, "SET gone 1 PX 1");
        eventually("the key expires", || ask(&mut client, "EXISTS gone") == b":0\r\n");
        let all: BTreeSet<String> = names().collect();
        assert_eq!(by_pattern(&mut client, "*").into_iter().collect::<BTreeSet<_>>(), all);
        assert_eq!(by_pattern(&mut client, "key:1?").len(), 10);
        assert_eq!(by_pattern(&mut client, "k*:[^1-4]*").len(), 6);
        assert_eq!(by_pattern(&mut client, "gone"), [""; 0]);
        assert!((50..=51).contains(&number(&ask(&mut client, "DBSIZE"))));
        let mut seen = BTreeSet::new();
        eventually("every key comes up", || {
            seen.extend((0..100).flat_map(|_| bulks(&ask(&mut client, "RANDOMKEY"))));
            seen == all
        });
        // Behind its own writes a pipeline sees them, applied or not.
        client.send(
            &["FLUSHDB", "SET a 1", "KEYS *", "DBSIZE", "RANDOMKEY", "SCAN 0"]
                .map(|text| request(text.split(' ').collect::<Vec<_>>()))
                .concat(),
        );
        client.expect(b"+OK\r\n+OK\r\n*1\r\n$1\r\na\r\n:1\r\n$1\r\na\r\n*2\r\n$1\r\n0\r\n*1\r\n$1\r\na\r\n");
    }
}

#[test]
fn a_key_that_is_renamed_is_always_there_exactly_once() {
    for shards in WIDTHS {
        let broker = TestBroker::in_memory(&["--shards", shards]);
        let mut client = broker.client();
        ask(&mut client, "SET {t}a value PX 100000000");
        let mut writer = broker.client();
        let renamer = Beside::repeat(move |_| {
            assert_eq!(ask(&mut writer, "RENAME {t}a {t}b"), b"+OK\r\n");
            assert_eq!(ask(&mut writer, "COPY {t}b {t}c REPLACE"), b":1\r\n");
            assert_eq!(ask(&mut writer, "RENAMENX {t}b {t}a"), b":1\r\n");
        });
        for _ in 0..3000 {
            assert_eq!(ask(&mut client, "EXISTS {t}a {t}b"), b":1\r\n");
            let values = ask(&mut client, "MGET {t}a {t}b");
            assert!(values == b"*2\r\n$5\r\nvalue\r\n$-1\r\n" || values == b"*2\r\n$-1\r\n$5\r\nvalue\r\n");
        }
        renamer.end();
        assert!(number(&ask(&mut client, "PTTL {t}a")) > 90_000_000);
        assert!(number(&ask(&mut client, "PTTL {t}c")) > 90_000_000);
    }
}

#[test]
fn what_must_be_whole_is_refused_over_several_shards_and_a_copy_to_another_database_is_not() {
    let broker = TestBroker::in_memory(&["--shards", "8"]);
    let mut client = broker.client();
    ask(&mut client, "SET a 1 PX 100000000");
    for text in ["RENAME a b", "RENAMENX a b", "COPY a b", "COPY a b DB 0 REPLACE"] {
        assert_eq!(ask(&mut client, text), CROSS_SLOT, "{text}");
    }
    assert_eq!(ask(&mut client, "RENAME a {a}b"), b"+OK\r\n");
    assert_eq!(ask(&mut client, "COPY {a}b b DB 5"), b":1\r\n");
    assert_eq!(ask(&mut client, "EXISTS a b {a}b"), b":1\r\n");
    ask(&mut client, "SELECT 5");
    assert_eq!(ask(&mut client, "GET b"), bulk(b"1"));
    assert!(number(&ask(&mut client, "PTTL b")) > 90_000_000);
    // Inside a transaction a copy is part of its one batch, and that is of one shard.
    client.send(&["MULTI", "COPY b c DB 6", "EXEC"].map(|text| request(text.split(' ').collect::<Vec<_>>())).concat());
    client.expect(b"+OK\r\n+QUEUED\r\n");
    assert_eq!(client.reply(), CROSS_SLOT);
}

#[test]
fn a_time_to_live_is_told_in_seconds_and_milliseconds() {
    let broker = TestBroker::in_memory(&[]);
    let mut client = broker.client();
    ask(&mut client, "SET k v");
    assert_eq!(ask(&mut client, "EXPIRE k 1000"), b":1\r\n");
    assert!((990..=1000).contains(&number(&ask(&mut client, "TTL k"))));
    assert!((990_000..=1_000_000).contains(&number(&ask(&mut client, "PTTL k"))));
    let at = number(&ask(&mut client, "PEXPIRETIME k"));
    assert_eq!(number(&ask(&mut client, "EXPIRETIME k")), (at + 500) / 1000);
    assert_eq!(ask(&mut client, "PEXPIRE k 500000 GT"), b":0\r\n");
    assert_eq!(ask(&mut client, "PEXPIRE k 500000 LT"), b":1\r\n");
    assert!((490..=500).contains(&number(&ask(&mut client, "TTL k"))));
    assert_eq!(ask(&mut client, "PERSIST k"), b":1\r\n");
    assert_eq!(ask(&mut client, "TTL k"), b":-1\r\n");
}

#[test]
fn a_key_that_has_just_expired_is_none() {
    let broker = TestBroker::in_memory(&[]);
    let mut client = broker.client();
    ask(&mut client, "SET k 5 PX 1");
    eventually("the key expires", || ask(&mut client, "TYPE k") == b"+none\r\n");
    assert_eq!(ask(&mut client, "TTL k"), b":-2\r\n");
    assert_eq!(ask(&mut client, "EXPIRE k 100"), b":0\r\n");
    assert_eq!(ask(&mut client, "RENAME k a"), b"-ERR no such key\r\n");
    assert_eq!(ask(&mut client, "COPY k a"), b":0\r\n");
    assert_eq!(ask(&mut client, "INCRBY k 2"), b":2\r\n");
    assert_eq!(ask(&mut client, "TTL k"), b":-1\r\n");
    ask(&mut client, "SET a 5 PX 1");
    eventually("the key expires", || ask(&mut client, "EXISTS a") == b":0\r\n");
    assert_eq!(ask(&mut client, "RENAMENX k a"), b":1\r\n");
}

#[test]
fn what_changes_nothing_writes_nothing() {
    let broker = TestBroker::durable();
    let mut client = broker.client();
    ask(&mut client, "SET k v");
    ask(&mut client, "SET a v PXAT 99999999999999");
    let before = client.info("hearth_batches");
    for text in [
        "PERSIST k",
        "PERSIST no",
        "EXPIRE k 9 XX",
        "EXPIRE k 9 GT",
        "EXPIRE a 9 NX",
        "EXPIRE a 9 NX XX",
        "EXPIRE no 9",
        "EXPIRE no -1",
        "RENAME k k",
        "RENAMENX k k",
        "RENAMENX k a",
        "RENAME no k",
        "COPY k a",
        "COPY k k",
        "COPY no b",
        "COPY no b DB 3",
        "TYPE k",
        "TTL a",
        "KEYS *",
        "SCAN 0",
        "RANDOMKEY",
        "DBSIZE",
        "OBJECT ENCODING k",
        "MEMORY USAGE k",
        "INCRBYFLOAT k 1",
    ] {
        ask(&mut client, text);
    }
    assert_eq!(client.info("hearth_batches"), before);
    for text in ["EXPIRE k 100", "PERSIST k", "RENAME k b", "COPY b k", "EXPIRE b -1"] {
        let before = client.info("hearth_batches");
        ask(&mut client, text);
        assert_eq!(client.info("hearth_batches"), before + 1, "{text} is one batch");
    }
}

#[test]
fn expiries_outlive_a_restart_whichever_command_wrote_them() {
    let broker = TestBroker::durable();
    let mut client = broker.client();
    for text in [
        "SET float 1 PXAT 99999999999999",
        "INCRBYFLOAT float 0.5",
        "SET counter 1 PXAT 99999999999999",
        "INCR counter",
        "SET expire v",
        "PEXPIREAT expire 99999999999999",
        "SET persist v PXAT 99999999999999",
        "PERSIST persist",
        "SET old v PXAT 99999999999999",
        "RENAME old new",
        "COPY new copy",
        "COPY new copy DB 2",
        "SET plain v PXAT 99999999999999",
        "SET plain w",
        "SET past v",
        "EXPIRE past -1",
    ] {
        assert!(!ask(&mut client, text).starts_with(b"-"), "{text}");
    }
    let broker = broker.restarted(&[]);
    let mut client = broker.client();
    for key in ["float", "counter", "expire", "new", "copy"] {
        assert_eq!(ask(&mut client, &format!("PEXPIRETIME {key}")), b":99999999999999\r\n", "{key}");
    }
    for key in ["persist", "plain"] {
        assert_eq!(ask(&mut client, &format!("PEXPIRETIME {key}")), b":-1\r\n", "{key}");
    }
    assert_eq!(ask(&mut client, "EXISTS old past"), b":0\r\n");
    assert_eq!(ask(&mut client, "GET float"), bulk(b"1.5"));
    ask(&mut client, "SELECT 2");
    assert_eq!(ask(&mut client, "PEXPIRETIME copy"), b":99999999999999\r\n");
}

#[test]
fn values_that_have_to_be_read_first_are_written_again_as_they_were() {
    let broker = TestBroker::durable();
    let mut client = broker.client();
    let value = |number: usize| format!("{number}-").repeat(30_000);
    for number in 0..4 {
        assert_eq!(client.ask(["SET", &format!("k{number}"), &value(number)]), b"+OK\r\n");
    }
    broker.forget_cached_files();
    client.send(
        &["EXPIRE k0 1000", "RENAME k1 moved", "COPY k2 copied", "COPY k3 k3 DB 4", "PERSIST k0", "OBJECT ENCODING k0"]
            .map(|text| request(text.split(' ').collect::<Vec<_>>()))
            .concat(),
    );
    client.expect(b":1\r\n+OK\r\n:1\r\n:1\r\n:1\r\n$3\r\nraw\r\n");
    broker.forget_cached_files();
    for (key, number) in [("k0", 0), ("moved", 1), ("copied", 2), ("k2", 2), ("k3", 3)] {
        assert_eq!(client.ask(["GET", key]), bulk(value(number).as_bytes()), "{key}");
    }
    ask(&mut client, "SELECT 4");
    assert_eq!(client.ask(["GET", "k3"]), bulk(value(3).as_bytes()));
}

#[test]
fn a_rename_needs_no_more_room_than_there_is() {
    let broker = TestBroker::in_memory(&["--max-data", "100kb"]);
    let (mut client, value) = (broker.client(), vec![b'v'; 80_000]);
    assert_eq!(client.ask([&b"SET"[..], b"k", &value]), b"+OK\r\n");
    assert!(client.ask([&b"SET"[..], b"other", &value]).starts_with(b"-OOM "));
    assert_eq!(client.ask(["RENAME", "k", "j"]), b"+OK\r\n");
    assert_eq!(client.ask(["STRLEN", "j"]), b":80000\r\n");
    // A copy needs it twice, and leaves everything as it was.
    assert!(client.ask(["COPY", "j", "k"]).starts_with(b"-OOM "));
    assert_eq!(client.ask(["EXISTS", "j", "k"]), b":1\r\n");
}
