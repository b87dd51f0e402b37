//! The page: what stands where, and the assets it is made of.

use crate::cards::{self, Card, LatencyCard};
use crate::compare::{self, Group};
use crate::figures::spec::Points;
use crate::figures::{self, Chart, Section};
use crate::identity::Fact;
use crate::run::Run;
use crate::series::Columns;
use crate::table::Table;
use crate::{ReportError, config, format, html, identity};
use leyden_record::RunRecord;
use minijinja::Environment;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::io;

/// Where the data of a page begins.
const DATA_MARK: &str = "<script type=\"application/json\" id=\"data\">";

// The name decides the escaping: `.html` has everything escaped that is not marked safe.
const TEMPLATE: &str = "page.html";
const SOURCE: &str =
    concat!(include_str!("../assets/macros.html"), include_str!("../assets/page.html"));
/// Macros that every page begins with.
pub const MACROS: &str = include_str!("../assets/macros.html");
pub(crate) const STYLE: &str = include_str!("../assets/style.css");
/// Figures without a document; `leyden plot` draws with it, too.
pub const FIGURE_SCRIPT: &str = include_str!("../assets/figure.js");
pub(crate) const SCRIPT: &str = concat!(
    include_str!("../assets/figure.js"),
    include_str!("../assets/drawing.js"),
    include_str!("../assets/report.js")
);
/// The chart library, as base64 of a gzip member.
pub const PACKED_VEGA: &str = include_str!("../assets/vega/charts.min.js.gz.b64");
pub(crate) const LICENCES: &str = include_str!("../assets/vega/LICENCES.txt");

/// The values of the template.
#[derive(Serialize)]
struct Page<'a> {
    title: &'a str,
    /// Facts that all runs share.
    facts: Vec<Fact>,
    /// The keys that were varied.
    varied: Vec<&'a str>,
    runs: Vec<Head<'a>>,
    warnings: Vec<Warning<'a>>,
    /// Of a single run.
    cards: Vec<Card>,
    latency_cards: Vec<LatencyCard>,
    /// Of a few runs.
    key_figures: Vec<Group>,
    /// Of many.
    by_run: Option<Table>,
    /// The build, if it is the same for all runs.
    version: Option<String>,
    sections: Vec<Section>,
    everything: Vec<Group>,
    differences: Option<Table>,
    #[serde(flatten)]
    assets: Assets,
    data: String,
    /// Enough of the records to run them again.
    saved: String,
}

/// Style, scripts and licences, which are the same in every page: a page's template takes them by name.
#[derive(Debug, Serialize)]
pub struct Assets {
    style: &'static str,
    script: &'static str,
    vega: &'static str,
    licences: &'static str,
}

impl Assets {
    /// Those of every page.
    pub const ALL: Self =
        Self { style: STYLE, script: SCRIPT, vega: PACKED_VEGA, licences: LICENCES };
}

/// The identity of a run.
#[derive(Serialize)]
struct Head<'a> {
    label: &'a str,
    colour: usize,
    version: String,
    varied: Vec<&'a str>,
    seed: u64,
    digest: &'a str,
    elapsed: String,
    policy: &'a str,
    reproduce: &'a str,
    /// Markup, escaped already.
    config: String,
}

/// The warnings of a run.
#[derive(Serialize)]
struct Warning<'a> {
    /// Empty for a single run.
    label: &'a str,
    texts: &'a [String],
}

/// The script's data: series by run, charts by figure.
#[derive(Serialize)]
struct Data<'a> {
    /// Scenario, drive and build, below each figure that is saved.
    caption: &'a str,
    runs: Vec<Columns>,
    charts: BTreeMap<&'a str, Titled<'a>>,
}

/// A chart and its title.
#[derive(Serialize)]
struct Titled<'a> {
    title: &'a str,
    #[serde(flatten)]
    chart: &'a Chart,
}

