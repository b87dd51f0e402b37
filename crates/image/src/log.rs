//! The log: what the drive was asked since its last checkpoint, and when.
//!
//! Entries are batched and written just before the clock, so the log holds every command whose completion was
//! reported. Space for an entry is reserved when its command is accepted: a full file system refuses that command and
//! no other. A kill may tear the last entry: its completion was not reported, and it is ignored. Any other malformed
//! entry is damage.

use std::ops::Range;

use leyden_device::{Hint, Lba};
use leyden_sim::{Capacitance, Time};

use crate::ImageError;
use crate::asked::{WriteFlags, ZoneAsk};
use crate::file::ImageFile;
use crate::layout::{Fields, LOG_BYTES, Regions, seal_from, unseal};
use crate::mapped::Mapped;

/// An event of a drive, from outside.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A read of so many sectors.
    Read(Lba, u32),
    /// A write of so many sectors.
    Write {
        /// Where it begins.
        lba: Lba,
        /// How many sectors.
        sectors: u32,
        /// Flags of the command.
        flags: WriteFlags,
        /// For each mapping unit that it touches the slot of its bytes, and their checksum.
        slots: Vec<(u32, u32)>,
    },
    /// A zone append of so many sectors.
    Append {
        /// The zone's first block.
        lba: Lba,
        /// How many sectors.
        sectors: u32,
        /// As of a write.
        flags: WriteFlags,
        /// As of a write.
        slots: Vec<(u32, u32)>,
    },
    /// Zone Management Send.
    Zone(ZoneAsk),
    /// A report of so many zones at most, from the one of this block on.
    ZoneReport(Lba, u32),
    /// A flush.
    Flush,
    /// A trim.
    Trim(Lba, u32),
    /// An announcement of writes.
    WritePrepare(Vec<Hint>),
    /// Zeroes: where, how many sectors, and whether with force unit access.
    WriteZeroes(Lba, u32, bool),
    /// The power failed.
    Cut,
    /// The power returned; with another bank, if one is named.
    Restore(Option<Capacitance>),
    /// A block device on two drives wrote its tables, and was taken down and up again: a checkpoint was taken, or would
    /// have been.
    Remount,
    /// The journal of the file system on such a device was found.
    Journal {
        /// The bytes that it was found by.
        sources: Vec<Range<u64>>,
        /// Its own; `None` if there is none, or nobody knows where.
        journal: Option<Vec<Range<u64>>>,
    },
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Counted from the first one ever.
    pub sequence: u64,
    /// By the drive's clock.
    pub time: Time,
    /// The event.
    pub event: Event,
}

/// Length (u32), sequence, time, kind, flags, sectors, LBA.
const HEADER_BYTES: usize = 4 + 8 + 8 + 1 + 1 + 4 + 8;
const SLOT_BYTES: usize = 8;
/// No entry is longer: a write of 64 MiB in units of 512 bytes.
const ENTRY_MOST: u64 = 1 << 20;

/// Space is reserved in pieces of this size.
const ROOM_BYTES: u64 = 1 << 20;

impl Event {
    /// The sectors that it reads or changes, of an append from the beginning of its zone on; `None` if it has none.
    pub(crate) const fn range(&self) -> Option<(Lba, u32)> {
        match self {
            Self::Read(lba, sectors)
            | Self::Trim(lba, sectors)
            | Self::WriteZeroes(lba, sectors, _)
            | Self::Write { lba, sectors, .. }
            | Self::Append { lba, sectors, .. } => Some((*lba, *sectors)),
            Self::Flush
            | Self::WritePrepare(_)
            | Self::Zone(_)
            | Self::ZoneReport(..)
            | Self::Cut
            | Self::Restore(_)
            | Self::Remount
            | Self::Journal { .. } => None,
        }
    }

    /// Room that its entry takes, in slots.
    pub(crate) fn slots(&self) -> usize {
        match self {
            Self::Write { slots, .. } | Self::Append { slots, .. } => slots.len(),
            Self::WritePrepare(hints) => hints.len(),
            Self::Journal { sources, journal } => {
                RANGE_SLOTS * (sources.len() + journal.as_ref().map_or(0, Vec::len))
            }
            _ => 0,
        }
    }

