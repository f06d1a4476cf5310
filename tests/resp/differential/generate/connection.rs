//! Generators of the commands on connections and the server, and of what is no command.
//!
//! Promise: nothing said here closes a connection or changes a setting of the server. Must never know what is answered.

use crate::differential::generate::Generator;
use crate::differential::generate::maker::{Maker, State, plainly, say};
use crate::differential::generate::words;
use crate::differential::label::KNOWN;

/// Each command with its weight: roughly how many kinds of replies it has.
pub const COMMANDS: &[(usize, Generator)] = &[
    (24, ping),
    (22, echo),
    (36, select),
    (145, hello),
    (6, |m| plainly!(m, &["RESET"])),
    (310, client),
    (150, command),
    (34, config),
    (24, |m| plainly!(m, &["TIME"])),
    (18, unknown),
    (245, wrong_count),
];

fn ping(m: &mut Maker) {
    let value = m.value();
    if m.dice.percent(50) { plainly!(m, &["PING"]) } else { say!(m, "PING", value) }
}

fn echo(m: &mut Maker) {
    let value = m.value();
    say!(m, "ECHO", value);
}

fn select(m: &mut Maker) {
    let wrong = m.dice.text(&[
        "16",
        "-1",
        "100",
        "abc",
        "",
        "1.5",
        "99999999999",
        "-3000000000",
        "2147483648",
        "01",
        " 1",
        "9223372036854775808",
    ]);
    if m.dice.percent(40) {
        return plainly!(m, &["SELECT", wrong]);
    }
    let database = if m.dice.percent(60) { 0 } else { *m.dice.pick(&[1, 2, 9, 15]) };
    plainly!(m, &["SELECT", &database.to_string()]);
    // In a transaction it may not come to pass; nothing but the choice of keys to wait for depends on it.
    let connection = m.connection;
    m.databases[connection] = database;
}

fn hello(m: &mut Maker) {
    let version = if m.dice.percent(60) { "3" } else { "2" };
    match m.dice.below(16) {
        0 => plainly!(m, &["HELLO"]),
        1..6 => plainly!(m, &["HELLO", version]),
        6 => plainly!(m, &["hello", version, "AUTH", "default", "anything"]),
        7 => plainly!(m, &["HELLO", version, "SETNAME", "somebody"]),
        8 => plainly!(m, &["HELLO", version, "setname", "me", "auth", "default", "x"]),
        9 | 10 => plainly!(m, &["HELLO", m.dice.text(&["4", "1", "0", "-3", "9223372036854775807"])]),
        11 => plainly!(m, &["HELLO", m.dice.text(words::NO_INTEGERS)]),
        12 => plainly!(m, &["HELLO", version, "SETNAME", "some body"]),
        13 => plainly!(m, &["HELLO", version, "AUTH", "nobody", "x"]),
        _ => {
            let tails: [&[&str]; 5] =
                [&["FOO"], &["SETNAME"], &["AUTH", "default"], &["SETNAME", "a", "FOO"], &["AUTH"]];
            plainly!(m, &[&["HELLO", version], tails[m.dice.below(5)]].concat());
        }
    }
}

fn client(m: &mut Maker) {
    const WRONG: &[&[&str]] = &[
        &["FOO"],
        &[""],
        &["SETNAMES", "a"],
        &["GETNAME", "a"],
        &["SETNAME"],
        &["SETNAME", "a", "b"],
        &["ID", "1"],
        &["NO-EVICT"],
        &["NO-EVICT", "maybe"],
        &["REPLY"],
        &["REPLY", "maybe"],
        &["REPLY", "ON", "ON"],
        &["KILL"],
        &["KILL", "127.0.0.1:1"],
        &["KILL", ""],
        &["KILL", "ID", "abc"],
        &["KILL", "ID", "-1"],
        &["KILL", "ID", "0"],
        &["KILL", "ID", "9223372036854775807"],
        &["KILL", "TYPE", "nothing"],
        &["KILL", "USER", "nobody"],
        &["KILL", "ADDR", "127.0.0.1:1"],
        &["KILL", "LADDR", "127.0.0.1:1"],
        &["KILL", "SKIPME", "maybe"],
        &["KILL", "FOO", "bar"],
        &["KILL", "ID", "1000000", "SKIPME"],
        &["KILL", "ID", "1000000000", "TYPE", "normal", "SKIPME", "yes"],
    ];
    let name = m.dice.text(&["somebody", "", "a", "me:1", "some body", "line\n", "gr\u{fc}n", "~", "\u{7f}"]);
    match m.dice.below(10) {
        0 | 1 => plainly!(m, &["CLIENT", "GETNAME"]),
        2 | 3 => plainly!(m, &["CLIENT", "SETNAME", name]),
        4 => plainly!(m, &["client", "id"]),
        5 => plainly!(m, &["CLIENT", "NO-EVICT", m.dice.text(&["on", "OFF"])]),
        6 => plainly!(m, &["CLIENT", "REPLY", m.dice.text(&["ON", "on"])]),
        _ => {
            let wrong = *m.dice.pick(WRONG);
            plainly!(m, &[&["CLIENT"], wrong].concat());
        }
    }
}

/// A name that the server may know, or not.
fn some_name(m: &mut Maker) -> String {
    let name = if m.dice.percent(85) { m.dice.text(KNOWN) } else { m.dice.text(&["foo", "", "gets"]) };
    String::from_utf8_lossy(&m.word(name)).into_owned()
}

