//! Generators of the commands on keys and databases, and of the steps that wait for a key to lapse.
//!
//! Promise: each command is said in every form, right and wrong, and on keys in every state it tells apart. Must never
//! know what is answered.

use crate::differential::generate::Generator;
use crate::differential::generate::maker::{Maker, State, plainly, say};
use crate::differential::generate::strings::wrong_number;
use crate::differential::generate::words;
use crate::differential::sequence::{Request, Step};
use crate::differential::side::HAND;

use State::{Absent, Any, Dated, Empty, Integer, Lasting, Text};

/// Each command with its weight: roughly how many kinds of replies it has.
pub const COMMANDS: &[(usize, Generator)] = &[
    (28, |m| several(m, "DEL")),
    (28, |m| several(m, "UNLINK")),
    (28, |m| several(m, "EXISTS")),
    (28, |m| several(m, "TOUCH")),
    (28, |m| on_one_key(m, "TYPE")),
    (28, |m| on_one_key(m, "TTL")),
    (28, |m| on_one_key(m, "PTTL")),
    (28, |m| on_one_key(m, "EXPIRETIME")),
    (28, |m| on_one_key(m, "PEXPIRETIME")),
    (28, |m| on_one_key(m, "PERSIST")),
    (275, |m| expire(m, "EXPIRE")),
    (275, |m| expire(m, "PEXPIRE")),
    (275, |m| expire(m, "EXPIREAT")),
    (275, |m| expire(m, "PEXPIREAT")),
    (22, keys),
    (56, scan),
    (72, scan_to_the_end),
    (28, |m| plainly!(m, &["DBSIZE"])),
    (34, |m| flush(m, "FLUSHDB")),
    (34, |m| flush(m, "FLUSHALL")),
    (30, random_key),
    (30, |m| rename(m, "RENAME")),
    (30, |m| rename(m, "RENAMENX")),
    (80, copy),
    (195, object),
    (66, memory),
    (36, wait),
    (36, lapse),
    (4, lapse_while_watched),
];

fn several(m: &mut Maker, name: &str) {
    let mut words = vec![name.as_bytes().to_vec(), m.given(&[Any, Absent, Text, Lasting])];
    if m.dice.percent(60) {
        words.extend(m.several_keys(5));
    }
    if m.dice.percent(20) {
        // None of them is there.
        m.say([vec![b"DEL".to_vec()], words[1..].to_vec()].concat());
    }
    m.say(words);
}

fn on_one_key(m: &mut Maker, name: &str) {
    let key = m.given(&[Any, Absent, Text, Lasting, Dated]);
    say!(m, name, key);
}

/// When, for EXPIRE and its kin: mostly ahead, and every way not to be.
fn when(m: &mut Maker, name: &str) -> String {
    let (milliseconds, absolute) = (name.starts_with('P'), name.ends_with("AT"));
    let unit = if milliseconds { 1000 } else { 1 };
    match (m.dice.below(12), absolute) {
        (0..6, true) => (words::far_ahead_s(&mut m.dice) * unit).to_string(),
        (0..6, false) if milliseconds => m.lasting_ms(),
        (0..6, false) => m.lasting_s(),
        (6..9, true) => (words::past_s(&mut m.dice) * unit).to_string(),
        (6 | 7, false) => (m.dice.text(&["0", "-1", "-100000", "-1000000000000"])).to_owned(),
        (8 | 9, _) => {
            (m.dice.text(&["0", "-1", "-9223372036854775808", "-9223372036854775", "9000000000000000"])).to_owned()
        }
        _ => wrong_number(m).to_owned(),
    }
}

