//! Served drives and the clients that are installed here: docs/serving.md, as a user has it.
//!
//! Tests whose tools (a client, /dev/fuse, loop devices) the machine lacks are left out, with a
//! message.

#![expect(clippy::print_stderr, reason = "what a machine lacks is said, not passed over")]

mod pages;
mod strangers;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

fn leyden(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_leyden")).args(args).output().unwrap()
}

#[track_caller]
fn good(output: &Output) -> String {
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{message}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
fn refused(args: &[&str], code: i32, part: &str) {
    let output = leyden(args);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {message}");
    assert!(message.contains(part), "{args:?}: no `{part}` in {message}");
}

/// True if `program` is installed; says so if not.
fn has(program: &str) -> bool {
    let has = Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let has = has.is_ok_and(|output| output.status.success());
    if !has {
        eprintln!("LEFT OUT: {program} is not installed");
    }
    has
}

/// A small drive whose buffer is a volatile cache, or is protected.
fn create(folder: &Path, region: &str) -> String {
    let image = folder.join("disk.leyden").to_str().unwrap().to_owned();
    let sets = [
        "device.nand.blocks_per_plane=32",
        "device.ftl.over_provisioning=20 %",
        "device.buffer.size=8 MiB",
        &format!("device.buffer.region={region}"),
    ];
    let mut args = vec!["image", "create", &image, "--drive", "devices/hexa"];
    args.extend(sets.iter().flat_map(|set| ["--set", set]));
    good(&leyden(&args));
    image
}

/// A server, killed when it is dropped.
struct Server {
    child: Child,
    socket: PathBuf,
    said: Vec<String>,
}

impl Server {
    fn start(image: &str, more: &[&str]) -> Self {
        let socket = Path::new(image).with_extension("nbd");
        let nbd = format!("unix:{}", socket.display());
        let mut child = Command::new(env!("CARGO_BIN_EXE_leyden"))
            .args(["serve", image, "--nbd", &nbd])
            .args(more)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = Vec::new();
        for line in BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok) {
            let is_ready = line.starts_with("control at");
            said.push(line);
            if is_ready {
                break;
            }
        }
        assert!(said.last().is_some_and(|line| line.starts_with("control at")), "{said:?}");
        Self { child, socket, said }
    }

    fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", self.socket.display())
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn terminate(mut self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }

    #[track_caller]
    fn qemu_io(&self, commands: &[&str]) -> Output {
        let commands = commands.iter().flat_map(|command| ["-c", command]);
        Command::new("qemu-io").args(["-f", "raw", &self.uri()]).args(commands).output().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn images_are_made_looked_at_and_copied() {
    let folder = tempfile::tempdir().unwrap();
    let image = create(folder.path(), "none");
    assert!(good(&leyden(&["image", "info", &image])).contains("disk"));
    assert!(good(&leyden(&["image", "check", &image])).contains("closed"));
    let copy = folder.path().join("copy.leyden").to_str().unwrap().to_owned();
    good(&leyden(&["image", "clone", &image, &copy]));
    assert!(good(&leyden(&["image", "check", &copy, "--json"])).contains("\"damaged_units\": 0"));
    refused(&["image", "clone", &image, &copy], 3, "exists");
    refused(&["image", "create", &copy], 3, "exists");
    for command in [&["image", "info"][..], &["image", "check"], &["serve"], &["cut"], &["status"]]
    {
        let args = [command, &["/nowhere/disk.leyden"]].concat();
        refused(&args, 2, "there is no image /nowhere/disk.leyden");
        refused(&args, 2, "leyden image create /nowhere/disk.leyden");
    }
    refused(&["image", "create", "/nowhere/disk.leyden"], 3, "could not be made");
    refused(&["image", "info", env!("CARGO_MANIFEST_DIR")], 3, "image");
    refused(&["cut", &image], 2, "is not served");
    refused(&["serve", &image, "--nbd", "nowhere"], 2, "unix:PATH");
    refused(&["serve", &image, "--nbd", "tcp:80:80:80"], 2, "tcp:HOST:PORT");
    refused(&["serve", &image, "--fuse", "/nowhere/disk"], 2, "mkdir /nowhere/disk");
    refused(&["serve", &image, "--fuse", "/dev/null"], 2, "is no folder");
    refused(&["serve", &image, "--speed", "0"], 2, "0.0001");
}

/// An image appears whole or not at all, whenever its maker is told to stop.
#[test]
fn a_signal_leaves_a_whole_image_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("disk.leyden").to_str().unwrap().to_owned();
    let mut stopped = 0;
    for (delay_ms, signal) in [(1, "INT"), (5, "TERM"), (40, "INT"), (150, "TERM"), (600, "INT")] {
        let size = ["--size", "8 TiB", "--set", "device.ftl.mapping_unit=8 KiB"];
        let mut child = Command::new(env!("CARGO_BIN_EXE_leyden"))
            .args([&["image", "create", &image], &size[..]].concat())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(delay_ms));
        let id = child.id().to_string();
        let _ = Command::new("kill").args([&format!("-{signal}"), &id]).status().unwrap();
        let code = child.wait().unwrap().code();
        // Before it listens for signals, one ends it as any program.
        assert!([Some(0), Some(130), None].contains(&code), "{code:?} after {delay_ms} ms");
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        if left.is_empty() {
            stopped += 1;
            continue;
        }
        let names: Vec<_> = left.into_iter().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(names, ["disk.leyden"], "after {delay_ms} ms");
        assert!(good(&leyden(&["image", "check", &image])).contains("closed"));
        std::fs::remove_file(&image).unwrap();
    }
    assert!(stopped > 0, "no signal came in time");
}

