//! Which of our crates may depend on which.

use super::Finding;
use super::source::HOUSES;
use super::tree::Tree;

/// The dependencies that each crate may have, from the top down (docs/code.md, "Crates"). Crates
/// beside each other do not know each other: `power`, `buffer` and `ftl` are joined by `device`
/// only.
const EDGES: &[(&str, &[&str])] = &[
    (
        "cli",
        &[
            "crashtest",
            "serve",
            "image",
            "reproduce",
            "sweep",
            "plot",
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
    (
        "pyapi",
        &["crashtest", "sweep", "torture", "run", "config", "record", "workload", "device", "sim"],
    ),
    // The oracle in its tests only.
    ("wasm", &["oracle", "workload", "device", "power", "buffer", "ftl", "sim"]),
    ("capi", &["serve", "image", "config", "device", "sim"]),
    ("crashtest", &["serve", "image", "wire", "oracle", "device", "files", "sim"]),
    ("serve", &["nvme", "image", "wire", "device", "power", "buffer", "sim"]),
    ("nvme", &["device"]),
    // An image holds a whole stack: what stands on two drives loses its power with them.
    ("image", &["host", "device", "power", "buffer", "ftl", "nand", "sim"]),
    ("wire", &[]),
    // In `papers/`: uses the tool as any researcher could, and only the command knows it.
    ("reproduce", &["report", "run", "config", "record", "workload", "device", "files", "sim"]),
    ("sweep", &["report", "run", "config", "record", "files", "sim"]),
    ("plot", &["report"]),
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
        let inside = HOUSES.iter().find_map(|house| path.strip_prefix(house));
        let name = inside.and_then(|path| path.strip_suffix("/Cargo.toml"));
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
                      docs/code.md";
        findings.push(Finding::new(path, 1, problem, remedy));
        return;
    };
    for (line, dependency) in dependencies(manifest) {
        if !allowed.contains(&dependency) {
            let problem = format!("`{name}` depends on `{dependency}`, and may not");
            let remedy = format!(
                "it may depend on: {}; code that joins two crates belongs into one above both",
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
    use std::collections::BTreeSet;

    #[test]
    fn every_edge_leads_downwards_to_a_crate_of_the_table() {
        for (index, (name, allowed)) in EDGES.iter().enumerate() {
            for dependency in *allowed {
                let below = EDGES[index + 1..].iter().any(|(known, _)| known == dependency);
                assert!(below, "{name} -> {dependency}");
            }
        }
    }

    /// All that `name` depends on, through others too.
    fn reach(name: &str) -> BTreeSet<&'static str> {
        let (_, allowed) = EDGES.iter().find(|(known, _)| *known == name).unwrap();
        let below = allowed.iter().flat_map(|dependency| reach(dependency));
        allowed.iter().copied().chain(below).collect()
    }

    #[test]
    fn the_library_links_no_runner_and_no_report() {
        let linked = reach("capi");
        for apart in ["run", "reproduce", "report", "torture", "crashtest", "oracle", "cli"] {
            assert!(!linked.contains(apart), "libleyden links {apart}");
        }
    }

    #[test]
    fn nothing_but_the_command_knows_the_papers() {
        let knows = |(_, allowed): &&(&str, &[&str])| allowed.contains(&"reproduce");
        let users: Vec<&str> = EDGES.iter().filter(knows).map(|(name, _)| *name).collect();
        assert_eq!(users, ["cli"]);
    }

    #[test]
    fn configuration_and_records_lie_below_the_runner() {
        for below in ["config", "record"] {
            assert!(!reach(below).contains("run") && reach("run").contains(below), "{below}");
        }
    }
}
