//! The drive's content as a host sees it, in and out, in no time.

use std::fs::File;
use std::os::unix::fs::FileExt;

use leyden_device::{Lba, SECTOR_BYTES};
use leyden_sim::ConfigError;

use crate::{Drive, ImageError, WriteFlags};

/// Sectors that are moved at once: a megabyte.
const CHUNK_SECTORS: u64 = (1 << 20) / SECTOR_BYTES;

/// Writes all that the drive holds to `raw`, holes left as holes. Returns the bytes that are no holes.
///
/// # Errors
/// If reading or writing fails, or some of the drive's bytes are damaged.
pub fn export(drive: &Drive, raw: &File) -> Result<u64, ImageError> {
    let capacity = drive.capacity_sectors();
    raw.set_len(capacity * SECTOR_BYTES)?;
    let (mut at, mut written) = (0, 0);
    while at < capacity {
        let sectors = CHUNK_SECTORS.min(capacity - at) as u32;
        for (count, is_hole) in drive.extents(Lba(at), sectors) {
            if !is_hole {
                let bytes = drive.peek(Lba(at), count)?.ok_or_else(|| {
                    ImageError::Damaged(format!("the bytes of {count} sectors at LBA {at}"))
                })?;
                raw.write_all_at(&bytes, at * SECTOR_BYTES)?;
                written += bytes.len() as u64;
            }
            at += u64::from(count);
        }
    }
    Ok(written)
}

/// Writes all of `raw`, which is no larger than the drive, and flushes; zeroes are left out. The drive
/// must be new, and a conventional one. Returns the bytes that were written.
///
/// # Errors
/// If reading or writing fails, or the drive does.
pub fn import(drive: &mut Drive, raw: &File) -> Result<u64, ImageError> {
    if drive.device().zoned().is_some() {
        let problem = "a raw image says nothing of zones: name a conventional drive";
        return Err(ConfigError::new("zoned", problem).into());
    }
    let length = raw.metadata()?.len();
    let mut bytes = vec![0; (CHUNK_SECTORS * SECTOR_BYTES) as usize];
    let (mut at, mut written) = (0, 0);
    while at < length {
        let count = (bytes.len() as u64).min(length - at) as usize;
        raw.read_exact_at(&mut bytes[..count], at)?;
        // The last sector may be a part of one.
        let whole = count.next_multiple_of(SECTOR_BYTES as usize);
        bytes[count..whole].fill(0);
        if bytes[..whole].iter().any(|&byte| byte != 0) {
            drive.write(
                drive.now(),
                0,
                Lba(at / SECTOR_BYTES),
                &bytes[..whole],
                WriteFlags::default(),
            )?;
            drive.finish_one()?;
            written += count as u64;
        }
        at += count as u64;
    }
    drive.flush(drive.now(), 0)?;
    drive.finish_one()?;
    Ok(written)
}
