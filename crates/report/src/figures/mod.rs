//! The figures of a report, each made from the runs by a file of its own.
//!
//! A single run has one figure per subject with all its lines in it (reads and writes, mean and
//! maximum). Several runs have one figure per line with the runs in it, so that what is compared
//! stands in one picture; what cannot be overlaid (stacks, histograms, dies) becomes one small
//! figure per run with common axes.
//!
//! Pages of others (`leyden-reproduce`) are made of the same [`Section`]s and [`Figure`]s.

mod axes;
mod busy;
mod causes;
mod coincide;
mod over_time;
mod panels;
mod percentiles;
mod power;
pub mod spec;
pub(crate) mod sweep;
mod tenants;
mod wear;
mod zoned_block;
mod zones;

use crate::run::Run;
pub use crate::table::Table;
use leyden_record::RunRecord;
use serde::Serialize;
pub use spec::Chart;
pub use sweep::SweptRun;

/// Number of colours in the palette (`--c0`.. in the style sheet).
pub const COLOURS: usize = 8;

/// A titled part of the page with figures in it.
#[derive(Serialize)]
pub struct Section {
    /// Anchor.
    pub id: &'static str,
    /// Heading.
    pub title: &'static str,
    /// A sentence below the heading; may be empty.
    pub lede: &'static str,
    /// The figures, in reading order.
    pub figures: Vec<Figure>,
    /// Substitutes for figures with nothing to draw: a title and a sentence each.
    pub absent: Vec<(String, String)>,
}

impl Section {
    /// A section of `figures`; those that have nothing to show become its sentences.
    pub fn new(id: &'static str, title: &'static str, figures: Vec<Figure>) -> Self {
        let (absent, figures): (Vec<_>, Vec<_>) =
            figures.into_iter().partition(|figure| figure.nothing.is_some());
        let mut sentences: Vec<(String, String)> = Vec::new();
        for figure in absent {
            let sentence = figure.nothing.unwrap_or_default();
            match sentences.iter_mut().find(|(_, known)| *known == sentence) {
                Some((titles, _)) => *titles = format!("{titles}, {}", figure.title),
                None => sentences.push((figure.title, sentence)),
            }
        }
        Self { id, title, lede: "", figures: without_holes(figures), absent: sentences }
    }

    fn is_empty(&self) -> bool {
        self.figures.is_empty() && self.absent.is_empty()
    }
}

/// Half figures without a neighbour become wide: a row has no hole.
fn without_holes(mut figures: Vec<Figure>) -> Vec<Figure> {
    let mut at = 0;
    while at < figures.len() {
        let is_half = |figure: Option<&Figure>| figure.is_some_and(|it| it.size == Size::Half);
        if !is_half(figures.get(at)) {
            at += 1;
        } else if is_half(figures.get(at + 1)) {
            at += 2;
        } else {
            figures[at].size = Size::Wide;
            at += 1;
        }
    }
    figures
}

/// One figure: a chart or something drawn by the template, with its table.
#[derive(Default, Serialize)]
pub struct Figure {
    /// Element id, unique on the page.
    pub id: String,
    /// Caption.
    pub title: String,
    /// One sentence on how to read it; may be empty.
    pub note: String,
    /// Share of the page's width.
    pub size: Size,
    /// The substitute for the figure if there is nothing to draw.
    pub nothing: Option<String>,
    /// Legend.
    pub keys: Vec<Key>,
    /// Horizontal bars.
    pub bars: Vec<Bar>,
    /// Busy times by channel and die.
    pub(crate) heat: Option<busy::Heat>,
    /// A map of zones.
    pub(crate) zones: Option<zones::ZoneMap>,
    /// Small multiples of many runs.
    pub(crate) panels: Option<panels::Panels>,
    /// Whether a chart is drawn here.
    pub has_chart: bool,
    /// The same as text.
    pub table: Option<Table>,
    /// The chart, which travels in the page's data.
    #[serde(skip)]
    pub chart: Option<Chart>,
}

/// Share of the page's width a figure takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Size {
    /// All of it.
    Wide,
    /// Half of it.
    #[default]
    Half,
    /// A third, for small multiples.
    Third,
}

impl Size {
    /// For one of as many figures as there are runs: rows without holes where that can be.
    pub(crate) fn of_one_in(runs: usize) -> Self {
        match runs {
            1 => Self::Wide,
            2 | 4 => Self::Half,
            _ => Self::Third,
        }
    }
}

/// An entry of a legend.
#[derive(Clone, Serialize)]
pub struct Key {
    /// What.
    pub label: String,
    /// Index into the palette.
    pub colour: usize,
    /// Drawn thin (a maximum beside its mean).
    pub thin: bool,
    /// Drawn dashed (it lies on another line, or the palette has been used up once).
    pub dashed: bool,
}

