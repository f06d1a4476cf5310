//! One test for each row of the decision table, named by what the row promises.
//!
//! Each starts from a log that opens (two segments of three batches) and changes the one thing its row is about.

use super::*;
use crate::core::log::FsyncPolicy;
use crate::core::types::{CacheName, Configuration, Epoch, Kind, Millis, ReplicaId, ShardId, ShardNo};

fn anchor() -> AnchorState {
    AnchorState {
        replica: ReplicaId(1),
        generation: Generation(3),
        vote: Some(ReplicaId(1)),
        epoch: Epoch(9),
        start: LogStart {
            segment: SegmentNo(0),
            offset: Offset(1),
            index: Index(2),
            generation: Generation(1),
            configuration: Configuration { voters: vec![ReplicaId(1)], learners: Vec::new() },
            configuration_index: Index(1),
        },
        commit_floor: Index(1),
        flushed: Index(1),
        flushed_next_offset: Offset(1),
        newest_segment: SegmentNo(0),
        clean_stop: false,
        policy: FsyncPolicy::Always,
        clock: Millis(0),
    }
}

fn header(number: u64, base: u64, previous_generation: u64) -> SegmentHeader {
    SegmentHeader {
        shard: ShardId { kind: Kind::Cache, cache: CacheName::default_cache(), shard: ShardNo(0) },
        number: SegmentNo(number),
        epoch: Epoch(9),
        salt: 1,
        base_offset: Offset(base - 1),
        base_index: Index(base),
        previous_generation: Generation(previous_generation),
        configuration: anchor().start.configuration,
        configuration_index: Index(1),
        created: Millis(0),
    }
}

/// A segment whose batches have the indexes from `base` up to, not including, `next`; one record each.
fn segment(number: u64, base: u64, next: u64, previous_generation: u64) -> SegmentFacts {
    let scan = SegmentScan {
        next_index: Index(next),
        next_offset: Offset(next - 1),
        generation: Generation(3),
        claim: Index((next - 2).min(base)),
        batches: next - base,
        end_at: 900,
        end: End::Clean,
    };
    SegmentFacts {
        number: SegmentNo(number),
        bytes: 4096,
        header: HeaderRead::Sound(header(number, base, previous_generation)),
        scan: Some(scan),
        content_behind_zeros: false,
    }
}

fn zeros(number: u64) -> SegmentFacts {
    SegmentFacts {
        number: SegmentNo(number),
        bytes: 4096,
        header: HeaderRead::Zero,
        scan: None,
        content_behind_zeros: false,
    }
}

/// Batches 2 to 4 in segment 1 and 5 to 7 in segment 2.
fn two_segments() -> Vec<SegmentFacts> {
    vec![segment(1, 2, 5, 1), segment(2, 5, 8, 3)]
}

fn torn(may_be_torn: bool, later_claim: Option<u64>) -> End {
    End::Unsound { may_be_torn, later_claim: later_claim.map(Index), what: "not whole".into() }
}

fn with_end(mut segments: Vec<SegmentFacts>, at: usize, end: End) -> Vec<SegmentFacts> {
    segments[at].scan.as_mut().expect("a scanned segment").end = end;
    segments
}

fn sound(change: impl FnOnce(&mut AnchorState)) -> AnchorFacts {
    let mut state = anchor();
    change(&mut state);
    AnchorFacts::Sound(state)
}

fn log(anchor: &AnchorFacts, segments: &[SegmentFacts]) -> LogFacts {
    LogFacts { anchor: anchor.clone(), below: Vec::new(), segments: segments.to_vec() }
}

/// Plans and expects a refusal by that row; gives segment (0 is the anchor), byte and reason.
#[track_caller]
fn refused(row: u8, anchor: &AnchorFacts, segments: &[SegmentFacts]) -> (u64, u64, String) {
    match plan(&log(anchor, segments)) {
        Plan::Refuse(damage) => {
            assert_eq!(damage.row, Row(row), "{}", damage.what);
            (damage.segment.unwrap_or_default().0, damage.at, damage.what)
        }
        other => panic!("this must be refused: {other:?}"),
    }
}

#[track_caller]
fn opened(anchor: &AnchorFacts, segments: &[SegmentFacts]) -> OpenPlan {
    match plan(&log(anchor, segments)) {
        Plan::Open(open) => open,
        other => panic!("this must open: {other:?}"),
    }
}

