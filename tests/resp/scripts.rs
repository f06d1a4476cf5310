//! Every script body that is kept, run in redis-server and in Hearth with the same keys, arguments and data.
//!
//! Promise: the same reply and the same data afterwards, in RESP2 and RESP3, in transactions and by `EVALSHA`. A time to
//! live may differ by what passes between the two servers. Must never know what a script does; which kind of argument
//! stands where is written beside the name of its meaning.

#![expect(clippy::disallowed_methods, reason = "the fixtures are files of the source tree")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use hearth::frontends::resp::scripts::table::NATIVES;
use hearth::frontends::resp::scripts::{find, sha1_of};

use crate::broker::TestBroker;
use crate::client::{Client, request};
use crate::random::Random;
use crate::redis::Redis;

/// For each meaning what its keys and arguments are, alternatives between blanks: `k` a key, `*` one to three keys, `t` a
/// token, `=` a token for each key, `m` milliseconds, `s` seconds, `c` a small number, `f` a flag, `n` a time, `w` a word
/// of SET, `d` a database.
const KINDS: &[(&str, &str)] = &[
    ("acquire_all", "*|tm"),
    ("acquire_all_selected", "*|dtm"),
    ("acquire_batch", "*|=m *|m *|tm"),
    ("acquire_free", "*|tm"),
    ("add", "k|ts"),
    ("compare_and_set", "k|tt k|ttwm k|ttw"),
    ("compare_prefix_and_set", "k|tt"),
    ("consume", "k|cs k|csss"),
    ("delete_if_equal", "k|t kk|t"),
    ("delete_if_equal_key", "kt|"),
    ("delete_if_equal_or_missing", "k|t"),
    ("delete_if_equal_or_nil", "k|t"),
    ("delete_if_equal_true", "k|t"),
    ("expire_if_equal", "k|ts"),
    ("expire_if_equal_inverted", "k|ts"),
    ("expire_number_if_equal", "k|ts"),
    ("expire_or_persist_if_equal", "k|ts"),
    ("expire_first_incrby", "k|sc"),
    ("extend_all", "*|tm"),
    ("extend_all_selected", "*|dtm"),
    ("extend_by", "k|tm"),
    ("extend_by_or_to", "k|tmf"),
    ("extend_if_all_equal", "*|tm"),
    ("extend_if_enough_left", "k|tmm"),
    ("extend_seconds_by", "k|ts"),
    ("fixed_window", "k|scc"),
    ("hits_and_block", "kk|tmcm"),
    ("hits_backoff", "k|mcff"),
    ("hits_backoff_ttl", "k|mcff"),
    ("hits_continued", "k|mcf"),
    ("hits_new_window", "k|fm"),
    ("hits_new_window_only", "k|m"),
    ("hits_reset_when_due", "k|fm"),
    ("hits_with_ban", "k|mccf"),
    ("hold_or_take", "k|tm"),
    ("incr_expire_first", "k|s"),
    ("incr_pexpire_first", "k|m"),
    ("incrby", "k|c"),
    ("incrby_expire_first", "k|sc"),
    ("incrby_if_exists", "k|c"),
    ("incrby_never_expiring", "k|mc"),
    ("incrby_pexpire_one", "k|cm"),
    ("next_id", "k|c"),
    ("obtain_all", "*|tcm"),
    ("pass_or_pttl", "k|cm"),
    ("pexpire_first_incrby", "k|mc"),
    ("pexpire_if_equal", "k|tm"),
    ("pexpire_if_equal_or_nil", "k|tm"),
    ("pexpire_or_take", "k|tm"),
    ("pttl_if_equal", "k|t"),
    ("pttl_if_equal_or_minus_three", "k|t"),
    ("read_hits", "k|"),
    ("refresh_by_set", "k|tm"),
    ("refresh_by_set_keys", "kmt|"),
    ("refresh_by_set_or_err", "k|tm"),
    ("refresh_if_all_equal", "*|tm"),
    ("release_all", "*|t"),
    ("release_all_selected", "*|dt"),
    ("release_each", "*|t"),
    ("release_if_all_equal", "*|t"),
    ("set_nx_maybe_px", "k|t k|tm kk|tm"),
    ("set_nx_px", "k|tm"),
    ("setnx_expire", "k|ts"),
    ("setnx_expire_keys", "kts|"),
    ("setnx_pexpire", "k|tm"),
    ("shortest_pttl", "*|t"),
    ("take_by_prefix", "k|tcm"),
    ("take_or_pexpire", "k|tm"),
    ("take_or_pexpire_or_minus_one", "k|tm"),
    ("take_or_pexpire_true", "k|tm"),
    ("take_or_refresh", "k|tm"),
    ("take_or_refresh_else_nil", "k|tm"),
    ("take_or_refresh_if_asked", "k|tmf"),
    ("take_unless_held", "k|tsf"),
    ("ttl_if_equal", "k|t"),
    ("unset_lock", "k|t"),
    ("used", "k|"),
    ("value_and_pttl", "k|"),
    ("value_and_pttl_or_nil", "k|"),
    ("weighted_usage", "kk|nm"),
    ("weighted_usage_counted", "kk|sccn"),
    ("weighted_usage_limited", "kk|sccn"),
    ("weighted_window", "kk|cnm"),
    ("weighted_window_by", "kk|cnmc"),
    ("window_acquire", "kk|csc"),
    ("window_read", "kk|s"),
];

