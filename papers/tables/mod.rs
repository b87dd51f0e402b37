//! The tables of `docs/papers` and of the notebooks against saved records of measurements.
//!
//! **What lives here**: the records ([`record`]), the tables and what is said in front of them ([`page`]), how a cell is
//! computed ([`expression`], [`cell`]), and how a record is made ([`make`]). **What doesn't**: running anything to check a
//! page: that reads files only.
//!
//! **Invariants**: a number of a record comes from a file that the record's command wrote, never from a person; a
//! table says which record it is of, or why it has none; a record has what pages use, and nothing else.

mod cell;
mod expression;
pub(crate) mod make;
mod page;
mod record;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::Finding;
use crate::tidy::tree::Tree;
use cell::Shown;
use expression::{Key, Lookup, Values};
use page::{Marker, Row, Table};
use record::Record;

/// Pages whose tables must all say which record they are of.
const PAGES: &str = "docs/papers/";
/// The notebooks: a table that names a record is checked, and others need none.
const NOTEBOOKS: &str = "docs/notebooks/";
/// The records, each `NAME.json`.
const RECORDS: &str = "docs/papers/figures/";

const REMEDY: &str = "correct the cell, or make the record again: cargo xtask figures record";

/// The findings, and how much was looked at.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) findings: Vec<Finding>,
    /// Tables held against a record.
    pub(crate) tables: usize,
    /// Cells of them.
    pub(crate) cells: usize,
    pub(crate) records: usize,
    /// Tables with measured figures, but without a record: where, and why.
    pub(crate) unrecorded: Vec<String>,
}

/// Holds every table against its record.
pub(crate) fn check(tree: &Tree) -> Outcome {
    let mut outcome = Outcome::default();
    let mut records = BTreeMap::new();
    for (name, path, text) in record_files(tree) {
        match Record::parse(text) {
            Ok(record) => drop(records.insert(name.to_owned(), record)),
            Err(problem) => {
                let remedy = "make it again: cargo xtask figures record";
                outcome.findings.push(Finding::new(path, 1, problem, remedy));
            }
        }
    }
    outcome.records = records.len();
    for (path, text) in pages(tree) {
        for table in page::tables(text) {
            check_table(path, text, &table, &records, &mut outcome);
        }
    }
    for (name, path, text) in record_files(tree) {
        if let Some(record) = records.get(name) {
            let used = keys_used(tree, name);
            outcome.findings.extend(unused(path, text, record, used.as_ref()));
        }
    }
    outcome.findings.sort();
    outcome
}

fn pages(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    let is_checked = |path: &str| [PAGES, NOTEBOOKS].iter().any(|folder| path.starts_with(folder));
    tree.with_extension("md").filter(move |(path, _)| is_checked(path))
}

/// Name, path and text of every record.
fn record_files(tree: &Tree) -> impl Iterator<Item = (&str, &str, &str)> {
    tree.with_extension("json").filter_map(|(path, text)| {
        Some((path.strip_prefix(RECORDS)?.strip_suffix(".json")?, path, text))
    })
}

/// A table beside its records, on a page.
struct Check<'a> {
    path: &'a str,
    /// Those that the marker names, the first of which is that of keys without a record.
    names: &'a [String],
    records: &'a BTreeMap<String, Record>,
    outcome: &'a mut Outcome,
}

fn check_table(
    path: &str,
    text: &str,
    table: &Table<'_>,
    records: &BTreeMap<String, Record>,
    outcome: &mut Outcome,
) {
    let (names, rows) = match &table.marker {
        Err(_) if !table.is_marked && path.starts_with(NOTEBOOKS) => return,
        Err(problem) => {
            let finding = Finding::new(path, table.line, problem, page::HOW);
            return outcome.findings.push(finding);
        }
        Ok(Marker::Unmeasured) => return,
        Ok(Marker::Unrecorded(why)) => {
            return outcome.unrecorded.push(format!("{path}:{}: {why}", table.line));
        }
        Ok(Marker::Recorded { records, rows }) => (records, rows),
    };
    let mut check = Check { path, names, records, outcome };
    if !check.names(table.line, text) {
        return;
    }
    if rows.len() != table.rows.len() {
        let problem =
            format!("the table has {} rows, and its marker {}", table.rows.len(), rows.len());
        return check.find(table.line, problem, "give each row of the table a line of the marker");
    }
    check.outcome.tables += 1;
    for (row, templates) in table.rows.iter().zip(rows) {
        check.row(row, templates);
    }
}

