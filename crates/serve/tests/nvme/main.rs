//! Drives as NVMe hosts find them, over TCP and as a PCI function: discovery, queues, data of all sizes with all digests, zones, power cuts, commands
//! that are made to fail, and hosts that misbehave.

mod atomic;
mod authentication;
mod cuts;
mod host;
mod hostile;
mod machine;
mod pci;
mod pci_hostile;
mod speed;
mod zones;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use leyden_buffer::Region;
use leyden_device::{AtomicConfig, Config, Hint};
use leyden_image::recording::Recording;
use leyden_image::recording::format::Step;
use leyden_image::{Drive, ImageConfig};
use leyden_serve::{
    Access, ControlAnswer, ControlAsk, CutMode, HostSecrets, Lies, Limits, Listen, Nvme,
    NvmeOptions, Pace, Server, ServerOptions, StatusReport, control,
};
use leyden_sim::{Bytes, Ratio, Rng};

use host::*;

pub(crate) const NAME: &str = "nqn.2026-01.local.leyden:test";
pub(crate) const BLOCK: usize = 4_096;
/// Blocks of a zone.
pub(crate) const ZONE: u64 = 32;
pub(crate) const PLAIN: u32 = 1;
pub(crate) const ZONED: u32 = 2;

/// A conventional drive and a zoned one, in a folder of their own, as namespaces 1 and 2.
pub(crate) struct Served {
    folder: tempfile::TempDir,
    servers: Vec<Server>,
    nvme: Option<Nvme>,
}

fn config(zoned: bool, options: &Options) -> ImageConfig {
    let Options { region, atomic, .. } = *options;
    let mut device = Config::default();
    (device.nand.channels, device.nand.dies_per_channel) = (2, 2);
    (device.nand.blocks_per_plane, device.nand.pages_per_block) = (24, 8);
    device.ftl.over_provisioning = Ratio::from_percent(70);
    device.buffer.region = region;
    device.buffer.size = Bytes::new(512 << 10);
    device.buffer.protected_size = Bytes::new(256 << 10);
    if zoned {
        device.buffer.region = Region::Selective;
        let zoned = device.zoned.get_or_insert_default();
        zoned.zone_size = Bytes::new(ZONE * BLOCK as u64);
        zoned.dies_per_zone = 1;
        (zoned.max_open, zoned.max_active) = (3, 4);
        let area = zoned.zrwa.get_or_insert_default();
        (area.size, area.count) = (Bytes::new(32 << 10), 2);
    } else {
        (device.nand.blocks_per_plane, device.nand.pages_per_block) = (96, 32);
        if atomic.is_some() {
            device.nand.page_size = Bytes::new(16 << 10);
            device.buffer.size = Bytes::new(128 << 10);
        }
        device.atomic = atomic;
    }
    ImageConfig::new(if zoned { "zoned" } else { "plain" }.to_owned(), 1, device)
}

/// How a server is to be.
pub(crate) struct Options {
    pub(crate) cut: CutMode,
    pub(crate) hosts: Vec<String>,
    pub(crate) secrets: BTreeMap<String, HostSecrets>,
    pub(crate) limits: Limits,
    pub(crate) region: Region,
    pub(crate) pace: Pace,
    /// Of the conventional drive.
    pub(crate) atomic: Option<AtomicConfig>,
    pub(crate) lies: Lies,
    /// Recording of what the drives are asked, for [`Served::recording`].
    pub(crate) recorded: bool,
}

impl Default for Options {
    fn default() -> Self {
        let (cut, hosts, limits) = (CutMode::Lost, Vec::new(), Limits::default());
        let (region, pace) = (Region::None, Pace::Untimed);
        let (secrets, atomic, lies) = (BTreeMap::new(), None, Lies::default());
        let recorded = false;
        Self { cut, hosts, secrets, limits, region, pace, atomic, lies, recorded }
    }
}

impl Served {
    pub(crate) fn new() -> Self {
        Self::with(Options::default())
    }

