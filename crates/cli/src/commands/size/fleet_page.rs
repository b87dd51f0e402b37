//! The page of `leyden size --fleet`: drives whose bank has become too small, the spread behind that, and the weight of
//! each assumption.

use leyden_config::Loaded;
use leyden_report::figures::spec::{self, Across, Chart, Line, Stroke, Unit};
use leyden_report::figures::{Figure, Section, Size, Table};
use leyden_report::format::{bytes, count, energy, percent, rounded};
use leyden_report::{AnswerPage, Card, ReportError, render_answer};
use leyden_run::size::{Fleet, FleetAge, WorstCases};
use serde_json::{Value, json};

use super::page::{assumptions, line};
use crate::version;

/// Rarer than this is the foot of the axis: no fleet is so large.
const RAREST: f64 = 1e-9;
/// Of a normal distribution, 99.7 % lie within so many standard deviations.
const DEVIATIONS: f64 = 3.0;

pub(super) fn page(
    loaded: &Loaded,
    fleet: &Fleet,
    worst: &WorstCases,
    command: &str,
) -> Result<String, ReportError> {
    let scenario = &loaded.scenario;
    let name = &scenario.name;
    let sections = vec![
        Section::new("short", "Banks that are too small", vec![short(fleet), parts(fleet)]),
        Section::new("spread", "Spread of the banks", vec![spread(fleet)]),
        Section::new("assumptions", "Assumptions", vec![assumptions(worst)]),
    ];
    render_answer(AnswerPage {
        title: format!("{name}: a fleet of {} drives", count(fleet.drives)),
        kind: "fleet",
        facts: vec![
            ("Scenario", name.clone()),
            ("Bank", format!("{} parts a drive", count(fleet.parts))),
            ("Leyden", version::VERSION.to_owned()),
        ],
        cards: cards(fleet),
        sections,
        caption: format!("{name}; {} drives; Leyden {}.", count(fleet.drives), version::VERSION),
        command,
        ..AnswerPage::default()
    })
}

/// The fleet when its banks have reached the end of their life.
fn at_the_end(fleet: &Fleet) -> Option<&FleetAge> {
    fleet.ages.iter().find(|age| (age.age - 1.0).abs() < 1e-9)
}

/// A share that may be very small.
fn probability(short: f64) -> String {
    if short >= 1e-3 { percent(short) } else { format!("{short:.1e}") }
}

fn cards(fleet: &Fleet) -> Vec<Card> {
    let card = |label, value: String, note: String| {
        let (value, unit) = value.split_once(' ').unwrap_or((&value, ""));
        Card { label, value: value.to_owned(), unit: unit.to_owned(), note }
    };
    let mut cards = Vec::new();
    if let Some(end) = at_the_end(fleet) {
        let short = count(end.drives_short.round() as u64);
        let note = format!("Probability of a drive: {}.", probability(end.short));
        cards.push(card("Drives too weak at the end of life", short, note));
        let note = format!("Standard deviation: {}.", energy(end.deviation_mj));
        cards.push(card("The mean bank then holds", energy(end.mean_mj), note));
    }
    let note = "For any workload, at the costliest moment.".to_owned();
    cards.push(card("A dump needs", energy(fleet.need_mj), note));
    cards
}

/// An axis over the banks' life.
fn life(fleet: &Fleet) -> Value {
    let last = fleet.ages.last().map_or(1.0, |age| age.age);
    spec::x_axis(
        &json!({"domain": [0, last], "nice": false}),
        &json!({"title": "life of the bank that is over (%)", "labelExpr": "format(datum.value * 100, '~r')"}),
    )
}

/// A chart over the ages, with a point at each.
fn over_life(fleet: &Fleet, lines: Vec<Line>, unit: Unit, y: &Value, title: &str) -> Chart {
    let mut spec = spec::line_spec(&lines, &life(fleet), y, "linear", title);
    spec["mark"]["point"] = json!({"size": 24, "filled": true});
    spec["mark"]["clip"] = json!(false); // the first and the last point lie on the edges
    Chart { across: Across::Age, unit, lines, rows: Vec::new(), spec }
}

