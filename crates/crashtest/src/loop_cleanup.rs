//! Leftovers of a crash test that was killed, and their removal.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::attach::Attachment;
use crate::error::CrashError;

/// Reads `DEVICE:SEQUENCE` lines to their end, then detaches each device that is still attached as it was.
///
/// The name of the file does not tell whose it is, since other crash tests' namespaces have the same names: the
/// sequence number does. While a device is held open it is detached only when it is closed, so that nobody else gets
/// it between the look and the command.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
is_current() { [ "$(cat "/sys/block/${device#/dev/}/diskseq" 2>/dev/null)" = "$sequence" ]; }
while read -r each; do all="$all $each"; done
for each in $all; do
    device=${each%:*} sequence=${each##*:} i=0
    while [ $i -lt 100 ]; do
        i=$((i + 1))
        is_current || break
        { command exec 9<"$device"; } 2>/dev/null || break
        is_current || break
        file=$(losetup -n -O BACK-FILE "$device" 2>/dev/null) || break
        case "$file" in "$0"*|/disk*) ;; *) break ;; esac
        losetup -d "$device" 2>/dev/null
        exec 9<&-
        sleep 0.1
    done
done
"#;

/// A shell that outlives this process, however it is killed, and detaches the loop devices that are left.
#[derive(Debug)]
pub(crate) struct LoopCleanup {
    child: Child,
    stdin: Option<ChildStdin>,
}

impl LoopCleanup {
    /// For loop devices on `disk`, a path in the workers' namespaces.
    pub(crate) fn new(disk: &Path) -> Result<Self, CrashError> {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT]).arg(disk).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(CrashError::io("sh"))?;
        let stdin = child.stdin.take();
        Ok(Self { child, stdin })
    }

    pub(crate) fn note(&mut self, attachment: Option<&Attachment>) {
        if let (Some(stdin), Some(attachment)) = (&mut self.stdin, attachment) {
            let (device, sequence) = (attachment.device().display(), attachment.sequence());
            let _ = writeln!(stdin, "{device}:{sequence}"); // without it, the workers detach their devices themselves
        }
    }
}

impl Drop for LoopCleanup {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::print_stderr, reason = "what a machine lacks is said, not passed over")]

    use std::path::PathBuf;

    use super::*;
    use crate::attach::Loop;
    use crate::error::said;

    /// Two files of which the second gets the loop device that the first had.
    struct Bench {
        folder: tempfile::TempDir,
    }

    impl Bench {
        fn new() -> Option<Self> {
            let folder = tempfile::tempdir().unwrap();
            for name in ["disk", "disk-of-another"] {
                std::fs::File::create(folder.path().join(name)).unwrap().set_len(1 << 20).unwrap();
            }
            let bench = Self { folder };
            match Loop::new(&bench.disk(), 1 << 20, 512) {
                Ok(_) => Some(bench),
                Err(error) => {
                    eprintln!("LEFT OUT: no loop devices: {error}");
                    None
                }
            }
        }

        fn disk(&self) -> PathBuf {
            self.folder.path().join("disk")
        }

        /// A device on the first file, which is gone, and another on the second, with the same name. It is tried
        /// again until no other program takes the name.
        fn taken_over(&self) -> (Loop, Attachment) {
            for _ in 0..100 {
                let first = Loop::new(&self.disk(), 1 << 20, 512).unwrap();
                let device = first.device().display().to_string();
                said(Command::new("losetup").args(["-d", &device])).unwrap();
                let other = self.folder.path().join("disk-of-another");
                if said(Command::new("losetup").arg(&device).arg(other)).is_ok() {
                    return (first, Attachment::of(PathBuf::from(device)));
                }
            }
            panic!("others take every device");
        }
    }

    /// The backing file of the device according to `losetup`; none if it is free.
    fn file_of(attachment: &Attachment) -> Option<String> {
        said(Command::new("losetup").args(["-n", "-O", "BACK-FILE"]).arg(attachment.device())).ok()
    }

    fn detach(attachment: &Attachment) {
        said(Command::new("losetup").arg("-d").arg(attachment.device())).unwrap();
    }

    #[test]
    fn a_device_is_detached_when_its_process_is_gone() {
        let Some(bench) = Bench::new() else { return };
        let device = Loop::new(&bench.disk(), 1 << 20, 512).unwrap();
        let attachment = device.attachment().clone();
        let mut janitor = LoopCleanup::new(&bench.disk()).unwrap();
        janitor.note(Some(&attachment));
        std::mem::forget(device);
        drop(janitor);
        // Another program may have it by now.
        assert_ne!(file_of(&attachment), Some(bench.disk().display().to_string()));
    }

    // Found by CI: two crash tests at once, of which one was killed.
    #[test]
    fn a_device_that_was_given_to_somebody_else_is_left_alone() {
        let Some(bench) = Bench::new() else { return };
        let (first, second) = bench.taken_over();
        let others = file_of(&second);
        assert!(others.is_some());
        let mut janitor = LoopCleanup::new(&bench.disk()).unwrap();
        janitor.note(Some(first.attachment()));
        drop(janitor);
        assert_eq!(file_of(&second), others, "the janitor has taken it");
        drop(first);
        assert_eq!(file_of(&second), others, "the one that had it before has taken it");
        detach(&second);
    }
}
