//! Limits of a drive in a browser, whose memory is small and whose page must answer.

use leyden_device::Config;
use leyden_ftl::map::ProtectionConfig;
use leyden_sim::{Bytes, Ratio};

use crate::ask::Open;

/// Mapping units of the flash: 4 GiB in units of 4 KiB, and some 100 MB of memory.
const UNITS_MOST: u32 = 1 << 20;
/// Mapping units of the write buffer.
const SLOTS_MOST: u64 = 1 << 18;
/// The mapping table's journal in DRAM.
const JOURNAL_MOST: Bytes = Bytes::new(64 << 20);
/// Overwriting takes as long as writing.
const OVERWRITE_MOST: Ratio = Ratio::from_percent(400);

/// Refuses a drive that is too large for a browser, or of another kind.
///
/// # Errors
/// Names the key, the limit and the remedy.
pub(crate) fn check(open: &Open) -> Result<(), String> {
    let device = &open.device;
    if device.zoned.is_some() {
        return Err("device.zoned: a drive in a browser is a conventional one: leave this table out, or use `leyden run`".to_owned());
    }
    let geometry = device.geometry().map_err(|error| format!("device.{error}"))?;
    if geometry.units() > UNITS_MOST {
        let flash = Bytes::new(geometry.flash_bytes());
        return Err(format!(
            "device.nand: {flash} of flash have {} mapping units, and a browser holds {UNITS_MOST}: use fewer or smaller blocks, or larger mapping units",
            geometry.units()
        ));
    }
    check_memory(device, geometry.unit_bytes())?;
    if open.overwrite > OVERWRITE_MOST {
        return Err(format!("overwrite: {} is more than {OVERWRITE_MOST}", open.overwrite));
    }
    if open.overwrite > Ratio::ZERO && !open.fill {
        return Err(
            "overwrite: nothing is there to be overwritten: set `fill`, or `overwrite` to 0"
                .to_owned(),
        );
    }
    Ok(())
}

fn check_memory(device: &Config, unit_bytes: u32) -> Result<(), String> {
    let most = Bytes::new(SLOTS_MOST * u64::from(unit_bytes));
    if device.buffer.size > most {
        return Err(format!("device.buffer.size: {} is more than {most}", device.buffer.size));
    }
    match &device.ftl.map.protection {
        ProtectionConfig::Journal(journal) if journal.size > JOURNAL_MOST => Err(format!(
            "device.ftl.map.protection.size: {} is more than {JOURNAL_MOST}",
            journal.size
        )),
        _ => Ok(()),
    }
}
