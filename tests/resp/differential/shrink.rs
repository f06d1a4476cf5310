//! Makes a sequence that differs as short as it can be.
//!
//! Promise: what comes out was played and differed in the same way. Must never know a command.

use crate::differential::coverage::Coverage;
use crate::differential::play::{Fault, Pair, Stop};
use crate::differential::sequence::{Sequence, Step};

/// How often a sequence is played at most.
const TRIES: usize = 600;

/// A step without the requests in it.
fn is_left(step: &Step) -> bool {
    !matches!(step, Step::Batch { requests, .. } if requests.is_empty())
}

/// What can be dropped: each request of a batch, each other step.
fn atoms(sequence: &Sequence) -> usize {
    let of = |step: &Step| if let Step::Batch { requests, .. } = step { requests.len() } else { 1 };
    sequence.steps.iter().map(of).sum()
}

/// `sequence` without the atoms from `begin` to `end`.
fn without(sequence: &Sequence, begin: usize, end: usize) -> Sequence {
    let mut at = 0;
    let mut stays = || {
        at += 1;
        !(begin..end).contains(&(at - 1))
    };
    let mut steps = Vec::new();
    for step in &sequence.steps {
        if let Step::Batch { connection, requests, cuts } = step {
            let requests = requests.iter().filter(|_| stays()).cloned().collect();
            steps.push(Step::Batch { connection: *connection, requests, cuts: cuts.clone() });
        } else if stays() {
            steps.push(step.clone());
        }
    }
    steps.retain(is_left);
    Sequence { seed: sequence.seed, steps }
}

/// `sequence` with each batch in one write.
fn uncut(sequence: &Sequence) -> Sequence {
    let whole = |step: &Step| match step {
        Step::Batch { connection, requests, .. } => Step::batch(*connection, requests.clone()),
        other => other.clone(),
    };
    Sequence { seed: sequence.seed, steps: sequence.steps.iter().map(whole).collect() }
}

/// The shortest sequence found that differs like `fault`; none if it never did so again.
pub fn shrink(pair: &mut Pair, sequence: &Sequence, fault: &Fault) -> Option<(Sequence, Fault)> {
    let mut left = TRIES;
    let mut differs = |candidate: &Sequence| {
        left = left.checked_sub(1)?;
        match pair.play(candidate, &mut Coverage::default()).1 {
            Err(Stop::Fault(found)) if found.class == fault.class => Some(*found),
            _ => None,
        }
    };
    let mut best = (0..3).find_map(|_| differs(sequence)).map(|fault| (sequence.clone(), fault))?;
    if let Some(fault) = differs(&uncut(&best.0)) {
        best = (uncut(&best.0), fault);
    }
    let mut size = atoms(&best.0);
    while size > 0 {
        let mut dropped = false;
        let mut end = atoms(&best.0);
        while end > 0 {
            let begin = end.saturating_sub(size);
            let candidate = without(&best.0, begin, end);
            if let Some(fault) = differs(&candidate) {
                best = (candidate, fault);
                dropped = true;
            }
            end = begin;
        }
        // Once more at the same size only while that still helps.
        size = if dropped && size == 1 { 1 } else { size / 2 };
    }
    Some(best)
}

#[test]
fn atoms_are_dropped_one_by_one() {
    use crate::differential::sequence::Request;
    let requests = ["A", "B", "C"].map(|name| Request::of([name]));
    let steps = vec![
        Step::batch(0, requests.to_vec()),
        Step::RandomKey { database: 0 },
        Step::batch(1, vec![requests[0].clone()]),
    ];
    let sequence = Sequence { seed: 1, steps };
    assert_eq!(atoms(&sequence), 5);
    let rest = without(&sequence, 1, 4);
    assert_eq!(rest.steps, [Step::batch(0, vec![requests[0].clone()]), Step::batch(1, vec![requests[0].clone()])]);
    assert_eq!(without(&sequence, 0, 5).steps, []);
}
