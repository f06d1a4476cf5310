//! Scripts of the commands about keys, whatever they hold: when they expire, which there are, under which name, how big.
//!
//! Promise: what depends on the time that passes, or on an order that is nobody's promise, is not here but in the tests of
//! keys.

use crate::script::Script;

pub fn scripts() -> Vec<Script> {
    [expiries(), scans(), names(), objects(), floats()].into_iter().flatten().collect()
}

fn expiries() -> Vec<Script> {
    vec![
        Script::of(
            "expire-knows-no-other-option",
            "SET k v | EXPIRE k 100 FOO | EXPIRE k x FOO | EXPIRE k 100 NX FOO XX | PEXPIRE k 1 '' | TTL k",
        ),
        Script::of(
            "expire-options-that-exclude-each-other-are-one-error",
            "SET k v | EXPIRE k 100 NX XX | EXPIRE k 100 NX GT | PEXPIRE k 100 lt nx | EXPIREAT k 9 GT LT | PEXPIREAT k x NX XX | \
             EXPIRE k 100 XX GT LT | TTL k | GET k",
        ),
        Script::of(
            "expire-needs-an-integer",
            "SET k v | EXPIRE k x | PEXPIRE k 1.5 | EXPIREAT k +1 | PEXPIREAT k '' | EXPIRE a x | TTL k",
        ),
        Script::of(
            "an-expiry-beyond-the-clock-is-refused",
            "SET k v | EXPIRE k 9223372036854775807 | EXPIRE k 9223372036854775 | EXPIRE k -9223372036854775808 | \
             PEXPIRE k 9223372036854775807 | EXPIREAT k 9223372036854775807 | EXPIREAT a 9223372036854775807 | TTL k",
        ),
        Script::of(
            "the-latest-expiry-there-is",
            "SET k v | PEXPIREAT k 9223372036854775807 | PEXPIRETIME k | EXPIRETIME k | EXPIREAT k 9223372036854775 | PEXPIRETIME k",
        ),
        Script::of(
            "expire-in-the-past-deletes",
            "SET k v | EXPIRE k 0 | EXISTS k | SET k v | PEXPIRE k -1 | EXISTS k | SET k v | EXPIREAT k 1 | EXISTS k | SET k v | \
             PEXPIREAT k 0 | EXISTS k | SET k v | PEXPIRE k -9223372036854775808 | EXISTS k | EXPIRE k -1",
        ),
        Script::of(
            "expire-of-nothing",
            "EXPIRE k 100 | PEXPIRE k 100 NX | EXPIREAT k 99999999999 | PEXPIREAT k 1 | EXISTS k",
        ),
        Script::of(
            "expiretime-rounds",
            "SET k v | PEXPIREAT k 99999999999499 | EXPIRETIME k | PEXPIREAT k 99999999999500 | EXPIRETIME k | PEXPIRETIME k",
        ),
        Script::of(
            "expire-nx-and-xx",
            "SET k v | EXPIREAT k 99999999999 XX | TTL k | EXPIREAT k 99999999999 nx | EXPIREAT k 88888888888 NX | EXPIRETIME k | \
             EXPIREAT k 88888888888 xx | EXPIRETIME k | EXPIRE k -1 NX | EXISTS k",
        ),
        Script::of(
            "expire-gt-and-lt",
            "SET k v | EXPIREAT k 99999999999 GT | TTL k | EXPIREAT k 77777777777 LT | EXPIREAT k 77777777777 GT | \
             EXPIREAT k 77777777777 LT | EXPIREAT k 88888888888 gt | EXPIRETIME k | EXPIREAT k 99999999999 lt | EXPIRETIME k | \
             EXPIREAT k 66666666666 XX LT | EXPIREAT k 99999999999 XX GT | EXPIRETIME k | EXPIRE k -1 GT | EXPIRE k -1 LT | EXISTS k",
        ),
        Script::of(
            "persist",
            "PERSIST k | SET k v | PERSIST k | EXPIREAT k 99999999999 | PERSIST k | TTL k | PERSIST k | GET k",
        ),
        Script::of(
            "ttl-of-nothing-and-of-what-stays",
            "TTL k | PTTL k | EXPIRETIME k | PEXPIRETIME k | SET k v | TTL k | PTTL k | EXPIRETIME k | PEXPIRETIME k",
        ),
        Script::of("set-clears-an-expiry", "SET k v PXAT 99999999999999 | SET k w | TTL k | GET k"),
        Script::of(
            "expiries-have-an-arity",
            "EXPIRE | EXPIRE k | PEXPIRE k | EXPIREAT k | PEXPIREAT k | PERSIST | PERSIST k a | TTL | TTL k a | PTTL | EXPIRETIME | PEXPIRETIME k a",
        ),
        Script::of(
            "expiries-in-one-transaction",
            "MULTI | SET k 1 | EXPIREAT k 99999999999 | EXPIRETIME k | EXPIRE k 1 NX XX | PERSIST k | TTL k | EXEC | GET k",
        ),
    ]
}

