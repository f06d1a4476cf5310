//! One shard: its anchor, its segments, its records, and what opening it would do.
//!
//! Promise: goes through the survey and the replay that opening goes through; holds numbers of each segment and, for
//! `--live`, an index, never the log. Must never know how a log is repaired.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use crate::cli::inspect::lines::{Line, Members, Time};
use crate::cli::inspect::opening::{list, segment_verdict, tell_plan, tell_refusal};
use crate::cli::inspect::{Inspect, Verdict};
use crate::core::error::OpenError;
use crate::core::index::{Index as KeyIndex, View};
use crate::core::log::disk::Disk;
use crate::core::log::frame::{BatchType, Framed, records};
use crate::core::log::recovery::{AnchorFacts, SegmentFacts};
use crate::core::log::segment::HeaderRead;
use crate::core::log::survey::{FoundBatch, Look, Survey, UncommittedBatch, Visitor};
use crate::core::progress::Progress;
use crate::core::record::cache::CacheRecord;
use crate::core::store::node::Node;
use crate::core::store::replay::Replayed;
use crate::core::types::{Location, Millis, SegmentNo, ShardId};

/// What a report on a shard needs.
pub struct Report<'a> {
    pub disk: &'a dyn Disk,
    pub root: &'a Path,
    pub node: &'a Node,
    pub asked: &'a Inspect,
    pub now: Millis,
    /// A broker has it open.
    pub in_use: bool,
}

/// When the batches of one segment were written.
struct Times {
    first: Millis,
    last: Millis,
}

/// Meets every batch of the log once.
struct Reading<'a> {
    dir: &'a Path,
    out: &'a mut dyn Write,
    print: bool,
    /// Only when somebody wants to know what is live.
    index: Option<KeyIndex>,
    replayed: Replayed,
    times: BTreeMap<SegmentNo, Times>,
    /// What opening would stumble over first.
    refused: Option<OpenError>,
    /// Nobody reads what is printed any more.
    unheard: Option<io::Error>,
}

impl Reading<'_> {
    fn replay(&mut self, batch: &FoundBatch<'_>) {
        let replayed = match &self.index {
            Some(index) => self.replayed.replay(self.dir, batch, index),
            None => self.replayed.check(self.dir, batch),
        };
        if let Err(error) = replayed {
            self.refused.get_or_insert(error);
        }
    }
}

impl Visitor for Reading<'_> {
    fn found(&mut self, batch: &FoundBatch<'_>) {
        let time = batch.header.time;
        let times = self.times.entry(batch.location.segment).or_insert(Times { first: time, last: time });
        times.last = time;
        for record in records(&batch.header, batch.bytes).filter(|_| self.print) {
            let line = Line { batch: &batch.header, record: &record };
            if let Err(error) = writeln!(self.out, "  {line}") {
                self.unheard.get_or_insert(error);
            }
        }
    }

    fn committed(&mut self, batch: &FoundBatch<'_>) -> Result<(), OpenError> {
        self.replay(batch);
        match &self.unheard {
            None => Ok(()),
            // Ends the survey; what is told is the error of the writer.
            Some(_) => Err(OpenError::unusable(self.dir, "printing what is in it")(io::ErrorKind::BrokenPipe.into())),
        }
    }
}

/// What the first reading of a log found out.
struct Found {
    survey: Survey,
    times: BTreeMap<SegmentNo, Times>,
    index: Option<KeyIndex>,
    replayed: Replayed,
    refused: Option<OpenError>,
}

