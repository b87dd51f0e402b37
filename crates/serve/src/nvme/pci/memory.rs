//! The memory of a host: files that its client has given.
//!
//! Files are read and written by system calls and not mapped: one that its client cuts short is an error then, and no
//! signal that ends the server.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use leyden_nvme::pci::{Memory, Refused, Unreachable};
use rustix::fs::{FileType, OFlags};
use rustix::io::Errno;

/// Ranges of one client; QEMU's machines have some dozens.
const RANGES_MOST: usize = 4_096;
/// Different files of one client: each takes a descriptor of the server's.
const FILES_MOST: usize = 64;

/// A file, and which one it is. Clients send the same one with each range of it.
#[derive(Debug)]
struct File {
    descriptor: OwnedFd,
    identity: (u64, u64, u32),
}

/// A range of memory.
#[derive(Debug)]
struct Range {
    bytes: u64,
    offset: u64,
    /// `None` of memory that only messages could reach: a ROM.
    file: Option<Arc<File>>,
    reads: bool,
    writes: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct HostMemory {
    /// By their addresses; none overlaps another.
    ranges: BTreeMap<u64, Range>,
}

/// A range that a client gives, and how it may be used.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given {
    pub(super) address: u64,
    pub(super) bytes: u64,
    pub(super) offset: u64,
    pub(super) reads: bool,
    pub(super) writes: bool,
}

impl HostMemory {
    /// Takes a range, whose ends are numbers.
    ///
    /// # Errors
    /// If part of it is there already, there are too many, or the file is none that has memory.
    pub(super) fn give(&mut self, given: Given, file: Option<OwnedFd>) -> Result<(), Refused> {
        let Given { address, bytes, offset, reads, writes } = given;
        let before = self.ranges.range(..address + bytes).next_back();
        if before.is_some_and(|(at, range)| at + range.bytes > address) {
            return Err(Refused::EXISTS);
        }
        if self.ranges.len() >= RANGES_MOST {
            return Err(Refused::FULL);
        }
        let file = file.map(|file| self.file(file, offset + bytes)).transpose()?;
        self.ranges.insert(address, Range { bytes, offset, file, reads, writes });
        Ok(())
    }

    /// A file of at least so many bytes; the one that is there already, if it is the same.
    fn file(&self, descriptor: OwnedFd, least: u64) -> Result<Arc<File>, Refused> {
        let stat = rustix::fs::fstat(&descriptor).map_err(|_| Refused::INVALID)?;
        let flags = rustix::fs::fcntl_getfl(&descriptor).map_err(|_| Refused::INVALID)?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        // A pipe could be read for ever, and what is appended is not where it belongs.
        if !is_file || flags.contains(OFlags::APPEND) || (stat.st_size as u64) < least {
            return Err(Refused::INVALID);
        }
        let identity = (stat.st_dev, stat.st_ino, (flags & OFlags::RWMODE).bits());
        let files = self.ranges.values().filter_map(|range| range.file.as_ref());
        if let Some(known) = files.clone().find(|file| file.identity == identity) {
            return Ok(Arc::clone(known));
        }
        let distinct = files.map(|file| file.identity).collect::<std::collections::BTreeSet<_>>();
        if distinct.len() >= FILES_MOST {
            return Err(Refused::FULL);
        }
        Ok(Arc::new(File { descriptor, identity }))
    }

    /// Gives back all ranges in this one.
    ///
    /// # Errors
    /// If it holds a part of one.
    pub(super) fn take(&mut self, address: u64, bytes: u64) -> Result<(), Refused> {
        let end = address + bytes;
        let before = self.ranges.range(..address).next_back();
        let last = self.ranges.range(..end).next_back();
        let is_cut = before.is_some_and(|(at, range)| at + range.bytes > address)
            || last.is_some_and(|(at, range)| at + range.bytes > end);
        if is_cut {
            return Err(Refused::INVALID);
        }
        self.ranges.retain(|at, _| !(address..end).contains(at));
        Ok(())
    }

