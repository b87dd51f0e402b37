//! `cargo xtask`: checks of this repository that neither rustc nor clippy can make.
//!
//! **What lives here**: [`mod@tidy`], the C header's generator ([`mod@header`]), the papers' tables against their records
//! ([`mod@figures`]), planted bugs that torture must find ([`mod@planted`]), and the command around them. **What doesn't**: anything a user of
//! Leyden runs; anything that needs the other crates (their tests do that).
//!
//! **Invariants**: no dependency but `serde_json`, so that it builds in seconds; a finding names file, line and
//! remedy.

#[path = "../../../papers/tables/mod.rs"]
mod figures;
mod header;
mod planted;
mod tidy;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use tidy::tree::Tree;

const USAGE: &str = "\
Usage: cargo xtask tidy
       cargo xtask figures
       cargo xtask figures record NAME LEYDEN FOLDER
       cargo xtask header
       cargo xtask planted [--tests] [--list FILE] [--profile PROFILE] [--quiet] [NAME]...

  tidy    check which crates depend on which, circles between files, the size of files and types,
          module docs, comments and messages without a noun, unsafe code, left-overs, policy registries, paths
          of one machine, the documentation's links and figures, whether the C header is current, and
          whether every planted bug fits the sources
  figures check every number in the tables of docs/papers and docs/notebooks against the saved
          records of docs/papers/figures, at the printed rounding. `record` makes the record NAME again:
          it runs the record's commands with the program LEYDEN, keeps their output in FOLDER (and
          reuses output that is there), and takes the figures that tables use
  header  write the C header, crates/capi/include/leyden.h, from its Rust source
  planted plant each bug of crates/torture/planted in a copy of the sources (target/planted), and
          look for it: all, or those with NAME in their name. `--tests` includes bugs that tests
          must find; `--list FILE` plants others; `--profile` is that of tests
          otherwise; `--quiet` prints only what was not found

Exit codes: 0 nothing found, 1 findings, 2 bad usage, 3 the repository could not be read";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["help"] | [.., "-h" | "--help"] => writeln!(io::stdout(), "{USAGE}").map(|()| 0),
        ["tidy"] => tidy(),
        ["figures"] => figures(),
        ["figures", "record", name, leyden, folder] => record(name, leyden, folder),
        ["header"] => header(),
        ["planted", rest @ ..] => {
            planted::main(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), rest)
        }
        _ => writeln!(io::stderr(), "{USAGE}").map(|()| 2),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            // Nothing is left to be done if standard error is closed too.
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::from(3)
        }
    }
}

/// Writes the C header.
fn header() -> io::Result<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &&str| std::fs::read_to_string(root.join(path));
    let sources = header::SOURCES.iter().map(read).collect::<io::Result<Vec<_>>>()?;
    let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
    match header::header(&sources) {
        Ok(text) => std::fs::write(root.join(header::HEADER), text).map(|()| 0),
        Err(header::Unknown { source, line, problem }) => {
            let path = header::SOURCES[source];
            writeln!(io::stdout(), "{path}:{line}: {problem}").map(|()| 1)
        }
    }
}

/// Checks the tables of the papers' pages, and prints what it finds.
fn figures() -> io::Result<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let outcome = figures::check(&Tree::read(&root)?);
    let mut out = io::stdout().lock();
    for finding in &outcome.findings {
        writeln!(out, "{finding}")?;
    }
    for table in &outcome.unrecorded {
        writeln!(out, "no record: {table}")?;
    }
    let (tables, cells) = (outcome.tables, outcome.cells);
    write!(out, "figures: {tables} tables, {cells} cells, {} records", outcome.records)?;
    writeln!(
        out,
        ", {} tables without one, findings: {}",
        outcome.unrecorded.len(),
        outcome.findings.len()
    )?;
    Ok(u8::from(!outcome.findings.is_empty()))
}

/// Makes a record anew.
fn record(name: &str, leyden: &str, folder: &str) -> io::Result<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let made = figures::make::make(&root, name, Path::new(leyden), Path::new(folder))?;
    writeln!(io::stdout(), "{made}").map(|()| 0)
}

/// Checks the repository this was built in, and prints what it finds.
fn tidy() -> io::Result<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tree = Tree::read(&root)?;
    let mut findings = tidy::check(&tree);
    findings.extend(planted::check(&tree));
    let mut out = io::stdout().lock();
    for finding in &findings {
        writeln!(out, "{finding}")?;
    }
    if findings.is_empty() {
        writeln!(out, "tidy: {} files, nothing found", tree.len())?;
        return Ok(0);
    }
    writeln!(out, "tidy: {} files, findings: {}", tree.len(), findings.len())?;
    Ok(1)
}
