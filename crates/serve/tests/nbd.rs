//! The server as a client finds it: negotiation, requests, power cuts, and clients that misbehave.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use leyden_buffer::Region;
use leyden_device::{Config, Lba};
use leyden_image::{Drive, ImageConfig, WriteFlags};
use leyden_serve::{
    Answer, Ask, ControlAnswer, ControlAsk, Failure, Handle, Listen, Pace, Server, ServerOptions,
    control,
};
use leyden_sim::{Bytes, Ratio};

/// A server of a small drive, in a folder of its own.
struct Served {
    folder: tempfile::TempDir,
    server: Option<Server>,
}

impl Served {
    fn new(region: Region, pace: Pace) -> Self {
        let mut device = Config::default();
        (device.nand.channels, device.nand.dies_per_channel) = (2, 1);
        (device.nand.blocks_per_plane, device.nand.pages_per_block) = (96, 16);
        device.ftl.over_provisioning = Ratio::from_percent(60);
        device.buffer.region = region;
        device.buffer.size = Bytes::new(128 << 10);
        device.power = Some(leyden_power::Config::default());
        let made_by = "test".to_owned();
        let config = ImageConfig { name: "disk".to_owned(), seed: 1, device, stack: None, made_by };
        let folder = tempfile::tempdir().unwrap();
        let drive = Drive::create(&folder.path().join("disk.leyden"), config).unwrap();
        let mut served = Self { folder, server: None };
        served.start(drive, pace);
        served
    }

    fn start(&mut self, drive: Drive, pace: Pace) {
        let options = ServerOptions {
            programs: Vec::new(),
            pace,
            nbd: vec![Listen::Unix(self.socket())],
            fuse: None,
            tls: None,
            lies: false,
        };
        self.server = Some(Server::start(drive, &options).unwrap());
    }

    fn image(&self) -> PathBuf {
        self.folder.path().join("disk.leyden")
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("nbd.sock")
    }

    fn client(&self) -> Client {
        Client::connect(&self.socket())
    }

    /// Closes the image.
    fn stop(&mut self) {
        let server = self.server.take().unwrap();
        assert_eq!(control::ask(&self.image(), &ControlAsk::Stop).unwrap(), ControlAnswer::Stopped);
        server.join().unwrap();
    }
}

/// A client that has gone on with the export, with simple replies.
struct Client {
    stream: UnixStream,
    bytes: u64,
}

const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;
const TRIM: u16 = 4;
const WRITE_ZEROES: u16 = 6;
const FUA: u16 = 1;

