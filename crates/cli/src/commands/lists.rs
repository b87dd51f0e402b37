//! Facts of the program itself: policies, schemas, completions and manual pages.

use std::io::Write;
use std::path::Path;

use clap_complete::Shell;
use leyden_config::Scenario;

use super::{make_folder, print_json};
use crate::args::SchemaOf;
use crate::failure::Failure;
use crate::output::{atomic, table};

/// `leyden policies`.
pub(crate) fn policies(is_json: bool) -> Result<(), Failure> {
    let folders = leyden_config::policies();
    if is_json {
        return print_json(&folders);
    }
    let mut out = anstream::stdout().lock();
    let bold = anstyle::Style::new().bold();
    for (index, folder) in folders.into_iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{bold}{}{bold:#}  {}", folder.key, folder.summary)?;
        for (rank, policy) in folder.policies.iter().enumerate() {
            let default = if rank == 0 { " (default)" } else { "" };
            writeln!(out, "  {}{default}", policy.name)?;
            for line in table::wrap(&policy.doc, 90) {
                writeln!(out, "      {line}")?;
            }
            for parameter in &policy.parameters {
                let (key, value) = (&parameter.key, &parameter.default);
                writeln!(out, "      {key} = {value}  {}", parameter.doc)?;
            }
        }
    }
    Ok(())
}

/// `leyden schema`.
pub(crate) fn schema(of: SchemaOf) -> Result<(), Failure> {
    match of {
        SchemaOf::Scenario => print_json(&Scenario::schema()),
        SchemaOf::Record => print_json(&leyden_report::record_schema()),
    }
}

/// `leyden completions`.
pub(crate) fn completions(shell: Shell, mut command: clap::Command) -> Result<(), Failure> {
    let known = clap_complete::env::Shells::builtins();
    let mut script = Vec::new();
    match known.completer(&shell.to_string()) {
        // The script asks the program, which knows scenarios and keys.
        Some(completer) => {
            completer.write_registration("COMPLETE", "leyden", "leyden", "leyden", &mut script)?;
        }
        None => clap_complete::generate(shell, &mut command, "leyden", &mut script),
    }
    std::io::stdout().lock().write_all(&script)?;
    Ok(())
}

/// `leyden man`.
pub(crate) fn man(folder: &Path, mut command: clap::Command) -> Result<(), Failure> {
    make_folder(folder)?;
    command = command.disable_help_subcommand(true);
    command.build();
    page(folder, &command, "leyden")
}

/// The page of `command`, and those of the commands below it.
fn page(folder: &Path, command: &clap::Command, name: &str) -> Result<(), Failure> {
    let titled = command.clone().name(name.to_owned()).bin_name(name.replace('-', " "));
    let mut text = Vec::new();
    clap_mangen::Man::new(titled).render(&mut text)?;
    atomic::write(&folder.join(format!("{name}.1")), &text)?;
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        page(folder, below, &format!("{name}-{}", below.get_name()))?;
    }
    Ok(())
}
