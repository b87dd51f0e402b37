//! Run records as a table for other programs: a line for each run, a column for each varied key, for each figure of the
//! registry and each other number of the record, under their keys, for its warnings, and for its whole configuration.

use crate::columns::{Cell, Dimension, cells, quantity};
use leyden_record::RunRecord;
use std::collections::BTreeMap;

/// The beginning of every such table.
pub const CSV_HEAD: &str = "run,seed,digest,";

/// The records as comma-separated values (RFC 4180). Numbers are in the units of the run record
/// (`docs/reference/record.md`); the configuration is JSON, with every default filled in. A figure that a run does not
/// have is an empty cell.
pub fn csv(records: &[RunRecord]) -> String {
    let rows: Vec<BTreeMap<String, Cell>> = records.iter().map(cells).collect();
    let mut varied: Vec<&str> = Vec::new();
    for key in records.iter().flat_map(|r| &r.varied).map(|v| v.key.as_str()) {
        if !varied.contains(&key) {
            varied.push(key);
        }
    }
    let mut names: Vec<&String> = rows.iter().flat_map(BTreeMap::keys).collect();
    names.sort();
    names.dedup();
    let keys = varied.iter().map(|key| (*key).to_owned());
    let head = keys.chain(names.iter().map(|name| (*name).clone()));
    let head = head.chain(["warnings", "config"].map(str::to_owned));
    let mut out = format!("{CSV_HEAD}{}\r\n", line(head));
    for (record, row) in records.iter().zip(&rows) {
        let first = [record.name.clone(), record.seed.to_string(), record.sim.digest.clone()];
        let values = varied.iter().map(|key| {
            let is_number = records.iter().all(|other| number_of(value(other, key)).is_some());
            let own = value(record, key);
            number_of(own).filter(|_| is_number).unwrap_or_else(|| own.to_owned())
        });
        let numbers =
            names.iter().map(|name| row.get(*name).map(Cell::to_string).unwrap_or_default());
        let last = [record.warnings.join("; "), record.config.to_string()];
        out.push_str(&line(first.into_iter().chain(values).chain(numbers).chain(last)));
        out.push_str("\r\n");
    }
    out
}

/// The value given for a varied key.
fn value<'a>(record: &'a RunRecord, key: &str) -> &'a str {
    let found = record.varied.iter().find(|varied| varied.key == key);
    found.map_or("", |varied| varied.value.as_str())
}

/// A value as a plain number. Numbers keep their digits.
fn number_of(value: &str) -> Option<String> {
    match quantity(value)? {
        (_, Dimension::Plain) if !value.contains('%') => Some(value.to_owned()),
        (number, _) => Some(number.to_string()),
    }
}

fn line(cells: impl Iterator<Item = String>) -> String {
    let quoted = cells.map(|cell| {
        let cell = if is_formula(&cell) { format!("'{cell}") } else { cell };
        if cell.contains([',', '"', '\r', '\n']) {
            format!("\"{}\"", cell.replace('"', "\"\""))
        } else {
            cell
        }
    });
    quoted.collect::<Vec<_>>().join(",")
}

