//! A timeline from a recording: the recorded drive is run again, which says when each command ended.

use leyden_device::{AtomicLimit, Atomicity, SECTOR_BYTES, Status};
use leyden_image::Device;
use leyden_image::recording::format::Step;
use leyden_image::recording::{Ended, Recording, Replay};
use leyden_oracle::{Atomic, Op, Request};
use leyden_sim::Time;

use crate::error::CrashError;
use crate::timeline::Timeline;

/// Notes that the work begins: the file system has been mounted.
pub(crate) const BEGIN: &[u8] = b"\0begin";
/// Notes that the work has ended: what follows is not part of the run. No text that a host writes begins so.
pub(crate) const END: &[u8] = b"\0end";

/// The recording of the first `size_bytes` of the drive.
///
/// # Errors
/// If its drive does something else when it is run again, or atoms of `atom_bytes` make no sense for it.
pub(crate) fn timeline(
    recording: &Recording,
    size_bytes: u64,
    atom_bytes: Option<u32>,
) -> Result<Timeline, CrashError> {
    let unit_bytes = recording.head().unit_bytes;
    let atom_bytes = atom_bytes.unwrap_or(unit_bytes);
    if atom_bytes < SECTOR_BYTES as u32
        || !unit_bytes.is_multiple_of(atom_bytes)
        || !size_bytes.is_multiple_of(u64::from(unit_bytes))
    {
        let problem = format!(
            "atoms of {atom_bytes} bytes: the drive's mapping units of {unit_bytes} bytes are not whole \
             numbers of them, or the device is no whole number of mapping units"
        );
        return Err(CrashError::Input(problem));
    }
    let mut replay = Replay::new(recording)?;
    let mut timeline =
        Timeline::new(size_bytes, atom_bytes).with_atomic(atomic_of(replay.device()));
    let atoms_a_unit = unit_bytes / atom_bytes;
    for unit in base(&replay, size_bytes, unit_bytes) {
        let (unit, bytes) = unit?;
        for (at, atom) in (0..).zip(bytes.chunks_exact(atom_bytes as usize)) {
            timeline.set_base(unit as u32 * atoms_a_unit + at, atom);
        }
    }
    let mut commands: Vec<Option<usize>> = vec![None; recording.steps().len()];
    walk(recording, &mut replay, Until::Closed, |moment| {
        match moment {
            Moment::WorkEnded => timeline.set_end(),
            Moment::Ended(ended) => {
                if let Some(command) = commands[ended.step] {
                    timeline.end(ended.time, command, ended.status == Status::Success);
                }
            }
            Moment::Submitted { number, time, step } => {
                commands[number] = submitted(&mut timeline, recording, time, step)?;
            }
        }
        Ok(())
    })?;
    Ok(timeline)
}

/// The writes that the recorded drive has promised to keep or lose as a whole.
fn atomic_of(device: &Device) -> Option<Atomic> {
    let Device::Conventional(ssd) = device else { return None };
    let Atomicity { block_sectors, normal, power_fail, offset } = ssd.atomicity()?;
    let limit = |limit: AtomicLimit| (limit.blocks, limit.boundary);
    Some(Atomic { block_sectors, normal: limit(normal), power_fail: limit(power_fail), offset })
}

/// The mapping units that are not all zeroes of the first `size_bytes` of a drive, before anything of its recording has
/// happened: their numbers and bytes.
pub(crate) fn base<'a>(
    replay: &'a Replay<'_>,
    size_bytes: u64,
    unit_bytes: u32,
) -> impl Iterator<Item = Result<(u64, Vec<u8>), CrashError>> + 'a {
    let units = (0..size_bytes / u64::from(unit_bytes)).map(|unit| {
        let damaged =
            || CrashError::Input("the drive was damaged when the recording began".to_owned());
        Ok((unit, replay.read_unit(unit).ok_or_else(damaged)?))
    });
    let is_empty = |bytes: &[u8]| bytes.iter().all(|&byte| byte == 0);
    units.filter(move |unit| !matches!(unit, Ok((_, bytes)) if is_empty(bytes)))
}

