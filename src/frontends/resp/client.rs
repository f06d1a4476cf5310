//! What a connection remembers of its client between requests.
//!
//! Promise: plain state, back to its first form by RESET. Must never know a socket.

use std::sync::Arc;

use crate::core::api::Cache;
use crate::frontends::resp::clients::Card;
use crate::frontends::resp::command::Command;
use crate::frontends::resp::encode::Protocol;
use crate::frontends::resp::transaction::{Transaction, Watched};

/// A client's state.
pub struct Client {
    pub id: u64,
    /// Where others see it.
    pub card: Arc<Card>,
    /// Whether it gave the password, if one is set.
    pub authenticated: bool,
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
    /// The command it sent last.
    pub last: Option<&'static Command>,
    /// What CLIENT NO-EVICT and NO-TOUCH asked for: noted, and without effect, for nothing is evicted.
    pub no_evict: bool,
    pub no_touch: bool,
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
    pub fn new(card: Arc<Card>, cache: Cache, authenticated: bool) -> Self {
        Self {
            id: card.id,
            card,
            authenticated,
            protocol: Protocol::Resp2,
            cache,
            name: Vec::new(),
            library_name: Vec::new(),
            library_version: Vec::new(),
            transaction: None,
            watched: Vec::new(),
            watched_bytes: 0,
            answers: Answers::On,
            last: None,
            no_evict: false,
            no_touch: false,
            quitting: false,
        }
    }

    /// RESET: as just connected, with `cache` selected; what names the library stays, as in Redis, and so does a SKIP of the
    /// reply to this very request.
    pub fn reset(&mut self, cache: Cache, authenticated: bool) {
        self.authenticated = authenticated;
        self.protocol = Protocol::Resp2;
        self.cache = cache;
        self.name.clear();
        self.transaction = None;
        self.unwatch();
        if self.answers != Answers::Skip {
            self.answers = Answers::On;
        }
        (self.no_evict, self.no_touch) = (false, false);
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
