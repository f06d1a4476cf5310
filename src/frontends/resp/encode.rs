//! Writes replies, in the protocol version the client has chosen.
//!
//! Promises: each call appends exactly one reply, or one header, to the output. The replies of the hot commands
//! are written directly; the others go through [`Frame`] and a library. A text can never break its line: CR and
//! LF in it become spaces.
//!
//! Must never know: sockets, which command is answered, or the prefixes of errors.

use std::borrow::Cow;

use redis_protocol::{
    resp2::{encode::encode as encode_resp2, types::OwnedFrame as Resp2Frame, types::Resp2Frame as _},
    resp3::{
        encode::complete::encode as encode_resp3,
        types::{FrameMap, FrameSet, OwnedFrame as Resp3Frame, Resp3Frame as _, VerbatimStringFormat},
    },
};

/// The version of the protocol a connection speaks. HELLO changes it, from its own reply on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    Resp2,
    Resp3,
}

/// A reply that is not hot, as a tree. What RESP2 cannot say, it says with less: a map is a flat array, a set an
/// array, a verbatim text a bulk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame {
    Simple(String),
    /// The text without the leading `-`.
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Verbatim(String),
    Null,
    Array(Vec<Frame>),
    /// Members are distinct; of equal ones the first is sent. With an aggregate among them it is sent as an array.
    Set(Vec<Frame>),
    /// Keys are distinct; of equal ones the last value is sent. With an aggregate among them it is sent flat.
    Map(Vec<(Frame, Frame)>),
}

/// Appends replies to the output of one connection.
#[derive(Debug)]
pub struct Reply<'a> {
    out: &'a mut Vec<u8>,
    protocol: Protocol,
}

impl<'a> Reply<'a> {
    pub fn new(out: &'a mut Vec<u8>, protocol: Protocol) -> Self {
        Self { out, protocol }
    }

    #[inline]
    pub fn ok(&mut self) {
        self.out.extend_from_slice(b"+OK\r\n");
    }

    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text);
    }

    /// `text` begins with the prefix clients go by, such as `ERR`, and without the `-`. Line ends at its end are dropped.
    pub fn error(&mut self, text: impl AsRef<[u8]>) {
        let mut text = text.as_ref();
        while let [rest @ .., b'\r' | b'\n'] = text {
            text = rest;
        }
        self.out.push(b'-');
        self.out.extend(text.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }));
        self.out.extend_from_slice(b"\r\n");
    }

    #[inline]
    pub fn integer(&mut self, value: i64) {
        self.number(b':', value);
    }

    #[inline]
    pub fn bulk(&mut self, value: &[u8]) {
        self.bulk_header(value.len());
        self.out.extend_from_slice(value);
        self.out.extend_from_slice(b"\r\n");
    }

    /// Announces a bulk of `len` bytes; the caller appends them and CR LF.
    #[inline]
    pub fn bulk_header(&mut self, len: usize) {
        self.number(b'$', len);
    }

    /// No value. Never a null array, which some clients take for an empty list.
    #[inline]
    pub fn null(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"$-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// No list: the answer of EXEC when a watched key has changed.
    pub fn null_array(&mut self) {
        self.out.extend_from_slice(match self.protocol {
            Protocol::Resp2 => b"*-1\r\n",
            Protocol::Resp3 => b"_\r\n",
        });
    }

    /// Announces an array; the caller appends `count` replies.
    #[inline]
    pub fn array_header(&mut self, count: usize) {
        self.number(b'*', count);
    }

    /// Announces a map; the caller appends `count` keys, each with its value behind it.
    pub fn map_header(&mut self, count: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array_header(2 * count),
            Protocol::Resp3 => self.number(b'%', count),
        }
    }

    /// Announces a set; the caller appends `count` replies.
    pub fn set_header(&mut self, count: usize) {
        match self.protocol {
            Protocol::Resp2 => self.array_header(count),
            Protocol::Resp3 => self.number(b'~', count),
        }
    }

    /// A reply that is not hot. The library wants a tree of its own, so the bytes are copied on the way.
    pub fn frame(&mut self, frame: &Frame) {
        let start = self.out.len();
        let written = match self.protocol {
            Protocol::Resp2 => {
                let frame = to_resp2(frame);
                self.out.resize(start + frame.encode_len(false), 0);
                encode_resp2(self.out.get_mut(start..).unwrap_or_default(), &frame, false)
            }
            Protocol::Resp3 => {
                let frame = to_resp3(frame);
                self.out.resize(start + frame.encode_len(false), 0);
                encode_resp3(self.out.get_mut(start..).unwrap_or_default(), &frame, false)
            }
        };
        match written {
            // The room asked for is an estimate from above.
            Ok(len) => self.out.truncate(start + len),
            Err(error) => {
                // Each request gets one reply, also when the library disagrees with itself about the room.
                self.out.truncate(start);
                self.error(format!("ERR the reply could not be encoded: {error}"));
            }
        }
    }

    #[inline]
    fn number(&mut self, kind: u8, value: impl itoa::Integer) {
        self.out.push(kind);
        self.out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }

    fn line(&mut self, kind: u8, text: &str) {
        self.out.push(kind);
        self.out.extend_from_slice(one_line(text).as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }
}

