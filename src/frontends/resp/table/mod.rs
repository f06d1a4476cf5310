//! The command table: which commands there are, by group as Redis has them.
//!
//! Promise: dispatch, arity errors, COMMAND, COMMAND DOCS and the README's table all come from here and nowhere else.
//! Must never run anything.
//!
//! When you add a command: one row in the file of its group, one function in `commands/`, its row in the README (a test
//! compares them), and its place in the differential test.

mod connection;
mod generic;
mod hearth;
mod scripting;
mod server;
mod string;
mod transactions;

use std::sync::LazyLock;

use hashbrown::HashMap;

use crate::frontends::resp::command::Command;

/// The longest name in the table, in bytes.
const LONGEST_NAME: usize = 16;

static ALL: LazyLock<Vec<&'static Command>> = LazyLock::new(|| {
    let groups = [
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
        assert!(find(b"").is_none() && find(&[b'x'; 4096]).is_none() && find(b"gets").is_none());
    }
}
