//! A served drive as programs find it: all that a drive can do, power cuts, servers that go, and either side when the other
//! one does not keep to the protocol.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use leyden_buffer::Region;
use leyden_device::{Config, Lba, SECTOR_BYTES, Status, ZoneAction, ZoneState};
use leyden_image::{Drive, ImageConfig, WriteFlags, ZoneAsk};
use leyden_serve::{
    ControlAnswer, ControlAsk, Limits, Outcome, Pace, Remote, RemoteError, Server, ServerOptions,
};
use leyden_sim::{Bytes, Ratio, Rng};
use leyden_wire::programs::{Hello, Kind, Reply, Request, TRANSFER_MOST, Welcome};

const BLOCK: usize = 4_096;
const ZONE: u64 = 128 << 10;
const PLP: WriteFlags = WriteFlags { fua: false, plp: true };

/// A server of a small drive, in a folder of its own.
struct Served {
    folder: tempfile::TempDir,
    server: Option<Server>,
}

fn config(zoned: bool) -> ImageConfig {
    let mut device = Config::default();
    (device.nand.channels, device.nand.dies_per_channel) = (2, 2);
    (device.nand.blocks_per_plane, device.nand.pages_per_block) = (24, 8);
    device.ftl.over_provisioning = Ratio::from_percent(70);
    device.buffer.region = Region::Selective;
    device.buffer.size = Bytes::new(512 << 10);
    device.buffer.protected_size = Bytes::new(256 << 10);
    if zoned {
        let zoned = device.zoned.get_or_insert_default();
        zoned.zone_size = Bytes::new(ZONE);
        zoned.dies_per_zone = 1;
        (zoned.max_open, zoned.max_active) = (3, 4);
        let area = zoned.zrwa.get_or_insert_default();
        (area.size, area.count) = (Bytes::new(32 << 10), 2);
    } else {
        (device.nand.blocks_per_plane, device.nand.pages_per_block) = (96, 16);
        device.buffer.region = Region::Full;
    }
    ImageConfig::new("test".to_owned(), 1, device)
}

impl Served {
    fn new(zoned: bool) -> Self {
        Self::within(zoned, Limits::default())
    }

