//! Answers of a worker, read in a thread of its own that keeps the worker's mounts until it has ended.

use std::fs::File;
use std::io::BufRead;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::clock::wall;
use crate::error::CrashError;
use crate::worker::Answer;

/// Between two looks whether a worker has ended.
const PAUSE: Duration = Duration::from_millis(2);

/// The answers of a worker that has not ended.
#[derive(Debug)]
pub(crate) struct Answers {
    reader: JoinHandle<()>,
}

impl Answers {
    /// Reads what the worker says whose mounts the process `holder` has; `heard` gets each answer, and nothing when it
    /// has ended.
    pub(crate) fn listen(
        holder: u32,
        stdout: impl BufRead + Send + 'static,
        heard: impl Fn(Option<Answer>) + Send + 'static,
    ) -> Result<Self, CrashError> {
        let read = move || {
            let mut mounts = None;
            for line in stdout.lines().map_while(Result::ok) {
                mounts = mounts.or_else(|| mounts_of(holder));
                heard(serde_json::from_str(&line).ok()); // one that cannot be understood is to be ended
            }
            drop(mounts);
            heard(None);
        };
        let reader = std::thread::Builder::new()
            .name("answers".to_owned())
            .spawn(read)
            .map_err(CrashError::io("a thread"))?;
        Ok(Self { reader })
    }

    /// Waits until the last process of the worker's has ended, and its mounts are gone.
    pub(crate) fn wait(&self, patience: Duration) {
        let deadline = wall() + patience;
        while !self.reader.is_finished() && wall() < deadline {
            std::thread::sleep(PAUSE);
        }
    }
}

/// Holds the mounts of a process while this is open; none of an unprivileged worker, which mounts no block device.
///
/// A worker serves the drive below the file system that it has mounted. Were it killed as the last user of these mounts,
/// the kernel could have the thread that still holds the server unmount that file system (`exit_task_namespaces`): it
/// would wait for its own answer for ever, and every sync(2) of the machine behind it. So the server ends first, and
/// then the unmount meets errors.
fn mounts_of(process: u32) -> Option<File> {
    File::open(format!("/proc/{process}/ns/mnt")).ok()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::print_stderr, reason = "what a machine lacks is said, not passed over")]

    use std::io::BufReader;
    use std::process::{Command, Stdio};
    use std::sync::mpsc::channel;

    use super::*;
    use crate::rights::may_mount;

    /// True if this process holds the namespace of that name.
    fn is_held(namespace: &std::path::Path) -> bool {
        let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
        open.into_iter().any(|fd| std::fs::read_link(fd.path()).is_ok_and(|to| to == namespace))
    }

    // Found by CI: a worker that was killed unmounted the file system of its own server, and waited for itself.
    #[test]
    fn mounts_outlive_the_server() {
        if !may_mount() {
            eprintln!("LEFT OUT: no namespaces of mounts");
            return;
        }
        let (stdout, to) = std::io::pipe().unwrap();
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", r#"echo '"Done"'; exec sleep 1000"#]);
        let mut child =
            command.stdout(to.try_clone().unwrap()).stderr(Stdio::null()).spawn().unwrap();
        drop(command);
        let (heard, answers) = channel();
        let hear = move |answer: Option<Answer>| heard.send(answer.is_some()).unwrap();
        let reader = Answers::listen(child.id(), BufReader::new(stdout), hear).unwrap();
        assert_eq!(answers.recv_timeout(GENEROUS), Ok(true));
        let of_child = std::fs::read_link(format!("/proc/{}/ns/mnt", child.id())).unwrap();
        assert_ne!(of_child, std::fs::read_link("/proc/self/ns/mnt").unwrap());
        child.kill().unwrap();
        child.wait().unwrap();
        // A process that has its output still serves.
        assert!(is_held(&of_child), "the mounts go before the server");
        drop(to);
        reader.wait(GENEROUS);
        assert!(!is_held(&of_child), "the mounts stay");
        assert_eq!(answers.recv(), Ok(false));
    }

    const GENEROUS: Duration = Duration::from_secs(20);
}
