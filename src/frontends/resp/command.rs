//! The command table: every command, its arity, its keys, its documentation and the function that runs it.
//!
//! Promise: dispatch, arity errors, COMMAND, COMMAND DOCS and the README's table all come from here and nowhere else.
//! Must never know a socket.
//!
//! When you add a command: one row here, one function in `commands/`, and the README's table (a test compares them).

use crate::core::api::{Turn, WriteError};
use crate::core::types::ShardNo;
use crate::frontends::front_end::Session;
use crate::frontends::resp::client::Client;
use crate::frontends::resp::commands::{connection, info, key, server, string};
use crate::frontends::resp::encode::Reply;
use crate::frontends::resp::error;
use crate::frontends::resp::replies::Replies;
use crate::frontends::resp::scan::Args;

/// Which arguments are keys: first and last position (negative: from the end) and step; zeros for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    pub first: i64,
    pub last: i64,
    pub step: i64,
}

const NO_KEYS: Keys = Keys { first: 0, last: 0, step: 0 };
const ONE_KEY: Keys = Keys { first: 1, last: 1, step: 1 };
const ALL_KEYS: Keys = Keys { first: 1, last: -1, step: 1 };

/// One row of the table.
pub struct Command {
    /// Lower case.
    pub name: &'static str,
    /// Arguments with the name: exactly, or at least when negative.
    pub arity: i64,
    pub flags: &'static [&'static str],
    pub keys: Keys,
    pub group: &'static str,
    /// The Redis version that introduced it.
    pub since: &'static str,
    pub complexity: &'static str,
    pub summary: &'static str,
    pub run: fn(&mut Call<'_, '_>) -> Result<(), CommandError>,
}

/// Why a command gave no reply of its own.
pub enum CommandError {
    /// The text of the error reply.
    Text(String),
    /// As much is staged in this shard as may be: run the command again when there is room.
    Full(ShardNo),
}

impl From<&str> for CommandError {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for CommandError {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<WriteError> for CommandError {
    fn from(refused: WriteError) -> Self {
        match refused {
            WriteError::Refused(refusal) => Self::Text(error::of_refusal(&refusal)),
            WriteError::Full(shard) => Self::Full(shard),
        }
    }
}

/// A command being run.
pub struct Call<'a, 't> {
    pub args: Args<'a>,
    pub turn: &'a mut Turn<'t>,
    pub client: &'a mut Client,
    pub session: &'a Session,
    pub replies: &'a mut Replies,
    /// Room for reading a value.
    pub scratch: &'a mut Vec<u8>,
    pub hits: &'a mut u64,
    pub misses: &'a mut u64,
}

impl<'a> Call<'a, '_> {
    /// The argument at `i`, the name being 0; empty when there is none.
    #[must_use]
    pub fn arg(&self, i: usize) -> &'a [u8] {
        self.args.get(i).unwrap_or_default()
    }

    /// Writes to the reply.
    pub fn reply(&mut self) -> Reply<'_> {
        self.replies.writer(self.client.protocol)
    }
}

