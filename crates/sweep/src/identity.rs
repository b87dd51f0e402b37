//! Identities of points and of plans.

use std::path::{Path, PathBuf};

use leyden_config::{LoadError, Scenario};
use sha2::{Digest, Sha256};

use crate::plan::Plan;

/// Keys of the configuration that name a run or a file; files count by their content.
const NAMES: [&str; 6] = [
    "/name",
    "/description",
    "/workload/trace/path",
    "/workload/trace/hints",
    "/workload/recorded/path",
    "/precondition/snapshot",
];

/// The id of a point: a hash of its configuration without names, of its inputs' content and of the build.
pub(crate) fn point_id(scenario: &Scenario, build: &str) -> String {
    let mut plain = serde_json::to_value(scenario).unwrap_or_default();
    for name in NAMES {
        if let Some(value) = plain.pointer_mut(name) {
            *value = serde_json::Value::Null;
        }
    }
    let inputs = leyden_run::inputs(&scenario.workload).into_iter().map(|input| input.sha256);
    let recorded = scenario.workload.recorded.iter();
    let recorded = recorded.filter_map(|recorded| leyden_run::checksum(recorded.path.as_ref()));
    let inputs: Vec<String> = inputs.chain(recorded.map(|(sum, _)| sum)).collect();
    let config = plain.to_string();
    hash(&[b"leyden point 1", build.as_bytes(), config.as_bytes(), inputs.join(" ").as_bytes()])
}

/// The id of a plan: the same for readers of the same text, the same scenarios and the same inputs, wherever they are.
///
/// # Errors
/// If a scenario cannot be loaded.
pub(crate) fn plan_id(plan: &Plan, build: &str) -> Result<String, LoadError> {
    let of = |file: &PathBuf| leyden_run::checksum(file).map(|(sum, _)| sum);
    let mut files: Vec<String> = plan.files()?.iter().filter_map(of).collect();
    files.sort();
    let devices: Vec<&String> = plan.devices.iter().map(|(name, _)| name).collect();
    // A bundled scenario's content is the build's; its name tells which. A file's content is among the files.
    let base = if Path::new(&plan.base).is_file() { "" } else { plan.base.as_str() };
    let text = format!(
        "{base} {:?} {devices:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        plan.base_text, plan.seeds, plan.set, plan.grid, plan.listed, plan.sample, plan.require
    );
    Ok(hash(&[b"leyden plan 1", build.as_bytes(), text.as_bytes(), files.join(" ").as_bytes()]))
}

/// Sixteen hexadecimal digits of SHA-256; each piece after its length.
fn hash(pieces: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for piece in pieces {
        hash.update((piece.len() as u64).to_le_bytes());
        hash.update(piece);
    }
    let all = hash.finalize();
    format!("{:016x}", u64::from_be_bytes(all[..8].try_into().expect("8 bytes")))
}
