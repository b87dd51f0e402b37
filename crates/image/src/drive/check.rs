//! What is whole in an image, and copies of it. Neither changes it.

use std::collections::BTreeMap;
use std::path::Path;

use leyden_device::BlockDevice;

use super::replay::load;
use super::{Drive, Log, Regions, Root};
use crate::ImageError;
use crate::file::ImageFile;
use crate::layout::{Clock, ImageConfig, read_head};
use crate::log::Event;

/// What a check has found.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Checked {
    /// What the drive is called.
    pub name: String,
    /// The version of Leyden that made it.
    pub made_by: String,
    /// Sectors that can be addressed.
    pub capacity_sectors: u64,
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
    /// Reads all of an image, and says what it has found.
    ///
    /// # Errors
    /// If it is no image, or in use, or something is damaged without which it cannot be opened.
    pub fn check(path: &Path) -> Result<Checked, ImageError> {
        let file = ImageFile::open(path)?;
        let (config, units) = read_head(&file)?;
        let regions = Regions::new(units);
        let (root, clock) = (Root::read(&file)?, Clock::read(&file)?);
        let known = if clock.generation == root.generation { clock.next_sequence } else { 0 };
        let (powered, content) = load(&file, regions, config, &root)?;
        let (log, entries) = Log::read(&file, regions, root.first_sequence, known)?;
        let drive = Self::with(file, regions, powered, content, log, root);
        let mut checksums: BTreeMap<u32, u32> = BTreeMap::new();
        let used = drive.content.used_by(drive.device());
        let mut next = used.next(0);
        while let Some(slot) = next {
            checksums.insert(slot, drive.content.checksums()[slot as usize]);
            next = used.next(slot + 1);
        }
        for entry in &entries {
            if let Event::Write { slots, .. } = &entry.event {
                checksums.extend(slots.iter().copied());
            }
        }
        let damaged_units = drive.count_damaged(&checksums)?;
        Ok(Checked {
            name: drive.config().name.clone(),
            made_by: drive.config().made_by.clone(),
            capacity_sectors: drive.device().capacity_sectors(),
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
        Ok(read_head(&ImageFile::open(path)?)?.0)
    }
}
