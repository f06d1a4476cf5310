//! Values that have to be waited for: read on threads that may wait for the disk.
//!
//! Promise: at most so many threads wait for all connections together as `limits` says. Must never know a reply.

use crate::core::error::ReadError;
use crate::core::log::reader::Wait;
use crate::core::shard::read::{Pieces, Pinned};
use crate::frontends::resp::call::{Fetch, Fetched};
use crate::frontends::resp::limits::WAITING_READS;
use crate::rt;

/// At most so many threads wait for the disk on behalf of connections, all together: they share one disk.
pub static WAITING: rt::Semaphore = rt::Semaphore::new(WAITING_READS);

/// Reads a value: at once if that needs no waiting, else on a thread that may wait. Gives the record and where in it the
/// value begins.
///
/// # Errors
/// [`ReadError`]: never a miss.
pub async fn read(pinned: &Pinned, key: &[u8]) -> Result<(Vec<u8>, usize), ReadError> {
    let begin = |pinned: &Pinned, key: &[u8], wait, record: &mut Vec<u8>| -> Result<Option<usize>, ReadError> {
        let value = pinned.read(key, wait, record)?.map(<[u8]>::len);
        Ok(value.map(|value| record.len() - value))
    };
    let mut record = Vec::new();
    if let Some(value) = begin(pinned, key, Wait::Never, &mut record)? {
        return Ok((record, value));
    }
    let _turn = WAITING.acquire().await;
    let (pinned, key) = (pinned.clone(), Box::<[u8]>::from(key));
    rt::unblock(move || {
        // With `Wait::IfNeeded` there is always a value or an error.
        let value = begin(&pinned, &key, Wait::IfNeeded, &mut record)?;
        Ok((record, value.unwrap_or_default()))
    })
    .await
}

/// Reads a value that a command needs before it can be run.
pub async fn fetch(fetch: Fetch) -> Fetched {
    let Fetch { pinned, key } = fetch;
    let (seat, revision) = pinned.identity();
    let value = read(&pinned, &key).await.map(|(mut record, value)| record.split_off(value));
    Fetched { seat, revision, value }
}

/// Verifies a large value on a thread that may wait.
///
/// # Errors
/// [`ReadError`]: never a miss.
pub async fn verify(pinned: &Pinned, key: &[u8]) -> Result<Pieces, ReadError> {
    let _turn = WAITING.acquire().await;
    let (pinned, key) = (pinned.clone(), Box::<[u8]>::from(key));
    rt::unblock(move || pinned.verify(&key)).await
}