const TOKENS: &[&str] = &["tok", "tok", "tok", "tok", "other", "", "t", "*", "5"];
/// What no kind asks for. No number here may make a key lapse within a test.
const JUNK: &[&str] = &[
    "abc",
    "",
    " ",
    "1.5",
    "1e30",
    "0x100000",
    "-1",
    "0",
    "nan",
    "-inf",
    " 300000 ",
    "9223372036854775807",
    "1e6",
    "tok",
];
/// Values that are counted; no product of these with a share of time is close to a whole number.
const COUNTS: &[&str] = &["1", "1", "2", "3", "5", "10", "-3", "0"];
const VALUES: &[&str] =
    &["tok", "tok", "tok", "other", "1", "2", "5", "10", "-3", "1.5", "abc", "", "9223372036854775807", "token", "*"];
const TIMES_TO_LIVE: &[&str] = &["712345", "512345678", "2345678901"];

/// A time to live that is longer than this may differ between the servers, by as much as the other.
const LONG: i64 = 20_000;
const APART: i64 = 5_000;

fn pick<'a>(random: &mut Random, from: &[&'a str]) -> &'a str {
    from[random.between(0, from.len() as u64) as usize]
}

fn argument(random: &mut Random, kind: char) -> &'static str {
    if random.one_in(8) {
        return pick(random, JUNK);
    }
    match kind {
        't' => pick(random, TOKENS),
        'm' => pick(random, &["1000000", "300000000", "999999999", "1000000"]),
        's' => pick(random, &["1000", "5000000", "345678"]),
        'c' => pick(random, COUNTS),
        'f' => pick(random, &["0", "1", "true", "false", "yes", ""]),
        'n' => pick(random, &["1700000123456", "1700000999999"]),
        'w' => pick(random, &["PX", "px", "EX", "NOSUCH"]),
        'd' => "0",
        other => panic!("no such kind: {other}"),
    }
}

/// Keys, and arguments.
type Drawn = (Vec<String>, Vec<String>);

fn draw(random: &mut Random, signatures: &str) -> Drawn {
    let signatures: Vec<&str> = signatures.split(' ').collect();
    let (keys, args) = pick(random, &signatures).split_once('|').unwrap();
    let mut drawn = (Vec::new(), Vec::new());
    for kind in keys.chars() {
        let count = if kind == '*' { random.between(1, 4) } else { 1 };
        for _ in 0..count {
            let next = drawn.0.len();
            drawn.0.push(if matches!(kind, 'k' | '*') {
                KEYS[next].to_owned()
            } else {
                argument(random, kind).to_owned()
            });
        }
    }
    for kind in args.chars() {
        let count = if kind == '=' { drawn.0.len() } else { 1 };
        let kind = if kind == '=' { 't' } else { kind };
        drawn.1.extend((0..count).map(|_| argument(random, kind).to_owned()));
    }
    drawn
}

const KEYS: [&str; 3] = ["{k}1", "{k}2", "{k}3"];

