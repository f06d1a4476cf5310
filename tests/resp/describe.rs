//! What COMMAND INFO says of each command, byte by byte as redis-server says it, and the shape of COMMAND DOCS.
//!
//! Promise: clients find keys, flags and categories where Redis puts them. What Redis does not have is left out; of a container
//! everything but the list of its subcommands is compared, for there are fewer, and then each of them.

use hearth::frontends::resp::command::Command;
use hearth::frontends::resp::table;

use crate::broker::TestBroker;
use crate::script::{Script, masked, recording};

/// What Redis 7.0 does not have.
const OWN: [&str; 6] = ["client|no-touch", "client|setinfo", "delex", "hearth.get", "hearth.info", "hearth.set"];

/// One for each command; they are compared here, and not cut at every byte.
pub fn command_infos() -> Vec<Script> {
    let shared = table::every().filter(|command| !OWN.contains(&command.name));
    let script = |command: &Command| {
        let name = command.name;
        Script::of(format!("command-info-of-{name}").leak(), &format!("HELLO 3 | COMMAND INFO {name}"))
    };
    shared.map(script).collect()
}

/// A reply up to the list of subcommands.
fn head(reply: &[u8], name: &str) -> Vec<u8> {
    let text = String::from_utf8_lossy(reply);
    let first = text.find(&format!("\r\n{name}|")).map_or(text.len(), |at| text[..at].rfind("*10\r\n").unwrap());
    let before = text[..first].strip_suffix("\r\n").unwrap();
    before.as_bytes()[..before.rfind("\r\n").unwrap()].to_vec()
}

#[test]
fn command_info_is_redis_own() {
    let broker = TestBroker::in_memory(&[]);
    let recording = recording();
    for script in command_infos() {
        let name = script.name.strip_prefix("command-info-of-").unwrap();
        let (sent, recorded) = recording.get(script.name).unwrap_or_else(|| panic!("record {}", script.name));
        assert_eq!(*sent, script.sent, "record {} again", script.name);
        let mut client = broker.client();
        client.send(&script.sent);
        client.end_sending();
        let (ours, mut redis) = (masked(client.rest()), recorded.as_slice());
        let mut ours = ours.as_slice();
        let _hello = (first_reply(&mut ours), first_reply(&mut redis));
        let (ours, redis) = (first_reply(&mut ours), first_reply(&mut redis));
        let is_container = redis.windows(name.len() + 1).any(|window| window == format!("{name}|").as_bytes());
        let (ours, redis) = if is_container { (head(&ours, name), head(&redis, name)) } else { (ours, redis) };
        assert_eq!(ours.escape_ascii().to_string(), redis.escape_ascii().to_string(), "{name}");
    }
}

/// Takes the first reply off a stream of them.
fn first_reply(rest: &mut &[u8]) -> Vec<u8> {
    let before = *rest;
    let mut missing: usize = 1;
    while missing > 0 {
        let end = rest.windows(2).position(|window| window == b"\r\n").unwrap() + 2;
        let (line, after) = rest.split_at(end);
        *rest = after;
        missing -= 1;
        // A masked number has nothing behind it, and neither has a null.
        let number = str::from_utf8(&line[1..end - 2]).ok().and_then(|text| text.parse::<usize>().ok());
        match line[0] {
            b'$' | b'=' => *rest = &rest[number.map_or(0, |bytes| bytes + 2)..],
            b'*' | b'~' => missing += number.unwrap_or(0),
            b'%' => missing += 2 * number.unwrap_or(0),
            _ => {}
        }
    }
    before[..before.len() - rest.len()].to_vec()
}

#[test]
fn docs_are_maps_of_even_length_with_every_field_in_both_protocols() {
    let broker = TestBroker::in_memory(&[]);
    let mut client = broker.client();
    for command in table::every() {
        let name = command.name;
        client.ask(["HELLO", "2"]);
        let flat = String::from_utf8(client.ask(["COMMAND", "DOCS", name])).unwrap();
        client.ask(["HELLO", "3"]);
        let map = String::from_utf8(client.ask(["COMMAND", "DOCS", name])).unwrap();
        assert!(flat.starts_with(&format!("*2\r\n${}\r\n{name}\r\n*", name.len())), "{flat}");
        assert!(map.starts_with(&format!("%1\r\n${}\r\n{name}\r\n%", name.len())), "{map}");
        for field in ["summary", "since", "group", "complexity"] {
            let (_, value) = flat.split_once(&format!("\r\n{field}\r\n$")).unwrap();
            assert!(!value.starts_with('0'), "{name} has no {field}");
        }
        // A flat array of odd length makes redis-cli abort.
        let fields = flat.split("\r\n*").nth(1).and_then(|rest| rest.split("\r\n").next()).unwrap();
        assert_eq!(fields.parse::<usize>().unwrap() % 2, 0, "{name}");
    }
    // redis-cli asks for them all at once.
    client.ask(["HELLO", "2"]);
    let all = String::from_utf8(client.ask(["COMMAND", "DOCS"])).unwrap();
    assert!(all.starts_with(&format!("*{}\r\n", 2 * table::all().len())));
}

#[test]
fn the_syntax_of_a_command_is_a_tree() {
    let mut client = TestBroker::in_memory(&[]).client();
    client.ask(["HELLO", "3"]);
    let docs = String::from_utf8(client.ask(["COMMAND", "DOCS", "getex"])).unwrap();
    let (_, arguments) = docs.split_once("$9\r\narguments\r\n").unwrap();
    let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
    let key =
        format!("*2\r\n%3\r\n{}{}{}", bulk("name") + &bulk("key"), bulk("type") + &bulk("key"), bulk("key_spec_index"));
    assert!(arguments.starts_with(&format!("{key}:0\r\n")), "{arguments}");
    for part in [
        format!(
            "{}{}{}{}~1\r\n+optional\r\n",
            bulk("name"),
            bulk("expiration"),
            bulk("type"),
            bulk("oneof") + &bulk("flags")
        ),
        format!("{}{}", bulk("token"), bulk("PXAT")),
        format!("{}{}", bulk("type"), bulk("pure-token")),
    ] {
        assert!(arguments.contains(&part), "no {part} in {arguments}");
    }
}
