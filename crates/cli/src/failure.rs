//! Failures that end a command early, and their exit codes.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

use leyden_config::{Diagnostic, LoadError};

use crate::output::escape::shown;

/// The run failed, or content was not what it must be.
pub(crate) const FAILED: u8 = 1;
/// Bad usage, input or configuration.
pub(crate) const USAGE: u8 = 2;
/// A result could not be written, or a file not read on.
pub(crate) const IO: u8 = 3;
/// A drive wore out: its flash had no room left for a write. Results are kept.
pub(crate) const WORN_OUT: u8 = 4;
/// A run ended before anything was measured. Results are kept.
pub(crate) const NOTHING_MEASURED: u8 = 5;
/// A crash test's check passes a drive that ignores all flushes.
#[cfg(feature = "crashtest")]
pub(crate) const CHECK_BLIND: u8 = 6;
/// A crash test's check fails where nothing is lost.
#[cfg(feature = "crashtest")]
pub(crate) const CHECK_FAILS: u8 = 7;
/// A crash test tried fewer states than were required.
#[cfg(feature = "crashtest")]
pub(crate) const TOO_FEW: u8 = 8;
/// Leyden itself failed, and nothing was found out: EX_SOFTWARE of sysexits.h.
#[cfg(feature = "crashtest")]
pub(crate) const INTERNAL: u8 = 70;
/// Interrupted: 128 + SIGINT, as shells have it.
pub(crate) const INTERRUPTED: u8 = 130;

/// A failure that ended a command early. Its message may have several lines: the problem, the
/// place, the remedy.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    /// Nothing if it was said where results are.
    error: Option<anyhow::Error>,
}

impl Failure {
    pub(crate) fn failed(error: impl Into<anyhow::Error>) -> Self {
        let (code, error) = (FAILED, error.into());
        Self { code, error: Some(error) }
    }

    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        let (code, error) = (USAGE, error.into());
        Self { code, error: Some(error) }
    }

    pub(crate) fn io(error: impl Into<anyhow::Error>) -> Self {
        let (code, error) = (IO, error.into());
        Self { code, error: Some(error) }
    }

    /// A file could not be written, or not read on.
    #[cfg(feature = "crashtest")]
    pub(crate) const fn is_io(&self) -> bool {
        self.code == IO
    }

    pub(crate) fn worn_out(error: impl Into<anyhow::Error>) -> Self {
        let (code, error) = (WORN_OUT, error.into());
        Self { code, error: Some(error) }
    }

    pub(crate) fn nothing_measured(error: impl Into<anyhow::Error>) -> Self {
        let (code, error) = (NOTHING_MEASURED, error.into());
        Self { code, error: Some(error) }
    }

    /// A verdict, which stands in the results: it is no error of the command.
    #[cfg(feature = "crashtest")]
    pub(crate) const fn verdict(code: u8) -> Self {
        Self { code, error: None }
    }

    /// Nothing that the user has done.
    #[cfg(feature = "crashtest")]
    pub(crate) fn internal(error: impl Into<anyhow::Error>) -> Self {
        let (code, error) = (INTERNAL, error.into());
        Self { code, error: Some(error) }
    }

    /// After Ctrl-C; `kept` says what became of the results so far.
    pub(crate) fn interrupted(kept: impl fmt::Display) -> Self {
        let error = anyhow::anyhow!("interrupted: {kept}");
        let code = INTERRUPTED;
        Self { code, error: Some(error) }
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        Self::usage(error)
    }
}

impl From<Diagnostic> for Failure {
    fn from(diagnostic: Diagnostic) -> Self {
        Self::usage(diagnostic)
    }
}

/// Failures of writing to standard output; a closed pipe is nobody's failure (see [`report`]).
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::io(error)
    }
}

/// Tells the user, and yields the exit code.
pub(crate) fn report(failure: &Failure) -> ExitCode {
    let closed_pipe = |cause: &(dyn std::error::Error + 'static)| {
        cause
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    };
    let Some(error) = &failure.error else { return ExitCode::from(failure.code) };
    if error.chain().any(closed_pipe) {
        return ExitCode::SUCCESS; // the reader has had enough: `leyden policies | head`
    }
    let style = anstyle::AnsiColor::Red.on_default().bold();
    // Causes go in front of the place and remedy, which follow the first line.
    let message = error.to_string();
    let (first, rest) = match message.split_once('\n') {
        Some((first, rest)) => (first.to_owned(), format!("\n{rest}")),
        None => (message, String::new()),
    };
    let mut line = first;
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !line.contains(&cause) {
            line.push_str(": ");
            line.push_str(&cause);
        }
    }
    let text = shown(&with_depth(&format!("{line}{rest}")), true);
    // Standard error may be full, or closed.
    let _ = writeln!(anstream::stderr(), "{style}error{style:#}: {text}");
    ExitCode::from(failure.code)
}

/// The limit of `serde_json`, which says that there is one, and not which.
fn with_depth(text: &str) -> String {
    text.replace("recursion limit exceeded", "JSON nests deeper than 127 levels")
}

/// Says of a flag that another command has which that is, in place of how to pass it as a value.
fn belongs_elsewhere(error: &mut clap::Error) {
    use clap::CommandFactory;
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return };
    let Some(name) = flag.strip_prefix("--").and_then(|name| name.split('=').next()) else {
        return;
    };
    if error.kind() != ErrorKind::UnknownArgument || error.get(ContextKind::SuggestedArg).is_some()
    {
        return; // a flag of this command is near
    }
    let args = crate::args::Args::command();
    let has =
        |command: &&clap::Command| command.get_arguments().any(|it| it.get_long() == Some(name));
    let owners = args.get_subcommands().filter(has);
    let owners: Vec<_> = owners.map(|it| format!("`leyden {}`", it.get_name())).collect();
    if !owners.is_empty() {
        let tip = format!("'--{name}' is a flag of {}", owners.join(", "));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
}

/// Prints clap's message: help and version are no errors.
pub(crate) fn of_clap(mut error: clap::Error) -> ExitCode {
    belongs_elsewhere(&mut error);
    let code = if error.use_stderr() { USAGE } else { 0 };
    match error.print() {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => ExitCode::from(IO),
        _ => ExitCode::from(code),
    }
}
