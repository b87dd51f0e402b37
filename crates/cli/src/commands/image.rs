//! `leyden image`: drives in files.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use leyden_config::{Loaded, Set};
use leyden_files::NewFile;
use leyden_image::{Checked, Drive, ImageConfig, ImageError, raw};

use super::{overrides, print_json};
use crate::args::served::{CreateArgs, ImageArgs, ImageCommand};
use crate::failure::Failure;
use crate::output::escape::is_obeyed;
use crate::output::progress::note;
use crate::output::table::Table;
use leyden_device::Config;
use leyden_sim::Ratio;

use leyden_report::format::{bytes, count};

pub(crate) fn main(command: &ImageCommand) -> Result<(), Failure> {
    match command {
        ImageCommand::Create(args) => create(args),
        ImageCommand::Info(args) => info(args),
        ImageCommand::Check(args) => check(args),
        ImageCommand::Clone { from, to } => {
            Drive::copy(from, to).map_err(|error| failure(from, Some(to), error))
        }
        ImageCommand::Export { from, to } => export(from, to),
        ImageCommand::Import { from, create } => import(from, create),
    }
}

fn create(args: &CreateArgs) -> Result<(), Failure> {
    let drive = made(args)?;
    let capacity = drive.capacity_sectors() * leyden_device::SECTOR_BYTES;
    drive.close().map_err(|error| failure(&args.file, None, error))?;
    writeln!(anstream::stdout(), "{}: {}", args.file.display(), bytes(capacity))?;
    Ok(())
}

fn export(from: &Path, to: &Path) -> Result<(), Failure> {
    fits(from)?;
    let raw = NewFile::create_private(to).map_err(Failure::io)?;
    let (mut drive, opened) = Drive::open(from).map_err(|error| failure(from, None, error))?;
    if opened.cut.is_some() {
        super::warn("the last server was killed: the export has the data after that power cut");
    }
    let exported = (|| {
        if drive.is_off() {
            drive.restore(drive.now(), None)?;
        }
        raw::export(&drive, raw.as_file())
    })();
    let written = exported.map_err(|error| failure(from, Some(to), error))?;
    drive.rest().map_err(|error| failure(from, None, error))?;
    drive.close().map_err(|error| failure(from, None, error))?;
    raw.commit().map_err(Failure::io)?;
    writeln!(anstream::stdout(), "{}: {} of data", to.display(), bytes(written))?;
    Ok(())
}

fn import(from: &Path, args: &CreateArgs) -> Result<(), Failure> {
    let open = || {
        let raw = File::open(from)?;
        let length = raw.metadata()?.len();
        Ok::<_, io::Error>((raw, length))
    };
    let (raw, length) =
        open().with_context(|| from.display().to_string()).map_err(Failure::usage)?;
    let mut drive = made(args)?;
    let capacity = drive.capacity_sectors() * leyden_device::SECTOR_BYTES;
    let imported = if length > capacity {
        let (length, capacity) = (bytes(length), bytes(capacity));
        let what = format!("{} has {length}, the drive {capacity}", from.display());
        let help = "name a larger drive, or --set device.nand.blocks_per_plane=N";
        Err(Failure::usage(anyhow::anyhow!("{what}\n  help: {help}")))
    } else {
        let told = |error| failure(&args.file, None, error);
        raw::import(&mut drive, &raw).and_then(|_| drive.rest()).map_err(told)
    };
    if imported.is_err() {
        let _ = std::fs::remove_file(&args.file); // it was not there before
        return imported;
    }
    drive.close().map_err(|error| failure(&args.file, None, error))?;
    let (length, capacity) = (bytes(length), bytes(capacity));
    writeln!(anstream::stdout(), "{}: {length} on a drive of {capacity}", args.file.display())?;
    Ok(())
}

/// The drive that a command line names, and where that says what.
pub(super) fn drive_of(
    drive: &str,
    set: &[Set],
    seed: Option<u64>,
    name: String,
) -> Result<(ImageConfig, Loaded), Failure> {
    let loaded = Loaded::new(drive, &overrides(set, seed)?)?;
    let scenario = &loaded.scenario;
    let config = ImageConfig::new(name, scenario.seed, scenario.device.clone());
    let config = match (&scenario.host.conventional, &scenario.host.zoned_block) {
        (None, None) => config,
        (Some(conventional), Some(layer)) => config.stacked(conventional.clone(), layer.clone()),
        (conventional, _) => {
            let missing = if conventional.is_some() { "zoned_block" } else { "conventional" };
            let problem = "a block device on two drives needs [host.zoned_block] and [host.conventional], and this is \
                           not there: add it, or leave out the other one";
            return Err(Failure::usage(loaded.complaint(&format!("host.{missing}"), problem)));
        }
    };
    Ok((config, loaded))
}

