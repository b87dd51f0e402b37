//! Looking for the journal of the file system on a block device that tells journals apart by their superblocks.
//!
//! The device moves no bytes, so the drive looks: when it is opened, after a power cut, and when the device says that what the
//! journal was found by has changed. What it finds goes into the log, for the bytes may be gone when the log is run again.

use std::ops::Range;

use leyden_device::{Lba, SECTOR_BYTES};
use leyden_host::zoned_block::superblock::{self, Journal};

use super::Drive;
use crate::ImageError;
use crate::log::Event;

/// The journal on `drive`, and the bytes that it was found by.
pub(super) fn find(drive: &Drive) -> Result<(Vec<Range<u64>>, Journal), ImageError> {
    let capacity = drive.capacity_sectors() * SECTOR_BYTES;
    let mut failed = None;
    let found = superblock::find(capacity, |range| match bytes(drive, &range) {
        Ok(bytes) => bytes,
        Err(error) => {
            failed = Some(error);
            None
        }
    });
    failed.map_or(Ok(found), Err)
}

/// The newest bytes of `range`, which is the drive's; `None` if they cannot be read.
fn bytes(drive: &Drive, range: &Range<u64>) -> Result<Option<Vec<u8>>, ImageError> {
    let (first, end) = (range.start / SECTOR_BYTES, range.end.div_ceil(SECTOR_BYTES));
    let sectors = drive.peek(Lba(first), (end - first) as u32)?;
    let skipped = (range.start - first * SECTOR_BYTES) as usize;
    let length = (range.end - range.start) as usize;
    Ok(sectors.map(|bytes| bytes[skipped..skipped + length].to_vec()))
}

/// Its entry in the log.
pub(super) fn event(sources: Vec<Range<u64>>, journal: &Journal) -> Event {
    let journal = match journal {
        Journal::At(ranges) => Some(ranges.clone()),
        Journal::Nowhere(_) => None,
    };
    Event::Journal { sources, journal }
}
