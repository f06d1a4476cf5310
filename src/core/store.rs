//! A data directory: its lock, its `node.toml`, and the shards in it.
//!
//! Promise: one process at a time; a directory that is not ours, or of another format, is left as it was; a shard that
//! `node.toml` knows and whose directory is gone is an error, never a new empty shard; a shard handed out has its doors
//! open. Must never know who asks or which brokers there are.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::core::clock::Clock;
use crate::core::consensus::{Consensus, Start};
use crate::core::entropy::Entropy;
use crate::core::error::OpenError;
use crate::core::index::Index as KeyIndex;
use crate::core::limits::{
    DEFAULT_MAX_OPEN_SEGMENTS, DEFAULT_MAX_VALUE_BYTES, DEFAULT_VALUE_CACHE_BYTES, segment_bytes_for,
};
use crate::core::log::disk::Disk;
use crate::core::log::open::{FIRST_OFFSET, FoundBatch, OpenReport, recover};
use crate::core::log::trim::Removal;
use crate::core::log::writer::LogOptions;
use crate::core::log::{FORMAT, FsyncPolicy, is_readable, segment};
use crate::core::progress::Progress;
use crate::core::record::control::{ControlRecord, Trim};
pub use crate::core::shard::MemoryBound;
use crate::core::shard::Shard;
use crate::core::shard::apply::{Applied, apply};
use crate::core::shard::driver::{Driver, DriverError};
use crate::core::shard::housekeeper::{Housekeeper, Housekeeping};
use crate::core::shard::machine::{Bounds, Machine, MachineStart};
use crate::core::shard::spare::lacks_room;
use crate::core::types::{Epoch, Generation, Index, Millis, Offset, ShardId};
use crate::teeth::{Tooth, bites};

const LOCK_FILE: &str = "hearth.lock";
const NODE_FILE: &str = "node.toml";
const NODE_FILE_NEW: &str = "node.toml.new";

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
            memory: None,
            max_open_segments: DEFAULT_MAX_OPEN_SEGMENTS,
            progress: Arc::default(),
        }
    }
}

/// What `node.toml` says.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
struct Node {
    format: u32,
    broker: String,
    /// The shards that live here, as `kind/tenant/namespace/name/shard`.
    #[serde(default)]
    shards: Vec<String>,
}

