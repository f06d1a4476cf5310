//! The table of scripts: every command and its errors, values that are too long. What is no request is in `abuse/rows`.
//!
//! Promise: no two have one name; what differs from Redis says why. When you add a command, also add its scripts here
//! and record them.

mod keys;
mod server;
mod strings;

use crate::client::request;
use crate::script::Script;

/// The bound of the broker that the scripts about long values run against.
const SMALL_VALUE_BYTES: usize = 16;

pub fn commands() -> Vec<Script> {
    [basics(), keys::scripts(), strings::scripts()].into_iter().flatten().collect()
}

/// The commands about connections, settings and the broker itself.
pub fn server_commands() -> Vec<Script> {
    server::scripts()
}

fn basics() -> Vec<Script> {
    vec![
        Script::of("ping", "PING | PING hello | ping | PiNg ''"),
        Script::of("ping-in-resp3", "HELLO 3 | PING | PING hello"),
        Script::of("ping-takes-one-argument", "PING a b"),
        Script::of("echo", "ECHO hello | echo ''"),
        Script::of("echo-takes-one-argument", "ECHO | ECHO a b"),
        Script::of("get-and-set", "GET k | SET k v | GET k | get k | SET k '' | GET k"),
        Script::of("get-and-set-in-resp3", "HELLO 3 | GET k | SET k v | GET k"),
        Script::of("get-takes-one-key", "GET | GET a b | GET k"),
        Script::of("set-needs-a-value", "SET | SET k | GET k"),
        Script::of("an-empty-key-is-a-key", "SET '' v | GET '' | EXISTS '' | DEL '' | GET ''"),
        Script::raw(
            "binary-keys-and-values",
            [
                request([&b"SET"[..], b"\x00\xff\r\n", b"\r\n$-1\r\n\x00\xfe"]),
                request([&b"GET"[..], b"\x00\xff\r\n"]),
                request([&b"DEL"[..], b"\x00\xff\r\n"]),
            ]
            .concat(),
        ),
        Script::of(
            "set-words-are-judged-before-numbers",
            "SET k 1 PX 0 PX 100000 | SET k 1 EX EX 100 | SET k 1 EX PX 100000 | SET k 1 PX 0 KEEPTTL | SET k 1 PX 0 EX 100 | \
             SET k 1 EX abc NX XX | SET k 1 EX abc | SET k 1 KEEPTTL KEEPTTL | SET k 1 EX",
        ),
        Script::of("set-nx", "SET k 1 NX | SET k 2 NX | GET k | SET k 3 nx"),
        Script::of("set-xx", "SET k 1 XX | GET k | SET k 2 | SET k 3 XX | GET k"),
        Script::of("set-nx-and-xx-in-resp3", "HELLO 3 | SET k 1 XX | SET k 1 NX | SET k 2 NX"),
        Script::of("set-get", "SET k 1 GET | SET k 2 GET | SET k 3 XX GET | SET k 4 GET NX | GET k"),
        Script::of("set-get-in-resp3", "HELLO 3 | SET k 1 GET | SET k 2 GET | SET k 3 NX GET | GET k"),
        Script::of("set-nx-get-on-nothing", "SET k 1 NX GET | GET k | SET b 1 XX GET | GET b"),
        Script::of("set-ex", "SET k 1 EX 1000 | GET k | SET k 2 ex 1000 | GET k"),
        Script::of("set-px", "SET k 1 PX 1000000 | GET k | SET k 2 pX 1000000 | GET k"),
        Script::of("set-exat", "SET k 1 EXAT 99999999999 | GET k | SET a 1 exat 99999999999 | GET a"),
        Script::of("set-pxat", "SET k 1 PXAT 99999999999999 | GET k | SET a 1 pxat 99999999999999 | GET a"),
        Script::of("set-keepttl", "SET k 1 KEEPTTL | GET k | SET k 2 KeepTtl | GET k"),
        Script::of("an-expiry-in-the-past-leaves-nothing", "SET k 1 | SET k 2 EXAT 1 | GET k | SET a 1 PXAT 1 | EXISTS a"),
        Script::of("an-expiry-in-the-past-gives-the-old-value", "SET k 1 | SET k 2 EXAT 1 GET | EXISTS k"),
        Script::of("a-past-expiry-held-back-by-nx-changes-nothing", "SET k 1 | SET k 2 NX EXAT 1 | GET k"),
        Script::of("set-options-in-any-order", "SET k 1 EX 1000 NX | SET k 2 GET XX PX 100000 | GET k | SET k 3 XX KEEPTTL GET"),
        Script::of("the-last-of-a-repeated-option-counts", "SET k 1 EX 10 EX 1000 | GET k | SET k 2 XX XX | SET k 3 GET GET | GET k"),
        Script::of("nx-and-xx-exclude-each-other", "SET k 1 NX XX | SET k 1 XX NX | GET k"),
        Script::of("expiries-exclude-each-other", "SET k 1 EX 1 PX 1 | SET k 1 EX 1 KEEPTTL | SET k 1 KEEPTTL PXAT 9 | SET k 1 EXAT 9 EX 9 | GET k"),
        Script::of("an-expiry-needs-its-number", "SET k 1 EX | SET k 1 PX | SET k 1 EXAT | SET k 1 PXAT | SET k 1 NX EX"),
        Script::of("an-expiry-is-an-integer", "SET k 1 EX x | SET k 1 PX 1.5 | SET k 1 EX +1 | SET k 1 EX 010 | SET k 1 EX '' | SET k 1 EX 9223372036854775808 | GET k"),
        Script::of("an-expiry-is-more-than-nothing", "SET k 1 EX 0 | SET k 1 EX -1 | SET k 1 PX 0 | SET k 1 PXAT -1 | SET k 1 EXAT 0 | GET k"),
        Script::of("an-expiry-fits-its-clock", "SET k 1 EX 9223372036854775807 | SET k 1 EX 9223372036854775 | SET k 1 PX 9223372036854775807 | SET k 1 EXAT 9223372036854775807 | GET k"),
        Script::of("an-expiry-far-away-is-taken", "SET k 1 PXAT 9223372036854775807 | GET k"),
        Script::of("set-knows-no-other-option", "SET k 1 FOO | SET k 1 EX 1 FOO | SET k 1 2 3 | SET k 1 '' | GET k"),
        Script::of("ifrev-creates", "SET k 1 IFREV 0 | SET k 2 IFREV 0 | GET k | SET k 3 IFREV 0 GET")
            .differs("+OK\r\n$-1\r\n$1\r\n1\r\n$1\r\n1\r\n", "the compare-and-set form by revision is Hearth's own"),
        Script::of("ifrev-excludes-nx-and-xx", "SET k 1 IFREV 0 NX | SET k 1 XX IFREV 0 | SET k 1 IFREV | SET k 1 IFREV x | SET k 1 IFREV -1 | GET k")
            .differs(
                "-ERR syntax error\r\n-ERR syntax error\r\n-ERR syntax error\r\n-ERR value is not an integer or out of \
                 range\r\n-ERR value is not an integer or out of range\r\n$-1\r\n",
                "the compare-and-set form by revision is Hearth's own",
            ),
        Script::of("dbsize-of-what", "DBSIZE k"),
        Script::of("del", "DEL k | SET k 1 | SET a 1 | DEL k a b | DEL k a b | GET k"),
        Script::of("a-key-named-twice-is-deleted-once", "SET k 1 | DEL k k | DEL"),
        Script::of("exists", "EXISTS k | SET k 1 | EXISTS k | EXISTS k k a | EXISTS"),
        Script::of("flushdb", "FLUSHDB | SET k 1 | SET a 1 EX 1000 | FLUSHDB | GET k | EXISTS k a | SET k 2 | GET k"),
        Script::of("flushall", "FLUSHALL | SET k 1 | SET a 1 PX 100000 | flushall | GET a | EXISTS k a"),
        Script::of("flush-sync-or-async", "SET k 1 | FLUSHDB ASYNC | GET k | SET k 1 | FLUSHDB sync | GET k | SET k 1 | FLUSHALL async | GET k | SET k 1 | FLUSHALL SYNC | GET k"),
        Script::of("flush-knows-no-other-word", "SET k 1 | FLUSHDB NOW | FLUSHALL NOW | FLUSHDB ASYNC SYNC | FLUSHALL SYNC SYNC | FLUSHDB '' | GET k"),
        Script::of("flush-in-one-pipeline-with-what-comes-before-and-after", "SET k 1 | SET a 1 | FLUSHDB | SET k 2 NX | SET a 2 XX | GET k | GET a | DEL k a | FLUSHALL | SET k 3 GET"),
        Script::of("flush-in-resp3", "HELLO 3 | SET k 1 | FLUSHDB | GET k"),
        Script::of("exists-and-del-in-one-pipeline", "SET k 1 | EXISTS k | DEL k | EXISTS k | SET k 2 | EXISTS k"),
        Script::of("hello-tells-the-server", "HELLO | HELLO 2 | HELLO 3 | HELLO"),
        Script::of("hello-back-to-resp2", "HELLO 3 | GET k | HELLO 2 | GET k"),
        Script::of("hello-in-mid-pipeline-switches-from-its-own-reply-on", "GET k | HELLO 3 | GET k | HELLO 2 | GET k | PING"),
        Script::of("hello-with-all-options", "HELLO 3 AUTH default secret SETNAME me | CLIENT GETNAME | hello 2 setname you auth default x | CLIENT GETNAME"),
        Script::of("hello-of-another-version-changes-nothing", "HELLO 4 | HELLO 1 | HELLO -3 | GET k | HELLO 3 | HELLO 9 | GET k"),
        Script::of("hello-needs-an-integer", "HELLO x | HELLO '' | HELLO 3.0 | HELLO 03 | GET k"),
        Script::of("hello-knows-no-other-option", "HELLO 3 FOO | HELLO 3 AUTH default | HELLO 3 SETNAME | HELLO 2 setname a foo | GET k"),
        Script::of("hello-with-another-user-is-refused", "HELLO 3 AUTH nobody x | GET k | HELLO 3 AUTH DEFAULT x | GET k"),
        Script::raw("hello-refuses-a-name-with-blanks", [request(["HELLO", "3", "SETNAME", "a b"]), request(["GET", "k"])].concat()),
        Script::of("auth", "AUTH secret | AUTH default secret | AUTH nobody secret | AUTH | AUTH a b c | AUTH DEFAULT x"),
        Script::of("select", "SELECT 0 | SELECT x | SELECT -1 | SELECT 16 | SELECT | SELECT 0 1 | SELECT '' | SELECT 99999999999999999999"),
        Script::of("select-of-another-database", "SELECT 1 | SELECT 15 | PING"),
        Script::of("quit-ends-the-connection", "QUIT"),
        Script::of("quit-in-mid-pipeline-drops-what-follows", "SET k 1 | quit | SET k 2 | GET k"),
        Script::of("quit-with-arguments-quits", "PING | QUIT now | PING"),
        Script::of("reset", "HELLO 3 | CLIENT SETNAME me | RESET | GET k | CLIENT GETNAME | RESET now"),
        Script::of("client-setname", "CLIENT GETNAME | CLIENT SETNAME me | CLIENT GETNAME | client setname '' | CLIENT GETNAME"),
        Script::of("client-getname-in-resp3", "HELLO 3 | CLIENT GETNAME | CLIENT SETNAME me | CLIENT GETNAME"),
        Script::raw(
            "client-setname-refuses-blanks",
            [request(["CLIENT", "SETNAME", "a b"]), request(["CLIENT", "SETNAME", "a\nb"]), request(["CLIENT", "GETNAME"])].concat(),
        ),
        Script::of("client-id-is-a-number", "ECHO id | CLIENT ID"),
        Script::of("client-setinfo", "CLIENT SETINFO LIB-NAME redis-py | client setinfo lib-ver 8.1.0 | PING")
            .differs("+OK\r\n+OK\r\n+PONG\r\n", "redis-server 7.0 does not know it; 7.2, which we say we are, does"),
        Script::of("client-setinfo-refuses", "CLIENT SETINFO FOO x | CLIENT SETINFO LIB-NAME")
            .differs(
                "-ERR Unrecognized option 'FOO'\r\n-ERR wrong number of arguments for 'client|setinfo' command\r\n",
                "redis-server 7.0 does not know it; the texts are those of 7.2",
            ),
        Script::of("client-subcommands-have-an-arity", "CLIENT | CLIENT ID x | CLIENT GETNAME x | CLIENT SETNAME | CLIENT SETNAME a b"),
        Script::of("an-unknown-subcommand-of-client-is-an-error", "CLIENT FOO | CLIENT MAINT_NOTIFICATIONS ON | client foo bar | CLIENT ''"),
        Script::of("client-tracking-is-not-there", "CLIENT TRACKING ON | PING")
            .differs("-ERR unknown subcommand 'TRACKING'. Try CLIENT HELP.\r\n+PONG\r\n", "a faked TRACKING would mean stale client caches"),
        Script::of("config-get", "CONFIG GET maxmemory-policy | CONFIG GET save | config get appendonly"),
        Script::of("config-get-in-capitals", "CONFIG GET MAXMEMORY")
            .differs("*2\r\n$9\r\nmaxmemory\r\n$1\r\n0\r\n", "Redis answers the name as it was asked; clients look it up by its own"),
        Script::of("config-get-in-resp3", "HELLO 3 | CONFIG GET maxmemory-policy | CONFIG GET nothing-of-this-name"),
        Script::of("config-get-by-pattern", "CONFIG GET maxmemory-polic? | CONFIG GET m[ab]xmemory-policy | CONFIG GET nothing* | CONFIG GET ''"),
        Script::of("config-has-an-arity", "CONFIG | CONFIG GET | CONFIG FOO | CONFIG FOO a b"),
        Script::of("command-info-of-nothing", "COMMAND INFO foo bar | HELLO 3 | COMMAND INFO foo"),
        Script::of("command-docs", "COMMAND DOCS get foo | COMMAND DOCS foo")
            .differs(
                "*2\r\n$3\r\nget\r\n*10\r\n$7\r\nsummary\r\n$27\r\nAnswers the value of a key.\r\n$5\r\nsince\r\n$5\r\n1.0.0\r\n\
                 $5\r\ngroup\r\n$6\r\nstring\r\n$10\r\ncomplexity\r\n$4\r\nO(1)\r\n\
                 $9\r\narguments\r\n*1\r\n*6\r\n$4\r\nname\r\n$3\r\nkey\r\n$4\r\ntype\r\n$3\r\nkey\r\n$14\r\n\
                 key_spec_index\r\n:0\r\n*0\r\n",
                "the summaries are Hearth's",
            ),
        Script::of("command-docs-in-resp3", "HELLO 3 | COMMAND DOCS foo"),
        Script::of("command-getkeys", "COMMAND GETKEYS GET k | COMMAND GETKEYS SET k v | COMMAND GETKEYS DEL a b c | command getkeys exists a"),
        Script::of("command-getkeys-refuses", "COMMAND GETKEYS | COMMAND GETKEYS FOO x | COMMAND GETKEYS GET | COMMAND GETKEYS PING x | COMMAND GETKEYS PING"),
        Script::of("command-has-an-arity", "COMMAND COUNT x | COMMAND FOO | COMMAND FOO x"),
        Script::of("info-of-no-section-is-empty", "INFO nothing | HELLO 3 | INFO nothing"),
        Script::of("eval-looks-at-the-number-of-keys-first", "EVAL | EVAL x | EVAL x y | EVAL x 1 | EVAL x 2 a | EVAL x -1 | EVAL x +1 a | EVAL x 99999999999999999999"),
        Script::of("eval_ro-looks-at-the-number-of-keys-first", "EVAL_RO | EVAL_RO x y | EVAL_RO x 1 | EVAL_RO x -1"),
        Script::of("evalsha-of-no-script", &format!("EVALSHA | EVALSHA abc 0 | EVALSHA abc x | EVALSHA {0} 0 | EVALSHA {0} x | EVALSHA {0} 1 | evalsha_ro {0} -1 | EVALSHA_RO {0} 0", "0".repeat(40))),
        Script::raw("eval-runs-a-known-script", unlocking()),
        Script::raw("eval-runs-a-known-script-in-resp3", [request(["HELLO", "3"]), unlocking()].concat()),
        Script::of("eval-of-an-unknown-script", "EVAL x 0 | EVAL_RO x 0 | SCRIPT LOAD x | MULTI | EVAL x 0 | EXEC").differs(
            format!("{0}{0}{0}+OK\r\n+QUEUED\r\n*1\r\n{0}", "-ERR this broker runs no Lua: the script with SHA1 11f6ad8ec52a2984abaafd7c3b516503785c2072 is not one of those it knows; see docs/scripts.md\r\n"),
            "Hearth runs no Lua",
        ),
        Script::of("evalsha-of-a-known-script-needs-no-load", &format!("EVALSHA {UNLOCK} 1 k v | evalsha_ro {UNLOCK} 1 k v | SCRIPT EXISTS abc {UNLOCK} {}", UNLOCK.to_uppercase()))
            .differs(":0\r\n:0\r\n*3\r\n:0\r\n:1\r\n:1\r\n", "what is known is known from the start: it saves a round trip"),
        Script::of("a-known-script-needs-its-keys-and-arguments", &format!("EVALSHA {UNLOCK} 0 k v | EVALSHA {UNLOCK} 1 k")).differs(
            format!("-ERR the script with SHA1 {UNLOCK} needs 1 keys and 1 arguments, and was given 0 and 2\r\n-ERR the script with SHA1 {UNLOCK} needs 1 keys and 1 arguments, and was given 1 and 0\r\n"),
            "no client library leaves them out; what Lua makes of a nil is different in each body",
        ),
        Script::of("script-exists-and-flush", &format!("SCRIPT EXISTS abc {0} | script exists {0} | SCRIPT FLUSH | SCRIPT FLUSH ASYNC | SCRIPT FLUSH sync | PING", "0".repeat(40))),
        Script::of("script-has-an-arity", "SCRIPT | SCRIPT LOAD | SCRIPT LOAD a b | SCRIPT EXISTS | SCRIPT HELP x | SCRIPT FLUSH FOO | SCRIPT FLUSH SYNC SYNC | SCRIPT FOO | SCRIPT FOO a"),
        Script::of("script-kill-and-debug-are-not-there", "SCRIPT KILL | SCRIPT DEBUG NO").differs(
            "-ERR unknown subcommand 'KILL'. Try SCRIPT HELP.\r\n-ERR unknown subcommand 'DEBUG'. Try SCRIPT HELP.\r\n",
            "a script that is known never runs for long",
        ),
        Script::of("command-getkeys-of-scripts", "COMMAND GETKEYS EVAL x 0 | COMMAND GETKEYS EVAL x 2 a b c | COMMAND GETKEYS EVALSHA x 1 a | COMMAND GETKEYS EVAL_RO x 2 a | COMMAND GETKEYS EVAL x abc a | COMMAND GETKEYS EVALSHA_RO x -1 a | COMMAND GETKEYS EVAL x"),
    ]
}

