//! The table of the protocol's limits: what is no request, or hardly one, and what it is answered. A test for each row.
//!
//! Promise: each script stands behind good requests and, where the connection stays, before one; what differs from Redis
//! says why. Must never know how it is cut.
//!
//! How long a line may be when its end is already there cannot be told from outside: `scan/tests.rs` has that. The rows about
//! who has not given the password are in `strangers`.

use crate::abuse::cutting::Cutting;
use crate::client::request;
use crate::script::{Script, recording};
use crate::wire::expected;

const STRICT: &str = "Redis skips these bytes unseen; we would rather not guess what follows";
const C_STRING: &str = "Redis looks for the line's end with a function of C strings and waits for it for ever";
const WITHOUT_A_WORD: &str = "Redis drops what it had not sent yet; the good requests before deserve their replies";
const NOBODY: &str = "Redis 7.0 takes up to 2^31-1, before it 1,048,576; nobody sends more";

const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";
const GOOD: &str = "+OK\r\n$1\r\n1\r\n";

/// `bytes` behind a SET and a GET.
fn row(name: &'static str, bytes: impl AsRef<[u8]>) -> Script {
    Script::raw(name, [&request(["SET", "k", "1"])[..], &request(["GET", "k"]), bytes.as_ref()].concat())
}

/// The replies to both, and `reply` to what follows.
fn behind_good(reply: &str) -> String {
    format!("{GOOD}{reply}")
}

fn refused(why: &str) -> String {
    behind_good(&format!("-ERR Protocol error: {why}\r\n"))
}

fn nothing() -> Vec<Script> {
    vec![
        row("empty-lines-are-skipped", b"\r\n  \r\n\n\t\n\r\n"),
        row("blanks-of-every-kind-are-an-empty-line", b"\x0b\r\n\x0c \t\x0b\n\r\r\n"),
        row("empty-arrays-are-skipped", b"*0\r\n*-1\r\n*-10\r\n*1\r\n$4\r\nPING\r\n"),
        Script::raw("good-requests-behind-nothing", [PING, b"\r\n", PING].concat()),
        Script::raw("nothing", ""),
    ]
}

fn inline() -> Vec<Script> {
    vec![
        row("inline-lines-end-in-lf-or-crlf", b"PING\nPING\r\n  PING  \r\n\tECHO\ta\t\r\n"),
        row(
            "inline-quotes",
            b"ECHO \"\\x41\\n\\\"b\"\r\nECHO 'it\\'s'\r\nECHO \"\"\r\nECHO a\"b c\"\r\nSET k 'a b'\r\nGET k\r\n",
        ),
        row("inline-escapes", b"ECHO \"\\xfF\\xZZ\\x4\\q\\r\\t\\b\\a\\\\\"\r\nECHO 'a\\n\\x41\\\\b'\r\n"),
        row(
            "inline-blanks-in-and-around-words",
            b"\x0b\x0cPING\r\nECHO a\x0bb\nECHO \"a\"\x0b\nPING\x0c\r\nECHO a\rb\n",
        ),
        row("inline-an-empty-name", b"\"\"\r\n'' a\r\n"),
        row("inline-hello", b"HELLO 3\r\nGET nothing\r\n"),
        row(
            "inline-and-arrays-take-turns",
            b"PING\r\n*1\r\n$4\r\nPING\r\nECHO a\r\n\r\n*2\r\n$4\r\nECHO\r\n$1\r\nb\r\n",
        ),
        row("inline-unknown", b"FOO bar\r\nGET\r\n"),
        row("inline-quit", b"QUIT\r\nPING\r\n"),
        row("inline-a-nul-is-a-byte", b"ECHO a\x00b\r\nGET \x00\n")
            .differs(behind_good("$3\r\na\x00b\r\n$-1\r\n"), C_STRING),
    ]
}

