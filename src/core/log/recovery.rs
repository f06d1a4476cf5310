//! What opening a log does: one decision table from facts to a plan, as `docs/formats.md` prints it.
//!
//! Promise: pure. A torn tail is cut only on proof that nothing flushed is in it; everything else that is not as this
//! build wrote it is refused with segment, byte and reason. Must never touch a file.

use crate::core::log::anchor::AnchorState;
use crate::core::log::scan::{End, SegmentScan};
use crate::core::log::segment::{HeaderRead, SegmentHeader};
use crate::core::log::start::LogStart;
use crate::core::types::{Generation, Index, Offset, SegmentNo};

/// The anchor as found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnchorFacts {
    Absent,
    Damaged,
    OtherFormat(u32),
    Sound(AnchorState),
}

/// One segment file as found: scanned when its header is sound, looked through when it is zeros.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentFacts {
    pub number: SegmentNo,
    /// Bytes of the file.
    pub bytes: u64,
    pub header: HeaderRead,
    pub scan: Option<SegmentScan>,
    /// For a header of zeros: whether anything but zeros follows it.
    pub content_behind_zeros: bool,
}

/// A log as found: the anchor, and the segment files by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFacts {
    pub anchor: AnchorFacts,
    /// The files that [`AnchorFacts::first_segment`] puts before the log's start. Nobody looked into them.
    pub below: Vec<SegmentNo>,
    pub segments: Vec<SegmentFacts>,
}

impl AnchorFacts {
    #[must_use]
    pub fn state(&self) -> Option<&AnchorState> {
        match self {
            Self::Sound(state) => Some(state),
            Self::Absent | Self::Damaged | Self::OtherFormat(_) => None,
        }
    }

    /// The first segment that belongs to the log; files numbered below are leftovers of a trim.
    #[must_use]
    pub fn first_segment(&self) -> SegmentNo {
        self.state().map(|state| state.start.segment).unwrap_or_default()
    }
}

/// What opening will do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Nothing was ever made durable here: remove these leftovers and begin a new log.
    Create {
        remove: Vec<SegmentNo>,
    },
    Open(OpenPlan),
    Refuse(Damage),
    OtherFormat {
        file: Option<SegmentNo>,
        format: u32,
    },
}

impl Plan {
    /// The row that decided.
    #[must_use]
    pub fn row(&self) -> Row {
        match self {
            Self::OtherFormat { .. } => Row(1),
            Self::Create { .. } => Row(4),
            Self::Refuse(damage) => damage.row,
            Self::Open(_) => Row(18),
        }
    }
}

/// How an existing log is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenPlan {
    /// Files that a trim left behind.
    pub below: Vec<SegmentNo>,
    /// Files without anything durable in them.
    pub remove: Vec<SegmentNo>,
    /// Overwrite everything from this byte on with zeros.
    pub cut: Option<(SegmentNo, u64)>,
    /// The last stop left no mark that all was flushed: flush before serving, and go on in a new segment.
    pub unclean: bool,
    /// Visible records may have been lost, so resume positions of the old history must not be believed.
    pub new_epoch: bool,
    pub next_index: Index,
    pub next_offset: Offset,
    /// The generation of the last batch.
    pub generation: Generation,
    /// The segment that holds the tail and where in it the tail is.
    pub active: Option<(SegmentNo, u64)>,
}

/// A row of the table in `docs/formats.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row(pub u8);

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "R{}", self.0)
    }
}

/// Where and why opening refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    pub row: Row,
    /// `None` is the anchor.
    pub segment: Option<SegmentNo>,
    pub at: u64,
    pub what: String,
}

impl Damage {
    fn in_segment(row: u8, segment: SegmentNo, at: u64, what: impl Into<String>) -> Self {
        Self { row: Row(row), segment: Some(segment), at, what: what.into() }
    }

    fn in_anchor(row: u8, what: impl Into<String>) -> Self {
        Self { row: Row(row), segment: None, at: 0, what: what.into() }
    }
}

