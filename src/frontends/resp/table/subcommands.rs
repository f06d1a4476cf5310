//! The subcommands of each container. Their group is the container's.
//!
//! Promise: sorted by name within a container; each has a HELP, which tells them. Must never run anything.

use crate::frontends::resp::command::{Command, DEFAULT, Keys, Run};
use crate::frontends::resp::commands::{client, command, config, help, object, script, server, slowlog};

/// The flags of most of them.
const PLAIN: &[&str] = &["loading", "stale"];
const READ: &[&str] = &["readonly"];
const NO_SCRIPT: &[&str] = &["noscript", "loading", "stale"];
const ADMIN: &[&str] = &["admin", "noscript", "loading", "stale"];
const ADMIN_IN_SCRIPTS: &[&str] = &["admin", "loading", "stale"];

const OF_CLIENTS: &str = "O(N) where N is the number of client connections";
const OF_PARAMETERS: &str = "O(N) when N is the number of configuration parameters provided";
const OF_MEMORY: &str = "Depends on how much memory is allocated, could be slow";
const OF_NAMES: &str = "O(N) where N is the number of commands to look up";
const OF_ARGUMENTS: &str = "O(N) where N is the number of arguments to the command";
const OF_USERS: &str = "O(N). Where N is the number of configured users.";

const fn sub(
    name: &'static str,
    arity: i64,
    flags: &'static [&'static str],
    since: &'static str,
    summary: &'static str,
    run: Run,
) -> Command {
    Command { name, arity, flags, since, summary, run, ..DEFAULT }
}

/// The key behind a subcommand.
const OBJECT_KEY: Keys = Keys { first: 2, last: 2, step: 1 };

/// One that reads what a key holds.
const fn of_key(name: &'static str, since: &'static str, summary: &'static str, run: Run) -> Command {
    Command { keys: OBJECT_KEY, ..sub(name, 3, READ, since, summary, run) }
}

/// The HELP of a container.
const fn help_of(name: &'static str, since: &'static str) -> Command {
    sub(name, 2, PLAIN, since, "Tells the subcommands.", help::help)
}

pub(super) static ACL: &[Command] = &[
    sub("acl|cat", -2, NO_SCRIPT, "6.0.0", "Tells the categories, or the commands of one.", server::acl_cat)
        .costs("O(1) since the categories and commands are a fixed set."),
    help_of("acl|help", "6.0.0"),
    sub("acl|list", 2, ADMIN, "6.0.0", "Tells the rules of the one user.", server::acl_list).costs(OF_USERS),
    sub("acl|users", 2, ADMIN, "6.0.0", "Tells the one user.", server::acl_users).costs(OF_USERS),
    sub("acl|whoami", 2, NO_SCRIPT, "6.0.0", "Tells the user of this connection.", server::acl_whoami),
];

pub(super) static CLIENT: &[Command] = &[
    sub("client|getname", 2, NO_SCRIPT, "2.6.9", "Answers the name of this connection.", client::getname),
    sub("client|getredir", 2, NO_SCRIPT, "6.0.0", "Answers -1: nothing is tracked.", client::getredir),
    help_of("client|help", "5.0.0"),
    sub("client|id", 2, NO_SCRIPT, "5.0.0", "Answers the number of this connection.", client::id),
    sub("client|info", 2, NO_SCRIPT, "6.2.0", "Tells about this connection.", client::info),
    sub("client|kill", -3, ADMIN, "2.4.0", "Ends connections, by address or by filters.", client::kill)
        .costs(OF_CLIENTS),
    sub("client|list", -2, ADMIN, "2.4.0", "Tells about connections, a line each.", client::list).costs(OF_CLIENTS),
    sub("client|no-evict", 3, ADMIN, "7.0.0", "Noted, and without effect: nobody is evicted.", client::no_evict),
    sub("client|no-touch", 3, NO_SCRIPT, "7.2.0", "Noted, and without effect: no use is recorded.", client::no_touch),
    sub("client|reply", 3, NO_SCRIPT, "3.2.0", "Says which requests are to be answered.", client::reply),
    sub("client|setinfo", 4, NO_SCRIPT, "7.2.0", "Names the client's library.", client::setinfo),
    sub("client|setname", 3, NO_SCRIPT, "2.6.9", "Names this connection.", client::setname),
];

pub(super) static COMMAND: &[Command] = &[
    sub("command|count", 2, PLAIN, "2.8.13", "Answers how many commands there are.", command::count),
    sub("command|docs", -2, PLAIN, "7.0.0", "Tells about commands, for people.", command::docs).costs(OF_NAMES),
    sub("command|getkeys", -4, PLAIN, "2.8.13", "Answers the keys of a request.", command::getkeys).costs(OF_ARGUMENTS),
    sub(
        "command|getkeysandflags",
        -4,
        PLAIN,
        "7.0.0",
        "Answers the keys of a request and what is done to each.",
        command::getkeysandflags,
    )
    .costs(OF_ARGUMENTS),
    help_of("command|help", "5.0.0"),
    sub("command|info", -2, PLAIN, "2.8.13", "Tells about commands, for clients.", command::info).costs(OF_NAMES),
    sub("command|list", -2, PLAIN, "7.0.0", "Answers the names of the commands.", command::list)
        .costs("O(N) where N is the total number of Redis commands"),
];

