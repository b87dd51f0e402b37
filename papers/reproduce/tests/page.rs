//! The page of `leyden reproduce` as a whole.

#[path = "../../../crates/report/tests/samples/mod.rs"]
mod samples;

use leyden_record::RunRecord;
use leyden_reproduce::{
    Cell, Claim, ClaimResult, Reproduction, Value as Figure, WorkloadFacts, WorkloadRow, hexa,
    render_reproduction,
};
use samples::html::{VEGA, between, data, outline, unbalanced};
use serde_json::json;

/// Every run of the papers' matrix but one, made up: IOPS are the run's number.
fn matrix() -> Vec<(Cell, RunRecord)> {
    let mut cells = hexa::cells();
    let last = cells.iter().rposition(|cell| matches!(cell.table, hexa::Table::Share(_)));
    cells.remove(last.expect("shares"));
    let record = |number: usize| {
        let mut record = RunRecord::default();
        record.host.iops = 1000.0 + number as f64;
        record.flash.programs.user = 500;
        record.flash.programs.map = number as u64;
        record.map.hit_ratio = 0.5;
        record
    };
    cells.into_iter().enumerate().map(|(i, cell)| (cell, record(i))).collect()
}

fn reproduction(matrix: &[(Cell, RunRecord)], nasty: &str) -> String {
    let claim = Claim {
        id: nasty.to_owned(),
        paper: Figure::Pair([0.06, 0.5]),
        accept: [0.05, 0.52],
        statement: nasty.to_owned(),
    };
    let claims = [
        ClaimResult::judged(&claim, Figure::One(0.5), nasty.to_owned()),
        ClaimResult::judged(&claim, Figure::One(0.6), String::new()),
        ClaimResult::not_run(&claim, "no time".to_owned()),
    ];
    let cells: Vec<_> = matrix.iter().map(|(cell, record)| (cell.clone(), record)).collect();
    let facts = WorkloadFacts { requests: 9, data_bytes: 1 << 30, map_bytes: 1 << 20 };
    let row = |traced| WorkloadRow {
        name: "work",
        traced,
        facts,
        requests: 8,
        data_bytes: 4 << 30,
        map_bytes: 1 << 30,
    };
    let workloads = if matrix.is_empty() { vec![] } else { vec![row(true), row(false)] };
    render_reproduction(&Reproduction {
        version: "0.0.0 (test)",
        title: nasty,
        command: nasty,
        quick: true,
        claims: &claims,
        cells: &cells,
        workloads: &workloads,
        zombies: &[],
        databases: &[],
        stores: &[],
        frontiers: &[],
    })
    .unwrap()
}

#[test]
fn a_reproduction_draws_the_papers_figures() {
    let matrix = matrix();
    let html = reproduction(&matrix, "papers");
    assert_eq!(html, reproduction(&matrix, "papers"));
    assert_eq!(unbalanced(&html), Vec::<String>::new());
    let outline = outline(&html);
    assert_eq!(outline.len(), 1 + 3 * 6 + 2);
    assert_eq!(outline[2], "iops-random-writes-1-gib | random writes, buffer of 1 GiB");
    let charts = data(&html);
    assert_eq!(charts["charts"].as_object().unwrap().len(), 13, "bars need no script");
    let lines = &charts["charts"]["iops-random-writes-64-mib"]["lines"];
    assert_eq!(lines.as_array().unwrap().len(), hexa::SCHEDULES.len());
    assert_eq!(lines[0]["x"], serde_json::json!([0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0]));
    assert_eq!(lines[0]["y"][6], 1006.0);
    // The run that is missing is a dash in the table, and not a point; journal and none are of one schedule.
    let last = between(&html, "<figure id=\"iops-tpc-c-1-gib\"", "</figure>");
    assert_eq!(last.matches("–").count(), 1 + 2 * (hexa::SCHEDULES.len() - 1));
    assert!(last.contains("<th scope=\"row\">journal</th>"), "{last}");
    let bars = between(&html, "<figure id=\"traffic-tpc-c-1-gib\"", "</figure>");
    assert_eq!(bars.matches("class=\"bar\"").count(), 7 * hexa::SCHEDULES.len() - 1 + 2);
    let table = between(&html, "<figure id=\"workloads-traced\"", "</figure>");
    assert!(table.contains("<td>25.0"), "{table}");
    assert!(html.contains("3 in all: 1 holds, 1 differs, 1 not run"));
    assert!(html.contains("0.060 to 0.500") && html.contains("quarter of the papers"));
}

#[test]
fn the_papers_numbers_stand_beside_ours() {
    let matrix = matrix();
    // The claim's figure of the paper is 0.06, and ours 0.5.
    let html = reproduction(&matrix, "hexa.iops_vs_full.1pct");
    let charts = data(&html)["charts"].clone();
    let lines = charts["iops-over-full"]["lines"].as_array().unwrap().clone();
    let labels: Vec<&str> = lines.iter().map(|line| line["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["fifo", "hexa", "dawid", "harvest", "hexa, the paper"]);
    assert_eq!((&lines[4]["x"], &lines[4]["y"]), (&json!([0.01]), &json!([0.06])));
    // Ours: the mean over six panels of IOPS at 1 % over those at 100 %, seven runs later.
    let iops: Vec<f64> = matrix.iter().map(|(_, record)| record.host.iops).collect();
    let firsts = matrix.iter().enumerate().filter(|(_, (cell, _))| {
        cell.schedule == "fifo" && matches!(cell.table, hexa::Table::Share(1))
    });
    let ratios: Vec<f64> = firsts.map(|(at, _)| iops[at] / iops[at + 6]).collect();
    let mean = ratios.iter().sum::<f64>() / 6.0;
    assert!((lines[0]["y"][0].as_f64().unwrap() / mean - 1.0).abs() < 1e-3, "{lines:?}, {mean}");
    let row = &charts["beside-hexa"]["rows"][0];
    assert_eq!(
        [&row["k"], &row["paper"], &row["ours"]],
        [&json!("iops_vs_full.1pct"), &json!(0.06), &json!(0.5)]
    );
}

#[test]
fn a_reproduction_without_figures_is_a_page_of_claims() {
    let nasty = "</script><img src=x onerror=alert(1)>\"'&{{ 7*7 }}";
    let html = reproduction(&[], nasty);
    assert!(outline(&html).is_empty());
    assert_eq!(unbalanced(&html), Vec::<String>::new());
    assert!(!html.replace(VEGA, "").contains("<img"));
    assert_eq!(html.matches("</script>").count(), 3);
}
