//! The drive's state before the first command: full, overwritten, and with nothing in its buffer.
//!
//! Its data has the stamp of data that was never written, as in the preconditioning of `leyden run`.

use leyden_device::{BlockDevice, Command, Completion, Lba, SECTOR_BYTES, Ssd, Stamp, Status};
use leyden_sim::{Ratio, Rng, Time};

/// Commands kept outstanding.
const DEPTH: u64 = 64;
/// Bytes of each write of the sequential fill.
const FILL_BYTES: u64 = 256 << 10;

/// Writes every address in order, then overwrites `share` of the capacity at random, and flushes.
///
/// # Errors
/// If a write fails.
pub(crate) fn fill(drive: &mut Ssd<Stamp>, share: Ratio, seed: u64) -> Result<(), String> {
    drive.set_untimed(true);
    let (capacity, step) = (drive.capacity_sectors(), FILL_BYTES / SECTOR_BYTES);
    let mut lba = 0;
    write_all(drive, capacity.div_ceil(step), || {
        let sectors = step.min(capacity - lba);
        lba += sectors;
        Command::write(Lba(lba - sectors), sectors as u32, 0)
    })?;
    let unit = u64::from(drive.geometry().unit_bytes()) / SECTOR_BYTES;
    let units = capacity / unit;
    let mut rng = Rng::new(seed, "fill");
    write_all(drive, share.of(units), || {
        Command::write(Lba(rng.below(units) * unit), unit as u32, 0)
    })?;
    write_all(drive, 1, Command::flush)?;
    drive.set_untimed(false);
    drive.forget_peaks();
    Ok(())
}

/// Gives `count` commands that `next` yields, and waits for them.
fn write_all(
    drive: &mut Ssd<Stamp>,
    count: u64,
    mut next: impl FnMut() -> Command<Stamp>,
) -> Result<(), String> {
    let mut left = count;
    for _ in 0..DEPTH.min(count) {
        drive.submit(drive.now(), next());
        left -= 1;
    }
    let mut done: Vec<Completion<Stamp>> = Vec::new();
    while drive.next_event().is_some() {
        drive.advance_until_completion(drive.now(), Time::MAX, &mut done);
        for ended in done.drain(..) {
            if ended.status != Status::Success {
                let problem = "the drive cannot be filled";
                return Err(format!(
                    "{problem}: a write ended with {:?}; make its flash fail less often",
                    ended.status
                ));
            }
            if left > 0 {
                left -= 1;
                drive.submit(ended.time, next());
            }
        }
    }
    Ok(())
}
