//! The page of a crash test: when the software wrote, flushed and promised, what became of the power cuts in
//! between, and everything that broke.

mod lanes;

pub(crate) use lanes::ticks;

use crate::figures::{Bar, Segment};
use crate::table::Table;
use crate::{ReportError, format, page};
use minijinja::Environment;
use serde::Serialize;

const TEMPLATE: &str = "crash.html";
const SOURCE: &str =
    concat!(include_str!("../../assets/macros.html"), include_str!("../../assets/crash.html"));

/// A crash test, as its page shows it. Times are the drive's, in nanoseconds.
#[derive(Debug)]
pub struct CrashTestPage<'a> {
    /// The page's title.
    pub title: &'a str,
    /// The verdict in words.
    pub verdict: String,
    /// True if it says that nothing broke.
    pub is_held: bool,
    /// The tested software and its set-up: names and values.
    pub facts: Vec<(&'static str, String)>,
    /// Warnings for the reader.
    pub warnings: Vec<String>,
    /// The recorded run.
    pub run: CrashRun,
    /// The results of each model.
    pub models: Vec<CrashModel>,
    /// Everything that broke.
    pub findings: Vec<CrashFinding>,
    /// Shares of power cuts that lose something, by capacitance; none if nobody has asked.
    pub curve: Vec<CrashShare>,
}

/// Requests to the drive, or calls on files, of the recorded run.
#[derive(Debug, Default)]
pub struct CrashRun {
    /// Calls on files were recorded, and no drive.
    pub is_of_files: bool,
    /// From the first event to the last.
    pub span_ns: (u64, u64),
    /// Writes: when, and how many bytes.
    pub writes: Vec<(u64, u64)>,
    /// When flushes, or syncs of files, ended.
    pub flushes: Vec<u64>,
    /// When something was acknowledged.
    pub acks: Vec<u64>,
}

/// The results of a model.
#[derive(Debug)]
pub struct CrashModel {
    /// Its name.
    pub name: &'static str,
    /// Its results, in a line.
    pub line: String,
    /// For each moment: when, and how many states held, lost something acknowledged, or broke otherwise.
    pub tallies: Vec<(u64, [usize; 3])>,
}

/// States that broke in one way.
#[derive(Debug, Serialize)]
pub struct CrashFinding {
    /// The name of its seed file, without the ending.
    pub name: String,
    /// How it broke.
    pub verdict: &'static str,
    /// More about it: flaky, or of a drive that lies.
    pub remark: String,
    /// States that broke so, and the number of the first of them.
    pub states: String,
    /// When the power failed, and what had been promised then.
    pub moment: String,
    /// The data lost at the cut.
    pub taken: Vec<String>,
    /// The application's output then.
    pub said: String,
    /// Why it breaks, in sentences; empty if nobody has looked.
    pub why: Vec<String>,
    /// Commands that try it again.
    pub commands: Vec<String>,
}

/// A point of the curve of losses against capacitance.
#[derive(Debug)]
pub struct CrashShare {
    /// The bank's capacitance, in microfarads.
    pub capacitance_uf: u64,
    /// Power cuts that were tried.
    pub cuts: usize,
    /// Those that lost something.
    pub cuts_that_lose: usize,
}

#[derive(Serialize)]
struct Page<'a> {
    title: &'a str,
    verdict: &'a str,
    is_held: bool,
    has_broken: bool,
    is_of_files: bool,
    facts: &'a [(&'static str, String)],
    warnings: &'a [String],
    models: Vec<(&'static str, &'a str)>,
    /// Markup, escaped already.
    lanes: String,
    lanes_table: Table,
    findings: &'a [CrashFinding],
    curve: Vec<Bar>,
    style: &'static str,
    script: &'static str,
}

