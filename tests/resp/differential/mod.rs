//! Hearth against redis-server itself: drawn sequences of commands to both, replies compared byte by byte.
//!
//! Promise: whatever differs is either a row of docs/resp.md or fails the test, with the shortest sequence found and the
//! line that repeats it; every kind of reply was seen often. Must never know how Hearth does anything.
//!
//! Reading order: `sequence` (what is done), `generate` (drawn from a seed), `side` and `play` (done to both), `same` and
//! `differences` (what counts as the same), `label` and `coverage` (what was seen), `shrink`.
//!
//! | variable | |
//! |---|---|
//! | `HEARTH_DIFFERENTIAL` | commands to run, 210,000 if not said |
//! | `HEARTH_DIFFERENTIAL_FROM` | the first seed, 1 if not said; each sequence is a seed of its own |
//! | `HEARTH_SEED` | just this sequence |
//! | `HEARTH_DIFFERENTIAL_AGAINST` | `redis`: two redis-servers, between which nothing may differ |
//! | `HEARTH_DIFFERENTIAL_WITHOUT` | commands to leave out, with commas, while they are being built |
//! | `HEARTH_RECORD` | with the two redis-servers: write `cells.txt` |

mod coverage;
mod dice;
mod differences;
mod generate;
mod label;
mod play;
mod reply;
mod same;
mod sequence;
mod shrink;
mod side;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use coverage::{Coverage, LEAST};
use play::{Fault, Pair, Stop};
use sequence::{Sequence, Step};
use side::Side;

/// Commands of a run that must see every cell.
const FULL: usize = 210_000;
/// Kinds of faults that are shrunk and told; more would tell nothing new.
const MOST_FAULTS: usize = 60;

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn number(name: &str) -> Option<u64> {
    variable(name).map(|value| value.parse().unwrap())
}

fn against_redis() -> bool {
    let against = variable("HEARTH_DIFFERENTIAL_AGAINST");
    assert!(matches!(against.as_deref(), None | Some("redis")), "HEARTH_DIFFERENTIAL_AGAINST can be redis");
    against.is_some()
}

/// One kind of fault: how often it came, and the shortest way to it.
struct Told {
    times: usize,
    text: String,
}

struct Run {
    pair: Pair,
    coverage: Coverage,
    faults: BTreeMap<String, Told>,
    commands: usize,
    sequences: usize,
    void: usize,
    without: Vec<String>,
}

impl Run {
    fn new(shards: u32) -> Self {
        let other = if against_redis() { Side::redis("the other redis") } else { Side::hearth(shards) };
        let mut redis = Side::redis("redis");
        let version = redis.version().unwrap();
        assert!(version.starts_with("7.0."), "the lists of this test are of redis-server 7.0, and this is {version}");
        let pair = Pair { redis, other, excusing: !against_redis(), shards };
        let without = variable("HEARTH_DIFFERENTIAL_WITHOUT").unwrap_or_default();
        let without = without.split(',').map(str::to_ascii_uppercase).collect();
        let (coverage, faults) = (Coverage::default(), BTreeMap::new());
        Self { pair, coverage, faults, commands: 0, sequences: 0, void: 0, without }
    }

    fn play(&mut self, seed: u64) {
        let sequence = self.without_some(generate::sequence(seed));
        let (compared, ended) = self.pair.play(&sequence, &mut self.coverage);
        self.commands += compared;
        self.sequences += 1;
        match ended {
            Ok(()) | Err(Stop::OnPurpose) => {}
            Err(Stop::Void) => self.void += 1,
            Err(Stop::Fault(fault)) => self.tell(&sequence, &fault),
        }
    }

    /// Leaves out what HEARTH_DIFFERENTIAL_WITHOUT names.
    fn without_some(&self, mut sequence: Sequence) -> Sequence {
        for step in &mut sequence.steps {
            if let Step::Batch { requests, .. } = step {
                requests.retain(|request| !self.without.contains(&request.capitals(0)));
            }
        }
        let left_out = |name: &str| self.without.iter().any(|without| without == name);
        sequence.steps.retain(|step| match step {
            Step::Batch { requests, .. } => !requests.is_empty(),
            Step::Lapse { .. } => !left_out("PTTL"),
            Step::Scan { .. } => !left_out("SCAN"),
            Step::RandomKey { .. } => !left_out("RANDOMKEY"),
        });
        sequence
    }

