//! Commands of the user's: with a time limit, their output kept, nothing of them left.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::error::CrashError;
use crate::session::{Plan, SessionPaths};
use crate::verdict::{Outcome, Verdict, says_lost};

/// Bytes kept of the end of a check's output.
const SAID_MOST: u64 = 4_096;
/// Exit codes of `sh`: the command is not there, or is no program.
const NOT_FOUND: [i32; 2] = [126, 127];
/// Exit code: no opinion, as in automake's tests.
const SKIP: i32 = 77;

/// The variables that a script finds.
pub(crate) type Environment = Vec<(&'static str, OsString)>;

/// A shell command with these variables, in a process group of its own.
pub(crate) fn shell(text: &str, plan: &Plan, environment: &Environment) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", text]).current_dir(&plan.cwd).stdin(Stdio::null()).process_group(0);
    command.envs(environment.iter().map(|(name, value)| (*name, value)));
    command
}

/// Ends the group of a child.
pub(crate) fn end_group(child: &mut Child) {
    let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL); // it may have ended
    let _ = child.wait();
}

/// Waits for a child for so long; `None` if it did not end.
pub(crate) fn wait(child: &mut Child, most: Duration) -> std::io::Result<Option<ExitStatus>> {
    // Sleeps that begin short: most checks take a few milliseconds.
    let (mut waited, mut pause) = (Duration::ZERO, Duration::from_micros(100));
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if waited >= most {
            return Ok(None);
        }
        std::thread::sleep(pause);
        waited += pause;
        pause = (pause * 5 / 4).min(Duration::from_millis(20));
    }
}

/// The end of a file, as text.
pub(crate) fn tail(file: &mut File) -> String {
    let length = file.seek(SeekFrom::End(0)).unwrap_or(0);
    let mut bytes = Vec::new();
    let _ = file.seek(SeekFrom::Start(length.saturating_sub(SAID_MOST)));
    let _ = file.read_to_end(&mut bytes); // what cannot be read was not said
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

/// Runs the check once in a process of its own.
pub(crate) fn once(
    plan: &Plan,
    room: &SessionPaths,
    environment: &Environment,
) -> Result<Outcome, CrashError> {
    let path = room.output();
    let io = |error| CrashError::Io(path.clone(), error);
    let mut output = File::options()
        .create(true)
        .truncate(true)
        .read(true)
        .write(true)
        .open(&path)
        .map_err(io)?;
    let mut command = shell(&plan.check, plan, environment);
    command.stdout(output.try_clone().map_err(io)?).stderr(output.try_clone().map_err(io)?);
    let mut child = command.spawn().map_err(CrashError::io("sh"))?;
    let ended = wait(&mut child, Duration::from_millis(plan.timeout_ms));
    end_group(&mut child);
    let said = tail(&mut output);
    let verdict = match ended.map_err(CrashError::io("sh"))? {
        None => Verdict::Hung,
        Some(status) => verdict_of(status, &said, &plan.check)?,
    };
    Ok(Outcome { verdict, said })
}

fn verdict_of(status: ExitStatus, said: &str, check: &str) -> Result<Verdict, CrashError> {
    Ok(match status.code() {
        Some(0) => Verdict::Held,
        Some(SKIP) => Verdict::Skipped,
        Some(code) if NOT_FOUND.contains(&code) => {
            return Err(CrashError::Command(format!(
                "the check `{check}` cannot be run: {said}\n  help: it runs in the folder where the run was \
                 recorded"
            )));
        }
        // `sh` says so of a program that was killed.
        Some(code) if code > 128 => Verdict::Crashed,
        Some(_) if has_lost(said) => Verdict::Lost,
        None if status.signal().is_some() => Verdict::Crashed,
        Some(_) | None => Verdict::Failed,
    })
}

fn has_lost(said: &str) -> bool {
    said.lines().any(says_lost)
}

/// A check that stays: it reads a line for each state, and answers with one.
#[derive(Debug)]
pub(crate) struct CheckServer {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
}

impl CheckServer {
    pub(crate) fn start(
        plan: &Plan,
        room: &SessionPaths,
        environment: &Environment,
    ) -> Result<Self, CrashError> {
        let path = room.output();
        let output = File::create(&path).map_err(CrashError::io(&path))?;
        let mut command = shell(&plan.check, plan, environment);
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(output).spawn();
        let mut child = spawned.map_err(CrashError::io("sh"))?;
        let stdin = child.stdin.take().expect("it was asked for");
        let stdout = BufReader::new(child.stdout.take().expect("it was asked for"));
        let (to, lines) = channel();
        let lines_of = |line: Vec<u8>| String::from_utf8_lossy(&line).into_owned();
        let read = move || {
            let mut all = stdout.split(b'\n').map_while(Result::ok);
            all.try_for_each(|line| to.send(lines_of(line)))
        };
        std::thread::Builder::new()
            .name("check".to_owned())
            .spawn(read)
            .map_err(CrashError::io("a thread"))?;
        Ok(Self { child, stdin, lines })
    }

    /// The group of its processes, which stay.
    pub(crate) fn group(&self) -> u32 {
        self.child.id()
    }

    /// The verdict on the state, and whether the check's process can take another question; if not,
    /// it must be started again. `output` is where its standard error goes.
    pub(crate) fn ask(&mut self, plan: &Plan, output: &Path) -> (Outcome, bool) {
        if self.stdin.write_all(b"check\n").and_then(|()| self.stdin.flush()).is_err() {
            return (Self::died(output), false);
        }
        match self.lines.recv_timeout(Duration::from_millis(plan.timeout_ms)) {
            Ok(line) => (outcome_of(&line), true),
            Err(RecvTimeoutError::Timeout) => (Outcome::new(Verdict::Hung, ""), false),
            Err(RecvTimeoutError::Disconnected) => (Self::died(output), false),
        }
    }

    fn died(output: &Path) -> Outcome {
        let said = File::open(output).map(|mut file| tail(&mut file)).unwrap_or_default();
        Outcome::new(Verdict::Crashed, said)
    }
}

impl Drop for CheckServer {
    fn drop(&mut self) {
        end_group(&mut self.child);
    }
}

/// `ok`, `skip`, `lost ...`, or anything else: what is wrong.
fn outcome_of(line: &str) -> Outcome {
    let verdict = match line.trim() {
        "ok" => Verdict::Held,
        "skip" => Verdict::Skipped,
        line if says_lost(line) => Verdict::Lost,
        _ => Verdict::Failed,
    };
    let said = if verdict.is_broken() { line.trim() } else { "" };
    Outcome::new(verdict, said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_a_check_server() {
        let verdict = |line: &str| outcome_of(line).verdict;
        assert_eq!(verdict("ok\r"), Verdict::Held);
        assert_eq!(verdict("skip"), Verdict::Skipped);
        assert_eq!(verdict("lost 17"), Verdict::Lost);
        assert_eq!(verdict("lost: 17"), Verdict::Lost);
        assert_eq!(verdict("okay"), Verdict::Failed);
    }

    #[test]
    fn a_child_that_does_not_end_is_given_up_and_ended() {
        let mut child =
            Command::new("sh").args(["-c", "sleep 60"]).process_group(0).spawn().unwrap();
        assert_eq!(wait(&mut child, Duration::from_millis(20)).unwrap(), None);
        end_group(&mut child);
        assert!(child.try_wait().unwrap().is_some());
    }
}
