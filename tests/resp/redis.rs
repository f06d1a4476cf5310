//! redis-server itself, to record from and to compare with.
//!
//! Promise: each is on a free port of its own, holds nothing, writes nothing, and is gone when its value is dropped. Must
//! never know what it is asked.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use crate::broker::eventually;
use crate::client::Client;

/// A redis-server that holds nothing and writes nothing.
pub struct Redis {
    child: Child,
    pub address: SocketAddr,
}

impl Redis {
    pub fn start() -> Self {
        loop {
            let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
            let child = Command::new("/usr/bin/redis-server")
                .args(["--port", &free.port().to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            let redis = Self { child, address: free };
            eventually("redis-server listens", || TcpStream::connect(free).is_ok());
            // Between finding the port and listening on it, another test may have taken it.
            if Client::connect(free).info("process_id") == u64::from(redis.child.id()) {
                return redis;
            }
        }
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
