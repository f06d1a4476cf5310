//! Facts about the commands of the group `transactions`.
//!
//! Promise: sorted by name; Redis's own. Must never run anything.

use super::{Facts, at, key};

pub(super) static FACTS: &[Facts] = &[
    Facts { name: "discard", categories: &["@fast", "@transaction"], tips: &[], specs: &[], arguments: &[] },
    Facts { name: "exec", categories: &["@slow", "@transaction"], tips: &[], specs: &[], arguments: &[] },
    Facts { name: "multi", categories: &["@fast", "@transaction"], tips: &[], specs: &[], arguments: &[] },
    Facts { name: "unwatch", categories: &["@fast", "@transaction"], tips: &[], specs: &[], arguments: &[] },
    Facts {
        name: "watch",
        categories: &["@fast", "@transaction"],
        tips: &[],
        specs: &[at(1, &["RO"]).to(-1, 1)],
        arguments: &[key("key", 0).multiple()],
    },
];
