//! Plays one sequence to both servers and compares what comes back.
//!
//! Promise: stops at the first reply that differs, since the data may differ from there on; waits for keys to lapse by
//! asking, never by the clock. Must never know how a sequence came about.

use std::time::Duration;

use crate::broker::PATIENCE;
use crate::differential::coverage::Coverage;
use crate::differential::differences::{Seen, explain};
use crate::differential::label::{cell, command, gives_past, outcome};
use crate::differential::reply::{Reply, shown};
use crate::differential::same::{Before, NORMALISERS, same};
use crate::differential::sequence::{Request, Sequence, Step};
use crate::differential::side::{CONNECTIONS, HAND, Side};

/// A reply that differs, and nobody said it may.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Which request of how many compared it was.
    pub number: usize,
    pub request: String,
    pub redis: String,
    pub other: String,
    /// What it has in common with others of its kind: the command and both kinds of replies.
    pub class: String,
}

/// Why a sequence ended early.
pub enum Stop {
    Fault(Box<Fault>),
    /// The servers hold different data from here on, on purpose.
    OnPurpose,
    /// The machine was too slow for what it is about.
    Void,
}

type Going = Result<(), Stop>;

/// The two servers.
pub struct Pair {
    pub redis: Side,
    pub other: Side,
    /// Whether differences on purpose are excused.
    pub excusing: bool,
    /// Shards of each database of the other side.
    pub shards: u32,
}

/// What is known while a sequence is played.
struct Play<'a> {
    pair: &'a mut Pair,
    coverage: &'a mut Coverage,
    /// What a transaction of each connection has queued; none outside one.
    queued: [Option<Vec<Request>>; CONNECTIONS],
    /// What a connection watches; which of these keys were absent is known once EXISTS has been asked right behind.
    watched: [Watched; CONNECTIONS],
    before: Before,
    compared: usize,
}

#[derive(Default)]
struct Watched {
    just_now: bool,
    /// Another database was selected since.
    elsewhere: bool,
    keys: Vec<Vec<u8>>,
    absent: Vec<Vec<u8>>,
}

impl Pair {
    /// Plays `sequence`; gives how many replies were compared, and why it ended early.
    pub fn play(&mut self, sequence: &Sequence, coverage: &mut Coverage) -> (usize, Going) {
        let mut play = Play {
            pair: self,
            coverage,
            queued: [None, None, None],
            watched: Default::default(),
            before: Before::default(),
            compared: 0,
        };
        let ended = play.all(sequence);
        let compared = play.compared;
        if ended.is_err() {
            self.redis.hang_up();
            self.other.hang_up();
        }
        (compared, ended)
    }
}

