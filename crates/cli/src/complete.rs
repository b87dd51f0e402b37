//! Completions of the shell besides flags: bundled scenarios, keys of `--set`, and the values of a key.
//!
//! The script of `leyden completions` asks this program, with `COMPLETE` set. So the answers are those of the program
//! that will run, policies of the user's own among them.

use std::ffi::OsStr;
use std::path::Path;

use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use leyden_config::Scenario;
use leyden_config::bundled;
use serde_json::Value;

use crate::help;
use crate::reference::{element, meaning, resolved};

/// Answers a shell that asks, and ends then. Does nothing otherwise.
pub(crate) fn answer() {
    clap_complete::CompleteEnv::with_factory(command).complete();
}

/// The command line, with what completes each argument.
fn command() -> clap::Command {
    with_completers(help::command())
}

fn with_completers(mut command: clap::Command) -> clap::Command {
    let ids: Vec<String> = command.get_arguments().map(|arg| arg.get_id().to_string()).collect();
    for id in ids {
        command = command.mut_arg(&id, |arg| {
            let about = arg.get_help().map(ToString::to_string).unwrap_or_default();
            if id == "set" {
                arg.add(ArgValueCompleter::new(overrides))
            } else if about.starts_with("The scenario")
                || about.starts_with("The drive: a scenario")
                || id == "drive"
            {
                arg.add(ArgValueCompleter::new(scenarios))
            } else {
                arg
            }
        });
    }
    let below: Vec<String> =
        command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    for name in below {
        command = command.mut_subcommand(name, with_completers);
    }
    command
}

/// Bundled scenarios, and files.
fn scenarios(begun: &OsStr) -> Vec<CompletionCandidate> {
    let text = begun.to_string_lossy();
    let bundled =
        bundled::names().filter(|name| name.starts_with(&*text)).map(CompletionCandidate::new);
    let files = PathCompleter::any().filter(|path: &Path| {
        path.is_dir()
            || path
                .extension()
                .is_some_and(|it| ["toml", "json", "html"].iter().any(|known| it == *known))
    });
    bundled.chain(files.complete(begun)).collect()
}

/// `KEY=` of all keys that begin so, or `KEY=VALUE` of all values that the key knows.
fn overrides(begun: &OsStr) -> Vec<CompletionCandidate> {
    let text = begun.to_string_lossy();
    let candidates = keys().into_iter().flat_map(|key| {
        if text.contains('=') {
            let known = key.values.iter().map(|value| format!("{}={value}", key.path));
            known.map(CompletionCandidate::new).collect()
        } else {
            let about = Some(key.about.into())
                .filter(|about: &clap::builder::StyledStr| !about.to_string().is_empty());
            vec![CompletionCandidate::new(format!("{}=", key.path)).help(about)]
        }
    });
    candidates.filter(|it| it.get_value().to_string_lossy().starts_with(&*text)).collect()
}

/// A key of a scenario.
struct Key {
    path: String,
    /// The first sentence of its meaning.
    about: String,
    /// The names that it can have.
    values: Vec<String>,
}

fn keys() -> Vec<Key> {
    let (root, mut keys) = (Scenario::schema(), Vec::new());
    let root = serde_json::to_value(root).unwrap_or_default();
    collect(&root, &root, "", &mut keys);
    keys.retain(|key| key.path != "extends"); // means something in a file only
    keys
}

fn collect(root: &Value, schema: &Value, path: &str, keys: &mut Vec<Key>) {
    for (key, property) in resolved(root, schema)["properties"].as_object().into_iter().flatten() {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let (below, suffix) = element(root, property);
        if below["properties"].is_object() {
            let number = if suffix.is_empty() { "" } else { ".0" };
            collect(root, below, &format!("{path}{number}"), keys);
            continue;
        }
        let values = values(resolved(root, property));
        let about = meaning(root, property);
        let about = about.split(". ").next().unwrap_or_default().trim_end_matches('.').to_owned();
        keys.push(Key { path, about, values });
    }
}

/// The names that a value can have: of an enumeration, or of policies.
fn values(schema: &Value) -> Vec<String> {
    if schema["type"] == "boolean" {
        return vec!["true".to_owned(), "false".to_owned()];
    }
    let variants = schema["oneOf"].as_array().into_iter().flatten();
    let named = variants.filter_map(|variant| {
        variant["const"].as_str().or(variant["properties"]["policy"]["const"].as_str())
    });
    let listed = schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
    named.chain(listed).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(words: &[&str]) -> Vec<String> {
        let mut command = command();
        let args = words.iter().map(std::ffi::OsString::from).collect();
        let found = clap_complete::engine::complete(&mut command, args, words.len() - 1, None);
        let found = found.unwrap().into_iter();
        found.map(|it| it.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn scenarios_keys_and_values_are_completed() {
        let run = completed(&["leyden", "run", "devices/tl"]);
        assert_eq!(run, ["devices/tlc-datacenter"]);
        for command in ["run", "compare", "check", "size", "lifetime", "timeline"] {
            assert_eq!(completed(&["leyden", command, "tpc"]), ["tpcc"], "{command}");
            let keys = completed(&["leyden", command, "tpcc", "--set", "device.ftl.over_"]);
            assert_eq!(keys, ["device.ftl.over_provisioning="], "{command}");
        }
        let image = completed(&["leyden", "image", "create", "x", "--drive", "devices/q"]);
        assert_eq!(image, ["devices/qlc"]);
        let victims = completed(&["leyden", "run", "x", "--set", "device.ftl.gc.victim=gre"]);
        assert_eq!(victims, ["device.ftl.gc.victim=greedy"]);
        let regions = completed(&["leyden", "run", "x", "--set", "device.buffer.region="]);
        assert!(regions.contains(&"device.buffer.region=full".to_owned()), "{regions:?}");
        let jobs = completed(&["leyden", "run", "x", "--set", "workload.job.0.read_s"]);
        assert_eq!(jobs, ["workload.job.0.read_share="]);
    }

    /// A key that is offered is one that a scenario takes.
    #[test]
    fn every_key_that_is_offered_is_known() {
        // With jobs and cuts, so that numbered keys lead somewhere.
        let is_known = |key: &str| {
            let set = format!("{key}=\u{1}").parse().unwrap();
            let sets = [set];
            let mut scenarios =
                ["power-cuts", "bench/random-write", "bench/zone-append"].into_iter();
            scenarios.all(|name| {
                let loaded = leyden_config::Loaded::new(name, &sets);
                loaded.err().is_none_or(|error| !error.to_string().contains("unknown key"))
            })
        };
        for key in [
            "nonsense",
            "device.nonsense",
            "workload.job.0.nonsense",
            "workload.zone_job.0.nonsense",
            "run.cut.0.nonsense",
        ] {
            assert!(!is_known(key), "{key}: the check sees nothing");
        }
        let keys = keys();
        assert!(keys.len() > 150, "{}", keys.len());
        for key in &keys {
            assert!(is_known(&key.path), "{}", key.path);
        }
    }
}
