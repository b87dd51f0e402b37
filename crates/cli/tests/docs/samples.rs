//! Outputs that pages show. A line `...` stands for any number of lines.

use std::path::Path;

use super::pages::{Typed, root};

/// True if `said` is what `shown` shows.
pub(crate) fn fits(shown: &[String], said: &str) -> bool {
    let said: Vec<_> = said.lines().map(str::trim_end).collect();
    let mut from = 0;
    let mut gap = false;
    for line in shown.iter().map(|line| line.trim_end()) {
        if line == "..." {
            gap = true;
            continue;
        }
        let rest = said.get(from..).unwrap_or_default();
        let at = if gap { rest.iter().position(|said| *said == line) } else { Some(0) };
        match at.filter(|&at| rest.get(at) == Some(&line)) {
            Some(at) => from += at + 1,
            None => return false,
        }
        gap = false;
    }
    gap || from == said.len()
}

/// True if each row that `shown` shows is a row of `said`, whatever its figures are. Percentiles and rows
/// of preconditioning may be missing: the short form of a command has too few samples, and no preconditioning.
pub(crate) fn labels_are_in(shown: &[String], said: &str) -> bool {
    let rows: Vec<_> = said.lines().map(label).collect();
    shown.iter().all(|line| {
        let label = label(line);
        let may_be_missing = label.starts_with("p9") || label.ends_with(", preconditioning");
        line == "..." || may_be_missing || rows.contains(&label)
    })
}

fn label(line: &str) -> &str {
    line.split("  ").next().unwrap_or_default().trim_end()
}

/// Puts `said` in the place of what `page` shows below `typed`; of a shown output that ends in `...`, as many lines
/// as it had.
pub(crate) fn overwrite(page: &Path, typed: &Typed, said: &str) {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let number: usize = typed.place.rsplit(':').next().unwrap().parse().unwrap();
    let shown = typed.output.as_ref().unwrap();
    let lines: Vec<_> = text.lines().collect();
    let indent = if lines[number - 1].starts_with("    ") { "    " } else { "" };
    let has_gap = shown.last().is_some_and(|line| line == "...");
    let kept = if has_gap { shown.len() - 1 } else { usize::MAX };
    let said = said.lines().take(kept).map(|line| format!("{indent}{line}").trim_end().to_owned());
    let mut new: Vec<_> = lines[..number].iter().map(|line| (*line).to_owned()).collect();
    new.extend(said);
    if has_gap {
        new.push(format!("{indent}..."));
    }
    new.extend(lines[number + shown.len()..].iter().map(|line| (*line).to_owned()));
    std::fs::write(page, new.join("\n") + "\n").unwrap();
}

#[test]
fn outputs_are_compared_with_gaps() {
    let shown = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
    assert!(fits(&shown(&["a", "b"]), "a\nb\n"));
    assert!(!fits(&shown(&["a"]), "a\nb\n"));
    assert!(fits(&shown(&["a", "..."]), "a\nb\nc\n"));
    assert!(fits(&shown(&["a", "...", "c"]), "a\nb\nc\n"));
    assert!(!fits(&shown(&["a", "...", "d"]), "a\nb\nc\n"));
    assert!(labels_are_in(
        &shown(&["write latency, mean  1.0", "..."]),
        "x\nwrite latency, mean   2.5\n"
    ));
    assert!(labels_are_in(&shown(&["Write amplification, preconditioning   2.7"]), "x\n"));
    assert!(!labels_are_in(&shown(&["write latency  1.0"]), "write latency, mean   2.5\n"));
}
