//! Messages, rows of tables and titles of reports begin with nouns, as pages do ([`super::prose`]).
//!
//! String literals of production code are read. Reasons of lints and messages of `expect` are for contributors, and are not.

use super::Finding;
use super::code::{line_of, strings};
use super::prose::clumsy;
use super::source::HOUSES;
use super::tree::Tree;

/// Headless clauses and words of the list in all string literals. Lower it with the count, never raise it.
const LIMIT: usize = 10;
/// Literals behind these are no messages.
const NO_MESSAGE: &[&str] =
    &["long =", "reason =", "expect(", "assert!(", "panic!(", "unreachable!("];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    check_with(tree, LIMIT)
}

pub(super) fn check_with(tree: &Tree, limit: usize) -> Vec<Finding> {
    let files = tree.with_extension("rs").filter(|(path, _)| is_production(path));
    let mut found: Vec<_> = files
        .flat_map(|(path, text)| headless(text).into_iter().map(move |it| (path, it)))
        .collect();
    let all = found.len();
    let last = found.pop().filter(|_| all > limit);
    last.map(|(path, (line, words))| {
        let problem = format!("{all} headless clauses in messages, the last is \"{words}\"");
        let remedy = format!("{limit} are allowed: begin with a noun of the field");
        Finding::new(path, line, problem, remedy)
    })
    .into_iter()
    .collect()
}

fn is_production(path: &str) -> bool {
    HOUSES.iter().any(|house| path.starts_with(house))
        && path.contains("/src/")
        && !path.starts_with("crates/xtask/")
        && !path.contains("/tests/")
        && !path.ends_with("/tests.rs")
}

/// Headless clauses of the string literals of `source`, with their lines.
pub(super) fn headless(source: &str) -> Vec<(usize, String)> {
    let end = source.find("\n#[cfg(test)]\nmod tests {").unwrap_or(source.len());
    let source = &source[..end];
    let mut found = Vec::new();
    for range in strings(source) {
        let before = source[..range.start].trim_end();
        if NO_MESSAGE.iter().any(|mark| before.ends_with(mark)) {
            continue;
        }
        let text = source[range.clone()].trim_matches('"').replace("\\n", "\n");
        let line = line_of(source, range.start);
        found.extend(clumsy(&joined(&text)).into_iter().map(|(_, words)| (line, words)));
    }
    found
}

/// A literal with its continued lines joined, and without the names in its places for values.
fn joined(text: &str) -> String {
    let mut parts = text.split("\\\n");
    let first = parts.next().unwrap_or_default().to_owned();
    let joined = parts.fold(first, |all, part| all + part.trim_start());
    let mut pieces = joined.split('{');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |all, piece| all + "{" + piece.split_once('}').map_or(piece, |it| it.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_without_a_noun_are_found() {
        let source = "fn f() {\n    g(\"what was lost\");\n    g(\"it says what it is\");\n    g(\"the loss, \\\n        \
                      nobody serves\");\n    h.expect(\"nobody\"); // what \"is\"\n}\n\n#[cfg(test)]\nmod tests {\n    \"whoever\"\n}\n";
        assert_eq!(headless(source).iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 4]);
        let tree =
            Tree::of(&[("crates/a/src/lib.rs", source), ("crates/a/tests/a.rs", "\"nobody\"")]);
        assert!(check_with(&tree, 2).is_empty());
        let found = check_with(&tree, 1);
        assert!(found[0].to_string().starts_with("crates/a/src/lib.rs:4: 2 headless"), "{found:?}");
    }
}
