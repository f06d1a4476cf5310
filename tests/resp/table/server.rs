//! The scripts about connections, settings and the broker itself.
//!
//! Promise: no script leaves a setting changed. Must never rest on how long anything takes.

use crate::script::Script;

pub fn scripts() -> Vec<Script> {
    let mut scripts = connections();
    scripts.extend(settings());
    scripts.extend(tools());
    scripts.extend(the_table());
    scripts
}

fn connections() -> Vec<Script> {
    vec![
        Script::of(
            "client-reply-skip-and-off-suppress-exactly-what-they-name",
            "PING 1 | CLIENT REPLY SKIP | PING 2 | PING 3 | CLIENT REPLY OFF | PING 4 | CLIENT REPLY SKIP | PING 5 | FOO | \
             CLIENT REPLY ON | PING 6 | CLIENT REPLY SKIP | CLIENT REPLY SKIP | PING 7 | PING 8 | CLIENT REPLY SKIP | \
             CLIENT REPLY ON | PING 9",
        ),
        Script::of("client-reply-skip-of-an-error", "CLIENT REPLY SKIP | FOO | PING | CLIENT REPLY SKIP x | PING"),
        Script::of("client-reply-off-also-of-its-own-errors", "CLIENT REPLY OFF | CLIENT REPLY x | CLIENT REPLY ON"),
        Script::of("client-reply-and-reset", "CLIENT REPLY OFF | RESET | PING 1 | CLIENT REPLY SKIP | RESET | PING 2"),
        Script::of("client-reply-and-hello", "CLIENT REPLY SKIP | HELLO 3 | GET k | CLIENT REPLY SKIP | GET k | GET k"),
        Script::of(
            "client-reply-off-around-a-transaction",
            "CLIENT REPLY OFF | MULTI | PING | EXEC | CLIENT REPLY ON | PING",
        ),
        Script::of("client-reply-off-until-the-end", "PING | CLIENT REPLY OFF | PING | QUIT").closing(),
        Script::raw("client-reply-off-and-what-is-no-request", b"PING\r\nCLIENT REPLY OFF\r\n*x\r\n")
            .differs("+PONG\r\n", "Redis says nothing either, and leaves the connection open for ever")
            .closing(),
        Script::of(
            "client-reply-knows-three-words",
            "CLIENT REPLY | CLIENT REPLY x | CLIENT REPLY on | CLIENT REPLY ON OFF",
        ),
        Script::of("client-no-evict", "CLIENT NO-EVICT on | CLIENT NO-EVICT OFF | CLIENT NO-EVICT x | CLIENT NO-EVICT"),
        Script::of("client-no-touch", "CLIENT NO-TOUCH on | CLIENT NO-TOUCH OFF | CLIENT NO-TOUCH x").differs(
            "+OK\r\n+OK\r\n-ERR syntax error\r\n",
            "redis-server 7.0 does not know it; 7.2, which we say we are, does",
        ),
        Script::of("client-getredir", "CLIENT GETREDIR | CLIENT GETREDIR x"),
        Script::of(
            "client-kill-of-nobody",
            "CLIENT KILL 1.2.3.4:5 | CLIENT KILL ADDR 1.2.3.4:5 | CLIENT KILL LADDR 1.2.3.4:5 | CLIENT KILL ID 999999 | \
             CLIENT KILL TYPE master | CLIENT KILL TYPE pubsub SKIPME no | CLIENT KILL USER default ID 999999",
        ),
        Script::of(
            "client-kill-refuses",
            "CLIENT KILL | CLIENT KILL a b | CLIENT KILL ID x | CLIENT KILL ID 0 | CLIENT KILL ID -1 | CLIENT KILL TYPE x | \
             CLIENT KILL USER x | CLIENT KILL SKIPME x | CLIENT KILL ID 1 2 | CLIENT KILL ID 1 FOO",
        ),
        Script::of("client-kill-maxage", "CLIENT KILL MAXAGE x | CLIENT KILL MAXAGE 0 | CLIENT KILL MAXAGE 1000000")
            .differs(
                "-ERR maxage is not an integer or out of range\r\n-ERR maxage should be greater than 0\r\n:0\r\n",
                "redis-server 7.0 does not know it; the texts are those of 7.4",
            ),
        Script::of(
            "client-list-refuses",
            "CLIENT LIST x | CLIENT LIST TYPE x | CLIENT LIST ID | CLIENT LIST ID x | CLIENT LIST TYPE normal ID 1 | \
             CLIENT LIST ID 999999 | CLIENT LIST TYPE master | CLIENT LIST TYPE PubSub | CLIENT INFO x",
        ),
        Script::of("client-list-in-resp3", "HELLO 3 | CLIENT LIST ID 999999"),
        Script::of("auth-and-hello-in-a-transaction", "MULTI | AUTH x | HELLO 3 | PING | EXEC | GET k"),
        Script::of(
            "subcommands-are-judged-when-they-are-queued",
            "MULTI | CLIENT FOO | CLIENT ID x | CLIENT GETNAME | EXEC",
        ),
        Script::of(
            "a-subcommand-in-a-transaction",
            "MULTI | CLIENT GETNAME | CLIENT SETNAME me | CLIENT GETNAME | EXEC",
        ),
        Script::of("readonly-readwrite-asking", "READONLY | READWRITE | ASKING | READONLY x").differs(
            "+OK\r\n+OK\r\n+OK\r\n-ERR wrong number of arguments for 'readonly' command\r\n",
            "Redis refuses them unless it is a cluster; any key is answered here, so what they ask for is so",
        ),
        Script::of("cluster", "CLUSTER INFO | CLUSTER SLOTS | CLUSTER"),
        Script::of("cluster-whatever-follows", "CLUSTER FOO | CLUSTER KEYSLOT").differs(
            "-ERR This instance has cluster support disabled\r\n-ERR This instance has cluster support disabled\r\n",
            "there are no subcommands to be unknown",
        ),
    ]
}