impl Check<'_> {
    fn find(&mut self, line: usize, problem: String, remedy: &str) {
        self.outcome.findings.push(Finding::new(self.path, line, problem, remedy));
    }

    /// Whether all records are there; the page, which is `text`, must show a command of each.
    fn names(&mut self, line: usize, text: &str) -> bool {
        let mut are_there = true;
        for name in self.names {
            match self.records.get(name) {
                None => {
                    let problem = format!("there is no record `{name}`");
                    self.find(line, problem, "make it, or correct the name");
                    are_there = false;
                }
                Some(record) if !record.is_shown_in(text) => {
                    let problem = format!("the page shows no command of the record `{name}`");
                    self.find(line, problem, "say on the page which command prints the table");
                }
                Some(_) => {}
            }
        }
        are_there
    }

    fn row(&mut self, row: &Row<'_>, templates: &[String]) {
        let (cells, said) = (row.cells.len(), templates.len());
        if cells != said {
            let problem = format!("the row has {cells} cells, and its line of the marker {said}");
            let remedy = "give each cell a template, or `-` if it is only a name";
            return self.find(row.line, problem, remedy);
        }
        for (number, (cell, template)) in (1..).zip(row.cells.iter().zip(templates)) {
            let lookup: &mut Lookup<'_> = &mut |key| find_figure(self.records, self.names, key);
            match cell::shown(template, cell, lookup) {
                Ok(Shown::Name) => {}
                Ok(Shown::Text(expected)) => {
                    self.outcome.cells += 1;
                    if !cell::is_same(cell, &expected) {
                        let problem =
                            format!("cell {number}: found `{cell}`, expected `{expected}`");
                        self.find(row.line, problem, REMEDY);
                    }
                }
                Err(problem) => {
                    let problem = format!("cell {number}, `{cell}`: {problem}");
                    let remedy = "correct the table's marker, or make the record again";
                    self.find(row.line, problem, remedy);
                }
            }
        }
    }
}

/// The figure called `key`, of the record that it names or else of the first.
fn find_figure(
    records: &BTreeMap<String, Record>,
    names: &[String],
    key: &Key,
) -> Result<Values, String> {
    let name = key.record.as_ref().unwrap_or(&names[0]);
    if !names.contains(name) {
        return Err(format!("the marker does not name the record `{name}`"));
    }
    let figure = records[name].figures.get(&key.name);
    figure.cloned().ok_or_else(|| format!("the record `{name}` has no `{}`", key.name))
}

/// The parts of a record that no table uses.
fn unused(
    path: &str,
    text: &str,
    record: &Record,
    used: Option<&BTreeSet<String>>,
) -> Vec<Finding> {
    let Some(used) = used else {
        let remedy = "take it out, or name it in front of its table";
        return vec![Finding::new(path, 1, "no table is of this record", remedy)];
    };
    let line_of = |key: &str| {
        let quoted = format!("    \"{key}\":");
        text.lines().position(|line| line.starts_with(&quoted)).map_or(1, |index| index + 1)
    };
    let unused = record.figures.keys().filter(|key| !used.contains(*key));
    unused
        .map(|key| {
            let remedy = "take it out, or make the record again";
            Finding::new(path, line_of(key), format!("no table uses `{key}`"), remedy)
        })
        .collect()
}

/// Every key of the record `name` that tables use; `None` if no table is of it.
fn keys_used(tree: &Tree, name: &str) -> Option<BTreeSet<String>> {
    let mut keys = BTreeSet::new();
    let mut is_named = false;
    for (_, text) in pages(tree) {
        for table in page::tables(text) {
            let Ok(Marker::Recorded { records, rows }) = &table.marker else { continue };
            is_named |= records.iter().any(|record| record == name);
            for template in rows.iter().flatten() {
                let lookup: &mut Lookup<'_> = &mut |key: &Key| {
                    if key.record.as_ref().unwrap_or(&records[0]) == name {
                        keys.insert(key.name.clone());
                    }
                    Ok(Values::Numbers(vec![1.0]))
                };
                // Errors of a template are found when the page is checked.
                let _ = cell::shown(template, "", lookup);
            }
        }
    }
    is_named.then_some(keys)
}