fn scans() -> Vec<Script> {
    vec![
        Script::of("type", "TYPE k | SET k v | TYPE k | type k | TYPE | TYPE k a"),
        Script::of(
            "keys",
            "KEYS * | SET k v | KEYS * | KEYS k | KEYS k* | KEYS a* | KEYS ? | KEYS [a-k] | KEYS [^k] | KEYS \\k | KEYS K | KEYS *k* | \
             KEYS '' | KEYS | KEYS a b | DEL k | KEYS k",
        ),
        Script::of("keys-with-an-empty-key", "SET '' v | KEYS * | KEYS ** | KEYS ''"),
        Script::of("keys-in-resp3", "HELLO 3 | KEYS * | SET k v | KEYS *"),
        Script::of(
            "randomkey-and-dbsize",
            "RANDOMKEY | DBSIZE | SET k v | RANDOMKEY | DBSIZE | RANDOMKEY a | DEL k | DBSIZE",
        ),
        Script::of("randomkey-in-resp3", "HELLO 3 | RANDOMKEY"),
        Script::of(
            "scan",
            "SCAN 0 | SET k v | SCAN 0 | SCAN 0 MATCH k* | SCAN 0 match a* | SCAN 0 COUNT 1000 | SCAN 0 TYPE string | \
             scan 0 type STRING match * count 5 | SCAN 0 TYPE hash | SCAN 0 TYPE foo | SCAN 00 | SCAN ''",
        ),
        Script::of("scan-in-resp3", "HELLO 3 | SCAN 0 | SET k v | SCAN 0"),
        Script::of(
            "scan-refuses",
            "SCAN | SCAN x | SCAN 1x | SCAN 18446744073709551616 | SCAN x COUNT 0 | SCAN 0 COUNT | SCAN 0 COUNT 0 | SCAN 0 COUNT -1 | \
             SCAN 0 COUNT x | SCAN 0 COUNT x FOO | SCAN 0 FOO | SCAN 0 FOO 1 | SCAN 0 MATCH | SCAN 0 TYPE | SCAN 0 MATCH a b",
        ),
        Script::of("scan-knows-its-cursors", "SET k v | SCAN 1 | SCAN 9007199254740991 | SCAN -1").differs(
            "+OK\r\n-ERR invalid cursor\r\n-ERR invalid cursor\r\n-ERR invalid cursor\r\n",
            "a cursor of Redis is a place in its hash table, and any number is one; Hearth's are given out",
        ),
    ]
}

fn names() -> Vec<Script> {
    vec![
        Script::of(
            "rename",
            "RENAME k a | RENAME k k | SET k v | RENAME k k | RENAME k a | EXISTS k | GET a | SET k w | RENAME k a | GET a | RENAME k a | \
             RENAME | RENAME k | RENAME k a b",
        ),
        Script::of(
            "rename-takes-the-expiry-along",
            "SET k v PXAT 99999999999999 | SET a w | RENAME k a | PEXPIRETIME a | SET k v | RENAME k a | TTL a",
        ),
        Script::of(
            "renamenx",
            "RENAMENX k a | RENAMENX k k | SET k v PXAT 99999999999999 | RENAMENX k k | RENAMENX k a | PEXPIRETIME a | SET k w | RENAMENX k a | \
             GET k | GET a | RENAMENX | RENAMENX k a b",
        ),
        Script::of(
            "copy",
            "COPY k a | SET k v PXAT 99999999999999 | COPY k a | GET a | PEXPIRETIME a | COPY k a | SET k w | COPY k a | GET a | COPY k a replace | \
             GET a | TTL a | GET k",
        ),
        Script::of(
            "copy-refuses",
            "COPY k k | COPY k k DB 0 | SET k v | COPY k k REPLACE | COPY k a FOO | COPY k a DB | COPY k a DB x | COPY k a DB 16 | COPY k a DB -1 | \
             COPY k a DB 01 | COPY k a DB 99999999999 | COPY k a DB 16 FOO | COPY k a REPLACE DB | COPY | COPY k | EXISTS a",
        ),
        Script::of(
            "copy-to-another-database",
            "SET k v PXAT 99999999999999 | COPY k k DB 9 | COPY k k DB 9 | COPY a a DB 9 | SET k w | COPY k k db 9 Replace | COPY k a DB 9 | SELECT 9 | \
             GET k | TTL k | GET a | DEL k | COPY a k DB 0 | FLUSHDB | SELECT 0 | GET k",
        ),
        Script::of(
            "names-in-one-transaction",
            "MULTI | SET k 1 | RENAME k a | COPY a b | RENAMENX a b | RENAME k a | COPY a k | EXEC | GET a | GET b | GET k",
        ),
    ]
}

