//! What can happen to a store that is compacted, as plain values: drawn by proptest, or by a seed for a run that is cut.
//!
//! Must never know what comes of it.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::script::Dice;

/// So few keys that most writes are to one that is there, so many that a segment does not hold them all.
pub const KEYS: u8 = 20;
/// Most writes are to these; what the others hold is there to be carried.
const HOT_KEYS: u8 = 6;
/// A third of the smallest segment's batch.
const LONGEST_VALUE: u16 = 700;

#[derive(Clone, Copy, Debug)]
pub enum Lifetime {
    Never,
    Lasts(u64),
    /// It lapsed this long ago.
    Past(u64),
    Keep,
}

#[derive(Clone, Copy, Debug)]
pub enum When {
    Always,
    Absent,
    Present,
    /// The revision is the one asked for.
    Unchanged,
    /// It is not.
    Changed,
}

#[derive(Clone, Debug)]
pub enum Write {
    Put { key: u8, bytes: u16, lifetime: Lifetime, when: When },
    Delete { key: u8 },
    DeleteAll { keys: Vec<u8> },
    Clear,
}

/// What a power cut leaves of what was not flushed.
#[derive(Clone, Copy, Debug)]
pub enum Left {
    Nothing,
    Everything,
    Torn(u64),
}

/// Why writes are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    None,
    /// The disk is below its floor.
    Disk,
    /// What is allocated is used up, and no more is to be had.
    Allocated,
    /// The cache's own bound is reached.
    Data,
}

#[derive(Clone, Debug)]
pub enum Op {
    /// Staged as one turn.
    Turn(Vec<Write>),
    /// The driver does all there is to do.
    Drive,
    Wait(u64),
    /// A write to a key that the pass under way has read and not carried yet.
    Overtake {
        delete: bool,
    },
    /// So many single steps of compaction. Handing out a read, carrying it out and taking its result are three.
    Steps(u8),
    /// Passes, with the driver in between, until compaction asks for no more.
    Compact,
    /// Everything is deleted, then that.
    ClearAndCompact,
    Sweep(u8),
    Short(Shortage),
    /// A carry of records that were once read, whatever became of them since.
    CarryRemembered,
    /// A trim to one of the segments, the higher the number the newer.
    TrimTo(u8),
    /// Both, by a pass of the generation before.
    OfOldGeneration,
    /// A reader finds the value of a key and holds it.
    Pin(u8),
    Bootstrap,
    OldestAnchor,
    CleanStop,
    Kill,
    PowerCut(Left),
    /// After so many effects on the disk.
    PowerCutAfter(u64, Left),
}

fn lifetime() -> impl Strategy<Value = Lifetime> {
    prop_oneof![
        10 => Just(Lifetime::Never),
        4 => (1..6_000_u64).prop_map(Lifetime::Lasts),
        1 => (0..5_000_u64).prop_map(Lifetime::Past),
        2 => Just(Lifetime::Keep),
    ]
}

fn when() -> impl Strategy<Value = When> {
    prop_oneof![
        8 => Just(When::Always),
        1 => Just(When::Absent),
        1 => Just(When::Present),
        1 => Just(When::Unchanged),
        1 => Just(When::Changed),
    ]
}

fn key() -> impl Strategy<Value = u8> {
    prop_oneof![2 => 0..HOT_KEYS, 1 => HOT_KEYS..KEYS]
}

fn write() -> impl Strategy<Value = Write> {
    let put = (key(), prop_oneof![1 => 0..40_u16, 3 => 200..LONGEST_VALUE], lifetime(), when());
    prop_oneof![
        40 => put.prop_map(|(key, bytes, lifetime, when)| Write::Put { key, bytes, lifetime, when }),
        5 => key().prop_map(|key| Write::Delete { key }),
        2 => vec(key(), 1..6).prop_map(|keys| Write::DeleteAll { keys }),
    ]
}