/// A drive as large as flash addresses reach costs what it holds: it is made, served, written, closed and opened again.
#[test]
fn an_empty_drive_of_terabytes_takes_megabytes() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("disk.leyden").to_str().unwrap().to_owned();
    refused(
        &["image", "create", &image, "--size", "8 TiB"],
        2,
        "device.ftl.mapping_unit=\"8 KiB\"",
    );
    let unit = ["--set", "device.ftl.mapping_unit=8 KiB"];
    good(&leyden(&[&["image", "create", &image, "--size", "8 TiB"], &unit[..]].concat()));
    let taken = || std::fs::metadata(&image).unwrap().blocks() * 512;
    assert!(taken() < 256 << 20, "{} bytes on disk", taken());
    for bytes in [[7; 8_192], [9; 8_192]] {
        let server = Server::start(&image, &["--latency", "off"]);
        let mut client = raw_client(&server.socket, 8 << 40);
        for at in [0, 4 << 40, (8 << 40) - 8_192] {
            ask(&mut client, 1, at, &bytes);
            assert!(ask(&mut client, 0, at, &bytes) == bytes);
        }
        let status = format!("/proc/{}/status", server.child.id());
        let status = std::fs::read_to_string(status).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!(kib < 1 << 20, "{kib} KiB of memory");
        drop(client);
        server.terminate();
    }
    assert!(taken() < 384 << 20, "{} bytes on disk", taken());
}

/// A connection past NBD's negotiation, to a drive of `size` bytes.
fn raw_client(socket: &Path, size: u64) -> UnixStream {
    let mut client = UnixStream::connect(socket).unwrap();
    let mut greeting = [0; 18];
    client.read_exact(&mut greeting).unwrap();
    assert!(greeting.starts_with(b"NBDMAGICIHAVEOPT"));
    // Fixed style without zeroes; option 1: the export whose name is empty.
    client.write_all(&3_u32.to_be_bytes()).unwrap();
    client.write_all(b"IHAVEOPT\0\0\0\x01\0\0\0\0").unwrap();
    let mut export = [0; 10];
    client.read_exact(&mut export).unwrap();
    assert_eq!(export[..8], size.to_be_bytes());
    client
}