fn objects() -> Vec<Script> {
    let long = |bytes: usize| "x".repeat(bytes);
    vec![
        Script::of(
            "object-encoding",
            &format!(
                "OBJECT ENCODING k | SET k 12 | OBJECT ENCODING k | SET k -9223372036854775808 | OBJECT ENCODING k | SET k 9223372036854775808 | \
                 OBJECT ENCODING k | SET k 012 | OBJECT ENCODING k | SET k '' | object encoding k | SET k {} | OBJECT ENCODING k | SET k {} | OBJECT ENCODING k",
                long(44),
                long(45)
            ),
        ),
        Script::of(
            "object-refcount",
            "OBJECT REFCOUNT k | SET k 0 | OBJECT REFCOUNT k | SET k 9999 | OBJECT REFCOUNT k | SET k 10000 | OBJECT REFCOUNT k | SET k -1 | \
             OBJECT REFCOUNT k | SET k v | OBJECT REFCOUNT k",
        ),
        Script::of("object-freq", "OBJECT FREQ k | SET k v | OBJECT FREQ k"),
        Script::of("object-idletime-of-nothing", "OBJECT IDLETIME k | HELLO 3 | OBJECT IDLETIME k | OBJECT ENCODING k"),
        Script::of("object-idletime", "SET k v | OBJECT IDLETIME k")
            .differs("+OK\r\n:0\r\n", "when a key was last used is not kept: nothing is evicted by it"),
        Script::of(
            "object-refuses",
            "OBJECT | OBJECT FOO | OBJECT FOO k | OBJECT '' | OBJECT ENCODING | OBJECT ENCODING k a | OBJECT FREQ | OBJECT IDLETIME k a | OBJECT REFCOUNT | \
             OBJECT HELP x",
        ),
        Script::of("memory-usage", "SET k v | MEMORY USAGE k | MEMORY USAGE k SAMPLES 5")
            .differs("+OK\r\n:105\r\n:105\r\n", "what a key takes in Hearth"),
        Script::of(
            "memory-usage-refuses",
            "MEMORY USAGE | MEMORY USAGE k | SET k v | MEMORY USAGE k SAMPLES | MEMORY USAGE k SAMPLES -1 | MEMORY USAGE k SAMPLES x | MEMORY USAGE k FOO 1 | \
             MEMORY USAGE a SAMPLES x | HELLO 3 | MEMORY USAGE a",
        ),
        Script::of("memory-purge", "MEMORY PURGE"),
        Script::of(
            "memory-refuses",
            "MEMORY | MEMORY FOO | MEMORY FOO k | MEMORY HELP x | MEMORY DOCTOR x | MEMORY STATS x | MEMORY PURGE x | MEMORY MALLOC-STATS x",
        ),
        Script::of("memory-malloc-stats", "MEMORY MALLOC-STATS").differs(
            "$45\r\nStats not supported for the current allocator\r\n",
            "the words of a Redis that is built without jemalloc",
        ),
    ]
}

fn floats() -> Vec<Script> {
    vec![
        Script::of(
            "incrbyfloat",
            "INCRBYFLOAT k 0.1 | INCRBYFLOAT k 0.2 | GET k | SET k 3000.1 | INCRBYFLOAT k 0 | SET k 10.50 | INCRBYFLOAT k 0.1 | INCRBYFLOAT k -5 | \
             SET k 5.0e3 | INCRBYFLOAT k 2.0e2 | SET k 1e17 | INCRBYFLOAT k 0 | SET k -0.0 | INCRBYFLOAT k -0 | SET k 0x10 | INCRBYFLOAT k 0x1p-2",
        ),
        Script::of(
            "incrbyfloat-of-the-largest-and-the-smallest",
            "SET k 5e-324 | INCRBYFLOAT k 0 | SET k 1e308 | INCRBYFLOAT k 1 | SET k 1.1e4932 | INCRBYFLOAT k 1.1e4932 | INCRBYFLOAT k 1e5000 | \
             INCRBYFLOAT k 1e-5000 | INCRBYFLOAT k -1.1e4932",
        ),
        Script::of(
            "incrbyfloat-refuses",
            "SET k v | INCRBYFLOAT k 1 | SET k 1 | INCRBYFLOAT k x | INCRBYFLOAT k '' | INCRBYFLOAT k 1x | INCRBYFLOAT k nan | INCRBYFLOAT k inf | \
             INCRBYFLOAT k -Infinity | INCRBYFLOAT k 1e | INCRBYFLOAT k . | SET k '' | INCRBYFLOAT k 1 | INCRBYFLOAT a inf | EXISTS a | GET k | \
             INCRBYFLOAT | INCRBYFLOAT k",
        ),
        Script::of(
            "incrbyfloat-keeps-the-expiry",
            "SET k 1 PXAT 99999999999999 | INCRBYFLOAT k 0.5 | PEXPIRETIME k | INCRBYFLOAT a 0.5 | TTL a",
        ),
        Script::raw(
            "incrbyfloat-refuses-blanks",
            [
                crate::client::request(["INCRBYFLOAT", "k", " 1"]),
                crate::client::request(["INCRBYFLOAT", "k", "1 "]),
                crate::client::request(["INCRBYFLOAT", "k", "1\0"]),
            ]
            .concat(),
        ),
    ]
}
