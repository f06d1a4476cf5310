//! One RESP connection, from its first byte to its last.
//!
//! ```text
//! read what is there -> evaluate every complete request -> wait for what the replies wait for -> one write -> again
//! ```
//! Promise: replies in request order; requests of one buffer are staged as one piece; while replies wait to be sent no
//! more requests are evaluated than fit the high-water mark; memory is bounded by one request and one round of replies.
//! Must never decide what a command means.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::core::api::{Fate, Hold, Turns};
use crate::core::error::ReadError;
use crate::core::log::reader::Wait;
use crate::core::shard::read::Pinned;
use crate::frontends::front_end::Session;
use crate::frontends::resp::client::Client;
use crate::frontends::resp::command::{self, Call, CommandError};
use crate::frontends::resp::input::Input;
use crate::frontends::resp::limits::OUTPUT_HIGH_WATER_BYTES;
use crate::frontends::resp::replies::Replies;
use crate::frontends::resp::scan::{Scan, Scanner};
use crate::rt::{self, Stream};

/// How long a closing connection waits for its peer to close too, in milliseconds.
pub const CLOSE_GRACE_MS: u64 = 1_000;

/// Why a round of evaluation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pause {
    /// No complete request is left: read more.
    Read,
    /// Enough replies are gathered: send them, then go on.
    Send,
    /// A shard has no room to stage more: send, wait for room, then run the same request again.
    Room(Hold),
    /// The conversation is over.
    Close,
}

/// Serves a connection until it ends.
pub async fn serve(mut stream: Stream, session: Session) {
    let mut connection = Connection {
        client: Client::new(session.id),
        scanner: Scanner::new(session.metrics.max_value_bytes),
        input: Input::default(),
        replies: Replies::default(),
        scratch: Vec::new(),
        session,
    };
    loop {
        let turns = connection.session.cache.turns();
        let pause = connection.evaluate(&turns);
        connection.settle(&turns).await;
        if !connection.replies.is_empty() {
            let sent = stream.write_all(connection.replies.bytes()).await;
            connection.session.metrics.output_bytes.fetch_add(connection.replies.len() as u64, Ordering::Relaxed);
            if sent.is_err() {
                return;
            }
        }
        connection.replies.clear();
        match pause {
            Pause::Send => continue,
            Pause::Room(next) => {
                turns.settle(next).await;
                continue;
            }
            Pause::Close => break,
            Pause::Read if connection.session.is_closing() => break,
            Pause::Read => {}
        }
        match stream.read(connection.input.space()).await {
            Ok(read) if read > 0 => {
                connection.session.metrics.input_bytes.fetch_add(read as u64, Ordering::Relaxed);
                connection.input.filled(read);
            }
            Ok(_) if connection.session.is_closing() => break,
            // The peer closed, or is gone: what it sent is answered, half a request is dropped.
            Ok(_) | Err(_) => return,
        }
    }
    stream.close_gently(CLOSE_GRACE_MS).await;
}

struct Connection {
    session: Session,
    client: Client,
    scanner: Scanner,
    input: Input,
    replies: Replies,
    scratch: Vec<u8>,
}

/// What a round counted, added to the broker's counters once.
#[derive(Default)]
struct Counted {
    commands: u64,
    hits: u64,
    misses: u64,
}

impl Connection {
    /// Evaluates complete requests, in order, without waiting for anything.
    fn evaluate(&mut self, turns: &Turns) -> Pause {
        let mut turn = turns.turn();
        let mut counted = Counted::default();
        let pause = loop {
            if self.client.quitting {
                break Pause::Close;
            }
            if self.replies.gathered_bytes() >= OUTPUT_HIGH_WATER_BYTES {
                break Pause::Send;
            }
            let consumed = match self.scanner.scan(self.input.bytes()) {
                Scan::NeedMore => break Pause::Read,
                Scan::Skip { consumed } => consumed,
                Scan::Discard { start, end } => {
                    self.input.remove(start..end);
                    continue;
                }
                Scan::Bad(error) => {
                    self.replies.error(self.client.protocol, &format!("ERR {error}"));
                    break Pause::Close;
                }
                Scan::CrossProtocol => {
                    tracing::warn!(peer = %self.session.peer, "closed a connection that speaks HTTP to the RESP port");
                    break Pause::Close;
                }
                Scan::Request { consumed } => {
                    self.replies.begin();
                    // HELLO and RESET change the protocol for the next request; an error of theirs uses the old one.
                    let protocol = self.client.protocol;
                    let mut call = Call {
                        args: self.scanner.args(self.input.bytes()),
                        turn: &mut turn,
                        client: &mut self.client,
                        session: &self.session,
                        replies: &mut self.replies,
                        scratch: &mut self.scratch,
                        hits: &mut counted.hits,
                        misses: &mut counted.misses,
                    };
                    match command::run(&mut call) {
                        Ok(()) => {}
                        Err(CommandError::Text(text)) => {
                            self.replies.take_back();
                            self.replies.error(protocol, &text);
                        }
                        Err(CommandError::Full(shard)) => {
                            self.replies.take_back();
                            break Pause::Room(turns.room(shard));
                        }
                    }
                    self.replies.end(self.client.protocol);
                    counted.commands += 1;
                    consumed
                }
            };
            self.input.consume(consumed);
        };
        drop(turn);
        self.count(&counted);
        pause
    }

    fn count(&self, counted: &Counted) {
        let metrics = &self.session.metrics;
        let add = |counter: &AtomicU64, number: u64| {
            if number > 0 {
                counter.fetch_add(number, Ordering::Relaxed);
            }
        };
        add(&metrics.commands, counted.commands);
        add(&metrics.keyspace_hits, counted.hits);
        add(&metrics.keyspace_misses, counted.misses);
    }

    /// Waits until every reply may leave, and puts in what could not be known before.
    async fn settle(&mut self, turns: &Turns) {
        let mut all_applied = true;
        for hold in self.replies.newest_holds() {
            all_applied &= turns.settle(hold).await == Fate::Applied;
        }
        if !all_applied || !self.replies.cold.is_empty() {
            let mut values = Vec::new();
            for cold in &self.replies.cold {
                values.push(read_waiting(cold.pinned.clone(), cold.key.clone()).await);
            }
            // A hold whose newest one is settled is settled itself.
            self.replies.patch(values, |hold| turns.fate(hold).unwrap_or(Fate::Refused));
        }
        if self.replies.errors > 0 {
            self.session.metrics.error_replies.fetch_add(self.replies.errors, Ordering::Relaxed);
        }
    }
}

/// Reads a value that the disk has to be waited for, on a thread that may wait.
async fn read_waiting(pinned: Pinned, key: Box<[u8]>) -> Result<Vec<u8>, ReadError> {
    rt::unblock(move || {
        let mut scratch = Vec::new();
        // With `Wait::IfNeeded` there is always a value or an error.
        pinned.read(&key, Wait::IfNeeded, &mut scratch).map(|value| value.unwrap_or_default().to_vec())
    })
    .await
}
