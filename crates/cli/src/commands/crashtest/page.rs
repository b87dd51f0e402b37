//! The page of a crash test: what its recording, its last run and its curve of capacitances say.

use std::collections::BTreeMap;

use leyden_crashtest::{
    Event, Finding, Flushes, Model, ModelSummary, Plan, Power, RunVerdict, SUMMARY, Seed, Session,
    State, Summary, Timeline, Why, cuts,
};
use leyden_device::Region;
use leyden_image::recording::Recording;
use leyden_report::format::{bytes, count, energy, seconds};
use leyden_report::{
    CrashFinding, CrashModel, CrashRun, CrashShare, CrashTestPage, render_crash_test,
};
use leyden_sim::Time;

use super::kept::{CURVE, Lost, PAGE, Recorded, UNPROTECTED, blind, fails, failure, read_json};
use super::{page_files, provenance, tell};
use crate::failure::Failure;

/// Commands of a finding that are named.
const NAMED_MOST: usize = 8;

/// Writes the page of the last run anew, if there was one.
pub(super) fn write_again(session: &Session) -> Result<(), Failure> {
    let Some(summary) = read_json::<Summary>(session, SUMMARY)? else { return Ok(()) };
    // Another command may have had other atoms.
    let recorded = Recorded::open(session, Some(summary.atom_bytes))?;
    write(session, &recorded, &summary)
}

/// Writes the page of a run with the atoms of `timeline`, and of the curve that is kept in the folder.
pub(super) fn write(
    session: &Session,
    recorded: &Recorded,
    summary: &Summary,
) -> Result<(), Failure> {
    let plan = session.plan().map_err(failure)?;
    let page = match recorded {
        Recorded::Drive(timeline) => of_drive(session, &plan, timeline, summary)?,
        Recorded::Files(history) => page_files::page(session, &plan, history, summary)?,
    };
    let html = render_crash_test(&page).map_err(Failure::internal)?;
    session.write(PAGE, &html).map(drop).map_err(failure)
}

fn of_drive<'a>(
    session: &Session,
    plan: &'a Plan,
    timeline: &Timeline,
    summary: &Summary,
) -> Result<CrashTestPage<'a>, Failure> {
    let curve: Vec<Lost> = read_json(session, CURVE)?.unwrap_or_default();
    let recording = session.drive_recording().map_err(failure)?;
    Ok(CrashTestPage {
        title: &plan.work,
        verdict: summary.headline(),
        is_held: summary.verdict == RunVerdict::Held,
        facts: facts(session, plan, &recording, timeline, summary),
        warnings: warnings(timeline, summary, is_unprotected(&recording) && !curve.is_empty()),
        run: recorded_run(timeline),
        models: summary.models.iter().map(|model| of_model(model, timeline)).collect(),
        findings: of_findings(session, summary, timeline)?,
        curve: curve
            .iter()
            .map(|&Lost { capacitance_uf, cuts, cuts_that_lose, .. }| CrashShare {
                capacitance_uf,
                cuts,
                cuts_that_lose,
            })
            .collect(),
    })
}

fn facts(
    session: &Session,
    plan: &Plan,
    recording: &Recording,
    timeline: &Timeline,
    summary: &Summary,
) -> Vec<(&'static str, String)> {
    let device = format!(
        "{}, sectors of {} B, {} B kept or lost as a whole",
        bytes(plan.size_bytes),
        count(u64::from(plan.sector_bytes)),
        count(u64::from(summary.atom_bytes))
    );
    let run = format!(
        "{} events, {} flushes, {} acknowledgements",
        count(timeline.events().len() as u64),
        count(summary.flushes as u64),
        count(summary.acks as u64)
    );
    let mut facts = vec![
        ("Work", plan.work.clone()),
        ("Check", plan.check.clone()),
        ("File system", plan.fs.clone()),
        ("Device", device),
        ("Recorded", run),
        ("Controls", tell::controls(summary)),
        ("Seed", summary.seed.to_string()),
        ("Drive", provenance::drive(&recording.head().config)),
        ("Made", provenance::made(session)),
    ];
    facts.extend(provenance::software(session).map(|text| ("Software", text)));
    facts
}

/// True of a drive whose capacitors save no data of the host's.
pub(super) fn is_unprotected(recording: &Recording) -> bool {
    recording.head().config.device.buffer.region == Region::None
}

fn warnings(timeline: &Timeline, summary: &Summary, is_unprotected: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    if is_unprotected {
        warnings.push(UNPROTECTED.to_owned());
    }
    match summary.verdict {
        RunVerdict::CheckBlind => warnings.push(blind(summary)),
        RunVerdict::CheckFails => warnings.push(fails(summary)),
        RunVerdict::TooFew => warnings.push(summary.in_words()),
        RunVerdict::Held | RunVerdict::Broken => {}
    }
    if timeline.acks().is_empty() {
        let text = "The work acknowledged nothing: only that its data is consistent was checked.";
        warnings.push(text.to_owned());
    }
    warnings
}

fn recorded_run(timeline: &Timeline) -> CrashRun {
    let events = &timeline.events()[timeline.begin()..];
    let (Some((begin, _)), Some((end, _))) = (events.first(), events.last()) else {
        return CrashRun::default();
    };
    let mut run = CrashRun { span_ns: (begin.as_ns(), end.as_ns()), ..CrashRun::default() };
    for (time, event) in events {
        let time = time.as_ns();
        match event {
            Event::Submitted(_) if event.is_flush() => {}
            Event::Submitted(request) => {
                run.writes.push((time, u64::from(request.sectors) * leyden_device::SECTOR_BYTES));
            }
            Event::Ended { command, .. } => {
                let is_flush = timeline.events()[*command].1.is_flush();
                run.flushes.extend(is_flush.then_some(time));
            }
            Event::Acknowledged(_) => run.acks.push(time),
        }
    }
    run
}

