//! One of the two servers that are compared, and the connections to it.
//!
//! Promise: nothing waits for ever; what goes wrong on the wire is told as text, never a panic, because it may be the
//! very difference that is looked for. Must never know a command but those that bring a connection back to its beginning.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use crate::broker::{PATIENCE, TestBroker};
use crate::redis::Redis;

/// Connections of a sequence, and one more for what the test itself wants to know.
pub const CONNECTIONS: usize = 3;
/// The one of the test itself.
pub const HAND: usize = 2;

enum Server {
    Redis(Redis),
    Hearth(TestBroker),
}

pub struct Side {
    pub name: &'static str,
    server: Server,
    lines: Vec<Line>,
}

impl Side {
    pub fn redis(name: &'static str) -> Self {
        Self { name, server: Server::Redis(Redis::start()), lines: Vec::new() }
    }

    /// A Hearth whose databases have so many shards each.
    pub fn hearth(shards: u32) -> Self {
        let broker = TestBroker::in_memory(&["--shards", &shards.to_string()]);
        Self { name: "hearth", server: Server::Hearth(broker), lines: Vec::new() }
    }

    fn address(&self) -> SocketAddr {
        match &self.server {
            Server::Redis(redis) => redis.address,
            Server::Hearth(broker) => broker.address,
        }
    }

    /// Connections as new ones are, and no keys.
    pub fn begin(&mut self) -> Result<(), String> {
        if self.lines.is_empty() {
            self.lines = (0..CONNECTIONS).map(|_| Line::to(self.address())).collect::<Result<_, _>>()?;
        }
        for line in &mut self.lines {
            line.send(b"*1\r\n$5\r\nRESET\r\n")?;
        }
        self.lines[HAND].send(b"*1\r\n$8\r\nFLUSHALL\r\n")?;
        for line in &mut self.lines {
            wanted(&line.reply()?, b"+RESET\r\n")?;
        }
        wanted(&self.lines[HAND].reply()?, b"+OK\r\n")
    }

    /// Its version; the lists of this test were written from 7.0.
    pub fn version(&mut self) -> Result<String, String> {
        self.begin()?;
        let hand = &mut self.lines[HAND];
        hand.send(b"*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n")?;
        let info = String::from_utf8_lossy(&hand.reply()?).into_owned();
        let version = info.lines().find_map(|line| line.strip_prefix("redis_version:"));
        version.map(str::to_owned).ok_or(info)
    }

    /// Forgets the connections, on which replies may be under way: not before the server has done what it was sent, or it
    /// would do it in the middle of the next sequence.
    pub fn hang_up(&mut self) {
        self.lines.drain(..).for_each(Line::end);
    }

    pub fn line(&mut self, number: usize) -> &mut Line {
        &mut self.lines[number]
    }
}

fn wanted(reply: &[u8], wanted: &[u8]) -> Result<(), String> {
    if reply == wanted { Ok(()) } else { Err(format!("a sequence begins with {}", reply.escape_ascii())) }
}

/// One connection.
pub struct Line(BufReader<TcpStream>);

impl Line {
    fn to(address: SocketAddr) -> Result<Self, String> {
        let socket = TcpStream::connect(address).map_err(|error| format!("connecting: {error}"))?;
        let prepared = socket
            .set_nodelay(true)
            .and_then(|()| socket.set_read_timeout(Some(PATIENCE)))
            .and_then(|()| socket.set_write_timeout(Some(PATIENCE)));
        prepared.map_err(|error| format!("preparing: {error}"))?;
        Ok(Self(BufReader::with_capacity(256 * 1024, socket)))
    }

    /// Ends the connection, and waits until the server has, too.
    fn end(mut self) {
        let _ = self.0.get_ref().shutdown(Shutdown::Write);
        let _ = std::io::copy(&mut self.0, &mut std::io::sink());
    }

    pub fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.0.get_mut().write_all(bytes).map_err(|error| format!("sending: {error}"))
    }

    /// Sends `bytes` in as many writes as `cuts` make of them.
    pub fn send_in_pieces(&mut self, bytes: &[u8], cuts: &[usize]) -> Result<(), String> {
        let mut begun = 0;
        for cut in cuts.iter().copied().filter(|cut| *cut < bytes.len()) {
            self.send(&bytes[begun..cut.max(begun)])?;
            begun = cut.max(begun);
        }
        self.send(&bytes[begun..])
    }

    /// One reply, whole, as it came.
    pub fn reply(&mut self) -> Result<Vec<u8>, String> {
        let mut reply = Vec::new();
        let mut wanted = 1;
        while wanted > 0 {
            wanted = wanted - 1 + self.element(&mut reply)?;
        }
        Ok(reply)
    }

    /// One element without those inside it; gives how many these are.
    fn element(&mut self, reply: &mut Vec<u8>) -> Result<usize, String> {
        let begun = reply.len();
        self.0.read_until(b'\n', reply).map_err(|error| format!("reading: {error}"))?;
        let line = &reply[begun..];
        if !line.ends_with(b"\r\n") {
            return Err(format!("the peer closed behind: {}", line.escape_ascii()));
        }
        let count = || {
            let text = str::from_utf8(&line[1..line.len() - 2]).ok();
            let number = text.and_then(|text| text.parse::<i64>().ok());
            number.ok_or_else(|| format!("not a reply: {}", line.escape_ascii()))
        };
        match line[0] {
            b'+' | b'-' | b':' | b'_' => Ok(0),
            b'$' | b'=' => {
                if let Ok(length) = usize::try_from(count()?) {
                    let body = reply.len();
                    reply.resize(body + length + 2, 0);
                    self.0.read_exact(&mut reply[body..]).map_err(|error| format!("reading a bulk: {error}"))?;
                }
                Ok(0)
            }
            b'*' | b'~' => Ok(count()?.max(0) as usize),
            b'%' => Ok(2 * count()?.max(0) as usize),
            _ => Err(format!("not a reply: {}", line.escape_ascii())),
        }
    }
}
