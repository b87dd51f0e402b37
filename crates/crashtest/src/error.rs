//! Errors around a crash test: none of them is a verdict about the software.

use std::path::PathBuf;
use std::process::{Command, Output};

use leyden_files::WriteError;
use leyden_image::ImageError;
use leyden_image::recording::{RecordingError, ReplayError};
use leyden_serve::ServeError;
use thiserror::Error;

/// Why a crash test could not be made.
#[derive(Debug, Error)]
pub enum CrashError {
    /// The machine lacks something; the text says what, and what to do.
    #[error("{0}")]
    Lacking(String),
    /// A command of the user's, or one that is needed, does not do what it should.
    #[error("{0}")]
    Command(String),
    /// An impossible request, or an unexpected file.
    #[error("{0}")]
    Input(String),
    /// The drive cannot be made.
    #[error("the drive cannot be made")]
    Image(#[from] ImageError),
    /// The drive cannot be served.
    #[error("the drive cannot be served")]
    Serve(#[from] ServeError),
    /// The recording cannot be used.
    #[error("the recording cannot be used")]
    Recording(#[from] RecordingError),
    /// The recorded drive does something else when it is run again.
    #[error("the recording cannot be run again")]
    Replay(#[from] ReplayError),
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A file cannot be read or made.
    #[error("{}", .0.display())]
    Io(PathBuf, #[source] std::io::Error),
    /// A failure of a worker's machine.
    #[error("{0}")]
    Machine(String),
    /// The process that runs states has ended, or gave an unexpected answer.
    #[error("the process that runs the states has failed: {0}")]
    Worker(String),
    /// Ctrl-C.
    #[error("interrupted")]
    Interrupted,
}

impl CrashError {
    pub(crate) fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |error| Self::Io(path, error)
    }
}

/// A program's output and exit code, whether it fails or not.
pub(crate) fn output(command: &mut Command) -> Result<Output, CrashError> {
    command.output().map_err(|error| {
        let program = command.get_program().to_string_lossy();
        CrashError::Lacking(format!("cannot run {program}: {error}\n  help: install it"))
    })
}

/// A program's output; its error output if it fails.
pub(crate) fn said(command: &mut Command) -> Result<String, CrashError> {
    let output = output(command)?;
    if !output.status.success() {
        let program = command.get_program().to_string_lossy();
        let complaint = String::from_utf8_lossy(&output.stderr);
        let args: Vec<_> = command.get_args().map(|arg| arg.to_string_lossy()).collect();
        let problem = format!("{program} {}: {}", args.join(" "), complaint.trim());
        return Err(CrashError::Command(problem));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
