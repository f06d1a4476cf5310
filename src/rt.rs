//! The runtime door: the only file that names one.
//!
//! async-std runs the tasks; smol's crates are the mechanism beneath both (`Async` sockets, channels, timers), on one
//! shared reactor. Sockets are `smol::Async` rather than async-std's wrapper around it, because only that one can wait
//! for readiness without first trying a read that is known to fail (one system call per request).
//!
//! Promise: every task has an owner ([`TaskGroup`] or the caller of [`spawn`]); the thread that calls [`run`] never polls
//! the reactor, so no socket event has to be handed from it to a worker. Must never know what a task does.

use std::future::{Future, poll_fn};
use std::io::{self, Read};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Poll, Waker};
use std::time::Duration;

use async_std::task::JoinHandle;
use futures_lite::{AsyncWriteExt, FutureExt};
use smol::Async;

pub use smol::channel;

/// Starts the executor with `workers` threads. To be called once, before anything is spawned.
pub fn start(workers: usize) {
    let config = async_global_executor::GlobalExecutorConfig::default()
        .with_env_var("HEARTH_NO_SUCH_VARIABLE")
        .with_min_threads(workers)
        .with_max_threads(workers)
        .with_thread_name_fn(|| "hearth-worker".to_owned());
    async_global_executor::init_with_config(config);
}

/// Runs `future` on the executor and blocks the calling thread until it is done.
///
/// # Panics
/// When the future panicked.
pub fn run<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> T {
    let (done, result) = std::sync::mpsc::sync_channel(1);
    let task = async_std::task::spawn(async move {
        let _ = done.send(future.await);
    });
    let value = result.recv();
    drop(task);
    match value {
        Ok(value) => value,
        Err(_) => panic!("the main task ended without a result"),
    }
}

/// Starts a task; whoever holds what this gives owns it. Dropping it lets the task run on.
pub fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Task<T> {
    Task(async_std::task::spawn(future))
}

/// A running task; awaiting it gives its result.
pub struct Task<T>(JoinHandle<T>);

impl<T> Future for Task<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut std::task::Context<'_>) -> std::task::Poll<T> {
        Pin::new(&mut self.0).poll(context)
    }
}

/// Runs `work` on a thread of the blocking pool.
pub async fn unblock<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    smol::unblock(work).await
}

/// Starts a thread of its own.
///
/// # Errors
/// When the system has no thread to give.
pub fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

/// Lets every task that is ready run before this one goes on.
pub async fn yield_now() {
    futures_lite::future::yield_now().await;
}

/// Waits `ms` milliseconds.
pub async fn sleep_ms(ms: u64) {
    smol::Timer::after(Duration::from_millis(ms)).await;
}

/// What `future` gives within `ms` milliseconds; `None` afterwards, the future is then dropped.
pub async fn within_ms<T>(ms: u64, future: impl Future<Output = T>) -> Option<T> {
    async { Some(future.await) }
        .or(async {
            sleep_ms(ms).await;
            None
        })
        .await
}

/// Wakes one waiting task; rung before anybody waits, the next wait returns at once. Ringing twice is ringing once.
pub struct Bell(channel::Sender<()>, channel::Receiver<()>);

impl Default for Bell {
    fn default() -> Self {
        let (sender, receiver) = channel::bounded(1);
        Self(sender, receiver)
    }
}

impl Bell {
    pub fn ring(&self) {
        let _ = self.0.try_send(());
    }

    /// Waits for a ring. May be cancelled; a ring is then kept for the next wait.
    pub async fn wait(&self) {
        let _ = self.1.recv().await;
    }
}

/// Counts the tasks it started, so that a stop can wait for them.
#[derive(Clone, Default)]
pub struct TaskGroup(Arc<GroupState>);

#[derive(Default)]
struct GroupState {
    live: AtomicUsize,
    one_ended: Bell,
}

struct Member(Arc<GroupState>);

impl Drop for Member {
    fn drop(&mut self) {
        self.0.live.fetch_sub(1, Ordering::AcqRel);
        self.0.one_ended.ring();
    }
}

impl TaskGroup {
    /// Starts a task of this group.
    pub fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        self.0.live.fetch_add(1, Ordering::AcqRel);
        let member = Member(Arc::clone(&self.0));
        drop(spawn(async move {
            let _member = member;
            future.await;
        }));
    }

    #[must_use]
    pub fn live(&self) -> usize {
        self.0.live.load(Ordering::Acquire)
    }

    /// Waits until no task of the group is left. One waiter at a time.
    pub async fn wait_empty(&self) {
        while self.live() > 0 {
            self.0.one_ended.wait().await;
        }
    }
}