/// One round: what is sent, and how many replies come.
fn round(random: &mut Random, body: &[u8], sha1: &str, drawn: &Drawn) -> (Vec<Vec<u8>>, String) {
    let mut sent = vec![request([&["DEL"], &KEYS[..]].concat())];
    let mut told = String::new();
    for key in KEYS {
        if random.one_in(3) {
            continue;
        }
        let (value, ttl) = (pick(random, VALUES), pick(random, TIMES_TO_LIVE));
        let mut set = vec!["SET", key, value];
        if !random.one_in(3) {
            set.extend(["PX", ttl]);
        }
        told.push_str(&format!("{set:?} "));
        sent.push(request(set));
    }
    let read_only = random.one_in(10);
    let named = random.one_in(2);
    let name = match (named, read_only) {
        (false, false) => "EVAL",
        (false, true) => "EVAL_RO",
        (true, false) => "EVALSHA",
        (true, true) => "EVALSHA_RO",
    };
    let (keys, args) = drawn;
    let count = keys.len().to_string();
    let script = if named { sha1.as_bytes() } else { body };
    let mut eval: Vec<&[u8]> = vec![name.as_bytes(), script, count.as_bytes()];
    eval.extend(keys.iter().chain(args).map(String::as_bytes));
    told.push_str(&format!("{name} {keys:?} {args:?}"));
    let in_a_transaction = random.one_in(8);
    if in_a_transaction {
        sent.push(request(["MULTI"]));
    }
    sent.push(request(eval));
    if in_a_transaction {
        sent.push(request(["EXEC"]));
    }
    for key in KEYS {
        sent.push(request(["GET", key]));
        sent.push(request(["PTTL", key]));
    }
    (sent, told)
}

fn converse(client: &mut Client, sent: &[Vec<u8>]) -> Vec<u8> {
    client.send(&sent.concat());
    sent.iter().flat_map(|_| client.reply()).collect()
}

/// Whether two conversations are the same, but for the time that passed.
fn same(a: &[u8], b: &[u8]) -> bool {
    let lines = |bytes: &[u8]| bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
    let number = |line: &[u8]| str::from_utf8(line.strip_prefix(b":")?).ok()?.trim_end().parse::<i64>().ok();
    let (a, b) = (lines(a), lines(b));
    a.len() == b.len()
        && a.iter().zip(&b).all(|(a, b)| match (number(a), number(b)) {
            (Some(x), Some(y)) if x > LONG && y > LONG => x.abs_diff(y) <= APART.unsigned_abs(),
            _ => a == b,
        })
}

/// Every body: its name and its bytes.
fn fixtures() -> Vec<(String, Vec<u8>)> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/scripts");
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "lua") {
                let name = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
                found.push((name, std::fs::read(path).unwrap()));
            }
        }
    }
    found.sort();
    assert!(found.len() > 100);
    found
}

fn drawn_seed() -> u64 {
    std::env::var("HEARTH_SEED").ok().map_or_else(Random::fresh_seed, |seed| seed.parse().unwrap())
}