/// The report on these runs, compared if there are several. Without a title it is called after the
/// scenario, and what was varied. Same records, same bytes.
///
/// # Errors
/// [`ReportError::NoRuns`] if there are no records; [`ReportError::Template`] is a bug in here.
pub fn render(records: &[RunRecord], title: Option<&str>) -> Result<String, ReportError> {
    let mut out = Vec::new();
    render_to(&mut out, records, title)?;
    // The template engine writes text only.
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// As [`render`], written to `out` piece by piece.
///
/// # Errors
/// Those of [`render`], and [`ReportError::Write`] if `out` takes no more.
pub fn render_to(
    out: &mut dyn io::Write,
    records: &[RunRecord],
    title: Option<&str>,
) -> Result<(), ReportError> {
    if records.is_empty() {
        return Err(ReportError::NoRuns);
    }
    let runs = Run::all(records);
    let called = identity::title(records);
    let page = page(records, &runs, title.unwrap_or(&called))?;
    let mut environment = Environment::new();
    environment.add_template(TEMPLATE, SOURCE)?;
    let template = environment.get_template(TEMPLATE)?;
    let html = template.render(&page)?;
    out.write_all(html.as_bytes())?;
    Ok(())
}

fn page<'a>(
    records: &'a [RunRecord],
    runs: &'a [Run],
    title: &'a str,
) -> Result<Page<'a>, ReportError> {
    let single = match runs {
        [run] => Some(run.record),
        _ => None,
    };
    let is_many = runs.len() > figures::MOST_OVERLAID;
    let sections = figures::sections(records, runs);
    let data = data(runs, &sections, &identity::caption(records))?;
    Ok(Page {
        title,
        facts: identity::facts(records),
        varied: identity::varied_keys(records).into_iter().map(identity::short).collect(),
        runs: heads(runs, &identity::varied_keys(records)),
        warnings: warnings(runs),
        cards: single.map_or_else(Vec::new, cards::cards),
        latency_cards: single.map_or_else(Vec::new, cards::latency_cards),
        key_figures: match single {
            None if !is_many => compare::key_figures(runs),
            _ => Vec::new(),
        },
        by_run: is_many.then(|| compare::by_run(runs)),
        version: same_version(records),
        sections,
        everything: if is_many { Vec::new() } else { compare::everything(runs) },
        differences: config::differences(runs),
        assets: Assets::ALL,
        data,
        saved: saved(records)?,
    })
}

fn heads<'a>(runs: &'a [Run], keys: &[&str]) -> Vec<Head<'a>> {
    let runs_in_all = runs.len();
    let runs = runs.iter().enumerate();
    runs.map(|(i, run)| Head {
        label: &run.label,
        colour: i % figures::COLOURS,
        version: identity::build(run.record),
        varied: keys.iter().map(|key| identity::value_of(run.record, key).unwrap_or("")).collect(),
        seed: run.record.seed,
        digest: &run.record.sim.digest,
        elapsed: format::seconds(run.record.host.elapsed_s),
        policy: &run.record.gc.policy,
        reproduce: &run.record.reproduce,
        // Of many runs, the differences from the first say the rest.
        config: if i == 0 || runs_in_all <= figures::MOST_OVERLAID {
            config::markup(&run.record.config)
        } else {
            String::new()
        },
    })
    .collect()
}

fn same_version(records: &[RunRecord]) -> Option<String> {
    let mut versions = records.iter().map(identity::build);
    let first = versions.next()?;
    versions.all(|other| other == first).then_some(first)
}

/// The records without what only figures are made of: `leyden run` reads them from the page.
fn saved(records: &[RunRecord]) -> Result<String, ReportError> {
    let lean = |record: &RunRecord| {
        let RunRecord { record_version, leyden_version, commit, name, config, inputs, sim, .. } =
            record;
        json!({
            "record_version": record_version, "leyden_version": leyden_version, "commit": commit,
            "name": name, "config": config, "inputs": inputs, "sim": { "digest": sim.digest },
        })
    };
    let runs: Vec<serde_json::Value> = records.iter().map(lean).collect();
    html::json_for_script(&json!({ "runs": runs })).map_err(|e| ReportError::Write(e.into()))
}

fn warnings<'a>(runs: &'a [Run]) -> Vec<Warning<'a>> {
    let warned = runs.iter().filter(|run| !run.record.warnings.is_empty());
    warned
        .map(|run| Warning {
            label: if runs.len() > 1 { &run.label } else { "" },
            texts: &run.record.warnings,
        })
        .collect()
}

