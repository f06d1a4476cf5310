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
        Err(text) => return Err(spoil(call, &text)),
    };
    if command.queued && call.client.transaction.is_some() && keeps_memory(command) && call.turn.is_memory_full() {
        return Err(spoil(call, error::OVER_THE_BOUND.as_bytes()));
    }
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

/// Whether a command is refused, as in Redis, when it is queued while memory is short.
fn keeps_memory(command: &Command) -> bool {
    command.flags.contains(&"denyoom")
}

/// An error about a request itself breaks the transaction that it was to be part of, or to end.
fn spoil(call: &mut Call<'_, '_>, text: &[u8]) -> CommandError {
    if call.is(0, "exec") {
        // As in Redis, even outside a transaction nothing is watched from here on.
        call.client.end_transaction();
        call.client.unwatch();
        let told = text.strip_prefix(b"ERR ").unwrap_or(text);
        return [b"EXECABORT Transaction discarded because of: ", told].concat().into();
    }
    if let Some(transaction) = &mut call.client.transaction {
        transaction.broken = true;
    }
    text.to_vec().into()
}

/// The command of a request that may be run or queued; or the text of an error about it. The order of the checks is Redis's.
fn admit(call: &Call<'_, '_>) -> Result<&'static Command, Vec<u8>> {
    let command = look_up(call.args)?;
    if !has_arity(command, call.args.len()) {
        return Err(wrong_arity(command.name).into());
    }
    if !call.client.authenticated && !command.flags.contains(&"no_auth") {
        return Err(error::NO_AUTH.into());
    }
    if call.args.any_oversize() {
        return Err(error::TOO_LONG.into());
    }
    if call.session.metrics.is_loading() && !command.flags.contains(&"loading") {
        return Err(error::LOADING.into());
    }
    Ok(command)
}

/// The command, or the subcommand, that these arguments name.
///
/// # Errors
/// Redis's text when there is none.
pub fn look_up(args: Args<'_>) -> Result<&'static Command, Vec<u8>> {
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
pub fn unknown_subcommand(command: &str, given: &[u8]) -> Vec<u8> {
    let tail = format!("'. Try {} HELP.", command.to_ascii_uppercase());
    [b"ERR unknown subcommand '", shown(given, SHOWN), tail.as_bytes()].concat()
}

/// Bytes that an error shows of what was sent.
const SHOWN: usize = 128;

/// What an error shows of a word: as in Redis, at most so many bytes, and none behind a NUL.
#[must_use]
pub fn shown(word: &[u8], most: usize) -> &[u8] {
    let word = &word[..word.len().min(most)];
    word.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// A text around a word that was sent.
#[must_use]
pub fn around(before: &str, word: &[u8], behind: &str) -> CommandError {
    [before.as_bytes(), shown(word, usize::MAX), behind.as_bytes()].concat().into()
}

/// Redis's text: the name, cut at 128 bytes, and arguments until 128 bytes of them are shown.
fn unknown(args: Args<'_>) -> Vec<u8> {
    let mut arguments = Vec::new();
    for arg in args.iter().skip(1) {
        if arguments.len() >= SHOWN {
            break;
        }
        arguments = [&arguments[..], b"'", shown(arg, SHOWN - arguments.len()), b"' "].concat();
    }
    let name = shown(args.get(0).unwrap_or_default(), SHOWN);
    [b"ERR unknown command '", name, b"', with args beginning with: ", &arguments].concat()
}