fn unbalanced_quotes() -> Vec<Script> {
    vec![
        row("inline-unbalanced-double-quote", b"ECHO \"a\r\nPING\r\n"),
        row("inline-unbalanced-single-quote", b"ECHO 'a\r\n"),
        row("inline-unbalanced-after-a-backslash", b"ECHO \"a\\\"\r\n"),
        row("inline-text-glued-to-a-quote", b"ECHO \"a\"b\r\n"),
        row("inline-quote-glued-to-a-quote", b"ECHO 'a'\"b\"\r\n"),
    ]
}

/// Key and line have 65,536 bytes, which is as long as a line without an end may be.
fn long_lines() -> Vec<Script> {
    let digits = |count| "1".repeat(count);
    vec![
        row("the-longest-inline-line-that-is-waited-for", format!("EXISTS {}\n", "a".repeat(65_536 - 7))),
        row("too-long-an-inline-line", "a".repeat(70_000)).unprobed(),
        row("the-longest-count-line-that-is-waited-for", format!("*{}\r\n", digits(65_535))),
        row("too-long-a-count-line", format!("*{}", digits(70_000))).unprobed(),
        row("the-longest-length-line-that-is-waited-for", format!("*1\r\n${}\r\n", digits(65_535))),
        row("too-long-a-length-line", format!("*1\r\n${}", digits(70_000))).unprobed(),
    ]
}

fn counts() -> Vec<Script> {
    vec![
        row("a-count-that-is-no-number", b"*abc\r\n"),
        row("a-count-that-is-nothing", b"*\r\n"),
        row("a-count-with-a-plus", b"*+1\r\n"),
        row("a-count-with-a-zero-in-front", b"*01\r\n"),
        row("a-count-with-a-blank", b"* 1\r\n"),
        row("a-count-with-a-blank-behind-it", b"*1 \r\n"),
        row("a-count-of-minus-nothing", b"*-0\r\n"),
        row("a-count-that-is-a-fraction", b"*1.0\r\n"),
        row("a-count-over-an-int", b"*2147483648\r\n"),
        row("a-count-over-everything", b"*99999999999999999999\r\n"),
        row("more-arguments-than-anybody-sends", b"*1048577\r\n").differs(refused("invalid multibulk length"), NOBODY),
        row("as-many-arguments-as-an-int-counts", b"*2147483647\r\n")
            .differs(refused("invalid multibulk length"), NOBODY),
    ]
}

fn elements() -> Vec<Script> {
    vec![
        row("an-element-that-is-an-integer", b"*2\r\n$4\r\nECHO\r\n:1\r\n"),
        row("an-element-that-is-a-simple-string", b"*1\r\n+PING\r\n"),
        row("an-element-that-is-an-error", b"*1\r\n-ERR\r\n"),
        row("an-element-that-is-a-word", b"*1\r\nPING\r\n"),
        row("an-element-of-resp3", b"*1\r\n_\r\n"),
        row("a-nested-array", b"*1\r\n*1\r\n$4\r\nPING\r\n"),
        row("many-nested-arrays", b"*1\r\n".repeat(500)),
        row("an-element-that-is-a-line-end", b"*1\r\n\r\n"),
    ]
}

