//! What every black-box test needs: a broker process, a small RESP2 client, a directory that goes away, seeded draws.
//!
//! Promises that no process and no directory outlives its test, also when the test panics. Knows the command line and
//! RESP2; must never know a file of the data directory or any library of the broker.

mod broker;
mod client;
mod info;
mod random;
mod scratch;
mod word;

pub use broker::{Broker, Launch, Refusal, until};
pub use client::{Broken, Client, Reply};
pub use info::Info;
pub use random::Random;
pub use scratch::Scratch;
pub use word::Word;
