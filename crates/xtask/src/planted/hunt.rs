//! The hunt: each planted bug alone, until something finds it.

use std::io::{self, Write};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::copy::Programs;
use super::list::{Bug, Finder};

/// A program that takes longer counts as an endless loop: found.
const TOO_LONG: Duration = Duration::from_mins(10);
/// How often a program is looked at.
const GLANCE: Duration = Duration::from_millis(5);
/// Seeds of the drive as it is that are run at a time.
const SHARE: u64 = 125;

/// One thing to run.
enum Task<'a> {
    /// A bug, and what has to find it.
    Bug(&'a Bug, &'a [Finder]),
    /// Seeds from the first on that must pass without any bug, or a test.
    AsItIs(Finder, u64),
}

/// Runs everything that is asked for. The exit code: 0 if each bug was found, and nothing without one.
pub(super) fn all(bugs: &[&Bug], programs: &Programs, tests: bool, quiet: bool) -> io::Result<u8> {
    let tasks = tasks(bugs, tests);
    let (next, missed) = (AtomicUsize::new(0), Mutex::new(0_u32));
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || -> io::Result<()> {
        while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (line, is_well) = run(task, programs)?;
            if !is_well {
                *missed.lock().unwrap_or_else(std::sync::PoisonError::into_inner) += 1;
            }
            if !is_well || !quiet {
                writeln!(io::stdout(), "{line}")?;
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| {
            worker.join().unwrap_or_else(|_| Err(io::Error::other("a thread of the hunt panicked")))
        })
    })?;
    let missed = missed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let hunts = tasks.iter().filter(|task| matches!(task, Task::Bug(..))).count();
    writeln!(io::stdout(), "planted: {} bugs, {hunts} hunts, failed: {missed}", bugs.len())?;
    Ok(u8::from(missed > 0))
}

/// Each hunt, and before it what must pass without a bug.
fn tasks<'a>(bugs: &[&'a Bug], tests: bool) -> Vec<Task<'a>> {
    let is_asked = |finder: &Finder| tests || finder.is_torture();
    let hunts: Vec<_> = bugs
        .iter()
        .flat_map(|&bug| bug.found_by.iter().map(move |finders| (bug, finders.as_slice())))
        .filter(|(_, finders)| finders.iter().all(is_asked))
        .collect();
    let mut tasks = Vec::new();
    let mut most: Vec<Finder> =
        hunts.iter().flat_map(|(_, finders)| finders.iter()).cloned().collect();
    most.sort();
    most.dedup();
    for finder in most {
        match &finder {
            Finder::Torture { kind, seeds } => {
                let is_least = hunts.iter().flat_map(|(_, finders)| *finders).any(|other| {
                    matches!(other, Finder::Torture { kind: k, seeds: s } if k == kind && s > seeds)
                });
                if !is_least {
                    tasks.extend((0..*seeds).step_by(SHARE as usize).map(|first| {
                        let (kind, seeds) = (kind.clone(), SHARE.min(seeds - first));
                        Task::AsItIs(Finder::Torture { kind, seeds }, first)
                    }));
                }
            }
            Finder::Kept { .. } | Finder::Test { .. } => tasks.push(Task::AsItIs(finder, 0)),
        }
    }
    tasks.extend(hunts.into_iter().map(|(bug, finders)| Task::Bug(bug, finders)));
    tasks
}

/// The line to print for a task, and whether all is well.
fn run(task: &Task<'_>, programs: &Programs) -> io::Result<(String, bool)> {
    match task {
        Task::AsItIs(finder, first) => {
            let found = look(finder, *first, None, programs)?;
            let line = match &found {
                Some(how) => format!("NO BUG IS PLANTED, and {finder} from {first} on fail: {how}"),
                None => format!("no bug: {finder} from {first} on pass"),
            };
            Ok((line, found.is_none()))
        }
        Task::Bug(bug, finders) => {
            for finder in *finders {
                if let Some(how) = look(finder, 0, Some(&bug.name), programs)? {
                    return Ok((format!("{}: {how}", bug.name), true));
                }
            }
            let finders: Vec<_> = finders.iter().map(Finder::to_string).collect();
            let line = format!(
                "NOT FOUND: {} ({}:{}), by {}: {}",
                bug.name,
                bug.list,
                bug.line,
                finders.join(", then "),
                bug.what
            );
            Ok((line, false))
        }
    }
}

