//! Power loss: what a dump takes against what the capacitors hold, and the steps of a recovery.

use super::{Bar, Figure, Segment, Size};
use crate::format;
use crate::run::Run;
use crate::table::Table;
use leyden_experiment::{Power, Recovery};

/// Two figures for each run of a drive with capacitors; none for the others.
pub(crate) fn figures(runs: &[Run]) -> Vec<Figure> {
    let several = runs.len() > 1;
    let mut figures = Vec::new();
    for (i, run) in runs.iter().enumerate() {
        let names = |id: &str, title: &str| {
            if several {
                (format!("{id}-{}", i + 1), format!("{title}: {}", run.label))
            } else {
                (id.to_owned(), title.to_owned())
            }
        };
        if let Some(power) = &run.record.power {
            let (id, title) = names("dump-energy", "Energy of a dump");
            figures.push(energy(Figure::new(id, title), power));
            if !power.made.is_empty() {
                let (id, title) = names("power-cuts", "Power cuts");
                figures.push(cuts(Figure::new(id, title), power));
            }
        }
        if let Some(recovery) = &run.record.recovery {
            let (id, title) = names("recovery-steps", "Steps of the recovery");
            let after = match &run.record.power {
                Some(power) if !power.made.is_empty() => "the last power cut",
                _ => "the cut at the end of the run",
            };
            figures.push(steps(Figure::new(id, title), recovery, after));
        }
    }
    figures
}

fn energy(mut figure: Figure, power: &Power) -> Figure {
    let Power { energy_mj, dump_ms, worst, bank, .. } = power;
    let rows = [
        ("median", energy_mj.p50, Some(dump_ms.p50), None),
        ("99 %", energy_mj.p99, Some(dump_ms.p99), None),
        ("peak", energy_mj.max, Some(dump_ms.max), Some((power.capacitance_uf, power.parts))),
        (
            "at worst",
            worst.energy_mj,
            Some(worst.dump_ms),
            Some((worst.capacitance_uf, worst.parts)),
        ),
        ("the bank", bank.energy_mj, None, Some((bank.capacitance_uf, bank.parts))),
    ];
    let most = rows.iter().map(|row| row.1).fold(0.0, f64::max);
    let mut table = Table::new(["", "energy, mJ", "dump, ms", "capacitance, µF", "parts"]);
    for (index, (label, energy, dump, farads)) in rows.into_iter().enumerate() {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| format::DASH.to_owned());
        table.rows.push(vec![
            label.to_owned(),
            format::number(energy),
            or_dash(dump.map(format::number)),
            or_dash(farads.map(|(uf, _)| format::number(uf))),
            or_dash(farads.map(|(_, parts)| format::count(parts as f64))),
        ]);
        let value = format!("{}\u{a0}mJ", format::number(energy));
        figure.bars.push(bar(label, value, energy, most, index / 3));
    }
    figure.size = Size::Half;
    figure.table = Some(table);
    figure.note(format!(
        "{}; at worst, whatever the workload; and what the {} of {} hold.",
        looked_at(power),
        format::count(bank.parts as f64),
        bank.part.replace('_', " "),
    ))
}

/// What the distribution is of.
fn looked_at(power: &Power) -> String {
    let moments = format::count(power.moments as f64);
    match power.sampled {
        None => format!("At {moments} moments of the run"),
        Some(sampled) => format!(
            "Of the {} power cuts (at {moments} moments of the run, the peak is {}\u{a0}mJ)",
            format::count(power.cuts as f64),
            format::number(sampled.energy_mj.max),
        ),
    }
}

/// The cuts that the run listed, a row each.
fn cuts(mut figure: Figure, power: &Power) -> Figure {
    let is_cached = power.made.iter().any(|cut| cut.dirty_units.is_some());
    let columns = [
        "at",
        "commands cut off",
        "promised",
        "mapping pages",
        "dump",
        "energy, mJ",
        "promised writes lost",
        "ready after",
    ];
    let mut table =
        Table::new(columns.into_iter().chain(is_cached.then_some("dirty units cached")));
    let most = power.made.iter().map(|cut| cut.energy_mj).fold(0.0, f64::max);
    for cut in &power.made {
        let at = format::seconds(cut.at_s);
        let ready = cut.ready_ms.map(|ms| format::seconds(ms / 1e3));
        let mut row = vec![
            at.clone(),
            format::count(cut.commands_cut_off as f64),
            format::bytes(cut.promised_bytes as f64),
            format::count(cut.map_pages as f64),
            format::seconds(cut.dump_ms / 1e3),
            format::number(cut.energy_mj),
            format::count(cut.lost_promised_writes as f64),
            ready.unwrap_or_else(|| "cut again".to_owned()),
        ];
        row.extend(cut.dirty_units.map(|units| format::count(units as f64)));
        table.rows.push(row);
        let value = format!("{}\u{a0}mJ", format::number(cut.energy_mj));
        let colour = usize::from(cut.lost_promised_writes > 0);
        figure.bars.push(bar(&at, value, cut.energy_mj, most, colour));
    }
    figure.table = Some(table);
    figure.note(format!(
        "Energy of each dump, by the time of the cut. {} promised writes were lost.",
        format::count(power.lost_promised_writes as f64)
    ))
}

fn steps(mut figure: Figure, recovery: &Recovery, after: &str) -> Figure {
    let charge = ("charging the bank".to_owned(), recovery.charge_ms, None);
    let steps = recovery
        .steps
        .iter()
        .map(|step| (step.name.replace('_', " "), step.time_ms, Some(step.pages)));
    let rows: Vec<_> = steps.chain([charge]).collect();
    let most = rows.iter().map(|row| row.1).fold(0.0, f64::max);
    let mut table = Table::new(["step", "pages read", "time"]);
    for (name, ms, pages) in rows {
        let time = format::seconds(ms / 1e3);
        let pages_text = pages.map_or_else(|| format::DASH.to_owned(), |n| format::count(n as f64));
        table.rows.push(vec![name.clone(), pages_text, time.clone()]);
        figure.bars.push(bar(&name, time, ms, most, usize::from(pages.is_none())));
    }
    figure.size = Size::Half;
    figure.table = Some(table);
    figure.note(format!(
        "After {after}; the longest took {} until the drive was ready. The bank charges meanwhile.",
        format::seconds(recovery.time_ms.max / 1e3)
    ))
}

fn bar(label: &str, value: String, part: f64, most: f64, colour: usize) -> Bar {
    let percent = if most > 0.0 { part / most * 100.0 } else { 0.0 };
    let title = format!("{label}: {value}");
    Bar { label: label.to_owned(), value, segments: vec![Segment { colour, percent, title }] }
}