    /// Adds the entry of this event to `log`.
    fn encode(&self, sequence: u64, time: Time, log: &mut Vec<u8>) {
        let pairs: Vec<_>; // as slots
        let (kind, flags, sectors, lba, slots) = match self {
            Event::Read(lba, sectors) => (1, 0, *sectors, lba.0, &[][..]),
            Event::Write { lba, sectors, flags, slots } => {
                (2, flags.bits(), *sectors, lba.0, &slots[..])
            }
            Event::Flush => (3, 0, 0, 0, &[][..]),
            Event::Trim(lba, sectors) => (4, 0, *sectors, lba.0, &[][..]),
            Event::WriteZeroes(lba, sectors, fua) => (5, u8::from(*fua), *sectors, lba.0, &[][..]),
            Event::Cut => (6, 0, 0, 0, &[][..]),
            Event::Restore(bank) => {
                (7, u8::from(bank.is_some()), 0, bank.map_or(0, Capacitance::as_nf), &[][..])
            }
            Event::Append { lba, sectors, flags, slots } => {
                (8, flags.bits(), *sectors, lba.0, &slots[..])
            }
            Event::Zone(ask) => (9, ask.bits(), u32::from(ask.code()), ask.lba.0, &[][..]),
            Event::ZoneReport(lba, most) => (10, 0, *most, lba.0, &[][..]),
            Event::Remount => (11, 0, 0, 0, &[][..]),
            Event::Journal { sources, journal } => {
                let all = sources.iter().chain(journal.iter().flatten());
                pairs = all.flat_map(|it| [halves(it.start), halves(it.end)]).collect();
                (12, u8::from(journal.is_some()), sources.len() as u32, 0, &pairs[..])
            }
            Event::WritePrepare(hints) => {
                pairs = hints.iter().map(|hint| hint.dwords()).collect();
                (13, 0, 0, 0, &pairs[..])
            }
        };
        let begin = log.len();
        log.extend((entry_bytes(slots.len()) as u32).to_le_bytes());
        log.extend(sequence.to_le_bytes());
        log.extend(time.as_ns().to_le_bytes());
        log.extend([kind, flags]);
        log.extend(sectors.to_le_bytes());
        log.extend(lba.to_le_bytes());
        for (slot, crc) in slots {
            log.extend(slot.to_le_bytes());
            log.extend(crc.to_le_bytes());
        }
        seal_from(log, begin);
    }
}

/// Slots that a range of bytes takes in an entry: its ends.
const RANGE_SLOTS: usize = 2;

const fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

/// Ranges of bytes, from an entry's slots; `None` if they are none.
fn ranges(slots: impl Iterator<Item = (u32, u32)>) -> Option<Vec<Range<u64>>> {
    let words: Vec<_> = slots.map(|(low, high)| u64::from(low) | u64::from(high) << 32).collect();
    let (pairs, rest) = words.as_chunks::<RANGE_SLOTS>();
    let are_ranges = rest.is_empty() && pairs.iter().all(|[start, end]| start <= end);
    are_ranges.then(|| pairs.iter().map(|&[start, end]| start..end).collect())
}

/// Hints from their dwords; `None` if one names nothing.
fn hints(dwords: impl Iterator<Item = (u32, u32)>) -> Option<Vec<Hint>> {
    // Bits that mean nothing are not read back.
    let hint = |(first, units)| Hint::from_dwords(first, units).filter(|it| it.dwords().1 == units);
    dwords.map(hint).collect()
}

/// Bytes of an entry with so many slots.
const fn entry_bytes(slots: usize) -> usize {
    HEADER_BYTES + slots * SLOT_BYTES + 4
}

impl Entry {
    /// The entry that begins `bytes`, and its length; `None` if none does.
    fn decode(bytes: &[u8]) -> Option<(Self, u64)> {
        let length = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
        let body = unseal(bytes.get(..length).filter(|_| length >= HEADER_BYTES + 4)?)?;
        let mut fields = Fields(&body[4..]);
        let (sequence, time) = (fields.u64(), Time::from_ns(fields.u64()));
        let (kind, flags, sectors) = (fields.u8(), fields.u8(), fields.u32());
        let number = fields.u64();
        let (lba, flag) = (Lba(number), flags != 0);
        let slots = fields.0.chunks_exact(SLOT_BYTES).map(|slot| {
            let mut fields = Fields(slot);
            (fields.u32(), fields.u32())
        });
        let event = match kind {
            1 => Event::Read(lba, sectors),
            2 => {
                let flags = WriteFlags::from_bits(flags)?;
                Event::Write { lba, sectors, flags, slots: slots.collect() }
            }
            3 => Event::Flush,
            4 => Event::Trim(lba, sectors),
            5 => Event::WriteZeroes(lba, sectors, flag),
            6 => Event::Cut,
            7 => Event::Restore(flag.then(|| Capacitance::from_nf(number))),
            8 => {
                let flags = WriteFlags::from_bits(flags)?;
                Event::Append { lba, sectors, flags, slots: slots.collect() }
            }
            9 => Event::Zone(ZoneAsk::from_code(u8::try_from(sectors).ok()?, lba, flags)?),
            10 => Event::ZoneReport(lba, sectors),
            11 => Event::Remount,
            12 => {
                let all = ranges(slots)?;
                let (sources, journal) = all.split_at_checked(sectors as usize)?;
                let journal = flag.then(|| journal.to_vec());
                Event::Journal { sources: sources.to_vec(), journal }
            }
            13 => Event::WritePrepare(hints(slots)?),
            _ => return None,
        };
        Some((Self { sequence, time, event }, length as u64))
    }
}

