//! Where SCAN goes on: numbers that stand for a place among the keys of a cache.
//!
//! ```text
//! number (below 2^53) -> cache, shard, the last key that was looked at
//! ```
//! Promise: bounded in places and bytes, the oldest go first; a number works for the cache it was given for, from any
//! connection, again and again until it is forgotten; one that was not given out is known to be none. The same place has the
//! same number, so that asking again takes no more room. Must never know what a scan looks for.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

use hashbrown::HashMap;

use crate::core::types::{CacheName, ShardNo};
use crate::frontends::resp::limits::{CURSOR_BYTES, CURSOR_LIFE_MICROS, CURSORS};

/// Numbers are below this: some clients keep them as floating-point numbers.
const NUMBERS: u64 = 1 << 53;

/// A place among the keys of a cache.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    pub cache: CacheName,
    pub shard: ShardNo,
    /// The last key that was looked at; `None` before the first of the shard.
    pub after: Option<Box<[u8]>>,
}

impl Place {
    /// Bytes of the key; the rest is small and bounded by the number of places.
    fn bytes(&self) -> usize {
        self.after.as_ref().map_or(0, |key| key.len())
    }
}

struct Given {
    place: Place,
    /// Its turn to be forgotten.
    turn: u64,
    /// When it was last given out, in microseconds.
    at: u64,
}

/// The numbers that were given out.
#[derive(Default)]
pub struct Cursors {
    /// Keyed at random, so that nobody can tell a number that was given to somebody else.
    hasher: RandomState,
    given: HashMap<u64, Given>,
    /// Numbers by the turn they are forgotten in.
    turns: BTreeMap<u64, u64>,
    next_turn: u64,
    bytes: usize,
}

impl Cursors {
    /// The number of a place, never 0; `now` in microseconds.
    pub fn give(&mut self, place: Place, now: u64) -> u64 {
        self.forget_old(now);
        let number = self.number_for(&place);
        self.forget(number);
        while self.given.len() >= CURSORS || (self.bytes + place.bytes() > CURSOR_BYTES && !self.given.is_empty()) {
            self.forget_oldest();
        }
        self.bytes += place.bytes();
        self.turns.insert(self.next_turn, number);
        self.given.insert(number, Given { place, turn: self.next_turn, at: now });
        self.next_turn += 1;
        number
    }

    /// The place of a number that was given out for this cache and is not forgotten.
    pub fn find(&mut self, number: u64, cache: &CacheName, now: u64) -> Option<Place> {
        self.forget_old(now);
        let given = self.given.get(&number)?;
        (given.place.cache == *cache).then(|| given.place.clone())
    }

    /// The place's own number, or a free one when another place has it.
    fn number_for(&self, place: &Place) -> u64 {
        let mut salt = 0_u64;
        loop {
            let number = self.hasher.hash_one((place, salt)) % NUMBERS;
            if number != 0 && self.given.get(&number).is_none_or(|given| given.place == *place) {
                return number;
            }
            salt += 1;
        }
    }

    fn forget_old(&mut self, now: u64) {
        while let Some(oldest) = self.turns.first_entry()
            && let Some(given) = self.given.get(oldest.get())
            && given.at.saturating_add(CURSOR_LIFE_MICROS) <= now
        {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some((_, number)) = self.turns.pop_first() {
            self.forget(number);
        }
    }

    fn forget(&mut self, number: u64) {
        if let Some(Given { place, turn, .. }) = self.given.remove(&number) {
            self.turns.remove(&turn);
            self.bytes -= place.bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(cache: u32, key: impl AsRef<[u8]>) -> Place {
        Place { cache: CacheName::numbered(cache), shard: ShardNo(3), after: Some(key.as_ref().into()) }
    }

    fn key(number: usize) -> String {
        format!("key:{number}")
    }

    #[test]
    fn a_number_works_again_and_again_and_only_for_its_cache() {
        let mut cursors = Cursors::default();
        let number = cursors.give(place(0, "k"), 0);
        assert!((1..NUMBERS).contains(&number));
        for _ in 0..3 {
            assert_eq!(cursors.find(number, &CacheName::numbered(0), 1), Some(place(0, "k")));
        }
        assert_eq!(cursors.find(number, &CacheName::numbered(1), 1), None);
        assert_eq!(cursors.find(number + 1, &CacheName::numbered(0), 1), None);
        assert_eq!(cursors.find(0, &CacheName::numbered(0), 1), None);
    }

    #[test]
    fn a_place_has_one_number_and_takes_no_more_room_when_it_is_given_again() {
        let mut cursors = Cursors::default();
        let numbers: Vec<u64> = (0..50).map(|_| cursors.give(place(0, "k"), 0)).collect();
        assert!(numbers.iter().all(|number| *number == numbers[0]));
        assert_eq!((cursors.given.len(), cursors.turns.len()), (1, 1));
        assert_ne!(cursors.give(place(1, "k"), 0), numbers[0]);
        assert_ne!(cursors.give(Place { shard: ShardNo(4), ..place(0, "k") }, 0), numbers[0]);
        assert_ne!(cursors.give(Place { after: None, ..place(0, "k") }, 0), numbers[0]);
    }

    #[test]
    fn a_number_is_forgotten_ten_minutes_after_it_was_last_given_out() {
        let cache = CacheName::numbered(0);
        let mut cursors = Cursors::default();
        let (a, b) = (cursors.give(place(0, "a"), 0), cursors.give(place(0, "b"), 5));
        cursors.give(place(0, "a"), 9);
        assert!(cursors.find(b, &cache, CURSOR_LIFE_MICROS + 4).is_some());
        assert!(cursors.find(b, &cache, CURSOR_LIFE_MICROS + 5).is_none());
        assert!(cursors.find(a, &cache, CURSOR_LIFE_MICROS + 8).is_some());
        assert!(cursors.find(a, &cache, CURSOR_LIFE_MICROS + 9).is_none());
        assert_eq!((cursors.given.len(), cursors.turns.len(), cursors.bytes), (0, 0, 0));
    }

    #[test]
    fn the_oldest_go_when_there_are_too_many() {
        let cache = CacheName::numbered(0);
        let mut cursors = Cursors::default();
        let numbers: Vec<u64> = (0..CURSORS + 10).map(|number| cursors.give(place(0, key(number)), 0)).collect();
        assert_eq!((cursors.given.len(), cursors.turns.len()), (CURSORS, CURSORS));
        for (place, number) in numbers.iter().enumerate() {
            assert_eq!(cursors.find(*number, &cache, 0).is_some(), place >= 10);
        }
    }

    #[test]
    fn the_oldest_go_when_they_are_too_long() {
        let cache = CacheName::numbered(0);
        let mut cursors = Cursors::default();
        let long = |number: usize| [key(number).as_bytes(), &[b'x'; 60_000]].concat();
        let numbers: Vec<u64> = (0..400).map(|number| cursors.give(place(0, long(number)), 0)).collect();
        assert!(cursors.bytes <= CURSOR_BYTES && cursors.bytes > CURSOR_BYTES - 70_000);
        let kept = cursors.given.len();
        assert_eq!(numbers.iter().filter(|number| cursors.find(**number, &cache, 0).is_some()).count(), kept);
        assert!(cursors.find(numbers[399], &cache, 0).is_some() && cursors.find(numbers[0], &cache, 0).is_none());
    }
}
