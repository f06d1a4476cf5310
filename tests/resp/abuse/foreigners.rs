//! Clients of other protocols: a browser that was tricked, one that speaks TLS, one that speaks HTTP/2.
//!
//! Promise: none of what they say is run as a command of theirs, no reply of ours takes more than its line, and who was
//! tricked is noted. What they are answered stands in `rows`. Must never know how a browser is told.

use crate::broker::{OwnProcess, eventually};
use crate::client::request;

/// A ClientHello of TLS 1.3 as OpenSSL writes it, with its random bytes made up; `line_end` is one of them.
fn client_hello(line_end: bool) -> Vec<u8> {
    let mut random: Vec<u8> = (0..64_u8).map(|i| i.wrapping_mul(37).wrapping_add(128)).collect();
    random.iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b'~');
    if line_end {
        random[40] = b'\n';
    }
    let extensions =
        b"\x00\x00\x00\x0e\x00\x0c\x00\x00\x09localhost\x00\x0b\x00\x02\x01\x00\x00\x2b\x00\x03\x02\x03\x04";
    let body = [
        &b"\x03\x03"[..],
        &random[..32],
        b"\x20",
        &random[32..],
        b"\x00\x04\x13\x01\x13\x02\x01\x00",
        &[0, extensions.len() as u8],
        extensions,
    ]
    .concat();
    let handshake = [&b"\x01\x00\x00"[..], &[body.len() as u8], &body].concat();
    [&b"\x16\x03\x01\x00"[..], &[handshake.len() as u8], &handshake].concat()
}

#[test]
fn a_post_with_commands_in_its_body_runs_none_of_them_and_is_noted_with_who_sent_it() {
    const POSTS: usize = 10;
    let mut broker = OwnProcess::start_telling(&[]);
    let post = b"POST / HTTP/1.1\r\nHost: localhost:6379\r\nContent-Length: 14\r\n\r\nSET evil 1\r\n\r\n";
    let mut ports = Vec::new();
    for cut in (1..post.len()).step_by(post.len() / POSTS) {
        let mut client = broker.client();
        ports.push(client.sender().local_addr().unwrap().port());
        client.try_send(&post[..cut]);
        client.try_send(&post[cut..]);
        assert_eq!(client.until(b"never"), b"");
    }
    assert_eq!(broker.client().ask(["EXISTS", "evil"]), b":0\r\n");
    let told = broker.told();
    for port in ports {
        let peer = format!("127.0.0.1:{port}");
        let lines: Vec<&str> =
            told.lines().filter(|line| line.contains("speaks HTTP") && line.contains(&peer)).collect();
        assert_eq!(lines.len(), 1, "{peer} in {told}");
    }
}

#[test]
fn a_client_hello_of_tls_is_told_nothing_or_one_line_and_others_are_served() {
    let broker = OwnProcess::start(&[]);
    let mut other = broker.client();
    for line_end in [false, true] {
        let hello = client_hello(line_end);
        for cut in 0..hello.len() {
            let mut client = broker.client();
            client.send(&hello[..cut]);
            client.send(&hello[cut..]);
            client.end_sending();
            let reply = client.rest();
            if line_end {
                let lines = reply.iter().filter(|byte| matches!(byte, b'\r' | b'\n')).count();
                assert!(reply.starts_with(b"-ERR unknown command '\x16") && reply.ends_with(b"\r\n"));
                assert_eq!(lines, 2, "more than a line: {}", reply.escape_ascii());
            } else {
                assert_eq!(reply, b"", "nothing is a request before its line ends");
            }
        }
        assert_eq!(other.ask(["PING"]), b"+PONG\r\n");
    }
    eventually("all who left are gone", || other.info("connected_clients") == 1);
}

#[test]
fn the_start_of_an_http2_connection_is_answered_and_its_frames_are_no_requests() {
    let broker = OwnProcess::start(&[]);
    let preface =
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64\x00\x04";
    let unknown = b"-ERR unknown command 'PRI', with args beginning with: '*' 'HTTP/2.0' \r\n\
                    -ERR unknown command 'SM', with args beginning with: \r\n";
    for cut in 0..preface.len() {
        let mut client = broker.client();
        client.send(&preface[..cut]);
        client.send(&preface[cut..]);
        client.end_sending();
        assert_eq!(client.rest(), unknown);
    }
    // Behind a request, too, what is no request is only unknown.
    let mut client = broker.client();
    client.send(&[&request(["ECHO", "a"])[..], preface, b"\r\n", &request(["ECHO", "b"])].concat());
    assert_eq!(client.reply(), b"$1\r\na\r\n");
    for _ in 0..3 {
        assert!(client.reply().starts_with(b"-ERR unknown command"));
    }
    assert_eq!(client.reply(), b"$1\r\nb\r\n");
}
