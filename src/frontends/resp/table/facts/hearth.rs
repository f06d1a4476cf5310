//! Facts about the commands that Redis 7.0 does not have.
//!
//! Promise: sorted by name; written as Redis's are. Must never run anything.

use super::{Facts, at, flag, integer, key, one_of, string, time};

pub(super) static FACTS: &[Facts] = &[
    Facts {
        name: "client|no-touch",
        categories: &["@slow", "@connection"],
        tips: &[],
        specs: &[],
        arguments: &[one_of("enabled", &[flag("on", "ON"), flag("off", "OFF")])],
    },
    Facts {
        name: "client|setinfo",
        categories: &["@slow", "@connection"],
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        specs: &[],
        arguments: &[one_of("attr", &[string("libname").token("LIB-NAME"), string("libver").token("LIB-VER")])],
    },
    Facts {
        name: "delex",
        categories: &["@write", "@string", "@fast"],
        tips: &[],
        specs: &[at(1, &["RW", "access", "delete"])],
        arguments: &[
            key("key", 0),
            one_of("condition", &[string("ifeq-value").token("IFEQ"), string("ifne-value").token("IFNE")]).optional(),
        ],
    },
    Facts {
        name: "hearth.get",
        categories: &["@read", "@string", "@fast"],
        tips: &[],
        specs: &[at(1, &["RO", "access"])],
        arguments: &[key("key", 0)],
    },
    Facts {
        name: "hearth.info",
        categories: &["@slow"],
        tips: &["nondeterministic_output"],
        specs: &[],
        arguments: &[],
    },
    Facts {
        name: "hearth.set",
        categories: &["@write", "@string", "@slow"],
        tips: &[],
        specs: &[at(1, &["RW", "update"])],
        arguments: &[
            key("key", 0),
            string("value"),
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
            .optional(),
            one_of(
                "expiration",
                &[
                    integer("seconds").token("EX"),
                    integer("milliseconds").token("PX"),
                    time("unix-time-seconds").token("EXAT"),
                    time("unix-time-milliseconds").token("PXAT"),
                    flag("keepttl", "KEEPTTL"),
                ],
            )
            .optional(),
        ],
    },
];
