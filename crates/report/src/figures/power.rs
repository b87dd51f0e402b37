//! Power loss: energy of a dump against the capacitors' energy, and the steps of a recovery.

use super::over_time::sentences;
use super::spec::{self, Line, Points, Stroke, Unit};
use super::{Bar, Figure, MOST_OVERLAID, Segment, Size, coincide};
use crate::format::{self, rounded};
use crate::run::Run;
use crate::table::Table;
use leyden_record::{Power, Recovery};

/// Two figures for each run of a drive with capacitors; none for the others.
pub(crate) fn figures(runs: &[Run]) -> Vec<Figure> {
    let several = runs.len() > 1;
    if runs.len() > MOST_OVERLAID {
        return Vec::new();
    }
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
            if !several && !power.at.is_empty() {
                figures.push(over_time(runs));
            }
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
    if several && runs.iter().any(|run| !needs(run).0.is_empty()) {
        figures.insert(0, over_time(runs));
    }
    figures
}

/// The moments looked at, in seconds of the axis of time, and the energy that a cut then would have needed.
fn needs(run: &Run) -> (Vec<f64>, Vec<f64>) {
    let start = run.record.series.start_s;
    let moments = run.record.power.iter().flat_map(|power| &power.at);
    let moments = moments.filter(|moment| moment.at_s >= start);
    moments.map(|moment| (rounded(moment.at_s - start), rounded(moment.energy_mj))).unzip()
}

/// The energy that a power cut needs, at any moment, against what the bank holds.
fn over_time(runs: &[Run]) -> Figure {
    let domain = spec::time_domain(runs);
    let level = |label: String, colour, energy_mj: f64| Line {
        label,
        colour,
        stroke: Stroke::Solid,
        points: Points::Here { x: domain.to_vec(), y: vec![rounded(energy_mj); 2] },
    };
    let mut lines = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let (x, y) = needs(run);
        let label = if runs.len() > 1 { run.label.clone() } else { "needed now".to_owned() };
        if !x.is_empty() {
            lines.push(Line {
                label,
                colour: index,
                stroke: Stroke::Solid,
                points: Points::Here { x, y },
            });
        }
    }
    let mut table = Table::new(["", "energy"]);
    for line in &lines {
        let most = line.points.here().1.iter().copied().fold(0.0, f64::max);
        table.rows.push(vec![format!("{}, peak", line.label), format::energy(most)]);
    }
    // Runs of one drive share these lines; of several, the first drive's would mislead.
    let banks = || runs.iter().filter_map(|run| run.record.power.as_ref());
    let bank = banks().next().map_or(0.0, |power| power.bank.energy_mj);
    let worst = banks().next().map_or(0.0, |power| power.worst.energy_mj);
    let same = |of: fn(&Power) -> f64| {
        let mut all = banks().map(of);
        let first = all.next();
        first.is_some_and(|first| all.all(|other| other.to_bits() == first.to_bits()))
    };
    let palette = runs.len().max(1);
    for (label, energy, is_same) in [
        ("the bank holds", bank, same(|power| power.bank.energy_mj)),
        ("at worst", worst, same(|power| power.worst.energy_mj)),
    ] {
        if is_same && energy > 0.0 {
            lines.push(level(label.to_owned(), palette + lines.len(), energy));
            table.rows.push(vec![label.to_owned(), format::energy(energy)]);
        }
    }
    let mut figure = Figure::new("energy-over-time", "Energy that a power cut needs, over time");
    figure.size = Size::Wide;
    figure.table = Some(table);
    let coincide = coincide::dash(runs, &mut lines, Unit::Energy);
    let drawn = "Energy of a dump at moments drawn from the run's seed, joined by lines.";
    let note = sentences(&[drawn, &coincide, spec::key_to_marks(runs)]);
    let chart = spec::lines_over_time(runs, lines, Unit::Energy, "Energy that a power cut needs");
    figure.note(note).chart(chart)
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
    // Of one cut the percentiles are all the same.
    let is_one = power.cuts == 1 && power.sampled.is_some();
    let rows = rows.into_iter().skip(if is_one { 2 } else { 0 });
    let most = rows.clone().map(|row| row.1).fold(0.0, f64::max);
    let mut table = Table::new(["", "energy", "dump", "capacitance", "parts"]);
    for (label, energy, dump, farads) in rows {
        let is_limit = matches!(label, "at worst" | "the bank");
        let label = if is_one && label == "peak" { "the power cut" } else { label };
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| format::DASH.to_owned());
        table.rows.push(vec![
            label.to_owned(),
            format::energy(energy),
            or_dash(dump.map(|ms| format::seconds(ms / 1e3))),
            or_dash(farads.map(|(uf, _)| format::capacitance(uf))),
            or_dash(farads.map(|(_, parts)| format::count(parts as f64))),
        ]);
        let value = format::energy(energy);
        figure.bars.push(bar(label, value, energy, most, usize::from(is_limit)));
    }
    figure.size = Size::Half;
    figure.table = Some(table);
    figure.note(format!(
        "{}; at worst, for any workload; and the energy of the {} of {}.",
        looked_at(power),
        format::count(bank.parts as f64),
        bank.part.replace('_', " "),
    ))
}

