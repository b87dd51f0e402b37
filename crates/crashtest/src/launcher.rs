//! How the processes that try states are started.

use std::path::PathBuf;
use std::process::Command;

use crate::error::CrashError;
use crate::own_program::OwnProgram;
use crate::rights::may_mount;
use crate::session::Session;
use crate::test_bed::Access;

/// How workers are started.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// The program; the one that runs now if not given.
    pub program: Option<PathBuf>,
    /// Arguments that make it call [`crate::work`] with the next argument.
    pub args: Vec<String>,
}

/// A program in namespaces of mounts and processes of its own; its name and arguments are to follow.
pub fn namespaces(access: Access) -> Command {
    let mut command = Command::new("unshare");
    if access != Access::Mounts && !may_mount() {
        // Without this right a namespace of users gives the right to make the others.
        command.args(["--user", "--map-root-user"]);
    }
    // Mounts and processes in the namespace end with its first process, however that ends. A
    // file system that is unmounted outside is unmounted inside, too: `pinned` has the rest.
    command.args(["--mount", "--propagation", "slave"]);
    command.args(["--pid", "--fork", "--kill-child", "--mount-proc", "--"]);
    command
}

impl Launcher {
    /// A worker for `session`, in namespaces of its own. The program is open as long as what comes with it is held.
    pub(crate) fn command(
        &self,
        session: &Session,
        access: Access,
    ) -> Result<(Command, Option<OwnProgram>), CrashError> {
        let mut command = namespaces(access);
        let own = match self.program {
            Some(_) => None,
            None => Some(OwnProgram::open()?),
        };
        let program = self.program.clone().or_else(|| Some(own.as_ref()?.path()));
        command.args(program).args(&self.args).arg(session.folder());
        Ok((command, own))
    }
}