/// True if a spreadsheet would run the cell: names are others' texts. Numbers are none.
fn is_formula(cell: &str) -> bool {
    cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && cell.parse::<f64>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;
    use leyden_record::Varied;

    #[test]
    fn a_name_is_no_formula_and_a_number_stays_one() {
        for name in ["=HYPERLINK(1)", "@SUM(1)", "+cmd|' /C calc'!A0", "-2+3", "\t=1"] {
            let record = RunRecord { name: name.into(), ..RunRecord::default() };
            let text = csv(&[record]);
            let cell = text.split("\r\n").nth(1).unwrap().trim_start_matches('"');
            assert!(cell.starts_with('\''), "{cell}");
        }
        assert_eq!(line(["-2.5".to_owned(), "+1e3".to_owned()].into_iter()), "-2.5,+1e3");
    }

    #[test]
    fn values_are_numbers_where_all_of_a_key_are() {
        let run = |key: &str, value: &str| RunRecord {
            varied: vec![Varied { key: key.into(), value: value.into() }],
            warnings: vec!["a".into(), "b".into()],
            ..RunRecord::default()
        };
        let column = |values: &[&str]| {
            let records: Vec<_> = values.iter().map(|value| run("k", value)).collect();
            let text = csv(&records);
            let cells = text.lines().skip(1).map(|line| line.split(',').nth(3).unwrap().to_owned());
            assert!(text.lines().skip(1).all(|line| line.ends_with(",a; b,null")), "{text}");
            cells.collect::<Vec<_>>()
        };
        assert_eq!(column(&["5%", "12.5 %"]), ["0.05", "0.125"]);
        assert_eq!(column(&["8 MiB", "4096 B"]), ["8388608", "4096"]);
        assert_eq!(column(&["20 s", "1 ms"]), ["20", "0.001"]);
        assert_eq!(column(&["1", "0.5"]), ["1", "0.5"]);
        assert_eq!(column(&["5%", "auto"]), ["5%", "auto"]);
        let mut record = run("k", "1");
        record.steadiness.precondition = Some(leyden_record::Settling::default());
        let text = csv(&[record]);
        let head: Vec<&str> = text.lines().next().unwrap().split(',').collect();
        let at = head.iter().position(|name| *name == "steadiness.precondition.settled").unwrap();
        assert_eq!(text.lines().nth(1).unwrap().split(',').nth(at), Some("false"));
        assert_eq!(head[head.len() - 2..], ["warnings", "config"]);
    }

    #[test]
    fn a_percentile_of_few_commands_is_an_empty_cell() {
        let mut record = RunRecord::default();
        record.host.reads = 1_200;
        let latency = &mut record.host.read_latency_us;
        (latency.p50, latency.p99, latency.p999, latency.max) = (1.5, 2.5, 3.5, 4.5);
        let text = csv(&[record]);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        let cell = |key: &str| {
            let at = lines[0].iter().position(|name| *name == key);
            at.map_or("no column", |at| lines[1][at])
        };
        assert_eq!(cell("host.read_latency_us.p50"), "1.5");
        assert_eq!(cell("host.read_latency_us.p99"), "2.5");
        assert_eq!(cell("host.read_latency_us.max"), "4.5");
        for key in ["host.read_latency_us.p999", "host.write_latency_us.p50"] {
            assert!(["", "no column"].contains(&cell(key)), "{key}: {}", cell(key));
        }
    }

    #[test]
    fn a_line_for_each_run_and_a_column_for_each_number() {
        let mut record = RunRecord { name: "a, \"b\"".into(), seed: 3, ..RunRecord::default() };
        (record.flash.waf, record.flash.erases, record.host.bytes_written) = (2.5, 3, 2 << 30);
        record.varied = vec![Varied { key: "device.x".into(), value: "1,2".into() }];
        record.host.read_latency_us.distribution = vec![(0.0, 1.0)];
        record.config = serde_json::json!({ "device": { "x": "1,2" } });
        let text = csv(&[record, RunRecord::default()]);
        let lines: Vec<&str> = text.split("\r\n").collect();
        assert!(lines[0].starts_with("run,seed,digest,device.x,buffer."), "{}", lines[0]);
        assert!(lines[1].starts_with("\"a, \"\"b\"\"\",3,,\"1,2\","), "{}", lines[1]);
        assert_eq!(lines.len(), 4, "a head, two runs, and the end of the last line");
        assert!(lines[1].ends_with(r#","{""device"":{""x"":""1,2""}}""#), "{}", lines[1]);
        let column = lines[0].split(',').position(|name| name == "flash.waf").unwrap();
        let derived = lines[0].split(',').position(|name| name == "flash.erases_per_gib").unwrap();
        let first = lines[1].rsplit("\"1,2\",").next().unwrap().split(',').collect::<Vec<_>>();
        assert_eq!((first[column - 4], first[derived - 4]), ("2.5", "1.5"));
        let values = lines[2].split(',').collect::<Vec<_>>();
        assert_eq!(
            (values.len(), values[column]),
            (lines[0].split(',').count(), ""),
            "nothing written"
        );
        assert!(!text.contains("distribution") && !text.contains("series"));
    }
}
