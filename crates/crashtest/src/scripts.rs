//! The scripts of a recorded run: one log for their output, and their promises for the recorder.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::Stdio;
use std::thread::{Builder, JoinHandle};

use leyden_device::FaultReport;

use crate::check::{self, Environment};
use crate::error::CrashError;
use crate::session::{Plan, Session};

/// The function that is called with each promise.
pub(crate) type Promised = Box<dyn Fn(&str) + Send>;

/// Scripts that share a log.
#[derive(Debug)]
pub(crate) struct Scripts<'a> {
    plan: &'a Plan,
    log: File,
    path: PathBuf,
}

impl<'a> Scripts<'a> {
    pub(crate) fn new(session: &Session, plan: &'a Plan) -> Result<Self, CrashError> {
        let path = session.work_log();
        let log = File::create(&path).map_err(CrashError::io(&path))?;
        Ok(Self { plan, log, path })
    }

    fn log(&self) -> Result<File, CrashError> {
        self.log.try_clone().map_err(CrashError::io(&self.path))
    }

    /// Runs a script to its end. `promised` is told of lines of its output that begin as the plan says.
    ///
    /// # Errors
    /// If it fails; with the last lines of the log.
    pub(crate) fn run(
        &self,
        name: &str,
        text: &str,
        environment: &Environment,
        promised: Option<Promised>,
    ) -> Result<(), CrashError> {
        let mut command = check::shell(text, self.plan, environment);
        command.stderr(self.log()?);
        let listened = self.plan.ack_prefix.clone().zip(promised);
        command.stdout(if listened.is_some() { Stdio::piped() } else { Stdio::from(self.log()?) });
        let mut child = command.spawn().map_err(CrashError::io("sh"))?;
        let reader = listened.map(|(prefix, promised)| {
            let stdout = child.stdout.take().expect("it was asked for");
            listen(BufReader::new(stdout), prefix, promised, self.log()?)
        });
        let reader = reader.transpose()?;
        let status = child.wait();
        check::end_group(&mut child);
        if let Some(reader) = reader {
            let _ = reader.join(); // it ends with the script's output
        }
        let status = status.map_err(CrashError::io("sh"))?;
        if status.success() {
            return Ok(());
        }
        let mut said = File::open(&self.path).map_err(CrashError::io(&self.path))?;
        let said = check::tail(&mut said);
        let last: Vec<_> = said.lines().rev().take(5).collect();
        let last: String = last.into_iter().rev().flat_map(|line| ["\n  | ", line]).collect();
        let silent = "\n  help: it said nothing; begin it with `set -x` to see its last command";
        let help = if last.is_empty() { silent } else { "" };
        Err(CrashError::Command(format!("the {name} script `{text}` fails: {status}{last}{help}")))
    }
}

/// A run with I/O errors: work that gives up is what is looked for, and errors that never came are none.
pub(crate) fn with_faults(
    plan: &Plan,
    worked: Result<(), CrashError>,
    rules: &[FaultReport],
) -> Result<(), CrashError> {
    if plan.faults.is_empty() {
        return worked;
    }
    if rules.iter().all(|rule| rule.failed == 0) {
        worked?;
        let said: Vec<_> =
            rules.iter().map(|rule| format!("{} ({} seen)", rule.rule, rule.seen)).collect();
        let what = if plan.files.is_some() { "call" } else { "command" };
        return Err(CrashError::Input(format!(
            "no {what} was made to fail: {}\n  help: a lower nth, or another kind of {what}",
            said.join("; ")
        )));
    }
    match worked {
        Err(CrashError::Command(_)) => Ok(()), // it stands in work.log
        other => other,
    }
}

/// Tells of lines that begin with `prefix`; all of them go to the log.
fn listen(
    lines: impl BufRead + Send + 'static,
    prefix: String,
    promised: Promised,
    mut log: File,
) -> Result<JoinHandle<()>, CrashError> {
    let read = move || {
        for line in lines.split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            if let Some(rest) = line.strip_prefix(&prefix) {
                promised(rest.trim());
            }
            let _ = writeln!(log, "{line}"); // a full disk stops no work
        }
    };
    Builder::new().name("acks".to_owned()).spawn(read).map_err(CrashError::io("a thread"))
}