/// The moments that the distribution covers.
fn looked_at(power: &Power) -> String {
    let moments = format::count(power.moments as f64);
    match power.sampled {
        None => format!("At {moments} moments of the run"),
        Some(sampled) => {
            let cuts = match power.cuts {
                1 => "Of the power cut".to_owned(),
                cuts => format!("Of the {} power cuts", format::count(cuts as f64)),
            };
            let peak = format::energy(sampled.energy_mj.max);
            format!("{cuts} (at {moments} moments of the run, the peak is {peak})")
        }
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
        "energy",
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
            format::energy(cut.energy_mj),
            format::count(cut.lost_promised_writes as f64),
            ready.unwrap_or_else(|| "cut again".to_owned()),
        ];
        row.extend(cut.dirty_units.map(|units| format::count(units as f64)));
        table.rows.push(row);
        let value = format::energy(cut.energy_mj);
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
    let steps = recovery.steps.iter().map(|step| Row {
        name: step.name.replace('_', " "),
        pages: Some(step.pages),
        time_ms: step.time_ms,
    });
    let charging =
        Row { name: "charging the bank".to_owned(), pages: None, time_ms: recovery.charge_ms };
    let steps: Vec<Row> = steps.collect();
    let end_ms = steps.iter().map(|row| row.time_ms).sum::<f64>().max(charging.time_ms);
    let mut table = Table::new(["step", "pages read", "from", "time"]);
    let mut from_ms = 0.0;
    for row in steps.iter().chain([&charging]) {
        // The bank charges from power-on, while the steps follow one another.
        let starts_ms = if row.pages.is_some() { from_ms } else { 0.0 };
        let time = format::seconds(row.time_ms / 1e3);
        let pages = row.pages.map_or_else(|| format::DASH.to_owned(), |n| format::count(n as f64));
        let from = format::seconds(starts_ms / 1e3);
        table.rows.push(vec![row.name.clone(), pages, from, time.clone()]);
        let mut bar = bar(&row.name, time, row.time_ms, end_ms, usize::from(row.pages.is_none()));
        if end_ms > 0.0 {
            bar.from_percent = rounded(starts_ms / end_ms * 100.0);
        }
        figure.bars.push(bar);
        from_ms = starts_ms + row.time_ms;
    }
    figure.size = Size::Half;
    figure.table = Some(table);
    figure.note(format!(
        "After {after}, from power-on; the longest recovery of the run took {} until the drive was ready.",
        format::seconds(recovery.time_ms.max / 1e3)
    ))
}

/// A step of a recovery, or the charging beside it.
struct Row {
    name: String,
    /// None where nothing is read.
    pages: Option<u64>,
    time_ms: f64,
}

fn bar(label: &str, value: String, part: f64, most: f64, colour: usize) -> Bar {
    let percent = if most > 0.0 { part / most * 100.0 } else { 0.0 };
    let title = format!("{label}: {value}");
    let segments = vec![Segment { colour, percent, title }];
    Bar { label: label.to_owned(), value, from_percent: 0.0, segments }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leyden_record::{RecoveryStep, Sampled};

    #[test]
    fn one_power_cut_has_no_percentiles() {
        let labels = |cuts| {
            let sampled = Some(Sampled::default());
            let power = Power { cuts, sampled, ..Power::default() };
            let figure = energy(Figure::new("energy", "Energy"), &power);
            let labels = figure.bars.into_iter().map(|bar| bar.label).collect::<Vec<_>>();
            (labels, figure.note)
        };
        let (one, note) = labels(1);
        assert_eq!(one, ["the power cut", "at worst", "the bank"]);
        assert!(note.starts_with("Of the power cut (at "), "{note}");
        let (two, note) = labels(2);
        assert_eq!(two, ["median", "99 %", "peak", "at worst", "the bank"]);
        assert!(note.starts_with("Of the 2 power cuts (at "), "{note}");
    }

    #[test]
    fn steps_follow_one_another_while_the_bank_charges() {
        let step = |name: &str, time_ms| RecoveryStep { name: name.into(), pages: 1, time_ms };
        let steps_of = vec![step("find_root", 10.0), step("load_map", 30.0)];
        let recovery = Recovery { steps: steps_of, charge_ms: 80.0, ..Recovery::default() };
        let figure = steps(Figure::new("steps", "Steps"), &recovery, "the cut");
        let bars = figure.bars.iter().map(|bar| (bar.from_percent, bar.segments[0].percent));
        let bars: Vec<(f64, f64)> = bars.collect();
        assert_eq!(bars, [(0.0, 12.5), (12.5, 37.5), (0.0, 100.0)]);
    }
}
