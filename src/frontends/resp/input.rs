//! What a connection has received and not yet consumed.
//!
//! Promise: grows only with what was really received, doubling; an idle connection keeps little. A client that sends much is
//! read in larger pieces, because each piece costs its writes a flush.
//! Must never know a request.

use std::ops::Range;

/// Bytes a connection begins with and falls back to.
const SMALL_BYTES: usize = 4 * 1024;
/// Bytes that are kept while nothing is in them.
const KEPT_BYTES: usize = 64 * 1024;

/// A buffer that is read into at its end and consumed from its front.
#[derive(Default)]
pub struct Input {
    /// Always initialised; `start..end` is what was received and not consumed.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Bytes of the last read, and of the room it had.
    last_read: (usize, usize),
}

impl Input {
    /// What was received and not yet consumed.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Bytes of room beside them.
    #[must_use]
    pub fn room_bytes(&self) -> usize {
        self.buffer.len() - self.bytes().len()
    }

    /// Drops `count` bytes from the front.
    pub fn consume(&mut self, count: usize) {
        self.start += count;
        debug_assert!(self.start <= self.end);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Takes a part out of the middle. The shorter side moves: behind a value that is not kept there may be many more.
    pub fn remove(&mut self, part: Range<usize>) {
        let (from, to) = (self.start + part.start, self.start + part.end);
        if part.start < self.end - to {
            self.buffer.copy_within(self.start..from, self.start + part.len());
            self.start += part.len();
        } else {
            self.buffer.copy_within(to..self.end, from);
            self.end -= part.len();
        }
    }

    /// Room to read into, never empty.
    pub fn space(&mut self) -> &mut [u8] {
        if self.end == 0 {
            self.fit_to_last_read();
        }
        if self.end == self.buffer.len() {
            if self.start > 0 {
                self.buffer.copy_within(self.start..self.end, 0);
                (self.start, self.end) = (0, self.end - self.start);
            }
            // Doubles only when more than half is still in use, or was filled by one read: what was received decides, not
            // what was announced.
            let length = self.buffer.len();
            if self.end >= length / 2 || (length < KEPT_BYTES && self.last_read.0 >= length / 2) {
                self.buffer.resize((length * 2).max(SMALL_BYTES), 0);
            }
        }
        &mut self.buffer[self.end..]
    }

    /// While nothing is in it: more room after a read that filled it all, less after one that left most of it.
    fn fit_to_last_read(&mut self) {
        let (count, room) = std::mem::take(&mut self.last_read);
        let length = self.buffer.len();
        if length > KEPT_BYTES {
            self.buffer = Vec::new();
        } else if count > 0 && count == room && length < KEPT_BYTES {
            self.buffer.resize(length * 2, 0);
        } else if count > 0 && count < length / 4 && length > SMALL_BYTES {
            self.buffer.truncate(length / 2);
            self.buffer.shrink_to_fit();
        }
    }

    /// Appends what was received elsewhere.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let space = self.space();
            let count = space.len().min(bytes.len());
            space[..count].copy_from_slice(&bytes[..count]);
            self.filled(count);
            bytes = &bytes[count..];
        }
    }

    /// `count` bytes were read into [`Input::space`].
    pub fn filled(&mut self, count: usize) {
        self.last_read = (count, self.buffer.len() - self.end);
        self.end += count;
        debug_assert!(self.end <= self.buffer.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_received_is_there_until_it_is_consumed() {
        let mut input = Input::default();
        let sent: Vec<u8> = (0..200_000u32).map(|i| (i % 251) as u8).collect();
        let mut consumed = 0;
        for piece in sent.chunks(7_001) {
            input.push(piece);
            let count = input.bytes().len() / 3 + 1;
            assert_eq!(input.bytes()[..count], sent[consumed..consumed + count]);
            input.consume(count);
            consumed += count;
        }
        assert_eq!(input.bytes(), &sent[consumed..]);
    }

    #[test]
    fn a_part_taken_out_leaves_the_rest_in_order() {
        let mut input = Input::default();
        input.push(b"xxabcdefgh");
        input.consume(2);
        input.remove(2..5);
        assert_eq!(input.bytes(), b"abfgh");
    }

    #[test]
    fn whichever_side_of_a_part_is_longer_the_rest_stays_in_order() {
        let sent: Vec<u8> = (0..100).collect();
        for from in 0..sent.len() {
            for to in from..=sent.len() {
                let mut input = Input::default();
                input.push(b"before");
                input.push(&sent);
                input.consume(6);
                input.remove(from..to);
                assert_eq!(input.bytes(), [&sent[..from], &sent[to..]].concat());
                input.push(b"behind");
                assert_eq!(input.bytes(), [&sent[..from], &sent[to..], b"behind"].concat());
            }
        }
    }

    #[test]
    fn a_client_that_fills_every_read_is_read_in_larger_pieces_and_a_quiet_one_in_small_ones_again() {
        let mut input = Input::default();
        let mut read = |fill: &dyn Fn(usize) -> usize| {
            let room = input.space().len();
            input.filled(fill(room));
            input.consume(fill(room));
            room
        };
        let rooms: Vec<usize> = (0..7).map(|_| read(&|room| room)).collect();
        assert_eq!(rooms, [4, 8, 16, 32, 64, 64, 64].map(|kib| kib * 1024));
        let rooms: Vec<usize> = (0..7).map(|_| read(&|_| 100)).collect();
        assert_eq!(rooms, [64, 32, 16, 8, 4, 4, 4].map(|kib| kib * 1024));
    }

    #[test]
    fn half_a_request_at_the_end_of_each_read_does_not_keep_the_pieces_small() {
        let mut input = Input::default();
        let mut rooms = Vec::new();
        for _ in 0..7 {
            let room = input.space().len();
            input.filled(room);
            input.consume(input.bytes().len() - 900);
            rooms.push(room + 900);
        }
        assert!(rooms[6] >= 60 * 1024, "{rooms:?}");
    }

    #[test]
    fn a_large_buffer_is_given_back_when_it_is_empty() {
        let mut input = Input::default();
        input.push(&vec![1; 1024 * 1024]);
        input.consume(1024 * 1024);
        assert_eq!(input.space().len(), SMALL_BYTES);
    }
}
