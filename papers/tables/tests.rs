//! Drift that is planted on a page or in a record is found, with its place; what agrees is not.

use super::expression::{Key, Values, evaluate};
use super::{check, make};
use crate::tidy::tree::Tree;

const PAGE: &str = "# A paper

    leyden compare hot-cold --vary device.ftl.gc.victim=greedy,cost_benefit --seeds 3

<!-- figures: small
each | - | {range @/flash/waf} | {100 * @/host/share} % | {@/verdict}
greedy
cost_benefit | - | {@/flash/waf} ±{100 * half @/flash/waf / mean @/flash/waf} %
| {100 * ( first @/flash/waf / first greedy/flash/waf - 1 )} % | {@/verdict}
-->
| victim | write amplification | share | |
|---|---|---|---|
| greedy | 2.50 (2.00 to 3.00) | 1,250.5 % | holds |
| cost-benefit | **1.20** ±20.7 % | -45 % | differs |
";

const RECORD: &str = r#"{
  "commands": {
    "": "leyden compare hot-cold --vary device.ftl.gc.victim=greedy,cost_benefit --seeds 3"
  },
  "version": "leyden 0.1.0",
  "seeds": [1, 2, 3],
  "figures": {
    "cost_benefit/flash/waf": [1.1, 1.3, 1.2],
    "cost_benefit/verdict": "differs",
    "greedy/flash/waf": [2.0, 2.5, 3.0],
    "greedy/host/share": 12.505,
    "greedy/verdict": "holds"
  }
}
"#;

fn findings(page: &str, records: &[(&str, &str)]) -> Vec<String> {
    let mut files = vec![("docs/papers/paper.md", page)];
    files.extend(records);
    check(&Tree::of(&files)).findings.iter().map(ToString::to_string).collect()
}

fn of_small(page: &str, record: &str) -> Vec<String> {
    findings(page, &[("docs/papers/figures/small.json", record)])
}

/// The only finding with `from` on the page put in place of `to`.
fn only(page: &str, record: &str) -> String {
    let found = of_small(page, record);
    assert_eq!(found.len(), 1, "{found:#?}");
    found[0].clone()
}

