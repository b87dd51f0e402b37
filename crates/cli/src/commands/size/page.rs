//! The page of `leyden size`: what less capacitance loses, the bank while it dumps, its board, and the weight of each
//! assumption.

use leyden_config::Loaded;
use leyden_record::Bank;
use leyden_report::figures::spec::{self, Across, Chart, Line, Points, Stroke, Unit};
use leyden_report::figures::{Bar, Figure, Key, Section, Segment, Size, Table};
use leyden_report::format::{bytes, capacitance, count, energy, number, percent, rounded};
use leyden_report::{AnswerPage, Card, ReportError, render_answer};
use leyden_run::size::{Discharge, Sizing, WorstBank, WorstCases, ZoneSizing};
use serde_json::json;

use crate::version;

/// The material of a page: arithmetic, and runs if there were any.
pub(super) struct Parts<'a> {
    pub(super) loaded: &'a Loaded,
    pub(super) command: &'a str,
    pub(super) discharge: Discharge,
    /// Of a drive with a mapping table.
    pub(super) worst: Option<WorstCases>,
    pub(super) sizing: Option<&'a Sizing>,
    /// Of a zoned drive.
    pub(super) zones: Option<&'a ZoneSizing>,
}

pub(super) fn page(parts: &Parts<'_>) -> Result<String, ReportError> {
    let mut sections = Vec::new();
    if let Some(sizing) = parts.sizing {
        sections.push(Section::new("loss", "Loss with less capacitance", losses(sizing)));
    }
    if let Some(zones) = parts.zones {
        sections.push(Section::new("loss", "Less capacitance", vec![protected(zones)]));
    }
    sections.push(Section::new("dump", "The bank during a dump", vec![voltage(&parts.discharge)]));
    if let Some(worst) = &parts.worst {
        sections.push(Section::new(
            "protection",
            "Protection of the mapping table",
            vec![protections(worst, parts.sizing)],
        ));
        sections.push(Section::new("board", "Parts and board", vec![boards(worst)]));
        sections.push(Section::new("assumptions", "Assumptions", vec![assumptions(worst)]));
    }
    let name = &parts.loaded.scenario.name;
    let seed = parts.loaded.scenario.seed.to_string();
    render_answer(AnswerPage {
        title: format!("{name}: capacitance"),
        kind: "sizing",
        facts: facts(parts, &seed),
        cards: cards(parts),
        sections,
        caption: format!("{name}; seed {seed}; Leyden {}.", version::VERSION),
        command: parts.command,
        ..AnswerPage::default()
    })
}

fn facts(parts: &Parts<'_>, seed: &str) -> Vec<(&'static str, String)> {
    let mut facts = vec![("Scenario", parts.loaded.scenario.name.clone())];
    if let Some(worst) = &parts.worst {
        let (capacity, pages) = (bytes(worst.capacity_bytes), count(worst.table_pages));
        facts.push(("Capacity", format!("{capacity}, {pages} mapping pages")));
    }
    if let Some(sizing) = parts.sizing {
        facts.push(("Runs", format!("{} commands on each drive", count(sizing.commands))));
    }
    facts.push(("Seed", seed.to_owned()));
    facts.push(("Leyden", version::VERSION.to_owned()));
    facts
}

/// The least capacitance tried with which no cut loses data; none if all lose.
fn knee_uf(sizing: &Sizing) -> Option<f64> {
    let safe = sizing.with_less.iter().filter(|less| less.losing <= 0.0);
    safe.map(|less| less.capacitance_uf).reduce(f64::min)
}

fn card(label: &'static str, microfarads: f64, note: String) -> Card {
    let shown = capacitance(microfarads);
    let (value, unit) = shown.split_once(' ').unwrap_or((&shown, ""));
    Card { label, value: value.to_owned(), unit: unit.to_owned(), note }
}

