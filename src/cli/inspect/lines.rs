//! A record as a line of text.
//!
//! Promise: one line for any bytes, so that lines can be searched and counted; a time is printed so that a person reads it
//! and sorts it. Must never know where the line goes.

use std::fmt::{self, Display};

use crate::core::log::frame::{BatchHeader, BatchType, Framed};
use crate::core::record::RecordError;
use crate::core::record::cache::CacheRecord;
use crate::core::record::control::ControlRecord;
use crate::core::types::{Configuration, Millis, Revision};

/// A record with its batch.
pub struct Line<'a> {
    pub batch: &'a BatchHeader,
    pub record: &'a Framed<'a>,
}

impl Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (offset, index, generation) = (self.record.offset.0, self.batch.index.0, self.batch.generation.0);
        write!(f, "offset={offset} index={index} generation={generation} ")?;
        match self.batch.batch_type {
            BatchType::Control => match ControlRecord::decode(self.record.body) {
                Ok(record) => control(f, &record),
                Err(error) => unknown(f, &error),
            },
            BatchType::Data => match CacheRecord::decode(self.record.body) {
                Ok(record) => cache(f, &record, Revision(offset)),
                Err(error) => unknown(f, &error),
            },
        }
    }
}

fn cache(f: &mut fmt::Formatter<'_>, record: &CacheRecord<'_>, own: Revision) -> fmt::Result {
    let (op, key, value, expires_at, revision) = match *record {
        CacheRecord::Delete { key } => return write!(f, "op=delete key={}", Key(key)),
        CacheRecord::Clear => return write!(f, "op=clear"),
        CacheRecord::Put { key, value, expires_at } => ("put", key, value, expires_at, own),
        CacheRecord::Carried { key, value, expires_at, revision } => ("carried", key, value, expires_at, revision),
    };
    let (key, bytes, expires) = (Key(key), value.len(), Time(expires_at));
    write!(f, "op={op} key={key} value_bytes={bytes} expires={expires} revision={}", revision.0)
}

fn control(f: &mut fmt::Formatter<'_>, record: &ControlRecord) -> fmt::Result {
    match record {
        ControlRecord::GenerationStart => write!(f, "op=generation-start"),
        ControlRecord::Epoch(epoch) => write!(f, "op=epoch epoch={epoch}"),
        ControlRecord::Trim(trim) => write!(
            f,
            "op=trim base_offset={} base_index={} base_generation={} epoch={} {} configuration_index={}",
            trim.base_offset.0,
            trim.base_index.0,
            trim.base_generation.0,
            trim.epoch,
            Members(&trim.configuration),
            trim.configuration_index.0
        ),
    }
}

fn unknown(f: &mut fmt::Formatter<'_>, error: &RecordError) -> fmt::Result {
    write!(f, "op=unknown ({error})")
}

/// The members of a group.
pub struct Members<'a>(pub &'a Configuration);

impl Display for Members<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = |name: &str, ids: &[crate::core::types::ReplicaId]| {
            let ids: Vec<String> = ids.iter().map(|id| id.0.to_string()).collect();
            write!(f, "{name}={}", if ids.is_empty() { "none".to_owned() } else { ids.join(",") })
        };
        list("voters", &self.0.voters)?;
        list(" learners", &self.0.learners)
    }
}

/// A key in quotes: what is not printable ASCII as `\xNN`, quote and backslash behind a backslash.
pub struct Key<'a>(pub &'a [u8]);

impl Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for &byte in self.0 {
            match byte {
                b'"' | b'\\' => write!(f, "\\{}", char::from(byte))?,
                b' '..=b'~' => write!(f, "{}", char::from(byte))?,
                _ => write!(f, "\\x{byte:02x}")?,
            }
        }
        f.write_str("\"")
    }
}

/// A time in UTC to the millisecond; 0 is `never`, and what is beyond the year 9999 a number.
pub struct Time(pub Millis);

/// The first millisecond of the year 10000.
const BEYOND: u64 = 253_402_300_800_000;
const DAY_MS: u64 = 86_400_000;

