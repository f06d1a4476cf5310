//! Group commit, counted twice: by the broker's own INFO and by the kernel's view of the same run.
//!
//! Sixteen connections that each wait for every reply can only be served faster than one flush a write if writes are
//! gathered; nothing may be acknowledged without a flush, and no flush be counted that was not made.

use std::ffi::OsString;
use std::path::Path;
use std::thread;

use crate::case::Case;
use crate::support::{Client, Launch, Reply, Scratch};

const CONNECTIONS: u64 = 16;
const SETS_EACH: u64 = 200;
/// Flushes of opening and closing: the 64 pieces in which the first segment is filled with zeros, new files, anchor and
/// clean-stop mark.
const OTHER_FLUSHES: u64 = 96;

#[derive(Debug, Clone, Copy)]
struct Counts {
    batches: u64,
    flushes: u64,
}

#[test]
fn sixteen_writers_share_flushes() {
    let _case = Case::new("flushes::sixteen_writers_share_flushes");
    let scratch = Scratch::new("flushes");
    let summary = scratch.path().join("strace");
    let broker = Launch::new(&scratch.path().join("data"), "always").under(strace(&summary)).start();
    let mut client = broker.client();
    let before = counts(&mut client);
    let writers: Vec<_> = (0..CONNECTIONS).map(|writer| (writer, broker.client())).collect();
    let writers: Vec<_> =
        writers.into_iter().map(|(writer, client)| thread::spawn(move || set_one_by_one(writer, client))).collect();
    for writer in writers {
        writer.join().expect("a writer panicked");
    }
    let after = counts(&mut client);
    drop(client);
    assert_eq!(broker.terminate(), 0, "the exit code, passed on by strace");
    let (batches, flushes) = (after.batches - before.batches, after.flushes - before.flushes);
    let made = calls(&summary, "fdatasync");
    println!("{} writes: {batches} batches, {flushes} flushes, {made} fdatasync in all", CONNECTIONS * SETS_EACH);
    assert!(
        batches >= SETS_EACH,
        "each connection waited for {SETS_EACH} replies in turn, yet there were {batches} batches"
    );
    assert!(batches < CONNECTIONS * SETS_EACH, "{batches} batches: no two writes shared one");
    assert_eq!(flushes, batches, "with `always` each batch is flushed once");
    assert!(made >= flushes, "INFO counts {flushes} flushes, the kernel saw {made} fdatasync");
    assert!(made <= flushes + OTHER_FLUSHES, "INFO counts {flushes} flushes, the kernel saw {made} fdatasync");
}

fn strace(summary: &Path) -> Vec<OsString> {
    let mut words: Vec<OsString> =
        ["strace", "-f", "-c", "-e", "trace=fdatasync,fsync", "-o"].map(OsString::from).into();
    words.push(summary.into());
    words
}

fn set_one_by_one(writer: u64, mut client: Client) {
    for number in 0..SETS_EACH {
        let key = format!("flush:{writer}:{number}");
        let reply = client.call(&[b"SET", key.as_bytes(), b"value"]);
        assert!(matches!(&reply, Ok(Reply::Simple(word)) if word == b"OK"), "SET got {reply:?}");
    }
}

fn counts(client: &mut Client) -> Counts {
    let text = match client.call(&[b"INFO", b"persistence"]) {
        Ok(Reply::Bulk(Some(text))) => String::from_utf8(text).expect("INFO is text"),
        other => panic!("INFO persistence got {other:?}"),
    };
    Counts { batches: field(&text, "hearth_batches:"), flushes: field(&text, "hearth_flushes:") }
}

fn field(text: &str, name: &str) -> u64 {
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    let value = value.unwrap_or_else(|| panic!("INFO persistence without {name}\n{text}"));
    value.trim().parse().unwrap_or_else(|_| panic!("{name}{value} is not a number"))
}

/// The `calls` column of a row of `strace -c`; the column before the name (errors) may be empty.
fn calls(summary: &Path, name: &str) -> u64 {
    let table = std::fs::read_to_string(summary).expect("strace wrote its summary");
    let row =
        table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).find(|row| row.last() == Some(&name));
    let row = row.unwrap_or_else(|| panic!("no row for {name} in\n{table}"));
    row[3].parse().unwrap_or_else(|_| panic!("no calls column in {row:?}"))
}
