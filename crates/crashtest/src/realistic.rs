//! The recorded drive, run again to the bit, and cut: which versions are left.

use std::collections::BTreeSet;

use leyden_device::{PowerLoss, SECTOR_BYTES};
use leyden_image::recording::format::Step;
use leyden_image::recording::{Recording, Replay};
use leyden_sim::{Capacitance, Rng, Span, Time};
use serde::{Deserialize, Serialize};

use crate::choose::spread;
use crate::error::CrashError;
use crate::recorded::END;
use crate::state::State;
use crate::timeline::{Event, Timeline};

/// Around an acknowledgement or the end of a flush, the power fails so much earlier and later.
const AROUND: [Span; 2] = [Span::from_ns(1), Span::from_us(50)];

/// When the power may fail: around acknowledgements and ends of flushes, and as often at random; spread. If they are
/// to be `even`, all at random, so that shares of them mean something.
pub(crate) fn times(timeline: &Timeline, seed: u64, most: usize, even: bool) -> Vec<Time> {
    let events = &timeline.events()[timeline.begin()..];
    let (Some((begin, _)), Some((end, _))) = (events.first(), events.last()) else {
        return Vec::new();
    };
    let mut times = BTreeSet::new();
    for (time, event) in events {
        let is_interesting = match event {
            Event::Acknowledged(_) => true,
            Event::Ended { command, .. } => timeline.events()[*command].1.is_flush(),
            Event::Submitted(_) => false,
        };
        if is_interesting {
            times.insert(*time);
            for span in AROUND {
                times.insert(*time + span);
                times.insert(Time::from_ns(time.as_ns().saturating_sub(span.as_ns())));
            }
        }
    }
    let times: Vec<Time> = times.into_iter().filter(|time| (begin..=end).contains(&time)).collect();
    let mut rng = Rng::new(seed, "crashtest cuts");
    let length = end.since(*begin).as_ns();
    let aimed = spread(times.len()).into_iter().map(|at| times[at]);
    let mut all = Vec::new();
    all.extend(aimed.take(if even { 0 } else { most / 2 }));
    while all.len() < most && length > 0 {
        all.push(*begin + Span::from_ns(rng.below(length)));
    }
    all
}

/// The recorded drive's dump and losses at its power cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Power {
    /// When, by the drive's clock, in nanoseconds.
    pub time_ns: u64,
    /// Bytes of the host's that capacitors had to save.
    pub promised_bytes: u64,
    /// Pages that the dump programmed.
    pub dumped_pages: u64,
    /// Units that had been promised, and that the capacitors' energy did not reach.
    pub lost_units: u64,
    /// Pages of the mapping table that it did not reach: recovery scans all of flash for their entries.
    pub lost_map_pages: u64,
    /// Flash pages whose program was broken off.
    pub torn_pages: u64,
    /// Energy left in the capacitors, in nanojoules.
    pub energy_left_nj: u64,
}

impl Power {
    fn new(loss: &PowerLoss) -> Self {
        Self {
            time_ns: loss.time.as_ns(),
            promised_bytes: loss.cost.promised.get(),
            dumped_pages: loss.cost.pages,
            lost_units: loss.lost.len() as u64,
            lost_map_pages: loss.lost_map_pages,
            torn_pages: loss.torn_pages,
            energy_left_nj: loss.energy_left.as_nj(),
        }
    }
}

/// The states in which the recorded drive is left by cuts at `times`, with another bank if one is named; and what
/// the drive did at each.
///
/// # Errors
/// If the drive does something else than the recorded one, or reads back what nobody wrote.
pub(crate) fn states(
    recording: &Recording,
    timeline: &Timeline,
    times: &[Time],
    bank: Option<Capacitance>,
) -> Result<Vec<(State, Power)>, CrashError> {
    let mut order: Vec<usize> = (0..times.len()).collect();
    order.sort_by_key(|&at| times[at]);
    let mut replay = match bank {
        Some(_) => Replay::with_bank(recording, bank)?,
        None => Replay::new(recording)?,
    };
    let end =
        recording.steps().position(|(_, step)| matches!(step, Step::Mark(text) if text == END));
    let last = end.map(|end| recording.steps().nth(end).expect("it is there").0);
    let mut states = vec![None; times.len()];
    for at in order {
        let time = last.map_or(times[at], |last| times[at].min(last));
        replay.run_to(time)?;
        let mut cut = replay.clone();
        let power = Power::new(&cut.cut());
        let now = cut.now();
        cut.restore(now, None).map_err(leyden_image::recording::ReplayError::from)?;
        let happened = timeline.events().partition_point(|(when, _)| *when <= time);
        states[at] = Some((read_back(&cut, timeline, happened)?, power));
    }
    Ok(states.into_iter().flatten().collect())
}

/// Which versions the drive holds.
fn read_back(drive: &Replay<'_>, timeline: &Timeline, at: usize) -> Result<State, CrashError> {
    let atom_sectors = u64::from(timeline.atom_sectors());
    let unit_bytes = u64::from(drive.device().unit_bytes());
    let atoms_a_unit = unit_bytes / SECTOR_BYTES / atom_sectors;
    let mut lost = Vec::new();
    let mut unit: Option<(u64, Vec<u8>)> = None;
    for atom in timeline.touched() {
        let number = u64::from(atom) / atoms_a_unit;
        if unit.as_ref().is_none_or(|(known, _)| *known != number) {
            let bytes = drive.read_unit(number).ok_or_else(|| unwritten(atom))?;
            unit = Some((number, bytes));
        }
        let Some((_, bytes)) = &unit else { unreachable!("it was just read") };
        let from = (u64::from(atom) % atoms_a_unit * u64::from(timeline.atom_bytes())) as usize;
        let bytes = &bytes[from..from + timeline.atom_bytes() as usize];
        let is_this = |content| timeline.store().bytes(content) == bytes;
        let mut versions = timeline.versions_before(atom, at);
        let newest = versions.next().expect("there is always the first");
        if !is_this(newest.content) {
            let found = versions.find(|version| is_this(version.content));
            lost.push((atom, found.ok_or_else(|| unwritten(atom))?.event));
        }
    }
    Ok(State::new(at, lost))
}

fn unwritten(atom: u32) -> CrashError {
    CrashError::Worker(format!("after a cut, atom {atom} of the drive holds data of no write"))
}
