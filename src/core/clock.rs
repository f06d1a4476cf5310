//! The clock door: the only place where the core learns what time it is.
//!
//! The reading follows the wall clock without trusting it: time passes by the monotonic clock, and what separates the two is
//! made good at a bounded rate. So a step of the wall clock moves no expiry by more than the clock can slew, and one that is
//! set years ahead lapses nothing.
//!
//! Promise: a clock never runs backwards within a process. Must never know who asks.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::core::limits::{
    CLOCK_CLOSE_ENOUGH_MS, CLOCK_JUMP_MS, CLOCK_LOOK_INTERVAL_US, CLOCK_SLEW_DIVISOR, CLOCK_STEP_US,
};
use crate::core::types::Millis;

/// Tells Unix time in milliseconds, never less than it told before.
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Millis;

    /// Microseconds since some moment, to tell how long something took.
    fn micros(&self) -> u64;

    /// From here on no reading is below `floor`: the newest time a log knows.
    fn not_before(&self, floor: Millis);

    /// How far the reading is from the wall clock.
    fn gap(&self) -> Gap {
        Gap::default()
    }
}

/// How far a clock is from the wall clock, in milliseconds; at least one of the two is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gap {
    /// The wall clock is ahead by so much more than it may have drifted that it is not believed.
    pub behind_ms: u64,
    /// The reading is ahead of the wall clock, and slows down until that has caught up.
    pub ahead_ms: u64,
}

/// What a look at the wall clock found, when it is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It jumped ahead by so many milliseconds, and is not believed.
    Jumped(u64),
    /// It is believed again.
    Back,
}

/// The arithmetic of a slewed clock: monotonic microseconds and wall milliseconds in, a reading out. Asks nobody.
///
/// The reading is the monotonic time plus an offset; the offset moves towards the wall clock's by at most a tenth
/// ([`CLOCK_SLEW_DIVISOR`]) of the time that passed.
#[derive(Clone, Debug)]
pub struct Slew {
    /// The offset was brought up to date at this monotonic time.
    at_us: u64,
    offset_us: i64,
    /// Where the offset is heading.
    target_us: i64,
    gap: Gap,
    disbelieving: bool,
}

impl Slew {
    /// Begins at the wall clock's time, whatever it says.
    #[must_use]
    pub fn new(mono_us: u64, wall: Millis) -> Self {
        let offset_us = offset(mono_us, wall);
        Self { at_us: mono_us, offset_us, target_us: offset_us, gap: Gap::default(), disbelieving: false }
    }

    /// Lifts the reading to `floor` if it is below it.
    pub fn not_before(&mut self, mono_us: u64, floor: Millis) {
        self.advance(mono_us);
        self.offset_us = self.offset_us.max(offset(mono_us, floor));
    }

    /// The reading. Monotonic times that go backwards are taken as the newest one seen.
    #[must_use]
    pub fn reading(&self, mono_us: u64) -> Millis {
        let elapsed = mono_us.saturating_sub(self.at_us);
        let slewed = self.slewed(elapsed);
        Millis(u64::try_from(to_i64(self.at_us + elapsed).saturating_add(slewed)).unwrap_or_default() / 1000)
    }

    /// Brings the offset up to date; gives the reading.
    pub fn advance(&mut self, mono_us: u64) -> Millis {
        let elapsed = mono_us.saturating_sub(self.at_us);
        self.offset_us = self.slewed(elapsed);
        self.at_us += elapsed;
        self.reading(mono_us)
    }

