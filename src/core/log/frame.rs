//! The framing of batches and records: the bytes between a segment's header and its tail.
//!
//! Promise: pure codec, bytes in and out. No length is believed before the CRC that covers it has passed, a batch is
//! whole or not there, and bytes of another file never parse, because every CRC is seeded with the segment's salt and
//! a record's CRC covers its offset too. Must never know a key, a file or the consensus engine.
//! Layout: `docs/formats.md`, section "Batch".

use crc32fast::Hasher;

use crate::core::types::{Generation, Index, Millis, Offset};

/// Bytes of a batch header.
pub const BATCH_HEADER_BYTES: usize = 64;
/// Bytes before a record's body: its length and its CRC.
pub const RECORD_HEADER_BYTES: usize = 8;
/// Every batch is padded with zeros to a multiple of this many bytes.
pub const BATCH_ALIGN: usize = 8;

/// What the records of a batch are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum BatchType {
    /// Records of the shard's kind.
    Data = 1,
    /// One record of the log itself (`core/record/control.rs`).
    Control = 2,
}

/// The header of a batch, as read and as written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    /// Bytes of header, records and padding.
    pub length: u32,
    pub batch_type: BatchType,
    pub records: u32,
    pub index: Index,
    pub generation: Generation,
    pub first_offset: Offset,
    pub time: Millis,
    /// The newest batch this replica knew to be flushed when it wrote this one.
    pub durable: Index,
    /// The newest batch this replica knew to be committed when it wrote this one.
    pub committed: Index,
}

/// Why bytes are not the batch that should stand there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// Fewer bytes than a header.
    Short,
    /// The header's CRC does not match, so nothing in it is believed.
    HeaderCrc,
    /// The header is sound but says something no build writes.
    HeaderField(&'static str),
    /// The header is sound; the record with this number in the batch is not.
    Record(u32),
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}

fn header_crc(salt: u32, header: &[u8]) -> u32 {
    let mut hasher = Hasher::new_with_initial(salt);
    hasher.update(&header[4..BATCH_HEADER_BYTES]);
    hasher.finalize()
}

fn record_crc(salt: u32, offset: Offset, length_and_body: (&[u8], &[u8])) -> u32 {
    let mut hasher = Hasher::new_with_initial(salt);
    hasher.update(&offset.0.to_le_bytes());
    hasher.update(length_and_body.0);
    hasher.update(length_and_body.1);
    hasher.finalize()
}

/// Builds a batch before its place in the log is known: all but the index, generation, frontiers and CRCs is final.
///
/// What [`BatchBuilder::finish`] gives is what the consensus engine carries; [`seal_into`] makes it what stands on disk.
pub struct BatchBuilder {
    bytes: Vec<u8>,
    batch_type: BatchType,
    first_offset: Offset,
    records: u32,
}

/// An end that a batch under construction had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub bytes: usize,
    records: u32,
}

impl BatchBuilder {
    #[must_use]
    pub fn new(batch_type: BatchType, first_offset: Offset) -> Self {
        Self { bytes: vec![0; BATCH_HEADER_BYTES], batch_type, first_offset, records: 0 }
    }

    /// Appends one record whose body `write` puts at the end of the vector; gives where the framed record stands.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> std::ops::Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; RECORD_HEADER_BYTES]);
        write(&mut self.bytes);
        let body = self.bytes.len() - start - RECORD_HEADER_BYTES;
        self.bytes[start..start + 4].copy_from_slice(&(body as u32).to_le_bytes());
        self.records += 1;
        start..self.bytes.len()
    }

    /// Bytes so far, header included, padding not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    #[must_use]
    pub fn first_offset(&self) -> Offset {
        self.first_offset
    }

    /// One past the last offset in it.
    #[must_use]
    pub fn next_offset(&self) -> Offset {
        self.first_offset.plus(u64::from(self.records))
    }

    /// Where the batch ends now, to come back to.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark { bytes: self.bytes.len(), records: self.records }
    }

    /// Takes back every record pushed since `mark` was taken.
    pub fn back_to(&mut self, mark: Mark) {
        self.bytes.truncate(mark.bytes);
        self.records = self.records.min(mark.records);
    }

    /// The bytes built so far, for reading back what is staged.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Pads the batch and writes what is known of its header.
    #[must_use]
    pub fn finish(mut self, time: Millis) -> Vec<u8> {
        let padded = self.bytes.len().next_multiple_of(BATCH_ALIGN);
        self.bytes.resize(padded, 0);
        let header = BatchHeader {
            length: padded as u32,
            batch_type: self.batch_type,
            records: self.records,
            index: Index(0),
            generation: Generation(0),
            first_offset: self.first_offset,
            time,
            durable: Index(0),
            committed: Index(0),
        };
        header.write(&mut self.bytes[..BATCH_HEADER_BYTES]);
        self.bytes
    }
}

