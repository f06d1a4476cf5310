//! One run of one test: its seed, its length, and the line that repeats it, printed when it fails.

use crate::support::Random;

/// Keep it alive to the end of the test: its drop prints how to repeat a failure.
pub struct Case {
    test: &'static str,
    seed: u64,
    /// The environment variable that sets the number of rounds, and its value in this run.
    rounds: Option<(&'static str, u32)>,
}

impl Case {
    /// `test` as cargo filters it: `module::name`.
    pub fn new(test: &'static str) -> Self {
        let seed = from_environment("HEARTH_SEED").unwrap_or_else(Random::fresh_seed);
        println!("{test}: HEARTH_SEED={seed}");
        Self { test, seed, rounds: None }
    }

    pub fn with_rounds(mut self, variable: &'static str, usual: u32) -> Self {
        let rounds = from_environment(variable).map_or(usual, |rounds| u32::try_from(rounds).expect("a small number"));
        assert!(rounds > 0, "{variable}=0 would prove nothing");
        self.rounds = Some((variable, rounds));
        self
    }

    pub fn rounds(&self) -> u32 {
        self.rounds.map_or(1, |(_, rounds)| rounds)
    }

    pub fn random(&self) -> Random {
        Random::new(self.seed)
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let rounds = self.rounds.map_or(String::new(), |(variable, rounds)| format!("{variable}={rounds} "));
            eprintln!(
                "to repeat (same draws, other thread timing): HEARTH_SEED={} {rounds}cargo test --test crash -- --exact {} --nocapture",
                self.seed, self.test
            );
        }
    }
}

fn from_environment(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")))
}
