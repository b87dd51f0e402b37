//! `leyden crashtest doctor`: the needs of crash tests, and which of them this machine meets.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use leyden_crashtest::{Access, NO_FS, may_mount, namespaces};

use crate::failure::Failure;
use crate::output::table::Table;

/// Something that is needed.
struct Need {
    name: String,
    /// The missing part, and how to get it.
    lacking: Option<String>,
    /// Without it something is left out only.
    is_optional: bool,
}

pub(super) fn main(fs: &str, is_files: bool) -> Result<(), Failure> {
    let access = if is_files { Access::Folder } else { Access::of_drive(false) };
    let needs = needs(fs, access, Purpose::Record);
    let mut table = Table::default();
    for need in &needs {
        let said = need.lacking.clone().unwrap_or_else(|| "there".to_owned());
        table.row([&need.name, &said]);
    }
    table.write(&mut anstream::stdout().lock())?;
    anstream::stdout().flush()?;
    refuse(&needs)
}

/// The step that the machine is needed for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A run is recorded.
    Record,
    /// States of one that was recorded are tried.
    Try,
}

/// Refuses what cannot be done on this machine, before anything is begun.
pub(super) fn check(fs: &str, access: Access, purpose: Purpose) -> Result<(), Failure> {
    refuse(&needs(fs, access, purpose))
}

fn refuse(needs: &[Need]) -> Result<(), Failure> {
    let mut lacking = needs.iter().filter(|need| !need.is_optional);
    let Some((name, what)) = lacking.find_map(|need| Some((&need.name, need.lacking.as_ref()?)))
    else {
        return Ok(());
    };
    Err(Failure::usage(anyhow::anyhow!(
        "{name}: {what}\n  help: `leyden crashtest doctor` has the whole list"
    )))
}

fn needs(fs: &str, access: Access, purpose: Purpose) -> Vec<Need> {
    if access == Access::Folder {
        let [device, _] = fuse();
        return vec![device, unshare(), in_namespaces()];
    }
    let extracts = access == Access::Extracts;
    let mut needs = Vec::new();
    if purpose == Purpose::Record && fs != NO_FS {
        needs.push(Need::of(
            "root",
            may_mount(),
            "mounting takes root: use sudo, or a container with CAP_SYS_ADMIN; recordings of ext4 and raw devices are \
             run without",
        ));
    }
    if !extracts || purpose == Purpose::Record {
        needs.extend(fuse());
    }
    if !extracts {
        needs.push(Need::of(
            "loop devices",
            ends_well("losetup", &["-f"]),
            "load the kernel's module loop, or give the container /dev/loop*",
        ));
    }
    needs.extend([unshare(), in_namespaces()]);
    if fs != NO_FS {
        needs.extend(if extracts && purpose == Purpose::Try { e2fsprogs(fs) } else { kernel(fs) });
    }
    for (program, what) in [
        ("filefrag", "install e2fsprogs: without it `shrink` names no files"),
        (
            "debugfs",
            "install e2fsprogs: without it `shrink` does not tell ext4's journal from metadata",
        ),
    ] {
        needs.push(Need { is_optional: true, ..Need::of(program, is_program(program), what) });
    }
    needs
}

impl Need {
    fn of(name: &str, is_there: bool, lacking: &str) -> Self {
        let lacking = (!is_there).then(|| lacking.to_owned());
        Self { name: name.to_owned(), lacking, is_optional: false }
    }
}

fn unshare() -> Need {
    Need::of("unshare", ends_well("unshare", &["--version"]), "install util-linux")
}

fn in_namespaces() -> Need {
    Need::of(
        "namespaces",
        is_good(namespaces(Access::Folder).arg("true")),
        "give a container --security-opt unmask=ALL (Podman), seccomp=unconfined and systempaths=unconfined (Docker), \
         apparmor=unconfined (hosts with AppArmor); elsewhere allow namespaces of users",
    )
}

fn fuse() -> [Need; 2] {
    let device = File::options().read(true).write(true).open("/dev/fuse").is_ok();
    [
        Need::of(
            "/dev/fuse",
            device,
            "load the kernel's module fuse, or give the container, or this user, this device",
        ),
        Need::of("fusermount3", ends_well("fusermount3", &["--version"]), "install fuse3"),
    ]
}

/// The programs and modules that make and mount a file system.
fn kernel(fs: &str) -> Vec<Need> {
    let mkfs = format!("mkfs.{fs}");
    let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let is_known = known.lines().any(|line| line.split_whitespace().last() == Some(fs))
        || ends_well("modprobe", &["-n", fs]);
    vec![
        Need::of(&mkfs, is_program(&mkfs), "install it, or choose another file system with --fs"),
        Need::of(&format!("{fs} in the kernel"), is_known, "the kernel knows no such file system"),
    ]
}

/// The programs that take files out of an image.
fn e2fsprogs(fs: &str) -> Vec<Need> {
    let is_ext = matches!(fs, "ext2" | "ext3" | "ext4");
    let mut needs = vec![Need::of(fs, is_ext, "it takes root: e2fsprogs know ext2, ext3 and ext4")];
    for program in ["e2fsck", "debugfs"] {
        needs.push(Need::of(program, is_program(program), "install e2fsprogs"));
    }
    needs
}

fn is_program(name: &str) -> bool {
    let folders = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
    folders.iter().any(|folder| Path::new(folder).join(name).exists())
        || ends_well("sh", &["-c", &format!("command -v {name}")])
}

fn ends_well(program: &str, args: &[&str]) -> bool {
    is_good(Command::new(program).args(args))
}

fn is_good(command: &mut Command) -> bool {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
