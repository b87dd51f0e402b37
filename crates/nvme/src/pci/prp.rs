//! The host's data of a command: how much it is, and the pages that it lies in (PRPs; Base 2.0, 4.1.1).

use super::{Memory, PAGE_BYTES};
use crate::namespace::TRANSFER_MOST;
use crate::status::Status;
use crate::wire::{SGL_TRANSPORT, Sgl, Sqe};

/// The two fields of a command that say where its data is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prps {
    first: u64,
    second: u64,
}

impl Prps {
    /// Those of `sqe`.
    pub const fn of(sqe: &Sqe) -> Self {
        // They lie where other transports have an SGL descriptor: its address, and the eight bytes behind.
        let [a, b, c] = sqe.sgl.reserved;
        let high = u32::from_le_bytes([a, b, c, sqe.sgl.id]);
        let second = sqe.sgl.length.get() as u64 | (high as u64) << 32;
        Self { first: sqe.sgl.address.get(), second }
    }

    pub(super) const fn first(self) -> u64 {
        self.first
    }
}

/// The address, if it is aligned.
const fn check(address: u64, multiple: u64) -> Result<u64, Status> {
    if address.is_multiple_of(multiple) { Ok(address) } else { Err(Status::PRP_OFFSET) }
}

/// The runs of memory that so many bytes of data lie in, at most [`TRANSFER_MOST`].
///
/// # Errors
/// If an entry is not aligned, or a list is not there.
pub fn pages(memory: &impl Memory, prps: Prps, bytes: usize) -> Result<Vec<(u64, usize)>, Status> {
    assert!(bytes <= TRANSFER_MOST, "more than a transfer");
    let mut runs = Vec::new();
    if bytes == 0 {
        return Ok(runs);
    }
    let first = check(prps.first, 4)?;
    let in_first = bytes.min((PAGE_BYTES - first % PAGE_BYTES) as usize);
    runs.push((first, in_first));
    let mut left = bytes - in_first;
    let page = PAGE_BYTES as usize;
    if left > 0 && left <= page {
        runs.push((check(prps.second, PAGE_BYTES)?, left));
        return Ok(runs);
    }
    let mut list = if left > 0 { check(prps.second, 8)? } else { 0 };
    while left > 0 {
        let room = (PAGE_BYTES - list % PAGE_BYTES) / 8;
        let needed = left.div_ceil(page) as u64;
        let mut entries = vec![0; room.min(needed) as usize * 8];
        memory.read(list, &mut entries).map_err(|_| Status::DATA_TRANSFER)?;
        let mut each = entries.chunks_exact(8).map(|entry| {
            let address = u64::from_le_bytes(entry.try_into().expect("eight bytes"));
            check(address, PAGE_BYTES)
        });
        for _ in 0..if needed > room { room - 1 } else { needed } {
            let address = each.next().expect("as many as there is room for")?;
            let run = left.min(page);
            runs.push((address, run));
            left -= run;
        }
        if left > 0 {
            list = each.next().expect("the last entry names the next list")?;
        }
    }
    Ok(runs)
}

