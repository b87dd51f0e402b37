//! Notes to oneself, debugging aids, and paths of one machine do not stay.

use super::Finding;
use super::code::{line_of, only, words};
use super::tree::Tree;

// In pieces, so that this file is not found by its own rule.
const NOTES: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];
const MACHINE_PATHS: &[&str] =
    &[concat!("/wo", "rk"), concat!("/tmp/", "target"), concat!("/ro", "ot")];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts() {
        for note in NOTES {
            findings.extend(words(text, note).map(|at| {
                let problem = format!("a note is left ({note})");
                let remedy = "do it, or open an issue and state here the rule until then";
                Finding::new(path, line_of(text, at), problem, remedy)
            }));
        }
        for machine_path in MACHINE_PATHS {
            let places = text.match_indices(machine_path).map(|(at, _)| at);
            let of_a_machine = places.filter(|&at| stands_alone(text, at, machine_path.len()));
            findings.extend(of_a_machine.map(|at| {
                let problem = format!("a path of one machine ({machine_path})");
                let remedy = "name it relative to the repository, or leave it to the user";
                Finding::new(path, line_of(text, at), problem, remedy)
            }));
        }
    }
    for (path, text) in tree.with_extension("rs") {
        let code = only(text);
        findings.extend(words(&code, "dbg").filter(|&at| code[at..].starts_with("dbg!")).map(
            |at| {
                let remedy = "take it out; a test or a trace event can stay";
                Finding::new(path, line_of(&code, at), "a debugging aid is left (dbg!)", remedy)
            },
        ));
    }
    findings
}

/// True if the path at `at` begins there and its last name ends there.
fn stands_alone(text: &str, at: usize, length: usize) -> bool {
    let part_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let begins =
        !text[..at].ends_with(|c: char| part_of_name(c) || c == '/' || c == '$' || c == '}');
    begins && !text[at + length..].starts_with(|c: char| part_of_name(c) && c != '.')
}
