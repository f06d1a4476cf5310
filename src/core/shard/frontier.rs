//! The applied frontier and those who wait for it.
//!
//! Promise: a waiter for offset n resolves to `Applied` once every record up to n is applied, or to what became of it
//! otherwise; leaving while waiting costs nothing. Must never know what was written.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Poll, Waker};

use crate::core::error::{Refusal, Unknown};
use crate::core::types::Offset;

/// What became of a staged record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Applied,
    /// It may or may not survive.
    Unknown(Unknown),
    /// It was staged and never proposed: nothing was written.
    Refused(Refusal),
}

#[derive(Default)]
struct Waiters {
    /// By the offset they wait for. Each wakes once.
    wakers: BTreeMap<Offset, Vec<Waker>>,
    /// From the first offset on: unknown; from the second on: refused. Set once, when the shard fails.
    failure: Option<(Unknown, Offset)>,
}

/// One past the last applied record of a shard, and its waiters.
pub struct Frontier {
    applied_next: AtomicU64,
    waiters: Mutex<Waiters>,
}

impl Frontier {
    #[must_use]
    pub fn new(applied_next: Offset) -> Self {
        Self { applied_next: AtomicU64::new(applied_next.0), waiters: Mutex::default() }
    }

    /// One past the last applied record.
    #[must_use]
    pub fn applied_next(&self) -> Offset {
        Offset(self.applied_next.load(Ordering::Acquire))
    }

    /// Publishes that everything below `next` is applied, and wakes who waited for it.
    pub fn publish(&self, next: Offset) {
        self.applied_next.store(next.0, Ordering::Release);
        let due = {
            let mut waiters = self.lock();
            let later = waiters.wakers.split_off(&next);
            std::mem::replace(&mut waiters.wakers, later)
        };
        due.into_values().flatten().for_each(Waker::wake);
    }

    /// Ends the shard's writing: what was proposed and not applied is unknown, what is at or past `unproposed` was
    /// never written.
    pub fn fail(&self, why: Unknown, unproposed: Offset) {
        let all = {
            let mut waiters = self.lock();
            waiters.failure.get_or_insert((why, unproposed));
            std::mem::take(&mut waiters.wakers)
        };
        all.into_values().flatten().for_each(Waker::wake);
    }

    /// What became of the record at `offset`, once that is known.
    #[must_use]
    pub fn fate(&self, offset: Offset) -> Option<Fate> {
        if offset < self.applied_next() {
            return Some(Fate::Applied);
        }
        self.lock().failure.map(|(why, unproposed)| match why {
            _ if offset < unproposed => Fate::Unknown(why),
            Unknown::FlushFailed => Fate::Refused(Refusal::Poisoned),
            Unknown::Stopped => Fate::Refused(Refusal::Stopping),
        })
    }

    /// Waits until the fate of the record at `offset` is known. May be cancelled.
    pub async fn wait(&self, offset: Offset) -> Fate {
        poll_fn(|context| {
            if let Some(fate) = self.fate(offset) {
                return Poll::Ready(fate);
            }
            let mut waiters = self.lock();
            // Again under the lock: a frontier published in between has already taken its waiters.
            if offset < self.applied_next() {
                return Poll::Ready(Fate::Applied);
            }
            if waiters.failure.is_none() {
                waiters.wakers.entry(offset).or_default().push(context.waker().clone());
                return Poll::Pending;
            }
            drop(waiters);
            self.fate(offset).map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::Context;

    fn poll(future: std::pin::Pin<&mut impl Future<Output = Fate>>) -> Poll<Fate> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_waiter_resolves_when_its_own_record_is_applied_and_not_before() {
        let frontier = Frontier::new(Offset(5));
        let mut wait = pin!(frontier.wait(Offset(6)));
        assert_eq!(poll(wait.as_mut()), Poll::Pending);
        frontier.publish(Offset(6));
        assert_eq!(poll(wait.as_mut()), Poll::Pending);
        frontier.publish(Offset(7));
        assert_eq!(poll(wait.as_mut()), Poll::Ready(Fate::Applied));
    }

    #[test]
    fn a_failure_tells_applied_unknown_and_never_written_apart() {
        let frontier = Frontier::new(Offset(5));
        frontier.publish(Offset(6));
        frontier.fail(Unknown::FlushFailed, Offset(8));
        assert_eq!(frontier.fate(Offset(5)), Some(Fate::Applied));
        assert_eq!(frontier.fate(Offset(7)), Some(Fate::Unknown(Unknown::FlushFailed)));
        assert_eq!(frontier.fate(Offset(8)), Some(Fate::Refused(Refusal::Poisoned)));
    }
}