/// A command of NBD: 0 reads, 1 writes `data`. What was read.
fn ask(client: &mut UnixStream, kind: u16, at: u64, data: &[u8]) -> Vec<u8> {
    let mut request = 0x2560_9513_u32.to_be_bytes().to_vec();
    request.extend([0; 2]);
    request.extend(kind.to_be_bytes());
    request.extend([0; 8]);
    request.extend(at.to_be_bytes());
    request.extend((data.len() as u32).to_be_bytes());
    request.extend(if kind == 1 { data } else { &[] });
    client.write_all(&request).unwrap();
    let mut reply = vec![0; 16 + if kind == 0 { data.len() } else { 0 }];
    client.read_exact(&mut reply).unwrap();
    assert_eq!(reply[4..8], [0; 4]);
    reply.split_off(16)
}

/// A second image beside the first.
fn copy(image: &str, name: &str) -> String {
    let copy = Path::new(image).with_file_name(name).to_str().unwrap().to_owned();
    good(&leyden(&["image", "clone", image, &copy]));
    copy
}

#[test]
fn several_drives_are_namespaces_of_one_nvme_subsystem() {
    let folder = tempfile::tempdir().unwrap();
    let image = create(folder.path(), "none");
    let other = copy(&image, "other.leyden");
    let nbd = format!("unix:{}", folder.path().join("nbd").display());
    refused(&["serve", &image, &other, "--nbd", &nbd], 2, "one leyden serve for each drive");
    refused(&["serve", &image, "--nvme", "unix:/run/a"], 2, "tcp:HOST:PORT");
    refused(&["serve", &image, "--nvme", "tcp:0", "--nvme-name", "box"], 2, "nqn.YYYY-MM");
    refused(&["serve", &image, "--nvme-name", "nqn.2026-01.a:b"], 2, "--nvme");
    // The first drive is closed as it was, without its control socket, whichever fault the second
    // one has.
    let odd = Path::new(&image).with_file_name("odd.leyden").to_str().unwrap().to_owned();
    let zones = ["--drive", "devices/zns", "--set", "device.zoned.zone_size=12 MiB"];
    good(&leyden(&[&["image", "create", &odd], &zones[..]].concat()));
    refused(&["serve", &image, &odd, "--nvme", "tcp:0"], 2, "powers of two");
    assert!(!Path::new(&format!("{image}.sock")).exists());
    assert!(good(&leyden(&["image", "check", &image])).contains("closed"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_leyden"))
        .args(["serve", &image, &other, "--nvme", "tcp:0"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let at = lines.find(|line| line.starts_with("NVMe at tcp:")).expect("it says where");
    assert!(at.ends_with("subsystem nqn.2026-01.local.leyden:disk"), "{at}");
    let address = at.split(['p', ',']).nth(1).unwrap().trim_start_matches(':').to_owned();
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    let mut begin = [0; 128];
    (begin[2], begin[4]) = (128, 128);
    stream.write_all(&begin).unwrap();
    stream.read_exact(&mut begin).unwrap();
    assert_eq!(begin[..3], [1, 0, 128]);
    // Each drive has its own switch; and the server ends as ever.
    good(&leyden(&["cut", &other]));
    assert!(good(&leyden(&["status", &image])).contains("on"));
    good(&leyden(&["restore", &other]));
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    assert!(child.wait().unwrap().success());
    for image in [image, other] {
        assert!(good(&leyden(&["image", "check", &image])).contains("closed"));
    }
}

/// Stock Linux in a guest, if `integrations/nvme/guest.sh build` has made one here.
#[test]
fn linux_attaches_drives_over_nvme() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../integrations/nvme/drives");
    for what in [&["facts"][..], &["cuts", "ext4", "2"]] {
        let args = ["--leyden", env!("CARGO_BIN_EXE_leyden")];
        let ran = Command::new(&script).args(args).args(what).output().unwrap();
        let (said, told) =
            (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        if ran.status.code() == Some(77) {
            eprintln!("{told}");
            return;
        }
        assert!(ran.status.success() && said.contains("all well"), "{what:?}\n{said}\n{told}");
    }
}

/// A stranger's socket at the name in a shared folder blocks no command for ever, and cannot pass
/// for the server.
#[test]
fn a_socket_that_was_planted_hangs_nobody() {
    use std::os::unix::net::UnixListener;
    let folder = tempfile::tempdir().unwrap();
    let image = create(folder.path(), "none");
    let planted = UnixListener::bind(format!("{image}.sock")).unwrap();
    let nbd = format!("unix:{}", folder.path().join("nbd").display());
    refused(&["serve", &image, "--nbd", &nbd], 3, "cannot listen");
    drop(planted.accept().unwrap()); // it has looked whether somebody listens
    // It accepts, and says nothing: the first SIGTERM ends those who ask.
    for command in ["status", "cut", "restore"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_leyden"))
            .args([command, &image])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let _asked = planted.accept().unwrap();
        assert!(child.try_wait().unwrap().is_none(), "it waits");
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(130));
    }
}

/// A link beside an image, which anybody makes who may write to the folder, names no other drive's switch.
#[test]
fn a_link_at_a_socket_cuts_no_other_drive() {
    let folder = tempfile::tempdir().unwrap();
    let other = create(folder.path(), "none");
    let image = copy(&other, "meant.leyden");
    let _server = Server::start(&other, &[]);
    std::os::unix::fs::symlink(format!("{other}.sock"), format!("{image}.sock")).unwrap();
    refused(&["cut", &image], 2, "links are not followed");
    let status = good(&leyden(&["status", &other, "--json"]));
    assert!(status.contains("\"is_on\": true"), "{status}");
}

/// Modes do not depend on the umask, and other users get access only if asked.
#[test]
fn sockets_and_images_are_their_owners() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    let folder = tempfile::tempdir().unwrap();
    let image = create(folder.path(), "none");
    assert_eq!(mode(Path::new(&image)), 0o600);
    let control = PathBuf::from(format!("{image}.sock"));
    // A recording, and what is exported, hold what the drive holds.
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let [recording, replayed, held] = ["work.leyrec", "replayed.raw", "held.raw"].map(file);
    let server = Server::start(&image, &["--record", &recording]);
    assert_eq!((mode(&control), mode(&server.socket)), (0o600, 0o600));
    server.terminate();
    good(&leyden(&["recording", "replay", &recording, "--raw", &replayed]));
    good(&leyden(&["image", "export", &image, &held]));
    for private in [recording, replayed, held] {
        assert_eq!(mode(Path::new(&private)), 0o600, "{private}");
    }
    let server = Server::start(&image, &["--socket-mode", "660", "--group", "0"]);
    assert_eq!((mode(&control), mode(&server.socket)), (0o660, 0o660));
    server.terminate();
    refused(&["serve", &image, "--nbd", "tcp:0", "--socket-mode", "777"], 2, "660");
    refused(&["serve", &image, "--nbd", "tcp:0", "--group", "no such group"], 2, "/etc/group");
    refused(&["serve", &image, "--nbd", "tcp:0", "--memory", "40 MiB"], 2, "--connections");
}

/// `nobody` may look where that is allowed, and can pull no switch.
#[test]
fn the_switch_is_its_owners() {
    let is_root = Command::new("sh").args(["-c", "[ $(id -u) = 0 ]"]).status().unwrap().success();
    if !is_root || !has("setpriv") || !has("prlimit") {
        eprintln!("LEFT OUT: it takes root to become somebody else");
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).unwrap();
    let image = create(folder.path(), "none");
    let server = Server::start(&image, &["--socket-mode", "666"]);
    let program = folder.path().join("leyden");
    // Written by a child: no other test's child has it open for writing, then.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_leyden")).arg(&program).status();
    assert!(copied.unwrap().success());
    let as_nobody = |command: &str| {
        let output = Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(&program)
            .args([command, &image])
            .output()
            .unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    for command in ["cut", "restore"] {
        let said = as_nobody(command);
        assert!(said.contains("user 65534 may look"), "{said}");
    }
    let said = as_nobody("status");
    assert!(said.contains("capacity"), "{said}");
    server.terminate();
    let server = Server::start(&image, &[]);
    let said = as_nobody("status");
    assert!(said.contains("Permission denied"), "{said}");
    server.terminate();
}

/// `leyden fault`: rules are taken, counted and ended; what is no rule says what one is.
#[test]
fn commands_of_a_served_drive_are_made_to_fail() {
    let folder = tempfile::tempdir().unwrap();
    let image = create(folder.path(), "none");
    refused(&["fault", &image, "flush"], 2, "is not served");
    let server = Server::start(&image, &["--latency", "off"]);
    refused(&["fault", &image, "flash"], 2, "write read, write, flush");
    let said = good(&leyden(&["fault", &image, "flush:nth=2", "read:lba=8+8,times=all"]));
    assert!(said.contains("flush:nth=2,times=1") && said.contains("0 of 0 failed"), "{said}");
    if has("qemu-io") {
        let fails = |output: Output| {
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat())
                .contains("Input/output")
        };
        assert!(fails(server.qemu_io(&["read 4096 512"])));
        assert!(!fails(server.qemu_io(&["read 8192 512"])));
        assert!(good(&leyden(&["fault", &image])).contains("1 of 1 failed"));
    }
    assert!(good(&leyden(&["fault", &image, "--clear"])).contains("none"));
    server.terminate();
}

/// With too few threads for all, clients are sent away; when they have gone, others are served as before.
#[test]
fn places_come_back_when_threads_were_missing() {
    use std::io::Read;
    use std::time::Duration;

    let is_root = Command::new("sh").args(["-c", "[ $(id -u) = 0 ]"]).status().unwrap().success();
    if !is_root || !has("setpriv") {
        eprintln!("LEFT OUT: root has as many threads as it likes, and becomes nobody else here");
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    create(folder.path(), "none");
    let program = folder.path().join("leyden");
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_leyden")).arg(&program).status();
    assert!(copied.unwrap().success());
    // A user that nothing else runs as: the limit counts all of a user's threads.
    let owned = Command::new("chown").args(["-R", "54321:54321"]).arg(folder.path()).status();
    assert!(owned.unwrap().success());
    // `ulimit -u` is not of every shell.
    let serve = ["prlimit", "--nproc=14", "./leyden", "serve", "disk.leyden", "--nbd"];
    let child = Command::new("setpriv")
        .args(["--reuid=54321", "--regid=54321", "--clear-groups"])
        .args(serve)
        .args(["unix:nbd.sock", "--latency", "off"])
        .current_dir(folder.path())
        .stderr(Stdio::null())
        .spawn();
    let server =
        Server { child: child.unwrap(), socket: folder.path().join("nbd.sock"), said: vec![] };
    let connect = || {
        let socket = UnixStream::connect(&server.socket).ok()?;
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        Some(socket)
    };
    let greeted = |mut socket: &UnixStream| socket.read_exact(&mut [0; 18]).is_ok();
    let mut tries = 0;
    while !connect().is_some_and(|socket| greeted(&socket)) {
        tries += 1;
        assert!(tries < 200, "the server does not start");
        std::thread::sleep(Duration::from_millis(100));
    }
    let mut sent_away = 0;
    for _ in 0..10 {
        let clients: Vec<_> = (0..30).filter_map(|_| connect()).collect();
        sent_away += clients.iter().filter(|socket| !greeted(socket)).count();
    }
    assert!(sent_away > 20, "threads were never short: {sent_away}");
    std::thread::sleep(Duration::from_secs(1));
    let late: Vec<_> = (0..4).filter_map(|_| connect()).collect();
    assert!(late.len() == 4 && late.iter().all(greeted), "places were lost");
}

/// A terminal would take them for commands.
#[test]
fn names_do_not_command_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("x\u{1b}[2Jy.leyden").to_str().unwrap().to_owned();
    refused(&["image", "create", &image], 2, "is no name for a drive");
    let plain = create(folder.path(), "none");
    std::fs::rename(&plain, &image).unwrap();
    for args in [&["image", "info", &format!("{image}no")][..], &["status", &image]] {
        let output = leyden(args);
        let said = [output.stdout, output.stderr].concat();
        assert!(!said.contains(&0x1b), "{}", String::from_utf8_lossy(&said));
    }
}

/// Deep folders: the control socket has a name there all the same.
#[test]
fn drives_in_deep_folders_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("w".repeat(100)).join("x".repeat(100));
    std::fs::create_dir_all(&deep).unwrap();
    let image = create(&deep, "none");
    let server = Server::start(&image, &[]);
    assert!(good(&leyden(&["status", &image])).contains("on"));
    assert!(good(&leyden(&["cut", &image])).contains("promised and lost"));
    server.terminate();
}

#[test]
fn a_server_takes_cuts_kills_and_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let image = create(folder.path(), "none");
    let server = Server::start(&image, &[]);
    let other = format!("unix:{}", folder.path().join("other").display());
    refused(&["serve", &image, "--nbd", &other], 2, "in use");
    refused(&["serve", &image], 2, "--nbd unix:PATH");
    assert!(good(&leyden(&["status", &image])).contains("on"));
    assert!(good(&leyden(&["cut", &image])).contains("promised and lost"));
    refused(&["cut", &image], 2, "off already");
    assert!(good(&leyden(&["restore", &image, "--capacitance-uf", "3000"])).contains("ready in"));
    assert!(good(&leyden(&["status", &image, "--json"])).contains("\"is_on\": true"));
    server.terminate();
    let server = Server::start(&image, &["--latency", "off"]);
    assert!(!server.said.iter().any(|line| line.contains("killed")), "{:?}", server.said);
    server.terminate();
}

