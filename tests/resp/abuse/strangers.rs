//! Clients that have not given the password: how little they may send, and what they are told.
//!
//! Promise: word for word what redis-server tells them, asked the same here and now, at every cut. Must never know how a
//! password is kept.

#![expect(clippy::disallowed_methods, reason = "a password file is the test's own, not data of the broker")]

use crate::abuse::cutting::Cutting;
use crate::broker::OwnProcess;
use crate::client::{Client, request};
use crate::redis::Redis;
use crate::script::masked;

const PASSWORD: &str = "secret";

/// Sends each of `pipelines`, with a QUIT behind it, to redis-server as a stranger, then to Hearth at every cut.
fn check(pipelines: &[&[Vec<u8>]]) {
    let redis = Redis::start();
    assert_eq!(Client::connect(redis.address).ask(["CONFIG", "SET", "requirepass", PASSWORD]), b"+OK\r\n");
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let file = std::env::temp_dir().join(format!("hearth-test-resp-password-{}-{number}", std::process::id()));
    std::fs::write(&file, PASSWORD).unwrap();
    let mut cutting = Cutting::of(OwnProcess::start(&["--password-file", file.to_str().unwrap()]));
    std::fs::remove_file(&file).unwrap();
    assert_eq!(cutting.ask(&[b"AUTH", PASSWORD.as_bytes()]), b"+OK\r\n");
    for pipeline in pipelines {
        let sent = [&pipeline.concat()[..], &request(["QUIT"])].concat();
        let mut client = Client::connect(redis.address);
        client.try_send(&sent);
        let expected = masked(client.until(b"never"));
        let name = sent.escape_ascii().to_string();
        let checked = cutting.check(&name[..name.len().min(80)], &sent, &expected, false, |_| {});
        checked.unwrap_or_else(|wrong| panic!("{wrong}"));
    }
}

fn of(text: &str) -> Vec<u8> {
    request(text.split(' ').collect::<Vec<_>>())
}

/// A request of `count` arguments that needs no data to be there.
fn exists(count: usize) -> Vec<u8> {
    request([&["EXISTS"][..], &vec!["k"; count - 1]].concat())
}

fn echo(bytes: usize) -> Vec<u8> {
    request(["ECHO", &"e".repeat(bytes)])
}

#[test]
fn a_stranger_may_send_ten_arguments_and_no_eleventh() {
    check(&[&[exists(10), exists(11), of("AUTH secret")], &[b"*11\r\n".to_vec()], &[of("PING"), exists(1000)]]);
}

#[test]
fn a_stranger_may_send_a_bulk_of_16_kib_and_no_byte_more() {
    check(&[&[echo(16_384), echo(16_385), of("AUTH secret")], &[b"*2\r\n$4\r\nECHO\r\n$16385\r\n".to_vec()]]);
}

#[test]
fn what_is_sent_behind_the_password_in_one_go_is_held_to_no_such_limit() {
    check(&[
        &[of("AUTH secret"), exists(11), echo(16_385)],
        &[of("HELLO 3 AUTH default secret SETNAME me"), exists(11)],
        // And from RESET on it is again.
        &[of("AUTH default secret"), exists(11), of("RESET"), exists(11)],
    ]);
}

#[test]
fn each_request_of_a_stranger_gets_its_own_reply_a_failing_auth_too() {
    // redis/redis#15640; StackExchange/StackExchange.Redis#2785: what is behind AUTH waits for it.
    check(&[
        &[of("PING"), of("AUTH wrong"), of("SET k 1"), of("AUTH default wrong"), of("AUTH secret"), of("EXISTS k")],
        &[
            of("FOO a"),
            of("GET"),
            of("GET k"),
            of("HELLO 3"),
            of("HELLO 9"),
            of("HELLO 2 AUTH default wrong"),
            of("PING"),
        ],
        &[
            of("RESET"),
            of("AUTH nobody secret"),
            of("AUTH a b c"),
            of("AUTH"),
            b"PING\r\nAUTH secret\r\nPING\r\n".to_vec(),
        ],
    ]);
}
