//! Every bound of the Redis wire format, in one place, with its unit and its reason.
//!
//! Promises: the bounds fit each other; the const asserts at the end do not compile otherwise.
//!
//! Must never know: which connection they apply to, or the configuration (the longest value a cache accepts is
//! configured, and handed to the scanner).

use crate::core::limits::MAX_CACHED_VALUE_BYTES;

/// Most arguments of one request. Redis before 7.0 used this number; 7.0 accepts 2^31-1, which nobody sends.
pub const MAX_ARGUMENTS: usize = 1_048_576;

/// Databases that are selected by number.
pub const DATABASES: u32 = 16;

/// Longest inline request that is waited for, in bytes. A longer line is taken only when its end is already there.
pub const MAX_INLINE_BYTES: usize = 64 * 1024;

/// Longest `*N` or `$N` line that is waited for, in bytes.
pub const MAX_HEADER_LINE_BYTES: usize = 64 * 1024;

/// Longest bulk that may be declared, in bytes (`proto-max-bulk-len` of Redis). Judged from the header, before a
/// byte of the bulk is kept.
pub const MAX_BULK_BYTES: usize = 512 * 1024 * 1024;

/// Most bytes all bulks of one request may declare together. It bounds what one connection can make us hold.
/// The text of [`ProtocolError::RequestTooLarge`](super::protocol_error::ProtocolError) names it.
pub const MAX_REQUEST_BYTES: usize = 128 * 1024 * 1024;

/// Replies waiting to be sent, in bytes, above which a connection reads no more requests.
pub const OUTPUT_HIGH_WATER_BYTES: usize = 1024 * 1024;

/// Longest value, in bytes, that is read into a reply which has to wait for a flush; a longer one is read afterwards.
pub const HELD_VALUE_BYTES: usize = 16 * 1024;

/// Most bytes of names that KEYS answers; whoever has more keys asks for them piece by piece, with SCAN.
pub const MAX_KEYS_REPLY_BYTES: usize = 128 * 1024 * 1024;

/// Most keys that one SCAN looks at, whatever its COUNT: an index is not locked for longer than that takes.
pub const MAX_SCANNED_KEYS: usize = 65_536;

/// Bytes of names after which the answer to a SCAN ends, whatever its COUNT.
pub const SCAN_REPLY_BYTES: usize = 1024 * 1024;

/// Cursors of SCAN that are remembered, of all connections together.
pub const CURSORS: usize = 65_536;

/// Bytes of keys in the cursors that are remembered.
pub const CURSOR_BYTES: usize = 16 * 1024 * 1024;

/// How long a cursor is remembered, in microseconds.
pub const CURSOR_LIFE_MICROS: u64 = 600 * 1_000_000;

/// Longest record, in bytes, that is read into memory to be sent; a longer one is sent in pieces.
pub const STREAMED_VALUE_BYTES: usize = 256 * 1024;

/// Most bytes of values, written and not yet stored, that one reply may repeat; with more of them it waits until they are
/// stored, and inside a transaction it is refused.
pub const MAX_STAGED_REPLY_BYTES: usize = 64 * 1024 * 1024;

/// Gathered bytes, in bytes, above which replies with values that are read late are sent in several writes.
pub const PATCHED_WRITE_BYTES: usize = 256 * 1024;

/// Requests received and not yet evaluated, in bytes, above which a connection whose replies are not being read is not
/// read either. Below it, a client may send a long pipeline as a whole before it reads the first reply.
pub const UNREAD_INPUT_BYTES: usize = 16 * 1024 * 1024;

/// Values that are being read by threads that wait for the disk, at a time, of all connections together.
pub const WAITING_READS: usize = 16;

/// Bytes of room for reading a value that a connection keeps from one round to the next.
pub const KEPT_SCRATCH_BYTES: usize = 64 * 1024;

/// Most arguments of a request before the client has authenticated; enough for HELLO with all its options.
pub const UNAUTHENTICATED_MAX_ARGUMENTS: usize = 10;

/// Longest bulk before the client has authenticated, in bytes.
pub const UNAUTHENTICATED_MAX_BULK_BYTES: usize = 16 * 1024;

/// Argument places a scanner keeps from one request to the next; a longer list is given back to the allocator.
pub const KEPT_ARGUMENTS: usize = 1024;

/// Bytes of unquoted inline arguments a scanner keeps room for from one request to the next.
pub const KEPT_INLINE_BYTES: usize = 4 * 1024;

/// Most bytes the lines around one argument can take: `$`, nine digits, CR LF, and CR LF after the bulk.
const ARGUMENT_OVERHEAD_BYTES: usize = 1 + 9 + 2 + 2;

/// A round that reads this many bytes lets others run before it is evaluated; a smaller one is too short to be worth it.
pub const SMALL_ROUND_BYTES: usize = 4 * 1024;

const _: () = assert!(MAX_REQUEST_BYTES <= MAX_BULK_BYTES, "a bulk that fits no request could be declared");
const _: () = assert!(MAX_BULK_BYTES <= 999_999_999, "the header of the longest bulk has nine digits");
const _: () = assert!(MAX_INLINE_BYTES <= MAX_REQUEST_BYTES, "an inline request is a request");
const _: () = assert!(UNAUTHENTICATED_MAX_ARGUMENTS <= MAX_ARGUMENTS, "less is allowed before AUTH, not more");
const _: () = assert!(UNAUTHENTICATED_MAX_BULK_BYTES <= MAX_REQUEST_BYTES, "less is allowed before AUTH, not more");
const _: () = assert!(KEPT_ARGUMENTS <= MAX_ARGUMENTS, "no request fills what would be kept");
const _: () = assert!(KEPT_INLINE_BYTES <= MAX_INLINE_BYTES, "no usual inline request fills what would be kept");
const _: () =
    assert!(MAX_CACHED_VALUE_BYTES <= HELD_VALUE_BYTES, "what is in memory may be put into a held reply at once");

// Places of arguments are kept as u32, half the size of usize.
const _: () = assert!(
    MAX_REQUEST_BYTES + MAX_ARGUMENTS * ARGUMENT_OVERHEAD_BYTES + MAX_HEADER_LINE_BYTES < u32::MAX as usize,
    "every place in a request fits a u32"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sizes_are_the_documented_ones() {
        assert_eq!(MAX_INLINE_BYTES, 65_536);
        assert_eq!(MAX_HEADER_LINE_BYTES, 65_536);
        assert_eq!(MAX_BULK_BYTES, 536_870_912);
        assert_eq!(MAX_REQUEST_BYTES, 134_217_728);
        assert_eq!(OUTPUT_HIGH_WATER_BYTES, 1_048_576);
        assert_eq!(UNAUTHENTICATED_MAX_BULK_BYTES, 16_384);
    }
}
