//! Finds the requests in the bytes a client sends, however the network has cut them.
//!
//! Promises: a request is found as soon as its last byte is there, and its arguments are not copied. No byte is
//! searched twice, so work is linear in what was received, also when it arrives byte by byte. Lengths are judged
//! from their headers; nothing is allocated because a client declared it. Bytes of a bulk longer than a value may
//! be are handed back at once, to be dropped. Where Redis skips wrong line ends unseen, this is strict.
//!
//! Must never know: what a command means, who the client is, or where the bytes are kept.
//!
//! When you add a stage, also add its rows to the table in `scan/tests.rs`; each runs at every possible cut.

use super::{args, inline, limits, request::Span};

pub use super::{protocol_error::ProtocolError, request::Args};

#[cfg(test)]
mod tests;

/// What [`Scanner::scan`] found at the front of the input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scan {
    /// Nothing is complete yet; call again with more bytes behind those already given.
    NeedMore,
    /// A request, whose arguments [`Scanner::args`] gives until the next scan. Then drop `consumed` bytes.
    Request { consumed: usize },
    /// Something that gets no reply: an empty line, or an array without elements. Drop it and go on.
    Skip { consumed: usize },
    /// `input[start..end]` belongs to a bulk longer than a value may be. Remove exactly these bytes, keep those
    /// before and behind, and call again.
    Discard { start: usize, end: usize },
    /// Not the protocol. Answer `-ERR ` and the text, then close. Every later scan says the same.
    Bad(ProtocolError),
    /// A browser was tricked into talking to this port. Close without a word. Every later scan says the same.
    CrossProtocol,
}

/// What is expected next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// The first byte of a request, which says how it is written.
    Start,
    /// The end of an inline request.
    Inline,
    /// The `*N` line.
    Count,
    /// A `$N` line.
    BulkHeader,
    /// The bytes of a bulk and its CR LF.
    Bulk { len: usize },
    /// Bytes that are not kept.
    Discarding { left: usize },
    /// The CR LF behind them.
    DiscardedEnd,
    /// Nothing: an array request is complete, and its places are in the input.
    DoneArray,
    /// Nothing: an inline request is complete, and its places are in `unquoted`.
    DoneInline,
    /// Nothing any more.
    Failed(ProtocolError),
    /// Nothing any more.
    Closed,
}

/// The scanner of one connection.
///
/// The `input` of every call begins at the first byte of the current request: all bytes received, less those
/// dropped or removed as an earlier answer asked. Between calls it changes only so, and by growing at its end.
#[derive(Debug)]
pub struct Scanner {
    max_value_bytes: usize,
    authenticated: bool,
    stage: Stage,
    /// Everything before this place in the input has been taken.
    pos: usize,
    /// No end of the current line lies before this place.
    searched: usize,
    /// Arguments still to come.
    missing: usize,
    /// What the bulks so far that are kept have declared together, in bytes.
    declared_bytes: usize,
    spans: Vec<Span>,
    /// How many of `spans` were not kept.
    oversize: usize,
    /// The arguments of an inline request, without their quotes.
    unquoted: Vec<u8>,
    /// Bytes looked at, to hold the promise of linear work without a clock.
    #[cfg(test)]
    looked: usize,
}

impl Scanner {
    /// A scanner that keeps no bulk longer than `max_value_bytes`.
    #[must_use]
    pub fn new(max_value_bytes: usize) -> Self {
        Self {
            max_value_bytes,
            authenticated: true,
            stage: Stage::Start,
            pos: 0,
            searched: 0,
            missing: 0,
            declared_bytes: 0,
            spans: Vec::new(),
            oversize: 0,
            unquoted: Vec::new(),
            #[cfg(test)]
            looked: 0,
        }
    }

    /// While `false`, requests are held to the small limits for strangers. Counts from the next header on, so
    /// requests pipelined behind AUTH are to be scanned only after it has been answered.
    pub fn set_authenticated(&mut self, authenticated: bool) {
        self.authenticated = authenticated;
    }

    /// Looks for the next request; see [`Scan`] for what to do with each answer.
    #[inline]
    pub fn scan(&mut self, input: &[u8]) -> Scan {
        match self.advance(input) {
            Ok(scan) => scan,
            Err(error) => {
                self.stage = Stage::Failed(error);
                Scan::Bad(error)
            }
        }
    }

    /// The arguments of the request just found in this `input`; none unless the last scan found a request.
    #[inline]
    #[must_use]
    pub fn args<'a>(&'a self, input: &'a [u8]) -> Args<'a> {
        match self.stage {
            Stage::DoneArray => Args::new(input, &self.spans, self.oversize),
            Stage::DoneInline => Args::new(&self.unquoted, &self.spans, self.oversize),
            _ => Args::new(&[], &[], 0),
        }
    }

