//! Zones.

use leyden_device::ZoneAction;

use crate::border;
use crate::handle::Handle;
use crate::statuses::Failure;
use crate::types::*;

// Zones.

/// Describes up to `zone_count` zones from `first_zone` on, in `zones`, whose elements are `zone_bytes` apart
/// (`sizeof(leyden_zone)`). `*described` becomes how many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leyden_zone_report(
    drive: *mut leyden_drive,
    first_zone: u32,
    zone_count: u32,
    zones: *mut leyden_zone,
    zone_bytes: usize,
    described: *mut u32,
) -> leyden_status {
    let run = |handle: &Handle| {
        let all = handle.report(first_zone, zone_count)?;
        let count = all.len() as u32;
        // SAFETY: the caller's pointers are what the header asks for.
        unsafe {
            border::put_array(zones, zone_bytes, all.into_iter())?;
            border::put_number(described, count)
        }
    };
    // SAFETY: the caller's handle is one.
    unsafe { border::call_on(drive, run) }
}

/// Opens a zone explicitly. With `LEYDEN_ZONE_ZRWA` in `flags` it gets a Zone Random Write Area, which it has until it is
/// full or reset, over power cuts, too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leyden_zone_open(
    drive: *mut leyden_drive,
    zone: u32,
    flags: u32,
) -> leyden_status {
    let run = |handle: &Handle| {
        if flags & !LEYDEN_ZONE_ZRWA != 0 {
            return Err(Failure::argument(format!("unknown flags {flags:#x}")));
        }
        handle.act(ZoneAction::Open, Some(zone), flags & LEYDEN_ZONE_ZRWA != 0)
    };
    // SAFETY: the caller's handle is one.
    unsafe { border::call_on(drive, run) }
}

/// Closes a zone: it stays active.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leyden_zone_close(drive: *mut leyden_drive, zone: u32) -> leyden_status {
    // SAFETY: the caller's handle is one.
    unsafe { border::call_on(drive, |handle| handle.act(ZoneAction::Close, Some(zone), false)) }
}

/// Finishes a zone: it is full, and takes no resources any more. What its Zone Random Write Area holds is dropped:
/// commit it before (`leyden_zrwa_commit`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leyden_zone_finish(drive: *mut leyden_drive, zone: u32) -> leyden_status {
    // SAFETY: the caller's handle is one.
    unsafe { border::call_on(drive, |handle| handle.act(ZoneAction::Finish, Some(zone), false)) }
}

/// Resets a zone: it is empty.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leyden_zone_reset(drive: *mut leyden_drive, zone: u32) -> leyden_status {
    // SAFETY: the caller's handle is one.
    unsafe { border::call_on(drive, |handle| handle.act(ZoneAction::Reset, Some(zone), false)) }
}

/// Resets every zone that is open, closed or full.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leyden_zone_reset_all(drive: *mut leyden_drive) -> leyden_status {
    // SAFETY: the caller's handle is one.
    unsafe { border::call_on(drive, |handle| handle.act(ZoneAction::Reset, None, false)) }
}

/// Commits a Zone Random Write Area up to `end_bytes`, an offset within or at the end of the area: the write pointer
/// moves there, and what is below cannot be written any more. The length from the write pointer must be a multiple of
/// `zrwa_granularity_bytes`. Committed data stays protected until it is on flash. Blocks that were not written are
/// zeroes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leyden_zrwa_commit(
    drive: *mut leyden_drive,
    end_bytes: u64,
) -> leyden_status {
    // SAFETY: the caller's handle is one.
    unsafe { border::call_on(drive, |handle| handle.commit(end_bytes)) }
}
