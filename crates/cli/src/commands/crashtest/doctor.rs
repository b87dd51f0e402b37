//! `leyden crashtest doctor`: what of this machine is needed, and what is there.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use leyden_crashtest::NO_FS;

use crate::failure::Failure;
use crate::output::table::Table;

/// Something that is needed.
struct Need {
    name: String,
    /// What is missing, and what to do.
    lacking: Option<String>,
    /// Without it something is left out only.
    is_optional: bool,
}

pub(super) fn main(fs: &str) -> Result<(), Failure> {
    let needs = needs(fs);
    let mut table = Table::default();
    for need in &needs {
        let said = need.lacking.clone().unwrap_or_else(|| "there".to_owned());
        table.row([&need.name, &said]);
    }
    table.write(&mut anstream::stdout().lock())?;
    anstream::stdout().flush()?;
    refuse(&needs)
}

/// Refuses what cannot be done on this machine, before anything is begun.
pub(super) fn check(fs: &str) -> Result<(), Failure> {
    refuse(&needs(fs))
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

fn needs(fs: &str) -> Vec<Need> {
    let need = |name: &str, is_there: bool, lacking: &str| Need {
        name: name.to_owned(),
        lacking: (!is_there).then(|| lacking.to_owned()),
        is_optional: false,
    };
    let fuse = File::options().read(true).write(true).open("/dev/fuse").is_ok();
    let mut needs = vec![
        need("root", is_root(), "mounting takes root: use sudo, or a container with CAP_SYS_ADMIN"),
        need("/dev/fuse", fuse, "load the kernel's module fuse, or give the container this device"),
        need(
            "loop devices",
            ends_well("losetup", &["-f"]),
            "load the kernel's module loop, or give the container /dev/loop*",
        ),
        need("unshare", ends_well("unshare", &["--version"]), "install util-linux"),
        need(
            "namespaces",
            ends_well("unshare", &["--mount", "--pid", "--fork", "--mount-proc", "true"]),
            "the container needs CAP_SYS_ADMIN, and a profile that allows unshare(2)",
        ),
        need("fusermount3", ends_well("fusermount3", &["--version"]), "install fuse3"),
    ];
    if fs != NO_FS {
        let mkfs = format!("mkfs.{fs}");
        needs.push(need(
            &mkfs,
            is_program(&mkfs),
            "install it, or choose another file system with --fs",
        ));
        let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
        let is_known = known.lines().any(|line| line.split_whitespace().last() == Some(fs))
            || ends_well("modprobe", &["-n", fs]);
        needs.push(need(
            &format!("{fs} in the kernel"),
            is_known,
            "the kernel knows no such file system",
        ));
    }
    for (program, what) in [
        ("filefrag", "install e2fsprogs: without it `shrink` names no files"),
        (
            "debugfs",
            "install e2fsprogs: without it `shrink` does not tell ext4's journal from metadata",
        ),
    ] {
        let optional = need(program, is_program(program), what);
        needs.push(Need { is_optional: true, ..optional });
    }
    needs
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|of| std::os::unix::fs::MetadataExt::uid(&of) == 0)
}

fn is_program(name: &str) -> bool {
    let folders = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
    folders.iter().any(|folder| Path::new(folder).join(name).exists())
        || ends_well("sh", &["-c", &format!("command -v {name}")])
}

fn ends_well(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
