//! Served drives as browsers and Prometheus find them: figures that are known before, the switch, and clients that misbehave.

#![expect(clippy::disallowed_methods, reason = "what a server does in real time is waited for")]

#[expect(dead_code, reason = "other tests need more of it")]
mod harness;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use leyden_buffer::Region;
use leyden_serve::{Http, HttpOptions, Limits, Listen, Pace};
use serde_json::Value;

use harness::*;

const TOKEN: &str = "a token of the tests";
/// Written before a cut: many pages, and less than the buffer has room for.
const BYTES: u64 = 96 << 10;
const CUT: &str = "{\"ask\":\"cut\"}";

/// A page of a drive.
struct Page {
    http: Http,
    at: SocketAddr,
}

/// A reply: its first line and headers, and its body.
struct Reply {
    head: String,
    body: String,
}

impl Reply {
    fn status(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }
}

impl Page {
    fn of(served: &Served) -> Self {
        let listen = Listen::Tcp("127.0.0.1:0".to_owned());
        let options = HttpOptions { listen, token: Some(TOKEN.to_owned()) };
        let servers = std::slice::from_ref(served.server.as_ref().unwrap());
        let http = Http::start(servers, &options).unwrap();
        let at = http.url()["http://".len()..].trim_end_matches('/').parse().unwrap();
        Self { http, at }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.at).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }

    /// Sends these bytes, and reads all that comes.
    fn send(&self, bytes: &[u8]) -> Reply {
        let mut stream = self.connect();
        let _ = stream.write_all(bytes); // who is refused early may be hung up on
        let mut reply = Vec::new();
        let _ = stream.read_to_end(&mut reply);
        let reply = String::from_utf8(reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap_or((&reply, ""));
        Reply { head: head.to_owned(), body: body.to_owned() }
    }

    fn ask(&self, first: &str, headers: &str, body: &str) -> Reply {
        let (at, length) = (self.at, body.len());
        let head =
            format!("{first} HTTP/1.1\r\nHost: {at}\r\nContent-Length: {length}\r\n{headers}\r\n");
        self.send(format!("{head}{body}").as_bytes())
    }

    fn get(&self, path: &str) -> Reply {
        self.ask(&format!("GET {path}"), "", "")
    }

    /// Throws the switch with the token.
    fn switch(&self, question: &str) -> Value {
        let headers = format!("Authorization: Bearer {TOKEN}\r\nOrigin: http://{}\r\n", self.at);
        let reply = self.ask("POST /drives/0", &headers, question);
        assert_eq!(reply.status(), "200", "{} {}", reply.head, reply.body);
        serde_json::from_str(&reply.body).unwrap()
    }

    /// The metrics, once they have this line. The drive is read each second.
    fn metrics(&self, line: &str) -> String {
        let began = Instant::now();
        loop {
            let text = self.get("/metrics").body;
            if text.lines().any(|it| it == line) {
                return text;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "no {line} in\n{text}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The first events of each of these kinds.
    fn events(&self, kinds: &[&str]) -> Vec<Value> {
        let mut stream = self.connect();
        write!(stream, "GET /drives/0/events HTTP/1.1\r\nHost: {}\r\n\r\n", self.at).unwrap();
        let (mut text, mut piece) = (String::new(), vec![0; 65_536]);
        loop {
            let found: Vec<_> = kinds.iter().filter_map(|kind| event(&text, kind)).collect();
            if found.len() == kinds.len() {
                return found;
            }
            let count = stream.read(&mut piece).unwrap();
            assert!(count > 0, "it ended: {text}");
            text.push_str(str::from_utf8(&piece[..count]).unwrap());
        }
    }
}

/// The first whole event of this kind.
fn event(text: &str, kind: &str) -> Option<Value> {
    let (_, rest) = text.split_once(&format!("event: {kind}\ndata: "))?;
    let (data, _) = rest.split_once("\n\n")?;
    Some(serde_json::from_str(data).unwrap())
}

#[test]
fn metrics_are_those_of_the_commands_that_were_sent() {
    let served = Served::new(Region::Full, Pace::Untimed);
    let page = Page::of(&served);
    let mut client = served.client();
    assert_eq!(client.write(0, &[1; 8_192]), 0);
    assert_eq!(client.ask(0, FLUSH, 0, 0, &[]), 0);
    assert_eq!(client.write(8_192, &[2; 4_096]), 0);
    assert!(client.read(0, 4_096).is_ok() && client.read(8_192, 4_096).is_ok());
    assert_eq!(client.ask(0, TRIM, 65_536, 4_096, &[]), 0);
    let text = page.metrics("leyden_trims_total{drive=\"disk\"} 1");
    for line in [
        "leyden_drive_info{drive=\"disk\",kind=\"conventional\"} 1",
        "leyden_power_on{drive=\"disk\"} 1",
        "leyden_reads_total{drive=\"disk\"} 2",
        "leyden_writes_total{drive=\"disk\"} 2",
        "leyden_flushes_total{drive=\"disk\"} 1",
        "leyden_errors_total{drive=\"disk\"} 0",
        "leyden_read_bytes_total{drive=\"disk\"} 8192",
        "leyden_written_bytes_total{drive=\"disk\"} 12288",
        "leyden_in_flight{drive=\"disk\"} 0",
        "leyden_command_latency_seconds_count{drive=\"disk\",command=\"write\"} 2",
        "leyden_command_latency_seconds_bucket{drive=\"disk\",command=\"flush\",le=\"+Inf\"} 1",
        "leyden_command_latency_seconds_bucket{drive=\"disk\",command=\"read\",le=\"10.0\"} 2",
        "leyden_buffer_size_bytes{drive=\"disk\",region=\"protected\"} 131072",
        "leyden_power_cuts_total{drive=\"disk\"} 0",
    ] {
        assert!(text.lines().any(|it| it == line), "no {line} in\n{text}");
    }
    assert!(text.ends_with("# EOF\n"), "{text}");
    let reply = page.get("/metrics");
    let kind = "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n";
    assert!(reply.head.contains(kind), "{}", reply.head);
    // All of the buffer is protected: a cut would have to save the write that is not flushed.
    let promised = "leyden_cut_promised_bytes{drive=\"disk\",bank=\"drive\"} ";
    let promised = text.lines().find_map(|line| line.strip_prefix(promised)).unwrap();
    assert!(promised.parse::<u64>().unwrap() >= 4_096, "{promised}");
}

#[test]
fn events_say_what_the_drive_is_and_does() {
    let served = Served::new(Region::Full, Pace::Untimed);
    let page = Page::of(&served);
    let mut client = served.client();
    assert_eq!(client.write(0, &[1; 8_192]), 0);
    page.metrics("leyden_writes_total{drive=\"disk\"} 1");
    let [about, sample, cuts] = page.events(&["about", "sample", "cuts"]).try_into().unwrap();
    assert_eq!(about["names"], serde_json::json!(["disk"]));
    assert_eq!(about["kind"], "conventional");
    assert_eq!(about["capacity_bytes"], client.bytes);
    assert_eq!((&sample["is_on"], &sample["pending"]), (&true.into(), &0.into()));
    let (holds, needs) = (&sample["banks"][0]["holds_nj"], &sample["banks"][0]["needs"]);
    assert!(needs["energy_nj"].as_u64().unwrap() < holds.as_u64().unwrap(), "{sample}");
    assert_eq!(cuts, serde_json::json!([]));
}

/// A bank for a part of the dump saves no more: the drive loses acknowledged data, and says which.
#[test]
fn a_cut_through_the_page_loses_what_it_must_and_a_restore_brings_the_rest_back() {
    let served = Served::new(Region::Full, Pace::Untimed);
    let page = Page::of(&served);
    let mut client = served.client();
    assert_eq!(client.write(0, &[1; 4_096]), 0);
    assert_eq!(client.ask(0, FLUSH, 0, 0, &[]), 0);
    assert_eq!(client.write(0, &[2; 4_096]), 0);
    // With its own bank it keeps both.
    let cut = page.switch(CUT);
    assert_eq!((&cut["answer"], &cut["lost"]), (&"cut".into(), &serde_json::json!([])));
    assert!(client.read(0, 4_096).is_err(), "the power is off");
    page.metrics("leyden_power_on{drive=\"disk\"} 0");
    assert_eq!(
        page.switch("{\"ask\":\"restore\",\"capacitance_nf\":120000}")["answer"],
        "restored"
    );
    assert_eq!(client.read(0, 4_096).unwrap(), [2; 4_096]);
    assert_eq!(client.ask(0, FLUSH, 0, 0, &[]), 0);
    assert_eq!(client.write(0, &vec![3; BYTES as usize]), 0);
    let cut = page.switch(CUT);
    let lost: Vec<(u64, u64)> = serde_json::from_value(cut["lost"].clone()).unwrap();
    let lost_bytes: u64 = lost.iter().map(|range| range.1 * 512).sum();
    assert!(lost_bytes > 0 && lost_bytes < BYTES, "{cut}");
    let text = page.metrics("leyden_power_cuts_total{drive=\"disk\"} 2");
    let line = format!("leyden_lost_bytes_total{{drive=\"disk\"}} {lost_bytes}\n");
    assert!(text.contains(&line), "no {line} in {text}");
    assert_eq!(page.switch("{\"ask\":\"restore\"}")["answer"], "restored");
    // Each sector is as the report has it.
    let data = client.read(0, BYTES as u32).unwrap();
    for (lba, sector) in (0..).zip(data.chunks(512)) {
        let is_lost = lost.iter().any(|&(first, count)| (first..first + count).contains(&lba));
        assert_eq!(sector.iter().all(|&byte| byte == 3), !is_lost, "LBA {lba}: {cut}");
    }
    page.metrics("leyden_power_on{drive=\"disk\"} 1");
    let [cuts] = page.events(&["cuts"]).try_into().unwrap();
    assert_eq!(
        (&cuts[1]["number"], &cuts[1]["lost_bytes"]),
        (&2.into(), &lost_bytes.into()),
        "{cuts}"
    );
    assert!(cuts[1]["restored"]["ready_in_ns"].as_u64().unwrap() > 0);
}

#[test]
fn nothing_changes_without_the_token_or_for_the_page_of_another_site() {
    let log = Log::default();
    let writer = log.clone();
    let lines = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false);
    let _ = tracing::subscriber::set_global_default(lines.finish());
    let served = Served::new(Region::None, Pace::Untimed);
    let page = Page::of(&served);
    let own = format!("Origin: http://{}\r\n", page.at);
    let right = format!("Authorization: Bearer {TOKEN}\r\n");
    let post = |headers: &str, body: &str| page.ask("POST /drives/0", headers, body);
    let status = |headers: &str, body: &str| post(headers, body).status().to_owned();
    assert_eq!(status(&own, CUT), "401");
    assert_eq!(status(&format!("{own}Authorization: Bearer {}\r\n", &TOKEN[..10]), CUT), "401");
    assert_eq!(status(&format!("{right}Origin: http://evil.example\r\n"), CUT), "403");
    assert_eq!(status(&format!("{right}Origin: null\r\n"), CUT), "403");
    assert_eq!(status(&right, "{\"ask\":\"stop\"}"), "403");
    assert_eq!(status(&right, "{\"ask\":\"fault\",\"rule\":\"flush\"}"), "403");
    assert_eq!(status(&right, "cut"), "400");
    assert_eq!(page.ask("GET /drives/0", &right, "").status(), "405");
    assert_eq!(page.ask("POST /drives/1", &right, CUT).status(), "404");
    let rebound = format!(
        "POST /drives/0 HTTP/1.1\r\nHost: evil.example\r\n{right}Content-Length: 13\r\n\r\n{CUT}"
    );
    assert_eq!(page.send(rebound.as_bytes()).status(), "421");
    let read = "GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    assert_eq!(page.send(read.as_bytes()).status(), "421");
    assert_eq!(served.client().write(0, &[1; 512]), 0, "the power is still on");
    assert_eq!(page.switch(CUT)["answer"], "cut");
    assert_eq!(status(&right, CUT), "409", "it is off already");
    let said = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(
        said.contains("the switch is thrown from a page") && said.contains("HTTP client sent away"),
        "{said}"
    );
    assert!(!said.contains(TOKEN) && !format!("{:?}", page.http).contains(TOKEN), "{said}");
}

#[test]
fn the_page_is_one_file_that_loads_nothing() {
    let served = Served::new(Region::None, Pace::Untimed);
    let page = Page::of(&served);
    let Reply { head, body } = page.get("/");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    let nonce = head.split("script-src 'nonce-").nth(1).unwrap().split('\'').next().unwrap();
    assert_eq!(
        body.matches("<script").count(),
        body.matches(&format!("<script nonce=\"{nonce}\"")).count()
    );
    assert!(!page.get("/").head.contains(nonce), "another one each time");
    for foreign in ["src=\"http", "href=\"http", "@import", "url(", "@nonce@", "@script@"] {
        assert!(!body.contains(foreign), "{foreign}");
    }
    assert!(!body.contains(TOKEN) && head.contains("frame-ancestors 'none'"), "{head}");
    let without = page.ask("HEAD /", "", "");
    assert!(without.body.is_empty() && without.status() == "200");
    for (path, status) in [
        ("/favicon.ico", "404"),
        ("/drives/0/nothing", "404"),
        ("/drives/x", "404"),
        ("/?a", "200"),
    ] {
        assert_eq!(page.get(path).status(), status, "{path}");
    }
}

/// Memory of this process that is really there.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// Slow, silent, huge and greedy ones: the honest NBD client beside them is served, and new ones are let in.
#[test]
fn two_hundred_hostile_clients_harm_nobody() {
    let served = Served::within(Region::None, Pace::Untimed, Limits::new(256 << 20, 64).unwrap());
    let page = Page::of(&served);
    let mut honest = served.client();
    assert_eq!(honest.write(0, &[3; 4_096]), 0);
    let before = resident_bytes();
    let follow = format!("GET /drives/0/events HTTP/1.1\r\nHost: {}\r\n\r\n", page.at);
    let open: Vec<_> = (0..200)
        .map(|number| {
            let mut stream = page.connect();
            let _ = match number % 4 {
                0 => Ok(()),
                1 => stream.write_all(b"GET / HTTP/1.1\r\nHost: "),
                2 => stream.write_all(follow.as_bytes()), // and never reads
                _ => stream.write_all(&vec![b'A'; 64 << 10]),
            };
            stream
        })
        .collect();
    for round in 0..50_u64 {
        assert_eq!(honest.write(round * 4_096, &[7; 4_096]), 0);
        assert_eq!(honest.read(round * 4_096, 4_096).unwrap(), [7; 4_096]);
    }
    let mut late = served.client();
    assert_eq!(late.read(0, 4_096).unwrap(), [7; 4_096]);
    let taken = resident_bytes().saturating_sub(before);
    assert!(taken < 64 << 20, "{} MiB", taken >> 20);
    // An eighth of 64 places is theirs: who comes then is told so, and the switch still works.
    let full = page.get("/metrics");
    assert_eq!(full.status(), "503", "{} {}", full.head, full.body);
    assert_eq!(page.switch(CUT)["answer"], "cut");
    assert_eq!(page.switch("{\"ask\":\"restore\"}")["answer"], "restored");
    drop(open);
    page.metrics("leyden_power_cuts_total{drive=\"disk\"} 1");
}

#[test]
fn a_request_that_trickles_ends_with_its_deadline() {
    let served = Served::new(Region::None, Pace::Untimed);
    let page = Page::of(&served);
    let began = Instant::now();
    let mut stream = page.connect();
    while stream.write_all(b"G").is_ok() {
        assert!(began.elapsed() < Duration::from_secs(25), "it is still let in");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(began.elapsed() > Duration::from_secs(5), "a slow network is no attack");
    let _page = page.http; // the server is still there
}

#[test]
fn those_who_follow_a_drive_end_with_it() {
    let mut served = Served::new(Region::None, Pace::Untimed);
    let page = Page::of(&served);
    let mut stream = page.connect();
    write!(stream, "GET /drives/0/events HTTP/1.1\r\nHost: {}\r\n\r\n", page.at).unwrap();
    stream.read_exact(&mut [0; 8]).unwrap();
    served.stop();
    stream.read_to_end(&mut Vec::new()).unwrap();
}

/// The logged lines.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