fn expire(m: &mut Maker, name: &str) {
    let flags: &[&str] = match m.dice.below(30) {
        28.. | 0..3 => &[],
        3..6 => &["NX"],
        6..8 => &["XX"],
        8..12 => &["GT"],
        12..15 => &["LT"],
        15..19 => &["XX", "GT"],
        19..25 => &["LT", "XX"],
        25 => [&["NX", "XX"], &["NX", "GT"], &["LT", "NX"], &["GT", "GT"]][m.dice.below(4)],
        26 => &["GT", "LT"],
        27 => [
            &["FOO"][..],
            &[""],
            &["XX", "BAR"],
            &["KEEPTTL"],
            &["NX", "XX", "GT", "LT"],
            &["line\r\nend\n"],
            &["nul\0inside"],
        ][m.dice.below(7)],
    };
    let key = match flags {
        [] | ["NX" | "XX"] => m.given(&[Any, Absent, Text, Text, Lasting, Dated, Dated]),
        // What is compared with another time needs one.
        _ if name.ends_with("AT") => m.given(&[Absent, Absent, Text, Lasting, Dated, Dated]),
        _ => m.given(&[Absent, Absent, Text, Lasting, Lasting, Dated]),
    };
    let when = if m.dice.percent(18) { "-1".to_owned() } else { when(m, name) };
    let mut words = vec![name.as_bytes().to_vec(), key, when.into_bytes()];
    words.extend(flags.iter().map(|flag| m.word(flag)));
    m.say(words);
}

fn keys(m: &mut Maker) {
    let glob = words::glob(&mut m.dice);
    if m.dice.percent(60) {
        m.given(&[Text]);
    }
    say!(m, "KEYS", glob);
}

/// Options of SCAN, all of them right.
fn scan_options(m: &mut Maker) -> Vec<Vec<u8>> {
    let mut options = Vec::new();
    if m.dice.percent(50) {
        let glob = words::glob(&mut m.dice);
        options.push(vec![m.word("MATCH"), glob.into_bytes()]);
    }
    if m.dice.percent(50) {
        options.push(vec![
            m.word("COUNT"),
            m.dice.text(&["1", "2", "10", "1000", "9223372036854775807"]).as_bytes().to_vec(),
        ]);
    }
    if m.dice.percent(40) {
        options.push(vec![
            m.word("TYPE"),
            m.dice.text(&["string", "STRING", "list", "hash", "zset", "nothing", ""]).as_bytes().to_vec(),
        ]);
    }
    m.dice.shuffle(&mut options);
    options.concat()
}

/// One SCAN in the middle of a pipeline: its form and its errors.
fn scan(m: &mut Maker) {
    let cursor = if m.dice.percent(75) {
        "0"
    } else {
        m.dice.text(&["", "abc", "1.5", " 0", "12345", "0x0", "18446744073709551616"])
    };
    let mut words = vec![b"SCAN".to_vec(), cursor.as_bytes().to_vec()];
    let tail: &[&str] = match m.dice.below(10) {
        0 => &["MATCH"],
        1 => [&["COUNT", "0"], &["COUNT", "-1"], &["COUNT", "-9223372036854775808"]][m.dice.below(3)],
        2 => [&["COUNT", "abc"], &["COUNT", "1.5"], &["COUNT", "9223372036854775808"], &["COUNT", ""]][m.dice.below(4)],
        3 => [&["FOO"][..], &["FOO", "bar"], &["NOVALUES"], &["TYPE"], &["COUNT"], &["MATCH", "*", "COUNT"]]
            [m.dice.below(6)],
        _ => &[],
    };
    if tail.is_empty() {
        words.extend(scan_options(m));
    } else {
        words.extend(tail.iter().map(|word| m.word(word)));
    }
    m.say(words);
}

fn scan_to_the_end(m: &mut Maker) {
    if m.in_transaction {
        return scan(m);
    }
    let (database, options) = (m.database(), scan_options(m));
    if m.dice.percent(40) {
        plainly!(m, &["FLUSHALL"]);
    }
    m.step(Step::Scan { database, options });
}

fn flush(m: &mut Maker, name: &str) {
    let word: &[&str] = match m.dice.below(10) {
        0..3 => &[],
        3..5 => &["ASYNC"],
        5..7 => &["SYNC"],
        _ => [&["NOW"][..], &[""], &["ASYNC", "SYNC"], &["SYNC", "SYNC"]][m.dice.below(4)],
    };
    // Most sequences keep what they have.
    if word.len() != 1 && m.dice.percent(50) {
        return;
    }
    let mut words = vec![name.as_bytes().to_vec()];
    words.extend(word.iter().map(|word| m.word(word)));
    m.say(words);
}

