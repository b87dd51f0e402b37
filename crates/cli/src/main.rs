//! The `leyden` command.
//!
//! **What lives here**: arguments, tables, progress, files and exit codes. **What doesn't**:
//! anything that decides a result; that is `leyden-run`'s.
//!
//! **Invariants**
//! - With `--json`, standard output holds JSON and nothing else; everything for people to watch
//!   goes to standard error, and only to a terminal.
//! - A result file appears whole or not at all.
//! - Whatever goes wrong says what, where and what to do, and ends with a documented exit code.

mod args;
mod commands;
mod failure;
mod help;
mod output;
mod reference;
mod signals;
mod version;

use std::process::ExitCode;

use clap::FromArgMatches;

use args::{Args, Command};
use failure::Failure;
use output::progress;

fn main() -> ExitCode {
    let args =
        match help::command().try_get_matches().and_then(|found| Args::from_arg_matches(&found)) {
            Ok(args) => args,
            Err(error) => return failure::of_clap(error),
        };
    progress::be_quiet(args.quiet);
    let cancel = match signals::install() {
        Ok(cancel) => cancel,
        Err(error) => return failure::report(&Failure::io(error)),
    };
    let outcome = match args.command {
        Command::Run(run) => commands::run::main(&run, &cancel),
        Command::Compare(compare) => commands::compare::main(&compare, &cancel),
        Command::Reproduce(args) => commands::reproduce::main(&args, &cancel),
        Command::Lifetime(args) => commands::lifetime::main(&args, &cancel),
        Command::Timeline(args) => commands::timeline::main(&args, &cancel),
        Command::Size(size) => commands::size::main(&size, &cancel),
        Command::Trace(command) => commands::trace::main(&command, &cancel),
        Command::Torture(torture) => commands::torture::main(&torture, &cancel),
        #[cfg(feature = "crashtest")]
        Command::Crashtest(args) => commands::crashtest::main(&args, &cancel),
        Command::Check(check) => commands::check::main(&check),
        Command::Policies { json } => commands::lists::policies(json),
        Command::Schema { of } => commands::lists::schema(of),
        #[cfg(feature = "serve")]
        Command::Fs { args } => commands::fs::main(&args),
        #[cfg(feature = "serve")]
        Command::Image(command) => commands::image::main(&command),
        #[cfg(feature = "serve")]
        Command::Serve(args) => commands::serve::main(&args, &cancel),
        #[cfg(feature = "serve")]
        Command::Mount(args) => commands::mount::main(&args, &cancel),
        #[cfg(feature = "serve")]
        Command::Recording(command) => commands::recording::main(&command),
        #[cfg(feature = "serve")]
        Command::Cut(args) => commands::serve::cut(&args),
        #[cfg(feature = "serve")]
        Command::Restore(args) => commands::serve::restore(&args),
        #[cfg(feature = "serve")]
        Command::Status(args) => commands::serve::status(&args),
        Command::Report(report) => commands::report(&report),
        Command::Completions { shell } => commands::lists::completions(shell, help::command()),
        Command::Man { folder } => commands::lists::man(&folder, help::command()),
        Command::Reference { folder } => reference::write(&folder),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure::report(&failure),
    }
}