    pub(crate) fn with(options: Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let serve = |zoned: bool| {
            let name = if zoned { "zoned.leyden" } else { "plain.leyden" };
            let config = config(zoned, &options);
            let mut drive = Drive::create(&folder.path().join(name), config).unwrap();
            let Options { limits, lies, pace, recorded, .. } = options;
            if recorded {
                drive.record(&folder.path().join(name).with_extension("leyrec")).unwrap();
            }
            let options = ServerOptions { limits, lies, ..ServerOptions::new(pace) };
            Server::start(drive, &options).unwrap()
        };
        let servers = vec![serve(false), serve(true)];
        let nvme = NvmeOptions {
            listen: vec![
                Listen::Tcp("127.0.0.1:0".to_owned()),
                Listen::Unix(folder.path().join("vfio.sock")),
            ],
            access: Access::default(),
            name: Some(NAME.to_owned()),
            hosts: options.hosts,
            secrets: options.secrets,
            cut: options.cut,
        };
        let nvme = Some(Nvme::start(&servers, &nvme).unwrap());
        Self { folder, servers, nvme }
    }

    pub(crate) fn at(&self) -> SocketAddr {
        let Listen::Tcp(address) = &self.nvme.as_ref().unwrap().addresses()[0] else {
            panic!("over TCP")
        };
        address.parse().unwrap()
    }

    pub(crate) fn host(&self, queues: u16, digests: Digests) -> Host {
        Host::connect(self.at(), &Connect::admin(NAME), queues, digests)
    }

