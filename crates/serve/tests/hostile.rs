//! Clients that misbehave, and what an honest one beside them notices.

#![expect(clippy::print_stderr, reason = "what a machine lacks is said, not passed over")]

mod harness;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leyden_buffer::Region;
use leyden_serve::{ControlAnswer, ControlAsk, Limits, Pace, Tls, TlsFiles, control};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use harness::*;

/// Held by tests that measure the memory of this process.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn clients_that_misbehave_harm_nobody_else() {
    let mut served = Served::new(Region::None, Pace::Untimed);
    let mut good = served.client();
    // Half a handshake, and gone.
    let mut half = UnixStream::connect(served.socket()).unwrap();
    half.write_all(&[0, 0]).unwrap();
    drop(half);
    // Half a handshake, and still there.
    let _silent = UnixStream::connect(served.socket()).unwrap();
    for hostile in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        &[0xff; 64],
        b"\0\0\0\x03IHAVEOPT\0\0\0\x07\xff\xff\xff\xff",
        b"\0\0\0\x03IHAVEOPT\0\0\0\x01\0\0\0\x04nope",
    ] {
        let mut stream = UnixStream::connect(served.socket()).unwrap();
        stream.write_all(hostile).unwrap();
        let mut rest = Vec::new();
        // The server hangs up; what it said before was the greeting.
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.starts_with(b"NBDMAGIC") && rest.len() <= 18, "{rest:?}");
    }
    // A request that is none, and a write that never comes.
    let mut client = served.client();
    client.stream.write_all(&[0x55; 28]).unwrap();
    assert_eq!(client.stream.read(&mut [0; 8]).unwrap(), 0);
    let mut client = served.client();
    client.send(0, WRITE, 1, 0, 4_096, &[0; 100]);
    // One that asks for much and never reads.
    let mut greedy = served.client();
    (0..200).for_each(|cookie| greedy.send(0, READ, cookie, 0, 1 << 20, &[]));
    assert_eq!(good.write(0, &[9; 4_096]), 0);
    assert_eq!(good.read(0, 4_096).unwrap(), [9; 4_096]);
    // The control socket, too.
    let mut stream = UnixStream::connect(control::socket_of(&served.image())).unwrap();
    stream.write_all(b"{\"ask\":\"explode\"}\n").unwrap();
    let mut answer = [0; 512];
    let count = stream.read(&mut answer).unwrap();
    assert!(String::from_utf8_lossy(&answer[..count]).contains("refused"));
    // All that an honest one may ask for works, and so does the end.
    assert_eq!(good.ask(0, FLUSH, 0, 0, &[]), 0);
    assert_eq!(good.ask(0, TRIM, 0, 4_096, &[]), 0);
    assert_eq!(good.ask(FUA, WRITE_ZEROES, 0, 512, &[]), 0);
    drop((client, greedy));
    served.stop();
    served.reopen();
    assert_eq!(served.client().read(512, 512).unwrap(), [0; 512]);
}

/// Memory of this process that is really there.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

/// A few bytes make a server promise much: what is promised to all of them together has a limit, and who holds what others
/// wait for goes.
#[test]
fn clients_that_ask_for_much_and_never_read_share_one_budget() {
    let _alone = ALONE.lock();
    let limits = Limits::new(64 << 20, 12).unwrap();
    let served = Served::within(Region::None, Pace::Untimed, limits);
    let mut honest = served.client();
    let large = honest.bytes.min(16 << 20) as u32;
    assert_eq!(honest.write(0, &[3; 4_096]), 0);
    let before = resident_bytes();
    let mut hostile: Vec<_> = (0..10).map(|_| served.client()).collect();
    for client in &mut hostile {
        (0..6).for_each(|cookie| client.send(0, READ, cookie, 0, large, &[]));
    }
    std::thread::sleep(Duration::from_millis(500));
    let taken = resident_bytes().saturating_sub(before);
    assert!(taken < 96 << 20, "{} MiB for 10 clients", taken >> 20);
    // Small requests have their own share.
    assert_eq!(honest.write(4_096, &[4; 4_096]), 0);
    assert_eq!(honest.read(4_096, 4_096).unwrap(), [4; 4_096]);
    // A large one gets what it needs from those who do not take theirs.
    honest.stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    assert_eq!(honest.write(0, &vec![5; large as usize]), 0);
}

