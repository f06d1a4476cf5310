//! A word to other threads that it is enough, said also by a test that fails: whoever goes on until it hears it must not keep
//! the test from ending.

use std::sync::atomic::{AtomicBool, Ordering};

/// Said once, heard by everybody.
#[derive(Default)]
pub struct Word(AtomicBool);

/// Says the word when it is dropped.
pub struct SaidAtTheEnd<'a>(&'a Word);

impl Word {
    pub fn was_said(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub fn say(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn at_the_end(&self) -> SaidAtTheEnd<'_> {
        SaidAtTheEnd(self)
    }
}

impl Drop for SaidAtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.say();
    }
}
