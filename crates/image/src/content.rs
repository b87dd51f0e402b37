//! The bytes of an image: a slot for each mapping unit that a write touches, and what lies in it.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use leyden_device::{Command, Lba, SECTOR_BYTES};
use leyden_sim::BitSet;

use crate::device::Device;
use crate::file::ImageFile;
use crate::log::Event;
use crate::mapped::Mapped;
use crate::slots::Slots;
use crate::{ImageError, Places, asked};

/// How many mapping units `sectors` sectors from `lba` on touch, wherever that may be.
pub(crate) fn units_of(lba: Lba, sectors: u32, unit_bytes: u32) -> u64 {
    let unit_sectors = u64::from(unit_bytes) / SECTOR_BYTES;
    (lba.0 % unit_sectors + u64::from(sectors)).div_ceil(unit_sectors)
}

/// The units that a write touches. What the write leaves out of its first and last one is zeroes, and never
/// read.
pub(crate) fn whole_units(lba: Lba, data: &[u8], unit_bytes: u32) -> Cow<'_, [u8]> {
    let unit_bytes = unit_bytes as usize;
    let head = (lba.0 * SECTOR_BYTES) as usize % unit_bytes;
    let length = (head + data.len()).next_multiple_of(unit_bytes);
    if data.len() == length {
        return Cow::Borrowed(data);
    }
    let mut whole = vec![0; length];
    whole[head..head + data.len()].copy_from_slice(data);
    Cow::Owned(whole)
}

/// The bytes of an image, and which of them are in use.
#[derive(Debug)]
pub(crate) struct Content {
    slots: Slots,
    /// Where the first slot lies in the file.
    base: u64,
    unit_bytes: u32,
    /// The slots in memory, if the image is there ([`Content::map`]).
    map: Option<Mapped>,
}

impl Content {
    /// `checksums` are those of the slots that have been handed out, which are all in use until it is known
    /// better.
    pub(crate) fn new(base: u64, unit_bytes: u32, checksums: Vec<u32>) -> Self {
        let unit_sectors = u64::from(unit_bytes) / SECTOR_BYTES;
        Self { slots: Slots::new(unit_sectors, checksums), base, unit_bytes, map: None }
    }

    /// From now on slots are read and stored to in memory, as far as that is possible: at most `most_bytes` of them.
    pub(crate) fn map(&mut self, file: &ImageFile, most_bytes: u64) {
        self.map = file.map_memory(self.base, most_bytes);
    }

    pub(crate) const fn slots(&self) -> &Slots {
        &self.slots
    }
    /// Takes up what [`Content::slots`] was.
    pub(crate) fn set_slots(&mut self, slots: Slots) {
        self.slots = slots;
    }

    /// How many slots a write takes.
    pub(crate) fn slots_of(&self, lba: Lba, sectors: u32) -> u32 {
        units_of(lba, sectors, self.unit_bytes) as u32
    }

    /// True if there are fewer than `count` slots to hand out: it must be found out which are in use.
    pub(crate) fn is_short_of(&self, count: u32) -> bool {
        self.slots.is_short_of(count)
    }

    /// Frees the slots that `device` does not use, and allows for `count` more.
    pub(crate) fn keep_used_by(&mut self, device: &Device, count: u32) {
        let used = self.used_by(device);
        self.slots.keep(&used, count);
    }

    /// The slots that `device` uses.
    pub(crate) fn used_by(&self, device: &Device) -> BitSet {
        let mut used = BitSet::new(self.slots.count());
        device.each_place(|place| {
            used.insert(self.slots.slot_of(place).0);
        });
        used
    }

    /// Slots that are handed out.
    pub(crate) fn slots_in_use(&self) -> u32 {
        self.slots.in_use()
    }

    /// The checksums of the bytes in all slots that were ever handed out.
    pub(crate) fn checksums(&self) -> &[u32] {
        self.slots.checksums()
    }

    /// Hands out the slots that [`Content::store`] has named. False if others are next.
    pub(crate) fn take(&mut self, slots: &[(u32, u32)]) -> bool {
        slots.iter().all(|&(slot, checksum)| self.slots.take(checksum) == slot)
    }

