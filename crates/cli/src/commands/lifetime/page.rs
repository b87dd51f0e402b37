//! The page of `leyden lifetime`: the years at other rates of writing, what wears unevenly costs, and the run's own
//! figures of wear and write amplification.

use leyden_record::{Lifetime, RunRecord};
use leyden_report::figures::spec::{self, Across, Chart, Line, Points, Stroke, Unit};
use leyden_report::figures::{Bar, Figure, Section, Segment, Size, Table};
use leyden_report::format::{bytes, count, number, rounded};
use leyden_report::{AnswerPage, Card, ReportError, render_answer};
use serde_json::json;

use crate::version;

const YEAR_DAYS: f64 = 365.25;
/// Points of the curve.
const POINTS: u32 = 80;
/// The curve reaches from this share of the lower of the two rates to as many times the higher one.
const BEYOND: f64 = 4.0;
/// Longer lives are not shown.
const MOST_YEARS: f64 = 50.0;

pub(super) fn page(
    record: &RunRecord,
    life: &Lifetime,
    warnings: &[String],
    command: &str,
) -> Result<String, ReportError> {
    let figures = vec![years(life), writable(life)];
    render_answer(AnswerPage {
        title: format!("{}: lifetime", record.name),
        kind: "lifetime",
        facts: facts(record, life),
        warnings: record.warnings.iter().chain(warnings).cloned().collect(),
        cards: cards(life),
        sections: vec![Section::new("life", "Life", figures)],
        records: std::slice::from_ref(record),
        of_report: &["wear", "flash"],
        caption: format!("{}; seed {}; Leyden {}.", record.name, record.seed, version::VERSION),
        command,
        ..AnswerPage::default()
    })
}

fn facts(record: &RunRecord, life: &Lifetime) -> Vec<(&'static str, String)> {
    let mut facts = vec![("Scenario", record.name.clone())];
    if let Some(drive) = &record.drive {
        let (capacity, flash) = (bytes(drive.capacity_bytes), bytes(drive.flash_bytes));
        facts.push(("Drive", format!("{capacity} of {flash} of flash")));
    }
    facts.push(("Endurance", format!("{} erases of a block", count(life.cycles))));
    facts.push(("Seed", record.seed.to_string()));
    facts.push(("Digest", record.sim.digest.clone()));
    facts.push(("Leyden", version::VERSION.to_owned()));
    facts
}

fn cards(life: &Lifetime) -> Vec<Card> {
    let card = |label, value: f64, unit: &str, note: String| Card {
        label,
        value: number(value),
        unit: unit.to_owned(),
        note,
    };
    let a_day = bytes(life.written_bytes_a_day.round());
    let rated = format!("Over {} years.", number(life.warranty_years));
    let worn = format!(
        "Erases of the most worn block: {}; of the mean block: {}.",
        count(life.most_erases),
        number(life.mean_erases)
    );
    vec![
        card("Worn out after", life.years, "years", "At the rate of this work.".to_owned()),
        card("This work", life.dwpd, "DWPD", format!("{a_day} a day.")),
        card("The drive", life.rated_dwpd, "DWPD", rated),
        card("Write amplification", life.waf, "", worn),
    ]
}

/// The years over drive writes a day: this work, and the rating, lie on one curve.
fn years(life: &Lifetime) -> Figure {
    let title = "Years until the drive is worn out";
    let figure = Figure::new("years", title);
    // A drive writes' years: the two rates are of one writable amount.
    let product = life.dwpd * life.years;
    let (low, high) = (life.dwpd.min(life.rated_dwpd), life.dwpd.max(life.rated_dwpd));
    if product.is_nan() || product <= 0.0 || low <= 0.0 {
        return figure.nothing("Nothing wore the flash.");
    }
    let (low, high) = ((low / BEYOND).max(product / MOST_YEARS).min(low), high * BEYOND);
    let x: Vec<f64> = (0..=POINTS)
        .map(|point| low * (high / low).powf(f64::from(point) / f64::from(POINTS)))
        .collect();
    let y = x.iter().map(|rate| rounded(product / rate)).collect::<Vec<f64>>();
    let top = spec::y_axis(Unit::Years, &y);
    let points = Points::Here { x: x.iter().map(|rate| rounded(*rate)).collect(), y };
    let lines = vec![Line { label: "years".to_owned(), colour: 0, stroke: Stroke::Solid, points }];
    let axis = spec::x_axis(
        &json!({"type": "log", "domain": [rounded(low), rounded(high)], "nice": false}),
        &json!({"title": "drive writes a day (logarithmic)", "format": "~r"}),
    );
    let mut spec = spec::line_spec(&lines, &axis, &top, "linear", title);
    let marks = [
        (rounded(life.dwpd), format!("this work, {} years", number(life.years))),
        (rounded(life.rated_dwpd), format!("rated, {} years", number(life.warranty_years))),
    ];
    spec::with_marks(&mut spec, &marks);
    let mut table = Table::new(["", "drive writes a day", "written in a day", "years"]);
    let capacity = life.written_bytes_a_day / life.dwpd;
    for (name, rate, years) in
        [("this work", life.dwpd, life.years), ("rated", life.rated_dwpd, life.warranty_years)]
    {
        let a_day = bytes((rate * capacity).round());
        table.rows.push(vec![name.to_owned(), number(rate), a_day, number(years)]);
    }
    let mut figure =
        figure.note("Blocks wear at the rates that they had up to the end of the run.");
    figure.size = Size::Wide;
    figure.table = Some(table);
    figure.chart(Chart {
        across: Across::DriveWrites,
        unit: Unit::Years,
        lines,
        rows: Vec::new(),
        spec,
    })
}