/// The page. Same results, same bytes.
///
/// # Errors
/// [`ReportError::Template`] is a bug in here.
pub fn render_crash_test(of: &CrashTestPage<'_>) -> Result<String, ReportError> {
    let page = Page {
        title: of.title,
        verdict: &of.verdict,
        is_held: of.is_held,
        has_broken: of
            .models
            .iter()
            .flat_map(|model| &model.tallies)
            .any(|(_, tally)| tally[2] > 0),
        is_of_files: of.run.is_of_files,
        facts: &of.facts,
        warnings: &of.warnings,
        models: of.models.iter().map(|model| (model.name, model.line.as_str())).collect(),
        lanes: lanes::svg(&of.run, &of.models),
        lanes_table: lanes::table(&of.run, &of.models),
        findings: &of.findings,
        curve: curve(&of.curve),
        style: page::STYLE,
        script: page::SCRIPT,
    };
    let mut environment = Environment::new();
    environment.add_template(TEMPLATE, SOURCE)?;
    Ok(environment.get_template(TEMPLATE)?.render(&page)?)
}

/// A bar for each capacitance, as long as the share of its cuts that lose something.
fn curve(shares: &[CrashShare]) -> Vec<Bar> {
    let bar = |share: &CrashShare| {
        let lose_share = share.cuts_that_lose as f64 / share.cuts.max(1) as f64;
        let (lose, cuts) =
            (format::count(share.cuts_that_lose as u64), format::count(share.cuts as u64));
        let value = format!("{} ({lose} of {cuts})", format::percent(lose_share));
        Bar {
            label: format!("{} uF", format::count(share.capacitance_uf)),
            from_percent: 0.0,
            segments: vec![Segment {
                colour: lanes::LOST,
                percent: 100.0 * lose_share,
                title: value.clone(),
            }],
            value,
        }
    };
    shares.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crash_test() -> CrashTestPage<'static> {
        CrashTestPage {
            title: "A <b>crash</b> test",
            verdict: "1 promise: NOT crash-safe".to_owned(),
            is_held: false,
            facts: vec![("work", "sh <work>.sh & more".to_owned())],
            warnings: Vec::new(),
            run: CrashRun {
                is_of_files: false,
                span_ns: (0, 1_000_000),
                writes: vec![(0, 4_096), (900_000, 8_192)],
                flushes: vec![500_000],
                acks: vec![510_000],
            },
            models: vec![CrashModel {
                name: "adversarial",
                line: "3 states".to_owned(),
                tallies: vec![(499_999, [1, 0, 0]), (1_000_000, [0, 1, 1])],
            }],
            findings: vec![CrashFinding {
                name: "adversarial-1".to_owned(),
                verdict: "acknowledged lost",
                remark: String::new(),
                states: "1 state".to_owned(),
                moment: "at 1 ms".to_owned(),
                taken: vec!["atom 7".to_owned()],
                said: "lost <3>".to_owned(),
                why: vec!["promise `3` was made at event 7".to_owned()],
                commands: vec!["leyden crashtest replay crash x.json".to_owned()],
            }],
            curve: vec![CrashShare { capacitance_uf: 300, cuts: 400, cuts_that_lose: 1 }],
        }
    }

    #[test]
    fn a_page_shows_everything_and_escapes_what_programs_say() {
        let html = render_crash_test(&crash_test()).unwrap();
        assert!(html.contains("sh &lt;work&gt;.sh &amp; more") && html.contains("lost &lt;3&gt;"));
        assert!(html.contains("A &lt;b&gt;crash&lt;") && !html.contains("<b>crash"));
        assert!(html.contains("(1 of 400)"), "{html}");
        assert!(html.contains("acknowledged lost") && html.contains("<svg"));
        assert!(html.contains("NOT crash-safe") && html.contains("made at event 7"));
        assert!(html.contains("leyden crashtest replay crash x.json"));
        assert_eq!(html, render_crash_test(&crash_test()).unwrap());
    }

    #[test]
    fn a_page_without_findings_and_without_a_curve_says_so() {
        let models = Vec::new();
        let nothing =
            CrashTestPage { findings: Vec::new(), curve: Vec::new(), models, ..crash_test() };
        let html = render_crash_test(&nothing).unwrap();
        assert!(!html.contains("</span>broken"), "the legend names what is there");
        assert!(html.contains("Nothing broke") && html.contains("leyden crashtest capacitor"));
    }
}
