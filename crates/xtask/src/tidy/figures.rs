//! Numbers that the documentation repeats are those of the code.

use super::Finding;
use super::tree::Tree;

/// A number that is said twice.
struct Figure {
    page: &'static str,
    /// The text before it on the page. There is a number behind it wherever it occurs.
    before: &'static str,
    source: &'static str,
    constant: &'static str,
}

const FIGURES: &[Figure] = &[
    Figure {
        page: "docs/architecture.md",
        before: "format version, ",
        source: "crates/device/src/snapshot.rs",
        constant: "VERSION",
    },
    Figure {
        page: "docs/traces.md",
        before: "## The compact format, version ",
        source: "crates/workload/src/trace/read/compact.rs",
        constant: "VERSION",
    },
    Figure {
        page: "docs/traces.md",
        before: "| 8..10 | version, ",
        source: "crates/workload/src/trace/read/compact.rs",
        constant: "VERSION",
    },
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    FIGURES.iter().flat_map(|figure| check_figure(tree, figure)).collect()
}

fn check_figure(tree: &Tree, figure: &Figure) -> Vec<Finding> {
    let (Some(page), Some(source)) = (tree.text(figure.page), tree.text(figure.source)) else {
        return Vec::new(); // a page or file that is gone is found by what links to it or uses it
    };
    let here = "FIGURES, crates/xtask/src/tidy/figures.rs";
    let Some(value) = value_of(source, figure.constant) else {
        let problem = format!("there is no constant `{}` any more", figure.constant);
        return vec![Finding::new(figure.source, 1, problem, format!("mend {here}"))];
    };
    let mut findings = Vec::new();
    let mut is_said = false;
    for (index, line) in page.lines().enumerate() {
        let Some((_, behind)) = line.split_once(figure.before) else { continue };
        is_said = true;
        let said = number_at(behind);
        if said != value {
            let problem = format!("\"{}{said}\", and the code has {value}", figure.before);
            let remedy = format!("say what {} says in `{}`", figure.source, figure.constant);
            findings.push(Finding::new(figure.page, index + 1, problem, remedy));
        }
    }
    if !is_said {
        let problem = format!("\"{}\" is not said any more", figure.before);
        findings.push(Finding::new(figure.page, 1, problem, format!("mend {here}")));
    }
    findings
}

/// The digits of `const NAME: type = 123;`, without underscores.
fn value_of(source: &str, constant: &str) -> Option<String> {
    let line = source.lines().find(|line| line.contains(&format!("const {constant}: ")))?;
    Some(number_at(line.split_once("= ")?.1))
}

/// The digits that `text` begins with, without separators.
fn number_at(text: &str) -> String {
    let part_of_number = |c: &char| c.is_ascii_digit() || matches!(c, '_' | ',');
    text.chars().take_while(part_of_number).filter(char::is_ascii_digit).collect()
}
