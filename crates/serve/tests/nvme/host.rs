//! A small NVMe/TCP host that trusts nothing: it builds every byte itself, and checks every byte that comes back.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Bit 0: header digests, bit 1: data digests.
pub(crate) type Digests = u8;

pub(crate) const HOST: &str =
    "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555";
pub(crate) const DISCOVERY: &str = "nqn.2014-08.org.nvmexpress.discovery";
/// Data of writes up to this size goes along with them.
pub(crate) const IN_CAPSULE: usize = 16 << 10;

/// CRC-32C, by the polynomial of RFC 3720.
pub(crate) fn crc(bytes: &[u8]) -> [u8; 4] {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut at = 0;
        while at < 256 {
            let (mut crc, mut bit) = (at as u32, 0);
            while bit < 8 {
                crc = if crc & 1 != 0 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
                bit += 1;
            }
            table[at] = crc;
            at += 1;
        }
        table
    };
    let step = |crc: u32, &byte: &u8| TABLE[(crc as u8 ^ byte) as usize] ^ crc >> 8;
    (!bytes.iter().fold(!0, step)).to_le_bytes()
}

/// A submission queue entry.
#[derive(Clone, Copy)]
pub(crate) struct Entry(pub(crate) [u8; 64]);

impl Entry {
    pub(crate) fn new(opcode: u8, nsid: u32) -> Self {
        let mut entry = Self([0; 64]);
        entry.0[0] = opcode;
        entry.0[1] = 0x40;
        entry.u32(4, nsid)
    }
    pub(crate) fn fabrics(kind: u8) -> Self {
        let mut entry = Self::new(0x7f, 0);
        entry.0[4] = kind;
        entry
    }
    /// A command with a first block and a number of blocks.
    pub(crate) fn blocks(opcode: u8, nsid: u32, start: u64, blocks: u32) -> Self {
        Self::new(opcode, nsid).u64(40, start).u32(48, blocks - 1)
    }
    pub(crate) fn u16(mut self, at: usize, value: u16) -> Self {
        self.0[at..at + 2].copy_from_slice(&value.to_le_bytes());
        self
    }
    pub(crate) fn u32(mut self, at: usize, value: u32) -> Self {
        self.0[at..at + 4].copy_from_slice(&value.to_le_bytes());
        self
    }
    pub(crate) fn u64(mut self, at: usize, value: u64) -> Self {
        self.0[at..at + 8].copy_from_slice(&value.to_le_bytes());
        self
    }
    /// Its data: so many bytes, in the capsule (01h) or not (5Ah).
    pub(crate) fn sgl(self, bytes: usize, id: u8) -> Self {
        let mut entry = self.u32(32, bytes as u32);
        entry.0[39] = id;
        entry
    }
}

/// How a command has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) cid: u16,
    /// Without the phase bit: status code type, status code, and do not retry in bit 14.
    pub(crate) status: u16,
    pub(crate) result: u64,
    pub(crate) data: Vec<u8>,
}

impl Ended {
    #[track_caller]
    pub(crate) fn good(self) -> Self {
        assert_eq!(self.status, 0, "status {:#x}", self.status);
        self
    }
}

/// A PDU from the server, its digests checked and cut off.
#[derive(Debug)]
pub(crate) struct Pdu {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) header: Vec<u8>,
    pub(crate) data: Vec<u8>,
}

/// A connection, and so a queue.
pub(crate) struct Queue {
    pub(crate) stream: TcpStream,
    pub(crate) digests: Digests,
    next: u16,
    /// Data that is to be sent when it is invited, by command.
    outgoing: Vec<(u16, Vec<u8>)>,
    /// Data that has come, by command.
    incoming: Vec<(u16, Vec<u8>)>,
    /// Invited data goes in pieces of this size.
    pub(crate) piece: usize,
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap())
}
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

impl Queue {
    /// A connection that has begun, as nothing yet.
    pub(crate) fn open(at: SocketAddr, digests: Digests) -> Self {
        // Of more than 16 that begin at once, the newest throws out the oldest: hosts try again.
        let tries = (0..50).find_map(|_| {
            let opened = Self::try_open(at, digests);
            if opened.is_err() {
                std::thread::sleep(Duration::from_millis(20));
            }
            opened.ok()
        });
        tries.expect("the server answers")
    }

