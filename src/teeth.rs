//! Seeded faults: what the tests must be able to notice.
//!
//! Promise: without the feature `teeth` every one of them is the constant `false` and leaves no trace in the binary.
//! With it, the one named by the environment variable `HEARTH_TOOTH` bites. `./check teeth` runs each with the test
//! that must fail. Must never be shipped.

/// A fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tooth {
    /// A batch's flush is reported as done and never asked for.
    SkipFlush,
    /// The tail found at an unclean open is not flushed before it is served.
    NoFlushAfterRecovery,
    /// A batch is acknowledged before its flush.
    AcknowledgeBeforeFlush,
    /// A trim is staged whatever is live below the new base.
    TrimWithoutVerifying,
    /// A carry is staged whatever became of the record it copies.
    CarryUnconditionally,
    /// The files below a new base are removed before the log is flushed and the anchor knows.
    UnlinkBeforeFlush,
    /// Entries below the base are still found.
    ReadBelowBase,
    /// A log that holds nothing alive counts from the first offset again.
    OffsetsRestart,
    /// A transaction goes on in the next batch when one is full.
    SplitTransaction,
    /// What a transaction staged is still seen after it was taken back.
    KeepRolledBack,
}

impl Tooth {
    /// The name in `HEARTH_TOOTH`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SkipFlush => "skip-flush",
            Self::NoFlushAfterRecovery => "no-flush-after-recovery",
            Self::AcknowledgeBeforeFlush => "acknowledge-before-flush",
            Self::TrimWithoutVerifying => "trim-without-verifying",
            Self::CarryUnconditionally => "carry-unconditionally",
            Self::UnlinkBeforeFlush => "unlink-before-flush",
            Self::ReadBelowBase => "read-below-base",
            Self::OffsetsRestart => "offsets-restart",
            Self::SplitTransaction => "split-transaction",
            Self::KeepRolledBack => "keep-rolled-back",
        }
    }
}

/// Whether this fault bites.
#[cfg(feature = "teeth")]
#[must_use]
pub fn bites(tooth: Tooth) -> bool {
    use std::sync::OnceLock;
    static CHOSEN: OnceLock<String> = OnceLock::new();
    CHOSEN.get_or_init(|| std::env::var("HEARTH_TOOTH").unwrap_or_default()) == tooth.name()
}

/// Whether this fault bites: never, in this build.
#[cfg(not(feature = "teeth"))]
#[must_use]
pub const fn bites(_tooth: Tooth) -> bool {
    false
}