impl BatchHeader {
    fn write(&self, into: &mut [u8]) {
        into[4..8].copy_from_slice(&self.length.to_le_bytes());
        into[8] = self.batch_type as u8;
        into[9..12].fill(0);
        into[12..16].copy_from_slice(&self.records.to_le_bytes());
        let numbers =
            [self.index.0, self.generation.0, self.first_offset.0, self.time.0, self.durable.0, self.committed.0];
        for (place, number) in into[16..64].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
    }

    /// Reads the fields without looking at the CRC: for bytes that never left this process.
    ///
    /// # Errors
    /// [`FrameError::HeaderField`] names what no build writes.
    pub fn read_fields(bytes: &[u8]) -> Result<Self, FrameError> {
        let number = |at| u64_at(bytes, at).ok_or(FrameError::Short);
        let length = u32_at(bytes, 4).ok_or(FrameError::Short)?;
        let records = u32_at(bytes, 12).ok_or(FrameError::Short)?;
        let batch_type = match bytes[8] {
            1 => BatchType::Data,
            2 => BatchType::Control,
            _ => return Err(FrameError::HeaderField("type")),
        };
        if bytes[9..12] != [0; 3] {
            return Err(FrameError::HeaderField("flags"));
        }
        let least = BATCH_HEADER_BYTES as u64 + u64::from(records) * (RECORD_HEADER_BYTES as u64 + 1);
        if records == 0 || u64::from(length) < least || !(length as usize).is_multiple_of(BATCH_ALIGN) {
            return Err(FrameError::HeaderField("length"));
        }
        Ok(Self {
            length,
            batch_type,
            records,
            index: Index(number(16)?),
            generation: Generation(number(24)?),
            first_offset: Offset(number(32)?),
            time: Millis(number(40)?),
            durable: Index(number(48)?),
            committed: Index(number(56)?),
        })
    }

    /// Reads and verifies the header at the start of `bytes`.
    ///
    /// # Errors
    /// [`FrameError`] says what is wrong; after [`FrameError::HeaderCrc`] nothing in the header may be believed.
    pub fn read(bytes: &[u8], salt: u32) -> Result<Self, FrameError> {
        let header = bytes.get(..BATCH_HEADER_BYTES).ok_or(FrameError::Short)?;
        if u32_at(header, 0) != Some(header_crc(salt, header)) {
            return Err(FrameError::HeaderCrc);
        }
        Self::read_fields(header)
    }

    /// One past the last offset of the batch.
    #[must_use]
    pub fn next_offset(&self) -> Offset {
        self.first_offset.plus(u64::from(self.records))
    }
}

/// What the log adds to a finished batch when it takes its place.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub index: Index,
    pub generation: Generation,
    pub durable: Index,
    pub committed: Index,
}

