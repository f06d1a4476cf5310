//! The command table: which commands there are, by group as Redis has them.
//!
//! Promise: dispatch, arity errors, COMMAND, COMMAND DOCS and the README's table all come from here and nowhere else.
//! Must never run anything.
//!
//! When you add a command: one row in the file of its group, one function in `commands/`, its row in the README (a test
//! compares them), its facts in `facts/`, and its place in the differential test.

mod cluster;
mod connection;
pub mod facts;
mod generic;
mod hearth;
mod scripting;
mod server;
mod string;
mod subcommands;
mod transactions;

use std::sync::LazyLock;

use hashbrown::HashMap;

use crate::frontends::resp::command::Command;

/// The longest name in the table, in bytes.
const LONGEST_NAME: usize = 16;

static ALL: LazyLock<Vec<&'static Command>> = LazyLock::new(|| {
    let groups = [
        cluster::ROWS,
        connection::ROWS,
        generic::ROWS,
        hearth::ROWS,
        scripting::ROWS,
        server::ROWS,
        string::ROWS,
        transactions::ROWS,
    ];
    let mut all: Vec<&Command> = groups.into_iter().flatten().collect();
    all.sort_by_key(|command| command.name);
    all
});

static BY_NAME: LazyLock<HashMap<&'static [u8], &'static Command>> =
    LazyLock::new(|| ALL.iter().map(|command| (command.name.as_bytes(), *command)).collect());

/// Every command, by name.
#[must_use]
pub fn all() -> &'static [&'static Command] {
    &ALL
}

/// The command of this name, in any case.
#[must_use]
pub fn find(name: &[u8]) -> Option<&'static Command> {
    let mut lower = [0; LONGEST_NAME];
    let lower = lower.get_mut(..name.len())?;
    lower.copy_from_slice(name);
    lower.make_ascii_lowercase();
    BY_NAME.get(&*lower).copied()
}

/// Every command, each with its subcommands behind it.
pub fn every() -> impl Iterator<Item = &'static Command> {
    all().iter().flat_map(|command| std::iter::once(*command).chain(command.subcommands))
}

/// The command, or the subcommand, of this whole name (`config|get`), in any case.
#[must_use]
pub fn find_whole(name: &[u8]) -> Option<&'static Command> {
    match name.iter().position(|byte| *byte == b'|') {
        Some(at) => find(&name[..at])?.subcommand(&name[at + 1..]),
        None => find(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_there_once_in_lower_case_and_short_enough_to_be_found() {
        assert!(all().is_sorted_by(|a, b| a.name < b.name));
        for command in all() {
            assert!(command.name.len() <= LONGEST_NAME && command.name == command.name.to_ascii_lowercase());
            let found = find(command.name.to_ascii_uppercase().as_bytes()).map(|found| found.name);
            assert_eq!(found, Some(command.name));
        }
        for subcommand in all().iter().flat_map(|command| command.subcommands) {
            let found = find_whole(subcommand.name.to_ascii_uppercase().as_bytes()).map(|found| found.name);
            assert_eq!(found, Some(subcommand.name));
        }
        assert!(all().iter().all(|command| command.subcommands.is_sorted_by(|a, b| a.name < b.name)));
        assert!(find_whole(b"get|x").is_none() && find_whole(b"client|").is_none() && find_whole(b"|").is_none());
        assert!(find(b"").is_none() && find(&[b'x'; 4096]).is_none() && find(b"gets").is_none());
    }
}
