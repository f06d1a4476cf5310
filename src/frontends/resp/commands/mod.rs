//! The functions behind the command table, by group.
//!
//! Promise: each reads its arguments, asks the core, and writes one reply. Must never decide what the core decides.

pub mod connection;
pub mod info;
pub mod key;
pub mod server;
pub mod string;
