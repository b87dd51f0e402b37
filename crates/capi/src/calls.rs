//! The library's functions for a caller in C.

use std::ffi::c_char;

use crate::arguments::{claims, create, options_of, settings_of, socket_of};
use crate::border::{self, call};
use crate::handle::Handle;
use crate::statuses;
use crate::types::*;

pub mod data;
pub mod switch;
pub mod zones;

// Versions and errors.

/// The version of the interface that this library has: compare it with `LEYDEN_ABI_VERSION`.
#[unsafe(no_mangle)]
pub extern "C" fn leyden_abi_version() -> u32 {
    LEYDEN_ABI_VERSION
}

/// The version of Leyden, as text.
#[unsafe(no_mangle)]
pub extern "C" fn leyden_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// The name of a status, such as "Zone Is Full"; never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn leyden_status_name(status: leyden_status) -> *const c_char {
    statuses::name_of(status).as_ptr()
}

/// The message of this thread's last failed call, with its remedy; an empty text if none has
/// failed. It is valid until the next failing call of this thread. Never NULL.
#[unsafe(no_mangle)]
pub extern "C" fn leyden_last_error() -> *const c_char {
    border::last_error()
}

// Images.

/// Makes an image with an empty drive, at `path`.
///
/// `drive` names a scenario whose table `[device]` describes it: a file, or a bundled one such as "devices/zns".
/// `settings` are `setting_count` texts that change it, such as "device.zoned.zrwa.count=8", or "seed=7"; NULL for
/// none. A drive without a table `[device.power]` gets the default one.
///
/// Fails with `LEYDEN_E_EXISTS`, `LEYDEN_E_NOT_FOUND`, `LEYDEN_E_CONFIG`, `LEYDEN_E_NO_SPACE` or `LEYDEN_E_IO`; there is no
/// image then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leyden_create(
    path: *const c_char,
    drive: *const c_char,
    settings: *const *const c_char,
    setting_count: usize,
) -> leyden_status {
    call(|| {
        // SAFETY: the caller's pointers are what the header asks for.
        let (path, drive) = unsafe { (border::path(path)?, border::utf8("drive", drive)?) };
        // SAFETY: the same.
        let settings = unsafe { settings_of(settings, setting_count) }?;
        create(path, drive, &settings).map_err(|failure| failure.about(path.display()))
    })
}

/// Opens the image at `path`, and puts its drive into `*drive`.
///
/// `options` may be NULL: latency off. `report` may be NULL. If the process that had the image last did not close
/// it, that was a power cut: the drive is brought to the moment of its death, the capacitors save what they reach, and
/// the power is turned on again, unless `LEYDEN_OPEN_POWER_OFF` is given.
///
/// Fails with `LEYDEN_E_NOT_FOUND`, `LEYDEN_E_IN_USE`, `LEYDEN_E_FOREIGN`, `LEYDEN_E_DAMAGED`, `LEYDEN_E_DIVERGED`,
/// `LEYDEN_E_EXISTS` (the recording) or `LEYDEN_E_IO`; `*drive` is NULL then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leyden_open(
    path: *const c_char,
    options: *const leyden_open_options,
    report: *mut leyden_open_report,
    drive: *mut *mut leyden_drive,
) -> leyden_status {
    call(|| {
        let none = std::ptr::null_mut();
        // SAFETY: the caller's pointers are what the header asks for.
        let (path, options) = unsafe {
            border::put_number(drive, none)?;
            border::check_wanted(report)?;
            (border::path(path)?, options_of(options)?)
        };
        let opened = Handle::open(path, &options);
        let (handle, cut, replayed_commands) =
            opened.map_err(|failure| failure.about(path.display()))?;
        let found =
            leyden_open_report { size: 0, was_killed: u32::from(cut.is_some()), replayed_commands };
        // SAFETY: the same.
        unsafe {
            border::put_if_wanted(report, &found)?;
            border::put_number(drive, border::to_c(handle))
        }
    })
}

