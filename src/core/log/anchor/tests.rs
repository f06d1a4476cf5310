//! What the anchor promises about its two places: written in turn, the newest sound one decides, a vote stands in both.

use super::*;
use crate::core::log::disk::{MemoryDisk, everything_lost, torn};
use crate::core::types::Configuration;

const PLACES: [u64; 2] = [0, PLACE_BYTES];

fn state() -> AnchorState {
    AnchorState {
        replica: ReplicaId(1),
        generation: Generation(1),
        vote: None,
        epoch: Epoch(u64::MAX),
        start: LogStart {
            segment: SegmentNo(0),
            offset: Offset(1),
            index: Index(2),
            generation: Generation(1),
            configuration: Configuration { voters: vec![ReplicaId(1)], learners: vec![ReplicaId(2)] },
            configuration_index: Index(1),
        },
        commit_floor: Index(1),
        flushed: Index(1),
        flushed_next_offset: Offset(1),
        newest_segment: SegmentNo(9),
        clean_stop: false,
        policy: FsyncPolicy::EverySec,
        clock: Millis(77),
    }
}

fn dir() -> &'static Path {
    Path::new("/d")
}

fn created() -> (MemoryDisk, Anchor) {
    let disk = MemoryDisk::new();
    disk.create_dir(dir()).unwrap();
    let anchor = Anchor::create(&disk, dir(), state()).unwrap();
    (disk, anchor)
}

fn read(disk: &MemoryDisk) -> AnchorState {
    match Anchor::read(disk, dir()).unwrap() {
        AnchorRead::Sound(state) => state,
        AnchorRead::Absent => panic!("absent"),
        AnchorRead::OtherFormat(format) => panic!("format {format}"),
        AnchorRead::Damaged => panic!("damaged"),
    }
}

fn reopened(disk: &MemoryDisk) -> Anchor {
    Anchor::open(disk, dir(), &read(disk)).unwrap().expect("it still says that")
}

fn places(disk: &MemoryDisk) -> [[u8; SECTOR_BYTES]; 2] {
    let file = disk.open(&dir().join(ANCHOR_FILE)).unwrap();
    PLACES.map(|at| {
        let mut bytes = [0; SECTOR_BYTES];
        file.read_at(at, &mut bytes).unwrap();
        bytes
    })
}

fn spoil(disk: &MemoryDisk, place: u64, bytes: &[u8]) {
    disk.open(&dir().join(ANCHOR_FILE)).unwrap().write_at(place, bytes).unwrap();
}

fn flushed_to(anchor: &mut Anchor, index: u64) {
    anchor.update(|state| state.flushed = Index(index)).unwrap();
}

#[test]
fn what_was_written_reads_back_whole() {
    let (disk, mut anchor) = created();
    assert_eq!(read(&disk), state());
    anchor
        .update(|state| {
            (state.generation, state.vote, state.clean_stop) = (Generation(7), Some(ReplicaId(3)), true);
            (state.flushed, state.commit_floor, state.flushed_next_offset) = (Index(50), Index(40), Offset(99));
            (state.policy, state.clock) = (FsyncPolicy::Never, Millis(u64::MAX));
            state.start.segment = SegmentNo(5);
        })
        .unwrap();
    assert_eq!(read(&disk), anchor.state);
}

#[test]
fn an_update_never_touches_the_newest_sound_place() {
    let (disk, mut anchor) = created();
    let mut written = Vec::new();
    for index in 2..8 {
        let before = places(&disk);
        flushed_to(&mut anchor, index);
        let after = places(&disk);
        let changed: Vec<usize> = (0..2).filter(|&place| before[place] != after[place]).collect();
        assert_eq!(changed.len(), 1, "one place a time");
        written.extend(changed);
    }
    assert!(written.windows(2).all(|pair| pair[0] != pair[1]), "in turn: {written:?}");
    // Also the first write of a process that opened it.
    let before = places(&disk);
    let mut reopened = reopened(&disk);
    flushed_to(&mut reopened, 9);
    assert_eq!(places(&disk)[written[5]], before[written[5]], "the newest place stays");
    assert_eq!(read(&disk).flushed, Index(9));
}

