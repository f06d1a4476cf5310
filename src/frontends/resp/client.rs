//! What a connection remembers of its client between requests.
//!
//! Promise: plain state, back to its first form by RESET. Must never know a socket.

use crate::core::api::Cache;
use crate::frontends::resp::encode::Protocol;
use crate::frontends::resp::transaction::{Transaction, Watched};

/// A client's state.
pub struct Client {
    pub id: u64,
    pub protocol: Protocol,
    /// The cache it has selected.
    pub cache: Cache,
    pub name: Vec<u8>,
    pub library_name: Vec<u8>,
    pub library_version: Vec<u8>,
    /// Between MULTI and EXEC.
    pub transaction: Option<Transaction>,
    /// What WATCH looked at since the last EXEC.
    pub watched: Vec<Watched>,
    /// Bytes of the watched keys.
    pub watched_bytes: usize,
    /// Whether it wants to be answered.
    pub answers: Answers,
    /// The client asked to be disconnected; what it sent behind that is dropped.
    pub quitting: bool,
}

/// What CLIENT REPLY asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answers {
    #[default]
    On,
    Off,
    /// Not to this request, and not to the next.
    SkipNext,
    /// Not to this request.
    Skip,
}

impl Client {
    #[must_use]
    pub fn new(id: u64, cache: Cache) -> Self {
        Self {
            id,
            protocol: Protocol::Resp2,
            cache,
            name: Vec::new(),
            library_name: Vec::new(),
            library_version: Vec::new(),
            transaction: None,
            watched: Vec::new(),
            watched_bytes: 0,
            answers: Answers::On,
            quitting: false,
        }
    }

    /// RESET: as just connected, with `cache` selected; what names the library stays, as in Redis.
    pub fn reset(&mut self, cache: Cache) {
        self.protocol = Protocol::Resp2;
        self.cache = cache;
        self.name.clear();
        self.transaction = None;
        self.unwatch();
        self.answers = Answers::On;
    }

    /// A transaction is over, if there was one, and with it what WATCH looked at.
    pub fn end_transaction(&mut self) {
        if self.transaction.take().is_some() {
            self.unwatch();
        }
    }

    /// Forgets what WATCH looked at.
    pub fn unwatch(&mut self) {
        self.watched.clear();
        self.watched_bytes = 0;
    }

    /// Whether the reply to the request that was just run is to be sent.
    pub fn wants_reply(&mut self) -> bool {
        match self.answers {
            Answers::On => true,
            Answers::Off => false,
            Answers::SkipNext => {
                self.answers = Answers::Skip;
                false
            }
            Answers::Skip => {
                self.answers = Answers::On;
                false
            }
        }
    }
}
