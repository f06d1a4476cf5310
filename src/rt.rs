//! The runtime door: with its two parts, `rt/reactor.rs` and `rt/stream.rs`, the only file that names one.
//!
//! Two kinds of threads run tasks. async-std's executor runs the service: start and stop, signals, the listener, timers.
//! Worker threads, each one of smol's executors with a reactor of its own (`rt/reactor.rs`), run what is hot:
//! connections and drivers. A connection stays with the worker that its socket was given to.
//!
//! Promise: every task has an owner ([`TaskGroup`] or the holder of a [`Task`]); a task on a worker is never handed to
//! another thread, and no event of its socket has to be. Must never know what a task does.

mod reactor;
mod stream;

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_lite::FutureExt;
use smol::Executor;

use reactor::Reactor;

pub use smol::channel;
pub use smol::lock::Semaphore;
pub use stream::{Listener, Stream, StreamHandle};

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
        // The crate lets a variable of the environment decide otherwise; nothing is to set this one.
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