fn random_key(m: &mut Maker) {
    if m.dice.percent(50) && !m.in_transaction {
        let database = m.database();
        return m.step(Step::RandomKey { database });
    }
    if m.dice.percent(25) {
        plainly!(m, &["FLUSHDB"]);
    }
    plainly!(m, &["RANDOMKEY"]);
}

fn rename(m: &mut Maker, name: &str) {
    let from = m.given(&[Any, Absent, Text, Lasting, Dated]);
    let to = if m.dice.percent(15) { from.clone() } else { m.given(&[Any, Absent, Lasting]) };
    say!(m, name, from, to);
}

fn copy(m: &mut Maker) {
    let from = m.given(&[Any, Absent, Text, Text, Lasting, Dated]);
    let to = if m.dice.percent(15) { from.clone() } else { m.given(&[Any, Absent, Text]) };
    let mut words = vec![b"COPY".to_vec(), from, to];
    let mut options: Vec<Vec<Vec<u8>>> = Vec::new();
    if m.dice.percent(50) {
        let database = m.dice.text(&["0", "0", "1", "2", "15", "1", "16", "-1", "abc", "1.5", "99999999999999999999"]);
        options.push(vec![m.word("DB"), database.as_bytes().to_vec()]);
    }
    if m.dice.percent(50) {
        options.push(vec![m.word("REPLACE")]);
    }
    if m.dice.percent(8) {
        let wrong = m.dice.text(&["FOO", "DB", "", "REPLACE"]);
        options.push(vec![m.word(wrong)]);
    }
    m.dice.shuffle(&mut options);
    words.extend(options.concat());
    m.say(words);
}

fn object(m: &mut Maker) {
    let key = m.given(&[Any, Absent, Text, Integer, Empty]);
    let subcommand = m.dice.text(&["ENCODING", "ENCODING", "ENCODING", "FREQ", "IDLETIME", "REFCOUNT", "FOO"]);
    let subcommand = m.word(subcommand);
    if m.dice.percent(20) {
        // What was appended to is kept in another way.
        say!(m, "APPEND", key, "more");
    }
    match m.dice.below(14) {
        0 => say!(m, "OBJECT", subcommand),
        1 => say!(m, "OBJECT", subcommand, key, "more"),
        _ => say!(m, "OBJECT", subcommand, key),
    }
}

fn memory(m: &mut Maker) {
    let key = m.given(&[Any, Absent, Text]);
    let usage = m.word("USAGE");
    match m.dice.below(14) {
        0..6 => say!(m, "MEMORY", usage, key),
        6..8 => say!(m, "MEMORY", usage, key, "SAMPLES", m.dice.text(&["0", "5"])),
        8 => say!(m, "MEMORY", usage, key, "SAMPLES"),
        9 => say!(m, "MEMORY", usage, key, "SAMPLES", m.dice.text(&["-1", "abc", ""])),
        10 => say!(m, "MEMORY", usage, key, "FOO", "1"),
        11 => say!(m, "MEMORY", usage),
        _ => say!(m, "MEMORY", m.dice.text(&["FOO", "", "USAGES"]), key),
    }
}

fn wait(m: &mut Maker) {
    let (replicas, timeout) = match m.dice.below(10) {
        0..3 => ("0", "0"),
        3 => ("0", "1000"),
        4 => ("1", "1"),
        5 => ("-1", "0"),
        6 => ("1", "-1"),
        7 => (m.dice.text(words::NO_INTEGERS), "0"),
        8 => ("0", m.dice.text(words::NO_INTEGERS)),
        _ => ("0", "9223372036854775807"),
    };
    say!(m, "WAIT", replicas, timeout);
}