/// Something of a recorded run.
pub(crate) enum Moment<'a> {
    /// A command has ended.
    Ended(Ended),
    /// The work has ended.
    WorkEnded,
    /// A step was taken.
    Submitted {
        /// The promise.
        number: usize,
        /// When, by the drive's clock.
        time: Time,
        /// What.
        step: &'a Step,
    },
}

/// How far a recorded run is looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// To the end of the work, and what has ended by then.
    WorkEnded,
    /// To the end of the recording.
    Closed,
}

/// Runs the recorded drive again, and tells `each` what happened, in order.
pub(crate) fn walk(
    recording: &Recording,
    replay: &mut Replay<'_>,
    until: Until,
    mut each: impl FnMut(Moment<'_>) -> Result<(), CrashError>,
) -> Result<(), CrashError> {
    for (number, (time, step)) in recording.steps().enumerate() {
        let is_end = matches!(step, Step::Mark(text) if text == END);
        replay.step()?;
        for ended in replay.take_ended() {
            each(Moment::Ended(ended))?;
        }
        if is_end {
            each(Moment::WorkEnded)?;
            if until == Until::WorkEnded {
                break;
            }
            continue;
        }
        each(Moment::Submitted { number, time, step })?;
    }
    Ok(())
}

/// Notes a step; the event of a command that changes something, or of a flush.
fn submitted(
    timeline: &mut Timeline,
    recording: &Recording,
    time: Time,
    step: &Step,
) -> Result<Option<usize>, CrashError> {
    let (op, lba, sectors, fua, contents) = match step {
        // Either flag promises that the write survives once it has ended.
        Step::Write(lba, sectors, flags, contents) => {
            (Op::Write, *lba, *sectors, flags.fua || flags.plp, &contents[..])
        }
        Step::WriteZeroes(lba, sectors, fua) => (Op::WriteZeroes, *lba, *sectors, *fua, &[][..]),
        Step::Trim(lba, sectors) => (Op::Trim, *lba, *sectors, false, &[][..]),
        Step::Flush => (Op::Flush, leyden_device::Lba(0), 0, false, &[][..]),
        Step::Mark(text) if text == BEGIN => {
            timeline.set_begin();
            return Ok(None);
        }
        Step::Mark(text) => {
            timeline.mark(time, &String::from_utf8_lossy(text));
            return Ok(None);
        }
        Step::Read(..) | Step::WritePrepare(_) | Step::ZoneReport(..) | Step::Check(_) => {
            return Ok(None);
        }
        Step::Append(..) | Step::Zone(_) => {
            let problem =
                "the recorded drive has zones: crash tests take a block device's recording";
            return Err(CrashError::Input(problem.to_owned()));
        }
        Step::Cut | Step::Restore(_) => {
            let problem = "the power was cut while the run was recorded";
            return Err(CrashError::Input(problem.to_owned()));
        }
    };
    let capacity = u64::from(timeline.atoms()) * u64::from(timeline.atom_sectors());
    if lba.0.checked_add(u64::from(sectors)).is_none_or(|end| end > capacity) {
        return Err(CrashError::Input(
            "a command of the recording is beyond the device".to_owned(),
        ));
    }
    let data = match op {
        Op::Write => written(recording, lba, sectors, contents),
        _ => Vec::new(),
    };
    let request = Request { op, lba: lba.0, sectors, fua, plp: false };
    Ok(Some(timeline.submit(time, request, &data)))
}

/// The bytes of a recorded write, of whose mapping units `contents` are.
pub(crate) fn written(
    recording: &Recording,
    lba: leyden_device::Lba,
    sectors: u32,
    contents: &[u32],
) -> Vec<u8> {
    let unit_sectors = u64::from(recording.head().unit_bytes) / SECTOR_BYTES;
    let begin = (lba.0 % unit_sectors * SECTOR_BYTES) as usize;
    let whole = contents.iter().flat_map(|&content| recording.content(content)).copied();
    whole.skip(begin).take(sectors as usize * SECTOR_BYTES as usize).collect()
}
