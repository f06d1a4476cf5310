//! Holds the promises of the scanner, at every cut the network can make.

use super::*;

mod mutations;
mod properties;
mod reference;
mod rules;
mod trial;

/// What the caller of a scanner does, written down as one line per answer; `|` stands between arguments.
struct Client {
    scanner: Scanner,
    buffer: Vec<u8>,
    events: Vec<String>,
    most_buffered: usize,
    open: bool,
}

impl Client {
    fn new(max_value_bytes: usize, authenticated: bool) -> Self {
        let mut scanner = Scanner::new(max_value_bytes);
        scanner.set_authenticated(authenticated);
        Self { scanner, buffer: Vec::new(), events: Vec::new(), most_buffered: 0, open: true }
    }

    fn receive(&mut self, piece: &[u8]) {
        if !self.open {
            return;
        }
        self.buffer.extend_from_slice(piece);
        self.most_buffered = self.most_buffered.max(self.buffer.len());
        loop {
            let scan = self.scanner.scan(&self.buffer);
            if !matches!(scan, Scan::Request { .. }) {
                assert!(self.scanner.args(&self.buffer).is_empty(), "arguments without a request");
            }
            match scan {
                Scan::NeedMore => return,
                Scan::Request { consumed } => {
                    self.events.push(render(self.scanner.args(&self.buffer)));
                    self.drop_front(consumed);
                }
                Scan::Skip { consumed } => {
                    self.events.push("skip".to_owned());
                    self.drop_front(consumed);
                }
                Scan::Discard { start, end } => {
                    assert!(start < end && end <= self.buffer.len(), "{start}..{end} of {}", self.buffer.len());
                    self.buffer.drain(start..end);
                }
                Scan::Bad(error) => return self.close(scan, format!("-{error}")),
                Scan::CrossProtocol => return self.close(scan, "close".to_owned()),
            }
        }
    }

    fn drop_front(&mut self, consumed: usize) {
        assert!((1..=self.buffer.len()).contains(&consumed), "{consumed} of {}", self.buffer.len());
        self.buffer.drain(..consumed);
    }

    fn close(&mut self, scan: Scan, event: String) {
        self.events.push(event);
        self.open = false;
        assert_eq!(self.scanner.scan(&self.buffer), scan, "a scanner that gave up goes on");
        assert_eq!(self.scanner.scan(b"*1\r\n$4\r\nPING\r\n"), scan, "a scanner that gave up goes on");
    }
}

fn render(args: Args<'_>) -> String {
    assert!(!args.is_empty() && args.get(args.len()).is_none() && !args.is_oversize(args.len()));
    assert_eq!(args.any_oversize(), (0..args.len()).any(|index| args.is_oversize(index)));
    let words = args.iter().enumerate().map(|(index, bytes)| {
        assert_eq!(args.get(index), Some(bytes));
        if args.is_oversize(index) {
            assert!(bytes.is_empty());
            return "<oversize>".to_owned();
        }
        bytes.escape_ascii().to_string()
    });
    words.collect::<Vec<_>>().join("|")
}

/// Scripts end before this many bytes of value, so only those about values meet it.
const MAX_VALUE_BYTES: usize = 100_000;

fn check_with(client: impl Fn() -> Client, script: &[u8], expected: &[&str]) {
    let shown = script.get(..script.len().min(80)).unwrap_or(&[]).escape_ascii();
    let run = |pieces: &mut dyn Iterator<Item = &[u8]>, how: &str| {
        let mut client = client();
        pieces.for_each(|piece| client.receive(piece));
        assert_eq!(client.events, expected, "{how}: {shown}");
    };
    run(&mut [script].into_iter(), "whole");
    run(&mut script.chunks(1), "byte by byte");
    // Every cut of a long script would take minutes; its ends and some places between are cut.
    let all = script.len() <= 4096;
    for cut in (0..=script.len()).filter(|cut| all || *cut < 64 || script.len() - cut < 64 || cut % 4099 == 0) {
        let (front, back) = script.split_at(cut);
        run(&mut [front, back].into_iter(), &format!("cut at {cut}"));
    }
}

