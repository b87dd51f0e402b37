//! Why a state breaks: the promise that it breaks, the write that the promise needed, and the flush that was missing.
//!
//! Found by experiment, not by guessing: the check is asked with fewer promises, until one makes it fail; and, where nothing
//! has to be lost, at later moments, until the drive had been given what makes it pass.

use serde::{Deserialize, Serialize};

use leyden_device::SECTOR_BYTES;
use leyden_oracle::Op;

use crate::error::CrashError;
use crate::files_view::FileDifference;
use crate::locate::Place;
use crate::runner::Runner;
use crate::state::State;
use crate::timeline::{Event, Timeline};

/// Commands that are named.
const NAMED_MOST: usize = 8;

/// Why a state breaks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Why {
    /// The promise that it breaks: with fewer the check passes. None if it fails without any.
    pub promise: Option<Promised>,
    /// Nothing has to be lost: what the check needs had not been submitted when the power failed.
    pub is_unsubmitted: bool,
    /// The commands that the check needs: those that were lost, or the first after which it passes.
    pub needed: Vec<Needed>,
    /// Events between the promise, or the first command that is needed, and the last that is
    /// needed.
    pub between: Between,
    /// Files that are others than with what is needed.
    #[serde(default)]
    pub files: Vec<FileDifference>,
}

/// A promise.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Promised {
    /// The acknowledged line.
    pub line: String,
    /// The event.
    pub event: usize,
    /// When, by the drive's clock.
    pub time_ns: u64,
}

/// A command.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Needed {
    /// The event of its submission.
    pub event: usize,
    /// When, by the drive's clock.
    pub time_ns: u64,
    /// Its name.
    pub command: String,
    /// Its first sector.
    pub sector: u64,
    /// Its bytes.
    pub bytes: u64,
    /// The first atom of it that counts.
    pub atom: u32,
    /// The files there, if they were looked for.
    #[serde(default)]
    pub place: Option<Place>,
}

/// Flushes and writes around what is needed, by event.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Between {
    /// The event at which the power failed.
    pub cut: usize,
    /// The last flush that was submitted before what is needed.
    pub flush_before: Option<usize>,
    /// The first flush that was submitted after what is needed had ended, and so covers it.
    pub flush_after: Option<usize>,
    /// Flushes that were submitted after the promise and before what it needs.
    pub flushes: Vec<usize>,
    /// The first other commands there.
    #[serde(default)]
    pub writes: Vec<Needed>,
    /// Commands that were submitted later than what is lost, and are kept.
    pub kept: Vec<usize>,
}

/// Why `state` breaks; `None` if it does not, or passes at no later moment.
///
/// # Errors
/// If a state cannot be tried.
pub fn explain(
    runner: &mut dyn Runner,
    timeline: &Timeline,
    state: &State,
) -> Result<Option<Why>, CrashError> {
    let mut ask = Reruns { runner };
    let all = timeline.acks_before(state.at);
    if !ask.fails(state, all)? {
        return Ok(None);
    }
    let acks = ask.broken_promise(state, all)?;
    let whole = State::new(state.at, Vec::new());
    let is_unsubmitted = state.lost.is_empty() || ask.fails(&whole, acks)?;
    let promise = (acks > 0).then(|| promised(timeline, acks));
    let needed = if is_unsubmitted {
        let Some(event) = ask.first_enough(timeline, state.at, acks)? else { return Ok(None) };
        needed(timeline, event, None).into_iter().collect()
    } else {
        lost(timeline, state)
    };
    let between = between(timeline, state, promise.as_ref(), is_unsubmitted, &needed);
    Ok(Some(Why { promise, is_unsubmitted, needed, between, files: Vec::new() }))
}

struct Reruns<'a> {
    runner: &'a mut dyn Runner,
}

