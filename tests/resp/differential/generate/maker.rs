//! Makes one sequence: what the generators of commands say is put down here, with the keys it is about.
//!
//! Promise: at most 20 keys; everything comes from the dice. Must never know what a command answers.

use crate::differential::dice::Dice;
use crate::differential::generate::words;
use crate::differential::sequence::{Request, Step};

/// What a key is brought to before a command is tried on it, so that rare replies are as frequent as others.
#[derive(Clone, Copy)]
pub enum State {
    /// Left as it is.
    Any,
    Absent,
    Text,
    Integer,
    Float,
    Empty,
    /// With a time to live.
    Lasting,
    /// With an expiry at a certain time.
    Dated,
}

/// Something said on a connection, or a step of another kind.
pub enum Piece {
    Said(usize, Request),
    Step(Step),
}

pub struct Maker {
    pub dice: Dice,
    pub keys: Vec<Vec<u8>>,
    pub pieces: Vec<Piece>,
    /// The key drawn last.
    last: Vec<u8>,
    /// The connection that is spoken on.
    pub connection: usize,
    /// Whether what is said is queued: no step that waits makes sense then.
    pub in_transaction: bool,
    /// The database that each connection is most likely in.
    pub databases: [usize; 2],
}

/// Says a request on the maker's connection; the words may be text or bytes.
macro_rules! say {
    ($maker:expr, $($word:expr),+ $(,)?) => {{
        let words: Vec<Vec<u8>> = vec![$(AsRef::<[u8]>::as_ref(&$word).to_vec()),+];
        $maker.say(words)
    }};
}
pub(crate) use say;

/// Says a request of texts as it is.
macro_rules! plainly {
    ($maker:expr, $words:expr $(,)?) => {{
        let words: &[&str] = $words;
        let request = $crate::differential::sequence::Request::of(words);
        let connection = $maker.connection;
        $maker.pieces.push($crate::differential::generate::maker::Piece::Said(connection, request))
    }};
}
pub(crate) use plainly;

impl Maker {
    pub fn new(mut dice: Dice) -> Self {
        let keys = words::keys(&mut dice);
        Self {
            dice,
            keys,
            pieces: Vec::new(),
            last: Vec::new(),
            connection: 0,
            in_transaction: false,
            databases: [0, 0],
        }
    }

    /// Says a request; the case of its name varies.
    pub fn say(&mut self, mut request: Vec<Vec<u8>>) {
        if let Ok(name) = str::from_utf8(&request[0]) {
            request[0] = words::in_some_case(&mut self.dice, name);
        }
        self.pieces.push(Piece::Said(self.connection, Request(request)));
    }

    pub fn step(&mut self, step: Step) {
        self.pieces.push(Piece::Step(step));
    }

    pub fn database(&self) -> usize {
        self.databases[self.connection]
    }

    pub fn key(&mut self) -> Vec<u8> {
        self.last.clone_from(self.dice.pick(&self.keys));
        self.last.clone()
    }

    /// Looks at the key drawn last: what a command did to its value and expiry shows nowhere else.
    pub fn look(&mut self) {
        let (name, key) = (self.dice.text(&["PEXPIRETIME", "PEXPIRETIME", "GET", "GET", "PTTL"]), self.last.clone());
        say!(self, name, key);
    }

    /// Some keys, one of them twice now and then.
    pub fn several_keys(&mut self, most: usize) -> Vec<Vec<u8>> {
        (0..self.dice.between(1, most)).map(|_| self.key()).collect()
    }

    pub fn value(&mut self) -> Vec<u8> {
        words::value(&mut self.dice)
    }

    pub fn lasting_ms(&mut self) -> String {
        words::lasting_ms(&mut self.dice).to_string()
    }

    pub fn lasting_s(&mut self) -> String {
        (words::lasting_ms(&mut self.dice) / 1000).to_string()
    }

    /// A key in one of these states, most of the time.
    pub fn given(&mut self, states: &[State]) -> Vec<u8> {
        let state = *self.dice.pick(states);
        self.given_just(state)
    }

    pub fn given_just(&mut self, state: State) -> Vec<u8> {
        let key = self.key();
        let value = self.value();
        match state {
            State::Any => {}
            State::Absent => say!(self, "DEL", key),
            State::Text => say!(self, "SET", key, value),
            State::Integer => {
                let integer = words::integer(&mut self.dice);
                say!(self, "SET", key, integer);
            }
            State::Float => {
                let float = words::float(&mut self.dice);
                say!(self, "SET", key, float);
            }
            State::Empty => say!(self, "SET", key, ""),
            State::Lasting => {
                let lasting = self.lasting_ms();
                say!(self, "SET", key, value, "PX", lasting);
            }
            State::Dated => {
                let date = words::far_ahead_s(&mut self.dice).to_string();
                say!(self, "SET", key, value, "EXAT", date);
            }
        }
        key
    }

    /// The word in some case.
    pub fn word(&mut self, word: &str) -> Vec<u8> {
        words::in_some_case(&mut self.dice, word)
    }
}
