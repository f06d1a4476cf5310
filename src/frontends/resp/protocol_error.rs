//! What a client can do wrong on the wire, and the text it is answered.
//!
//! Promises: `Display` gives the text after `-ERR `, word for word what Redis says where Redis has a text.
//! After any of these the place of the next request is unknown, so the connection must close.
//!
//! Must never know: errors of commands. Those leave the connection open and are made elsewhere.

use std::fmt;

use super::limits::MAX_REQUEST_BYTES;

/// Why the bytes of a client are no request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProtocolError {
    /// `*N` with an N that is no number, or more arguments than a request may have.
    InvalidMultibulkLength,
    /// `$N` with an N that is no number, negative, or over the longest bulk.
    InvalidBulkLength,
    /// An element of a request that is not a bulk; the byte that came instead of `$`.
    ExpectedDollar(u8),
    /// A `*` line without an end.
    TooBigMbulkCountString,
    /// A `$` line without an end.
    TooBigBulkCountString,
    /// An inline request without an end, or with more arguments than a request may have.
    TooBigInlineRequest,
    /// A quote that is not closed, or text glued to a closing quote.
    UnbalancedQuotes,
    /// Too many arguments from a client that has not authenticated.
    UnauthenticatedMultibulkLength,
    /// Too long a bulk from a client that has not authenticated.
    UnauthenticatedBulkLength,
    /// The two bytes after a bulk are not CR LF. Redis skips them unseen; we would rather not guess what follows.
    InvalidBulkTerminator,
    /// The CR of a `*` or `$` line is not followed by LF. Redis skips that byte unseen.
    ExpectedLineFeed,
    /// The bulks of one request declare more bytes together than we hold for one client.
    RequestTooLarge,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Protocol error: ")?;
        match self {
            Self::InvalidMultibulkLength => f.write_str("invalid multibulk length"),
            Self::InvalidBulkLength => f.write_str("invalid bulk length"),
            Self::ExpectedDollar(byte) => write_expected_dollar(f, *byte),
            Self::TooBigMbulkCountString => f.write_str("too big mbulk count string"),
            Self::TooBigBulkCountString => f.write_str("too big bulk count string"),
            Self::TooBigInlineRequest => f.write_str("too big inline request"),
            Self::UnbalancedQuotes => f.write_str("unbalanced quotes in request"),
            Self::UnauthenticatedMultibulkLength => f.write_str("unauthenticated multibulk length"),
            Self::UnauthenticatedBulkLength => f.write_str("unauthenticated bulk length"),
            Self::InvalidBulkTerminator => f.write_str("invalid bulk terminator"),
            Self::ExpectedLineFeed => f.write_str("expected LF after CR"),
            Self::RequestTooLarge => write!(f, "request larger than {MAX_REQUEST_BYTES} bytes"),
        }
    }
}

impl std::error::Error for ProtocolError {}

/// The byte comes from outside: a line end would break the reply, and other bytes need not be text.
fn write_expected_dollar(f: &mut fmt::Formatter<'_>, byte: u8) -> fmt::Result {
    match byte {
        b'\r' | b'\n' => f.write_str("expected '$', got ' '"),
        b' '..=b'~' => write!(f, "expected '$', got '{}'", char::from(byte)),
        _ => write!(f, "expected '$', got '\\x{byte:02x}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_texts_are_those_of_redis() {
        let check = |error: ProtocolError, text: &str| assert_eq!(error.to_string(), format!("Protocol error: {text}"));
        check(ProtocolError::InvalidMultibulkLength, "invalid multibulk length");
        check(ProtocolError::InvalidBulkLength, "invalid bulk length");
        check(ProtocolError::TooBigMbulkCountString, "too big mbulk count string");
        check(ProtocolError::TooBigBulkCountString, "too big bulk count string");
        check(ProtocolError::TooBigInlineRequest, "too big inline request");
        check(ProtocolError::UnbalancedQuotes, "unbalanced quotes in request");
        check(ProtocolError::UnauthenticatedMultibulkLength, "unauthenticated multibulk length");
        check(ProtocolError::UnauthenticatedBulkLength, "unauthenticated bulk length");
        check(ProtocolError::InvalidBulkTerminator, "invalid bulk terminator");
        check(ProtocolError::ExpectedLineFeed, "expected LF after CR");
        check(ProtocolError::RequestTooLarge, "request larger than 134217728 bytes");
        check(ProtocolError::ExpectedDollar(b':'), "expected '$', got ':'");
    }

    #[test]
    fn no_byte_breaks_the_reply_line() {
        for byte in 0..=u8::MAX {
            let text = ProtocolError::ExpectedDollar(byte).to_string();
            assert!(text.bytes().all(|b| (b' '..=b'~').contains(&b)), "{text:?}");
        }
    }
}