impl Reruns<'_> {
    fn fails(&mut self, state: &State, acks: usize) -> Result<bool, CrashError> {
        Ok(self.runner.run_promised(state, acks)?.verdict.is_broken())
    }

    /// The fewest promises with which `state` fails, of `all`: the last of them is the one that is broken.
    fn broken_promise(&mut self, state: &State, all: usize) -> Result<usize, CrashError> {
        let (mut low, mut high) = (0, all);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.fails(state, middle)? {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(low)
    }

    /// The first event after `at` with which the check passes, if nothing is lost.
    fn first_enough(
        &mut self,
        timeline: &Timeline,
        at: usize,
        acks: usize,
    ) -> Result<Option<usize>, CrashError> {
        let (mut low, mut high) = (at, timeline.closed());
        if self.fails(&State::new(high, Vec::new()), acks)? {
            return Ok(None);
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.fails(&State::new(middle, Vec::new()), acks)? {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(Some(high - 1))
    }
}

fn promised(timeline: &Timeline, acks: usize) -> Promised {
    let is_it = |event: &Event| matches!(event, Event::Acknowledged(line) if *line + 1 == acks);
    let event = timeline.events().iter().position(|(_, event)| is_it(event)).unwrap_or(0);
    let time_ns = timeline.events()[event].0.as_ns();
    Promised { line: timeline.acks()[acks - 1].clone(), event, time_ns }
}

/// The command of an event; `atom` is one of it that counts.
fn needed(timeline: &Timeline, event: usize, atom: Option<u32>) -> Option<Needed> {
    let (time, submitted) = timeline.all_events()[event];
    let Event::Submitted(request) = submitted else { return None };
    let first = request.effects(timeline.atom_sectors()).map(|(atom, _)| atom).next();
    Some(Needed {
        event,
        time_ns: time.as_ns(),
        command: submitted.name().to_owned(),
        sector: request.lba,
        bytes: u64::from(request.sectors) * SECTOR_BYTES,
        atom: atom.or(first)?,
        place: None,
    })
}

/// The commands whose bytes are lost, the first ones first.
fn lost(timeline: &Timeline, state: &State) -> Vec<Needed> {
    let mut events: Vec<(u32, u32)> = state
        .lost_atoms(timeline)
        .into_iter()
        .filter_map(|atom| Some((timeline.newest(atom, state.at).event?, atom)))
        .collect();
    events.sort_unstable();
    events.dedup_by_key(|(event, _)| *event);
    let few = events.into_iter().take(NAMED_MOST);
    few.filter_map(|(event, atom)| needed(timeline, event as usize, Some(atom))).collect()
}

fn between(
    timeline: &Timeline,
    state: &State,
    promise: Option<&Promised>,
    is_unsubmitted: bool,
    needed: &[Needed],
) -> Between {
    let Some(first) = needed.first().map(|needed| needed.event) else { return Between::default() };
    let last = needed.last().map_or(first, |needed| needed.event);
    let events = timeline.all_events();
    let flushes = || (0..events.len()).filter(|&at| events[at].1.is_flush());
    let is_end = |event: &Event| matches!(event, Event::Ended { command, .. } if *command == last);
    let ended = (last..events.len()).find(|&at| is_end(&events[at].1)).unwrap_or(events.len());
    let from = promise.map_or(first, |promise| promise.event);
    let is_kept = |&at: &usize| {
        let Event::Submitted(request) = events[at].1 else { return false };
        let mut atoms = request.effects(timeline.atom_sectors()).map(|(atom, _)| atom);
        request.op != Op::Flush && atoms.all(|atom| !state.lost.iter().any(|lost| lost.0 == atom))
    };
    let writes = (from + 1..first).filter(|&at| !events[at].1.is_flush());
    let later = (first + 1..state.at.max(first + 1)).filter(is_kept);
    Between {
        cut: state.at,
        flush_before: flushes().take_while(|&at| at < first).last(),
        flush_after: flushes().find(|&at| at > ended),
        flushes: flushes().filter(|&at| from < at && at < first).collect(),
        writes: writes.filter_map(|at| self::needed(timeline, at, None)).take(NAMED_MOST).collect(),
        kept: if is_unsubmitted { Vec::new() } else { later.take(NAMED_MOST).collect() },
    }
}

impl Why {
    /// Every command that is named.
    pub(crate) fn commands(&mut self) -> impl Iterator<Item = &mut Needed> {
        self.needed.iter_mut().chain(&mut self.between.writes)
    }

    /// It in sentences.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(Promised { line, event, time_ns }) = &self.promise {
            lines
                .push(format!("promise `{line}` was made at event {event} ({})", micros(*time_ns)));
        }
        let Between { cut, flush_before, flush_after, flushes, writes, kept } = &self.between;
        let flush =
            |event: &Option<usize>| event.map_or("none".to_owned(), |at| format!("event {at}"));
        for written in writes {
            lines.push(format!("  event {}: {}", written.event, written.in_words()));
        }
        for needed in &self.needed {
            let (verb, when) = match (&self.promise, self.is_unsubmitted) {
                (Some(promise), true) => {
                    let late = needed.time_ns.saturating_sub(promise.time_ns);
                    ("reached the drive only at", format!(", {} later", micros(late)))
                }
                (None, true) => ("is whole only from", String::new()),
                (_, false) => ("was lost with", String::new()),
            };
            let what = if self.promise.is_some() { "its data" } else { "data of the check" };
            lines.push(format!(
                "{what} {verb} event {}{when}: {}",
                needed.event,
                needed.in_words()
            ));
        }
        if self.is_unsubmitted {
            let between = match (&self.promise, flushes.len()) {
                (None, _) => None,
                (_, 0) => Some("no flush between".to_owned()),
                (_, 1) => {
                    Some(format!("a flush between, at event {}, could not cover it", flushes[0]))
                }
                (_, many) => Some(format!("{many} flushes between could not cover it")),
            };
            let after = format!("the first flush that covers it is: {}", flush(flush_after));
            lines.extend([between, Some(after)].into_iter().flatten());
            lines.push(format!(
                "the power failed before event {cut}; nothing that had been submitted was lost"
            ));
        } else {
            lines.push(format!(
                "no flush covers it before the power failed, at event {cut}: the last before it is {}, the first after it {}",
                flush(flush_before),
                flush(flush_after)
            ));
            if let Some(first) = kept.first() {
                lines.push(format!("later commands were kept, the first at event {first}: the drive may reorder them"));
            }
        }
        lines.extend(self.files.iter().take(NAMED_MOST).map(FileDifference::in_words));
        lines
    }
}

