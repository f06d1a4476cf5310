//! The core's door: what a front end may ask.
//!
//! ```text
//! let turns = cache.turns();
//! let mut turn = turns.turn();           // synchronous: evaluate every request that was read, in order
//! turn.put(..); turn.get(..); turn.delete(..);
//! drop(turn);                            // staged: the shards' drivers take it from here
//! turns.settle(hold).await               // what an answer was waiting for
//! ```
//! Reading order: `turn` (locking, reading, all or nothing), `write` (what stages), `keys` (which keys there are).
//!
//! Promise: requests of one turn see each other in order, and no other client's write comes between its writes to one
//! shard; they are one batch unless that would be longer than a batch may be. One request is always whole. An answer
//! with a [`Hold`] may leave only when its fate is [`Fate::Applied`]. Must never know a protocol.

mod keys;
mod turn;
mod write;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::core::clock::Clock;
use crate::core::error::Refusal;
use crate::core::routing::router::{Router, Table};
use crate::core::shard::Shard;
use crate::core::shard::gate::Ticket;
use crate::core::types::{CacheName, Epoch, Millis, Offset, Seat, ShardNo};

pub use crate::core::shard::frontier::Fate;
pub use crate::core::shard::stage::Value;
pub use crate::core::values::ValueCounts;
pub use turn::{Found, Looked, RolledBack, Turn};
pub use write::{Progress, WriteError};

/// An answer may leave only when the record at `offset` of the shard in this seat is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    pub seat: Seat,
    pub offset: Offset,
    /// The record is the request's own; otherwise the answer only rests on it, and a lost record costs no write.
    pub wrote: bool,
}

/// A shard was full at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    seat: Seat,
    ticket: Option<Ticket>,
}

/// One cache, as a front end holds it. Cheap to clone.
#[derive(Clone)]
pub struct Cache {
    name: Arc<CacheName>,
    router: Arc<Router>,
    clock: Arc<dyn Clock>,
}

impl Cache {
    #[must_use]
    pub fn new(name: CacheName, router: Arc<Router>, clock: Arc<dyn Clock>) -> Self {
        Self { name: Arc::new(name), router, clock }
    }

    #[must_use]
    pub fn name(&self) -> &CacheName {
        &self.name
    }

    /// Where the cache's shards are now, and the time by its clock.
    #[must_use]
    pub fn turns(&self) -> Turns {
        Turns { table: self.router.table(), cache: Arc::clone(&self.name), now: self.clock.now() }
    }

    /// Microseconds by a clock that only goes forward, for telling how long something took.
    #[must_use]
    pub fn micros(&self) -> u64 {
        self.clock.micros()
    }

    /// What it holds.
    #[must_use]
    pub fn holds(&self) -> Holdings {
        let table = self.router.table();
        let mut holdings = Holdings::default();
        for shard in table.routes(&self.name).here() {
            let view = shard.index.view();
            holdings.keys += view.len();
            holdings.expiring += view.expiring();
            holdings.live_bytes += view.live().bytes;
            holdings.shards += 1;
        }
        holdings
    }

    /// Each shard of it that is open here.
    #[must_use]
    pub fn shards(&self) -> Vec<ShardFacts> {
        let table = self.router.table();
        let facts = |shard: &Arc<Shard>| {
            let epoch = shard.machine().epoch();
            let view = shard.index.view();
            let counters = &shard.counters;
            ShardFacts {
                number: shard.id.shard,
                epoch,
                base: Offset(counters.base_offset.load(Ordering::Relaxed)),
                applied: shard.frontier.applied_next(),
                keys: view.len(),
                expiring: view.expiring(),
                live_bytes: view.live().bytes,
                log_bytes: counters.log_bytes.load(Ordering::Relaxed),
                disk_bytes: counters.disk_bytes.load(Ordering::Relaxed),
            }
        };
        table.routes(&self.name).here().map(facts).collect()
    }

    /// Keys held here, lapsed ones included until the sweep has seen them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.holds().keys
    }

    /// Whether it holds no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One shard of a cache, as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardFacts {
    pub number: ShardNo,
    pub epoch: Epoch,
    /// The first offset its log still holds.
    pub base: Offset,
    /// One past the last offset that is applied.
    pub applied: Offset,
    pub keys: usize,
    pub expiring: usize,
    pub live_bytes: u64,
    pub log_bytes: u64,
    pub disk_bytes: u64,
}

