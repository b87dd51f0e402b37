//! A scenario from what a run has left behind: its record, a comparison's records, or a report, all of
//! which hold the whole configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::diagnostic::{Diagnostic, Origin, Source};
use super::tree::{Entry, Node, Value};
use leyden_record::{Input, RECORD_VERSION, RECORD_VERSION_LEAST, is_version_read};

/// The text of a report before and after the runs it holds.
pub const IN_REPORT: (&str, &str) = ("<script type=\"application/json\" id=\"runs\">", "</script>");

/// As much of a record as it takes to run it again.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Saved {
    /// The record's version.
    record_version: u32,
    /// The run's name.
    pub name: String,
    /// The version of Leyden that made it.
    pub leyden_version: String,
    /// Its commit; empty if that is not known.
    #[serde(default)]
    pub commit: String,
    /// The configuration.
    config: serde_json::Value,
    /// The files it was read from.
    #[serde(default)]
    pub inputs: Vec<Input>,
    sim: SavedSim,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct SavedSim {
    digest: String,
}

#[derive(Deserialize)]
struct Runs {
    runs: Vec<Saved>,
}

impl Saved {
    /// The fingerprint of what happened.
    pub fn digest(&self) -> &str {
        &self.sim.digest
    }
}

/// Whether a text is a record or a report, and no scenario.
pub(super) fn is_saved(text: &str) -> bool {
    let begin = text.trim_start();
    begin.starts_with('{') || begin.starts_with("<!doctype html>")
}

/// The run called `wanted` in a record or report, or the only one; with its configuration as a tree.
pub(super) fn read(
    source: &Arc<Source>,
    wanted: Option<&str>,
) -> Result<(Saved, Node), Diagnostic> {
    let file = &source.name;
    let json = match source.text.split_once(IN_REPORT.0) {
        Some((_, rest)) => rest.split_once(IN_REPORT.1).map_or(rest, |(json, _)| json),
        None => source.text.as_str(),
    };
    let runs = serde_json::from_str::<Runs>(json)
        .map(|runs| runs.runs)
        .or_else(|_| serde_json::from_str::<Saved>(json).map(|run| vec![run]));
    let runs = runs.map_err(|error| {
        Diagnostic::new(format!("{file} is neither a scenario nor a run record or report: {error}"))
            .help("name a scenario, which is TOML, or a file that `leyden run --out` or `--report` has written")
    })?;
    let names = || runs.iter().map(|run| run.name.as_str()).collect::<Vec<_>>();
    let run = match (wanted, runs.as_slice()) {
        (None, [run]) => run,
        (None, _) => {
            let problem = format!("there are {} runs in {file}", runs.len());
            let help = format!("choose one as {file}#NAME: {}", names().join(", "));
            return Err(Diagnostic::new(problem).help(help));
        }
        (Some(wanted), runs) => runs.iter().find(|run| run.name == wanted).ok_or_else(|| {
            let near = super::nearest(wanted, names().into_iter());
            let help = near.map(|near| format!("the nearest is `{near}`; "));
            Diagnostic::new(format!("there is no run `{wanted}` in {file}")).help(format!(
                "{}there are {}",
                help.unwrap_or_default(),
                names().join(", ")
            ))
        })?,
    };
    if !is_version_read(run.record_version.into()) {
        let problem = format!(
            "{file} is a run record of version {}, and this reads versions {RECORD_VERSION_LEAST} to {RECORD_VERSION}",
            run.record_version
        );
        let help = format!("run it with Leyden {}", run.leyden_version);
        return Err(Diagnostic::new(problem).help(help));
    }
    let origin = Origin { source: Arc::clone(source), span: 0..0 };
    let tree = node(&run.config, &origin);
    let no_config = || Diagnostic::new(format!("the configuration in {file} is no table"));
    Ok((
        run.clone(),
        tree.filter(|node| matches!(node.value, Value::Table(_))).ok_or_else(no_config)?,
    ))
}

/// JSON as a tree; what is null was not given.
pub(super) fn node(json: &serde_json::Value, origin: &Origin) -> Option<Node> {
    let value = match json {
        serde_json::Value::Null => return None,
        serde_json::Value::Bool(value) => Value::Bool(*value),
        serde_json::Value::String(text) => Value::Text(text.clone()),
        serde_json::Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(natural), _) => Value::Natural(natural),
            (None, Some(negative)) => Value::Negative(negative),
            (None, None) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::Array(items) => {
            Value::Array(items.iter().filter_map(|item| node(item, origin)).collect())
        }
        serde_json::Value::Object(entries) => {
            let entries = entries.iter().filter_map(|(key, value)| {
                let node = node(value, origin)?;
                Some((key.clone(), Entry { key: origin.clone(), node }))
            });
            Value::Table(entries.collect::<BTreeMap<_, _>>())
        }
    };
    Some(Node { value, origin: origin.clone() })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::diagnostic::Base;
    use super::*;

    #[test]
    fn records_of_versions_2_and_3_are_run_again_and_others_refused() {
        for (version, is_read) in [(1, false), (2, true), (3, true), (4, false)] {
            let text = format!(
                r#"{{"record_version": {version}, "name": "a", "leyden_version": "0.9.0",
                    "config": {{"seed": 7}}, "sim": {{"digest": "0"}}}}"#
            );
            let base = Base::Saved(PathBuf::new());
            let source = Arc::new(Source { name: "a.json".to_owned(), text, base });
            match read(&source, None) {
                Ok((run, _)) => assert!(is_read, "{run:?}"),
                Err(error) => {
                    let said = error.to_string();
                    assert!(!is_read && said.contains(&format!("version {version}")), "{said}");
                }
            }
        }
    }
}
