//! What a command is, and the one way to run one: looked up, judged by its row, queued in a transaction, or run.
//!
//! Promise: a request gives one reply or one error; an error about the request itself breaks the transaction it was to be
//! part of. Must never know what a command does. The rows are in `table/`.

use crate::frontends::resp::call::{Call, CommandError};
use crate::frontends::resp::error;
use crate::frontends::resp::limits::MAX_REQUEST_BYTES;
use crate::frontends::resp::scan::Args;
use crate::frontends::resp::table::find;

/// Which arguments are keys: first and last position (negative: from the end) and step; zeros for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    pub first: i64,
    pub last: i64,
    pub step: i64,
}

pub const NO_KEYS: Keys = Keys { first: 0, last: 0, step: 0 };
pub const ONE_KEY: Keys = Keys { first: 1, last: 1, step: 1 };
pub const TWO_KEYS: Keys = Keys { first: 1, last: 2, step: 1 };
pub const ALL_KEYS: Keys = Keys { first: 1, last: -1, step: 1 };
pub const EVERY_OTHER: Keys = Keys { first: 1, last: -1, step: 2 };

/// What a command does.
pub type Run = fn(&mut Call<'_, '_>) -> Result<(), CommandError>;

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
    /// Whether it waits for EXEC inside a transaction, rather than being run at once.
    pub queued: bool,
    /// Those of a container, with their whole names: `config|get`. The second argument says which one is meant.
    pub subcommands: &'static [Command],
    pub run: Run,
}

/// What most rows have in common.
pub const DEFAULT: Command = Command {
    name: "",
    arity: 1,
    flags: &[],
    keys: NO_KEYS,
    group: "",
    since: "",
    complexity: "O(1)",
    summary: "",
    queued: true,
    subcommands: &[],
    run: |call| Err(unknown(call.args).into()),
};

impl Command {
    /// The command with a complexity that is not constant.
    #[must_use]
    pub const fn costs(mut self, complexity: &'static str) -> Self {
        self.complexity = complexity;
        self
    }

    /// What the second argument has to be for this subcommand.
    #[must_use]
    pub fn word(&self) -> &'static str {
        self.name.split_once('|').map_or(self.name, |(_, word)| word)
    }

    /// The subcommand of this word, in any case.
    #[must_use]
    pub fn subcommand(&self, word: &[u8]) -> Option<&'static Command> {
        self.subcommands.iter().find(|subcommand| word.eq_ignore_ascii_case(subcommand.word().as_bytes()))
    }
}

/// Runs one request; its reply is written to `call.replies`, which has begun it.
///
/// # Errors
/// [`CommandError`]: the error to reply, or what has to be waited for.
pub fn run(call: &mut Call<'_, '_>) -> Result<(), CommandError> {
    let command = match admit(call) {
        Ok(command) => {
            call.client.last = Some(command);
            command
        }
        Err(text) => {
            if find(call.arg(0)).is_some_and(|command| command.name == "exec") {
                call.client.transaction = None;
                call.client.unwatch();
                let why = text.strip_prefix("ERR ").unwrap_or(&text);
                return Err(format!("EXECABORT Transaction discarded because of: {why}").into());
            }
            if let Some(transaction) = &mut call.client.transaction {
                transaction.broken = true;
            }
            return Err(text.into());
        }
    };
    if command.queued
        && let Some(transaction) = &mut call.client.transaction
    {
        if !transaction.queue(command, call.args) {
            transaction.broken = true;
            return Err(format!("OOM transaction larger than {MAX_REQUEST_BYTES} bytes").into());
        }
        call.reply().simple("QUEUED");
        return Ok(());
    }
    call.counted.ran = Some(command);
    (command.run)(call)
}

/// The command of a request that may be run or queued. The order of the checks is Redis's.
fn admit(call: &Call<'_, '_>) -> Result<&'static Command, String> {
    let command = look_up(call.args)?;
    if !has_arity(command, call.args.len()) {
        return Err(wrong_arity(command.name));
    }
    if !call.client.authenticated && !command.flags.contains(&"no_auth") {
        return Err(error::NO_AUTH.to_owned());
    }
    if call.args.any_oversize() {
        return Err(error::TOO_LONG.to_owned());
    }
    if call.session.metrics.is_loading() && !command.flags.contains(&"loading") {
        return Err(error::LOADING.to_owned());
    }
    Ok(command)
}

/// The command, or the subcommand, that these arguments name.
///
/// # Errors
/// Redis's text when there is none.
pub fn look_up(args: Args<'_>) -> Result<&'static Command, String> {
    let command = find(args.get(0).unwrap_or_default()).ok_or_else(|| unknown(args))?;
    match args.get(1) {
        Some(word) if !command.subcommands.is_empty() => {
            command.subcommand(word).ok_or_else(|| unknown_subcommand(command.name, word))
        }
        _ => Ok(command),
    }
}

/// Whether a command takes so many arguments, its name included.
#[must_use]
pub fn has_arity(command: &Command, count: usize) -> bool {
    let count = count as i64;
    if command.arity >= 0 { count == command.arity } else { count >= -command.arity }
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
