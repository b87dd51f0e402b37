//! What can go wrong around a crash test: none of it is a verdict about the software.

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
    /// What was asked for makes no sense, or a file is not what it should be.
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
    /// What a worker's machine could not do.
    #[error("{0}")]
    Machine(String),
    /// What runs the states has ended, or says something else than it should.
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

/// What a program does, well or not.
pub(crate) fn output(command: &mut Command) -> Result<Output, CrashError> {
    command.output().map_err(|error| {
        let program = command.get_program().to_string_lossy();
        CrashError::Lacking(format!("cannot run {program}: {error}\n  help: install it"))
    })
}

/// What a program has to say; what it complains of, if it fails.
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
