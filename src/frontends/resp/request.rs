//! The arguments of one complete request, as places in the bytes that were received.
//!
//! Promises: reading an argument copies nothing and never panics, whatever the bytes behind it are. An argument
//! that was longer than a value may be is remembered as such, and reads as empty.
//!
//! Must never know: how the places were found, or what the arguments mean.

/// Where one argument lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Span {
    start: u32,
    len: u32,
}

impl Span {
    /// An argument whose bytes were not kept. No request is long enough for an argument to start there.
    pub(super) const OVERSIZE: Self = Self { start: u32::MAX, len: 0 };

    /// The limits of a request keep both numbers far below 4 GiB. Were one over it all the same, the argument
    /// would count as not kept, which is answered with an error, rather than become another place.
    #[inline]
    pub(super) fn new(start: usize, len: usize) -> Self {
        match (u32::try_from(start), u32::try_from(len)) {
            (Ok(start), Ok(len)) => Self { start, len },
            _ => Self::OVERSIZE,
        }
    }

    #[inline]
    fn of(self, source: &[u8]) -> &[u8] {
        let start = self.start as usize;
        source.get(start..start.saturating_add(self.len as usize)).unwrap_or(&[])
    }
}

/// The arguments of the request a scanner has just completed; the first is the name of the command.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    source: &'a [u8],
    spans: &'a [Span],
    oversize: usize,
}

impl<'a> Args<'a> {
    /// `oversize` is how many of `spans` are [`Span::OVERSIZE`].
    #[inline]
    pub(super) fn new(source: &'a [u8], spans: &'a [Span], oversize: usize) -> Self {
        Self { source, spans, oversize }
    }

    /// How many arguments there are, the name of the command included.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there is no request.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The bytes of argument `index`; empty when they were not kept.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.spans.get(index).map(|span| span.of(self.source))
    }

    /// All arguments in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + DoubleEndedIterator + Clone + use<'a> {
        let source = self.source;
        self.spans.iter().map(move |span| span.of(source))
    }

    /// Whether argument `index` was longer than a value may be, so that its bytes were not kept.
    #[must_use]
    pub fn is_oversize(&self, index: usize) -> bool {
        self.spans.get(index) == Some(&Span::OVERSIZE)
    }

    /// Whether any argument was longer than a value may be.
    #[inline]
    #[must_use]
    pub fn any_oversize(&self) -> bool {
        self.oversize > 0
    }
}

/// Arguments that outlive the bytes they came in.
pub struct OwnedArgs {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

impl OwnedArgs {
    /// A copy of arguments, none of which is oversize.
    #[must_use]
    pub fn of(args: Args<'_>) -> Self {
        let mut bytes = Vec::with_capacity(args.iter().map(<[u8]>::len).sum());
        let mut spans = Vec::with_capacity(args.len());
        for arg in args.iter() {
            spans.push(Span::new(bytes.len(), arg.len()));
            bytes.extend_from_slice(arg);
        }
        Self { bytes, spans }
    }

    #[must_use]
    pub fn args(&self) -> Args<'_> {
        Args::new(&self.bytes, &self.spans, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_where_they_lie() {
        let spans = [Span::new(0, 3), Span::OVERSIZE, Span::new(3, 0), Span::new(4, 2)];
        let args = Args::new(b"GET ab", &spans, 1);
        assert_eq!(args.len(), 4);
        assert!(!args.is_empty());
        assert_eq!(args.iter().collect::<Vec<_>>(), [&b"GET"[..], b"", b"", b"ab"]);
        assert_eq!(args.get(3), Some(&b"ab"[..]));
        assert_eq!(args.get(4), None);
    }

    #[test]
    fn an_oversize_argument_is_told_from_an_empty_one() {
        let spans = [Span::OVERSIZE, Span::new(0, 0)];
        let args = Args::new(b"", &spans, 1);
        assert!(args.any_oversize());
        assert!(args.is_oversize(0));
        assert!(!args.is_oversize(1));
        assert!(!args.is_oversize(2));
        assert_eq!(args.get(0), args.get(1));
    }

    #[test]
    fn a_place_outside_the_bytes_reads_as_empty() {
        let spans = [Span::new(2, 5), Span::new(9, 1), Span::new(usize::MAX, 1)];
        let args = Args::new(b"abc", &spans, 0);
        assert!(args.iter().all(<[u8]>::is_empty));
        assert!(args.is_oversize(2));
    }
}
