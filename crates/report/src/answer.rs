//! The page of an answer: a verdict, facts, figures and the command, from `leyden size`, `lifetime` and `torture`.
//! Not here: the figures of an answer, which its command makes.

use crate::cards::Card;
use crate::figures::{self, Section};
use crate::run::Run;
use crate::{Assets, MACROS, ReportError, page};
use leyden_record::RunRecord;
use minijinja::Environment;
use serde::Serialize;

const TEMPLATE: &str = "answer.html";
const SOURCE: &str = include_str!("../assets/answer.html");

/// An answer, as its page shows it.
#[derive(Default)]
pub struct AnswerPage<'a> {
    /// The page's title.
    pub title: String,
    /// The kind of answer, beside the name at the top.
    pub kind: &'static str,
    /// The verdict in words, and whether it is a good one.
    pub verdict: Option<(String, bool)>,
    /// What was asked of which drive: names and values.
    pub facts: Vec<(&'static str, String)>,
    /// Warnings for the reader.
    pub warnings: Vec<String>,
    /// The figures that matter most, in large type.
    pub cards: Vec<Card>,
    /// The answer's own figures.
    pub sections: Vec<Section>,
    /// The runs behind the answer.
    pub records: &'a [RunRecord],
    /// Sections of these runs' report that are shown too, by their anchors.
    pub of_report: &'a [&'a str],
    /// A line below each figure that is saved from the page.
    pub caption: String,
    /// The command that gives the answer again.
    pub command: &'a str,
}

#[derive(Serialize)]
struct Page<'a> {
    title: &'a str,
    kind: &'a str,
    verdict: Option<&'a str>,
    is_good: bool,
    facts: &'a [(&'static str, String)],
    warnings: &'a [String],
    cards: &'a [Card],
    sections: &'a [Section],
    has_charts: bool,
    command: &'a str,
    data: String,
    #[serde(flatten)]
    assets: Assets,
}

/// The page. Same answer, same bytes.
///
/// # Errors
/// [`ReportError::Template`] is a bug in here.
pub fn render_answer(mut of: AnswerPage<'_>) -> Result<String, ReportError> {
    let runs = Run::all(of.records);
    let report = figures::sections(of.records, &runs).into_iter();
    of.sections.extend(report.filter(|section| of.of_report.contains(&section.id)));
    let data = page::data(&runs, &of.sections, &of.caption)?;
    let page = Page {
        title: &of.title,
        kind: of.kind,
        verdict: of.verdict.as_ref().map(|(text, _)| text.as_str()),
        is_good: of.verdict.as_ref().is_some_and(|(_, is_good)| *is_good),
        facts: &of.facts,
        warnings: &of.warnings,
        cards: &of.cards,
        sections: &of.sections,
        has_charts: of.sections.iter().flat_map(|it| &it.figures).any(|figure| figure.has_chart),
        command: of.command,
        data,
        assets: Assets::ALL,
    };
    let source = [MACROS, SOURCE].concat();
    let mut environment = Environment::new();
    environment.add_template(TEMPLATE, &source)?;
    Ok(environment.get_template(TEMPLATE)?.render(&page)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::spec::{self, Across, Chart, Line, Points, Stroke, Unit};
    use crate::figures::{Figure, Table};
    use serde_json::json;

    fn figure(with_chart: bool) -> Figure {
        let mut figure = Figure::new("losses", "Losses <b>");
        let mut table = Table::new(["bank", "losses"]);
        table.rows.push(vec!["5 mF".to_owned(), "12.5 %".to_owned()]);
        figure.table = Some(table);
        if !with_chart {
            return figure;
        }
        let points = Points::Here { x: vec![1.0, 2.0], y: vec![0.5, 0.0] };
        let line = Line { label: "losses".into(), colour: 0, stroke: Stroke::Solid, points };
        let x = spec::x_axis(&json!({}), &json!({}));
        let y = spec::y_axis(Unit::Percent, &[0.5, 0.0]);
        let spec = spec::line_spec(std::slice::from_ref(&line), &x, &y, "linear", "Losses");
        let across = Across::Capacitance;
        figure.chart(Chart { across, unit: Unit::Percent, lines: vec![line], rows: vec![], spec })
    }

    fn page(with_chart: bool) -> String {
        render_answer(AnswerPage {
            title: "A <b>drive</b>".to_owned(),
            kind: "sizing",
            verdict: Some(("too small".to_owned(), false)),
            facts: vec![("Scenario", "<x>".to_owned())],
            cards: vec![Card { value: "5".to_owned(), unit: "mF".to_owned(), ..Card::default() }],
            sections: vec![Section::new("loss", "Loss", vec![figure(with_chart)])],
            command: "leyden size '<x>'",
            ..AnswerPage::default()
        })
        .unwrap()
    }

    #[test]
    fn an_answer_has_its_verdict_facts_figures_and_command() {
        let html = page(true);
        assert!(html.contains("<span class=\"verdict differs\">too small</span>"));
        assert!(html.contains("5 <span>mF</span>") && html.contains("12.5 %"));
        assert!(html.contains("leyden size &#x27;&lt;x&gt;&#x27;") && !html.contains("<b>drive"));
        assert!(html.contains("data-figure=\"losses\"") && html.contains("id=\"vega\""));
        assert_eq!(html, page(true));
    }

    #[test]
    fn an_answer_without_charts_carries_no_chart_library() {
        let html = page(false);
        assert!(!html.contains("id=\"vega\"") && html.len() < 60_000, "{}", html.len());
    }
}
