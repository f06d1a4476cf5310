//! The functions behind the command table, one file per family.
//!
//! Promise: each reads its arguments, asks the core, and writes one reply. Must never decide what the core decides.
//! How to write one is told in `call.rs`.

pub mod client;
pub mod cluster;
pub mod command;
pub mod config;
pub mod connection;
pub mod counter;
pub mod describe;
pub mod expire;
pub mod expiry;
pub mod flush;
pub mod hearth;
pub mod help;
pub mod info;
pub mod key;
pub mod multi;
pub mod object;
pub mod range;
pub mod rename;
pub mod scan;
pub mod script;
pub mod server;
pub mod set;
pub mod slowlog;
pub mod string;
pub mod transaction;
