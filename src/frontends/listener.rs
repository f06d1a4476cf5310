//! The listener: binds, accepts, bounds the number of clients, and hands each connection to its front end.
//!
//! Promise: running out of descriptors slows accepting down and ends nothing; a client over the bound is told so.
//! Must never know a protocol.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::core::api::{Cache, Caches};
use crate::frontends::front_end::{FrontEnd, Session, TurnedAway};
use crate::metrics::Metrics;
use crate::rt::{Listener, Stream, StreamHandle, TaskGroup, sleep_ms};

/// Connections the system queues before they are accepted.
const BACKLOG: i32 = 1024;
/// How long accepting pauses after the process ran out of descriptors, in milliseconds.
const OUT_OF_DESCRIPTORS_PAUSE_MS: u64 = 100;

/// Binds a listening socket. The address may be taken over from a process that has just ended.
///
/// # Errors
/// Whatever the system reports, `AddrInUse` above all.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    use socket2::{Domain, Protocol, Socket, Type};
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// What every listener of a broker shares.
pub struct Host {
    pub cache: Cache,
    pub caches: Caches,
    pub metrics: Arc<Metrics>,
    max_clients: usize,
    /// Peers that may be in the middle of being turned away; more are just closed.
    max_turned_away: usize,
    closing: Arc<AtomicBool>,
    next_id: AtomicU64,
    connections: Mutex<HashMap<u64, StreamHandle>>,
    serving: TaskGroup,
    turning_away: TaskGroup,
}

impl Host {
    #[must_use]
    pub fn new(cache: Cache, caches: Caches, metrics: Arc<Metrics>, max_turned_away: usize) -> Self {
        Self {
            cache,
            caches,
            max_clients: metrics.facts.max_clients,
            metrics,
            max_turned_away,
            closing: Arc::default(),
            next_id: AtomicU64::new(1),
            connections: Mutex::default(),
            serving: TaskGroup::default(),
            turning_away: TaskGroup::default(),
        }
    }

    /// Connections being served.
    #[must_use]
    pub fn clients(&self) -> usize {
        self.serving.live()
    }

    /// Lets every connection answer what it has read and end, and waits until all have.
    pub async fn drain(&self) {
        self.closing.store(true, Ordering::Release);
        let handles: Vec<StreamHandle> = self.connections().values().cloned().collect();
        handles.iter().for_each(StreamHandle::end_reading);
        self.serving.wait_empty().await;
    }

    fn connections(&self) -> std::sync::MutexGuard<'_, HashMap<u64, StreamHandle>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admit(self: &Arc<Self>, front_end: &Arc<dyn FrontEnd>, stream: Stream, peer: SocketAddr) {
        let why = if !is_loopback(peer.ip()) && !front_end.authenticates() {
            Some(TurnedAway::Protected)
        } else if self.clients() >= self.max_clients {
            Some(TurnedAway::TooManyClients)
        } else {
            None
        };
        if let Some(why) = why {
            self.metrics.rejected_connections.fetch_add(1, Ordering::Relaxed);
            if self.turning_away.live() < self.max_turned_away {
                self.turning_away.spawn_on(stream.worker(), front_end.turn_away(stream, why));
            }
            return;
        }
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let handle = stream.handle();
        self.connections().insert(id, handle.clone());
        // Looked at after the handle is in place: whoever drains now will end it.
        if self.closing.load(Ordering::Acquire) {
            handle.end_reading();
        }
        self.metrics.total_connections.fetch_add(1, Ordering::Relaxed);
        self.metrics.clients.fetch_add(1, Ordering::Relaxed);
        let session = Session {
            id,
            peer,
            cache: self.cache.clone(),
            caches: self.caches.clone(),
            metrics: Arc::clone(&self.metrics),
            closing: Arc::clone(&self.closing),
        };
        let worker = stream.worker();
        let served = front_end.serve(stream, session);
        let leaving = Leaving { host: Arc::clone(self), id };
        self.serving.spawn_on(worker, async move {
            let _leaving = leaving;
            served.await;
        });
    }
}

/// Takes a connection off the books when its task ends, however it ends.
struct Leaving {
    host: Arc<Host>,
    id: u64,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.host.connections().remove(&self.id);
        self.host.metrics.clients.fetch_sub(1, Ordering::Relaxed);
    }
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Accepts connections for ever; dropping this future closes the address.
pub async fn accept(listener: Listener, front_end: Arc<dyn FrontEnd>, host: Arc<Host>) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // A reply is one write: waiting to fill a packet would only delay it.
                if stream.set_nodelay().is_ok() {
                    host.admit(&front_end, stream, peer);
                }
            }
            Err(error) if is_of_the_peer(&error) => {}
            Err(error) => {
                tracing::warn!(%error, "accepting is paused: no new connection can be taken at the moment");
                sleep_ms(OUT_OF_DESCRIPTORS_PAUSE_MS).await;
            }
        }
    }
}

/// The peer gave up before it was accepted; the next one may be tried at once.
fn is_of_the_peer(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_loopback() {
        for address in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            assert!(is_loopback(address.parse().unwrap()), "{address}");
        }
        for address in ["10.0.0.1", "0.0.0.0", "::", "fe80::1", "::ffff:10.0.0.1"] {
            assert!(!is_loopback(address.parse().unwrap()), "{address}");
        }
    }
}
