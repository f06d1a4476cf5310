//! Every command of the table and its errors, script by script, byte by byte. What is no request is in `abuse`.
//!
//! Promise: the same bytes come back however the network cuts what is sent: whole, in two writes at every place, one
//! byte a write.

#![expect(clippy::disallowed_methods, reason = "reads a document of the source tree")]

use crate::abuse::rows::requests_that_are_none;
use crate::broker::TestBroker;
use crate::client::{Client, bulk};
use crate::describe::command_infos;
use crate::script::{Expected, LONG_BYTES, Recording, Script, converse, probe, record, recording};
use crate::table::{commands, long_values, server_commands, unknown_commands};

/// Every key a script may leave behind.
const KEYS: [&[u8]; 5] = [b"k", b"a", b"b", b"", b"\x00\xff\r\n"];

fn clean(client: &mut Client) {
    client.ask([&[&b"DEL"[..]], &KEYS[..]].concat());
}

/// `script` whole, cut at every byte, and byte by byte. A script that is long is cut at its ends and here and there.
fn check(broker: &TestBroker, script: &Script, recording: &Recording) -> Result<(), String> {
    let expected = expected(script, recording);
    let name = script.name;
    let mut hand = broker.client();
    let mut run = |pieces: &mut dyn Iterator<Item = &[u8]>, how: &dyn std::fmt::Display| {
        clean(&mut hand);
        let reply = converse(&mut broker.client(), pieces, script.probed);
        if reply == expected {
            return Ok(());
        }
        let (got, wanted) = (reply.escape_ascii(), expected.escape_ascii());
        Err(format!("{name}, {how}:\n     got {got}\n  wanted {wanted}"))
    };
    let sent = script.sent.as_slice();
    run(&mut [sent].into_iter(), &"whole")?;
    let all = sent.len() <= LONG_BYTES;
    for cut in (1..sent.len()).filter(|cut| all || *cut < 48 || sent.len() - cut < 16 || cut % 9001 == 0) {
        let (front, back) = sent.split_at(cut);
        run(&mut [front, back].into_iter(), &format_args!("cut at {cut}"))?;
    }
    let one = if all { 1 } else { 997 };
    run(&mut sent.chunks(one), &format_args!("{one} bytes a write"))
}

pub fn expected(script: &Script, recording: &Recording) -> Vec<u8> {
    match &script.expected {
        Expected::Recorded => {
            let (sent, reply) = recording.get(script.name).unwrap_or_else(|| panic!("record {}", script.name));
            let same = script.sent.len() > LONG_BYTES || *sent == script.sent;
            assert!(same, "{} was recorded with other bytes: record it again", script.name);
            reply.clone()
        }
        Expected::Own(reply, reason) => {
            assert!(!reason.is_empty());
            // All but protocol errors leave the connection open.
            let closes = script.closes || String::from_utf8_lossy(reply).contains("Protocol error");
            let mut expected = crate::script::masked(reply.clone());
            if script.probed && !closes {
                expected.extend(probe().1);
            }
            expected
        }
    }
}

fn check_all(broker: &TestBroker, scripts: &[Script]) {
    let recording = recording();
    let wrong: Vec<String> = scripts.iter().filter_map(|script| check(broker, script, &recording).err()).collect();
    assert!(wrong.is_empty(), "{} of {} scripts\n{}", wrong.len(), scripts.len(), wrong.join("\n"));
    let mut client = broker.client();
    clean(&mut client);
    assert_eq!(client.ask(["INFO", "keyspace"]), bulk(b"# Keyspace\r\n"), "a script left a key that is not in KEYS");
}

#[test]
fn commands_answer_the_bytes_of_redis_however_they_are_cut() {
    check_all(&TestBroker::in_memory(&[]), &commands());
}

#[test]
fn commands_about_the_broker_answer_the_bytes_of_redis_however_they_are_cut() {
    check_all(&TestBroker::in_memory(&[]), &server_commands());
}

#[test]
fn unknown_commands_answer_the_text_of_redis_however_they_are_cut() {
    check_all(&TestBroker::in_memory(&[]), &unknown_commands());
}

#[test]
fn too_long_a_value_is_dropped_and_the_connection_stays() {
    check_all(&TestBroker::in_memory(&["--max-value", "16"]), &long_values());
}

#[test]
fn hello_and_info_tell_the_version_whose_behaviour_clients_may_expect() {
    let broker = TestBroker::in_memory(&[]);
    let mut client = broker.client();
    let hello = client.ask(["HELLO", "3"]);
    let head =
        b"%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.2.4\r\n$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:1\r\n";
    assert!(hello.starts_with(head), "{}", hello.escape_ascii());
    let info = String::from_utf8(client.ask(["INFO"])).unwrap();
    let (header, body) = info.split_once("\r\n").unwrap();
    assert_eq!(header, format!("={}", body.len() - 2), "INFO is a verbatim text in RESP3");
    assert!(body.starts_with("txt:# Server\r\n"));
    let port = broker.address.port().to_string();
    for (field, value) in [
        ("redis_version", "7.2.4"),
        ("redis_mode", "standalone"),
        ("tcp_port", &port),
        ("connected_clients", "1"),
        ("maxmemory_policy", "noeviction"),
        ("loading", "0"),
        ("role", "master"),
        ("cluster_enabled", "0"),
    ] {
        assert!(body.contains(&format!("\r\n{field}:{value}\r\n")), "{field} in {body}");
    }
    for field in ["hearth_version", "run_id", "process_id", "used_memory", "uptime_in_seconds", "keyspace_hits"] {
        assert!(body.contains(&format!("\r\n{field}:")), "{field} in {body}");
    }
}

