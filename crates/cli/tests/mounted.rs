//! `leyden mount`, the demo's second act, and the service: what takes root, FUSE and loop devices is left out where
//! they are not, and said.

#![expect(clippy::print_stderr, reason = "what a machine lacks is said, not passed over")]

use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const LEYDEN: &str = env!("CARGO_BIN_EXE_leyden");

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn create(folder: &Path) -> PathBuf {
    let image = folder.join("disk.leyden");
    let sets = [
        "device.nand.blocks_per_plane=32",
        "device.ftl.over_provisioning=20 %",
        "device.buffer.size=8 MiB",
    ];
    let made = Command::new(LEYDEN)
        .args(["image", "create", "--drive", "devices/hexa"])
        .arg(&image)
        .args(sets.iter().flat_map(|set| ["--set", set]))
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    image
}

fn terminate(child: &Child) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
}

fn succeeds(program: &str, args: &[&str]) -> bool {
    Command::new(program).args(args).output().is_ok_and(|output| output.status.success())
}

/// True if this machine can mount a served drive; says why not.
fn can_mount() -> bool {
    let is_there = |tool: &&str| succeeds("sh", &["-c", &format!("command -v {tool}")]);
    let is_root = succeeds("sh", &["-c", "[ $(id -u) = 0 ]"]);
    let has = is_root
        && Path::new("/dev/fuse").exists()
        && succeeds("losetup", &["-f"])
        && ["mkfs.ext4", "blkid", "mountpoint", "fusermount3"].iter().all(is_there);
    if !has {
        eprintln!(
            "LEFT OUT: mounting takes root, /dev/fuse, loop devices, mkfs.ext4, blkid and fusermount3"
        );
    }
    has
}

/// Lets one test mount at a time, if this machine can: a [`Namespace`] of one has copies of the mounts of all.
fn alone() -> Option<MutexGuard<'static, ()>> {
    static MOUNTS: Mutex<()> = Mutex::new(());
    can_mount().then(|| MOUNTS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Mounts `image` at `folder`, and waits until it is.
fn mount(image: &Path, folder: &Path, stderr: Stdio) -> Child {
    let mut child = Command::new(LEYDEN)
        .arg("mount")
        .args([image, folder])
        .args(["--fs", "ext4", "--latency", "off"])
        .stderr(stderr)
        .spawn()
        .unwrap();
    let path = folder.to_str().unwrap();
    for _ in 0..600 {
        if succeeds("mountpoint", &["-q", path]) {
            return child;
        }
        assert!(child.try_wait().unwrap().is_none(), "leyden mount has ended");
        std::thread::sleep(Duration::from_millis(100));
    }
    child.kill().unwrap();
    panic!("nothing is mounted after a minute");
}

#[test]
fn a_mounted_drive_is_taken_down_and_keeps_its_files() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (image, disk) = (create(folder.path()), folder.path().join("disk"));
    std::fs::create_dir(&disk).unwrap();
    for life in 0..2 {
        let mut child = mount(&image, &disk, Stdio::null());
        if life == 0 {
            std::fs::write(disk.join("file"), "written before the end").unwrap();
        }
        assert_eq!(std::fs::read_to_string(disk.join("file")).unwrap(), "written before the end");
        terminate(&child);
        assert!(child.wait().unwrap().success());
        assert!(!succeeds("mountpoint", &["-q", disk.to_str().unwrap()]), "it is still mounted");
        let devices = Command::new("losetup").args(["-n", "-l", "-O", "BACK-FILE"]).output();
        let devices = String::from_utf8_lossy(&devices.unwrap().stdout).into_owned();
        assert!(!devices.contains(folder.path().to_str().unwrap()), "left behind: {devices}");
        assert!(!folder.path().join("disk.leyden.mnt").exists());
    }
}

/// A process with a mount namespace of its own, which has copies of all mounts: any container, any `unshare -m`.
struct Namespace(Child);

