//! MULTI to EXEC: commands that wait to be run as one, and the keys whose change would stop them.
//!
//! Promise: what waits is bounded in bytes and in number. Must never run anything.

use crate::core::types::{CacheName, Revision};
use crate::frontends::resp::command::Command;
use crate::frontends::resp::limits::{MAX_ARGUMENTS, MAX_REQUEST_BYTES};
use crate::frontends::resp::request::OwnedArgs;
use crate::frontends::resp::scan::Args;

/// A command that waits for EXEC.
pub struct Queued {
    pub command: &'static Command,
    pub args: OwnedArgs,
}

/// An open transaction.
#[derive(Default)]
pub struct Transaction {
    pub queued: Vec<Queued>,
    /// A command was refused while it was queued: EXEC will refuse the whole.
    pub broken: bool,
    bytes: usize,
    arguments: usize,
}

impl Transaction {
    /// Queues a command; false when the transaction would be too large.
    pub fn queue(&mut self, command: &'static Command, args: Args<'_>) -> bool {
        let bytes: usize = args.iter().map(<[u8]>::len).sum();
        let fits = self.bytes + bytes <= MAX_REQUEST_BYTES && self.arguments + args.len() <= MAX_ARGUMENTS;
        if fits {
            self.bytes += bytes;
            self.arguments += args.len();
            self.queued.push(Queued { command, args: OwnedArgs::of(args) });
        }
        fits
    }

    /// Bytes of the arguments that wait.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// A key that WATCH looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watched {
    pub cache: CacheName,
    pub key: Box<[u8]>,
    /// Of its value then; `None` when it had none.
    pub revision: Option<Revision>,
}
