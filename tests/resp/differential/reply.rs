//! A reply as a tree, read from the bytes it came in.
//!
//! Promise: two trees are equal only if their bytes are, but for how a number is written. Must never know which command
//! was asked.

use std::fmt;

/// One reply. Nothing has three shapes on the wire, and clients tell them apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reply {
    Simple(Vec<u8>),
    Error(Vec<u8>),
    Integer(i64),
    Bulk(Vec<u8>),
    Verbatim(Vec<u8>),
    Nothing(&'static str),
    Array(Vec<Self>),
    Set(Vec<Self>),
    Map(Vec<Self>),
    /// What is none of these, as it came.
    Other(Vec<u8>),
}

impl Reply {
    /// The tree of `bytes`, which are one whole reply.
    pub fn of(bytes: &[u8]) -> Self {
        read(&mut &*bytes)
    }

    pub fn integer(&self) -> Option<i64> {
        if let Self::Integer(number) = self { Some(*number) } else { None }
    }

    pub fn bulk(&self) -> Option<&[u8]> {
        if let Self::Bulk(bytes) = self { Some(bytes) } else { None }
    }

    pub fn error(&self) -> Option<&[u8]> {
        if let Self::Error(text) = self { Some(text) } else { None }
    }

    /// What is inside an array, a set or a map.
    pub fn parts(&self) -> Option<&[Self]> {
        match self {
            Self::Array(parts) | Self::Set(parts) | Self::Map(parts) => Some(parts),
            _ => None,
        }
    }
}

fn read(rest: &mut &[u8]) -> Reply {
    let end = rest.windows(2).position(|two| two == b"\r\n").unwrap_or(rest.len());
    let line = &rest[..end];
    *rest = rest.get(end + 2..).unwrap_or_default();
    let (mark, text) = line.split_first().map_or((0, line), |(mark, text)| (*mark, text));
    let number = str::from_utf8(text).ok().and_then(|text| text.parse::<i64>().ok());
    match (mark, number) {
        (b'+', _) => Reply::Simple(text.to_vec()),
        (b'-', _) => Reply::Error(text.to_vec()),
        (b'_', _) => Reply::Nothing("_"),
        (b':', Some(number)) => Reply::Integer(number),
        (b'$', Some(-1)) => Reply::Nothing("$-1"),
        (b'*', Some(-1)) => Reply::Nothing("*-1"),
        (b'$', Some(length)) => Reply::Bulk(body(rest, length)),
        (b'=', Some(length)) => Reply::Verbatim(body(rest, length)),
        (b'*', Some(count)) => Reply::Array((0..count).map(|_| read(rest)).collect()),
        (b'~', Some(count)) => Reply::Set((0..count).map(|_| read(rest)).collect()),
        (b'%', Some(count)) => Reply::Map((0..2 * count).map(|_| read(rest)).collect()),
        _ => Reply::Other(line.to_vec()),
    }
}

fn body(rest: &mut &[u8], length: i64) -> Vec<u8> {
    let length = usize::try_from(length).unwrap_or_default().min(rest.len());
    let body = rest[..length].to_vec();
    *rest = rest.get(length + 2..).unwrap_or_default();
    body
}

/// Bytes for people: in quotes, escaped, and long ones told by their beginning and length.
pub fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 200;
    let part = bytes[..bytes.len().min(MOST)].escape_ascii();
    let plain = !bytes.is_empty() && bytes.iter().all(|byte| byte.is_ascii_graphic() && !b"\"'\\".contains(byte));
    if bytes.len() > MOST {
        format!("\"{part}…\" ({} bytes)", bytes.len())
    } else if plain {
        part.to_string()
    } else {
        format!("\"{part}\"")
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |f: &mut fmt::Formatter<'_>, mark: &str, parts: &[Self]| {
            write!(f, "{mark}{}[", parts.len())?;
            for (i, part) in parts.iter().enumerate() {
                write!(f, "{}{part}", if i > 0 { ", " } else { "" })?;
            }
            write!(f, "]")
        };
        match self {
            Self::Simple(text) => write!(f, "+{}", text.escape_ascii()),
            Self::Error(text) => write!(f, "-{}", text.escape_ascii().to_string().replace("\\'", "'")),
            Self::Integer(number) => write!(f, ":{number}"),
            Self::Bulk(bytes) => write!(f, "${}", shown(bytes)),
            Self::Verbatim(bytes) => write!(f, "={}", shown(bytes)),
            Self::Nothing(mark) => write!(f, "nil ({mark})"),
            Self::Array(parts) => list(f, "*", parts),
            Self::Set(parts) => list(f, "~", parts),
            Self::Map(parts) => list(f, "%", parts),
            Self::Other(bytes) => write!(f, "?{}", bytes.escape_ascii()),
        }
    }
}

#[test]
fn a_reply_is_read_as_it_was_written() {
    let bytes = b"*6\r\n+OK\r\n:-2\r\n$3\r\na\r\n\r\n*1\r\n_\r\n%1\r\n$0\r\n\r\n*-1\r\n-ERR x\r\n";
    let read = Reply::of(bytes);
    assert_eq!(read.to_string(), "*6[+OK, :-2, $\"a\\r\\n\", *1[nil (_)], %2[$\"\", nil (*-1)], -ERR x]");
}