    /// Puts the bytes of a write where nothing else lies. Returns the slot of each unit that it touches,
    /// which is to be handed out next, and the checksum of what is there.
    pub(crate) fn store(
        &mut self,
        file: &ImageFile,
        lba: Lba,
        data: &[u8],
    ) -> Result<Vec<(u32, u32)>, ImageError> {
        let unit_bytes = self.unit_bytes as usize;
        let bytes = whole_units(lba, data, self.unit_bytes);
        let checksums = bytes.chunks_exact(unit_bytes).map(crc32fast::hash);
        let slots: Vec<_> = self.slots.next_ones().zip(checksums).collect();
        // Neighbours at once.
        let mut first = 0;
        while first < slots.len() {
            let pairs = slots[first..].windows(2);
            let run = pairs.take_while(|pair| pair[0].0 + 1 == pair[1].0).count() + 1;
            let bytes = &bytes[first * unit_bytes..(first + run) * unit_bytes];
            self.write(file, bytes, self.at(slots[first].0))?;
            first += run;
        }
        Ok(slots)
    }

    /// Writes slots side by side.
    fn write(&mut self, file: &ImageFile, bytes: &[u8], at: u64) -> Result<(), ImageError> {
        let Some(map) = &mut self.map else { return Ok(file.write(bytes, at)?) };
        if !map.holds(at, bytes.len()) {
            let is_ready = map.end_of(at, bytes.len()).is_some_and(|end| {
                file.reach(end).is_ok() && map.make_ready(at, bytes.len()).is_ok()
            });
            if !is_ready {
                // There is less room than a piece takes, or none: the write is an error then.
                return Ok(file.write(bytes, at)?);
            }
        }
        map.store(at, bytes);
        Ok(())
    }

    /// Reads what lies at a place of the file.
    fn fill(&self, file: &ImageFile, bytes: &mut [u8], at: u64) -> Result<(), ImageError> {
        if let Some(map) = &self.map
            && (map.holds(at, bytes.len()) || is_readable(map, file, at, bytes.len()))
        {
            map.load(at, bytes);
            return Ok(());
        }
        Ok(file.read(bytes, at)?)
    }

    /// Where each sector of a write lies.
    pub(crate) fn places(&self, lba: Lba, sectors: u32, slots: &[(u32, u32)]) -> Arc<[u64]> {
        let unit_sectors = u64::from(self.unit_bytes) / SECTOR_BYTES;
        let head = lba.0 % unit_sectors;
        let place = |at: u64| {
            let (unit, sector) = (at / unit_sectors, at % unit_sectors);
            self.slots.place(slots[unit as usize].0, sector)
        };
        (head..head + u64::from(sectors)).map(place).collect()
    }

    /// The command of an event; `None` if it is none of the host's.
    pub(crate) fn command(&self, event: &Event) -> Option<Command<Places>> {
        let places = |lba, sectors, slots| self.places(lba, sectors, slots);
        Some(match event {
            Event::Cut | Event::Restore(_) | Event::Remount | Event::Journal { .. } => return None,
            Event::Read(lba, sectors) => Command::read(*lba, *sectors),
            Event::Flush => Command::flush(),
            Event::Trim(lba, sectors) => Command::trim(*lba, *sectors),
            Event::WritePrepare(ranges) => Command::write_prepare(ranges.iter().copied()),
            Event::WriteZeroes(lba, sectors, fua) => {
                Command::write_zeroes(*lba, *sectors, Arc::default()).fua(*fua)
            }
            Event::Write { lba, sectors, flags, slots } => {
                flags.of(Command::write(*lba, *sectors, places(*lba, *sectors, slots)))
            }
            Event::Append { lba, sectors, flags, slots } => {
                flags.of(Command::zone_append(*lba, *sectors, places(*lba, *sectors, slots)))
            }
            Event::Zone(ask) => ask.command(),
            Event::ZoneReport(lba, most) => asked::report(*lba, *most),
        })
    }