    /// Gives back everything.
    pub(super) fn clear(&mut self) {
        self.ranges.clear();
    }

    /// Calls `each` for the parts of a range, with the file, where in it, and how much.
    fn parts(
        &self,
        mut address: u64,
        mut bytes: usize,
        is_allowed: impl Fn(&Range) -> bool,
        mut each: impl FnMut(&OwnedFd, u64, usize) -> Result<(), Unreachable>,
    ) -> Result<(), Unreachable> {
        while bytes > 0 {
            let (at, range) = self.ranges.range(..=address).next_back().ok_or(Unreachable)?;
            let begin = address - at;
            let file = range.file.as_ref().filter(|_| begin < range.bytes && is_allowed(range));
            let part = (range.bytes.saturating_sub(begin)).min(bytes as u64) as usize;
            each(&file.ok_or(Unreachable)?.descriptor, range.offset + begin, part)?;
            bytes -= part;
            address = address.checked_add(part as u64).ok_or(Unreachable)?;
        }
        Ok(())
    }
}

impl Memory for HostMemory {
    fn read(&self, address: u64, mut bytes: &mut [u8]) -> Result<(), Unreachable> {
        self.parts(
            address,
            bytes.len(),
            |range| range.reads,
            |file, offset, part| {
                let (into, rest) = std::mem::take(&mut bytes).split_at_mut(part);
                bytes = rest;
                whole(part, |done| rustix::io::pread(file, &mut into[done..], offset + done as u64))
            },
        )
    }

    fn write(&self, address: u64, mut bytes: &[u8]) -> Result<(), Unreachable> {
        self.parts(
            address,
            bytes.len(),
            |range| range.writes,
            |file, offset, part| {
                let (from, rest) = bytes.split_at(part);
                bytes = rest;
                whole(part, |done| rustix::io::pwrite(file, &from[done..], offset + done as u64))
            },
        )
    }
}