#[test]
fn a_power_cut_at_any_effect_leaves_the_old_state_or_the_new_one() {
    for effects in 0..3 {
        for seed in 0..16 {
            let (disk, mut anchor) = created();
            flushed_to(&mut anchor, 5);
            disk.power_off_after(disk.effects() + effects);
            let updated = anchor.update(|state| state.flushed = Index(6));
            let found = read(&disk.after_power_cut(&mut torn(seed))).flushed;
            assert!(found == Index(6) || found == Index(5) && updated.is_err(), "{found:?} after {updated:?}");
        }
    }
}

#[test]
fn a_torn_newest_place_falls_back_to_the_one_before() {
    for tear in [&[0; SECTOR_BYTES][..], &[0xff; 40]] {
        let (disk, mut anchor) = created();
        flushed_to(&mut anchor, 5);
        flushed_to(&mut anchor, 6);
        spoil(&disk, PLACES[(anchor.sequence % 2) as usize], tear);
        assert_eq!(read(&disk).flushed, Index(5));
        // And goes on from there, over the torn place.
        let mut fallen = reopened(&disk);
        flushed_to(&mut fallen, 7);
        assert_eq!(read(&disk).flushed, Index(7));
    }
}

#[test]
fn a_vote_stands_in_both_places_so_no_older_one_comes_back() {
    for lost in PLACES {
        let (disk, mut anchor) = created();
        flushed_to(&mut anchor, 5);
        anchor.update_both(|state| (state.generation, state.vote) = (Generation(4), Some(ReplicaId(1)))).unwrap();
        let disk = disk.after_power_cut(&mut everything_lost());
        spoil(&disk, lost, &[0; SECTOR_BYTES]);
        assert_eq!((read(&disk).generation, read(&disk).vote), (Generation(4), Some(ReplicaId(1))));
    }
}

#[test]
fn nothing_durable_is_absent_and_nothing_sound_is_damaged() {
    let absent = |disk: &MemoryDisk| matches!(Anchor::read(disk, dir()).unwrap(), AnchorRead::Absent);
    let disk = MemoryDisk::new();
    disk.create_dir(dir()).unwrap();
    assert!(absent(&disk));
    let file = disk.create(&dir().join(ANCHOR_FILE)).unwrap();
    assert!(absent(&disk), "an empty file");
    file.set_len(2 * PLACE_BYTES).unwrap();
    assert!(absent(&disk), "zeros");
    let (disk, _) = created();
    spoil(&disk, PLACES[1], &[1; SECTOR_BYTES]);
    assert!(matches!(Anchor::read(&disk, dir()).unwrap(), AnchorRead::Damaged));
}

#[test]
fn a_sound_place_of_another_format_is_not_overwritten() {
    let (disk, _) = created();
    let mut sector = Sector(state().encode(8));
    sector.put_u32(8, FORMAT + 1);
    sector.seal(CRC_AT);
    spoil(&disk, PLACES[0], &sector.0);
    assert!(matches!(Anchor::read(&disk, dir()).unwrap(), AnchorRead::OtherFormat(format) if format == FORMAT + 1));
}

#[test]
fn every_flipped_bit_of_a_place_is_noticed() {
    let sector = state().encode(3);
    for bit in 0..sector.len() * 8 {
        let mut broken = Sector(sector);
        broken.0[bit / 8] ^= 1 << (bit % 8);
        assert!(!broken.is_sound(CRC_AT), "bit {bit}");
    }
}

#[test]
#[should_panic(expected = "commit floor")]
fn a_commit_floor_above_what_is_flushed_is_never_written() {
    let (_, mut anchor) = created();
    let _ = anchor.update(|state| state.commit_floor = Index(2));
}
