//! Redis's wire format, held over real sockets: the bytes of every reply, pipelines, and the bounds of a connection.
//!
//! Reading order: `broker` (starts one), `client` (a socket and replies as bytes), `script` (requests as text, replies
//! recorded from redis-server), `table` (the scripts), then the promises: `wire`, `describe`, `pipelines`, `keys`, `floats`,
//! `limits`, `loading`, `clients`, `abuse` (which has an order of its own), `scripts` (Lua scripts that are known, beside
//! redis-server), and `differential`, which asks redis-server and Hearth the same drawn questions.
//!
//! `HEARTH_RECORD=1 cargo test --test resp record` writes `recorded.txt` and `floats.txt` anew from `/usr/bin/redis-server`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod broker;
mod client;
#[path = "../support/random.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod random;
mod redis;
mod script;
mod table;

mod abuse;
mod clients;
mod databases;
mod describe;
mod differential;
mod floats;
mod keys;
mod limits;
mod loading;
mod pipelines;
mod scripts;
mod transactions;
mod wire;