/// The decision table. Rows are tried in this order; `docs/formats.md` numbers them the same way.
#[must_use]
pub fn plan(facts: &LogFacts) -> Plan {
    // R1: another build's bytes are left alone.
    if let AnchorFacts::OtherFormat(format) = facts.anchor {
        return Plan::OtherFormat { file: None, format };
    }
    for segment in &facts.segments {
        if let HeaderRead::OtherFormat(format) = segment.header {
            return Plan::OtherFormat { file: Some(segment.number), format };
        }
    }
    check_log(facts).unwrap_or_else(Plan::Refuse)
}

/// Rows R2 to R8: the anchor and the files as a whole; then each segment.
fn check_log(facts: &LogFacts) -> Result<Plan, Damage> {
    // R2 is the anchor's word on what exists: `below` was not even read, and goes when everything else is sound.
    let LogFacts { anchor, below, segments } = facts;
    // R3: a header is flushed before a batch follows it, so zeros with something behind them have lost their header.
    if let Some(lost) = segments.iter().find(|segment| segment.content_behind_zeros) {
        return Err(Damage::in_segment(3, lost.number, 0, "its header is zeros, but something else follows it"));
    }
    let newest = segments.iter().rposition(|segment| segment.header != HeaderRead::Zero);
    let state = match (anchor, newest) {
        // R4: neither anchor nor header was ever flushed, so nothing was ever acknowledged.
        (AnchorFacts::Absent, None) => {
            return Ok(Plan::Create { remove: segments.iter().map(|segment| segment.number).collect() });
        }
        // R5: a segment is begun only after the anchor is flushed.
        (AnchorFacts::Absent, Some(at)) => {
            let what = "the segment holds data but its anchor file is missing";
            return Err(Damage::in_segment(5, segments[at].number, 0, what));
        }
        // R6: an anchor is never without one sound place.
        (AnchorFacts::Damaged | AnchorFacts::OtherFormat(_), _) => {
            return Err(Damage::in_anchor(6, "neither of the anchor's two places is sound"));
        }
        (AnchorFacts::Sound(state), _) => state,
    };
    // R7: a trim flushes the log first, and what is committed here is flushed here.
    if let Some(what) = contradiction(state) {
        return Err(Damage::in_anchor(7, what));
    }
    let (held, spare) = segments.split_at(newest.map_or(0, |at| at + 1));
    let mut open = OpenPlan {
        below: below.clone(),
        // R8: a file of zeros was made ahead, or its header never reached the disk.
        remove: spare.iter().map(|segment| segment.number).collect(),
        cut: None,
        unclean: !state.clean_stop,
        new_epoch: !state.clean_stop && state.policy.may_lose(),
        next_index: state.start.index,
        next_offset: state.start.offset,
        generation: state.start.generation,
        active: None,
    };
    let mut claim = state.flushed;
    for (i, segment) in held.iter().enumerate() {
        let start = Some(&state.start).filter(|_| i == 0);
        check_segment(segment, start, i + 1 == held.len(), &mut open, &mut claim)?;
    }
    check_tail(state, &open, claim)?;
    Ok(Plan::Open(open))
}

/// What an anchor says that no build writes.
fn contradiction(state: &AnchorState) -> Option<String> {
    let AnchorState { start, commit_floor, flushed, newest_segment, .. } = state;
    let floor_fits = start.index.0.checked_sub(1).is_some_and(|before| commit_floor.0 >= before);
    if floor_fits && commit_floor <= flushed && start.segment <= *newest_segment {
        return None;
    }
    Some(format!(
        "it says that the log begins at batch {} in segment {}, that segment {} is the newest, and that all is committed up \
         to batch {} and flushed up to batch {}, which cannot be",
        start.index.0,
        start.segment.0.max(1),
        newest_segment.0,
        commit_floor.0,
        flushed.0
    ))
}

