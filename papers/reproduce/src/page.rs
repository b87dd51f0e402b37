//! The page of `leyden reproduce`: claims beside what was measured, and the papers' figures.

use crate::figures::{beside, frontier, protection, selective, zombie};
use crate::frontier::Point;
use crate::hexa::Workload;
use crate::{ClaimResult, Spread, Value, Verdict, WorkloadRow};
use leyden_report::figures::Section;
use leyden_report::{Assets, ReportError, format};
use minijinja::Environment;
use serde::Serialize;

pub use protection::Finished;
pub use selective::Finished as FinishedStore;
pub use zombie::{Finished as FinishedZombie, FinishedDatabase};

const TEMPLATE: &str = "claims.html";
const SOURCE: &str = include_str!("../assets/claims.html");

/// The results of a reproduction.
#[derive(Debug)]
pub struct Reproduction<'a> {
    /// The page's title.
    pub title: &'a str,
    /// Leyden's version and commit.
    pub version: &'a str,
    /// The command that repeats it.
    pub command: &'a str,
    /// Whether it was but a quick look.
    pub quick: bool,
    /// The claims asked for.
    pub claims: &'a [ClaimResult],
    /// The matrix' runs that are finished; no figures if empty.
    pub cells: &'a [Finished<'a>],
    /// Dawid's tables; none if empty.
    pub workloads: &'a [WorkloadRow],
    /// Zombie Chasing's runs that are finished; no figures if empty.
    pub zombies: &'a [FinishedZombie<'a>],
    /// Its databases'.
    pub databases: &'a [FinishedDatabase<'a>],
    /// Selective-PLP's runs that are finished; no figures if empty.
    pub stores: &'a [FinishedStore<'a>],
    /// The designs under each workload; no figures if empty.
    pub frontiers: &'a [(Workload, Vec<Point>)],
}

#[derive(Serialize)]
struct Page<'a> {
    title: &'a str,
    version: &'a str,
    command: &'a str,
    quick: bool,
    summary: String,
    claims: Vec<Row<'a>>,
    sections: Vec<Section>,
    #[serde(flatten)]
    assets: Assets,
    data: String,
}

/// A claim as the page shows it.
#[derive(Serialize)]
struct Row<'a> {
    id: &'a str,
    statement: &'a str,
    note: &'a str,
    paper: String,
    measured: String,
    accept: String,
    verdict: &'static str,
    class: &'static str,
}

/// The page. Same results, same bytes.
///
/// # Errors
/// [`ReportError::Template`] is a bug in here.
pub fn render_reproduction(of: &Reproduction<'_>) -> Result<String, ReportError> {
    let mut sections = beside::sections(of.claims);
    sections.extend(protection::sections(of.cells, of.workloads, of.claims));
    sections.extend(selective::sections(of.stores));
    sections.extend(zombie::sections(of.zombies, of.databases, of.claims));
    sections.extend(frontier::sections(of.frontiers));
    let data =
        leyden_report::chart_data(&sections, &format!("{}; Leyden {}.", of.command, of.version))?;
    let page = Page {
        title: of.title,
        version: of.version,
        command: of.command,
        quick: of.quick,
        summary: summary(of.claims),
        claims: of.claims.iter().map(row).collect(),
        sections,
        assets: Assets::ALL,
        data,
    };
    let mut environment = Environment::new();
    let source = [leyden_report::MACROS, SOURCE].concat();
    environment.add_template(TEMPLATE, &source)?;
    Ok(environment.get_template(TEMPLATE)?.render(&page)?)
}

fn summary(claims: &[ClaimResult]) -> String {
    let count = |verdict| claims.iter().filter(|claim| claim.verdict == verdict).count();
    let each = [Verdict::Holds, Verdict::Differs, Verdict::NotRun]
        .map(|verdict| format!("{} {}", count(verdict), verdict.name()));
    format!("{} in all: {}", claims.len(), each.join(", "))
}

fn row(claim: &ClaimResult) -> Row<'_> {
    let [from, to] = claim.accept;
    let mut measured = claim.measured.as_ref().map_or_else(|| format::DASH.to_owned(), value);
    if let Some(Spread { least, most, .. }) = claim.spread {
        let [least, most] = [least, most].map(format::number);
        measured = format!("{measured} [{least}, {most}]");
    }
    Row {
        id: &claim.id,
        statement: &claim.statement,
        note: &claim.note,
        paper: claim.paper.text(),
        measured,
        accept: Value::Pair([from, to]).text(),
        verdict: claim.verdict.name(),
        class: match claim.verdict {
            Verdict::Holds => "holds",
            Verdict::Differs => "differs",
            Verdict::NotRun => "",
        },
    }
}
