//! Inspection of an image: its content, its integrity, and copies of it. The drive notices nothing.

use std::collections::BTreeMap;
use std::path::Path;

use leyden_device::{Lba, SECTOR_BYTES, Status};

use super::replay::load;
use super::{Drive, Log, Regions, Root};
use crate::clock::ClockPage;
use crate::file::ImageFile;
use crate::layout::{Head, ImageConfig, read_head};
use crate::log::Event;
use crate::{ImageError, Places};

/// Units that one question for extents looks at.
const EXTENT_UNITS_MOST: u64 = 1 << 18;

/// Figures of an image.
#[derive(Clone, Debug, serde::Serialize)]
pub struct DriveInfo {
    /// Sectors that can be addressed.
    pub capacity_sectors: u64,
    /// Bytes of a mapping unit: what is written at once is kept or lost as a whole.
    pub unit_bytes: u32,
    /// Bytes of flash.
    pub flash_bytes: u64,
    /// Bytes that the image takes up in its file system.
    pub allocated_bytes: u64,
    /// Bytes of content in use, as of the last time that the drive was asked.
    pub content_bytes: u64,
    /// Bytes of the log since the last checkpoint.
    pub log_bytes: u64,
    /// The drive's clock, in nanoseconds.
    pub time_ns: u64,
    /// Power cuts so far, since its bank was last changed.
    pub cuts: u64,
}

/// Findings of a check.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Checked {
    /// The drive's name.
    pub name: String,
    /// The version of Leyden that made it.
    pub made_by: String,
    /// Sectors that can be addressed.
    pub capacity_sectors: u64,
    /// Zones, if it is a zoned drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zones: Option<u32>,
    /// The process that had it last has closed it; else opening it is a power cut.
    pub is_closed: bool,
    /// Checkpoints so far.
    pub checkpoints: u64,
    /// Entries of the log since the last one.
    pub log_entries: u64,
    /// Bytes of them.
    pub log_bytes: u64,
    /// Units of content that were read.
    pub units: u64,
    /// Those whose bytes are not what was written: reading them will fail.
    pub damaged_units: u64,
}

impl Drive {
    /// Its figures.
    ///
    /// # Errors
    /// If the file cannot be asked.
    pub fn info(&self) -> Result<DriveInfo, ImageError> {
        let unit_bytes = self.unit_bytes();
        Ok(DriveInfo {
            capacity_sectors: self.capacity_sectors(),
            unit_bytes,
            flash_bytes: self.device().flash_bytes(),
            allocated_bytes: self.file.allocated_bytes()?,
            content_bytes: u64::from(self.content.slots_in_use()) * u64::from(unit_bytes),
            log_bytes: self.log.len(),
            time_ns: self.now().as_ns(),
            cuts: self.device().cuts(),
        })
    }

    /// Runs of sectors from `lba` on that hold something, or are holes and read as zeroes: how many
    /// sectors, and whether they are a hole. There may be fewer than `sectors` in all, but some. A drive
    /// without power answers with its state when the power failed.
    ///
    /// # Panics
    /// If they are not all the drive's, or none.
    pub fn extents(&self, lba: Lba, sectors: u32) -> Vec<(u32, bool)> {
        let unit_sectors = u64::from(self.unit_bytes()) / SECTOR_BYTES;
        let end = lba.0 + u64::from(sectors);
        let mut runs: Vec<(u32, bool)> = Vec::new();
        let mut at = lba.0;
        while at < end && at - lba.0 < EXTENT_UNITS_MOST * unit_sectors {
            let next = ((at / unit_sectors + 1) * unit_sectors).min(end);
            let is_hole = self.device().newest(Lba(at)) == Places::default();
            let count = (next - at) as u32;
            match runs.last_mut() {
                Some((length, hole)) if *hole == is_hole => *length += count,
                _ => runs.push((count, is_hole)),
            }
            at = next;
        }
        runs
    }

    /// The result of a read of these sectors if it took no time; `None` if some of their bytes are damaged.
    ///
    /// # Errors
    /// If the image cannot be read.
    ///
    /// # Panics
    /// If they are not all the drive's.
    pub fn peek(&self, lba: Lba, sectors: u32) -> Result<Option<Vec<u8>>, ImageError> {
        self.content.read(&self.file, &self.places(lba, sectors))
    }