#[test]
fn clients_of_nbd_find_a_disk() {
    let folder = tempfile::tempdir().unwrap();
    let image = create(folder.path(), "none");
    let server = Server::start(&image, &["--latency", "off"]);
    if has("nbdinfo") {
        let info = good(&Command::new("nbdinfo").arg(server.uri()).output().unwrap());
        assert!(info.contains("can_fua: true") && info.contains("base:allocation"), "{info}");
        let map = Command::new("nbdinfo").args(["--map", &server.uri()]).output().unwrap();
        assert!(good(&map).contains("hole,zero"));
    }
    if has("fio") {
        let uri = format!("--uri={}", server.uri());
        let args = ["--name=verify", "--ioengine=nbd", &uri, "--rw=randwrite", "--bs=4k"];
        let more = ["--iodepth=16", "--size=16m", "--verify=crc32c", "--verify_fatal=1"];
        let fio = Command::new("fio").args(args).args(more).current_dir(folder.path()).output();
        assert!(good(&fio.unwrap()).contains("err= 0"));
    }
    if has("qemu-io") {
        let said = good(&server.qemu_io(&[
            "write -P 7 0 64k",
            "write -P 9 1024 512",
            "read -P 7 0 1k",
            "read -P 9 1024 512",
            "discard 32k 16k",
            "read -P 0 32k 16k",
            "write -z 48k 4k",
            "read -P 0 48k 4k",
            "flush",
        ]));
        assert!(!said.contains("verification failed"), "{said}");
        // Flushed data survives a kill; the rest is lost with a volatile cache.
        good(&server.qemu_io(&["write -P 3 1M 64k", "flush"]));
        server.kill();
        let server = Server::start(&image, &[]);
        assert!(server.said[0].contains("killed"), "{:?}", server.said);
        let said = good(&server.qemu_io(&["read -P 3 1M 64k", "read -P 9 1024 512"]));
        assert!(!said.contains("verification failed"), "{said}");
        good(&leyden(&["cut", &image]));
        let dead = server.qemu_io(&["read 0 4k"]);
        assert!(
            String::from_utf8_lossy(&dead.stdout).contains("Input/output error")
                || !dead.status.success()
        );
        good(&leyden(&["restore", &image]));
        server.terminate();
        assert!(good(&leyden(&["image", "check", &image])).contains("closed"));
    }
}