fn check(script: impl AsRef<[u8]>, expected: &[&str]) {
    check_with(|| Client::new(MAX_VALUE_BYTES, true), script.as_ref(), expected);
}

fn check_stranger(script: impl AsRef<[u8]>, expected: &[&str]) {
    check_with(|| Client::new(MAX_VALUE_BYTES, false), script.as_ref(), expected);
}

fn check_max_value(max_value_bytes: usize, script: &str, expected: &[&str]) {
    check_with(|| Client::new(max_value_bytes, true), script.as_bytes(), expected);
}

fn whole(script: impl AsRef<[u8]>) -> Vec<String> {
    let mut client = Client::new(MAX_VALUE_BYTES, true);
    client.receive(script.as_ref());
    client.events
}

const PING: &str = "*1\r\n$4\r\nPING\r\n";

#[test]
fn array_requests_run_in_order() {
    check("", &[]);
    check(PING, &["PING"]);
    check("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nhello\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", &["SET|k|hello", "GET|k"]);
    check("*2\r\n$4\r\nECHO\r\n$12\r\n0123456789ab\r\n", &["ECHO|0123456789ab"]);
    check(format!("*12\r\n{}", "$1\r\na\r\n".repeat(12)), &["a|a|a|a|a|a|a|a|a|a|a|a"]);
}

#[test]
fn an_incomplete_request_waits() {
    for script in [
        "*",
        "*1",
        "*1\r",
        "*1\r\n",
        "*1\r\n$",
        "*1\r\n$4\r\nPING",
        "*1\r\n$4\r\nPING\r",
        "PING",
        "PING\r",
        "*abc",
        "*1\r\n$x",
    ] {
        check(script, &[]);
    }
}

#[test]
fn nothing_is_answered_to_nothing() {
    check("\r\n", &["skip"]);
    check("\n", &["skip"]);
    check("  \t \r\n", &["skip"]);
    check("*0\r\n", &["skip"]);
    check("*-1\r\n*-10\r\n", &["skip", "skip"]);
}

#[test]
fn regression_an_array_behind_an_empty_line_is_an_array() {
    check(format!("\r\n{PING}"), &["skip", "PING"]);
    check("\r\n*2\r\n$4\r\nECHO\r\n$4\r\n\x00\r\n*\r\n", &["skip", "ECHO|\\x00\\r\\n*"]);
    check(format!("*0\r\nPING\r\n{PING}"), &["skip", "PING", "PING"]);
}

#[test]
fn inline_requests_run() {
    check("PING\r\nPING\n", &["PING", "PING"]);
    check(" SET\tk  v \r\n", &["SET|k|v"]);
    check("SET k \"\\x41\\n b\"\r\nSET k 'it\\'s'\r\n", &["SET|k|A\\n b", "SET|k|it\\'s"]);
    check("HELLO 3\r\n\"\"\r\nGET \"\"\n", &["HELLO|3", "", "GET|"]);
    check(format!("PING\r\n{PING}PING\r\n"), &["PING", "PING", "PING"]);
}

#[test]
fn unbalanced_quotes_close() {
    let error = "-Protocol error: unbalanced quotes in request";
    check("GET \"a\r\nPING\r\n", &[error]);
    check("GET 'a\r\n", &[error]);
    check("GET \"a\"b\r\n", &[error]);
}

#[test]
fn an_inline_request_without_an_end_closes_and_a_long_one_with_an_end_runs() {
    let error = "-Protocol error: too big inline request";
    check("x".repeat(limits::MAX_INLINE_BYTES), &[]);
    check("x".repeat(limits::MAX_INLINE_BYTES + 1), &[error]);
    let longest = "x".repeat(limits::MAX_INLINE_BYTES - 1);
    check(format!("{longest}\r\n"), &[&longest]);
    let long = "x".repeat(70_000);
    assert_eq!(whole(format!("{long}\r\n")), [&*long]);
    // The same line in two pieces: it is waited for no longer.
    let mut client = Client::new(MAX_VALUE_BYTES, true);
    client.receive(long.as_bytes());
    client.receive(b"\r\n");
    assert_eq!(client.events, [error]);
}

