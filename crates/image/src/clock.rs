//! How far the drive has come, and where the image keeps that.
//!
//! The clock is written more often than anything else, as a rule into memory ([`crate::mapped`]), where a kill can fall
//! between any two bytes. So there are two places, and a word that says which one holds: it is stored at once, and last.

use leyden_sim::Time;

use crate::ImageError;
use crate::file::ImageFile;
use crate::layout::{FORMAT_OF_ONE_CLOCK, Fields, unseal};
use crate::mapped::Mapped;

/// The page of the clock: what of it holds, and the two places.
const PAGE_AT: u64 = 12_288;
/// From the beginning of the page.
const PLACES_AT: [usize; 2] = [64, 128];
const CLOCK_BYTES: usize = 36;
const USED_BYTES: usize = 192;

/// How far the drive has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Clock {
    /// The root that it belongs to.
    pub(crate) generation: u64,
    /// The drive has done everything up to this time.
    pub(crate) time: Time,
    /// The sequence of the next entry of the log.
    pub(crate) next_sequence: u64,
    /// The drive's fingerprint at that time.
    pub(crate) digest: u64,
}

impl Clock {
    fn encode(self) -> [u8; CLOCK_BYTES] {
        let mut record = [0; CLOCK_BYTES];
        let (body, seal) = record.split_at_mut(CLOCK_BYTES - 4);
        let numbers = [self.generation, self.time.as_ns(), self.next_sequence, self.digest];
        for (place, number) in body.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        seal.copy_from_slice(&crc32fast::hash(body).to_le_bytes());
        record
    }

    fn decode(record: &[u8]) -> Option<Self> {
        let mut fields = Fields(unseal(record)?);
        Some(Self {
            generation: fields.u64(),
            time: Time::from_ns(fields.u64()),
            next_sequence: fields.u64(),
            digest: fields.u64(),
        })
    }
}

/// The word that says that the clock in place `count` mod 2 holds, which is the one written last.
fn word_of(count: u32) -> u64 {
    let crc = crc32fast::hash(&count.to_le_bytes());
    u64::from(count) | u64::from(crc) << 32
}

/// Where an image keeps its clock.
#[derive(Debug)]
pub(crate) enum ClockPage {
    /// One place, written at once: images up to version 3.
    One,
    /// Two places.
    Two(Box<TwoPlaces>),
}

impl ClockPage {
    /// The page of a new image, before its first clock.
    pub(crate) fn new() -> Self {
        Self::Two(Box::new(TwoPlaces::new(0, [0; USED_BYTES])))
    }

    /// The clock's page of an image of this version.
    pub(crate) fn read(file: &ImageFile, version: u32) -> Result<(Self, Clock), ImageError> {
        let damaged = || ImageError::Damaged("the checksum of its clock does not match".to_owned());
        let mut bytes = [0; USED_BYTES];
        file.read(&mut bytes, PAGE_AT)?;
        if version <= FORMAT_OF_ONE_CLOCK {
            let clock = Clock::decode(&bytes[..CLOCK_BYTES]).ok_or_else(damaged)?;
            return Ok((Self::One, clock));
        }
        let word = Fields(&bytes).u64();
        let count = word as u32;
        let place = &bytes[PLACES_AT[count as usize % 2]..][..CLOCK_BYTES];
        let clock = Some(place).filter(|_| word == word_of(count)).and_then(Clock::decode);
        let places = Box::new(TwoPlaces::new(count, bytes));
        Ok((Self::Two(places), clock.ok_or_else(damaged)?))
    }

    pub(crate) fn write(&mut self, file: &ImageFile, clock: Clock) -> Result<(), ImageError> {
        match self {
            Self::One => Ok(file.write(&clock.encode(), PAGE_AT)?),
            Self::Two(places) => places.write(file, clock),
        }
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct TwoPlaces {
    /// Clocks written so far.
    count: u32,
    /// The page in memory, from the first clock on that is written, where the file system allows that.
    map: Option<Mapped>,
    may_map: bool,
    /// Bytes in the file; not updated where there is a map.
    bytes: [u8; USED_BYTES],
}

impl TwoPlaces {
    const fn new(count: u32, bytes: [u8; USED_BYTES]) -> Self {
        Self { count, map: None, may_map: true, bytes }
    }

    fn write(&mut self, file: &ImageFile, clock: Clock) -> Result<(), ImageError> {
        if std::mem::take(&mut self.may_map) {
            self.map = file.map(PAGE_AT..PAGE_AT + USED_BYTES as u64);
        }
        self.count = self.count.wrapping_add(1);
        let (at, record, word) =
            (PLACES_AT[self.count as usize % 2], clock.encode(), word_of(self.count));
        if let Some(map) = &mut self.map {
            map.store(PAGE_AT + at as u64, &record);
            map.store_word(PAGE_AT, word);
            return Ok(());
        }
        // A write as short as this is never cut in two by a kill.
        self.bytes[at..at + CLOCK_BYTES].copy_from_slice(&record);
        self.bytes[..8].copy_from_slice(&word.to_le_bytes());
        Ok(file.write(&self.bytes, PAGE_AT)?)
    }
}
