//! The reactor of one worker: which sockets became readable or writable, by an edge-triggered epoll.
//!
//! A socket is registered once and never again: per request there is no system call but the read and the write. What it
//! costs to go through async-io's reactor instead is in `docs/decisions/0003-workers-and-reactor.md`.
//!
//! Promise: an edge is never lost: it is kept in the source until somebody asks, and whoever waits is woken.
//! Must never know a task or what a socket is for.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};

/// Events taken from the kernel at a time.
const EVENTS: usize = 1024;
/// The key of the reactor's own wake-up descriptor.
const WAKE_KEY: u64 = u64::MAX;

/// Reading or writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Read,
    Write,
}

/// One direction of a source.
#[derive(Default)]
struct Side {
    /// An edge came since somebody last looked.
    ready: bool,
    waiting: Option<Waker>,
}

#[derive(Default)]
struct Sides {
    read: Side,
    write: Side,
    /// The peer closed or the socket failed: reading never waits again.
    ended: bool,
    /// Whoever waits to read is asked to stop.
    asked_to_end: bool,
}

/// What the reactor knows of one registered socket.
#[derive(Default)]
pub struct Source {
    sides: Mutex<Sides>,
}

/// What became of waiting for a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    /// [`Source::ask_to_end`] was called; only for reading.
    AskedToEnd,
}

impl Source {
    fn lock(&self) -> MutexGuard<'_, Sides> {
        self.sides.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets edges that came so far. To be called before the system call that uses the readiness: what comes after it
    /// is then kept.
    pub fn expect_edge(&self, direction: Direction) {
        let mut sides = self.lock();
        match direction {
            Direction::Read => sides.read.ready = sides.ended,
            Direction::Write => sides.write.ready = false,
        }
    }

    /// Ready once an edge came since [`Source::expect_edge`].
    pub fn poll(&self, direction: Direction, context: &Context<'_>) -> Poll<Readiness> {
        let mut sides = self.lock();
        if direction == Direction::Read && sides.asked_to_end {
            return Poll::Ready(Readiness::AskedToEnd);
        }
        let side = match direction {
            Direction::Read => &mut sides.read,
            Direction::Write => &mut sides.write,
        };
        if side.ready {
            return Poll::Ready(Readiness::Ready);
        }
        if !side.waiting.as_ref().is_some_and(|waiting| waiting.will_wake(context.waker())) {
            side.waiting = Some(context.waker().clone());
        }
        Poll::Pending
    }

    /// Whether reading was asked to end.
    #[must_use]
    pub fn is_asked_to_end(&self) -> bool {
        self.lock().asked_to_end
    }

    /// Asks whoever reads, now or later, to stop.
    pub fn ask_to_end(&self) {
        let waiting = {
            let mut sides = self.lock();
            sides.asked_to_end = true;
            sides.read.waiting.take()
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    fn edge(&self, flags: EventFlags) {
        let over = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        let (reader, writer) = {
            let mut sides = self.lock();
            sides.ended |= over;
            let readable = over || flags.contains(EventFlags::IN);
            let writable = over || flags.contains(EventFlags::OUT);
            sides.read.ready |= readable;
            sides.write.ready |= writable;
            // A reader's waker stays in place, it will wait again; a writer waits rarely, and most edges say writable.
            let reader = sides.read.waiting.clone().filter(|_| readable);
            (reader, sides.write.waiting.take_if(|_| writable))
        };
        reader.into_iter().chain(writer).for_each(Waker::wake);
    }
}

/// The sources by the key the kernel gives back with an event.
#[derive(Default)]
struct Sources {
    by_key: Vec<Option<Arc<Source>>>,
    free: Vec<usize>,
}

/// An epoll instance, its sources, and a way to end a wait from elsewhere.
pub struct Reactor {
    epoll: OwnedFd,
    wake: OwnedFd,
    sources: Mutex<Sources>,
    /// Somebody asked for attention since the worker last began to run tasks.
    notified: AtomicBool,
    /// The worker is, or is about to be, in the kernel.
    waiting: AtomicBool,
}

impl Reactor {
    /// # Errors
    /// When the system has no descriptors to give.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        // Edge-triggered: each write is an edge, so the counter never has to be read back.
        epoll::add(&epoll, &wake, EventData::new_u64(WAKE_KEY), EventFlags::IN | EventFlags::ET)?;
        Ok(Self {
            epoll,
            wake,
            sources: Mutex::default(),
            notified: AtomicBool::new(false),
            waiting: AtomicBool::new(false),
        })
    }

    fn sources(&self) -> MutexGuard<'_, Sources> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches a socket from now on; gives its source and the key to [`Reactor::remove`] it by.
    ///
    /// # Errors
    /// Whatever the system reports.
    pub fn add(&self, socket: impl AsFd) -> io::Result<(Arc<Source>, usize)> {
        let source = Arc::new(Source::default());
        let key = {
            let mut sources = self.sources();
            let key = sources.free.pop().unwrap_or(sources.by_key.len());
            if key == sources.by_key.len() {
                sources.by_key.push(None);
            }
            sources.by_key[key] = Some(Arc::clone(&source));
            key
        };
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        if let Err(error) = epoll::add(&self.epoll, socket, EventData::new_u64(key as u64), flags) {
            self.forget(key);
            return Err(error.into());
        }
        Ok((source, key))
    }

    /// Stops watching a socket that is about to be closed.
    pub fn remove(&self, socket: impl AsFd, key: usize) {
        let _ = epoll::delete(&self.epoll, socket);
        self.forget(key);
    }

    fn forget(&self, key: usize) {
        let mut sources = self.sources();
        sources.by_key[key] = None;
        sources.free.push(key);
    }

    /// Tasks are about to run: what asks for attention from here on counts.
    pub fn begin_running(&self) {
        self.notified.store(false, Ordering::SeqCst);
    }

    /// Takes the events there are and wakes who waits for them; sleeps for one unless somebody asked for attention.
    pub fn wait(&self, events: &mut Vec<Event>) {
        self.waiting.store(true, Ordering::SeqCst);
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Looked at after `waiting` is set: whoever asks now writes to the descriptor.
        let timeout = self.notified.load(Ordering::SeqCst).then_some(&at_once);
        events.clear();
        events.reserve(EVENTS);
        // An interrupted wait is one without events.
        let _ = epoll::wait(&self.epoll, spare_capacity(events), timeout);
        self.waiting.store(false, Ordering::SeqCst);
        for event in events.iter() {
            let (data, flags) = (event.data, event.flags);
            let source = self.sources().by_key.get(data.u64() as usize).cloned().flatten();
            if let Some(source) = source {
                source.edge(flags);
            }
        }
    }
}

impl Wake for Reactor {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.notified.swap(true, Ordering::SeqCst) && self.waiting.load(Ordering::SeqCst) {
            // A full counter is an edge that is still to be taken.
            let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        }
    }
}