/// Moves all of so many bytes.
fn whole(
    bytes: usize,
    mut next: impl FnMut(usize) -> Result<usize, Errno>,
) -> Result<(), Unreachable> {
    let mut done = 0;
    while done < bytes {
        match next(done) {
            Ok(0) => return Err(Unreachable), // its end
            Ok(count) => done += count,
            Err(Errno::INTR) => {}
            Err(_) => return Err(Unreachable),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;

    fn file(bytes: u64) -> OwnedFd {
        let file = memfd_create("memory", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, bytes).unwrap();
        file
    }

    fn given(address: u64, bytes: u64, offset: u64) -> Given {
        Given { address, bytes, offset, reads: true, writes: true }
    }

    #[test]
    fn ranges_side_by_side_are_one_memory_and_holes_are_not() {
        let mut memory = HostMemory::default();
        let (a, b) = (file(0x3000), file(0x1000));
        memory.give(given(0x1000, 0x1000, 0x2000), Some(a.try_clone().unwrap())).unwrap();
        memory.give(given(0x2000, 0x1000, 0), Some(b.try_clone().unwrap())).unwrap();
        memory.write(0x1ffe, &[1, 2, 3, 4]).unwrap();
        let mut back = [0; 4];
        memory.read(0x1ffe, &mut back).unwrap();
        assert_eq!(back, [1, 2, 3, 4]);
        let mut of = [0; 2];
        rustix::io::pread(&a, &mut of, 0x2ffe).unwrap();
        assert_eq!(of, [1, 2]);
        rustix::io::pread(&b, &mut of, 0).unwrap();
        assert_eq!(of, [3, 4]);
        assert_eq!(memory.write(0x2fff, &[1, 2]), Err(Unreachable));
        assert_eq!(memory.read(0xfff, &mut back), Err(Unreachable));
        assert_eq!(memory.read(u64::MAX, &mut back), Err(Unreachable));
        memory.take(0x1000, 0x1000).unwrap();
        assert_eq!(memory.read(0x1ffe, &mut back), Err(Unreachable));
    }

    #[test]
    fn ranges_do_not_overlap_and_are_taken_back_whole() {
        let mut memory = HostMemory::default();
        memory.give(given(0x2000, 0x2000, 0), Some(file(0x2000))).unwrap();
        for (address, bytes) in [(0x1000, 0x1001), (0x3fff, 1), (0x2000, 0x2000), (0, 0x8000)] {
            let refused = memory.give(given(address, bytes, 0), Some(file(0x8000)));
            assert_eq!(refused, Err(Refused::EXISTS), "{address:#x}");
        }
        memory.give(given(0x4000, 0x1000, 0), None).unwrap();
        for (address, bytes) in [(0x2000, 0x1000), (0x3000, 0x1000), (0, 0x2001), (0x3000, 0x2000)]
        {
            assert_eq!(memory.take(address, bytes), Err(Refused::INVALID), "{address:#x}");
        }
        assert_eq!(memory.read(0x4000, &mut [0]), Err(Unreachable), "a ROM without a file");
        memory.take(0, 0x5000).unwrap();
        assert!(memory.ranges.is_empty());
        memory.take(0, 0x5000).unwrap();
    }

    #[test]
    fn files_that_have_no_memory_are_refused_and_those_cut_short_are_unreachable() {
        let mut memory = HostMemory::default();
        let (pipe, _other) = std::io::pipe().unwrap();
        assert_eq!(memory.give(given(0, 0x1000, 0), Some(pipe.into())), Err(Refused::INVALID));
        let short = memory.give(given(0, 0x1000, 1), Some(file(0x1000)));
        assert_eq!(short, Err(Refused::INVALID));
        let cut = file(0x2000);
        memory.give(given(0, 0x2000, 0), Some(cut.try_clone().unwrap())).unwrap();
        ftruncate(&cut, 0x1800).unwrap();
        assert_eq!(memory.read(0x1000, &mut [0; 0x1000]), Err(Unreachable));
        assert_eq!(memory.read(0x1000, &mut [0; 0x800]), Ok(()));
    }

    #[test]
    fn one_file_takes_one_descriptor_and_there_is_an_end_of_both() {
        let mut memory = HostMemory::default();
        let shared = file(1 << 24);
        for at in 0..RANGES_MOST as u64 {
            let clone = shared.try_clone().unwrap();
            memory.give(given(at << 12, 0x1000, at << 12), Some(clone)).unwrap();
        }
        assert_eq!(memory.give(given(1 << 40, 0x1000, 0), Some(shared)), Err(Refused::FULL));
        let first = memory.ranges[&0].file.clone().unwrap();
        assert!(memory.ranges.values().all(|it| Arc::ptr_eq(it.file.as_ref().unwrap(), &first)));
        memory.clear();
        for at in 0..FILES_MOST as u64 {
            memory.give(given(at << 12, 0x1000, 0), Some(file(0x1000))).unwrap();
        }
        let more = memory.give(given(1 << 40, 0x1000, 0), Some(file(0x1000)));
        assert_eq!(more, Err(Refused::FULL));
    }

    #[test]
    fn memory_that_may_only_be_read_is_not_written() {
        let mut memory = HostMemory::default();
        let only = Given { writes: false, ..given(0, 0x1000, 0) };
        memory.give(only, Some(file(0x1000))).unwrap();
        assert_eq!(memory.write(0, &[1]), Err(Unreachable));
        let only = Given { reads: false, ..given(0x1000, 0x1000, 0) };
        memory.give(only, Some(file(0x1000))).unwrap();
        assert_eq!(memory.read(0x1000, &mut [0]), Err(Unreachable));
        memory.write(0x1000, &[1]).unwrap();
    }
}