    /// Forgets the last request, and the room a large one took.
    #[inline]
    fn restart(&mut self) {
        self.stage = Stage::Start;
        self.pos = 0;
        self.searched = 0;
        self.missing = 0;
        self.declared_bytes = 0;
        self.oversize = 0;
        self.spans.clear();
        if self.spans.capacity() > limits::KEPT_ARGUMENTS {
            self.spans.shrink_to(limits::KEPT_ARGUMENTS);
        }
        self.unquoted.clear();
        if self.unquoted.capacity() > limits::KEPT_INLINE_BYTES {
            self.unquoted.shrink_to(limits::KEPT_INLINE_BYTES);
        }
    }

    #[inline]
    fn advance(&mut self, input: &[u8]) -> Result<Scan, ProtocolError> {
        if matches!(self.stage, Stage::DoneArray | Stage::DoneInline) {
            self.restart();
        }
        if self.stage == Stage::Start {
            self.stage = match input.first() {
                None => return Ok(Scan::NeedMore),
                Some(b'*') => Stage::Count,
                Some(_) => Stage::Inline,
            };
        }
        match self.stage {
            Stage::Inline => self.inline(input),
            Stage::Count => match self.count(input)? {
                None => Ok(Scan::NeedMore),
                Some(0) => Ok(self.skip(self.pos)),
                Some(count) => {
                    self.missing = count;
                    self.stage = Stage::BulkHeader;
                    self.elements(input)
                }
            },
            Stage::Failed(error) => Err(error),
            Stage::Closed => Ok(Scan::CrossProtocol),
            _ => self.elements(input),
        }
    }

    /// What follows is sniffed anew: behind an empty line a client may go on in either way.
    fn skip(&mut self, consumed: usize) -> Scan {
        self.restart();
        Scan::Skip { consumed }
    }

    fn inline(&mut self, input: &[u8]) -> Result<Scan, ProtocolError> {
        let Some(end) = self.find(input, 0, b'\n') else {
            // A line whose end is there is taken at any length: it costs no more waiting.
            if input.len() > limits::MAX_INLINE_BYTES {
                return Err(ProtocolError::TooBigInlineRequest);
            }
            return Ok(Scan::NeedMore);
        };
        let consumed = end + 1;
        let line = input.get(..end).unwrap_or(&[]);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > limits::MAX_REQUEST_BYTES {
            return Err(ProtocolError::TooBigInlineRequest);
        }
        self.look(consumed);
        self.oversize = inline::split(line, self.max_value_bytes, &mut self.unquoted, &mut self.spans)?;
        if self.spans.is_empty() {
            return Ok(self.skip(consumed));
        }
        self.stage = Stage::DoneInline;
        if self.args(input).get(0).is_some_and(inline::is_cross_protocol) {
            self.stage = Stage::Closed;
            return Ok(Scan::CrossProtocol);
        }
        Ok(Scan::Request { consumed })
    }

    /// The number of arguments, zero for an array that is empty or null.
    #[inline]
    fn count(&mut self, input: &[u8]) -> Result<Option<usize>, ProtocolError> {
        let invalid = ProtocolError::InvalidMultibulkLength;
        let Some(number) = self.number_line(input, invalid, ProtocolError::TooBigMbulkCountString)? else {
            return Ok(None);
        };
        let count = usize::try_from(number.max(0)).map_err(|_| invalid)?;
        if count > limits::MAX_ARGUMENTS {
            return Err(invalid);
        }
        if count > limits::UNAUTHENTICATED_MAX_ARGUMENTS && !self.authenticated {
            return Err(ProtocolError::UnauthenticatedMultibulkLength);
        }
        Ok(Some(count))
    }

    /// Takes the elements of an array as far as the input goes.
    #[inline]
    fn elements(&mut self, input: &[u8]) -> Result<Scan, ProtocolError> {
        while self.missing > 0 {
            match self.stage {
                Stage::Bulk { len } => {
                    if !self.bulk(input, len, Span::new(self.pos, len))? {
                        return Ok(Scan::NeedMore);
                    }
                }
                Stage::Discarding { left } => return Ok(self.discard(input, left)),
                Stage::DiscardedEnd => {
                    if !self.bulk(input, 0, Span::OVERSIZE)? {
                        return Ok(Scan::NeedMore);
                    }
                    self.oversize += 1;
                }
                _ => match self.bulk_header(input)? {
                    None => return Ok(Scan::NeedMore),
                    Some(len) if len > self.max_value_bytes => self.stage = Stage::Discarding { left: len },
                    Some(len) => self.stage = Stage::Bulk { len },
                },
            }
        }
        self.stage = Stage::DoneArray;
        Ok(Scan::Request { consumed: self.pos })
    }

