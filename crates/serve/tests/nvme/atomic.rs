//! Atomic writes: the fields that Linux reads, and what a power cut leaves of a write.

use leyden_device::AtomicConfig;
use leyden_serve::Lies;
use leyden_sim::Bytes;

use crate::{BLOCK, Options, PLAIN, Served, ZONED, filled};

/// Blocks of an atomic write.
const PAGE: u64 = 4;

fn served(lies: Lies) -> Served {
    let (nawupf, nawun) = (Bytes::new(PAGE * BLOCK as u64), Some(Bytes::new(32 << 10)));
    let atomic = Some(AtomicConfig { nawupf, nawun, ..AtomicConfig::default() });
    let cut = leyden_serve::CutMode::Error;
    Served::with(Options { cut, atomic, lies, ..Options::default() })
}

#[test]
fn identify_has_what_linux_reads() {
    let served = served(Lies::default());
    let mut host = served.host(1, 0);
    let mut identify = |cns: u32, nsid: u32| host.admin.identify(cns, nsid, 0).good().data;
    let field = |page: &[u8], at: usize| u16::from_le_bytes([page[at], page[at + 1]]);
    let plain = identify(0, PLAIN);
    assert_eq!(plain[24] & 2, 2, "NSFEAT: the fields below hold for this namespace");
    let fields = [34, 36, 38, 40, 42, 44].map(|at| field(&plain, at));
    assert_eq!(fields, [7, 3, 0, 0, 0, 0], "NAWUN, NAWUPF, NACWU, NABSN, NABO, NABSPF");
    assert_eq!(identify(0, ZONED)[24] & 2, 0, "zones promise nothing");
    let controller = identify(1, 0);
    assert_eq!((field(&controller, 526), field(&controller, 528)), (0, 0), "AWUN, AWUPF");
}

/// Pages that are written over and over, cut at once: how many are left in part.
fn torn(lies: Lies, cuts: u64) -> usize {
    let served = served(lies);
    let mut torn = 0;
    for round in 0..cuts {
        let mut host = served.host(1, 0);
        let io = &mut host.io[0];
        // More than the buffer holds, and another number each round: the last flash page ends elsewhere.
        for at in 0..20 + round {
            let data = filled(BLOCK, 1 + round * 64 + at).repeat(PAGE as usize);
            io.write(PLAIN, (at * 5 + round) % 24 * PAGE, &data, BLOCK).good();
            // A single block before the page, so that pages of flash begin elsewhere.
            if at % 4 == round % 4 {
                io.write(PLAIN, 200 + at, &data[..BLOCK], BLOCK).good();
            }
        }
        served.cut(PLAIN);
        served.restore(PLAIN);
        drop(host);
        let mut host = served.host(1, 0);
        for page in 0..24 {
            let read = host.io[0].read(PLAIN, page * PAGE, PAGE as u32, BLOCK).good().data;
            torn += usize::from(read.chunks(BLOCK).any(|block| *block != read[..BLOCK]));
        }
    }
    torn
}

#[test]
fn a_cut_leaves_pages_whole_unless_the_drive_lies() {
    assert_eq!(torn(Lies::default(), 20), 0);
    let lies = Lies { atomic: true, ..Lies::default() };
    assert!(torn(lies, 20) > 0, "a drive that tears at 4 KiB");
}