    /// The socket of virtual machines.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("vfio.sock")
    }

    fn image(&self, nsid: u32) -> PathBuf {
        self.folder.path().join(if nsid == ZONED { "zoned.leyden" } else { "plain.leyden" })
    }

    pub(crate) fn cut(&self, nsid: u32) {
        let answer = control::ask(&self.image(nsid), &ControlAsk::Cut).unwrap();
        assert!(matches!(answer, ControlAnswer::Cut(_)), "{answer:?}");
    }

    pub(crate) fn restore(&self, nsid: u32) {
        let restore = ControlAsk::Restore { capacitance_nf: None };
        let answer = control::ask(&self.image(nsid), &restore).unwrap();
        assert!(matches!(answer, ControlAnswer::Restored(_)), "{answer:?}");
    }

    fn status(&self, nsid: u32) -> StatusReport {
        match control::ask(&self.image(nsid), &ControlAsk::Status).unwrap() {
            ControlAnswer::Status(status) => *status,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn pending(&self, nsid: u32) -> u64 {
        self.status(nsid).pending
    }

    /// Ends, and reads what a drive was asked.
    pub(crate) fn recording(mut self, nsid: u32) -> Recording {
        self.stop();
        Recording::open(&self.image(nsid).with_extension("leyrec")).unwrap()
    }

    /// Reads that the drive was asked for.
    pub(crate) fn reads(&self, nsid: u32) -> u64 {
        self.status(nsid).reads
    }
}

impl Served {
    fn stop(&mut self) {
        self.nvme = None;
        for server in self.servers.drain(..) {
            server.handle().control(ControlAsk::Stop);
            server.join().unwrap();
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop();
    }
}

pub(crate) fn filled(bytes: usize, seed: u64) -> Vec<u8> {
    let mut rng = Rng::new(seed, "data");
    (0..bytes).map(|_| rng.below(256) as u8).collect()
}

/// Waits until it is so.
#[track_caller]
pub(crate) fn until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("it never was");
}

#[test]
fn data_of_every_size_comes_back_with_all_digests() {
    let served = Served::new();
    for digests in 0..4 {
        let mut host = served.host(1, digests);
        let io = &mut host.io[0];
        // In the capsule up to 16 KiB, invited above, in one piece and in many.
        for (blocks, piece) in [(1, 64), (4, 64), (5, 64), (32, 4), (256, 1_024), (256, 12)] {
            io.piece = piece << 10;
            let data = filled(blocks * BLOCK, blocks as u64 + u64::from(digests));
            io.write(PLAIN, 3, &data, BLOCK).good();
            assert_eq!(io.read(PLAIN, 3, blocks as u32, BLOCK).good().data, data);
            io.flush(PLAIN).good();
        }
    }
}

#[test]
fn namespaces_are_found_as_linux_looks_for_them() {
    let served = Served::new();
    let mut host = served.host(1, 0);
    let admin = &mut host.admin;
    let page = admin.identify(1, 0, 0).good().data;
    assert_eq!(u16::from_le_bytes([page[78], page[79]]), host.controller);
    assert_eq!(admin.identify(2, 0, 0).good().data[..12], [1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]);
    for nsid in [PLAIN, ZONED] {
        let set = if nsid == ZONED { 2 } else { 0 };
        let names = admin.identify(3, nsid, 0).good().data;
        assert_eq!((names[20], names[24]), (4, set as u8));
        let page = admin.identify(0, nsid, 0).good().data;
        assert_ne!(page[104..120], [0; 16], "NGUID");
        assert_eq!(page[130], 12, "blocks of 4 KiB");
        assert_eq!(admin.log(5, 0, 4_096, 0).good().data.len(), 4_096);
        admin.identify(5, nsid, set).good();
    }
    let size = |page: &[u8]| u64::from_le_bytes(page[..8].try_into().unwrap());
    let zoned = size(&admin.identify(0, ZONED, 0).good().data);
    assert_eq!(zoned % ZONE, 0, "NSZE is zones x ZSZE");
    let health = admin.log(2, u32::MAX, 512, 0).good().data;
    assert_eq!((health[3], health[112]), (100, 1), "all spare, on for the first time");
    let restarted = Served::new();
    let mut other = restarted.host(1, 0);
    let (a, b) = (admin.identify(0, 1, 0).good(), other.admin.identify(0, 1, 0).good());
    assert_ne!(a.data[104..120], b.data[104..120], "another image, another name");
}

#[test]
fn discovery_names_the_subsystem_and_where_it_is() {
    let served = Served::new();
    let mut queue = Queue::open(served.at(), 0);
    queue.connect(&Connect { keep_alive_ms: 0, ..Connect::admin(DISCOVERY) }).good();
    queue.set_property(0x14, 0x0046_0061).good();
    let page = queue.identify(1, 0, 0).good().data;
    assert_eq!((page[111], &page[768..768 + DISCOVERY.len()]), (2, DISCOVERY.as_bytes()));
    let head = queue.log(0x70, 0, 20, 0).good().data;
    assert_eq!(u64::from_le_bytes(head[8..16].try_into().unwrap()), 2);
    let entries = queue.log(0x70, 0, 4_096, 1_024).good().data;
    assert_eq!(&entries[256..256 + NAME.len()], NAME.as_bytes());
    let port = served.at().port().to_string();
    assert_eq!(&entries[32..32 + port.len()], port.as_bytes());
    assert_eq!(&entries[512..522], b"127.0.0.1\0");
    assert_eq!(queue.identify(0, 1, 0).status, 0x4002, "no namespaces here");
    let mut io = Queue::open(served.at(), 0);
    let joined = io.connect(&Connect { controller: 1, queue: 1, ..Connect::admin(DISCOVERY) });
    assert_eq!(joined.status, 0x4182, "no I/O queues either");
}

#[test]
fn queues_of_every_size_are_filled_and_each_command_ends_once() {
    let served = Served::new();
    for (size, no_flow_control) in [(2, false), (16, true), (128, false), (1_024, true)] {
        let to = Connect { size, no_flow_control, ..Connect::admin(NAME) };
        let mut host = Host::connect(served.at(), &to, 1, 0);
        let io = &mut host.io[0];
        let data = filled(BLOCK, u64::from(size));
        let depth = u64::from(size) - 1;
        let mut sent: Vec<u16> =
            (0..depth).map(|at| io.send(Entry::blocks(1, PLAIN, at % 300, 1), &data, 0)).collect();
        for _ in 0..depth {
            let ended = io.next_end().unwrap().good();
            let at = sent.iter().position(|cid| *cid == ended.cid).expect("once, and ours");
            sent.swap_remove(at);
        }
        let reads: Vec<u16> = (0..depth)
            .map(|at| io.send(Entry::blocks(2, PLAIN, at % 300, 1), &[], BLOCK))
            .collect();
        for _ in &reads {
            let ended = io.next_end().unwrap().good();
            assert!(reads.contains(&ended.cid) && ended.data == data);
        }
    }
}

#[test]
fn several_queues_and_hosts_work_at_once() {
    let served = Served::new();
    std::thread::scope(|scope| {
        for number in 0..6_u8 {
            let served = &served;
            scope.spawn(move || {
                let host_id = [number + 1; 16];
                let name = format!("nqn.2026-01.local.leyden:host{number}");
                let to = Connect { host: &name, host_id, ..Connect::admin(NAME) };
                for round in 0..4_u64 {
                    let mut host = Host::connect(served.at(), &to, 3, number % 4);
                    for (queue, io) in host.io.iter_mut().enumerate() {
                        let start = u64::from(number) * 48 + queue as u64 * 16;
                        let data = filled(16 * BLOCK, start + round);
                        io.write(PLAIN, start, &data, BLOCK).good();
                        assert_eq!(io.read(PLAIN, start, 16, BLOCK).good().data, data);
                    }
                }
            });
        }
    });
}

#[test]
fn large_writes_in_any_number_share_what_room_there_is() {
    let limits = Limits::new(64 << 20, 16).unwrap();
    let served = Served::with(Options { limits, ..Options::default() });
    let to = Connect { size: 128, ..Connect::admin(NAME) };
    let mut host = Host::connect(served.at(), &to, 2, 0);
    let data = filled(1 << 20, 9);
    // 105 MiB are asked for at once, with small reads between them: this host does not read while it sends.
    let (io, other) = host.io.split_at_mut(1);
    let sent: Vec<u16> = (0..120)
        .map(|at| {
            if at % 8 == 7 {
                io[0].send(Entry::blocks(2, PLAIN, 0, 1), &[], BLOCK)
            } else {
                io[0].send(Entry::blocks(1, PLAIN, 0, 256), &data, 0)
            }
        })
        .collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for at in 0..40 {
                let small = filled(BLOCK, at);
                other[0].write(PLAIN, 600 + at, &small, BLOCK).good();
                assert_eq!(other[0].read(PLAIN, 600 + at, 1, BLOCK).good().data, small);
            }
        });
        for _ in &sent {
            io[0].next_end().unwrap().good();
        }
    });
    assert_eq!(io[0].read(PLAIN, 0, 256, BLOCK).good().data, data);
}

