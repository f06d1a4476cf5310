//! What kind of request and what kind of reply it was: the cells that are counted.
//!
//! Promise: a cell's name is made of the request and redis-server's reply alone, and has no key, value or number of
//! either in it. Must never know what Hearth answered.

use crate::differential::reply::Reply;
use crate::differential::sequence::Request;

/// The commands that are compared.
pub const KNOWN: &[&str] = &[
    "append",
    "client",
    "command",
    "config",
    "copy",
    "dbsize",
    "decr",
    "decrby",
    "del",
    "discard",
    "echo",
    "exec",
    "exists",
    "expire",
    "expireat",
    "expiretime",
    "flushall",
    "flushdb",
    "get",
    "getdel",
    "getex",
    "getrange",
    "getset",
    "hello",
    "incr",
    "incrby",
    "incrbyfloat",
    "keys",
    "memory",
    "mget",
    "mset",
    "msetnx",
    "multi",
    "object",
    "persist",
    "pexpire",
    "pexpireat",
    "pexpiretime",
    "ping",
    "psetex",
    "pttl",
    "randomkey",
    "rename",
    "renamenx",
    "reset",
    "scan",
    "select",
    "set",
    "setex",
    "setnx",
    "setrange",
    "strlen",
    "substr",
    "time",
    "touch",
    "ttl",
    "type",
    "unlink",
    "unwatch",
    "wait",
    "watch",
];

const SUBCOMMANDS: &[&str] = &[
    "client|getname",
    "client|id",
    "client|kill",
    "client|no-evict",
    "client|reply",
    "client|setname",
    "command|getkeys",
    "command|info",
    "config|get",
    "memory|usage",
    "object|encoding",
    "object|freq",
    "object|idletime",
    "object|refcount",
];

/// The command in small letters, with its subcommand; `?` for what is no command.
pub fn command(request: &Request) -> &'static str {
    let name = request.capitals(0).to_ascii_lowercase();
    let Some(known) = KNOWN.iter().find(|known| **known == name) else { return "?" };
    let whole = format!("{name}|{}", request.capitals(1).to_ascii_lowercase());
    SUBCOMMANDS.iter().find(|subcommand| **subcommand == whole).unwrap_or(known)
}

/// The options that matter, in an order of their own.
fn options(command: &str, request: &Request) -> String {
    let words: Vec<String> = (0..request.0.len()).map(|at| request.capitals(at)).collect();
    let among = |from: usize, known: &[&'static str]| -> Vec<String> {
        let has = |word: &&&'static str| words.iter().skip(from).any(|given| given == *word);
        known.iter().filter(has).map(|word| word.to_ascii_lowercase()).collect()
    };
    let mut found = match command {
        "set" => among(3, &["NX", "XX", "GET", "KEEPTTL", "EX", "PX", "EXAT", "PXAT"]),
        "getex" => among(2, &["PERSIST", "EX", "PX", "EXAT", "PXAT"]),
        "expire" | "pexpire" | "expireat" | "pexpireat" => among(3, &["NX", "XX", "GT", "LT"]),
        "scan" => among(2, &["MATCH", "COUNT", "TYPE"]),
        "copy" => among(3, &["DB", "REPLACE"]),
        "flushall" | "flushdb" => among(1, &["ASYNC", "SYNC"]),
        "hello" => among(1, &["2", "3", "AUTH", "SETNAME"]),
        "memory|usage" => among(3, &["SAMPLES"]),
        "ping" => vec![["", "message"][usize::from(words.len() > 1)].to_owned()],
        "del" | "unlink" | "exists" | "touch" => vec![if words.len() > 2 { "several" } else { "one" }.to_owned()],
        "config|get" => vec![words[2..].concat().to_ascii_lowercase()],
        _ => Vec::new(),
    };
    if is_past(command, &words) {
        found.push("past".to_owned());
    }
    found.join("+")
}

/// Whether a request gives an expiry that has passed already.
pub fn gives_past(request: &Request) -> bool {
    let words: Vec<String> = (0..request.0.len()).map(|at| request.capitals(at)).collect();
    is_past(command(request), &words)
}

