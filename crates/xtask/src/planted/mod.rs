//! Planted bugs: each is written down beside torture, put into a copy of the sources, and has to be found there.
//!
//! **What lives here**: the lists ([`list`]), where their lines are in the sources ([`place`]), the copy ([`copy`]), and the
//! runs that have to find each bug ([`hunt`]). **What doesn't**: the lists themselves (crates/torture/planted), and what
//! runs a seed (crates/torture/examples/planted.rs).
//!
//! **Invariants**: the sources hold no bug and no switch; one copy holds them all, and is built once.

mod copy;
mod hunt;
pub(crate) mod list;
mod place;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::tidy::Finding;
use crate::tidy::tree::Tree;
use list::{Bug, Finder};

/// Where the lists are.
pub(crate) const LISTS: &str = "crates/torture/planted/";

/// Where failures are that were made small and kept.
const KEPT: [&str; 2] =
    ["crates/torture/tests/regressions/", "crates/torture/tests/zoned_block_regressions/"];

/// The arguments of the command.
#[derive(Default)]
struct Wanted {
    /// Parts of names; all bugs if there are none.
    names: Vec<String>,
    /// A list of the caller's; ours otherwise.
    list: Option<PathBuf>,
    /// Bugs that tests must find, too.
    tests: bool,
    /// Prints what was not found and nothing else.
    quiet: bool,
    /// The profile that the copy is built with; that of tests otherwise.
    profile: Option<String>,
}

/// Plants the bugs, and looks for each. The exit code.
pub(crate) fn main(root: &Path, arguments: &[&str]) -> io::Result<u8> {
    let Some(wanted) = wanted(arguments) else {
        let usage = "usage: cargo xtask planted [--tests] [--list FILE] [--profile PROFILE] [--quiet] [NAME]...";
        return writeln!(io::stderr(), "{usage}").map(|()| 2);
    };
    let tree = Tree::read(root)?;
    let (bugs, mut findings) = match &wanted.list {
        None => read(&tree),
        Some(path) => {
            let path = path.display().to_string();
            bugs_of(&path, &std::fs::read_to_string(&path)?)
        }
    };
    let is_chosen = |bug: &&Bug| {
        wanted.names.is_empty() || wanted.names.iter().any(|name| bug.name.contains(name.as_str()))
    };
    let chosen: Vec<&Bug> = bugs.iter().filter(is_chosen).collect();
    let texts = planted(&tree, &chosen, &mut findings);
    if !findings.is_empty() || chosen.is_empty() {
        for finding in &findings {
            writeln!(io::stderr(), "{finding}")?;
        }
        writeln!(io::stderr(), "planted: {} bugs, findings: {}", chosen.len(), findings.len())?;
        return Ok(1);
    }
    let programs =
        copy::build(root, &texts, &finders(&chosen, &wanted), wanted.profile.as_deref())?;
    hunt::all(&chosen, &programs, wanted.tests, wanted.quiet)
}

fn wanted(arguments: &[&str]) -> Option<Wanted> {
    let mut wanted = Wanted::default();
    let mut arguments = arguments.iter();
    while let Some(&argument) = arguments.next() {
        match argument {
            "--tests" => wanted.tests = true,
            "--quiet" => wanted.quiet = true,
            "--profile" => wanted.profile = Some((*arguments.next()?).to_owned()),
            "--list" => wanted.list = Some(PathBuf::from(arguments.next()?)),
            _ if argument.starts_with('-') => return None,
            name => wanted.names.push(name.to_owned()),
        }
    }
    Some(wanted)
}

/// The finders to build for `bugs`.
fn finders(bugs: &[&Bug], wanted: &Wanted) -> BTreeSet<Finder> {
    let all = bugs.iter().flat_map(|bug| bug.found_by.iter().flatten());
    all.filter(|finder| wanted.tests || finder.is_torture()).cloned().collect()
}

/// The rule of `cargo xtask tidy`: every planted bug fits the sources.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let (bugs, mut findings) = read(tree);
    planted(tree, &bugs.iter().collect::<Vec<_>>(), &mut findings);
    findings.extend(unguarded(tree, &bugs));
    findings
}

