//! Comments begin with a noun: "the losses of a cut", not "what a cut loses".
//!
//! The rule is young, so it counts: comments that begin a sentence without one may only become fewer.

use super::Finding;
use super::source::HOUSES;
use super::tree::Tree;

/// Comment lines in all crates that begin a sentence with one of [`HEADS`]. Lower it with the count, never raise it.
const LIMIT: usize = 0;
/// Words that begin a clause in the place of a noun, or stand for nobody in particular.
const HEADS: [&str; 6] = ["What", "Whatever", "Who", "Whoever", "Nobody", "Somebody"];
/// Comments that `tidy` asks for begin with these words.
const ASKED_FOR: [&str; 2] = ["**What lives here**", "**What doesn't**"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let files = tree
        .with_extension("rs")
        .filter(|(path, _)| HOUSES.iter().any(|house| path.starts_with(house)));
    let counts: Vec<_> = files.map(|(path, text)| (headless(text), path)).collect();
    let all: usize = counts.iter().map(|(lines, _)| lines.len()).sum();
    findings(all, LIMIT, &counts)
}

/// The file with the most of them, if there are more than `limit` together.
fn findings(all: usize, limit: usize, counts: &[(Vec<usize>, &str)]) -> Vec<Finding> {
    let most = counts.iter().max_by_key(|(lines, _)| lines.len()).filter(|_| all > limit);
    most.map(|(lines, path)| {
        let problem =
            format!("{all} comments in all crates begin without a noun, {} here", lines.len());
        let remedy = format!("{limit} are allowed: name the thing first, in the field's words");
        Finding::new(path, lines[0], problem, remedy)
    })
    .into_iter()
    .collect()
}

/// Lines of comments that begin a sentence with one of [`HEADS`] and ask no question.
pub(super) fn headless(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut begins = true; // whether a sentence begins on the next line
    for (number, line) in (1..).zip(text.lines()) {
        let Some(said) = comment(line) else {
            begins = true;
            continue;
        };
        let first = said.split([' ', ',']).next().unwrap_or_default();
        let asked_for = ASKED_FOR.iter().any(|head| said.starts_with(head));
        if begins && HEADS.contains(&first) && !asked_for && !said.contains('?') {
            found.push(number);
        }
        begins = said.is_empty() || said.ends_with(['.', ':', '?', '!']);
    }
    found
}

/// The text of a line that is a comment and nothing else.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let said = ["///", "//!", "//"].iter().find_map(|mark| line.strip_prefix(mark))?;
    Some(said.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_without_a_noun_are_counted_and_the_worst_file_is_named() {
        let text = "//! What is here.\n//!\n//! The parts that say\n//! What follows.\n\
                    // What is it?\n/// The cost.\n/// Nobody waits.\nfn f() {} // What\n";
        assert_eq!(headless(text), [1, 7]);
        let asked_for = "//! **What lives here**: parts.\n// Whoever comes.\n";
        assert_eq!(headless(asked_for), [2]);
        let counts = [(vec![3], "crates/a/src/lib.rs"), (vec![7, 9], "crates/b/src/lib.rs")];
        assert!(findings(3, 3, &counts).is_empty());
        let found = findings(3, 2, &counts);
        assert!(found[0].to_string().starts_with("crates/b/src/lib.rs:7: 3 comments"), "{found:?}");
    }
}
