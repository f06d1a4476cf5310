//! The commands of the group `generic`: about keys, whatever they hold.
//!
//! Promise: sorted by name. Must never run anything.

use crate::frontends::resp::command::{ALL_KEYS, Command, DEFAULT, ONE_KEY, TWO_KEYS};
use crate::frontends::resp::commands::{expire, key, rename, scan};
use crate::frontends::resp::table::subcommands;

pub(super) static ROWS: &[Command] = &[
    Command {
        name: "copy",
        arity: -3,
        flags: &["write", "denyoom"],
        keys: TWO_KEYS,
        group: "generic",
        since: "6.2.0",
        complexity: "O(N) worst case for collections, where N is the number of nested items. O(1) for string values.",
        summary: "Copies a key, also into another database.",
        run: rename::copy,
        ..DEFAULT
    },
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
        name: "expire",
        arity: -3,
        flags: &["write", "fast"],
        keys: ONE_KEY,
        group: "generic",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Makes a key expire in so many seconds.",
        run: expire::expire,
        ..DEFAULT
    },
    Command {
        name: "expireat",
        arity: -3,
        flags: &["write", "fast"],
        keys: ONE_KEY,
        group: "generic",
        since: "1.2.0",
        complexity: "O(1)",
        summary: "Makes a key expire at a Unix time in seconds.",
        run: expire::expireat,
        ..DEFAULT
    },
    Command {
        name: "expiretime",
        arity: 2,
        flags: &["readonly", "fast"],
        keys: ONE_KEY,
        group: "generic",
        since: "7.0.0",
        complexity: "O(1)",
        summary: "Answers the Unix time in seconds at which a key expires.",
        run: expire::expiretime,
        ..DEFAULT
    },
    Command {
        name: "keys",
        arity: 2,
        flags: &["readonly"],
        group: "generic",
        since: "1.0.0",
        complexity: "O(N) with N being the number of keys in the database, under the assumption that the key names in the database and the given pattern have limited length.",
        summary: "Answers the keys that match a pattern.",
        run: scan::keys,
        ..DEFAULT
    },
    Command {
        name: "object",
        arity: -2,
        flags: &[],
        group: "generic",
        since: "2.2.3",
        complexity: "Depends on subcommand.",
        summary: "Tells about a value: ENCODING FREQ IDLETIME REFCOUNT.",
        subcommands: subcommands::OBJECT,
        ..DEFAULT
    },
    Command {
        name: "persist",
        arity: 2,
        flags: &["write", "fast"],
        keys: ONE_KEY,
        group: "generic",
        since: "2.2.0",
        complexity: "O(1)",
        summary: "Takes the expiry off a key.",
        run: expire::persist,
        ..DEFAULT
    },
    Command {
        name: "pexpire",
        arity: -3,
        flags: &["write", "fast"],
        keys: ONE_KEY,
        group: "generic",
        since: "2.6.0",
        complexity: "O(1)",
        summary: "Makes a key expire in so many milliseconds.",
        run: expire::pexpire,
        ..DEFAULT
    },
    Command {
        name: "pexpireat",
        arity: -3,
        flags: &["write", "fast"],
        keys: ONE_KEY,
        group: "generic",
        since: "2.6.0",
        complexity: "O(1)",
        summary: "Makes a key expire at a Unix time in milliseconds.",
        run: expire::pexpireat,
        ..DEFAULT
    },
    Command {
        name: "pexpiretime",
        arity: 2,
        flags: &["readonly", "fast"],
        keys: ONE_KEY,
        group: "generic",
        since: "7.0.0",
        complexity: "O(1)",
        summary: "Answers the Unix time in milliseconds at which a key expires.",
        run: expire::pexpiretime,
        ..DEFAULT
    },
    Command {
        name: "pttl",
        arity: 2,
        flags: &["readonly", "fast"],
        keys: ONE_KEY,
        group: "generic",
        since: "2.6.0",
        complexity: "O(1)",
        summary: "Answers in how many milliseconds a key expires.",
        run: expire::pttl,
        ..DEFAULT
    },
    Command {
        name: "randomkey",
        arity: 1,
        flags: &["readonly"],
        group: "generic",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Answers a key chosen at random.",
        run: scan::randomkey,
        ..DEFAULT
    },
    Command {
        name: "rename",
        arity: 3,
        flags: &["write"],
        keys: TWO_KEYS,
        group: "generic",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Gives a key another name.",
        run: rename::rename,
        ..DEFAULT
    },
    Command {
        name: "renamenx",
        arity: 3,
        flags: &["write", "fast"],
        keys: TWO_KEYS,
        group: "generic",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Gives a key another name that no key has.",
        run: rename::renamenx,
        ..DEFAULT
    },
    Command {
        name: "scan",
        arity: -2,
        flags: &["readonly"],
        group: "generic",
        since: "2.8.0",
        complexity: "O(1) for every call. O(N) for a complete iteration, including enough command calls for the cursor to return back to 0. N is the number of elements inside the collection.",
        summary: "Answers the keys piece by piece, with a cursor.",
        run: scan::scan,
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
        name: "ttl",
        arity: 2,
        flags: &["readonly", "fast"],
        keys: ONE_KEY,
        group: "generic",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Answers in how many seconds a key expires.",
        run: expire::ttl,
        ..DEFAULT
    },
    Command {
        name: "type",
        arity: 2,
        flags: &["readonly", "fast"],
        keys: ONE_KEY,
        group: "generic",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "Answers the type of a value: string.",
        run: key::type_of,
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
