//! From a measured figure to a verdict, and the JSON that says so.

use serde::{Deserialize, Serialize};

use super::file::{Claim, Value};

/// Whether a claim holds on our drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// Measured within the interval.
    #[serde(rename = "holds")]
    Holds,
    /// Measured outside.
    #[serde(rename = "differs")]
    Differs,
    /// Not measured: the note says why.
    #[serde(rename = "not run")]
    NotRun,
}

impl Verdict {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Differs => "differs",
            Self::NotRun => "not run",
        }
    }
}

/// How far a figure goes between seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// How many seeds.
    pub seeds: u16,
    /// The least of them; of a pair, of its lower number.
    pub least: f64,
    /// The most of them; of a pair, of its higher number.
    pub most: f64,
}

impl Spread {
    /// The mean of `values`, which are alike and at least one, and their spread.
    pub(super) fn of(values: &[Value]) -> (Value, Self) {
        let n = values.len() as f64;
        let mean = |at: usize| {
            values
                .iter()
                .map(|value| value.numbers().get(at).copied().unwrap_or(f64::NAN))
                .sum::<f64>()
                / n
        };
        let all = || values.iter().flat_map(|value| value.numbers().iter().copied());
        let spread = Self {
            seeds: values.len() as u16,
            least: all().fold(f64::INFINITY, f64::min),
            most: all().fold(f64::NEG_INFINITY, f64::max),
        };
        let value = match values {
            [Value::Pair(_), ..] => Value::Pair([mean(0), mean(1)]),
            _ => Value::One(mean(0)),
        };
        (value, spread)
    }
}

/// A claim beside what was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimResult {
    /// The claim's name.
    pub id: String,
    /// The figure of the paper.
    pub paper: Value,
    /// The measured figure, if there is one: the mean, if over several seeds.
    pub measured: Option<Value>,
    /// How far it goes between seeds, if several were run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
    /// The interval in which the claim holds.
    pub accept: [f64; 2],
    /// Whether it does.
    pub verdict: Verdict,
    /// The runs, or the reason that there were none; and the reason that the figure differs, if it
    /// does.
    pub note: String,
    /// The claim in words; not part of the JSON, which has the fields of design, section 6.
    #[serde(skip)]
    pub statement: String,
}

/// The JSON of `leyden reproduce --json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClaimResults {
    /// Every claim asked for, in the order of the claims file.
    pub claims: Vec<ClaimResult>,
}

impl ClaimResult {
    /// The claim beside `measured`. A figure that is not finite counts as not measured.
    pub fn judged(claim: &Claim, measured: Value, note: String) -> Self {
        if !measured.numbers().iter().all(|number| number.is_finite()) {
            let note = format!("the runs have nothing to divide by: {note}");
            return Self::not_run(claim, note);
        }
        let [from, to] = claim.accept;
        let within = measured.numbers().iter().all(|number| (from..=to).contains(number));
        let verdict = if within { Verdict::Holds } else { Verdict::Differs };
        Self { measured: Some(measured), verdict, note, ..Self::not_run(claim, String::new()) }
    }

    /// The claim, not measured, for the reason in `note`.
    pub fn not_run(claim: &Claim, note: String) -> Self {
        Self {
            id: claim.id.clone(),
            paper: claim.paper,
            measured: None,
            spread: None,
            accept: claim.accept,
            verdict: Verdict::NotRun,
            note,
            statement: claim.statement.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim() -> Claim {
        Claim {
            id: "a.b".into(),
            paper: Value::One(0.8),
            accept: [0.7, 1.0],
            statement: "faster".into(),
        }
    }

    #[test]
    fn the_ends_of_the_interval_hold() {
        let verdict = |measured| ClaimResult::judged(&claim(), measured, String::new()).verdict;
        assert_eq!(verdict(Value::One(0.7)), Verdict::Holds);
        assert_eq!(verdict(Value::One(1.0)), Verdict::Holds);
        assert_eq!(verdict(Value::One(0.699_999)), Verdict::Differs);
        assert_eq!(verdict(Value::One(1.000_001)), Verdict::Differs);
        assert_eq!(verdict(Value::Pair([0.7, 0.9])), Verdict::Holds);
        assert_eq!(verdict(Value::Pair([0.7, 1.1])), Verdict::Differs, "both must be within");
        assert_eq!(verdict(Value::One(f64::NAN)), Verdict::NotRun);
    }

    #[test]
    fn json_has_the_fields_of_the_contract_and_no_others() {
        let results = ClaimResults {
            claims: vec![
                ClaimResult::judged(&claim(), Value::One(0.75), "ran".into()),
                ClaimResult::not_run(&claim(), "no time".into()),
            ],
        };
        let json = serde_json::to_value(&results).unwrap();
        let expected = serde_json::json!({"claims": [
            {"id": "a.b", "paper": 0.8, "measured": 0.75, "accept": [0.7, 1.0],
             "verdict": "holds", "note": "ran"},
            {"id": "a.b", "paper": 0.8, "measured": null, "accept": [0.7, 1.0],
             "verdict": "not run", "note": "no time"},
        ]});
        assert_eq!(json, expected);
    }
}
