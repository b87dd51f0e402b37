//! Tests that a page names in a table are in the code: a renamed test would leave a claim without its proof.

use super::Finding;
use super::tree::Tree;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.with_extension("md") {
        for (line, name) in named(text) {
            let function = format!("fn {name}(");
            let is_there = tree.exists(name)
                || tree.with_extension("rs").any(|(_, source)| source.contains(&function));
            if !is_there {
                let problem = format!("there is no test `{name}`");
                findings.push(Finding::new(path, line, problem, "name the test as it is called"));
            }
        }
    }
    findings
}

/// Names in code in the last column of tables whose last column is called `test`, each with its line.
fn named(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut of_tests = false;
    text.lines().enumerate().flat_map(move |(index, line)| {
        let last = line.strip_suffix(" |").and_then(|row| row.rsplit("| ").next());
        of_tests = last == Some("test") || of_tests && line.starts_with('|');
        let cell = last.filter(|_| of_tests).unwrap_or_default();
        cell.split('`')
            .skip(1)
            .step_by(2)
            .filter(|name| !name.contains(' '))
            .map(move |name| (index + 1, name))
    })
}
