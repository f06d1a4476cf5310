//! Faults of other servers that somebody reported in public, about connections and the bytes on them: not here.
//!
//! Promise: each test is named by what must hold and names the report; each runs at every cut. Must never know what the
//! fault was in.

use crate::abuse::cutting::Cutting;
use crate::broker::TestBroker;
use crate::client::{Client, bulk, request};
use crate::script::masked;

const HELLO: &str = "server\r\n$5\r\nredis\r\n$7\r\nversion\r\n$#\r\n$5\r\nproto\r\n";
const PING: &str = "*1\r\n$4\r\nPING\r\n";
const WRONG: &str = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";

fn hello(protocol: u8) -> String {
    let head = if protocol == 3 { "%7" } else { "*14" };
    format!(
        "{head}\r\n$6\r\n{HELLO}:{protocol}\r\n$2\r\nid\r\n:#\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n\
         $4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n"
    )
}

/// `sent` cut in every place is answered `expected`, and the connection stays.
fn check(sent: impl AsRef<[u8]>, expected: impl AsRef<[u8]>) {
    let probe = bulk(b"still there");
    let expected = [expected.as_ref(), &probe].concat();
    Cutting::new().check("sent", sent.as_ref(), &expected, true, |_| {}).unwrap_or_else(|wrong| panic!("{wrong}"));
}

fn of(text: &str) -> Vec<u8> {
    text.split(" | ").flat_map(|line| request(line.split(' ').collect::<Vec<_>>())).collect()
}

#[test]
fn hello_3_is_spoken_and_hello_4_is_refused_and_the_connection_goes_on_in_resp2() {
    // dragonflydb/dragonfly#126
    let sent = of("HELLO 4 | PING | GET k | HELLO 3 | GET k | HELLO 4 | GET k");
    let refused = "-NOPROTO unsupported protocol version\r\n";
    check(sent, format!("{refused}+PONG\r\n$-1\r\n{}_\r\n{refused}_\r\n", hello(3)));
}

#[test]
fn hello_changes_the_protocol_from_its_own_reply_on_in_the_middle_of_a_pipeline() {
    // dragonflydb/dragonfly#8006
    let sent = of("GET k | HELLO 3 | GET k | HELLO 2 | GET k");
    check(sent, format!("$-1\r\n{}_\r\n{}$-1\r\n", hello(3), hello(2)));
}

#[test]
fn hello_with_auth_takes_a_user_and_a_password() {
    // apache/kvrocks#1403
    let sent = of("HELLO 2 AUTH default secret | HELLO 3 AUTH nobody secret | HELLO 2 AUTH secret | PING");
    let syntax = "-ERR Syntax error in HELLO option 'AUTH'\r\n";
    check(sent, format!("{}{WRONG}{syntax}+PONG\r\n", hello(2)));
}

#[test]
fn hello_on_one_line_is_taken() {
    // aembke/redis-protocol.rs#22: the library's clients write it so.
    check([&b"HELLO 3\r\n"[..], &request(["GET", "k"])].concat(), format!("{}_\r\n", hello(3)));
}

#[test]
fn a_version_of_72_means_that_setinfo_is_known() {
    // redis/lettuce#2817
    check(of("CLIENT SETINFO lib-name lettuce | CLIENT SETINFO lib-ver 6.3.2"), "+OK\r\n+OK\r\n");
}

#[test]
fn what_is_not_known_of_client_is_one_error_and_the_connection_stays() {
    // redis/go-redis#3536, redis/redis-py#3852
    let unknown = "-ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.\r\n";
    check(of("CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type internal-ip | PING"), format!("{unknown}+PONG\r\n"));
}

#[test]
fn an_array_behind_an_empty_line_is_an_array() {
    // dragonflydb/dragonfly#8243: `redis-cli --pipe` ends with an empty line and an ECHO of twenty bytes.
    let random = b"\x00*3\r\n$\xff\"'\\x \n\r\t\x80$-1\r";
    assert_eq!(random.len(), 20);
    let echo = request([&b"ECHO"[..], random]);
    let lines = b"SET k 1\r\nGET k\r\n\r\n";
    check([lines, &echo[..]].concat(), [b"+OK\r\n$1\r\n1\r\n", &bulk(random)[..]].concat());
    check([&of("SET k 1 | GET k"), &b"\r\n"[..], &echo].concat(), [b"+OK\r\n$1\r\n1\r\n", &bulk(random)[..]].concat());
}

#[test]
fn every_line_of_a_mass_insert_is_run_however_it_is_cut() {
    // dragonflydb/dragonfly#779, apache/kvrocks#807, yongman/tidis#40
    let lines: String =
        (0..40).map(|number| format!("SET k{number} v{number}{}", ["\r\n", "\n"][number % 2])).collect();
    check(format!("{lines}EXISTS k0 k19 k39\r\n"), format!("{}:3\r\n", "+OK\r\n".repeat(40)));
}