impl Play<'_> {
    fn all(&mut self, sequence: &Sequence) -> Going {
        let begun = (self.pair.redis.begin(), self.pair.other.begin());
        if begun != (Ok(()), Ok(())) {
            return Err(self.fault(&Request::of(["RESET"]), format!("{:?}", begun.0), format!("{:?}", begun.1)));
        }
        sequence.steps.iter().try_for_each(|step| self.step(step))
    }

    fn step(&mut self, step: &Step) -> Going {
        match step {
            Step::Batch { connection, requests, cuts } => self.exchange(*connection, requests, cuts, Self::judge),
            // In a transaction nothing lapses before its end.
            Step::Lapse { connection, .. } if self.queued[*connection].is_some() => Ok(()),
            Step::Lapse { connection, database, key, requests } => {
                if *connection == HAND {
                    self.select(*database)?;
                }
                self.exchange(*connection, requests, &[], Self::judge_lapsing)?;
                self.select(*database)?;
                self.wait_until_lapsed(key)
            }
            Step::Scan { database, options } => {
                self.select(*database)?;
                self.scan(options)
            }
            Step::RandomKey { database } => {
                self.select(*database)?;
                self.random_key()
            }
        }
    }

    /// Sends the same to both, then reads and judges reply by reply.
    fn exchange(
        &mut self,
        connection: usize,
        requests: &[Request],
        cuts: &[usize],
        judge: fn(&mut Self, usize, &Request, &[u8], &[u8]) -> Going,
    ) -> Going {
        let bytes: Vec<u8> = requests.iter().flat_map(Request::bytes).collect();
        let sent = (
            self.pair.redis.line(connection).send_in_pieces(&bytes, cuts),
            self.pair.other.line(connection).send_in_pieces(&bytes, cuts),
        );
        if let ((Err(text), _) | (_, Err(text)), Some(first)) = (sent, requests.first()) {
            return Err(self.fault(first, text.clone(), text));
        }
        for request in requests {
            let (a, b) = self.replies(connection, request)?;
            judge(self, connection, request, &a, &b)?;
        }
        Ok(())
    }

    fn replies(&mut self, connection: usize, request: &Request) -> Result<(Vec<u8>, Vec<u8>), Stop> {
        match (self.pair.redis.line(connection).reply(), self.pair.other.line(connection).reply()) {
            (Ok(a), Ok(b)) => Ok((a, b)),
            (a, b) => {
                let told = |reply: Result<Vec<u8>, String>| {
                    reply.map_or_else(|error| error, |reply| Reply::of(&reply).to_string())
                };
                Err(self.fault(request, told(a), told(b)))
            }
        }
    }

    /// Asks both on the test's own connection; what they answer is not compared.
    fn ask(&mut self, request: &Request) -> Result<(Reply, Reply), Stop> {
        let bytes = request.bytes();
        let sent = (self.pair.redis.line(HAND).send(&bytes), self.pair.other.line(HAND).send(&bytes));
        if let (Err(text), _) | (_, Err(text)) = sent {
            return Err(self.fault(request, text.clone(), text));
        }
        let (a, b) = self.replies(HAND, request)?;
        Ok((Reply::of(&a), Reply::of(&b)))
    }

    fn select(&mut self, database: usize) -> Going {
        let request = Request::of(["SELECT", &database.to_string()]);
        let (a, b) = self.ask(&request)?;
        self.compare(&request, &a, &b)
    }

    /// Judges a reply to a request of a sequence, and what is inside the reply to EXEC.
    fn judge(&mut self, connection: usize, request: &Request, a: &[u8], b: &[u8]) -> Going {
        self.compared += 1;
        let one = Reply::of(a);
        let other = if a == b { one.clone() } else { Reply::of(b) };
        let name = request.capitals(0);
        let queued = self.queued[connection].clone().unwrap_or_default();
        match (name.as_str(), &one, &other) {
            ("EXEC", Reply::Array(ones), Reply::Array(others))
                if ones.len() == others.len() && queued.len() == ones.len() =>
            {
                self.coverage.count(cell(request, &one));
                for (i, request) in queued.iter().enumerate() {
                    self.compare(request, &ones[i], &others[i])?;
                }
            }
            ("EXEC", ..) => self.compare_in(Some(connection), request, &one, &other)?,
            _ => self.compare(request, &one, &other)?,
        }
        self.note_watched(connection, request, &one);
        self.note_transaction(connection, request, &one);
        Ok(())
    }

    fn note_watched(&mut self, connection: usize, request: &Request, reply: &Reply) {
        let in_transaction = self.queued[connection].is_some();
        let watched = &mut self.watched[connection];
        match (command(request), reply) {
            ("watch", Reply::Simple(_)) if !in_transaction => {
                watched.just_now = true;
                watched.keys.extend_from_slice(&request.0[1..]);
            }
            ("exists", Reply::Integer(number)) if watched.just_now && request.0.len() == 2 => {
                if *number == 0 && watched.keys.iter().any(|key| key == request.word(1)) {
                    watched.absent.push(request.word(1).to_vec());
                }
            }
            // Without MULTI these are errors, and what is watched stays watched.
            ("exec" | "discard", Reply::Error(text)) if text.starts_with(b"ERR ") => watched.just_now = false,
            ("exec" | "discard", _) | ("reset", Reply::Simple(_)) => *watched = Watched::default(),
            ("select", Reply::Simple(_)) => watched.elsewhere = !watched.keys.is_empty(),
            ("unwatch", _) if !in_transaction => *watched = Watched::default(),
            _ => watched.just_now = false,
        }
    }

    fn note_transaction(&mut self, connection: usize, request: &Request, reply: &Reply) {
        let (name, queued) = (request.capitals(0), &mut self.queued[connection]);
        if *reply == Reply::Simple(b"QUEUED".to_vec()) {
            if let Some(queued) = queued {
                queued.push(request.clone());
            }
        } else if name == "MULTI" && *reply == Reply::Simple(b"OK".to_vec()) {
            *queued = Some(Vec::new());
        } else if name == "EXEC" || (["DISCARD", "RESET"].contains(&name.as_str()) && request.0.len() == 1) {
            // With arguments, too, EXEC ends a transaction; the others stay without effect.
            *queued = None;
        }
    }

    /// As `judge`, but a key that lapsed before it was to be watched makes the sequence worthless.
    fn judge_lapsing(&mut self, connection: usize, request: &Request, a: &[u8], b: &[u8]) -> Going {
        let gone = |reply: &[u8]| Reply::of(reply).integer().is_some_and(|left| left <= 0);
        if command(request) == "pttl" && (gone(a) || gone(b)) {
            return Err(Stop::Void);
        }
        self.judge(connection, request, a, b)
    }

    fn compare(&mut self, request: &Request, one: &Reply, other: &Reply) -> Going {
        self.compare_in(None, request, one, other)
    }

    /// The same; what the connection has queued and watches may explain a difference.
    fn compare_in(&mut self, connection: Option<usize>, request: &Request, one: &Reply, other: &Reply) -> Going {
        self.coverage.count(cell(request, one));
        let (same, normaliser) = same(request, one, other, &self.before);
        self.before.past += usize::from(gives_past(request));
        if let Some(name) = normaliser.filter(|_| same) {
            self.coverage.need(name);
        }
        if same {
            return Ok(());
        }
        let queued = connection.and_then(|connection| self.queued[connection].as_deref()).unwrap_or_default();
        let watched = connection.map(|connection| &self.watched[connection]);
        let seen = Seen {
            request,
            redis: one,
            hearth: other,
            before: self.before,
            shards: self.pair.shards,
            queued,
            watched_absent: watched.map_or(&[], |watched| &watched.absent),
            watched_elsewhere: watched.is_some_and(|watched| watched.elsewhere),
        };
        match explain(&seen).filter(|_| self.pair.excusing) {
            Some(difference) => {
                self.coverage.need(difference.name);
                if difference.ends { Err(Stop::OnPurpose) } else { Ok(()) }
            }
            None => {
                let command = command(request);
                let (redis, hearth) = (outcome(command, one), outcome(command, other));
                let is_there = !hearth.starts_with("-ERR unknown") || redis.starts_with("-ERR unknown");
                let class =
                    if is_there { format!("{command}: {redis} / {hearth}") } else { format!("{command}: not there") };
                Err(self.fault_of_class(request, one.to_string(), other.to_string(), class))
            }
        }
    }

    fn fault(&self, request: &Request, redis: String, other: String) -> Stop {
        // What is quoted differs from time to time.
        let kind = |text: &str| text.split('\'').next().unwrap_or_default().to_owned();
        let class = format!("{}: {} / {}", command(request), kind(&redis), kind(&other));
        self.fault_of_class(request, redis, other, class)
    }

    fn fault_of_class(&self, request: &Request, redis: String, other: String, class: String) -> Stop {
        Stop::Fault(Box::new(Fault { number: self.compared, request: request.to_string(), redis, other, class }))
    }

    /// Asks until the key is gone from both, or is not about to go.
    fn wait_until_lapsed(&mut self, key: &[u8]) -> Going {
        const PAUSE: Duration = Duration::from_micros(500);
        let request = Request::of([b"PTTL", key]);
        let soon = |reply: &Reply| reply.integer().is_some_and(|left| (0..=1000).contains(&left));
        for _ in 0..PATIENCE.as_micros() / PAUSE.as_micros() {
            let (a, b) = self.ask(&request)?;
            if !soon(&a) && !soon(&b) {
                // It may have gone before it was asked for the first time.
                self.before.lapsed += usize::from(b == Reply::Integer(-2));
                return self.compare(&request, &a, &b);
            }
            std::thread::sleep(PAUSE);
        }
        Err(self.fault(&request, "lapses".to_owned(), format!("one of the two never lets {} lapse", shown(key))))
    }

    /// The keys of a whole SCAN.
    fn scan(&mut self, options: &[Vec<u8>]) -> Going {
        let of = |cursor: &[u8]| Request([vec![b"SCAN".to_vec(), cursor.to_vec()], options.to_vec()].concat());
        let mut cursors = [b"0".to_vec(), b"0".to_vec()];
        let mut found = [Vec::new(), Vec::new()];
        let mut done = [false, false];
        // More pages than keys there can be.
        for _ in 0..1000 {
            let requests = [of(&cursors[0]), of(&cursors[1])];
            for side in [0, 1] {
                if done[side] {
                    continue;
                }
                let reply = self.page(side, &requests[side])?;
                let Some([Reply::Bulk(cursor), Reply::Array(keys)]) = reply.parts() else {
                    let (redis, other) = if side == 0 {
                        (reply.to_string(), "?".to_owned())
                    } else {
                        ("a page".to_owned(), reply.to_string())
                    };
                    return Err(self.fault(&requests[side], redis, other));
                };
                found[side].extend(keys.iter().cloned());
                done[side] = cursor == b"0";
                cursors[side].clone_from(cursor);
            }
            if done == [true, true] {
                let [mut one, mut other] = found;
                // A key may come twice.
                [&mut one, &mut other].into_iter().for_each(|keys| {
                    keys.sort();
                    keys.dedup();
                });
                self.compared += 1;
                return self.compare(&of(b"0 to the end"), &Reply::Array(one), &Reply::Array(other));
            }
        }
        Err(self.fault(&of(b"0"), format!("ends: {}", done[0]), format!("ends: {}", done[1])))
    }

    fn page(&mut self, side: usize, request: &Request) -> Result<Reply, Stop> {
        let line = if side == 0 { self.pair.redis.line(HAND) } else { self.pair.other.line(HAND) };
        let reply = line.send(&request.bytes()).and_then(|()| line.reply());
        match reply {
            Ok(reply) => Ok(Reply::of(&reply)),
            Err(text) => Err(self.fault(request, text.clone(), text)),
        }
    }

    /// RANDOMKEY must be a key of its own side.
    fn random_key(&mut self) -> Going {
        let request = Request::of(["RANDOMKEY"]);
        let (a, b) = self.ask(&request)?;
        self.compared += 1;
        self.compare(&request, &a, &b)?;
        for (side, key) in [(0, a), (1, b)] {
            if let Reply::Bulk(key) = key {
                let exists = Request::of([b"EXISTS", key.as_slice()]);
                let reply = self.page(side, &exists)?;
                if reply != Reply::Integer(1) {
                    return Err(self.fault(&exists, "the key of RANDOMKEY is there".to_owned(), reply.to_string()));
                }
            }
        }
        Ok(())
    }
}

/// The names of everything that may be needed to call two replies the same.
pub fn normaliser_names() -> impl Iterator<Item = &'static str> {
    NORMALISERS.iter().map(|normaliser| normaliser.name)
}