impl Namespace {
    fn new() -> Self {
        let held = Command::new("unshare")
            .args(["-m", "--propagation", "private", "sleep", "600"])
            .spawn();
        let held = held.unwrap();
        // It is there when its namespace is another one.
        let of = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
        while of(&held.id().to_string()).is_none_or(|it| Some(it) == of("self")) {
            std::thread::sleep(Duration::from_millis(10));
        }
        Self(held)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Unmounting in one namespace does not unmount in another: the file system lives on, and nothing
/// is written.
#[test]
fn a_mount_that_another_namespace_holds_loses_nothing_and_is_said() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (image, disk) = (create(folder.path()), folder.path().join("disk"));
    std::fs::create_dir(&disk).unwrap();
    let mut child = mount(&image, &disk, Stdio::piped());
    let held = Namespace::new();
    let precious = vec![7; 5 << 20];
    std::fs::write(disk.join("precious"), &precious).unwrap();
    terminate(&child);
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{said}");
    let holder = format!("process {} (sleep)", held.0.id());
    assert!(said.contains("still in use") && said.contains(&holder), "{said}");
    drop(held);
    let child = mount(&image, &disk, Stdio::null());
    assert!(std::fs::read(disk.join("precious")).unwrap() == precious, "it is lost");
    terminate_well(child);
    // One that goes in time is waited for.
    let mut child = mount(&image, &disk, Stdio::null());
    let held = Namespace::new();
    std::fs::write(disk.join("late"), &precious).unwrap();
    terminate(&child);
    std::thread::sleep(Duration::from_secs(1));
    drop(held);
    assert!(child.wait().unwrap().success(), "it waits");
    let child = mount(&image, &disk, Stdio::null());
    assert!(std::fs::read(disk.join("late")).unwrap() == precious, "it is lost");
    terminate_well(child);
}

fn terminate_well(mut child: Child) {
    terminate(&child);
    assert!(child.wait().unwrap().success());
}

/// A file system of a stranger may hold programs that run as root, and devices.
#[test]
fn a_mounted_image_gives_no_root_rights_and_is_the_one_named() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (image, disk) = (create(folder.path()), folder.path().join("disk"));
    std::fs::create_dir(&disk).unwrap();
    let child = mount(&image, &disk, Stdio::null());
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    let line = mounts.lines().find(|line| line.contains(disk.to_str().unwrap())).unwrap();
    assert!(line.contains(" ext4 ") && line.contains("nosuid") && line.contains("nodev"), "{line}");
    terminate_well(child);
    let other = Command::new(LEYDEN)
        .arg("mount")
        .args([&image, &disk])
        .args(["--fs", "xfs", "--latency", "off"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&other.stderr);
    assert_eq!(other.status.code(), Some(1), "{said}");
    assert!(said.contains("holds ext4, not xfs"), "{said}");
}

/// In a folder that others may write to, a name beside the image decides nothing.
#[test]
fn a_link_beside_the_image_decides_no_mount() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (image, disk) = (create(folder.path()), folder.path().join("disk"));
    let victim = folder.path().join("victim");
    std::fs::create_dir(&disk).unwrap();
    std::fs::create_dir(&victim).unwrap();
    std::os::unix::fs::symlink(&victim, folder.path().join("disk.leyden.mnt")).unwrap();
    let child = mount(&image, &disk, Stdio::null());
    assert!(!succeeds("mountpoint", &["-q", victim.to_str().unwrap()]), "it was followed");
    terminate_well(child);
}

