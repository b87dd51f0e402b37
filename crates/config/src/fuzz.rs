//! The function of the fuzz target and of the short fuzz test: any text as a scenario.
//!
//! **Invariants**: none may panic but for a broken promise.

use std::path::PathBuf;
use std::sync::Arc;

use super::diagnostic::{Base, Origin, Source};
use super::{Loaded, Scenario, Set, de, saved};

/// Reads `data` as a scenario (what it extends is looked for in a folder that is not there, and among the
/// bundled ones); an error's message if it is refused.
///
/// # Panics
/// If what was accepted means something else when all of it is written out and read again.
pub fn scenario(data: &[u8]) -> Result<(), String> {
    let text = std::str::from_utf8(data).map_err(|error| error.to_string())?;
    // The first line may be what a user would say with --set.
    let (set, rest) = text.split_once('\n').unwrap_or((text, ""));
    let _ = set.parse::<Set>().map(|set| Loaded::from_text("no-such-folder/set", rest, &[set]));
    let loaded = Loaded::from_text("no-such-folder/fuzz", text, &[]);
    let loaded = loaded.map_err(|error| error.to_string())?;
    // Wherever a layer finds a fault, there is something to say.
    let _ = loaded.complaint("device.power.bank", "too small; use more").to_string();
    let _ = loaded.complaint("run.cut.1.at", "too late").to_string();
    let written = serde_json::to_value(&loaded.scenario).map_err(|error| error.to_string())?;
    // As a record's configuration is read: another deserialiser would be compiled for every type of it.
    let (name, base) = ("fuzz".to_owned(), Base::Disk(PathBuf::new()));
    let origin =
        Origin { source: Arc::new(Source { name, text: String::new(), base }), span: 0..0 };
    let tree = saved::node(&written, &origin).expect("a scenario is written as a table");
    let mut again: Scenario = de::read(&tree).expect("a scenario reads what it has written");
    // Where files are is said by the place of the text, which this has none of.
    again.precondition.snapshot_file.clone_from(&loaded.scenario.precondition.snapshot_file);
    if let (Some(trace), Some(known)) = (&mut again.workload.trace, &loaded.scenario.workload.trace)
    {
        trace.source.clone_from(&known.source);
    }
    assert_eq!(again, loaded.scenario, "it was not written as it was read");
    Ok(())
}
