//! Generators of the commands on strings.
//!
//! Promise: each command is said in every form, right and wrong, and on keys in every state it tells apart. Must never
//! know what is answered.

use crate::differential::generate::Generator;
use crate::differential::generate::maker::{Maker, State, say};
use crate::differential::generate::words;

use State::{Absent, Any, Dated, Empty, Float, Integer, Lasting, Text};

/// Each command with its weight: roughly how many kinds of replies it has.
pub const COMMANDS: &[(usize, Generator)] = &[
    (20, get),
    (600, set),
    (60, wrong_set),
    (28, setnx),
    (28, |m| setex(m, "SETEX")),
    (28, |m| setex(m, "PSETEX")),
    (28, getset),
    (28, getdel),
    (160, getex),
    (26, mget),
    (26, mset),
    (28, msetnx),
    (28, strlen),
    (26, |m| increment(m, "INCR")),
    (26, |m| increment(m, "DECR")),
    (34, |m| increment_by(m, "INCRBY")),
    (38, |m| increment_by(m, "DECRBY")),
    (28, append),
    (30, |m| range(m, "GETRANGE")),
    (24, |m| range(m, "SUBSTR")),
    (50, setrange),
    (48, increment_by_float),
];

fn get(m: &mut Maker) {
    let key = m.given(&[Any, Absent, Text, Empty]);
    say!(m, "GET", key);
}

/// A way to say when a key expires: the option and its number.
fn expiry(m: &mut Maker) -> Vec<Vec<u8>> {
    let (word, number) = match m.dice.below(13) {
        0 | 1 => ("EX", m.lasting_s()),
        2 | 3 => ("PX", m.lasting_ms()),
        4 | 5 => ("EXAT", words::far_ahead_s(&mut m.dice).to_string()),
        6 | 7 => ("PXAT", (words::far_ahead_s(&mut m.dice) * 1000 + m.dice.roll() % 1000).to_string()),
        8 | 9 => ("EXAT", words::past_s(&mut m.dice).to_string()),
        10 | 11 => ("PXAT", (words::past_s(&mut m.dice) * 1000).to_string()),
        _ if m.dice.percent(50) => ("PXAT", "9223372036854775807".to_owned()),
        _ => ("EX", "9000000000000000".to_owned()),
    };
    vec![m.word(word), number.into_bytes()]
}

/// A number that no expiry can have.
pub fn wrong_number(m: &mut Maker) -> &'static str {
    const TOO_MUCH: &[&str] = &[
        "0",
        "-1",
        "9223372036854775807",
        "9223372036854775",
        "9223372036854776",
        "-9223372036854775808",
        "9223372036854770000",
    ];
    if m.dice.percent(60) { m.dice.text(TOO_MUCH) } else { m.dice.text(words::NO_INTEGERS) }
}

fn set(m: &mut Maker) {
    let key = m.given(&[Any, Any, Absent, Absent, Text, Lasting, Dated]);
    let mut options: Vec<Vec<Vec<u8>>> = Vec::new();
    for _ in 0..m.dice.between(1, 2) {
        match m.dice.below(3) {
            0 => options.push(vec![m.word("NX")]),
            1 => options.push(vec![m.word("XX")]),
            _ => {}
        }
        if !options.is_empty() {
            break;
        }
    }
    if m.dice.percent(50) {
        options.push(vec![m.word("GET")]);
    }
    match m.dice.below(14) {
        0 | 1 => {}
        2 | 3 => options.push(vec![m.word("KEEPTTL")]),
        _ => options.push(expiry(m)),
    }
    if !options.is_empty() && m.dice.percent(10) {
        let again = m.dice.pick(&options).clone();
        options.push(again);
    }
    m.dice.shuffle(&mut options);
    let value = m.value();
    m.say([vec![b"SET".to_vec(), key, value], options.concat()].concat());
}

