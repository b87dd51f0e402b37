//! A record is made from what its commands write: run records, claims, a campaign's JSON.
//!
//! A folder keeps what each command wrote, so that a record can take up what a new table needs without running
//! everything again: a command whose folder is there is not run. Every number of such a file has a key: the command's label,
//! what tells its run apart, and its place in the file.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::expression::Values;
use super::record::{Record, values};
use super::{RECORDS, keys_used};
use crate::tidy::tree::Tree;

/// The folder's name for an empty label.
const ONLY: &str = "only";
/// Where a campaign leaves its numbers.
const NUMBERS: &str = "numbers.json";
/// Which build wrote what is in a folder.
const VERSION: &str = "version.txt";

/// Makes the record `name` of the repository at `root`: with `leyden`, what it writes kept in `folder`.
pub(crate) fn make(root: &Path, name: &str, leyden: &Path, folder: &Path) -> io::Result<String> {
    let path = root.join(RECORDS).join(format!("{name}.json"));
    let with_path = |problem: String| io::Error::other(format!("{}: {problem}", path.display()));
    let text = std::fs::read_to_string(&path).map_err(|error| with_path(error.to_string()))?;
    let mut record = Record::parse(&text).map_err(with_path)?;
    let mut found = Found::default();
    for (label, command) in &record.commands {
        let folder = folder.join(name).join(if label.is_empty() { ONLY } else { label });
        if !folder.exists() {
            run(root, command, leyden, &folder)?;
        }
        let version = std::fs::read_to_string(folder.join(VERSION))?;
        found.versions.insert(version.trim().to_owned());
        for file in files(&folder)? {
            found.read(label, &file, &record)?;
        }
    }
    let keys = keys_used(&Tree::read(root)?, name).unwrap_or_default();
    record.figures = found.figures(&keys).map_err(io::Error::other)?;
    record.seeds = found.seeds.into_iter().collect();
    record.version = found.versions.into_iter().collect::<Vec<_>>().join(", ");
    std::fs::write(&path, record.to_text())?;
    Ok(format!("{}: {} figures", path.display(), record.figures.len()))
}

/// Runs `command`; the folder has its name only once all is written.
fn run(root: &Path, command: &str, leyden: &Path, folder: &Path) -> io::Result<()> {
    let mut part = folder.as_os_str().to_owned();
    part.push(".part"); // a label may have a point
    let part = std::path::absolute(part)?;
    std::fs::create_dir_all(&part)?;
    let line = if let Some(arguments) = command.strip_prefix("leyden ") {
        format!("exec \"$0\" {arguments} --out \"$1\"")
    } else if command.starts_with("papers/campaigns/") {
        let command = command.replace("target/release/leyden", "\"$0\"");
        format!("exec {command} --json \"$1/{NUMBERS}\"")
    } else {
        return Err(io::Error::other(format!("`{command}` is not run from here")));
    };
    let leyden = std::path::absolute(leyden)?;
    let shell = Command::new("sh")
        .current_dir(root)
        .arg("-c")
        .arg(line)
        .arg(&leyden)
        .arg(&part)
        .status()?;
    if !shell.success() {
        return Err(io::Error::other(format!("`{command}` ended with {shell}")));
    }
    let version = Command::new(&leyden).arg("--version").output()?;
    std::fs::write(part.join(VERSION), version.stdout)?;
    std::fs::rename(part, folder)
}

/// The files of `folder` and of the runs below it, in the order of their names.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for folder in [folder.to_owned(), folder.join("runs")] {
        if folder.is_dir() {
            for entry in std::fs::read_dir(folder)? {
                let path = entry?.path();
                if path.extension().is_some_and(|found| found == "json" || found == "run") {
                    files.push(path);
                }
            }
        }
    }
    files.sort();
    Ok(files)
}

/// A figure of one run, and what tells it apart from others of its name.
type Single = (f64, Option<String>, Values);

/// Everything that was read.
#[derive(Default)]
struct Found {
    seeds: BTreeSet<u64>,
    versions: BTreeSet<String>,
    figures: BTreeMap<String, Vec<Single>>,
}

