//! What a connection remembers of its client between requests.
//!
//! Promise: plain state, back to its first form by RESET. Must never know a socket.

use crate::frontends::resp::encode::Protocol;

/// A client's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    pub id: u64,
    pub protocol: Protocol,
    pub name: Vec<u8>,
    pub library_name: Vec<u8>,
    pub library_version: Vec<u8>,
    /// The client asked to be disconnected; what it sent behind that is dropped.
    pub quitting: bool,
}

impl Client {
    #[must_use]
    pub fn new(id: u64) -> Self {
        Self {
            id,
            protocol: Protocol::Resp2,
            name: Vec::new(),
            library_name: Vec::new(),
            library_version: Vec::new(),
            quitting: false,
        }
    }

    /// RESET: as just connected; what names the library stays, as in Redis.
    pub fn reset(&mut self) {
        self.protocol = Protocol::Resp2;
        self.name.clear();
    }
}