#[test]
fn raw_images_go_in_and_come_out() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let mut raw = vec![0; 5 << 20];
    for (number, byte) in raw.iter_mut().enumerate().filter(|(number, _)| number % 70_000 < 9_000) {
        *byte = (number % 251) as u8;
    }
    raw.extend([7; 100]); // a part of a sector
    std::fs::write(at("in.raw"), &raw).unwrap();
    let set = ["--drive", "devices/hexa", "--set", "device.nand.blocks_per_plane=32"];
    let import = |from: &str, to: &str, more: &[&str]| {
        let args = [&["image", "import", from, to], &set[..], more].concat();
        leyden(&args)
    };
    good(&import(
        &at("in.raw"),
        &at("disk.leyden"),
        &["--set", "device.ftl.over_provisioning=40 %"],
    ));
    good(&leyden(&["image", "export", &at("disk.leyden"), &at("out.raw")]));
    let out = std::fs::read(at("out.raw")).unwrap();
    assert_eq!(out[..raw.len()], raw[..]);
    assert!(out[raw.len()..].iter().all(|&byte| byte == 0));
    refused(&["image", "export", &at("disk.leyden"), &at("out.raw")], 3, "exists");
    std::fs::File::create(at("big.raw")).unwrap().set_len(1 << 40).unwrap();
    let big = import(&at("big.raw"), &at("big.leyden"), &[]);
    assert_eq!(big.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&big.stderr).contains("the drive"), "{big:?}");
    assert!(!Path::new(&at("big.leyden")).exists());
}