fn cards(parts: &Parts<'_>) -> Vec<Card> {
    let mut cards = Vec::new();
    let own = parts.worst.iter().flat_map(|worst| &worst.banks).find(|bank| bank.own);
    if let Some(own) = own {
        let note = format!(
            "For any workload: {} in {} ms, {} parts.",
            energy(own.energy_mj),
            number(own.dump_ms),
            count(own.parts)
        );
        cards.push(card("At worst", own.capacitance_uf, note));
    }
    let sized = parts.sizing.and_then(|sizing| sizing.variants.iter().find(|drive| drive.own));
    if let Some(shown) = sized.and_then(|own| own.measured.as_ref()) {
        let note = format!("For the costliest moment of the run: {}.", energy(shown.energy_mj.max));
        cards.push(card("This workload", shown.capacitance_uf, note));
    }
    if let Some(knee) = parts.sizing.and_then(knee_uf) {
        cards.push(card(
            "Knee",
            knee,
            "The least bank tried with which no cut loses data.".to_owned(),
        ));
    }
    let bank = parts.sizing.map(|it| &it.bank).or_else(|| parts.zones.map(|it| &it.bank));
    if let Some(Bank { part, parts, capacitance_uf, energy_mj, .. }) = bank {
        let part = part.replace('_', " ");
        let note = format!(
            "{} of {part}: {} at the end of their life.",
            count(*parts),
            energy(*energy_mj)
        );
        cards.push(card("The scenario's bank", *capacitance_uf, note));
    }
    cards
}

/// A logarithmic axis of capacitances.
fn capacitance_axis(low: f64, high: f64) -> serde_json::Value {
    let label = "datum.value >= 1e6 ? format(datum.value / 1e6, '~r') + ' F' \
                 : datum.value >= 1e3 ? format(datum.value / 1e3, '~r') + ' mF' \
                 : format(datum.value, '~r') + ' µF'";
    spec::x_axis(
        &json!({"type": "log", "domain": [low, high], "nice": false}),
        &json!({"title": "capacitance of the bank (logarithmic)", "labelExpr": label, "values": ticks(low, high), "labelOverlap": true}),
    )
}

/// 1, 2 and 5 times powers of ten.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let all =
        decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|lead| rounded(lead * 10_f64.powi(decade))));
    all.filter(|tick| (low..=high).contains(tick)).collect()
}

pub(super) fn line(
    label: &str,
    colour: usize,
    stroke: Stroke,
    points: impl Iterator<Item = (f64, f64)>,
) -> Line {
    let (x, y) = points.map(|(x, y)| (rounded(x), rounded(y))).unzip();
    Line { label: label.to_owned(), colour, stroke, points: Points::Here { x, y } }
}

/// Two curves over the capacitance, with the knee marked: moments that lose, and bytes.
fn losses(sizing: &Sizing) -> Vec<Figure> {
    let mut banks = sizing.with_less.clone();
    banks.sort_by(|a, b| a.capacitance_uf.total_cmp(&b.capacitance_uf));
    let mut table = Table::new([
        "bank",
        "of the worst case",
        "moments that lose",
        "lost, mean",
        "lost, most",
        "mapping pages not reached, most",
    ]);
    for bank in &banks {
        table.rows.push(vec![
            capacitance(bank.capacitance_uf),
            percent(bank.share),
            percent(bank.losing),
            bytes(bank.lost_bytes_mean.round()),
            bytes(bank.lost_bytes_max as f64),
            count(bank.unsaved_map_pages_max),
        ]);
    }
    let lost = [
        line(
            "largest loss",
            1,
            Stroke::Thin,
            banks.iter().map(|it| (it.capacitance_uf, it.lost_bytes_max as f64)),
        ),
        line(
            "mean over all moments",
            0,
            Stroke::Solid,
            banks.iter().map(|it| (it.capacitance_uf, it.lost_bytes_mean)),
        ),
    ];
    let share = line(
        "moments that lose data",
        0,
        Stroke::Solid,
        banks.iter().map(|it| (it.capacitance_uf, it.losing)),
    );
    let figure = |id: &str, title: &str, unit, lines, axis_title: &str| {
        let mut figure = Figure::new(id, title).note(
            "A cut at each moment of the run that was looked at, with banks below the worst case.",
        );
        figure.table = Some(table.clone());
        if banks.len() < 2 {
            return figure.nothing("One bank makes no curve.");
        }
        figure.chart(loss_chart(sizing, lines, unit, title, axis_title))
    };
    vec![
        figure(
            "losing",
            "Power cuts that lose data",
            Unit::Percent,
            vec![share],
            "share of the moments (%)",
        ),
        figure("lost", "Data lost in a power cut", Unit::Bytes, lost.into(), "bytes"),
    ]
}