/// The SHA1 of the script that many libraries let a lock go with.
const UNLOCK: &str = "cf0e94b2e9ffc7e04395cf88f7583fc309985910";

/// That script, run where it is known already and where it is not.
fn unlocking() -> Vec<u8> {
    let unlock =
        "if redis.call(\"get\", KEYS[1]) == ARGV[1] then return redis.call(\"del\", KEYS[1]) else return 0 end";
    [
        request(["EVAL", unlock, "1", "k", "v"]),
        request(["SET", "k", "v"]),
        request(["SCRIPT", "LOAD", unlock]),
        request(["EVALSHA", UNLOCK, "1", "k", "other"]),
        request(["EVAL_RO", unlock, "1", "k", "v"]),
        request(["EVALSHA", UNLOCK, "1", "k", "v"]),
        request(["EXISTS", "k"]),
    ]
    .concat()
}

pub fn unknown_commands() -> Vec<Script> {
    vec![
        Script::of("an-unknown-command-is-named", "FOO | foo | FOO a b | GETS k | SETX | ''"),
        Script::of("an-unknown-command-in-resp3", "HELLO 3 | FOO a | GET k"),
        Script::of("arguments-of-an-unknown-command-are-shown-up-to-128-bytes", &format!("FOO {} {} {}", "a".repeat(60), "b".repeat(60), "c".repeat(60))),
        Script::of("a-long-argument-of-an-unknown-command-is-cut", &format!("FOO {} b", "a".repeat(200))),
        Script::of("a-long-unknown-name-is-cut", &format!("{} a", "F".repeat(200))),
        Script::raw("line-ends-in-an-unknown-command-become-blanks", request(["FOO\r\nBAR", "a\r\nb\nc"])),
        Script::of("a-long-unknown-subcommand-is-cut", &format!("CLIENT {}", "F".repeat(200))),
        Script::of("other-data-types-are-unknown", "LPUSH k v | HSET k f v | SUBSCRIBE c | PING")
            .differs(
                "-ERR unknown command 'LPUSH', with args beginning with: 'k' 'v' \r\n-ERR unknown command 'HSET', with args \
                 beginning with: 'k' 'f' 'v' \r\n-ERR unknown command 'SUBSCRIBE', with args beginning with: 'c' \
                 \r\n+PONG\r\n",
                "Hearth is a cache of strings",
            ),
    ]
}

