//! The plug: what a protocol must offer, and all it is handed.
//!
//! Promise: a front end owns its whole connection and sees the broker only through its [`Session`].
//! Must never know a protocol.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::core::api::{Cache, Caches};
use crate::metrics::Metrics;
use crate::rt::Stream;

/// A future that a front end returns; it borrows nothing.
pub type Served = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Why a connection is turned away right after it was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnedAway {
    /// As many clients as allowed are connected.
    TooManyClients,
    /// No password is set, and the peer is not on this machine.
    Protected,
}

/// One protocol.
pub trait FrontEnd: Send + Sync + 'static {
    /// Serves a connection until it ends. Must end soon after [`Session::is_closing`] turns true; the stream then reads
    /// its end.
    fn serve(&self, stream: Stream, session: Session) -> Served;

    /// Whether a client has to give a password: only then are clients of other machines served.
    fn authenticates(&self) -> bool {
        false
    }

    /// Tells a peer in the protocol's own words that it is turned away, and closes.
    fn turn_away(&self, stream: Stream, why: TurnedAway) -> Served;
}

/// All that a connection knows of the broker.
pub struct Session {
    /// The number of this connection in this process, from 1.
    pub id: u64,
    pub peer: SocketAddr,
    /// The cache a client reaches without selecting another.
    pub cache: Cache,
    /// All of them.
    pub caches: Caches,
    pub metrics: Arc<Metrics>,
    pub closing: Arc<AtomicBool>,
}

impl Session {
    /// Whether the broker is stopping: answer what was read, read nothing more.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }
}