fn loss_chart(
    sizing: &Sizing,
    lines: Vec<Line>,
    unit: Unit,
    title: &str,
    axis_title: &str,
) -> Chart {
    let ends = || lines[0].points.here().0.iter().copied();
    let (low, high) = (ends().fold(f64::INFINITY, f64::min), ends().fold(0.0, f64::max));
    let values: Vec<f64> = lines.iter().flat_map(|line| line.points.here().1).copied().collect();
    let mut y = spec::y_axis(unit, &values);
    y["axis"]["title"] = json!(axis_title);
    let mut spec = spec::line_spec(&lines, &capacitance_axis(low, high), &y, "linear", title);
    spec["mark"]["point"] = json!({"size": 20, "filled": true});
    spec["mark"]["clip"] = json!(false); // the first and the last point lie on the edges
    if let Some(knee) = knee_uf(sizing) {
        spec::with_marks(&mut spec, &[(rounded(knee), format!("knee, {}", capacitance(knee)))]);
    }
    Chart { across: Across::Capacitance, unit, lines, rows: Vec::new(), spec }
}

/// The buffer that less capacitance protects.
fn protected(zones: &ZoneSizing) -> Figure {
    let mut figure =
        Figure::new("protected", "Buffer that a bank protects").note("At worst, for any workload.");
    figure.size = Size::Wide;
    let mut table = Table::new([
        "of the worst case",
        "energy",
        "protected buffer",
        "open zones",
        "active zones",
        "ZRWAs",
    ]);
    let most = zones.with_less.iter().map(|it| it.protected_bytes).max().unwrap_or(0).max(1) as f64;
    for less in &zones.with_less {
        let (share, holds) = (percent(less.share), bytes(less.protected_bytes as f64));
        let bar = 100.0 * less.protected_bytes as f64 / most;
        figure.bars.push(bar_of(
            &format!("{share}, {}", energy(less.energy_mj)),
            &holds,
            0.0,
            &[(0, bar, holds.clone())],
        ));
        let zones = [less.open_zones, less.active_zones, less.areas].map(count);
        table.rows.push([share, energy(less.energy_mj), holds].into_iter().chain(zones).collect());
    }
    figure.table = Some(table);
    figure
}

/// A bar of segments: colour, percent of the full length, and its title.
fn bar_of(label: &str, value: &str, from_percent: f64, segments: &[(usize, f64, String)]) -> Bar {
    let segments = segments.iter().map(|(colour, percent, title)| Segment {
        colour: *colour,
        percent: rounded(*percent),
        title: title.clone(),
    });
    Bar {
        label: label.to_owned(),
        value: value.to_owned(),
        from_percent: rounded(from_percent),
        segments: segments.collect(),
    }
}