impl Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0.0;
        if self.0 == Millis::NEVER || ms >= BEYOND {
            return if ms == 0 { f.write_str("never") } else { write!(f, "{ms}") };
        }
        let (year, month, day) = civil(ms / DAY_MS);
        let (hours, minutes) = (ms % DAY_MS / 3_600_000, ms % 3_600_000 / 60_000);
        let (seconds, millis) = (ms % 60_000 / 1000, ms % 1000);
        write!(f, "{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{millis:03}Z")
    }
}

/// Year, month and day of the day this many days after 1970-01-01: in years that begin in March, so that the day that some
/// of them lack is their last.
fn civil(days: u64) -> (u64, u64, u64) {
    // From 0000-03-01 on, in eras of 400 years.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::log::frame::{BatchBuilder, records};
    use crate::core::record::control::Trim;
    use crate::core::types::{Epoch, Generation, Index, Offset, ReplicaId};

    type Write<'a> = &'a dyn Fn(&mut Vec<u8>);

    fn lines(batch_type: BatchType, bodies: &[Write<'_>]) -> Vec<String> {
        let mut builder = BatchBuilder::new(batch_type, Offset(7));
        bodies.iter().for_each(|body| {
            builder.push(|into| body(into));
        });
        let bytes = builder.finish(Millis(0));
        let header = BatchHeader::read_fields(&bytes).unwrap();
        let header = BatchHeader { index: Index(5), generation: Generation(2), ..header };
        records(&header, &bytes).map(|record| Line { batch: &header, record: &record }.to_string()).collect()
    }

    #[test]
    fn every_record_is_one_line_whatever_its_bytes_are() {
        let put = CacheRecord::Put { key: b"a \"\\\n\xff", value: &[0; 30], expires_at: Millis(1_700_000_000_123) };
        let carried = CacheRecord::Carried { key: b"", value: b"\n", expires_at: Millis::NEVER, revision: Revision(3) };
        let lines = lines(
            BatchType::Data,
            &[
                &|into| put.encode(into),
                &|into| carried.encode(into),
                &|into| CacheRecord::Delete { key: b"k" }.encode(into),
                &|into| CacheRecord::Clear.encode(into),
                &|into| into.extend_from_slice(&[9, 0]),
            ],
        );
        assert_eq!(
            lines,
            [
                r#"offset=7 index=5 generation=2 op=put key="a \"\\\x0a\xff" value_bytes=30 expires=2023-11-14T22:13:20.123Z revision=7"#,
                r#"offset=8 index=5 generation=2 op=carried key="" value_bytes=1 expires=never revision=3"#,
                r#"offset=9 index=5 generation=2 op=delete key="k""#,
                "offset=10 index=5 generation=2 op=clear",
                "offset=11 index=5 generation=2 op=unknown (a record of version 9, which this build does not know)",
            ]
        );
    }

    #[test]
    fn what_the_log_says_of_itself_is_a_line_too() {
        let trim = ControlRecord::Trim(Trim {
            base_offset: Offset(4),
            base_index: Index(3),
            base_generation: Generation(1),
            epoch: Epoch(255),
            configuration: Configuration { voters: vec![ReplicaId(1), ReplicaId(2)], learners: Vec::new() },
            configuration_index: Index(1),
        });
        for (record, expected) in [
            (ControlRecord::GenerationStart, "op=generation-start"),
            (ControlRecord::Epoch(Epoch(255)), "op=epoch epoch=00000000000000ff"),
            (
                trim,
                "op=trim base_offset=4 base_index=3 base_generation=1 epoch=00000000000000ff voters=1,2 learners=none \
                 configuration_index=1",
            ),
        ] {
            let lines = lines(BatchType::Control, &[&|into| record.encode(into)]);
            assert_eq!(lines, [format!("offset=7 index=5 generation=2 {expected}")]);
        }
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (ms, expected) in [
            (0, "never"),
            (1, "1970-01-01T00:00:00.001Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (253_402_300_800_000, "253402300800000"),
            (u64::MAX, "18446744073709551615"),
        ] {
            assert_eq!(Time(Millis(ms)).to_string(), expected);
        }
    }
}
