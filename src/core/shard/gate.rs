//! Where those wait who were told that there is no room to stage.
//!
//! Promise: a waiter wakes whenever room may have been made after it took its ticket; leaving costs nothing.
//! Must never know how much room there is: whoever wakes asks again.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Poll, Waker};

/// A moment in the life of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u64);

/// Opened every time there may be more room.
#[derive(Default)]
pub struct Gate {
    openings: AtomicU64,
    waiters: Mutex<Vec<Waker>>,
}

impl Gate {
    /// To be taken while nothing can make room: under the lock of the machine that had none.
    #[must_use]
    pub fn ticket(&self) -> Ticket {
        Ticket(self.openings.load(Ordering::Acquire))
    }

    /// There may be more room now.
    pub fn open(&self) {
        self.openings.fetch_add(1, Ordering::AcqRel);
        let waiters = std::mem::take(&mut *self.lock());
        waiters.into_iter().for_each(Waker::wake);
    }

    /// Waits until the gate was opened after the ticket was taken. May be cancelled.
    pub async fn wait(&self, ticket: Ticket) {
        poll_fn(|context| {
            if self.ticket() != ticket {
                return Poll::Ready(());
            }
            let mut waiters = self.lock();
            // Again under the lock: whoever opened in between has already taken its waiters.
            if self.ticket() != ticket {
                return Poll::Ready(());
            }
            waiters.push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Waker>> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::Context;

    #[test]
    fn a_ticket_taken_before_an_opening_lets_through_and_one_taken_after_it_waits() {
        let gate = Gate::default();
        let early = gate.ticket();
        gate.open();
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(pin!(gate.wait(early)).poll(&mut context), Poll::Ready(()));
        let late = gate.ticket();
        let mut wait = pin!(gate.wait(late));
        assert_eq!(wait.as_mut().poll(&mut context), Poll::Pending);
        gate.open();
        assert_eq!(wait.as_mut().poll(&mut context), Poll::Ready(()));
    }
}
