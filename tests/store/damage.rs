//! Damaged logs: each is opened whole, repaired, or refused, exactly as the recovery table says.
//!
//! Reading order: `subject` (the logs), `oracle` (what must become of one), `trial` (one damaged log, opened twice), then the
//! suites: `exhaustive` (every place), `anchor`, `drawn` (several damages at once, and real files).
//!
//! **Recovered twice is recovered once**: what that means to the byte is said in `trial`.

mod anchor;
mod drawn;
mod exhaustive;
mod oracle;
mod subject;
mod trial;