#[test]
fn recordings_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let image = create(folder.path(), "none");
    let recording = folder.path().join("work.leyrec").to_str().unwrap().to_owned();
    let server = Server::start(&image, &["--latency", "off", "--record", &recording]);
    if !has("qemu-io") {
        return;
    }
    good(&server.qemu_io(&["write -P 7 0 64k", "flush", "write -P 9 64k 64k", "discard 0 4k"]));
    good(&leyden(&["cut", &image]));
    good(&leyden(&["restore", &image]));
    good(&server.qemu_io(&["write -P 5 128k 4k", "flush"]));
    server.terminate();
    let info = good(&leyden(&["recording", "info", &recording, "--json"]));
    for part in ["\"is_whole\": true", "\"cuts\": 1", "\"writes\": 3"] {
        assert!(info.contains(part), "no {part} in {info}");
    }
    let raw = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    good(&leyden(&["recording", "replay", &recording, "--raw", &raw("replayed.raw")]));
    good(&leyden(&["image", "export", &image, &raw("held.raw")]));
    assert!(std::fs::read(raw("replayed.raw")).unwrap() == std::fs::read(raw("held.raw")).unwrap());
    let cut = good(&leyden(&["recording", "replay", &recording, "--cut", "1 ms"]));
    assert!(cut.contains("promised and lost"), "{cut}");
    refused(&["recording", "info", &image], 2, "recording");
    refused(&["serve", &image, "--record", &recording], 3, "exists");
}

