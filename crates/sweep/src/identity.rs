//! Identities of points and of plans.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::PoisonError;

use leyden_config::Scenario;
use leyden_record::Input;
use sha2::{Digest, Sha256};

use crate::plan::Plan;
use crate::points::Templates;

/// Checksums of the files that workloads name; each file is read once.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    known: Mutex<BTreeMap<String, Vec<Input>>>,
}

impl Inputs {
    fn of(&self, scenario: &Scenario) -> Vec<Input> {
        if scenario.workload.trace.is_none() {
            return Vec::new();
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let of_trace = || {
            format!(
                "{:?}",
                scenario.workload.trace.as_ref().map(|trace| {
                    trace
                        .files()
                        .map(|(path, source)| (path.to_owned(), source.place()))
                        .collect::<Vec<_>>()
                })
            )
        };
        let files = known.entry(of_trace());
        files.or_insert_with(|| leyden_run::inputs(&scenario.workload)).clone()
    }

    /// The id of a point: a hash of its configuration without its name, of its inputs' content and of the version.
    pub(crate) fn id(&self, scenario: &Scenario, build: &str) -> String {
        let mut plain = scenario.clone();
        (plain.name, plain.description) = (String::new(), String::new());
        // Files count by their content.
        let inputs: Vec<String> = self.of(scenario).into_iter().map(|input| input.sha256).collect();
        let config = serde_json::to_vec(&plain).unwrap_or_default();
        hash(&[b"leyden point 1", build.as_bytes(), &config, inputs.join(" ").as_bytes()])
    }
}

/// The id of a plan: the same for whoever reads the same text, the same scenarios and the same inputs.
pub(crate) fn plan_id(plan: &Plan, templates: &Templates, inputs: &Inputs, build: &str) -> String {
    let first = (0..plan.len()).find_map(|index| plan.point(index));
    let base = first.and_then(|point| templates.load(&point).ok());
    let base = base.map_or_else(String::new, |loaded| inputs.id(&loaded.scenario, build));
    let of = |path: &String| Path::new(path).file_name().map(std::ffi::OsStr::to_os_string);
    let devices: Vec<_> = plan.devices.iter().map(of).collect();
    let text = format!(
        "{devices:?} {:?} {:?} {:?} {:?} {:?} {:?}",
        plan.seeds, plan.set, plan.grid, plan.listed, plan.sample, plan.require
    );
    hash(&[b"leyden plan 1", build.as_bytes(), text.as_bytes(), base.as_bytes()])
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