#[test]
fn a_notebook_is_checked_where_it_names_a_record() {
    let found = |page: &str| {
        let files = [("docs/notebooks/a.md", page), ("docs/papers/figures/small.json", RECORD)];
        check(&Tree::of(&files)).findings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let unmarked = "| a |\n|---|\n| 1 |\n";
    assert_eq!(found(&format!("{PAGE}\n{unmarked}")), [""; 0]);
    let drifted = found(&PAGE.replace("2.50 (", "2.51 ("));
    assert!(drifted[0].starts_with("docs/notebooks/a.md:13: cell 2"), "{drifted:?}");
    let broken = found(&format!("{PAGE}\n<!-- figures: none (guessed) -->\n{unmarked}"));
    assert!(broken[0].contains("`guessed` is no reason"), "{broken:?}");
}

#[test]
fn a_page_that_agrees_with_its_record_is_passed() {
    assert_eq!(of_small(PAGE, RECORD), [""; 0]);
    let outcome = check(&Tree::of(&[
        ("docs/papers/paper.md", PAGE),
        ("docs/papers/figures/small.json", RECORD),
    ]));
    assert_eq!((outcome.tables, outcome.cells, outcome.records), (1, 6, 1));
}

#[test]
fn a_changed_digit_on_the_page_is_found() {
    let found = only(&PAGE.replace("2.50 (2.00", "2.51 (2.00"), RECORD);
    let expected = "docs/papers/paper.md:13: cell 2: found `2.51 (2.00 to 3.00)`, expected `2.50 (2.00 to 3.00)`";
    assert!(found.starts_with(expected), "{found}");
    let found = only(&PAGE.replace("1,250.5", "1,250.6"), RECORD);
    assert!(found.contains("cell 3: found `1,250.6 %`, expected `1,250.5 %`"), "{found}");
    let found = only(&PAGE.replace("±20.7", "±20.8"), RECORD);
    assert!(found.contains(":14: cell 2:"), "{found}");
    let found = only(&PAGE.replace("-45 %", "45 %"), RECORD);
    assert!(found.contains("expected `-45 %`"), "{found}");
    let found = only(&PAGE.replace("| holds", "| differs"), RECORD);
    assert!(found.contains("found `differs`, expected `holds`"), "{found}");
    let found = only(&PAGE.replace(" (2.00 to 3.00)", ""), RECORD);
    assert!(found.contains("found `2.50`, expected `2.50 (2.00 to 3.00)`"), "{found}");
}

#[test]
fn a_changed_value_in_the_record_is_found() {
    let found = only(PAGE, &RECORD.replace("12.505", "12.515"));
    assert!(found.contains(":13: cell 3: found `1,250.5 %`, expected `1,251.5 %`"), "{found}");
    let found = of_small(PAGE, &RECORD.replace("3.0]", "3.1]"));
    assert!(found[0].contains("expected `2.53 (2.00 to 3.10)`"), "{found:?}");
}

#[test]
fn a_table_says_where_it_is_from() {
    let plain = "| a | b |\n|---|---|\n| 1 | 2 |\n";
    let found = findings(plain, &[]);
    assert!(found[0].starts_with("docs/papers/paper.md:1: the table does not say"), "{found:?}");
    let found = findings(&format!("<!-- something else -->\n{plain}"), &[]);
    assert_eq!(found.len(), 1, "{found:?}");
    // A marker in front of other text is not the table's.
    let found = findings(&format!("<!-- figures: none (definitions) -->\ntext\n\n{plain}"), &[]);
    assert_eq!(found.len(), 1, "{found:?}");
    for good in ["none (definitions)", "none (configuration)", "none (unrecorded) a live run"] {
        assert_eq!(findings(&format!("<!-- figures: {good} -->\n{plain}"), &[]), [""; 0], "{good}");
    }
    for bad in ["none (hurry)", "none", "none (unrecorded)", "missing", ""] {
        let found = findings(&format!("<!-- figures: {bad} -->\n{plain}"), &[]);
        assert_eq!(found.len(), 1, "{bad}: {found:?}");
    }
    assert_eq!(findings(&format!("```\n{plain}```\n"), &[]), [""; 0], "code is no table");
}

#[test]
fn a_table_without_a_record_is_told_of() {
    let page = "<!-- figures: none (unrecorded) a live run -->\n| a |\n|---|\n| 1 |\n";
    let outcome = check(&Tree::of(&[("docs/papers/paper.md", page)]));
    assert_eq!(outcome.unrecorded, ["docs/papers/paper.md:2: a live run"]);
}

#[test]
fn unused_records_are_found() {
    let more = RECORD.replace("\"greedy/verdict\"", "\"greedy/iops\": 1,\n    \"greedy/verdict\"");
    let found = only(PAGE, &more);
    assert!(
        found.starts_with("docs/papers/figures/small.json:12: no table uses `greedy/iops`"),
        "{found}"
    );
    let records =
        [("docs/papers/figures/small.json", RECORD), ("docs/papers/figures/other.json", RECORD)];
    let found = findings(PAGE, &records);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("docs/papers/figures/other.json:1: no table is of"), "{found:?}");
}

#[test]
fn a_page_shows_the_command() {
    let found = only(&PAGE.replace("--seeds 3", "--seeds 4"), RECORD);
    assert!(found.contains(":11: the page shows no command of the record `small`"), "{found}");
    let continued = PAGE.replace(" --seeds 3", " \\\n        --seeds 3");
    assert_eq!(of_small(&continued, RECORD), [""; 0]);
}

#[test]
fn a_marker_that_does_not_fit_its_table_is_found() {
    let found = of_small(&PAGE.replace("\ngreedy\n", "\n"), RECORD);
    assert!(found[2].contains("the table has 2 rows, and its marker 1"), "{found:?}");
    let found = only(&PAGE.replace("| holds |", "| holds | 1 |"), RECORD);
    assert!(found.contains(":13: the row has 5 cells, and its line of the marker 4"), "{found}");
    let found = of_small(&PAGE.replace("{range @/flash/waf}", "{range @/flash/wav}"), RECORD);
    assert!(found[0].contains("the record `small` has no `greedy/flash/wav`"), "{found:?}");
    let found = of_small(&PAGE.replace("{range @/flash/waf}", "{range @/flash/waf"), RECORD);
    assert!(found.iter().any(|found| found.contains("a `}` is missing")), "{found:?}");
    let found = of_small(PAGE, "{}");
    assert!(found[0].contains("does not say which command"), "{found:?}");
    let found = of_small(PAGE, &RECORD.replace("\"seeds\"", "\"sees\""));
    assert!(found.iter().any(|found| found.contains("`sees` is not as it must be")), "{found:?}");
}