fn left() -> impl Strategy<Value = Left> {
    prop_oneof![Just(Left::Nothing), Just(Left::Everything), any::<u64>().prop_map(Left::Torn)]
}

fn shortage() -> impl Strategy<Value = Shortage> {
    prop_oneof![
        6 => Just(Shortage::None),
        1 => Just(Shortage::Disk),
        1 => Just(Shortage::Allocated),
        1 => Just(Shortage::Data),
    ]
}

pub fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        60 => vec(write(), 1..5).prop_map(Op::Turn),
        1 => Just(Op::Turn(vec![Write::Clear])),
        40 => Just(Op::Drive),
        20 => (1..1_500_u64).prop_map(Op::Wait),
        6 => any::<bool>().prop_map(|delete| Op::Overtake { delete }),
        80 => (1..5_u8).prop_map(Op::Steps),
        8 => Just(Op::Compact),
        1 => Just(Op::ClearAndCompact),
        6 => (1..20_u8).prop_map(Op::Sweep),
        6 => shortage().prop_map(Op::Short),
        8 => Just(Op::CarryRemembered),
        4 => any::<u8>().prop_map(Op::TrimTo),
        3 => Just(Op::OfOldGeneration),
        8 => key().prop_map(Op::Pin),
        3 => Just(Op::Bootstrap),
        1 => Just(Op::OldestAnchor),
        2 => Just(Op::CleanStop),
        2 => Just(Op::Kill),
        2 => left().prop_map(Op::PowerCut),
        4 => (0..50_u64, left()).prop_map(|(effects, left)| Op::PowerCutAfter(effects, left)),
    ]
}

/// A run of `rounds` rounds that rolls, compacts and trims, the same for ever; it is ended from outside.
pub fn script(seed: u64, rounds: usize) -> Vec<Op> {
    let mut dice = Dice::new(seed);
    // Some of them lapse before a pass comes to them, and are in the log as if they were alive.
    let lifetime = |key: u8| if key.is_multiple_of(3) { Lifetime::Lasts(2_000) } else { Lifetime::Never };
    let put = |key| Write::Put { key, bytes: 300, lifetime: lifetime(key), when: When::Always };
    let mut ops = vec![Op::Turn((0..KEYS).map(put).collect()), Op::Drive];
    for round in 1..=rounds {
        ops.push(Op::Turn((0..=dice.below(3)).map(|_| scripted_write(&mut dice)).collect()));
        // So that the turn may be staged between a read and its carries, or in one batch with them.
        ops.push(Op::Steps(1 + dice.below(4) as u8));
        ops.push(Op::Drive);
        ops.push(Op::Wait(dice.below(700)));
        match round % 13 {
            3 | 9 => ops.push(Op::Sweep(KEYS)),
            7 => ops.push(Op::Compact),
            _ => {
                ops.push(Op::Steps(1 + dice.below(3) as u8));
                ops.push(Op::Overtake { delete: round % 3 == 0 });
            }
        }
        match round % 40 {
            9 | 29 => ops.push(Op::CleanStop),
            19 => ops.push(Op::Kill),
            _ if round + 5 == rounds => ops.push(Op::ClearAndCompact),
            _ => {}
        }
    }
    ops
}

fn scripted_write(dice: &mut Dice) -> Write {
    // What the last keys hold is never written again, only carried.
    let among = if dice.below(3) > 0 { HOT_KEYS } else { KEYS - HOT_KEYS };
    let key = dice.below(u64::from(among)) as u8;
    if dice.below(10) == 0 {
        return Write::Delete { key };
    }
    let lifetime = match dice.below(6) {
        0 => Lifetime::Lasts(1 + dice.below(3_000)),
        1 => Lifetime::Keep,
        _ => Lifetime::Never,
    };
    let when = if dice.below(8) == 0 { When::Absent } else { When::Always };
    Write::Put { key, bytes: dice.below(u64::from(LONGEST_VALUE)) as u16, lifetime, when }
}
