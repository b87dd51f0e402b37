//! Strangers' deeds: their images, sockets made in the server's name, other users of the machine,
//! memory that runs out.

use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;

use super::*;

/// The image of a stranger says how large its drive is.
#[test]
fn a_drive_that_no_memory_holds_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let image = create(folder.path(), "none");
    forge(&image, "\"blocks_per_plane\":32,", "\"blocks_per_plane\":900000000,");
    for args in [&["image", "check", &image][..], &["serve", &image, "--nbd", "unix:/nowhere/x"]] {
        refused(args, 2, "of memory, and");
    }
}

/// Writes `to` for `from` in an image's configuration, with its checksums made right.
fn forge(image: &str, from: &str, to: &str) {
    // The configuration lies behind the clock, its length and checksum in the head (docs/image.md).
    let file = File::options().read(true).write(true).open(image).unwrap();
    let mut head = [0; 64];
    file.read_exact_at(&mut head, 0).unwrap();
    let mut text = vec![0; u32::from_le_bytes(head[12..16].try_into().unwrap()) as usize];
    file.read_exact_at(&mut text, 16_384).unwrap();
    let text = String::from_utf8(text).unwrap();
    let forged = text.replace(from, to);
    assert_ne!(text, forged, "{text}");
    head[12..16].copy_from_slice(&(forged.len() as u32).to_le_bytes());
    head[16..20].copy_from_slice(&crc32(forged.as_bytes()).to_le_bytes());
    let crc = crc32(&head[..60]);
    head[60..64].copy_from_slice(&crc.to_le_bytes());
    file.write_all_at(forged.as_bytes(), 16_384).unwrap();
    file.write_all_at(&head, 0).unwrap();
}

/// IEEE 802.3.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}

/// A terminal would take it for commands.
#[test]
fn the_name_in_a_strangers_image_is_escaped() {
    let folder = tempfile::tempdir().unwrap();
    let image = create(folder.path(), "none");
    forge(&image, "\"name\":\"", "\"name\":\"\\u001b]0;owned\\u0007");
    let server = Server::start(&image, &["--latency", "off"]);
    assert!(!server.said.concat().contains('\u{1b}'), "{:?}", server.said);
    for args in [&["status", &image][..], &["image", "info", &image], &["image", "check", &image]] {
        let output = leyden(args);
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(!said.contains('\u{1b}') && !said.contains('\u{7}'), "{args:?}: {said:?}");
    }
    assert!(good(&leyden(&["status", &image])).contains("owned"), "the name is shown");
    server.terminate();
}

/// A listener in the server's place is read up to a limit, and its answer commands no terminal.
#[test]
fn answers_of_a_false_server_are_bounded_and_escaped() {
    let folder = tempfile::tempdir().unwrap();
    let image = create(folder.path(), "none");
    let planted = UnixListener::bind(format!("{image}.sock")).unwrap();
    let ask = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leyden"));
        command.args(["status", &image]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let asks = command.spawn().unwrap();
        let (mut asked, _) = planted.accept().unwrap();
        BufReader::new(asked.try_clone().unwrap()).read_line(&mut String::new()).unwrap();
        asked.set_write_timeout(Some(Duration::from_mins(1))).unwrap();
        (asks, move |bytes: &[u8]| asked.write_all(bytes))
    };
    let (asks, mut say) = ask();
    say(b"{\"answer\":\"refused\",\"why\":\"\\u001b]0;owned\\u0007\"}\n").unwrap();
    let output = asks.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(said.contains("owned") && !said.contains('\u{1b}'), "{said:?}");
    let (mut asks, mut say) = ask();
    let megabyte = vec![b'x'; 1 << 20];
    let taken = (0..1_000).take_while(|_| say(&megabyte).is_ok()).count();
    assert!(taken < 80, "{taken} MiB without a line's end were taken");
    assert!(!asks.wait().unwrap().success());
}

fn is_root() -> bool {
    Command::new("sh").args(["-c", "[ $(id -u) = 0 ]"]).status().unwrap().success()
}

