//! A data directory: its lock, its `node.toml`, and the shards in it.
//!
//! Reading order: `node` (what the directory says of itself), `replay` (what a log tells), and here the two in order.
//!
//! Promise: one process at a time; a directory that is not ours, or of another format, is left as it was; a shard that
//! `node.toml` knows and whose directory is gone is an error, never a new empty shard; a shard handed out has its doors
//! open. Must never know who asks or which brokers there are.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use crate::core::clock::Clock;
use crate::core::consensus::{Consensus, Start};
use crate::core::entropy::Entropy;
use crate::core::error::{OpenError, Refusal};
use crate::core::index::Index as KeyIndex;
use crate::core::limits::{
    DEFAULT_MAX_OPEN_SEGMENTS, DEFAULT_MAX_VALUE_BYTES, DEFAULT_VALUE_CACHE_BYTES, FEWEST_OPEN_SEGMENTS,
    LEAST_FLOOR_SEGMENTS, segment_bytes_for,
};
use crate::core::log::disk::Disk;
use crate::core::log::open::{FIRST_OFFSET, OpenReport, recover};
use crate::core::log::trim::Removal;
use crate::core::log::writer::LogOptions;
use crate::core::log::{FORMAT, FsyncPolicy};
use crate::core::progress::Progress;
pub use crate::core::shard::MemoryBound;
use crate::core::shard::Shard;
use crate::core::shard::driver::{Driver, DriverError};
use crate::core::shard::housekeeper::{Housekeeper, Housekeeping};
use crate::core::shard::machine::{Bounds, Machine, MachineStart};
use crate::core::shard::spare::lacks_room;
use crate::core::store::node::{LOCK_FILE, Node};
use crate::core::store::replay::Replayed;
use crate::core::types::{CacheName, Kind, ShardId, ShardNo};
use crate::core::values::Values;
use crate::teeth::{Tooth, bites};

pub mod node;
pub mod replay;

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    pub policy: FsyncPolicy,
    pub max_value_bytes: usize,
    /// `None`: what follows from `max_value_bytes`. Smaller only in tests.
    pub segment_bytes: Option<u32>,
    /// Bytes of live records that one cache may hold; 0: no bound.
    pub max_data_bytes: u64,
    /// Bytes that must stay free on the disk; 0: two segments.
    pub min_free_bytes: u64,
    /// Bytes of values kept in memory beside the log; 0: none.
    pub value_cache_bytes: u64,
    /// The disk is memory: a bound on memory is one on space.
    pub in_memory: bool,
    /// Whether the log is compacted; only measurements want it not to be.
    pub compacts: bool,
    /// `None`: no bound on memory.
    pub memory: Option<MemoryBound>,
    /// The most sealed segments that are open at a time.
    pub max_open_segments: usize,
    /// Where opening tells how far it is.
    pub progress: Arc<Progress>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            policy: FsyncPolicy::Always,
            max_value_bytes: DEFAULT_MAX_VALUE_BYTES,
            segment_bytes: None,
            max_data_bytes: 0,
            min_free_bytes: 0,
            value_cache_bytes: DEFAULT_VALUE_CACHE_BYTES,
            in_memory: false,
            compacts: true,
            memory: None,
            max_open_segments: DEFAULT_MAX_OPEN_SEGMENTS,
            progress: Arc::default(),
        }
    }
}

/// An open data directory.
pub struct Store {
    disk: Arc<dyn Disk>,
    root: PathBuf,
    options: StoreOptions,
    clock: Arc<dyn Clock>,
    entropy: Arc<Entropy>,
    node: Node,
    values: Arc<Values>,
    _lock: Box<dyn Send + Sync>,
}

/// A shard that was opened: for clients, for its driver's task, and what opening did.
pub struct OpenShard {
    pub shard: Arc<Shard>,
    pub driver: Driver,
    pub housekeeper: Housekeeper,
    pub report: OpenReport,
}

impl Store {
    /// Locks the directory, creating it if it is not there, and reads or creates its `node.toml`.
    ///
    /// # Errors
    /// [`OpenError`] in one sentence; nothing was changed then but that the directory may exist.
    pub fn open(
        disk: Arc<dyn Disk>,
        root: &Path,
        options: StoreOptions,
        clock: Arc<dyn Clock>,
        entropy: Arc<Entropy>,
    ) -> Result<Self, OpenError> {
        disk.create_dir(root).map_err(OpenError::unusable(root, "creating the directory"))?;
        Node::read(&*disk, root)?;
        let lock = disk.lock(&root.join(LOCK_FILE)).map_err(|error| match error.kind() {
            std::io::ErrorKind::WouldBlock => OpenError::Locked { path: root.to_owned() },
            _ => OpenError::unusable(root, "locking it")(error),
        })?;
        // Looked for again under the lock: another process may have been creating it.
        let node = match Node::read(&*disk, root)? {
            Some(node) if node.format == FORMAT => node,
            Some(older) => {
                // Before a shard is touched: from then on an older build must refuse, and this is what it looks at.
                let node = Node { format: FORMAT, ..older };
                node.write(&*disk, root)?;
                node
            }
            None => {
                flush_way_to(&*disk, root)?;
                let node = Node::new(format!("{:016x}", entropy.number()));
                node.write(&*disk, root)?;
                node
            }
        };
        let values = Values::new(options.value_cache_bytes);
        Ok(Self { disk, root: root.to_owned(), options, clock, entropy, node, values, _lock: lock })
    }

