//! The functions of the fuzz targets and of the short fuzz test: any text as a seed file or a
//! campaign's state.
//!
//! **Invariants**: none may panic but for a broken promise.

pub use leyden_host::zoned_block::fuzz::seed as tables_seed;
pub use leyden_host::zoned_block::superblock::fuzz::seeds as superblock_seeds;
use std::path::Path;

use crate::campaign::state::{Begun, State};
use crate::options::DRAW_VERSION;
use crate::{Case, SeedFile, Subject};

/// Reads `data` as a seed file; an error's message if it is refused.
///
/// # Panics
/// If what was accepted is not the same after writing and reading it.
pub fn seed_file(data: &[u8]) -> Result<(), String> {
    let text = std::str::from_utf8(data).map_err(|error| error.to_string())?;
    let path = Path::new("(fuzz)");
    let file = SeedFile::parse(path, text).map_err(|error| error.to_string())?;
    if let Case::Conventional(options) = &file.case {
        assert!(options.rounds.iter().all(|round| round.kept() <= round.commands));
    }
    let again = SeedFile::parse(path, &file.to_json());
    assert_eq!(again.ok().as_ref(), Some(&file), "it was not written as it was read");
    Ok(())
}

/// Reads `data` as a state of a campaign from seed 0 on; an error's message if it is refused.
///
/// # Panics
/// If a campaign could not go on from what was accepted.
pub fn campaign_state(data: &[u8]) -> Result<(), String> {
    let mut value: serde_json::Value =
        serde_json::from_slice(data).map_err(|error| error.to_string())?;
    // Another version's is refused whatever it holds.
    if let Some(table) = value.as_object_mut() {
        table.insert("program".to_owned(), env!("CARGO_PKG_VERSION").into());
        table.insert("draw_version".to_owned(), DRAW_VERSION.into());
    }
    let text = value.to_string();
    let begun = Begun { subject: Subject::Conventional, start: 0, guided: false };
    let state =
        State::parse(Path::new("(fuzz)"), &text, begun).map_err(|error| error.to_string())?;
    let summary = state.summary();
    assert_eq!(summary.seeds, state.progress(u64::MAX).done);
    let few: Vec<u64> = state.missing(u64::MAX).take(3).collect();
    assert!(few.is_sorted());
    Ok(())
}