#[test]
fn tls_lets_in_who_shows_a_certificate() {
    if !has("openssl") || !has("nbdinfo") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/certificates.sh");
    let made = Command::new("sh").arg(script).arg(folder.path()).output().unwrap();
    good(&made);
    let image = create(folder.path(), "none");
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (certificate, key, authority) = (at("server.pem"), at("server.key"), at("ca-cert.pem"));
    let tls = ["--tls-certificate", &certificate, "--tls-key", &key, "--tls-clients", &authority];
    let server = Server::start(&image, &tls);
    let socket = server.socket.display();
    let ask = |uri: &str| Command::new("nbdinfo").arg(uri).output().unwrap();
    let certificates = at("client");
    let uri = format!("nbds+unix:///?socket={socket}&tls-certificates={certificates}");
    let uri = format!("{uri}&tls-hostname=localhost");
    let told = ask(&uri);
    if String::from_utf8_lossy(&told.stderr).contains("without TLS support") {
        eprintln!("LEFT OUT: nbdinfo knows no TLS");
        return;
    }
    let told = good(&told);
    assert!(told.contains("can_fua: true") && told.contains("with TLS"), "{told}");
    assert!(!ask(&server.uri()).status.success(), "in the open");
    let stranger = at("stranger");
    let uri = format!("nbds+unix:///?socket={socket}&tls-certificates={stranger}");
    assert!(!ask(&uri).status.success(), "a stranger");
    if has("qemu-io") {
        let qemu = |certificates: &str| {
            let tls = format!("tls-creds-x509,id=tls,dir={certificates},endpoint=client");
            let disk = format!(
                "driver=nbd,server.type=unix,server.path={socket},tls-creds=tls,tls-hostname=localhost"
            );
            let mut qemu = Command::new("qemu-io");
            qemu.args(["--object", &tls, "--image-opts", &disk]);
            qemu.args(["-c", "write -P 7 0 64k", "-c", "read -P 7 0 64k"]).output().unwrap()
        };
        let did = good(&qemu(&certificates));
        assert!(did.contains("read 65536/65536"), "{did}");
        assert!(!qemu(&stranger).status.success(), "a stranger");
    }
    let wrong = ["serve", &image, "--tls-certificate", &key, "--tls-key", &key];
    refused(&wrong, 2, "TLS");
    good(&ask(&format!(
        "nbds+unix:///?socket={socket}&tls-certificates={certificates}&tls-hostname=localhost"
    )));
}

