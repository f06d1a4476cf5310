//! Scripts of the commands for strings, counters and parts of them, and of transactions.
//!
//! Promise: as `table` has it. Must never know what Hearth answers, but where it differs on purpose.

use crate::client::request;
use crate::script::Script;

pub fn scripts() -> Vec<Script> {
    [set_and_kin(), reads(), counters(), parts(), many(), transactions(), own()].into_iter().flatten().collect()
}

fn set_and_kin() -> Vec<Script> {
    vec![
        Script::of("setnx", "SETNX k 1 | SETNX k 2 | GET k | SETNX k | SETNX k 1 2"),
        Script::of("setnx-on-a-key-with-an-expiry", "SET k 1 EX 100 | SETNX k 2 | TTL k | GET k"),
        Script::of("setex", "SETEX k 100 v | TTL k | GET k | SETEX k 0 v | SETEX k -1 v | SETEX k x v | SETEX k 10"),
        Script::of(
            "setex-in-years",
            "SETEX k 9223372036854775 v | SETEX k 9223372036854776 v | SETEX k 9223372036854775807 v | GET k",
        ),
        Script::of(
            "psetex",
            "PSETEX k 100000 v | GET k | PSETEX k 0 v | PSETEX k -5 v | PSETEX k 1.5 v | PSETEX k 9223372036854775807 v",
        ),
        Script::of("getset", "GETSET k 1 | GETSET k 2 | GET k | SET k 3 EX 100 | GETSET k 4 | TTL k | GETSET k"),
        Script::of("getset-in-resp3", "HELLO 3 | GETSET k 1 | GETSET k 2"),
        Script::of(
            "regression-set-over-a-key-with-an-expiry-replaces-both",
            "SET k 1 EX 100 | SET k 2 | GET k | TTL k | SET k 3 EX 50 | SET k 4 KEEPTTL | TTL k | GET k",
        ),
        Script::of(
            "set-get-of-nothing",
            "SET k 1 GET | SET k 2 NX GET | SET k 3 XX GET | GET k | SET a 1 XX GET | EXISTS a",
        ),
        Script::of(
            "set-in-the-past-takes-the-key-away",
            "SET k 1 | SET k 2 EXAT 1 | EXISTS k | SET k 1 | SET k 2 PXAT 1 GET | EXISTS k",
        ),
    ]
}

fn reads() -> Vec<Script> {
    vec![
        Script::of("strlen", "STRLEN k | SET k hello | STRLEN k | SET k '' | STRLEN k | STRLEN | STRLEN a b"),
        Script::of("getdel", "GETDEL k | SET k 1 EX 100 | GETDEL k | EXISTS k | GETDEL k | GETDEL | GETDEL a b"),
        Script::of("getdel-in-resp3", "HELLO 3 | GETDEL k | SET k 1 | GETDEL k | GETDEL k"),
        Script::of(
            "getex",
            "GETEX k | SET k v | GETEX k | TTL k | GETEX k EX 100 | TTL k | GETEX k PERSIST | TTL k | GETEX k PX 100000 | GETEX k",
        ),
        Script::of(
            "getex-of-nothing-judges-no-number",
            "GETEX k EX 0 | GETEX k EX x | GETEX k FOO | GETEX k EX | SET k 1 | GETEX k EX 0 | GETEX k EX x",
        ),
        Script::of(
            "getex-in-the-past-takes-the-key-away",
            "SET k v | GETEX k EXAT 1 | EXISTS k | SET k v | GETEX k PXAT 1 | GET k",
        ),
        Script::of(
            "getex-words-exclude-each-other",
            "SET k v | GETEX k EX 10 PX 10 | GETEX k PERSIST EX 10 | GETEX k EX 10 PERSIST | GETEX k PERSIST PERSIST | GETEX k EX 10 EX 100 | GETEX k KEEPTTL | GETEX k NX | GETEX k GET | TTL k",
        ),
        Script::of("getex-persist-of-what-never-expires", "SET k v | GETEX k PERSIST | TTL k"),
    ]
}

fn counters() -> Vec<Script> {
    vec![
        Script::of(
            "incr-and-decr",
            "INCR k | INCR k | DECR k | DECR a | GET k | INCRBY k 10 | DECRBY k 5 | INCRBY k -7 | GET k",
        ),
        Script::of(
            "counters-take-only-plain-numbers",
            "SET k '' | INCR k | SET k 05 | INCR k | SET k +5 | INCR k | SET k 1.0 | INCR k | SET k 0x5 | INCR k | SET k -0 | INCR k | SET k abc | DECR k | GET k",
        ),
        Script::raw(
            "a-blank-is-no-number",
            [request(["SET", "k", " 10"]), request(["INCR", "k"]), request(["INCRBY", "k", " 1"])].concat(),
        ),
        Script::of(
            "counters-do-not-overflow",
            "SET k 9223372036854775807 | INCR k | SET k -9223372036854775808 | DECR k | INCRBY k -1 | SET k 1 | INCRBY k 9223372036854775807 | DECRBY k -9223372036854775808 | DECRBY k 9223372036854775807 | GET k",
        ),
        Script::of(
            "counters-judge-their-argument-first",
            "SET k x | INCRBY k y | DECRBY k y | INCRBY k 99999999999999999999 | INCR k a | INCRBY k",
        ),
        Script::of("a-counter-keeps-its-expiry", "SET k 5 EX 100 | INCR k | TTL k | INCRBY k 5 | TTL k | GET k"),
    ]
}

