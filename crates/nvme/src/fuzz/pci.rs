//! Any bytes as the messages of a client of vfio-user, and as its memory.

use std::cell::RefCell;

use zerocopy::FromBytes;

use super::{admin, io, subsystem};
use crate::io::Transfer;
use crate::namespace::TRANSFER_MOST;
use crate::pci::{
    Function, HEADER_BYTES, Header, Memory, QUEUE_OPCODES, Refused, Request, Taken, Unreachable,
    device_info, irq_info, region_info, transfer, version,
};
use crate::status::Status;
use crate::subsystem::Subsystem;
use crate::wire::Sqe;

/// A message that no client sends: its body is an address of eight bytes, and bytes that the client's memory has there.
pub const POKE: u16 = 0xfffe;
/// Bytes of the memory.
const MEMORY: usize = 1 << 20;
/// Commands that are carried out after a doorbell.
const AT_ONCE: usize = 64;

/// Memory from 0 on.
struct Flat(RefCell<Vec<u8>>);

impl Memory for Flat {
    fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), Unreachable> {
        let memory = self.0.borrow();
        let from = usize::try_from(address).ok().and_then(|at| memory.get(at..));
        let from = from.and_then(|it| it.get(..bytes.len())).ok_or(Unreachable)?;
        bytes.copy_from_slice(from);
        Ok(())
    }
    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Unreachable> {
        let mut memory = self.0.borrow_mut();
        let to = usize::try_from(address).ok().and_then(|at| memory.get_mut(at..));
        let to = to.and_then(|it| it.get_mut(..bytes.len())).ok_or(Unreachable)?;
        to.copy_from_slice(bytes);
        Ok(())
    }
}

/// Bytes for the client's memory: where, and which.
pub type Poke<'a> = (u64, &'a [u8]);

/// The bytes that a message of [`POKE`] has for the memory.
pub fn poke(body: &[u8]) -> Option<Poke<'_>> {
    let (address, bytes) = body.split_first_chunk()?;
    Some((u64::from_le_bytes(*address), bytes))
}

