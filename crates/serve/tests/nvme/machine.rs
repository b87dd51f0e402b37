//! A small client of vfio-user and its NVMe driver, which trust nothing: they build every byte themselves.

use std::io::{IoSlice, PipeReader, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use crate::host::Entry;
use crate::until;

/// Bytes of the machine's memory, which begins at 0.
pub(crate) const MEMORY: u64 = 32 << 20;
/// Lists of pages, and data.
const LISTS: u64 = 0x20_0000;
pub(crate) const DATA: u64 = 0x40_0000;
/// Commands that map and unmap memory, set interrupts, read and write regions, and reset.
pub(crate) const MAP: u16 = 2;
pub(crate) const UNMAP: u16 = 3;
pub(crate) const SET_IRQS: u16 = 8;
pub(crate) const READ: u16 = 9;
pub(crate) const WRITE: u16 = 10;
pub(crate) const RESET: u16 = 13;
pub(crate) const CSTS: u64 = 0x1c;

pub(crate) fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

pub(crate) fn file(bytes: u64) -> OwnedFd {
    let file = memfd_create("memory", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&file, bytes).unwrap();
    file
}

/// A connection to a server.
pub(crate) struct Client(pub(crate) UnixStream);

impl Client {
    pub(crate) fn open(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Self(stream)
    }

    pub(crate) fn send(&mut self, command: u16, flags: u32, body: &[u8], files: &[BorrowedFd<'_>]) {
        let mut bytes = words(&[7 | u32::from(command) << 16, 16 + body.len() as u32, flags, 0]);
        bytes.extend(body);
        self.send_bytes(&bytes, files);
    }

    pub(crate) fn send_bytes(&mut self, bytes: &[u8], files: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(64))];
        let mut along = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            assert!(along.push(SendAncillaryMessage::ScmRights(files)));
        }
        let sent = sendmsg(&self.0, &[IoSlice::new(bytes)], &mut along, SendFlags::NOSIGNAL);
        let sent = sent.unwrap();
        self.0.write_all(&bytes[sent..]).unwrap();
    }

    /// The body of the next reply, or the error number.
    pub(crate) fn reply(&mut self, command: u16) -> Result<Vec<u8>, u32> {
        let mut head = [0; 16];
        self.0.read_exact(&mut head).unwrap();
        let word = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap());
        assert_eq!(word(0), 7 | u32::from(command) << 16);
        let mut body = vec![0; word(4) as usize - 16];
        self.0.read_exact(&mut body).unwrap();
        match word(8) {
            0x01 => Ok(body),
            0x21 => Err(word(12)),
            flags => panic!("flags {flags:#x}"),
        }
    }

    pub(crate) fn ask(
        &mut self,
        command: u16,
        body: &[u8],
        files: &[BorrowedFd<'_>],
    ) -> Result<Vec<u8>, u32> {
        self.send(command, 0, body, files);
        self.reply(command)
    }

    /// Agrees on the version as QEMU does.
    pub(crate) fn greet(&mut self) {
        let mut body = vec![0; 4];
        body.extend(br#"{"capabilities":{"max_msg_fds":16,"max_data_xfer_size":1048576}}"#);
        body.push(0);
        let reply = self.ask(1, &body, &[]).unwrap();
        assert!(reply.len() <= body.len() && reply[..4] == [0; 4] && reply.last() == Some(&0));
    }

    pub(crate) fn map(
        &mut self,
        address: u64,
        bytes: u64,
        file: Option<&OwnedFd>,
    ) -> Result<(), u32> {
        let mut body = words(&[32, 3]);
        for field in [0, address, bytes] {
            body.extend(field.to_le_bytes());
        }
        let files: Vec<_> = file.iter().map(|file| file.as_fd()).collect();
        self.ask(MAP, &body, &files).map(|body| assert!(body.is_empty()))
    }

    pub(crate) fn unmap(&mut self, address: u64, bytes: u64) -> Result<(), u32> {
        let mut body = words(&[24, 0]);
        body.extend([address.to_le_bytes(), bytes.to_le_bytes()].concat());
        self.ask(UNMAP, &body, &[]).map(|reply| assert_eq!(reply, body))
    }

    pub(crate) fn read(&mut self, region: u32, at: u64, count: u32) -> Vec<u8> {
        let body = [at.to_le_bytes().to_vec(), words(&[region, count])].concat();
        let reply = self.ask(READ, &body, &[]).unwrap();
        assert_eq!(reply[..16], body);
        assert_eq!(reply.len(), 16 + count as usize);
        reply[16..].to_vec()
    }

    /// Writes, without waiting for a reply.
    pub(crate) fn write(&mut self, region: u32, at: u64, data: &[u8]) {
        let place = [at.to_le_bytes().to_vec(), words(&[region, data.len() as u32])].concat();
        self.send(WRITE, 1 << 4, &[&place, data].concat(), &[]);
    }

    pub(crate) fn register(&mut self, at: u64) -> u32 {
        u32::from_le_bytes(self.read(0, at, 4).try_into().unwrap())
    }

    pub(crate) fn set(&mut self, at: u64, value: u32) {
        self.write(0, at, &value.to_le_bytes());
    }
}

/// How a command has ended. The status is without the phase bit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) cid: u16,
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

/// A pair of queues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ring {
    size: u32,
    tail: u32,
    head: u32,
    phase: u8,
}