/// Connects to a drive that another process serves (`leyden serve IMAGE --programs unix:PATH`), and puts it into
/// `*drive`. `address` is `unix:PATH`. `options` may be NULL.
///
/// All calls on it do what they do on a drive in an image, for any number of programs at once. When the server is
/// gone they fail with `LEYDEN_E_GONE`, those under way too: whether these have happened is not known. If it was killed, that
/// was a power cut. Serve the image again, and connect again.
///
/// Fails with `LEYDEN_E_NOT_FOUND` (nobody serves a drive there), `LEYDEN_E_IN_USE` (`LEYDEN_CONNECT_CLAIM`, and
/// somebody else has claimed it), `LEYDEN_E_FOREIGN` (the server speaks another version), `LEYDEN_E_ARGUMENT` or
/// `LEYDEN_E_GONE`; `*drive` is NULL then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leyden_connect(
    address: *const c_char,
    options: *const leyden_connect_options,
    drive: *mut *mut leyden_drive,
) -> leyden_status {
    call(|| {
        let none = std::ptr::null_mut();
        // SAFETY: the caller's pointers are what the header asks for.
        let (address, claims) = unsafe {
            border::put_number(drive, none)?;
            (border::path(address)?, claims(options)?)
        };
        let handle = Handle::connect(socket_of(address)?, claims);
        let handle = handle.map_err(|failure| failure.about(address.display()))?;
        // SAFETY: the same.
        unsafe { border::put_number(drive, border::to_c(handle)) }
    })
}

/// Lets the drive come to rest, and closes the image; hangs up on a served drive, which goes on. The handle is gone even if that fails; the next
/// opening is a power cut then. NULL is ignored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leyden_close(drive: *mut leyden_drive) -> leyden_status {
    // SAFETY: the caller gives the handle away.
    let handle = unsafe { border::from_c(drive) };
    call(|| handle.map_or(Ok(()), Handle::close))
}

/// Leaves the image as if this process were killed now: the next opening is a power cut at this moment. A served drive
/// goes on. The handle is gone. NULL is ignored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leyden_abandon(drive: *mut leyden_drive) {
    // SAFETY: the caller gives the handle away.
    let handle = unsafe { border::from_c(drive) };
    call(|| {
        if let Some(handle) = handle {
            handle.abandon();
        }
        Ok(())
    });
}

// The drive.

/// The drive's sizes and limits, and the part of its buffer that capacitors protect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leyden_identify(
    drive: *mut leyden_drive,
    identity: *mut leyden_identity,
) -> leyden_status {
    // SAFETY: the caller's pointers are what the header asks for.
    unsafe { border::call_on(drive, |handle| border::put(identity, &handle.identity())) }
}

/// Counters, and what the drive holds now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leyden_get_stats(
    drive: *mut leyden_drive,
    stats: *mut leyden_stats,
) -> leyden_status {
    // SAFETY: the caller's pointers are what the header asks for.
    unsafe { border::call_on(drive, |handle| border::put(stats, &handle.stats()?)) }
}

/// Every counter of every layer as JSON, with a final NUL. `*needed_bytes` becomes the size that it takes. If
/// `buffer_bytes` is less, as much as fits is written, and a NUL; `buffer` may be NULL if it is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leyden_get_stats_json(
    drive: *mut leyden_drive,
    buffer: *mut c_char,
    buffer_bytes: usize,
    needed_bytes: *mut usize,
) -> leyden_status {
    let run = |handle: &Handle| {
        let json = handle.stats_json()?;
        let count = json.len().min(buffer_bytes.saturating_sub(1));
        // SAFETY: the caller's pointers are what the header asks for.
        unsafe {
            border::put_number(needed_bytes, json.len() + 1)?;
            if buffer_bytes > 0 {
                let buffer = border::bytes_mut(buffer.cast(), buffer_bytes)?;
                buffer[..count].copy_from_slice(&json.as_bytes()[..count]);
                buffer[count] = 0;
            }
        }
        Ok(())
    };
    // SAFETY: the same.
    unsafe { border::call_on(drive, run) }
}

/// Notes a text in the recording, in order with the drive's commands. Without a recording it goes nowhere.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leyden_mark(
    drive: *mut leyden_drive,
    text: *const c_char,
    text_bytes: usize,
) -> leyden_status {
    // SAFETY: the caller's pointers are what the header asks for.
    unsafe { border::call_on(drive, |handle| handle.mark(border::bytes(text.cast(), text_bytes)?)) }
}