/// A key that lapses, by each of the ways to give it a time to live.
fn lapse(m: &mut Maker) {
    if m.in_transaction {
        return on_one_key(m, "TTL");
    }
    let key = if m.dice.percent(70) { m.given_just(Text) } else { m.key() };
    let database = m.database();
    let value = m.value();
    let words: [&[u8]; 5] = match m.dice.below(8) {
        0 | 1 => [b"PEXPIRE", &key, b"1", b"", b""],
        2 => [b"PEXPIRE", &key, b"3", b"XX", b""],
        3 => [b"PEXPIRE", &key, b"2", b"LT", b""],
        4 => [b"SET", &key, &value, b"PX", b"1"],
        5 => [b"PSETEX", &key, b"2", &value, b""],
        6 => [b"GETEX", &key, b"PX", b"1", b""],
        _ => [b"SET", &key, b"10", b"px", b"3"],
    };
    let last = words.iter().rposition(|word| !word.is_empty()).unwrap_or(0);
    let request = Request::of(&words[..=last]);
    m.step(Step::Lapse { connection: HAND, database, key: key.clone(), requests: vec![request] });
    // What is there of it afterwards is the point.
    for _ in 0..m.dice.between(1, 2) {
        on_lapsed(m, &key);
    }
}

/// Something that would tell a key that has lapsed from one that was never there.
fn on_lapsed(m: &mut Maker, key: &[u8]) {
    const PLAIN: &[&str] = &[
        "GET",
        "EXISTS",
        "TYPE",
        "TTL",
        "DEL",
        "INCR",
        "PERSIST",
        "GETDEL",
        "STRLEN",
        "PEXPIRETIME",
        "GETEX",
        "TOUCH",
        "UNLINK",
        "DECR",
    ];
    let other = m.key();
    match m.dice.below(32) {
        0 => say!(m, "SET", key, "v", "NX"),
        1 => say!(m, "SET", key, "v", "XX"),
        2 => say!(m, "SET", key, "v", "KEEPTTL", "GET"),
        3 => say!(m, "EXPIRE", key, "1000"),
        4 => say!(m, "SETNX", key, "v"),
        5 => say!(m, "KEYS", "*"),
        6 => say!(m, "RENAME", key, other),
        7 => say!(m, "RENAMENX", other, key),
        8 => say!(m, "COPY", key, other, "REPLACE"),
        9 => say!(m, "COPY", other, key),
        10 => say!(m, "MSETNX", key, "v", other, "w"),
        11 => say!(m, "APPEND", key, "v"),
        12 => say!(m, "SETRANGE", key, "2", "v"),
        13 => say!(m, "GETSET", key, "v"),
        14 => say!(m, "INCRBYFLOAT", key, "1.5"),
        15 => say!(m, "MGET", other, key),
        16 => say!(m, "GETRANGE", key, "0", "-1"),
        17 => say!(m, "OBJECT", "ENCODING", key),
        18 => say!(m, "PEXPIREAT", key, "4200000000000", "XX"),
        19 | 20 => plainly!(m, &["DBSIZE"]),
        _ => say!(m, m.dice.text(PLAIN), key),
    }
}

/// A key that is watched while it lapses, untouched by any command.
fn lapse_while_watched(m: &mut Maker) {
    if m.in_transaction {
        return;
    }
    let (key, value) = (m.key(), m.value());
    let (connection, database) = (m.connection, m.database());
    let requests = vec![
        Request::of([b"SET", key.as_slice(), &value, b"PX", b"25"]),
        Request::of([b"WATCH", key.as_slice()]),
        // Tells whether it was still there when it was watched.
        Request::of([b"PTTL", key.as_slice()]),
    ];
    plainly!(m, &["SELECT", &database.to_string()]);
    m.step(Step::Lapse { connection, database, key: key.clone(), requests });
    if m.dice.percent(30) {
        say!(m, "SET", key, "again");
    }
    plainly!(m, &["MULTI"]);
    say!(m, "GET", key);
    plainly!(m, &["EXEC"]);
}