/// An open data directory.
pub struct Store {
    disk: Arc<dyn Disk>,
    root: PathBuf,
    options: StoreOptions,
    clock: Arc<dyn Clock>,
    entropy: Arc<Entropy>,
    node: Node,
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
        let names = disk.list(root).map_err(OpenError::unusable(root, "listing it"))?;
        refuse_foreign(root, &names)?;
        let lock = disk.lock(&root.join(LOCK_FILE)).map_err(|error| match error.kind() {
            std::io::ErrorKind::WouldBlock => OpenError::Locked { path: root.to_owned() },
            _ => OpenError::unusable(root, "locking it")(error),
        })?;
        let mut store = Self {
            disk,
            root: root.to_owned(),
            options,
            clock,
            entropy,
            node: Node { format: FORMAT, broker: String::new(), shards: Vec::new() },
            _lock: lock,
        };
        // Looked for again under the lock: another process may have been creating it.
        if store.disk.exists(&root.join(NODE_FILE)).map_err(OpenError::unusable(root, "listing it"))? {
            store.node = store.read_node()?;
            if store.node.format != FORMAT {
                // Before a shard is touched: from then on an older build must refuse, and this is what it looks at.
                store.node.format = FORMAT;
                store.write_node()?;
            }
        } else {
            store.flush_way_here()?;
            store.node.broker = format!("{:016x}", store.entropy.number());
            store.write_node()?;
        }
        Ok(store)
    }

    /// Flushes every entry that leads to the directory: an earlier process may have made them and died before it did.
    /// Done before `node.toml` is written, so a directory that has one is durable.
    fn flush_way_here(&self) -> Result<(), OpenError> {
        for ancestor in self.root.ancestors().skip(1) {
            let dir = if ancestor.as_os_str().is_empty() { Path::new(".") } else { ancestor };
            match self.disk.flush_dir(dir) {
                // Not ours to read, so not ours to have made.
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {}
                flushed => flushed.map_err(OpenError::unusable(dir, "flushing it"))?,
            }
        }
        Ok(())
    }

    fn read_node(&self) -> Result<Node, OpenError> {
        let path = self.root.join(NODE_FILE);
        let reading = OpenError::unusable;
        let file = self.disk.open(&path).map_err(reading(&path, "opening it"))?;
        let length = file.len().map_err(reading(&path, "reading it"))?.min(1024 * 1024);
        let mut bytes = vec![0; length as usize];
        file.read_at(0, &mut bytes).map_err(reading(&path, "reading it"))?;
        let damaged = |what: String| OpenError::Damaged { path: path.clone(), at: 0, what };
        let text = String::from_utf8(bytes).map_err(|error| damaged(error.to_string()))?;
        // The format is looked at first: another format may have other fields.
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| damaged(error.message().to_owned()))?;
        match table.get("format").and_then(toml::Value::as_integer) {
            Some(format) if u32::try_from(format).is_ok_and(is_readable) => {}
            Some(format) => return Err(OpenError::OtherFormat { path, found: format!("format {format}") }),
            None => return Err(damaged("it names no format".to_owned())),
        }
        toml::from_str(&text).map_err(|error| damaged(error.message().to_owned()))
    }

    /// Replaces `node.toml` as a whole: a new file, flushed, renamed over the old one.
    fn write_node(&self) -> Result<(), OpenError> {
        let path = self.root.join(NODE_FILE);
        let new = self.root.join(NODE_FILE_NEW);
        let text = toml::to_string(&self.node)
            .map_err(|error| OpenError::unusable(&path, "writing it")(std::io::Error::other(error)))?;
        let write = || -> std::io::Result<()> {
            if self.disk.exists(&new)? {
                self.disk.remove(&new)?;
            }
            let file = self.disk.create(&new)?;
            file.write_at(0, text.as_bytes())?;
            file.flush()?;
            self.disk.rename(&new, &path)?;
            self.disk.flush_dir(&self.root)
        };
        write().map_err(OpenError::unusable(&path, "writing it"))
    }

    /// Opens a shard, creating it if `node.toml` does not know it yet, and makes this broker its owner.
    ///
    /// # Errors
    /// [`OpenError`]; a shard that was refused is left as it was.
    pub fn open_shard(&mut self, id: &ShardId) -> Result<OpenShard, OpenError> {
        let name = format!("{}/{}/{}", id.kind.root(), id.cache, id.shard.0);
        let dir = self.root.join(id.kind.root()).join(directory_name(id)).join(id.shard.0.to_string());
        let known = self.node.shards.contains(&name);
        let there = self.disk.exists(&dir).map_err(OpenError::unusable(&dir, "looking for it"))?;
        if known && !there {
            return Err(OpenError::Damaged {
                path: dir,
                at: 0,
                what: format!("{NODE_FILE} knows {id}, but its directory is gone"),
            });
        }
        self.make_durable(&dir)?;
        let opened = self.recover_shard(id, &dir, known)?;
        if !known {
            self.node.shards.push(name);
            self.write_node()?;
        }
        Ok(opened)
    }

    /// Creates `dir`, and flushes the entries that lead to it: a process that made them may have died before it did.
    fn make_durable(&self, dir: &Path) -> Result<(), OpenError> {
        self.disk.create_dir(dir).map_err(OpenError::unusable(dir, "creating it"))?;
        for ancestor in dir.ancestors().skip(1).take(3) {
            self.disk.flush_dir(ancestor).map_err(OpenError::unusable(ancestor, "flushing it"))?;
        }
        Ok(())
    }

    fn recover_shard(&self, id: &ShardId, dir: &Path, known: bool) -> Result<OpenShard, OpenError> {
        let policy = self.options.policy;
        let segment_bytes =
            self.options.segment_bytes.unwrap_or_else(|| segment_bytes_for(self.options.max_value_bytes));
        let options = LogOptions {
            shard: id.clone(),
            segment_bytes,
            policy,
            max_open_segments: self.options.max_open_segments,
            entropy: Arc::clone(&self.entropy),
        };
        let index = Arc::new(KeyIndex::loading());
        let mut replayed = Replayed::default();
        let mut recovered = recover(Arc::clone(&self.disk), dir, options, |found| {
            let applied = apply(&found.header, &found.bytes, found.location, &index);
            let applied = applied.map_err(|error| OpenError::Damaged {
                path: dir.join(segment::file_name(found.location.segment)),
                at: u64::from(found.location.position),
                what: error.to_string(),
            });
            replayed.note(found, applied?);
            Ok(())
        })?;
        let broken = |what: String| OpenError::Damaged { path: dir.to_owned(), at: 0, what };
        if known && recovered.is_new() {
            return Err(broken(format!("{NODE_FILE} knows {id}, but there is no log in its directory")));
        }
        let uncommitted = std::mem::take(&mut recovered.uncommitted);
        let applied = recovered.committed;
        replayed.applied_next = replayed.applied_next.max(recovered.first_offset());
        let unfinished = replayed.trim.take_if(|trim| trim.base_index > recovered.first_index());
        let start = unfinished.map(|trim| {
            let what = format!("it was trimmed to batch {}, but no segment begins there", trim.base_index.0);
            recovered.start_at(trim.base_index).ok_or_else(|| broken(what))
        });
        let start = start.transpose()?;
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
            max_data_bytes: self.options.max_data_bytes,
        });
        let shard = Arc::new(Shard::new(machine, log.segments()).with_memory_bound(self.options.memory));
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
        };
        let housekeeper = Housekeeper::new(Arc::clone(&shard), Arc::clone(&self.clock), housekeeping);
        Ok(OpenShard { shard, driver, housekeeper, report })
    }
}

