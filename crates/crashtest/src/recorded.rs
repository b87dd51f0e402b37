//! A timeline from a recording: the recorded drive is run again, which says when each command ended.

use leyden_device::{SECTOR_BYTES, Status};
use leyden_image::recording::format::Step;
use leyden_image::recording::{Recording, Replay};
use leyden_oracle::{Op, Request};
use leyden_sim::Time;

use crate::error::CrashError;
use crate::timeline::Timeline;

/// Notes that the work begins: the file system has been mounted.
pub(crate) const BEGIN: &[u8] = b"\0begin";
/// Notes that the work has ended: what follows is not part of the run. No text that a host writes begins so.
pub(crate) const END: &[u8] = b"\0end";

/// What was recorded, of the first `size_bytes` of the drive.
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
    let mut timeline = Timeline::new(size_bytes, atom_bytes);
    set_base(&mut timeline, &replay, unit_bytes)?;
    let mut commands: Vec<Option<usize>> = vec![None; recording.steps().len()];
    for (number, (time, step)) in recording.steps().enumerate() {
        if matches!(step, Step::Mark(text) if text == END) {
            break;
        }
        replay.step()?;
        for ended in replay.take_ended() {
            if let Some(command) = commands[ended.step] {
                timeline.end(ended.time, command, ended.status == Status::Success);
            }
        }
        commands[number] = submitted(&mut timeline, recording, time, step)?;
    }
    Ok(timeline)
}

fn set_base(
    timeline: &mut Timeline,
    replay: &Replay<'_>,
    unit_bytes: u32,
) -> Result<(), CrashError> {
    let atoms_a_unit = unit_bytes / timeline.atom_bytes();
    for unit in 0..timeline.atoms() / atoms_a_unit {
        let bytes = replay.read_unit(u64::from(unit)).ok_or_else(|| {
            CrashError::Input("the drive was damaged when the recording began".to_owned())
        })?;
        if bytes.iter().all(|&byte| byte == 0) {
            continue;
        }
        for (at, atom) in (0..).zip(bytes.chunks_exact(timeline.atom_bytes() as usize)) {
            timeline.set_base(unit * atoms_a_unit + at, atom);
        }
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
    let unit_sectors = u64::from(recording.head().unit_bytes) / SECTOR_BYTES;
    let (op, lba, sectors, fua, contents) = match step {
        Step::Write(lba, sectors, fua, contents) => {
            (Op::Write, *lba, *sectors, *fua, &contents[..])
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
        Step::Read(..) | Step::Check(_) => return Ok(None),
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
    let whole: Vec<u8> =
        contents.iter().flat_map(|&content| recording.content(content)).copied().collect();
    let data = match op {
        Op::Write => {
            let begin = (lba.0 % unit_sectors * SECTOR_BYTES) as usize;
            &whole[begin..begin + sectors as usize * SECTOR_BYTES as usize]
        }
        _ => &[],
    };
    let request = Request { op, lba: lba.0, sectors, fua, plp: false };
    Ok(Some(timeline.submit(time, request, data)))
}
