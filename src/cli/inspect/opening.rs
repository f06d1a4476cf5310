//! What opening would do about a log, in words, and what a person can do about a log that is refused.
//!
//! Promise: the broker's own words for what the broker would say; each row of the recovery table has its words here; each
//! refusal comes with a next step. Must never know how a log is read.

use std::io::{self, Write};

use crate::cli::inspect::Verdict;
use crate::core::error::OpenError;
use crate::core::log::recovery::{OpenPlan, Plan, Row, SegmentFacts};
use crate::core::log::scan::End;
use crate::core::log::segment::HeaderRead;
use crate::core::log::start::LogStart;
use crate::core::log::survey::Survey;
use crate::core::types::{Kind, SegmentNo};

/// Prints that opening refuses, why, and what to do next.
pub fn tell_refusal(error: &OpenError, row: Option<Row>, out: &mut dyn Write) -> io::Result<Verdict> {
    match (error, row) {
        // Told of this look: a broker may be another user, and would make what is not there.
        (OpenError::Unusable { .. }, _) => writeln!(out, "  cannot be read: {error}")?,
        (_, None) => writeln!(out, "  opening is refused; the broker says:\n    hearth: {error}")?,
        (_, Some(row)) => writeln!(out, "  opening is refused ({row}); the broker says:\n    hearth: {error}")?,
    }
    writeln!(out, "  next: {}", next_step(error, row))?;
    Ok(Verdict::of(error))
}

/// Prints what opening a log that is not refused does; `unfinished` is where a trim lets it begin that was applied and not
/// carried out.
pub fn tell_plan(
    survey: &Survey,
    unfinished: Option<&LogStart>,
    in_use: bool,
    out: &mut dyn Write,
) -> io::Result<Verdict> {
    let open = match &survey.plan {
        Plan::Open(open) => open,
        Plan::Create { remove } => {
            writeln!(out, "  opening begins a new log (R4): nothing was ever made durable here")?;
            if !remove.is_empty() {
                writeln!(out, "    R4: {}: leftovers of a first start, removed", list(remove))?;
            }
            return Ok(Verdict::WouldRepair);
        }
        Plan::Refuse(_) | Plan::OtherFormat { .. } => return Ok(Verdict::Damaged),
    };
    let steps = repairs(survey, open, unfinished);
    let ahead = (!open.remove.is_empty()).then(|| format!("R8: {}: made ahead and empty, removed", list(&open.remove)));
    let when = if in_use { "were the broker killed now, " } else { "" };
    if steps.is_empty() {
        writeln!(out, "  {when}opening finds everything as it was left (R18)")?;
    } else {
        writeln!(out, "  {when}opening repairs first, then goes on (R18):")?;
    }
    for step in steps.iter().chain(&ahead) {
        writeln!(out, "    {step}")?;
    }
    writeln!(out, "  the next batch has index {} and offset {}", open.next_index.0, open.next_offset.0)?;
    Ok(if steps.is_empty() { Verdict::OpensAsItIs } else { Verdict::WouldRepair })
}

fn repairs(survey: &Survey, open: &OpenPlan, unfinished: Option<&LogStart>) -> Vec<String> {
    let mut steps = Vec::new();
    if !open.below.is_empty() {
        steps.push(format!("R2: {}: left by a trim, removed unread", list(&open.below)));
    }
    if let Some((segment, at)) = open.cut {
        let end = survey.facts.segments.iter().find(|facts| facts.number == segment).and_then(unsound_end);
        let what = end.map(|(_, what)| format!(": {what}")).unwrap_or_default();
        steps.push(format!("R14: segment {} is cut off at byte {at}{what}", segment.0));
    }
    if open.unclean {
        let flush = "R18: the last stop was not clean: the log is flushed, and goes on in a new segment";
        steps.push(flush.to_owned());
    }
    if open.new_epoch {
        let epoch =
            "R18: a power cut may have taken writes that were seen: the log gets a new epoch, a history of its own";
        steps.push(epoch.to_owned());
    }
    if let Some(start) = unfinished {
        let (index, segment) = (start.index.0, start.segment.0);
        steps.push(format!("a trim to batch {index} is finished: the segments below {segment} are removed"));
    }
    steps
}