fn settings() -> Vec<Script> {
    vec![
        Script::of(
            "config-get-of-several",
            "CONFIG GET slowlog-max-len slowlog-max-len | CONFIG GET a b c | HELLO 3 | CONFIG GET databases nothing",
        ),
        Script::of(
            "config-set-and-back",
            "CONFIG SET slowlog-max-len 64 SLOWLOG-LOG-SLOWER-THAN 20000 | CONFIG GET slowlog-max-len | \
             CONFIG GET slowlog-log-slower-than | CONFIG SET slowlog-log-slower-than 10000 slowlog-max-len 128",
        ),
        Script::of(
            "config-set-is-all-or-nothing",
            "CONFIG SET slowlog-max-len 3 nothing x | CONFIG SET slowlog-max-len 3 slowlog-log-slower-than x | \
             CONFIG SET slowlog-max-len 3 slowlog-max-len 4 | CONFIG SET slowlog-max-len 3 databases 3 | \
             CONFIG GET slowlog-max-len",
        ),
        Script::of(
            "config-set-refuses",
            "CONFIG SET | CONFIG SET a | CONFIG SET a b | CONFIG SET slowlog-max-len 1 x | CONFIG SET slowlog-max-len 1.5 | \
             CONFIG SET slowlog-log-slower-than -2 | CONFIG SET databases 3 | CONFIG SET maxmemory 0 maxmemory 0",
        ),
        Script::of("config-set-to-what-it-is", "CONFIG SET appendonly no | CONFIG SET save '' | CONFIG SET timeout 0"),
        Script::of("config-set-of-what-redis-can", "CONFIG SET maxmemory 100 | CONFIG SET slowlog-max-len 65537").differs(
            "-ERR CONFIG SET failed (possibly related to argument 'maxmemory') - can't set immutable config\r\n\
             -ERR CONFIG SET failed (possibly related to argument 'slowlog-max-len') - argument must be between 0 and 65536 \
             inclusive\r\n",
            "settings are given at the start; the slow log is bounded",
        ),
        Script::of("config-rewrite-and-resetstat", "CONFIG REWRITE | CONFIG RESETSTAT | CONFIG REWRITE x | CONFIG RESETSTAT x"),
        Script::of("config-help", "CONFIG HELP x | SLOWLOG HELP x | ACL HELP x | MODULE HELP x | LATENCY HELP x | FUNCTION HELP x | CLIENT HELP x | COMMAND HELP x"),
        Script::of("module-help", "MODULE HELP").differs(
            "*5\r\n+MODULE <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\r\n+LIST\r\n+    Answers the modules: \
             none.\r\n+HELP\r\n+    Prints this help.\r\n",
            "the subcommands that are there, in our own words",
        ),
        Script::of("slowlog-refuses", "SLOWLOG GET x | SLOWLOG GET -2 | SLOWLOG GET 1 2 | SLOWLOG LEN x | SLOWLOG FOO | SLOWLOG | SLOWLOG RESET x | SLOWLOG GET 0"),
        Script::of("slowlog-reset", "SLOWLOG RESET"),
    ]
}

