//! What all Redis clients of a broker share.
//!
//! Promise: every part of it is bounded. Must never know one connection's state.

use crate::frontends::resp::clients::Clients;
use crate::frontends::resp::password::Password;
use crate::frontends::resp::slowlog::Slowlog;

/// State beside the caches.
#[derive(Default)]
pub struct Shared {
    pub clients: Clients,
    pub password: Option<Password>,
    pub slowlog: Slowlog,
}
