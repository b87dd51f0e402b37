//! The switch.

use crate::arguments::told;
use crate::border;
use crate::handle::{Handle, in_bytes};
use crate::types::*;

// The switch.

/// Cuts the power: commands under way end with `LEYDEN_E_POWER_LOST`, capacitors save what is protected, and all
/// commands fail with `LEYDEN_NVME_NOT_READY` until `leyden_restore`. `report` may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leyden_cut(
    drive: *mut leyden_drive,
    report: *mut leyden_cut_report,
) -> leyden_status {
    let run = |handle: &Handle| {
        // SAFETY: the caller's pointers are what the header asks for.
        unsafe {
            border::check_wanted(report)?;
            let cut = handle.cut()?;
            border::put_if_wanted(report, &told(&cut))
        }
    };
    // SAFETY: the caller's handle is one.
    unsafe { border::call_on(drive, run) }
}

/// Returns the power, and waits until the drive has recovered; of a served one, commands wait for that. With a `capacitance_nf` above 0 the drive has a
/// bank of so many nanofarads from now on. `report` may be NULL.
///
/// Fails with `LEYDEN_E_SWITCH` if the power is on, and with `LEYDEN_E_CONFIG` if there can be no drive with this bank.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leyden_restore(
    drive: *mut leyden_drive,
    capacitance_nf: u64,
    report: *mut leyden_restore_report,
) -> leyden_status {
    let run = |handle: &Handle| {
        // SAFETY: the caller's pointers are what the header asks for.
        unsafe { border::check_wanted(report) }?;
        let recovery = handle.restore(capacitance_nf)?;
        let report_of = leyden_restore_report {
            size: 0,
            reserved: 0,
            ready_ns: recovery.ready_in_ns,
            scan_ns: recovery.scan_ns,
            charge_ns: recovery.charge_ns,
            scanned_pages: recovery.pages_scanned,
            restored_pages: recovery.pages_restored,
        };
        // SAFETY: the same.
        unsafe { border::put_if_wanted(report, &report_of) }
    };
    // SAFETY: the caller's handle is one.
    unsafe { border::call_on(drive, run) }
}

/// The last power cut of this handle, the death of the last process included; of a served drive the last one since it has
/// been served. Fails with `LEYDEN_E_NOT_FOUND` if there was
/// none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leyden_last_cut(
    drive: *mut leyden_drive,
    report: *mut leyden_cut_report,
) -> leyden_status {
    // SAFETY: the caller's pointers are what the header asks for.
    unsafe { border::call_on(drive, |handle| border::put(report, &told(&handle.last_cut()?))) }
}

/// Ranges that the last power cut has taken although they were promised to be kept: up to `range_count` of them into
/// `ranges`, whose elements are `range_bytes` apart (`sizeof(leyden_range)`). `*total` becomes how many there are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leyden_lost_ranges(
    drive: *mut leyden_drive,
    ranges: *mut leyden_range,
    range_count: usize,
    range_bytes: usize,
    total: *mut usize,
) -> leyden_status {
    let run = |handle: &Handle| {
        let cut = handle.last_cut()?;
        let lost = in_bytes(&cut.lost);
        let count = lost.len();
        // SAFETY: the caller's pointers are what the header asks for.
        unsafe {
            if range_count > 0 {
                border::put_array(ranges, range_bytes, lost.take(range_count))?;
            }
            border::put_number(total, count)
        }
    };
    // SAFETY: the caller's handle is one.
    unsafe { border::call_on(drive, run) }
}
