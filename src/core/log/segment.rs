//! The segment header and the names of segment files.
//!
//! Promise: a header is one disk sector, so it is there whole or not at all, and it says whose segment this is and what
//! came before it. Must never know a batch or a record.
//! Layout: `docs/formats.md`, section "Segment".

use crate::core::log::codec::{SECTOR_BYTES, Sector};
use crate::core::log::start::LogStart;
use crate::core::log::{FORMAT, is_readable};
use crate::core::types::{Configuration, Epoch, Generation, Index, Millis, Offset, SegmentNo, ShardId};

const MAGIC: &[u8; 8] = b"HEARTHSG";
/// Bytes of the header; the first batch begins here.
pub const SEGMENT_HEADER_BYTES: usize = SECTOR_BYTES;

const CRC_AT: usize = 16;
const NAME_DIGITS: usize = 16;
/// No log ever begins a segment with a greater number, and the index could not name it: after 256 PiB of log.
const MAX_SEGMENT: SegmentNo = SegmentNo(u32::MAX as u64);
const NAME_AT: usize = 224;

/// What a segment's first sector says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    pub shard: ShardId,
    pub number: SegmentNo,
    pub epoch: Epoch,
    /// Seeds every CRC in this segment.
    pub salt: u32,
    pub base_offset: Offset,
    pub base_index: Index,
    /// The generation of the batch before the first one here.
    pub previous_generation: Generation,
    pub configuration: Configuration,
    pub configuration_index: Index,
    pub created: Millis,
}

/// What was found where a header should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderRead {
    /// All zeros: nothing was ever made durable in this file.
    Zero,
    Sound(SegmentHeader),
    /// Sound, but of a format this build does not know.
    OtherFormat(u32),
    /// Neither zeros nor a header.
    Damaged(&'static str),
}

impl SegmentHeader {
    /// Where this segment begins, as a log that holds nothing older would begin.
    #[must_use]
    pub fn start(&self) -> LogStart {
        LogStart {
            segment: self.number,
            offset: self.base_offset,
            index: self.base_index,
            generation: self.previous_generation,
            configuration: self.configuration.clone(),
            configuration_index: self.configuration_index,
        }
    }

    /// The header as its sector.
    #[must_use]
    pub fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut sector = Sector::zeroed();
        let name = self.shard.cache.to_string();
        sector.put(0, MAGIC);
        sector.put_u32(8, FORMAT);
        sector.put_u32(20, self.salt);
        sector.put_u64s(
            24,
            &[
                self.number.0,
                self.epoch.0,
                self.base_offset.0,
                self.base_index.0,
                self.previous_generation.0,
                self.configuration_index.0,
                self.created.0,
            ],
        );
        sector.put_u32(80, self.shard.shard.0);
        sector.put(84, &[self.shard.kind as u8, name.len() as u8]);
        sector.put_configuration(86, 96, &self.configuration);
        sector.put(NAME_AT, name.as_bytes());
        sector.seal(CRC_AT);
        sector.0
    }

    /// Reads the first sector of a segment file that should belong to `shard` and have number `number`.
    #[must_use]
    pub fn decode(bytes: &[u8], shard: &ShardId, number: SegmentNo) -> HeaderRead {
        let sector = Sector::copy_of(bytes);
        if sector.is_zero() {
            return HeaderRead::Zero;
        }
        if &sector.0[..8] != MAGIC {
            return HeaderRead::Damaged("it does not begin as a segment does");
        }
        if !sector.is_sound(CRC_AT) {
            return HeaderRead::Damaged("the header's CRC does not match");
        }
        if !is_readable(sector.u32(8)) {
            return HeaderRead::OtherFormat(sector.u32(8));
        }
        let name = &sector.0[NAME_AT..NAME_AT + usize::from(sector.0[85]).min(SECTOR_BYTES - NAME_AT)];
        let same_shard = name == shard.cache.to_string().as_bytes()
            && sector.0[84] == shard.kind as u8
            && sector.u32(80) == shard.shard.0;
        if !same_shard {
            return HeaderRead::Damaged("it belongs to another shard");
        }
        if sector.u64(24) != number.0 {
            return HeaderRead::Damaged("its number is not that of its file name");
        }
        let Some(configuration) = sector.configuration(86, 96) else {
            return HeaderRead::Damaged("its configuration has too many members");
        };
        if sector.u32(12) != 0 {
            return HeaderRead::Damaged("it has flags that no build sets");
        }
        HeaderRead::Sound(Self {
            shard: shard.clone(),
            number,
            epoch: Epoch(sector.u64(32)),
            salt: sector.u32(20),
            base_offset: Offset(sector.u64(40)),
            base_index: Index(sector.u64(48)),
            previous_generation: Generation(sector.u64(56)),
            configuration,
            configuration_index: Index(sector.u64(64)),
            created: Millis(sector.u64(72)),
        })
    }
}

