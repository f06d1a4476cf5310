//! The composition root: the only file that names core, front ends and cluster together.
//!
//! Start: bind, open the data directory, publish the placement, start the drivers, accept. Stop: accept no more, let the
//! connections answer what they read, let the drivers write out and mark a clean stop.
//!
//! Promise: a taken address is found out before any data is touched; every end has its exit code. Must never know what
//! a request means.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_lite::FutureExt;

use crate::cluster::standalone;
use crate::config::Config;
use crate::core::api::Cache;
use crate::core::clock::{Clock, SystemClock};
use crate::core::entropy::Entropy;
use crate::core::error::OpenError;
use crate::core::limits::FAILED_FLUSH_GRACE_MS;
use crate::core::log::FsyncPolicy;
use crate::core::log::disk::{Disk, MemoryDisk, RealDisk};
use crate::core::routing::router::Router;
use crate::core::shard::driver::{Close, Driver, DriverError};
use crate::core::shard::flusher::Flusher;
use crate::core::shard::housekeeper::Housekeeper;
use crate::core::store::{OpenShard, Store, StoreOptions};
use crate::core::types::{CacheName, Kind, ShardId, ShardNo};
use crate::frontends::front_end::FrontEnd;
use crate::frontends::listener::{Host, accept, bind};
use crate::frontends::resp::Resp;
use crate::metrics::{Facts, Metrics};
use crate::rt;

/// Descriptors that are not clients': log, lock, anchor, segments, standard streams, and some in reserve.
const RESERVED_DESCRIPTORS: u64 = 128;

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
            Self::Address { .. } => 2,
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
            Self::Driver(error) => write!(f, "{error}; the broker stops, start it again to find out what survived"),
            Self::System(error) => write!(f, "the system does not give what a broker needs: {error}"),
        }
    }
}

impl std::error::Error for ServerError {}

/// A broker that is open and listening.
pub struct Broker {
    address: SocketAddr,
    data: Option<PathBuf>,
    policy: FsyncPolicy,
    host: Arc<Host>,
    accepting: rt::Task<()>,
    stop_accepting: rt::channel::Sender<()>,
    driver: rt::Task<Result<(), DriverError>>,
    close: Close,
    // Dropped last: the lock on the directory outlives every use of it.
    _store: Store,
}

/// How a serving broker ended.
#[derive(Debug)]
pub enum Ended {
    /// Everything was answered and written out.
    Drained,
    /// The time for draining ran out; whatever was acknowledged is written out.
    DrainTimedOut,
}

impl Broker {
    /// Starts a broker that serves Redis clients.
    ///
    /// # Errors
    /// [`ServerError`] in one sentence.
    pub async fn start(config: &Config) -> Result<Self, ServerError> {
        Self::start_with(config, Arc::new(Resp)).await
    }

    /// Starts a broker whose address serves another protocol.
    ///
    /// # Errors
    /// As [`Broker::start`].
    pub async fn start_with(config: &Config, front_end: Arc<dyn FrontEnd>) -> Result<Self, ServerError> {
        let listener = bind(config.resp).map_err(|source| match source.kind() {
            std::io::ErrorKind::AddrInUse => ServerError::AddressInUse { address: config.resp },
            _ => ServerError::Address { address: config.resp, source },
        })?;
        let address = listener.local_addr().map_err(ServerError::System)?;
        if !address.ip().is_loopback() {
            tracing::warn!(%address, "clients from other machines will be refused: no password can be set yet");
        }
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let entropy = Arc::new(Entropy::System);
        let run_id = format!("{:016x}{:016x}{:08x}", entropy.number(), entropy.number(), entropy.number() as u32);
        let opened = {
            let (config, clock) = (config.clone(), Arc::clone(&clock));
            rt::unblock(move || open(&config, clock, entropy)).await?
        };
        let mut driver: Driver = opened.driver;
        driver.set_flush_place(config.flush_on.into());
        let max_clients = clients_that_fit(config.max_clients as usize);
        let facts = Facts {
            run_id,
            port: address.port(),
            policy: opened.policy,
            in_memory: config.memory,
            max_clients,
            max_value_bytes: config.max_value as usize,
            drivers: vec![driver.counts()],
        };
        let metrics = Arc::new(Metrics::new(facts, Arc::clone(&clock)));
        let cache = Cache::new(CacheName::default_cache(), opened.router, clock);
        let host = Arc::new(Host::new(cache, Arc::clone(&metrics), max_clients));
        let close = driver.close_handle();
        let flusher = Flusher::start().map_err(ServerError::System)?;
        let driver = rt::spawn_on(0, driver.serve(flusher));
        // On the driver's worker: what it stages then never waits for another thread. It ends when the shard does.
        drop(rt::spawn_on(0, opened.housekeeper.serve()));
        let (stop_accepting, stopped) = rt::channel::bounded::<()>(1);
        let listener = rt::Listener::new(listener).map_err(ServerError::System)?;
        let accepting = accept(listener, front_end, Arc::clone(&host));
        let accepting = rt::spawn(accepting.or(async move {
            let _ = stopped.recv().await;
        }));
        Ok(Self {
            address,
            data: (!config.memory).then(|| config.data_dir.clone()),
            policy: opened.policy,
            host,
            accepting,
            stop_accepting,
            driver,
            close,
            _store: opened.store,
        })
    }