fn is_past(command: &str, words: &[String]) -> bool {
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<i64>().ok());
    let behind = |option: &str| words.iter().position(|word| word == option).and_then(|at| number(at + 1));
    let before = |when: Option<i64>, least: i64| when.is_some_and(|when| when < least);
    match command {
        "set" | "getex" => before(behind("EXAT"), 1_700_000_000) || before(behind("PXAT"), 1_700_000_000_000),
        "expire" | "pexpire" => before(number(2), 1),
        "expireat" => before(number(2), 1_700_000_000),
        "pexpireat" => before(number(2), 1_700_000_000_000),
        _ => false,
    }
}

/// Commands whose number is a value: it says nothing about what happened.
const VALUES: &[&str] = &[
    "append",
    "client|id",
    "dbsize",
    "decr",
    "decrby",
    "incr",
    "incrby",
    "memory|usage",
    "object|idletime",
    "object|refcount",
    "setrange",
    "strlen",
    "wait",
];

/// Commands for which nothing and something are two kinds of replies.
const EMPTY: &[&str] = &["get", "getdel", "getrange", "getset", "substr"];

/// The kind of a reply.
pub fn outcome(command: &str, reply: &Reply) -> String {
    match reply {
        Reply::Simple(text) => String::from_utf8_lossy(text).to_ascii_lowercase(),
        Reply::Error(text) => error(text),
        Reply::Integer(_) if VALUES.contains(&command) => "integer".to_owned(),
        Reply::Integer(number @ ..=1) => number.to_string(),
        Reply::Integer(_) => "more".to_owned(),
        Reply::Bulk(bytes) | Reply::Verbatim(bytes) if bytes.is_empty() && EMPTY.contains(&command) => {
            "empty".to_owned()
        }
        Reply::Bulk(bytes) if command == "object|encoding" => String::from_utf8_lossy(bytes).into_owned(),
        Reply::Bulk(_) | Reply::Verbatim(_) => "bulk".to_owned(),
        Reply::Nothing(_) => "nil".to_owned(),
        Reply::Array(parts) | Reply::Set(parts) | Reply::Map(parts) if parts.is_empty() => "nothing inside".to_owned(),
        Reply::Array(_) | Reply::Set(_) | Reply::Map(_) => "list".to_owned(),
        Reply::Other(_) => "not a reply".to_owned(),
    }
}

/// An error's text without what it quotes.
fn error(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let before_quote = text.split(['\'', ',', '.']).next().unwrap_or_default().trim_end();
    let words: Vec<&str> = before_quote.split(' ').take(8).collect();
    let told =
        if words.starts_with(&["ERR", "Unsupported", "option"]) { words[..3].join(" ") } else { words.join(" ") };
    format!("-{told}")
}

/// The name of the cell that a reply counts in.
pub fn cell(request: &Request, reply: &Reply) -> String {
    let command = command(request);
    let outcome = outcome(command, reply);
    let options = options(command, request);
    // An error and QUEUED do not depend on the options.
    if outcome.starts_with('-') && reply.error().is_some() || outcome == "queued" || options.is_empty() {
        format!("{command}: {outcome}")
    } else {
        format!("{command} {options}: {outcome}")
    }
}

#[test]
fn a_cell_names_command_options_and_outcome() {
    let of = |text: &str, reply: &[u8]| cell(&Request::of(text.split(' ')), &Reply::of(reply));
    assert_eq!(of("SET k v px 5 GET nx", b"$-1\r\n"), "set nx+get+px: nil");
    assert_eq!(of("SET k NX", b"+OK\r\n"), "set: ok");
    assert_eq!(of("set k v EXAT 1", b"+OK\r\n"), "set exat+past: ok");
    assert_eq!(of("EXPIRE k 5 FOO", b"-ERR Unsupported option FOO\r\n"), "expire: -ERR Unsupported option");
    assert_eq!(of("INCR k", b":7\r\n"), "incr: integer");
    assert_eq!(of("TTL k", b":-2\r\n"), "ttl: -2");
    assert_eq!(of("FOO", b"-ERR unknown command 'FOO', with\r\n"), "?: -ERR unknown command");
    assert_eq!(
        of("client kill", b"-ERR wrong number of arguments for 'client|kill' command\r\n"),
        "client|kill: -ERR wrong number of arguments for"
    );
}
