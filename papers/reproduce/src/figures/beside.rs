//! The papers' figures beside ours: a row for each claim, and points of the papers in figures of ours.

use crate::{ClaimResult, PAPERS, Paper, Spread, Verdict};
use leyden_report::figures::spec::{Across, Chart, Line, Points, Stroke, Unit};
use leyden_report::figures::{Figure, Key, Section, Size, Table};
use leyden_report::format::{self, rounded};
use serde_json::{Value, json};

/// Height of a row, and of what stands below all rows.
const ROW: usize = 22;

/// The kinds of values in a row, each with its colour.
const PAPER: (&str, usize) = ("the paper", 1);
const OURS: (&str, usize) = ("Leyden", 0);
const BAND: (&str, usize) = ("holds within", 2);

/// A figure for each paper; none without claims that were measured.
pub(crate) fn sections(claims: &[ClaimResult]) -> Vec<Section> {
    let figures = PAPERS.iter().filter_map(|paper| figure(paper, claims)).collect::<Vec<_>>();
    if figures.is_empty() {
        return Vec::new();
    }
    vec![Section::new("beside", "The papers' figures beside Leyden's", figures)]
}

/// Claims are ratios and shares; counts of worked examples stand in the table of claims alone.
fn figure(paper: &Paper, claims: &[ClaimResult]) -> Option<Figure> {
    let is_count = |claim: &ClaimResult| claim.paper.numbers().iter().any(|value| *value >= 2.0);
    let is_shown = |claim: &&ClaimResult| {
        paper.is_paper_of(&claim.id) && claim.verdict != Verdict::NotRun && !is_count(claim)
    };
    let claims: Vec<&ClaimResult> = claims.iter().filter(is_shown).collect();
    if claims.is_empty() {
        return None;
    }
    let title = format!("Claims of {}", paper.name);
    let mut figure = Figure::new(format!("beside-{}", paper.name), title.clone()).note(
        "Ratios and shares. A thin line through a point: the least and the most of the seeds.",
    );
    figure.size = Size::Wide;
    let mut table = Table::new(["claim", "the paper", "Leyden", "holds within"]);
    for claim in &claims {
        let [from, to] = claim.accept.map(format::number);
        let ours =
            claim.measured.as_ref().map_or_else(|| format::DASH.to_owned(), crate::Value::text);
        table.rows.push(vec![
            claim.id.clone(),
            claim.paper.text(),
            ours,
            format!("{from} to {to}"),
        ]);
    }
    figure.table = Some(table);
    let rows = claims.iter().map(|claim| row(claim)).collect();
    let spec = spec(&claims, &title);
    let chart =
        Chart { across: Across::Parameter, unit: Unit::Factor, lines: Vec::new(), rows, spec };
    let mut figure = figure.chart(chart);
    figure.keys = [PAPER, OURS, BAND]
        .map(|(label, colour)| Key { label: label.to_owned(), colour, thin: false, dashed: false })
        .into();
    Some(figure)
}

/// The name of a claim, without its paper's.
fn short(id: &str) -> &str {
    id.split_once('.').map_or(id, |(_, rest)| rest)
}

/// The ends of what a row shows; a figure of one number has both of them there.
fn row(claim: &ClaimResult) -> Value {
    let ends = |numbers: &[f64]| [numbers[0], numbers[numbers.len() - 1]].map(rounded);
    let [paper, paper_to] = ends(claim.paper.numbers());
    let ours = claim.measured.as_ref().map(|value| ends(value.numbers()));
    let [least, most] =
        claim.spread.map_or([None; 2], |Spread { least, most, .. }| [Some(least), Some(most)]);
    json!({
        "k": short(&claim.id), "paper": paper, "paper_to": paper_to,
        "ours": ours.map(|it| it[0]), "ours_to": ours.map(|it| it[1]),
        "least": least, "most": most, "low": claim.accept[0], "high": claim.accept[1],
    })
}