/// What replaying the committed batches told beside the index.
#[derive(Default)]
struct Replayed {
    /// The first index of each generation.
    generations: Vec<(Index, Generation)>,
    applied_next: Offset,
    /// The newest epoch the log names.
    epoch: Option<Epoch>,
    /// The newest time of a batch.
    time: Millis,
    /// The newest trim.
    trim: Option<Trim>,
}

impl Replayed {
    fn note(&mut self, found: &FoundBatch, applied: Applied) {
        let generation = found.header.generation;
        if self.generations.last().is_none_or(|last| last.1 != generation) {
            self.generations.push((found.header.index, generation));
        }
        self.applied_next = found.header.next_offset();
        self.time = self.time.max(found.header.time);
        match applied {
            Applied::Control(ControlRecord::Epoch(epoch)) => self.epoch = Some(epoch),
            Applied::Control(ControlRecord::Trim(trim)) => {
                // The record that named the epoch may be gone.
                self.epoch = Some(trim.epoch);
                self.trim = Some(trim);
            }
            Applied::Control(ControlRecord::GenerationStart) | Applied::Data => {}
        }
    }
}

/// A directory that holds something but no `node.toml` is somebody else's.
fn refuse_foreign(root: &Path, names: &[String]) -> Result<(), OpenError> {
    if names.iter().any(|name| name == NODE_FILE) {
        return Ok(());
    }
    let ours = [LOCK_FILE, NODE_FILE_NEW, "lost+found"];
    match names.iter().find(|name| !ours.contains(&name.as_str())) {
        None => Ok(()),
        Some(other) => Err(OpenError::NotOurs { path: root.to_owned(), holds: other.clone() }),
    }
}

/// A readable part and 128 bits of a hash of the whole identity: no separator or dot comes from outside.
fn directory_name(id: &ShardId) -> String {
    let name = id.cache.to_string();
    let readable: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).take(40).collect();
    let hash = Sha256::digest(format!("{}\0{name}", id.kind.root()).as_bytes());
    let hex: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{readable}-{hex}")
}

#[cfg(test)]
mod tests;