    /// Opens a shard, creating it if `node.toml` does not know it yet, and makes this broker its owner.
    ///
    /// # Errors
    /// [`OpenError`]; a shard that was refused is left as it was.
    pub fn open_shard(&mut self, id: &ShardId) -> Result<OpenShard, OpenError> {
        let (dir, known) = self.node.locate(&*self.disk, &self.root, id)?;
        self.make_durable(&dir)?;
        let opened = self.recover_shard(id, &dir, known, 1)?;
        if !known {
            self.node.add(id);
            self.node.write(&*self.disk, &self.root)?;
        }
        Ok(opened)
    }

    /// The caches that live here, with the number of their shards.
    ///
    /// # Errors
    /// [`OpenError::Damaged`] when `node.toml` does not name whole caches.
    pub fn caches(&self) -> Result<Vec<(CacheName, u32)>, OpenError> {
        let width = |name: CacheName| {
            let width = self.node.width(&self.root, Kind::Cache, &name)?;
            Ok((name, width.unwrap_or_default()))
        };
        self.node.caches(&self.root)?.into_iter().map(width).collect()
    }

    /// Opens every shard of a cache and makes this broker their owner. A cache that does not live here yet is made, with
    /// `width` shards; it lives here from the moment when all of them are there.
    ///
    /// # Errors
    /// [`OpenError`]; a shard that was refused is left as it was.
    pub fn open_cache(&mut self, name: &CacheName, width: u32) -> Result<Vec<OpenShard>, OpenError> {
        let known = self.node.width(&self.root, Kind::Cache, name)?;
        let id = |number| ShardId { kind: Kind::Cache, cache: name.clone(), shard: ShardNo(number) };
        let ids: Vec<ShardId> = (0..known.unwrap_or(width)).map(id).collect();
        let mut shards = Vec::new();
        for id in &ids {
            let (dir, known) = self.node.locate(&*self.disk, &self.root, id)?;
            self.make_durable(&dir)?;
            shards.push(self.recover_shard(id, &dir, known, ids.len() as u32)?);
        }
        if known.is_none() {
            ids.iter().for_each(|id| self.node.add(id));
            self.node.write(&*self.disk, &self.root)?;
        }
        Ok(shards)
    }

    /// Whether a cache of `width` shards may be made while others are served: it takes a segment for each, and what must stay
    /// free stays free.
    ///
    /// # Errors
    /// [`Refusal`] with the figures; [`Refusal::NoRoom`] when the disk does not tell.
    pub fn admit_new_cache(&self, width: u32) -> Result<(), Refusal> {
        let segment_bytes = u64::from(self.segment_bytes());
        let needed = u64::from(width) * segment_bytes;
        if self.options.in_memory {
            let Some(MemoryBound { bound_bytes, used }) = self.options.memory else { return Ok(()) };
            let used = used();
            let fits = used.saturating_add(needed) <= bound_bytes;
            return if fits { Ok(()) } else { Err(Refusal::MemoryFull { used, bound: bound_bytes }) };
        }
        let floor = match self.options.min_free_bytes {
            0 => LEAST_FLOOR_SEGMENTS * segment_bytes,
            bytes => bytes,
        };
        let free = self.disk.free_bytes(&self.root).map_err(|_| Refusal::NoRoom)?;
        if free >= floor.saturating_add(needed) {
            Ok(())
        } else {
            Err(Refusal::DiskLow { free, floor: floor + needed })
        }
    }

    fn segment_bytes(&self) -> u32 {
        self.options.segment_bytes.unwrap_or_else(|| segment_bytes_for(self.options.max_value_bytes))
    }

    /// Creates `dir`, and flushes the entries that lead to it: a process that made them may have died before it did.
    fn make_durable(&self, dir: &Path) -> Result<(), OpenError> {
        self.disk.create_dir(dir).map_err(OpenError::unusable(dir, "creating it"))?;
        for ancestor in dir.ancestors().skip(1).take(3) {
            self.disk.flush_dir(ancestor).map_err(OpenError::unusable(ancestor, "flushing it"))?;
        }
        Ok(())
    }

