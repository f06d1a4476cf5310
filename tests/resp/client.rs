//! A client that hides nothing: it sends bytes and gives replies as the bytes they came in.
//!
//! Promise: each small write is a packet of its own; waiting for what never comes is a failure, not a hang.
//! Must never know which server it talks to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use crate::broker::PATIENCE;

/// One connection.
pub struct Client {
    socket: BufReader<TcpStream>,
}

/// `arguments` as an array of bulks.
pub fn request<A: AsRef<[u8]>>(arguments: impl IntoIterator<Item = A, IntoIter: ExactSizeIterator>) -> Vec<u8> {
    let arguments = arguments.into_iter();
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        bytes.extend(bulk(argument.as_ref()));
    }
    bytes
}

/// `value` as a bulk.
pub fn bulk(value: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
}

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).unwrap())
    }

    /// One whose system takes little for it while it does not read.
    pub fn connect_narrow(address: SocketAddr) -> Self {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.set_recv_buffer_size(64 * 1024).unwrap();
        socket.connect(&address.into()).unwrap();
        Self::over(socket.into())
    }

    fn over(socket: TcpStream) -> Self {
        socket.set_nodelay(true).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        Self { socket: BufReader::with_capacity(256 * 1024, socket) }
    }

    /// A second hand on the same socket, to send with while this one reads.
    pub fn sender(&self) -> TcpStream {
        self.socket.get_ref().try_clone().unwrap()
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.socket.get_mut().write_all(bytes).unwrap();
    }

    /// Sends to a peer that may have closed already.
    pub fn try_send(&mut self, bytes: &[u8]) {
        let _ = self.socket.get_mut().write_all(bytes);
    }

    /// Says that nothing more will be sent.
    pub fn end_sending(&mut self) {
        self.socket.get_mut().shutdown(Shutdown::Write).unwrap();
    }

    /// One reply, whole.
    pub fn reply(&mut self) -> Vec<u8> {
        let mut reply = Vec::new();
        self.read_reply(&mut reply);
        reply
    }

    fn read_reply(&mut self, reply: &mut Vec<u8>) {
        let start = reply.len();
        self.socket.read_until(b'\n', reply).unwrap();
        let line = reply[start..].to_vec();
        assert!(line.ends_with(b"\r\n"), "the peer closed in mid-reply: {}", line.escape_ascii());
        let number = || str::from_utf8(&line[1..line.len() - 2]).unwrap().parse::<i64>().unwrap();
        let nested = match line[0] {
            b'+' | b'-' | b':' | b'_' => 0,
            b'$' | b'=' => {
                let length = number();
                if length >= 0 {
                    let body = reply.len();
                    reply.resize(body + length as usize + 2, 0);
                    self.socket.read_exact(&mut reply[body..]).unwrap();
                }
                0
            }
            b'*' | b'~' => number(),
            b'%' => 2 * number(),
            _ => panic!("not a reply: {}", line.escape_ascii()),
        };
        for _ in 0..nested {
            self.read_reply(reply);
        }
    }

    /// Reads exactly as many bytes as `expected` has and compares them.
    pub fn expect(&mut self, expected: &[u8]) {
        let mut read = vec![0; expected.len()];
        self.socket.read_exact(&mut read).unwrap();
        let at = read.iter().zip(expected).position(|(a, b)| a != b);
        if let Some(at) = at {
            let part = |bytes: &[u8]| bytes[at..bytes.len().min(at + 60)].escape_ascii().to_string();
            panic!("at byte {at}: got {:?}, expected {:?}", part(&read), part(expected));
        }
    }

    /// Everything until the peer closes.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        self.socket.read_to_end(&mut rest).unwrap();
        rest
    }

    /// Everything until `end` has come or the peer closes.
    pub fn until(&mut self, end: &[u8]) -> Vec<u8> {
        let mut read = Vec::new();
        while !read.ends_with(end) {
            match self.socket.fill_buf() {
                Ok([]) => break,
                // Whoever closes while we still send may reset the connection.
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
                Ok(bytes) => {
                    let count = bytes.len();
                    read.extend_from_slice(bytes);
                    self.socket.consume(count);
                }
                // A failure that the caller sees in what it compares.
                Err(error) => {
                    read.extend_from_slice(format!("<{error}>").as_bytes());
                    break;
                }
            }
        }
        read
    }

    /// Sends a request and gives its reply.
    pub fn ask<A: AsRef<[u8]>>(
        &mut self,
        arguments: impl IntoIterator<Item = A, IntoIter: ExactSizeIterator>,
    ) -> Vec<u8> {
        self.send(&request(arguments));
        self.reply()
    }

    /// A field of INFO.
    pub fn info(&mut self, field: &str) -> u64 {
        let reply = String::from_utf8(self.ask(["INFO"])).unwrap();
        let value = reply.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        value.unwrap_or_else(|| panic!("INFO has no {field}")).parse().unwrap()
    }
}
