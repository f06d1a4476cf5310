//! The connected clients, as CLIENT LIST and CLIENT KILL see them: a card for each.
//!
//! Promise: a card is brought up to date once a round of requests, not once a request, and is gone with its connection.
//! Must never know what a command does.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::core::types::CacheName;
use crate::frontends::front_end::Session;
use crate::frontends::resp::client::Client;
use crate::frontends::resp::command::Command;
use crate::frontends::resp::encode::Protocol;
use crate::frontends::resp::input::Input;
use crate::frontends::resp::limits::DATABASES;
use crate::rt::{Stream, StreamHandle};

/// Every connected client, by its number.
#[derive(Default)]
pub struct Clients {
    cards: Mutex<BTreeMap<u64, Arc<Card>>>,
}

impl Clients {
    /// Enters a connection; it is taken off when the entry is dropped.
    #[must_use]
    pub fn enter(&self, session: &Session, stream: &Stream) -> Entered<'_> {
        let card = Arc::new(Card {
            id: session.id,
            peer: session.peer,
            local: stream.local_address(),
            descriptor: stream.descriptor(),
            since_us: session.cache.micros(),
            handle: stream.handle(),
            unsent_bytes: AtomicUsize::new(0),
            seen: Mutex::new(Seen { active_us: session.cache.micros(), ..Seen::default() }),
        });
        self.cards().insert(card.id, Arc::clone(&card));
        Entered { clients: self, card }
    }

    /// Every card, by number.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Card>> {
        self.cards().values().cloned().collect()
    }

    /// The card of a client.
    #[must_use]
    pub fn get(&self, id: u64) -> Option<Arc<Card>> {
        self.cards().get(&id).cloned()
    }

    fn cards(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Card>>> {
        self.cards.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a connection entered.
pub struct Entered<'a> {
    clients: &'a Clients,
    pub card: Arc<Card>,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.clients.cards().remove(&self.card.id);
    }
}

/// What is known of one connection from outside.
pub struct Card {
    pub id: u64,
    pub peer: SocketAddr,
    /// The address it connected to.
    pub local: Option<SocketAddr>,
    descriptor: i32,
    since_us: u64,
    handle: StreamHandle,
    /// Replies that are being sent.
    unsent_bytes: AtomicUsize,
    /// Locked by its own connection once a round, where nearly always nobody else wants it.
    seen: Mutex<Seen>,
}

/// What a client was when it was last looked at.
#[derive(Clone, Default)]
struct Seen {
    active_us: u64,
    name: Vec<u8>,
    library_name: Vec<u8>,
    library_version: Vec<u8>,
    cache: Option<CacheName>,
    command: Option<&'static Command>,
    resp3: bool,
    /// Commands that wait for EXEC, and their bytes.
    queued: Option<(usize, usize)>,
    closing: bool,
    no_evict: bool,
    no_touch: bool,
    /// Received and not consumed, and the room beside it.
    input_bytes: usize,
    input_room: usize,
}

impl Card {
    /// Notes what the client is now.
    pub fn see(&self, client: &Client, now_us: u64) {
        self.seen().note(client, now_us);
    }

    /// The same at the end of a round, with what is left of its input and the replies that are about to be sent.
    pub fn see_round(&self, client: &Client, now_us: u64, input: &Input, unsent_bytes: usize) {
        let mut seen = self.seen();
        seen.note(client, now_us);
        (seen.input_bytes, seen.input_room) = (input.bytes().len(), input.room_bytes());
        drop(seen);
        self.unsent_bytes.store(unsent_bytes, Ordering::Relaxed);
    }

    /// Its replies are sent.
    pub fn see_sent(&self) {
        self.unsent_bytes.store(0, Ordering::Relaxed);
    }

    /// Ends the connection at once.
    pub fn hang_up(&self) {
        self.handle.hang_up();
    }

    /// How long it has been connected, in whole seconds.
    #[must_use]
    pub fn age_seconds(&self, now_us: u64) -> u64 {
        now_us.saturating_sub(self.since_us) / 1_000_000
    }

    /// Its line of CLIENT LIST, without the line end: Redis 7.2's fields in their order. What Hearth has no counterpart of is 0,
    /// and so is what is not measured; a cache that is selected by its name is database -1.
    #[must_use]
    pub fn line(&self, now_us: u64) -> Vec<u8> {
        let seen = self.seen().clone();
        let unsent = self.unsent_bytes.load(Ordering::Relaxed);
        let (queued, queued_bytes) = seen.queued.map_or((-1, 0), |(count, bytes)| (count as i64, bytes));
        let mut line = format!("id={} addr={} laddr=", self.id, self.peer);
        match self.local {
            Some(local) => {
                let _ = write!(line, "{local}");
            }
            None => line.push_str("?:0"),
        }
        let _ = write!(line, " fd={} name={}", self.descriptor, String::from_utf8_lossy(&seen.name));
        let _ = write!(
            line,
            " age={} idle={} flags={} db={} sub=0 psub=0 ssub=0 multi={queued} qbuf={} qbuf-free={} argv-mem=0 \
             multi-mem={queued_bytes} rbs=0 rbp=0 obl={unsent} oll=0 omem=0 tot-mem={} events=r cmd={} user=default redir=-1 \
             resp={} lib-name={} lib-ver={}",
            self.age_seconds(now_us),
            now_us.saturating_sub(seen.active_us) / 1_000_000,
            seen.flags(),
            seen.database(),
            seen.input_bytes,
            seen.input_room,
            seen.input_bytes + seen.input_room + queued_bytes + unsent,
            seen.command.map_or("NULL", |command| command.name),
            if seen.resp3 { 3 } else { 2 },
            String::from_utf8_lossy(&seen.library_name),
            String::from_utf8_lossy(&seen.library_version),
        );
        line.into_bytes()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn note(&mut self, client: &Client, now_us: u64) {
        self.active_us = now_us;
        // They hardly ever change, and are compared faster than copied.
        for (noted, now) in [
            (&mut self.name, &client.name),
            (&mut self.library_name, &client.library_name),
            (&mut self.library_version, &client.library_version),
        ] {
            if noted != now {
                noted.clone_from(now);
            }
        }
        if self.cache.as_ref() != Some(client.cache.name()) {
            self.cache = Some(client.cache.name().clone());
        }
        self.command = client.last;
        self.resp3 = client.protocol == Protocol::Resp3;
        self.queued = client.transaction.as_ref().map(|transaction| (transaction.queued.len(), transaction.bytes()));
        (self.closing, self.no_evict, self.no_touch) = (client.quitting, client.no_evict, client.no_touch);
    }

    /// Redis's letters.
    fn flags(&self) -> String {
        let letters = [(self.queued.is_some(), 'x'), (self.closing, 'c'), (self.no_evict, 'e'), (self.no_touch, 'T')];
        let flags: String = letters.into_iter().filter(|(is, _)| *is).map(|(_, letter)| letter).collect();
        if flags.is_empty() { "N".to_owned() } else { flags }
    }

    fn database(&self) -> i64 {
        let numbered = |number: &u32| self.cache == Some(CacheName::numbered(*number));
        // A client that has not sent anything yet is where all begin.
        if self.cache.is_none() { 0 } else { (0..DATABASES).find(numbered).map_or(-1, i64::from) }
    }
}