/// Stores entries in their order. Bytes of one of them may be stored in any.
fn store_each(map: &mut Mapped, mut at: u64, mut entries: &[u8]) {
    while !entries.is_empty() {
        let (entry, rest) = entries.split_at(Fields(entries).u32() as usize);
        map.store(at, entry);
        at += entry.len() as u64;
        entries = rest;
    }
}

/// The log of an image, behind its last checkpoint.
#[derive(Debug)]
pub(crate) struct Log {
    begin: u64,
    /// Where the next entry goes, counted from `begin`.
    end: u64,
    /// Space is reserved up to here.
    room: u64,
    next_sequence: u64,
    /// Entries that are not in the file yet.
    gathered: Vec<u8>,
    /// Where the next entries go, in memory: from some entry on up to the end of the reserved space.
    map: Option<Mapped>,
    /// False once that was not to be had: entries are written by system calls.
    may_map: bool,
}

impl Log {
    /// An empty log that goes on with `next_sequence`.
    pub(crate) fn empty(regions: Regions, next_sequence: u64) -> Self {
        let gathered = Vec::new();
        let (begin, map, may_map) = (regions.log(), None, true);
        Self { begin, end: 0, room: 0, next_sequence, gathered, map, may_map }
    }

    /// Bytes of entries.
    pub(crate) const fn len(&self) -> u64 {
        self.end
    }

    pub(crate) const fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// Reserves space for an entry with so many slots.
    pub(crate) fn prepare(&mut self, file: &ImageFile, slots: usize) -> Result<(), ImageError> {
        let end = self.end + entry_bytes(slots) as u64;
        if end + ENTRY_MOST > LOG_BYTES {
            return Err(std::io::Error::other("the log of the image is full").into());
        }
        // A write reserves some space beyond its own: on a full file system, reads and flushes can still be logged.
        let wanted = if slots > 0 { end + ROOM_BYTES } else { end };
        if wanted > self.room {
            let more = (wanted - self.room).next_multiple_of(ROOM_BYTES);
            file.allocate(self.begin + self.room, more)?;
            self.room += more;
        }
        Ok(())
    }

    /// Adds an entry, whose space has been [reserved](Log::prepare).
    pub(crate) fn append(&mut self, time: Time, event: &Event) {
        let before = self.gathered.len();
        event.encode(self.next_sequence, time, &mut self.gathered);
        self.end += (self.gathered.len() - before) as u64;
        self.next_sequence += 1;
        assert!(self.end <= self.room, "an entry whose room was not prepared");
    }

    /// Writes the entries added since the last call, one after the other: a kill leaves some of them, a torn one, and
    /// nothing behind it.
    pub(crate) fn settle(&mut self, file: &ImageFile) -> Result<(), ImageError> {
        let at = self.begin + self.end - self.gathered.len() as u64;
        if self.gathered.is_empty() {
            return Ok(());
        }
        let holds = |map: &Mapped| map.holds(at, self.gathered.len());
        if self.may_map && !self.map.as_ref().is_some_and(holds) {
            self.map = file.map(at..self.begin + self.room);
            self.may_map = self.map.is_some();
        }
        match &mut self.map {
            Some(map) => store_each(map, at, &self.gathered),
            None => file.write(&self.gathered, at)?,
        }
        self.gathered.clear();
        Ok(())
    }

    /// Entries are written by system calls until the next restart: the space around the log is about to change.
    pub(crate) fn unmap(&mut self) {
        (self.map, self.may_map) = (None, false);
    }

