//! A blocking RESP2 client that is strict about the wire: an end of stream between two replies, inside a reply, and a
//! reset are three different things.
//!
//! Promises to hand out only whole replies and never to wait without bound. Knows no command; retries nothing.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A bound, not a measure: a broker that answers nothing for this long has failed.
const PATIENCE: Duration = Duration::from_secs(60);
const MAX_DEPTH: usize = 4;

/// One reply.
#[derive(Clone, PartialEq, Eq)]
pub enum Reply {
    Simple(Vec<u8>),
    Error(Vec<u8>),
    Integer(i64),
    Bulk(Option<Vec<u8>>),
    Array(Option<Vec<Reply>>),
}

/// Why there is no further reply.
#[derive(Debug)]
pub enum Broken {
    /// The peer ended the stream after a whole reply.
    Ended,
    /// The peer ended the stream inside a reply.
    CutShort,
    Reset,
    TimedOut,
    Malformed(String),
    Other(io::Error),
}

/// One connection.
pub struct Client {
    stream: TcpStream,
    input: Vec<u8>,
    /// Bytes of `input` that were handed out already.
    used: usize,
    output: Vec<u8>,
}

impl Client {
    pub fn connect(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream, input: Vec::new(), used: 0, output: Vec::new() })
    }

    /// Adds a command to the pipeline.
    pub fn queue(&mut self, arguments: &[&[u8]]) {
        self.output.extend_from_slice(format!("*{}\r\n", arguments.len()).as_bytes());
        for argument in arguments {
            self.output.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
            self.output.extend_from_slice(argument);
            self.output.extend_from_slice(b"\r\n");
        }
    }

    /// Sends the pipeline.
    pub fn flush(&mut self) -> Result<(), Broken> {
        let sent = self.stream.write_all(&self.output);
        self.output.clear();
        sent.map_err(Broken::from)
    }

    /// Sends one command.
    pub fn send(&mut self, arguments: &[&[u8]]) -> Result<(), Broken> {
        self.queue(arguments);
        self.flush()
    }

    /// Sends one command and reads its reply.
    pub fn call(&mut self, arguments: &[&[u8]]) -> Result<Reply, Broken> {
        self.send(arguments)?;
        self.read()
    }

    pub fn read(&mut self) -> Result<Reply, Broken> {
        loop {
            let unread = &self.input[self.used..];
            if let Some((reply, length)) = parse(unread, MAX_DEPTH).map_err(Broken::Malformed)? {
                self.used += length;
                return Ok(reply);
            }
            self.input.drain(..self.used);
            self.used = 0;
            let mut buffer = [0; 16 * 1024];
            match self.stream.read(&mut buffer) {
                Ok(0) if self.input.is_empty() => return Err(Broken::Ended),
                Ok(0) => return Err(Broken::CutShort),
                Ok(count) => self.input.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// As it reads on the wire, and not more of it than a failure's text can take.
impl fmt::Debug for Reply {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 200;
        let text = |bytes: &[u8]| bytes[..bytes.len().min(MOST)].escape_ascii().to_string();
        match self {
            Self::Simple(bytes) => write!(to, "+{}", text(bytes)),
            Self::Error(bytes) => write!(to, "-{}", text(bytes)),
            Self::Integer(number) => write!(to, ":{number}"),
            Self::Bulk(None) => write!(to, "$-1"),
            Self::Bulk(Some(bytes)) => write!(to, "${} {}", bytes.len(), text(bytes)),
            Self::Array(None) => write!(to, "*-1"),
            Self::Array(Some(items)) => to.debug_list().entries(items.iter().take(MOST)).finish(),
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => write!(to, "the stream ended after a whole reply"),
            Self::CutShort => write!(to, "the stream ended inside a reply"),
            Self::Reset => write!(to, "the connection was reset"),
            Self::TimedOut => write!(to, "no answer within {PATIENCE:?}"),
            Self::Malformed(what) => write!(to, "malformed: {what}"),
            Self::Other(error) => write!(to, "{error}"),
        }
    }
}

impl std::error::Error for Broken {}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => Self::Reset,
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::TimedOut,
            _ => Self::Other(error),
        }
    }
}

/// A reply and its length, None while more bytes are needed.
fn parse(bytes: &[u8], depth: usize) -> Result<Option<(Reply, usize)>, String> {
    let Some((line, after)) = line(bytes)? else { return Ok(None) };
    let rest = &line[1..];
    let done = |reply| Ok(Some((reply, after)));
    match line[0] {
        b'+' => done(Reply::Simple(rest.to_vec())),
        b'-' => done(Reply::Error(rest.to_vec())),
        b':' => done(Reply::Integer(number(rest)?)),
        b'$' => bulk(number(rest)?, bytes, after),
        b'*' => array(number(rest)?, bytes, after, depth),
        other => Err(format!("a reply that starts with byte {other:#04x}")),
    }
}

fn bulk(length: i64, bytes: &[u8], start: usize) -> Result<Option<(Reply, usize)>, String> {
    if length == -1 {
        return Ok(Some((Reply::Bulk(None), start)));
    }
    let end = start + usize::try_from(length).map_err(|_| format!("a bulk of length {length}"))?;
    match bytes.get(end..end + 2) {
        None => Ok(None),
        Some(b"\r\n") => Ok(Some((Reply::Bulk(Some(bytes[start..end].to_vec())), end + 2))),
        Some(other) => Err(format!("a bulk that ends in {other:?}")),
    }
}

fn array(length: i64, bytes: &[u8], start: usize, depth: usize) -> Result<Option<(Reply, usize)>, String> {
    if length == -1 {
        return Ok(Some((Reply::Array(None), start)));
    }
    if length < 0 || depth == 0 {
        return Err(format!("an array of length {length}, {depth} levels above the bound"));
    }
    let (mut items, mut at) = (Vec::new(), start);
    for _ in 0..length {
        let Some((item, taken)) = parse(&bytes[at..], depth - 1)? else { return Ok(None) };
        items.push(item);
        at += taken;
    }
    Ok(Some((Reply::Array(Some(items)), at)))
}

/// The first line without its end (never empty), and where the next one starts.
fn line(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, String> {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
    match bytes[..end].strip_suffix(b"\r") {
        Some(line) if !line.is_empty() => Ok(Some((line, end + 1))),
        _ => Err(format!("a line without type or without CR: {:?}", String::from_utf8_lossy(&bytes[..end]))),
    }
}

fn number(digits: &[u8]) -> Result<i64, String> {
    let text = std::str::from_utf8(digits).map_err(|_| "a number that is no text".to_owned())?;
    text.parse().map_err(|_| format!("a number {text:?}"))
}