#[test]
fn each_command_of_the_nvm_set_does_what_it_says() {
    let served = Served::new();
    let mut host = served.host(1, 3);
    let io = &mut host.io[0];
    let data = filled(8 * BLOCK, 5);
    io.write(PLAIN, 0, &data, BLOCK).good();
    io.ask(Entry::blocks(5, PLAIN, 0, 8), &data, 0).good();
    let mut other = data.clone();
    other[5 * BLOCK] ^= 1;
    assert_eq!(io.ask(Entry::blocks(5, PLAIN, 0, 8), &other, 0).status, 0x4285);
    io.ask(Entry::blocks(0xc, PLAIN, 0, 8), &[], 0).good();
    io.ask(Entry::blocks(8, PLAIN, 1, 2), &[], 0).good();
    let mut now = data;
    now[BLOCK..3 * BLOCK].fill(0);
    assert_eq!(io.read(PLAIN, 0, 8, BLOCK).good().data, now);
    // Two ranges; Linux sends a whole page, whatever they are.
    let mut ranges = vec![0; 4_096];
    (ranges[4], ranges[8]) = (1, 4);
    (ranges[20], ranges[24]) = (2, 6);
    let trim = Entry::new(9, PLAIN).u32(40, 1).u32(44, 4);
    io.ask(trim, &ranges, 0).good();
    now[4 * BLOCK..5 * BLOCK].fill(0);
    now[6 * BLOCK..].fill(0);
    assert_eq!(io.read(PLAIN, 0, 8, BLOCK).good().data, now);
    io.ask(trim.u32(44, 1), &ranges, 0).good();
    assert_eq!(io.ask(trim, &ranges[..16], 0).status, 0x400f, "a range is missing");
    copies(io, &now);
    io.flush(u32::MAX).good();
    assert_eq!(io.ask(Entry::blocks(4, PLAIN, 0, 1), &[], 0).status, 0x4001);
    assert_eq!(io.read(PLAIN, 1 << 40, 1, BLOCK).status, 0x4080);
    assert_eq!(io.read(3, 0, 1, BLOCK).status, 0x400b);
    assert_eq!(io.read(0, 0, 1, BLOCK).status, 0x400b);
    let errors = host.admin.log(1, u32::MAX, 64, 0).good().data;
    assert_eq!((errors[0], errors[8], errors[24]), (8, 1, 0), "eight commands have failed");
}