/// Options that exclude each other, lack a number, have a wrong one or are none.
fn wrong_set(m: &mut Maker) {
    let key = m.given(&[Any, Text]);
    let value = m.value();
    let mut words = vec![b"SET".to_vec(), key, value];
    let option = m.dice.text(&["EX", "PX", "EXAT", "PXAT"]);
    let wrong = wrong_number(m);
    let tail: Vec<&str> = match m.dice.below(12) {
        0 => vec!["NX", "XX"],
        1 => vec!["EX", "100", "PX", "100"],
        2 => vec!["KEEPTTL", option, "100"],
        3 => vec![option],
        4 => vec![m.dice.text(&["FOO", "", "N", "NXX", "EXX", "PERSIST", "0", "GT"])],
        5 => vec!["GET", option, wrong],
        6 => vec!["XX", option, wrong, "NX"],
        7 => vec![option, option],
        _ => vec![option, wrong],
    };
    words.extend(tail.iter().map(|word| m.word(word)));
    m.say(words);
}

fn setnx(m: &mut Maker) {
    let key = m.given(&[Any, Absent, Lasting]);
    let value = m.value();
    say!(m, "SETNX", key, value);
}

fn setex(m: &mut Maker, name: &str) {
    let key = m.given(&[Any, Lasting]);
    let value = m.value();
    let number = if m.dice.percent(45) { wrong_number(m).to_owned() } else { m.lasting_ms() };
    say!(m, name, key, number, value);
}

fn getset(m: &mut Maker) {
    let key = m.given(&[Any, Absent, Lasting, Empty]);
    let value = m.value();
    say!(m, "GETSET", key, value);
}

fn getdel(m: &mut Maker) {
    let key = m.given(&[Any, Absent, Text, Lasting, Empty]);
    say!(m, "GETDEL", key);
}

fn getex(m: &mut Maker) {
    let key = m.given(&[Any, Text, Text, Empty, Absent, Lasting, Dated]);
    let mut words = vec![b"GETEX".to_vec(), key];
    match m.dice.below(20) {
        0 | 1 => {}
        2..5 => words.push(m.word("PERSIST")),
        5..14 => words.extend(expiry(m)),
        14 => words.extend([m.word("PERSIST"), m.word("EX"), b"100".to_vec()]),
        15 => {
            let wrong = m.dice.text(&["EX", "FOO", "KEEPTTL", "PXAT", ""]);
            words.push(m.word(wrong));
        }
        16 => words.extend([m.word("PX"), b"100000".to_vec(), m.word("EXAT"), b"4100000000".to_vec()]),
        _ => {
            let option = m.dice.text(&["EX", "PX", "EXAT", "PXAT"]);
            let wrong = wrong_number(m);
            words.extend([m.word(option), wrong.as_bytes().to_vec()]);
        }
    }
    m.say(words);
}

fn mget(m: &mut Maker) {
    let mut words = vec![b"MGET".to_vec(), m.given(&[Any, Absent, Text])];
    words.extend(m.several_keys(8));
    m.say(words);
}

fn pairs(m: &mut Maker, name: &str) -> Vec<Vec<u8>> {
    let mut words = vec![name.as_bytes().to_vec()];
    for _ in 0..m.dice.between(1, 5) {
        words.extend([m.key(), m.value()]);
    }
    if m.dice.percent(12) {
        words.push(m.key());
    }
    words
}

fn mset(m: &mut Maker) {
    let words = pairs(m, "MSET");
    m.say(words);
}

fn msetnx(m: &mut Maker) {
    let mut words = pairs(m, "MSETNX");
    if m.dice.percent(50) {
        // All of them away, so that it can succeed.
        let mut keys: Vec<Vec<u8>> = words[1..].iter().step_by(2).cloned().collect();
        keys.insert(0, b"DEL".to_vec());
        m.say(keys);
        if m.dice.percent(20) && words.len() > 3 {
            words.extend([words[1].clone(), b"again".to_vec()]);
        }
    }
    m.say(words);
}

fn strlen(m: &mut Maker) {
    let key = m.given(&[Any, Absent, Text, Empty, Integer]);
    say!(m, "STRLEN", key);
}

