//! What leaves a connection: gathered replies, late values and late errors, in their places.
//!
//! Promise: a large value is never in memory as a whole: it is verified, then sent in pieces and verified again on the way;
//! should that fail in its middle, the connection ends before the value does. While the peer does not take what is sent,
//! what it sends is kept, up to a bound. Must never know a command.

use std::io;

use crate::core::error::ReadError;
use crate::core::log::reader::Wait;
use crate::core::shard::read::Pieces;
use crate::frontends::resp::encode::Reply;
use crate::frontends::resp::error;
use crate::frontends::resp::input::Input;
use crate::frontends::resp::late;
use crate::frontends::resp::limits::{PATCHED_WRITE_BYTES, STREAMED_VALUE_BYTES, UNREAD_INPUT_BYTES};
use crate::frontends::resp::replies::Patch;
use crate::rt::{self, Stream};

/// The way out of one connection, for one round of replies.
pub struct Outlet<'a> {
    stream: &'a mut Stream,
    input: &'a mut Input,
    /// Bytes received meanwhile.
    pub received: u64,
    /// Bytes sent.
    pub sent: u64,
}

impl<'a> Outlet<'a> {
    pub fn new(stream: &'a mut Stream, input: &'a mut Input) -> Self {
        Self { stream, input, received: 0, sent: 0 }
    }

    /// Sends bytes that are whole replies, or parts of one, already.
    ///
    /// # Errors
    /// The connection's.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (input, received) = (&mut *self.input, &mut self.received);
        let written = self.stream.write_all_reading(bytes, |bytes| {
            *received += bytes.len() as u64;
            input.push(bytes);
            input.bytes().len() < UNREAD_INPUT_BYTES
        });
        written.await?;
        self.sent += bytes.len() as u64;
        Ok(())
    }

    /// Sends the gathered bytes with their patches; gives how many of these were errors.
    ///
    /// # Errors
    /// The connection's; also when a value was lost in the middle of being sent.
    pub async fn write_patched(&mut self, gathered: &[u8], patches: Vec<Patch>) -> io::Result<u64> {
        // What is small is collected, so that a round of small replies is still one write.
        let (mut out, mut from, mut errors) = (Vec::new(), 0, 0);
        for patch in patches {
            out.extend_from_slice(&gathered[from..patch.at()]);
            from = patch.end();
            if out.len() > PATCHED_WRITE_BYTES {
                self.write(&out).await?;
                out.clear();
            }
            match patch {
                Patch::Lost { protocol, fate, wrote, .. } => {
                    Reply::new(&mut out, protocol).error(error::of_fate(fate, wrote));
                    errors += 1;
                }
                Patch::Value(cold) if cold.pinned.bytes() <= STREAMED_VALUE_BYTES => {
                    match late::read(&cold.pinned, &cold.key).await {
                        Ok((record, value)) => Reply::new(&mut out, cold.protocol).bulk(&record[value..]),
                        Err(fault) => {
                            Reply::new(&mut out, cold.protocol).error((cold.told)(&fault));
                            errors += 1;
                        }
                    }
                }
                Patch::Value(cold) => match late::verify(&cold.pinned, &cold.key).await {
                    Ok(pieces) => {
                        Reply::new(&mut out, cold.protocol).bulk_header(pieces.remaining());
                        self.write(&out).await?;
                        out.clear();
                        self.stream_value(pieces).await?;
                        out.extend_from_slice(b"\r\n");
                    }
                    Err(fault) => {
                        Reply::new(&mut out, cold.protocol).error((cold.told)(&fault));
                        errors += 1;
                    }
                },
            }
        }
        out.extend_from_slice(&gathered[from..]);
        self.write(&out).await?;
        Ok(errors)
    }

    async fn stream_value(&mut self, mut pieces: Pieces) -> io::Result<()> {
        let mut piece = Vec::new();
        let lost = |fault: ReadError| {
            tracing::error!(%fault, "a value was lost while it was sent; the connection is closed in its middle");
            io::Error::other(fault)
        };
        loop {
            let more = match pieces.next(Wait::Never, &mut piece).map_err(lost)? {
                Some(more) => more,
                None => {
                    let _turn = late::WAITING.acquire().await;
                    let mut ahead = pieces.clone();
                    let mut buffer = std::mem::take(&mut piece);
                    let read =
                        rt::unblock(move || ahead.next(Wait::IfNeeded, &mut buffer).map(|more| (more, ahead, buffer)));
                    let (more, ahead, buffer) = read.await.map_err(lost)?;
                    (pieces, piece) = (ahead, buffer);
                    more.unwrap_or(false)
                }
            };
            self.write(&piece).await?;
            if !more {
                return Ok(());
            }
        }
    }
}
