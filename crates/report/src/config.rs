//! The configuration as markup to read, and what differs between several.

use crate::format::DASH;
use crate::html::escape;
use crate::run::Run;
use crate::table::Table;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Pretty JSON with its parts marked up, all text escaped.
pub(crate) fn markup(config: &Value) -> String {
    let mut out = String::new();
    markup_value(config, 0, &mut out);
    out
}

fn markup_value(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            let members = members.iter().map(|(key, value)| {
                let key = escape(&Value::from(key.as_str()).to_string());
                (format!("<span class=\"k\">{key}</span>: "), value)
            });
            nested(('{', '}'), members, depth, out);
        }
        // Lists of plain values stay on one line: they are mostly short.
        Value::Array(items) if items.iter().any(|i| i.is_object() || i.is_array()) => {
            let items = items.iter().map(|item| (String::new(), item));
            nested(('[', ']'), items, depth, out);
        }
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i > 0 { ", " } else { "" });
                markup_value(item, depth, out);
            }
            out.push(']');
        }
        Value::String(_) => span("s", value, out),
        Value::Number(_) => span("n", value, out),
        _ => span("b", value, out),
    }
}

fn nested<'a>(
    (open, close): (char, char),
    members: impl Iterator<Item = (String, &'a Value)>,
    depth: usize,
    out: &mut String,
) {
    out.push(open);
    for (i, (prefix, value)) in members.enumerate() {
        out.push_str(if i > 0 { ",\n" } else { "\n" });
        out.push_str(&"  ".repeat(depth + 1));
        out.push_str(&prefix);
        markup_value(value, depth + 1, out);
    }
    out.push('\n');
    out.push_str(&"  ".repeat(depth));
    out.push(close);
}

fn span(class: &str, value: &Value, out: &mut String) {
    let text = escape(&value.to_string());
    // Writing to a string cannot fail.
    let _ = write!(out, "<span class=\"{class}\">{text}</span>");
}

/// The settings that are not the same in all runs; none if all are.
pub(crate) fn differences(runs: &[Run]) -> Option<Table> {
    let flat = runs.iter().map(|run| {
        let mut settings = BTreeMap::new();
        flatten("", &run.record.config, &mut settings);
        settings
    });
    let flat: Vec<BTreeMap<String, String>> = flat.collect();
    let labels = runs.iter().map(|run| run.label.clone());
    let mut table = Table::new(std::iter::once("Setting".to_owned()).chain(labels));
    let mut paths: Vec<&String> = flat.iter().flat_map(BTreeMap::keys).collect();
    paths.sort();
    paths.dedup();
    for path in paths {
        let values: Vec<Option<&String>> = flat.iter().map(|f| f.get(path)).collect();
        if values.iter().all(|v| *v == values[0]) {
            continue;
        }
        let cells = values.iter().map(|v| v.map_or_else(|| DASH.to_owned(), String::clone));
        let row = std::iter::once(path.clone()).chain(cells);
        table.rows.push(row.collect());
    }
    (!table.rows.is_empty()).then_some(table)
}

/// Leaves by their dotted path.
fn flatten(path: &str, value: &Value, out: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                let dot = if path.is_empty() { "" } else { "." };
                flatten(&format!("{path}{dot}{key}"), value, out);
            }
        }
        Value::Array(items) if items.iter().any(|i| i.is_object() || i.is_array()) => {
            for (i, value) in items.iter().enumerate() {
                flatten(&format!("{path}[{i}]"), value, out);
            }
        }
        Value::String(text) => drop(out.insert(path.to_owned(), text.clone())),
        other => drop(out.insert(path.to_owned(), other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leyden_record::RunRecord;
    use serde_json::json;

    /// The text of markup, as a browser shows it.
    fn shown(markup: &str) -> String {
        let mut text = String::new();
        for piece in markup.split('<') {
            text.push_str(piece.split_once('>').map_or(piece, |(_, t)| t));
        }
        text.replace("&quot;", "\"")
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&#39;", "'")
            .replace("&amp;", "&")
    }

    #[test]
    fn markup_shows_the_very_same_json() {
        let config =
            json!({"a": {"</pre>": [1, "x<y>&"], "empty": {}}, "b": [{"c": null}, []], "d": true});
        let markup = markup(&config);
        assert_eq!(serde_json::from_str::<Value>(&shown(&markup)).unwrap(), config);
        assert!(!markup.contains("</pre>"));
    }

    #[test]
    fn only_differences_are_listed() {
        let with = |config| RunRecord { config, ..RunRecord::default() };
        let records = [
            with(json!({"gc": {"policy": "greedy"}, "same": 1})),
            with(json!({"gc": {"policy": "cost_benefit", "extra": 2}, "same": 1})),
        ];
        let table = differences(&Run::all(&records)).unwrap();
        assert_eq!(table.rows, [["gc.extra", DASH, "2"], ["gc.policy", "greedy", "cost_benefit"]]);
        assert!(differences(&Run::all(&records[..1])).is_none());
    }
}
