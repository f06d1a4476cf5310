//! Facts about the commands of the group `connection`.
//!
//! Promise: sorted by name; Redis's own. Must never run anything.

use super::{Facts, block, flag, integer, one_of, string};

pub(super) static FACTS: &[Facts] = &[
    Facts {
        name: "auth",
        categories: &["@fast", "@connection"],
        tips: &[],
        specs: &[],
        arguments: &[string("username").since("6.0.0").optional(), string("password")],
    },
    Facts { name: "client", categories: &["@slow"], tips: &[], specs: &[], arguments: &[] },
    Facts { name: "client|getname", categories: &["@slow", "@connection"], tips: &[], specs: &[], arguments: &[] },
    Facts { name: "client|getredir", categories: &["@slow", "@connection"], tips: &[], specs: &[], arguments: &[] },
    Facts { name: "client|help", categories: &["@slow", "@connection"], tips: &[], specs: &[], arguments: &[] },
    Facts { name: "client|id", categories: &["@slow", "@connection"], tips: &[], specs: &[], arguments: &[] },
    Facts {
        name: "client|info",
        categories: &["@slow", "@connection"],
        tips: &["nondeterministic_output"],
        specs: &[],
        arguments: &[],
    },
    Facts {
        name: "client|kill",
        categories: &["@admin", "@slow", "@dangerous", "@connection"],
        tips: &[],
        specs: &[],
        arguments: &[one_of(
            "filter",
            &[
                string("ip:port").deprecated("2.8.12"),
                one_of(
                    "new-format",
                    &[
                        integer("client-id").token("ID").since("2.8.12").optional(),
                        one_of(
                            "normal_master_slave_pubsub",
                            &[
                                flag("normal", "NORMAL"),
                                flag("master", "MASTER").since("3.2.0"),
                                flag("slave", "SLAVE"),
                                flag("replica", "REPLICA").since("5.0.0"),
                                flag("pubsub", "PUBSUB"),
                            ],
                        )
                        .token("TYPE")
                        .since("2.8.12")
                        .optional(),
                        string("username").token("USER").optional(),
                        string("ip:port").token("ADDR").optional(),
                        string("ip:port").token("LADDR").since("6.2.0").optional(),
                        string("yes/no").token("SKIPME").optional(),
                    ],
                )
                .multiple(),
            ],
        )],
    },
    Facts {
        name: "client|list",
        categories: &["@admin", "@slow", "@dangerous", "@connection"],
        tips: &["nondeterministic_output"],
        specs: &[],
        arguments: &[
            one_of(
                "normal_master_replica_pubsub",
                &[
                    flag("normal", "NORMAL"),
                    flag("master", "MASTER"),
                    flag("replica", "REPLICA"),
                    flag("pubsub", "PUBSUB"),
                ],
            )
            .token("TYPE")
            .since("5.0.0")
            .optional(),
            block("id", &[integer("client-id").multiple()]).token("ID").since("6.2.0").optional(),
        ],
    },
    Facts {
        name: "client|no-evict",
        categories: &["@admin", "@slow", "@dangerous", "@connection"],
        tips: &[],
        specs: &[],
        arguments: &[one_of("enabled", &[flag("on", "ON"), flag("off", "OFF")])],
    },
    Facts {
        name: "client|reply",
        categories: &["@slow", "@connection"],
        tips: &[],
        specs: &[],
        arguments: &[one_of("on_off_skip", &[flag("on", "ON"), flag("off", "OFF"), flag("skip", "SKIP")])],
    },
    Facts {
        name: "client|setname",
        categories: &["@slow", "@connection"],
        tips: &[],
        specs: &[],
        arguments: &[string("connection-name")],
    },
    Facts {
        name: "echo",
        categories: &["@fast", "@connection"],
        tips: &[],
        specs: &[],
        arguments: &[string("message")],
    },
    Facts {
        name: "hello",
        categories: &["@fast", "@connection"],
        tips: &[],
        specs: &[],
        arguments: &[block(
            "arguments",
            &[
                integer("protover"),
                block("username_password", &[string("username"), string("password")]).token("AUTH").optional(),
                string("clientname").token("SETNAME").optional(),
            ],
        )
        .optional()],
    },
    Facts {
        name: "ping",
        categories: &["@fast", "@connection"],
        tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
        specs: &[],
        arguments: &[string("message").optional()],
    },
    Facts { name: "quit", categories: &["@fast", "@connection"], tips: &[], specs: &[], arguments: &[] },
    Facts { name: "reset", categories: &["@fast", "@connection"], tips: &[], specs: &[], arguments: &[] },
    Facts {
        name: "select",
        categories: &["@fast", "@connection"],
        tips: &[],
        specs: &[],
        arguments: &[integer("index")],
    },
];
