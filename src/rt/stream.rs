//! Listening sockets and connections, on the reactor of a worker.
//!
//! Promise: reads and writes are tried first and wait only if they must; an end that was asked for is seen by who waits.
//! Must never know what is read or written.

use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::Poll;

use smol::Async;

use super::reactor::{Direction, Readiness, Source};
use super::{sleep_ms, within_ms, worker, yield_now};

/// A listening TCP socket.
pub struct Listener {
    listener: Async<TcpListener>,
    accepted: AtomicUsize,
}

impl Listener {
    /// Takes over a bound and listening socket.
    ///
    /// # Errors
    /// When it cannot be put into non-blocking mode.
    pub fn new(listener: TcpListener) -> io::Result<Self> {
        Ok(Self { listener: Async::new(listener)?, accepted: AtomicUsize::new(0) })
    }

    /// The next connection, given to the workers in turn. May be cancelled.
    ///
    /// # Errors
    /// Whatever the system reports.
    pub async fn accept(&self) -> io::Result<(Stream, SocketAddr)> {
        let (socket, peer) = self.listener.accept().await?;
        let number = self.accepted.fetch_add(1, Ordering::Relaxed);
        Ok((Stream::new(socket.into_inner()?, number)?, peer))
    }
}

/// A TCP connection, watched by the reactor of one worker. Reads and writes are tried first and wait only if they must.
pub struct Stream {
    /// Only handles know it beside the stream, and they do not keep it open.
    socket: Arc<TcpStream>,
    source: Arc<Source>,
    key: usize,
    worker: usize,
    /// The last read took all there was, so waiting comes before reading.
    drained: bool,
}

impl Drop for Stream {
    fn drop(&mut self) {
        worker(self.worker).reactor.remove(&*self.socket, self.key);
    }
}

/// Ends a [`Stream`], or its reading side, from elsewhere.
#[derive(Clone)]
pub struct StreamHandle {
    source: Arc<Source>,
    socket: Weak<TcpStream>,
}

impl StreamHandle {
    /// From now on [`Stream::read`] gives 0, also to who is waiting in it.
    pub fn end_reading(&self) {
        self.source.ask_to_end();
    }

    /// Ends the connection at once: nothing more is read, and what is not sent yet is not sent.
    pub fn hang_up(&self) {
        self.source.ask_to_end();
        if let Some(socket) = self.socket.upgrade() {
            // It may have ended by itself.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

impl Stream {
    fn new(socket: TcpStream, number: usize) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let (source, key) = worker(number).reactor.add(&socket)?;
        Ok(Self { socket: Arc::new(socket), source, key, worker: number, drained: false })
    }

    #[must_use]
    pub fn handle(&self) -> StreamHandle {
        StreamHandle { source: Arc::clone(&self.source), socket: Arc::downgrade(&self.socket) }
    }

    /// The number of the worker that watches it; its task belongs there.
    #[must_use]
    pub fn worker(&self) -> usize {
        self.worker
    }

    /// The address the peer connected to; `None` when the system does not say.
    #[must_use]
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()
    }

    /// The number of its descriptor, to be shown.
    #[must_use]
    pub fn descriptor(&self) -> i32 {
        self.socket.as_raw_fd()
    }

    /// Sends small writes at once.
    ///
    /// # Errors
    /// Whatever the system reports.
    pub fn set_nodelay(&self) -> io::Result<()> {
        self.socket.set_nodelay(true)
    }

    /// Reads what is there, waiting for the first byte; 0 at the end of the stream or once
    /// [`StreamHandle::end_reading`] was called. May be cancelled.
    ///
    /// # Errors
    /// Whatever the system reports.
    pub async fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.drained {
                match poll_fn(|context| self.source.poll(Direction::Read, context)).await {
                    Readiness::Ready => self.drained = false,
                    Readiness::AskedToEnd => return Ok(0),
                }
            } else if self.source.is_asked_to_end() {
                return Ok(0);
            }
            if let Some(read) = self.read_now(into)? {
                return Ok(read);
            }
        }
    }

    fn read_now(&mut self, into: &mut [u8]) -> io::Result<Option<usize>> {
        self.source.expect_edge(Direction::Read);
        match (&*self.socket).read(into) {
            Ok(read) => {
                // Less than there was room for is all there was: what comes later is a new edge.
                self.drained = read < into.len();
                Ok(Some(read))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.drained = true;
                Ok(None)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes all of `bytes`. Cancelled, it may have written a part.
    ///
    /// # Errors
    /// Whatever the system reports.
    pub async fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.source.expect_edge(Direction::Write);
            match (&*self.socket).write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    poll_fn(|context| self.source.poll(Direction::Write, context)).await;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes all of `bytes`. While the peer does not take them, what it sends is read and given to `take`, until that
    /// answers false: a peer that sends everything before it reads anything would otherwise never be served. Cancelled, it
    /// may have written a part.
    ///
    /// # Errors
    /// Whatever the system reports.
    pub async fn write_all_reading(&mut self, mut bytes: &[u8], mut take: impl FnMut(&[u8]) -> bool) -> io::Result<()> {
        let mut scratch = Vec::new();
        let mut reading = true;
        while !bytes.is_empty() {
            self.source.expect_edge(Direction::Write);
            match (&*self.socket).write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    bytes = &bytes[written..];
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            scratch.resize(TAKE_BYTES, 0);
            let readable = reading && (!self.drained || self.readable_or_writable().await == Direction::Read);
            if !reading {
                poll_fn(|context| self.source.poll(Direction::Write, context)).await;
            } else if readable {
                reading = match self.read_now(&mut scratch)? {
                    Some(0) => false,
                    Some(read) => take(&scratch[..read]),
                    None => true,
                } && !self.source.is_asked_to_end();
            }
        }
        Ok(())
    }

    /// Waits for either direction; writing goes first.
    async fn readable_or_writable(&self) -> Direction {
        poll_fn(|context| {
            let ready = |direction| self.source.poll(direction, context).is_ready();
            match () {
                () if ready(Direction::Write) => Poll::Ready(Direction::Write),
                () if ready(Direction::Read) => Poll::Ready(Direction::Read),
                () => Poll::Pending,
            }
        })
        .await
    }

    /// Says that nothing more will be written, then reads and drops what the peer still sends until it closes too, up
    /// to `ms`: closing with unread input would make the system discard replies that are still on their way.
    pub async fn close_gently(mut self, ms: u64) {
        if self.socket.shutdown(Shutdown::Write).is_err() {
            return;
        }
        within_ms(ms, self.read_to_the_end()).await;
    }

    async fn read_to_the_end(&mut self) {
        let mut scratch = vec![0; 16 * 1024];
        loop {
            match self.read_now(&mut scratch) {
                Ok(Some(0)) | Err(_) => return,
                Ok(Some(_)) => yield_now().await,
                Ok(None) => {
                    // Asked to end is no reason here: this is the end. Looked for again in a moment.
                    if poll_fn(|context| self.source.poll(Direction::Read, context)).await == Readiness::AskedToEnd {
                        sleep_ms(CLOSING_LOOK_MS).await;
                    }
                }
            }
        }
    }
}

/// Bytes read at a time while a write waits.
const TAKE_BYTES: usize = 64 * 1024;

/// How often a connection that was asked to end looks whether its peer has closed, in milliseconds.
const CLOSING_LOOK_MS: u64 = 5;