/// Dataset Management with the attribute "write prepare" is a zombie hint, on each kind of drive.
#[test]
fn announced_writes_reach_the_drive() {
    for nsid in [PLAIN, ZONED] {
        let served = Served::with(Options { recorded: true, ..Options::default() });
        let mut host = served.host(1, 0);
        let io = &mut host.io[0];
        let range = |attributes: u32, blocks: u32, start: u64| {
            let words = [attributes.to_le_bytes(), blocks.to_le_bytes()].concat();
            [words, start.to_le_bytes().to_vec()].concat()
        };
        let mut data = [range(1 << 10, 3, 5), range(1, 1, 9), range(1 << 10, 1, 20)].concat();
        data.resize(4_096, 0);
        let dsm = |attributes| Entry::new(9, nsid).u32(40, 2).u32(44, attributes);
        io.ask(dsm(2), &data, 0).good();
        io.ask(dsm(0), &[0; 48], 0).good(); // nothing is announced, and the drive is not asked
        data[8..16].copy_from_slice(&(1_u64 << 40).to_le_bytes());
        assert_eq!(io.ask(dsm(2), &data, 0).status, 0x4080);
        drop(host);
        let hints: Vec<_> = served
            .recording(nsid)
            .steps()
            .filter_map(|(_, step)| match step {
                Step::WritePrepare(hints) => Some(hints.clone()),
                _ => None,
            })
            .collect();
        let hint = |first, units| Hint::from_dwords(first, units).unwrap();
        assert_eq!(hints, [vec![hint(5, 3), hint(20, 1)]], "namespace {nsid}");
    }
}

/// A source range of a copy.
pub(crate) fn source(start: u64, blocks: u16) -> [u8; 32] {
    let mut range = [0; 32];
    range[8..16].copy_from_slice(&start.to_le_bytes());
    range[16..18].copy_from_slice(&(blocks - 1).to_le_bytes());
    range
}

/// Two copies: of `now`, which lies at 0, in another order, and over a part of its own sources.
fn copies(io: &mut Queue, now: &[u8]) {
    let copy = |to, ranges: u32| Entry::new(0x19, PLAIN).u64(40, to).u32(48, ranges - 1);
    let ranges = [source(3, 2), source(0, 1)].concat();
    io.ask(copy(20, 2), &ranges, 0).good();
    let (lead, tail) = (&now[..BLOCK], &now[3 * BLOCK..5 * BLOCK]);
    assert_eq!(io.read(PLAIN, 20, 3, BLOCK).good().data, [tail, lead].concat());
    io.ask(copy(21, 1), &source(20, 3), 0).good();
    let moved = [&tail[..BLOCK], tail, lead].concat();
    assert_eq!(io.read(PLAIN, 20, 4, BLOCK).good().data, moved, "all is read before it is written");
    assert_eq!(io.ask(copy(20, 3), &ranges, 0).status, 0x400f, "a range is missing");
    assert_eq!(io.ask(copy(20, 1), &source(1 << 40, 1), 0).status, 0x4080);
}

#[test]
fn who_is_not_on_the_list_is_not_let_in_and_does_not_learn_what_there_is() {
    let hosts = vec!["nqn.2026-01.local.leyden:friend".to_owned()];
    let served = Served::with(Options { hosts, ..Options::default() });
    for subsystem in [NAME, DISCOVERY] {
        let mut queue = Queue::open(served.at(), 0);
        assert_eq!(queue.connect(&Connect::admin(subsystem)).status, 0x4184);
    }
    let friend = "nqn.2026-01.local.leyden:friend";
    let to = Connect { host: friend, ..Connect::admin(NAME) };
    Host::connect(served.at(), &to, 1, 0).io[0].read(PLAIN, 0, 1, BLOCK).good();
}