/// What a cache holds here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Holdings {
    /// Lapsed ones included until the sweep has seen them.
    pub keys: usize,
    /// Keys with an expiry.
    pub expiring: usize,
    /// Bytes of the live records.
    pub live_bytes: u64,
    /// Shards of the cache that are open; none before it is first written to.
    pub shards: usize,
}

/// Makes the shards of a cache that nobody has written to yet.
pub trait MakeCache: Send + Sync {
    /// Makes the cache, if it is not made already, and opens it.
    fn make<'a>(&'a self, name: &'a CacheName) -> Pin<Box<dyn Future<Output = Result<(), Refusal>> + Send + 'a>>;
}

/// The caches of a broker.
#[derive(Clone)]
pub struct Caches {
    router: Arc<Router>,
    clock: Arc<dyn Clock>,
    maker: Arc<dyn MakeCache>,
}

impl Caches {
    #[must_use]
    pub fn new(router: Arc<Router>, clock: Arc<dyn Clock>, maker: Arc<dyn MakeCache>) -> Self {
        Self { router, clock, maker }
    }

    /// The cache of this name; `None` when this broker has none of it and makes none.
    #[must_use]
    pub fn get(&self, name: &CacheName) -> Option<Cache> {
        let known = self.router.table().knows(name);
        known.then(|| Cache::new(name.clone(), Arc::clone(&self.router), Arc::clone(&self.clock)))
    }

    /// The names of the caches there are and may be, in their order.
    #[must_use]
    pub fn names(&self) -> Vec<CacheName> {
        let mut names: Vec<_> = self.router.table().caches().map(|routes| routes.name().clone()).collect();
        names.sort();
        names
    }

    /// What is known of the values kept in memory, by all caches together.
    #[must_use]
    pub fn value_counts(&self) -> ValueCounts {
        let table = self.router.table();
        let counts = table.caches().flat_map(|routes| routes.here()).next().map(|shard| shard.values.counts());
        counts.unwrap_or_default()
    }

    /// Makes a cache that was refused as not made: its first write is on its way.
    ///
    /// # Errors
    /// [`Refusal`] when it cannot be made. May be cancelled: it is then made all the same.
    pub async fn make(&self, name: &CacheName) -> Result<(), Refusal> {
        self.maker.make(name).await
    }
}

/// The routes of one round of requests.
pub struct Turns {
    table: Arc<Table>,
    cache: Arc<CacheName>,
    now: Millis,
}

impl Turns {
    /// Begins a turn. It holds a shard's lock while it lasts: finish it without waiting for anything.
    #[must_use]
    pub fn turn(&self) -> Turn<'_> {
        Turn::new(&self.table, self.table.routes(&self.cache), self.now)
    }

    /// Waits until the fate of a held answer is known. May be cancelled.
    pub async fn settle(&self, hold: Hold) -> Fate {
        match self.table.shard(hold.seat) {
            Some(shard) => shard.frontier.wait(hold.offset).await,
            None => Fate::Refused(Refusal::NotReady),
        }
    }

    /// The fate of a held answer, once it is known.
    #[must_use]
    pub fn fate(&self, hold: Hold) -> Option<Fate> {
        self.table
            .shard(hold.seat)
            .map_or(Some(Fate::Refused(Refusal::NotReady)), |shard| shard.frontier.fate(hold.offset))
    }

    /// What to [wait](Self::wait_for_room) for before there may be room to stage again. To be asked while the turn that
    /// found the shard full is alive: nothing can make room before, so what does is still to come.
    #[must_use]
    pub fn room(&self, seat: Seat) -> Room {
        Room { seat, ticket: self.table.shard(seat).map(|shard| shard.room.ticket()) }
    }

    /// Waits until there may be room to stage again. May be cancelled.
    pub async fn wait_for_room(&self, room: Room) {
        if let (Some(shard), Some(ticket)) = (self.table.shard(room.seat), room.ticket) {
            shard.room.wait(ticket).await;
        }
    }
}
