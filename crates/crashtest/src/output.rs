//! What is kept of a run: findings as seed files, and verdicts for CI.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::locate::Place;
use crate::state::State;
use crate::summary::{Finding, Model, Summary};
use crate::verdict::Verdict;

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
    /// What it came to.
    pub verdict: Verdict,
    /// What was said.
    pub said: String,
    /// What was lost, by file; empty as long as nobody has looked.
    #[serde(default)]
    pub lost: Vec<Place>,
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
        }
    }
}

/// The results as JUnit XML, as CI systems read it: a test case for each model, and the positive control.
pub fn junit(summary: &Summary) -> String {
    let mut cases = String::new();
    let mut failures = 0;
    let control = (!summary.control_works()).then(|| {
        "the check passed on a drive that ignored all flushes: it does not see what a power cut takes"
            .to_owned()
    });
    let mut case = |name: &str, seconds: f64, broken: Option<String>| {
        let _ = write!(
            cases,
            "  <testcase classname=\"leyden.crashtest\" name=\"{name}\" time=\"{seconds:.3}\""
        );
        match broken {
            None => cases.push_str("/>\n"),
            Some(text) => {
                failures += 1;
                let first = escaped(text.lines().next().unwrap_or_default());
                let _ = write!(
                    cases,
                    ">\n    <failure message=\"{first}\">{}</failure>\n  </testcase>\n",
                    escaped(&text)
                );
            }
        }
    };
    case("positive control", summary.control.seconds, control);
    for model in &summary.models {
        let is_held_against = model.model != Model::Lying && model.broken() > 0;
        let text = is_held_against.then(|| {
            let mut text = format!("{} of {} states broke\n", model.broken(), model.states);
            for finding in &model.findings {
                let Finding { verdict, count, said, .. } = finding;
                let _ = writeln!(text, "{} ({count} states): {said}", verdict.name());
            }
            text
        });
        case(model.model.name(), model.seconds, text);
    }
    let tests = summary.models.len() + 1;
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"leyden crashtest\" tests=\"{tests}\" \
         failures=\"{failures}\">\n{cases}</testsuite>\n"
    )
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
    fn what_checks_say_is_escaped() {
        assert_eq!(escaped("a<b & \"c\"\u{1}"), "a&lt;b &amp; &quot;c&quot;\u{fffd}");
    }
}
