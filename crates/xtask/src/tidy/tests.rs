//! Each rule fails on a bad example, names the line, and passes on a good one.

use super::tree::Tree;
use super::{Finding, code, layers, leftovers, links, modules, policies, safety};

/// `path:line` of each finding.
fn places(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(|finding| format!("{}:{}", finding.path, finding.line)).collect()
}

#[test]
fn a_dependency_upwards_is_found() {
    let tree = Tree::of(&[
        ("crates/nand/Cargo.toml", "[dependencies]\nleyden-sim.workspace = true\n"),
        ("crates/ftl/Cargo.toml", "[dependencies]\nleyden-device.workspace = true\n"),
        ("crates/sim/Cargo.toml", "[dev-dependencies]\nleyden-sim = { path = \".\" }\n"),
        ("crates/xtask/Cargo.toml", "[dependencies.leyden-sim]\nworkspace = true\n"),
    ]);
    let found = layers::check(&tree);
    let expected =
        ["crates/ftl/Cargo.toml:2", "crates/sim/Cargo.toml:2", "crates/xtask/Cargo.toml:1"];
    assert_eq!(places(&found), expected);
}

#[test]
fn a_crate_without_a_layer_is_found() {
    let tree = Tree::of(&[("crates/surprise/Cargo.toml", "[package]\n")]);
    assert_eq!(places(&layers::check(&tree)), ["crates/surprise/Cargo.toml:1"]);
}

#[test]
fn a_module_without_documentation_is_found() {
    let tree = Tree::of(&[
        ("crates/a/src/bare.rs", "\nuse std::fmt;\n"),
        ("crates/a/src/empty.rs", ""),
        ("crates/a/src/good.rs", "//! What it is.\n"),
        ("fuzz/fuzz_targets/any.rs", "#![no_main]\n"),
    ]);
    assert_eq!(
        places(&modules::check(&tree)),
        ["crates/a/src/bare.rs:2", "crates/a/src/empty.rs:1"]
    );
}

#[test]
fn a_long_file_is_found_and_its_tests_do_not_count() {
    let code = "//! Long.\n".to_owned() + &"fn a() {}\n".repeat(499);
    let tests = "#[cfg(test)]\nmod tests {\n".to_owned() + &"fn b() {}\n".repeat(300) + "}\n";
    let (good, bad) = (code.clone() + &tests, code + "fn c() {}\n");
    let tree = Tree::of(&[
        ("crates/a/src/bad.rs", &bad),
        ("crates/a/src/good.rs", &good),
        ("crates/a/tests/all.rs", &bad),
    ]);
    assert_eq!(places(&modules::check(&tree)), ["crates/a/src/bad.rs:501"]);
}

#[test]
fn unsafe_code_and_unreasoned_lints_are_found() {
    let tree = Tree::of(&[(
        "crates/a/src/lib.rs",
        "//! unsafe in a comment\nconst A: &str = \"unsafe\";\nunsafe fn b() {}\n\
         #[allow(dead_code)]\nfn c() {}\n#[allow(\n    dead_code,\n    reason = \"as shown\",\n)]\n\
         fn d() {}\n#![allow(clippy::all)]\n#![deny(unsafe_code)]\n",
    )]);
    let found = places(&safety::check(&tree));
    assert_eq!(found, ["crates/a/src/lib.rs:3", "crates/a/src/lib.rs:4", "crates/a/src/lib.rs:11"]);
}

#[test]
fn leftovers_are_found() {
    let note = concat!("// TO", "DO: later\n");
    let path = concat!("cd /wo", "rk/main\n");
    let debug = concat!("//! A.\nfn a() { dbg", "!(1); }\n");
    let tree = Tree::of(&[
        ("crates/a/src/lib.rs", debug),
        ("docs/a.md", path),
        ("docs/good.md", "see crates/workload and $PWD/work\n"),
        ("run.sh", note),
    ]);
    let found = places(&leftovers::check(&tree));
    assert_eq!(found.len(), 3, "{found:?}");
    for place in ["crates/a/src/lib.rs:2", "docs/a.md:1", "run.sh:1"] {
        assert!(found.iter().any(|found| found == place), "{place} in {found:?}");
    }
}

const REGISTRY: &str = "//! Policies.\npub mod fifo;\nmod index;\nleyden_sim::policies! {\n\
                        pub enum P {\n/// In order.\nFifo(fifo::Fifo) = \"fifo\",\n";

#[test]
fn a_folder_whose_policies_are_registered_is_tidy() {
    let good = REGISTRY.to_owned() + "}\n}\n";
    let tree = Tree::of(&[
        ("crates/a/src/gc/mod.rs", &good),
        ("crates/a/src/gc/fifo.rs", "//! F.\n"),
        ("crates/a/src/gc/index.rs", "//! I.\n"),
    ]);
    assert_eq!(policies::check(&tree), []);
}

#[test]
fn a_registry_may_declare_its_modules() {
    let good =
        REGISTRY.replace("pub mod fifo;\n", "").replace("enum P", "enum P: Trait") + "}\n}\n";
    let tree = Tree::of(&[
        ("crates/a/src/gc/mod.rs", &good),
        ("crates/a/src/gc/fifo.rs", "//! F.\n"),
        ("crates/a/src/gc/index.rs", "//! I.\n"),
    ]);
    assert_eq!(policies::check(&tree), []);
}

#[test]
fn policies_without_a_line_or_a_file_are_found() {
    let bad = REGISTRY.replace("mod index;", "pub mod index;")
        + "/// Not there.\nGone(gone::Gone) = \"gone\",\n}\n}\n";
    let tree = Tree::of(&[
        ("crates/a/src/gc/mod.rs", &bad),
        ("crates/a/src/gc/fifo.rs", "//! F.\n"),
        ("crates/a/src/gc/index.rs", "//! I.\n"),
        ("crates/a/src/gc/orphan.rs", "//! O.\n"),
        ("crates/a/src/elsewhere.rs", "//! E.\nleyden_sim::policies! {\n}\n"),
    ]);
    let found = places(&policies::check(&tree));
    let expected = [
        "crates/a/src/elsewhere.rs:2",
        "crates/a/src/gc/mod.rs:9",
        "crates/a/src/gc/mod.rs:3",
        "crates/a/src/gc/orphan.rs:1",
    ];
    assert_eq!(found, expected);
}

#[test]
fn dead_links_are_found() {
    let readme = "# A title, here\n[ok](docs/a.md) [ok](docs/) [ok](#a-title-here)\n\
                  [dead](docs/b.md)\n`[code](no.md)`\n[dead](docs/a.md#none)\n\
                  [ok](docs/a.md#part-two) [out](../x.md)\n```\n[code](no.md)\n```\n\
                  <img src=\"docs/no.png\">\n[web](https://example.org/x)\n";
    let tree = Tree::of(&[
        ("README.md", readme),
        ("docs/a.md", "# A\n## Part `two`\n[up](../README.md)\n"),
    ]);
    let found = places(&links::check(&tree));
    assert_eq!(found, ["README.md:3", "README.md:5", "README.md:6", "README.md:10"]);
}

#[test]
fn findings_name_file_line_problem_and_remedy() {
    let finding = Finding::new("a.rs", 7, "a problem", "the remedy");
    assert_eq!(finding.to_string(), "a.rs:7: a problem: the remedy");
    assert_eq!(code::line_of("x\ny", 2), 2);
}