/// Sockets, images and recordings of root are closed to other users under any umask.
#[test]
fn an_unprivileged_user_can_do_nothing_to_the_drive_of_root() {
    let python = "/usr/bin/python3"; // one that another user may run
    if !is_root() || !has("setpriv") || !Path::new(python).exists() {
        eprintln!("LEFT OUT: it takes root to become somebody else");
        return;
    }
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let image = create(folder.path(), "none");
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (nbd, programs, recording) = (at("nbd"), at("programs"), at("work.leyrec"));
    let serve = ["--nbd", &format!("unix:{nbd}"), "--programs", &format!("unix:{programs}")];
    let mut server = Command::new("sh")
        .args(["-c", "umask 000; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_leyden"), "serve", &image])
        .args(serve)
        .args(["--record", &recording])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(server.stderr.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.starts_with("control at")));
    let tries = "import socket, sys\nfor at in sys.argv[1:]:\n  for way in (lambda: open(at, 'rb'), lambda: open(at, 'r+b'), \
                 lambda: socket.socket(socket.AF_UNIX).connect(at)):\n    try: way(); print('opened', at)\n    \
                 except PermissionError: pass\n    except OSError as e: print(e, at) if e.errno not in (6, 111) else None\n";
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups", python, "-c", tries];
    let control = format!("{image}.sock");
    let all = [&image, &control, &nbd, &programs, &recording];
    let output = Command::new("setpriv").args(nobody).args(all).output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && said.is_empty(), "{said}");
    // The same tries open all of it as root: the check sees what is open.
    let output = Command::new(python).args(["-c", tries]).args(all).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(all.iter().all(|one| said.contains(&format!("opened {one}\n"))), "{said}");
    let id = server.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert!(server.wait().unwrap().success());
}

/// A key that others can read, and a drive that a network can write to, in the clear.
#[test]
fn options_that_let_others_in_are_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let image = create(folder.path(), "none");
    let server = Server::start(&image, &["--nbd", "tcp:0.0.0.0:0"]);
    let said = server.said.concat();
    assert!(said.contains("lets other machines read and write the drive, unencrypted"), "{said}");
    server.terminate();
    let server = Server::start(&image, &["--nbd", "tcp:127.0.0.1:0"]);
    assert!(!server.said.concat().contains("warning"), "{:?}", server.said);
    server.terminate();
    if !has("openssl") {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/certificates.sh");
    good(&Command::new("sh").arg(script).arg(folder.path()).output().unwrap());
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let tls = ["--tls-certificate", &at("server.pem"), "--tls-key", &at("server.key")];
    for (mode, is_warned) in [(0o666, true), (0o640, true), (0o600, false)] {
        std::fs::set_permissions(at("server.key"), PermissionsExt::from_mode(mode)).unwrap();
        let server = Server::start(&image, &tls);
        let warned = server.said.concat().contains("others can read the key");
        assert_eq!(warned, is_warned, "{mode:o}: {:?}", server.said);
        server.terminate();
    }
}

/// Where the system gives less memory than `--memory` allows, clients are refused, and the server lives: its end would be a
/// power cut for all.
#[test]
fn a_server_that_gets_no_memory_refuses_and_lives() {
    if !has("prlimit") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let image = create(folder.path(), "none");
    let limits = ["--memory", "8 GiB", "--connections", "64", "--latency", "off"];
    let mut server = Server::start(&image, &limits);
    // They are let in before memory is short: threads take some, too.
    let mut clients: Vec<_> = (0..10).filter_map(|_| negotiated(&server.socket)).collect();
    assert_eq!(clients.len(), 10);
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmSize:")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    let most = format!("--as={}", (kib << 10) + (200 << 20));
    let pid = server.child.id().to_string();
    assert!(Command::new("prlimit").args(["--pid", &pid, &most]).status().unwrap().success());
    let length = clients[0].1.min(32 << 20) as u32;
    for (client, _) in &mut clients {
        let _ = client.write_all(&[request(0, length), request(0, length)].concat());
    }
    std::thread::sleep(Duration::from_secs(2)); // nothing is taken meanwhile
    let (mut refused, mut data) = (0, vec![0; length as usize]);
    for (client, _) in &mut clients {
        let mut head = [0; 16];
        while client.read_exact(&mut head).is_ok() {
            match head[4..8] {
                [0, 0, 0, 0] if client.read_exact(&mut data).is_ok() => {}
                [0, 0, 0, 12] => refused += 1, // ENOMEM
                _ => break,
            }
            client.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        }
    }
    drop(clients);
    assert!(server.child.try_wait().unwrap().is_none(), "the server has ended");
    let served = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        let Some((mut client, _)) = negotiated(&server.socket) else { return false };
        let mut reply = [0; 16 + 4_096];
        client.write_all(&request(0, 4_096)).is_ok() && client.read_exact(&mut reply).is_ok()
    });
    assert!(served, "nobody is served afterwards");
    assert!(refused > 0, "nothing was refused: memory was not short");
    server.terminate();
}

/// A client that has negotiated, and the drive's bytes.
fn negotiated(socket: &Path) -> Option<(UnixStream, u64)> {
    let mut client = UnixStream::connect(socket).ok()?;
    client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    client.read_exact(&mut [0; 18]).ok()?;
    client.write_all(b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\0").ok()?;
    let mut export = [0; 10];
    client.read_exact(&mut export).ok()?;
    Some((client, u64::from_be_bytes(export[..8].try_into().unwrap())))
}

/// A read of so many bytes.
fn request(offset: u64, length: u32) -> Vec<u8> {
    let magic = 0x2560_9513_u32.to_be_bytes();
    [&magic[..], &[0; 12], &offset.to_be_bytes(), &length.to_be_bytes()].concat()
}