fn compare(protocol: &str, rounds: usize, seed: u64) {
    println!("HEARTH_SEED={seed}");
    let (broker, redis) = (TestBroker::in_memory(&[]), Redis::start());
    let (mut ours, mut theirs) = (broker.client(), Client::connect(redis.address));
    for client in [&mut ours, &mut theirs] {
        client.ask(["HELLO", protocol]);
    }
    for (_, body) in fixtures() {
        assert_eq!(ours.ask([&b"SCRIPT"[..], b"LOAD", &body]), theirs.ask([&b"SCRIPT"[..], b"LOAD", &body]));
    }
    let kinds: BTreeMap<&str, &str> = KINDS.iter().copied().collect();
    let mut wrong = Vec::new();
    for (name, body) in fixtures() {
        let sha1 = sha1_of(&body);
        let native = find(sha1.as_bytes()).unwrap_or_else(|| panic!("{name} ({sha1}) is not in the table")).native;
        let signatures = kinds.get(native.name).unwrap_or_else(|| panic!("what does {} take?", native.name));
        let mut random = Random::new(seed ^ u64::from_str_radix(&sha1[..15], 16).unwrap());
        for _ in 0..rounds {
            let drawn = draw(&mut random, signatures);
            let (sent, told) = round(&mut random, &body, &sha1, &drawn);
            let (got, wanted) = (converse(&mut ours, &sent), converse(&mut theirs, &sent));
            if !same(&got, &wanted) {
                let (got, wanted) = (got.escape_ascii(), wanted.escape_ascii());
                wrong.push(format!("{name}, {}: {told}\n     got {got}\n  wanted {wanted}", native.name));
                // The next body begins with the same data in both.
                for client in [&mut ours, &mut theirs] {
                    client.ask([&["DEL"], &KEYS[..]].concat());
                }
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{} bodies\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_body_answers_and_leaves_what_it_does_in_redis() {
    compare("2", 120, drawn_seed());
}

/// A SET whose words are wrong, in a script that must not write: Redis looks at its words last.
#[test]
fn regression_a_read_only_script_may_not_write_whatever_its_words_are() {
    compare("2", 120, 3_480_423_022);
}

#[test]
fn every_body_answers_and_leaves_what_it_does_in_redis_in_resp3() {
    compare("3", 120, drawn_seed());
}

#[test]
fn every_body_stands_in_the_document_with_its_meaning_and_nothing_else_does() {
    let document = std::fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/scripts.md")).unwrap();
    let told: BTreeMap<&str, &str> = document
        .lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
            (cells.len() == 7 && cells[4].len() == 40).then(|| (cells[4], cells[5]))
        })
        .collect();
    let known: BTreeMap<&str, &str> =
        NATIVES.iter().flat_map(|native| native.bodies.iter().map(|body| (body.sha1, native.name))).collect();
    assert_eq!(told, known);
    for native in NATIVES {
        assert!(
            document.contains(&format!("- `{}` (", native.name)),
            "docs/scripts.md does not say what {} does",
            native.name
        );
    }
    for (name, body) in fixtures() {
        assert!(told.contains_key(sha1_of(&body).as_str()), "{name}");
    }
}

fn sha1_of_fixture(name: &str) -> String {
    sha1_of(&fixtures().into_iter().find(|(fixture, _)| fixture == name).unwrap().1)
}

#[test]
fn keys_of_several_shards_are_refused_and_nothing_is_written() {
    let broker = TestBroker::in_memory(&["--shards", "4"]);
    let mut client = broker.client();
    let acquire = sha1_of_fixture("redlock/acquire-5.0.0-beta.1-beta.2.lua");
    let usage = sha1_of_fixture("upstash-ratelimit/sliding-window-remaining-1.2.1-2.0.5.lua");
    let apart = b"-CROSSSLOT Keys in request don't hash to the same slot\r\n";
    // The slots of "a" and "c" are in different quarters.
    assert_eq!(client.ask(["EVALSHA", &acquire, "2", "a", "c", "tok", "100000"]), apart);
    assert_eq!(client.ask(["EVALSHA", &usage, "2", "a", "c", "5", "100"]), apart);
    assert_eq!(client.ask(["EXISTS", "a", "c"]), b":0\r\n");
    assert_eq!(client.ask(["EVALSHA", &acquire, "2", "{a}1", "{a}2", "tok", "100000"]), b":2\r\n");
    assert_eq!(client.ask(["EVALSHA", &usage, "2", "{b}1", "{b}2", "5", "100"]), b":0\r\n");
}

#[test]
fn a_script_is_one_batch_and_what_it_did_before_its_error_is_in_it() {
    let broker = TestBroker::durable();
    let mut client = broker.client();
    assert_eq!(client.ask(["SET", "k", "0"]), b"+OK\r\n");
    let acquire = sha1_of_fixture("redlock/acquire-5.0.0-beta.1-beta.2.lua");
    let before = client.info("hearth_batches");
    assert_eq!(client.ask(["EVALSHA", &acquire, "3", "a", "b", "c", "tok", "100000"]), b":3\r\n");
    assert_eq!(client.info("hearth_batches"), before + 1);
    let increment = sha1_of_fixture("limits/incr-expire-1.6.lua");
    let reply = client.ask(["EVALSHA", &increment, "1", "count", "soon"]);
    let fault = format!("-ERR value is not an integer or out of range script: {increment}, on @user_script:5.\r\n");
    assert_eq!(reply.escape_ascii().to_string(), fault.as_bytes().escape_ascii().to_string());
    assert_eq!(client.info("hearth_batches"), before + 2);
    assert_eq!(client.ask(["GET", "count"]), b"$1\r\n1\r\n");
}

#[test]
fn a_script_waits_for_a_value_that_is_on_disk() {
    let broker = TestBroker::durable();
    let mut client = broker.client();
    let token = "t".repeat(100_000);
    assert_eq!(client.ask(["SET", "k", &token]), b"+OK\r\n");
    broker.forget_cached_files();
    let release = sha1_of_fixture("redis-py/release-2.10.6-8.1.0.lua");
    let other = "u".repeat(100_000);
    assert_eq!(client.ask(["EVALSHA", &release, "1", "k", &other]), b":0\r\n");
    assert_eq!(client.ask(["EVALSHA", &release, "1", "k", &token]), b":1\r\n");
    assert_eq!(client.ask(["EXISTS", "k"]), b":0\r\n");
}
