//! A command being run: its arguments, what it may touch, and how it ends.
//!
//! Promise: a command either gives its reply, or an error and has staged nothing, or says what has to be waited for and is
//! then run again from its beginning. What an answer rests on is held, errors included. Must never know a socket.
//!
//! How to write a command:
//! - Look at the arguments first; an error about them is `Err(text.into())`.
//! - A plain read goes through [`Call::turn`]`.look` or [`Call::value_of`]; a command that needs the old value to write the
//!   new one through [`Call::current`], which locks the shard: nobody comes in between.
//! - Write with [`Call::put`] and [`Call::delete`]; several writes of one command go inside [`Call::atomically`].
//! - Whatever was looked at is held by these methods; a command that goes to the turn itself calls `replies.hold`.
//! - `?` passes everything on that has to be waited for. It must come before anything is staged, or inside `atomically`.

use crate::core::api::{Found, Hold, Progress, RolledBack, Turn, Value, WriteError};
use crate::core::error::ReadError;
use crate::core::log::reader::Wait as DiskWait;
use crate::core::op::{Condition, Expiry, Put};
use crate::core::shard::read::Pinned;
use crate::core::shard::stage::Outcome;
use crate::core::types::{CacheName, Millis, Revision, Seat};
use crate::frontends::front_end::Session;
use crate::frontends::resp::client::Client;
use crate::frontends::resp::command::Command;
use crate::frontends::resp::encode::Reply;
use crate::frontends::resp::error;
use crate::frontends::resp::replies::Replies;
use crate::frontends::resp::scan::Args;
use crate::frontends::resp::shared::Shared;

/// Why a command gave no reply of its own.
#[derive(Debug)]
pub enum CommandError {
    /// The text of the error reply. Bytes, because some show what was sent as it was sent.
    Text(Vec<u8>),
    /// The same for a write that was refused: a transaction it is part of is refused with it.
    Refused(String),
    /// Run the command again when this is over.
    Wait(Wait),
}

/// What has to be waited for before a command can be run.
#[derive(Debug)]
pub enum Wait {
    /// As much is staged in this shard as may be.
    Room(Seat),
    /// The cache is to be made first: nobody has written to it yet.
    Make(Box<CacheName>),
    /// A value has to be read, and the disk is slow.
    Fetch(Box<Fetch>),
    /// What it would answer is too much to be kept until this is applied.
    Applied(Hold),
}

/// A value to be read.
pub struct Fetch {
    pub pinned: Pinned,
    pub key: Box<[u8]>,
}

impl std::fmt::Debug for Fetch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Fetch({})", self.key.escape_ascii())
    }
}

/// A value that was waited for.
pub struct Fetched {
    pub seat: Seat,
    pub revision: Revision,
    pub value: Result<Vec<u8>, ReadError>,
}

impl From<&str> for CommandError {
    fn from(text: &str) -> Self {
        Self::Text(text.as_bytes().to_vec())
    }
}

impl From<String> for CommandError {
    fn from(text: String) -> Self {
        Self::Text(text.into_bytes())
    }
}

impl From<Vec<u8>> for CommandError {
    fn from(text: Vec<u8>) -> Self {
        Self::Text(text)
    }
}

impl From<WriteError> for CommandError {
    fn from(refused: WriteError) -> Self {
        match refused {
            WriteError::Refused(refusal) => Self::Refused(error::of_refusal(&refusal)),
            WriteError::Full(seat) => Self::Wait(Wait::Room(seat)),
            WriteError::NotCreated(cache) => Self::Wait(Wait::Make(cache)),
            WriteError::Apart => Self::Refused(error::CROSS_SLOT.to_owned()),
        }
    }
}

impl From<ReadError> for CommandError {
    fn from(fault: ReadError) -> Self {
        match fault {
            ReadError::Apart => Self::Refused(error::CROSS_SLOT.to_owned()),
            fault => Self::Text(error::of_read(&fault).into_bytes()),
        }
    }
}