fn of_model(model: &ModelSummary, timeline: &Timeline) -> CrashModel {
    let tally = |tally: &leyden_crashtest::Tally| {
        (moment(timeline, tally.at).as_ns(), [tally.held, tally.lost, tally.broken])
    };
    CrashModel {
        name: model.model.name(),
        line: tell::line(model),
        tallies: model.tallies.iter().map(tally).collect(),
    }
}

/// When the events before `at` had happened.
fn moment(timeline: &Timeline, at: usize) -> Time {
    let last = at.checked_sub(1).and_then(|last| timeline.events().get(last));
    last.map_or(Time::ZERO, |(time, _)| *time)
}

fn of_findings(
    session: &Session,
    summary: &Summary,
    timeline: &Timeline,
) -> Result<Vec<CrashFinding>, Failure> {
    let unsettled: BTreeMap<usize, usize> =
        cuts(timeline, Flushes::All).iter().map(|cut| (cut.at, cut.unsettled.len())).collect();
    let mut told = Vec::new();
    for model in &summary.models {
        for (number, finding) in (1..).zip(&model.findings) {
            let name = format!("{}-{number}", model.model.name());
            let small: Option<Seed> = read_json(session, &format!("findings/{name}-small.json"))?;
            let mut taken: Vec<String> = finding.power.iter().flat_map(drive).collect();
            taken.extend(atoms(&finding.state, timeline, model.model, &unsettled));
            taken.extend(small.iter().flat_map(made_small));
            let why = small.as_ref().and_then(|small| small.why.as_ref()).or(finding.why.as_ref());
            told.push(CrashFinding {
                why: why.map(Why::lines).unwrap_or_default(),
                commands: tell::commands(session, &name, small.is_some()),
                name,
                verdict: finding.verdict.name(),
                remark: tell::remarks(model.model, finding).join("; "),
                states: tell::states(finding),
                moment: moment_of(finding, timeline),
                taken,
                said: finding.said.clone(),
            });
        }
    }
    Ok(told)
}

/// The finding after `shrink`.
fn made_small(small: &Seed) -> Vec<String> {
    let lost = count(small.state.lost.len() as u64);
    let places = small.lost.iter().map(|place| match place.offset_bytes {
        Some(offset) => format!("{} at byte {}", place.name, count(offset)),
        None => place.name.clone(),
    });
    std::iter::once(format!("made small: {lost} lost atoms are needed")).chain(places).collect()
}

fn moment_of(finding: &Finding, timeline: &Timeline) -> String {
    let begin = timeline.events().get(timeline.begin()).map_or(Time::ZERO, |(time, _)| *time);
    let at = moment(timeline, finding.state.at);
    let into = if at > begin { at.since(begin).as_ns() } else { 0 };
    format!(
        "{} into the run, {} of the drive's time, after {} acknowledgements",
        seconds(into as f64 / 1e9),
        seconds(at.as_ns() as f64 / 1e9),
        count(timeline.acks_before(finding.state.at) as u64)
    )
}

/// The recorded drive's losses and its dump.
fn drive(power: &Power) -> [String; 2] {
    let flash = format!(
        "{} programs were broken off; {} pages of the mapping table were not saved",
        count(power.torn_pages),
        count(power.lost_map_pages)
    );
    let bank = format!(
        "the capacitors had {} to save; {} pages were dumped, and {} units were not; {} were left",
        bytes(power.promised_bytes),
        count(power.dumped_pages),
        count(power.lost_units),
        energy(power.energy_left_nj as f64 / 1e6)
    );
    [bank, flash]
}

/// Which commands' bytes are lost: how much of what was unsettled, and of each command.
fn atoms(
    state: &State,
    timeline: &Timeline,
    model: Model,
    unsettled: &BTreeMap<usize, usize>,
) -> Vec<String> {
    let lost = state.lost_atoms(timeline);
    let of = match unsettled.get(&state.at) {
        Some(all) if model == Model::Adversarial => format!(" of {}", count(*all as u64)),
        _ => String::new(),
    };
    let mut lines = vec![format!(
        "{}{of} atoms that no flush had made durable are lost (an atom is {} B)",
        count(lost.len() as u64),
        count(u64::from(timeline.atom_bytes()))
    )];
    if !state.after.is_empty() {
        lines.push(format!(
            "recovery had written {} atoms when the power failed for the second time",
            count(state.after.len() as u64)
        ));
    }
    let mut commands: BTreeMap<u32, usize> = BTreeMap::new();
    for atom in lost {
        if let Some(event) = timeline.newest(atom, state.at).event {
            *commands.entry(event).or_default() += 1;
        }
    }
    // The last ones first: those are the ones that a flush would have kept.
    let now = moment(timeline, state.at);
    for (&event, &atoms) in commands.iter().rev().take(NAMED_MOST) {
        let (time, submitted) = timeline.events()[event as usize];
        let Event::Submitted(request) = submitted else { continue };
        let all = request.effects(timeline.atom_sectors()).count();
        lines.push(format!(
            "{} of {} atoms of the {} at sector {}, submitted {} before",
            count(atoms as u64),
            count(all as u64),
            submitted.name(),
            count(request.lba),
            seconds(now.since(time).as_ns() as f64 / 1e9)
        ));
    }
    let more = commands.len().saturating_sub(NAMED_MOST);
    if more > 0 {
        lines.push(format!("and of {} more commands", count(more as u64)));
    }
    lines
}