impl Report<'_> {
    /// Prints everything about the shard.
    ///
    /// # Errors
    /// Only of `out`.
    pub fn tell(&self, id: &ShardId, out: &mut dyn Write) -> io::Result<Verdict> {
        writeln!(out)?;
        let (dir, known) = match self.node.locate(self.disk, self.root, id) {
            Ok(located) => located,
            Err(error) => {
                writeln!(out, "{id}")?;
                return tell_refusal(&error, None, out);
            }
        };
        writeln!(out, "{id} in {}", dir.display())?;
        let mut found = match self.read(id, &dir, out)? {
            Ok(found) => found,
            Err(error) => return tell_refusal(&error, None, out),
        };
        tell_segments(&found.survey, &found.times, out)?;
        // In the order in which opening comes to it: a record it cannot read, the log as a whole, its own trim, its end.
        let row = found.survey.plan.row();
        let (mut refused, mut by_row) = (found.refused.take(), None);
        if refused.is_none() {
            refused = found.survey.refusal(&dir);
            by_row = refused.is_some().then_some(row);
        }
        let judged = found.replayed.judge(id, &dir, known, &found.survey);
        let (unfinished, judged) = judged.map_or_else(|error| (None, Some(error)), |start| (start, None));
        let at_the_end = found.replay_the_end(&dir);
        let refused = refused.or(judged).or(at_the_end);
        // A trim at the end is carried out as one of a running broker is.
        let late = found.replayed.judge(id, &dir, known, &found.survey);
        let unfinished = late.ok().flatten().or(unfinished);
        if let Some(index) = &found.index {
            if let Some(start) = &unfinished {
                index.trim(start.offset, start.segment);
            }
            let noted = found.survey.facts.anchor.state().map(|state| state.clock).unwrap_or_default();
            let now = self.now.max(noted).max(found.replayed.time);
            self.tell_live(id, &dir, &index.view(), now, out)?;
        }
        match refused {
            Some(error) => tell_refusal(&error, by_row, out),
            None => tell_plan(&found.survey, unfinished.as_ref(), self.in_use, out),
        }
    }

    /// Reads the whole log once, and prints its records if they are asked for.
    fn read(&self, id: &ShardId, dir: &Path, out: &mut dyn Write) -> io::Result<Result<Found, OpenError>> {
        let look = match Look::at(self.disk, dir) {
            Ok(look) => look,
            Err(error) => return Ok(Err(error)),
        };
        tell_anchor(look.anchor(), out)?;
        let mut reading = Reading {
            dir,
            out,
            print: self.asked.records && !self.asked.live,
            index: self.asked.live.then(KeyIndex::loading),
            replayed: Replayed::default(),
            times: BTreeMap::new(),
            refused: None,
            unheard: None,
        };
        let survey = look.survey(self.disk, id, &Progress::default(), &mut reading);
        let Reading { index, replayed, times, refused, unheard, .. } = reading;
        match unheard {
            Some(unheard) => Err(unheard),
            None => Ok(survey.map(|survey| Found { survey, times, index, replayed, refused })),
        }
    }

    /// Reads the log a second time and prints what is live of it.
    fn tell_live(&self, id: &ShardId, dir: &Path, view: &View<'_>, now: Millis, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "  live at {}:", Time(now))?;
        let mut living = Living { out: &mut *out, view, now, tallies: BTreeMap::new(), unheard: None };
        let read = Look::at(self.disk, dir)
            .and_then(|look| look.survey(self.disk, id, &Progress::default(), &mut living).map(|_| ()));
        let (tallies, unheard) = (living.tallies, living.unheard);
        if let Some(unheard) = unheard {
            return Err(unheard);
        }
        for (number, tally) in &tallies {
            let Tally { records, live_records, bytes, live_bytes } = tally;
            writeln!(
                out,
                "  segment {}: {live_records} of {records} records are live, {live_bytes} of {bytes} bytes",
                number.0
            )?;
        }
        // Said already, when the log was read for the first time; or somebody uses it at this moment.
        if let Err(error) = read {
            writeln!(out, "  what is live is not complete: {error}")?;
        }
        Ok(())
    }
}

impl Found {
    /// Replays what opening hands to the group, which commits it; gives what opening would say if that is not to be read:
    /// it can no longer say where it stands.
    fn replay_the_end(&mut self, dir: &Path) -> Option<OpenError> {
        let mut refused = None;
        for UncommittedBatch { header, location, bytes } in &self.survey.uncommitted {
            let batch = FoundBatch { header: *header, location: *location, bytes };
            let replayed = match &self.index {
                Some(index) => self.replayed.replay(dir, &batch, index),
                None => self.replayed.check(dir, &batch),
            };
            if let Err(OpenError::Damaged { what, .. }) = replayed {
                refused.get_or_insert(OpenError::Damaged { path: dir.to_owned(), at: 0, what });
            }
        }
        refused
    }
}

#[derive(Default)]
struct Tally {
    records: u64,
    live_records: u64,
    /// Framed records.
    bytes: u64,
    live_bytes: u64,
}

/// Meets every batch once more and tells which records the index names.
struct Living<'a> {
    out: &'a mut dyn Write,
    view: &'a View<'a>,
    now: Millis,
    tallies: BTreeMap<SegmentNo, Tally>,
    unheard: Option<io::Error>,
}