    /// Takes a look at the wall clock into account: from here on the reading heads for it, unless it is too far ahead to
    /// be believed.
    pub fn look(&mut self, mono_us: u64, wall: Millis) -> Option<Found> {
        self.advance(mono_us);
        let target_us = offset(self.at_us, wall);
        let away_ms = (target_us.saturating_sub(self.offset_us)) / 1000;
        self.disbelieving = away_ms > to_i64(CLOCK_JUMP_MS);
        let close = away_ms.unsigned_abs() <= CLOCK_CLOSE_ENOUGH_MS;
        self.target_us = if self.disbelieving || close { self.offset_us } else { target_us };
        let was_behind = self.gap.behind_ms > 0;
        self.gap = Gap {
            behind_ms: if self.disbelieving { away_ms.unsigned_abs() } else { 0 },
            ahead_ms: if away_ms < 0 && !close { away_ms.unsigned_abs() } else { 0 },
        };
        match (was_behind, self.disbelieving) {
            (false, true) => Some(Found::Jumped(self.gap.behind_ms)),
            (true, false) => Some(Found::Back),
            _ => None,
        }
    }

    /// Whether the offset is still on its way.
    #[must_use]
    pub fn is_slewing(&self) -> bool {
        self.offset_us != self.target_us
    }

    /// What was found at the last look.
    #[must_use]
    pub fn gap(&self) -> Gap {
        self.gap
    }

    /// The offset `elapsed_us` after it was brought up to date: never past where it is heading.
    fn slewed(&self, elapsed_us: u64) -> i64 {
        let most = to_i64(elapsed_us / CLOCK_SLEW_DIVISOR);
        let away = self.target_us.saturating_sub(self.offset_us);
        self.offset_us.saturating_add(away.clamp(-most, most))
    }
}

fn to_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// What to add to the monotonic time to get `wall`.
fn offset(mono_us: u64, wall: Millis) -> i64 {
    to_i64(wall.0.saturating_mul(1000)).saturating_sub(to_i64(mono_us))
}

/// The machine's clock: a [`Slew`] over the clock that also counts while the machine sleeps, which looks at the wall clock
/// about once a second.
///
/// A reading takes one look at the monotonic clock and a few plain loads; about every hundredth of a second of slewing, one
/// reader brings the offset up to date for all.
pub struct SystemClock {
    slew: Mutex<Slew>,
    /// The offset for readings until `due_us`.
    offset_us: AtomicI64,
    due_us: AtomicU64,
    look_due_us: AtomicU64,
    /// The highest reading told: a reader that was held up between its two looks tells nothing older.
    told: AtomicU64,
}

impl SystemClock {
    /// Reads the wall clock, and believes it.
    #[must_use]
    pub fn new() -> Self {
        let (mono_us, wall) = (mono_us(), wall());
        let slew = Slew::new(mono_us, wall);
        Self {
            offset_us: AtomicI64::new(slew.offset_us),
            due_us: AtomicU64::new(mono_us + CLOCK_LOOK_INTERVAL_US),
            look_due_us: AtomicU64::new(mono_us + CLOCK_LOOK_INTERVAL_US),
            told: AtomicU64::new(wall.0),
            slew: Mutex::new(slew),
        }
    }

    #[cold]
    fn bring_up_to_date(&self, mono_us: u64) {
        let mut slew = self.slew.lock().unwrap_or_else(PoisonError::into_inner);
        if mono_us < self.due_us.load(Ordering::Relaxed) {
            // Somebody else was first.
            return;
        }
        slew.advance(mono_us);
        if mono_us >= self.look_due_us.load(Ordering::Relaxed) {
            match slew.look(mono_us, wall()) {
                Some(Found::Jumped(ms)) => tracing::error!(
                    ahead_ms = ms,
                    "the machine's clock jumped ahead; expiries go on by the time that really passed, until it is set back \
                     or the broker is started again"
                ),
                Some(Found::Back) => tracing::info!("the machine's clock is believed again"),
                None => {}
            }
            self.look_due_us.store(mono_us + CLOCK_LOOK_INTERVAL_US, Ordering::Relaxed);
        }
        self.publish(&slew, mono_us);
    }