fn tools() -> Vec<Script> {
    vec![
        Script::of("role", "ROLE | ROLE x | HELLO 3 | ROLE"),
        Script::of("wait", "WAIT 0 0 | WAIT -1 0 | WAIT x 1 | WAIT 1 x | WAIT 1 -1 | WAIT 1 1.5 | WAIT 1"),
        Script::of("wait-does-not-wait", "WAIT 1 100000 | WAIT 1 0")
            .differs(":0\r\n:0\r\n", "there are no replicas, and none can come: Redis would wait for nothing"),
        Script::of("time-and-lastsave-take-nothing", "TIME x | LASTSAVE x"),
        Script::of("lolwut-version", "LOLWUT VERSION x"),
        Script::of(
            "latency",
            "LATENCY LATEST | LATENCY HISTORY x | LATENCY RESET | LATENCY RESET a b | LATENCY GRAPH x | LATENCY HISTORY | \
             LATENCY FOO | LATENCY",
        ),
        Script::of("latency-doctor", "LATENCY DOCTOR").differs(
            "$93\r\nLatency events are not monitored. SLOWLOG GET tells the requests that took long to evaluate.\n\r\n",
            "Redis tells how to switch on what Hearth does not have",
        ),
        Script::of("module", "MODULE LIST | MODULE LIST x | MODULE FOO | MODULE"),
        Script::of(
            "function",
            "FUNCTION FLUSH | FUNCTION FLUSH async | FUNCTION FLUSH x | FUNCTION FLUSH ASYNC x | FUNCTION FOO",
        ),
        Script::of("functions-are-not-there", "FUNCTION LIST").differs(
            "-ERR unknown subcommand 'LIST'. Try FUNCTION HELP.\r\n",
            "there are no functions; FLUSH is what clients clean up with",
        ),
        Script::of(
            "acl",
            "ACL WHOAMI | ACL USERS | ACL LIST | ACL CAT | ACL CAT foo | ACL CAT string x | ACL CAT TRANSACTIONS | ACL WHOAMI x | \
             ACL FOO",
        ),
    ]
}

fn the_table() -> Vec<Script> {
    vec![
        Script::of("acl-cat-of-one", "ACL CAT transaction | COMMAND LIST FILTERBY aclcat Transaction").differs(
            "*5\r\n$7\r\ndiscard\r\n$4\r\nexec\r\n$5\r\nmulti\r\n$7\r\nunwatch\r\n$5\r\nwatch\r\n".repeat(2),
            "the same in the order of the names; Redis's order is that of a hash",
        ),
        Script::of("command-list-by-pattern", "COMMAND LIST FILTERBY PATTERN getd* | COMMAND LIST FILTERBY PATTERN CLIENT|ID"),
        Script::of(
            "command-list-refuses",
            "COMMAND LIST x | COMMAND LIST FILTERBY | COMMAND LIST FILTERBY x y | COMMAND LIST FILTERBY MODULE y | \
             COMMAND LIST FILTERBY ACLCAT y | COMMAND LIST FILTERBY PATTERN a b",
        ),
        Script::of(
            "command-getkeysandflags",
            "COMMAND GETKEYSANDFLAGS SET a b | COMMAND GETKEYSANDFLAGS SET a b get | COMMAND GETKEYSANDFLAGS MSET a b c d | \
             COMMAND GETKEYSANDFLAGS PING x | COMMAND GETKEYSANDFLAGS RENAME a b | COMMAND GETKEYSANDFLAGS EVAL x 1 a | \
             HELLO 3 | COMMAND GETKEYSANDFLAGS MGET a b",
        ),
        Script::of(
            "command-getkeys-of-containers-and-scripts",
            "COMMAND GETKEYS OBJECT ENCODING a | COMMAND GETKEYS OBJECT HELP | COMMAND GETKEYS OBJECT x | \
             COMMAND GETKEYS MEMORY USAGE a | COMMAND GETKEYS EVAL x 2 a b c | COMMAND GETKEYS EVAL x x a | \
             COMMAND GETKEYS EVAL x 3 a | COMMAND GETKEYS EVAL x 0 | COMMAND GETKEYS GET a b | COMMAND GETKEYS CLIENT ID",
        ),
        Script::of("command-info-of-subcommands", "COMMAND INFO client|id CONFIG|GET config|foo get|x | COMMAND INFO ''"),
        Script::of("command-docs-of-a-subcommand", "COMMAND DOCS client|id").differs(
            "*2\r\n$9\r\nclient|id\r\n*8\r\n$7\r\nsummary\r\n$38\r\nAnswers the number of this connection.\r\n$5\r\nsince\r\n\
             $5\r\n5.0.0\r\n$5\r\ngroup\r\n$10\r\nconnection\r\n$10\r\ncomplexity\r\n$4\r\nO(1)\r\n",
            "the summaries are Hearth's",
        ),
    ]
}
