//! Pages of served drives: every kind of drive, several at once, and the token.

use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use super::*;

/// A server with a page, killed when it is dropped.
struct Shown {
    child: Child,
    /// Lines of standard error up to where the control sockets are.
    said: Vec<String>,
    address: String,
}

impl Shown {
    fn start(images: &[&str], more: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_leyden"))
            .arg("serve")
            .args(images)
            .args(["--http", "0"])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut said = Vec::new();
        let mut last = images.len(); // a line for each, behind all others
        for line in lines {
            last -= usize::from(line.starts_with("control at"));
            said.push(line);
            if last == 0 {
                break;
            }
        }
        let page = said.iter().find_map(|line| line.strip_prefix("page at http://"));
        let address = page.unwrap_or_else(|| panic!("{said:?}")).trim_end_matches('/').to_owned();
        Self { child, said, address }
    }

    /// The reply to a request, with its head.
    fn ask(&self, first: &str, headers: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let (at, length) = (&self.address, body.len());
        write!(
            stream,
            "{first} HTTP/1.1\r\nHost: {at}\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        )
        .unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    }

    fn cut(&self, token: &str, drive: usize) -> String {
        let headers = format!("Authorization: Bearer {token}\r\n");
        self.ask(&format!("POST /drives/{drive}"), &headers, "{\"ask\":\"cut\"}")
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_page_shows_drives_of_every_kind() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (zoned, stack) = (path("zoned.leyden"), path("stack.leyden"));
    let disk = create(folder.path(), "full");
    let zones = ["--drive", "devices/zns", "--set", "device.zoned.zone_size=12 MiB"];
    good(&leyden(&[&["image", "create", &zoned][..], &zones].concat()));
    let layer =
        ["--drive", "devices/zoned-block", "--set", "host.conventional.nand.blocks_per_plane=24"];
    good(&leyden(&[&["image", "create", &stack][..], &layer].concat()));
    let shown = Shown::start(&[&disk, &zoned, &stack], &[]);
    let text = shown.ask("GET /metrics", "", "");
    for line in [
        "leyden_drive_info{drive=\"disk\",kind=\"conventional\"} 1",
        "leyden_drive_info{drive=\"zoned\",kind=\"zoned\"} 1",
        "leyden_drive_info{drive=\"stack\",kind=\"zoned-block\"} 1",
        "leyden_buffer_size_bytes{drive=\"disk\",region=\"protected\"} 8388608",
        "leyden_open_zones{drive=\"zoned\"} 0",
        "leyden_layer_copied_bytes_total{drive=\"stack\"} 0",
    ] {
        assert!(text.lines().any(|it| it == line), "no {line} in\n{text}");
    }
    // Both drives below a layer have a bank.
    for bank in ["conventional drive", "zoned drive"] {
        let joules = format!("leyden_bank_joules{{drive=\"stack\",bank=\"{bank}\"}} ");
        let joules = text.lines().find_map(|line| line.strip_prefix(&joules));
        assert!(joules.is_some_and(|it| it.parse::<f64>().unwrap() > 0.0), "{bank} {text}");
    }
    // The line with the token is on standard output, and the token throws the switch of that drive alone.
    let mut shown = shown;
    let mut line = String::new();
    BufReader::new(shown.child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let token = line.trim_end().split_once('#').unwrap().1.to_owned();
    assert!(token.len() == 32 && shown.said.iter().all(|line| !line.contains(&token)), "{line}");
    let reply = shown.cut(&token, 1);
    assert!(reply.starts_with("HTTP/1.1 200 ") && reply.contains("\"answer\":\"cut\""), "{reply}");
    for (image, power) in [(&disk, "on"), (&zoned, "off"), (&stack, "on")] {
        let status = good(&leyden(&["status", image]));
        assert!(
            status.lines().any(|line| line.split_whitespace().eq(["power", power])),
            "{status}"
        );
    }
}

#[test]
fn a_token_of_a_file_is_used_and_not_printed() {
    let folder = tempfile::tempdir().unwrap();
    let image = create(folder.path(), "none");
    let file = folder.path().join("token").to_str().unwrap().to_owned();
    std::fs::write(&file, "0123456789abcdef\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let mut shown = Shown::start(&[&image], &["--http-token", &file]);
    assert!(
        shown.said.iter().any(|line| line.contains("others can read the token")),
        "{:?}",
        shown.said
    );
    assert!(shown.cut("0123456789abcdeX", 0).starts_with("HTTP/1.1 401 "));
    assert!(shown.cut("0123456789abcdef", 0).starts_with("HTTP/1.1 200 "));
    let id = shown.child.id().to_string();
    assert!(Command::new("kill").arg(&id).status().unwrap().success());
    let mut printed = String::new();
    shown.child.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    assert_eq!(printed, "");
}

#[test]
fn pages_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let image = create(folder.path(), "none");
    let token = folder.path().join("token").to_str().unwrap().to_owned();
    refused(&["serve", &image, "--http", "http://localhost"], 2, "write PORT or HOST:PORT");
    refused(&["serve", &image, "--nbd", "tcp:0", "--http-token", &token], 2, "--http");
    refused(&["serve", &image, "--http", "0", "--http-token", &token], 2, "chmod 600");
    std::fs::write(&token, "short\n").unwrap();
    refused(&["serve", &image, "--http", "0", "--http-token", &token], 2, "holds no token");
    // Another server has the port.
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port().to_string();
    refused(&["serve", &image, "--http", &port], 3, "cannot listen at tcp:127.0.0.1");
    good(&leyden(&["image", "check", &image]));
}
