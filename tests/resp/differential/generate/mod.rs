//! Sequences from seeds.
//!
//! Promise: a seed makes one sequence for ever (until a generator changes); rare replies are made about as frequent as
//! common ones by weights. Must never know what is answered.

mod connection;
mod keys;
mod maker;
mod strings;
mod transactions;
mod words;

use crate::differential::dice::Dice;
use crate::differential::sequence::{Request, Sequence, Step};
use maker::{Maker, Piece, plainly};

/// Says a command in one of its forms, and before it what its setting needs.
type Generator = fn(&mut Maker);

/// The groups of generators; each row's weight is within all of them together.
const GROUPS: [&[(usize, Generator)]; 4] =
    [strings::COMMANDS, keys::COMMANDS, connection::COMMANDS, transactions::COMMANDS];

/// Says one command, and what its setting needs.
fn command(m: &mut Maker) {
    let sum = |rows: &[(usize, Generator)]| rows.iter().map(|(weight, _)| weight).sum::<usize>();
    let mut left = m.dice.below(GROUPS.iter().map(|rows| sum(rows)).sum());
    for rows in GROUPS {
        if left < sum(rows) {
            m.dice.weighted(rows)(m);
            if m.dice.percent(12) {
                m.look();
            }
            return;
        }
        left -= sum(rows);
    }
}

/// The sequence of `seed`.
pub fn sequence(seed: u64) -> Sequence {
    let mut m = Maker::new(Dice::of(seed));
    for connection in 0..2 {
        m.connection = connection;
        if m.dice.percent(50) {
            plainly!(m, &["HELLO", "3"]);
        }
    }
    m.connection = 0;
    for _ in 0..m.dice.between(5, 60) {
        if m.dice.percent(10) {
            m.connection = 1 - m.connection;
        }
        command(&mut m);
    }
    let Maker { dice, pieces, .. } = m;
    Sequence { seed, steps: in_batches(dice, pieces) }
}

/// What is said one after the other on one connection goes out in pipelines of 1 to 30.
fn in_batches(mut dice: Dice, pieces: Vec<Piece>) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut batch: (usize, Vec<Request>, usize) = (0, Vec::new(), 30);
    for piece in pieces {
        match piece {
            Piece::Said(connection, request) => {
                if connection != batch.0 || batch.1.len() >= batch.2 {
                    close(&mut dice, &mut steps, &mut batch);
                    batch.0 = connection;
                    batch.2 = if dice.percent(25) { 1 } else { dice.between(1, 30) };
                }
                batch.1.push(request);
            }
            Piece::Step(step) => {
                close(&mut dice, &mut steps, &mut batch);
                steps.push(step);
            }
        }
    }
    close(&mut dice, &mut steps, &mut batch);
    steps
}

fn close(dice: &mut Dice, steps: &mut Vec<Step>, batch: &mut (usize, Vec<Request>, usize)) {
    let requests = std::mem::take(&mut batch.1);
    if requests.is_empty() {
        return;
    }
    let mut cuts = Vec::new();
    if dice.percent(12) {
        let length = requests.iter().map(|request| request.bytes().len()).sum::<usize>();
        cuts = (0..dice.between(1, 5)).map(|_| dice.below(length)).collect();
        cuts.sort_unstable();
    }
    steps.push(Step::Batch { connection: batch.0, requests, cuts });
}

#[test]
fn a_seed_makes_the_same_sequence_again() {
    for seed in 1..300 {
        let made = sequence(seed);
        assert_eq!(made, sequence(seed));
        assert_ne!(made.steps, sequence(seed + 1).steps);
        for step in &made.steps {
            if let Step::Batch { connection, requests, .. } = step {
                assert!(*connection < 2 && (1..=30).contains(&requests.len()), "{step}");
            }
        }
    }
}