#[test]
fn a_file_is_never_covered() {
    let folder = tempfile::tempdir().unwrap();
    let (image, file) = (create(folder.path()), folder.path().join("file"));
    std::fs::write(&file, "mine").unwrap();
    let serve = Command::new(LEYDEN).arg("serve").arg(image).arg("--fuse").arg(&file).output();
    let (serve, said) = {
        let it = serve.unwrap();
        (it.status, String::from_utf8_lossy(&it.stderr).into_owned())
    };
    assert_eq!(serve.code(), Some(2), "{said}");
    assert!(said.contains("is no folder, and would be covered"), "{said}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
}

/// The kernel refuses to unmount what is in use; a server that just ended would leave a dead mount behind.
#[test]
fn a_mount_in_use_goes_with_its_server() {
    let Some(_alone) = alone() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (image, room) = (create(folder.path()), folder.path().join("room"));
    std::fs::create_dir(&room).unwrap();
    let serve = Command::new(LEYDEN).arg("serve").args([&image]).arg("--fuse").arg(&room).spawn();
    let (mut server, disk) = (serve.unwrap(), room.join("disk"));
    while !disk.exists() {
        assert!(server.try_wait().unwrap().is_none(), "the server has ended");
        std::thread::sleep(Duration::from_millis(20));
    }
    let user = std::fs::File::open(disk).unwrap();
    terminate(&server);
    assert!(server.wait().unwrap().success());
    assert_eq!(std::fs::read_dir(&room).unwrap().count(), 0, "the folder is as it was");
    drop(user);
}

#[test]
fn a_folder_that_is_not_there_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let image = create(folder.path());
    let refused = Command::new(LEYDEN).arg("mount").arg(image).arg("/nowhere").output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("/nowhere is no folder"));
}

#[test]
fn the_demos_second_act_loses_no_synced_file() {
    let folder = tempfile::tempdir().unwrap();
    let act = Command::new("sh")
        .arg(repository().join("campaigns/act.sh"))
        .arg(LEYDEN)
        .arg(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&act.stdout);
    if act.status.code() == Some(77) {
        eprintln!("LEFT OUT: {said}");
        return;
    }
    assert!(act.status.success(), "{said}{}", String::from_utf8_lossy(&act.stderr));
    assert!(said.contains("10 of 10 synced files"), "{said}");
}

#[test]
fn the_service_manager_hears_of_the_beginning_and_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let image = create(folder.path());
    let manager = folder.path().join("manager");
    let heard = UnixDatagram::bind(&manager).unwrap();
    heard.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let hear = || {
        let mut text = [0; 64];
        let length = heard.recv(&mut text).expect("the service manager hears nothing");
        String::from_utf8_lossy(&text[..length]).into_owned()
    };
    let mut child = Command::new(LEYDEN)
        .arg("serve")
        .arg(image)
        .args(["--nbd", &format!("unix:{}", folder.path().join("nbd").display())])
        .env("NOTIFY_SOCKET", &manager)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert_eq!(hear(), "READY=1");
    terminate(&child);
    assert_eq!(hear(), "STOPPING=1");
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_unit_is_one_that_systemd_takes() {
    let folder = tempfile::tempdir().unwrap();
    let unit = repository().join("integrations/systemd/leyden@.service");
    let unit = std::fs::read_to_string(unit).unwrap();
    assert!(unit.contains("/usr/bin/leyden serve"));
    // The program need not be installed.
    let copy = folder.path().join("leyden@.service");
    std::fs::write(&copy, unit.replace("/usr/bin/leyden", LEYDEN)).unwrap();
    let instance = folder.path().join("leyden@test.service");
    std::os::unix::fs::symlink(&copy, &instance).unwrap();
    match Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&instance).output() {
        Err(_) => eprintln!("LEFT OUT: systemd-analyze is not installed"),
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let of_ours: Vec<_> = said.lines().filter(|line| line.contains("leyden@")).collect();
            assert!(of_ours.is_empty(), "{said}");
            // Tenths: below 2 is what systemd calls OK, or better.
            let security = ["security", "--offline=true", "--threshold=20"];
            let rated = Command::new("systemd-analyze").args(security).arg(&instance).output();
            let rated = rated.unwrap();
            assert!(rated.status.success(), "{}", String::from_utf8_lossy(&rated.stdout));
        }
    }
}
