//! The `leyden` command as a library: [`main`] is all of it, and [`policy`] what a crate of policies needs.
//!
//! **What lives here**: arguments, tables, progress, files and exit codes. **What doesn't**:
//! anything that decides a result; that is `leyden-run`'s.
//!
//! **Invariants**
//! - With `--json`, standard output holds JSON and nothing else; progress and notes go to standard
//!   error: a bar on a terminal, a line a minute elsewhere.
//! - A result file appears whole or not at all.
//! - Whatever goes wrong says what, where and what to do, and ends with a documented exit code.

mod args;
mod commands;
mod complete;
mod failure;
mod help;
mod output;
pub mod policy;
mod reference;
mod signals;
mod version;

use std::process::ExitCode;

use clap::FromArgMatches;

use args::{Args, Command};
use failure::Failure;
use output::progress;

/// The whole command: reads its arguments, does what they say, and returns the exit code. Policies that were
/// registered before ([`policy`]) are known to it everywhere.
pub fn main() -> ExitCode {
    complete::answer();
    let args =
        match help::command().try_get_matches().and_then(|found| Args::from_arg_matches(&found)) {
            Ok(args) => args,
            Err(error) => return failure::of_clap(error),
        };
    progress::be_quiet(args.quiet);
    let signals = match signals::install() {
        Ok(signals) => signals,
        Err(error) => return failure::report(&Failure::io(error)),
    };
    let outcome = match args.command {
        Command::Run(run) => commands::run::main(&run, signals.watched()),
        Command::Compare(compare) => commands::compare::main(&compare, signals.watched()),
        Command::Sweep(args) => commands::sweep::main(&args, signals.watched()),
        Command::Cache(command) => commands::cache::main(&command),
        Command::Reproduce(args) => commands::reproduce::main(&args, signals.watched()),
        Command::Lifetime(args) => commands::lifetime::main(&args, signals.watched()),
        Command::Timeline(args) => commands::timeline::main(&args, signals.watched()),
        Command::Size(size) => commands::size::main(&size, signals.watched()),
        Command::Trace(command) => commands::trace::main(&command, signals.watched()),
        Command::Torture(torture) => commands::torture::main(&torture, signals.watched()),
        #[cfg(feature = "crashtest")]
        Command::Crashtest(args) => commands::crashtest::main(&args, signals.watched()),
        Command::Check(check) => commands::check::main(&check),
        Command::Policies { json } => commands::lists::policies(json),
        Command::Schema { of } => commands::lists::schema(of),
        #[cfg(feature = "serve")]
        Command::Fs { args } => commands::fs::main(&args),
        #[cfg(feature = "serve")]
        Command::Image(command) => commands::image::main(&command),
        #[cfg(feature = "serve")]
        Command::Serve(args) => commands::serve::main(&args, &signals),
        #[cfg(feature = "serve")]
        Command::Mount(args) => commands::mount::main(&args, &signals),
        #[cfg(feature = "serve")]
        Command::Recording(command) => commands::recording::main(&command),
        #[cfg(feature = "serve")]
        Command::Cut(args) => commands::serve::cut(&args),
        #[cfg(feature = "serve")]
        Command::Restore(args) => commands::serve::restore(&args),
        #[cfg(feature = "serve")]
        Command::Fault(args) => commands::serve::fault(&args),
        #[cfg(feature = "serve")]
        Command::Status(args) => commands::serve::status(&args),
        Command::Report(report) => commands::report(&report),
        #[cfg(feature = "plot")]
        Command::Plot(plot) => commands::plot::plot(&plot),
        Command::Completions { shell } => commands::lists::completions(shell, help::command()),
        Command::Man { folder } => commands::lists::man(&folder, help::command()),
        Command::Reference { folder } => reference::write(&folder),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure::report(&failure),
    }
}
