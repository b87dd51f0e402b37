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
        }
        if let Some(recovery) = &run.record.recovery {
            let (id, title) = names("recovery-steps", "Steps of the recovery");
            figures.push(steps(Figure::new(id, title), recovery));
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
        "At {} moments of the run; at worst, whatever the workload; and what the {} of {} hold.",
        format::count(power.moments as f64),
        format::count(bank.parts as f64),
        bank.part.replace('_', " "),
    ))
}

fn steps(mut figure: Figure, recovery: &Recovery) -> Figure {
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
        "After the cut at the end of the run: ready after {}. The bank charges meanwhile.",
        format::seconds(recovery.time_ms.max / 1e3)
    ))
}

fn bar(label: &str, value: String, part: f64, most: f64, colour: usize) -> Bar {
    let percent = if most > 0.0 { part / most * 100.0 } else { 0.0 };
    let title = format!("{label}: {value}");
    Bar { label: label.to_owned(), value, segments: vec![Segment { colour, percent, title }] }
}