/// A listening TCP socket.
pub struct Listener(Async<TcpListener>);

impl Listener {
    /// Takes over a bound and listening socket.
    ///
    /// # Errors
    /// When it cannot be put into non-blocking mode.
    pub fn new(listener: TcpListener) -> io::Result<Self> {
        Async::new(listener).map(Self)
    }

    /// The next connection. May be cancelled.
    ///
    /// # Errors
    /// Whatever `accept` reports.
    pub async fn accept(&self) -> io::Result<(Stream, SocketAddr)> {
        let (socket, peer) = self.0.accept().await?;
        Ok((Stream { socket, drained: true, ending: Arc::default() }, peer))
    }
}

/// A TCP connection.
pub struct Stream {
    socket: Async<TcpStream>,
    /// The last read took all there was, so waiting comes before reading.
    drained: bool,
    ending: Arc<Ending>,
}

#[derive(Default)]
struct Ending {
    asked: AtomicBool,
    reader: Mutex<Option<Waker>>,
}

/// Ends the reading side of a [`Stream`] from elsewhere.
#[derive(Clone)]
pub struct StreamHandle(Arc<Ending>);

impl StreamHandle {
    /// From now on [`Stream::read`] gives 0, also to who is waiting in it.
    pub fn end_reading(&self) {
        self.0.asked.store(true, Ordering::SeqCst);
        let reader = self.0.reader.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl Stream {
    #[must_use]
    pub fn handle(&self) -> StreamHandle {
        StreamHandle(Arc::clone(&self.ending))
    }

    /// Sends small writes at once.
    ///
    /// # Errors
    /// Whatever the system reports.
    pub fn set_nodelay(&self) -> io::Result<()> {
        self.socket.get_ref().set_nodelay(true)
    }

    /// Reads what is there, waiting for the first byte; 0 at the end of the stream or once
    /// [`StreamHandle::end_reading`] was called. May be cancelled.
    ///
    /// # Errors
    /// Whatever the system reports.
    pub async fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.ending.asked.load(Ordering::SeqCst) || (self.drained && !self.readable().await?) {
                return Ok(0);
            }
            if let Some(read) = self.read_now(into)? {
                return Ok(read);
            }
        }
    }

    /// Waits until there is something to read; false when asked to end.
    async fn readable(&self) -> io::Result<bool> {
        let mut readable = pin!(self.socket.readable());
        poll_fn(|context| {
            {
                let mut reader = self.ending.reader.lock().unwrap_or_else(PoisonError::into_inner);
                if !reader.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
                    *reader = Some(context.waker().clone());
                }
            }
            // Looked at after the waker is in place: whoever asks now will wake it.
            if self.ending.asked.load(Ordering::SeqCst) {
                return Poll::Ready(Ok(false));
            }
            readable.as_mut().poll(context).map_ok(|()| true)
        })
        .await
    }

    fn read_now(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match self.socket.get_ref().read(into) {
            Ok(read) => {
                self.drained = read < into.len();
                Ok(Some(read))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.drained = true;
                Ok(None)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes all of `bytes`. Cancelled, it may have written a part.
    ///
    /// # Errors
    /// Whatever the system reports.
    pub async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        (&self.socket).write_all(bytes).await
    }

    /// Says that nothing more will be written, then reads and drops what the peer still sends until it closes too, up
    /// to `ms`: closing with unread input would make the system discard replies that are still on their way.
    pub async fn close_gently(mut self, ms: u64) {
        if self.socket.get_ref().shutdown(Shutdown::Write).is_err() {
            return;
        }
        let mut scratch = vec![0; 16 * 1024];
        within_ms(ms, async {
            loop {
                match self.read_now(&mut scratch) {
                    Ok(Some(0)) | Err(_) => break,
                    Ok(Some(_)) => yield_now().await,
                    Ok(None) => {
                        if self.socket.readable().await.is_err() {
                            break;
                        }
                    }
                }
            }
        })
        .await;
    }
}

/// What the operating system asks of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Terminate,
}

/// The signals that ask for an end: SIGTERM and SIGINT.
pub struct Signals(async_signal::Signals);

impl Signals {
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn new() -> io::Result<Self> {
        async_signal::Signals::new([async_signal::Signal::Term, async_signal::Signal::Int]).map(Self)
    }

    /// Waits for the next one. May be cancelled.
    pub async fn next(&mut self) -> Signal {
        use futures_lite::StreamExt;
        match self.0.next().await {
            Some(Ok(_)) => Signal::Terminate,
            _ => std::future::pending().await,
        }
    }
}