/// The bank's voltage from the cut on.
fn voltage(discharge: &Discharge) -> Figure {
    let curve = |label: &str, colour, stroke, points: &[(f64, f64)]| {
        line(label, colour, stroke, points.iter().copied())
    };
    let level = [(0.0, discharge.minimum_v), (discharge.dump_ms, discharge.minimum_v)];
    let lines = vec![
        curve("new", 2, Stroke::Solid, &discharge.new),
        curve("at the end of its life", 0, Stroke::Solid, &discharge.aged),
        curve(
            "the same, behind its series resistance",
            5,
            Stroke::Dashed,
            &discharge.behind_resistance,
        ),
        curve("the converter stops", 7, Stroke::Thin, &level),
    ];
    let mut table = Table::new(["bank", "at the cut", "at the end", "dump reached"]);
    for line in &lines[..3] {
        let (x, y) = line.points.here();
        let volts = |at: Option<&f64>| {
            at.map_or_else(
                || "below the minimum".to_owned(),
                |volts| format!("{} V", number(*volts)),
            )
        };
        let reached = x.last().map_or(0.0, |ms| ms / discharge.dump_ms.max(f64::MIN_POSITIVE));
        table.rows.push(vec![
            line.label.clone(),
            volts(y.first()),
            volts(y.last()),
            percent(reached),
        ]);
    }
    let values: Vec<f64> = lines.iter().flat_map(|line| line.points.here().1).copied().collect();
    let x = spec::x_axis(
        &json!({"domain": [0, rounded(discharge.dump_ms)], "nice": false}),
        &json!({"title": "time after the power cut (ms)", "labelExpr": spec::NUMBER}),
    );
    let title = "Voltage of the bank over the dump at worst";
    let spec = spec::line_spec(&lines, &x, &spec::y_axis(Unit::Volts, &values), "linear", title);
    let mut figure = Figure::new("voltage", title).note(format!(
        "{} of {}, drained at the dump's mean power. Series resistance: while all dies program.",
        count(discharge.parts),
        discharge.part.replace('_', " ")
    ));
    figure.size = Size::Wide;
    figure.table = Some(table);
    figure.chart(Chart {
        across: Across::AfterCut,
        unit: Unit::Volts,
        lines,
        rows: Vec::new(),
        spec,
    })
}

/// The scenario's own bank.
fn own(worst: &WorstCases) -> Option<&WorstBank> {
    worst.banks.iter().find(|bank| bank.own)
}

/// Capacitance of each protection, with the scenario's dump and part.
fn protections(worst: &WorstCases, sizing: Option<&Sizing>) -> Figure {
    let figure = Figure::new("protections", "Capacitance by protection of the mapping table");
    let Some(own) = own(worst) else {
        return figure.nothing("The scenario's own drive is impossible.");
    };
    let mut figure = figure.note("Whole bar: at worst. *: the scenario's own.");
    figure.size = Size::Wide;
    if sizing.is_some() {
        figure.keys = vec![key("costliest moment of the run", 0), key("at worst", 5)];
    }
    let banks = worst
        .banks
        .iter()
        .filter(|bank| bank.dump == own.dump && bank.part == own.part && bank.problem.is_none());
    let most = banks.clone().map(|bank| bank.capacitance_uf).fold(f64::MIN_POSITIVE, f64::max);
    let mut table = Table::new(["protection", "at worst", "parts", "dump", "this workload"]);
    for bank in banks {
        let name = super::worst::protection(bank);
        let same = |it: &&leyden_run::size::SizedDrive| {
            (&it.protection, it.protected, &it.dump)
                == (&bank.protection, bank.protected, &bank.dump)
        };
        let measured =
            sizing.and_then(|it| it.variants.iter().find(same)).and_then(|it| it.measured);
        let measured = measured.map(|shown| shown.capacitance_uf.min(bank.capacitance_uf));
        let at_worst = capacitance(bank.capacitance_uf);
        let run = measured.map_or_else(|| leyden_report::format::DASH.to_owned(), capacitance);
        let part = 100.0 * measured.unwrap_or(0.0) / most;
        let segments = [
            (0, part, format!("costliest moment: {run}")),
            (5, 100.0 * bank.capacitance_uf / most - part, format!("at worst: {at_worst}")),
        ];
        figure.bars.push(bar_of(&name, &at_worst, 0.0, &segments));
        table.rows.push(vec![
            name,
            at_worst,
            count(bank.parts),
            format!("{} ms", number(bank.dump_ms)),
            run,
        ]);
    }
    figure.table = Some(table);
    figure
}

