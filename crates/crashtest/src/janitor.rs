//! What is left of a crash test that was killed, and who takes it away.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::error::CrashError;

/// A shell that outlives this process, however it is killed, and detaches the loop devices that are left.
#[derive(Debug)]
pub(crate) struct Janitor {
    child: Child,
    stdin: Option<ChildStdin>,
}

impl Janitor {
    /// For loop devices on `disk`, a path in the workers' namespaces.
    pub(crate) fn new(disk: &Path) -> Result<Self, CrashError> {
        // A device that was given to somebody else meanwhile is left alone.
        let script = "trap '' HUP INT TERM; \
                      while read -r device; do all=\"$all $device\"; done; \
                      for device in $all; do i=0; while [ $i -lt 100 ]; do i=$((i + 1)); \
                      file=$(losetup -n -O BACK-FILE \"$device\" 2>/dev/null) || break; \
                      case \"$file\" in \"$0\"*|/disk*) losetup -d \"$device\" 2>/dev/null; sleep 0.1;; \
                      *) break;; esac; done; done";
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(disk).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(CrashError::io("sh"))?;
        let stdin = child.stdin.take();
        Ok(Self { child, stdin })
    }

    pub(crate) fn note(&mut self, device: Option<&str>) {
        if let (Some(stdin), Some(device)) = (&mut self.stdin, device) {
            let _ = writeln!(stdin, "{device}"); // without it, the workers detach their devices themselves
        }
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.wait();
    }
}
