//! The one table from the core's errors to Redis's words.
//!
//! Promise: a prefix that clients retry on (`TRYAGAIN`, `CLUSTERDOWN`, `LOADING`) is used only where nothing was
//! written; an unknown outcome has a prefix nobody retries; a failed read is never a miss and never a plain `ERR`,
//! which some clients take for one. Must never know how a request was decided.

use crate::core::api::Fate;
use crate::core::error::{ReadError, Refusal};

/// The text for a value or request that is longer than configured.
pub const TOO_LONG: &str = "ERR string exceeds maximum allowed size (proto-max-bulk-len)";
/// Redis's text while data is being opened.
pub const LOADING: &str = "LOADING Redis is loading the dataset in memory";
/// For one request that must be whole, and whose keys are of several shards.
pub const CROSS_SLOT: &str = "CROSSSLOT Keys in request don't hash to the same slot";
/// Redis's text for a client that has not given the password.
pub const NO_AUTH: &str = "NOAUTH Authentication required.";
/// The same for a password, or a user, that is not the right one.
pub const WRONG_PASSWORD: &str = "WRONGPASS invalid username-password pair or user is disabled.";
pub const SYNTAX: &str = "ERR syntax error";
/// Redis's text for a write that would need more than `maxmemory`. Clients look for its beginning, and some for all of it.
pub const OVER_THE_BOUND: &str = "OOM command not allowed when used memory > 'maxmemory'.";
pub const NOT_A_FLOAT: &str = "ERR value is not a valid float";
/// For a number that has to fit 32 bits and is longer.
pub const NOT_AN_INT: &str = "ERR value is out of range, value must between -2147483648 and 2147483647";
pub const NOT_AN_INTEGER: &str = "ERR value is not an integer or out of range";
pub const DB_OUT_OF_RANGE: &str = "ERR DB index is out of range";

/// The text for a transaction whose reply would repeat too much of what it wrote itself.
#[must_use]
pub fn reply_too_large(bound: usize) -> String {
    format!("OOM the reply repeats values of this transaction of more than {bound} bytes; nothing was written")
}

/// The text for a refused request.
#[must_use]
pub fn of_refusal(refusal: &Refusal) -> String {
    match refusal {
        Refusal::NoOwner { .. } => format!("CLUSTERDOWN {refusal}"),
        Refusal::NotReady => format!("LOADING {refusal}"),
        Refusal::NotCreated => format!("TRYAGAIN {refusal}"),
        Refusal::Poisoned | Refusal::DiskLow { .. } | Refusal::NoRoom => format!("MISCONF {refusal}"),
        Refusal::MemoryFull { .. } | Refusal::DataFull { .. } => OVER_THE_BOUND.to_owned(),
        Refusal::ValueTooLong { .. } => TOO_LONG.to_owned(),
        Refusal::KeyTooLong { .. } => format!("ERR {refusal}"),
        Refusal::BatchTooLarge { .. } => format!("OOM {refusal}"),
        Refusal::LostGround | Refusal::Stopping => format!("TRYAGAIN {refusal}"),
    }
}

/// The text for a value that could not be read.
#[must_use]
pub fn of_read(fault: &ReadError) -> String {
    match fault {
        ReadError::Refused(refusal) => of_refusal(refusal),
        ReadError::Apart => CROSS_SLOT.to_owned(),
        ReadError::Io { .. } => format!("TRYAGAIN {fault}"),
        ReadError::Mismatch { .. } => format!("CLUSTERDOWN {fault}"),
    }
}

/// The text for the old value that a write was to answer and that could not be read. The write stands, so no prefix that
/// clients retry on.
#[must_use]
pub fn of_old_value(fault: &ReadError) -> String {
    format!("UNKNOWN the new value is set, but the old one could not be told: {fault}")
}

/// The text for an answer whose record was not applied. An answer that wrote nothing itself may simply be asked for again.
#[must_use]
pub fn of_fate(fate: Fate, wrote: bool) -> String {
    match fate {
        Fate::Unknown(why) if wrote => format!("UNKNOWN write outcome unknown: {why}"),
        Fate::Refused(refusal) if wrote => of_refusal(&refusal),
        Fate::Unknown(_) | Fate::Refused(_) | Fate::Applied => of_refusal(&Refusal::LostGround),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::error::Unknown;

    #[test]
    fn a_bound_that_is_reached_is_told_in_redis_words_and_a_disk_that_is_full_with_the_facts() {
        for refusal in [Refusal::MemoryFull { used: 9, bound: 8 }, Refusal::DataFull { live: 9, bound: 8 }] {
            assert_eq!(of_refusal(&refusal), "OOM command not allowed when used memory > 'maxmemory'.");
        }
        let low = of_refusal(&Refusal::DiskLow { free: 123, floor: 456 });
        assert!(low.starts_with("MISCONF ") && low.contains("123") && low.contains("456"), "{low}");
        assert!(of_refusal(&Refusal::NoRoom).starts_with("MISCONF "));
    }

    #[test]
    fn only_a_write_is_told_as_unknown_and_only_what_wrote_nothing_may_be_retried() {
        let begins = |fate, wrote, prefix: &str| assert!(of_fate(fate, wrote).starts_with(prefix), "{fate:?} {wrote}");
        begins(Fate::Unknown(Unknown::FlushFailed), true, "UNKNOWN ");
        begins(Fate::Unknown(Unknown::FlushFailed), false, "TRYAGAIN ");
        begins(Fate::Refused(Refusal::Poisoned), true, "MISCONF ");
        begins(Fate::Refused(Refusal::Stopping), true, "TRYAGAIN ");
        begins(Fate::Refused(Refusal::Poisoned), false, "TRYAGAIN ");
    }
}