/// A key's live value as a command that changes it finds it.
#[derive(Clone, Debug)]
pub struct Current {
    pub value: Vec<u8>,
    pub expires_at: Millis,
    pub revision: Revision,
}

/// What a round counts, added to the broker's counters once.
#[derive(Default)]
pub struct Counted {
    pub commands: u64,
    pub hits: u64,
    pub misses: u64,
    /// The command that was run last.
    pub ran: Option<&'static Command>,
}

/// A command being run.
pub struct Call<'a, 't> {
    pub args: Args<'a>,
    pub turn: &'a mut Turn<'t>,
    pub client: &'a mut Client,
    pub session: &'a Session,
    pub shared: &'a Shared,
    pub replies: &'a mut Replies,
    /// Room for reading a value.
    pub scratch: &'a mut Vec<u8>,
    pub counted: &'a mut Counted,
    /// The value this command was waiting for.
    pub fetched: &'a mut Option<Fetched>,
    /// How far this command came before it had to wait.
    pub progress: &'a mut Progress,
}

impl<'a, 't> Call<'a, 't> {
    /// The argument at `i`, the name being 0; empty when there is none.
    #[must_use]
    pub fn arg(&self, i: usize) -> &'a [u8] {
        self.args.get(i).unwrap_or_default()
    }

    /// Whether the argument at `i` is this word, in any case.
    #[must_use]
    pub fn is(&self, i: usize, word: &str) -> bool {
        self.args.get(i).is_some_and(|given| given.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// Writes to the reply.
    pub fn reply(&mut self) -> Reply<'_> {
        self.replies.writer(self.client.protocol)
    }

    /// The same call with other arguments: a command that is part of this one.
    pub fn part<'b>(&'b mut self, args: Args<'b>, progress: &'b mut Progress) -> Call<'b, 't> {
        Call {
            args,
            turn: self.turn,
            client: self.client,
            session: self.session,
            shared: self.shared,
            replies: self.replies,
            scratch: self.scratch,
            counted: self.counted,
            fetched: self.fetched,
            progress,
        }
    }

    /// A key was looked for, for the broker's counters.
    pub fn count_look(&mut self, found: bool) {
        if found {
            self.counted.hits += 1;
        } else {
            self.counted.misses += 1;
        }
    }

    /// What a key holds, applied state unless this turn wrote to its shard; held.
    ///
    /// # Errors
    /// [`CommandError`]: never a miss.
    pub fn look(&mut self, key: &[u8]) -> Result<Option<Value>, CommandError> {
        let (value, hold) = self.turn.look(key)?;
        self.replies.hold(hold);
        Ok(value)
    }

    /// The live value of a key, to be read only; as [`Call::look`].
    ///
    /// # Errors
    /// As [`Call::look`]; also when it has to be waited for.
    pub fn value_of(&mut self, key: &[u8]) -> Result<Option<Current>, CommandError> {
        let Some(value) = self.look(key)? else { return Ok(None) };
        let (expires_at, revision) = (value.expires_at(), value.revision());
        Ok(Some(Current { value: self.read(key, &value)?, expires_at, revision }))
    }

    /// Locks the key's shard and looks at what it holds, staged writes of others included.
    ///
    /// # Errors
    /// As [`Call::look`].
    pub fn look_to_write(&mut self, key: &[u8]) -> Result<Option<Value>, CommandError> {
        match self.turn.lock_for(key) {
            // Nobody has written to it yet, so there is nothing; a write will find that it has to be made.
            Err(WriteError::NotCreated(_)) => Ok(None),
            locked => {
                locked?;
                self.look(key)
            }
        }
    }

    /// The same with the value: for a command that needs the old one to write the new one.
    ///
    /// # Errors
    /// As [`Call::value_of`].
    pub fn current(&mut self, key: &[u8]) -> Result<Option<Current>, CommandError> {
        let Some(value) = self.look_to_write(key)? else { return Ok(None) };
        let (expires_at, revision) = (value.expires_at(), value.revision());
        Ok(Some(Current { value: self.read(key, &value)?, expires_at, revision }))
    }

    /// The bytes of a value that was looked at.
    ///
    /// # Errors
    /// As [`Call::value_of`].
    pub fn read(&mut self, key: &[u8], value: &Value) -> Result<Vec<u8>, CommandError> {
        let pinned = match self.turn.found(key, value)? {
            Found::Staged(bytes) => return Ok(bytes.to_vec()),
            Found::Cached(bytes) => return Ok(bytes.to_vec()),
            Found::Stored(pinned) => pinned,
        };
        let waited_for = |fetched: &mut Fetched| (fetched.seat, fetched.revision) == pinned.identity();
        if let Some(fetched) = self.fetched.take_if(waited_for) {
            return fetched.value.map_err(CommandError::from);
        }
        match pinned.read(key, DiskWait::Never, self.scratch)? {
            Some(bytes) => Ok(bytes.to_vec()),
            None => Err(CommandError::Wait(Wait::Fetch(Box::new(Fetch { pinned, key: key.into() })))),
        }
    }

    /// Stages a put.
    ///
    /// # Errors
    /// [`CommandError`]: nothing was staged.
    pub fn put(&mut self, put: &Put<'_>) -> Result<Outcome, CommandError> {
        let (outcome, hold) = self.turn.put(put)?;
        self.replies.hold(hold);
        Ok(outcome)
    }

    /// Stages a put without a condition; `expires_at` is as [`Current::expires_at`].
    ///
    /// # Errors
    /// [`CommandError`]: nothing was staged.
    pub fn set(&mut self, key: &[u8], value: &[u8], expires_at: Millis) -> Result<Outcome, CommandError> {
        let expiry = if expires_at == Millis::NEVER { Expiry::Never } else { Expiry::At(expires_at) };
        self.put(&Put { key, value, expiry, condition: Condition::Always })
    }

    /// Stages a delete; whether there was anything to delete.
    ///
    /// # Errors
    /// [`CommandError`]: nothing was staged.
    pub fn delete(&mut self, key: &[u8]) -> Result<bool, CommandError> {
        let (outcome, hold) = self.turn.delete(key)?;
        self.replies.hold(hold);
        Ok(outcome.written.is_some())
    }

    /// Runs `run` so that all it stages is one batch, or nothing is. It may be run twice.
    ///
    /// # Errors
    /// Those of `run`; nothing is staged then. [`error::CROSS_SLOT`] when it goes to several shards.
    pub fn atomically<R>(
        &mut self,
        mut run: impl FnMut(&mut Self) -> Result<R, CommandError>,
    ) -> Result<R, CommandError> {
        if !self.turn.begin() {
            return run(self);
        }
        let (mark, holds) = (self.replies.mark(), self.replies.holds().to_vec());
        loop {
            match run(self) {
                Ok(result) => {
                    self.turn.commit();
                    return Ok(result);
                }
                Err(error) => {
                    let RolledBack { fits_alone, rests_on } = self.turn.roll_back();
                    self.replies.back_to(mark);
                    // What it waited for is not there any more.
                    self.replies.hold_only(&holds);
                    if !fits_alone {
                        self.replies.hold(rests_on);
                        return Err(error);
                    }
                }
            }
        }
    }

    /// To be called before a command asks which keys there are.
    ///
    /// # Errors
    /// [`CommandError::Wait`] when what this connection wrote has to be applied first.
    pub fn before_listing(&self) -> Result<(), CommandError> {
        self.turn.wait_before_listing().map_or(Ok(()), |hold| Err(CommandError::Wait(Wait::Applied(hold))))
    }

    /// Refuses keys of several shards in one command that must be whole.
    ///
    /// # Errors
    /// [`error::CROSS_SLOT`].
    pub fn require_together<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) -> Result<(), CommandError> {
        if self.turn.are_together(keys) { Ok(()) } else { Err(CommandError::Refused(error::CROSS_SLOT.to_owned())) }
    }
}
