//! What a data directory says of itself: `node.toml`, and where each shard stands in it.
//!
//! Promise: reading changes nothing; a directory that is not ours, or of a format that this build does not read, is refused
//! in one sentence. Must never know what a shard holds.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::core::error::OpenError;
use crate::core::limits::MAX_NODE_FILE_BYTES;
use crate::core::log::disk::Disk;
use crate::core::log::{FORMAT, is_readable};
use crate::core::types::{CacheName, Kind, ShardId, ShardNo};

/// The file whose lock says that a process uses the directory.
pub const LOCK_FILE: &str = "hearth.lock";
pub const NODE_FILE: &str = "node.toml";
const NODE_FILE_NEW: &str = "node.toml.new";

/// What `node.toml` says.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Node {
    pub format: u32,
    pub broker: String,
    /// The shards that live here, as `kind/tenant/namespace/name/shard`.
    #[serde(default)]
    pub shards: Vec<String>,
}

impl Node {
    /// A directory in which no shard lives yet.
    #[must_use]
    pub fn new(broker: String) -> Self {
        Self { format: FORMAT, broker, shards: Vec::new() }
    }

    /// Reads the directory's `node.toml`; `None` when there is none and nothing of anybody else's either.
    ///
    /// # Errors
    /// [`OpenError`]; nothing was changed.
    pub fn read(disk: &dyn Disk, root: &Path) -> Result<Option<Self>, OpenError> {
        let names = disk.list(root).map_err(OpenError::unusable(root, "listing it"))?;
        if names.iter().any(|name| name == NODE_FILE) {
            return Self::read_file(disk, root.join(NODE_FILE)).map(Some);
        }
        let ours = [LOCK_FILE, NODE_FILE_NEW, "lost+found"];
        match names.iter().find(|name| !ours.contains(&name.as_str())) {
            None => Ok(None),
            Some(other) => Err(OpenError::NotOurs { path: root.to_owned(), holds: other.clone() }),
        }
    }

    fn read_file(disk: &dyn Disk, path: PathBuf) -> Result<Self, OpenError> {
        let read = || -> io::Result<Vec<u8>> {
            let file = disk.open_to_read(&path)?;
            let mut bytes = vec![0; file.len()?.min(MAX_NODE_FILE_BYTES) as usize];
            let read = file.read_at(0, &mut bytes)?;
            bytes.truncate(read);
            Ok(bytes)
        };
        let bytes = read().map_err(OpenError::unusable(&path, "reading it"))?;
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
    ///
    /// # Errors
    /// [`OpenError::Unusable`]; the old one is there still, or the new one is.
    pub fn write(&self, disk: &dyn Disk, root: &Path) -> Result<(), OpenError> {
        let (path, new) = (root.join(NODE_FILE), root.join(NODE_FILE_NEW));
        let text =
            toml::to_string(self).map_err(|error| OpenError::unusable(&path, "writing it")(io::Error::other(error)))?;
        let write = || -> io::Result<()> {
            if disk.exists(&new)? {
                disk.remove(&new)?;
            }
            let file = disk.create(&new)?;
            file.write_at(0, text.as_bytes())?;
            file.flush()?;
            disk.rename(&new, &path)?;
            disk.flush_dir(root)
        };
        write().map_err(OpenError::unusable(&path, "writing it"))
    }

    /// Whether the shard lives here.
    #[must_use]
    pub fn knows(&self, id: &ShardId) -> bool {
        self.shards.contains(&shard_name(id))
    }

    /// Where a shard stands, and whether it lives here already.
    ///
    /// # Errors
    /// [`OpenError::Damaged`] when it does and its directory is gone.
    pub fn locate(&self, disk: &dyn Disk, root: &Path, id: &ShardId) -> Result<(PathBuf, bool), OpenError> {
        let (dir, known) = (shard_dir(root, id), self.knows(id));
        let there = disk.exists(&dir).map_err(OpenError::unusable(&dir, "looking for it"))?;
        if known && !there {
            let what = format!("{NODE_FILE} knows {id}, but its directory is gone");
            return Err(OpenError::Damaged { path: dir, at: 0, what });
        }
        Ok((dir, known))
    }

    /// From here on the shard lives here.
    pub fn add(&mut self, id: &ShardId) {
        self.shards.push(shard_name(id));
    }

    /// How many shards a cache has; `None` when none of it lives here.
    ///
    /// # Errors
    /// [`OpenError::Damaged`] when their numbers are not those of a whole cache.
    pub fn width(&self, root: &Path, kind: Kind, cache: &CacheName) -> Result<Option<u32>, OpenError> {
        let mut numbers: Vec<u32> = self
            .shards()
            .filter_map(Result::ok)
            .filter(|id| id.kind == kind && id.cache == *cache)
            .map(|id| id.shard.0)
            .collect();
        numbers.sort_unstable();
        if !numbers.iter().copied().eq(0..numbers.len() as u32) {
            let what = format!("it knows shards {numbers:?} of {cache}, which are not all of a cache");
            return Err(OpenError::Damaged { path: root.join(NODE_FILE), at: 0, what });
        }
        Ok(Some(numbers.len() as u32).filter(|width| *width > 0))
    }

    /// The caches that live here, each once, in the order they were made.
    ///
    /// # Errors
    /// [`OpenError::Damaged`] when a name is not one of a shard.
    pub fn caches(&self, root: &Path) -> Result<Vec<CacheName>, OpenError> {
        let mut caches = Vec::new();
        for id in self.shards() {
            let id = id.map_err(|name| OpenError::Damaged {
                path: root.join(NODE_FILE),
                at: 0,
                what: format!("{name:?} is not the name of a shard"),
            })?;
            if !caches.contains(&id.cache) {
                caches.push(id.cache);
            }
        }
        Ok(caches)
    }

    /// The shards that live here; a name that is not one of a shard is given as it is.
    pub fn shards(&self) -> impl Iterator<Item = Result<ShardId, &str>> {
        self.shards.iter().map(|name| parse_shard_name(name).ok_or(name.as_str()))
    }
}

fn shard_name(id: &ShardId) -> String {
    format!("{}/{}/{}", id.kind.root(), id.cache, id.shard.0)
}

fn parse_shard_name(name: &str) -> Option<ShardId> {
    let (rest, shard) = name.rsplit_once('/')?;
    let (kind, cache) = rest.split_once('/')?;
    let id = ShardId {
        kind: Some(Kind::Cache).filter(|known| known.root() == kind)?,
        cache: CacheName::parse(cache)?,
        shard: ShardNo(shard.parse().ok()?),
    };
    (shard_name(&id) == name).then_some(id)
}

/// Where a shard stands.
#[must_use]
pub fn shard_dir(root: &Path, id: &ShardId) -> PathBuf {
    root.join(id.kind.root()).join(directory_name(id)).join(id.shard.0.to_string())
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
mod tests {
    use super::*;

    #[test]
    fn a_shards_name_reads_back_and_nothing_else_is_one() {
        let id = ShardId { kind: Kind::Cache, cache: CacheName::default_cache(), shard: ShardNo(12) };
        assert_eq!(shard_name(&id), "caches/default/default/0/12");
        let mut node = Node::new(String::new());
        node.add(&id);
        assert!(node.knows(&id));
        let others =
            ["", "caches", "caches/a/b/c", "logs/a/b/c/0", "caches/a/b/c/00", "caches/a/b/c/d/0", "caches/a/b//0"];
        node.shards.extend(others.map(str::to_owned));
        let read: Vec<_> = node.shards().collect();
        assert_eq!(read[0], Ok(id));
        assert_eq!(read[1..], others.map(Err));
    }
}
