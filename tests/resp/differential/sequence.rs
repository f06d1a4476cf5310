//! What is done to both servers: requests on two connections, and steps that wait for something.
//!
//! Promise: a sequence is data; doing it twice does the same, and it prints as lines that redis-cli takes. Must never know
//! a reply.

use std::fmt;

use crate::client::request;
use crate::differential::reply::shown;
use crate::differential::side::HAND;

/// The words of a request, the command's name first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request(pub Vec<Vec<u8>>);

impl Request {
    pub fn of<A: AsRef<[u8]>>(words: impl IntoIterator<Item = A>) -> Self {
        Self(words.into_iter().map(|word| word.as_ref().to_vec()).collect())
    }

    pub fn bytes(&self) -> Vec<u8> {
        request(&self.0)
    }

    pub fn word(&self, at: usize) -> &[u8] {
        self.0.get(at).map_or(b"", Vec::as_slice)
    }

    /// A word in capitals, to be compared with.
    pub fn capitals(&self, at: usize) -> String {
        String::from_utf8_lossy(self.word(at)).to_ascii_uppercase()
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, word) in self.0.iter().enumerate() {
            write!(f, "{}{}", if i > 0 { " " } else { "" }, shown(word))?;
        }
        Ok(())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Requests written at once, in as many writes as `cuts` make of their bytes, before any reply is read.
    Batch { connection: usize, requests: Vec<Request>, cuts: Vec<usize> },
    /// A request after which `key` soon lapses, and waiting for that.
    Lapse { connection: usize, database: usize, key: Vec<u8>, requests: Vec<Request> },
    /// SCAN from 0 to 0 with these options; the keys found are compared.
    Scan { database: usize, options: Vec<Vec<u8>> },
    /// RANDOMKEY, which must be a key that is there.
    RandomKey { database: usize },
}

impl Step {
    /// A batch in one write.
    pub fn batch(connection: usize, requests: Vec<Request>) -> Self {
        Self::Batch { connection, requests, cuts: Vec::new() }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Batch { connection, requests, cuts } => {
                let how = if cuts.is_empty() { String::new() } else { format!(", in pieces at {cuts:?}") };
                writeln!(f, "# connection {connection}, one pipeline of {}{how}", requests.len())?;
                lines(f, requests)
            }
            Self::Lapse { connection, database, key, requests } => {
                let whose = if *connection == HAND {
                    "another connection".to_owned()
                } else {
                    format!("connection {connection}")
                };
                writeln!(f, "# {whose}; then wait until {} has lapsed in database {database}", shown(key))?;
                lines(f, requests)
            }
            Self::Scan { database, options } => {
                let options = Request(options.clone());
                writeln!(f, "# another connection, to the end: in database {database}")?;
                writeln!(f, "SCAN 0 {options}")
            }
            Self::RandomKey { database } => {
                writeln!(f, "# another connection: in database {database}, and the key must be there")?;
                writeln!(f, "RANDOMKEY")
            }
        }
    }
}

fn lines(f: &mut fmt::Formatter<'_>, requests: &[Request]) -> fmt::Result {
    for request in requests {
        writeln!(f, "{request}")?;
    }
    Ok(())
}

/// Steps that begin with connections as new ones are, and no keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence {
    pub seed: u64,
    pub steps: Vec<Step>,
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| write!(f, "{step}"))
    }
}
