//! A drive that lies, as a control for tests of what is written on it.

use std::time::Instant;

use leyden_device::{Lba, SECTOR_BYTES};
use leyden_image::WriteFlags;

use super::{Ask, Engine, Reply};

/// Promises that a drive breaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lies {
    /// Flushes are answered and not done, and force unit access is left out.
    pub flushes: bool,
    /// Writes are said to be atomic, and go to the drive in mapping units, each by itself.
    pub atomic: bool,
}

impl Engine {
    /// Writes mapping unit by mapping unit. The last one is answered.
    pub(super) fn tear(
        &mut self,
        lba: Lba,
        data: &[u8],
        flags: WriteFlags,
        reply: Reply,
        ready: Instant,
    ) {
        let unit_sectors = u64::from(self.drive.unit_bytes()) / SECTOR_BYTES;
        let (mut at, mut rest) = (lba.0, data);
        loop {
            let bytes = ((unit_sectors - at % unit_sectors) * SECTOR_BYTES) as usize;
            if bytes >= rest.len() {
                return self.submit(&Ask::Write(Lba(at), rest.to_vec(), flags), reply, ready);
            }
            let (part, others) = rest.split_at(bytes);
            self.submit(&Ask::Write(Lba(at), part.to_vec(), flags), Reply::nobody(), ready);
            (at, rest) = (at + bytes as u64 / SECTOR_BYTES, others);
        }
    }
}
