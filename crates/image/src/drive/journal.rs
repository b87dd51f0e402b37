//! The journal of the file system on a block device that tells journals apart by their superblocks.
//!
//! The device moves no bytes, so the drive looks for it: when it is opened, after a power cut, and when the device says
//! that what the journal was found by has changed. What it finds goes into the log, for the bytes may be gone when the log
//! is run again.

use std::ops::Range;

use leyden_device::{Lba, SECTOR_BYTES};
use leyden_host::zoned_block::superblock::{self, Journal, Why};
use leyden_sim::Time;

use super::Drive;
use crate::ImageError;
use crate::log::Event;
use crate::stack::Stack;

impl Drive {
    /// Looks again if the device says so.
    pub(super) fn follow_journal(&mut self) -> Result<(), ImageError> {
        let has_changed = self.powered.stack_mut().is_some_and(Stack::take_superblock_changed);
        if has_changed && !self.is_off() { self.find_journal() } else { Ok(()) }
    }

    /// Looks for the journal, and tells the device, if it wants to know.
    pub(super) fn find_journal(&mut self) -> Result<(), ImageError> {
        if !self.device().stack().is_some_and(Stack::needs_superblocks) {
            return Ok(());
        }
        let capacity = self.capacity_sectors() * SECTOR_BYTES;
        let mut failed = None;
        let (sources, journal) = superblock::find(capacity, |range| match self.bytes(&range) {
            Ok(bytes) => bytes,
            Err(error) => {
                failed = Some(error);
                None
            }
        });
        if let Some(error) = failed {
            return Err(error);
        }
        let now = self.now();
        let ranges = match &journal {
            Journal::At(ranges) => Some(ranges.clone()),
            Journal::Nowhere(_) => None,
        };
        let event = Event::Journal { sources: sources.clone(), journal: ranges };
        self.log.prepare(&self.file, event.slots())?;
        self.note(now, &event, &[]);
        if let Some(stack) = self.powered.stack_mut() {
            stack.found_journal(now, sources, journal);
        }
        Ok(())
    }

    /// The newest bytes of `range`, which is the device's; `None` if they cannot be read.
    fn bytes(&self, range: &Range<u64>) -> Result<Option<Vec<u8>>, ImageError> {
        let (first, end) = (range.start / SECTOR_BYTES, range.end.div_ceil(SECTOR_BYTES));
        let sectors = self.peek(Lba(first), (end - first) as u32)?;
        let skipped = (range.start - first * SECTOR_BYTES) as usize;
        let length = (range.end - range.start) as usize;
        Ok(sectors.map(|bytes| bytes[skipped..skipped + length].to_vec()))
    }

    /// Where the log says that the journal was found. Why there was none is not known any more.
    pub(super) fn believe_journal(
        &mut self,
        time: Time,
        sources: Vec<Range<u64>>,
        journal: Option<Vec<Range<u64>>>,
    ) {
        let journal = journal.map_or(Journal::Nowhere(Why::NoFileSystem), Journal::At);
        if let Some(stack) = self.powered.stack_mut() {
            stack.found_journal(time, sources, journal);
        }
    }

    /// What a checkpoint does to a block device on two drives.
    pub(super) fn remount(&mut self, time: Time) {
        self.powered.settle(time);
        self.powered.remount();
    }
}
