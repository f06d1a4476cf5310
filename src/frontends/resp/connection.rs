//! One RESP connection, from its first byte to its last.
//!
//! ```text
//! read what is there -> evaluate every complete request -> wait for what the replies wait for -> one write -> again
//! ```
//! Promise: replies in request order; requests of one buffer are staged as one piece; while replies wait to be sent no
//! more requests are evaluated than fit the high-water mark; memory is bounded by one request, one round of replies and the
//! input that is taken meanwhile, each with a bound of its own.
//! Must never decide what a command means.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_lite::FutureExt;

use crate::core::api::{Fate, Progress, Room, Turn, Turns};
use crate::core::error::Refusal;
use crate::core::types::CacheName;
use crate::frontends::front_end::Session;
use crate::frontends::resp::call::{Call, CommandError, Counted, Fetch, Fetched, Wait};
use crate::frontends::resp::client::{Answers, Client};
use crate::frontends::resp::command::{self, Command};
use crate::frontends::resp::error;
use crate::frontends::resp::input::Input;
use crate::frontends::resp::late;
use crate::frontends::resp::limits::{
    KEPT_SCRATCH_BYTES, OUTPUT_HIGH_WATER_BYTES, SMALL_ROUND_BYTES, UNREAD_INPUT_BYTES,
};
use crate::frontends::resp::outlet::Outlet;
use crate::frontends::resp::replies::Replies;
use crate::frontends::resp::scan::{Scan, Scanner};
use crate::frontends::resp::shared::Shared;
use crate::rt::{Stream, yield_now};

/// How long a closing connection waits for its peer to close too, in milliseconds.
pub const CLOSE_GRACE_MS: u64 = 1_000;

/// Why a round of evaluation ended.
enum Pause {
    /// No complete request is left: read more.
    Read,
    /// Enough replies are gathered: send them, then go on.
    Send,
    /// Send, wait for this, then run the same request again.
    Wait(Awaited),
    /// The conversation is over.
    Close,
}

/// What the next request waits for.
enum Awaited {
    Room(Room),
    Make(Box<CacheName>),
    Fetch(Box<Fetch>),
    /// Nothing beyond what the replies before it wait for.
    Replies,
}

/// What came first.
enum Either<T> {
    Over(T),
    Read(io::Result<usize>),
}

/// Serves a connection until it ends.
pub async fn serve(mut stream: Stream, session: Session, shared: Arc<Shared>) {
    let shared = &*shared;
    let entered = shared.clients.enter(&session, &stream);
    let authenticated = shared.password.is_none();
    let mut connection = Connection {
        client: Client::new(Arc::clone(&entered.card), session.cache.clone(), authenticated),
        scanner: Scanner::new(session.metrics.facts.max_value_bytes),
        input: Input::default(),
        replies: Replies::default(),
        scratch: Vec::new(),
        fetched: None,
        progress: Progress::default(),
        refused: None,
        session,
        shared,
    };
    connection.scanner.set_authenticated(authenticated);
    loop {
        let turns = connection.client.cache.turns();
        let pause = connection.evaluate(&turns);
        let Ok(received) = connection.send(&mut stream, &turns).await else { return };
        match pause {
            Pause::Send => {
                yield_now().await;
                continue;
            }
            Pause::Wait(awaited) => {
                if connection.wait_for(&mut stream, &turns, awaited).await.is_err() {
                    return;
                }
                continue;
            }
            Pause::Close => break,
            Pause::Read if received => {
                yield_now().await;
                continue;
            }
            Pause::Read if connection.session.is_closing() => break,
            Pause::Read => {}
        }
        match stream.read(connection.input.space()).await {
            Ok(read) if read > 0 => {
                connection.session.metrics.input_bytes.fetch_add(read as u64, Ordering::Relaxed);
                connection.input.filled(read);
                if connection.input.bytes().len() >= SMALL_ROUND_BYTES {
                    // Who sends without a pause must not keep the worker: others have their turn between two rounds.
                    yield_now().await;
                }
            }
            Ok(_) if connection.session.is_closing() => break,
            // The peer closed, or is gone: what it sent is answered, half a request is dropped.
            Ok(_) | Err(_) => return,
        }
    }
    stream.close_gently(CLOSE_GRACE_MS).await;
}

