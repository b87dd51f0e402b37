//! A page's conclusions from a command, as a comment below it that no reader sees:
//!
//! ```text
//!     leyden compare mine.toml --vary device.ftl.gc.victim=greedy,fifo
//!
//! <!-- concludes: 0.flash.waf < 1.flash.waf; 0.host.flushes = 0 -->
//! ```
//!
//! Each term is a number, or a path into what the command prints with `--json`; of a comparison, the run's number comes
//! first. A path may be multiplied: `0.host.iops * 2.9`. The operators are `<`, `>`, `=` and `~`, which is a
//! difference of at most 2 %.

use serde_json::Value;

use super::shell::Line;

/// The beginning of such a comment.
const BEGIN: &str = "<!-- concludes:";

/// A condition on what a command prints.
#[derive(Debug, PartialEq)]
pub(crate) struct Condition {
    text: String,
    left: Term,
    operator: char,
    right: Term,
}

#[derive(Debug, PartialEq)]
struct Term {
    /// Empty: the number alone.
    path: String,
    factor: f64,
}

/// Whether a command measures something: what it prints with `--json` can be concluded from.
pub(crate) fn measures(line: &Line) -> bool {
    let words: Vec<&str> = line.words.iter().map(String::as_str).collect();
    let measures = matches!(
        words.as_slice(),
        ["leyden", "run" | "compare" | "size" | "lifetime", ..] | ["leyden", "trace", "info", ..]
    );
    measures && line.filter.is_none()
}

/// The conditions that a line states, if it is such a comment.
pub(crate) fn parse(line: &str) -> Option<Vec<Condition>> {
    let inside = line.strip_prefix(BEGIN)?.trim_end().strip_suffix("-->").expect(line);
    Some(inside.split(';').map(|text| condition(text.trim())).collect())
}

fn condition(text: &str) -> Condition {
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = words.iter().position(|word| matches!(*word, "<" | ">" | "=" | "~"));
    let at = at.unwrap_or_else(|| panic!("`{text}` compares nothing"));
    let operator = words[at].chars().next().unwrap_or_default();
    Condition {
        text: text.into(),
        left: term(&words[..at]),
        operator,
        right: term(&words[at + 1..]),
    }
}

fn term(words: &[&str]) -> Term {
    let number = |word: &str| match word {
        "true" => Some(1.0),
        "false" => Some(0.0),
        word => word.replace('_', "").parse::<f64>().ok(),
    };
    match words {
        [one] => match number(one) {
            Some(factor) => Term { path: String::new(), factor },
            None => Term { path: (*one).to_owned(), factor: 1.0 },
        },
        [path, "*", factor] => {
            Term { path: (*path).to_owned(), factor: number(factor).expect("a number behind *") }
        }
        other => panic!("`{}` is no term", other.join(" ")),
    }
}

impl Term {
    fn value(&self, of: &Value) -> Result<f64, String> {
        if self.path.is_empty() {
            return Ok(self.factor);
        }
        let found = of.pointer(&format!("/{}", self.path.replace('.', "/")));
        let value = match found {
            Some(Value::Bool(is)) => Some(f64::from(u8::from(*is))),
            Some(Value::Number(number)) => number.as_f64(),
            _ => None,
        };
        value.map(|value| value * self.factor).ok_or_else(|| format!("no number {}", self.path))
    }
}

impl Condition {
    /// The complaint if the condition does not hold of `printed`.
    pub(crate) fn complaint(&self, printed: &Value) -> Option<String> {
        let values =
            self.left.value(printed).and_then(|left| Ok((left, self.right.value(printed)?)));
        let (left, right) = match values {
            Ok(values) => values,
            Err(problem) => return Some(format!("{}: {problem}", self.text)),
        };
        let holds = match self.operator {
            '<' => left < right,
            '>' => left > right,
            '~' => (left - right).abs() <= 0.02 * right.abs(),
            _ => (left - right).abs() < 1e-9,
        };
        (!holds).then(|| format!("{}: {left} and {right}", self.text))
    }
}

#[test]
fn conditions_are_read_and_judged() {
    let conditions = parse("<!-- concludes: 0.a < 1.a * 2; 1.is = true; 0.a ~ 10.1 -->").unwrap();
    let printed = serde_json::json!([{ "a": 10 }, { "a": 6, "is": true }]);
    assert!(conditions.iter().all(|condition| condition.complaint(&printed).is_none()));
    let other = serde_json::json!([{ "a": 13 }, { "a": 6, "is": false }]);
    assert!(conditions.iter().all(|condition| condition.complaint(&other).is_some()));
    let missing = conditions[0].complaint(&serde_json::json!([])).unwrap();
    assert!(missing.contains("no number 0.a"), "{missing}");
    assert_eq!(parse("    leyden run a"), None);
}
