//! Room that is kept for the next checkpoint: with it an image on a full file system can be closed, and gets back what its
//! log takes up.

use crate::ImageError;
use crate::file::ImageFile;
use crate::layout::{Regions, Root};

/// Room is taken in pieces of this size.
const PIECE: u64 = 1 << 20;
/// Bytes by which a checkpoint grows at most, as a rule, for each unit that the host writes: what flash holds of it,
/// copies of it and of others, and its checksum.
const UNIT_MOST: u64 = 192;
/// A log of so many bytes is worth a checkpoint to those who have no room.
const WORTH_IT: u64 = 256 << 10;

/// Space kept for the next checkpoint, since the last one.
#[derive(Debug, Default)]
pub(super) struct Spare {
    /// Bytes from the beginning of its region on.
    reserved: u64,
    /// Units that the host wrote.
    units: u64,
    /// A command was refused since there was no room.
    is_short: bool,
}

impl Spare {
    /// Takes room, before `units` more are written.
    pub(super) fn reserve(
        &mut self,
        file: &ImageFile,
        regions: Regions,
        root: &Root,
        units: u32,
    ) -> Result<(), ImageError> {
        let (begin, most) = regions.checkpoint(root.next_area());
        let all = self.units + u64::from(units);
        let wanted = root.checkpoint_bytes + PIECE + all * UNIT_MOST;
        if wanted.min(most) > self.reserved {
            let to = wanted.next_multiple_of(PIECE).min(most);
            file.allocate(begin + self.reserved, to - self.reserved)?;
            self.reserved = to;
        }
        self.units = all;
        Ok(())
    }

    /// Notes that a command was refused.
    pub(super) fn refused(&mut self, error: &ImageError) {
        self.is_short |= error.is_full();
    }

    /// True if a checkpoint would give room to those who have none.
    pub(super) const fn is_wanted(&self, log_bytes: u64) -> bool {
        self.is_short && log_bytes > WORTH_IT
    }
}