#[test]
fn r1_bytes_of_another_format_are_left_alone_whatever_else_is_wrong() {
    let mut segments = two_segments();
    segments[0].header = HeaderRead::Damaged("rot");
    segments[1].header = HeaderRead::OtherFormat(3);
    let in_segment = Plan::OtherFormat { file: Some(SegmentNo(2)), format: 3 };
    for anchor in [AnchorFacts::Absent, AnchorFacts::Damaged, sound(|_| {})] {
        assert_eq!(plan(&log(&anchor, &segments)), in_segment);
    }
    assert_eq!(plan(&log(&AnchorFacts::OtherFormat(7), &segments)), Plan::OtherFormat { file: None, format: 7 });
}

/// The anchor of a log that was trimmed to segment 2 of [`two_segments`].
fn trimmed(change: impl FnOnce(&mut AnchorState)) -> AnchorFacts {
    sound(|state| {
        let (segment, offset, index, generation) = (SegmentNo(2), Offset(4), Index(5), Generation(3));
        state.start = LogStart { segment, offset, index, generation, ..state.start.clone() };
        (state.commit_floor, state.flushed, state.newest_segment) = (Index(4), Index(4), SegmentNo(2));
        change(state);
    })
}

#[test]
fn r2_files_below_the_start_of_the_log_are_removed_whatever_is_in_them() {
    assert_eq!(sound(|_| {}).first_segment(), SegmentNo(0), "before the first trim everything counts");
    assert_eq!(trimmed(|_| {}).first_segment(), SegmentNo(2));
    let facts = LogFacts { below: vec![SegmentNo(1)], ..log(&trimmed(|_| {}), &two_segments()[1..]) };
    let Plan::Open(open) = plan(&facts) else { panic!("this must open") };
    assert_eq!(open.below, [SegmentNo(1)]);
    assert_eq!((open.next_index, open.next_offset, open.active), (Index(8), Offset(7), Some((SegmentNo(2), 900))));
    // Not before the rest is found sound.
    let damaged = LogFacts { below: vec![SegmentNo(1)], ..log(&trimmed(|_| {}), &[]) };
    assert!(matches!(plan(&damaged), Plan::Refuse(_)));
}

#[test]
fn r7_an_anchor_that_contradicts_itself_is_refused() {
    let (floor_below, floor_above) = (
        |state: &mut AnchorState| state.commit_floor = Index(3),
        |state: &mut AnchorState| {
            (state.commit_floor, state.flushed) = (Index(6), Index(5));
        },
    );
    for anchor in [
        trimmed(floor_below),
        trimmed(floor_above),
        trimmed(|state| state.newest_segment = SegmentNo(1)),
        trimmed(|state| (state.start.index, state.commit_floor) = (Index(0), Index(0))),
    ] {
        let (segment, at, what) = refused(7, &anchor, &two_segments()[1..]);
        assert_eq!((segment, at), (0, 0));
        assert!(what.contains("which cannot be"), "{what}");
    }
    // Exactly at both bounds it is sound.
    opened(&trimmed(|state| (state.commit_floor, state.flushed) = (Index(4), Index(4))), &two_segments()[1..]);
    opened(&trimmed(|state| (state.commit_floor, state.flushed) = (Index(6), Index(6))), &two_segments()[1..]);
}

#[test]
fn r11_the_first_segment_begins_exactly_where_the_log_does() {
    let start = |change: &dyn Fn(&mut LogStart)| trimmed(|state| change(&mut state.start));
    opened(&trimmed(|_| {}), &two_segments()[1..]);
    let later = vec![segment(3, 8, 9, 3)];
    let untrimmed = (sound(|_| {}), two_segments()[1..].to_vec());
    let cases = [
        untrimmed,
        (trimmed(|_| {}), later),
        // Numbers below are never handed in; of those at it or above, the first is the one that counts.
        (start(&|start| start.segment = SegmentNo(1)), two_segments()[1..].to_vec()),
        (start(&|start| start.offset = Offset(3)), two_segments()[1..].to_vec()),
        (start(&|start| start.generation = Generation(2)), two_segments()[1..].to_vec()),
        (start(&|start| start.index = Index(4)), two_segments()[1..].to_vec()),
    ];
    for (anchor, segments) in cases {
        let (segment, at, what) = refused(11, &anchor, &segments);
        assert_eq!((segment, at), (segments[0].number.0, 0));
        assert!(what.contains("but the log begins at"), "{what}");
    }
    // The segment the log begins with is gone, and nothing is left.
    assert!(refused(15, &trimmed(|_| {}), &[]).2.contains("segment 2 was begun"));
}

#[test]
fn r4_where_nothing_was_ever_flushed_a_new_log_begins() {
    assert_eq!(plan(&log(&AnchorFacts::Absent, &[])), Plan::Create { remove: Vec::new() });
    let left = Plan::Create { remove: vec![SegmentNo(1), SegmentNo(2)] };
    assert_eq!(plan(&log(&AnchorFacts::Absent, &[zeros(1), zeros(2)])), left);
}