/// Says so if a small drive has far more flash to spare than `asked`.
pub(super) fn note_spare(device: &Config, asked: Ratio) {
    let spare = device.ftl.over_provisioning;
    if spare.as_ppm() <= asked.as_ppm() + MORE_SPARE_PPM {
        return;
    }
    let dies = device.nand.channels * device.nand.dies_per_channel;
    note(&format!(
        "the over-provisioning is {spare} instead of {asked}: each of {dies} dies needs spare blocks\n  help: fewer dies have \
         less, as with --set device.nand.channels=1 --set device.nand.dies_per_channel=2; as a scenario this drive has \
         --set device.ftl.over_provisioning=\"{spare}\" --set device.nand.blocks_per_plane={} \
         --set device.nand.pages_per_block={}",
        device.nand.blocks_per_plane, device.nand.pages_per_block
    ));
}

/// More over-provisioning than that is worth a word.
const MORE_SPARE_PPM: u64 = 50_000;

/// A new image.
fn made(args: &CreateArgs) -> Result<Drive, Failure> {
    let stem = args.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let name = args.name.clone().unwrap_or(stem);
    if name.contains(is_obeyed) {
        let what = format!("{name:?} is no name for a drive: a terminal would obey it");
        return Err(Failure::usage(anyhow::anyhow!(
            "{what}\n  help: --name, with letters, digits and blanks"
        )));
    }
    let (mut config, loaded) = drive_of(&args.drive, &args.set, args.seed, name)?;
    if let Some(size) = args.size {
        if config.stack.is_some() {
            let problem =
                "--size is not for a block device on two drives: set blocks_per_plane of both";
            return Err(Failure::usage(loaded.complaint("host.zoned_block", problem)));
        }
        let asked = config.device.ftl.over_provisioning;
        leyden_device::fit(&mut config.device, size.get()).map_err(|error| {
            let within = error.within("device");
            Failure::usage(loaded.complaint(&within.key, &within.problem))
        })?;
        note_spare(&config.device, asked);
    }
    reservable(&args.file, &config)?;
    Drive::create(&args.file, config).map_err(|error| match error {
        ImageError::Config(error) => {
            let is_below = error.key.starts_with("host.");
            let within = if is_below { error } else { error.within("device") };
            Failure::usage(loaded.complaint(&within.key, &within.problem))
        }
        ImageError::Io(error) => {
            let what = format!("{} could not be made", args.file.display());
            Failure::io(anyhow::Error::from(error).context(what))
        }
        other => failure(&args.file, None, other),
    })
}

fn info(args: &ImageArgs) -> Result<(), Failure> {
    let config = Drive::config_of(&args.file).map_err(|error| failure(&args.file, None, error))?;
    if args.json {
        return print_json(&config);
    }
    let mut table = Table::default();
    let device = &config.device;
    table.row(["drive", &config.name]);
    table.row(["made by", &format!("leyden {}", config.made_by)]);
    table.row(["seed", &config.seed.to_string()]);
    let dies = device.nand.channels * device.nand.dies_per_channel;
    table.row(["dies", &count(u64::from(dies))]);
    table.row(["buffer", &bytes(device.buffer.size.get())]);
    let region = serde_json::to_value(device.buffer.region).map_err(Failure::failed)?;
    table.row(["protected", region.as_str().unwrap_or_default()]);
    if let Some(zoned) = &device.zoned {
        table.row(["zone size", &bytes(zoned.zone_size.get())]);
        let capacity = zoned.zone_capacity.unwrap_or(zoned.zone_size);
        table.row(["zone capacity", &bytes(capacity.get())]);
        let limit =
            |most: u32| if most == 0 { "no limit".to_owned() } else { count(u64::from(most)) };
        table.row(["open zones", &limit(zoned.max_open)]);
        table.row(["active zones", &limit(zoned.max_active)]);
        let areas = zoned.zrwa.as_ref().map_or_else(
            || "none".to_owned(),
            |zrwa| format!("{} of {}", count(u64::from(zrwa.count)), bytes(zrwa.size.get())),
        );
        table.row(["random write areas", &areas]);
    }
    if let Some(stack) = &config.stack {
        let capacity = stack.conventional.ftl.capacity;
        let capacity = capacity.map_or_else(|| "by its flash".to_owned(), |it| bytes(it.get()));
        table.row(["conventional drive", &capacity]);
        let journal = &stack.layer.journal;
        let recognise = serde_json::to_value(journal.recognise).map_err(Failure::failed)?;
        let by = format!("by {}", recognise.as_str().unwrap_or_default());
        table.row(["journals kept apart", if journal.separate { &by } else { "no" }]);
    }
    Ok(table.write(&mut anstream::stdout().lock())?)
}

