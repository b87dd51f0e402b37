//! `leyden fs`: the file system that RocksDB keeps on an image. What does it is `leyden-fs`, a program of the plugin's
//! (`integrations/rocksdb`): it is C++, and linked with RocksDB, which this one is not.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, anyhow};

use super::programs;
use crate::failure::Failure;

/// The program's name.
const TOOL: &str = "leyden-fs";
const VARIABLE: &str = "LEYDEN_FS";

/// Becomes that program: its exit code is this one's.
pub(crate) fn main(args: &[OsString]) -> Result<(), Failure> {
    if let Some(named) = std::env::var_os(VARIABLE)
        && !Path::new(&named).is_file()
    {
        let problem = format!("{VARIABLE} names {}, which is no file", named.display());
        let help = "name the program leyden-fs, or leave the variable out";
        return Err(Failure::usage(anyhow!("{problem}\n  help: {help}")));
    }
    let found = programs::file(TOOL, VARIABLE, &[]).or_else(|| programs::in_path(TOOL));
    let Some(tool) = found else {
        let problem = format!("{TOOL} is neither beside this program nor in PATH");
        let help = "build integrations/rocksdb (docs/rocksdb.md says how), and put its build folder in PATH, or name \
                    the program with LEYDEN_FS";
        return Err(Failure::usage(anyhow!("{problem}\n  help: {help}")));
    };
    let error = Command::new(&tool).args(args).exec();
    Err(error).with_context(|| format!("cannot run {}", tool.display())).map_err(Failure::failed)
}