fn key(label: &str, colour: usize) -> Key {
    Key { label: label.to_owned(), colour, thin: false, dashed: false }
}

/// The board that each kind of part covers for the scenario's own need.
fn boards(worst: &WorstCases) -> Figure {
    let figure = Figure::new("boards", "Board area by kind of part");
    let Some(own) = own(worst) else {
        return figure.nothing("The scenario's own drive is impossible.");
    };
    let mut figure = figure.note("The scenario's protection and dump; parts whose voltage behind their series resistance suffices. Leyden knows no prices.");
    figure.size = Size::Wide;
    figure.keys = vec![key("the scenario's part", 1), key("other parts", 0)];
    let banks = worst.banks.iter().filter(|bank| {
        (&bank.dump, &bank.protection, bank.protected)
            == (&own.dump, &own.protection, own.protected)
            && bank.problem.is_none()
    });
    let most = banks.clone().map(|bank| bank.area_cm2).fold(f64::MIN_POSITIVE, f64::max);
    let mut table =
        Table::new(["part", "capacitance", "parts", "parts with ESR", "board", "height"]);
    for bank in banks {
        let name = bank.part.replace('_', " ");
        let area = format!("{} cm²", number(bank.area_cm2));
        let parts = bank.parts_with_esr.map_or_else(|| "none will do".to_owned(), count);
        figure.bars.push(bar_of(
            &name,
            &area,
            0.0,
            &[(usize::from(bank.own), 100.0 * bank.area_cm2 / most, format!("{parts} parts"))],
        ));
        table.rows.push(vec![
            name,
            capacitance(bank.capacitance_uf),
            count(bank.parts),
            parts,
            area,
            format!("{} mm", number(bank.height_mm)),
        ]);
    }
    figure.table = Some(table);
    figure
}

/// How far each assumption moves the scenario's own bank, the widest range first.
pub(super) fn assumptions(worst: &WorstCases) -> Figure {
    let figure = Figure::new("tornado", "Capacitance under other assumptions");
    let Some(own) = own(worst).map(|bank| bank.capacitance_uf) else {
        return figure.nothing("The scenario's own drive is impossible.");
    };
    let mut ranges: Vec<_> = worst
        .ranges
        .iter()
        .map(|range| {
            let [a, b] = range.capacitance_uf;
            (range, a.min(b), a.max(b))
        })
        .collect();
    ranges.sort_by(|a, b| (b.2 - b.1).total_cmp(&(a.2 - a.1)));
    let most = ranges.iter().map(|(_, _, high)| *high).fold(own, f64::max);
    let mut figure = figure.note(format!(
        "Blue: less than the {} of the scenario's assumptions. Orange: more. Sources of all assumptions: docs/power.md.",
        capacitance(own)
    ));
    figure.size = Size::Wide;
    figure.keys = vec![key("less", 0), key("more", 1)];
    let mut table =
        Table::new(["assumption", "from", "to", "capacitance", "to", "parts with ESR", "to"]);
    for (range, low, high) in ranges {
        let of_most = |value: f64| 100.0 * value / most;
        let value = format!("{} to {}", capacitance(low), capacitance(high));
        let segments = [
            (0, of_most(own.min(high) - low.min(own)), value.clone()),
            (1, of_most(high.max(own) - own.max(low)), value.clone()),
        ];
        let segments: Vec<_> = segments.into_iter().filter(|segment| segment.1 > 0.0).collect();
        let name = range.what.trim_start_matches("power.").replace('_', " ");
        figure.bars.push(bar_of(&name, &value, of_most(low), &segments));
        let [from, to] = range.values.clone();
        let [first, last] = range.capacitance_uf.map(capacitance);
        let [few, many] = range.parts.map(count);
        table.rows.push(vec![range.what.clone(), from, to, first, last, few, many]);
    }
    figure.table = Some(table);
    figure
}
