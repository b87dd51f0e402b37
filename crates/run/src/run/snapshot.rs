//! A preconditioned drive, kept in a file.
//!
//! The file begins with a line that says what it is and a line of JSON: a fingerprint of everything
//! that decided the state, that itself, and what preconditioning warned of. The drive's own snapshot
//! follows. A file with another fingerprint is replaced, and the user told why; a file that is something
//! else is left alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use leyden_device::{Config, Controller, Namespace, Payload, SnapshotError};
use leyden_sim::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RunError;
use super::precondition::Past;
use leyden_config::{Distribution, PreconditionConfig, Scenario, WorkloadConfig};
use leyden_record::Settling;

const MAGIC: &str = "leyden preconditioned drive 1\n";

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Header {
    fingerprint: String,
    warnings: Vec<String>,
    /// How write amplification settled, if it was waited for.
    #[serde(default)]
    settling: Option<Settling>,
    /// The settings that decided the state, by key; empty in files written before there was such a
    /// list.
    #[serde(default)]
    made_of: BTreeMap<String, Value>,
}

/// The contents of a snapshot's file.
pub(super) enum Found<P: Payload, N> {
    /// There is no file.
    Nothing,
    /// The drive, and what preconditioning it tells.
    Drive(Box<Controller<P, N>>, Past),
    /// Another drive, and why it will not do.
    Other(String),
}

/// The drive in `path`.
pub(super) fn load<P: Payload, N: Namespace<P>>(
    path: &Path,
    scenario: &Scenario,
) -> Result<Found<P, N>, RunError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(failure(path, "cannot be read", error)),
    };
    let mut from = BufReader::with_capacity(1 << 20, file);
    let mut magic = vec![0; MAGIC.len()];
    let is_ours = io::Read::read_exact(&mut from, &mut magic).is_ok() && magic == MAGIC.as_bytes();
    if !is_ours {
        let problem =
            format!("{} is no snapshot; name a file that may be replaced", path.display());
        return Err(RunError::config("precondition.snapshot", problem));
    }
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line).map_err(|error| failure(path, "cannot be read", error))?;
    let Ok(header) = serde_json::from_slice::<Header>(&line) else {
        return Ok(Found::Other("it was written by another version".to_owned()));
    };
    let parts = Parts::of::<P>(scenario);
    if header.fingerprint != parts.fingerprint() {
        return Ok(Found::Other(difference(&header.made_of, &parts.by_key())));
    }
    let drive = Controller::load(&scenario.device, scenario.seed, &mut from)
        .map_err(|error| not_loaded(path, error))?;
    let past = Past { warnings: header.warnings, settling: header.settling };
    Ok(Found::Drive(Box::new(drive), past))
}

fn not_loaded(path: &Path, error: SnapshotError) -> RunError {
    match error {
        SnapshotError::Io(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
            failure(path, "cannot be read", error)
        }
        error => {
            let cause = error.to_string();
            let cause = cause.split(';').next().unwrap_or_default();
            let problem =
                format!("{} is damaged ({cause}); delete it, and it is made again", path.display());
            RunError::config("precondition.snapshot", problem)
        }
    }
}

/// Keeps the drive; the file appears whole or not at all.
pub(super) fn save<P: Payload, N: Namespace<P>>(
    path: &Path,
    scenario: &Scenario,
    drive: &Controller<P, N>,
    past: &Past,
) -> Result<(), RunError> {
    let parts = Parts::of::<P>(scenario);
    let header = Header {
        fingerprint: parts.fingerprint(),
        warnings: past.warnings.clone(),
        settling: past.settling,
        made_of: parts.by_key(),
    };
    let written = leyden_files::write_with(path, |file| {
        let mut to = BufWriter::with_capacity(1 << 20, file);
        to.write_all(MAGIC.as_bytes())?;
        serde_json::to_writer(&mut to, &header)?;
        to.write_all(b"\n")?;
        drive.save(&mut to).map_err(io::Error::other)?;
        to.flush()
    });
    let what =
        "cannot be written\n  help: choose another place, or make room; no partial file was left";
    written.map_err(|error| failure(path, what, error.into_io()))
}

fn failure(path: &Path, what: &str, error: io::Error) -> RunError {
    RunError::Snapshot(format!("{} {what}", path.display()), error)
}