fn parts() -> Vec<Script> {
    vec![
        Script::of(
            "append",
            "APPEND k hello | APPEND k '' | APPEND k world | GET k | APPEND a '' | EXISTS a | APPEND k",
        ),
        Script::of("append-keeps-the-expiry", "SET k 5 EX 100 | APPEND k 5 | TTL k | GET k"),
        Script::of(
            "setrange",
            "SETRANGE k 5 x | STRLEN k | SETRANGE k 0 hello | GET k | SETRANGE k 2 LL | GET k | SETRANGE k 10 end | STRLEN k",
        ),
        Script::of(
            "setrange-of-nothing-makes-no-key",
            "SETRANGE k 0 '' | SETRANGE k 5 '' | EXISTS k | SET k abc | SETRANGE k 1 '' | SETRANGE k 100 '' | GET k",
        ),
        Script::of(
            "setrange-judges-its-offset",
            "SETRANGE k -1 x | SETRANGE k x x | SETRANGE k 536870912 x | SETRANGE k 536870911 xx | SETRANGE k 9223372036854775807 x | SETRANGE k 1 | EXISTS k",
        ),
        Script::of("setrange-keeps-the-expiry", "SET k abc EX 100 | SETRANGE k 1 X | TTL k | GET k"),
        Script::of(
            "getrange",
            "SET k HelloWorld | GETRANGE k 0 4 | GETRANGE k -5 -1 | GETRANGE k 0 -1 | GETRANGE k 5 2 | GETRANGE k 100 200 | GETRANGE k -100 3 | GETRANGE k -1 -5 | GETRANGE k -200 -100",
        ),
        Script::of(
            "getrange-of-nothing",
            "GETRANGE k 0 -1 | SET k '' | GETRANGE k 0 -1 | GETRANGE k 0 0 | GETRANGE k x 1 | GETRANGE k 1 y | GETRANGE k 1",
        ),
        Script::of("substr", "SET k hello | SUBSTR k 1 3 | substr k 0 -1 | SUBSTR k 1 | SUBSTR a 0 1"),
    ]
}

fn many() -> Vec<Script> {
    vec![
        Script::of(
            "mset-and-mget",
            "MSET k 1 a 2 b 3 | MGET k a b x | MGET k k | MGET | MSET | MSET k | MSET k 1 a | MGET k a",
        ),
        Script::of("mset-takes-the-last-of-a-key", "MSET k 1 k 2 k 3 | GET k"),
        Script::of("mset-drops-expiries", "SET k 1 EX 100 | MSET k 2 a 3 | TTL k"),
        Script::of("mget-in-resp3", "HELLO 3 | SET k 1 | MGET k a k"),
        Script::of(
            "msetnx",
            "MSETNX k 1 a 2 | MSETNX a 3 b 4 | MGET k a b | MSETNX | MSETNX k | MSETNX b 1 b 2 | GET b",
        ),
        Script::of(
            "many-keys-behind-their-own-writes",
            "MSET k 1 a 2 | DEL k | MGET k a | SET k 5 | MGET a k | EXISTS k a b a | UNLINK k a b | TOUCH k a",
        ),
    ]
}

