//! Key -> slot: CRC16 (XMODEM) of the hash tag or the whole key, modulo 16,384, as the Redis Cluster specification has
//! it, so that cluster-aware clients and `{tags}` agree with us on what stands together.
//!
//! Promise: never changes; changing it would re-home every key.

use crate::core::types::{ShardNo, Slot};

/// The number of slots.
pub const SLOTS: u32 = 16_384;

/// The part of the key that decides its slot: what stands between the first `{` and the next `}`, if that is not
/// empty, else the whole key.
fn tag(key: &[u8]) -> &[u8] {
    let Some(open) = key.iter().position(|&byte| byte == b'{') else { return key };
    let rest = &key[open + 1..];
    match rest.iter().position(|&byte| byte == b'}') {
        Some(length) if length > 0 => &rest[..length],
        _ => key,
    }
}

/// The slot of a key.
#[must_use]
pub fn slot(key: &[u8]) -> Slot {
    Slot(crc16::State::<crc16::XMODEM>::calculate(tag(key)) % SLOTS as u16)
}

/// The shard of a slot in a cache of `width` shards: contiguous ranges of slots, so that a split splits a range.
#[must_use]
pub fn shard_of(slot: Slot, width: u32) -> ShardNo {
    ShardNo(u32::from(slot.0) * width / SLOTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_cluster_specification() {
        for (key, expected) in [("foo", 12_182), ("a", 15_495), ("{a}b", 15_495), ("123456789", 12_739)] {
            assert_eq!(slot(key.as_bytes()), Slot(expected), "{key}");
        }
        assert_eq!(slot(b"foo{}{bar}"), Slot(crc16::State::<crc16::XMODEM>::calculate(b"foo{}{bar}") % 16_384));
        assert_eq!(slot(b"foo{{bar}}zap"), slot(b"{bar"));
        assert_eq!(slot(b"open{"), slot(b"open{"));
    }

    #[test]
    fn every_slot_has_a_shard_and_every_shard_a_contiguous_range() {
        for width in [1, 3, 8, 16_384] {
            let mut last = ShardNo(0);
            for number in 0..SLOTS as u16 {
                let shard = shard_of(Slot(number), width);
                assert!(shard == last || shard.0 == last.0 + 1, "width {width}, slot {number}");
                last = shard;
            }
            assert_eq!(last, ShardNo(width - 1));
        }
    }
}