#[test]
fn a_host_that_falls_silent_loses_its_controller_and_another_does_not() {
    let served = Served::new();
    let mut good = served.host(1, 0);
    let to = Connect { keep_alive_ms: 600, host_id: [9; 16], ..Connect::admin(NAME) };
    let mut silent = Host::connect(served.at(), &to, 1, 0);
    for _ in 0..4 {
        std::thread::sleep(Duration::from_millis(300));
        silent.admin.ask(Entry::new(0x18, 0), &[], 0).good();
    }
    assert!(silent.admin.next_end().is_none() && silent.io[0].next_end().is_none());
    good.io[0].read(PLAIN, 0, 1, BLOCK).good();
    assert_eq!(good.admin.ask(Entry::new(0x18, 0), &[], 0).status, 0);
}

#[test]
fn a_controller_without_cache_writes_through() {
    let served = Served::with(Options { cut: CutMode::Error, ..Options::default() });
    let mut host = served.host(1, 0);
    host.admin.ask(Entry::new(9, 0).u32(40, 6).u32(44, 0), &[], 0).good();
    let data = filled(BLOCK, 3);
    host.io[0].write(PLAIN, 0, &data, BLOCK).good();
    host.admin.ask(Entry::new(9, 0).u32(40, 6).u32(44, 1), &[], 0).good();
    host.io[0].write(PLAIN, 1, &data, BLOCK).good();
    served.cut(PLAIN);
    served.restore(PLAIN);
    assert_eq!(host.io[0].read(PLAIN, 0, 1, BLOCK).good().data, data, "cache off: it is there");
    assert_ne!(host.io[0].read(PLAIN, 1, 1, BLOCK).good().data, data, "cache on: it is not");
}

/// Errors that come and go have their NVMe status; what was made to fail has changed nothing.
#[test]
fn commands_fail_by_rule_with_the_status_of_their_kind() {
    // A cut is to end no connection here.
    let served = Served::with(Options { cut: CutMode::Error, ..Options::default() });
    let mut host = served.host(1, 3);
    let io = &mut host.io[0];
    let fault = |rule: &str| {
        let ask = ControlAsk::Fault { rule: Some(rule.parse().unwrap()), clear: true };
        let answer = control::ask(&served.image(PLAIN), &ask).unwrap();
        assert!(matches!(answer, ControlAnswer::Faults { .. }), "{answer:?}");
    };
    let (old, new) = (filled(4 * BLOCK, 1), filled(4 * BLOCK, 2));
    io.write(PLAIN, 0, &old, BLOCK).good();
    // Sector 8 is in block 1.
    fault("write:lba=8,times=2");
    assert_eq!(io.write(PLAIN, 0, &new, BLOCK).status, 0x4280, "write fault");
    assert_eq!(io.ask(Entry::blocks(8, PLAIN, 1, 1), &[], 0).status, 0x4280, "zeroes");
    io.write(PLAIN, 2, &new[2 * BLOCK..], BLOCK).good();
    fault("read:times=4");
    assert_eq!(io.read(PLAIN, 0, 4, BLOCK).status, 0x4281, "unrecovered read error");
    assert_eq!(io.ask(Entry::blocks(5, PLAIN, 0, 1), &old[..BLOCK], 0).status, 0x4281, "compare");
    assert_eq!(io.ask(Entry::blocks(0xc, PLAIN, 0, 1), &[], 0).status, 0x4281, "verify");
    // The zoned drive has rules of its own: none.
    io.read(ZONED, 0, 1, BLOCK).good();
    assert_eq!(io.read(PLAIN, 0, 1, BLOCK).status, 0x4281);
    let now = [&old[..2 * BLOCK], &new[2 * BLOCK..]].concat();
    assert_eq!(io.read(PLAIN, 0, 4, BLOCK).good().data, now, "what failed has changed nothing");
    fault("flush");
    assert_eq!(io.flush(u32::MAX).status, 0x4280, "a flush of all namespaces fails as one of them");
    io.flush(u32::MAX).good();
    // A drive without power fails as such, and its rules wait.
    fault("read");
    served.cut(PLAIN);
    assert_eq!(host.io[0].read(ZONED, 0, 1, BLOCK).status, 0);
    served.restore(PLAIN);
    assert_eq!(host.io[0].read(PLAIN, 0, 1, BLOCK).status, 0x4281);
    host.io[0].read(PLAIN, 0, 1, BLOCK).good();
}
