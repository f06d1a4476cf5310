//! The front ends: each translates one protocol into the core's words and decides nothing.
//!
//! Reading order: `front_end` (the plug), `listener` (accepts and hands over), then one folder per protocol.
//!
//! When you add a front end: a folder, one line here, one line in `server.rs` where it is given its address.

pub mod front_end;
pub mod listener;

pub mod resp;