#[test]
fn every_line_of_a_large_mass_insert_is_run() {
    // The same reports: what was lost there was everything behind the first read.
    const LINES: usize = 50_000;
    let broker = TestBroker::in_memory(&[]);
    let mut client = broker.client();
    let lines: String = (0..LINES).map(|number| format!("SET key:{number} value:{number}\r\n")).collect();
    let mut sender = client.sender();
    std::thread::scope(|scope| {
        scope.spawn(move || std::io::Write::write_all(&mut sender, lines.as_bytes()).unwrap());
        client.expect(&b"+OK\r\n".repeat(LINES));
    });
    assert_eq!(client.ask(["DBSIZE"]), format!(":{LINES}\r\n").as_bytes());
    assert_eq!(client.ask(["GET", "key:49999"]), bulk(b"value:49999"));
}

#[test]
fn a_failing_auth_between_other_requests_gets_its_own_reply() {
    // redis/redis#15640
    let no_password = "-ERR AUTH <password> called without any password configured for the default user. Are you sure your \
                       configuration is correct?\r\n";
    let sent = of("PING | AUTH nobody wrong | PING | AUTH wrong | SET k 1 | AUTH nobody wrong | AUTH a b c | GET k");
    let expected = format!("+PONG\r\n{WRONG}+PONG\r\n{no_password}+OK\r\n{WRONG}-ERR syntax error\r\n$1\r\n1\r\n");
    check(sent, expected);
}

#[test]
fn every_request_gets_one_reply_whatever_it_is() {
    // redis/redis#15640, microsoft/garnet#2037, microsoft/garnet#150: an answer too few or too many, and a client waits for
    // ever or takes one reply for another.
    let broker = TestBroker::in_memory(&[]);
    let mut client = broker.client();
    let names = String::from_utf8(client.ask(["COMMAND", "LIST"])).unwrap();
    let names: Vec<&str> = names.lines().filter(|line| !line.starts_with(['*', '$'])).collect();
    // These change what the reply to what follows is, or end it.
    for name in names.iter().filter(|name| !["quit", "reset", "hello", "multi"].contains(name)) {
        for arguments in 0..5 {
            let asked: Vec<&str> = std::iter::once(*name).chain(["k", "1", "NX", "XX"]).take(1 + arguments).collect();
            client.send(&[request(asked.clone()), request(["ECHO", "behind"])].concat());
            client.reply();
            assert_eq!(client.reply(), bulk(b"behind"), "{asked:?}");
        }
    }
}

#[test]
fn the_form_of_null_belongs_to_the_connection() {
    // Snapchat/KeyDB#697, Snapchat/KeyDB#25
    let broker = TestBroker::in_memory(&[]);
    let (mut two, mut three) = (broker.client(), broker.client());
    for _ in 0..3 {
        assert_eq!(two.ask(["GET", "k"]), b"$-1\r\n");
        assert_eq!(masked(three.ask(["HELLO", "3"])), hello(3).as_bytes());
        assert_eq!(two.ask(["GET", "k"]), b"$-1\r\n");
        assert_eq!(three.ask(["GET", "k"]), b"_\r\n");
        assert_eq!(three.ask(["CLIENT", "GETNAME"]), b"_\r\n");
        assert_eq!(three.ask(["RESET"]), b"+RESET\r\n");
        assert_eq!(three.ask(["GET", "k"]), b"$-1\r\n");
    }
}

#[test]
fn nested_arrays_of_a_stranger_are_refused_and_everybody_else_is_served() {
    // ArcadeData/arcadedb#5895, redis/hiredis#1338, NodeRedis/node-redis-parser#66, valkey-io/libvalkey#336
    let refused = "-ERR Protocol error: expected '$', got '*'\r\n";
    let mut cutting = Cutting::new();
    let sent = format!("{PING}{}", "*1\r\n".repeat(8));
    let expected = format!("+PONG\r\n{refused}");
    cutting.check("sent", sent.as_bytes(), expected.as_bytes(), true, |_| {}).unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!(cutting.ask(&[b"PING"]), b"+PONG\r\n");
}

#[test]
fn a_count_without_bound_is_refused() {
    // ArcadeData/arcadedb#5895
    let broker = TestBroker::in_memory(&[]);
    let mut other = broker.client();
    for count in ["1048577", "2147483647", "9223372036854775807"] {
        let mut client: Client = broker.client();
        client.send(format!("*{count}\r\n").as_bytes());
        assert_eq!(client.rest(), b"-ERR Protocol error: invalid multibulk length\r\n", "{count}");
    }
    assert_eq!(other.ask(["PING"]), b"+PONG\r\n");
}