/// What is to be said of one segment file beside its numbers.
pub fn segment_verdict(facts: &SegmentFacts, plan: &Plan) -> String {
    let number = facts.number;
    match plan {
        Plan::Refuse(damage) if damage.segment == Some(number) => {
            return format!("refused at byte {} ({}): {}", damage.at, damage.row, damage.what);
        }
        Plan::Open(open) if open.remove.contains(&number) => return "made ahead and empty (R8)".to_owned(),
        Plan::Create { .. } => return "empty (R4)".to_owned(),
        _ => {}
    }
    match (&facts.header, unsound_end(facts)) {
        (HeaderRead::OtherFormat(format), _) => format!("of format {format} (R1)"),
        (HeaderRead::Damaged(what), _) => format!("damaged: {what}"),
        (HeaderRead::Zero, _) if facts.content_behind_zeros => "a header of zeros with something behind it".to_owned(),
        (HeaderRead::Zero, _) => "empty".to_owned(),
        (HeaderRead::Sound(_), None) => "sound".to_owned(),
        (HeaderRead::Sound(_), Some((at, what))) => {
            let row = if matches!(plan, Plan::Open(_)) { " (R14)" } else { "" };
            format!("sound up to byte {at}{row}: {what}")
        }
    }
}

fn unsound_end(facts: &SegmentFacts) -> Option<(u64, &str)> {
    let scan = facts.scan.as_ref()?;
    match &scan.end {
        End::Clean => None,
        End::Unsound { what, .. } => Some((scan.end_at, what)),
    }
}

/// Segment numbers for a person: the ends of a long row.
pub fn list(numbers: &[SegmentNo]) -> String {
    match numbers {
        [one] => format!("segment {}", one.0),
        [first, .., last] if numbers.len() as u64 == last.0 - first.0 + 1 => {
            format!("segments {} to {}", first.0, last.0)
        }
        _ => {
            let numbers: Vec<String> = numbers.iter().map(|number| number.0.to_string()).collect();
            format!("segments {}", numbers.join(", "))
        }
    }
}

fn next_step(error: &OpenError, row: Option<Row>) -> &'static str {
    match error {
        OpenError::NotOurs { holds, .. } if holds == Kind::Cache.root() => {
            "if this is a broker's data, put node.toml back, from the backup that these caches come from"
        }
        OpenError::NotOurs { .. } => "name the data directory itself, or start the broker on an empty one",
        OpenError::OtherFormat { .. } => "open it with the build that wrote it, or with a newer one",
        OpenError::Unusable { .. } | OpenError::Locked { .. } | OpenError::FlushFailed { .. } => {
            "see to it that the path is right and that this user may read what is there, then look again"
        }
        OpenError::Damaged { .. } => match row.map_or(0, |row| row.0) {
            5..=7 => {
                "copy everything away first; then restore the whole directory from one backup: an anchor of another time \
                 does not fit these segments"
            }
            11 | 12 | 15 => {
                "if files were moved away or left out of a copy, put them back; else restore the whole directory from one \
                 backup. `--records` lists what is still here"
            }
            16 | 17 => {
                "files of different times stand side by side: restore the whole directory from one backup, with the anchor \
                 and all segments of the same moment"
            }
            3 | 9 | 10 | 13 => {
                "no crash leaves this: suspect the disk, or a copy made while the broker ran. Copy everything away, then \
                 restore the whole directory from one backup; `--records` lists what can still be read"
            }
            _ => {
                "if something was moved away, put it back; if a newer build wrote it, use that; else restore the whole \
                 directory from one backup"
            }
        },
    }
}