#[test]
fn r5_data_without_an_anchor_is_refused() {
    let (segment, at, what) = refused(5, &AnchorFacts::Absent, &two_segments());
    assert_eq!((segment, at), (2, 0));
    assert!(what.contains("anchor"), "{what}");
    let damaged = SegmentFacts { header: HeaderRead::Damaged("rot"), ..zeros(1) };
    assert_eq!(refused(5, &AnchorFacts::Absent, &[damaged, zeros(2)]).0, 1);
}

#[test]
fn r6_an_anchor_without_a_sound_place_is_refused_with_and_without_segments() {
    for segments in [Vec::new(), two_segments()] {
        let (segment, at, what) = refused(6, &AnchorFacts::Damaged, &segments);
        assert_eq!((segment, at), (0, 0));
        assert!(what.contains("two places"), "{what}");
    }
}

#[test]
fn r3_zeros_for_a_header_with_something_behind_them_are_refused_wherever_they_are() {
    let lost = |number| SegmentFacts { content_behind_zeros: true, ..zeros(number) };
    let mut newest = two_segments();
    newest.push(lost(3));
    for (anchor, segments) in
        [(sound(|_| {}), newest), (sound(|_| {}), vec![lost(3)]), (AnchorFacts::Absent, vec![lost(3)])]
    {
        let (segment, at, what) = refused(3, &anchor, &segments);
        assert_eq!((segment, at), (3, 0));
        assert!(what.contains("header is zeros"), "{what}");
    }
}

#[test]
fn r8_files_made_ahead_are_removed_and_hold_nothing() {
    let mut segments = two_segments();
    segments.extend([zeros(3), zeros(4)]);
    let open = opened(&sound(|_| {}), &segments);
    assert_eq!(open.remove, [SegmentNo(3), SegmentNo(4)]);
    assert_eq!((open.next_index, open.active), (Index(8), Some((SegmentNo(2), 900))));
    // A log that only has its anchor: the header of its first segment never reached the disk.
    let open = opened(&sound(|_| {}), &[zeros(1)]);
    assert_eq!((open.remove, open.next_index, open.active), (vec![SegmentNo(1)], Index(2), None));
}

#[test]
fn r8_a_newest_segment_that_became_zeros_is_refused_when_the_anchor_notes_its_batches() {
    let segments = [segment(1, 2, 5, 1), zeros(2)];
    let (segment, _, what) = refused(15, &sound(|state| state.flushed = Index(6)), &segments);
    assert_eq!(segment, 1);
    assert!(what.contains("batch 6 was flushed"), "{what}");
}

#[test]
fn r9_a_header_that_is_neither_zeros_nor_sound_is_refused_also_in_the_newest_segment() {
    for at in 0..2 {
        let mut segments = two_segments();
        segments[at] = SegmentFacts { header: HeaderRead::Damaged("rot"), scan: None, ..segments[at].clone() };
        assert_eq!(refused(9, &sound(|_| {}), &segments), (at as u64 + 1, 0, "rot".into()));
    }
}

#[test]
fn r10_a_header_of_zeros_before_a_later_segment_is_refused() {
    let (segment, at, what) = refused(10, &sound(|_| {}), &[zeros(1), segment(2, 5, 8, 3)]);
    assert_eq!((segment, at), (1, 0));
    assert!(what.contains("later segment"), "{what}");
}

#[test]
fn r12_a_segment_that_does_not_begin_where_the_one_before_ended_is_refused() {
    let first = segment(1, 2, 5, 1);
    let other = |change: &dyn Fn(&mut SegmentHeader)| {
        let mut second = segment(2, 5, 8, 3);
        let HeaderRead::Sound(header) = &mut second.header else { panic!("it is sound") };
        change(header);
        vec![first.clone(), second]
    };
    let gap = other(&|header| header.base_index = Index(6));
    let offset = other(&|header| header.base_offset = Offset(5));
    let generation = other(&|header| header.previous_generation = Generation(2));
    let middle_gone = vec![first.clone(), segment(3, 8, 9, 3)];
    for segments in [gap, offset, generation, middle_gone] {
        let (segment, at, what) = refused(12, &sound(|_| {}), &segments);
        assert_eq!((segment, at), (segments[segments.len() - 1].number.0, 0));
        assert!(what.contains("begins at batch") && what.contains("before it ends"), "{what}");
    }
}

#[test]
fn r13_an_unfinished_batch_anywhere_but_at_the_end_of_the_newest_segment_is_refused() {
    let segments = with_end(two_segments(), 0, torn(true, None));
    assert_eq!(refused(13, &sound(|_| {}), &segments), (1, 900, "not whole".into()));
}