/// `text` without line ends, which a client would take for the end of the reply.
fn one_line(text: &str) -> Cow<'_, str> {
    if text.contains(['\r', '\n']) { Cow::Owned(text.replace(['\r', '\n'], " ")) } else { Cow::Borrowed(text) }
}

fn to_resp2(frame: &Frame) -> Resp2Frame {
    match frame {
        Frame::Simple(text) => Resp2Frame::SimpleString(one_line(text).into_owned().into_bytes()),
        Frame::Error(text) => Resp2Frame::Error(one_line(text).into_owned()),
        Frame::Integer(value) => Resp2Frame::Integer(*value),
        Frame::Bulk(bytes) => Resp2Frame::BulkString(bytes.clone()),
        Frame::Verbatim(text) => Resp2Frame::BulkString(text.clone().into_bytes()),
        Frame::Null => Resp2Frame::Null,
        Frame::Array(frames) | Frame::Set(frames) => Resp2Frame::Array(frames.iter().map(to_resp2).collect()),
        Frame::Map(pairs) => {
            Resp2Frame::Array(pairs.iter().flat_map(|(key, value)| [to_resp2(key), to_resp2(value)]).collect())
        }
    }
}

fn to_resp3(frame: &Frame) -> Resp3Frame {
    let attributes = None;
    match frame {
        Frame::Simple(text) => Resp3Frame::SimpleString { data: one_line(text).into_owned().into_bytes(), attributes },
        Frame::Error(text) => Resp3Frame::SimpleError { data: one_line(text).into_owned(), attributes },
        Frame::Integer(value) => Resp3Frame::Number { data: *value, attributes },
        Frame::Bulk(bytes) => Resp3Frame::BlobString { data: bytes.clone(), attributes },
        Frame::Verbatim(text) => Resp3Frame::VerbatimString {
            data: text.clone().into_bytes(),
            format: VerbatimStringFormat::Text,
            attributes,
        },
        Frame::Null => Resp3Frame::Null,
        Frame::Array(frames) => array_resp3(frames.iter()),
        // The library keeps sets and maps by hash, and panics when it is to hash an aggregate.
        Frame::Set(frames) if frames.iter().any(is_aggregate) => array_resp3(frames.iter()),
        Frame::Set(frames) => {
            Resp3Frame::Set { data: frames.iter().map(to_resp3).collect::<FrameSet<_>>(), attributes }
        }
        Frame::Map(pairs) if pairs.iter().any(|(key, _)| is_aggregate(key)) => {
            array_resp3(pairs.iter().flat_map(|(key, value)| [key, value]))
        }
        Frame::Map(pairs) => {
            let pairs = pairs.iter().map(|(key, value)| (to_resp3(key), to_resp3(value)));
            Resp3Frame::Map { data: pairs.collect::<FrameMap<_, _>>(), attributes }
        }
    }
}

fn array_resp3<'a>(frames: impl Iterator<Item = &'a Frame>) -> Resp3Frame {
    Resp3Frame::Array { data: frames.map(to_resp3).collect(), attributes: None }
}

fn is_aggregate(frame: &Frame) -> bool {
    matches!(frame, Frame::Array(_) | Frame::Set(_) | Frame::Map(_))
}

#[cfg(test)]
mod round_trip;

#[cfg(test)]
mod tests {
    use super::*;

