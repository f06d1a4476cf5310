//! Facts about the commands of the group `cluster`.
//!
//! Promise: sorted by name; Redis's own. Must never run anything.

use super::Facts;

pub(super) static FACTS: &[Facts] = &[
    Facts { name: "asking", categories: &["@fast", "@connection"], tips: &[], specs: &[], arguments: &[] },
    Facts { name: "cluster", categories: &["@slow"], tips: &[], specs: &[], arguments: &[] },
    Facts { name: "readonly", categories: &["@fast", "@connection"], tips: &[], specs: &[], arguments: &[] },
    Facts { name: "readwrite", categories: &["@fast", "@connection"], tips: &[], specs: &[], arguments: &[] },
];