/// A key whose value is what counting has to do with.
fn counter(m: &mut Maker) -> Vec<u8> {
    match m.dice.below(10) {
        0..4 => m.given(&[Any, Absent, Integer, Lasting, Float]),
        4..7 => m.given(&[Integer]),
        rest => {
            let key = m.key();
            let value = if rest < 9 { m.dice.text(words::EDGES) } else { m.dice.text(words::NO_INTEGERS) };
            say!(m, "SET", key, value);
            key
        }
    }
}

fn increment(m: &mut Maker, name: &str) {
    let key = if m.dice.percent(20) {
        let key = m.key();
        let edge = if name == "INCR" { "9223372036854775807" } else { "-9223372036854775808" };
        say!(m, "SET", key, edge);
        key
    } else {
        counter(m)
    };
    say!(m, name, key);
}

fn increment_by(m: &mut Maker, name: &str) {
    let key = counter(m);
    let by = match m.dice.below(10) {
        0..5 => words::integer(&mut m.dice),
        5..8 => (m.dice.text(words::EDGES)).to_owned(),
        8 if name == "DECRBY" => "-9223372036854775808".to_owned(),
        _ => (m.dice.text(words::NO_INTEGERS)).to_owned(),
    };
    say!(m, name, key, by);
}

fn append(m: &mut Maker) {
    let key = m.given(&[Any, Absent, Integer, Lasting]);
    let value = m.value();
    say!(m, "APPEND", key, value);
}

fn offset(m: &mut Maker) -> String {
    match m.dice.below(12) {
        0..5 => m.dice.between(0, 12).to_string(),
        5..9 => format!("-{}", m.dice.between(0, 12)),
        9 => m.dice.between(20, 1000).to_string(),
        10 => (m.dice.text(words::EDGES)).to_owned(),
        _ => (m.dice.text(words::NO_INTEGERS)).to_owned(),
    }
}

fn range(m: &mut Maker, name: &str) {
    let key = m.given(&[Any, Absent, Text, Text, Integer]);
    let (start, end) = (offset(m), offset(m));
    say!(m, name, key, start, end);
}

fn setrange(m: &mut Maker) {
    let key = m.given(&[Any, Absent, Text, Integer, Lasting]);
    let offset = match m.dice.below(12) {
        0..6 => m.dice.between(0, 20).to_string(),
        6 => m.dice.between(100, 3000).to_string(),
        7 => format!("-{}", m.dice.between(1, 12)),
        8 => (m.dice.text(&["-1", "-9223372036854775808"])).to_owned(),
        9 => (m.dice.text(&["536870912", "536870913", "9223372036854775807", "4294967296", "9223372036854775800"]))
            .to_owned(),
        _ => (m.dice.text(words::NO_INTEGERS)).to_owned(),
    };
    let value = if m.dice.percent(20) { Vec::new() } else { m.value() };
    say!(m, "SETRANGE", key, offset, value);
}

fn increment_by_float(m: &mut Maker) {
    let key = m.key();
    match m.dice.below(8) {
        0 => say!(m, "DEL", key),
        1 => {
            let value = m.value();
            say!(m, "SET", key, value);
        }
        2 => {
            let value = m.dice.text(words::NO_FLOATS);
            say!(m, "SET", key, value);
        }
        3 => {
            let value = m.dice.text(words::INFINITIES);
            say!(m, "SET", key, value);
        }
        _ => {
            let value = words::float(&mut m.dice);
            say!(m, "SET", key, value);
        }
    }
    let by = match m.dice.below(10) {
        0..6 => words::float(&mut m.dice),
        6 => (m.dice.text(words::NO_FLOATS)).to_owned(),
        7 | 8 => (m.dice.text(words::INFINITIES)).to_owned(),
        _ => words::integer(&mut m.dice),
    };
    say!(m, "INCRBYFLOAT", key, by);
    // Sums of sums.
    for _ in 0..m.dice.below(3) {
        let by = words::float(&mut m.dice);
        say!(m, "INCRBYFLOAT", key, by);
    }
}