/// Appends `batch` (from [`BatchBuilder::finish`]) to `into` as it stands on disk: placed, and with its CRCs.
///
/// # Errors
/// Only when `batch` is not what the builder makes.
pub fn seal_into(into: &mut Vec<u8>, batch: &[u8], place: Place, salt: u32) -> Result<BatchHeader, FrameError> {
    let mut header = BatchHeader::read_fields(batch.get(..BATCH_HEADER_BYTES).ok_or(FrameError::Short)?)?;
    header.index = place.index;
    header.generation = place.generation;
    header.durable = place.durable;
    header.committed = place.committed;
    let start = into.len();
    into.extend_from_slice(batch);
    let bytes = &mut into[start..];
    header.write(bytes);
    let crc = header_crc(salt, bytes);
    bytes[..4].copy_from_slice(&crc.to_le_bytes());
    let mut at = BATCH_HEADER_BYTES;
    for number in 0..header.records {
        let body = record_extent(bytes, at).ok_or(FrameError::Record(number))?;
        let crc =
            record_crc(salt, header.first_offset.plus(u64::from(number)), (&bytes[at..at + 4], &bytes[body.clone()]));
        bytes[at + 4..at + 8].copy_from_slice(&crc.to_le_bytes());
        at = body.end;
    }
    Ok(header)
}

fn record_extent(bytes: &[u8], at: usize) -> Option<std::ops::Range<usize>> {
    let length = u32_at(bytes, at)? as usize;
    let start = at + RECORD_HEADER_BYTES;
    (length > 0 && length <= bytes.len().checked_sub(start)?).then(|| start..start + length)
}

/// Verifies every record of a whole batch whose header was read already.
///
/// # Errors
/// [`FrameError::Record`] names the first record that is not sound.
pub fn verify_records(header: &BatchHeader, bytes: &[u8], salt: u32) -> Result<(), FrameError> {
    if bytes.len() != header.length as usize {
        return Err(FrameError::Short);
    }
    let mut at = BATCH_HEADER_BYTES;
    for number in 0..header.records {
        let bad = FrameError::Record(number);
        let body = record_extent(bytes, at).ok_or(bad)?;
        let offset = header.first_offset.plus(u64::from(number));
        if u32_at(bytes, at + 4) != Some(record_crc(salt, offset, (&bytes[at..at + 4], &bytes[body.clone()]))) {
            return Err(bad);
        }
        at = body.end;
    }
    let padding = &bytes[at..];
    if padding.len() >= BATCH_ALIGN || padding.iter().any(|&byte| byte != 0) {
        return Err(FrameError::HeaderField("padding"));
    }
    Ok(())
}

/// Where in a batch the record with this number begins, the records before it being sound.
#[must_use]
pub fn position_of(number: u32, bytes: &[u8]) -> usize {
    (0..number).fold(BATCH_HEADER_BYTES, |at, _| record_extent(bytes, at).map_or(at, |body| body.end))
}

/// One record of a batch: its offset, where its frame begins in the batch, and its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framed<'a> {
    pub offset: Offset,
    /// Bytes from the start of the batch to the record's frame.
    pub position: usize,
    pub body: &'a [u8],
}

impl Framed<'_> {
    /// Bytes of the framed record.
    #[must_use]
    pub fn length(&self) -> usize {
        RECORD_HEADER_BYTES + self.body.len()
    }
}

/// Walks the records of a batch that was built here or verified.
pub fn records<'a>(header: &BatchHeader, bytes: &'a [u8]) -> impl Iterator<Item = Framed<'a>> {
    let (first, count) = (header.first_offset, u64::from(header.records));
    let mut at = BATCH_HEADER_BYTES;
    (0..count).map_while(move |number| {
        let body = record_extent(bytes, at)?;
        let framed = Framed { offset: first.plus(number), position: at, body: &bytes[body.clone()] };
        at = body.end;
        Some(framed)
    })
}

/// The body of the one framed record in `bytes`, when its length and CRC say that it is the record at `offset`.
#[must_use]
pub fn verified_body(bytes: &[u8], offset: Offset, salt: u32) -> Option<&[u8]> {
    let body = record_extent(bytes, 0)?;
    let crc = record_crc(salt, offset, (bytes.get(..4)?, &bytes[body.clone()]));
    (body.end == bytes.len() && u32_at(bytes, 4) == Some(crc)).then(|| &bytes[body])
}

/// The CRC of a record that is read piece by piece.
#[derive(Clone)]
pub struct RunningCrc {
    hasher: Hasher,
    expected: u32,
}

