//! The requests that took long, as SLOWLOG tells them.
//!
//! Promise: bounded in entries and in the size of each; a password is never in it; a request that was fast enough costs one
//! comparison. Must never know a socket.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::core::types::Millis;
use crate::frontends::resp::command::Command;
use crate::frontends::resp::scan::Args;

/// As in Redis: what is slow, in microseconds, and how many slow requests are kept.
const SLOWER_THAN_US: i64 = 10_000;
const MOST_ENTRIES: usize = 128;
/// The most entries that may be asked for: with the longest arguments they take about 300 MB.
pub const HIGHEST_MOST_ENTRIES: usize = 65_536;
/// Arguments of an entry, and bytes of each.
const SHOWN_ARGUMENTS: usize = 32;
const SHOWN_BYTES: usize = 128;

const REDACTED: &[u8] = b"(redacted)";

/// A request that took long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub id: u64,
    /// When it was run.
    pub at: Millis,
    pub micros: u64,
    pub args: Vec<Vec<u8>>,
    pub peer: SocketAddr,
    /// The name of the client.
    pub name: Vec<u8>,
}

/// The slow requests, newest first.
pub struct Slowlog {
    /// Requests that take this many microseconds or more are kept; negative: none are.
    pub slower_than_us: AtomicI64,
    pub most_entries: AtomicUsize,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    next_id: u64,
    newest_first: VecDeque<Arc<Entry>>,
}

impl Default for Slowlog {
    fn default() -> Self {
        Self {
            slower_than_us: AtomicI64::new(SLOWER_THAN_US),
            most_entries: AtomicUsize::new(MOST_ENTRIES),
            entries: Mutex::default(),
        }
    }
}

impl Slowlog {
    /// Whether a request that took so long is kept.
    #[must_use]
    pub fn is_slow(&self, micros: u64) -> bool {
        let slower_than = self.slower_than_us.load(Ordering::Relaxed);
        slower_than >= 0 && micros >= slower_than as u64
    }

    /// Keeps a request that was slow.
    pub fn keep(&self, command: &Command, args: Args<'_>, micros: u64, at: Millis, peer: SocketAddr, name: &[u8]) {
        let args = shown(command, args);
        let mut entries = self.entries();
        let id = entries.next_id;
        entries.next_id += 1;
        entries.newest_first.push_front(Arc::new(Entry { id, at, micros, args, peer, name: name.to_vec() }));
        entries.newest_first.truncate(self.most_entries.load(Ordering::Relaxed));
    }

    /// The newest entries.
    #[must_use]
    pub fn newest(&self, count: usize) -> Vec<Arc<Entry>> {
        self.entries().newest_first.iter().take(count).cloned().collect()
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.entries().newest_first.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets every entry; numbers go on.
    pub fn reset(&self) {
        self.entries().newest_first.clear();
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The arguments as they are shown, cut as Redis cuts them.
fn shown(command: &Command, args: Args<'_>) -> Vec<Vec<u8>> {
    let whole = if args.len() > SHOWN_ARGUMENTS { SHOWN_ARGUMENTS - 1 } else { args.len() };
    let mut shown: Vec<Vec<u8>> = Vec::with_capacity(SHOWN_ARGUMENTS);
    for (i, arg) in args.iter().enumerate().take(whole) {
        shown.push(match arg {
            _ if is_secret(command, args, i) => REDACTED.to_vec(),
            long if long.len() > SHOWN_BYTES => {
                let more = format!("... ({} more bytes)", long.len() - SHOWN_BYTES);
                [&long[..SHOWN_BYTES], more.as_bytes()].concat()
            }
            arg => arg.to_vec(),
        });
    }
    if whole < args.len() {
        shown.push(format!("... ({} more arguments)", args.len() - whole).into_bytes());
    }
    shown
}

/// Whether this argument is a password, or the name that belongs to one.
fn is_secret(command: &Command, args: Args<'_>, i: usize) -> bool {
    let word = |i: usize, word: &[u8]| args.get(i).is_some_and(|arg| arg.eq_ignore_ascii_case(word));
    match command.name {
        "auth" => i >= 1,
        // Also of one that is wrong, and of more than one.
        "hello" => (i >= 3 && word(i - 1, b"AUTH")) || (i >= 4 && word(i - 2, b"AUTH")),
        "config|set" => i >= 3 && (word(i - 1, b"requirepass") || word(i - 1, b"masterauth")),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontends::resp::command::look_up;
    use crate::frontends::resp::scan::{Scan, Scanner};

    fn kept(request: &str) -> Vec<String> {
        let input = format!("{request}\r\n");
        let mut scanner = Scanner::new(usize::MAX);
        assert!(matches!(scanner.scan(input.as_bytes()), Scan::Request { .. }));
        let args = scanner.args(input.as_bytes());
        let command = look_up(args).unwrap();
        shown(command, args).iter().map(|arg| String::from_utf8_lossy(arg).into_owned()).collect()
    }

    #[test]
    fn long_requests_are_cut_as_redis_cuts_them() {
        let long = "x".repeat(130);
        assert_eq!(kept(&format!("GET {long}")), ["GET".to_owned(), format!("{}... (2 more bytes)", "x".repeat(128))]);
        let keys = |count: usize| vec!["k"; count].join(" ");
        assert_eq!(kept(&format!("DEL {}", keys(31))).len(), 32);
        let cut = kept(&format!("DEL {}", keys(40)));
        assert_eq!((cut.len(), cut.last().unwrap().as_str()), (32, "... (10 more arguments)"));
    }

    #[test]
    fn a_password_is_never_kept() {
        assert_eq!(kept("AUTH secret"), ["AUTH", "(redacted)"]);
        assert_eq!(kept("auth default secret"), ["auth", "(redacted)", "(redacted)"]);
        assert_eq!(
            kept("HELLO 3 SETNAME me auth default secret"),
            ["HELLO", "3", "SETNAME", "me", "auth", "(redacted)", "(redacted)"]
        );
        assert_eq!(kept("CONFIG SET requirepass secret"), ["CONFIG", "SET", "requirepass", "(redacted)"]);
    }

    #[test]
    fn the_newest_come_first_and_the_oldest_go() {
        let slowlog = Slowlog::default();
        assert!(slowlog.is_slow(10_000) && !slowlog.is_slow(9_999));
        slowlog.most_entries.store(2, Ordering::Relaxed);
        let peer = "127.0.0.1:1".parse().unwrap();
        let input = b"PING\r\n";
        let mut scanner = Scanner::new(16);
        scanner.scan(input);
        let args = scanner.args(input);
        for micros in 1..=3 {
            slowlog.keep(look_up(args).unwrap(), args, micros, Millis(5), peer, b"me");
        }
        let newest = slowlog.newest(10);
        assert_eq!(newest.iter().map(|entry| (entry.id, entry.micros)).collect::<Vec<_>>(), [(2, 3), (1, 2)]);
        slowlog.reset();
        assert!(slowlog.is_empty());
        slowlog.keep(look_up(args).unwrap(), args, 1, Millis(5), peer, b"me");
        assert_eq!(slowlog.newest(1)[0].id, 3);
        slowlog.slower_than_us.store(-1, Ordering::Relaxed);
        assert!(!slowlog.is_slow(u64::MAX));
    }
}
