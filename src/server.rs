//! The composition root: the only file that names core, front ends and cluster together.
//!
//! Start: bind, publish the placement, accept (clients are told that the broker is loading), open the data directory, start
//! the drivers. Stop: accept no more, let the connections answer what they read, let the drivers write out and mark a clean
//! stop.
//!
//! Promise: a taken address is found out before any data is touched; every end has its exit code. Must never know what
//! a request means.

mod open;
mod shards;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use futures_lite::FutureExt;

use crate::cluster::standalone;
use crate::config::Config;
use crate::core::api::{Cache, Caches};
use crate::core::clock::{Clock, SystemClock};
use crate::core::entropy::Entropy;
use crate::core::error::OpenError;
use crate::core::limits::FAILED_FLUSH_GRACE_MS;
use crate::core::log::FsyncPolicy;
use crate::core::progress::Progress;
use crate::core::routing::router::Router;
use crate::core::shard::driver::DriverError;
use crate::core::types::CacheName;
use crate::frontends::front_end::FrontEnd;
use crate::frontends::listener::{Host, accept, bind};
use crate::frontends::resp::Resp;
use crate::metrics::{Facts, Metrics};
use crate::{descriptors, password, rt};

use open::{Opened, open, options, policy, widths};
use shards::{Maker, Shards};

/// When the first log line says how far opening is, and how often another one does, in milliseconds.
const FIRST_PROGRESS_LINE_MS: u64 = 500;
const PROGRESS_LINE_INTERVAL_MS: u64 = 5_000;
/// How long clients get to go when the data cannot be opened, in milliseconds.
const REFUSED_GRACE_MS: u64 = 1_000;

/// Why the broker ended, or did not begin.
#[derive(Debug)]
pub enum ServerError {
    AddressInUse {
        address: SocketAddr,
    },
    Address {
        address: SocketAddr,
        source: std::io::Error,
    },
    Open(OpenError),
    /// The password cannot be had; the sentence says why, and not what it is.
    Password(String),
    /// The log failed while serving.
    Driver(DriverError),
    /// The machine did not give what a broker needs.
    System(std::io::Error),
}

impl ServerError {
    /// The exit code of the process, as the README lists them.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::AddressInUse { .. } => 3,
            Self::Address { .. } | Self::Password(_) => 2,
            Self::Open(OpenError::Locked { .. }) => 4,
            Self::Open(OpenError::Unusable { .. }) => 5,
            Self::Open(OpenError::Damaged { .. }) | Self::Driver(DriverError::Record(_)) => 7,
            Self::Open(OpenError::OtherFormat { .. } | OpenError::NotOurs { .. }) => 8,
            Self::Open(OpenError::FlushFailed { .. }) | Self::Driver(DriverError::Log(_)) => 9,
            Self::System(_) => 1,
        }
    }
}

impl std::fmt::Display for ServerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AddressInUse { address } => {
                write!(f, "the address {address} is in use by another process; choose another with --resp")
            }
            Self::Address { address, source } => write!(f, "cannot listen on {address}: {source}"),
            Self::Open(error) => error.fmt(f),
            Self::Password(reason) => f.write_str(reason),
            Self::Driver(error) => write!(f, "{error}; the broker stops, start it again to find out what survived"),
            Self::System(error) => write!(f, "the system does not give what a broker needs: {error}"),
        }
    }
}

impl std::error::Error for ServerError {}

/// What listens, and whom it serves.
struct Listening {
    address: SocketAddr,
    host: Arc<Host>,
    accepting: rt::Task<()>,
    stop_accepting: rt::channel::Sender<()>,
}

impl Listening {
    /// Accepts no more and lets every connection end; whether all did within `drain_ms`.
    async fn drain(self, drain_ms: u64) -> bool {
        let _ = self.stop_accepting.try_send(());
        self.accepting.await;
        rt::within_ms(drain_ms, self.host.drain()).await.is_some()
    }
}

/// A broker that listens and has not opened its data yet: clients are told that it is loading.
pub struct Opening {
    config: Config,
    listening: Listening,
    clock: Arc<dyn Clock>,
    entropy: Arc<Entropy>,
    router: Arc<Router>,
    shards: Arc<Shards>,
    progress: Arc<Progress>,
    max_open_segments: usize,
}

