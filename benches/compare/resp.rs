//! A client just large enough to ask PING, INFO, SET and GET and to pipeline the last two. Any error reply is a
//! failure of the whole run, so it has no way to hand one on.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use crate::Outcome;

/// A server that is silent for longer is taken for stuck.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);
/// Far above anything asked for here; guards against reading garbage as a length.
const MOST_BULK_LEN: usize = 16 << 20;

pub enum Reply {
    /// A status, an error without its dash, or a number as text.
    Line(u8, String),
    Bulk(Vec<u8>),
    Nil,
}

pub struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    pub fn connect(port: u16) -> Outcome<Client> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
            .and_then(|stream| stream.set_nodelay(true).map(|()| stream))
            .and_then(|stream| stream.set_read_timeout(Some(REPLY_TIMEOUT)).map(|()| stream))
            .and_then(|stream| stream.set_write_timeout(Some(REPLY_TIMEOUT)).map(|()| stream))
            .map_err(|e| format!("No connection to port {port}: {e}."))?;
        Ok(Client { stream: BufReader::new(stream) })
    }

    pub fn ping(&mut self) -> Outcome<()> {
        self.send(&encode(&[b"PING"]))?;
        match self.reply()? {
            Reply::Line(b'+', text) if text == "PONG" => Ok(()),
            other => Err(format!("PING was answered {}.", other.shown())),
        }
    }

    /// The fields of INFO in their order; none when the server answers it with an error.
    pub fn info(&mut self) -> Outcome<Vec<(String, String)>> {
        self.send(&encode(&[b"INFO", b"everything"]))?;
        let Reply::Bulk(text) = self.reply()? else { return Ok(Vec::new()) };
        let text = String::from_utf8_lossy(&text).into_owned();
        let fields = text.lines().filter_map(|line| line.trim().split_once(':'));
        Ok(fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// Sets every pair in one write and requires +OK for each.
    pub fn set_all(&mut self, pairs: &[(Vec<u8>, Vec<u8>)]) -> Outcome<()> {
        let mut request = Vec::new();
        for (key, value) in pairs {
            request.extend_from_slice(&encode(&[b"SET", key, value]));
        }
        self.send(&request)?;
        for (key, _) in pairs {
            match self.reply()? {
                Reply::Line(b'+', text) if text == "OK" => {}
                other => return Err(format!("SET {} was answered {}.", String::from_utf8_lossy(key), other.shown())),
            }
        }
        Ok(())
    }

    /// Gets every key in one write; an absent key is None.
    pub fn get_all(&mut self, keys: &[Vec<u8>]) -> Outcome<Vec<Option<Vec<u8>>>> {
        let mut request = Vec::new();
        for key in keys {
            request.extend_from_slice(&encode(&[b"GET", key]));
        }
        self.send(&request)?;
        let mut values = Vec::with_capacity(keys.len());
        for key in keys {
            match self.reply()? {
                Reply::Bulk(value) => values.push(Some(value)),
                Reply::Nil => values.push(None),
                other => return Err(format!("GET {} was answered {}.", String::from_utf8_lossy(key), other.shown())),
            }
        }
        Ok(values)
    }

    fn send(&mut self, request: &[u8]) -> Outcome<()> {
        self.stream.get_mut().write_all(request).map_err(|e| format!("A request could not be sent: {e}."))
    }

    fn reply(&mut self) -> Outcome<Reply> {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line).map_err(|e| format!("A reply did not come: {e}."))?;
        let Some(line) = line.strip_suffix(b"\r\n") else {
            return Err("The server closed the connection before its reply was complete.".to_owned());
        };
        let Some((kind, rest)) = line.split_first() else {
            return Err("The server sent an empty line in place of a reply.".to_owned());
        };
        let rest = String::from_utf8_lossy(rest).into_owned();
        match kind {
            b'+' | b'-' | b':' => Ok(Reply::Line(*kind, rest)),
            b'$' if rest == "-1" => Ok(Reply::Nil),
            b'$' => self.bulk(&rest),
            _ => Err(format!("A reply begins with the unexpected byte {kind:#04x}.")),
        }
    }

    fn bulk(&mut self, len: &str) -> Outcome<Reply> {
        let len: usize = match len.parse() {
            Ok(len) if len <= MOST_BULK_LEN => len,
            _ => return Err(format!("A reply announces the impossible length {len:?}.")),
        };
        let mut bytes = vec![0; len + 2];
        self.stream.read_exact(&mut bytes).map_err(|e| format!("A reply of {len} bytes did not come whole: {e}."))?;
        if !bytes.ends_with(b"\r\n") {
            return Err(format!("A reply of {len} bytes does not end where it said it would."));
        }
        bytes.truncate(len);
        Ok(Reply::Bulk(bytes))
    }
}

impl Reply {
    fn shown(&self) -> String {
        match self {
            Reply::Line(kind, text) => format!("{}{text}", char::from(*kind)),
            Reply::Bulk(bytes) => format!("with a string of {} bytes", bytes.len()),
            Reply::Nil => "nil".to_owned(),
        }
    }
}

fn encode(arguments: &[&[u8]]) -> Vec<u8> {
    let mut request = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        request.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        request.extend_from_slice(argument);
        request.extend_from_slice(b"\r\n");
    }
    request
}