    /// Reads the sectors from `lba` on into `bytes` as a read that takes no time would. Returns how that would end.
    ///
    /// # Errors
    /// If the image cannot be read.
    ///
    /// # Panics
    /// If `bytes` is not a whole number of sectors.
    pub fn look(&self, lba: Lba, bytes: &mut [u8]) -> Result<Status, ImageError> {
        assert!((bytes.len() as u64).is_multiple_of(SECTOR_BYTES), "a part of a sector");
        let sectors = (bytes.len() as u64 / SECTOR_BYTES) as u32;
        if let Some(status) = self.refuses(lba, sectors) {
            return Ok(status);
        }
        if let Err(status) = self.device().may_read(lba, sectors) {
            return Ok(status);
        }
        let is_whole = self.content.read_into(&self.file, &self.places(lba, sectors), bytes)?;
        Ok(if is_whole { Status::Success } else { Status::UnrecoveredRead })
    }

    /// Where the newest bytes of these sectors lie.
    fn places(&self, lba: Lba, sectors: u32) -> Vec<u64> {
        let unit_sectors = u64::from(self.unit_bytes()) / SECTOR_BYTES;
        let mut places = Vec::with_capacity(sectors as usize);
        let (mut unit, mut of) = (u64::MAX, Places::default());
        for at in lba.0..lba.0 + u64::from(sectors) {
            if at / unit_sectors != unit {
                (unit, of) = (at / unit_sectors, self.device().newest(Lba(at)));
            }
            places.push(of.get((at % unit_sectors) as usize));
        }
        places
    }

    /// Reads all of an image, and says what it has found.
    ///
    /// # Errors
    /// If it is no image, or in use, or something is damaged without which it cannot be opened.
    pub fn check(path: &Path) -> Result<Checked, ImageError> {
        let file = ImageFile::open(path)?;
        let Head { config, units, version } = read_head(&file)?;
        let regions = Regions::new(units);
        let root = Root::read(&file)?;
        let (page, clock) = ClockPage::read(&file, version)?;
        let known = if clock.generation == root.generation { clock.next_sequence } else { 0 };
        let (powered, content) = load(&file, regions, config, &root)?;
        let (log, entries) = Log::read(&file, regions, root.first_sequence, known)?;
        let drive = Self::with(file, regions, powered, content, log, root, page);
        let mut checksums: BTreeMap<u32, u32> = BTreeMap::new();
        let used = drive.content.used_by(drive.device());
        let mut next = used.next(0);
        while let Some(slot) = next {
            checksums.insert(slot, drive.content.checksums()[slot as usize]);
            next = used.next(slot + 1);
        }
        for entry in &entries {
            if let Event::Write { slots, .. } | Event::Append { slots, .. } = &entry.event {
                checksums.extend(slots.iter().copied());
            }
        }
        let damaged_units = drive.count_damaged(&checksums)?;
        Ok(Checked {
            name: drive.config().name.clone(),
            made_by: drive.config().made_by.clone(),
            capacity_sectors: drive.device().capacity_sectors(),
            zones: drive.device().zoned().map(|ssd| ssd.zone_shape().zones),
            is_closed: root.is_closed && entries.is_empty(),
            checkpoints: root.generation,
            log_entries: entries.len() as u64,
            log_bytes: drive.log.len(),
            units: checksums.len() as u64,
            damaged_units,
        })
    }

    fn count_damaged(&self, checksums: &BTreeMap<u32, u32>) -> Result<u64, ImageError> {
        let mut unit = vec![0; self.unit_bytes() as usize];
        let mut damaged = 0;
        for (&slot, &checksum) in checksums {
            let is_whole = self.content.read_slot(&self.file, slot, Some(checksum), &mut unit)?;
            damaged += u64::from(!is_whole);
        }
        Ok(damaged)
    }

    /// Copies an image, holes left as holes. `to` must not exist; it appears whole or not at all.
    ///
    /// # Errors
    /// If the image is in use, or the copy cannot be written.
    pub fn copy(from: &Path, to: &Path) -> Result<(), ImageError> {
        let file = ImageFile::open(from)?;
        read_head(&file)?;
        file.copy_to(to)
    }

    /// The findings about an image that may be damaged elsewhere.
    ///
    /// # Errors
    /// If it is no image, or in use.
    pub fn config_of(path: &Path) -> Result<ImageConfig, ImageError> {
        Ok(read_head(&ImageFile::open(path)?)?.config)
    }

    /// How long the newest checkpoint of an image is, which may be damaged elsewhere.
    ///
    /// # Errors
    /// As [`Drive::config_of`].
    pub fn checkpoint_bytes_of(path: &Path) -> Result<u64, ImageError> {
        Ok(Root::read(&ImageFile::open(path)?)?.checkpoint_bytes)
    }
}