fn check(args: &ImageArgs) -> Result<(), Failure> {
    fits(&args.file)?;
    let checked = Drive::check(&args.file).map_err(|error| failure(&args.file, None, error))?;
    if args.json {
        print_json(&checked)?;
    } else {
        show(&checked).write(&mut anstream::stdout().lock())?;
    }
    if checked.damaged_units > 0 {
        let what = format!("{} units are damaged: reading them will fail", checked.damaged_units);
        return Err(Failure::failed(anyhow::anyhow!("{}: {what}", args.file.display())));
    }
    Ok(())
}

fn show(checked: &Checked) -> Table {
    let mut table = Table::default();
    let capacity = checked.capacity_sectors * leyden_device::SECTOR_BYTES;
    table.row(["drive", &checked.name]);
    table.row(["capacity", &bytes(capacity)]);
    if let Some(zones) = checked.zones {
        table.row(["zones", &count(u64::from(zones))]);
    }
    table.row(["left", if checked.is_closed { "closed" } else { "in the midst of work" }]);
    table.row(["checkpoints", &count(checked.checkpoints)]);
    table.row(["log", &format!("{} entries", count(checked.log_entries))]);
    table.row(["units read", &count(checked.units)]);
    table.row(["damaged", &count(checked.damaged_units)]);
    table
}

/// Bytes of memory that an open drive takes for each physical unit that was written: address,
/// content, validity, map.
const UNIT_BYTES: u64 = 26;
/// Bytes of the longest array for each unit, written or not: reserved at once, touched as the drive fills.
const RESERVED_BYTES: u64 = 8;

/// Whether the machine has the memory that the drive of an image takes: the image says how large that is.
pub(super) fn fits(path: &Path) -> Result<(), Failure> {
    // Faults of the image are reported when it is opened.
    let found = Drive::config_of(path).and_then(|it| Ok((it, Drive::checkpoint_bytes_of(path)?)));
    let Ok((config, saved_bytes)) = found else { return Ok(()) };
    reservable(path, &config)?;
    // A unit that was written takes a byte of the checkpoint, or more.
    let units = units_of(&config);
    let written = if config.stack.is_some() { units } else { units.min(saved_bytes) };
    has_memory(path, written.saturating_mul(UNIT_BYTES), "MemAvailable:")
}

/// Whether a drive's arrays can be had at all.
fn reservable(path: &Path, config: &ImageConfig) -> Result<(), Failure> {
    has_memory(path, units_of(config).saturating_mul(RESERVED_BYTES), "MemTotal:")
}

/// Physical units of all drives.
fn units_of(config: &ImageConfig) -> u64 {
    let drives = [Some(&config.device), config.stack.as_ref().map(|stack| &stack.conventional)];
    let units = drives.into_iter().flatten().map(|device| {
        let nand = &device.nand;
        let dies = u64::from(nand.channels) * u64::from(nand.dies_per_channel);
        let planes = dies.saturating_mul(nand.planes_per_die.into());
        let blocks = planes.saturating_mul(nand.blocks_per_plane.into());
        let pages = blocks.saturating_mul(nand.pages_per_block.into());
        pages.saturating_mul(nand.page_size.get()) / device.ftl.mapping_unit.get().max(1)
    });
    units.fold(0, u64::saturating_add)
}

fn has_memory(path: &Path, needed: u64, figure: &str) -> Result<(), Failure> {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(figure));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    let available = kib.map_or(u64::MAX, |kib| kib << 10);
    if needed <= available {
        return Ok(());
    }
    let (needed, available) = (bytes(needed), bytes(available));
    Err(Failure::usage(anyhow::anyhow!(
        "{}: its drive takes {needed} of memory, and {available} are available\n  help: open it on a larger machine",
        path.display()
    )))
}

/// There is no such image.
pub(super) fn missing(path: &Path) -> Failure {
    let path = path.display();
    Failure::usage(anyhow::anyhow!(
        "there is no image {path}\n  help: `leyden image create {path}` makes one, with an empty drive"
    ))
}

/// The failure of an operation on an image or on its copy.
pub(super) fn failure(path: &Path, copy: Option<&Path>, error: ImageError) -> Failure {
    if matches!(&error, ImageError::Io(error) if error.kind() == io::ErrorKind::NotFound)
        && !path.exists()
    {
        return missing(path);
    }
    let name = match copy {
        Some(copy) => format!("{}, copied to {}", path.display(), copy.display()),
        None => path.display().to_string(),
    };
    let is_io = matches!(error, ImageError::Io(_));
    let told = anyhow::Error::from(error).context(name);
    if is_io { Failure::io(told) } else { Failure::usage(told) }
}
