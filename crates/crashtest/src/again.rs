//! A second power cut, while a state recovers: what recovery and the check have written is recorded in its turn, and cut.

use leyden_oracle::{Op, Request};
use leyden_sim::Time;

use crate::contract::cuts;
use crate::cut::Flushes;
use crate::error::CrashError;
use crate::lab::Lab;
use crate::pool::Pool;
use crate::search::Search;
use crate::state::{Image, State, digits_of};
use crate::summary::{Model, Summary};
use crate::timeline::Timeline;
use crate::trials::{Limits, Progress, Trials};
use crate::verdict::Outcome;
use crate::view::Written;

/// The result of second cuts in a state: their number, and the first that broke.
pub(crate) type Again = (u32, Option<(State, Outcome)>);

impl Lab {
    /// Recovers and checks `state`, and then up to `most` states that a second cut in that may leave. None if the state
    /// breaks as it is: that is another finding.
    pub(crate) fn run_again(
        &mut self,
        state: &State,
        most: u32,
        seed: u64,
    ) -> Result<Again, CrashError> {
        let acks = self.promised(state);
        self.notes_writes = true;
        let outcome = self.run_promised(state, acks);
        self.notes_writes = false;
        let written = self.ground.take_writes().ok_or_else(|| {
            let problem = "the writes of a recovery are not known with --extract\n  help: use sudo, without --extract";
            CrashError::Lacking(problem.to_owned())
        })?;
        if outcome?.verdict.is_broken() {
            return Ok((0, None));
        }
        let timeline = self.ground.timeline().expect("who notes writes has a drive");
        let recovery = recovery(timeline, state, &written);
        let cuts = cuts(&recovery, Flushes::All);
        let mut tried = 0;
        for second in Search::new(&recovery, &cuts, seed).take(most as usize) {
            let twice = State { after: changed(&recovery, &second), ..state.clone() };
            let outcome = self.run_promised(&twice, acks)?;
            tried += 1;
            if outcome.verdict.is_broken() {
                return Ok((tried, Some((twice, outcome))));
            }
        }
        Ok((tried, None))
    }
}

/// The commands to a drive that held `state`.
fn recovery(timeline: &Timeline, state: &State, written: &[Written]) -> Timeline {
    let atom_bytes = timeline.atom_bytes();
    let size_bytes = u64::from(timeline.atoms()) * u64::from(atom_bytes);
    let mut recovery = Timeline::new(size_bytes, atom_bytes);
    let image = Image::new(timeline, state);
    for atom in 0..timeline.atoms() {
        let bytes = image.atom(atom);
        if bytes.iter().any(|&byte| byte != 0) {
            recovery.set_base(atom, bytes);
        }
    }
    for written in written {
        let request = |op, lba, sectors, fua| Request { op, lba, sectors, fua, plp: false };
        let sector_bytes = leyden_device::SECTOR_BYTES as usize;
        let (request, data) = match written {
            Written::Data { lba, data, fua } => {
                (request(Op::Write, lba.0, (data.len() / sector_bytes) as u32, *fua), &data[..])
            }
            Written::Zeroes { lba, sectors } => {
                (request(Op::WriteZeroes, lba.0, *sectors, false), &[][..])
            }
            Written::Flush => (request(Op::Flush, 0, 0, false), &[][..]),
        };
        let command = recovery.submit(Time::ZERO, request, data);
        recovery.end(Time::ZERO, command, true);
    }
    recovery
}

/// The atoms that recovery has written to, as a second cut leaves them.
fn changed(recovery: &Timeline, second: &State) -> Vec<(u32, String)> {
    let image = Image::new(recovery, second);
    let was = |atom: u32| recovery.newest(atom, 0).content;
    let changed = recovery.touched().filter(|&atom| image.content(atom) != was(atom));
    changed.map(|atom| (atom, digits_of(image.atom(atom)))).collect()
}

/// Cuts the power a second time while lawful states recover: of each of `limits.states` states, `second` states. The result
/// is a further model of `summary`.
///
/// # Errors
/// If a state cannot be tried.
pub fn again<'a>(
    pool: &mut Pool<'a>,
    timeline: &'a Timeline,
    summary: &mut Summary,
    limits: Limits,
    second: u32,
    progress: Progress<'_>,
) -> Result<(), CrashError> {
    let cuts = cuts(timeline, Flushes::All);
    let mut search = Search::new(timeline, &cuts, summary.seed);
    let mut trials = Trials::new(Model::Recovery, limits);
    pool.cut_again(Some((second, summary.seed)));
    let ran = trials.run(pool, &mut || search.next(), progress);
    let tried = pool.cut_again(None);
    ran?;
    let mut model = trials.end(pool, cuts.len(), search.repeats())?;
    model.second_cuts = Some(tried);
    summary.models.push(model);
    summary.verdict = summary.judge();
    Ok(())
}

#[cfg(test)]
mod tests {
    use leyden_device::Lba;

    use super::*;

    #[test]
    fn a_second_cut_leaves_what_recovery_had_written() {
        let mut timeline = Timeline::new(4_096, 512);
        timeline.set_base(0, &[1; 512]);
        let written = [
            Written::Data { lba: Lba(0), data: vec![2; 512], fua: false },
            Written::Flush,
            Written::Data { lba: Lba(1), data: vec![3; 512], fua: false },
            Written::Zeroes { lba: Lba(0), sectors: 1 },
        ];
        let recovery = recovery(&timeline, &State::new(0, Vec::new()), &written);
        let cuts = cuts(&recovery, Flushes::All);
        let states = Search::new(&recovery, &cuts, 1);
        let mut left: Vec<Vec<(u32, String)>> =
            states.map(|second| changed(&recovery, &second)).collect();
        left.sort();
        left.dedup();
        let of = |bytes: &[(u32, u8)]| -> Vec<(u32, String)> {
            bytes.iter().map(|&(atom, byte)| (atom, digits_of(&[byte; 512]))).collect()
        };
        // Before the flush: as it was, or the first write. After it: that, with any of what follows.
        let mut want = vec![
            of(&[]),
            of(&[(0, 2)]),
            of(&[(0, 0)]),
            of(&[(0, 2), (1, 3)]),
            of(&[(0, 0), (1, 3)]),
        ];
        want.sort();
        assert_eq!(left, want);
    }
}