/// Rows R9 to R14: one segment against the start of the log, when it is the first, or else against the one before it.
fn check_segment(
    segment: &SegmentFacts,
    start: Option<&LogStart>,
    is_newest: bool,
    open: &mut OpenPlan,
    claim: &mut Index,
) -> Result<(), Damage> {
    let number = segment.number;
    let (header, scan) = match (&segment.header, &segment.scan) {
        (HeaderRead::Sound(header), Some(scan)) => (header, scan),
        // R9: a header is one sector, so it cannot be torn.
        (HeaderRead::Damaged(what), _) => return Err(Damage::in_segment(9, number, 0, *what)),
        // R10: zeros where a later segment proves that a header was flushed.
        _ => return Err(Damage::in_segment(10, number, 0, "its header is zeros, but a later segment exists")),
    };
    if let Some(start) = start {
        // R11: the oldest segment is the one the log begins with; before the first trim the anchor does not name it.
        let another = start.segment != SegmentNo(0) && start.segment != number;
        if another || !follows(header, open) {
            let what = format!(
                "it begins at batch {} and offset {}, but the log begins at batch {} and offset {} in segment {}",
                header.base_index.0,
                header.base_offset.0,
                start.index.0,
                start.offset.0,
                start.segment.0.max(1)
            );
            return Err(Damage::in_segment(11, number, 0, what));
        }
    } else if !follows(header, open) {
        // R12: each other segment begins where the one before ended.
        let what = format!(
            "it begins at batch {} and offset {}, but the log before it ends at batch {} and offset {}",
            header.base_index.0, header.base_offset.0, open.next_index.0, open.next_offset.0
        );
        return Err(Damage::in_segment(12, number, 0, what));
    }
    *claim = (*claim).max(scan.claim);
    if let End::Unsound { may_be_torn, later_claim, what } = &scan.end {
        // R13: a segment is flushed before the next one is begun, and what cannot be torn is damage.
        if !is_newest || !may_be_torn {
            return Err(Damage::in_segment(13, number, scan.end_at, what.clone()));
        }
        // R14: the unfinished batch is cut, unless something says that it was flushed (R15 looks at the claims).
        *claim = (*claim).max(later_claim.unwrap_or_default());
        open.cut = Some((number, scan.end_at));
    }
    open.next_index = scan.next_index;
    open.next_offset = scan.next_offset;
    open.generation = scan.generation;
    open.active = Some((number, scan.end_at));
    Ok(())
}

fn follows(header: &SegmentHeader, open: &OpenPlan) -> bool {
    header.base_index == open.next_index
        && header.base_offset == open.next_offset
        && header.previous_generation == open.generation
}

/// Rows R15 to R18: the tail against everything known to be flushed.
fn check_tail(state: &AnchorState, open: &OpenPlan, claim: Index) -> Result<(), Damage> {
    let (segment, at) = open.active.map_or((None, 0), |(number, at)| (Some(number), at));
    let last = Index(open.next_index.0 - 1);
    // R15: batches that were flushed are missing.
    if claim > last {
        let what = format!("the log ends with batch {} here, but batch {} was flushed", last.0, claim.0);
        return Err(Damage { row: Row(15), segment, at, what });
    }
    if state.newest_segment > segment.unwrap_or_default() {
        let what = format!("segment {} was begun, but it is missing or empty", state.newest_segment.0);
        return Err(Damage { row: Row(15), segment, at, what });
    }
    // R16: after a clean stop nothing may stand behind the noted tail.
    if state.clean_stop && (open.cut.is_some() || state.flushed != last) {
        let what = format!("the broker stopped cleanly after batch {}, but something else follows it", state.flushed.0);
        return Err(Damage { row: Row(16), segment, at, what });
    }
    // R17: a vote is flushed to both places of the anchor before its generation writes.
    if open.generation > state.generation {
        let what =
            format!("the log holds generation {}, but the anchor knows only {}", open.generation.0, state.generation.0);
        return Err(Damage { row: Row(17), segment, at, what });
    }
    // R18: everything else opens; after an unclean stop flushed, cut, and going on in a new segment (`open.rs`).
    Ok(())
}

#[cfg(test)]
mod tests;
