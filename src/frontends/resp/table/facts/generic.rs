//! Facts about the commands of the group `generic`.
//!
//! Promise: sorted by name; Redis's own. Must never run anything.

use super::{Facts, at, flag, integer, key, one_of, pattern, string, time};

pub(super) static FACTS: &[Facts] = &[
    Facts {
        name: "copy",
        categories: &["@keyspace", "@write", "@slow"],
        tips: &[],
        specs: &[at(1, &["RO", "access"]), at(2, &["OW", "update"])],
        arguments: &[
            key("source", 0),
            key("destination", 1),
            integer("destination-db").token("DB").optional(),
            flag("replace", "REPLACE").optional(),
        ],
    },
    Facts {
        name: "del",
        categories: &["@keyspace", "@write", "@slow"],
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        specs: &[at(1, &["RM", "delete"]).to(-1, 1)],
        arguments: &[key("key", 0).multiple()],
    },
    Facts {
        name: "exists",
        categories: &["@keyspace", "@read", "@fast"],
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        specs: &[at(1, &["RO"]).to(-1, 1)],
        arguments: &[key("key", 0).multiple()],
    },
    Facts {
        name: "expire",
        categories: &["@keyspace", "@write", "@fast"],
        tips: &[],
        specs: &[at(1, &["RW", "update"])],
        arguments: &[
            key("key", 0),
            integer("seconds"),
            one_of("condition", &[flag("nx", "NX"), flag("xx", "XX"), flag("gt", "GT"), flag("lt", "LT")])
                .since("7.0.0")
                .optional(),
        ],
    },
    Facts {
        name: "expireat",
        categories: &["@keyspace", "@write", "@fast"],
        tips: &[],
        specs: &[at(1, &["RW", "update"])],
        arguments: &[
            key("key", 0),
            time("unix-time-seconds"),
            one_of("condition", &[flag("nx", "NX"), flag("xx", "XX"), flag("gt", "GT"), flag("lt", "LT")])
                .since("7.0.0")
                .optional(),
        ],
    },
    Facts {
        name: "expiretime",
        categories: &["@keyspace", "@read", "@fast"],
        tips: &[],
        specs: &[at(1, &["RO", "access"])],
        arguments: &[key("key", 0)],
    },
    Facts {
        name: "keys",
        categories: &["@keyspace", "@read", "@slow", "@dangerous"],
        tips: &["request_policy:all_shards", "nondeterministic_output_order"],
        specs: &[],
        arguments: &[pattern("pattern")],
    },
    Facts { name: "object", categories: &["@slow"], tips: &[], specs: &[], arguments: &[] },
    Facts {
        name: "object|encoding",
        categories: &["@keyspace", "@read", "@slow"],
        tips: &["nondeterministic_output"],
        specs: &[at(2, &["RO"])],
        arguments: &[key("key", 0)],
    },
    Facts {
        name: "object|freq",
        categories: &["@keyspace", "@read", "@slow"],
        tips: &["nondeterministic_output"],
        specs: &[at(2, &["RO"])],
        arguments: &[key("key", 0)],
    },
    Facts { name: "object|help", categories: &["@keyspace", "@slow"], tips: &[], specs: &[], arguments: &[] },
    Facts {
        name: "object|idletime",
        categories: &["@keyspace", "@read", "@slow"],
        tips: &["nondeterministic_output"],
        specs: &[at(2, &["RO"])],
        arguments: &[key("key", 0)],
    },
    Facts {
        name: "object|refcount",
        categories: &["@keyspace", "@read", "@slow"],
        tips: &["nondeterministic_output"],
        specs: &[at(2, &["RO"])],
        arguments: &[key("key", 0)],
    },
    Facts {
        name: "persist",
        categories: &["@keyspace", "@write", "@fast"],
        tips: &[],
        specs: &[at(1, &["RW", "update"])],
        arguments: &[key("key", 0)],
    },
    Facts {
        name: "pexpire",
        categories: &["@keyspace", "@write", "@fast"],
        tips: &[],
        specs: &[at(1, &["RW", "update"])],
        arguments: &[
            key("key", 0),
            integer("milliseconds"),
            one_of("condition", &[flag("nx", "NX"), flag("xx", "XX"), flag("gt", "GT"), flag("lt", "LT")])
                .since("7.0.0")
                .optional(),
        ],
    },
    Facts {
        name: "pexpireat",
        categories: &["@keyspace", "@write", "@fast"],
        tips: &[],
        specs: &[at(1, &["RW", "update"])],
        arguments: &[
            key("key", 0),
            time("unix-time-milliseconds"),
            one_of("condition", &[flag("nx", "NX"), flag("xx", "XX"), flag("gt", "GT"), flag("lt", "LT")])
                .since("7.0.0")
                .optional(),
        ],
    },
    Facts {
        name: "pexpiretime",
        categories: &["@keyspace", "@read", "@fast"],
        tips: &[],
        specs: &[at(1, &["RO", "access"])],
        arguments: &[key("key", 0)],
    },
    Facts {
        name: "pttl",
        categories: &["@keyspace", "@read", "@fast"],
        tips: &["nondeterministic_output"],
        specs: &[at(1, &["RO", "access"])],
        arguments: &[key("key", 0)],
    },
    Facts {
        name: "randomkey",
        categories: &["@keyspace", "@read", "@slow"],
        tips: &["request_policy:all_shards", "nondeterministic_output"],
        specs: &[],
        arguments: &[],
    },
    Facts {
        name: "rename",
        categories: &["@keyspace", "@write", "@slow"],
        tips: &[],
        specs: &[at(1, &["RW", "access", "delete"]), at(2, &["OW", "update"])],
        arguments: &[key("key", 0), key("newkey", 1)],
    },
    Facts {
        name: "renamenx",
        categories: &["@keyspace", "@write", "@fast"],
        tips: &[],
        specs: &[at(1, &["RW", "access", "delete"]), at(2, &["OW", "insert"])],
        arguments: &[key("key", 0), key("newkey", 1)],
    },
    Facts {
        name: "scan",
        categories: &["@keyspace", "@read", "@slow"],
        tips: &["nondeterministic_output", "request_policy:special"],
        specs: &[],
        arguments: &[
            integer("cursor"),
            pattern("pattern").token("MATCH").optional(),
            integer("count").token("COUNT").optional(),
            string("type").token("TYPE").since("6.0.0").optional(),
        ],
    },
    Facts {
        name: "touch",
        categories: &["@keyspace", "@read", "@fast"],
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        specs: &[at(1, &["RO"]).to(-1, 1)],
        arguments: &[key("key", 0).multiple()],
    },
    Facts {
        name: "ttl",
        categories: &["@keyspace", "@read", "@fast"],
        tips: &["nondeterministic_output"],
        specs: &[at(1, &["RO", "access"])],
        arguments: &[key("key", 0)],
    },
    Facts {
        name: "type",
        categories: &["@keyspace", "@read", "@fast"],
        tips: &[],
        specs: &[at(1, &["RO"])],
        arguments: &[key("key", 0)],
    },
    Facts {
        name: "unlink",
        categories: &["@keyspace", "@write", "@fast"],
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        specs: &[at(1, &["RM", "delete"]).to(-1, 1)],
        arguments: &[key("key", 0).multiple()],
    },
    Facts {
        name: "wait",
        categories: &["@slow", "@connection"],
        tips: &["request_policy:all_shards", "response_policy:agg_min"],
        specs: &[],
        arguments: &[integer("numreplicas"), integer("timeout")],
    },
];
