//! The same bytes, cut in every place, each piece read before the next one is sent.
//!
//! Promise: a cut is real: the broker counts what it reads, and the next piece waits for the count. The draws of long
//! inputs come from `HEARTH_SEED`, which is printed. Must never know what is sent.

use std::ops::Range;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::broker::{OwnProcess, eventually};
use crate::client::{Client, request};
use crate::script::{LONG_BYTES, masked, probe};

/// A broker of its own, and a connection that sees how much of all others it has read.
pub struct Cutting {
    broker: OwnProcess,
    hand: Client,
    /// Bytes the hand has sent.
    asked: u64,
}

impl Cutting {
    pub fn new() -> Self {
        Self::of(OwnProcess::start(&[]))
    }

    pub fn of(broker: OwnProcess) -> Self {
        let hand = broker.client();
        Self { broker, hand, asked: 0 }
    }

    pub fn ask(&mut self, arguments: &[&[u8]]) -> Vec<u8> {
        self.asked += request(arguments).len() as u64;
        self.hand.ask(arguments)
    }

    /// Bytes read of all connections but the hand.
    fn read_of_others(&mut self) -> u64 {
        self.asked += request(["INFO", "stats"]).len() as u64;
        let stats = String::from_utf8(self.hand.ask(["INFO", "stats"])).unwrap();
        let read = stats.lines().find_map(|line| line.strip_prefix("total_net_input_bytes:")).unwrap();
        read.parse::<u64>().unwrap() - self.asked
    }

    /// What comes back on a new connection when `pieces` are sent, each once the one before has been read; behind the last
    /// goes a question that shows whether the connection stays, if `probed`, else the end of the stream.
    fn converse<'a>(&mut self, pieces: impl Iterator<Item = &'a [u8]>, probed: bool) -> Vec<u8> {
        let (question, answer) = probe();
        let mut client = self.broker.client();
        let mut wanted = self.read_of_others();
        let mut last: &[u8] = b"";
        for piece in pieces {
            client.try_send(last);
            wanted += last.len() as u64;
            // Who has been told goodbye is read no more.
            eventually("a piece is read", || self.read_of_others() == wanted || has_ended(&client));
            last = piece;
        }
        client.try_send(&if probed { [last, &question].concat() } else { last.to_vec() });
        if !probed {
            return masked(client.until(b"never"));
        }
        masked(client.until(&answer))
    }

    /// Sends `sent` whole, in two pieces at every place, and byte by byte; a long one near its headers and its ends, at places
    /// that are drawn, and in pieces of drawn sizes. Each time, `expected` must come back. `clean` comes before each.
    ///
    /// # Errors
    /// What came back instead, and how it was cut.
    pub fn check(
        &mut self,
        name: &str,
        sent: &[u8],
        expected: &[u8],
        probed: bool,
        clean: impl Fn(&mut Self),
    ) -> Result<(), String> {
        let mut run = |sizes: &[usize]| {
            clean(self);
            let reply = self.converse(pieces(sent, sizes), probed);
            if reply == expected {
                return Ok(());
            }
            let (got, wanted) = (reply.escape_ascii(), expected.escape_ascii());
            Err(format!("{name}, in pieces of {sizes:?}:\n     got {got}\n  wanted {wanted}"))
        };
        let mut draws = Draws::new();
        run(&[sent.len()])?;
        for cut in cuts(sent, &mut draws) {
            run(&[cut, sent.len()])?;
        }
        run(&[if sent.len() <= LONG_BYTES { 1 } else { 997 }])?;
        for _ in 0..3 {
            let longest = 2 + sent.len() / 8;
            run(&[1 + draws.below(longest), 1 + draws.below(longest), 1 + draws.below(longest)])?;
        }
        Ok(())
    }
}

fn has_ended(client: &Client) -> bool {
    let socket = client.sender();
    let mut poll_on = [PollFd::new(&socket, PollFlags::RDHUP)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut poll_on, Some(&at_once)).unwrap() > 0
}

fn pieces<'a>(mut rest: &'a [u8], sizes: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut sizes = sizes.iter().cycle();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, after) = rest.split_at((*sizes.next()?).clamp(1, rest.len()));
        rest = after;
        Some(piece)
    })
}

/// Where `sent` is cut in two.
fn cuts(sent: &[u8], draws: &mut Draws) -> Vec<usize> {
    if sent.len() <= LONG_BYTES {
        return (1..sent.len()).collect();
    }
    let near = |at: usize| at.saturating_sub(3)..at + 4;
    let headers = (0..sent.len()).filter(|at| matches!(sent[*at], b'*' | b'$' | b'\r' | b'\n')).take(20);
    let parts = [0..48, near(64 * 1024), near(sent.len())].into_iter().chain(headers.map(near));
    let mut cuts: Vec<usize> = parts.flat_map(|part: Range<usize>| part).collect();
    cuts.extend((0..10).map(|_| draws.below(sent.len())));
    cuts.retain(|cut| (1..sent.len()).contains(cut));
    cuts.sort_unstable();
    cuts.dedup();
    cuts
}

/// SplitMix64.
pub struct Draws(u64);

impl Draws {
    pub fn new() -> Self {
        let seed = std::env::var("HEARTH_SEED").map_or(20_261_130, |seed| seed.parse().unwrap());
        println!("HEARTH_SEED={seed}");
        Self(seed)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}