/// A machine with a driver: memory, interrupts, an admin queue and I/O queues.
pub(crate) struct Machine {
    pub(crate) client: Client,
    pub(crate) memory: OwnedFd,
    pub(crate) vectors: Vec<PipeReader>,
    pub(crate) rings: Vec<Ring>,
    next: u16,
}

/// The submission queue with this number lies here, its completion queue behind.
pub(crate) const fn submissions(queue: usize) -> u64 {
    0x1_0000 + queue as u64 * 0x1_8000
}
pub(crate) const fn completions(queue: usize) -> u64 {
    submissions(queue) + 0x1_0000
}

impl Machine {
    /// A machine that has found the function, and enabled nothing.
    pub(crate) fn new(path: &Path) -> Self {
        let mut client = Client::open(path);
        client.greet();
        let memory = file(MEMORY);
        client.map(0, MEMORY, Some(&memory)).unwrap();
        let vectors = Vec::new();
        Self { client, memory, vectors, rings: Vec::new(), next: 0 }
    }

    /// One that has enabled the controller, and made so many pairs of I/O queues of this size.
    pub(crate) fn enabled(path: &Path, queues: usize, size: u32) -> Self {
        let mut machine = Self::new(path);
        machine.enable(queues, size);
        machine
    }

    pub(crate) fn enable(&mut self, queues: usize, size: u32) {
        let client = &mut self.client;
        client.write(7, 4, &[6, 4]);
        self.rings = vec![Ring { size: 32, tail: 0, head: 0, phase: 1 }];
        let (asq, acq) = (submissions(0) as u32, completions(0) as u32);
        for (at, value) in
            [(0x14, 0), (0x24, 0x001f_001f), (0x28, asq), (0x2c, 0), (0x30, acq), (0x34, 0)]
        {
            client.set(at, value);
        }
        client.set(0x14, 0x0046_0001);
        assert_eq!(client.register(CSTS), 1);
        self.put(completions(0), &[0; 0x1000]);
        let (ends, files): (Vec<_>, Vec<_>) =
            (0..=queues).map(|_| std::io::pipe().unwrap()).unzip();
        let body = words(&[20, 0x24, 2, 0, queues as u32 + 1]);
        let files: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        self.client.ask(SET_IRQS, &body, &files).unwrap();
        self.vectors = ends;
        for queue in 1..=queues {
            self.add(queue, size).good();
        }
    }

    /// Makes a pair of I/O queues.
    pub(crate) fn add(&mut self, queue: usize, size: u32) -> Ended {
        let cdw10 = queue as u32 | (size - 1) << 16;
        self.put(completions(queue), &[0; 0x4000]);
        let make =
            |opcode, base, cdw11| Entry::new(opcode, 0).u64(24, base).u32(40, cdw10).u32(44, cdw11);
        self.raw(0, make(5, completions(queue), 3 | (queue as u32) << 16)).good();
        let made = self.raw(0, make(1, submissions(queue), 1 | (queue as u32) << 16));
        self.rings.push(Ring { size, tail: 0, head: 0, phase: 1 });
        made
    }

    pub(crate) fn put(&self, address: u64, bytes: &[u8]) {
        assert_eq!(rustix::io::pwrite(&self.memory, bytes, address).unwrap(), bytes.len());
    }

    pub(crate) fn get(&self, address: u64, bytes: usize) -> Vec<u8> {
        let mut data = vec![0; bytes];
        assert_eq!(rustix::io::pread(&self.memory, &mut data[..], address).unwrap(), bytes);
        data
    }

    /// Submits an entry as it is; its identifier.
    pub(crate) fn submit(&mut self, queue: usize, entry: Entry) -> u16 {
        let cid = self.next;
        self.next = self.next.wrapping_add(1);
        let mut entry = entry.u16(2, cid);
        entry.0[1] &= !0x40; // no SGL
        self.place(queue, &entry.0);
        cid
    }

    /// Puts bytes at the end of a queue, and rings its doorbell.
    pub(crate) fn place(&mut self, queue: usize, entry: &[u8; 64]) {
        let ring = &mut self.rings[queue];
        let at = submissions(queue) + u64::from(ring.tail) * 64;
        ring.tail = (ring.tail + 1) % ring.size;
        let tail = ring.tail;
        self.put(at, entry);
        self.client.set(0x1000 + queue as u64 * 8, tail);
    }

