//! The drive of a crash test: the modelled one, scaled down to what the test needs.

use leyden_device::{Config, provision_of};

use crate::error::CrashError;

/// The fewest pages of a block, and the most blocks of a plane, that are looked at.
const PAGES_LEAST: u32 = 8;
const BLOCKS_MOST: u32 = 128;

/// Scales `drive` down to the least flash that holds `size_bytes`: fewer and shorter blocks. Channels, dies,
/// planes, pages, times, the buffer and the capacitors stay as they are, and with them what a cut takes.
///
/// # Errors
/// If the drive as it is is too small, or zoned.
pub fn fit(drive: &mut Config, size_bytes: u64) -> Result<(), CrashError> {
    if drive.zoned.is_some() {
        let problem =
            "a zoned drive has no file systems of this kind on it\n  help: name another drive";
        return Err(CrashError::Input(problem.to_owned()));
    }
    let unit = drive.ftl.mapping_unit.get();
    let holds = |drive: &Config| {
        provision_of(drive).is_ok_and(|made| u64::from(made.mapping_units) * unit >= size_bytes)
    };
    if !holds(drive) {
        let capacity =
            provision_of(drive).map_or(0, |made| u64::from(made.mapping_units) * unit) >> 20;
        let problem = format!(
            "the drive holds {capacity} MiB, and {} MiB are asked for\n  help: lower --size, or raise \
             device.nand.blocks_per_plane with --set",
            size_bytes >> 20
        );
        return Err(CrashError::Input(problem));
    }
    let (pages, blocks) = (drive.nand.pages_per_block, drive.nand.blocks_per_plane);
    let halves = std::iter::successors(Some(pages), |pages| Some(pages / 2));
    let mut best = (u64::from(pages) * u64::from(blocks), pages, blocks);
    for pages in halves.take_while(|&pages| pages >= PAGES_LEAST) {
        let with = |blocks: u32| {
            let mut smaller = drive.clone();
            (smaller.nand.pages_per_block, smaller.nand.blocks_per_plane) = (pages, blocks);
            smaller
        };
        if let Some(blocks) = (1..=blocks.min(BLOCKS_MOST)).find(|&blocks| holds(&with(blocks))) {
            best = best.min((u64::from(pages) * u64::from(blocks), pages, blocks));
        }
    }
    (_, drive.nand.pages_per_block, drive.nand.blocks_per_plane) = best;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_is_scaled_down_and_keeps_its_parallelism() {
        let mut drive = Config::default();
        fit(&mut drive, 256 << 20).unwrap();
        let units = provision_of(&drive).unwrap().mapping_units;
        assert!((256 << 20..1 << 30).contains(&(u64::from(units) * 4_096)), "{units}");
        assert_eq!(drive.nand.channels, Config::default().nand.channels);
        let flash = u64::from(drive.nand.blocks_per_plane) * u64::from(drive.nand.pages_per_block);
        assert!(flash < 128 * 256 / 4);
    }

    #[test]
    fn a_drive_that_is_too_small_is_refused() {
        let refused = fit(&mut Config::default(), 1 << 40).unwrap_err().to_string();
        assert!(refused.contains("--size"), "{refused}");
    }
}