/// Against a broker whose values have at most 16 bytes.
pub fn long_values() -> Vec<Script> {
    let own = "the bound is Hearth's, and a long value costs no memory";
    let long = "x".repeat(SMALL_VALUE_BYTES + 1);
    let longest = "x".repeat(SMALL_VALUE_BYTES);
    const REFUSED: &str = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n";
    vec![
        Script::of("the-longest-value-fits", &format!("SET k {longest} | GET k"))
            .differs(format!("+OK\r\n$16\r\n{longest}\r\n"), own),
        Script::of("a-longer-value-is-refused-and-the-connection-stays", &format!("SET k 1 | SET k {long} | GET k"))
            .differs(format!("+OK\r\n{REFUSED}$1\r\n1\r\n"), own),
        Script::of("a-much-longer-value-is-refused", &format!("SET k {} NX | PING", "y".repeat(3000)))
            .differs(format!("{REFUSED}+PONG\r\n"), own),
        Script::of("several-long-arguments-are-one-error", &format!("SET k {long} {long} {long} | DEL {long} k {long} | ECHO {long} | PING"))
            .differs(format!("{REFUSED}{REFUSED}{REFUSED}+PONG\r\n"), own),
        Script::of("arity-and-name-come-before-length", &format!("GET k {long} | FOO {long} | {long} | PING"))
            .differs(
                "-ERR wrong number of arguments for 'get' command\r\n-ERR unknown command 'FOO', with args beginning with: '' \
                 \r\n-ERR unknown command '', with args beginning with: \r\n+PONG\r\n",
                own,
            ),
        Script::raw("a-long-inline-word-is-refused", format!("SET k {long}\r\nSET k 1\r\nGET k\r\n"))
            .differs(format!("{REFUSED}+OK\r\n$1\r\n1\r\n"), own),
        Script::raw(
            "a-long-value-that-does-not-end-closes",
            [format!("*2\r\n$4\r\nECHO\r\n$17\r\n{long}XX").into_bytes(), request(["PING"])].concat(),
        )
        .differs("-ERR Protocol error: invalid bulk terminator\r\n", own),
    ]
}
