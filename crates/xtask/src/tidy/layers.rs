//! Dependencies between our crates run downwards only.

use super::Finding;
use super::tree::Tree;

/// From the top down (docs/architecture.md, "The rooms"). A crate may depend on those after it.
/// `report` stands above `experiment` because it draws run records, which live there.
const ORDER: &[&str] = &[
    "cli",
    "report",
    "experiment",
    "torture",
    "oracle",
    "workload",
    "host",
    "device",
    "power",
    "buffer",
    "ftl",
    "nand",
    "sim",
    "files",
];

/// Crates that stand beside the house: nobody depends on them, and they on nobody.
const OUTSIDE: &[&str] = &["xtask"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.with_extension("toml") {
        let name = path.strip_prefix("crates/").and_then(|path| path.strip_suffix("/Cargo.toml"));
        if let Some(name) = name.filter(|name| !name.contains('/')) {
            check_crate(path, name, text, &mut findings);
        }
    }
    findings
}

fn check_crate(path: &str, name: &str, manifest: &str, findings: &mut Vec<Finding>) {
    let layer = ORDER.iter().position(|&known| known == name);
    if layer.is_none() && !OUTSIDE.contains(&name) {
        let problem = format!("crate `{name}` has no place among the layers");
        let remedy = "give it one in ORDER, crates/xtask/src/tidy/layers.rs, and in \
                      docs/architecture.md";
        findings.push(Finding::new(path, 1, problem, remedy));
    }
    for (line, dependency) in dependencies(manifest) {
        let below = ORDER.iter().position(|&known| known == dependency);
        let downwards = match (layer, below) {
            (Some(layer), Some(below)) => below > layer,
            _ => false,
        };
        if !downwards {
            let problem = format!("`{name}` depends on `{dependency}`, which is not below it");
            let remedy = format!("dependencies run downwards: {}", ORDER.join(" > "));
            findings.push(Finding::new(path, line, problem, remedy));
        }
    }
}

/// Our crates that `manifest` depends on, for whatever purpose, with the lines that say so.
fn dependencies(manifest: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut inside = false;
    for (index, line) in manifest.lines().enumerate() {
        let line = line.trim();
        if let Some(table) = line.strip_prefix('[') {
            let table = table.trim_end_matches(']');
            inside = table.ends_with("dependencies");
            // `[dependencies.leyden-sim]`
            let of_its_own = table.split_once("dependencies.leyden-").map(|(_, name)| name);
            found.extend(of_its_own.map(|name| (index + 1, name)));
        } else if let Some(name) = line.strip_prefix("leyden-").filter(|_| inside) {
            let end = name.find(|c: char| !c.is_alphanumeric() && c != '-' && c != '_');
            found.push((index + 1, &name[..end.unwrap_or(name.len())]));
        }
    }
    found
}