/// The data of an admin command, by its opcode and its fields, and the command as other transports have it: with an SGL
/// that says how much that is.
pub fn transfer(sqe: &Sqe) -> Sqe {
    let feature = sqe.cdw10.get() as u8;
    let bytes = match (sqe.opcode, feature) {
        (0x02, _) => {
            let dwords =
                u64::from(sqe.cdw10.get() >> 16) | u64::from(sqe.cdw11.get() & 0xffff) << 16;
            ((dwords + 1) * 4).min(u64::from(u32::MAX)) as u32
        }
        (0x06, _) => PAGE_BYTES as u32,
        (0x09 | 0x0a, 0x16) => 512,
        (0x0a, 0x81) => 16,
        _ => 0,
    };
    let sgl = Sgl { length: bytes.into(), id: SGL_TRANSPORT, ..Sgl::default() };
    Sqe { sgl, ..*sqe }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Flat;
    use super::*;

    fn prps(first: u64, second: u64) -> Prps {
        Prps { first, second }
    }

    #[test]
    fn the_fields_lie_where_an_sgl_has_its_own() {
        let mut bytes = [0; 64];
        bytes[24..32].copy_from_slice(&0x0123_4567_89ab_cdef_u64.to_le_bytes());
        bytes[32..40].copy_from_slice(&0xfedc_ba98_7654_3210_u64.to_le_bytes());
        let sqe: Sqe = zerocopy::transmute!(bytes);
        assert_eq!(Prps::of(&sqe), prps(0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210));
    }

    #[test]
    fn one_page_two_pages_and_lists_of_any_length() {
        let memory = Flat::new(1 << 16);
        let runs = |first, second, bytes| pages(&memory, prps(first, second), bytes);
        assert_eq!(
            runs(0x1008, 7, 4_088),
            Ok(vec![(0x1008, 4_088)]),
            "the second is not looked at"
        );
        assert_eq!(runs(0x1008, 0x3000, 4_096), Ok(vec![(0x1008, 4_088), (0x3000, 8)]));
        assert_eq!(runs(7, 9, 0), Ok(Vec::new()));
        // A list with room for two entries, the second of which names the next list.
        let list = |at: usize, entries: &[u64]| {
            let bytes: Vec<u8> = entries.iter().flat_map(|it| it.to_le_bytes()).collect();
            memory.put(at, &bytes);
        };
        list(0x2ff0, &[0x5000, 0x4000]);
        list(0x4000, &[0x6000, 0x7000]);
        let expected = vec![(0x1000, 4_096), (0x5000, 4_096), (0x6000, 4_096), (0x7000, 512)];
        assert_eq!(runs(0x1000, 0x2ff0, 3 * 4_096 + 512), Ok(expected));
        assert_eq!(runs(0x1000, 0x2ff0, 2 * 4_096), Err(Status::PRP_OFFSET), "no list: a page");
        let two = vec![(0x1000, 4_096), (0x5000, 4_096), (0x4000, 512)];
        assert_eq!(runs(0x1000, 0x2ff0, 2 * 4_096 + 512), Ok(two), "the last entry is a page's");
        // The longest: 256 pages, in a list that fills its page with pages only.
        let all: Vec<u64> = (0..512).map(|at| at * 4_096).collect();
        list(0x8000, &all);
        let most = runs(0x1000, 0x8000, TRANSFER_MOST).unwrap();
        assert_eq!((most.len(), most[255]), (256, (254 * 4_096, 4_096)));
    }

    #[test]
    fn entries_that_are_not_aligned_and_lists_that_are_not_there_are_refused() {
        let memory = Flat::new(1 << 14);
        let status = |first, second, bytes| pages(&memory, prps(first, second), bytes).unwrap_err();
        assert_eq!(status(0x1002, 0, 512), Status::PRP_OFFSET);
        assert_eq!(status(0x1000, 0x2008, 8_192), Status::PRP_OFFSET);
        assert_eq!(status(0x1000, 0x2004, 12_288), Status::PRP_OFFSET);
        memory.put(0x2000, &0x3004_u64.to_le_bytes());
        assert_eq!(status(0x1000, 0x2000, 12_288), Status::PRP_OFFSET);
        assert_eq!(status(0x1000, 0x4000, 12_288), Status::DATA_TRANSFER, "beyond the memory");
        assert_eq!(status(0x1000, u64::MAX - 7, 12_288), Status::DATA_TRANSFER);
    }

    #[test]
    fn lists_that_name_themselves_come_to_an_end() {
        let memory = Flat::new(1 << 14);
        // One entry of room, which names the same page from its beginning, which is full of itself.
        let own: Vec<u8> = (0..512).flat_map(|_| 0x2000_u64.to_le_bytes()).collect();
        memory.put(0x2000, &own);
        let runs = pages(&memory, prps(0, 0x2ff8), TRANSFER_MOST).unwrap();
        assert_eq!(runs.len(), 256);
    }

    #[test]
    fn the_data_of_admin_commands_follows_from_their_fields() {
        let bytes = |opcode, cdw10: u32, cdw11: u32| {
            let sqe = Sqe { opcode, cdw10: cdw10.into(), cdw11: cdw11.into(), ..Sqe::default() };
            transfer(&sqe).sgl.length.get()
        };
        assert_eq!(bytes(0x06, 1, 0), 4_096);
        assert_eq!(bytes(0x02, 127 << 16 | 2, 0), 512);
        assert_eq!(bytes(0x02, u32::MAX, u32::MAX), u32::MAX);
        assert_eq!((bytes(0x09, 0x16, 0), bytes(0x0a, 0x81, 1), bytes(0x09, 7, 0)), (512, 16, 0));
        assert_eq!((bytes(0x0c, 0, 0), bytes(0xff, 0, 0)), (0, 0));
    }
}
