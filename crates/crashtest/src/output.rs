//! Files kept of a run: findings as seed files, and verdicts for CI.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::error::CrashError;
use crate::locate::Place;
use crate::session::Session;
use crate::state::State;
use crate::summary::{Finding, Model, ModelSummary, RunVerdict, Summary};
use crate::verdict::Verdict;
use crate::why::Why;

/// The file of a crash test's folder that has the results of its last run.
pub const SUMMARY: &str = "summary.json";

/// A finding that can be tried again on its recording.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seed {
    /// The model that the state is from.
    pub model: Model,
    /// Bytes of an atom.
    pub atom_bytes: u32,
    /// The state.
    pub state: State,
    /// The verdict on the state.
    pub verdict: Verdict,
    /// The output of the check.
    pub said: String,
    /// The lost data, by file; empty until it has been located.
    #[serde(default)]
    pub lost: Vec<Place>,
    /// Why it breaks, if that was looked for.
    #[serde(default)]
    pub why: Option<Why>,
}

impl Seed {
    /// Of a finding.
    pub fn new(model: Model, atom_bytes: u32, finding: &Finding) -> Self {
        Self {
            model,
            atom_bytes,
            state: finding.state.clone(),
            verdict: finding.verdict,
            said: finding.said.clone(),
            lost: Vec::new(),
            why: finding.why.clone(),
        }
    }
}

impl Session {
    /// Keeps the results of a run in place of an earlier one's: as JSON, as JUnit XML, and each finding as a seed file.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn keep(&self, summary: &Summary) -> Result<(), CrashError> {
        let _ = std::fs::remove_dir_all(self.findings()); // there may be none
        for model in &summary.models {
            for (number, finding) in (1..).zip(&model.findings) {
                let seed = Seed::new(model.model, summary.atom_bytes, finding);
                let name = format!("findings/{}-{number}.json", model.model.name());
                self.write(&name, &pretty(&seed))?;
            }
        }
        self.write("junit.xml", &junit(summary))?;
        self.write(SUMMARY, &pretty(summary)).map(drop)
    }
}

fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("plain data") + "\n"
}

/// A test of a JUnit file: name, seconds, outcome, and the failure in it.
struct Case {
    name: &'static str,
    seconds: f64,
    came: String,
    failure: Option<String>,
}

/// The results as JUnit XML, as CI systems read it: a test case for each control and each model, and one for the number
/// of states if one is required. What ended each is its output.
fn junit(summary: &Summary) -> String {
    let cases = cases(summary);
    let mut xml = String::new();
    for Case { name, seconds, came, failure } in &cases {
        let _ = writeln!(
            xml,
            "  <testcase classname=\"leyden.crashtest\" name=\"{name}\" time=\"{seconds:.3}\">"
        );
        if let Some(text) = failure {
            let first = escaped(text.lines().next().unwrap_or_default());
            let _ = writeln!(xml, "    <failure message=\"{first}\">{}</failure>", escaped(text));
        }
        let _ = writeln!(xml, "    <system-out>{}</system-out>\n  </testcase>", escaped(came));
    }
    let failures = cases.iter().filter(|case| case.failure.is_some()).count();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"leyden crashtest\" tests=\"{}\" \
         failures=\"{failures}\">\n{xml}  <system-out>{}</system-out>\n</testsuite>\n",
        cases.len(),
        escaped(&summary.headline())
    )
}

fn cases(summary: &Summary) -> Vec<Case> {
    let mut cases = Vec::new();
    if let Some(intact) = &summary.intact {
        let fails = !summary.is_intact();
        let said = || format!("the check fails where nothing is lost\n{}", intact.said);
        cases.push(Case {
            name: "negative control",
            seconds: 0.0,
            came: format!("where nothing is lost: {}", intact.verdict.name()),
            failure: fails.then(said),
        });
    }
    let is_blind = summary.verdict == RunVerdict::CheckBlind;
    let blind = || format!("the check passes {}: it does not notice lost data", summary.liar());
    cases.push(Case {
        name: "positive control",
        seconds: summary.control.seconds,
        came: format!("{} of {} lies noticed", summary.control.broken(), summary.control.states),
        failure: is_blind.then(blind),
    });
    cases.extend(summary.models.iter().map(case));
    if let Some(required) = summary.required {
        let few = summary.models.iter().find(|model| model.states < required);
        let few =
            few.map(|model| format!("{} is less than the {required} required", model.extent()));
        let came = format!("{required} states are required of each model");
        cases.push(Case { name: "required states", seconds: 0.0, came, failure: few });
    }
    cases
}

fn case(model: &ModelSummary) -> Case {
    let is_held_against = model.model != Model::Lying && model.broken() > 0;
    let broken = || {
        let mut text = format!("{} of {} states broke\n", model.broken(), model.states);
        for finding in &model.findings {
            let Finding { verdict, count, said, .. } = finding;
            let _ = writeln!(text, "{} ({count} states): {said}", verdict.name());
            for line in finding.why.iter().flat_map(Why::lines) {
                let _ = writeln!(text, "  why: {line}");
            }
        }
        text
    };
    Case {
        name: model.model.name(),
        seconds: model.seconds,
        came: model.extent(),
        failure: is_held_against.then(broken),
    }
}

/// Text as XML 1.0 has it: markup escaped, and characters left out that it does not allow.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if c < ' ' || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_checks_is_escaped() {
        assert_eq!(escaped("a<b & \"c\"\u{1}"), "a&lt;b &amp; &quot;c&quot;\u{fffd}");
    }
}
