//! RESP, the protocol of Redis clients.
//!
//! Reading order: `connection` (one client's conversation), `input` and `scan` (bytes to requests), `command` and
//! `table/` (which commands there are), `call` (one being run), `commands/` (what each does), `scripts/` (scripts that are
//! known), `transaction`, `shared` and `cursors` (what connections have in common), `glob` and `long_double` (patterns and
//! numbers as Redis takes them), `value`, `replies`, `outlet` and `encode` (answers to bytes), `error` (the core's errors in
//! Redis's words). `limits` has every bound.
//!
//! Promise: nothing a client sends makes it panic, recurse, loop, or allocate more than was really sent.
//! Must never decide what the core decides.

pub mod connection;

pub mod input;

pub mod limits;

pub mod scan;

mod inline;
mod request;

pub mod protocol_error;

pub mod args;

pub mod call;
pub mod client;
pub mod clients;
pub mod command;
pub mod commands;
pub mod cursors;
pub mod password;
pub mod scripts;
pub mod shared;
pub mod slowlog;
pub mod table;
pub mod transaction;
pub mod value;

pub mod encode;
pub mod late;
pub mod long_double;
pub mod outlet;
pub mod replies;

pub mod error;
pub mod glob;

use std::sync::Arc;

use crate::frontends::front_end::{FrontEnd, Served, Session, TurnedAway};
use crate::frontends::resp::password::Password;
use crate::frontends::resp::shared::Shared;
use crate::rt::Stream;

/// The front end for Redis clients.
#[derive(Default)]
pub struct Resp {
    shared: Arc<Shared>,
}

impl Resp {
    /// One whose clients have to give this password, if there is one.
    #[must_use]
    pub fn new(password: Option<Password>) -> Self {
        Self { shared: Arc::new(Shared::with_password(password)) }
    }
}

impl FrontEnd for Resp {
    fn authenticates(&self) -> bool {
        self.shared.password.is_some()
    }

    fn serve(&self, stream: Stream, session: Session) -> Served {
        Box::pin(connection::serve(stream, session, Arc::clone(&self.shared)))
    }

    fn turn_away(&self, mut stream: Stream, why: TurnedAway) -> Served {
        let text = match why {
            TurnedAway::TooManyClients => "-ERR max number of clients reached\r\n",
            TurnedAway::Protected => {
                "-DENIED Redis is running in protected mode because protected mode is enabled and no password is set \
                 for the default user. In this mode connections are only accepted from the loopback interface. \
                 (This is Hearth: set a password with --password-file, or reach it through a tunnel or a proxy on its own \
                 machine.)\r\n"
            }
        };
        Box::pin(async move {
            if stream.write_all(text.as_bytes()).await.is_ok() {
                stream.close_gently(connection::CLOSE_GRACE_MS).await;
            }
        })
    }
}