#[test]
fn an_invalid_argument_count_closes() {
    let error = "-Protocol error: invalid multibulk length";
    for count in
        ["abc", "", "+1", "01", "00", "-0", "-01", " 1", "1 ", "1a", "-", "1048577", "2147483647", "2147483648"]
    {
        check(format!("*{count}\r\n"), &[error]);
    }
    for count in ["9223372036854775808", "-9223372036854775809", "100000000000000000000000"] {
        check(format!("*{count}\r\n"), &[error]);
    }
    check("*1048576\r\n", &[]);
    check("*-9223372036854775808\r\n", &["skip"]);
}

#[test]
fn a_header_line_without_an_end_closes() {
    let digits = "1".repeat(limits::MAX_HEADER_LINE_BYTES - 1);
    check(format!("*{digits}"), &[]);
    check(format!("*{digits}1"), &["-Protocol error: too big mbulk count string"]);
    check(format!("*2\r\n$1\r\na\r\n${digits}"), &[]);
    check(format!("*2\r\n$1\r\na\r\n${digits}1"), &["-Protocol error: too big bulk count string"]);
    check(format!("*{digits}\r\n"), &["-Protocol error: invalid multibulk length"]);
    assert_eq!(whole(format!("*{digits}1\r\n")), ["-Protocol error: invalid multibulk length"]);
}

#[test]
fn an_element_that_is_no_bulk_closes() {
    check("*1\r\n+PING\r\n", &["-Protocol error: expected '$', got '+'"]);
    check("*2\r\n$4\r\nECHO\r\n:1\r\n", &["-Protocol error: expected '$', got ':'"]);
    check("*1\r\n\r\n", &["-Protocol error: expected '$', got ' '"]);
    check("*1\r\n\x01", &["-Protocol error: expected '$', got '\\x01'"]);
    check("*1\r\n".repeat(20_000), &["-Protocol error: expected '$', got '*'"]);
}

#[test]
fn an_invalid_bulk_length_closes() {
    let error = "-Protocol error: invalid bulk length";
    for len in
        ["-1", "abc", "", "+4", "04", "00", "-0", " 4", "536870913", "9223372036854775807", "9223372036854775808"]
    {
        check(format!("*1\r\n${len}\r\n"), &[error]);
    }
}

#[test]
fn more_than_a_request_may_hold_closes_before_a_byte_of_it_is_kept() {
    let error = "-Protocol error: request larger than 134217728 bytes";
    let client = || Client::new(usize::MAX, true);
    check_with(client, b"*1\r\n$134217728\r\n", &[]);
    check_with(client, b"*1\r\n$134217729\r\n", &[error]);
    check_with(client, b"*1\r\n$536870912\r\n", &[error]);
    check_with(client, b"*2\r\n$1\r\nx\r\n$134217727\r\n", &[]);
    check_with(client, b"*2\r\n$1\r\nx\r\n$134217728\r\n", &[error]);
    // What is dropped as it arrives takes no room and does not count; the sum starts anew with each request.
    check_max_value(10, "*2\r\n$11\r\n0123456789a\r\n$134217728\r\n", &[]);
    check_with(client, b"*1\r\n$1\r\nx\r\n*1\r\n$134217728\r\n", &["x"]);
}