#[test]
fn expressions_are_computed() {
    let value = |text: &str| {
        let lookup = &mut |key: &Key| match (key.record.as_deref(), key.name.as_str()) {
            (None, "a") => Ok(Values::Numbers(vec![1.0, 2.0, 3.0])),
            (None, "b/x" | "b/y") => Ok(Values::Numbers(vec![4.0, 8.0, 12.0])),
            (Some("r"), "c") => Ok(Values::Numbers(vec![10.0])),
            (None, "none") => Ok(Values::Numbers(Vec::new())),
            _ => Err(format!("no {}", key.name)),
        };
        evaluate(text, lookup)
    };
    let numbers = |text: &str| match value(text) {
        Ok(Values::Numbers(numbers)) => numbers,
        other => panic!("{text}: {other:?}"),
    };
    assert_eq!(numbers("a"), [1.0, 2.0, 3.0]);
    assert_eq!(numbers("b/x / a"), [4.0, 4.0, 4.0]);
    assert_eq!(numbers("mean b/x / mean a - 1"), [3.0]);
    assert_eq!(numbers("10 - 2 * 3 - 1"), [3.0]);
    assert_eq!(numbers("( 10 - 2 ) * r:c"), [80.0]);
    assert_eq!(numbers("b/[x,y]"), [4.0, 8.0, 12.0, 4.0, 8.0, 12.0]);
    assert_eq!(numbers("first b/[x,y]"), [4.0, 4.0]);
    assert_eq!(numbers("most a + least a"), [4.0]);
    let half = numbers("half a")[0];
    assert!((half - 4.303 / 3.0_f64.sqrt()).abs() < 1e-9, "{half}");
    for wrong in ["a +", "( a", "a a", "d", "a + b/[x,y]", "", "first", "none + 1"] {
        assert!(value(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_record_takes_what_tables_use_of_what_was_written() {
    let folder = std::env::temp_dir().join(format!("leyden-figures-{}", std::process::id()));
    let at = |path: &str| folder.join(path);
    let write = |path: &str, text: &str| {
        std::fs::create_dir_all(at(path).parent().unwrap()).unwrap();
        std::fs::write(at(path), text).unwrap();
    };
    write("docs/papers/paper.md", PAGE);
    let empty = r#"{"commands": {"": "leyden compare hot-cold --vary device.ftl.gc.victim=greedy,cost_benefit --seeds 3"},
        "name": ["/config/victim"]}"#;
    write("docs/papers/figures/small.json", empty);
    write("out/small/only/version.txt", "leyden 0.1.0\n");
    let run = |victim: &str, seed: u32, waf: f64, verdict: &str| {
        let text = format!(
            r#"{{"leyden_version": "0.1.0", "seed": {seed}, "config": {{"victim": "{victim}"}}, "verdict": "{verdict}",
                "flash": {{"waf": {waf}}}, "host": {{"share": 12.505}}, "sim": {{"wall_s": 3, "digest": "{seed}{victim}"}}}}"#
        );
        write(&format!("out/small/only/{victim}-{seed}.json"), &text);
    };
    // In another order than that of the seeds.
    run("greedy", 3, 3.0, "holds");
    run("greedy", 1, 2.0, "holds");
    run("greedy", 2, 2.5, "holds");
    run("cost_benefit", 1, 1.1, "differs");
    let make = || make::make(&folder, "small", "leyden".as_ref(), &at("out"));
    let made = make().unwrap();
    assert!(made.ends_with("5 figures"), "{made}");
    let text = std::fs::read_to_string(at("docs/papers/figures/small.json")).unwrap();
    assert!(text.contains("    \"greedy/flash/waf\": [2,2.5,3],\n"), "{text}");
    assert!(
        text.contains("  \"seeds\": [1,2,3],\n") && text.contains("\"version\": \"leyden 0.1.0\""),
        "{text}"
    );
    assert!(!text.contains("wall_s"), "{text}");
    // Two runs of one name and seed.
    run("greedy", 4, 2.0, "holds");
    let twin = std::fs::read_to_string(at("out/small/only/greedy-4.json")).unwrap();
    write("out/small/only/greedy-4.json", &twin.replace("\"seed\": 4", "\"seed\": 3"));
    let error = make().unwrap_err().to_string();
    assert!(error.contains("belongs to several runs"), "{error}");
    std::fs::remove_file(at("out/small/only/greedy-4.json")).unwrap();
    std::fs::remove_file(at("out/small/only/cost_benefit-1.json")).unwrap();
    let error = make().unwrap_err().to_string();
    assert!(error.contains("no command wrote `cost_benefit/flash/waf`"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}