impl Living<'_> {
    fn is_live(&self, batch: &FoundBatch<'_>, record: &Framed<'_>) -> bool {
        let (CacheRecord::Put { key, .. } | CacheRecord::Carried { key, .. }) = (match CacheRecord::decode(record.body)
        {
            Ok(record) if batch.header.batch_type == BatchType::Data => record,
            _ => return false,
        }) else {
            return false;
        };
        let location = Location {
            segment: batch.location.segment,
            position: batch.location.position + record.position as u32,
            length: record.length() as u32,
        };
        self.view.get(key).is_some_and(|entry| entry.location == location && !entry.expires_at.has_lapsed(self.now))
    }
}

impl Visitor for Living<'_> {
    fn found(&mut self, batch: &FoundBatch<'_>) {
        for record in records(&batch.header, batch.bytes) {
            let live = self.is_live(batch, &record);
            let tally = self.tallies.entry(batch.location.segment).or_default();
            let bytes = record.length() as u64;
            (tally.records, tally.bytes) = (tally.records + 1, tally.bytes + bytes);
            if live {
                (tally.live_records, tally.live_bytes) = (tally.live_records + 1, tally.live_bytes + bytes);
                let line = Line { batch: &batch.header, record: &record };
                if let Err(error) = writeln!(self.out, "  {line}") {
                    self.unheard.get_or_insert(error);
                }
            }
        }
    }

    fn committed(&mut self, _batch: &FoundBatch<'_>) -> Result<(), OpenError> {
        match &self.unheard {
            None => Ok(()),
            Some(_) => Err(OpenError::unusable("", "printing")(io::ErrorKind::BrokenPipe.into())),
        }
    }
}

fn tell_anchor(anchor: &AnchorFacts, out: &mut dyn Write) -> io::Result<()> {
    let state = match anchor {
        AnchorFacts::Sound(state) => state,
        AnchorFacts::Absent => return writeln!(out, "  anchor: none"),
        AnchorFacts::Damaged => return writeln!(out, "  anchor: neither of its two places is sound"),
        AnchorFacts::OtherFormat(format) => return writeln!(out, "  anchor: of format {format}"),
    };
    let vote = state.vote.map_or_else(|| "none".to_owned(), |id| id.0.to_string());
    writeln!(
        out,
        "  anchor: epoch {}, replica {}, generation {}, vote {vote}",
        state.epoch, state.replica.0, state.generation.0
    )?;
    writeln!(
        out,
        "  log start: segment {}, offset {}, index {}, generation {} before it, {}",
        state.start.segment.0.max(1),
        state.start.offset.0,
        state.start.index.0,
        state.start.generation.0,
        Members(&state.start.configuration)
    )?;
    writeln!(
        out,
        "  noted: committed up to index {}, flushed up to index {}, newest segment {}, clock {}",
        state.commit_floor.0,
        state.flushed.0,
        state.newest_segment.0,
        if state.clock == Millis(0) { "not noted".to_owned() } else { Time(state.clock).to_string() }
    )?;
    let stop = if state.clean_stop { "clean" } else { "not clean, or a broker runs" };
    writeln!(out, "  last stop: {stop}; fsync {}", state.policy)
}

fn tell_segments(survey: &Survey, times: &BTreeMap<SegmentNo, Times>, out: &mut dyn Write) -> io::Result<()> {
    if !survey.facts.below.is_empty() {
        writeln!(out, "  {}: below the log start, left by a trim, not read (R2)", list(&survey.facts.below))?;
    }
    for facts in &survey.facts.segments {
        let verdict = segment_verdict(facts, &survey.plan);
        writeln!(out, "  segment {}: {} bytes{}: {verdict}", facts.number.0, facts.bytes, numbers(facts, times))?;
    }
    Ok(())
}

/// What stands in a sound segment, in numbers.
fn numbers(facts: &SegmentFacts, times: &BTreeMap<SegmentNo, Times>) -> String {
    let HeaderRead::Sound(header) = &facts.header else { return String::new() };
    let (Some(scan), Some(times)) = (&facts.scan, times.get(&facts.number)) else { return ", no batch".to_owned() };
    format!(
        ", filled up to {}, {} batches, {} records, offsets {} to {}, indexes {} to {}, written {} to {}",
        scan.end_at,
        scan.batches,
        scan.next_offset.0 - header.base_offset.0,
        header.base_offset.0,
        scan.next_offset.0 - 1,
        header.base_index.0,
        scan.next_index.0 - 1,
        Time(times.first),
        Time(times.last)
    )
}
