//! The runtime door: the only file that names one.
//!
//! Two kinds of threads run tasks. async-std's executor runs the service: start and stop, signals, the listener, timers.
//! Worker threads, each one of smol's executors with a reactor of its own (`rt/reactor.rs`), run what is hot:
//! connections and drivers. A connection stays with the worker that its socket was given to.
//!
//! Promise: every task has an owner ([`TaskGroup`] or the holder of a [`Task`]); a task on a worker is never handed to
//! another thread, and no event of its socket has to be. Must never know what a task does.

mod reactor;

use std::future::{Future, poll_fn};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_lite::FutureExt;
use smol::{Async, Executor};

use reactor::{Direction, Reactor, Readiness, Source};

pub use smol::channel;
pub use smol::lock::Semaphore;

/// A thread that runs tasks and watches their sockets.
struct Worker {
    executor: Executor<'static>,
    reactor: Arc<Reactor>,
}

static WORKERS: OnceLock<Vec<Arc<Worker>>> = OnceLock::new();

/// Starts the threads that run tasks, `workers` of them for connections and drivers; once, before anything is spawned.
/// Later calls change nothing.
///
/// # Errors
/// When the system has no threads or descriptors to give.
pub fn start(workers: usize) -> io::Result<()> {
    let config = async_global_executor::GlobalExecutorConfig::default()
        .with_env_var("HEARTH_NO_SUCH_VARIABLE")
        .with_min_threads(1)
        .with_max_threads(1)
        .with_thread_name_fn(|| "hearth-service".to_owned());
    async_global_executor::init_with_config(config);
    if WORKERS.get().is_some() {
        return Ok(());
    }
    let mut started = Vec::new();
    for _ in 0..workers.max(1) {
        let worker = Arc::new(Worker { executor: Executor::new(), reactor: Arc::new(Reactor::new()?) });
        started.push(Arc::clone(&worker));
        thread("hearth-worker", move || worker.run())?;
    }
    let _ = WORKERS.set(started);
    Ok(())
}

impl Worker {
    fn run(&self) -> ! {
        let waker = Waker::from(Arc::clone(&self.reactor));
        let mut context = Context::from_waker(&waker);
        let mut forever = pin!(self.executor.run(std::future::pending::<()>()));
        let mut events = Vec::new();
        loop {
            self.reactor.begin_running();
            // Runs every task that is ready; comes back after 200 at the latest, having asked for attention again.
            let _ = forever.as_mut().poll(&mut context);
            self.reactor.wait(&mut events);
        }
    }
}

/// The worker with this number, counted round.
///
/// # Panics
/// Before [`start`].
fn worker(number: usize) -> &'static Arc<Worker> {
    match WORKERS.get() {
        Some(workers) => &workers[number % workers.len()],
        None => panic!("rt::start comes before the first task"),
    }
}

/// Runs `future` on the calling thread until it is done.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    async_std::task::block_on(future)
}

/// Starts a task of the service.
pub fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Task<T> {
    Task::Service(async_std::task::spawn(future))
}

/// Starts a task on the worker with this number, counted round.
pub fn spawn_on<T: Send + 'static>(number: usize, future: impl Future<Output = T> + Send + 'static) -> Task<T> {
    Task::Worker(Some(worker(number).executor.spawn(future)))
}

/// A running task; awaiting it gives its result. Dropping it lets the task run on.
pub enum Task<T> {
    Service(async_std::task::JoinHandle<T>),
    Worker(Option<smol::Task<T>>),
}

impl<T> Future for Task<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        match &mut *self {
            Self::Service(task) => Pin::new(task).poll(context),
            Self::Worker(Some(task)) => Pin::new(task).poll(context),
            Self::Worker(None) => Poll::Pending,
        }
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        if let Self::Worker(task) = self
            && let Some(task) = task.take()
        {
            task.detach();
        }
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

/// A timer that is set once and may be waited for many times: for what is due now and then beside work that never stops.
pub struct Alarm(smol::Timer);

