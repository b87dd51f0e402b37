//! A state as a raw file: what another recording may begin with.

use std::os::unix::fs::FileExt;
use std::path::Path;

use leyden_files::NewFile;

use crate::error::CrashError;
use crate::state::{Image, State};
use crate::timeline::Timeline;

/// Writes what the device holds in a state to the new file `to`.
///
/// # Errors
/// If it is there already, or cannot be written.
pub fn write_raw(timeline: &Timeline, state: &State, to: &Path) -> Result<(), CrashError> {
    let io = |error| CrashError::Io(to.to_owned(), error);
    let file = NewFile::create_new(to)?;
    let atom_bytes = u64::from(timeline.atom_bytes());
    file.as_file().set_len(u64::from(timeline.atoms()) * atom_bytes).map_err(io)?;
    let image = Image::new(timeline, state);
    for atom in 0..timeline.atoms() {
        let bytes = image.atom(atom);
        if bytes.iter().any(|&byte| byte != 0) {
            file.as_file().write_all_at(bytes, u64::from(atom) * atom_bytes).map_err(io)?;
        }
    }
    file.commit()?;
    Ok(())
}