    fn publish(&self, slew: &Slew, mono_us: u64) {
        let look_due_us = self.look_due_us.load(Ordering::Relaxed);
        let due_us = if slew.is_slewing() { look_due_us.min(mono_us + CLOCK_STEP_US) } else { look_due_us };
        self.offset_us.store(slew.offset_us, Ordering::Relaxed);
        self.due_us.store(due_us, Ordering::Relaxed);
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        let mono_us = mono_us();
        if mono_us >= self.due_us.load(Ordering::Relaxed) {
            self.bring_up_to_date(mono_us);
        }
        let reading_us = to_i64(mono_us).saturating_add(self.offset_us.load(Ordering::Relaxed));
        let reading = u64::try_from(reading_us).unwrap_or_default() / 1000;
        let told = self.told.load(Ordering::Relaxed);
        if reading <= told {
            return Millis(told);
        }
        Millis(self.told.fetch_max(reading, Ordering::Relaxed).max(reading))
    }

    fn micros(&self) -> u64 {
        mono_us()
    }

    fn not_before(&self, floor: Millis) {
        let mono_us = mono_us();
        let mut slew = self.slew.lock().unwrap_or_else(PoisonError::into_inner);
        let reading = slew.advance(mono_us);
        if floor.0 > reading.0.saturating_add(CLOCK_JUMP_MS) {
            tracing::warn!(
                ahead_ms = floor.0 - reading.0,
                "the log's newest time is ahead of the machine's clock; time goes on from there, more slowly, until the \
                 machine's clock has caught up"
            );
        }
        slew.not_before(mono_us, floor);
        // The wall clock is looked at with the next reading: the way back to it begins then.
        self.look_due_us.store(mono_us, Ordering::Relaxed);
        self.publish(&slew, mono_us);
        self.told.fetch_max(floor.0, Ordering::Relaxed);
    }

    fn gap(&self) -> Gap {
        self.slew.lock().unwrap_or_else(PoisonError::into_inner).gap()
    }
}

/// Microseconds since the machine was started, those it slept through included: a value lapses while a lid is closed, too.
fn mono_us() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    seconds * 1_000_000 + u64::try_from(time.tv_nsec).unwrap_or_default() / 1000
}

#[expect(clippy::disallowed_methods, reason = "this is the clock door")]
fn wall() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// A clock that moves only when told to; for tests and simulations.
pub struct ManualClock(AtomicU64);

impl ManualClock {
    #[must_use]
    pub fn at(now: Millis) -> Self {
        Self(AtomicU64::new(now.0))
    }