/// A horizontal bar made of segments.
#[derive(Serialize)]
pub struct Bar {
    /// Left of the bar.
    pub label: String,
    /// Right of the bar.
    pub value: String,
    /// Share of the full length left empty before the first segment, 0..=100.
    pub from_percent: f64,
    /// From left to right.
    pub segments: Vec<Segment>,
}

/// A piece of a [`Bar`].
#[derive(Serialize)]
pub struct Segment {
    /// Index into the palette.
    pub colour: usize,
    /// Share of the bar's full length, 0..=100.
    pub percent: f64,
    /// The cause, and the amount.
    pub title: String,
}

/// `name` as part of an id.
pub fn plain(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    name.chars().map(plain).collect()
}

impl Figure {
    /// Without anything in it yet.
    pub fn new(id: impl Into<String>, title: impl Into<String>) -> Self {
        Self { id: id.into(), title: title.into(), ..Self::default() }
    }

    /// A sentence in place of the figure.
    #[must_use]
    pub fn nothing(mut self, sentence: impl Into<String>) -> Self {
        self.nothing = Some(sentence.into());
        self
    }

    /// With a sentence on how to read it.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// With a chart and its legend.
    #[must_use]
    pub fn chart(mut self, chart: Chart) -> Self {
        self.keys = chart.keys();
        self.has_chart = true;
        self.chart = Some(chart);
        self
    }
}

/// Most runs in one picture: with more, lines are a tangle.
pub(crate) const MOST_OVERLAID: usize = 4;
const BANDS: &str =
    "Shaded: from the 5th to the 95th percentile of the intervals that a point joins.";

/// Figures over the parameter, of a table of results: those that matter, or `all` that it has.
pub fn of_swept_runs(runs: &[SweptRun], all: bool) -> Section {
    Section::new("sweep", "Over the parameter", sweep::figures_of_runs(runs, all))
}

/// All sections with figures, for one run or several.
pub(crate) fn sections(records: &[RunRecord], runs: &[Run]) -> Vec<Section> {
    let mut sections = Vec::new();
    let sweep = sweep::figures(records);
    if !sweep.is_empty() {
        sections.push(Section::new("sweep", "Over the parameter", sweep));
    }
    if runs.len() > MOST_OVERLAID {
        sections.extend(panelled(runs));
        sections.push(summed(runs));
    } else {
        sections.extend(one_by_one(runs));
    }
    let layer = zoned_block::figures(runs);
    if !layer.is_empty() {
        sections.push(Section::new("zoned-block", "Zoned block device", layer));
    }
    let power = power::figures(runs);
    if !power.is_empty() {
        // Such a run loses power at its end, if nowhere else.
        sections.insert(0, Section::new("power", "Power loss", power));
    }
    sections.retain(|section| !section.is_empty());
    sections
}

/// Figures over time of many runs, a panel each.
fn panelled(runs: &[Run]) -> Option<Section> {
    if runs.len() > panels::MOST_PANELS {
        return None;
    }
    let mut section = Section::new("over-time", "Over time, a panel a run", panels::figures(runs));
    section.lede = "All panels of a figure have the same axes. Grey: the other runs.";
    Some(section)
}

/// The figures in which many runs can be compared.
fn summed(runs: &[Run]) -> Section {
    let mut figures: Vec<Figure> = tenants::figure(runs).into_iter().collect();
    figures.extend(causes::programs(runs));
    figures.extend(causes::reads(runs));
    let mut section = Section::new("flash", "Flash operations", figures);
    section.lede = if runs.len() > panels::MOST_PANELS {
        "Figures over time and of each run are in reports of up to four runs."
    } else {
        "The other figures over time, and those of each run, are in reports of up to four runs."
    };
    section
}

/// The figures over time, and those of each run.
fn one_by_one(runs: &[Run]) -> Vec<Section> {
    let mut latency = percentiles::figures(runs);
    latency.extend(over_time::latency(runs));
    latency.extend(tenants::figure(runs));
    let mut flash = over_time::write_amplification(runs);
    flash.extend(causes::programs(runs));
    flash.extend(causes::reads(runs));
    let mut busy = over_time::busy(runs);
    busy.extend(busy::figures(runs));
    let mut throughput = Section::new("throughput", "Throughput", over_time::throughput(runs));
    let mut charts = throughput.figures.iter().filter_map(|figure| figure.chart.as_ref());
    if charts.any(|chart| spec::is_banded(runs, &chart.lines)) {
        throughput.lede = BANDS;
    }
    let mut sections = vec![
        throughput,
        Section::new("latency", "Latency", latency),
        Section::new("levels", "Queue, buffer and free blocks", over_time::levels(runs)),
        Section::new("flash", "Flash operations", flash),
        Section::new("utilisation", "Utilisation", busy),
        Section::new("wear", "Wear", wear::figures(runs)),
    ];
    let zones = zones::figures(runs);
    if !zones.is_empty() {
        sections.push(Section::new("zones", "Zones", zones));
    }
    sections
}