impl Alarm {
    /// An alarm that rings in `ms` milliseconds.
    #[must_use]
    pub fn in_ms(ms: u64) -> Self {
        Self(smol::Timer::after(Duration::from_millis(ms)))
    }

    /// Waits for the alarm or for `future`, whichever comes first; `None` is the alarm. May be cancelled.
    pub async fn or<T>(&mut self, future: impl Future<Output = T>) -> Option<T> {
        async { Some(future.await) }
            .or(async {
                (&mut self.0).await;
                None
            })
            .await
    }
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
    /// Starts a task of this group on the worker with this number, counted round.
    pub fn spawn_on(&self, number: usize, future: impl Future<Output = ()> + Send + 'static) {
        self.0.live.fetch_add(1, Ordering::AcqRel);
        let member = Member(Arc::clone(&self.0));
        drop(spawn_on(number, async move {
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
pub struct Listener {
    listener: Async<TcpListener>,
    accepted: AtomicUsize,
}

impl Listener {
    /// Takes over a bound and listening socket.
    ///
    /// # Errors
    /// When it cannot be put into non-blocking mode.
    pub fn new(listener: TcpListener) -> io::Result<Self> {
        Ok(Self { listener: Async::new(listener)?, accepted: AtomicUsize::new(0) })
    }

    /// The next connection, given to the workers in turn. May be cancelled.
    ///
    /// # Errors
    /// Whatever the system reports.
    pub async fn accept(&self) -> io::Result<(Stream, SocketAddr)> {
        let (socket, peer) = self.listener.accept().await?;
        let number = self.accepted.fetch_add(1, Ordering::Relaxed);
        Ok((Stream::new(socket.into_inner()?, number)?, peer))
    }
}

/// A TCP connection, watched by the reactor of one worker. Reads and writes are tried first and wait only if they must.
pub struct Stream {
    socket: TcpStream,
    source: Arc<Source>,
    key: usize,
    worker: usize,
    /// The last read took all there was, so waiting comes before reading.
    drained: bool,
}

impl Drop for Stream {
    fn drop(&mut self) {
        worker(self.worker).reactor.remove(&self.socket, self.key);
    }
}

/// Ends the reading side of a [`Stream`] from elsewhere.
#[derive(Clone)]
pub struct StreamHandle(Arc<Source>);

impl StreamHandle {
    /// From now on [`Stream::read`] gives 0, also to who is waiting in it.
    pub fn end_reading(&self) {
        self.0.ask_to_end();
    }
}

impl Stream {
    fn new(socket: TcpStream, number: usize) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let (source, key) = worker(number).reactor.add(&socket)?;
        Ok(Self { socket, source, key, worker: number, drained: false })
    }

    #[must_use]
    pub fn handle(&self) -> StreamHandle {
        StreamHandle(Arc::clone(&self.source))
    }

    /// The number of the worker that watches it; its task belongs there.
    #[must_use]
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// Sends small writes at once.
    ///
    /// # Errors
    /// Whatever the system reports.
    pub fn set_nodelay(&self) -> io::Result<()> {
        self.socket.set_nodelay(true)
    }

    /// Reads what is there, waiting for the first byte; 0 at the end of the stream or once
    /// [`StreamHandle::end_reading`] was called. May be cancelled.
    ///
    /// # Errors
    /// Whatever the system reports.
    pub async fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.drained {
                match poll_fn(|context| self.source.poll(Direction::Read, context)).await {
                    Readiness::Ready => self.drained = false,
                    Readiness::AskedToEnd => return Ok(0),
                }
            } else if self.source.is_asked_to_end() {
                return Ok(0);
            }
            if let Some(read) = self.read_now(into)? {
                return Ok(read);
            }
        }
    }

    fn read_now(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        self.source.expect_edge(Direction::Read);
        match (&self.socket).read(into) {
            Ok(read) => {
                // Less than there was room for is all there was: what comes later is a new edge.
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
    pub async fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.source.expect_edge(Direction::Write);
            match (&self.socket).write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    poll_fn(|context| self.source.poll(Direction::Write, context)).await;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes all of `bytes`. While the peer does not take them, what it sends is read and given to `take`, until that
    /// answers false: a peer that sends everything before it reads anything would otherwise never be served. Cancelled, it
    /// may have written a part.
    ///
    /// # Errors
    /// Whatever the system reports.
    pub async fn write_all_reading(&mut self, mut bytes: &[u8], mut take: impl FnMut(&[u8]) -> bool) -> io::Result<()> {
        let mut scratch = Vec::new();
        let mut reading = true;
        while !bytes.is_empty() {
            self.source.expect_edge(Direction::Write);
            match (&self.socket).write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    bytes = &bytes[written..];
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            scratch.resize(TAKE_BYTES, 0);
            let readable = reading && (!self.drained || self.readable_or_writable().await == Direction::Read);
            if !reading {
                poll_fn(|context| self.source.poll(Direction::Write, context)).await;
            } else if readable {
                reading = match self.read_now(&mut scratch)? {
                    Some(0) => false,
                    Some(read) => take(&scratch[..read]),
                    None => true,
                } && !self.source.is_asked_to_end();
            }
        }
        Ok(())
    }

    /// Waits for either direction; writing goes first.
    async fn readable_or_writable(&self) -> Direction {
        poll_fn(|context| {
            let ready = |direction| self.source.poll(direction, context).is_ready();
            match () {
                () if ready(Direction::Write) => Poll::Ready(Direction::Write),
                () if ready(Direction::Read) => Poll::Ready(Direction::Read),
                () => Poll::Pending,
            }
        })
        .await
    }

    /// Says that nothing more will be written, then reads and drops what the peer still sends until it closes too, up
    /// to `ms`: closing with unread input would make the system discard replies that are still on their way.
    pub async fn close_gently(mut self, ms: u64) {
        if self.socket.shutdown(Shutdown::Write).is_err() {
            return;
        }
        within_ms(ms, self.read_to_the_end()).await;
    }

    async fn read_to_the_end(&mut self) {
        let mut scratch = vec![0; 16 * 1024];
        loop {
            match self.read_now(&mut scratch) {
                Ok(Some(0)) | Err(_) => return,
                Ok(Some(_)) => yield_now().await,
                Ok(None) => {
                    // Asked to end is no reason here: this is the end. Looked for again in a moment.
                    if poll_fn(|context| self.source.poll(Direction::Read, context)).await == Readiness::AskedToEnd {
                        sleep_ms(CLOSING_LOOK_MS).await;
                    }
                }
            }
        }
    }
}

/// Bytes read at a time while a write waits.
const TAKE_BYTES: usize = 64 * 1024;

/// How often a connection that was asked to end looks whether its peer has closed, in milliseconds.
const CLOSING_LOOK_MS: u64 = 5;

/// What the operating system asks of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Terminate,
}

/// The signals that ask for an end: SIGTERM and SIGINT. SIGXFSZ is taken too, and ignored: a write beyond the limit on
/// file sizes then fails with an error instead of ending the process without a word.
pub struct Signals(async_signal::Signals);

impl Signals {
    /// # Errors
    /// When the handlers cannot be installed.
    pub fn new() -> io::Result<Self> {
        use async_signal::Signal::{Int, Term, Xfsz};
        async_signal::Signals::new([Term, Int, Xfsz]).map(Self)
    }

    /// Waits for the next one. May be cancelled.
    pub async fn next(&mut self) -> Signal {
        use futures_lite::StreamExt;
        loop {
            match self.0.next().await {
                Some(Ok(async_signal::Signal::Xfsz)) => {}
                Some(Ok(_)) => return Signal::Terminate,
                _ => std::future::pending().await,
            }
        }
    }
}
