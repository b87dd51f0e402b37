//! The rules of the house, one file each.
//!
//! Each rule reads the [`Tree`] and returns [`Finding`]s. A rule has a test that shows
//! it failing on a bad example: a check that cannot fail checks nothing.

mod circles;
pub(crate) mod code;
mod comments;
mod evidence;
mod figures;
mod header;
mod layers;
mod leftovers;
mod links;
mod messages;
mod modules;
mod policies;
mod prose;
mod safety;
mod source;
#[cfg(test)]
mod tests;
pub(crate) mod tree;
mod types;

use std::fmt;

use tree::Tree;

/// Something that a rule does not allow.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    path: String,
    /// Counted from 1.
    line: usize,
    problem: String,
    remedy: String,
}

impl Finding {
    /// A finding at line `line` of `path`, counted from 1.
    pub(crate) fn new(
        path: &str,
        line: usize,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { path: path.to_owned(), line, problem: problem.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.problem, self.remedy)
    }
}

/// Applies every rule; findings are ordered by file and line.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    const RULES: &[fn(&Tree) -> Vec<Finding>] = &[
        layers::check,
        messages::check,
        modules::check,
        circles::check,
        types::check,
        safety::check,
        leftovers::check,
        comments::check,
        policies::check,
        links::check,
        evidence::check,
        figures::check,
        header::check,
        prose::check,
    ];
    let mut findings: Vec<_> = RULES.iter().flat_map(|rule| rule(tree)).collect();
    findings.sort();
    findings
}