    /// Moves the clock forward by `ms` milliseconds.
    pub fn advance(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Millis {
        Millis(self.0.load(Ordering::SeqCst))
    }

    fn micros(&self) -> u64 {
        self.0.load(Ordering::SeqCst) * 1000
    }

    fn not_before(&self, floor: Millis) {
        self.0.fetch_max(floor.0, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const START: Millis = Millis(1_700_000_000_000);
    const SECOND_US: u64 = 1_000_000;

    /// A slewed clock, the monotonic time, and a wall clock that goes as far wrong as a test wants.
    struct Machine {
        slew: Slew,
        mono_us: u64,
        wall_ms: i64,
    }

    impl Machine {
        fn new() -> Self {
            Self { slew: Slew::new(7, START), mono_us: 7, wall_ms: START.0 as i64 }
        }

        fn wall(&self) -> Millis {
            Millis(self.wall_ms.max(0) as u64)
        }

        /// Lets time pass, with a look at the wall clock each second; gives what was told of it.
        fn pass(&mut self, seconds: u64) -> Vec<Found> {
            (0..seconds)
                .filter_map(|_| {
                    self.mono_us += SECOND_US;
                    self.wall_ms += 1000;
                    self.slew.look(self.mono_us, self.wall())
                })
                .collect()
        }

        /// The reading less the wall clock.
        fn ahead_ms(&self) -> i64 {
            self.slew.reading(self.mono_us).0 as i64 - self.wall_ms
        }
    }

    #[test]
    fn a_clock_that_runs_with_the_wall_clock_tells_the_same() {
        let mut machine = Machine::new();
        assert_eq!(machine.pass(1000), []);
        assert_eq!(machine.ahead_ms(), 0);
        assert!(!machine.slew.is_slewing());
    }

    #[test]
    fn a_wall_clock_a_little_ahead_is_caught_up_with_at_a_tenth_and_not_overtaken() {
        let mut machine = Machine::new();
        machine.wall_ms += 60_000;
        machine.pass(1);
        assert_eq!(machine.ahead_ms(), -60_000, "it has only just been seen");
        machine.pass(300);
        assert_eq!(machine.ahead_ms(), -30_000);
        machine.pass(301);
        assert_eq!(machine.ahead_ms(), 0);
        machine.pass(1000);
        assert_eq!(machine.ahead_ms(), 0);
    }

    #[test]
    fn a_wall_clock_behind_slows_the_reading_down_and_never_turns_it_back() {
        let mut machine = Machine::new();
        machine.wall_ms -= 3_600_000;
        machine.pass(1);
        let before = machine.slew.reading(machine.mono_us);
        machine.pass(10);
        assert_eq!(machine.slew.reading(machine.mono_us), Millis(before.0 + 9_000));
        assert_eq!(machine.slew.gap(), Gap { behind_ms: 0, ahead_ms: 3_599_000 });
        machine.pass(36_000);
        assert_eq!((machine.ahead_ms(), machine.slew.gap()), (0, Gap::default()));
    }

    #[test]
    fn a_jump_ahead_while_running_is_not_believed_and_told_once_and_so_is_its_end() {
        let mut machine = Machine::new();
        machine.wall_ms += 5 * 60_000 + 1;
        assert_eq!(machine.pass(100), [Found::Jumped(300_001)]);
        assert_eq!((machine.ahead_ms(), machine.slew.gap().behind_ms), (-300_001, 300_001));
        machine.wall_ms -= 5 * 60_000;
        assert_eq!(machine.pass(100), [Found::Back]);
        assert_eq!((machine.ahead_ms(), machine.slew.gap()), (-1, Gap::default()));
    }

    #[test]
    fn five_minutes_ahead_are_still_believed() {
        let mut machine = Machine::new();
        machine.wall_ms += 5 * 60_000;
        assert_eq!(machine.pass(1), []);
        assert!(machine.slew.is_slewing());
    }

    #[test]
    fn a_log_that_is_ahead_lifts_the_reading_and_the_wall_clock_gets_it_back() {
        let mut machine = Machine::new();
        machine.slew.not_before(machine.mono_us, Millis(START.0 + 20_000));
        assert_eq!(machine.ahead_ms(), 20_000);
        machine.slew.not_before(machine.mono_us, Millis(START.0 - 20_000));
        assert_eq!(machine.ahead_ms(), 20_000, "a floor below the reading changes nothing");
        machine.pass(201);
        assert_eq!(machine.ahead_ms(), 0);
    }

    #[test]
    fn nobody_asking_for_hours_is_one_long_step_within_the_same_bounds() {
        let mut machine = Machine::new();
        machine.wall_ms += 100_000;
        machine.pass(1);
        let before = machine.slew.reading(machine.mono_us);
        machine.mono_us += 3_600 * SECOND_US;
        machine.wall_ms += 3_600_000;
        assert_eq!(machine.slew.advance(machine.mono_us), Millis(before.0 + 3_600_000 + 100_000));
        assert_eq!(machine.ahead_ms(), 0, "an hour is more than it needed, and it did not overshoot");
    }

    #[test]
    fn numbers_at_their_ends_neither_wrap_nor_panic() {
        for (mono_us, wall) in [(0, 0), (u64::MAX, 0), (0, u64::MAX), (u64::MAX, u64::MAX), (1, u64::MAX / 1000)] {
            let mut slew = Slew::new(0, START);
            slew.look(mono_us, Millis(wall));
            slew.not_before(mono_us, Millis(wall));
            slew.advance(u64::MAX);
            let _ = slew.reading(u64::MAX);
            let mut other = Slew::new(mono_us, Millis(wall));
            other.look(0, START);
            let _ = other.reading(u64::MAX);
        }
    }

    /// What may happen to a clock.
    #[derive(Clone, Debug)]
    enum Event {
        /// Time passes, by both clocks.
        Pass(u64),
        /// The wall clock is set, by so many milliseconds.
        Step(i64),
        Look,
        Read,
        NotBefore(i64),
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            3 => (0..5_000_000_u64).prop_map(Event::Pass),
            1 => (-10_000_000..10_000_000_i64).prop_map(Event::Step),
            1 => (-200_000..200_000_i64).prop_map(Event::Step),
            3 => Just(Event::Look),
            3 => Just(Event::Read),
            1 => (-100_000..100_000_i64).prop_map(Event::NotBefore),
        ]
    }

    proptest! {
        #[test]
        fn never_backwards_never_faster_than_it_may_slew_and_always_back_to_the_wall_clock(
            events in proptest::collection::vec(event(), 1..200)
        ) {
            let mut machine = Machine::new();
            let mut passed_us = 0_u64;
            let mut last = machine.slew.reading(machine.mono_us);
            for event in events {
                let mut lifted = None;
                match event {
                    Event::Pass(us) => {
                        machine.mono_us += us;
                        passed_us += us;
                        // Whole milliseconds by the wall clock, so that both stand for the same moment.
                        machine.wall_ms += (us / 1000) as i64;
                    }
                    Event::Step(ms) => machine.wall_ms += ms,
                    Event::Look => {
                        let believed = machine.ahead_ms() >= -(CLOCK_JUMP_MS as i64) - 1;
                        machine.slew.look(machine.mono_us, machine.wall());
                        prop_assert!(believed || !machine.slew.is_slewing(), "a jump is not followed");
                    }
                    Event::Read => {
                        machine.slew.advance(machine.mono_us);
                    }
                    Event::NotBefore(ms) => {
                        let floor = Millis((machine.wall_ms + ms).max(0) as u64);
                        machine.slew.not_before(machine.mono_us, floor);
                        lifted = Some(floor);
                    }
                }
                let reading = machine.slew.reading(machine.mono_us);
                prop_assert!(reading >= last, "{reading:?} after {last:?}");
                prop_assert!(lifted.is_none_or(|floor| reading >= floor));
                let most = last.0 + passed_us / 1000 + passed_us / 1000 / CLOCK_SLEW_DIVISOR + 2;
                prop_assert!(reading.0 <= lifted.map_or(most, |floor| most.max(floor.0)), "too fast");
                (last, passed_us) = (reading, 0);
            }
            let far = machine.ahead_ms();
            machine.pass(1);
            let believed = machine.slew.gap().behind_ms == 0;
            machine.pass(far.unsigned_abs() * 11 / 1000 + 10);
            if believed {
                prop_assert!(machine.ahead_ms().unsigned_abs() <= CLOCK_CLOSE_ENOUGH_MS + 1, "{}", machine.ahead_ms());
            } else {
                prop_assert!(machine.ahead_ms() < -(CLOCK_JUMP_MS as i64) + 1);
            }
        }
    }

    #[test]
    fn the_machines_clock_begins_at_the_wall_clock_and_keeps_every_floor() {
        let clock = SystemClock::new();
        let begun = clock.now();
        assert!(begun.0 > START.0, "the wall clock is believed at the start");
        let floor = Millis(begun.0 + 86_400_000);
        clock.not_before(floor);
        let mut last = floor;
        for _ in 0..10_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
        assert!(clock.gap().ahead_ms > 86_000_000, "the wall clock was looked at right after the floor was given");
    }

    #[test]
    fn many_threads_never_see_the_machines_clock_go_backwards() {
        let clock = SystemClock::new();
        clock.not_before(Millis(clock.now().0 + 60_000));
        let newest = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50_000 {
                        let seen = newest.load(Ordering::SeqCst);
                        let now = clock.now().0;
                        assert!(now >= seen, "{now} after {seen}");
                        newest.fetch_max(now, Ordering::SeqCst);
                    }
                });
            }
        });
    }
}