fn transactions() -> Vec<Script> {
    vec![
        Script::of("multi-and-exec", "MULTI | SET k 1 | INCR k | GET k | DEL k | EXEC | GET k"),
        Script::of("exec-of-nothing", "MULTI | EXEC | EXEC | DISCARD | MULTI | DISCARD | EXEC"),
        Script::of("multi-does-not-nest", "MULTI | MULTI | SET k 1 | EXEC | GET k"),
        Script::of(
            "a-command-that-fails-by-itself-fails-alone",
            "SET k x | MULTI | INCR k | SET a 1 | EXPIRE a 1 FOO | INCR a | EXEC | GET a",
        ),
        Script::of(
            "regression-a-bad-command-in-a-transaction-stops-all-of-it",
            "MULTI | SET k 1 | FOO | SET k 2 | EXEC | GET k | EXEC | MULTI | GET | SET k 3 | EXEC | GET k",
        ),
        Script::of(
            "discard-forgets",
            "SET k 1 | WATCH k | MULTI | SET k 2 | DISCARD | GET k | SET k 3 | MULTI | GET k | EXEC",
        ),
        Script::of(
            "watch-of-what-changes",
            "SET k 1 | WATCH k | SET k 2 | MULTI | SET k 3 | EXEC | GET k | MULTI | SET k 4 | EXEC | GET k",
        ),
        Script::of("watch-of-what-stays", "SET k 1 | WATCH k a | GET k | MULTI | SET k 2 | EXEC | GET k"),
        Script::of("watch-of-nothing-that-comes", "WATCH k | SET k 1 | MULTI | SET a 1 | EXEC | EXISTS a"),
        Script::of(
            "watch-in-resp3",
            "HELLO 3 | SET k 1 | WATCH k | SET k 2 | MULTI | GET k | EXEC | MULTI | GET a | EXEC",
        ),
        Script::of(
            "watch-inside-a-transaction-breaks-nothing",
            "MULTI | WATCH k | SET k 1 | EXEC | GET k | WATCH | MULTI | WATCH | EXEC",
        ),
        Script::of(
            "unwatch",
            "SET k 1 | WATCH k | SET k 2 | UNWATCH | MULTI | SET k 3 | EXEC | GET k | UNWATCH x | MULTI | UNWATCH | EXEC",
        ),
        Script::of(
            "reset-ends-a-transaction",
            "WATCH k | SET k 1 | MULTI | SET k 2 | RESET | EXEC | GET k | MULTI | GET k | EXEC",
        ),
        Script::of("quit-in-a-transaction", "MULTI | SET k 1 | QUIT | EXEC"),
        Script::of(
            "select-and-hello-in-a-transaction",
            "MULTI | SELECT 0 | HELLO 3 | GET k | HELLO 2 | GET k | EXEC | GET k",
        ),
        Script::of(
            "reads-in-a-transaction-see-its-writes",
            "MULTI | SET k 1 EX 100 | TTL k | MGET k a | STRLEN k | GETDEL k | EXISTS k | SETRANGE k 2 x | GETRANGE k 0 -1 | EXEC",
        ),
        Script::of(
            "flushdb-in-a-transaction",
            "MSET k 1 a 2 | MULTI | SET b 3 | FLUSHDB | EXISTS k a b | SET b 4 | DBSIZE | EXEC | GET b",
        ),
        Script::of("transactions-have-an-arity", "MULTI x | EXEC x | DISCARD x | EXEC"),
    ]
}

const OWN: &str = "the compare-and-set form by revision is Hearth's own";
const NEWER: &str = "redis-server 7.0 does not know it; the form is that of Redis 8.4";

fn own() -> Vec<Script> {
    vec![
        Script::of("ifeq-and-ifne", "SET k 1 IFEQ 0 | SET k 1 IFNE 0 | SET k 2 IFEQ 1 | SET k 3 IFEQ 1 | SET k 3 IFNE 2 | SET k 3 IFNE 9 GET | GET k | SET k 4 IFEQ 5 GET | SET k 4 IFEQ 3 GET EX 100 | TTL k | SET k 1 IFEQ 4 NX | SET k 1 IFEQ")
            .differs("$-1\r\n+OK\r\n+OK\r\n$-1\r\n$-1\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n3\r\n$1\r\n3\r\n:100\r\n-ERR syntax error\r\n-ERR syntax error\r\n", NEWER),
        Script::of("delex", "DELEX k | SET k 1 | DELEX k IFEQ 2 | DELEX k IFNE 1 | DELEX k IFEQ 1 | EXISTS k | SET k 1 | DELEX k IFNE 2 | DELEX k IFNE 2 | SET k 1 | DELEX k | DELEX k IFEQ | DELEX k FOO 1")
            .differs(":0\r\n+OK\r\n:0\r\n:0\r\n:1\r\n:0\r\n+OK\r\n:1\r\n:0\r\n+OK\r\n:1\r\n-ERR wrong number of arguments for 'delex' command\r\n-ERR Invalid condition. Use IFEQ or IFNE\r\n", NEWER),
        Script::of("hearth-get-of-nothing", "HEARTH.GET k | HEARTH.GET | HEARTH.SET k 1 IFREV 99999 | HEARTH.SET k 1 XX | HEARTH.SET k 1 GET | HEARTH.SET k 1 EXAT 1 | EXISTS k")
            .differs("$-1\r\n-ERR wrong number of arguments for 'hearth.get' command\r\n$-1\r\n$-1\r\n-ERR syntax error\r\n:0\r\n:0\r\n", OWN),
        Script::of("hearth-info-takes-no-argument", "HEARTH.INFO x")
            .differs("-ERR wrong number of arguments for 'hearth.info' command\r\n", "redis-server has no logs to tell of"),
    ]
}