/// Failures that are kept and have no bug that they must find: nothing says whether they still guard anything.
fn unguarded(tree: &Tree, bugs: &[Bug]) -> Vec<Finding> {
    let finders = bugs.iter().flat_map(|bug| bug.found_by.iter().flatten());
    let finds = |finder: &Finder, path: &str| matches!(finder, Finder::Kept { name } if KEPT.iter().any(|it| *path == format!("{it}{name}.json")));
    let finders: Vec<&Finder> = finders.collect();
    let kept =
        tree.with_extension("json").filter(|(path, _)| KEPT.iter().any(|it| path.starts_with(it)));
    let without = kept.filter(|(path, _)| !finders.iter().any(|finder| finds(finder, path)));
    let finding = |(path, _): (&str, &str)| {
        let remedy =
            format!("plant the bug that it was kept for in {LISTS}kept.diff, or drop the file");
        Finding::new(path, 1, "no planted bug names the kept failure that finds it", remedy)
    };
    without.map(finding).collect()
}

/// The bugs of our lists, and what is wrong with these.
fn read(tree: &Tree) -> (Vec<Bug>, Vec<Finding>) {
    let (mut bugs, mut findings) = (Vec::new(), Vec::new());
    let lists = tree.with_extension("diff").filter(|(path, _)| path.starts_with(LISTS));
    for (path, text) in lists {
        let (of_list, wrong) = bugs_of(path, text);
        bugs.extend(of_list);
        findings.extend(wrong);
    }
    let mut names = BTreeSet::new();
    for bug in &bugs {
        if !names.insert(&bug.name) {
            let problem = format!("{} is planted twice", bug.name);
            findings.push(Finding::new(&bug.list, bug.line, problem, "give it another name"));
        }
    }
    (bugs, findings)
}

fn bugs_of(path: &str, text: &str) -> (Vec<Bug>, Vec<Finding>) {
    match list::parse(path, text) {
        Ok(bugs) => (bugs, Vec::new()),
        Err((line, problem)) => {
            let remedy = format!("see {LISTS}README.md");
            (Vec::new(), vec![Finding::new(path, line, problem, remedy)])
        }
    }
}

/// The files that change when `bugs` are planted; what does not fit is added to `findings`.
fn planted(tree: &Tree, bugs: &[&Bug], findings: &mut Vec<Finding>) -> BTreeMap<String, String> {
    let mut by_file: BTreeMap<&str, Vec<place::Numbered<'_>>> = BTreeMap::new();
    for (number, bug) in (1..).zip(bugs) {
        for change in &bug.changes {
            by_file.entry(&change.path).or_default().push((number, change));
        }
    }
    let mut texts = BTreeMap::new();
    let mut by_crate: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for (path, mut changes) in by_file {
        // One after the other, so that every bug that does not fit is named.
        changes.retain(|&(number, change)| {
            let bug = bugs[number as usize - 1];
            let placed = match tree.text(path) {
                Some(text) => place::place(text, &[(number, change)]).map(drop),
                None => Err((number, format!("there is no file {path} any more"))),
            };
            let Err((_, problem)) = placed else { return true };
            let problem = format!("{}, {path}: {problem}", bug.name);
            let remedy = "plant it again in the code as it is now, or drop it";
            findings.push(Finding::new(&bug.list, bug.line, problem, remedy));
            false
        });
        let Some(text) = tree.text(path) else { continue };
        match place::place(text, &changes) {
            Ok(text) => drop(texts.insert(path.to_owned(), text)),
            Err((number, problem)) => {
                let bug = bugs[number as usize - 1];
                findings.push(Finding::new(
                    &bug.list,
                    bug.line,
                    format!("{}: {problem}", bug.name),
                    "move it",
                ));
            }
        }
        if let Some((krate, _)) = path.split_once("/src/") {
            let numbers = changes.iter().map(|&(number, _)| number);
            by_crate.entry(krate.to_owned()).or_default().extend(numbers);
        }
    }
    for (krate, numbers) in by_crate {
        let names: Vec<(&str, u32)> = numbers
            .iter()
            .map(|&number| (bugs[number as usize - 1].name.as_str(), number))
            .collect();
        let root = ["lib", "main"].map(|name| format!("{krate}/src/{name}.rs"));
        let Some(root) = root.into_iter().find(|root| tree.exists(root)) else { continue };
        let text =
            texts.remove(&root).or_else(|| tree.text(&root).map(str::to_owned)).unwrap_or_default();
        texts.insert(root, text + &place::switch(&names));
    }
    texts
}
