//! Reading and writing.

use std::ffi::c_void;

use crate::arguments::flags_of;
use crate::border;
use crate::handle::Handle;
use crate::statuses::Failure;
use crate::types::*;

// Reading and writing.

/// Reads `length_bytes` bytes from `offset_bytes` on. What was never written reads as zeroes, in zones everything above
/// what they hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leyden_read(
    drive: *mut leyden_drive,
    offset_bytes: u64,
    buffer: *mut c_void,
    length_bytes: usize,
) -> leyden_status {
    // SAFETY: the caller's pointers are what the header asks for.
    unsafe {
        border::call_on(drive, |handle| {
            handle.read(offset_bytes, border::bytes_mut(buffer, length_bytes)?)
        })
    }
}

/// Writes `length_bytes` bytes at `offset_bytes`. `flags` are `LEYDEN_FUA` and `LEYDEN_PLP`.
///
/// A zone is written at its write pointer only. A zone with a Zone Random Write Area is written anywhere from its write
/// pointer up to twice the size of the area above it, in any order, and again: so the last block of a log can be
/// written anew with each record that is added to it. All of the area lies in the protected region of the buffer,
/// whatever the flags. A write that ends beyond it commits the lowest blocks, which cannot be written any more, and the
/// area moves up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leyden_write(
    drive: *mut leyden_drive,
    offset_bytes: u64,
    buffer: *const c_void,
    length_bytes: usize,
    flags: u32,
) -> leyden_status {
    // SAFETY: the caller's pointers are what the header asks for.
    unsafe {
        border::call_on(drive, |handle| {
            let data = border::bytes(buffer, length_bytes)?;
            handle.write(offset_bytes, data, flags_of(flags)?)
        })
    }
}

/// Appends `length_bytes` bytes to zone `zone`, and puts the offset at which they lie into `*offset_bytes`. `flags` are
/// as for `leyden_write`. Zones with a Zone Random Write Area take no appends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leyden_append(
    drive: *mut leyden_drive,
    zone: u32,
    buffer: *const c_void,
    length_bytes: usize,
    flags: u32,
    offset_bytes: *mut u64,
) -> leyden_status {
    // SAFETY: the caller's pointers are what the header asks for.
    unsafe {
        border::call_on(drive, |handle| {
            let data = border::bytes(buffer, length_bytes)?;
            if offset_bytes.is_null() {
                return Err(Failure::argument("where the offset goes is NULL"));
            }
            let at = handle.append(zone, data, flags_of(flags)?)?;
            border::put_number(offset_bytes, at)
        })
    }
}

/// Returns when everything that was acknowledged before survives a power cut.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leyden_flush(drive: *mut leyden_drive) -> leyden_status {
    // SAFETY: the caller's handle is one.
    unsafe { border::call_on(drive, Handle::flush) }
}

/// Tells a conventional drive that these bytes are not needed any more: whole units of them read as zeroes. Zones are
/// reset instead: of a zoned drive this changes nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leyden_trim(
    drive: *mut leyden_drive,
    offset_bytes: u64,
    length_bytes: u64,
) -> leyden_status {
    // SAFETY: the caller's handle is one.
    unsafe { border::call_on(drive, |handle| handle.trim(offset_bytes, length_bytes)) }
}
