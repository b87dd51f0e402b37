//! The files of a crate use each other in one direction: no file uses, by way of others, itself.
//!
//! **What lives here**: what a lexer can see of it: `use` declarations, and paths that begin with
//! `crate::`, `super::` or `self::`. **What doesn't**: methods, and names that macros make.
//!
//! A folder's `mod.rs` and the files in it are one thing in this: a policy uses its folder's trait, and the
//! folder its policies.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Finding;
use super::code::words;
use super::source::{Source, sources};
use super::tree::Tree;

/// Circles that are known, by a file in each, and why they are there: none.
const EXCEPTIONS: &[(&str, &str)] = &[];

/// A module's path in its crate.
type Module = Vec<String>;

/// How often a name is followed from one re-export to the next.
const MOST_REEXPORTS: usize = 8;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    check_with(tree, EXCEPTIONS)
}

/// With these exceptions, for tests.
pub(super) fn check_with(tree: &Tree, exceptions: &[(&str, &str)]) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Vec<Source<'_>>> = BTreeMap::new();
    for source in sources(tree) {
        crates.entry(source.krate).or_default().push(source);
    }
    let mut findings = Vec::new();
    let mut needed = BTreeSet::new();
    for sources in crates.values() {
        for (circle, group) in circles(sources) {
            let is_in = |path: &str| group.iter().any(|&index| sources[index].path == path);
            match exceptions.iter().find(|(path, _)| is_in(path)) {
                Some((path, _)) => drop(needed.insert(*path)),
                None => findings.push(finding(circle.iter().map(|&index| sources[index].path))),
            }
        }
    }
    let there = exceptions.iter().filter(|(path, _)| tree.exists(path));
    for (path, reason) in there.filter(|(path, _)| !needed.contains(path)) {
        let problem = format!("this file is in no circle any more (\"{reason}\")");
        let remedy = "take it out of EXCEPTIONS, crates/xtask/src/tidy/circles.rs";
        findings.push(Finding::new(path, 1, problem, remedy));
    }
    findings
}

fn finding<'a>(circle: impl Iterator<Item = &'a str>) -> Finding {
    let paths: Vec<&str> = circle.collect();
    let name = |path: &'a str| path.split_once("/src/").map_or(path, |(_, name)| name);
    let names: Vec<&str> = paths.iter().chain(&paths[..1]).map(|&path| name(path)).collect();
    let problem = format!("files use each other in a circle: {}", names.join(" -> "));
    let remedy = "move their common items to a file of its own, below them";
    Finding::new(paths[0], 1, problem, remedy)
}

