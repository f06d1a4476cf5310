//! The broker's own limits as the reference's rules.
//!
//! `fuzz/` includes this file too, so it names nothing but the limits and the reference. Must never know the scanner.

use super::limits;
use super::reference::Rules;

pub fn rules(authenticated: bool, value_bytes: usize) -> Rules {
    Rules {
        authenticated,
        value_bytes,
        bulk_bytes: limits::MAX_BULK_BYTES,
        request_bytes: limits::MAX_REQUEST_BYTES,
        arguments: limits::MAX_ARGUMENTS,
        inline_bytes: limits::MAX_INLINE_BYTES,
        header_bytes: limits::MAX_HEADER_LINE_BYTES,
        stranger_arguments: limits::UNAUTHENTICATED_MAX_ARGUMENTS,
        stranger_bulk_bytes: limits::UNAUTHENTICATED_MAX_BULK_BYTES,
    }
}