    fn within(zoned: bool, limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let drive = Drive::create(&folder.path().join("disk.leyden"), config(zoned)).unwrap();
        let options = ServerOptions {
            programs: vec![folder.path().join("socket")],
            limits,
            ..ServerOptions::new(Pace::Untimed)
        };
        let server = Some(Server::start(drive, &options).unwrap());
        Self { folder, server }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn client(&self) -> Remote {
        Remote::connect(&self.socket(), false).unwrap()
    }

    fn stop(&mut self) {
        let server = self.server.take().unwrap();
        server.handle().control(ControlAsk::Stop);
        server.join().unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if self.server.is_some() {
            self.stop();
        }
    }
}

fn act(client: &Remote, action: ZoneAction, zone: u64, zrwa: bool) -> Result<(), RemoteError> {
    let ask = ZoneAsk { zrwa, ..ZoneAsk::new(action, Lba(zone * ZONE / SECTOR_BYTES)) };
    client.zone(zone * ZONE, ask)
}

fn outcome<T: std::fmt::Debug>(result: Result<T, RemoteError>) -> Outcome {
    match result {
        Err(RemoteError::Failed(outcome, _)) => outcome,
        other => panic!("{other:?}"),
    }
}

#[test]
fn zones_are_written_reported_and_reset() {
    let served = Served::new(true);
    let client = served.client();
    let identity = client.identify().unwrap();
    assert!(identity.is_zoned && identity.zone_size_bytes == ZONE, "{identity:?}");
    let at = client.append(ZONE, &[7; BLOCK], PLP).unwrap();
    assert_eq!((at, client.append(ZONE, &[8; BLOCK], PLP).unwrap()), (ZONE, ZONE + BLOCK as u64));
    client.write(2 * ZONE, &[9; 2 * BLOCK], WriteFlags::fua(true)).unwrap();
    let mut back = [0; 2 * BLOCK];
    client.read(ZONE, &mut back).unwrap();
    assert_eq!((back[0], back[BLOCK]), (7, 8));
    // An area, written out of order and again, and committed.
    act(&client, ZoneAction::Open, 3, true).unwrap();
    client.write(3 * ZONE + BLOCK as u64, &[1; BLOCK], PLP).unwrap();
    client.write(3 * ZONE, &[2; BLOCK], PLP).unwrap();
    client.write(3 * ZONE, &[3; BLOCK], PLP).unwrap();
    let last = Lba((3 * ZONE + BLOCK as u64) / SECTOR_BYTES);
    client.zone(last.0 * SECTOR_BYTES, ZoneAsk::new(ZoneAction::FlushZrwa, last)).unwrap();
    let zones = client.zones(ZONE, 4).unwrap();
    let seen = |zone: usize| (zones[zone].zone, zones[zone].write_pointer - zones[zone].start);
    assert_eq!([seen(0), seen(1), seen(2)], [1, 2, 3].map(|zone| (zone, 2 * BLOCK as u64)));
    assert!(zones[2].has_area && zones[2].held >= 2 * BLOCK as u64);
    act(&client, ZoneAction::Finish, 1, false).unwrap();
    assert_eq!(client.zones(ZONE, 1).unwrap()[0].state, ZoneState::Full.code());
    act(&client, ZoneAction::Reset, 1, false).unwrap();
    assert_eq!(client.zones(ZONE, 1).unwrap()[0].state, ZoneState::Empty.code());
    // The status reports the drive's refusal.
    let wrong = client.write(2 * ZONE, &[0; BLOCK], PLP);
    assert_eq!(outcome(wrong), Outcome::Status(Status::ZoneInvalidWrite.code()));
    let beyond = client.read(identity.capacity_bytes, &mut back);
    assert_eq!(outcome(beyond), Outcome::Status(Status::LbaOutOfRange.code()));
    client.flush().unwrap();
    let stats = client.stats().unwrap();
    assert_eq!((stats.zone_resets, stats.flushes), (1, 1));
    assert!(client.all_stats().unwrap().contains("\"zoned\""));
}

#[test]
fn the_status_says_beforehand_what_a_cut_takes() {
    for zoned in [true, false] {
        let served = Served::new(zoned);
        let client = served.client();
        let cost = || match served.server.as_ref().unwrap().handle().control(ControlAsk::Status) {
            Some(ControlAnswer::Status(report)) => report.if_cut_now,
            other => panic!("{other:?}"),
        };
        assert_eq!(cost().unwrap().promised_bytes, 0);
        for at in 0..5 {
            let at = if zoned { ZONE } else { 0 } + at * BLOCK as u64;
            client.write(at, &[1; BLOCK], PLP).unwrap();
        }
        let told = cost().unwrap();
        let cut = client.cut().unwrap();
        assert_eq!(told.promised_bytes, 5 * BLOCK as u64, "{told:?}");
        assert_eq!(told.promised_bytes, cut.dumped_bytes);
        assert_eq!(
            (told.dumped_pages, told.dump_ns, told.energy_nj),
            (cut.dumped_pages, cut.dump_ns, cut.energy_nj)
        );
        assert!(told.capacitance_nf > 0 && cost().is_none(), "there is no power to cut");
    }
}

#[test]
fn what_was_protected_outlives_a_cut_by_another_client() {
    let served = Served::new(true);
    let (client, other) = (served.client(), served.client());
    assert_eq!(outcome(other.last_cut()), Outcome::NotFound);
    client.append(0, &[5; BLOCK], PLP).unwrap();
    client.append(ZONE, &[6; BLOCK], WriteFlags::default()).unwrap();
    assert_eq!(outcome(other.restore(0)), Outcome::Switch);
    let cut = other.cut().unwrap();
    assert_eq!(cut.dumped_bytes, BLOCK as u64);
    assert_eq!(
        outcome(client.append(0, &[5; BLOCK], PLP)),
        Outcome::Status(Status::NotReady.code())
    );
    assert_eq!(outcome(other.cut()), Outcome::Switch);
    assert_eq!(outcome(other.restore(1)), Outcome::Config);
    other.restore(0).unwrap();
    assert_eq!(client.last_cut().unwrap(), cut);
    let mut back = [0; BLOCK];
    client.read(0, &mut back).unwrap();
    assert!(back.iter().all(|&byte| byte == 5));
    client.read(ZONE, &mut back).unwrap();
    assert!(back.iter().all(|&byte| byte == 0), "nobody has promised it");
}

#[test]
fn what_was_flushed_or_forced_out_outlives_a_cut() {
    let served = Served::new(true);
    let (client, other) = (served.client(), served.client());
    let fua = WriteFlags { fua: true, plp: false };
    client.append(0, &[1; BLOCK], WriteFlags::default()).unwrap();
    other.flush().unwrap();
    client.append(ZONE, &[2; BLOCK], fua).unwrap();
    client.append(2 * ZONE, &[3; BLOCK], WriteFlags::default()).unwrap();
    other.cut().unwrap();
    other.restore(0).unwrap();
    let mut back = [9; BLOCK];
    for (zone, byte) in [(0, 1), (1, 2), (2, 0)] {
        client.read(zone * ZONE, &mut back).unwrap();
        assert!(back.iter().all(|&it| it == byte), "zone {zone}: {}", back[0]);
    }
}

/// One connection, and one for each thread: each thread's blocks are its own.
#[test]
fn many_calls_are_under_way_at_once() {
    let served = Served::new(false);
    let shared = served.client();
    std::thread::scope(|scope| {
        for number in 0..8_u64 {
            let (shared, served) = (&shared, &served);
            scope.spawn(move || {
                let own = served.client();
                for round in 0..40_u8 {
                    let client = if round % 2 == 0 { shared } else { &own };
                    let at = (number * 16 + u64::from(round % 16)) * BLOCK as u64;
                    client.write(at, &[round ^ number as u8; BLOCK], PLP).unwrap();
                    let mut back = [0; BLOCK];
                    client.read(at, &mut back).unwrap();
                    assert!(back.iter().all(|&byte| byte == round ^ number as u8));
                }
            });
        }
    });
    let stats = shared.stats().unwrap();
    assert_eq!((stats.writes, stats.reads, stats.failures), (320, 320, 0));
    shared.trim(0, BLOCK as u64).unwrap();
    let mut back = [1; BLOCK];
    shared.read(0, &mut back).unwrap();
    assert!(back.iter().all(|&byte| byte == 0));
}

#[test]
fn a_claim_has_one_holder_until_that_goes() {
    let served = Served::new(true);
    let first = Remote::connect(&served.socket(), true).unwrap();
    assert!(matches!(Remote::connect(&served.socket(), true), Err(RemoteError::Claimed)));
    served.client().identify().unwrap(); // without a claim
    drop(first);
    Remote::connect(&served.socket(), true).unwrap();
}

#[test]
fn calls_end_when_the_server_does() {
    let mut served = Served::new(true);
    let client = served.client();
    client.flush().unwrap();
    std::thread::scope(|scope| {
        let calls = scope.spawn(|| {
            loop {
                match client.flush() {
                    Ok(()) => {}
                    Err(error) => break error,
                }
            }
        });
        served.stop();
        // The process goes on here: a client's connection ends with it, or tells that the drive is gone.
        let error = calls.join().unwrap();
        assert!(
            matches!(error, RemoteError::Failed(Outcome::Gone, _) | RemoteError::Gone(_)),
            "{error:?}"
        );
    });
    assert!(matches!(Remote::connect(&served.socket(), false), Err(RemoteError::Nobody(_))));
}

/// The server hangs up on who says `bytes` after a greeting, or at once.
fn is_hung_up_on(socket: &Path, greets: bool, bytes: &[u8]) {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    if greets {
        let hello = Hello { oldest: 1, newest: 1, claims: false };
        stream.write_all(&hello.encode()).unwrap();
        let mut welcome = [0; 16];
        stream.read_exact(&mut welcome).unwrap();
        assert_eq!(Welcome::parse(&welcome).unwrap(), Welcome::Version(1));
    }
    let _ = stream.write_all(bytes); // it may have hung up already
    let mut rest = Vec::new();
    let read = stream.read_to_end(&mut rest);
    assert!(read.is_ok() || read.unwrap_err().kind() == std::io::ErrorKind::ConnectionReset);
}

/// Places and deadlines are the session's, whichever its protocol is.
#[test]
fn programs_that_do_not_negotiate_lock_out_nobody() {
    let served = Served::new(false);
    let early = served.client();
    early.flush().unwrap();
    let silent: Vec<_> = (0..400).map(|_| UnixStream::connect(served.socket()).unwrap()).collect();
    served.client().flush().unwrap();
    early.flush().unwrap();
    drop(silent);
}

/// Memory is the session's, too: replies that nobody takes, and data that was announced and never comes.
#[test]
fn programs_that_ask_for_much_and_never_read_share_one_budget() {
    const LARGE: u32 = 16 << 20;
    let served = Served::within(false, Limits::new(64 << 20, 12).unwrap());
    let reads = || match served.server.as_ref().unwrap().handle().control(ControlAsk::Status) {
        Some(ControlAnswer::Status(report)) => report.reads,
        other => panic!("{other:?}"),
    };
    let request = |kind, payload, length| {
        Request { kind, flags: 0, payload, tag: 1, offset: 0, length }.encode()
    };
    let read = request(Kind::Read, 0, LARGE.into());
    let write = [&request(Kind::Write, LARGE, 0)[..], &[1; 100]].concat();
    let hostile: Vec<_> = [&read.repeat(4), &write]
        .into_iter()
        .cycle()
        .take(8)
        .map(|bytes| {
            let mut stream = UnixStream::connect(served.socket()).unwrap();
            let hello = Hello { oldest: 1, newest: 1, claims: false };
            stream.write_all(&hello.encode()).unwrap();
            stream.read_exact(&mut [0; 16]).unwrap();
            stream.write_all(bytes).unwrap();
            stream
        })
        .collect();
    let (mut before, mut now) = (u64::MAX, reads());
    while before != now {
        std::thread::sleep(Duration::from_millis(500));
        (before, now) = (now, reads());
    }
    // 45 MiB that all share.
    assert!(
        now > 0 && now <= 3,
        "{now} of 16 reads of 16 MiB were made for programs that take none"
    );
    let mut data = vec![0; LARGE as usize];
    served.client().read(0, &mut data).unwrap();
    drop(hostile);
}

#[test]
fn clients_that_do_not_keep_to_the_protocol_are_hung_up_on() {
    let served = Served::new(true);
    let socket = served.socket();
    let request = |payload| {
        Request { kind: Kind::Write, flags: 0, payload, tag: 1, offset: 0, length: 0 }.encode()
    };
    is_hung_up_on(&socket, false, b"GET / HTTP/1.1\r\nHost: leyden\r\n\r\n");
    is_hung_up_on(&socket, true, &[0; 64]);
    is_hung_up_on(&socket, true, &request(TRANSFER_MOST + 1));
    let mut unknown = request(0);
    unknown[2] = 99;
    is_hung_up_on(&socket, true, &unknown);
    let mut rng = Rng::new(1, "programs.hostile");
    for _ in 0..100 {
        let bytes: Vec<u8> = (0..200).map(|_| rng.below(256) as u8).collect();
        is_hung_up_on(&socket, true, &bytes);
    }
    // One that says that much is to come, and goes.
    let mut stream = UnixStream::connect(&socket).unwrap();
    stream.write_all(&Hello { oldest: 1, newest: 1, claims: true }.encode()).unwrap();
    stream.write_all(&request(TRANSFER_MOST)).unwrap();
    drop(stream);
    let mut stream = UnixStream::connect(&socket).unwrap();
    stream.write_all(&Hello { oldest: 7, newest: 9, claims: false }.encode()).unwrap();
    let mut welcome = [0; 16];
    stream.read_exact(&mut welcome).unwrap();
    assert_eq!(Welcome::parse(&welcome).unwrap(), Welcome::Other(1));
    Remote::connect(&socket, true).unwrap().flush().unwrap();
}

/// The client's error from a server that answers its greeting with `welcome`, and its first request
/// with `answer`.
#[expect(clippy::disallowed_methods, reason = "a client that waits for ever is told by the clock")]
fn asked_of(welcome: [u8; 16], answer: impl Fn(Request) -> Vec<u8> + Send) -> RemoteError {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut hello = [0; 16];
            stream.read_exact(&mut hello).unwrap();
            stream.write_all(&welcome).unwrap();
            let mut request = [0; 32];
            if stream.read_exact(&mut request).is_ok() {
                let _ = stream.write_all(&answer(Request::parse(&request).unwrap()));
                let _ = stream.read(&mut request); // until the client hangs up
            }
        });
        let began = Instant::now();
        let error = match Remote::connect(&socket, false) {
            Ok(client) => client.read(0, &mut [0; BLOCK]).unwrap_err(),
            Err(error) => error,
        };
        assert!(began.elapsed() < Duration::from_secs(9), "it waits for ever");
        error
    })
}

#[test]
fn servers_that_do_not_keep_to_the_protocol_are_hung_up_on() {
    let good = Welcome::Version(1).encode();
    let reply = |tag, payload, outcome| Reply { outcome, payload, tag, value: 0 }.encode().to_vec();
    let done = Outcome::Done;
    for (what, error) in [
        ("another greeting", asked_of(*b"HTTP/1.1 400 Bad", |_| Vec::new())),
        ("garbage", asked_of(good, |_| vec![0xab; 64])),
        ("a reply to nothing", asked_of(good, |it| reply(it.tag + 1, 0, done))),
        ("too much", asked_of(good, |it| reply(it.tag, BLOCK as u32 + 1, done))),
        ("too long a sentence", asked_of(good, |it| reply(it.tag, 1 << 20, Outcome::Image))),
        ("too little", asked_of(good, |it| reply(it.tag, 0, done))),
    ] {
        assert!(matches!(error, RemoteError::Gone(_)), "{what}: {error:?}");
    }
    let other = asked_of(Welcome::Other(9).encode(), |_| Vec::new());
    assert!(matches!(other, RemoteError::Version(9)));
}