/// Of everything that decides the state after preconditioning.
pub(super) fn fingerprint<P: Payload>(scenario: &Scenario) -> String {
    Parts::of::<P>(scenario).fingerprint()
}

/// Everything that decides the state after preconditioning.
#[derive(Serialize)]
struct Parts<'a> {
    /// Another build may precondition differently.
    version: &'static str,
    stored: bool,
    seed: u64,
    device: &'a Config,
    precondition: PreconditionConfig,
    workload: Option<&'a WorkloadConfig>,
    /// Checksums of the files of that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inputs: Vec<String>,
}

impl<'a> Parts<'a> {
    fn of<P: Payload>(scenario: &'a Scenario) -> Self {
        let precondition = PreconditionConfig { snapshot: None, ..scenario.precondition.clone() };
        let workload = match precondition.distribution {
            Distribution::Uniform => None,
            Distribution::Workload => Some(&scenario.workload),
        };
        let inputs = workload.map(super::inputs).unwrap_or_default();
        Self {
            version: env!("CARGO_PKG_VERSION"),
            stored: P::STORED,
            seed: scenario.seed,
            device: &scenario.device,
            workload,
            inputs: inputs.into_iter().map(|input| input.sha256).collect(),
            precondition,
        }
    }

    fn fingerprint(&self) -> String {
        let mut digest = Digest::default();
        let Self { version, stored, seed, device, precondition, workload, inputs } = self;
        let all = (version, stored, seed, device, precondition, workload);
        let mut bytes = serde_json::to_vec(&all).unwrap_or_default();
        bytes.extend(inputs.iter().flat_map(|sum| sum.bytes()));
        for byte in bytes {
            digest.add(u64::from(byte));
        }
        digest.to_string()
    }

    /// The same by dotted key, for people.
    fn by_key(&self) -> BTreeMap<String, Value> {
        let mut keys = BTreeMap::new();
        flatten("", &serde_json::to_value(self).unwrap_or_default(), &mut keys);
        keys
    }
}

fn flatten(path: &str, value: &Value, into: &mut BTreeMap<String, Value>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Object(table) => {
            table.iter().for_each(|(key, value)| flatten(&below(key), value, into));
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.for_each(|(index, value)| flatten(&below(&index.to_string()), value, into));
        }
        value => drop(into.insert(path.to_owned(), value.clone())),
    }
}

/// Why a drive made of `then` is not one made of `now`, in a sentence.
fn difference(then: &BTreeMap<String, Value>, now: &BTreeMap<String, Value>) -> String {
    if then.is_empty() {
        return "it was written by another version".to_owned();
    }
    let keys: BTreeSet<&String> = then.keys().chain(now.keys()).collect();
    let mut changed = keys.into_iter().filter(|key| then.get(*key) != now.get(*key));
    let Some(first) = changed.next() else {
        return "its content is older than its description".to_owned();
    };
    let say = |value: Option<&Value>| match value {
        None | Some(Value::Null) => "nothing".to_owned(),
        Some(Value::String(text)) => format!("\"{text}\""),
        Some(value) => value.to_string(),
    };
    let (was, is) = (say(then.get(first)), say(now.get(first)));
    let name = if first == "stored" { "run.stamps" } else { first };
    let others = match changed.count() {
        0 => String::new(),
        1 => ", and another key".to_owned(),
        others => format!(", and {others} other keys"),
    };
    format!("`{name}` is {is} and was {was}{others}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_its_key_and_both_values() {
        let of = |sets: &[&str]| {
            let sets: Vec<_> = sets.iter().map(|set| set.parse().unwrap()).collect();
            let loaded = leyden_config::Loaded::new("bench/random-write", &sets).unwrap();
            Parts::of::<leyden_device::NoData>(&loaded.scenario).by_key()
        };
        let (base, same) = (of(&[]), of(&["workload.job.0.queue_depth=3", "name=x"]));
        assert_eq!(base, same, "what comes after preconditioning decides nothing in it");
        assert_eq!(difference(&base, &of(&["seed=9"])), "`seed` is 9 and was 1");
        let other = of(&["seed=9", "device.buffer.size=8 MiB"]);
        let said = difference(&base, &other);
        assert!(said.starts_with("`device.buffer.size` is \"8 MiB\" and was "), "{said}");
        assert!(said.ends_with(", and another key"), "{said}");
    }
}