impl Needed {
    fn in_words(&self) -> String {
        let Self { command, bytes, sector, place, .. } = self;
        let place = match place {
            None => String::new(),
            Some(Place { name, offset_bytes: Some(offset), .. }) => {
                format!(", {name} at byte {offset}")
            }
            Some(Place { name, .. }) => format!(", {name}"),
        };
        format!("{command} of {bytes} B at sector {sector}{place}")
    }
}

impl FileDifference {
    /// It in a sentence: the file as it is in the state, and as it is with what is needed.
    pub fn in_words(&self) -> String {
        let Self { name, size_bytes, other_size_bytes, ranges } = self;
        match (size_bytes, other_size_bytes) {
            (Some(size), None) => {
                format!("file {name}: {size} B here; not there with that data")
            }
            (None, Some(size)) => format!("file {name}: not there; {size} B with that data"),
            (Some(one), Some(other)) => {
                let sizes = if one == other {
                    format!("{one} B")
                } else {
                    format!("{one} B instead of {other} B")
                };
                let bytes: u64 = ranges.iter().map(|(begin, end)| end - begin).sum();
                let first = ranges.first().map_or(0, |range| range.0);
                format!("file {name}: {sizes}; differs from byte {first} on, in {bytes} B")
            }
            (None, None) => format!("file {name}"),
        }
    }
}

/// A time in microseconds or milliseconds.
fn micros(time_ns: u64) -> String {
    match time_ns {
        0..10_000_000 => format!("{}.{} us", time_ns / 1_000, time_ns / 100 % 10),
        _ => format!("{}.{} ms", time_ns / 1_000_000, time_ns / 100_000 % 10),
    }
}
