//! The router: from a key to the shard that answers for it, by the newest placement.
//!
//! Promise: a shard is used only while the placement says `Here`; a table handed out never changes, so a round of requests
//! finishes by the one it began with. Must never open a shard or reach a broker.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::core::error::Refusal;
use crate::core::routing::hash::{shard_of, slot};
use crate::core::routing::placement::{Placement, Spot};
use crate::core::shard::Shard;
use crate::core::types::{CacheName, Kind, Seat, ShardId, ShardNo};

/// Where one cache's shards are, resolved against those open here.
pub struct Routes {
    name: CacheName,
    spots: Vec<Route>,
}

enum Route {
    Here(Arc<Shard>),
    Refused(Refusal),
}

impl Routes {
    fn resolve(state: &State, cache: &CacheName) -> Self {
        let spots = state.placement.of(Kind::Cache, cache).unwrap_or(&[Spot::Nowhere]);
        let id = |number: usize| ShardId { kind: Kind::Cache, cache: cache.clone(), shard: ShardNo(number as u32) };
        let none_open = (0..spots.len()).all(|number| !state.shards.contains_key(&id(number)));
        // Once everything that was there is open, what is not open was never made.
        let missing = if state.loaded && none_open { Refusal::NotCreated } else { Refusal::NotReady };
        let resolve = |(number, spot): (usize, &Spot)| match spot {
            Spot::Here => {
                state.shards.get(&id(number)).map_or(Route::Refused(missing), |shard| Route::Here(Arc::clone(shard)))
            }
            Spot::There(broker) => Route::Refused(Refusal::NoOwner { owner: Some(*broker) }),
            Spot::Nowhere => Route::Refused(Refusal::NoOwner { owner: None }),
        };
        Self { name: cache.clone(), spots: spots.iter().enumerate().map(resolve).collect() }
    }

    /// Whose routes these are.
    #[must_use]
    pub fn name(&self) -> &CacheName {
        &self.name
    }

    /// The shard that answers for `key`.
    ///
    /// # Errors
    /// [`Refusal`] when no shard here does.
    pub fn of_key(&self, key: &[u8]) -> Result<&Arc<Shard>, Refusal> {
        self.get(self.number_of(key))
    }

    /// The number of the shard that answers for `key`.
    #[must_use]
    pub fn number_of(&self, key: &[u8]) -> ShardNo {
        // One shard takes every key: no need to hash it.
        if self.spots.len() == 1 { ShardNo(0) } else { shard_of(slot(key), self.spots.len() as u32) }
    }

    /// The numbers of the cache's shards.
    pub fn numbers(&self) -> impl ExactSizeIterator<Item = ShardNo> + use<> {
        (0..self.spots.len() as u32).map(ShardNo)
    }

    /// The shard with this number.
    ///
    /// # Errors
    /// [`Refusal`] when it is not here.
    pub fn get(&self, number: ShardNo) -> Result<&Arc<Shard>, Refusal> {
        match self.spots.get(number.0 as usize) {
            Some(Route::Here(shard)) => Ok(shard),
            Some(Route::Refused(refusal)) => Err(*refusal),
            None => Err(Refusal::NoOwner { owner: None }),
        }
    }

    /// The shards that are here.
    pub fn here(&self) -> impl Iterator<Item = &Arc<Shard>> {
        self.spots.iter().filter_map(|route| match route {
            Route::Here(shard) => Some(shard),
            Route::Refused(_) => None,
        })
    }
}

/// Every route at one moment.
pub struct Table {
    caches: HashMap<CacheName, Routes>,
    seats: HashMap<Seat, Arc<Shard>>,
    /// For a cache that nobody placed.
    nowhere: Routes,
}

impl Table {
    fn of(state: &State) -> Self {
        let caches = state.placement.caches(Kind::Cache);
        let caches = caches.map(|(name, _)| (name.clone(), Routes::resolve(state, name))).collect();
        let seats = state.shards.values().map(|shard| (shard.seat, Arc::clone(shard))).collect();
        let nowhere =
            Routes { name: CacheName::default_cache(), spots: vec![Route::Refused(Refusal::NoOwner { owner: None })] };
        Self { caches, seats, nowhere }
    }

    /// The routes of a cache.
    #[must_use]
    pub fn routes(&self, cache: &CacheName) -> &Routes {
        self.caches.get(cache).unwrap_or(&self.nowhere)
    }

    /// Whether the cache is placed, be it made already or not.
    #[must_use]
    pub fn knows(&self, cache: &CacheName) -> bool {
        self.caches.contains_key(cache)
    }

    /// The caches that are placed, in no order.
    pub fn caches(&self) -> impl Iterator<Item = &Routes> {
        self.caches.values()
    }

    /// An open shard.
    #[must_use]
    pub fn shard(&self, seat: Seat) -> Option<&Arc<Shard>> {
        self.seats.get(&seat)
    }
}

/// Placement and open shards, and the table that follows from them.
pub struct Router {
    state: RwLock<State>,
}

struct State {
    placement: Placement,
    shards: HashMap<ShardId, Arc<Shard>>,
    /// Whether everything that was there when the broker started is open.
    loaded: bool,
    table: Arc<Table>,
}

impl Default for Router {
    fn default() -> Self {
        let nowhere =
            Routes { name: CacheName::default_cache(), spots: vec![Route::Refused(Refusal::NoOwner { owner: None })] };
        let table = Arc::new(Table { caches: HashMap::new(), seats: HashMap::new(), nowhere });
        let state = State { placement: Placement::default(), shards: HashMap::new(), loaded: false, table };
        Self { state: RwLock::new(state) }
    }
}

impl Router {
    /// Takes a new placement; requests under way finish by the one they began with.
    pub fn publish(&self, placement: Placement) {
        self.change(|state| state.placement = placement);
    }

    /// Adds shards that are open and may be used, all at once.
    pub fn open(&self, shards: impl IntoIterator<Item = Arc<Shard>>) {
        self.change(|state| state.shards.extend(shards.into_iter().map(|shard| (shard.id.clone(), shard))));
    }

    /// Everything that was there when the broker started is open: a placed cache without a shard is one that nobody has
    /// written to yet.
    pub fn loaded(&self) {
        self.change(|state| state.loaded = true);
    }

    /// The routes of now.
    #[must_use]
    pub fn table(&self) -> Arc<Table> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner).table)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        state.table = Arc::new(Table::of(&state));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::types::BrokerId;

    #[test]
    fn what_is_not_here_is_refused_and_never_served() {
        let router = Router::default();
        let (here, there) = (CacheName::default_cache(), CacheName::parse("a/b/c").unwrap());
        let placement = Placement::default().with(Kind::Cache, here.clone(), vec![Spot::Here]).with(
            Kind::Cache,
            there.clone(),
            vec![Spot::There(BrokerId(7))],
        );
        router.publish(placement);
        let refusal = |cache: &CacheName| router.table().routes(cache).of_key(b"k").err();
        assert_eq!(refusal(&here), Some(Refusal::NotReady));
        assert_eq!(refusal(&there), Some(Refusal::NoOwner { owner: Some(BrokerId(7)) }));
        assert_eq!(refusal(&CacheName::parse("un/placed/one").unwrap()), Some(Refusal::NoOwner { owner: None }));
        // Nothing more is being opened: nobody has written to it yet.
        router.loaded();
        assert_eq!(refusal(&here), Some(Refusal::NotCreated));
        assert_eq!(refusal(&there), Some(Refusal::NoOwner { owner: Some(BrokerId(7)) }));
    }
}