struct Connection<'s> {
    session: Session,
    client: Client,
    scanner: Scanner,
    input: Input,
    replies: Replies,
    scratch: Vec<u8>,
    /// The value that the next request waited for.
    fetched: Option<Fetched>,
    /// How far the next request came before it had to wait.
    progress: Progress,
    /// What the next request waited for will not be: it is not run again.
    refused: Option<Refusal>,
    shared: &'s Shared,
}

impl Connection<'_> {
    /// Evaluates complete requests, in order, without waiting for anything.
    fn evaluate(&mut self, turns: &Turns) -> Pause {
        let mut turn = turns.turn();
        let mut counted = Counted::default();
        // The end of one request is the beginning of the next.
        let mut at_us = self.session.cache.micros();
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
                    if self.client.answers == Answers::On {
                        self.replies.error(self.client.protocol, format!("ERR {error}"));
                    }
                    break Pause::Close;
                }
                Scan::CrossProtocol => {
                    tracing::warn!(peer = %self.session.peer, "closed a connection that speaks HTTP to the RESP port");
                    break Pause::Close;
                }
                Scan::Request { consumed } => match self.run_request(&mut turn, &mut counted) {
                    Ok(()) => {
                        self.note_time(&turn, counted.ran.take(), &mut at_us);
                        consumed
                    }
                    Err(wait) => break Pause::Wait(self.awaited(turns, wait)),
                },
            };
            self.input.consume(consumed);
        };
        drop(turn);
        self.count(&counted);
        self.client.card.see_round(&self.client, at_us, &self.input, self.replies.gathered_bytes());
        pause
    }

    /// Notes how long the request took that was just evaluated, and by which command.
    fn note_time(&self, turn: &Turn<'_>, ran: Option<&'static Command>, at_us: &mut u64) {
        let now_us = self.session.cache.micros();
        let took_us = now_us.saturating_sub(*at_us);
        *at_us = now_us;
        // EXEC has noted what it ran, one by one.
        if let Some(command) = ran
            && self.shared.slowlog.is_slow(took_us)
            && !command.flags.contains(&"skip_slowlog")
        {
            let args = self.scanner.args(self.input.bytes());
            self.shared.slowlog.keep(command, args, took_us, turn.now(), self.session.peer, &self.client.name);
        }
    }

    fn awaited(&mut self, turns: &Turns, wait: Wait) -> Awaited {
        match wait {
            Wait::Room(seat) => Awaited::Room(turns.room(seat)),
            Wait::Make(cache) => Awaited::Make(cache),
            Wait::Fetch(fetch) => Awaited::Fetch(fetch),
            Wait::Applied(hold) => {
                // It holds no reply, yet what is sent next waits for it.
                self.replies.wait_for(hold);
                Awaited::Replies
            }
        }
    }

    /// Runs the request the scanner has just found; the error is what has to be waited for before it is run again.
    fn run_request(&mut self, turn: &mut Turn<'_>, counted: &mut Counted) -> Result<(), Wait> {
        self.replies.begin();
        // HELLO and RESET change the protocol for the next request; an error of theirs uses the old one.
        let protocol = self.client.protocol;
        let refused = self.refused.take();
        let mut call = Call {
            args: self.scanner.args(self.input.bytes()),
            turn,
            client: &mut self.client,
            session: &self.session,
            shared: self.shared,
            replies: &mut self.replies,
            scratch: &mut self.scratch,
            counted,
            fetched: &mut self.fetched,
            progress: &mut self.progress,
        };
        let ran = match refused {
            None => command::run(&mut call),
            Some(refusal) => {
                // Of a transaction that is all: it was EXEC that could not be run.
                call.client.end_transaction();
                Err(CommandError::Refused(error::of_refusal(&refusal)))
            }
        };
        match ran {
            Ok(()) => {}
            Err(CommandError::Text(text)) => {
                self.replies.restart();
                self.replies.error(protocol, &text);
            }
            Err(CommandError::Refused(text)) => {
                self.replies.restart();
                self.replies.error(protocol, text);
            }
            Err(CommandError::Wait(wait)) => {
                self.replies.take_back();
                return Err(wait);
            }
        }
        self.fetched = None;
        self.progress = Progress::default();
        self.scanner.set_authenticated(self.client.authenticated);
        if !self.client.wants_reply() {
            self.replies.take_back();
        }
        self.replies.end(self.client.protocol);
        counted.commands += 1;
        Ok(())
    }

    /// Waits for what the next request needs.
    ///
    /// # Errors
    /// The stream's, when the peer is gone.
    async fn wait_for(&mut self, stream: &mut Stream, turns: &Turns, awaited: Awaited) -> io::Result<()> {
        match awaited {
            Awaited::Room(room) => self.wait_reading(stream, false, turns.wait_for_room(room)).await?,
            Awaited::Fetch(fetch) => self.fetched = Some(late::fetch(*fetch).await),
            Awaited::Make(cache) => {
                // It takes as long as clients wait at most. One who hangs up and asks again is not to be counted twice, so who
                // sends no more has left, as in Redis.
                let caches = self.session.caches.clone();
                self.refused = self.wait_reading(stream, true, caches.make(&cache)).await?.err();
            }
            Awaited::Replies => {}
        }
        Ok(())
    }

    /// Waits for something, and meanwhile takes what the peer sends, within bounds: so that one who leaves is not waited for.
    /// A peer that only sends no more is waited for, unless it `leaves` by that.
    ///
    /// # Errors
    /// When the peer is gone: the stream's, or that it ended.
    async fn wait_reading<T>(
        &mut self,
        stream: &mut Stream,
        leaves: bool,
        awaited: impl Future<Output = T>,
    ) -> io::Result<T> {
        let mut awaited = pin!(awaited);
        while self.input.bytes().len() < UNREAD_INPUT_BYTES {
            let read = async { Either::Read(stream.read(self.input.space()).await) };
            let over = async { Either::Over(awaited.as_mut().await) };
            match over.or(read).await {
                Either::Over(result) => return Ok(result),
                Either::Read(Ok(0)) if leaves => return Err(io::ErrorKind::UnexpectedEof.into()),
                Either::Read(Ok(0)) => break,
                Either::Read(Ok(read)) => {
                    add(&self.session.metrics.input_bytes, read as u64);
                    self.input.filled(read);
                }
                Either::Read(Err(error)) => return Err(error),
            }
        }
        Ok(awaited.await)
    }

    fn count(&self, counted: &Counted) {
        let metrics = &self.session.metrics;
        add(&metrics.commands, counted.commands);
        add(&metrics.keyspace_hits, counted.hits);
        add(&metrics.keyspace_misses, counted.misses);
    }

    /// Waits until every reply may leave and sends them; whether requests were received meanwhile.
    async fn send(&mut self, stream: &mut Stream, turns: &Turns) -> io::Result<bool> {
        let mut all_applied = true;
        for hold in self.replies.newest_holds() {
            all_applied &= turns.settle(hold).await == Fate::Applied;
        }
        let mut outlet = Outlet::new(stream, &mut self.input);
        if all_applied && !self.replies.has_cold() {
            outlet.write(self.replies.bytes()).await?;
        } else {
            // A hold whose newest one is settled is settled itself.
            let patches =
                self.replies.take_patches(|hold| turns.fate(hold).unwrap_or(Fate::Refused(Refusal::LostGround)));
            self.replies.errors += outlet.write_patched(self.replies.bytes(), patches).await?;
        }
        let (received, sent) = (outlet.received, outlet.sent);
        let metrics = &self.session.metrics;
        add(&metrics.output_bytes, sent);
        add(&metrics.input_bytes, received);
        add(&metrics.error_replies, self.replies.errors);
        self.replies.clear();
        self.client.card.see_sent();
        if self.scratch.capacity() > KEPT_SCRATCH_BYTES {
            self.scratch = Vec::new();
        }
        Ok(received > 0)
    }
}

/// Counts what happened; mostly nothing of the kind did.
fn add(counter: &AtomicU64, number: u64) {
    if number > 0 {
        counter.fetch_add(number, Ordering::Relaxed);
    }
}