#[test]
fn r13_what_no_power_cut_can_leave_is_refused_also_at_the_end() {
    let segments = with_end(two_segments(), 1, torn(false, None));
    assert_eq!(refused(13, &sound(|_| {}), &segments), (2, 900, "not whole".into()));
}

#[test]
fn r14_an_unfinished_batch_at_the_end_is_cut() {
    for later_claim in [None, Some(7)] {
        let open = opened(&sound(|_| {}), &with_end(two_segments(), 1, torn(true, later_claim)));
        assert_eq!(open.cut, Some((SegmentNo(2), 900)));
        assert_eq!((open.next_index, open.next_offset, open.active), (Index(8), Offset(7), Some((SegmentNo(2), 900))));
    }
}

#[test]
fn r15_a_missing_batch_that_anything_says_was_flushed_is_refused() {
    // The log ends with batch 7; the anchor, a batch of any segment, or one behind the tear says 8 was flushed.
    let cut = with_end(two_segments(), 1, torn(true, Some(8)));
    let mut claimed = two_segments();
    claimed[0].scan.as_mut().expect("a scanned segment").claim = Index(8);
    let cases = [
        (sound(|_| {}), cut),
        (sound(|_| {}), claimed),
        (sound(|state| state.flushed = Index(8)), two_segments()),
        (sound(|state| state.flushed = Index(8)), with_end(two_segments(), 1, torn(true, None))),
    ];
    for (anchor, segments) in cases {
        let (segment, at, what) = refused(15, &anchor, &segments);
        assert_eq!((segment, at), (2, 900));
        assert!(what.contains("ends with batch 7") && what.contains("batch 8 was flushed"), "{what}");
    }
    // With nothing left at all there is no segment to name.
    assert_eq!(refused(15, &sound(|state| state.flushed = Index(2)), &[]).0, 0);
    // Exactly what is proved flushed is there: it opens.
    opened(&sound(|state| state.flushed = Index(7)), &with_end(two_segments(), 1, torn(true, Some(7))));
}

#[test]
fn r15_a_segment_that_was_begun_and_is_gone_is_refused() {
    let begun = |number| sound(move |state| state.newest_segment = SegmentNo(number));
    opened(&begun(2), &two_segments());
    for (segments, newest) in [(two_segments(), 3), (vec![zeros(1)], 1), (Vec::new(), 1)] {
        let (_, _, what) = refused(15, &begun(newest), &segments);
        assert!(what.contains("was begun"), "{what}");
    }
}

#[test]
fn r16_after_a_clean_stop_the_log_ends_exactly_where_the_anchor_says() {
    let clean = |flushed| sound(move |state| (state.clean_stop, state.flushed) = (true, Index(flushed)));
    let torn_end = with_end(two_segments(), 1, torn(true, None));
    for (flushed, segments) in [(6, two_segments()), (7, torn_end)] {
        let (segment, at, what) = refused(16, &clean(flushed), &segments);
        assert_eq!((segment, at), (2, 900));
        assert!(what.contains("stopped cleanly"), "{what}");
    }
    let open = opened(&clean(7), &two_segments());
    assert!(!open.unclean && open.cut.is_none());
}

#[test]
fn r17_a_generation_that_nobody_voted_for_is_refused() {
    let (segment, at, what) = refused(17, &sound(|state| state.generation = Generation(2)), &two_segments());
    assert_eq!((segment, at), (2, 900));
    assert!(what.contains("generation 3"), "{what}");
    opened(&sound(|state| state.generation = Generation(4)), &two_segments());
}

#[test]
fn r18_everything_else_opens_and_only_a_policy_that_may_lose_begins_a_new_epoch() {
    let policies = [(FsyncPolicy::Always, false), (FsyncPolicy::EverySec, true), (FsyncPolicy::Never, true)];
    for (policy, may_lose) in policies {
        let unclean = opened(&sound(|state| state.policy = policy), &two_segments());
        let expected = OpenPlan {
            below: Vec::new(),
            remove: Vec::new(),
            cut: None,
            unclean: true,
            new_epoch: may_lose,
            next_index: Index(8),
            next_offset: Offset(7),
            generation: Generation(3),
            active: Some((SegmentNo(2), 900)),
        };
        assert_eq!(unclean, expected);
        let anchor = sound(|state| (state.policy, state.clean_stop, state.flushed) = (policy, true, Index(7)));
        assert_eq!(opened(&anchor, &two_segments()), OpenPlan { unclean: false, new_epoch: false, ..expected });
    }
    let empty = opened(&sound(|_| {}), &[]);
    assert_eq!((empty.next_index, empty.next_offset, empty.active), (Index(2), Offset(1), None));
}
