//! Writers, and the moment at which something happens to them.
//!
//! A moment is a count of acknowledgements, never a time. Its three phases decide what an acknowledgement is worth:
//!
//! | phase | set | an acknowledgement read now |
//! |---|---|---|
//! | before | - | must survive |
//! | announced | before the deed is begun | unknown: it may have been made before or after |
//! | done | after the deed has returned | of a write that was sent now too: nothing can have flushed it |
//!
//! A writer reads the phase after the reply and before the next send, so a doubt always falls on the later phase.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::oracle::{Line, Mix};
use crate::support::{Broken, Client, Random, Reply};

pub const PIPELINE: u64 = 16;
const PATIENCE: Duration = Duration::from_secs(60);

const BEFORE: u8 = 0;
const ANNOUNCED: u8 = 1;
const DONE: u8 = 2;

/// How a writer sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// One at a time, or a pipeline of 16 and then its replies.
    Bursts,
    /// Never fewer than 8 and never more than 16 without an answer.
    Steady,
}

/// What all writers of a load share.
struct Moment {
    phase: AtomicU8,
    progress: Mutex<Progress>,
    moved: Condvar,
}

#[derive(Default)]
struct Progress {
    acknowledged: u64,
    ended: usize,
}

/// Writers at work.
pub struct Load {
    moment: Arc<Moment>,
    writers: Vec<JoinHandle<(Line, Outcome)>>,
}

/// Why a writer stopped.
#[derive(Debug)]
pub enum Stop {
    Broken(Broken),
    /// An error reply, or one that cannot be right.
    Reply(Reply),
}

/// What one writer saw.
pub struct Outcome {
    pub stop: Stop,
    /// The stop came before the moment was announced: nothing had happened yet.
    pub early: bool,
    pub acknowledged: u64,
    /// Acknowledged between the announcement and the end.
    pub late: u64,
    /// Acknowledged although sent when it could not be flushed any more.
    pub lies: u64,
}

struct Writer {
    client: Client,
    line: Line,
    round: u32,
    random: Random,
    moment: Arc<Moment>,
    acknowledged: u64,
    late: u64,
    lies: u64,
    /// For each write without an answer: was it sent after the deed?
    sent: std::collections::VecDeque<bool>,
    stop: Option<(Stop, bool)>,
}

impl Load {
    /// One writer for each line, each on its own connection.
    pub fn start(
        lines: Vec<Line>,
        round: u32,
        manner: Manner,
        random: &mut Random,
        connect: impl Fn() -> Client,
    ) -> Self {
        let moment = Moment { phase: AtomicU8::new(BEFORE), progress: Mutex::default(), moved: Condvar::new() };
        let moment = Arc::new(moment);
        let writers = lines
            .into_iter()
            .map(|line| Writer {
                client: connect(),
                line,
                round,
                random: random.fork(),
                moment: Arc::clone(&moment),
                acknowledged: 0,
                late: 0,
                lies: 0,
                sent: std::collections::VecDeque::new(),
                stop: None,
            })
            .collect::<Vec<_>>();
        let writers = writers.into_iter().map(|writer| thread::spawn(move || writer.run(manner))).collect();
        Self { moment, writers }
    }

    /// Waits until so many writes were acknowledged in all.
    pub fn wait_for(&self, acknowledgements: u64) {
        let mut progress = self.moment.progress.lock().expect("no panic under this lock");
        while progress.acknowledged < acknowledgements && progress.ended < self.writers.len() {
            let before = progress.acknowledged;
            let (now, waited) = self.moment.moved.wait_timeout(progress, PATIENCE).expect("no panic under this lock");
            progress = now;
            let stuck = waited.timed_out() && progress.acknowledged == before;
            assert!(!stuck, "{before} writes acknowledged and none for {PATIENCE:?}");
        }
    }

    /// From here on an acknowledgement promises nothing.
    pub fn announce(&self) {
        self.moment.phase.store(ANNOUNCED, Ordering::SeqCst);
    }

    /// From here on an acknowledgement of a new write is a lie.
    pub fn done(&self) {
        self.moment.phase.store(DONE, Ordering::SeqCst);
    }

    /// Waits for the writers; they end with their connections.
    pub fn join(self) -> (Vec<Line>, Vec<Outcome>) {
        self.writers.into_iter().map(|writer| writer.join().expect("a writer panicked")).unzip()
    }
}

impl Writer {
    /// Closes its connection when it ends: a broker that drains waits for that.
    fn run(mut self, manner: Manner) -> (Line, Outcome) {
        while self.stop.is_none() {
            match manner {
                Manner::Bursts => {
                    let depth = if self.random.one_in(3) { PIPELINE } else { 1 };
                    self.send(depth, Mix::SetsAndDels);
                    self.read(depth);
                }
                Manner::Steady => {
                    let room = PIPELINE - self.sent.len() as u64;
                    self.send(room, Mix::SetsOnly);
                    self.read(PIPELINE / 2);
                }
            }
        }
        let mut progress = self.moment.progress.lock().expect("no panic under this lock");
        progress.ended += 1;
        self.moment.moved.notify_all();
        drop(progress);
        self.into_parts()
    }

    fn phase(&self) -> u8 {
        self.moment.phase.load(Ordering::SeqCst)
    }

    fn stop(&mut self, why: Stop) {
        let early = self.phase() == BEFORE;
        // The first reason stands: after a failed send the replies already on their way are still read.
        self.stop.get_or_insert((why, early));
    }

    fn send(&mut self, count: u64, mix: Mix) {
        let after_the_deed = self.phase() == DONE;
        for _ in 0..count {
            let write = self.line.next(self.round, mix, &mut self.random);
            let key = self.line.key_name(write.key);
            match write.value {
                Some(stamp) => self.client.queue(&[b"SET", &key, &stamp.bytes()]),
                None => self.client.queue(&[b"DEL", &key]),
            }
            self.sent.push_back(after_the_deed);
        }
        if let Err(broken) = self.client.flush() {
            self.stop(Stop::Broken(broken));
        }
    }

    fn read(&mut self, count: u64) {
        for _ in 0..count {
            match self.client.read() {
                Ok(reply) => {
                    if !self.judge(reply) {
                        return;
                    }
                }
                Err(broken) => return self.stop(Stop::Broken(broken)),
            }
        }
    }

    /// False ends the reading.
    fn judge(&mut self, reply: Reply) -> bool {
        let after_the_deed = self.sent.pop_front().expect("a reply to something sent");
        if self.phase() == BEFORE {
            if reply != self.line.expected_reply() {
                self.stop(Stop::Reply(reply));
                return false;
            }
            self.line.acknowledge();
            self.acknowledged += 1;
            self.moment.progress.lock().expect("no panic under this lock").acknowledged += 1;
            self.moment.moved.notify_all();
            return true;
        }
        // A DEL that finds nothing writes nothing, so `:0` is no promise.
        let promise = reply == Reply::Simple(b"OK".to_vec()) || reply == Reply::Integer(1);
        if !promise && reply != Reply::Integer(0) {
            self.stop(Stop::Reply(reply));
            return false;
        }
        self.late += 1;
        self.lies += u64::from(promise && after_the_deed);
        true
    }

    fn into_parts(self) -> (Line, Outcome) {
        let (stop, early) = self.stop.expect("a writer runs until it stops");
        let Self { line, acknowledged, late, lies, .. } = self;
        (line, Outcome { stop, early, acknowledged, late, lies })
    }
}
