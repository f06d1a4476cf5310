//! Facts about the commands of the group `scripting`.
//!
//! Promise: sorted by name; Redis's own. Must never run anything.

use super::{Facts, at, flag, integer, key, one_of, string};

pub(super) static FACTS: &[Facts] = &[
    Facts {
        name: "eval",
        categories: &["@slow", "@scripting"],
        tips: &[],
        specs: &[at(2, &["RW", "access", "update"])
            .counted()
            .notes("We cannot tell how the keys will be used so we assume the worst, RW and UPDATE")],
        arguments: &[
            string("script"),
            integer("numkeys"),
            key("key", 0).optional().multiple(),
            string("arg").optional().multiple(),
        ],
    },
    Facts {
        name: "eval_ro",
        categories: &["@slow", "@scripting"],
        tips: &[],
        specs: &[at(2, &["RO", "access"])
            .counted()
            .notes("We cannot tell how the keys will be used so we assume the worst, RO and ACCESS")],
        arguments: &[
            string("script"),
            integer("numkeys"),
            key("key", 0).optional().multiple(),
            string("arg").optional().multiple(),
        ],
    },
    Facts {
        name: "evalsha",
        categories: &["@slow", "@scripting"],
        tips: &[],
        specs: &[at(2, &["RW", "access", "update"]).counted()],
        arguments: &[
            string("sha1"),
            integer("numkeys"),
            key("key", 0).optional().multiple(),
            string("arg").optional().multiple(),
        ],
    },
    Facts {
        name: "evalsha_ro",
        categories: &["@slow", "@scripting"],
        tips: &[],
        specs: &[at(2, &["RO", "access"]).counted()],
        arguments: &[
            string("sha1"),
            integer("numkeys"),
            key("key", 0).optional().multiple(),
            string("arg").optional().multiple(),
        ],
    },
    Facts { name: "function", categories: &["@slow"], tips: &[], specs: &[], arguments: &[] },
    Facts {
        name: "function|flush",
        categories: &["@write", "@slow", "@scripting"],
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        specs: &[],
        arguments: &[one_of("async", &[flag("async", "ASYNC"), flag("sync", "SYNC")]).optional()],
    },
    Facts { name: "function|help", categories: &["@slow", "@scripting"], tips: &[], specs: &[], arguments: &[] },
    Facts { name: "script", categories: &["@slow"], tips: &[], specs: &[], arguments: &[] },
    Facts {
        name: "script|exists",
        categories: &["@slow", "@scripting"],
        tips: &["request_policy:all_shards", "response_policy:agg_logical_and"],
        specs: &[],
        arguments: &[string("sha1").multiple()],
    },
    Facts {
        name: "script|flush",
        categories: &["@slow", "@scripting"],
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        specs: &[],
        arguments: &[one_of("async", &[flag("async", "ASYNC"), flag("sync", "SYNC")]).since("6.2.0").optional()],
    },
    Facts { name: "script|help", categories: &["@slow", "@scripting"], tips: &[], specs: &[], arguments: &[] },
    Facts {
        name: "script|load",
        categories: &["@slow", "@scripting"],
        tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
        specs: &[],
        arguments: &[string("script")],
    },
];