/// Requests that a client has left in the kernel's buffers are not served: they would take the drive's time from others.
#[test]
fn requests_of_a_client_that_has_gone_are_not_served() {
    let served = Served::new(Region::None, Pace::Untimed);
    let mut honest = served.client();
    assert_eq!(honest.write(0, &[3; 4_096]), 0);
    let mut gone = served.client();
    // 64 reads: flags, kind, cookie, offset, length.
    let numbers = [&[0, 0, 0, 0][..], &[0; 8], &[0; 8], &4_096_u32.to_be_bytes()].concat();
    let requests = [&0x2560_9513_u32.to_be_bytes()[..], &numbers].concat().repeat(64);
    gone.stream.set_nonblocking(true).unwrap();
    let (mut sent, mut idle) = (0, 0);
    // Until the server takes no more: its window is full, and so are the buffers between it and its client.
    while idle < 20 {
        if let Ok(count) = gone.stream.write(&requests) {
            (sent, idle) = (sent + count as u64 / 28, 0);
        } else {
            idle += 1;
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    drop(gone);
    let reads = || match control::ask(&served.image(), &ControlAsk::Status).unwrap() {
        ControlAnswer::Status(status) => status.reads,
        other => panic!("{other:?}"),
    };
    let (mut before, mut now) = (u64::MAX, reads());
    while before != now {
        std::thread::sleep(Duration::from_millis(200));
        (before, now) = (now, reads());
    }
    // A window of them was on its way to the drive, and one was taken while that ended.
    assert!(sent > 3_000, "the buffers hold few requests: {sent}");
    assert!(now < sent / 2, "{now} of {sent} were read");
}

/// The same of large requests, which wait for memory before the drive is asked.
#[test]
fn requests_that_wait_for_memory_end_with_their_client() {
    let _alone = ALONE.lock();
    let limits = Limits::new(64 << 20, 12).unwrap();
    let served = Served::within(Region::None, Pace::Untimed, limits);
    let reads = || match control::ask(&served.image(), &ControlAsk::Status).unwrap() {
        ControlAnswer::Status(status) => status.reads,
        other => panic!("{other:?}"),
    };
    let holders: Vec<_> = (0..2).map(|_| served.client()).collect();
    let large = holders[0].bytes.min(16 << 20) as u32;
    let ask = |mut client: Client| {
        client.send(0, READ, 0, 0, large, &[]);
        client
    };
    let holders: Vec<_> = holders.into_iter().map(ask).collect();
    while reads() < 2 {
        std::thread::sleep(Duration::from_millis(10));
    }
    let waiting: Vec<_> = (0..8).map(|_| ask(served.client())).collect();
    std::thread::sleep(Duration::from_millis(100));
    drop(waiting);
    drop(holders);
    // Behind all that was asked before, if that is still served.
    let mut honest = served.client();
    honest.stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    assert_eq!(honest.read(0, large).unwrap().len(), large as usize);
    let count = reads();
    assert!(
        count <= 5,
        "{count} reads: the holders' 2, the honest one's, and those of clients that have gone"
    );
}

#[test]
fn a_write_that_is_announced_and_never_comes_takes_no_memory() {
    let _alone = ALONE.lock();
    let served = Served::new(Region::None, Pace::Untimed);
    let mut honest = served.client();
    let before = resident_bytes();
    let mut hostile: Vec<_> = (0..100).map(|_| served.client()).collect();
    for client in &mut hostile {
        client.send(0, WRITE, 1, 0, 16 << 20, &[1; 100]);
    }
    std::thread::sleep(Duration::from_millis(300));
    let taken = resident_bytes().saturating_sub(before);
    assert!(taken < 64 << 20, "{} MiB", taken >> 20);
    assert_eq!(honest.write(0, &[9; 4_096]), 0);
}

/// Each of these holds a place without a word.
#[test]
fn clients_that_do_not_negotiate_lock_out_nobody() {
    let served = Served::new(Region::None, Pace::Untimed);
    let mut early = served.client();
    assert_eq!(early.write(0, &[1; 512]), 0);
    let silent: Vec<_> = (0..400).map(|_| UnixStream::connect(served.socket()).unwrap()).collect();
    let mut late = served.client();
    assert_eq!(late.read(0, 512).unwrap(), [1; 512]);
    assert_eq!(early.read(0, 512).unwrap(), [1; 512]);
    drop(silent);
}

/// Those that ask on the control socket have places of their own: who holds them without a word keeps nobody from the switch.
#[test]
fn who_is_silent_at_the_control_socket_keeps_nobody_from_it() {
    let served = Served::new(Region::None, Pace::Untimed);
    let at = control::socket_of(&served.image());
    let silent: Vec<_> = (0..300).map(|_| UnixStream::connect(&at).unwrap()).collect();
    for ask in [ControlAsk::Status, ControlAsk::Cut] {
        let answer = control::ask(&served.image(), &ask).unwrap();
        assert!(matches!(answer, ControlAnswer::Status(_) | ControlAnswer::Cut(_)), "{answer:?}");
    }
    drop(silent);
}

/// These negotiate, and then ask for nothing.
#[test]
fn clients_that_ask_for_nothing_lock_out_nobody() {
    let limits = Limits::new(64 << 20, 8).unwrap();
    let served = Served::within(Region::None, Pace::Untimed, limits);
    let mut early = served.client();
    assert_eq!(early.write(0, &[1; 512]), 0);
    let idle: Vec<_> = (0..20).map(|_| served.client()).collect();
    let mut late = served.client();
    assert_eq!(late.read(0, 512).unwrap(), [1; 512]);
    assert_eq!(early.read(0, 512).unwrap(), [1; 512]);
    drop(idle);
}

#[test]
fn the_names_of_exports_are_logged_short() {
    let served = Served::new(Region::None, Pace::Untimed);
    let log = Log::default();
    let writer = log.clone();
    let subscriber =
        tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).finish();
    let _ = tracing::subscriber::set_global_default(subscriber);
    let mut stream = UnixStream::connect(served.socket()).unwrap();
    take::<18>(&mut stream);
    let name = "\x1b]0;x\x07".repeat(500);
    let mut option = b"\0\0\0\x03IHAVEOPT\0\0\0\x01".to_vec();
    option.extend((name.len() as u32).to_be_bytes());
    option.extend(name.as_bytes());
    stream.write_all(&option).unwrap();
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0, "it is hung up on");
    let said = loop {
        let said = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        if let Some(line) = said.lines().find(|line| line.contains("which is not there")) {
            break line.to_owned();
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    assert!(said.len() < 700 && !said.contains('\x1b'), "{said}");
    assert!(said.contains("client=") && said.contains("of user"), "{said}");
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

type Encrypted = StreamOwned<ClientConnection, UnixStream>;

/// A client with the certificate `client`, if any.
fn encrypted(socket: &Path, folder: &Path, client: Option<&str>) -> Encrypted {
    let at = |name: &str| folder.join(name);
    let mut stream = UnixStream::connect(socket).unwrap();
    assert_eq!(&take::<18>(&mut stream)[..8], b"NBDMAGIC");
    stream.write_all(&3_u32.to_be_bytes()).unwrap();
    stream.write_all(b"IHAVEOPT\0\0\0\x05\0\0\0\0").unwrap(); // NBD_OPT_STARTTLS
    let reply = take::<20>(&mut stream);
    assert_eq!(reply[12..16], 1_u32.to_be_bytes(), "NBD_REP_ACK");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(at("ca-cert.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match client {
        None => config.with_no_client_auth(),
        Some(name) => {
            let chain = CertificateDer::from_pem_file(at(&format!("{name}.pem"))).unwrap();
            let key = PrivateKeyDer::from_pem_file(at(&format!("{name}.key"))).unwrap();
            config.with_client_auth_cert(vec![chain], key).unwrap()
        }
    };
    let name = ServerName::try_from("localhost").unwrap();
    let client = ClientConnection::new(Arc::new(config), name).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    StreamOwned::new(client, stream)
}

/// A server with TLS, which asks clients for certificates or not, and the folder of all certificates.
fn with_tls(clients: bool) -> Option<(tempfile::TempDir, Served)> {
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/data/certificates.sh");
    let made = Command::new("sh").arg(script).arg(folder.path()).status();
    if !made.is_ok_and(|status| status.success()) {
        eprintln!("LEFT OUT: openssl is not installed");
        return None;
    }
    let at = |name: &str| folder.path().join(name);
    let clients = clients.then(|| at("ca-cert.pem"));
    let files = TlsFiles { certificate: at("server.pem"), key: at("server.key"), clients };
    let mut served = Served::new(Region::None, Pace::Untimed);
    served.stop();
    served.tls = Some(Tls::new(&files).unwrap());
    served.reopen();
    Some((folder, served))
}

/// The handshake is a part of the negotiation: who stays in it, or before it, has one of the few places of those who do.
#[test]
fn slow_clients_without_a_certificate_lock_out_nobody_with_one() {
    let Some((folder, served)) = with_tls(true) else { return };
    let slow: Vec<_> = (0..300)
        .map(|number| {
            let mut stream = UnixStream::connect(served.socket()).unwrap();
            // Flags and some of an option; or the whole of it, and some of a handshake.
            let mut bytes = b"\0\0\0\x03IHAVEOPT\0\0\0\x05\0\0\0\0\x16\x03\x01\x02\0".to_vec();
            bytes.truncate(if number % 2 == 0 { 9 } else { 25 });
            let _ = stream.write_all(&bytes); // the oldest are thrown out already
            stream
        })
        .collect();
    let mut client = encrypted(&served.socket(), folder.path(), Some("client"));
    client.write_all(b"IHAVEOPT\0\0\0\x01\0\0\0\0").unwrap();
    client.read_exact(&mut [0; 10]).unwrap();
    let is_there = |mut stream: &UnixStream| {
        stream.set_nonblocking(true).unwrap();
        let mut rest = [0; 256];
        loop {
            match stream.read(&mut rest) {
                Ok(0) => return false,
                Ok(_) => {}
                Err(error) => return error.kind() == std::io::ErrorKind::WouldBlock,
            }
        }
    };
    let left = slow.iter().filter(|stream| is_there(stream)).count();
    assert!(left <= 16, "{left} of 300 are still there");
    let mut stranger = encrypted(&served.socket(), folder.path(), Some("stranger"));
    let said = stranger.write_all(b"IHAVEOPT\0\0\0\x01\0\0\0\0");
    assert!(said.is_err() || stranger.read_exact(&mut [0; 10]).is_err(), "a stranger is let in");
}

/// It asks for much, does not read it, and sends much: reader and writer of the server must not wait for each other.
#[test]
fn a_client_that_sends_before_it_reads_is_served() {
    let Some((folder, served)) = with_tls(false) else { return };
    let mut client = encrypted(&served.socket(), folder.path(), None);
    client.write_all(b"IHAVEOPT\0\0\0\x01\0\0\0\0").unwrap();
    let mut export = [0; 10];
    client.read_exact(&mut export).unwrap();
    let bytes = u64::from_be_bytes(export[..8].try_into().unwrap());
    let length = (bytes / 2).min(16 << 20) as u32;
    let request = |kind: u16, cookie: u64| {
        let mut request = 0x2560_9513_u32.to_be_bytes().to_vec();
        request.extend([0, 0]);
        request.extend(kind.to_be_bytes());
        request.extend(cookie.to_be_bytes());
        request.extend(0_u64.to_be_bytes());
        request.extend(length.to_be_bytes());
        request
    };
    client.write_all(&request(READ, 1)).unwrap();
    client.flush().unwrap();
    std::thread::sleep(Duration::from_secs(1));
    client.write_all(&request(WRITE, 2)).unwrap();
    client.write_all(&vec![7; length as usize]).expect("the server reads while its reply waits");
    let mut reply = [0; 16];
    let mut data = vec![1; length as usize];
    let mut seen = Vec::new();
    for _ in 0..3 {
        if seen.len() == 2 {
            client.write_all(&request(READ, 3)).unwrap(); // what was written
        }
        client.read_exact(&mut reply).unwrap();
        assert_eq!(reply[4..8], [0; 4], "no error");
        let cookie = reply[15];
        if cookie != 2 {
            client.read_exact(&mut data).unwrap();
        }
        seen.push(cookie);
    }
    seen.sort_unstable();
    assert_eq!(seen, [1, 2, 3]);
    assert!(data.iter().all(|&byte| byte == 7));
}
