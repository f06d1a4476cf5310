//! Generators of transactions: whole ones, spoiled ones, watched keys changed or not, words at the wrong time.
//!
//! Promise: what is begun is mostly ended, so that later commands are not all queued. Must never know what is answered.

use crate::differential::generate::maker::{Maker, State, plainly, say};
use crate::differential::generate::{Generator, command, words};
use crate::differential::sequence::{Request, Step};
use crate::differential::side::HAND;

/// Each kind with its weight.
pub const COMMANDS: &[(usize, Generator)] = &[
    (265, transaction),
    (46, watched),
    (14, |m| plainly!(m, &["EXEC"])),
    (14, |m| plainly!(m, &["DISCARD"])),
    (10, |m| plainly!(m, &["UNWATCH"])),
    (10, watch),
    (2, |m| plainly!(m, &["MULTI"])),
];

fn watch(m: &mut Maker) {
    let keys = m.several_keys(3);
    watch_these(m, &keys);
}

/// WATCH, and EXISTS right behind it: whether a key was there is needed to judge what EXEC answers.
fn watch_these(m: &mut Maker, keys: &[Vec<u8>]) {
    m.say([&[b"WATCH".to_vec()], keys].concat());
    for key in keys {
        say!(m, "EXISTS", key);
    }
}

/// MULTI, commands, and an end.
fn transaction(m: &mut Maker) {
    if m.in_transaction {
        return plainly!(m, &["MULTI"]);
    }
    plainly!(m, &["MULTI"]);
    m.in_transaction = true;
    for _ in 0..m.dice.below(8) {
        match m.dice.below(110) {
            0 => plainly!(m, &["MULTI"]),
            1 => watch(m),
            2 => plainly!(m, &["UNWATCH"]),
            3 => plainly!(m, &["NOSUCH", "command"]),
            4 => plainly!(m, &["GET"]),
            _ => command(m),
        }
    }
    m.in_transaction = false;
    match m.dice.below(20) {
        0 | 1 => plainly!(m, &["DISCARD"]),
        2 => plainly!(m, &["RESET"]),
        _ => plainly!(m, &["EXEC"]),
    }
}

/// WATCH, something that may change the key, and a transaction that shows whether it counted.
fn watched(m: &mut Maker) {
    if m.in_transaction {
        return watch(m);
    }
    let key = m.given(&[State::Any, State::Absent, State::Text, State::Lasting, State::Integer]);
    let other = m.key();
    let watching = m.connection;
    let keys = if m.dice.percent(30) { vec![other, key.clone()] } else { vec![key.clone()] };
    watch_these(m, &keys);
    if m.dice.percent(50) {
        m.connection = 1 - watching;
        let database = m.databases[watching];
        if m.databases[m.connection] != database {
            plainly!(m, &["SELECT", &database.to_string()]);
            let connection = m.connection;
            m.databases[connection] = database;
        }
    }
    for _ in 0..m.dice.below(3) {
        meddle(m, &key);
    }
    m.connection = watching;
    if m.dice.percent(10) {
        plainly!(m, &["UNWATCH"]);
    }
    plainly!(m, &["MULTI"]);
    say!(m, "GET", key);
    if m.dice.percent(50) {
        let value = m.value();
        say!(m, "SET", key, value);
    }
    let end = if m.dice.percent(5) { "DISCARD" } else { "EXEC" };
    plainly!(m, &[end]);
}

/// Something that changes the key, or only looks as if.
fn meddle(m: &mut Maker, key: &[u8]) {
    let lasting = m.lasting_ms();
    match m.dice.below(26) {
        0 => say!(m, "SET", key, "changed"),
        1 => say!(m, "SET", key, "changed", "NX"),
        2 => say!(m, "SET", key, "changed", "XX"),
        3 => say!(m, "DEL", key),
        4 => say!(m, "GET", key),
        5 => say!(m, "TOUCH", key),
        6 => say!(m, "PEXPIRE", key, lasting),
        7 => say!(m, "PERSIST", key),
        8 => say!(m, "GETEX", key),
        9 => say!(m, "GETEX", key, "PERSIST"),
        10 => say!(m, "INCR", key),
        11 => say!(m, "APPEND", key, ""),
        12 => say!(m, "SETRANGE", key, "0", ""),
        13 => plainly!(m, &["FLUSHDB"]),
        14 => plainly!(m, &["FLUSHALL"]),
        15 => say!(m, "GETDEL", key),
        16 => say!(m, "PEXPIRE", key, lasting, "XX"),
        17 => say!(m, "EXPIREAT", key, "1"),
        18 => say!(m, "MSET", key, "changed", key, "again"),
        19 => say!(m, "UNLINK", key),
        20 => say!(m, "SETNX", key, "changed"),
        21 => say!(m, "INCRBY", key, "0"),
        22 => {
            let to = m.key();
            say!(m, "RENAME", key, to);
        }
        23 => {
            let from = m.key();
            say!(m, "COPY", from, key, "REPLACE");
        }
        24 => {
            let database = m.database();
            let request = Request::of([b"PEXPIRE", key, b"1"]);
            m.step(Step::Lapse { connection: HAND, database, key: key.to_vec(), requests: vec![request] });
        }
        _ => {
            let value = words::value(&mut m.dice);
            say!(m, "GETSET", key, value);
        }
    }
}
