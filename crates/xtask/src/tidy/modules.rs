//! Modules say what they are, and files stay short enough to be read at a sitting.

use super::Finding;
use super::tree::Tree;

/// Lines of a file, the unit tests at its end not counted.
const LONGEST: usize = 500;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.with_extension("rs") {
        let documented_elsewhere = path.starts_with("fuzz/fuzz_targets/"); // fuzz/README.md
        if let Some(line) = undocumented(text).filter(|_| !documented_elsewhere) {
            let problem = "the module has no documentation";
            let remedy =
                "begin it with `//!`: what lives here, what doesn't, which invariants hold";
            findings.push(Finding::new(path, line, problem, remedy));
        }
        let length = code_lines(path, text);
        if length > LONGEST {
            let problem = format!("{length} lines, {LONGEST} at most (unit tests not counted)");
            let remedy = "split it by what its parts are about";
            findings.push(Finding::new(path, length, problem, remedy));
        }
    }
    findings
}

/// The first line of a module that does not begin with its documentation.
fn undocumented(text: &str) -> Option<usize> {
    let mut lines = text.lines().enumerate();
    match lines.find(|(_, line)| !line.trim().is_empty()) {
        Some((_, line)) if line.starts_with("//!") => None,
        Some((index, _)) => Some(index + 1),
        None => Some(1),
    }
}

/// Lines before the unit tests; none of a file that is all tests.
fn code_lines(path: &str, text: &str) -> usize {
    let all_tests = path.contains("/tests/") || path.ends_with("/tests.rs");
    if all_tests {
        return 0;
    }
    let mut lines = text.lines().peekable();
    let mut count = 0;
    while let Some(line) = lines.next() {
        let opens = |next: &&str| next.starts_with("mod ") && next.ends_with('{');
        if line == "#[cfg(test)]" && lines.peek().is_some_and(opens) {
            break;
        }
        count += 1;
    }
    count
}