/// Each group of files that all use each other, by way of others, after a shortest circle in it.
fn circles(sources: &[Source<'_>]) -> Vec<(Vec<usize>, Vec<usize>)> {
    let uses = uses(sources);
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for start in 0..sources.len() {
        if seen.contains(&start) {
            continue;
        }
        let Some(circle) = shortest_circle(start, &uses) else { continue };
        let is_in_group = |&other: &usize| {
            path(start, other, &uses).is_some() && path(other, start, &uses).is_some()
        };
        let group: Vec<usize> = (0..sources.len()).filter(is_in_group).collect();
        seen.extend(group.iter().copied());
        found.push((circle, group));
    }
    found
}

fn shortest_circle(start: usize, uses: &[BTreeSet<usize>]) -> Option<Vec<usize>> {
    let back = |&next: &usize| path(next, start, uses);
    let mut way = uses[start].iter().filter_map(back).min_by_key(Vec::len)?;
    way.pop();
    way.insert(0, start);
    Some(way)
}

/// The shortest way along `uses`, both ends included.
fn path(from: usize, to: usize, uses: &[BTreeSet<usize>]) -> Option<Vec<usize>> {
    let mut before = BTreeMap::from([(from, from)]);
    let mut queue = VecDeque::from([from]);
    while let Some(at) = queue.pop_front() {
        if at == to {
            let mut way = vec![to];
            while way[way.len() - 1] != from {
                way.push(before[&way[way.len() - 1]]);
            }
            way.reverse();
            return Some(way);
        }
        for &next in &uses[at] {
            before.entry(next).or_insert_with(|| {
                queue.push_back(next);
                at
            });
        }
    }
    None
}

/// Which files each file uses, folders and what is in them left out.
fn uses(sources: &[Source<'_>]) -> Vec<BTreeSet<usize>> {
    let paths: Vec<Vec<Vec<String>>> = sources.iter().map(|source| used_paths(source)).collect();
    let index = sources.iter().enumerate();
    let files: BTreeMap<&Module, usize> = index.map(|(at, source)| (&source.module, at)).collect();
    // The path that a module's own `use` declarations give a name in it.
    let names = |at: usize, name: &str| {
        let mut named =
            paths[at].iter().filter(|path| path.last().is_some_and(|last| last == name));
        named.next().cloned()
    };
    let find = |from: usize, path: &[String]| {
        let (mut at, mut path) = (from, path.to_vec());
        for _ in 0..MOST_REEXPORTS {
            let (file, rest) = resolve(&sources[at].module, &path, &files)?;
            let again = rest.first().and_then(|name| names(file, name));
            match again.filter(|again| *again != path || file != at) {
                Some(again) => (at, path) = (file, again),
                None => return Some(file),
            }
        }
        None
    };
    let related = |a: &Module, b: &Module| a.starts_with(b) || b.starts_with(a);
    let uses_of = |from: usize| {
        let found = paths[from].iter().filter_map(|path| find(from, path));
        found.filter(|&to| !related(&sources[from].module, &sources[to].module)).collect()
    };
    (0..sources.len()).map(uses_of).collect()
}

/// The file that `path`, seen from module `from`, leads into, and what is left of it there.
fn resolve(
    from: &Module,
    path: &[String],
    files: &BTreeMap<&Module, usize>,
) -> Option<(usize, Vec<String>)> {
    let mut module = from.clone();
    let mut rest = path;
    let first = rest.first()?.as_str();
    if matches!(first, "crate" | "self" | "super") {
        while let Some((first, behind)) = rest.split_first() {
            match first.as_str() {
                "crate" => module.clear(),
                "self" => {}
                "super" => drop(module.pop()),
                _ => break,
            }
            rest = behind;
        }
    } else {
        // A child of this module; anything else is another crate.
        module.push(first.to_owned());
        files.get(&module)?;
        rest = &rest[1..];
    }
    while let Some((first, behind)) = rest.split_first() {
        module.push(first.clone());
        if !files.contains_key(&module) {
            module.pop();
            break;
        }
        rest = behind;
    }
    Some((*files.get(&module)?, rest.to_vec()))
}

/// Every path that `source` uses: of its `use` declarations, and of its code.
fn used_paths(source: &Source<'_>) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    let mut rest = source.code.clone();
    let starts: Vec<usize> = words(&source.code, "use").collect();
    for at in starts {
        let Some(length) = source.code[at..].find(';') else { continue };
        expand(&source.code[at + 3..at + length], &mut Vec::new(), &mut paths);
        rest.replace_range(at..at + length, &" ".repeat(length));
    }
    for word in ["crate", "super", "self"] {
        for at in words(&rest, word) {
            let continues = rest[..at].ends_with("::");
            let path = path_at(&rest[at..]);
            if !continues && path.len() > 1 {
                paths.push(path);
            }
        }
    }
    paths
}

/// The path that `code` begins with.
fn path_at(code: &str) -> Vec<String> {
    let end = code.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
    let path = code[..end.unwrap_or(code.len())].trim_end_matches(':');
    path.split("::").map(str::to_owned).collect()
}

/// The paths of a `use` declaration's tree: `a::{b, c::d as e}` is `a::b` and `a::c::d`.
fn expand(tree: &str, prefix: &mut Vec<String>, paths: &mut Vec<Vec<String>>) {
    let (head, inside) = match tree.split_once('{') {
        Some((head, inside)) => (head, inside.trim_end().strip_suffix('}')),
        None => (tree, None),
    };
    let head = head.split(" as ").next().unwrap_or_default();
    let length = prefix.len();
    let parts = head.split("::").map(str::trim);
    prefix.extend(parts.filter(|part| !part.is_empty() && *part != "*").map(str::to_owned));
    match inside {
        None => paths.push(prefix.clone()),
        Some(inside) => {
            let mut depth = 0_usize;
            let parts = inside.split(|c: char| {
                match c {
                    '{' => depth += 1,
                    '}' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                c == ',' && depth == 0
            });
            for part in parts.filter(|part| !part.trim().is_empty()) {
                expand(part, prefix, paths);
            }
        }
    }
    prefix.truncate(length);
}