    fn written(protocol: Protocol, write: impl Fn(&mut Reply<'_>)) -> String {
        // Behind another reply, so that one that does not append is seen.
        let mut out = b"+before\r\n".to_vec();
        write(&mut Reply::new(&mut out, protocol));
        let text = String::from_utf8(out).unwrap();
        text.strip_prefix("+before\r\n").unwrap().to_owned()
    }

    fn check(write: impl Fn(&mut Reply<'_>), resp2: &str, resp3: &str) {
        assert_eq!(written(Protocol::Resp2, &write), resp2);
        assert_eq!(written(Protocol::Resp3, &write), resp3);
    }

    fn check_frame(frame: &Frame, resp2: &str, resp3: &str) {
        check(|reply| reply.frame(frame), resp2, resp3);
    }

    fn bulk(text: &str) -> Frame {
        Frame::Bulk(text.as_bytes().to_vec())
    }

    #[test]
    fn hot_replies_are_the_bytes_of_redis() {
        check(|reply| reply.ok(), "+OK\r\n", "+OK\r\n");
        check(|reply| reply.simple("QUEUED"), "+QUEUED\r\n", "+QUEUED\r\n");
        check(|reply| reply.error("ERR syntax error"), "-ERR syntax error\r\n", "-ERR syntax error\r\n");
        check(|reply| reply.integer(-2), ":-2\r\n", ":-2\r\n");
        check(|reply| reply.integer(i64::MIN), ":-9223372036854775808\r\n", ":-9223372036854775808\r\n");
        check(|reply| reply.bulk(b""), "$0\r\n\r\n", "$0\r\n\r\n");
        check(|reply| reply.bulk(b"a\r\nb"), "$4\r\na\r\nb\r\n", "$4\r\na\r\nb\r\n");
        check(|reply| reply.bulk_header(1024), "$1024\r\n", "$1024\r\n");
        check(|reply| reply.array_header(0), "*0\r\n", "*0\r\n");
        check(|reply| reply.array_header(12), "*12\r\n", "*12\r\n");
        check(|reply| reply.set_header(12), "*12\r\n", "~12\r\n");
    }

    #[test]
    fn null_has_one_form_for_values_and_one_for_lists_in_resp2() {
        check(|reply| reply.null(), "$-1\r\n", "_\r\n");
        check(|reply| reply.null_array(), "*-1\r\n", "_\r\n");
    }

    #[test]
    fn a_text_never_breaks_its_line() {
        check(|reply| reply.error("ERR a\r\nb\n"), "-ERR a  b\r\n", "-ERR a  b\r\n");
        check(|reply| reply.simple("a\rb"), "+a b\r\n", "+a b\r\n");
        check_frame(&Frame::Error("ERR a\nb".into()), "-ERR a b\r\n", "-ERR a b\r\n");
        check_frame(&Frame::Simple("a\r\nb".into()), "+a  b\r\n", "+a  b\r\n");
    }

    #[test]
    fn hello_keeps_the_order_of_its_fields() {
        let hello = Frame::Map(vec![
            (bulk("server"), bulk("redis")),
            (bulk("version"), bulk("7.2.4")),
            (bulk("proto"), Frame::Integer(3)),
            (bulk("id"), Frame::Integer(10)),
            (bulk("mode"), bulk("standalone")),
            (bulk("role"), bulk("master")),
            (bulk("modules"), Frame::Array(vec![])),
        ]);
        let fields = "$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.2.4\r\n$5\r\nproto\r\n:3\r\n\
                      $2\r\nid\r\n:10\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n\
                      $7\r\nmodules\r\n*0\r\n";
        check_frame(&hello, &format!("*14\r\n{fields}"), &format!("%7\r\n{fields}"));
    }

    #[test]
    fn what_resp2_cannot_say_it_says_with_less() {
        check_frame(&Frame::Verbatim("# Server\r\n".into()), "$10\r\n# Server\r\n\r\n", "=14\r\ntxt:# Server\r\n\r\n");
        check_frame(&Frame::Verbatim(String::new()), "$0\r\n\r\n", "=4\r\ntxt:\r\n");
        check_frame(&Frame::Null, "$-1\r\n", "_\r\n");
        check_frame(&Frame::Map(vec![]), "*0\r\n", "%0\r\n");
        check_frame(&Frame::Set(vec![]), "*0\r\n", "~0\r\n");
        let flags = Frame::Set(vec![Frame::Simple("readonly".into()), Frame::Simple("fast".into())]);
        check_frame(&flags, "*2\r\n+readonly\r\n+fast\r\n", "~2\r\n+readonly\r\n+fast\r\n");
        let nested = Frame::Array(vec![Frame::Map(vec![(bulk("a"), flags)]), Frame::Null]);
        check_frame(
            &nested,
            "*2\r\n*2\r\n$1\r\na\r\n*2\r\n+readonly\r\n+fast\r\n$-1\r\n",
            "*2\r\n%1\r\n$1\r\na\r\n~2\r\n+readonly\r\n+fast\r\n_\r\n",
        );
    }

    #[test]
    fn every_integer_and_length_has_room() {
        let edges = (0..=18).flat_map(|power| {
            let power = 10_i64.pow(power);
            [power - 1, power, power + 1, -power]
        });
        for value in edges.chain([i64::MIN, i64::MAX]) {
            let text = format!(":{value}\r\n");
            check_frame(&Frame::Integer(value), &text, &text);
        }
        for len in [0, 1, 9, 10, 11, 99, 100, 999, 1000, 9999, 10_000, 99_995, 99_996, 100_000] {
            let data = "x".repeat(len);
            let text = format!("${len}\r\n{data}\r\n");
            check_frame(&bulk(&data), &text, &text);
            check_frame(&Frame::Verbatim(data.clone()), &text, &format!("={}\r\ntxt:{data}\r\n", len + 4));
        }
    }

    #[test]
    fn an_aggregate_where_the_library_needs_a_hash_is_sent_in_a_list() {
        let list = || Frame::Array(vec![Frame::Integer(1)]);
        check_frame(&Frame::Set(vec![list()]), "*1\r\n*1\r\n:1\r\n", "*1\r\n*1\r\n:1\r\n");
        let text = "*2\r\n*1\r\n:1\r\n$1\r\nv\r\n";
        check_frame(&Frame::Map(vec![(list(), bulk("v"))]), text, text);
    }
}
