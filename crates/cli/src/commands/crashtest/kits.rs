//! Scripts for well-known software, of `leyden crashtest init` and `--db`, or the user's own.

use std::io::Write;
use std::path::{Path, PathBuf};

use leyden_crashtest::{KITS, Kit, KitScripts, Session};
use leyden_sim::Bytes;

use super::kept::failure;
use crate::args::crashtest::RecordArgs;
use crate::failure::Failure;

/// Room on a drive for scripts of the user's.
const SIZE_BYTES: u64 = 64 << 20;
/// The folder of a session for the scripts of a kit.
const FOLDER: &str = "db";

/// Scripts to be recorded, and what they need.
pub(super) struct Scripts {
    pub(super) setup: Option<String>,
    pub(super) work: String,
    pub(super) check: String,
    pub(super) is_server: bool,
    pub(super) cwd: PathBuf,
    pub(super) drives: u32,
}

/// The kit of `--db`, if this machine has what it needs.
pub(super) fn wanted(args: &RecordArgs) -> Result<Option<&'static Kit>, Failure> {
    let Some(name) = &args.db else { return Ok(None) };
    let kit = named(name)?;
    // Faults of the command are told before what this machine lacks.
    if kit.scripts().drives > 1 && args.rules().is_none() {
        return Err(Failure::usage(anyhow::anyhow!(
            "{name} has several members, and this is one drive\n  help: leave the drive out"
        )));
    }
    if let Some(program) = kit.lacks() {
        return Err(Failure::usage(anyhow::anyhow!(
            "skipped, `{program}` is not installed: {}",
            kit.about
        )));
    }
    Ok(Some(kit))
}

/// Room on the drive.
pub(super) fn size_bytes(args: &RecordArgs, kit: Option<&Kit>) -> u64 {
    let of_kit = || kit.map(|kit| kit.scripts().size.parse().map(Bytes::get));
    let own = || of_kit().map_or(SIZE_BYTES, |size| size.expect("kits have sizes"));
    args.size.map_or_else(own, Bytes::get)
}

/// The scripts of `kit`, written into the session and built there, or those of the command line.
pub(super) fn scripts(
    args: &RecordArgs,
    kit: Option<&Kit>,
    session: &Session,
) -> Result<Scripts, Failure> {
    let Some(kit) = kit else {
        return Ok(Scripts {
            setup: args.setup.clone(),
            work: args.work().to_owned(),
            check: args.check().to_owned(),
            is_server: args.checked.check_server,
            cwd: std::env::current_dir().map_err(Failure::io)?,
            drives: args.files.drives.unwrap_or(1),
        });
    };
    let cwd = session.folder().join(FOLDER);
    if !cwd.exists() {
        kit.write(&cwd).map_err(failure)?;
    }
    kit.build(&cwd).map_err(failure)?;
    let KitScripts { setup, work, check, is_server, drives, .. } = kit.scripts();
    Ok(Scripts {
        setup: Some(setup),
        work,
        check,
        is_server,
        cwd,
        drives: args.files.drives.unwrap_or(drives),
    })
}

fn named(name: &str) -> Result<&'static Kit, Failure> {
    Kit::named(name).ok_or_else(|| {
        let names: Vec<&str> = KITS.iter().map(|kit| kit.name).collect();
        Failure::usage(anyhow::anyhow!(
            "there are no scripts for `{name}`\n  help: there are for {}",
            names.join(", ")
        ))
    })
}

pub(super) fn init(name: Option<&str>, folder: Option<&Path>) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    let Some(name) = name else {
        for kit in KITS {
            writeln!(out, "{:<12}{}", kit.name, kit.about)?;
        }
        return Ok(());
    };
    let kit = named(name)?;
    let folder = folder.unwrap_or(Path::new(name));
    kit.write(folder).map_err(failure)?;
    let folder = folder.display();
    writeln!(out, "{folder}: {}\nrun it: sh {folder}/run.sh", kit.about)?;
    Ok(())
}
