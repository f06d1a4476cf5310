//! What a broker tells about itself, as numbers. Knows the form of INFO; must never know what a number means.

use super::client::{Client, Reply};

/// One answer to INFO.
pub struct Info(String);

impl Info {
    /// Asks for one section.
    pub fn of(client: &mut Client, section: &str) -> Self {
        match client.call(&[b"INFO", section.as_bytes()]) {
            Ok(Reply::Bulk(Some(text))) => Self(String::from_utf8(text).expect("INFO is text")),
            other => panic!("INFO {section} got {other:?}"),
        }
    }

    /// The number behind a name; a name that is not there is a failure.
    pub fn number(&self, name: &str) -> u64 {
        let value = self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let value = value.unwrap_or_else(|| panic!("INFO without {name}\n{}", self.0));
        value.trim().parse().unwrap_or_else(|_| panic!("{name}:{value} is not a number"))
    }
}
