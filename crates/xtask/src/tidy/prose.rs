//! The prose of the pages for users: a subject first, the field's words, and a place in the book.
//!
//! A *headless* clause stands in the place of a noun and has none ("what was promised"). Questions, indirect ones too
//! ("says what it costs"), are none. Decisions and notebooks are records of their day, and are not read here.

use super::Finding;
use super::tree::Tree;

/// Headless clauses and [`WORDS`] in all pages together.
pub(super) const LIMIT: usize = 20;
/// Words that are written by hand, in all pages together: prose and tables without code. A page that
/// grows makes another one shorter.
pub(super) const MOST_WORDS: usize = 25_000;
/// Words of the page on one paper: claims, set-up, differences, and how to print them again.
pub(super) const MOST_WORDS_OF_A_PAPER: usize = 700;
/// The pages that newcomers read first have neither headless clauses nor [`WORDS`].
const FIRST: &[&str] = &[
    "README.md",
    "docs/README.md",
    "docs/crashtest-tutorial.md",
    "docs/serve-tutorial.md",
    "docs/tutorial.md",
];
const SUMMARY: &str = "docs/SUMMARY.md";

/// Behind these, `what` begins an indirect question.
const ASKING: &[&str] = &[
    "say",
    "says",
    "said",
    "saying",
    "ask",
    "asks",
    "asked",
    "know",
    "knows",
    "known",
    "show",
    "shows",
    "shown",
    "see",
    "sees",
    "decide",
    "decides",
    "explain",
    "explains",
    "describe",
    "describes",
    "define",
    "defines",
    "check",
    "checks",
    "list",
    "lists",
    "print",
    "prints",
    "report",
    "reports",
];
/// Words of which a subject or a verb of the field says more.
const WORDS: &[&str] = &[
    "whoever",
    "nobody",
    "somebody",
    "anew",
    "amid",
    "told",
    "held against",
    "goes on",
    "go on",
    "comes to",
    "so many",
    "so much",
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let pages: Vec<_> = tree.with_extension("md").filter(|(path, _)| is_for_users(path)).collect();
    let mut findings = outside_the_book(tree);
    let mut counts = Vec::new();
    for &(path, text) in &pages {
        let found = clumsy(text);
        if FIRST.contains(&path) {
            findings.extend(found.iter().map(|(line, words)| {
                Finding::new(path, *line, format!("\"{words}\""), "begin with a noun of the field")
            }));
        }
        counts.push((found.len(), path));
    }
    let all: usize = counts.iter().map(|(count, _)| count).sum();
    if let Some(&(most, path)) = counts.iter().max().filter(|_| all > LIMIT) {
        let problem = format!(
            "{all} headless clauses and words of the list in all pages, {most} in this one"
        );
        findings.push(Finding::new(
            path,
            1,
            problem,
            format!("{LIMIT} are allowed: begin with nouns"),
        ));
    }
    let mut words = 0;
    for (path, text) in pages.iter().filter(|(path, _)| !is_generated(path)) {
        let of_page = prose(text).map(|(_, line)| words_of(&line)).sum::<usize>();
        if path.starts_with("docs/papers/") && of_page > MOST_WORDS_OF_A_PAPER {
            let problem = format!("{of_page} words, a paper's page has {MOST_WORDS_OF_A_PAPER}");
            findings.push(Finding::new(path, 1, problem, "move history to docs/notebooks"));
        }
        words += of_page;
    }
    if words > MOST_WORDS {
        let problem = format!("the pages for users have {words} words, {MOST_WORDS} are allowed");
        findings.push(Finding::new(
            SUMMARY,
            1,
            problem,
            "shorten a page, or move history to docs/notebooks",
        ));
    }
    findings
}

fn is_for_users(path: &str) -> bool {
    let record =
        ["docs/decisions/", "docs/notebooks/"].iter().any(|folder| path.starts_with(folder));
    path == "README.md" || (path.starts_with("docs/") && !record && path != SUMMARY)
}

/// Pages that `leyden reference` writes: their clauses count, their words do not.
fn is_generated(path: &str) -> bool {
    path.starts_with("docs/reference/") && path != "docs/reference/glossary.md"
}

/// Pages below `docs` that the book does not have.
fn outside_the_book(tree: &Tree) -> Vec<Finding> {
    let Some(summary) = tree.text(SUMMARY) else { return Vec::new() };
    let pages = tree.with_extension("md").map(|(path, _)| path).filter(|path| *path != SUMMARY);
    let is_missing = |path: &&str| {
        path.strip_prefix("docs/").is_some_and(|page| !summary.contains(&format!("]({page})")))
    };
    let missing = pages.filter(is_missing);
    missing
        .map(|path| {
            Finding::new(
                path,
                1,
                "the book does not have this page",
                format!("add it to {SUMMARY}"),
            )
        })
        .collect()
}

/// The lines of a page without code, code spans and comments, with their numbers from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, String)> {
    let (mut fenced, mut commented) = (false, false);
    (1..).zip(text.lines()).filter_map(move |(number, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        let is_comment = commented || line.starts_with("<!--");
        commented = is_comment && !line.contains("-->");
        let is_code = fence || fenced || line.starts_with("    ") || is_comment;
        let spoken = || line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        (!is_code).then(|| (number, spoken()))
    })
}

/// Words are pieces with a letter or a digit: the bars of a table are none.
fn words_of(line: &str) -> usize {
    line.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}

/// Headless clauses and words of the list: line and words.
pub(super) fn clumsy(text: &str) -> Vec<(usize, String)> {
    let lines: Vec<_> = prose(text).collect();
    let mut words: Vec<(usize, &str)> = Vec::new();
    for (number, line) in &lines {
        words.extend(line.split_whitespace().map(|word| (*number, word)));
    }
    let plain = |at: usize| {
        let word = words.get(at).map_or("", |(_, word)| word);
        word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
    };
    let mut found = Vec::new();
    for at in 0..words.len() {
        let word = plain(at);
        // An option of a command is a name.
        let is_option = words[at].1.starts_with("--");
        let is_what = !is_option && matches!(word.as_str(), "what" | "whatever" | "whichever");
        let asks = at > 0 && ASKING.contains(&plain(at - 1).as_str());
        let is_headless = is_what && !asks && !is_question(&words[at..]);
        let is_listed = WORDS.iter().any(|listed| match listed.split_once(' ') {
            Some((first, second)) => word == first && plain(at + 1) == second,
            None => word == *listed,
        });
        if is_headless || is_listed {
            let some: Vec<_> = words[at..].iter().take(4).map(|(_, word)| *word).collect();
            found.push((words[at].0, some.join(" ")));
        }
    }
    found
}

/// Whether the sentence, or the cell of a table, ends with a question mark.
fn is_question(words: &[(usize, &str)]) -> bool {
    let end =
        words.iter().find(|(_, word)| word.ends_with(['.', '?', '!', '|']) || word.contains("?]"));
    end.is_some_and(|(_, word)| word.contains('?'))
}
