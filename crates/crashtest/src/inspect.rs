//! Looking into a state: where bytes lie, which files differ, a shell or a command in it, its files to take along.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::check;
use crate::error::{CrashError, said};
use crate::files::first_lost;
use crate::files_view::{FileDifference, FilesView};
use crate::lab::Lab;
use crate::locate::Place;
use crate::state::State;
use crate::test_bed::Entered;

/// The file that a device without a file system is copied to.
const DEVICE_IMAGE: &str = "device.img";

impl Lab {
    /// The files in these atoms, if nothing is lost.
    pub(crate) fn locate(&mut self, at: usize, atoms: &[u32]) -> Result<Vec<Place>, CrashError> {
        self.show(&State::new(at, Vec::new()), 0)?;
        let atom_bytes = u64::from(self.ground.history().atom_bytes());
        let entered = match self.ground.enter(self.processes)? {
            Ok(Entered::Device) | Err(_) => return Ok(Vec::new()),
            Ok(entered) => entered,
        };
        let places = self.ground.locate(atoms, atom_bytes);
        entered.end(self.processes)?;
        Ok(places)
    }

    /// The files of `state` that are others in `other`, both as the file system has recovered them.
    pub(crate) fn compare(
        &mut self,
        state: &State,
        other: &State,
    ) -> Result<Vec<FileDifference>, CrashError> {
        match (self.files(state)?, self.files(other)?) {
            (Some(files), Some(others)) => Ok(files.differences(&others)),
            _ => Ok(Vec::new()),
        }
    }

    fn files(&mut self, state: &State) -> Result<Option<FilesView>, CrashError> {
        self.show(state, 0)?;
        let entered = match self.ground.enter(self.processes)? {
            Ok(Entered::Device) | Err(_) => return Ok(None),
            Ok(entered) => entered,
        };
        let files = FilesView::of(&self.room.mnt());
        entered.end(self.processes)?;
        Ok(Some(files))
    }

    /// Makes a state's files reachable.
    fn entered(&mut self, state: &State) -> Result<Entered, CrashError> {
        self.show(state, self.promised(state))?;
        let entered = self.ground.enter(self.processes)?;
        entered.map_err(|said| CrashError::Command(format!("the state does not mount: {said}")))
    }

    fn folder(&self, entered: &Entered) -> PathBuf {
        match entered {
            Entered::Device => self.plan.cwd.clone(),
            Entered::Mounted(_) | Entered::Extracted(_) | Entered::Served => self.room.mnt(),
        }
    }

    /// Gives the user a shell on the terminal, in a state.
    pub(crate) fn shell(&mut self, state: &State) -> Result<(), CrashError> {
        let terminal = File::options().read(true).write(true).open("/dev/tty");
        let terminal = terminal.map_err(|error| {
            CrashError::Lacking(format!(
                "there is no terminal for a shell: {error}\n  help: --run COMMAND runs a command in the state, --copy DIR \
                 takes its files along"
            ))
        })?;
        let duplicate = || terminal.try_clone().map_err(CrashError::io("/dev/tty"));
        let entered = self.entered(state)?;
        let mut shell = Command::new("sh");
        shell.arg("-i").current_dir(self.folder(&entered)).envs(self.environment.iter().cloned());
        shell.stdin(duplicate()?).stdout(duplicate()?).stderr(duplicate()?);
        let ended = shell.status().map_err(CrashError::io("sh"));
        self.processes.end_others(None);
        entered.end(self.processes)?;
        ended.map(drop)
    }

    /// Runs a command in a state, as the check runs; `say` receives its output. Returns its exit code.
    pub(crate) fn run_in(
        &mut self,
        state: &State,
        text: &str,
        mut say: impl FnMut(String) -> Result<(), CrashError>,
    ) -> Result<u8, CrashError> {
        let entered = self.entered(state)?;
        let (output, input) = std::io::pipe().map_err(CrashError::io("a pipe"))?;
        let mut command = check::shell(text, &self.plan, &self.environment);
        command.stdout(input.try_clone().map_err(CrashError::io("a pipe"))?);
        command.stderr(Stdio::from(input));
        let mut child = command.spawn().map_err(CrashError::io("sh"))?;
        drop(command); // with it the pipe's other end
        let mut said = Ok(());
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            if said.is_ok() {
                said = say(String::from_utf8_lossy(&line).into_owned());
            }
        }
        let status = child.wait();
        check::end_group(&mut child);
        self.processes.end_others(None);
        entered.end(self.processes)?;
        said?;
        let status = status.map_err(CrashError::io("sh"))?;
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
        Ok(u8::try_from(code).unwrap_or(u8::MAX))
    }

    /// Copies a state's files to `to`, which is there.
    pub(crate) fn copy(&mut self, state: &State, to: &Path) -> Result<(), CrashError> {
        let entered = self.entered(state)?;
        let mut command = Command::new("cp");
        match entered {
            Entered::Device => {
                command.arg("--sparse=always").arg(self.ground.device()).arg(to.join(DEVICE_IMAGE))
            }
            Entered::Mounted(_) | Entered::Extracted(_) | Entered::Served => {
                command.arg("-a").arg(self.room.mnt().join(".")).arg(to)
            }
        };
        let copied = said(&mut command);
        let lost = match (&copied, &entered) {
            // Unlike other errors, cp(1) passes these over.
            (Ok(_), Entered::Served) => first_lost(&self.room.mnt(), to),
            _ => Ok(None),
        };
        entered.end(self.processes)?;
        copied?;
        match lost.map_err(CrashError::io(to))? {
            None => Ok(()),
            Some((path, name)) => Err(CrashError::Command(format!(
                "{}: the extended attribute {name} of {} was not copied\n  help: name a folder whose file system takes it, or look \
                 at the files with --run",
                to.display(),
                path.display()
            ))),
        }
    }
}
