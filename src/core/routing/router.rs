//! The router: from a key to the shard that answers for it, by the newest placement.
//!
//! Promise: a shard is used only while the placement says `Here`. Must never open a shard or reach a broker.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::core::error::Refusal;
use crate::core::routing::hash::{shard_of, slot};
use crate::core::routing::placement::{Placement, Spot};
use crate::core::shard::Shard;
use crate::core::types::{CacheName, Kind, ShardId, ShardNo};

/// Where one cache's shards are, resolved against those open here.
pub struct Routes {
    spots: Vec<Route>,
}

enum Route {
    Here(Arc<Shard>),
    Refused(Refusal),
}

impl Routes {
    fn resolve(placement: &Placement, shards: &HashMap<ShardId, Arc<Shard>>, cache: &CacheName) -> Self {
        let spots = placement.of(Kind::Cache, cache).unwrap_or(&[Spot::Nowhere]);
        let resolve = |(number, spot): (usize, &Spot)| match spot {
            Spot::Here => {
                let id = ShardId { kind: Kind::Cache, cache: cache.clone(), shard: ShardNo(number as u32) };
                shards.get(&id).map_or(Route::Refused(Refusal::NotReady), |shard| Route::Here(Arc::clone(shard)))
            }
            Spot::There(broker) => Route::Refused(Refusal::NoOwner { owner: Some(*broker) }),
            Spot::Nowhere => Route::Refused(Refusal::NoOwner { owner: None }),
        };
        Self { spots: spots.iter().enumerate().map(resolve).collect() }
    }

    /// The number and shard that answer for `key`.
    ///
    /// # Errors
    /// [`Refusal`] when no shard here does.
    pub fn of_key(&self, key: &[u8]) -> Result<(ShardNo, &Arc<Shard>), Refusal> {
        // One shard takes every key: no need to hash it.
        let number = if self.spots.len() == 1 { ShardNo(0) } else { shard_of(slot(key), self.spots.len() as u32) };
        match &self.spots[number.0 as usize] {
            Route::Here(shard) => Ok((number, shard)),
            Route::Refused(refusal) => Err(*refusal),
        }
    }

    /// The numbers of the cache's shards.
    pub fn numbers(&self) -> impl Iterator<Item = ShardNo> + use<> {
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

    /// The shard with this number, if it is here.
    #[must_use]
    pub fn shard(&self, number: ShardNo) -> Option<&Arc<Shard>> {
        match self.spots.get(number.0 as usize) {
            Some(Route::Here(shard)) => Some(shard),
            _ => None,
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

/// Placement and open shards, and the routes that follow from them.
#[derive(Default)]
pub struct Router {
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    placement: Arc<Placement>,
    shards: HashMap<ShardId, Arc<Shard>>,
    routes: HashMap<CacheName, Arc<Routes>>,
}

impl Router {
    /// Takes a new placement; requests under way finish by the one they began with.
    pub fn publish(&self, placement: Placement) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.placement = Arc::new(placement);
        state.routes.clear();
    }

    /// Adds a shard that is open and may be used.
    pub fn open(&self, shard: Arc<Shard>) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.shards.insert(shard.id.clone(), shard);
        state.routes.clear();
    }

    /// The routes of a cache.
    #[must_use]
    pub fn routes(&self, cache: &CacheName) -> Arc<Routes> {
        if let Some(routes) = self.state.read().unwrap_or_else(PoisonError::into_inner).routes.get(cache) {
            return Arc::clone(routes);
        }
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let routes = Arc::new(Routes::resolve(&state.placement, &state.shards, cache));
        // A cache that nobody placed is not remembered: its name came from outside.
        if state.placement.of(Kind::Cache, cache).is_some() {
            state.routes.insert(cache.clone(), Arc::clone(&routes));
        }
        routes
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
        let refusal = |cache: &CacheName| router.routes(cache).of_key(b"k").err();
        assert_eq!(refusal(&here), Some(Refusal::NotReady));
        assert_eq!(refusal(&there), Some(Refusal::NoOwner { owner: Some(BrokerId(7)) }));
        assert_eq!(refusal(&CacheName::parse("un/placed/one").unwrap()), Some(Refusal::NoOwner { owner: None }));
    }
}
