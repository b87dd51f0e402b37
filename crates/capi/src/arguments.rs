//! Arguments and results that take more than a pointer: flags, options, settings, reports.

use std::ffi::{OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use leyden_config::{Loaded, Set};
use leyden_image::{Drive, ImageConfig, WriteFlags};
use leyden_serve::{CutReport, Pace};

use crate::border;
use crate::handle::{Options, in_bytes};
use crate::statuses::Failure;
use crate::types::*;

/// The flags of a write.
pub(crate) fn flags_of(flags: u32) -> Result<WriteFlags, Failure> {
    if flags & !(LEYDEN_FUA | LEYDEN_PLP) != 0 {
        return Err(Failure::argument(format!("unknown flags {flags:#x}")));
    }
    Ok(WriteFlags { fua: flags & LEYDEN_FUA != 0, plp: flags & LEYDEN_PLP != 0 })
}

/// How an image is to be opened.
///
/// # Safety
/// `options` is null, or what the header asks for; its texts stay as they are for `'a`.
pub(crate) unsafe fn options_of<'a>(
    options: *const leyden_open_options,
) -> Result<Options<'a>, Failure> {
    let mut told =
        Options { pace: Pace::Untimed, record: None, stays_off: false, has_control: false };
    if options.is_null() {
        return Ok(told);
    }
    // SAFETY: as promised.
    let options = unsafe { border::take(options) }?;
    if options.flags & !(LEYDEN_OPEN_POWER_OFF | LEYDEN_OPEN_CONTROL) != 0 {
        return Err(Failure::argument(format!("unknown flags {:#x}", options.flags)));
    }
    told.stays_off = options.flags & LEYDEN_OPEN_POWER_OFF != 0;
    told.has_control = options.flags & LEYDEN_OPEN_CONTROL != 0;
    told.pace = match options.speed {
        0.0 => Pace::Untimed,
        speed if (1e-6..=1e6).contains(&speed) => Pace::Times(speed),
        speed => {
            let problem = format!("a speed of {speed}: 0 turns the latency off, 1 is real time");
            return Err(Failure::argument(problem));
        }
    };
    if !options.record_path.is_null() {
        // SAFETY: as promised.
        told.record = Some(unsafe { border::path(options.record_path) }?);
    }
    Ok(told)
}

/// Whether a drive is to be claimed.
///
/// # Safety
/// `options` is null, or what the header asks for.
pub(crate) unsafe fn claims(options: *const leyden_connect_options) -> Result<bool, Failure> {
    if options.is_null() {
        return Ok(false);
    }
    // SAFETY: as promised.
    let options = unsafe { border::take(options) }?;
    if options.flags & !LEYDEN_CONNECT_CLAIM != 0 {
        return Err(Failure::argument(format!("unknown flags {:#x}", options.flags)));
    }
    Ok(options.flags & LEYDEN_CONNECT_CLAIM != 0)
}

/// The socket of an address.
pub(crate) fn socket_of(address: &Path) -> Result<&Path, Failure> {
    let path = address.as_os_str().as_bytes().strip_prefix(b"unix:");
    let path = path.filter(|path| !path.is_empty()).map(|path| Path::new(OsStr::from_bytes(path)));
    path.ok_or_else(|| Failure::argument(format!("{}: an address is unix:PATH", address.display())))
}

/// Settings of the caller.
///
/// # Safety
/// `settings` has `count` texts.
pub(crate) unsafe fn settings_of(
    settings: *const *const c_char,
    count: usize,
) -> Result<Vec<Set>, Failure> {
    if count > 0 && settings.is_null() {
        return Err(Failure::argument("the settings are NULL"));
    }
    let setting = |at: usize| {
        // SAFETY: as promised.
        let text = unsafe { border::utf8("setting", settings.add(at).read()) }?;
        let set = Set::of_option("setting", text);
        set.map_err(|problem| Failure::new(LEYDEN_E_CONFIG, problem.to_string()))
    };
    (0..count).map(setting).collect()
}

/// Makes an image.
pub(crate) fn create(path: &Path, drive: &str, settings: &[Set]) -> Result<(), Failure> {
    let loaded = Loaded::new(drive, settings)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let scenario = &loaded.scenario;
    let config = ImageConfig::new(name, scenario.seed, scenario.device.clone());
    Ok(Drive::create(path, config)?.close()?)
}

/// A power cut as the caller is told of it.
pub(crate) fn told(cut: &CutReport) -> leyden_cut_report {
    let lost = in_bytes(&cut.lost);
    leyden_cut_report {
        size: 0,
        interrupted_commands: cut.interrupted_commands as u32,
        time_ns: cut.time_ns,
        dumped_bytes: cut.dumped_bytes,
        dump_ns: cut.dump_ns,
        energy_nj: cut.energy_nj,
        energy_left_nj: cut.energy_left_nj,
        torn_pages: cut.torn_pages,
        lost_ranges: lost.len() as u64,
        lost_bytes: lost.map(|range| range.length_bytes).sum(),
    }
}
