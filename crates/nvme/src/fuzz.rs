//! The functions of the fuzz targets and of the short fuzz test: any bytes as a host's part of one
//! connection, over TCP or vfio-user.
//!
//! **Invariants**: whatever it is, it is answered or ends the connection, and no answer is longer than a transfer.

mod pci;

pub use pci::{POKE, Poke, client as vfio_user, poke, seed as vfio_user_seed};

use leyden_device::MOST_RANGES;

use crate::admin::{Answer, Around, Health, transfer};
use crate::fabrics::FabricsCommand;
use crate::io::Transfer;
use crate::namespace::TRANSFER_MOST;
use crate::sample::{plain, zoned};
use crate::subsystem::Subsystem;
use crate::tcp::{
    ADMIN_CAPSULE_MOST, COMMON_BYTES, Fatal, INITIALISE_BYTES, Pdu, Terms, header_bytes,
};
use crate::wire::{Sqe, name_of};

const NAME: &str = "nqn.2026-01.local.leyden:fuzz";
const HOST: &str = "nqn.2026-01.local.leyden:host";

fn subsystem() -> Subsystem {
    let namespaces = vec![plain(512, 8_192), zoned()];
    let serial = "FUZZ".to_owned();
    Subsystem::new(NAME.to_owned(), serial, namespaces, Vec::new()).expect("a name")
}

/// Reads a host's bytes as a server does: what begins the connection, then PDUs with their data; answers each.
///
/// # Errors
/// Where the host does not speak the protocol.
pub fn host(mut bytes: &[u8]) -> Result<(), Fatal> {
    let Some((begin, rest)) = bytes.split_first_chunk::<INITIALISE_BYTES>() else { return Ok(()) };
    let terms = Terms::of_host(begin)?;
    bytes = rest;
    let mut subsystem = subsystem();
    let mut queue = None;
    while let Some(first) = bytes.first_chunk::<COMMON_BYTES>() {
        let length = header_bytes(first, terms)?;
        let Some((head, rest)) = bytes.split_at_checked(length) else { break };
        let pdu = Pdu::parse(head, terms, ADMIN_CAPSULE_MOST)?;
        let Some((data, rest)) = rest.split_at_checked(pdu.follows()) else { break };
        bytes = rest;
        let mut data = data.to_vec();
        terms.strip(&mut data, 0);
        let Pdu::Command { sqe, .. } = pdu else { continue };
        if sqe.opcode == 0x7f {
            match (FabricsCommand::parse(&sqe.fabrics()), queue) {
                (Ok(FabricsCommand::Connect), None) => {
                    queue = subsystem.connect(&sqe.fabrics(), &data, 0).ok();
                }
                (Ok(FabricsCommand::Get(property)), Some(_)) => {
                    let _ = subsystem.property(1, property);
                }
                (Ok(FabricsCommand::Set(property, value)), Some(_)) => {
                    let _ = subsystem.set_property(1, property, value);
                }
                _ => {}
            }
            continue;
        }
        if queue.is_some() {
            admin(&mut subsystem, &sqe, &data);
            io(&subsystem, &sqe, &data);
        }
    }
    Ok(())
}

fn admin(subsystem: &mut Subsystem, sqe: &Sqe, data: &[u8]) {
    let health = vec![Some(Health::default()), None];
    let around = Around { now_ms: 1, health, address: None };
    let mut sqe = *sqe;
    // More than a transfer is refused before it comes here.
    sqe.sgl.length = sqe.sgl.length.get().min(TRANSFER_MOST as u32).into();
    let room = match transfer(&sqe) {
        Transfer::ToHost(bytes) => bytes,
        _ => 512,
    };
    if let Answer::Done { data, .. } = subsystem.admin(1, &sqe, data, &around) {
        assert!(data.len() <= room, "more than the host has room for");
    }
    while subsystem.event(1).is_some() {}
}

fn io(subsystem: &Subsystem, sqe: &Sqe, data: &[u8]) {
    let Ok(namespace) = subsystem.namespace(sqe.nsid.get()) else { return };
    let Ok(io) = namespace.parse(sqe) else { return };
    if let Transfer::ToHost(bytes) | Transfer::FromHost(bytes) = io.transfer() {
        assert!(bytes <= TRANSFER_MOST, "longer than a transfer");
    }
    if let crate::io::Io::Dsm { count, .. } = io
        && let Ok(ranges) = namespace.ranges(data, count)
    {
        let end = namespace.blocks * namespace.block_sectors();
        assert!(ranges.iter().all(|(lba, sectors)| lba.0 + u64::from(*sectors) <= end));
        let hints = namespace.announced(data, count).expect("ranges that are right");
        assert!(hints.len() <= MOST_RANGES);
        assert!(hints.iter().all(|it| it.lba().0 + u64::from(it.sectors()) <= end));
    }
}

/// The bytes of a host that connects, enables, identifies, writes and resets a zone.
pub fn seed() -> Vec<u8> {
    let mut bytes = vec![0; INITIALISE_BYTES];
    (bytes[2], bytes[4]) = (128, 128);
    let mut command = |words: &[(usize, u32)], data: &[u8]| {
        let mut pdu = vec![4, 0, 72, if data.is_empty() { 0 } else { 72 }];
        pdu.extend((72 + data.len() as u32).to_le_bytes());
        pdu.resize(72, 0);
        for &(at, word) in words {
            pdu[8 + at..12 + at].copy_from_slice(&word.to_le_bytes());
        }
        pdu[8 + 39] = if data.is_empty() { 0x5a } else { 0x01 };
        bytes.extend(pdu);
        bytes.extend(data);
    };
    let mut connect = vec![0; 1_024];
    connect[..16].fill(7);
    connect[16..18].fill(0xff);
    connect[256..256 + NAME.len()].copy_from_slice(NAME.as_bytes());
    connect[512..512 + HOST.len()].copy_from_slice(HOST.as_bytes());
    let name: &[u8; 256] = connect[256..512].try_into().expect("256 bytes");
    assert_eq!(name_of(name), Some(NAME));
    command(&[(0, 0x407f), (4, 1), (32, 1_024), (44, 31), (48, 5_000)], &connect);
    command(&[(0, 0x407f), (4, 4), (40, 1)], &[]); // Get CAP
    command(&[(0, 0x407f), (4, 0), (44, 0x14), (48, 0x0046_0061)], &[]); // Set CC
    for cns in [0, 1, 2, 3, 5, 6, 8] {
        command(&[(0, 0x4006), (4, 2), (32, 4_096), (40, cns), (44, 2 << 24)], &[]);
    }
    for page in [0, 1, 2, 3, 4, 5, 0xbf] {
        command(&[(0, 0x4002), (4, 2), (32, 512), (40, page | 127 << 16)], &[]);
    }
    command(&[(0, 0x400c)], &[]);
    command(&[(0, 0x4009), (40, 0x0b), (44, 1 << 8 | 1 << 27)], &[]);
    command(&[(0, 0x4001), (4, 1), (32, 512)], &[9; 512]);
    command(&[(0, 0x4009), (4, 1), (32, 16), (44, 4)], &[0; 16]);
    command(&[(0, 0x4079), (4, 2), (52, 0x104)], &[]);
    command(&[(0, 0x407a), (4, 2), (32, 4_096), (48, 1_023), (52, 1 << 16)], &[]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_is_read_to_its_end() {
        let seed = seed();
        assert_eq!(host(&seed), Ok(()));
        let mut wrong = seed;
        let end = wrong.len();
        wrong.extend([0xff; 8]);
        assert_eq!(host(&wrong), Err(Fatal::field(0)), "at {end}");
    }
}
