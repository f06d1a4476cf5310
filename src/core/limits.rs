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

/// The segment size when everything is kept in memory: as small as the largest record allows, because what is allocated
/// ahead is memory.
#[must_use]
pub const fn segment_bytes_in_memory(max_value_bytes: usize) -> u32 {
    let needed = 2 * (max_value_bytes + BATCH_SLACK_BYTES);
    if needed > LEAST_SEGMENT_BYTES as usize { needed as u32 } else { LEAST_SEGMENT_BYTES }
}

/// The least segment size in memory, in bytes.
pub const LEAST_SEGMENT_BYTES: u32 = 8 * 1024 * 1024;

/// What a bound on memory must have room for when everything is kept there, in segments: one in use, one made ahead, and a
/// log that compaction can work on.
pub const LEAST_MEMORY_SEGMENTS: u64 = 6;

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

/// A log that takes more than this percentage of its live bytes is compacted.
pub const COMPACTION_RATIO_PERCENT: u64 = 200;

/// From this percentage on compaction makes no pauses.
pub const COMPACTION_FULL_SPEED_PERCENT: u64 = 210;

/// A log may take this many segments more than its live bytes, whatever the ratio: the newest one, the one made ahead, and
/// enough besides that compaction always has more garbage than live records before it.
pub const COMPACTION_SLACK_SEGMENTS: u64 = 4;

/// How fast compaction reads and writes when it has all the time it wants, in bytes per second.
pub const COMPACTION_SLOWEST_BYTES_PER_S: u64 = 16 * 1024 * 1024;

/// Bytes of live records that compaction stages in one go, so that no batch of a client's grows much by them.
pub const CARRY_PIECE_BYTES: u64 = 64 * 1024;

/// The same when the log is as large as it may be: a flush takes about a millisecond longer by it.
pub const CARRY_MOST_PIECE_BYTES: u64 = 1024 * 1024;

/// Bytes of a segment that compaction reads in one go.
pub const COMPACTION_READ_BYTES: u64 = 1024 * 1024;

/// The same when the log is as large as it may be.
pub const COMPACTION_MOST_READ_BYTES: u64 = 4 * 1024 * 1024;

/// How often a pass reads its segment before it takes the index for wrong.
pub const MAX_PASS_ROUNDS: u32 = 3;

/// The free-space floor unless the configuration sets it, in segments: room for what the next pass carries and for deletes.
pub const LEAST_FLOOR_SEGMENTS: u64 = 2;

/// Puts leave this part of a segment unused, so that deletes go on when the disk was filled by somebody else.
pub const PUT_RESERVE_DIVISOR: u64 = 16;

/// Deletes and carries leave this part of a segment unused: enough for the trims of many passes.
pub const TRIM_RESERVE_DIVISOR: u64 = 1024;

/// How often a shard's housekeeping looks at the disk, the sweep and the size of the log, in milliseconds.
pub const HOUSEKEEPING_INTERVAL_MS: u64 = 1_000;

/// How long compaction rests after it met something damaged, in milliseconds.
pub const COMPACTION_FAULT_REST_MS: u64 = 60_000;

/// The sweep visits the whole index in this many milliseconds at most.
pub const SWEEP_PERIOD_MS: u64 = 240_000;

/// Entries the sweep visits before it lets others run.
pub const SWEEP_PIECE_SLOTS: usize = 4_096;

/// The clock makes good a difference to the wall clock by at most this part of the time that passes: a tenth. Fast enough to
/// be right within an hour after five minutes, slow enough that no expiry is off by more.
pub const CLOCK_SLEW_DIVISOR: u64 = 10;

/// A wall clock that is further ahead than this many milliseconds was set wrong, or the machine was stopped: it is not
/// believed while the broker runs.
pub const CLOCK_JUMP_MS: u64 = 5 * 60 * 1000;

/// How often the wall clock is looked at, in microseconds.
pub const CLOCK_LOOK_INTERVAL_US: u64 = 1_000_000;

/// While the clock slews, its offset is brought up to date this often, in microseconds: steps of a millisecond at most.
pub const CLOCK_STEP_US: u64 = 10_000;

/// A difference of this many milliseconds is left alone.
pub const CLOCK_CLOSE_ENOUGH_MS: u64 = 2;

/// Bytes of values that are kept in memory beside the log unless the configuration says otherwise.
pub const DEFAULT_VALUE_CACHE_BYTES: u64 = 64 * 1024 * 1024;

/// The longest value that is kept in memory, in bytes: what a hit saves of a longer one is little beside sending it, and
/// what it pushes out is much.
pub const MAX_CACHED_VALUE_BYTES: usize = 16 * 1024;

/// Bytes that a value kept in memory costs beside its own, as the process's memory shows it.
pub const CACHED_VALUE_OVERHEAD_BYTES: usize = 128;

/// Sealed segments of one log whose files are open at a time, unless whoever opens the log says otherwise.
pub const DEFAULT_MAX_OPEN_SEGMENTS: usize = 32;

/// Sealed segments that a shard may have open however many shards its cache has.
pub const FEWEST_OPEN_SEGMENTS: usize = 2;

/// Slots that the sweep looks at under one read lock of the index: some tens of microseconds.
pub const SWEEP_SLOTS_PER_GUARD: usize = 4096;

/// Entries that the sweep removes under one write lock of the index, while readers wait: as long.
pub const SWEEP_REMOVALS_PER_GUARD: usize = 64;

/// Bytes of a `node.toml` that are read: more than any build writes.
pub const MAX_NODE_FILE_BYTES: u64 = 1024 * 1024;

/// How long the broker keeps answering after a failed flush, so that every waiter is told; in milliseconds.
pub const FAILED_FLUSH_GRACE_MS: u64 = 1_000;

const _: () = {
    assert!(DEFAULT_MAX_VALUE_BYTES <= HIGHEST_MAX_VALUE_BYTES);
    assert!(BATCH_SLACK_BYTES > MAX_KEY_BYTES + 1024);
    assert!(max_batch_bytes(segment_bytes_for(DEFAULT_MAX_VALUE_BYTES)) >= DEFAULT_MAX_VALUE_BYTES + BATCH_SLACK_BYTES);
    assert!(max_batch_bytes(segment_bytes_for(HIGHEST_MAX_VALUE_BYTES)) >= HIGHEST_MAX_VALUE_BYTES + BATCH_SLACK_BYTES);
};