/// A broker that is open and listening.
pub struct Broker {
    listening: Listening,
    data: Option<PathBuf>,
    policy: FsyncPolicy,
    // Holds the lock on the directory, which outlives every use of it.
    shards: Arc<Shards>,
}

/// How a serving broker ended.
#[derive(Debug)]
pub enum Ended {
    /// Everything was answered and written out.
    Drained,
    /// The time for draining ran out; whatever was acknowledged is written out.
    DrainTimedOut,
}

impl Opening {
    /// Begins to listen; no data is touched yet. `front_end` serves the address.
    ///
    /// # Errors
    /// [`ServerError`] in one sentence.
    pub async fn listen(config: &Config, front_end: Arc<dyn FrontEnd>) -> Result<Self, ServerError> {
        let listener = bind(config.resp).map_err(|source| match source.kind() {
            std::io::ErrorKind::AddrInUse => ServerError::AddressInUse { address: config.resp },
            _ => ServerError::Address { address: config.resp, source },
        })?;
        let address = listener.local_addr().map_err(ServerError::System)?;
        if !address.ip().is_loopback() && !front_end.authenticates() {
            tracing::warn!(%address, "clients from other machines will be refused: no password is set");
        }
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let (entropy, progress) = (Arc::new(Entropy::System), Arc::new(Progress::default()));
        let budget = descriptors::budget(config.max_clients as usize).map_err(ServerError::System)?;
        let facts = Facts {
            run_id: format!("{:016x}{:016x}{:08x}", entropy.number(), entropy.number(), entropy.number() as u32),
            bind: address.ip(),
            port: address.port(),
            policy: policy(config),
            in_memory: config.memory,
            max_clients: budget.clients,
            max_value_bytes: config.max_value as usize,
            max_memory_bytes: config.max_memory,
            max_data_bytes: config.max_data,
        };
        let metrics = Arc::new(Metrics::new(facts, Arc::clone(&clock), Arc::clone(&progress)));
        let router = Arc::new(Router::default());
        let widths = widths(config);
        router.publish(standalone::placement(&widths));
        let shards = Shards::new(Arc::clone(&router), Arc::clone(&metrics), config.flush_on.into(), widths);
        let shards = Arc::new(shards);
        let cache = Cache::new(CacheName::default_cache(), Arc::clone(&router), Arc::clone(&clock));
        let maker = Arc::new(Maker(Arc::clone(&shards)));
        let caches = Caches::new(Arc::clone(&router), Arc::clone(&clock), maker);
        let host = Arc::new(Host::new(cache, caches, metrics, budget.turned_away));
        let (stop_accepting, stopped) = rt::channel::bounded::<()>(1);
        let listener = rt::Listener::new(listener).map_err(ServerError::System)?;
        let accepting = accept(listener, front_end, Arc::clone(&host));
        let accepting = rt::spawn(accepting.or(async move {
            let _ = stopped.recv().await;
        }));
        Ok(Self {
            config: config.clone(),
            listening: Listening { address, host, accepting, stop_accepting },
            clock,
            entropy,
            router,
            shards,
            progress,
            max_open_segments: budget.segments,
        })
    }