    fn tell(&mut self, sequence: &Sequence, fault: &Fault) {
        if let Some(told) = self.faults.get_mut(&fault.class) {
            told.times += 1;
            return;
        }
        let shrunk =
            if self.faults.len() < MOST_FAULTS { shrink::shrink(&mut self.pair, sequence, fault) } else { None };
        let again = shrunk.is_some();
        let (shortest, fault) = shrunk.unwrap_or_else(|| (sequence.clone(), fault.clone()));
        let mut text = String::new();
        let against = if against_redis() { "HEARTH_DIFFERENTIAL_AGAINST=redis " } else { "" };
        let _ = writeln!(text, "{}\n  to {}", fault.class, fault.request);
        let _ =
            writeln!(text, "  {}: {}\n  {}: {}", self.pair.redis.name, fault.redis, self.pair.other.name, fault.other);
        if again {
            let _ = writeln!(text, "{shortest}");
        } else {
            let _ = writeln!(text, "  it was not seen again, or not tried (reply {} of the sequence)", fault.number);
        }
        let (seed, test) = (sequence.seed, if self.pair.shards == 1 { "redis_and" } else { "with_eight" });
        let _ = writeln!(
            text,
            "{against}HEARTH_SEED={seed} cargo test --release --test resp differential::{test} -- --nocapture"
        );
        self.faults.insert(fault.class, Told { times: 1, text });
    }

    fn report(&self) {
        for told in self.faults.values() {
            println!("--- {} times: {}", told.times, told.text);
        }
        println!("{} commands in {} sequences, {} of them void", self.commands, self.sequences, self.void);
        print!("{}", self.coverage.table());
        let names = play::normaliser_names().chain(differences::DIFFERENCES.iter().map(|difference| difference.name));
        for name in names.filter(|name| !self.coverage.needed.contains_key(name)) {
            println!("{name}: never needed");
        }
    }
}

/// Plays sequence after sequence until so many commands were compared, or the one that HEARTH_SEED names.
fn run(shards: u32, wanted: usize) -> Run {
    let mut run = Run::new(shards);
    if let Some(seed) = number("HEARTH_SEED") {
        println!("{}", generate::sequence(seed));
        run.play(seed);
    } else {
        for seed in number("HEARTH_DIFFERENTIAL_FROM").unwrap_or(1).. {
            if run.commands >= wanted {
                break;
            }
            run.play(seed);
        }
    }
    if against_redis() && variable("HEARTH_RECORD").is_some() {
        run.coverage.write_list();
    }
    run.report();
    let kinds: Vec<&String> = run.faults.keys().collect();
    assert!(kinds.is_empty(), "{} kinds of differences, told above: {kinds:#?}", kinds.len());
    assert!(
        run.void * 20 <= run.sequences,
        "{} of {} sequences were void: nothing was compared",
        run.void,
        run.sequences
    );
    run
}

#[test]
fn redis_and_hearth_answer_the_same() {
    let wanted = number("HEARTH_DIFFERENTIAL").map_or(FULL, |wanted| wanted as usize);
    let run = run(1, wanted);
    if wanted >= FULL && run.without == [""] && number("HEARTH_SEED").is_none() {
        assert!(run.coverage.rare().is_empty(), "{LEAST} times each kind of reply must be seen; those above were not");
    }
}

#[test]
fn with_eight_shards_everything_is_the_same_but_what_must_be_whole() {
    let wanted = number("HEARTH_DIFFERENTIAL").map_or(FULL, |wanted| wanted as usize) / 4;
    let run = run(8, wanted);
    if number("HEARTH_SEED").is_none() {
        let refused = run.coverage.needed.get("whole-over-several-shards").copied().unwrap_or_default();
        assert!(refused * 50 > run.sequences, "{refused} refusals in {} sequences", run.sequences);
    }
}