/// The file name of a segment.
#[must_use]
pub fn file_name(number: SegmentNo) -> String {
    format!("{:0NAME_DIGITS$}.seg", number.0)
}

/// The number in a segment's file name; `None` for any other name.
#[must_use]
pub fn parse_file_name(name: &str) -> Option<SegmentNo> {
    let digits = name.strip_suffix(".seg").filter(|digits| digits.len() == NAME_DIGITS)?;
    let number = digits.parse().ok()?;
    (file_name(SegmentNo(number)) == name && (1..=MAX_SEGMENT.0).contains(&number)).then_some(SegmentNo(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::types::{CacheName, Kind, ReplicaId, ShardNo};

    fn example() -> SegmentHeader {
        let longest = "x".repeat(CacheName::MAX_PART_BYTES);
        let cache = CacheName::parse(&format!("{longest}/{longest}/{longest}")).unwrap();
        SegmentHeader {
            shard: ShardId { kind: Kind::Cache, cache, shard: ShardNo(3) },
            number: SegmentNo(12),
            epoch: Epoch(77),
            salt: 5,
            base_offset: Offset(100),
            base_index: Index(9),
            previous_generation: Generation(2),
            configuration: Configuration { voters: vec![ReplicaId(1); 7], learners: vec![ReplicaId(2); 9] },
            configuration_index: Index(4),
            created: Millis(1_700_000_000_000),
        }
    }

    #[test]
    fn the_largest_header_fits_a_sector_and_reads_back() {
        let header = example();
        let bytes = header.encode();
        assert_eq!(SegmentHeader::decode(&bytes, &header.shard, header.number), HeaderRead::Sound(header));
    }

    #[test]
    fn every_flipped_bit_of_a_header_is_noticed() {
        let header = example();
        let bytes = header.encode();
        for bit in 0..bytes.len() * 8 {
            let mut broken = bytes;
            broken[bit / 8] ^= 1 << (bit % 8);
            let read = SegmentHeader::decode(&broken, &header.shard, header.number);
            assert!(matches!(read, HeaderRead::Damaged(_)), "bit {bit}: {read:?}");
        }
    }

    #[test]
    fn zeros_other_shards_and_other_numbers_are_told_apart() {
        let header = example();
        assert_eq!(SegmentHeader::decode(&[0; 512], &header.shard, header.number), HeaderRead::Zero);
        assert_eq!(SegmentHeader::decode(&[], &header.shard, header.number), HeaderRead::Zero);
        let bytes = header.encode();
        let other = ShardId { shard: ShardNo(4), ..header.shard.clone() };
        assert!(matches!(SegmentHeader::decode(&bytes, &other, header.number), HeaderRead::Damaged(_)));
        assert!(matches!(SegmentHeader::decode(&bytes, &header.shard, SegmentNo(13)), HeaderRead::Damaged(_)));
    }

    #[test]
    fn only_canonical_names_are_segments() {
        assert_eq!(parse_file_name(&file_name(SegmentNo(7))), Some(SegmentNo(7)));
        for other in [
            "7.seg",
            "0000000000000000.seg",
            "anchor",
            "0000000000000007.seg.tmp",
            "000000000000000x.seg",
            "0000004294967296.seg",
            "18446744073709551615.seg",
        ] {
            assert_eq!(parse_file_name(other), None, "{other}");
        }
    }
}