fn command(m: &mut Maker) {
    let (name, other) = (some_name(m), some_name(m));
    match m.dice.below(13) {
        0..3 => plainly!(m, &["COMMAND", "INFO", &name]),
        3 => plainly!(m, &["COMMAND", "INFO", &name, &other]),
        4 => plainly!(m, &["COMMAND", "GETKEYS", &name]),
        5..7 => plainly!(m, &["COMMAND", "GETKEYS", &name, "a", "b", "c"]),
        7 => plainly!(m, &["COMMAND", "GETKEYS", &name, "a"]),
        8 => plainly!(m, &["COMMAND", m.dice.text(&["FOO", "", "COUNTS"])]),
        _ => {
            plainly!(
                m,
                &[&["COMMAND"], [&["GETKEYS"][..], &["COUNT", "a"], &["LIST", "a"], &["LIST", "b"]][m.dice.below(4)]]
                    .concat(),
            )
        }
    }
}

fn config(m: &mut Maker) {
    let names =
        ["maxmemory", "maxmemory-policy", "save", "appendonly", "timeout", "databases", "nothing-of-this-name", ""];
    match m.dice.below(10) {
        0..8 => plainly!(m, &["CONFIG", "GET", m.dice.text(&names)]),
        8 => plainly!(m, &["CONFIG", m.dice.text(&["FOO", "", "GETS"])]),
        _ => plainly!(m, &["CONFIG", "GET"]),
    }
}

/// Names that nobody knows, with arguments that an error text has to show.
fn unknown(m: &mut Maker) {
    if m.dice.percent(25) {
        let subcommand = m.dice.pick(&[&b"\xff\xfe"[..], b"nul\x00inside", b"line\r\nend\n", b"\r\n", b" "]).to_vec();
        let container = m.dice.text(&["CLIENT", "CONFIG", "COMMAND", "OBJECT", "MEMORY", "HELLO 3"]);
        let mut words: Vec<Vec<u8>> = container.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        words.push(subcommand);
        return m.say(words);
    }
    let long = "F".repeat(200);
    let name: &[u8] = match m.dice.below(10) {
        0 => b"",
        1 => long.as_bytes(),
        2 => b"FOO\r\nBAR",
        3 => b"nul\x00inside",
        4 => b"\xff\xfe",
        5 => b"GETS",
        6 => b"get ",
        7 => "gr\u{fc}n".as_bytes(),
        _ => b"FOO",
    };
    let mut words = vec![name.to_vec()];
    for _ in 0..m.dice.below(5) {
        let value = m.value();
        words.push(if m.dice.percent(30) { m.key() } else { value });
    }
    m.say(words);
}

/// A command that is known with a number of arguments that it does not take, for most of them.
fn wrong_count(m: &mut Maker) {
    const LEAST: &[(&str, usize, usize)] = &[
        ("GET", 1, 1),
        ("SET", 2, 99),
        ("SETNX", 2, 2),
        ("SETEX", 3, 3),
        ("PSETEX", 3, 3),
        ("GETSET", 2, 2),
        ("GETDEL", 1, 1),
        ("GETEX", 1, 99),
        ("MGET", 1, 99),
        ("MSET", 2, 99),
        ("MSETNX", 2, 99),
        ("STRLEN", 1, 1),
        ("INCR", 1, 1),
        ("DECR", 1, 1),
        ("INCRBY", 2, 2),
        ("DECRBY", 2, 2),
        ("INCRBYFLOAT", 2, 2),
        ("APPEND", 2, 2),
        ("GETRANGE", 3, 3),
        ("SUBSTR", 3, 3),
        ("SETRANGE", 3, 3),
        ("DEL", 1, 99),
        ("UNLINK", 1, 99),
        ("EXISTS", 1, 99),
        ("TOUCH", 1, 99),
        ("TYPE", 1, 1),
        ("TTL", 1, 1),
        ("PTTL", 1, 1),
        ("EXPIRE", 2, 99),
        ("PEXPIRE", 2, 99),
        ("EXPIREAT", 2, 99),
        ("PEXPIREAT", 2, 99),
        ("EXPIRETIME", 1, 1),
        ("PEXPIRETIME", 1, 1),
        ("PERSIST", 1, 1),
        ("KEYS", 1, 1),
        ("SCAN", 1, 99),
        ("DBSIZE", 0, 0),
        ("RANDOMKEY", 0, 0),
        ("RENAME", 2, 2),
        ("RENAMENX", 2, 2),
        ("COPY", 2, 99),
        ("OBJECT", 1, 99),
        ("MEMORY", 1, 99),
        ("WAIT", 2, 2),
        ("PING", 0, 1),
        ("ECHO", 1, 1),
        ("SELECT", 1, 1),
        ("RESET", 0, 0),
        ("CLIENT", 1, 99),
        ("CONFIG", 1, 99),
        ("TIME", 0, 0),
        ("MULTI", 0, 0),
        ("EXEC", 0, 0),
        ("DISCARD", 0, 0),
        ("WATCH", 1, 99),
        ("UNWATCH", 0, 0),
    ];
    let (name, least, most) = *m.dice.pick(LEAST);
    // In a transaction each spoils it.
    if m.in_transaction && m.dice.percent(90) {
        return;
    }
    let count =
        if least == 0 || (most < 99 && m.dice.percent(50)) { most + m.dice.between(1, 3) } else { m.dice.below(least) };
    let mut words = vec![name.as_bytes().to_vec()];
    for _ in 0..count {
        words.push(m.given_just(State::Any));
    }
    m.say(words);
}
