//! The drive of a crash test: the modelled one, scaled down to what the test needs.

use leyden_device::Config;
use leyden_image::capacity_bytes;

use crate::error::CrashError;

/// Scales `drive` down to the least flash that holds `size_bytes`, as `leyden image create --size` does.
///
/// # Errors
/// If the drive as it is is too small, or zoned.
pub fn fit(drive: &mut Config, size_bytes: u64) -> Result<(), CrashError> {
    if drive.zoned.is_some() {
        let problem =
            "a zoned drive has no file systems of this kind on it\n  help: name another drive";
        return Err(CrashError::Input(problem.to_owned()));
    }
    let capacity = capacity_bytes(drive).unwrap_or(0);
    if capacity < size_bytes {
        let problem = format!(
            "the drive holds {} MiB, and {} MiB are asked for\n  help: lower --size, or raise \
             device.nand.blocks_per_plane with --set",
            capacity >> 20,
            size_bytes >> 20
        );
        return Err(CrashError::Input(problem));
    }
    leyden_image::fit(drive, size_bytes).map_err(|error| CrashError::Input(error.to_string()))
}

#[cfg(test)]
mod tests {
    use leyden_device::provision_of;

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
