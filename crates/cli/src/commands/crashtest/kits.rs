//! `leyden crashtest init`: scripts for well-known software.

use std::io::Write;
use std::path::Path;

use leyden_crashtest::{KITS, Kit};

use super::kept::failure;
use crate::failure::Failure;

pub(super) fn init(name: Option<&str>, folder: Option<&Path>) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    let Some(name) = name else {
        for kit in KITS {
            writeln!(out, "{:<12}{}", kit.name, kit.about)?;
        }
        return Ok(());
    };
    let kit = Kit::named(name).ok_or_else(|| {
        let names: Vec<&str> = KITS.iter().map(|kit| kit.name).collect();
        Failure::usage(anyhow::anyhow!(
            "there are no scripts for `{name}`\n  help: there are for {}",
            names.join(", ")
        ))
    })?;
    let folder = folder.unwrap_or(Path::new(name));
    kit.write(folder).map_err(failure)?;
    let folder = folder.display();
    writeln!(out, "{folder}: {}\nrun it: sh {folder}/run.sh", kit.about)?;
    Ok(())
}
