//! Opening: from the configuration to everything that lives in a data directory.
//!
//! Promise: what lives there keeps the number of shards it was made with. Must never know a front end's words.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::config::Config;
use crate::core::clock::Clock;
use crate::core::entropy::Entropy;
use crate::core::limits::segment_bytes_in_memory;
use crate::core::log::FsyncPolicy;
use crate::core::log::disk::{Disk, MemoryDisk, RealDisk};
use crate::core::progress::Progress;
use crate::core::store::{MemoryBound, OpenShard, Store, StoreOptions};
use crate::core::types::CacheName;
use crate::frontends::resp::limits::DATABASES;
use crate::memory;
use crate::server::ServerError;

/// A data directory that is open, and everything in it.
pub(super) struct Opened {
    pub store: Store,
    pub shards: Vec<OpenShard>,
    /// What lives here, with the number of shards.
    pub caches: Vec<(CacheName, u32)>,
}

/// The caches that clients may write to, with the number of shards each gets when it is made.
pub(super) fn widths(config: &Config) -> HashMap<CacheName, u32> {
    let numbered = (0..DATABASES).map(|number| (CacheName::numbered(number), config.shards));
    numbered
        .chain(config.cache.iter().map(|cache| (cache.name.clone(), cache.shards.unwrap_or(config.shards))))
        .collect()
}

/// What is kept in memory only is never flushed.
pub(super) fn policy(config: &Config) -> FsyncPolicy {
    if config.memory { FsyncPolicy::Never } else { config.fsync.into() }
}

pub(super) fn options(config: &Config, max_open_segments: usize, progress: Arc<Progress>) -> StoreOptions {
    let bound_bytes = config.max_memory;
    StoreOptions {
        policy: policy(config),
        max_value_bytes: config.max_value as usize,
        segment_bytes: config.memory.then(|| segment_bytes_in_memory(config.max_value as usize)),
        in_memory: config.memory,
        max_data_bytes: config.max_data,
        min_free_bytes: config.min_free,
        value_cache_bytes: config.value_cache_bytes(),
        compacts: !config.no_compaction,
        memory: (bound_bytes > 0).then_some(MemoryBound { bound_bytes, used: memory::used }),
        max_open_segments,
        progress,
    }
}

/// Opens the data directory, every cache that lives in it, and the one that clients reach without selecting another.
pub(super) fn open(
    config: &Config,
    options: StoreOptions,
    clock: Arc<dyn Clock>,
    entropy: Arc<Entropy>,
) -> Result<Opened, ServerError> {
    let (disk, root): (Arc<dyn Disk>, &Path) = if config.memory {
        (Arc::new(MemoryDisk::new()), Path::new("/memory"))
    } else {
        (Arc::new(RealDisk), &config.data_dir)
    };
    let mut store = Store::open(disk, root, options, clock, entropy).map_err(ServerError::Open)?;
    let (mut caches, widths) = (store.caches().map_err(ServerError::Open)?, widths(config));
    let default = CacheName::default_cache();
    if !caches.iter().any(|(name, _)| *name == default) {
        let width = widths.get(&default).copied().unwrap_or(1);
        caches.push((default, width));
    }
    let mut shards = Vec::new();
    for (name, width) in &caches {
        let asked = widths.get(name);
        if asked.is_some_and(|asked| asked != width) {
            tracing::info!(shards = width, "{name} keeps the number of shards it was made with");
        }
        for opened in store.open_cache(name, *width).map_err(ServerError::Open)? {
            tell_opened(&opened);
            shards.push(opened);
        }
    }
    let (used, bound) = (memory::used(), config.max_memory);
    if bound > 0 && used > bound {
        tracing::warn!(
            used,
            bound,
            "the data alone takes more memory than --max-memory allows: writes that grow are refused"
        );
    }
    Ok(Opened { store, shards, caches })
}

fn tell_opened(opened: &OpenShard) {
    let OpenShard { shard, report, .. } = opened;
    if let Some((segment, at)) = report.cut {
        tracing::warn!(
            segment = segment.0,
            byte = at,
            "the last stop was not clean: an unfinished batch was cut off the end of the log of {}",
            shard.id
        );
    }
    tracing::info!(
        keys = shard.index.view().len(),
        created = report.created,
        unclean_stop = report.unclean,
        epoch = %report.epoch,
        "opened {}",
        shard.id
    );
}
