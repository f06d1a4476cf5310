//! The shards that are open: their drivers and housekeepers, and the making of caches that nobody has written to yet.
//!
//! Promise: a cache is made once, whole, and is served only when its data directory knows it; what was begun is brought to
//! its end whoever gave up waiting for it. Must never know a front end.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::core::api::MakeCache;
use crate::core::error::{OpenError, Refusal};
use crate::core::routing::router::Router;
use crate::core::shard::driver::{Close, DriverError, FlushPlace};
use crate::core::shard::flusher::Flusher;
use crate::core::store::{OpenShard, Store};
use crate::core::types::CacheName;
use crate::metrics::{Metrics, ShardMetrics};
use crate::rt::{self, channel};

/// A driver at work.
struct Serving {
    close: Close,
    driver: rt::Task<()>,
}

/// Everything that is open, and how more is opened.
pub(super) struct Shards {
    router: Arc<Router>,
    metrics: Arc<Metrics>,
    flush_place: FlushPlace,
    /// How many shards each cache gets that may be made.
    widths: HashMap<CacheName, u32>,
    /// `None` until the data directory is open.
    store: Mutex<Option<Store>>,
    serving: Mutex<Vec<Serving>>,
    /// One cache is made at a time.
    making: rt::Semaphore,
    stopping: AtomicBool,
    failed: channel::Sender<DriverError>,
    failure: channel::Receiver<DriverError>,
}

impl Shards {
    pub fn new(
        router: Arc<Router>,
        metrics: Arc<Metrics>,
        flush_place: FlushPlace,
        widths: HashMap<CacheName, u32>,
    ) -> Self {
        let (failed, failure) = channel::bounded(1);
        Self {
            router,
            metrics,
            flush_place,
            widths,
            store: Mutex::default(),
            serving: Mutex::default(),
            making: rt::Semaphore::new(1),
            stopping: AtomicBool::new(false),
            failed,
            failure,
        }
    }

    /// The caches that may be made, with the number of their shards.
    pub fn widths(&self) -> &HashMap<CacheName, u32> {
        &self.widths
    }

    /// Takes the data directory, and serves what was open in it.
    ///
    /// # Errors
    /// When the system does not give a thread.
    pub fn begin(&self, store: Store, opened: Vec<OpenShard>) -> std::io::Result<()> {
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = Some(store);
        self.serve(opened)
    }

    /// Serves shards that are open: first their drivers, then the word that they are there.
    fn serve(&self, opened: Vec<OpenShard>) -> std::io::Result<()> {
        let mut shards = Vec::new();
        for OpenShard { shard, mut driver, housekeeper, .. } in opened {
            driver.set_flush_place(self.flush_place);
            self.metrics.add_shard(ShardMetrics { driver: driver.counts(), shard: Arc::clone(&shard.counters) });
            let (close, flusher, failed) = (driver.close_handle(), Flusher::start()?, self.failed.clone());
            let worker = shard.seat.0 as usize;
            let driver = rt::spawn_on(worker, async move {
                if let Err(error) = driver.serve(flusher).await {
                    let _ = failed.try_send(error);
                }
            });
            // On the driver's worker: what it stages then never waits for another thread. It ends when the shard does.
            drop(rt::spawn_on(worker, housekeeper.serve()));
            self.serving().push(Serving { close, driver });
            shards.push(shard);
        }
        self.router.open(shards);
        Ok(())
    }

    /// Waits until a log fails. May be cancelled.
    pub async fn failure(&self) -> DriverError {
        match self.failure.recv().await {
            Ok(error) => error,
            Err(_) => std::future::pending().await,
        }
    }

    /// Lets every driver write out what is staged and mark a clean stop.
    ///
    /// # Errors
    /// Of a log that could not be written.
    pub async fn close(&self) -> Result<(), DriverError> {
        self.stopping.store(true, Ordering::Release);
        // What is being made is made first: it would be in the way of whoever opens the directory next.
        let _turn = self.making.acquire().await;
        let serving = std::mem::take(&mut *self.serving());
        serving.iter().for_each(|serving| serving.close.ask());
        for Serving { driver, .. } in serving {
            driver.await;
        }
        // Lets the directory go: nothing uses it any more.
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.failure.try_recv().map_or(Ok(()), Err)
    }

    fn serving(&self) -> std::sync::MutexGuard<'_, Vec<Serving>> {
        self.serving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn make_one(self: Arc<Self>, name: CacheName) -> Result<(), Refusal> {
        let _turn = self.making.acquire().await;
        if self.stopping.load(Ordering::Acquire) {
            return Err(Refusal::Stopping);
        }
        if self.router.table().routes(&name).here().next().is_some() {
            return Ok(());
        }
        let Some(width) = self.widths.get(&name).copied() else { return Err(Refusal::NoOwner { owner: None }) };
        let (shards, cache) = (Arc::clone(&self), name.clone());
        let made = rt::unblock(move || match &mut *shards.store.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(store) => {
                store.admit_new_cache(width)?;
                store.open_cache(&cache, width).map_err(|error| told(&cache, &error))
            }
            None => Err(Refusal::NotReady),
        });
        let opened = made.await?;
        tracing::info!(shards = width, "made {name}");
        self.serve(opened).map_err(|error| {
            tracing::error!(%error, "{name} was made, and cannot be served");
            Refusal::NoRoom
        })
    }
}

/// What the clients are told who wanted to write to it; the operator is told why.
fn told(name: &CacheName, error: &OpenError) -> Refusal {
    tracing::error!(%error, "{name} could not be made; writes to it are refused");
    Refusal::NoRoom
}

/// How front ends reach [`Shards`].
pub(super) struct Maker(pub Arc<Shards>);

impl MakeCache for Maker {
    fn make<'a>(&'a self, name: &'a CacheName) -> Pin<Box<dyn Future<Output = Result<(), Refusal>> + Send + 'a>> {
        // A task of its own: whoever waits may leave.
        Box::pin(rt::spawn(Arc::clone(&self.0).make_one(name.clone())))
    }
}
