//! The durable shapes: one file for each kind of record body a log may hold.
//!
//! Promise: a body is read back as it was written or refused, never guessed at. Must never know where it stands.
//!
//! When you add a shape: a version byte first, a drawing in `docs/formats.md`, a round-trip test, and frozen bytes.

pub mod cache;
pub mod control;

/// Why a body was not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// The version byte is not one this build knows.
    UnknownVersion(u8),
    /// The operation byte is not one this build knows.
    UnknownOp(u8),
    /// The body is too short for what it says.
    Short,
    /// A body of this operation carries something it must not.
    Field(&'static str),
}

impl std::fmt::Display for RecordError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownVersion(version) => write!(f, "a record of version {version}, which this build does not know"),
            Self::UnknownOp(op) => write!(f, "a record with operation {op}, which this build does not know"),
            Self::Short => write!(f, "a record that is shorter than it says"),
            Self::Field(field) => write!(f, "a record with an impossible {field}"),
        }
    }
}