    /// The bytes at `places`; `None` if some are not what was written there.
    ///
    /// # Errors
    /// If the file cannot be read, or there is no memory for so many bytes.
    pub(crate) fn read(
        &self,
        file: &ImageFile,
        places: &[u64],
    ) -> Result<Option<Vec<u8>>, ImageError> {
        let length = places.len() * SECTOR_BYTES as usize;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        bytes.resize(length, 0);
        Ok(self.read_into(file, places, &mut bytes)?.then_some(bytes))
    }

    /// Reads the bytes at `places` into `bytes`, which has as many sectors. False if some are not what was written
    /// there.
    pub(crate) fn read_into(
        &self,
        file: &ImageFile,
        places: &[u64],
        bytes: &mut [u8],
    ) -> Result<bool, ImageError> {
        let unit_sectors = self.unit_bytes as usize / SECTOR_BYTES as usize;
        let mut unit = Vec::new(); // only of a part of a slot
        let mut at = 0;
        while at < places.len() {
            let run = self.run_of(&places[at..]);
            let into = &mut bytes[at * SECTOR_BYTES as usize..][..run * SECTOR_BYTES as usize];
            at += run;
            let first = places[at - run];
            if first == 0 {
                into.fill(0);
                continue;
            }
            let (slot, sector) = self.slots.slot_of(first);
            let is_whole = if sector == 0 && run.is_multiple_of(unit_sectors) {
                self.read_slots(file, slot, into)?
            } else {
                unit.resize(self.unit_bytes as usize, 0);
                let is_whole = self.read_slots(file, slot, &mut unit)?;
                into.copy_from_slice(&unit[(sector * SECTOR_BYTES) as usize..][..into.len()]);
                is_whole
            };
            if !is_whole {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// How many of `places`, from the first on, are read at once: zeroes, whole slots side by side, or sectors of one slot.
    fn run_of(&self, places: &[u64]) -> usize {
        let unit_sectors = self.unit_bytes as usize / SECTOR_BYTES as usize;
        let first = places[0];
        if first == 0 {
            return places.iter().take_while(|&&place| place == 0).count();
        }
        let follow = (first..).zip(places).take_while(|(place, other)| place == *other).count();
        let sector = self.slots.slot_of(first).1 as usize;
        match follow / unit_sectors * unit_sectors {
            whole if sector == 0 && whole > 0 => whole,
            _ => follow.min(unit_sectors - sector),
        }
    }

    /// Reads whole slots from `first` on. False if the checksum of one is another one.
    fn read_slots(
        &self,
        file: &ImageFile,
        first: u32,
        into: &mut [u8],
    ) -> Result<bool, ImageError> {
        self.fill(file, into, self.at(first))?;
        let slots = (first..).zip(into.chunks_exact(self.unit_bytes as usize));
        let mut wrong =
            slots.filter(|(slot, unit)| self.slots.checksum(*slot) != Some(crc32fast::hash(unit)));
        Ok(wrong.next().is_none())
    }

    /// Reads a slot as it lies in the file into `unit`, which is as large. False if its checksum is another one.
    pub(crate) fn read_slot(
        &self,
        file: &ImageFile,
        slot: u32,
        checksum: Option<u32>,
        unit: &mut [u8],
    ) -> Result<bool, ImageError> {
        file.read(unit, self.at(slot))?;
        Ok(checksum == Some(crc32fast::hash(unit)))
    }

    /// Gives the room of free slots back to the file system.
    pub(crate) fn punch_dead(&mut self, file: &ImageFile) -> Result<(), ImageError> {
        for dead in self.slots.take_dead() {
            let (at, length) =
                (self.at(dead.start), dead.len() as u64 * u64::from(self.unit_bytes));
            if let Some(map) = &mut self.map {
                map.forget(at, length);
            }
            file.punch(at, length)?;
        }
        Ok(())
    }

    fn at(&self, slot: u32) -> u64 {
        self.base + u64::from(slot) * u64::from(self.unit_bytes)
    }
}

/// Makes a range of the file ready to be read, unless it lies beyond its end.
#[cold]
fn is_readable(map: &Mapped, file: &ImageFile, at: u64, length: usize) -> bool {
    let end = map.end_of(at, length);
    end.is_some_and(|end| {
        file.length().is_ok_and(|length| end <= length) && map.make_ready(at, length).is_ok()
    })
}