    /// `width` is the number of shards of its cache: they share what the cache may hold.
    fn recover_shard(&self, id: &ShardId, dir: &Path, known: bool, width: u32) -> Result<OpenShard, OpenError> {
        let policy = self.options.policy;
        let segment_bytes = self.segment_bytes();
        let options = LogOptions {
            shard: id.clone(),
            segment_bytes,
            policy,
            max_open_segments: (self.options.max_open_segments / width.max(1) as usize).max(FEWEST_OPEN_SEGMENTS),
            entropy: Arc::clone(&self.entropy),
        };
        let index = Arc::new(KeyIndex::loading());
        let mut replayed = Replayed::default();
        let mut recovered = recover(Arc::clone(&self.disk), dir, options, &self.options.progress, |found| {
            replayed.replay(dir, found, &index)
        })?;
        let start = replayed.judge(id, dir, known, &recovered.survey)?;
        let uncommitted = std::mem::take(&mut recovered.survey.uncommitted);
        let applied = recovered.survey.committed;
        replayed.applied_next = replayed.applied_next.max(recovered.survey.first_offset());
        if let Some(start) = &start {
            index.trim(start.offset, start.segment);
        }
        index.finish_loading();
        let (mut log, report) = recovered.into_writer()?;
        if let Some(start) = start {
            // A trim was applied, and the process died before the anchor knew.
            let failed = |source| OpenError::FlushFailed { path: dir.to_owned(), source };
            log.trim(&start).and_then(Removal::carry_out).map_err(failed)?;
        }
        // Time goes on from the newest that anybody may have been told: what lapsed then has lapsed.
        let staged = uncommitted.iter().map(|found| found.header.time).max();
        self.clock.not_before(replayed.time.max(log.anchor().state().clock).max(staged.unwrap_or_default()));
        let start = Start {
            anchor: log.anchor().state(),
            generations: replayed.generations,
            applied,
            uncommitted: uncommitted.iter().collect(),
        };
        let broken = |what: String| OpenError::Damaged { path: dir.to_owned(), at: 0, what };
        let consensus = Consensus::start(&start).map_err(broken)?;
        let restarts = bites(Tooth::OffsetsRestart) && index.view().is_empty();
        let machine = Machine::new(MachineStart {
            id: id.clone(),
            bounds: Bounds::of(self.options.max_value_bytes, segment_bytes),
            consensus,
            index,
            uncommitted: uncommitted
                .into_iter()
                .map(|found| (found.header, Bytes::from(found.bytes), found.location))
                .collect(),
            applied_next: replayed.applied_next,
            next_offset: if restarts { FIRST_OFFSET } else { log.tail().next_offset },
            flushed: log.flushed(),
            // Not only when it is new: an earlier process may have died between choosing it and logging it.
            epoch: report.epoch,
            epoch_due: replayed.epoch != Some(report.epoch),
            segments: log.segments(),
            max_data_bytes: self.options.max_data_bytes.div_ceil(u64::from(width.max(1))),
        });
        let shard = Arc::new(
            Shard::new(machine, log.segments(), self.values.of_shard(report.epoch))
                .with_memory_bound(self.options.memory),
        );
        let mut driver = Driver::new(Arc::clone(&shard), log, policy, Arc::clone(&self.clock));
        shard.machine().campaign().map_err(broken)?;
        driver.run_to_idle().map_err(|error| match error {
            DriverError::Log(source) if lacks_room(&source) => {
                OpenError::Unusable { path: dir.to_owned(), doing: "making a segment file of 64 MiB", source }
            }
            DriverError::Log(source) => OpenError::FlushFailed { path: dir.to_owned(), source },
            DriverError::Record(error) => broken(error.to_string()),
        })?;
        if !shard.machine().doors_open() {
            return Err(broken("this broker could not become the owner of a shard that lives only here".to_owned()));
        }
        let housekeeping = Housekeeping {
            disk: Arc::clone(&self.disk),
            dir: dir.to_owned(),
            segment_bytes,
            min_free_bytes: self.options.min_free_bytes,
            in_memory: self.options.in_memory,
            compacts: self.options.compacts,
        };
        let housekeeper = Housekeeper::new(Arc::clone(&shard), Arc::clone(&self.clock), housekeeping);
        Ok(OpenShard { shard, driver, housekeeper, report })
    }
}

/// Flushes every entry that leads to the directory: an earlier process may have made them and died before it did. Done
/// before `node.toml` is written, so a directory that has one is durable.
fn flush_way_to(disk: &dyn Disk, root: &Path) -> Result<(), OpenError> {
    for ancestor in root.ancestors().skip(1) {
        let dir = if ancestor.as_os_str().is_empty() { Path::new(".") } else { ancestor };
        match disk.flush_dir(dir) {
            // Not ours to read, so not ours to have made.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {}
            flushed => flushed.map_err(OpenError::unusable(dir, "flushing it"))?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