    /// Where it listens; the port the system chose if it was asked to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listening.address
    }

    /// Where it is told how far opening has come.
    #[must_use]
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// Opens the data and begins to serve it; `None` when `stop` resolved first. Opening is then left as it is: whatever it
    /// was doing, the next start does again.
    ///
    /// # Errors
    /// [`ServerError`] in one sentence; clients are disconnected.
    pub async fn open(self, stop: impl Future<Output = ()>) -> Result<Option<Broker>, ServerError> {
        match self.open_or_stop(stop).await {
            Ok(true) => Ok(Some(Broker {
                data: (!self.config.memory).then(|| self.config.data_dir.clone()),
                policy: policy(&self.config),
                listening: self.listening,
                shards: self.shards,
            })),
            Ok(false) => {
                tracing::info!("stopped before the data was open");
                self.listening.drain(self.config.drain * 1000).await;
                Ok(None)
            }
            Err(error) => {
                self.listening.drain(REFUSED_GRACE_MS).await;
                Err(error)
            }
        }
    }

    /// Whether it is open; false when `stop` resolved first.
    async fn open_or_stop(&self, stop: impl Future<Output = ()>) -> Result<bool, ServerError> {
        let opening = {
            let (config, clock, entropy) = (self.config.clone(), Arc::clone(&self.clock), Arc::clone(&self.entropy));
            let options = options(&config, self.max_open_segments, Arc::clone(&self.progress));
            rt::unblock(move || open(&config, options, clock, entropy))
        };
        let told = async { Some(self.tell_progress(opening).await) };
        let Some(opened) = told
            .or(async {
                stop.await;
                None
            })
            .await
        else {
            return Ok(false);
        };
        let Opened { store, shards, caches } = opened?;
        // What lives here keeps the number of shards it was made with.
        let mut widths = self.shards.widths().clone();
        widths.extend(caches);
        self.router.publish(standalone::placement(&widths));
        self.shards.begin(store, shards).map_err(ServerError::System)?;
        // From here on clients are served.
        self.router.loaded();
        self.listening.host.metrics.loaded();
        Ok(true)
    }

    /// Waits for `opening`, with a log line now and then; one that is done soon, or refused, needs none.
    async fn tell_progress<T>(&self, opening: impl Future<Output = T>) -> T {
        let mut opening = std::pin::pin!(opening);
        let mut interval_ms = FIRST_PROGRESS_LINE_MS;
        loop {
            if let Some(opened) = rt::within_ms(interval_ms, opening.as_mut()).await {
                return opened;
            }
            interval_ms = PROGRESS_LINE_INTERVAL_MS;
            if let Some(loading) = self.listening.host.metrics.loading() {
                tracing::info!(
                    address = %self.listening.address,
                    percent = %format_args!("{:.0}", loading.percent()),
                    bytes = loading.loaded_bytes,
                    of = loading.total_bytes,
                    seconds_left = loading.eta_seconds,
                    "opening the data; clients are told that it is loading"
                );
            }
        }
    }
}

impl Broker {
    /// Starts a broker that serves Redis clients, and waits until it is open.
    ///
    /// # Errors
    /// [`ServerError`] in one sentence.
    pub async fn start(config: &Config) -> Result<Self, ServerError> {
        let password = password::of(config).map_err(ServerError::Password)?;
        Self::start_with(config, Arc::new(Resp::new(password))).await
    }

    /// Starts a broker whose address serves another protocol, and waits until it is open.
    ///
    /// # Errors
    /// As [`Broker::start`].
    pub async fn start_with(config: &Config, front_end: Arc<dyn FrontEnd>) -> Result<Self, ServerError> {
        let opening = Opening::listen(config, front_end).await?;
        match opening.open(std::future::pending()).await? {
            Some(broker) => Ok(broker),
            None => unreachable!("nobody asks it to stop"),
        }
    }

    /// Where it listens; the port the system chose if it was asked to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listening.address
    }

    /// The one line that says where it listens and where the data lives.
    #[must_use]
    pub fn start_line(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        let data = match &self.data {
            None => "data in memory only (nothing survives the process)".to_owned(),
            Some(dir) => {
                let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.clone());
                let when = match self.policy {
                    FsyncPolicy::Always => "flushed before it is acknowledged",
                    FsyncPolicy::EverySec => "flushed every second",
                    FsyncPolicy::Never => "flushed when the system likes",
                };
                format!("data in {} ({when})", dir.display())
            }
        };
        format!("hearth {version} ready: RESP on {}, {data}", self.listening.address)
    }

    /// Serves until `stop` resolves or the log fails, then ends in order.
    ///
    /// # Errors
    /// [`ServerError::Driver`] when the log failed; every waiting client was told so first.
    pub async fn serve(self, stop: impl Future<Output = ()>, drain_ms: u64) -> Result<Ended, ServerError> {
        let failed = async { Some(self.shards.failure().await) }.or(async {
            stop.await;
            None
        });
        if let Some(error) = failed.await {
            // Clients whose writes are now unknown, and those who come after, are told before the process ends.
            rt::sleep_ms(FAILED_FLUSH_GRACE_MS).await;
            return Err(ServerError::Driver(error));
        }
        let clients = self.listening.host.clients();
        tracing::info!(clients, "draining: no new connections, requests under way are answered");
        let drained = self.listening.drain(drain_ms).await;
        self.shards.close().await.map_err(ServerError::Driver)?;
        Ok(if drained { Ended::Drained } else { Ended::DrainTimedOut })
    }
}