    /// Where it listens; the port the system chose if it was asked to.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
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
        format!("hearth {version} ready: RESP on {}, {data}", self.address)
    }

    /// Serves until `stop` resolves or the log fails, then ends in order.
    ///
    /// # Errors
    /// [`ServerError::Driver`] when the log failed; every waiting client was told so first.
    pub async fn serve(mut self, stop: impl Future<Output = ()>, drain_ms: u64) -> Result<Ended, ServerError> {
        let failed = async { Some((&mut self.driver).await) }.or(async {
            stop.await;
            None
        });
        if let Some(result) = failed.await {
            // Clients whose writes are now unknown, and those who come after, are told before the process ends.
            rt::sleep_ms(FAILED_FLUSH_GRACE_MS).await;
            return result.map(|()| Ended::Drained).map_err(ServerError::Driver);
        }
        let clients = self.host.clients();
        tracing::info!(clients, "draining: no new connections, requests under way are answered");
        let _ = self.stop_accepting.try_send(());
        self.accepting.await;
        let drained = rt::within_ms(drain_ms, self.host.drain()).await.is_some();
        self.close.ask();
        self.driver.await.map_err(ServerError::Driver)?;
        Ok(if drained { Ended::Drained } else { Ended::DrainTimedOut })
    }
}

struct Opened {
    store: Store,
    router: Arc<Router>,
    driver: Driver,
    housekeeper: Housekeeper,
    policy: FsyncPolicy,
}

/// Opens the data directory and the one shard there is so far.
fn open(config: &Config, clock: Arc<dyn Clock>, entropy: Arc<Entropy>) -> Result<Opened, ServerError> {
    let (disk, root, policy): (Arc<dyn Disk>, &Path, FsyncPolicy) = if config.memory {
        (Arc::new(MemoryDisk::new()), Path::new("/memory"), FsyncPolicy::Never)
    } else {
        (Arc::new(RealDisk), &config.data_dir, config.fsync.into())
    };
    let options = StoreOptions { policy, max_value_bytes: config.max_value as usize, ..StoreOptions::default() };
    let mut store = Store::open(disk, root, options, clock, entropy).map_err(ServerError::Open)?;
    let cache = CacheName::default_cache();
    let id = ShardId { kind: Kind::Cache, cache: cache.clone(), shard: ShardNo(0) };
    let OpenShard { shard, driver, housekeeper, report } = store.open_shard(&id).map_err(ServerError::Open)?;
    if let Some((segment, at)) = report.cut {
        tracing::warn!(
            segment = segment.0,
            byte = at,
            "the last stop was not clean: an unfinished batch was cut off the end of the log"
        );
    }
    tracing::info!(
        keys = shard.index.view().len(),
        created = report.created,
        unclean_stop = report.unclean,
        epoch = %report.epoch,
        "opened {id}"
    );
    let router = Arc::new(Router::default());
    router.publish(standalone::placement(&[(cache, 1)]));
    router.open(shard);
    Ok(Opened { store, router, driver, housekeeper, policy })
}

/// As many clients as asked for, or as descriptors are left for.
fn clients_that_fit(asked: usize) -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    // The soft limit is raised to the hard one: a broker is what it is there for.
    let raised = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
    let current = match rustix::process::setrlimit(rustix::process::Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    let fitting = |current: u64| current - RESERVED_DESCRIPTORS.min(current / 2);
    let fitting = current.map_or(usize::MAX, |current| fitting(current).max(1) as usize);
    if fitting < asked {
        tracing::warn!(asked, fitting, "the limit on open files leaves room for fewer clients than --max-clients");
    }
    asked.min(fitting)
}