    /// The length of the next bulk.
    #[inline]
    fn bulk_header(&mut self, input: &[u8]) -> Result<Option<usize>, ProtocolError> {
        match input.get(self.pos) {
            None => return Ok(None),
            Some(b'$') => {}
            Some(&other) => return Err(ProtocolError::ExpectedDollar(other)),
        }
        let invalid = ProtocolError::InvalidBulkLength;
        let Some(number) = self.number_line(input, invalid, ProtocolError::TooBigBulkCountString)? else {
            return Ok(None);
        };
        let len = usize::try_from(number).map_err(|_| invalid)?;
        if len > limits::MAX_BULK_BYTES {
            return Err(invalid);
        }
        if len > limits::UNAUTHENTICATED_MAX_BULK_BYTES && !self.authenticated {
            return Err(ProtocolError::UnauthenticatedBulkLength);
        }
        // A bulk that is dropped as it arrives takes no room. The sum cannot overflow: both were held to a limit before.
        if len <= self.max_value_bytes {
            self.declared_bytes += len;
        }
        if self.declared_bytes > limits::MAX_REQUEST_BYTES {
            return Err(ProtocolError::RequestTooLarge);
        }
        Ok(Some(len))
    }

    /// Takes `len` bytes and CR LF as the argument `span`, once all of them are there.
    #[inline]
    fn bulk(&mut self, input: &[u8], len: usize, span: Span) -> Result<bool, ProtocolError> {
        let end = self.pos + len;
        let Some(&terminator) = input.get(end..).and_then(<[u8]>::first_chunk::<2>) else {
            return Ok(false);
        };
        self.look(terminator.len());
        if terminator != *b"\r\n" {
            return Err(ProtocolError::InvalidBulkTerminator);
        }
        // Grows as arguments arrive, never by the declared count.
        self.spans.push(span);
        self.pos = end + terminator.len();
        self.missing -= 1;
        self.stage = Stage::BulkHeader;
        Ok(true)
    }

    /// Hands back what is there of a bulk that is not kept. `pos` stays: the rest of the input moves up to it.
    #[cold]
    fn discard(&mut self, input: &[u8], left: usize) -> Scan {
        let available = input.len().saturating_sub(self.pos);
        if available == 0 {
            return Scan::NeedMore;
        }
        let taken = available.min(left);
        self.stage = if taken == left { Stage::DiscardedEnd } else { Stage::Discarding { left: left - taken } };
        Scan::Discard { start: self.pos, end: self.pos + taken }
    }

    /// Takes the line at `pos`, a type byte and a number; `None` while its end is missing.
    #[inline]
    fn number_line(
        &mut self,
        input: &[u8],
        invalid: ProtocolError,
        endless: ProtocolError,
    ) -> Result<Option<i64>, ProtocolError> {
        // Tried only once a line: what was searched before is not looked at again from its start.
        if self.searched <= self.pos {
            let there = input.len().saturating_sub(self.pos + 1);
            self.look(there.min(args::SHORT_NUMBER_DIGITS + 2));
            if let Some((number, size)) = input.get(self.pos + 1..).and_then(args::short_number_line) {
                self.pos += 1 + size;
                return Ok(Some(number));
            }
        }
        self.long_number_line(input, invalid, endless)
    }

    /// [`Self::number_line`] for what is rare: cut, negative, very long or wrong.
    #[cold]
    fn long_number_line(
        &mut self,
        input: &[u8],
        invalid: ProtocolError,
        endless: ProtocolError,
    ) -> Result<Option<i64>, ProtocolError> {
        let Some(end) = self.find(input, self.pos + 1, b'\r') else {
            if input.len().saturating_sub(self.pos) > limits::MAX_HEADER_LINE_BYTES {
                return Err(endless);
            }
            return Ok(None);
        };
        let Some(after) = input.get(end + 1) else {
            return Ok(None);
        };
        let text = input.get(self.pos + 1..end).unwrap_or(&[]);
        self.look(text.len());
        let number = args::parse_i64(text).ok_or(invalid)?;
        if *after != b'\n' {
            return Err(ProtocolError::ExpectedLineFeed);
        }
        self.pos = end + 2;
        Ok(Some(number))
    }

    /// The first `wanted` at or behind `from`, searching only where it was not searched before.
    fn find(&mut self, input: &[u8], from: usize, wanted: u8) -> Option<usize> {
        let from = self.searched.max(from);
        let found = input.get(from..)?.iter().position(|byte| *byte == wanted).map(|at| from + at);
        self.searched = found.unwrap_or(input.len());
        self.look(self.searched - from);
        found
    }

    /// Counts bytes looked at. Only tests ask, so only tests pay.
    #[cfg(test)]
    fn look(&mut self, bytes: usize) {
        self.looked += bytes;
    }

    #[cfg(not(test))]
    #[inline]
    fn look(&mut self, _bytes: usize) {}
}