/// The share of drives that are short, by age.
fn short(fleet: &Fleet) -> Figure {
    let title = "Drives whose bank is too small";
    let mut table = Table::new([
        "life that is over",
        "probability",
        "drives",
        "buffer that 9,999 of 10,000 hold",
    ]);
    for age in &fleet.ages {
        let drives = count(age.drives_short.round() as u64);
        let buffer = age.buffer_bytes.map_or_else(|| "none".to_owned(), bytes);
        table.rows.push(vec![percent(age.age), probability(age.short), drives, buffer]);
    }
    let shares = fleet.ages.iter().map(|age| (age.age, age.short.max(RAREST)));
    let lines = vec![line("share of the drives", 1, Stroke::Solid, shares)];
    let highest = fleet.ages.iter().map(|age| age.short).fold(RAREST, f64::max);
    let top = 10_f64.powf(highest.log10().ceil()).max(10.0 * RAREST);
    let mut y = spec::y_axis(Unit::Percent, &[1.0]);
    y["scale"] = json!({"type": "log", "domain": [RAREST, rounded(top)], "nice": false});
    y["axis"] = json!({"title": "share of the drives (logarithmic)", "labelExpr": "format(datum.value, '.0e')", "tickCount": 5});
    let chart = over_life(fleet, lines, Unit::Percent, &y, title);
    let mut figure = Figure::new("too-weak", title).note(
        "Such a drive loses data if power fails at the costliest moment, unless its firmware measures the bank and uses a \
         smaller buffer, or writes through (0 B). None: the mapping table alone takes more. Rarer than 1e-9 is drawn at the foot.",
    );
    figure.size = Size::Wide;
    figure.table = Some(table);
    figure.chart(chart)
}

/// Parts that keep the share small.
fn parts(fleet: &Fleet) -> Figure {
    let mut table = Table::new(["too weak at the end of life, at most", "parts", "of today's"]);
    for margin in &fleet.margins {
        let (parts, share) = match margin.parts {
            Some(parts) => (count(parts), percent(parts as f64 / fleet.parts.max(1) as f64)),
            None => ("none will do".to_owned(), String::new()),
        };
        table.rows.push(vec![format!("{:.0e}", margin.short), parts, share]);
    }
    let mut figure = Figure::new("parts", "Parts that suffice")
        .note("Drives age differently, so a bound may be out of reach of any number of parts.");
    figure.size = Size::Wide;
    figure.table = Some(table);
    figure
}

/// The energy of the banks, and that of a dump.
fn spread(fleet: &Fleet) -> Figure {
    let title = "Energy of the banks over their life";
    let curve = |label: &str, colour, stroke, of: &dyn Fn(&FleetAge) -> f64| {
        line(label, colour, stroke, fleet.ages.iter().map(|age| (age.age, of(age).max(0.0))))
    };
    let lines = vec![
        curve("mean bank", 0, Stroke::Solid, &|age| age.mean_mj),
        curve("three deviations more", 5, Stroke::Thin, &|age| {
            age.mean_mj + DEVIATIONS * age.deviation_mj
        }),
        curve("three deviations less", 2, Stroke::Thin, &|age| {
            age.mean_mj - DEVIATIONS * age.deviation_mj
        }),
        curve("a dump needs", 1, Stroke::Dashed, &|_| fleet.need_mj),
    ];
    let mut table = Table::new(["life that is over", "mean bank", "deviation", "a dump needs"]);
    for age in &fleet.ages {
        let cells = [age.mean_mj, age.deviation_mj, fleet.need_mj].map(energy);
        table.rows.push(std::iter::once(percent(age.age)).chain(cells).collect());
    }
    let values: Vec<f64> = lines.iter().flat_map(|line| line.points.here().1).copied().collect();
    let chart = over_life(fleet, lines, Unit::Energy, &spec::y_axis(Unit::Energy, &values), title);
    let mut figure = Figure::new("energy", title).note(
        "Tolerance of a part: three deviations. Ageing deviates by a quarter of its mean, alike for all parts of a drive.",
    );
    figure.size = Size::Wide;
    figure.table = Some(table);
    figure.chart(chart)
}
