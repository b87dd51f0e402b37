//! The drive of a crash test: the modelled one, scaled to what the test needs.

use leyden_device::Config;

use crate::error::CrashError;

/// Scales `drive` to the least flash that holds `size_bytes`, as `leyden image create --size` does.
///
/// # Errors
/// If it is zoned, or no flash of its kind holds that.
pub fn fit(drive: &mut Config, size_bytes: u64) -> Result<(), CrashError> {
    if drive.zoned.is_some() {
        let problem =
            "a zoned drive has no file systems of this kind on it\n  help: name another drive";
        return Err(CrashError::Input(problem.to_owned()));
    }
    leyden_device::fit(drive, size_bytes).map_err(|error| CrashError::Input(error.to_string()))
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
    fn a_drive_grows_as_far_as_flash_can_be_addressed() {
        let mut drive = Config::default();
        fit(&mut drive, 1 << 40).unwrap();
        assert_eq!(u64::from(provision_of(&drive).unwrap().mapping_units) * 4_096, 1 << 40);
        let refused = fit(&mut drive, 1 << 50).unwrap_err().to_string();
        assert!(refused.contains("ftl.mapping_unit"), "{refused}");
    }
}