/// Reads a client's messages as a server does, and carries out what it finds in the memory.
///
/// # Errors
/// Why the first request that was refused was.
pub fn client(mut bytes: &[u8]) -> Result<(), Refused> {
    let mut subsystem = subsystem();
    let controller = subsystem.attach().expect("the first").controller;
    let mut function = Function::new(controller);
    let memory = Flat(RefCell::new(vec![0; MEMORY]));
    let mut refused = Ok(());
    while let Some((head, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() {
        let header = Header::read_from_bytes(head).map_err(|_| Refused::INVALID)?;
        let follows = header.follows().ok_or(Refused::INVALID)?;
        let Some((body, rest)) = rest.split_at_checked(follows) else { break };
        bytes = rest;
        if header.command() == POKE {
            if let Some((address, bytes)) = poke(body) {
                let _ = memory.write(address, bytes); // beyond its end
            }
            continue;
        }
        match Request::parse(&header, body) {
            Ok(request) => ask(&mut subsystem, &mut function, &memory, request),
            Err(why) => refused = refused.and(Err(why)),
        }
    }
    refused
}

fn ask(subsystem: &mut Subsystem, function: &mut Function, memory: &Flat, request: Request<'_>) {
    match request {
        Request::Version => assert!(version(4).len() <= 4),
        Request::DeviceInfo => assert_eq!(device_info().len(), 16),
        Request::RegionInfo(index) => assert_eq!(region_info(index).len(), 32),
        Request::IrqInfo(index) => assert_eq!(irq_info(index).len(), 16),
        Request::Read(region, at, count) => {
            assert_eq!(function.read(subsystem, region, at, count).len(), count);
        }
        Request::Write(region, at, data) => {
            if function.write(subsystem, region, at, data) {
                work(subsystem, function, memory);
            }
        }
        Request::Reset => function.reset(subsystem),
        Request::Map { .. } | Request::Unmap { .. } | Request::SetIrqs(_) => {}
    }
}

fn work(subsystem: &mut Subsystem, function: &mut Function, memory: &Flat) {
    function.post_waiting(subsystem, memory);
    for _ in 0..AT_ONCE {
        let Some(taken) = function.take(subsystem, memory) else { break };
        let status = end_of(subsystem, function, memory, &taken);
        function.end(subsystem, memory, &taken, (status, 0));
    }
    while let Some(event) = subsystem.event(function.controller()) {
        function.tell(subsystem, memory, event);
    }
}

fn end_of(
    subsystem: &mut Subsystem,
    function: &mut Function,
    memory: &Flat,
    taken: &Taken,
) -> Status {
    let sqe: Sqe = transfer(&taken.sqe);
    if taken.origin.queue > 0 {
        let Ok(namespace) = subsystem.namespace(sqe.nsid.get()) else {
            return Status::INVALID_NAMESPACE;
        };
        let asked = namespace.parse(&taken.sqe).map(|it| it.transfer());
        let moved = match asked {
            Err(status) => return status,
            Ok(Transfer::None) => Ok(Vec::new()),
            Ok(Transfer::ToHost(bytes)) => {
                function.give(memory, taken, &vec![1; bytes]).map(|()| Vec::new())
            }
            Ok(Transfer::FromHost(bytes) | Transfer::AtLeast(bytes)) => {
                function.data(memory, taken, bytes)
            }
        };
        return match moved {
            Ok(data) => {
                io(subsystem, &taken.sqe, &data);
                Status::SUCCESS
            }
            Err(status) => status,
        };
    }
    if QUEUE_OPCODES.contains(&sqe.opcode) {
        return function.manage(subsystem, &taken.sqe).err().unwrap_or(Status::SUCCESS);
    }
    let comes = match crate::admin::transfer(&sqe) {
        Transfer::FromHost(bytes) => bytes.min(TRANSFER_MOST),
        _ => 0,
    };
    match function.data(memory, taken, comes) {
        Ok(data) => {
            admin(subsystem, &sqe, &data);
            Status::SUCCESS
        }
        Err(status) => status,
    }
}

/// The messages of a machine that finds the function, enables it, makes queues, identifies, reads, writes, and resets.
pub fn seed() -> Vec<u8> {
    const SQ: u64 = 0x1000;
    const CQ: u64 = 0x2000;
    let mut bytes = Vec::new();
    let mut send = |command: u16, body: &[u8]| {
        bytes.extend(command_head(command, body.len()));
        bytes.extend(body);
    };
    let words =
        |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|it| it.to_le_bytes()).collect() };
    send(1, b"\0\0\0\0{\"capabilities\":{\"max_msg_fds\":16,\"max_dma_maps\":65535}}\0");
    send(2, &words(&[32, 3, 0, 0, 0, 0, MEMORY as u32, 0]));
    send(4, &words(&[16, 0, 0, 0]));
    send(5, &words(&[32, 0, 0, 0, 0, 0, 0, 0]));
    send(7, &words(&[16, 0, 2, 0]));
    send(9, &words(&[0, 0, 7, 256]));
    send(10, &words(&[4, 0, 7, 4, 6]));
    send(8, &words(&[20, 0x24, 2, 0, 1]));
    for (at, value) in
        [(0x24, 0x001f_001f), (0x28, SQ as u32), (0x30, CQ as u32), (0x14, 0x0046_0001)]
    {
        send(10, &words(&[at, 0, 0, 4, value]));
    }
    send(9, &words(&[0x1c, 0, 0, 4]));
    let entry = |opcode: u32, nsid: u32, first: u64, second: u64, cdws: [u32; 4]| {
        let mut entry = words(&[opcode, nsid, 0, 0, 0, 0]);
        entry.extend([first.to_le_bytes(), second.to_le_bytes()].concat());
        entry.extend(words(&cdws));
        entry.resize(64, 0);
        entry
    };
    let admin = [
        entry(6, 0, 0x8000, 0, [1, 0, 0, 0]),
        entry(6, 1, 0x8000, 0, [0, 0, 0, 0]),
        entry(2, u32::MAX, 0x8000, 0, [127 << 16 | 1, 0, 0, 0]),
        entry(9, 0, 0, 0, [7, 0, 0, 0]),
        entry(9, 0, 0x8000, 0, [0x16, 0, 0, 0]),
        entry(0x0c, 0, 0, 0, [0; 4]),
        entry(5, 0, 0x4000, 0, [1 | 15 << 16, 3, 0, 0]),
        entry(1, 0, 0x3000, 0, [1 | 15 << 16, 1 | 1 << 16, 0, 0]),
    ];
    for (place, entry) in admin.iter().enumerate() {
        send(POKE, &[(SQ + place as u64 * 64).to_le_bytes().to_vec(), entry.clone()].concat());
    }
    send(10, &words(&[0x1000, 0, 0, 4, admin.len() as u32]));
    send(10, &words(&[0x1004, 0, 0, 4, 5]));
    let list: Vec<u8> =
        (0..8_u64).flat_map(|page| (0x1_0000 + page * 0x1000).to_le_bytes()).collect();
    send(POKE, &[0x9000_u64.to_le_bytes().to_vec(), list].concat());
    let io = [
        entry(1, 1, 0x8000, 0, [0, 0, 7, 0]),
        entry(2, 1, 0x8200, 0x9000, [0, 0, 63, 0]),
        entry(9, 1, 0x8000, 0, [0, 4, 0, 0]),
        entry(5, 1, 0x8000, 0xa000, [0, 0, 12, 0]),
        entry(0, u32::MAX, 0, 0, [0; 4]),
    ];
    for (place, entry) in io.iter().enumerate() {
        send(POKE, &[(0x3000 + place as u64 * 64).to_le_bytes().to_vec(), entry.clone()].concat());
    }
    send(10, &words(&[0x1008, 0, 0, 4, io.len() as u32]));
    send(10, &words(&[0x100c, 0, 0, 4, 1]));
    send(9, &words(&[0x1c, 0, 0, 4]));
    send(10, &words(&[0x14, 0, 0, 4, 0x0046_4001]));
    send(8, &words(&[20, 0x21, 2, 0, 0]));
    send(3, &words(&[24, 0, 0, 0, MEMORY as u32, 0]));
    send(13, &[]);
    bytes
}

fn command_head(command: u16, body: usize) -> Vec<u8> {
    let size = (HEADER_BYTES + body) as u32;
    [u32::from(command) << 16, size, 0, 0].iter().flat_map(|it| it.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_is_carried_out_to_its_end() {
        let seed = seed();
        assert_eq!(client(&seed), Ok(()));
        let unknown = [&seed[..], &command_head(15, 0)].concat();
        assert_eq!(client(&unknown), Err(Refused::UNSUPPORTED));
    }
}