fn spec(claims: &[&ClaimResult], title: &str) -> Value {
    let names: Vec<&str> = claims.iter().map(|claim| short(&claim.id)).collect();
    let y = json!({
        "field": "k", "type": "nominal", "scale": {"domain": names},
        "axis": {"title": null, "labelLimit": 260, "grid": true},
    });
    let x = |field: &str| {
        json!({
            "field": field, "type": "quantitative", "scale": {"zero": false, "nice": true},
            "axis": {"title": "ratio or share", "grid": false},
        })
    };
    let domain = [PAPER.0, OURS.0, BAND.0];
    let range = [PAPER.1, OURS.1, BAND.1].map(|colour| format!("var(--c{colour})"));
    let colour = |of: &str| json!({"datum": of, "type": "nominal", "scale": {"domain": domain, "range": range}, "legend": null});
    let layer = |mark: Value, from: &str, to: Option<&str>, of: &str| {
        let mut encoding = json!({"x": x(from), "y": y, "color": colour(of)});
        if let Some(to) = to {
            encoding["x2"] = json!({"field": to});
        }
        let filter = format!("isValid(datum.{from})");
        json!({"transform": [{"filter": filter}], "mark": mark, "encoding": encoding})
    };
    json!({
        "description": title,
        "width": "container",
        "height": claims.len() * ROW,
        "data": {"name": "rows"},
        "layer": [
            layer(json!({"type": "rule", "strokeWidth": 9, "opacity": 0.25}), "low", Some("high"), BAND.0),
            layer(json!({"type": "rule", "strokeWidth": 3}), "paper", Some("paper_to"), PAPER.0),
            layer(json!({"type": "tick", "thickness": 3, "size": 16}), "paper", None, PAPER.0),
            layer(json!({"type": "tick", "thickness": 3, "size": 16}), "paper_to", None, PAPER.0),
            layer(json!({"type": "rule", "strokeWidth": 1.25}), "least", Some("most"), OURS.0),
            layer(json!({"type": "rule", "strokeWidth": 3}), "ours", Some("ours_to"), OURS.0),
            layer(json!({"type": "point", "filled": true, "size": 60}), "ours", None, OURS.0),
            layer(json!({"type": "point", "filled": true, "size": 60}), "ours_to", None, OURS.0),
        ],
    })
}

/// The paper's points for a figure of ours: where on the axis, and the claim whose figure stands there. None if no such
/// claim was asked for.
pub(crate) fn line(
    claims: &[ClaimResult],
    label: &str,
    colour: usize,
    at: &[(f64, &str)],
) -> Option<Line> {
    let found = at.iter().filter_map(|(x, id)| {
        let claim = claims.iter().find(|claim| claim.id == *id)?;
        Some((*x, claim.paper.numbers()[0]))
    });
    let (x, y): (Vec<f64>, Vec<f64>) = found.unzip();
    let label = format!("{label}, the paper");
    (!x.is_empty()).then_some(Line {
        label,
        colour,
        stroke: Stroke::Dashed,
        points: Points::Here { x, y },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Claim, Value as Number};

    fn claim(id: &str, paper: Number, measured: f64) -> ClaimResult {
        let claim =
            Claim { id: id.to_owned(), paper, accept: [0.25, 0.75], statement: String::new() };
        ClaimResult::judged(&claim, Number::One(measured), String::new())
    }

    #[test]
    fn a_claim_has_a_row_with_both_figures_and_its_band() {
        let claims = [
            claim("hexa.ratio", Number::One(0.82), 0.9),
            claim("hexa.count", Number::One(5.0), 5.0),
            claim("zombie.range", Number::Pair([0.1, 0.3]), 0.2),
        ];
        let sections = sections(&claims);
        let ids: Vec<&str> = sections[0].figures.iter().map(|figure| figure.id.as_str()).collect();
        assert_eq!(ids, ["beside-hexa", "beside-zombie-chasing"]);
        let rows = |at: usize| sections[0].figures[at].chart.as_ref().unwrap().rows.clone();
        assert_eq!(rows(0).len(), 1, "a count is no ratio");
        let row = &rows(0)[0];
        assert_eq!(
            [&row["k"], &row["paper"], &row["ours"]],
            [&json!("ratio"), &json!(0.82), &json!(0.9)]
        );
        assert_eq!(
            [&row["low"], &row["high"], &row["least"]],
            [&json!(0.25), &json!(0.75), &Value::Null]
        );
        assert_eq!([&rows(1)[0]["paper"], &rows(1)[0]["paper_to"]], [&json!(0.1), &json!(0.3)]);
        let keys: Vec<&str> =
            sections[0].figures[0].keys.iter().map(|key| key.label.as_str()).collect();
        assert_eq!(keys, ["the paper", "Leyden", "holds within"]);
    }

    #[test]
    fn points_of_the_paper_stand_where_its_claims_are() {
        let claims = [claim("a", Number::One(0.5), 0.0), claim("b", Number::One(0.7), 0.0)];
        let line = line(&claims, "hexa", 1, &[(0.01, "a"), (0.1, "b"), (0.5, "c")]).unwrap();
        assert_eq!(
            (line.label.as_str(), line.points.here()),
            ("hexa, the paper", (&[0.01, 0.1][..], &[0.5, 0.7][..]))
        );
        assert!(super::line(&claims, "hexa", 1, &[(0.5, "c")]).is_none());
    }
}