    pub(crate) fn try_open(at: SocketAddr, digests: Digests) -> std::io::Result<Self> {
        let mut stream = TcpStream::connect(at)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_mins(1)))?;
        let mut begin = [0; 128];
        (begin[2], begin[4], begin[11]) = (128, 128, digests);
        stream.write_all(&begin)?;
        let mut answer = [0; 128];
        stream.read_exact(&mut answer)?;
        assert_eq!(answer[..12], [1, 0, 128, 0, 128, 0, 0, 0, 0, 0, 0, digests]);
        assert!(u32_at(&answer, 12) >= 4_096, "MAXH2CDATA");
        let (outgoing, incoming) = (Vec::new(), Vec::new());
        Ok(Self { stream, digests, next: 0xf000, outgoing, incoming, piece: 64 << 10 })
    }

    /// Sends a PDU.
    pub(crate) fn pdu(&mut self, kind: u8, flags: u8, header: &[u8], data: &[u8]) {
        let bytes = self.encoded(kind, flags, header, data);
        self.stream.write_all(&bytes).unwrap();
    }

    pub(crate) fn encoded(&self, kind: u8, flags: u8, header: &[u8], data: &[u8]) -> Vec<u8> {
        let (head, body) = (self.digests & 1 != 0, self.digests & 2 != 0 && !data.is_empty());
        let length = 8 + header.len();
        let begin = length + if head { 4 } else { 0 };
        let all = begin + data.len() + if body { 4 } else { 0 };
        let offset = if data.is_empty() { 0 } else { begin as u8 };
        let mut bytes =
            vec![kind, flags | u8::from(head) | u8::from(body) << 1, length as u8, offset];
        bytes.extend((all as u32).to_le_bytes());
        bytes.extend(header);
        if head {
            bytes.extend(crc(&bytes));
        }
        bytes.extend(data);
        if body {
            bytes.extend(crc(data));
        }
        bytes
    }

    /// Sends a command, and its data with it or when it is invited. Its identifier.
    pub(crate) fn send(&mut self, entry: Entry, data: &[u8], room: usize) -> u16 {
        let cid = self.next;
        self.next = self.next.wrapping_add(1);
        let entry = entry.u16(2, cid);
        if data.is_empty() {
            self.pdu(4, 0, &entry.sgl(room, 0x5a).0, &[]);
        } else if data.len() <= IN_CAPSULE {
            self.pdu(4, 0, &entry.sgl(data.len(), 0x01).0, data);
        } else {
            self.outgoing.push((cid, data.to_vec()));
            self.pdu(4, 0, &entry.sgl(data.len(), 0x5a).0, &[]);
        }
        cid
    }

    /// The next PDU; `None` if the server has hung up.
    pub(crate) fn next_pdu(&mut self) -> Option<Pdu> {
        let mut common = [0; 8];
        match self.stream.read_exact(&mut common) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("no answer"),
            Err(_) => return None,
            Ok(()) => {}
        }
        let (kind, flags) = (common[0], common[1]);
        let (length, all) = (usize::from(common[2]), u32_at(&common, 4) as usize);
        assert_eq!(length, 24, "HLEN of {kind:#x}");
        let mut bytes = common.to_vec();
        bytes.resize(all, 0);
        if self.stream.read_exact(&mut bytes[8..]).is_err() {
            return None; // cut off amid a PDU
        }
        let mut begin = length;
        if kind != 3 && self.digests & 1 != 0 {
            assert_eq!(flags & 1, 1);
            assert_eq!(bytes[begin..begin + 4], crc(&bytes[..begin]), "header digest");
            begin += 4;
        }
        let mut end = all;
        if kind == 7 {
            assert_eq!(usize::from(common[3]), begin, "PDO");
            if self.digests & 2 != 0 {
                assert_eq!(flags & 2, 2);
                end -= 4;
                assert_eq!(bytes[end..], crc(&bytes[begin..end]), "data digest");
            }
        }
        let data = if kind == 3 { Vec::new() } else { bytes[begin..end].to_vec() };
        bytes.truncate(length);
        Some(Pdu { kind, flags, header: bytes, data })
    }

    /// The next command that ends; `None` if the server has hung up. Data that is invited meanwhile is sent.
    pub(crate) fn next_end(&mut self) -> Option<Ended> {
        loop {
            let Pdu { kind, flags, header, data } = self.next_pdu()?;
            match kind {
                9 => self.invited(&header),
                7 => {
                    let cid = u16_at(&header, 8);
                    assert_eq!(u32_at(&header, 16) as usize, data.len());
                    assert_eq!(flags & 4, 4, "all data of a command at once");
                    if flags & 8 != 0 {
                        return Some(Ended { cid, status: 0, result: 0, data });
                    }
                    self.incoming.push((cid, data));
                }
                5 => {
                    assert!(data.is_empty());
                    let cid = u16_at(&header, 20);
                    let at = self.incoming.iter().position(|it| it.0 == cid);
                    let data = at.map(|at| self.incoming.swap_remove(at).1).unwrap_or_default();
                    let (result, field) = (u64_at(&header, 8), u16_at(&header, 22));
                    assert_eq!(field & 1, 0, "no phase bit on fabrics");
                    return Some(Ended { cid, status: field >> 1, result, data });
                }
                other => panic!("a PDU of type {other:#x}: {header:?}"),
            }
        }
    }

    fn invited(&mut self, header: &[u8]) {
        let (cid, tag) = (u16_at(header, 8), u16_at(header, 10));
        let (from, length) = (u32_at(header, 12) as usize, u32_at(header, 16) as usize);
        let at = self.outgoing.iter().position(|it| it.0 == cid).expect("a command of ours");
        let data = self.outgoing.swap_remove(at).1;
        assert_eq!((from, length), (0, data.len()), "all of it at once");
        let mut offset = 0;
        for piece in data.chunks(self.piece) {
            let is_last = offset + piece.len() == data.len();
            self.data(cid, tag, offset as u32, piece, if is_last { 4 } else { 0 });
            offset += piece.len();
        }
    }

    /// Sends data.
    pub(crate) fn data(&mut self, cid: u16, tag: u16, offset: u32, data: &[u8], flags: u8) {
        let mut header = cid.to_le_bytes().to_vec();
        header.extend(tag.to_le_bytes());
        header.extend(offset.to_le_bytes());
        header.extend((data.len() as u32).to_le_bytes());
        header.extend([0; 4]);
        self.pdu(6, flags, &header, data);
    }

    /// Asks for one thing, and waits for its end.
    #[track_caller]
    pub(crate) fn ask(&mut self, entry: Entry, data: &[u8], room: usize) -> Ended {
        let cid = self.send(entry, data, room);
        let ended = self.next_end().expect("the server answers");
        assert_eq!(ended.cid, cid, "all 16 bits");
        ended
    }

    pub(crate) fn connect(&mut self, to: &Connect<'_>) -> Ended {
        let mut data = vec![0; 1_024];
        data[..16].copy_from_slice(&to.host_id);
        data[16..18].copy_from_slice(&to.controller.to_le_bytes());
        data[256..256 + to.subsystem.len()].copy_from_slice(to.subsystem.as_bytes());
        data[512..512 + to.host.len()].copy_from_slice(to.host.as_bytes());
        let entry = Entry::fabrics(1).u16(42, to.queue).u16(44, to.size - 1);
        let entry = entry.u16(46, u16::from(to.no_flow_control) << 2).u32(48, to.keep_alive_ms);
        self.ask(entry, &data, 0)
    }
    pub(crate) fn property(&mut self, offset: u32, is_long: bool) -> Ended {
        self.ask(Entry::fabrics(4).u16(40, u16::from(is_long)).u32(44, offset), &[], 0)
    }
    pub(crate) fn set_property(&mut self, offset: u32, value: u64) -> Ended {
        self.ask(Entry::fabrics(0).u32(44, offset).u64(48, value), &[], 0)
    }
    pub(crate) fn identify(&mut self, cns: u32, nsid: u32, set: u32) -> Ended {
        self.ask(Entry::new(6, nsid).u32(40, cns).u32(44, set << 24), &[], 4_096)
    }
    pub(crate) fn log(&mut self, page: u32, nsid: u32, bytes: usize, offset: u64) -> Ended {
        let entry = Entry::new(2, nsid).u32(40, page | (bytes as u32 / 4 - 1) << 16);
        self.ask(entry.u64(48, offset), &[], bytes)
    }
    #[track_caller]
    pub(crate) fn write(&mut self, nsid: u32, start: u64, data: &[u8], block: usize) -> Ended {
        self.ask(Entry::blocks(1, nsid, start, (data.len() / block) as u32), data, 0)
    }
    #[track_caller]
    pub(crate) fn read(&mut self, nsid: u32, start: u64, blocks: u32, block: usize) -> Ended {
        self.ask(Entry::blocks(2, nsid, start, blocks), &[], blocks as usize * block)
    }
    pub(crate) fn flush(&mut self, nsid: u32) -> Ended {
        self.ask(Entry::new(0, nsid), &[], 0)
    }
    pub(crate) fn zone(&mut self, nsid: u32, start: u64, action: u32) -> Ended {
        self.ask(Entry::new(0x79, nsid).u64(40, start).u32(52, action), &[], 0)
    }

    /// Whether the server hangs up, with this fatal error status.
    pub(crate) fn is_terminated(&mut self, status: u16) -> bool {
        let Some(Pdu { kind: 3, header, .. }) = self.next_pdu() else { return false };
        u16_at(&header, 8) == status && self.next_pdu().is_none()
    }
}