#[test]
fn info_gives_the_sections_that_are_asked_for() {
    let broker = TestBroker::in_memory(&[]);
    let mut client = broker.client();
    let mut titles = |sections: &[&str]| -> Vec<String> {
        let reply = client.ask([&["INFO"], sections].concat());
        let text = String::from_utf8(reply).unwrap();
        text.lines().filter_map(|line| line.strip_prefix("# ")).map(str::to_owned).collect()
    };
    let all = ["Server", "Clients", "Memory", "Persistence", "Stats", "Replication", "Cluster", "Keyspace"];
    assert_eq!(titles(&[]), all);
    assert_eq!(titles(&["all"]), all);
    assert_eq!(titles(&["EVERYTHING"]), all);
    assert_eq!(titles(&["cluster", "Server"]), ["Server", "Cluster"]);
    assert_eq!(titles(&["nothing"]), [""; 0]);
}

#[test]
fn info_counts_keys_and_hits() {
    let broker = TestBroker::in_memory(&[]);
    let mut client = broker.client();
    for text in ["SET k 1", "SET a 1 EX 1000", "GET k", "GET k", "GET nothing"] {
        client.ask(text.split(' ').collect::<Vec<_>>());
    }
    assert_eq!(client.ask(["INFO", "keyspace"]), bulk(b"# Keyspace\r\ndb0:keys=2,expires=1,avg_ttl=0\r\n"));
    assert_eq!((client.info("keyspace_hits"), client.info("keyspace_misses")), (2, 1));
}

#[test]
fn command_lists_itself_in_full() {
    let broker = TestBroker::in_memory(&[]);
    let mut client = broker.client();
    let names = String::from_utf8(client.ask(["COMMAND", "LIST"])).unwrap();
    let listed: Vec<&str> = names.lines().filter(|line| !line.starts_with(['*', '$'])).collect();
    assert_eq!(names.lines().next(), Some(format!("*{}", listed.len()).as_str()));
    // Subcommands are told within their containers.
    let listed: Vec<&str> = listed.into_iter().filter(|name| !name.contains('|')).collect();
    assert_eq!(client.ask(["COMMAND", "COUNT"]), format!(":{}\r\n", listed.len()).into_bytes());
    let all = client.ask(["COMMAND"]);
    assert_eq!(all, client.ask(["COMMAND", "INFO"]));
    assert_eq!(all, client.ask([&["COMMAND", "INFO"], &listed[..]].concat()));
    assert_eq!(client.ask(["COMMAND", "DOCS"]), client.ask([&["COMMAND", "DOCS"], &listed[..]].concat()));
}

#[test]
fn every_command_of_the_table_has_a_script() {
    let broker = TestBroker::in_memory(&[]);
    let names = String::from_utf8(broker.client().ask(["COMMAND", "LIST"])).unwrap();
    let scripts = commands().into_iter().chain(server_commands());
    let sent: Vec<String> = scripts.map(|script| String::from_utf8_lossy(&script.sent).to_ascii_lowercase()).collect();
    // What these tell is never twice the same, or Hearth's own; they are looked at elsewhere.
    let elsewhere = ["client|info", "client|list", "hearth.info", "lastsave", "lolwut", "time"];
    let of_others = |name: &str| ["object", "memory", "script"].contains(&name.split('|').next().unwrap_or_default());
    for name in names.lines().filter(|line| !line.starts_with(['*', '$'])) {
        if elsewhere.contains(&name) || (name.contains('|') && of_others(name)) {
            continue;
        }
        let words = name.split('|').map(|word| format!("\r\n${}\r\n{word}", word.len()));
        let as_first = words.collect::<String>() + "\r\n";
        assert!(sent.iter().any(|sent| sent.contains(&as_first)), "no script sends {name}");
    }
}

#[test]
fn no_two_scripts_have_one_name() {
    let scripts =
        [commands(), server_commands(), command_infos(), unknown_commands(), requests_that_are_none(), long_values()]
            .into_iter()
            .flatten();
    let mut names: Vec<&str> = scripts.map(|script| script.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

/// Each reply that is not redis-server's has its name and its reason in docs/resp.md.
#[test]
fn every_reply_that_differs_is_a_named_line_of_the_document() {
    let document = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/resp.md");
    let text = std::fs::read_to_string(document).unwrap();
    let scripts = [commands(), unknown_commands(), requests_that_are_none(), long_values()].into_iter().flatten();
    let lines = scripts.filter_map(|script| match script.expected {
        Expected::Own(_, reason) => Some(format!("| `{}` | {reason} |", script.name)),
        Expected::Recorded => None,
    });
    let missing: Vec<String> = lines.filter(|line| !text.contains(line.as_str())).collect();
    assert!(missing.is_empty(), "docs/resp.md lacks\n{}", missing.join("\n"));
}

/// Writes `recorded.txt` when asked to by `HEARTH_RECORD=1`.
#[test]
fn record_from_redis_when_asked() {
    if std::env::var_os("HEARTH_RECORD").is_some() {
        let scripts: Vec<Script> =
            [commands(), server_commands(), command_infos(), unknown_commands(), requests_that_are_none()]
                .into_iter()
                .flatten()
                .collect();
        record(&scripts, clean);
    }
}
