//! Little-endian fields at fixed places of a fixed-size sector, for the segment header and the anchor.
//!
//! Promise: reading past the end gives zeros and never panics; a sector is sound only when its CRC says so.
//! Must never know what a field means.

use crate::core::types::{Configuration, ReplicaId};

/// The unit a disk writes whole or not at all, as this format assumes; in bytes.
pub const SECTOR_BYTES: usize = 512;

/// One sector being written or read.
pub struct Sector(pub [u8; SECTOR_BYTES]);

impl Sector {
    #[must_use]
    pub fn zeroed() -> Self {
        Self([0; SECTOR_BYTES])
    }

    /// A copy of the first sector of `bytes`, short input filled up with zeros.
    #[must_use]
    pub fn copy_of(bytes: &[u8]) -> Self {
        let mut sector = Self::zeroed();
        let length = bytes.len().min(SECTOR_BYTES);
        sector.0[..length].copy_from_slice(&bytes[..length]);
        sector
    }

    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.0.iter().all(|&byte| byte == 0)
    }

    pub fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    pub fn put_u32(&mut self, at: usize, number: u32) {
        self.put(at, &number.to_le_bytes());
    }

    pub fn put_u64s(&mut self, at: usize, numbers: &[u64]) {
        for (i, number) in numbers.iter().enumerate() {
            self.put(at + i * 8, &number.to_le_bytes());
        }
    }

    #[must_use]
    pub fn u32(&self, at: usize) -> u32 {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&self.0[at..at + 4]);
        u32::from_le_bytes(bytes)
    }

    #[must_use]
    pub fn u64(&self, at: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&self.0[at..at + 8]);
        u64::from_le_bytes(bytes)
    }

    /// Two counts at `counts`, the ids from `ids` on.
    pub fn put_configuration(&mut self, counts: usize, ids: usize, configuration: &Configuration) {
        let members: Vec<u64> = configuration.voters.iter().chain(&configuration.learners).map(|id| id.0).collect();
        let most = Configuration::MAX_MEMBERS;
        assert!(members.len() <= most, "a group has at most {most} members");
        self.put(counts, &[configuration.voters.len() as u8, configuration.learners.len() as u8]);
        self.put_u64s(ids, &members);
    }

    /// The configuration, unless its counts are beyond [`Configuration::MAX_MEMBERS`].
    #[must_use]
    pub fn configuration(&self, counts: usize, ids: usize) -> Option<Configuration> {
        let (voters, learners) = (usize::from(self.0[counts]), usize::from(self.0[counts + 1]));
        if voters + learners > Configuration::MAX_MEMBERS {
            return None;
        }
        let id = |i: usize| ReplicaId(self.u64(ids + i * 8));
        Some(Configuration {
            voters: (0..voters).map(id).collect(),
            learners: (voters..voters + learners).map(id).collect(),
        })
    }

    fn crc(&self, crc_at: usize) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.0[..crc_at]);
        hasher.update(&[0; 4]);
        hasher.update(&self.0[crc_at + 4..]);
        hasher.finalize()
    }

    /// Writes the CRC of the whole sector, its own place taken as zeros, at `crc_at`.
    pub fn seal(&mut self, crc_at: usize) {
        let crc = self.crc(crc_at);
        self.put_u32(crc_at, crc);
    }

    #[must_use]
    pub fn is_sound(&self, crc_at: usize) -> bool {
        self.u32(crc_at) == self.crc(crc_at)
    }
}
