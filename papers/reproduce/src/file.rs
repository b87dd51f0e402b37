//! `scenarios/claims.toml`: what the papers report, with the interval in which a reproduction holds.
//!
//! Here: reading and checking the file. Not here: measuring.

use std::collections::BTreeMap;

use leyden_report::format;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The claims that are compiled in.
const BUNDLED: &str = include_str!("../claims.toml");

/// A figure: one number, or a pair (where a paper gives a range over its set-ups).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// One number.
    One(f64),
    /// From one number to another.
    Pair([f64; 2]),
}

impl Value {
    /// The number, or both of the pair.
    pub fn numbers(&self) -> &[f64] {
        match self {
            Self::One(number) => std::slice::from_ref(number),
            Self::Pair(pair) => pair,
        }
    }

    /// The number as pages print it, or both with "to".
    pub(crate) fn text(&self) -> String {
        let numbers: Vec<String> = self.numbers().iter().map(|n| format::number(*n)).collect();
        numbers.join(" to ")
    }
}

/// A claim of a paper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its name: `hexa.iops_vs_full.1pct`.
    pub id: String,
    /// The figure that the authors report: a ratio, unless the statement names a unit.
    pub paper: Value,
    /// The interval, ends included, that a reproduction must fall into.
    pub accept: [f64; 2],
    /// The claim in words.
    pub statement: String,
}

/// The whole file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimsFile {
    /// The set-up of each paper, in its own words; free tables.
    #[serde(default)]
    pub setup: BTreeMap<String, toml::Table>,
    /// The claims, in the file's order.
    #[serde(rename = "claim", default)]
    pub claims: Vec<Claim>,
}

/// Errors of a claims file.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ClaimsError {
    /// It is not the TOML of a claims file; the message names line and column.
    #[error("not a claims file: {0}")]
    Syntax(String),
    /// A claim says what cannot be.
    #[error("claim `{id}`: {problem}")]
    Claim {
        /// Which.
        id: String,
        /// The problem, and its remedy.
        problem: String,
    },
}

impl ClaimsFile {
    /// The claims that are compiled in.
    pub fn bundled() -> Result<Self, ClaimsError> {
        Self::parse(BUNDLED)
    }

    /// Reads and checks a file's text.
    pub fn parse(text: &str) -> Result<Self, ClaimsError> {
        let file: Self =
            toml::from_str(text).map_err(|error| ClaimsError::Syntax(error.to_string()))?;
        for (index, claim) in file.claims.iter().enumerate() {
            let wrong = |problem: &str| {
                Err(ClaimsError::Claim { id: claim.id.clone(), problem: problem.to_owned() })
            };
            if !is_id(&claim.id) {
                return wrong("an id is lower-case words with dots between them");
            }
            if file.claims[..index].iter().any(|other| other.id == claim.id) {
                return wrong("the id occurs twice; ids are unique");
            }
            if claim.statement.trim().is_empty() {
                return wrong("the statement is empty; say what is claimed");
            }
            let [from, to] = claim.accept;
            if !(from.is_finite() && to.is_finite() && from <= to) {
                return wrong("`accept` is not an interval: two numbers, the smaller one first");
            }
            if !claim.paper.numbers().iter().all(|number| number.is_finite()) {
                return wrong("`paper` is not a finite number");
            }
        }
        Ok(file)
    }
}

fn is_id(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    text.contains('.') && text.split('.').all(|word| !word.is_empty() && word.chars().all(plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        "[[claim]]\nid = \"a.b\"\npaper = 0.8\naccept = [0.7, 1.0]\nstatement = \"faster\"\n";

    #[test]
    fn the_bundled_file_is_read_whole() {
        let file = ClaimsFile::bundled().unwrap();
        assert_eq!(file.claims.len(), 32);
        assert_eq!(file.claims[0].id, "hexa.figure1.fifo_flushes");
        assert_eq!(file.setup["hexa_figure1"]["entries_per_mapping_page"].as_integer(), Some(4));
        let ranges = file.claims.iter().filter(|claim| claim.paper.numbers().len() == 2).count();
        assert_eq!(ranges, 2, "two papers give ranges");
    }

    #[test]
    fn impossible_claims_are_refused() {
        assert_eq!(ClaimsFile::parse(GOOD).unwrap().claims.len(), 1);
        let wrong = [
            (GOOD.replace("a.b", "ab"), "dots"),
            (GOOD.replace("a.b", "a..b"), "dots"),
            (GOOD.replace("a.b", "A.b"), "lower-case"),
            (GOOD.repeat(2), "twice"),
            (GOOD.replace("faster", " "), "statement"),
            (GOOD.replace("[0.7, 1.0]", "[1.0, 0.7]"), "smaller"),
            (GOOD.replace("[0.7, 1.0]", "[nan, 1.0]"), "interval"),
            (GOOD.replace("0.8", "inf"), "finite"),
            (GOOD.replace("[0.7, 1.0]", "[0.7]"), "not a claims file"),
            (GOOD.replace("statement", "statment"), "statment"),
            (GOOD.replace("accept", "#"), "accept"),
            ("[[claim]\n".to_owned(), "line 1"),
            ("flush = 1\n".to_owned(), "flush"),
        ];
        for (text, expected) in wrong {
            let error = ClaimsFile::parse(&text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