/// How `finder` finds the bug of that name; `None` if it does not.
fn look(
    finder: &Finder,
    first: u64,
    bug: Option<&str>,
    programs: &Programs,
) -> io::Result<Option<String>> {
    let mut commands = Vec::new();
    match finder {
        Finder::Torture { kind, seeds } => {
            let torture = programs
                .torture
                .as_ref()
                .ok_or_else(|| io::Error::other("torture is not built"))?;
            let mut command = Command::new(torture);
            command.args([kind.as_str(), &first.to_string(), &seeds.to_string()]);
            command.current_dir(&programs.folder);
            commands.push(command);
        }
        Finder::Kept { name } => {
            let torture = programs
                .torture
                .as_ref()
                .ok_or_else(|| io::Error::other("torture is not built"))?;
            let mut command = Command::new(torture);
            command.args(["kept", name]);
            command.current_dir(&programs.folder);
            commands.push(command);
        }
        Finder::Test { package, target, filter } => {
            let built = programs.tests.get(&(package.clone(), target.clone()));
            for (program, home) in built.into_iter().flatten() {
                let mut command = Command::new(program);
                command.arg("--quiet").args(filter).current_dir(home);
                commands.push(command);
            }
        }
    }
    for mut command in commands {
        // A property test must not keep what fails with one bug, and try it with the next.
        command.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1").env("RUST_BACKTRACE", "0");
        match bug {
            Some(bug) => command.env("PLANTED", bug),
            None => command.env_remove("PLANTED"),
        };
        if let Some(how) = outcome(command)? {
            return Ok(Some(how));
        }
    }
    Ok(None)
}

/// Runs a command: how it failed, if it did.
#[expect(clippy::disallowed_methods, reason = "a bug may go round for ever")]
fn outcome(mut command: Command) -> io::Result<Option<String>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut out = tempfile(&name)?;
    command.stdin(Stdio::null()).stdout(out.0.try_clone()?).stderr(Stdio::null());
    let begun = Instant::now();
    let mut child = command.spawn()?;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begun.elapsed() > TOO_LONG {
            child.kill()?;
            child.wait()?;
            return Ok(Some(format!("runs for more than {} s", TOO_LONG.as_secs())));
        }
        std::thread::sleep(GLANCE);
    };
    let text = out.read()?;
    let last = |wanted: &dyn Fn(&str) -> bool| {
        text.lines().rev().find(|line| wanted(line)).map(str::to_owned)
    };
    match status.code() {
        Some(0) => Ok(None),
        Some(1 | 101) => {
            let failed = last(&|line| line.starts_with("found "));
            let failed = failed.or_else(|| last(&|line| line.starts_with("    ")));
            Ok(Some(failed.unwrap_or_else(|| "fails".to_owned()).trim().to_owned()))
        }
        _ => Ok(Some(format!("ends with {status}"))),
    }
}

/// A file for what a command prints: a full pipe would stop it.
struct Printed(std::fs::File);

fn tempfile(name: &str) -> io::Result<Printed> {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::path::PathBuf::from(format!("{name}.{}.{number}.out", std::process::id()));
    let file = std::fs::OpenOptions::new().create_new(true).read(true).write(true).open(&path)?;
    // It lives as long as it is open.
    std::fs::remove_file(&path)?;
    Ok(Printed(file))
}

impl Printed {
    fn read(&mut self) -> io::Result<String> {
        use std::io::{Read, Seek, SeekFrom};
        self.0.seek(SeekFrom::Start(0))?;
        let mut bytes = Vec::new();
        self.0.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}
