//! Facts about the commands of the group `string`.
//!
//! Promise: sorted by name; Redis's own. Must never run anything.

use super::{Facts, at, block, double, flag, integer, key, one_of, string, time};

pub(super) static FACTS: &[Facts] = &[
    Facts {
        name: "append",
        categories: &["@write", "@string", "@fast"],
        tips: &[],
        specs: &[at(1, &["RW", "insert"])],
        arguments: &[key("key", 0), string("value")],
    },
    Facts {
        name: "decr",
        categories: &["@write", "@string", "@fast"],
        tips: &[],
        specs: &[at(1, &["RW", "access", "update"])],
        arguments: &[key("key", 0)],
    },
    Facts {
        name: "decrby",
        categories: &["@write", "@string", "@fast"],
        tips: &[],
        specs: &[at(1, &["RW", "access", "update"])],
        arguments: &[key("key", 0), integer("decrement")],
    },
    Facts {
        name: "get",
        categories: &["@read", "@string", "@fast"],
        tips: &[],
        specs: &[at(1, &["RO", "access"])],
        arguments: &[key("key", 0)],
    },
    Facts {
        name: "getdel",
        categories: &["@write", "@string", "@fast"],
        tips: &[],
        specs: &[at(1, &["RW", "access", "delete"])],
        arguments: &[key("key", 0)],
    },
    Facts {
        name: "getex",
        categories: &["@write", "@string", "@fast"],
        tips: &[],
        specs: &[at(1, &["RW", "access", "update"]).notes("RW and UPDATE because it changes the TTL")],
        arguments: &[
            key("key", 0),
            one_of(
                "expiration",
                &[
                    integer("seconds").token("EX"),
                    integer("milliseconds").token("PX"),
                    time("unix-time-seconds").token("EXAT"),
                    time("unix-time-milliseconds").token("PXAT"),
                    flag("persist", "PERSIST"),
                ],
            )
            .optional(),
        ],
    },
    Facts {
        name: "getrange",
        categories: &["@read", "@string", "@slow"],
        tips: &[],
        specs: &[at(1, &["RO", "access"])],
        arguments: &[key("key", 0), integer("start"), integer("end")],
    },
    Facts {
        name: "getset",
        categories: &["@write", "@string", "@fast"],
        tips: &[],
        specs: &[at(1, &["RW", "access", "update"])],
        arguments: &[key("key", 0), string("value")],
    },
    Facts {
        name: "incr",
        categories: &["@write", "@string", "@fast"],
        tips: &[],
        specs: &[at(1, &["RW", "access", "update"])],
        arguments: &[key("key", 0)],
    },
    Facts {
        name: "incrby",
        categories: &["@write", "@string", "@fast"],
        tips: &[],
        specs: &[at(1, &["RW", "access", "update"])],
        arguments: &[key("key", 0), integer("increment")],
    },
    Facts {
        name: "incrbyfloat",
        categories: &["@write", "@string", "@fast"],
        tips: &[],
        specs: &[at(1, &["RW", "access", "update"])],
        arguments: &[key("key", 0), double("increment")],
    },
    Facts {
        name: "mget",
        categories: &["@read", "@string", "@fast"],
        tips: &["request_policy:multi_shard"],
        specs: &[at(1, &["RO", "access"]).to(-1, 1)],
        arguments: &[key("key", 0).multiple()],
    },
    Facts {
        name: "mset",
        categories: &["@write", "@string", "@slow"],
        tips: &["request_policy:multi_shard", "response_policy:all_succeeded"],
        specs: &[at(1, &["OW", "update"]).to(-1, 2)],
        arguments: &[block("key_value", &[key("key", 0), string("value")]).multiple()],
    },
    Facts {
        name: "msetnx",
        categories: &["@write", "@string", "@slow"],
        tips: &["request_policy:multi_shard", "response_policy:agg_min"],
        specs: &[at(1, &["OW", "insert"]).to(-1, 2)],
        arguments: &[block("key_value", &[key("key", 0), string("value")]).multiple()],
    },
    Facts {
        name: "psetex",
        categories: &["@write", "@string", "@slow"],
        tips: &[],
        specs: &[at(1, &["OW", "update"])],
        arguments: &[key("key", 0), integer("milliseconds"), string("value")],
    },
    Facts {
        name: "set",
        categories: &["@write", "@string", "@slow"],
        tips: &[],
        specs: &[at(1, &["RW", "access", "update", "variable_flags"])
            .notes("RW and ACCESS due to the optional `GET` argument")],
        arguments: &[
            key("key", 0),
            string("value"),
            // The last three are Hearth's, and Redis's from 8.4 on.
            one_of(
                "condition",
                &[
                    flag("nx", "NX"),
                    flag("xx", "XX"),
                    integer("ifrev-revision").token("IFREV"),
                    string("ifeq-value").token("IFEQ"),
                    string("ifne-value").token("IFNE"),
                ],
            )
            .since("2.6.12")
            .optional(),
            flag("get", "GET").since("6.2.0").optional(),
            one_of(
                "expiration",
                &[
                    integer("seconds").token("EX").since("2.6.12"),
                    integer("milliseconds").token("PX").since("2.6.12"),
                    time("unix-time-seconds").token("EXAT").since("6.2.0"),
                    time("unix-time-milliseconds").token("PXAT").since("6.2.0"),
                    flag("keepttl", "KEEPTTL").since("6.0.0"),
                ],
            )
            .optional(),
        ],
    },
    Facts {
        name: "setex",
        categories: &["@write", "@string", "@slow"],
        tips: &[],
        specs: &[at(1, &["OW", "update"])],
        arguments: &[key("key", 0), integer("seconds"), string("value")],
    },
    Facts {
        name: "setnx",
        categories: &["@write", "@string", "@fast"],
        tips: &[],
        specs: &[at(1, &["OW", "insert"])],
        arguments: &[key("key", 0), string("value")],
    },
    Facts {
        name: "setrange",
        categories: &["@write", "@string", "@slow"],
        tips: &[],
        specs: &[at(1, &["RW", "update"])],
        arguments: &[key("key", 0), integer("offset"), string("value")],
    },
    Facts {
        name: "strlen",
        categories: &["@read", "@string", "@fast"],
        tips: &[],
        specs: &[at(1, &["RO"])],
        arguments: &[key("key", 0)],
    },
    Facts {
        name: "substr",
        categories: &["@read", "@string", "@slow"],
        tips: &[],
        specs: &[at(1, &["RO", "access"])],
        arguments: &[key("key", 0), integer("start"), integer("end")],
    },
];