/// The JSON in the page that the script draws from.
pub(crate) fn data(
    runs: &[Run],
    sections: &[Section],
    caption: &str,
) -> Result<String, ReportError> {
    let figures = sections.iter().flat_map(|section| &section.figures);
    let charts = figures.filter_map(|f| {
        let chart = f.chart.as_ref()?;
        Some((f.id.as_str(), Titled { title: &f.title, chart }))
    });
    let charts: BTreeMap<&str, Titled<'_>> = charts.collect();
    // The columns that charts draw, and whether they draw their bands.
    let mut drawn: BTreeMap<(usize, &str), bool> = BTreeMap::new();
    for Titled { chart, .. } in charts.values() {
        let is_banded = figures::spec::is_banded(runs, &chart.lines);
        for line in &chart.lines {
            if let Points::Column { run, column } = line.points {
                *drawn.entry((run, column)).or_default() |= is_banded;
            }
        }
    }
    let columns =
        |(index, run): (usize, &Run)| run.columns.only(|name| drawn.get(&(index, name)).copied());
    let runs = runs.iter().enumerate().map(columns).collect();
    let data = Data { caption, runs, charts };
    // Numbers and strings always make JSON; what is not finite becomes null.
    html::json_for_script(&data).map_err(|e| ReportError::Write(e.into()))
}

/// The figures of runs as data, for whoever draws them without a page.
#[derive(Debug)]
pub struct FigureData {
    json: Box<RawValue>,
    figures: Vec<(String, String)>,
}

impl FigureData {
    /// The figures that a report on these runs has; panels become charts.
    ///
    /// # Errors
    /// [`ReportError::NoRuns`] if there are no records.
    pub fn of_records(records: &[RunRecord]) -> Result<Self, ReportError> {
        if records.is_empty() {
            return Err(ReportError::NoRuns);
        }
        let runs = Run::all(records);
        let mut sections = figures::sections(records, &runs);
        for figure in sections.iter_mut().flat_map(|section| &mut section.figures) {
            if let Some(panels) = figure.panels.take() {
                figure.chart = Some(panels.chart);
            }
        }
        Self::of_json(data(&runs, &sections, &identity::caption(records))?)
    }

    /// The figures of sections that are of no runs.
    ///
    /// # Errors
    /// [`ReportError::NoRuns`] if there is none.
    pub fn of_sections(sections: &[Section], caption: &str) -> Result<Self, ReportError> {
        let data = Self::of_json(data(&[], sections, caption)?)?;
        if data.figures.is_empty() { Err(ReportError::NoRuns) } else { Ok(data) }
    }

    /// The figures in a page that [`render`] or `leyden reproduce` made.
    ///
    /// # Errors
    /// [`ReportError::NotAPage`] if it is none.
    pub fn of_page(html: &str) -> Result<Self, ReportError> {
        let json = html.split_once(DATA_MARK).and_then(|(_, rest)| rest.split_once("</script>"));
        let (json, _) = json.ok_or(ReportError::NotAPage)?;
        Self::of_json(json.to_owned())
    }

    fn of_json(json: String) -> Result<Self, ReportError> {
        let data: Titles = serde_json::from_str(&json).map_err(|_| ReportError::NotAPage)?;
        let json = RawValue::from_string(json).map_err(|_| ReportError::NotAPage)?;
        let figures = data.charts.into_iter().map(|(id, chart)| (id, chart.title)).collect();
        Ok(Self { json, figures })
    }

    /// The JSON that the script draws from.
    pub fn json(&self) -> &RawValue {
        &self.json
    }

    /// Name and title of each figure, by name.
    pub fn figures(&self) -> &[(String, String)] {
        &self.figures
    }
}

/// The titles in a page's data.
#[derive(Deserialize)]
struct Titles {
    charts: BTreeMap<String, Title>,
}

#[derive(Deserialize)]
struct Title {
    title: String,
}

/// The JSON that a page's script draws the charts of `sections` from, for pages that are not of runs.
/// The caption stands below each figure that is saved from the page.
///
/// # Errors
/// Never: numbers and strings always make JSON.
pub fn chart_data(sections: &[Section], caption: &str) -> Result<String, ReportError> {
    data(&[], sections, caption)
}
