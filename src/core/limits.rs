//! All bounds of the core in one place, tied to each other by const asserts.
//!
//! Promise: every queue, buffer, batch and length of the core is bounded by a number found here.
//! Must never know a protocol: what a client may send is bounded again by its own front end.

/// The longest key, in bytes.
pub const MAX_KEY_BYTES: usize = 64 * 1024;

/// The longest value unless the configuration says otherwise, in bytes.
pub const DEFAULT_MAX_VALUE_BYTES: usize = 16 * 1024 * 1024;

/// The longest value a configuration may allow, in bytes.
pub const HIGHEST_MAX_VALUE_BYTES: usize = 64 * 1024 * 1024;

/// The size of a segment file when values are of the default bound, in bytes.
pub const SEGMENT_BYTES: u32 = 64 * 1024 * 1024;

/// Room beside the value that a batch of one record needs: headers, key, padding; in bytes.
pub const BATCH_SLACK_BYTES: usize = 128 * 1024;

/// The longest batch of a shard whose segments have `segment_bytes`: half a segment, in bytes.
#[must_use]
pub const fn max_batch_bytes(segment_bytes: u32) -> usize {
    segment_bytes as usize / 2
}

/// The segment size for a bound on values: 64 MiB, or twice the largest record if that is more.
#[must_use]
pub const fn segment_bytes_for(max_value_bytes: usize) -> u32 {
    let needed = 2 * (max_value_bytes + BATCH_SLACK_BYTES);
    if needed > SEGMENT_BYTES as usize { needed as u32 } else { SEGMENT_BYTES }
}

/// Bytes that may be staged beyond the batch in flight before writers wait; two full batches.
#[must_use]
pub const fn max_staged_bytes(segment_bytes: u32) -> usize {
    2 * max_batch_bytes(segment_bytes)
}

/// Bytes of committed batches the consensus engine hands over for applying in one step.
pub const MAX_COMMITTED_BYTES_PER_STEP: u64 = 64 * 1024 * 1024;

/// After a flush policy of once a second: the longest time in milliseconds an acknowledged write stays unflushed.
pub const FLUSH_INTERVAL_MS: u64 = 1_000;

/// A flush that lately took longer than this many microseconds runs on a thread of its own: to hand it over costs about
/// a tenth of this, to wait for it on the worker costs every other client all of it.
pub const SLOW_FLUSH_US: u64 = 300;

/// The anchor notes how far the log is flushed at most this many milliseconds after the first batch it does not know.
pub const FRONTIER_NOTE_INTERVAL_MS: u64 = 1_000;

/// How many bytes of the next segment are zeroed and flushed in one go while clients write, so that no flush of a batch
/// waits behind more; figures in `docs/decisions/0001-segments-are-zero-filled.md`.
pub const ZERO_FILL_BYTES: usize = 256 * 1024;

/// The pause in milliseconds between two such pieces.
pub const ZERO_FILL_PAUSE_MS: u64 = 4;

/// The same in bytes when somebody waits for the whole segment: larger pieces, no pause.
pub const AWAITED_ZERO_FILL_BYTES: usize = 1024 * 1024;

/// Slots that the sweep looks at under one read lock of the index: some tens of microseconds.
pub const SWEEP_SLOTS_PER_GUARD: usize = 4096;

/// Entries that the sweep removes under one write lock of the index, while readers wait: as long.
pub const SWEEP_REMOVALS_PER_GUARD: usize = 64;

/// How long the broker keeps answering after a failed flush, so that every waiter is told; in milliseconds.
pub const FAILED_FLUSH_GRACE_MS: u64 = 1_000;

const _: () = {
    assert!(DEFAULT_MAX_VALUE_BYTES <= HIGHEST_MAX_VALUE_BYTES);
    assert!(BATCH_SLACK_BYTES > MAX_KEY_BYTES + 1024);
    assert!(max_batch_bytes(segment_bytes_for(DEFAULT_MAX_VALUE_BYTES)) >= DEFAULT_MAX_VALUE_BYTES + BATCH_SLACK_BYTES);
    assert!(max_batch_bytes(segment_bytes_for(HIGHEST_MAX_VALUE_BYTES)) >= HIGHEST_MAX_VALUE_BYTES + BATCH_SLACK_BYTES);
};