impl RunningCrc {
    /// Begins with the first bytes of a framed record, [`RECORD_HEADER_BYTES`] at least; gives the length of the body too.
    #[must_use]
    pub fn begin(frame: &[u8], offset: Offset, salt: u32) -> Option<(Self, usize)> {
        let (length, expected) = (u32_at(frame, 0)?, u32_at(frame, 4)?);
        let mut hasher = Hasher::new_with_initial(salt);
        hasher.update(&offset.0.to_le_bytes());
        hasher.update(&frame[..4]);
        Some((Self { hasher, expected }, length as usize))
    }

    /// Takes the next bytes of the body.
    pub fn update(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
    }

    /// Whether the bytes taken are the record's.
    #[must_use]
    pub fn matches(&self) -> bool {
        self.hasher.clone().finalize() == self.expected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SALT: u32 = 0x5a17_0001;

    fn sealed(bodies: &[&[u8]]) -> (BatchHeader, Vec<u8>) {
        let mut builder = BatchBuilder::new(BatchType::Data, Offset(40));
        for body in bodies {
            builder.push(|into| into.extend_from_slice(body));
        }
        let batch = builder.finish(Millis(7));
        let place = Place { index: Index(9), generation: Generation(3), durable: Index(8), committed: Index(7) };
        let mut bytes = Vec::new();
        let header = seal_into(&mut bytes, &batch, place, SALT).unwrap();
        (header, bytes)
    }

    #[test]
    fn a_sealed_batch_reads_back_as_it_was_built() {
        let (written, bytes) = sealed(&[b"one", b"four", &[0; 600]]);
        let header = BatchHeader::read(&bytes, SALT).unwrap();
        assert_eq!(header, written);
        assert_eq!((header.first_offset, header.next_offset()), (Offset(40), Offset(43)));
        verify_records(&header, &bytes, SALT).unwrap();
        let read: Vec<_> = records(&header, &bytes).map(|r| (r.offset.0, r.body.to_vec())).collect();
        assert_eq!(read, [(40, b"one".to_vec()), (41, b"four".to_vec()), (42, vec![0; 600])]);
        for record in records(&header, &bytes) {
            let framed = &bytes[record.position..record.position + record.length()];
            assert_eq!(verified_body(framed, record.offset, SALT), Some(record.body));
            let (mut crc, length) = RunningCrc::begin(framed, record.offset, SALT).unwrap();
            assert_eq!(length, record.body.len());
            record.body.chunks(7).for_each(|piece| crc.update(piece));
            assert!(crc.matches());
            crc.update(b"x");
            assert!(!crc.matches());
        }
    }

    #[test]
    fn every_flipped_bit_of_a_batch_is_noticed() {
        let (_, bytes) = sealed(&[b"a", b"bcd", b"efghij"]);
        for bit in 0..bytes.len() * 8 {
            let mut broken = bytes.clone();
            broken[bit / 8] ^= 1 << (bit % 8);
            let sound =
                BatchHeader::read(&broken, SALT).and_then(|header| verify_records(&header, &broken, SALT)).is_ok();
            assert!(!sound, "bit {bit}");
        }
    }

    #[test]
    fn a_batch_of_another_file_and_a_record_of_another_offset_do_not_parse() {
        let (header, bytes) = sealed(&[b"one"]);
        assert_eq!(BatchHeader::read(&bytes, SALT + 1), Err(FrameError::HeaderCrc));
        let record = records(&header, &bytes).next().unwrap();
        let framed = &bytes[record.position..record.position + record.length()];
        assert_eq!(verified_body(framed, Offset(41), SALT), None);
        assert_eq!(verified_body(framed, Offset(40), SALT + 1), None);
    }

    #[test]
    fn zeros_and_every_cut_of_a_batch_are_refused() {
        assert_eq!(BatchHeader::read(&[0; 64], SALT), Err(FrameError::HeaderCrc));
        let (_, bytes) = sealed(&[b"hello", b"world"]);
        for cut in 0..bytes.len() {
            let part = &bytes[..cut];
            let sound = BatchHeader::read(part, SALT).and_then(|header| verify_records(&header, part, SALT));
            assert!(sound.is_err(), "cut at {cut}");
        }
    }
}
