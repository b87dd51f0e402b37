//! `leyden cache`, and the cache that commands share.

use std::path::PathBuf;

use leyden_run::DriveCache;
use serde_json::json;

use super::print_json;
use crate::args::CacheCommand;
use crate::failure::Failure;
use crate::output::table::Table;
use crate::version;
use leyden_report::format::{bytes, count};

/// The bound of the cache.
const MOST_BYTES: u64 = 4 << 30;

pub(crate) fn main(command: &CacheCommand) -> Result<(), Failure> {
    let Some(cache) = drives(false) else {
        return Err(Failure::usage(anyhow::anyhow!(
            "there is no home folder, so there is no cache\n  help: set HOME or XDG_CACHE_HOME"
        )));
    };
    match command {
        CacheCommand::Status { json } => status(&cache, *json),
        CacheCommand::Clear => {
            let removed = cache.clear()?;
            // Files that sweeps of the Python package brought here.
            if let Some(inputs) = folder().map(|folder| folder.join("inputs"))
                && inputs.is_dir()
            {
                std::fs::remove_dir_all(&inputs)?;
            }
            let (drives, size) = (count(removed.drives), bytes(removed.bytes as f64));
            anstream::println!("removed {drives} drives, {size}");
            Ok(())
        }
    }
}

fn status(cache: &DriveCache, is_json: bool) -> Result<(), Failure> {
    let used = cache.used();
    if is_json {
        return print_json(&json!({
            "folder": cache.folder(),
            "drives": used.drives,
            "bytes": used.bytes,
            "most_bytes": cache.most_bytes(),
        }));
    }
    let mut table = Table::default();
    table.row(["folder", &cache.folder().display().to_string()]);
    table.row(["preconditioned drives", &count(used.drives)]);
    table.row(["size", &bytes(used.bytes as f64)]);
    table.row(["at most", &bytes(cache.most_bytes() as f64)]);
    table.write(&mut anstream::stdout().lock())?;
    Ok(())
}

/// The cache of preconditioned drives; none if it is not wanted, or without a home folder.
pub(crate) fn drives(is_unwanted: bool) -> Option<DriveCache> {
    let folder = folder().filter(|_| !is_unwanted)?;
    Some(DriveCache::new(folder.join("drives"), &build(), MOST_BYTES))
}

/// Where Leyden keeps what can be made again: the cache of the XDG base directories.
#[expect(clippy::disallowed_methods, reason = "an edge: where results are kept changes none")]
pub(crate) fn folder() -> Option<PathBuf> {
    let absolute = |name| {
        let path = std::env::var(name).ok().map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    };
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .map(|cache| cache.join("leyden"))
}

/// The name of this build, which no other has. A commit does, but not where files differ from it: there the program's own file
/// does.
fn build() -> String {
    // Profiles differ in speed alone: the Python package of the same commit shares the drives.
    let build = version::build();
    if !version::COMMIT.is_empty() && !version::COMMIT.ends_with('+') {
        return build;
    }
    let program = std::env::current_exe().and_then(std::fs::metadata);
    let made = program.and_then(|file| Ok((file.len(), file.modified()?)));
    format!("{build} {:?}", made.ok())
}