/// Two rounds of `campaigns/rounds.py`. Skipped, and said, where a machine cannot do it.
#[track_caller]
fn rounds(args: &[&str]) {
    if !has("python3") {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../campaigns/rounds.py");
    let output = Command::new("python3")
        .arg(script)
        .args(["--leyden", env!("CARGO_BIN_EXE_leyden")])
        .args(args)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.code() == Some(77) {
        eprintln!("LEFT OUT: {said}");
        return;
    }
    assert!(
        output.status.success(),
        "{args:?}: {said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn ext4_keeps_what_was_synced_over_cuts_and_kills() {
    rounds(&["--fs", "ext4", "--work", "files", "--rounds", "2"]);
    rounds(&["--fs", "ext4-journal", "--work", "fio", "--rounds", "2"]);
}

#[test]
fn xfs_and_sqlite_keep_what_was_committed() {
    let larger = ["--size", "128", "--rounds", "2"];
    rounds(&[&["--fs", "xfs", "--work", "sqlite-wal"], &larger[..]].concat());
}

#[test]
fn a_drive_that_lies_is_found_out() {
    rounds(&["--work", "files", "--lie", "--expect-broken", "--rounds", "10"]);
}

/// A block device on a conventional and a zoned drive; the journal is found and kept apart, or the rounds fail.
#[test]
fn a_file_system_on_a_zoned_drive_keeps_what_was_synced() {
    rounds(&["--zoned-block", "--fs", "ext4-journal", "--work", "fio", "--rounds", "2"]);
    rounds(&["--zoned-block", "--fs", "xfs", "--work", "files", "--rounds", "2"]);
}
