//! `sync(2)` and `syncfs(2)` of recorded software. The kernel asks no FUSE folder for them: they are seen on their way into the
//! kernel, by a filter of system calls that the scripts inherit (seccomp_unotify(2)).

#![expect(unsafe_code, reason = "the kernel takes filters and gives notices by address")]

use std::fs::File;
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::thread::Builder;

use nix::errno::Errno;
use nix::libc;

use super::served::Served;
use crate::error::CrashError;

nix::ioctl_readwrite!(receive, b'!', 0, libc::seccomp_notif);
nix::ioctl_readwrite!(send, b'!', 1, libc::seccomp_notif_resp);

/// Where the number of a call and its architecture stand in what a filter sees (`struct seccomp_data`).
const CALL: u32 = 0;
const ARCHITECTURE: u32 = 4;
/// The architecture of this program's calls (linux/audit.h).
#[cfg(target_arch = "x86_64")]
const NATIVE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const NATIVE: u32 = 0xc000_00b7;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const NATIVE: u32 = 0;
/// A call that was noticed is broken off by nothing but a kill (Linux 5.19).
const WAIT_KILLABLE: libc::c_ulong = 1 << 5;

/// From now on what this thread starts is noticed when it syncs everything, or the folder's file system: that is recorded, after
/// what was written to memory maps.
///
/// # Errors
/// If the kernel has no such filters, or does not allow them here.
pub(super) fn notice(served: Served, folder: &Path) -> Result<(), CrashError> {
    if NATIVE == 0 {
        let problem =
            "crash tests of files are for x86-64 and aarch64: elsewhere sync(2) is not noticed";
        return Err(CrashError::Lacking(problem.to_owned()));
    }
    let (to, listeners) = channel();
    let folder = folder.to_owned();
    // It must be there before the filter, which would stop its own calls.
    Builder::new()
        .name("syncs".to_owned())
        .spawn(move || listen(&listeners, &served, &folder))
        .map_err(CrashError::io("a thread"))?;
    let listener = filter().map_err(|error| {
        let help = match error.raw_os_error() {
            Some(libc::EBUSY) => "another program watches system calls here, as in some containers",
            _ => "the container's profile must allow seccomp(2)",
        };
        let problem = format!("cannot notice sync(2): {error}\n  help: {help}");
        CrashError::Lacking(problem)
    })?;
    let _ = to.send(listener); // the thread is there
    Ok(())
}

/// Stops calls of `sync` and `syncfs` until they are answered.
fn filter() -> io::Result<OwnedFd> {
    let load = |from: u32| instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, from);
    let unless_equal = |value: u32, skip: u8| {
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, skip, value)
    };
    let if_equal = |value: u32, skip: u8| {
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, skip, 0, value)
    };
    let end = |value: u32| instruction(libc::BPF_RET | libc::BPF_K, 0, 0, value);
    let mut program = [
        load(ARCHITECTURE),
        unless_equal(NATIVE, 3),
        load(CALL),
        if_equal(libc::SYS_sync as u32, 2),
        if_equal(libc::SYS_syncfs as u32, 1),
        end(libc::SECCOMP_RET_ALLOW),
        end(libc::SECCOMP_RET_USER_NOTIF),
    ];
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    let mode = libc::SECCOMP_SET_MODE_FILTER;
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
    // SAFETY: seccomp(2) reads the program, which lives until it returns.
    let set = |flags: libc::c_ulong| unsafe {
        libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program)
    };
    let listener = match Errno::result(set(flags | WAIT_KILLABLE)) {
        Err(Errno::EINVAL) => Errno::result(set(flags))?, // before Linux 5.19
        other => other?,
    };
    // SAFETY: it returns a descriptor that nobody else has.
    Ok(unsafe { OwnedFd::from_raw_fd(listener as i32) })
}

const fn instruction(code: u32, if_true: u8, if_false: u8, value: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: if_true, jf: if_false, k: value }
}

/// Answers calls until the process ends.
fn listen(listeners: &Receiver<OwnedFd>, served: &Served, folder: &Path) {
    let Ok(listener) = listeners.recv() else { return };
    let descriptor = listener.as_raw_fd();
    loop {
        // SAFETY: the kernel asks for zeroes, and fills in what it says.
        let (received, notice) = unsafe {
            let mut notice: libc::seccomp_notif = zeroed();
            (receive(descriptor, &raw mut notice), notice)
        };
        match received {
            Ok(_) => {}
            // The caller was ended meanwhile. This process has the filter, too: there is always one who could call.
            Err(Errno::EINTR | Errno::ENOENT) => continue,
            Err(_) => return,
        }
        if let Some(on) = synced(&notice, folder) {
            record(served, folder, &on);
        }
        // The call continues: to other file systems it still applies.
        let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
        let mut answer = libc::seccomp_notif_resp { id: notice.id, val: 0, error: 0, flags };
        // SAFETY: the kernel reads the answer.
        let _ = unsafe { send(descriptor, &raw mut answer) }; // who has called may be gone
    }
}

/// A path below the folder that a call syncs, where the caller has it: all file systems of the caller's machine, whose drive
/// it works on, or the one of a descriptor. None if the folder is not meant.
fn synced(notice: &libc::seccomp_notif, folder: &Path) -> Option<PathBuf> {
    let is_all = i64::from(notice.data.nr) == libc::SYS_sync;
    let of = if is_all { "cwd".to_owned() } else { format!("fd/{}", notice.data.args[0]) };
    let of_call = PathBuf::from(format!("/proc/{}/{of}", notice.pid));
    let device = |path: &Path| path.metadata().map(|metadata| metadata.dev()).ok();
    let is_there = device(&of_call).is_some_and(|of_call| device(folder) == Some(of_call));
    if !is_there {
        return is_all.then(PathBuf::new);
    }
    let path = of_call.read_link().ok();
    let below = path.and_then(|path| path.strip_prefix(folder).map(Path::to_owned).ok());
    Some(below.unwrap_or_default())
}

fn record(served: &Served, folder: &Path, on: &Path) {
    // Writes to memory maps come first: the kernel asks for them now, and waits for no answer. A
    // request behind them is answered behind them. Without maps there is nothing to write.
    let _ = File::open(folder).map(|folder| {
        let _ = nix::unistd::syncfs(&folder);
        folder.metadata()
    });
    served.lock().sync_all(on);
}