/// The fields of a queue's Connect.
#[derive(Clone, Copy)]
pub(crate) struct Connect<'a> {
    pub(crate) subsystem: &'a str,
    pub(crate) host: &'a str,
    pub(crate) host_id: [u8; 16],
    pub(crate) controller: u16,
    pub(crate) queue: u16,
    pub(crate) size: u16,
    pub(crate) keep_alive_ms: u32,
    pub(crate) no_flow_control: bool,
}

impl<'a> Connect<'a> {
    pub(crate) fn admin(subsystem: &'a str) -> Self {
        Self {
            subsystem,
            host: HOST,
            host_id: [7; 16],
            controller: 0xffff,
            queue: 0,
            size: 32,
            keep_alive_ms: 30_000,
            no_flow_control: false,
        }
    }
}

/// A host with its admin queue and I/O queues.
pub(crate) struct Host {
    pub(crate) admin: Queue,
    pub(crate) io: Vec<Queue>,
    pub(crate) controller: u16,
}

impl Host {
    /// Connects as Linux does.
    pub(crate) fn connect(at: SocketAddr, to: &Connect<'_>, queues: u16, digests: Digests) -> Self {
        let mut admin = Queue::open(at, digests);
        let connected = admin.connect(&Connect { size: 32, queue: 0, ..*to }).good().result;
        assert_eq!(connected >> 16, 0, "Linux takes other bits for authentication");
        let controller = connected as u16;
        assert_eq!(admin.property(0, true).good().result, 0x0820_0f01_03ff);
        admin.set_property(0x14, 0x0046_0060).good();
        admin.set_property(0x14, 0x0046_0061).good();
        assert_eq!(admin.property(0x1c, false).good().result, 1);
        assert!(admin.property(0x08, false).good().result >= 0x0001_0300);
        let asked = u64::from(queues - 1) * 0x1_0001;
        let granted = admin.ask(Entry::new(9, 0).u32(40, 7).u32(44, asked as u32), &[], 0).good();
        assert_eq!(granted.result, asked);
        let io = (1..=queues).map(|queue| {
            let mut io = Queue::open(at, digests);
            let joined = io.connect(&Connect { controller, queue, keep_alive_ms: 0, ..*to }).good();
            assert_eq!(joined.result, u64::from(controller));
            io
        });
        let io = io.collect();
        Self { admin, io, controller }
    }
}
