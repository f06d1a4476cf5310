//! The commands of the group `generic`: about keys, whatever they hold.
//!
//! Promise: sorted by name. Must never run anything.

use crate::frontends::resp::command::{ALL_KEYS, Command, DEFAULT};
use crate::frontends::resp::commands::key;

pub(super) static ROWS: &[Command] = &[
    Command {
        name: "del",
        arity: -2,
        flags: &["write"],
        keys: ALL_KEYS,
        group: "generic",
        since: "1.0.0",
        complexity: "O(N) where N is the number of keys that will be removed. When a key to remove holds a value other than a string, the individual complexity for this key is O(M) where M is the number of elements in the list, set, sorted set or hash. Removing a single key that holds a string value is O(1).",
        summary: "Deletes keys; answers how many there were.",
        run: key::del,
        ..DEFAULT
    },
    Command {
        name: "exists",
        arity: -2,
        flags: &["readonly", "fast"],
        keys: ALL_KEYS,
        group: "generic",
        since: "1.0.0",
        complexity: "O(N) where N is the number of keys to check.",
        summary: "Answers how many of the keys exist.",
        run: key::exists,
        ..DEFAULT
    },
    Command {
        name: "touch",
        arity: -2,
        flags: &["readonly", "fast"],
        keys: ALL_KEYS,
        group: "generic",
        since: "3.2.1",
        complexity: "O(N) where N is the number of keys that will be touched.",
        summary: "Answers how many of the keys exist.",
        run: key::exists,
        ..DEFAULT
    },
    Command {
        name: "unlink",
        arity: -2,
        flags: &["write", "fast"],
        keys: ALL_KEYS,
        group: "generic",
        since: "4.0.0",
        complexity: "O(1) for each key removed regardless of its size. Then the command does O(N) work in a different thread in order to reclaim memory, where N is the number of allocations the deleted objects where composed of.",
        summary: "Deletes keys; answers how many there were.",
        run: key::del,
        ..DEFAULT
    },
];
