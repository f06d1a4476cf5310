//! Clients that look at each other and end each other, the slow log, and passwords, over real sockets.
//!
//! Promise: what is told of a client is so; a killed one is closed and a killer told; without the password nothing is done and
//! nothing is said that helps. Must never wait for a time to pass.

#![expect(clippy::disallowed_methods, reason = "writes the password files it starts brokers with")]

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::broker::{OwnProcess, TestBroker, eventually};
use crate::client::{Client, bulk, request};

fn ask(client: &mut Client, text: &str) -> String {
    String::from_utf8(client.ask(text.split(' ').collect::<Vec<_>>())).unwrap()
}

/// A field of the line that CLIENT LIST has for a client.
fn field(line: &str, name: &str) -> String {
    let start = format!("{name}=");
    let found = line.split(' ').find_map(|field| field.strip_prefix(&start));
    found.unwrap_or_else(|| panic!("no {name} in {line}")).trim_end().to_owned()
}

/// The lines of CLIENT LIST.
fn list(client: &mut Client, text: &str) -> Vec<String> {
    ask(client, text).lines().skip(1).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Every field of Redis 7.2, in its order.
const FIELDS: [&str; 30] = [
    "id",
    "addr",
    "laddr",
    "fd",
    "name",
    "age",
    "idle",
    "flags",
    "db",
    "sub",
    "psub",
    "ssub",
    "multi",
    "qbuf",
    "qbuf-free",
    "argv-mem",
    "multi-mem",
    "rbs",
    "rbp",
    "obl",
    "oll",
    "omem",
    "tot-mem",
    "events",
    "cmd",
    "user",
    "redir",
    "resp",
    "lib-name",
    "lib-ver",
];

#[test]
fn client_list_tells_what_each_client_is() {
    let broker = TestBroker::in_memory(&[]);
    let (mut one, mut other) = (broker.client(), broker.client());
    for text in
        ["HELLO 3", "CLIENT SETNAME me", "CLIENT SETINFO LIB-NAME lib", "CLIENT SETINFO LIB-VER 1.2", "SELECT 3"]
    {
        ask(&mut other, text);
    }
    for text in ["CLIENT NO-EVICT ON", "CLIENT NO-TOUCH ON", "MULTI", "GET a", "SET a b"] {
        ask(&mut other, text);
    }
    ask(&mut one, "PING");
    let lines = list(&mut one, "CLIENT LIST");
    assert_eq!(lines.len(), 2, "{lines:?}");
    let names: Vec<&str> = lines[0].split(' ').filter_map(|field| Some(field.split_once('=')?.0)).collect();
    assert_eq!(names, FIELDS);
    let mine = &lines[0];
    for (name, value) in
        [("id", "1"), ("name", ""), ("flags", "N"), ("db", "0"), ("multi", "-1"), ("cmd", "client|list"), ("resp", "2")]
    {
        assert_eq!(field(mine, name), value, "{name} of {mine}");
    }
    assert_eq!(field(mine, "laddr"), broker.address.to_string());
    assert_ne!(field(mine, "fd"), "0");
    let others = &lines[1];
    for (name, value) in [
        ("id", "2"),
        ("name", "me"),
        ("flags", "xeT"),
        ("db", "3"),
        ("multi", "2"),
        ("cmd", "set"),
        ("resp", "3"),
        ("lib-name", "lib"),
        ("lib-ver", "1.2"),
        ("user", "default"),
        ("redir", "-1"),
    ] {
        assert_eq!(field(others, name), value, "{name} of {others}");
    }
    assert_eq!(
        list(&mut one, "CLIENT LIST ID 2 7 1").iter().map(|line| field(line, "id")).collect::<Vec<_>>(),
        ["2", "1"]
    );
    assert_eq!(list(&mut one, "CLIENT LIST TYPE NORMAL").len(), 2);
    assert_eq!(list(&mut one, "CLIENT INFO")[0].split(' ').next(), Some("id=1"));
    // What it is in mid-pipeline, too.
    one.send(&[request(["CLIENT", "SETNAME", "new"]), request(["CLIENT", "INFO"])].concat());
    assert_eq!(one.reply(), b"+OK\r\n");
    assert_eq!(field(&String::from_utf8(one.reply()).unwrap(), "name"), "new");
    drop(other);
    eventually("it is off the list", || list(&mut one, "CLIENT LIST").len() == 1);
}

#[test]
fn half_a_request_is_told() {
    let broker = TestBroker::in_memory(&[]);
    let (mut one, mut other) = (broker.client(), broker.client());
    other.send(b"*2\r\n$4\r\nECHO\r\n$10\r\nabc");
    eventually("its bytes are counted", || {
        field(&list(&mut one, "CLIENT LIST ID 2").first().cloned().unwrap_or("qbuf=".to_owned()), "qbuf") == "22"
    });
}

#[test]
fn a_killed_client_is_closed_and_its_place_is_free() {
    let broker = TestBroker::in_memory(&[]);
    let mut one = broker.client();
    assert_eq!(ask(&mut one, "CLIENT ID"), ":1\r\n");
    for (old_form, form) in [(true, "CLIENT KILL"), (false, "CLIENT KILL ADDR"), (false, "CLIENT KILL ID")] {
        let mut other = broker.client();
        ask(&mut other, "SET k 1");
        let id = ask(&mut other, "CLIENT ID").trim_end()[1..].to_owned();
        let line = list(&mut one, &format!("CLIENT LIST ID {id}")).remove(0);
        let what = if form.ends_with("ID") { id } else { field(&line, "addr") };
        assert_eq!(ask(&mut one, &format!("{form} {what}")), if old_form { "+OK\r\n" } else { ":1\r\n" });
        assert_eq!(other.until(b"never"), b"", "it is closed without a word");
        eventually("it is gone", || list(&mut one, "CLIENT LIST").len() == 1);
    }
    assert_eq!(one.info("connected_clients"), 1);
    assert_eq!(ask(&mut one, "PING"), "+PONG\r\n");
}

#[test]
fn a_client_that_is_killed_while_its_replies_are_not_read_is_gone_too() {
    let broker = TestBroker::in_memory(&[]);
    let mut one = broker.client();
    one.ask([b"SET".to_vec(), b"k".to_vec(), vec![b'x'; 4 << 20]]);
    let mut other = Client::connect_narrow(broker.address);
    other.send(&request(["GET", "k"]).repeat(16));
    eventually("replies wait", || {
        list(&mut one, "CLIENT LIST ID 2").first().is_some_and(|line| field(line, "cmd") == "get")
    });
    assert_eq!(ask(&mut one, "CLIENT KILL ID 2"), ":1\r\n");
    eventually("it is gone", || one.info("connected_clients") == 1);
}

#[test]
fn filters_take_all_that_match_and_oneself_only_when_asked() {
    let broker = TestBroker::in_memory(&[]);
    let mut one = broker.client();
    ask(&mut one, "PING");
    let mut others: Vec<Client> = (0..3).map(|_| broker.client()).collect();
    for other in &mut others {
        ask(other, "PING");
    }
    assert_eq!(ask(&mut one, "CLIENT KILL TYPE normal MAXAGE 1000"), ":0\r\n");
    assert_eq!(ask(&mut one, &format!("CLIENT KILL LADDR {} TYPE normal USER default", broker.address)), ":3\r\n");
    for other in &mut others {
        assert_eq!(other.until(b"never"), b"");
    }
    eventually("they are gone", || one.info("connected_clients") == 1);
    one.send(&[request(["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "no"]), request(["SET", "k", "1"])].concat());
    assert_eq!(one.rest(), b":1\r\n", "it is told, and what it sent behind is dropped");
    let mut last = broker.client();
    assert_eq!(ask(&mut last, "EXISTS k"), ":0\r\n");
    let line = list(&mut last, "CLIENT INFO").remove(0);
    last.send(&request(["CLIENT", "KILL", &field(&line, "addr")]));
    assert_eq!(last.rest(), b"+OK\r\n");
}

#[test]
fn the_slow_log_keeps_what_took_long_and_no_password() {
    let broker = TestBroker::in_memory(&[]);
    let mut client = broker.client();
    ask(&mut client, "CLIENT SETNAME me");
    assert_eq!(ask(&mut client, "CONFIG SET slowlog-log-slower-than 0"), "+OK\r\n");
    for text in [
        "GET k",
        "FOO",
        "GET",
        "AUTH default secret",
        "HELLO 2 AUTH default secret SETNAME me",
        "MULTI",
        "SET k 1",
        "EXEC",
    ] {
        ask(&mut client, text);
    }
    assert_eq!(ask(&mut client, "CONFIG SET slowlog-log-slower-than -1"), "+OK\r\n");
    ask(&mut client, "GET another");
    let told = ask(&mut client, "SLOWLOG GET -1");
    assert!(!told.contains("secret") && !told.contains("another") && !told.contains("FOO"), "{told}");
    // Newest first: what ran, also inside EXEC, and not what was refused or queued.
    let commands = ["SET", "MULTI", "HELLO", "AUTH", "GET", "CONFIG"];
    let places: Vec<usize> = commands.iter().map(|name| told.find(&format!("\r\n{name}\r\n")).unwrap()).collect();
    assert!(places.is_sorted(), "{told}");
    assert_eq!(told.matches("\r\nGET\r\n").count(), 1);
    assert!(told.contains("$10\r\n(redacted)\r\n$10\r\n(redacted)\r\n$7\r\nSETNAME\r\n$2\r\nme\r\n"), "{told}");
    let line = list(&mut client, "CLIENT INFO").remove(0);
    let (address, entry) = (field(&line, "addr"), "*6\r\n:");
    assert!(told.contains(&format!("${}\r\n{address}\r\n$2\r\nme\r\n", address.len())), "{told}");
    let count = told.matches(entry).count();
    assert_eq!(ask(&mut client, "SLOWLOG LEN"), format!(":{count}\r\n"));
    assert_eq!(ask(&mut client, "SLOWLOG GET 1").matches(entry).count(), 1);
    assert_eq!(ask(&mut client, "SLOWLOG RESET"), "+OK\r\n");
    assert_eq!(ask(&mut client, "SLOWLOG GET"), "*0\r\n");
    // No more than are asked for.
    ask(&mut client, "CONFIG SET slowlog-max-len 2 slowlog-log-slower-than 0");
    for _ in 0..5 {
        ask(&mut client, "PING");
    }
    ask(&mut client, "CONFIG SET slowlog-log-slower-than -1");
    assert_eq!(ask(&mut client, "SLOWLOG LEN"), ":2\r\n");
}

#[test]
fn config_resetstat_sets_back_what_info_counts() {
    let broker = TestBroker::in_memory(&[]);
    let mut client = broker.client();
    for text in ["SET k 1", "GET k", "GET nothing", "FOO"] {
        ask(&mut client, text);
    }
    assert_eq!((client.info("keyspace_hits"), client.info("total_error_replies")), (1, 1));
    assert_eq!(ask(&mut client, "CONFIG RESETSTAT"), "+OK\r\n");
    for counter in
        ["keyspace_hits", "keyspace_misses", "total_error_replies", "expired_keys", "total_connections_received"]
    {
        assert_eq!(client.info(counter), 0, "{counter}");
    }
    assert!(client.info("total_commands_processed") < 10);
    assert_eq!(client.info("connected_clients"), 1);
}

const NO_AUTH: &str = "-NOAUTH Authentication required.\r\n";
const WRONG: &str = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
const HELLO_NO_AUTH: &str = "-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH \
    <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time\r\n";

/// A file with a password, gone when it is dropped.
struct PasswordFile(PathBuf);

impl PasswordFile {
    fn new(content: &str) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("hearth-test-password-{}-{number}", std::process::id()));
        std::fs::File::create(&path).unwrap().write_all(content.as_bytes()).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for PasswordFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn guarded() -> (PasswordFile, TestBroker) {
    let file = PasswordFile::new("secret\n");
    let broker = TestBroker::in_memory(&["--password-file", file.path()]);
    (file, broker)
}

#[test]
fn without_the_password_nothing_is_done() {
    let (_file, broker) = guarded();
    let mut client = broker.client();
    for (text, reply) in [
        ("PING", NO_AUTH),
        ("SET k 1", NO_AUTH),
        ("MULTI", NO_AUTH),
        ("CONFIG GET *", NO_AUTH),
        ("FOO", "-ERR unknown command 'FOO', with args beginning with: \r\n"),
        ("GET", "-ERR wrong number of arguments for 'get' command\r\n"),
        ("CLIENT FOO", "-ERR unknown subcommand 'FOO'. Try CLIENT HELP.\r\n"),
        ("EXEC", "-EXECABORT Transaction discarded because of: NOAUTH Authentication required.\r\n"),
        ("HELLO 3", HELLO_NO_AUTH),
        ("HELLO", HELLO_NO_AUTH),
        ("HELLO 4", "-NOPROTO unsupported protocol version\r\n"),
        ("HELLO 3 FOO", "-ERR Syntax error in HELLO option 'FOO'\r\n"),
        ("HELLO 3 AUTH default wrong", WRONG),
        ("AUTH wrong", WRONG),
        ("AUTH nobody secret", WRONG),
        ("AUTH default secre", WRONG),
        ("AUTH a b c", "-ERR syntax error\r\n"),
        ("PING", NO_AUTH),
        ("RESET", "+RESET\r\n"),
        ("AUTH secret", "+OK\r\n"),
        ("EXISTS k", ":0\r\n"),
        ("AUTH wrong", WRONG),
        ("PING", "+PONG\r\n"),
        ("ACL LIST", "*1\r\n$27\r\nuser default on ~* &* +@all\r\n"),
        ("CONFIG GET requirepass", "*2\r\n$11\r\nrequirepass\r\n$5\r\n(set)\r\n"),
        ("RESET", "+RESET\r\n"),
        ("PING", NO_AUTH),
        ("AUTH default secret", "+OK\r\n"),
        ("PING", "+PONG\r\n"),
    ] {
        assert_eq!(ask(&mut client, text), reply, "{text}");
    }
    assert!(!ask(&mut client, "INFO").contains("secret") && !ask(&mut client, "CONFIG GET *").contains("secret"));
    let mut third = broker.client();
    assert!(ask(&mut third, "HELLO 3 AUTH default secret SETNAME me").starts_with("%7\r\n"));
    assert_eq!(ask(&mut third, "CLIENT GETNAME"), "$2\r\nme\r\n");
    let mut leaver = broker.client();
    assert_eq!(ask(&mut leaver, "QUIT"), "+OK\r\n");
}

#[test]
fn what_is_sent_behind_auth_in_one_pipeline_waits_for_it() {
    let (_file, broker) = guarded();
    let mut client = broker.client();
    let pipeline = ["SET k 1", "AUTH wrong", "PING", "AUTH secret", "SET k 2", "GET k", "RESET", "GET k"];
    client.send(&pipeline.map(|text| request(text.split(' ').collect::<Vec<_>>())).concat());
    let expected = [NO_AUTH, WRONG, NO_AUTH, "+OK\r\n+OK\r\n$1\r\n2\r\n+RESET\r\n", NO_AUTH].concat();
    client.expect(expected.as_bytes());
}

#[test]
fn who_has_not_given_the_password_may_send_little() {
    let (_file, broker) = guarded();
    let long = "x".repeat(16 * 1024);
    let mut client = broker.client();
    assert_eq!(client.ask(["GET", &long]), NO_AUTH.as_bytes());
    assert_eq!(client.ask(vec!["DEL"; 10]), NO_AUTH.as_bytes());
    client.send(b"*11\r\n");
    assert_eq!(client.rest(), b"-ERR Protocol error: unauthenticated multibulk length\r\n");
    let mut client = broker.client();
    client.send(b"*2\r\n$3\r\nGET\r\n$16385\r\n");
    assert_eq!(client.rest(), b"-ERR Protocol error: unauthenticated bulk length\r\n");
    // In the same pipeline, behind the password, everything goes; behind RESET it does not.
    let mut client = broker.client();
    client.send(&[request(["AUTH", "secret"]), request(["ECHO", &(long.clone() + "y")])].concat());
    client.expect(&[&b"+OK\r\n"[..], &bulk((long.clone() + "y").as_bytes())].concat());
    client.send(&[request(["RESET"]), request(["ECHO", &(long + "y")])].concat());
    assert_eq!(client.until(b"length\r\n"), b"+RESET\r\n-ERR Protocol error: unauthenticated bulk length\r\n");
}

#[test]
fn the_password_comes_from_the_first_line_and_is_never_told() {
    let file = PasswordFile::new("top secret\r\nsecond line\n");
    let mut process = OwnProcess::start_telling(&["--password-file", file.path()]);
    let mut client = process.client();
    assert_eq!(client.ask(["AUTH", "top secret"]), b"+OK\r\n");
    assert_eq!(client.ask(["AUTH", "guess"]), WRONG.as_bytes());
    let told = process.told();
    assert!(!told.contains("top secret") && !told.contains("guess"), "{told}");
}

#[test]
fn a_password_that_cannot_be_had_ends_the_start_with_its_exit_code() {
    let empty = PasswordFile::new("\n");
    for (file, variable, reason) in [
        (Some(empty.path()), None, "empty"),
        (Some("/nowhere"), None, "cannot be read"),
        (None, Some(""), "HEARTH_PASSWORD"),
    ] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hearth"));
        command.args(["--memory", "--resp", "127.0.0.1:0"]);
        command.args(file.map(|file| ["--password-file", file]).into_iter().flatten());
        command.envs(variable.map(|value| ("HEARTH_PASSWORD", value)));
        let ended = command.output().unwrap();
        let told = String::from_utf8(ended.stderr).unwrap();
        assert!(ended.status.code() == Some(2) && told.contains(reason), "{told}");
    }
}