impl Found {
    fn read(&mut self, label: &str, path: &Path, record: &Record) -> io::Result<()> {
        let text = std::fs::read_to_string(path)?;
        // A run that is kept for `leyden reproduce` has a line before its record.
        let is_kept = path.extension().is_some_and(|found| found == "run");
        let json = if is_kept { text.split_once('\n').unwrap_or_default().1 } else { &text };
        let value: Value = serde_json::from_str(json)
            .map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
        if value.pointer("/leyden_version").is_some() {
            self.read_run(label, &value, record);
        } else if let Some(claims) = value.pointer("/claims").and_then(Value::as_array) {
            for claim in claims {
                let id = claim["id"].as_str().unwrap_or_default();
                self.add(&join(&[label, "claims", id]), claim, 0.0, None);
            }
        } else {
            self.add(label, &value, 0.0, None);
        }
        Ok(())
    }

    fn read_run(&mut self, label: &str, run: &Value, record: &Record) {
        self.seeds.extend(run.pointer("/seed").and_then(Value::as_u64));
        let mut name = vec![label.to_owned()];
        name.extend(record.name.iter().filter_map(|pointer| word(run.pointer(pointer)?)));
        let name: Vec<&str> = name.iter().map(String::as_str).collect();
        let over = run.pointer(&record.over);
        let at = over.and_then(Value::as_f64).unwrap_or_default();
        let Some(parts) = run.as_object() else { return };
        for (part, value) in parts {
            // Not what was measured: how it was set up, how it went over time, and how long our machine took.
            if !matches!(part.as_str(), "config" | "series" | "sim" | "reproduce") {
                let digest = run.pointer("/sim/digest").and_then(word);
                self.add(&join(&[&join(&name), part]), value, at, digest);
            }
        }
    }

    /// Adds every number and word in `value`; a list of numbers is one figure, and other lists are gone through.
    fn add(&mut self, key: &str, value: &Value, at: f64, digest: Option<String>) {
        match value {
            Value::Object(parts) => {
                for (part, value) in parts {
                    self.add(&join(&[key, part]), value, at, digest.clone());
                }
            }
            Value::Array(list) if values(value).is_none() => {
                for (index, item) in list.iter().enumerate() {
                    // In the list's order, and no two are the same run.
                    self.add(key, item, at + index as f64, Some(index.to_string()));
                }
            }
            _ => {
                if let Some(values) = values(value) {
                    self.figures.entry(key.to_owned()).or_default().push((at, digest, values));
                }
            }
        }
    }

    /// The figures called `keys`.
    fn figures(&mut self, keys: &BTreeSet<String>) -> Result<BTreeMap<String, Values>, String> {
        let mut figures = BTreeMap::new();
        for key in keys {
            let singles = self
                .figures
                .get_mut(key)
                .ok_or_else(|| format!("no command wrote `{key}`, which a page uses"))?;
            singles.sort_by(|a, b| a.0.total_cmp(&b.0));
            singles.dedup_by(|a, b| a.0.to_bits() == b.0.to_bits() && a.1 == b.1 && a.2 == b.2);
            if singles.windows(2).any(|pair| pair[0].0.to_bits() == pair[1].0.to_bits()) {
                return Err(format!(
                    "`{key}` belongs to several runs: add a pointer to `name` that distinguishes them"
                ));
            }
            let together = together(singles);
            let values = together.ok_or_else(|| format!("`{key}` is another word in each run"))?;
            figures.insert(key.clone(), values);
        }
        Ok(figures)
    }
}

/// The figures of all runs of a name, as one; `None` if they are words that differ.
fn together(singles: &[Single]) -> Option<Values> {
    let (_, _, first) = singles.first()?;
    if singles.iter().all(|(_, _, values)| matches!(values, Values::Word(_)) && values == first) {
        return Some(first.clone());
    }
    let mut all = Vec::new();
    for (_, _, values) in singles {
        match values {
            Values::Numbers(numbers) => all.extend(numbers),
            Values::Word(_) => return None,
        }
    }
    Some(Values::Numbers(all))
}

/// The parts of a key, without empty ones.
fn join(parts: &[&str]) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    parts.join("/")
}

/// A value of the configuration as part of a name.
fn word(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.replace([' ', ':'], "")),
        other => Some(other.to_string()),
    }
}