#[test]
fn a_stranger_may_send_little() {
    let ten = "$1\r\na\r\n".repeat(10);
    check_stranger(format!("*10\r\n{ten}"), &["a|a|a|a|a|a|a|a|a|a"]);
    check_stranger("*11\r\n", &["-Protocol error: unauthenticated multibulk length"]);
    check_stranger("*1\r\n$16384\r\n", &[]);
    check_stranger("*1\r\n$16385\r\n", &["-Protocol error: unauthenticated bulk length"]);
    check_stranger("*1048577\r\n", &["-Protocol error: invalid multibulk length"]);
    check_stranger("*1\r\n$536870913\r\n", &["-Protocol error: invalid bulk length"]);
    check("*11\r\n$16385\r\n", &[]);
}

#[test]
fn a_client_that_authenticates_is_no_stranger_from_the_next_header_on() {
    let mut scanner = Scanner::new(MAX_VALUE_BYTES);
    scanner.set_authenticated(false);
    assert_eq!(scanner.scan(b"*1\r\n$1\r\na\r\n*11\r\n"), Scan::Request { consumed: 11 });
    scanner.set_authenticated(true);
    assert_eq!(scanner.scan(b"*11\r\n"), Scan::NeedMore);
}

#[test]
fn wrong_line_ends_close() {
    let terminator = "-Protocol error: invalid bulk terminator";
    check("*1\r\n$4\r\nPINGxx", &[terminator]);
    check("*1\r\n$4\r\nPING\rx", &[terminator]);
    check("*1\r\n$4\r\nPING\n\n", &[terminator]);
    check("*1\r\n$3\r\nPING\r\n", &[terminator]);
    let line_feed = "-Protocol error: expected LF after CR";
    check("*1\rX", &[line_feed]);
    check("*-1\r\r", &[line_feed]);
    check("*1\r\n$4\rXPING\r\n", &[line_feed]);
}

#[test]
fn a_bad_request_is_answered_behind_the_good_ones() {
    check(format!("{PING}PING\r\n*x\r\n{PING}"), &["PING", "PING", "-Protocol error: invalid multibulk length"]);
    check(format!("{PING}*1\r\n$-1\r\n{PING}"), &["PING", "-Protocol error: invalid bulk length"]);
}

#[test]
fn an_empty_command_name_is_a_request() {
    check("*1\r\n$0\r\n\r\n", &[""]);
    check("*3\r\n$3\r\nSET\r\n$0\r\n\r\n$0\r\n\r\n", &["SET||"]);
}

#[test]
fn a_browser_is_closed_without_a_word() {
    check("POST / HTTP/1.1\r\nHost: a\r\n", &["close"]);
    check("post /\n", &["close"]);
    check("GET / HTTP/1.1\r\nHost: a\r\n\r\nPING\r\n", &["GET|/|HTTP/1.1", "close"]);
    check("POSTS\r\nHost\r\n", &["POSTS", "Host"]);
    check("*2\r\n$4\r\nECHO\r\n$4\r\nPOST\r\nECHO POST\r\n", &["ECHO|POST", "ECHO|POST"]);
}

#[test]
fn arguments_are_bytes() {
    check(b"*2\r\n$3\r\nGET\r\n$6\r\n\x00\xff\r\n$*\r\n", &["GET|\\x00\\xff\\r\\n$*"]);
    check(b"GET \x00\xff\n", &["GET|\\x00\\xff"]);
}

#[test]
fn a_value_that_is_too_long_is_told_and_not_kept() {
    check_max_value(4, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nabcde\r\nPING\r\n", &["SET|k|<oversize>", "PING"]);
    check_max_value(4, "*3\r\n$4\r\nMSET\r\n$5\r\nabcde\r\n$4\r\nabcd\r\n", &["MSET|<oversize>|abcd"]);
    check_max_value(3, "*2\r\n$4\r\nPING\r\n$6\r\n\r\n*1\r\n\r\n*1\r\n$1\r\na\r\n", &["<oversize>|<oversize>", "a"]);
    check_max_value(4, "*1\r\n$5\r\nabcdexx", &["-Protocol error: invalid bulk terminator"]);
    check_max_value(4, "SET k abcde\r\nSET k abcd\r\n", &["SET|k|<oversize>", "SET|k|abcd"]);
}
