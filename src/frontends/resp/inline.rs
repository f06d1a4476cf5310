//! Splitting the line of an inline request into its arguments, with the quoting rules of `sdssplitargs`.
//!
//! Promises: a line without quotes splits at blanks; `"…"` knows `\xHH`, `\n`, `\r`, `\t`, `\b`, `\a` and takes
//! any other byte after a backslash as it is; `'…'` knows only `\'`. A quote may open inside a word, and must be
//! closed before a blank or the end. One pass, no recursion. Unlike in C, a NUL is a byte like any other.
//!
//! Must never know: where the line came from, or what ended it.

use super::{args, limits::MAX_ARGUMENTS, protocol_error::ProtocolError, request::Span};

/// Appends the arguments of `line` to `bytes`, without their quotes, and their places in `bytes` to `spans`.
/// Answers how many were longer than `max_value_bytes`; those are not kept.
pub(super) fn split(
    line: &[u8],
    max_value_bytes: usize,
    bytes: &mut Vec<u8>,
    spans: &mut Vec<Span>,
) -> Result<usize, ProtocolError> {
    let mut oversize = 0;
    let mut rest = skip_blanks(line);
    while !rest.is_empty() {
        if spans.len() >= MAX_ARGUMENTS {
            return Err(ProtocolError::TooBigInlineRequest);
        }
        let start = bytes.len();
        rest = skip_blanks(word(rest, bytes)?);
        let len = bytes.len() - start;
        if len > max_value_bytes {
            // Treated as a bulk of that length would be: the request is complete, this argument is not there.
            bytes.truncate(start);
            spans.push(Span::OVERSIZE);
            oversize += 1;
        } else {
            spans.push(Span::new(start, len));
        }
    }
    Ok(oversize)
}

/// The first word of an HTTP request that could carry commands in its body, or of the header no browser omits.
pub(super) fn is_cross_protocol(word: &[u8]) -> bool {
    args::eq_ignore_case(word, b"POST") || args::eq_ignore_case(word, b"Host:")
}

/// What C's `isspace` takes for a blank.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

fn skip_blanks(mut rest: &[u8]) -> &[u8] {
    while let [byte, tail @ ..] = rest
        && is_blank(*byte)
    {
        rest = tail;
    }
    rest
}

/// Appends one word to `out` and answers what follows it.
fn word<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    loop {
        match rest {
            // Fewer than `is_blank`: between words all blanks are skipped, but only these end a word.
            [] | [b' ' | b'\t' | b'\n' | b'\r', ..] => return Ok(rest),
            [b'"', tail @ ..] => return double_quoted(tail, out),
            [b'\'', tail @ ..] => return single_quoted(tail, out),
            [byte, tail @ ..] => {
                out.push(*byte);
                rest = tail;
            }
        }
    }
}

/// The rest of a word after its opening `"`.
fn double_quoted<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    loop {
        let (byte, tail) = match rest {
            [] => return Err(ProtocolError::UnbalancedQuotes),
            [b'"', tail @ ..] => return after_closing_quote(tail),
            [b'\\', b'x', high, low, tail @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                (hex_value(*high) << 4 | hex_value(*low), tail)
            }
            [b'\\', escaped, tail @ ..] => (unescaped(*escaped), tail),
            [byte, tail @ ..] => (*byte, tail),
        };
        out.push(byte);
        rest = tail;
    }
}

/// The rest of a word after its opening `'`.
fn single_quoted<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    loop {
        let (byte, tail) = match rest {
            [] => return Err(ProtocolError::UnbalancedQuotes),
            [b'\'', tail @ ..] => return after_closing_quote(tail),
            [b'\\', b'\'', tail @ ..] => (b'\'', tail),
            [byte, tail @ ..] => (*byte, tail),
        };
        out.push(byte);
        rest = tail;
    }
}

/// Text glued to a closing quote is more likely a mistake than a word, so it is refused as in Redis.
fn after_closing_quote(rest: &[u8]) -> Result<&[u8], ProtocolError> {
    match rest {
        [byte, ..] if !is_blank(*byte) => Err(ProtocolError::UnbalancedQuotes),
        _ => Ok(rest),
    }
}

fn unescaped(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

/// The value of a byte that is known to be a hexadecimal digit; zero for others.
fn hex_value(byte: u8) -> u8 {
    match byte {
        b'0'..=b'9' => byte - b'0',
        b'a'..=b'f' => byte - b'a' + 10,
        b'A'..=b'F' => byte - b'A' + 10,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::{super::request::Args, *};

    fn split_line(line: &[u8], max_value_bytes: usize) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let (mut bytes, mut spans) = (Vec::new(), Vec::new());
        let oversize = split(line, max_value_bytes, &mut bytes, &mut spans)?;
        Ok(Args::new(&bytes, &spans, oversize).iter().map(<[u8]>::to_vec).collect())
    }

    fn check(line: &str, expected: &[&[u8]]) {
        assert_eq!(split_line(line.as_bytes(), usize::MAX).as_deref(), Ok(&*to_vecs(expected)), "{line:?}");
    }

    fn to_vecs(words: &[&[u8]]) -> Vec<Vec<u8>> {
        words.iter().map(|word| word.to_vec()).collect()
    }

    #[test]
    fn blanks_separate_words_and_mean_nothing_else() {
        check("", &[]);
        check(" \t ", &[]);
        check("PING", &[b"PING"]);
        check(" SET\tk   v ", &[b"SET", b"k", b"v"]);
        check("a\rb", &[b"a", b"b"]);
        check("a\x0bb \x0bc", &[b"a\x0bb", b"c"]);
        check("a\0b", &[b"a\0b"]);
    }

    #[test]
    fn double_quotes_know_the_escapes_of_redis() {
        check(r#"SET k "a b""#, &[b"SET", b"k", b"a b"]);
        check(r#""\x41\n\r\t\b\a\"\\\q""#, &[b"A\n\r\t\x08\x07\"\\q"]);
        check(r#""\xFf\xZZ\x4""#, &[b"\xffxZZx4"]);
        check(r#""it's""#, &[b"it's"]);
        check(r#""" x"#, &[b"", b"x"]);
        check(r#"ab"c d""#, &[b"abc d"]);
    }

    #[test]
    fn single_quotes_know_only_the_escaped_quote() {
        check(r"SET k 'it\'s'", &[b"SET", b"k", b"it's"]);
        check(r#"'\n"\x41'"#, &[br#"\n"\x41"#]);
        check("''", &[b""]);
    }

    #[test]
    fn quotes_left_open_or_glued_to_text_are_refused() {
        for line in
            [r#"""#, "'", r#"GET "a"#, "GET 'a", r#"GET "a"b"#, "GET 'a'b", r#""a""b""#, r#""a\"#, r"'a\'", r#""\x4"#]
        {
            assert_eq!(split_line(line.as_bytes(), usize::MAX), Err(ProtocolError::UnbalancedQuotes), "{line:?}");
        }
    }

    #[test]
    fn a_word_longer_than_a_value_is_not_kept() {
        assert_eq!(split_line(b"SET k 12345 1234", 4), Ok(to_vecs(&[b"SET", b"k", b"", b"1234"])));
    }

    #[test]
    fn more_words_than_arguments_are_refused() {
        let line = b"a ".repeat(MAX_ARGUMENTS + 1);
        assert_eq!(split_line(&line, usize::MAX), Err(ProtocolError::TooBigInlineRequest));
        assert_eq!(split_line(&line[2..], usize::MAX).map(|words| words.len()), Ok(MAX_ARGUMENTS));
    }
}