    /// The entries behind the checkpoint, up to the last one that is whole. `known` is how far the log
    /// had come when the clock was last written: up to there nothing may be missing.
    pub(crate) fn read(
        file: &ImageFile,
        regions: Regions,
        first_sequence: u64,
        known: u64,
    ) -> Result<(Self, Vec<Entry>), ImageError> {
        let mut log = Self::empty(regions, first_sequence);
        let mut entries = Vec::new();
        let mut window = Window::new(log.begin);
        loop {
            let bytes = window.at(file, log.end)?;
            let Some((entry, length)) = Entry::decode(bytes) else { break };
            if entry.sequence != log.next_sequence {
                break; // of an earlier log, which reached farther
            }
            log.next_sequence += 1;
            log.end += length;
            entries.push(entry);
        }
        if log.next_sequence < known {
            let what = format!("entry {} of its log cannot be read", log.next_sequence);
            return Err(ImageError::Damaged(what));
        }
        Ok((log, entries))
    }

    /// Starts over after a checkpoint: the space of the old entries is freed.
    pub(crate) fn restart(&mut self, file: &ImageFile) -> Result<(), ImageError> {
        // The new log keeps some space reserved, so that other files cannot take it. Old entries left there end the
        // log: their sequence numbers do not continue it.
        let kept = self.room.min(2 * ROOM_BYTES);
        (self.map, self.may_map) = (None, true); // what it covers beyond that is not reserved any more
        file.punch(self.begin + kept, self.room.max(self.end + ENTRY_MOST) - kept)?;
        (self.end, self.room) = (0, kept);
        self.gathered.clear();
        Ok(())
    }
}

/// A piece of the log in memory.
struct Window {
    begin: u64,
    at: u64,
    bytes: Vec<u8>,
}

impl Window {
    const BYTES: u64 = 8 * ENTRY_MOST;

    const fn new(begin: u64) -> Self {
        Self { begin, at: 0, bytes: Vec::new() }
    }