fn take<const N: usize>(stream: &mut UnixStream) -> [u8; N] {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

impl Client {
    fn connect(path: &Path) -> Self {
        let mut stream = UnixStream::connect(path).unwrap();
        assert_eq!(&take::<18>(&mut stream)[..16], b"NBDMAGICIHAVEOPT");
        stream.write_all(&3_u32.to_be_bytes()).unwrap();
        // NBD_OPT_EXPORT_NAME with no name.
        stream.write_all(b"IHAVEOPT\0\0\0\x01\0\0\0\0").unwrap();
        let bytes = u64::from_be_bytes(take(&mut stream));
        let flags = u16::from_be_bytes(take(&mut stream));
        assert_eq!(
            flags & 0b101_0110_1101,
            0b1_0110_1101,
            "flush, FUA, trim, zeroes, multi-connection"
        );
        Self { stream, bytes }
    }

    fn send(&mut self, flags: u16, kind: u16, cookie: u64, offset: u64, length: u32, data: &[u8]) {
        let mut request = 0x2560_9513_u32.to_be_bytes().to_vec();
        request.extend(flags.to_be_bytes());
        request.extend(kind.to_be_bytes());
        request.extend(cookie.to_be_bytes());
        request.extend(offset.to_be_bytes());
        request.extend(length.to_be_bytes());
        request.extend(data);
        self.stream.write_all(&request).unwrap();
    }

    /// Cookie and error of the next reply; the data of a read must be taken then.
    fn reply(&mut self) -> (u64, u32) {
        assert_eq!(take::<4>(&mut self.stream), 0x6744_6698_u32.to_be_bytes());
        let error = u32::from_be_bytes(take(&mut self.stream));
        (u64::from_be_bytes(take(&mut self.stream)), error)
    }

    fn ask(&mut self, flags: u16, kind: u16, offset: u64, length: u32, data: &[u8]) -> u32 {
        self.send(flags, kind, 77, offset, length, data);
        let (cookie, error) = self.reply();
        assert_eq!(cookie, 77);
        error
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> u32 {
        self.ask(0, WRITE, offset, data.len() as u32, data)
    }

    fn read(&mut self, offset: u64, length: u32) -> Result<Vec<u8>, u32> {
        match self.ask(0, READ, offset, length, &[]) {
            0 => {
                let mut data = vec![0; length as usize];
                self.stream.read_exact(&mut data).unwrap();
                Ok(data)
            }
            error => Err(error),
        }
    }
}

const EIO: u32 = 5;
const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;
const EOVERFLOW: u32 = 75;

#[test]
fn what_is_written_is_read() {
    for pace in [Pace::Times(1.0), Pace::Times(20.0), Pace::Untimed] {
        let mut served = Served::new(Region::None, pace);
        let mut client = served.client();
        assert_eq!(client.write(4_096, &[7; 12_288]), 0);
        assert_eq!(client.write(5_120, &[8; 512]), 0);
        assert_eq!(client.ask(0, FLUSH, 0, 0, &[]), 0);
        let mut expected = vec![7; 12_288];
        expected[1_024..1_536].fill(8);
        assert_eq!(client.read(4_096, 12_288).unwrap(), expected);
        assert_eq!(client.ask(0, TRIM, 4_096, 4_096, &[]), 0);
        assert_eq!(client.ask(FUA, WRITE_ZEROES, 8_192, 512, &[]), 0);
        expected[..4_096 + 512].fill(0);
        assert_eq!(served.client().read(4_096, 12_288).unwrap(), expected, "another connection");
        served.stop();
        let (drive, opened) = Drive::open(&served.image()).unwrap();
        assert!(opened.cut.is_none() && !drive.is_off(), "it was closed");
        served.start(drive, pace);
        assert_eq!(served.client().read(4_096, 12_288).unwrap(), expected);
    }
}

#[test]
fn requests_that_make_no_sense_get_the_protocols_errors() {
    let served = Served::new(Region::None, Pace::Untimed);
    let mut client = served.client();
    let end = client.bytes;
    assert_eq!(client.write(end, &[0; 512]), ENOSPC);
    assert_eq!(client.write(end - 512, &[0; 1_024]), ENOSPC);
    assert_eq!(client.read(end, 512), Err(EINVAL));
    assert_eq!(client.read(u64::MAX - 100, 512), Err(EINVAL));
    assert_eq!(client.read(1, 512), Err(EINVAL));
    assert_eq!(client.read(0, 100), Err(EINVAL));
    assert_eq!(client.read(0, 0), Err(EINVAL));
    assert_eq!(
        client.ask(0, READ, 0, 64 << 20, &[]),
        if end > 64 << 20 { EOVERFLOW } else { EINVAL }
    );
    assert_eq!(client.ask(0, 99, 0, 512, &[]), EINVAL);
    assert_eq!(client.ask(1 << 9, READ, 0, 512, &[]), EINVAL);
    assert_eq!(client.ask(0, 7, 0, 512, &[]), EINVAL, "block status was not agreed on");
    assert_eq!(client.read(0, 512).unwrap(), [0; 512], "and the connection goes on");
}

#[test]
fn a_cut_ends_what_is_under_way_and_loses_what_was_not_flushed() {
    for region in [Region::None, Region::Full] {
        let served = Served::new(region, Pace::Times(1.0));
        let mut client = served.client();
        assert_eq!(client.write(0, &[1; 4_096]), 0);
        assert_eq!(client.ask(0, FLUSH, 0, 0, &[]), 0);
        assert_eq!(client.write(0, &[2; 4_096]), 0);
        let ControlAnswer::Cut(report) = control::ask(&served.image(), &ControlAsk::Cut).unwrap()
        else {
            panic!("the power is on")
        };
        assert_eq!(report.lost, [], "the bank reaches");
        assert_eq!(report.dumped_bytes, if region == Region::Full { 4_096 } else { 0 });
        assert_eq!(client.read(0, 4_096), Err(EIO));
        assert_eq!(client.write(0, &[3; 4_096]), EIO);
        assert_eq!(client.ask(0, FLUSH, 0, 0, &[]), EIO);
        let again = control::ask(&served.image(), &ControlAsk::Cut).unwrap();
        assert!(matches!(again, ControlAnswer::Refused { .. }));
        let restore = ControlAsk::Restore { capacitance_nf: None };
        let restored = control::ask(&served.image(), &restore).unwrap();
        assert!(matches!(restored, ControlAnswer::Restored(report) if report.ready_in_ns > 0));
        let newest = if region == Region::Full { 2 } else { 1 };
        assert_eq!(client.read(0, 4_096).unwrap(), [newest; 4_096], "the same connection goes on");
    }
}

#[test]
fn commands_under_way_end_with_an_error_when_the_power_fails() {
    let served = Served::new(Region::None, Pace::Times(0.001));
    let mut client = served.client();
    // A thousand times slower than the flash: these are on their way for seconds.
    (0..8).for_each(|at| client.send(FUA, WRITE, at, at * 4_096, 4_096, &[1; 4_096]));
    let report = loop {
        let ControlAnswer::Status(status) =
            control::ask(&served.image(), &ControlAsk::Status).unwrap()
        else {
            panic!("no status")
        };
        if status.pending == 8 {
            break control::ask(&served.image(), &ControlAsk::Cut).unwrap();
        }
    };
    assert!(matches!(report, ControlAnswer::Cut(report) if report.interrupted_commands == 8));
    let mut ended: Vec<_> = (0..8).map(|_| client.reply()).collect();
    ended.sort_unstable();
    assert_eq!(ended, (0..8).map(|cookie| (cookie, EIO)).collect::<Vec<_>>());
}

#[test]
fn another_bank_changes_what_survives() {
    let served = Served::new(Region::Full, Pace::Untimed);
    let mut client = served.client();
    assert_eq!(client.write(0, &vec![1; 64 << 10]), 0);
    let ask = |ask| control::ask(&served.image(), &ask).unwrap();
    assert!(matches!(ask(ControlAsk::Cut), ControlAnswer::Cut(report) if report.lost.is_empty()));
    // Too small a bank is refused as a configuration is, and nothing changes.
    let small = ControlAsk::Restore { capacitance_nf: Some(1) };
    let refused = ask(small);
    assert!(
        matches!(&refused, ControlAnswer::Refused { why } if why.contains("power.bank")),
        "{refused:?}"
    );
    let large = ControlAsk::Restore { capacitance_nf: Some(100_000_000) };
    assert!(matches!(ask(large), ControlAnswer::Restored(_)));
    assert_eq!(client.read(0, 64 << 10).unwrap(), vec![1; 64 << 10]);
    assert!(matches!(ask(ControlAsk::Cut), ControlAnswer::Cut(report) if report.lost.is_empty()));
    // Enough for a page or two: the rest of what was promised is lost, and the report says what.
    let meagre = ControlAsk::Restore { capacitance_nf: Some(60_000) };
    assert!(matches!(ask(meagre), ControlAnswer::Restored(_)));
    assert_eq!(client.write(0, &vec![2; 64 << 10]), 0);
    let ControlAnswer::Cut(report) = ask(ControlAsk::Cut) else { panic!("the power is on") };
    let lost: u64 = report.lost.iter().map(|&(_, sectors)| sectors).sum();
    assert!((1..=128).contains(&lost), "{report:?}");
    ask(ControlAsk::Restore { capacitance_nf: None });
    for (lba, sectors) in report.lost {
        let data = client.read(lba * 512, (sectors * 512) as u32).unwrap();
        assert!(data.iter().all(|&byte| byte != 2), "what was lost is not there");
    }
}

/// A client that asks again for each answer, for ever: the drive is never idle of itself.
fn ask_again(handle: &Handle, unit: u64, told: &mpsc::Sender<Answer>) {
    let (again, to) = (handle.clone(), told.clone());
    handle.ask(Ask::Write(Lba(unit * 8), vec![1; 4_096], WriteFlags::fua(true)), move |answer| {
        match answer {
            Answer::Done => ask_again(&again, (unit + 13) % 500, &to),
            last => to.send(last).unwrap(),
        }
    });
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a scope would wait for a server that hangs")]
fn a_server_that_is_told_to_stop_ends_however_busy_its_clients_are() {
    let mut served = Served::new(Region::None, Pace::Times(1.0));
    let (told, last) = mpsc::channel();
    (0..64).for_each(|at| ask_again(served.server.as_ref().unwrap().handle(), at, &told));
    let (done, ended) = mpsc::channel();
    let stopping = std::thread::spawn(move || {
        served.stop();
        done.send(()).unwrap();
    });
    ended.recv_timeout(Duration::from_secs(30)).expect("the server ends");
    stopping.join().unwrap();
    drop(told);
    assert_eq!(last.iter().collect::<Vec<_>>(), vec![Answer::Failed(Failure::Gone); 64]);
}

#[test]
fn many_requests_at_once_are_each_answered_once() {
    let served = Served::new(Region::None, Pace::Untimed);
    let mut client = served.client();
    let count = 3_000_u64;
    let mut writer = client.stream.try_clone().unwrap();
    let requests: Vec<u8> = (0..count)
        .flat_map(|cookie| {
            let mut request = 0x2560_9513_u32.to_be_bytes().to_vec();
            request.extend([0, 0, 0, WRITE as u8]);
            request.extend(cookie.to_be_bytes());
            request.extend((cookie % 500 * 4_096).to_be_bytes());
            request.extend(4_096_u32.to_be_bytes());
            request.resize(request.len() + 4_096, cookie as u8);
            request
        })
        .collect();
    std::thread::scope(|scope| {
        scope.spawn(move || writer.write_all(&requests).unwrap());
        let mut seen = vec![false; count as usize];
        for _ in 0..count {
            let (cookie, error) = client.reply();
            assert_eq!(error, 0);
            assert!(!std::mem::replace(&mut seen[cookie as usize], true));
        }
    });
    for at in 0..500 {
        let last = (count - 500 + at) as u8;
        assert_eq!(client.read(at * 4_096, 4_096).unwrap(), [last; 4_096]);
    }
}

#[test]
fn clients_that_misbehave_harm_nobody_else() {
    let served = Served::new(Region::None, Pace::Untimed);
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
}