fn lengths() -> Vec<Script> {
    vec![
        row("a-length-below-zero", b"*1\r\n$-1\r\n"),
        row("a-length-that-is-no-number", b"*1\r\n$abc\r\n"),
        row("a-length-that-is-nothing", b"*1\r\n$\r\n"),
        row("a-length-with-a-plus", b"*1\r\n$+4\r\nPING\r\n"),
        row("a-length-with-a-zero-in-front", b"*1\r\n$04\r\nPING\r\n"),
        row("a-length-with-a-blank", b"*1\r\n$ 4\r\nPING\r\n"),
        row("a-length-over-512-mib", b"*1\r\n$536870913\r\n"),
        row("a-length-over-everything", b"*1\r\n$99999999999999999999\r\n"),
        row("a-length-over-512-mib-is-judged-from-its-header", b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870913\r\n")
            .unprobed(),
    ]
}

fn line_ends() -> Vec<Script> {
    let terminator = refused("invalid bulk terminator");
    let line_feed = refused("expected LF after CR");
    vec![
        row("a-bulk-that-does-not-end", b"*1\r\n$4\r\nPINGxx").differs(&*terminator, STRICT),
        row("a-bulk-that-ends-in-line-feeds", b"*1\r\n$4\r\nPING\n\n").differs(&*terminator, STRICT),
        row("a-bulk-that-is-longer-than-its-length", b"*1\r\n$3\r\nPING\r\n").differs(&*terminator, STRICT),
        row("a-bulk-that-is-shorter-than-its-length", b"*1\r\n$5\r\nPING\r\n*1\r\n").differs(&*terminator, STRICT),
        row("a-count-line-with-cr-only", b"*1\rX$4\r\nPING\r\n").differs(&*line_feed, STRICT),
        row("a-length-line-with-cr-only", b"*1\r\n$4\rXPING\r\n").differs(&*line_feed, STRICT),
    ]
}

fn behind_good_ones() -> Vec<Script> {
    let behind = |bytes: &[u8]| [PING, b"ECHO a\r\n", bytes, PING, PING].concat();
    vec![
        row("a-bad-count-behind-good-requests-and-before-others", behind(b"*x\r\n")),
        row("a-bad-length-behind-good-requests-and-before-others", behind(b"*2\r\n$4\r\nECHO\r\n$-1\r\n")),
        row("a-bad-element-behind-good-requests-and-before-others", behind(b"*2\r\n$4\r\nECHO\r\n+a\r\n")),
        row("bad-quotes-behind-good-requests-and-before-others", behind(b"ECHO 'a\r\n")),
        row("a-bad-request-is-not-run-in-part", b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$x\r\n"),
    ]
}

fn bytes() -> Vec<Script> {
    let all: Vec<u8> = (0..=255).collect();
    vec![
        row("an-empty-command-name", b"*1\r\n$0\r\n\r\n"),
        row("a-command-name-and-nothing-else", b"*3\r\n$0\r\n\r\n$0\r\n\r\n$0\r\n\r\n"),
        row("an-empty-key-and-an-empty-value", [request(["SET", "", ""]), request(["GET", ""])].concat()),
        row(
            "a-value-of-every-byte",
            [request([&b"SET"[..], b"\x00\xff\r\n", &all]), request([&b"GET"[..], b"\x00\xff\r\n"])].concat(),
        ),
        row("a-value-that-looks-like-requests", request([&b"SET"[..], b"k", &[b"\r\n*x\r\n", PING].concat(), b"GET"])),
    ]
}

fn client_reply() -> Vec<Script> {
    let of = |text: &str| -> Vec<u8> {
        text.split(" | ").flat_map(|line| request(line.split(' ').collect::<Vec<_>>())).collect()
    };
    vec![
        row("client-reply-skip-hides-one", of("CLIENT REPLY SKIP | PING | ECHO a | CLIENT REPLY SKIP | FOO | ECHO b")),
        row(
            "client-reply-skip-is-not-used-up-by-an-empty-line",
            [&of("CLIENT REPLY SKIP")[..], b"\r\n*0\r\n", PING, PING].concat(),
        )
        .differs(
            behind_good("+PONG\r\n"),
            "Redis forgets SKIP at an empty line; it means the next request, and that is none",
        ),
        row(
            "client-reply-off-hides-all-until-on",
            of("CLIENT REPLY OFF | SET k 2 | GET k | FOO | GET | CLIENT REPLY ON | GET k"),
        ),
        row("client-reply-off-hides-why-it-closes", [of("CLIENT REPLY OFF | PING"), b"*x\r\n".to_vec()].concat()),
        row("client-reply-skip-and-why-it-closes", [of("CLIENT REPLY SKIP"), b"*x\r\n".to_vec()].concat()),
        row("client-reply-off-and-quit", of("CLIENT REPLY OFF | QUIT | PING")),
        row("client-reply-skip-and-quit", of("CLIENT REPLY SKIP | QUIT | PING")),
    ]
}

fn foreigners() -> Vec<Script> {
    let closed =
        |name, bytes: &[u8], reply: &str| row(name, bytes).differs(behind_good(reply), WITHOUT_A_WORD).closing();
    vec![
        closed("a-post-is-closed-without-a-word", b"POST / HTTP/1.1\r\nHost: x\r\n\r\nSET k evil\r\n", ""),
        closed("a-post-in-small-letters", b"post / HTTP/1.1\r\n", ""),
        closed("a-host-header-is-closed-without-a-word", b"Host: x\r\n", ""),
        closed("a-host-header-in-capitals", b"HOST: x\r\nSET k evil\r\n", ""),
        closed(
            "a-get-with-a-host-header",
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\nSET k evil\r\n",
            "-ERR wrong number of arguments for 'get' command\r\n",
        ),
        row("post-as-an-array-is-an-unknown-command", b"*1\r\n$4\r\nPOST\r\n").differs(
            behind_good("-ERR unknown command 'POST', with args beginning with: \r\n"),
            "Redis closes here too; but no browser can be made to send an array in front of its request line",
        ),
        row("a-get-of-http-is-a-get", b"GET / HTTP/1.1\r\n"),
        row("the-preface-of-http2-is-two-unknown-commands", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ]
}

fn pipes() -> Vec<Script> {
    vec![
        Script::raw(
            "what-redis-cli-sends-at-the-end-of-a-pipe",
            [&request(["SET", "k", "1"])[..], b"\r\n", &request([&b"ECHO"[..], b"\x00\r\n*1\r\n$\xff\x80 \"'0123456"])]
                .concat(),
        ),
        Script::raw(
            "what-redis-cli-sends-behind-inline-lines",
            [&b"SET k 1\r\nGET k\n\r\n"[..], &request([&b"ECHO"[..], b"*\r\n\n\x01\xfe"])].concat(),
        ),
    ]
}

/// All of them.
pub fn requests_that_are_none() -> Vec<Script> {
    let rows = [nothing, inline, unbalanced_quotes, long_lines, counts, elements, lengths, line_ends];
    let more = [behind_good_ones, bytes, client_reply, foreigners, pipes];
    rows.into_iter().chain(more).flat_map(|row| row()).collect()
}

fn check_all(scripts: Vec<Script>) {
    let (mut cutting, recording) = (Cutting::new(), recording());
    let clean = |cutting: &mut Cutting| drop(cutting.ask(&[b"DEL", b"k", b"", b"\x00\xff\r\n"]));
    for script in scripts {
        let expected = expected(&script, &recording);
        let checked = cutting.check(script.name, &script.sent, &expected, script.probed, clean);
        checked.unwrap_or_else(|wrong| panic!("{wrong}"));
    }
}

#[test]
fn empty_lines_and_empty_arrays_get_no_reply_and_the_connection_stays() {
    check_all(nothing());
}

#[test]
fn inline_requests_run_with_the_blanks_quotes_and_line_ends_of_redis() {
    check_all(inline());
}

#[test]
fn unbalanced_and_glued_quotes_close_the_connection() {
    check_all(unbalanced_quotes());
}

#[test]
fn a_line_or_header_without_an_end_is_waited_for_up_to_64_kib() {
    check_all(long_lines());
}

#[test]
fn a_count_that_is_no_number_or_too_large_closes_the_connection() {
    check_all(counts());
}

#[test]
fn an_element_that_is_no_bulk_closes_the_connection() {
    check_all(elements());
}

#[test]
fn a_length_that_is_no_number_negative_or_over_512_mib_closes_the_connection() {
    check_all(lengths());
}

#[test]
fn wrong_line_ends_close_the_connection_where_redis_skips_them() {
    check_all(line_ends());
}

#[test]
fn a_bad_request_is_answered_last_behind_the_good_ones() {
    check_all(behind_good_ones());
}

#[test]
fn an_empty_name_an_empty_key_an_empty_value_and_any_byte_are_arguments() {
    check_all(bytes());
}

#[test]
fn client_reply_hides_exactly_what_it_names() {
    check_all(client_reply());
}

#[test]
fn a_browser_is_closed_without_a_word_and_other_protocols_are_unknown_commands() {
    check_all(foreigners());
}

#[test]
fn what_redis_cli_sends_to_end_a_pipe_comes_back() {
    check_all(pipes());
}