    /// At least the longest entry from `at` on.
    fn at(&mut self, file: &ImageFile, at: u64) -> Result<&[u8], ImageError> {
        let has = self.at + self.bytes.len() as u64;
        if has < at + ENTRY_MOST {
            self.bytes.resize(Self::BYTES as usize, 0);
            file.read(&mut self.bytes, self.begin + at)?;
            self.at = at;
        }
        Ok(&self.bytes[(at - self.at) as usize..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn events() -> impl Strategy<Value = Event> {
        let lba = || any::<u64>().prop_map(Lba);
        let written =
            || (lba(), any::<u32>(), 0_u8..4, prop::collection::vec(any::<(u32, u32)>(), 0..9));
        let flags = |bits| WriteFlags::from_bits(bits).unwrap();
        let ends = || (any::<u64>(), any::<u64>()).prop_map(|(a, b)| a.min(b)..a.max(b));
        let ranges = move || prop::collection::vec(ends(), 0..9);
        prop_oneof![
            Just(Event::Remount),
            (ranges(), prop::option::of(ranges()))
                .prop_map(|(sources, journal)| Event::Journal { sources, journal }),
            (lba(), any::<u32>()).prop_map(|(lba, sectors)| Event::Read(lba, sectors)),
            written().prop_map(move |(lba, sectors, bits, slots)| {
                Event::Write { lba, sectors, flags: flags(bits), slots }
            }),
            written().prop_map(move |(lba, sectors, bits, slots)| {
                Event::Append { lba, sectors, flags: flags(bits), slots }
            }),
            crate::asked::tests::zone_asks().prop_map(Event::Zone),
            (lba(), any::<u32>()).prop_map(|(lba, most)| Event::ZoneReport(lba, most)),
            Just(Event::Flush),
            (lba(), any::<u32>()).prop_map(|(lba, sectors)| Event::Trim(lba, sectors)),
            (lba(), any::<u32>(), any::<bool>())
                .prop_map(|(lba, sectors, fua)| Event::WriteZeroes(lba, sectors, fua)),
            crate::asked::tests::hints().prop_map(Event::WritePrepare),
            Just(Event::Cut),
            Just(Event::Restore(None)),
            any::<u64>().prop_map(|nf| Event::Restore(Some(Capacitance::from_nf(nf)))),
        ]
    }

    /// A log, and the events that were written to it, of all lengths.
    fn written(file: &ImageFile, log: &mut Log, first: u32, bytes: u64) -> Vec<Event> {
        let mut rng = leyden_sim::Rng::new(u64::from(first), "image.log");
        let mut events = Vec::new();
        let begin = log.len();
        while log.len() < begin + bytes {
            let most = [4, 300, (ENTRY_MOST - 64) / SLOT_BYTES as u64][rng.below(3) as usize];
            let slots = (0..=rng.below(most) as u32).map(|at| (first + at, at)).collect();
            let event =
                Event::Write { lba: Lba(7), sectors: 8, flags: WriteFlags::default(), slots };
            log.prepare(file, event.slots()).unwrap();
            log.append(Time::ZERO, &event);
            log.settle(file).unwrap();
            events.push(event);
        }
        events
    }

    /// Entries are read as they were written, wherever a window of the file ends; one that is missing is noticed.
    #[test]
    fn a_log_is_read_whole_across_windows_or_its_gap_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = ImageFile::create(&folder.path().join("log")).unwrap();
        let regions = Regions::new(1);
        let mut log = Log::empty(regions, 5);
        let read = |known| Log::read(&file, regions, 5, known);
        let events = written(&file, &mut log, 1, 4 * Window::BYTES);
        let known = log.next_sequence();
        let (again, entries) = read(known).unwrap();
        assert_eq!((again.len(), again.next_sequence()), (log.len(), known));
        assert!(entries.iter().map(|entry| &entry.event).eq(&events));
        assert!(entries.iter().map(|entry| entry.sequence).eq(5..known));
        // The clock says that one more was there.
        assert!(matches!(read(known + 1), Err(ImageError::Damaged(_))));
        // One in the midst is gone: those behind it are not taken for its successors.
        let sizes: Vec<u64> =
            events.iter().map(|event| entry_bytes(event.slots()) as u64).collect();
        let middle = sizes.len() / 2;
        let at = regions.log() + sizes[..middle].iter().sum::<u64>();
        let mut rest = vec![0; (log.len() - sizes[..=middle].iter().sum::<u64>()) as usize];
        file.read(&mut rest, at + sizes[middle]).unwrap();
        file.write(&rest, at).unwrap();
        assert!(
            matches!(read(known), Err(ImageError::Damaged(what)) if what.contains(&format!(" {} ", 5 + middle)))
        );
        assert_eq!(read(5 + middle as u64).unwrap().1.len(), middle);
    }

    /// Entries of an earlier log lie behind the end of a shorter one.
    #[test]
    fn entries_of_an_earlier_log_are_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let file = ImageFile::create(&folder.path().join("log")).unwrap();
        let regions = Regions::new(1);
        let mut log = Log::empty(regions, 1);
        let flushed = |log: &mut Log, count: usize| {
            for _ in 0..count {
                log.prepare(&file, 0).unwrap();
                log.append(Time::ZERO, &Event::Flush);
            }
            log.settle(&file).unwrap();
        };
        flushed(&mut log, 50);
        log.restart(&file).unwrap();
        flushed(&mut log, 20);
        let (again, entries) = Log::read(&file, regions, 51, 71).unwrap();
        assert_eq!((again.next_sequence(), entries.len()), (71, 20));
        assert_eq!(again.len(), log.len());
    }

    fn bytes_of(entry: &Entry) -> Vec<u8> {
        let mut bytes = Vec::new();
        entry.event.encode(entry.sequence, entry.time, &mut bytes);
        bytes
    }

    proptest! {
        #[test]
        fn an_entry_reads_back(sequence: u64, ns: u64, event in events()) {
            let entry = Entry { sequence, time: Time::from_ns(ns), event };
            let bytes = bytes_of(&entry);
            prop_assert_eq!(Entry::decode(&bytes), Some((entry, bytes.len() as u64)));
            for end in 0..bytes.len() {
                prop_assert_eq!(Entry::decode(&bytes[..end]), None);
            }
        }

        #[test]
        fn any_bytes_are_an_entry_or_none(bytes: Vec<u8>) {
            let _ = Entry::decode(&bytes);
        }

        #[test]
        fn a_changed_byte_is_found(event in events(), at: prop::sample::Index, change in 1_u8..) {
            let entry = Entry { sequence: 1, time: Time::ZERO, event };
            let mut bytes = bytes_of(&entry);
            let at = at.index(bytes.len());
            bytes[at] ^= change;
            prop_assert_eq!(Entry::decode(&bytes), None);
        }
    }
}
