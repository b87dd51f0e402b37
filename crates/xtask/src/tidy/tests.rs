//! Each rule fails on a bad example, names the line, and passes on a good one.

use super::tree::Tree;
use super::{
    Finding, circles, code, evidence, figures, header, layers, leftovers, links, modules, policies,
    prose, safety, types,
};

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
fn a_dependency_sideways_is_found() {
    let tree = Tree::of(&[
        ("crates/buffer/Cargo.toml", "[dependencies]\nleyden-ftl.workspace = true\n"),
        ("crates/nand/Cargo.toml", "[dependencies]\nleyden-files.workspace = true\n"),
        ("crates/power/Cargo.toml", "[dependencies]\nleyden-buffer.workspace = true\n"),
        ("crates/device/Cargo.toml", "[dependencies]\nleyden-power.workspace = true\n"),
    ]);
    let expected =
        ["crates/buffer/Cargo.toml:2", "crates/nand/Cargo.toml:2", "crates/power/Cargo.toml:2"];
    assert_eq!(places(&layers::check(&tree)), expected);
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

/// `a` uses `b`, which uses `c` by a name that the root hands on, which uses `a` in its code.
const CIRCLE: [(&str, &str); 4] = [
    ("crates/x/src/lib.rs", "mod a;\nmod b;\nmod c;\npub use c::{C, Other};\n"),
    ("crates/x/src/a.rs", "use std::fmt;\nuse crate::b::{self, B as Beta};\n"),
    ("crates/x/src/b.rs", "use crate::C;\n"),
    ("crates/x/src/c.rs", "fn c() { super::a::go() }\n"),
];

#[test]
fn files_that_use_each_other_in_a_circle_are_found() {
    let found = circles::check_with(&Tree::of(&CIRCLE), &[]);
    assert_eq!(places(&found), ["crates/x/src/a.rs:1"]);
    assert!(found[0].problem.ends_with(": a.rs -> b.rs -> c.rs -> a.rs"), "{}", found[0].problem);
    // Without any one of the three uses there is no circle.
    for (index, without) in [(1, "use crate::d::D;\n"), (2, "use other::C;\n"), (3, "// a\n")] {
        let mut files = CIRCLE;
        files[index].1 = without;
        assert_eq!(circles::check_with(&Tree::of(&files), &[]), []);
    }
}

#[test]
fn a_folder_and_its_files_are_no_circle_and_tests_make_none() {
    let tree = Tree::of(&[
        ("crates/x/src/gc/mod.rs", "mod fifo;\nmod list;\npub use fifo::Fifo;\n"),
        ("crates/x/src/gc/fifo.rs", "use super::Policy;\nuse super::list::List;\n"),
        ("crates/x/src/gc/list.rs", "\n#[cfg(test)]\nmod tests {\nuse crate::gc::Fifo;\n}\n"),
        ("crates/x/src/gc/tests.rs", "use super::fifo::Fifo;\n"),
    ]);
    assert_eq!(circles::check_with(&tree, &[]), []);
}

#[test]
fn an_exception_for_a_circle_is_needed_or_found() {
    let known = [("crates/x/src/c.rs", "for now")];
    assert_eq!(circles::check_with(&Tree::of(&CIRCLE), &known), []);
    let gone = Tree::of(&CIRCLE[2..]);
    assert_eq!(places(&circles::check_with(&gone, &known)), ["crates/x/src/c.rs:1"]);
}

fn struct_of(attributes: &str, visibility: &str, fields: usize) -> String {
    let field = |index| format!("    #[doc(a, b)] {visibility}f{index}: Map<u8, (u8, u8)>,\n");
    let fields: String = (0..fields).map(field).collect();
    format!("//! S.\n{attributes}pub struct S<'a> {{\n{fields}}}\n")
}

#[test]
fn structs_with_many_fields_are_found() {
    let path = "crates/x/src/lib.rs";
    let found = |text: &str| places(&types::check_with(&Tree::of(&[(path, text)]), &[]));
    assert_eq!(found(&struct_of("", "", 17)), ["crates/x/src/lib.rs:2"]);
    assert_eq!(found(&struct_of("", "pub(crate) ", 17)), ["crates/x/src/lib.rs:2"]);
    assert_eq!(found(&struct_of("#[derive(Serialize)]\n", "", 17)), ["crates/x/src/lib.rs:3"]);
    let tidy = [
        struct_of("", "", 16),
        struct_of("", "pub ", 17),
        struct_of("#[derive(Serialize, JsonSchema)]\n", "", 17),
        "//! S.\nstruct Unit;\nstruct Pair(u8, u8);\n".to_owned(),
    ];
    for text in tidy {
        assert_eq!(found(&text), [""; 0], "{text}");
    }
    let known = [("x::S", "for now")];
    assert_eq!(types::check_with(&Tree::of(&[(path, &struct_of("", "", 17))]), &known), []);
}

#[test]
fn types_with_methods_in_many_files_are_found() {
    let whole = "struct S;\nimpl S {}\nfn f() -> impl Iterator<Item = S> { g() }\n";
    let (bounded, of_trait) = ("impl<T: Into<S>> S\nwhere\n    T: A {}\n", "impl Clone for S {}\n");
    let mut files = vec![
        ("crates/x/src/a.rs", whole),
        ("crates/x/src/b.rs", bounded),
        ("crates/x/src/c.rs", "impl S<u8, (u8,)> {}\nimpl S<u16> {}\n"),
        ("crates/x/src/d.rs", "impl S {}\n"),
        ("crates/x/src/e.rs", of_trait),
        ("crates/y/src/e.rs", "impl S {}\n"),
    ];
    assert_eq!(types::check_with(&Tree::of(&files), &[]), []);
    files.push(("crates/x/src/f.rs", "impl S {}\n"));
    assert_eq!(places(&types::check_with(&Tree::of(&files), &[])), ["crates/x/src/a.rs:1"]);
    // An exception that excepts nothing is one too many.
    let known = [("x::S", "for now"), ("x::Gone", "no longer")];
    files.push(("crates/xtask/src/tidy/types.rs", ""));
    let found = types::check_with(&Tree::of(&files), &known);
    assert_eq!(places(&found), ["crates/xtask/src/tidy/types.rs:1"]);
}

#[test]
fn numbers_of_the_documentation_that_the_code_does_not_have_are_found() {
    let code = ("crates/device/src/snapshot.rs", "//! S.\npub const VERSION: u32 = 1_200;\n");
    let found = |page: &str, code| {
        places(&figures::check(&Tree::of(&[("docs/architecture.md", page), code])))
    };
    assert_eq!(found("# A\n| 8..12 | format version, 1,200 |\n", code), [""; 0]);
    assert_eq!(found("# A\n| 8..12 | format version, 1,201 |\n", code), ["docs/architecture.md:2"]);
    assert_eq!(found("# A\n", code), ["docs/architecture.md:1"]);
    let without = (code.0, "//! S.\n");
    assert_eq!(found("format version, 1200", without), ["crates/device/src/snapshot.rs:1"]);
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
fn a_test_that_a_page_names_and_nobody_wrote_is_found() {
    let page = "| attack | test |\n|---|---|\n| a `b` | `is_there`, `a/t.sh`, `./test all` |\n| b | `is_gone` |\n\n\
                | what | who |\n|---|---|\n| a | `nobody` |\n";
    let tree = Tree::of(&[
        ("docs/a.md", page),
        ("a/b.rs", "#[test]\nfn is_there() {}\nfn is_gone_now() {}\n"),
        ("a/t.sh", ""),
    ]);
    assert_eq!(places(&evidence::check(&tree)), ["docs/a.md:4"]);
}

#[test]
fn findings_name_file_line_problem_and_remedy() {
    let finding = Finding::new("a.rs", 7, "a problem", "the remedy");
    assert_eq!(finding.to_string(), "a.rs:7: a problem: the remedy");
    assert_eq!(code::line_of("x\ny", 2), 2);
}

#[test]
fn a_c_header_that_is_not_current_is_found() {
    let source = "//! Top.\n\n/// A flag.\npub const LEYDEN_A: u32 = 1;\n";
    let path = crate::header::HEADER;
    let mut files: Vec<(&str, &str)> =
        crate::header::SOURCES.iter().map(|&path| (path, "//! Nothing.\n")).collect();
    files[0].1 = source;
    let texts: Vec<&str> = files.iter().map(|file| file.1).collect();
    let made = crate::header::header(&texts).unwrap();
    let with = |header: &str| {
        let mut files = files.clone();
        files.push((path, header));
        places(&header::check(&Tree::of(&files)))
    };
    assert_eq!(with(&made), [""; 0]);
    let changed = made.replace("UINT32_C(1)", "UINT32_C(2)");
    let line = made.lines().position(|line| line.contains("UINT32_C(1)")).unwrap() + 1;
    assert_eq!(with(&changed), [format!("{path}:{line}")]);
    files[1].1 = "//! Top.\nfn helper() {}\n";
    assert_eq!(places(&header::check(&Tree::of(&files))), [format!("{}:2", files[1].0)]);
}

#[test]
fn headless_clauses_are_found() {
    let found = |page: &str, text: &str| places(&prose::check(&Tree::of(&[(page, text)])));
    let page = "# What it costs\n\nWhat was promised is kept.\nIt says what it costs. What is\nlost?\n\n    what is code\n\nWhoever\nasks is told.\n";
    let lines =
        ["docs/tutorial.md:1", "docs/tutorial.md:3", "docs/tutorial.md:9", "docs/tutorial.md:10"];
    assert_eq!(found("docs/tutorial.md", page), lines);
    // Elsewhere they are counted.
    assert_eq!(found("docs/power.md", page), [""; 0]);
    assert_eq!(found("docs/power.md", &page.repeat(1 + prose::LIMIT / 4)), ["docs/power.md:1"]);
    assert_eq!(
        found("docs/notebooks/2026-11-power.md", &page.repeat(1 + prose::LIMIT / 4)),
        [""; 0]
    );
    assert_eq!(
        found("docs/power.md", &"word ".repeat(1 + prose::MOST_WORDS)),
        ["docs/SUMMARY.md:1"]
    );
    assert_eq!(found("docs/reference/record.md", &"word ".repeat(1 + prose::MOST_WORDS)), [""; 0]);
}

#[test]
fn a_page_on_a_paper_has_its_own_bound() {
    let found = |page: &str, text: &str| places(&prose::check(&Tree::of(&[(page, text)])));
    let paper = "word ".repeat(prose::MOST_WORDS_OF_A_PAPER);
    assert_eq!(found("docs/papers/hexa.md", &format!("<!-- a\nb -->\n{paper}\n")), [""; 0]);
    assert_eq!(
        found("docs/papers/hexa.md", &format!("<!-- a -->\nb\n{paper}\n")),
        ["docs/papers/hexa.md:1"]
    );
}

#[test]
fn pages_that_the_book_lacks_are_found() {
    let tree = Tree::of(&[
        ("docs/SUMMARY.md", "- [A](a.md)\n"),
        ("docs/a.md", "# A\n"),
        ("docs/how-to/a.md", "# Another\n"),
    ]);
    assert_eq!(places(&prose::check(&tree)), ["docs/how-to/a.md:1"]);
}
