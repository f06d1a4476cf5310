//! Hearth: a durable cache that speaks the Redis protocol and is a log.
//!
//! Reading order: `core` (what it is), `frontends` (who talks to it), `cluster` (who else there is), `server` (the
//! composition root, the only file that names all three). `ARCHITECTURE.md` has the map.

#[cfg(not(target_os = "linux"))]
compile_error!("Hearth runs on Linux only: its flush and read paths rest on Linux's guarantees");

pub mod cli;
pub mod config;
pub mod server;

pub mod cluster;
pub mod core;
pub mod frontends;

pub mod descriptors;
pub mod memory;
pub mod metrics;
pub mod password;
pub mod rt;
pub mod teeth;