/// The table, by name.
pub static COMMANDS: &[Command] = &[
    Command {
        name: "auth",
        arity: -2,
        flags: &["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"],
        keys: NO_KEYS,
        group: "connection",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Authenticates the connection. No password can be set yet.",
        run: connection::auth,
    },
    Command {
        name: "client",
        arity: -2,
        flags: &["noscript", "loading", "stale"],
        keys: NO_KEYS,
        group: "connection",
        since: "2.4.0",
        complexity: "O(1)",
        summary: "SETINFO, SETNAME, GETNAME and ID of this connection.",
        run: connection::client,
    },
    Command {
        name: "command",
        arity: -1,
        flags: &["loading", "stale"],
        keys: NO_KEYS,
        group: "server",
        since: "2.8.13",
        complexity: "O(N) where N is the number of commands",
        summary: "Tells which commands there are: COUNT, INFO, LIST, DOCS, GETKEYS.",
        run: server::command,
    },
    Command {
        name: "config",
        arity: -2,
        flags: &["admin", "noscript", "loading", "stale"],
        keys: NO_KEYS,
        group: "server",
        since: "2.0.0",
        complexity: "O(N) where N is the number of parameters",
        summary: "GET tells the settings that Redis clients and tools look at.",
        run: server::config,
    },
    Command {
        name: "dbsize",
        arity: 1,
        flags: &["readonly", "fast"],
        keys: NO_KEYS,
        group: "server",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Answers how many keys there are, expired ones that nothing overwrote included.",
        run: server::dbsize,
    },
    Command {
        name: "del",
        arity: -2,
        flags: &["write"],
        keys: ALL_KEYS,
        group: "generic",
        since: "1.0.0",
        complexity: "O(N) where N is the number of keys",
        summary: "Deletes keys; answers how many there were.",
        run: key::del,
    },
    Command {
        name: "echo",
        arity: 2,
        flags: &["loading", "stale", "fast"],
        keys: NO_KEYS,
        group: "connection",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Answers the given string.",
        run: connection::echo,
    },
    Command {
        name: "exists",
        arity: -2,
        flags: &["readonly", "fast"],
        keys: ALL_KEYS,
        group: "generic",
        since: "1.0.0",
        complexity: "O(N) where N is the number of keys",
        summary: "Answers how many of the keys exist.",
        run: key::exists,
    },
    Command {
        name: "flushall",
        arity: -1,
        flags: &["write"],
        keys: NO_KEYS,
        group: "server",
        since: "1.0.0",
        complexity: "O(N) where N is the number of keys",
        summary: "Removes every key of every database; there is one.",
        run: key::flush,
    },
    Command {
        name: "flushdb",
        arity: -1,
        flags: &["write"],
        keys: NO_KEYS,
        group: "server",
        since: "1.0.0",
        complexity: "O(N) where N is the number of keys",
        summary: "Removes every key of the database.",
        run: key::flush,
    },
    Command {
        name: "get",
        arity: 2,
        flags: &["readonly", "fast"],
        keys: ONE_KEY,
        group: "string",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Answers the value of a key.",
        run: string::get,
    },
    Command {
        name: "hello",
        arity: -1,
        flags: &["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"],
        keys: NO_KEYS,
        group: "connection",
        since: "6.0.0",
        complexity: "O(1)",
        summary: "Shakes hands and chooses RESP2 or RESP3.",
        run: connection::hello,
    },
    Command {
        name: "info",
        arity: -1,
        flags: &["loading", "stale"],
        keys: NO_KEYS,
        group: "server",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Tells about the broker, by section.",
        run: info::info,
    },
    Command {
        name: "ping",
        arity: -1,
        flags: &["fast"],
        keys: NO_KEYS,
        group: "connection",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Answers PONG, or the given string.",
        run: connection::ping,
    },
    Command {
        name: "quit",
        arity: -1,
        flags: &["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"],
        keys: NO_KEYS,
        group: "connection",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Closes the connection.",
        run: connection::quit,
    },
    Command {
        name: "reset",
        arity: 1,
        flags: &["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"],
        keys: NO_KEYS,
        group: "connection",
        since: "6.2.0",
        complexity: "O(1)",
        summary: "Brings the connection back to its first state.",
        run: connection::reset,
    },
    Command {
        name: "select",
        arity: 2,
        flags: &["loading", "stale", "fast"],
        keys: NO_KEYS,
        group: "connection",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Selects a database; there is only 0 yet.",
        run: connection::select,
    },
    Command {
        name: "set",
        arity: -3,
        flags: &["write", "denyoom"],
        keys: ONE_KEY,
        group: "string",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Sets a key, with expiry (EX PX EXAT PXAT KEEPTTL) and condition (NX XX IFREV), or GETs the old value too.",
        run: string::set,
    },
];

/// The longest name in the table, in bytes.
const LONGEST_NAME: usize = 16;

/// The command of this name, in any case.
#[must_use]
pub fn find(name: &[u8]) -> Option<&'static Command> {
    let mut lower = [0; LONGEST_NAME];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    let lower = &*lower;
    let at = COMMANDS.binary_search_by(|command| command.name.as_bytes().cmp(lower)).ok()?;
    COMMANDS.get(at)
}

/// Runs one request; its reply is written to `call.replies`, which has begun it.
///
/// # Errors
/// [`CommandError`]: the error to reply, or that there is no room yet.
pub fn run(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let Some(command) = find(call.arg(0)) else { return Err(unknown(call.args).into()) };
    let count = call.args.len() as i64;
    if (command.arity >= 0 && count != command.arity) || count < -command.arity {
        return Err(wrong_arity(command.name).into());
    }
    if call.args.any_oversize() {
        return Err(error::TOO_LONG.into());
    }
    if call.session.metrics.is_loading() && !command.flags.contains(&"loading") {
        return Err(error::LOADING.into());
    }
    (command.run)(call)
}

/// The text for a wrong number of arguments; a subcommand is named `config|get`.
#[must_use]
pub fn wrong_arity(name: &str) -> String {
    format!("ERR wrong number of arguments for '{name}' command")
}

/// The text for a subcommand nobody knows.
#[must_use]
pub fn unknown_subcommand(command: &str, given: &[u8]) -> String {
    let shown = String::from_utf8_lossy(&given[..given.len().min(128)]);
    format!("ERR unknown subcommand '{shown}'. Try {} HELP.", command.to_ascii_uppercase())
}

/// Redis's text: the name, cut at 128 bytes, and arguments until 128 bytes of them are shown.
fn unknown(args: Args<'_>) -> String {
    const SHOWN: usize = 128;
    let cut = |bytes: &[u8], most: usize| String::from_utf8_lossy(&bytes[..bytes.len().min(most)]).into_owned();
    let mut shown = String::new();
    for arg in args.iter().skip(1) {
        if shown.len() >= SHOWN {
            break;
        }
        shown.push_str(&format!("'{}' ", cut(arg, SHOWN - shown.len())));
    }
    format!("ERR unknown command '{}', with args beginning with: {shown}", cut(args.get(0).unwrap_or_default(), SHOWN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_lower_case_and_short_enough_to_be_found() {
        assert!(COMMANDS.is_sorted_by(|a, b| a.name < b.name));
        for command in COMMANDS {
            assert!(command.name.len() <= LONGEST_NAME && command.name == command.name.to_ascii_lowercase());
            let found = find(command.name.to_ascii_uppercase().as_bytes()).map(|found| found.name);
            assert_eq!(found, Some(command.name));
        }
        assert!(find(b"").is_none() && find(&[b'x'; 4096]).is_none() && find(b"gets").is_none());
    }
}