pub(super) static CONFIG: &[Command] = &[
    sub("config|get", -3, ADMIN, "2.0.0", "Tells the settings of these names, by patterns.", config::get)
        .costs(OF_PARAMETERS),
    help_of("config|help", "5.0.0"),
    sub("config|resetstat", 2, ADMIN, "2.0.0", "Sets the counters of INFO stats back.", config::resetstat),
    sub("config|rewrite", 2, ADMIN, "2.8.0", "An error: there is no configuration file.", config::rewrite),
    sub("config|set", -4, ADMIN, "2.0.0", "Changes settings that can be changed.", config::set).costs(OF_PARAMETERS),
];

pub(super) static FUNCTION: &[Command] = &[
    sub("function|flush", -2, &["write", "noscript"], "7.0.0", "Deletes the functions: none.", server::function_flush)
        .costs("O(N) where N is the number of functions deleted"),
    help_of("function|help", "7.0.0"),
];

pub(super) static LATENCY: &[Command] = &[
    sub("latency|doctor", 2, ADMIN, "2.8.13", "Tells that nothing is monitored.", server::latency_doctor),
    sub("latency|graph", 3, ADMIN, "2.8.13", "An error: there are no samples.", server::latency_graph),
    help_of("latency|help", "2.8.13"),
    sub("latency|history", 3, ADMIN, "2.8.13", "Answers the samples of an event: none.", server::no_latencies),
    sub("latency|latest", 2, ADMIN, "2.8.13", "Answers the latest samples: none.", server::no_latencies),
    sub("latency|reset", -2, ADMIN, "2.8.13", "Answers how many events were reset: none.", server::latency_reset),
];

pub(super) static MEMORY: &[Command] = &[
    sub("memory|doctor", 2, &[], "4.0.0", "Tells where the figures are.", object::doctor),
    help_of("memory|help", "4.0.0"),
    sub("memory|malloc-stats", 2, &[], "4.0.0", "Tells that the allocator tells nothing.", object::malloc_stats)
        .costs(OF_MEMORY),
    sub("memory|purge", 2, &[], "4.0.0", "Accepted, and without effect.", object::purge).costs(OF_MEMORY),
    sub("memory|stats", 2, &[], "4.0.0", "Tells what memory is used for.", object::stats),
    Command {
        keys: OBJECT_KEY,
        ..sub("memory|usage", -3, READ, "4.0.0", "Answers about how many bytes a key takes.", object::usage)
            .costs("O(N) where N is the number of samples.")
    },
];

pub(super) static MODULE: &[Command] = &[
    help_of("module|help", "5.0.0"),
    sub("module|list", 2, &["admin", "noscript"], "4.0.0", "Answers the modules: none.", server::module_list)
        .costs("O(N) where N is the number of loaded modules."),
];

pub(super) static OBJECT: &[Command] = &[
    of_key("object|encoding", "2.2.3", "Answers how Redis would keep the value.", object::encoding),
    of_key("object|freq", "4.0.0", "An error: nothing is evicted, so nothing is counted.", object::freq),
    help_of("object|help", "6.2.0"),
    of_key("object|idletime", "2.2.3", "Answers 0: when a key was used is not kept.", object::idletime),
    of_key("object|refcount", "2.2.3", "Answers how many users Redis's object would have.", object::refcount),
];

pub(super) static SCRIPT: &[Command] = &[
    sub("script|exists", -3, &["noscript"], "2.6.0", "Tells which scripts are known.", script::exists)
        .costs("O(N) with N being the number of scripts to check (so checking a single script is an O(1) operation)."),
    sub("script|flush", -2, &["noscript"], "2.6.0", "Accepted: what is known stays known.", script::flush)
        .costs("O(N) with N being the number of scripts in cache"),
    help_of("script|help", "5.0.0"),
    sub("script|load", 3, &["noscript", "stale"], "2.6.0", "Answers the SHA1 of a known script.", script::load)
        .costs("O(N) with N being the length in bytes of the script body."),
];

pub(super) static SLOWLOG: &[Command] = &[
    sub("slowlog|get", -2, ADMIN_IN_SCRIPTS, "2.2.12", "Tells the newest slow requests.", slowlog::get)
        .costs("O(N) where N is the number of entries returned"),
    help_of("slowlog|help", "6.2.0"),
    sub("slowlog|len", 2, ADMIN_IN_SCRIPTS, "2.2.12", "Answers how many slow requests are kept.", slowlog::len),
    sub("slowlog|reset", 2, ADMIN_IN_SCRIPTS, "2.2.12", "Forgets the slow requests.", slowlog::reset)
        .costs("O(N) where N is the number of entries in the slowlog"),
];