/// The bytes that the host can write, and what uneven wear and write amplification take.
fn writable(life: &Lifetime) -> Figure {
    let rows = [
        ("no write amplification", life.level_writable_bytes * life.waf, 7),
        ("all blocks wear alike", life.level_writable_bytes, 5),
        ("as measured", life.writable_bytes, 0),
    ];
    let most = rows.iter().map(|row| row.1).fold(f64::MIN_POSITIVE, f64::max);
    let days = life.writable_bytes / life.written_bytes_a_day;
    let mut figure = Figure::new("writable", "Bytes that the host can write").note(format!(
        "As measured: {} days of this work, {} years.",
        number(days),
        number(days / YEAR_DAYS)
    ));
    figure.size = Size::Wide;
    let mut table = Table::new(["", "the host can write"]);
    for (label, amount, colour) in rows {
        let value = bytes(amount.round());
        let title = format!("{label}: {value}");
        let segments = vec![Segment { colour, percent: rounded(100.0 * amount / most), title }];
        let (label, value_) = (label.to_owned(), value.clone());
        figure.bars.push(Bar { label: label.clone(), value: value_, from_percent: 0.0, segments });
        table.rows.push(vec![label, value]);
    }
    figure.table = Some(table);
    figure
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life() -> Lifetime {
        Lifetime {
            waf: 2.0,
            cycles: 3_000,
            most_erases: 40,
            mean_erases: 20.0,
            level_writable_bytes: 4e12,
            writable_bytes: 2e12,
            rated_dwpd: 0.5,
            warranty_years: 5.0,
            written_bytes_a_day: 1e9,
            dwpd: 0.25,
            years: 10.0,
        }
    }

    #[test]
    fn years_halve_when_writes_double() {
        let chart = years(&life()).chart.unwrap();
        let (x, y) = chart.lines[0].points.here();
        assert!(x.iter().zip(y).all(|(x, y)| (x * y - 2.5).abs() < 0.01), "{x:?} {y:?}");
        assert!(x[0] < 0.25 && x[x.len() - 1] > 0.5);
        let marks = chart.spec["layer"][1]["data"]["values"].to_string();
        assert_eq!(
            marks,
            r#"[{"name":"this work, 10.00 years","x":0.25},{"name":"rated, 5.000 years","x":0.5}]"#
        );
    }

    #[test]
    fn uneven_wear_and_amplification_take_their_halves() {
        let figure = writable(&life());
        let lengths: Vec<f64> = figure.bars.iter().map(|bar| bar.segments[0].percent).collect();
        assert_eq!(lengths, [100.0, 50.0, 25.0]);
        assert!(figure.note.contains("2,000 days"), "{}", figure.note);
    }

    #[test]
    fn a_page_has_the_wear_of_its_run_and_the_warnings() {
        let record = RunRecord { name: "tpcc <1>".into(), ..RunRecord::default() };
        let warnings = ["chance decides".to_owned()];
        let html = page(&record, &life(), &warnings, "leyden lifetime tpcc --cycles 3000").unwrap();
        for shown in [
            "tpcc &lt;1&gt;: lifetime",
            "chance decides",
            "3,000 erases",
            "10.00 <span>years",
            "0.250 <span>DWPD",
            "id=\"wear\"",
            "id=\"flash\"",
            "--cycles 3000",
        ] {
            assert!(html.contains(shown), "{shown}");
        }
        assert!(!html.contains("id=\"throughput\""), "only the sections that were asked for");
    }
}