    /// The next completion of a queue, if there is one.
    pub(crate) fn poll(&mut self, queue: usize) -> Option<Ended> {
        let mut ring = self.rings[queue];
        let entry = self.get(completions(queue) + u64::from(ring.head) * 16, 16);
        if entry[14] & 1 != ring.phase {
            return None;
        }
        let u16_at = |at: usize| u16::from_le_bytes([entry[at], entry[at + 1]]);
        assert_eq!(usize::from(u16_at(10)), queue, "the submission queue");
        ring.head += 1;
        if ring.head == ring.size {
            (ring.head, ring.phase) = (0, 1 - ring.phase);
        }
        self.rings[queue] = ring;
        self.client.set(0x1004 + queue as u64 * 8, ring.head);
        let result = u64::from_le_bytes(entry[..8].try_into().unwrap());
        Some(Ended { cid: u16_at(12), status: u16_at(14) >> 1, result, data: Vec::new() })
    }

    #[track_caller]
    pub(crate) fn next_end(&mut self, queue: usize) -> Ended {
        let mut ended = None;
        until(|| {
            ended = self.poll(queue);
            ended.is_some()
        });
        ended.unwrap()
    }

    /// Asks with an entry whose pages are in it already.
    #[track_caller]
    pub(crate) fn raw(&mut self, queue: usize, entry: Entry) -> Ended {
        let cid = self.submit(queue, entry);
        let ended = self.next_end(queue);
        assert_eq!(ended.cid, cid);
        ended
    }

    /// The entry with data of so many bytes that begins `offset` bytes into a page. Its pages lie in the memory in reverse.
    pub(crate) fn with_pages(&self, entry: Entry, offset: u64, bytes: usize) -> Entry {
        let pages = (offset + bytes as u64).div_ceil(4_096).max(1);
        let page = |number: u64| DATA + (pages - 1 - number) * 4_096;
        let entry = entry.u64(24, page(0) + offset);
        if pages == 1 {
            return entry;
        }
        if pages == 2 {
            return entry.u64(32, page(1));
        }
        // The first list has room for some entries only: the last of them names the second list.
        let room = 16;
        let begin = LISTS + 4_096 - room * 8;
        let is_split = pages - 1 > room;
        for number in 1..pages {
            let place = match number - 1 {
                before if is_split && before >= room - 1 => {
                    LISTS + 0x1_0000 + (before - (room - 1)) * 8
                }
                before => begin + before * 8,
            };
            self.put(place, &page(number).to_le_bytes());
        }
        if is_split {
            self.put(begin + (room - 1) * 8, &(LISTS + 0x1_0000).to_le_bytes());
        }
        entry.u64(32, begin)
    }

    /// The pages of an entry with data of so many bytes, in the order of the data.
    fn pages(offset: u64, bytes: usize) -> Vec<(u64, usize)> {
        let pages = (offset + bytes as u64).div_ceil(4_096).max(1);
        let (mut runs, mut left) = (Vec::new(), bytes);
        for number in 0..pages {
            let skip = if number == 0 { offset } else { 0 };
            let run = left.min((4_096 - skip) as usize);
            runs.push((DATA + (pages - 1 - number) * 4_096 + skip, run));
            left -= run;
        }
        runs
    }

    /// Asks with data that begins `offset` bytes into a page: `data` for the drive, and so many bytes from it.
    #[track_caller]
    pub(crate) fn ask_at(
        &mut self,
        (queue, offset): (usize, u64),
        entry: Entry,
        data: &[u8],
        back: usize,
    ) -> Ended {
        let bytes = data.len().max(back);
        let mut rest = data;
        for (address, run) in Self::pages(offset, data.len()) {
            self.put(address, &rest[..run]);
            rest = &rest[run..];
        }
        let entry = self.with_pages(entry, offset, bytes);
        let mut ended = self.raw(queue, entry);
        for (address, run) in Self::pages(offset, back) {
            ended.data.extend(self.get(address, run));
        }
        ended
    }

    #[track_caller]
    pub(crate) fn ask(&mut self, queue: usize, entry: Entry, data: &[u8], back: usize) -> Ended {
        self.ask_at((queue, 0), entry, data, back)
    }

    #[track_caller]
    pub(crate) fn write(&mut self, queue: usize, nsid: u32, start: u64, data: &[u8]) -> Ended {
        let blocks = (data.len() / crate::BLOCK) as u32;
        self.ask(queue, Entry::blocks(1, nsid, start, blocks), data, 0)
    }

    #[track_caller]
    pub(crate) fn read(&mut self, queue: usize, nsid: u32, start: u64, blocks: u32) -> Ended {
        let bytes = blocks as usize * crate::BLOCK;
        self.ask(queue, Entry::blocks(2, nsid, start, blocks), &[], bytes)
    }

    #[track_caller]
    pub(crate) fn flush(&mut self, queue: usize, nsid: u32) -> Ended {
        self.raw(queue, Entry::new(0, nsid))
    }

    #[track_caller]
    pub(crate) fn identify(&mut self, cns: u32, nsid: u32, set: u32) -> Ended {
        let entry = Entry::new(6, nsid).u32(40, cns).u32(44, set << 24);
        self.ask(0, entry, &[], 4_096)
    }
}
