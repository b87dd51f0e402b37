//! Which of our crates may depend on which.

use super::Finding;
use super::tree::Tree;

/// What each crate may depend on, from the top down (docs/architecture.md, "The rooms"). Crates beside
/// each other do not know each other: `power`, `buffer` and `ftl` are joined by `device` only.
const EDGES: &[(&str, &[&str])] = &[
    (
        "cli",
        &[
            "crashtest",
            "serve",
            "image",
            "reproduce",
            "report",
            "run",
            "config",
            "record",
            "torture",
            "workload",
            "device",
            "buffer",
            "ftl",
            "nand",
            "files",
            "sim",
        ],
    ),
    ("capi", &["serve", "image", "config", "device", "sim"]),
    ("crashtest", &["serve", "image", "wire", "oracle", "device", "files", "sim"]),
    ("serve", &["nvme", "image", "wire", "device", "power", "buffer", "sim"]),
    ("nvme", &["device"]),
    // An image holds a whole stack: what stands on two drives loses its power with them.
    ("image", &["host", "device", "power", "buffer", "ftl", "nand", "sim"]),
    ("wire", &[]),
    // The papers use the tool as any researcher could.
    ("reproduce", &["report", "run", "config", "record", "workload", "device", "files", "sim"]),
    ("report", &["record", "device", "sim"]),
    (
        "run",
        &[
            "config", "record", "oracle", "workload", "host", "device", "power", "buffer", "ftl",
            "files", "sim",
        ],
    ),
    ("config", &["record", "workload", "host", "device", "power", "buffer", "ftl", "sim"]),
    ("torture", &["oracle", "host", "device", "power", "buffer", "ftl", "nand", "files", "sim"]),
    ("oracle", &["sim"]),
    ("workload", &["device", "files", "sim"]),
    ("record", &["host", "device", "sim"]),
    ("host", &["device", "sim"]),
    ("device", &["power", "buffer", "ftl", "nand", "sim"]),
    ("power", &["nand", "sim"]),
    ("buffer", &["nand", "sim"]),
    ("ftl", &["nand", "sim"]),
    ("nand", &["sim"]),
    ("files", &[]),
    ("sim", &[]),
    // Beside the house: nobody depends on it.
    ("xtask", &[]),
];

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
    let Some((_, allowed)) = EDGES.iter().find(|(known, _)| *known == name) else {
        let problem = format!("crate `{name}` has no place among the layers");
        let remedy = "give it one in EDGES, crates/xtask/src/tidy/layers.rs, and in \
                      docs/architecture.md";
        findings.push(Finding::new(path, 1, problem, remedy));
        return;
    };
    for (line, dependency) in dependencies(manifest) {
        if !allowed.contains(&dependency) {
            let problem = format!("`{name}` depends on `{dependency}`, and may not");
            let remedy = format!(
                "it may depend on: {}; what joins two crates belongs into one above both",
                if allowed.is_empty() { "nothing".to_owned() } else { allowed.join(", ") }
            );
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_edge_leads_downwards_to_a_crate_of_the_table() {
        for (index, (name, allowed)) in EDGES.iter().enumerate() {
            for dependency in *allowed {
                let below = EDGES[index + 1..].iter().any(|(known, _)| known == dependency);
                assert!(below, "{name} -> {dependency}");
            }
        }
    }
}
