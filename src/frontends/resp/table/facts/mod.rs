//! What COMMAND tells of each command beside its row: ACL categories, tips, where its keys are, and how it is written.
//!
//! Promise: of a command that Redis 7.0 has, what it says of it, byte by byte (a test compares them), but for options that
//! are Hearth's own. Must never run anything.

mod cluster;
mod connection;
mod generic;
mod hearth;
mod scripting;
mod server;
mod string;
mod transactions;

use std::sync::LazyLock;

use hashbrown::HashMap;

/// What is told of one command or subcommand; the name of the latter is `config|get`.
pub struct Facts {
    pub name: &'static str,
    pub categories: &'static [&'static str],
    /// For proxies and clients that spread a request over several servers.
    pub tips: &'static [&'static str],
    pub specs: &'static [KeySpec],
    pub arguments: &'static [Argument],
}

/// Where some of the keys of a request are, and what is done to them.
pub struct KeySpec {
    pub notes: &'static str,
    pub flags: &'static [&'static str],
    /// The argument it begins at.
    pub begin: i64,
    pub keys: KeyRange,
}

/// Which arguments from the beginning on are keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyRange {
    /// Until `last` behind the beginning, from the end of the request if negative, each `step`th.
    Until { last: i64, step: i64 },
    /// The beginning is their number.
    Counted,
}

/// One key, at this argument.
const fn at(begin: i64, flags: &'static [&'static str]) -> KeySpec {
    KeySpec { notes: "", flags, begin, keys: KeyRange::Until { last: 0, step: 1 } }
}

impl KeySpec {
    const fn to(mut self, last: i64, step: i64) -> Self {
        self.keys = KeyRange::Until { last, step };
        self
    }

    const fn counted(mut self) -> Self {
        self.keys = KeyRange::Counted;
        self
    }

    const fn notes(mut self, notes: &'static str) -> Self {
        self.notes = notes;
        self
    }
}

/// What an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    String,
    Integer,
    Double,
    Key,
    Pattern,
    UnixTime,
    /// Only its token.
    PureToken,
    /// One of its arguments.
    OneOf,
    /// All of its arguments.
    Block,
}

impl Kind {
    /// Redis's name of it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Double => "double",
            Self::Key => "key",
            Self::Pattern => "pattern",
            Self::UnixTime => "unix-time",
            Self::PureToken => "pure-token",
            Self::OneOf => "oneof",
            Self::Block => "block",
        }
    }
}

/// An argument of a command, with those it consists of: a tree, for people and for the hints of redis-cli.
#[derive(Clone, Copy)]
pub struct Argument {
    pub name: &'static str,
    pub kind: Kind,
    /// The key specification that finds it.
    pub key_spec: Option<i64>,
    /// The word in front of it.
    pub token: Option<&'static str>,
    pub since: Option<&'static str>,
    pub deprecated: Option<&'static str>,
    pub optional: bool,
    pub multiple: bool,
    pub arguments: &'static [Argument],
}

impl Argument {
    const fn new(name: &'static str, kind: Kind) -> Self {
        Self {
            name,
            kind,
            key_spec: None,
            token: None,
            since: None,
            deprecated: None,
            optional: false,
            multiple: false,
            arguments: &[],
        }
    }

    const fn token(mut self, token: &'static str) -> Self {
        self.token = Some(token);
        self
    }

    const fn since(mut self, version: &'static str) -> Self {
        self.since = Some(version);
        self
    }

    const fn deprecated(mut self, version: &'static str) -> Self {
        self.deprecated = Some(version);
        self
    }

    const fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    const fn multiple(mut self) -> Self {
        self.multiple = true;
        self
    }

    /// How it is written, as in a line of help: `[EX seconds]`.
    #[must_use]
    pub fn written(&self) -> String {
        let inner = match self.kind {
            Kind::PureToken => String::new(),
            Kind::OneOf => self.parts(" | "),
            Kind::Block => self.parts(" "),
            _ => format!("<{}>", self.name),
        };
        let is_apart = self.kind == Kind::OneOf && (!self.optional || self.token.is_some());
        let inner = if is_apart { format!("({inner})") } else { inner };
        let one = match self.token {
            Some(token) if inner.is_empty() => token.to_owned(),
            Some(token) => format!("{token} {inner}"),
            None => inner,
        };
        let all = if self.multiple { format!("{one} [{one} ...]") } else { one };
        if self.optional { format!("[{all}]") } else { all }
    }

    fn parts(&self, between: &str) -> String {
        self.arguments.iter().map(Self::written).collect::<Vec<_>>().join(between)
    }
}

const fn string(name: &'static str) -> Argument {
    Argument::new(name, Kind::String)
}

const fn integer(name: &'static str) -> Argument {
    Argument::new(name, Kind::Integer)
}

const fn double(name: &'static str) -> Argument {
    Argument::new(name, Kind::Double)
}

const fn pattern(name: &'static str) -> Argument {
    Argument::new(name, Kind::Pattern)
}

const fn time(name: &'static str) -> Argument {
    Argument::new(name, Kind::UnixTime)
}

const fn key(name: &'static str, spec: i64) -> Argument {
    let mut key = Argument::new(name, Kind::Key);
    key.key_spec = Some(spec);
    key
}

const fn flag(name: &'static str, token: &'static str) -> Argument {
    Argument::new(name, Kind::PureToken).token(token)
}

const fn one_of(name: &'static str, arguments: &'static [Argument]) -> Argument {
    let mut one = Argument::new(name, Kind::OneOf);
    one.arguments = arguments;
    one
}

const fn block(name: &'static str, arguments: &'static [Argument]) -> Argument {
    let mut block = Argument::new(name, Kind::Block);
    block.arguments = arguments;
    block
}

static GROUPS: [&[Facts]; 8] = [
    cluster::FACTS,
    connection::FACTS,
    generic::FACTS,
    hearth::FACTS,
    scripting::FACTS,
    server::FACTS,
    string::FACTS,
    transactions::FACTS,
];

static BY_NAME: LazyLock<HashMap<&'static str, &'static Facts>> =
    LazyLock::new(|| GROUPS.into_iter().flatten().map(|facts| (facts.name, facts)).collect());

static NONE: Facts = Facts { name: "", categories: &[], tips: &[], specs: &[], arguments: &[] };

/// The facts about a command or subcommand of the table.
#[must_use]
pub fn of(name: &str) -> &'static Facts {
    BY_NAME.get(name).copied().unwrap_or(&NONE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontends::resp::table::all;

    #[test]
    fn every_command_has_its_facts_and_facts_stand_in_order() {
        for group in GROUPS {
            assert!(group.is_sorted_by(|a, b| a.name < b.name));
        }
        for command in all().iter().flat_map(|command| std::iter::once(*command).chain(command.subcommands)) {
            assert_eq!(of(command.name).name, command.name, "no facts");
        }
    }

    #[test]
    fn an_argument_is_written_as_in_help() {
        const ARGUMENTS: &[Argument] = &[
            key("key", 0),
            one_of("condition", &[flag("nx", "NX"), integer("seconds").token("EX")]).optional(),
            block("pair", &[string("name"), string("value")]).multiple(),
            one_of("on", &[flag("on", "ON"), flag("off", "OFF")]),
            integer("id").token("ID").multiple().optional(),
        ];
        let written: Vec<String> = ARGUMENTS.iter().map(Argument::written).collect();
        assert_eq!(
            written,
            [
                "<key>",
                "[NX | EX <seconds>]",
                "<name> <value> [<name> <value> ...]",
                "(ON | OFF)",
                "[ID <id> [ID <id> ...]]",
            ]
        );
    }
}
