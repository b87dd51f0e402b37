//! The files outside the code that each format needs: its rows in docs/traces.md, its fuzz target
//! and seeds.

use std::path::{Path, PathBuf};

use super::*;
use crate::trace::write::encoder;
use crate::trace::{self, WriteOptions};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The cells behind the names, for each name in the first cell of the table that begins with `head`.
fn table(head: &str) -> Vec<(String, Vec<String>)> {
    let page = std::fs::read_to_string(root().join("docs/traces.md")).unwrap();
    let behind = page.split_once(head).unwrap_or_else(|| panic!("no table {head}")).1;
    let rows = behind.lines().skip(2).take_while(|line| line.starts_with('|'));
    let mut found = Vec::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let rest: Vec<String> = cells[1..].iter().map(|&cell| cell.to_owned()).collect();
        let names = cells[0].split(", ").map(|name| name.trim_matches('`').to_owned());
        found.extend(names.map(|name| (name, rest.clone())));
    }
    found
}

#[test]
fn the_documentation_lists_every_format() {
    let rows = table("| name | read | written | content |");
    let names: Vec<&str> = rows.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, Format::ALL.map(Format::name));
    for (name, cells) in &rows {
        let format: Format = name.parse().unwrap();
        let written = if format.can_write() { "yes" } else { "" };
        assert_eq!([&cells[0], &cells[1]], ["yes", written], "{name}");
    }
}

#[test]
fn the_documentation_says_what_is_lost_on_writing() {
    let rows = table("| | flush | discard | write zeroes | hint | FUA | class | time |");
    let writable = Format::ALL.into_iter().filter(|format| format.can_write());
    let names: Vec<&str> = rows.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, writable.map(Format::name).collect::<Vec<_>>());
    for (name, cells) in &rows {
        let carries = encoder(&WriteOptions::new(name.parse().unwrap())).unwrap().carries();
        let or = |kept: bool, otherwise: &'static str| if kept { "kept" } else { otherwise };
        let expected = [
            or(carries.flushes, "left out"),
            or(carries.trims, "left out"),
            or(carries.write_zeroes, "left out"),
            or(carries.hints, "left out"),
            or(carries.fua, "lost"),
            or(carries.classes, "lost"),
            &leyden_sim::Span::from_ns(carries.resolution_ns).to_string(),
        ];
        assert_eq!(cells, &expected, "{name}");
    }
}

#[test]
fn every_format_is_fuzzed() {
    let manifest = std::fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
    for format in Format::ALL {
        let name = format.name().replace('-', "_");
        let target = format!("trace_{name}");
        assert!(manifest.contains(&format!("name = \"{target}\"")), "fuzz/Cargo.toml: {target}");
        let source = root().join(format!("fuzz/fuzz_targets/{target}.rs"));
        let source = std::fs::read_to_string(source).unwrap();
        assert!(source.contains(&format!("Format::{format:?}")), "{target}");
        let seeds = root().join("fuzz/corpus-seeds").join(&name);
        let mut seeds = seeds.read_dir().unwrap().map(|seed| seed.unwrap().path()).peekable();
        assert!(seeds.peek().is_some(), "no seeds of {format}");
        for seed in seeds {
            // A file in columns of its own has no look by which it could be told.
            let told = (format == Format::Columns).then_some(format);
            let found = trace::open(&seed, &trace::fuzz::options(told)).unwrap().format();
            assert_eq!(found, format, "{}", seed.display());
        }
    }
}
