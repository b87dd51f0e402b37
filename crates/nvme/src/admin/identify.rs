//! Identify: what the controller and its namespaces are (Base 2.0, 5.17; NVM and ZNS command sets, 4.1.5).

use leyden_device::{AtomicLimit, Atomicity};

use crate::controller::{ERRORS_MOST, Kind, QUEUE_MOST, VERSION};
use crate::events::{NOTICES, REQUESTS_MOST};
use crate::namespace::{COPY_RANGES_MOST, MDTS, Namespace, Zones};
use crate::pci::VENDOR;
use crate::status::Status;
use crate::subsystem::{DISCOVERY_NQN, Subsystem};
use crate::tcp::IN_CAPSULE_MOST;
use crate::wire::{Page, Sqe};

const BYTES: usize = 4_096;
const ALL: u32 = u32::MAX;
const ZNS: u8 = 2;
/// Compare, Dataset Management, Write Zeroes, Verify, Copy (ONCS).
const COMMANDS: u16 = 1 | 1 << 2 | 1 << 3 | 1 << 7 | 1 << 8;
/// Formats of a copy's source ranges: 0h (OCFS).
const COPY_FORMATS: u16 = 1;
/// Each 16 bytes; a submission queue entry takes four of these.
const CAPSULE_UNIT: usize = 16;

impl Subsystem {
    pub(super) fn identify(&self, controller: u16, sqe: &Sqe) -> Result<Vec<u8>, Status> {
        let (cns, nsid) = (sqe.cdw10.get() as u8, sqe.nsid.get());
        let set = (sqe.cdw11.get() >> 24) as u8;
        let from = (sqe.cdw10.get() >> 16) as u16;
        let kind = self.controller(controller)?.kind;
        let is_discovery = kind == Kind::Discovery;
        let page = match cns {
            0x01 => self.controller_page(controller, kind),
            _ if is_discovery => return Err(Status::INVALID_FIELD),
            0x00 | 0x11 => self.namespace(nsid)?.page(is_shared(kind)),
            0x02 | 0x10 => self.list(nsid, |_| true)?,
            0x03 => self.namespace(nsid)?.descriptors(),
            0x05 | 0x1b => self.namespace(nsid)?.page_of_set(set)?,
            0x06 => self.limits(set)?,
            0x07 | 0x1a => self.list(nsid, |namespace| namespace.command_set() == set)?,
            0x08 => {
                self.namespace(nsid)?;
                independent_page(is_shared(kind))
            }
            0x12 => {
                self.namespace(nsid)?;
                self.controllers_from(from)
            }
            0x13 => self.controllers_from(from),
            0x1c => {
                let mut page = Page::new(BYTES);
                page.u64(0, 1 | 1 << ZNS);
                page
            }
            _ => return Err(Status::INVALID_FIELD),
        };
        Ok(page.into_bytes())
    }

    fn controller_page(&self, controller: u16, kind: Kind) -> Page {
        let is_discovery = kind == Kind::Discovery;
        let mut page = Page::new(BYTES);
        let name = if is_discovery { DISCOVERY_NQN } else { self.name() };
        let capsule = |bytes: usize| (bytes / CAPSULE_UNIT) as u32;
        page.text(4, 20, &self.serial)
            .text(24, 40, "Leyden")
            .text(64, 8, env!("CARGO_PKG_VERSION"))
            .u8(77, MDTS)
            .u16(78, controller)
            .u32(80, VERSION)
            .u32(96, 1) // identifiers of hosts have 128 bits
            .u8(111, if is_discovery { 2 } else { 1 })
            .u8(258, 3)
            .u8(259, REQUESTS_MOST as u8 - 1)
            .u8(260, 0x03) // one firmware slot, read only
            .u8(261, if is_discovery { 1 << 2 } else { 0x07 })
            .u8(262, ERRORS_MOST as u8 - 1)
            .u8(512, 0x66)
            .u8(513, 0x44)
            .bytes(768, name.as_bytes());
        if kind == Kind::Pci {
            page.u16(0, VENDOR).u16(2, VENDOR);
        } else {
            page.u16(320, 1) // keep alive in units of 100 ms
                .u16(514, QUEUE_MOST)
                .u32(536, 1 | 1 << 20) // SGLs, and offsets in capsules
                .u32(1792, capsule(64 + IN_CAPSULE_MOST))
                .u32(1796, 1)
                .u8(1803, 1);
        }
        if is_discovery {
            return page;
        }
        let namespaces = self.namespaces.len() as u32;
        let has_cache = self.namespaces.iter().any(|it| it.has_cache);
        page.u8(76, is_shared(kind) << 1) // several controllers at once
            .u32(92, NOTICES)
            .u32(516, namespaces)
            .u16(520, COMMANDS)
            .u8(525, u8::from(has_cache) | 3 << 1) // flush of all namespaces
            .u16(526, self.atomic_everywhere(|it| it.normal))
            .u16(528, self.atomic_everywhere(|it| it.power_fail))
            .u16(534, COPY_FORMATS)
            .u32(540, namespaces);
        page.u16(2048, 2_500); // one power state: 25 W
        page
    }

    /// A size that is atomic in every namespace, wherever it lies (AWUN, AWUPF): a boundary leaves one block.
    fn atomic_everywhere(&self, limit: impl Fn(&Atomicity) -> AtomicLimit) -> u16 {
        let blocks = |it: &Namespace| {
            let limit = it.atomic.as_ref().map(&limit).filter(|limit| limit.boundary == 0);
            limit.map_or(1, |limit| limit.blocks)
        };
        zeros_based(self.namespaces.iter().map(blocks).min().unwrap_or(1))
    }

    /// Namespaces with a number above `after`.
    fn list(&self, after: u32, is_meant: impl Fn(&Namespace) -> bool) -> Result<Page, Status> {
        if after >= ALL - 1 {
            return Err(Status::INVALID_NAMESPACE);
        }
        let mut page = Page::new(BYTES);
        let numbered = self.namespaces.iter().zip(1_u32..);
        let meant = numbered.filter(|(it, number)| *number > after && is_meant(it));
        for (place, (_, number)) in meant.take(BYTES / 4).enumerate() {
            page.u32(place * 4, number);
        }
        Ok(page)
    }

    fn controllers_from(&self, first: u16) -> Page {
        let mut page = Page::new(BYTES);
        let all: Vec<u16> = self.controllers().filter(|&it| it >= first).take(2_047).collect();
        page.u16(0, all.len() as u16);
        for (place, number) in all.into_iter().enumerate() {
            page.u16(2 + place * 2, number);
        }
        page
    }

    /// Limits of a command set's commands.
    fn limits(&self, set: u8) -> Result<Page, Status> {
        let mut page = Page::new(BYTES);
        match set {
            0 => page.u8(0, MDTS), // of Verify: what it reads passes through memory
            ZNS => {
                let zones = self.namespaces.iter().filter_map(|it| it.zones);
                let append = zones.map(|it| it.append_bytes).min().unwrap_or(u64::MAX);
                page.u8(0, append_limit(append))
            }
            _ => return Err(Status::INVALID_FIELD),
        };
        Ok(page)
    }
}

/// The most of an append as ZASL: pages as a power of two; 0 means MDTS.
fn append_limit(bytes: u64) -> u8 {
    let pages = (bytes / 4_096).max(1).ilog2() as u8;
    if pages >= MDTS { 0 } else { pages }
}

/// A number of blocks as a field that is 0's based; 0 of none at all, too.
fn zeros_based(blocks: u64) -> u16 {
    blocks.saturating_sub(1).min(u64::from(u16::MAX)) as u16
}

/// Whether hosts may reach a namespace through several controllers (CMIC, NMIC). Linux holds the commands of one that it may
/// reach otherwise until the function is removed, also once that is dead: those of a PCI drive are to fail then.
fn is_shared(kind: Kind) -> u8 {
    u8::from(kind != Kind::Pci)
}

/// The page for namespaces of all command sets: they are ready.
fn independent_page(shared: u8) -> Page {
    let mut page = Page::new(BYTES);
    page.u8(1, shared).u8(14, 1);
    page
}

impl Namespace {
    /// Blocks of a mapping unit, where writes in whole ones are faster.
    fn preferred_blocks(&self) -> u16 {
        (self.unit_bytes / self.block_bytes).clamp(1, 1 << 15) as u16
    }

    fn page(&self, shared: u8) -> Page {
        let mut page = Page::new(BYTES);
        let (capacity, preferred) = (self.capacity(), self.preferred_blocks());
        page.u64(0, self.blocks).u64(8, capacity).u64(16, capacity);
        let features = u8::from(self.atomic.is_some()) << 1 | u8::from(preferred > 1) << 4;
        page.u8(24, features);
        if let Some(Atomicity { normal, power_fail, offset, .. }) = self.atomic {
            page.u16(34, zeros_based(normal.blocks))
                .u16(36, zeros_based(power_fail.blocks))
                .u16(40, zeros_based(normal.boundary))
                .u16(42, offset.min(u64::from(u16::MAX)) as u16)
                .u16(44, zeros_based(power_fail.boundary));
        }
        if preferred > 1 {
            for at in [64, 66, 68, 70] {
                page.u16(at, preferred - 1);
            }
        }
        // Deallocated blocks read as zeroes; on a conventional drive zeroes are deallocated blocks.
        let deallocates = self.zones.is_none();
        page.u16(74, self.copy_blocks()) // a source range of a copy
            .u32(76, self.copy_blocks().into()) // all of it
            .u8(80, COPY_RANGES_MOST as u8 - 1);
        page.u8(30, shared)
            .u8(33, 1 | if deallocates { 1 << 3 } else { 0 })
            .bytes(104, &self.guid)
            .u8(128 + 2, self.block_bytes.ilog2() as u8);
        page
    }

    /// Names, and the command set.
    fn descriptors(&self) -> Page {
        let mut page = Page::new(BYTES);
        page.u8(0, 2).u8(1, 16).bytes(4, &self.guid); // NGUID
        page.u8(20, 4).u8(21, 1).u8(24, self.command_set());
        page
    }

    /// The page of one command set.
    fn page_of_set(&self, set: u8) -> Result<Page, Status> {
        let mut page = Page::new(BYTES);
        match (set, self.zones) {
            (0, _) => {}
            (ZNS, Some(zones)) => zones.fill(&mut page),
            _ => return Err(Status::INVALID_FIELD),
        }
        Ok(page)
    }
}

impl Zones {
    fn fill(&self, page: &mut Page) {
        let limit = |most: u32| if most >= self.count { u32::MAX } else { most - 1 };
        let areas = self.areas > 0 && self.area_size > 0;
        page.u16(2, u16::from(self.reads_across) | if areas { 1 << 1 } else { 0 })
            .u32(4, limit(self.active_most))
            .u32(8, limit(self.open_most.min(self.active_most)));
        if areas {
            page.u32(44, self.areas)
                .u16(48, self.area_granularity as u16)
                .u16(50, self.area_size as u16)
                .u8(52, 1); // explicit flushes
        }
        page.u64(2816, self.size);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ask, sqe};
    use super::*;
    use crate::subsystem::tests::{NAME, ready, subsystem};

    fn page(cns: u32, nsid: u32, set: u32) -> Result<Vec<u8>, Status> {
        let mut subsystem = subsystem();
        let number = ready(&mut subsystem);
        let identify = sqe(0x06, nsid, cns, set << 24, 4_096);
        ask(&mut subsystem, number, &identify).map(|it| it.1)
    }
    fn u16_at(page: &[u8], at: usize) -> u16 {
        u16::from_le_bytes(page[at..at + 2].try_into().unwrap())
    }
    fn u32_at(page: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(page[at..at + 4].try_into().unwrap())
    }
    fn u64_at(page: &[u8], at: usize) -> u64 {
        u64::from_le_bytes(page[at..at + 8].try_into().unwrap())
    }

    /// Without each of these Linux refuses a controller, or does something else (drivers/nvme/host, 6.1 to 7.3).
    #[test]
    fn the_controller_is_one_that_linux_takes() {
        let page = page(1, 0, 0).unwrap();
        assert_eq!(u16_at(&page, 78), 1, "CNTLID is that of Connect");
        assert!(u16_at(&page, 320) > 0, "KAS");
        assert_eq!(u32_at(&page, 536) & 3, 1, "SGLS");
        assert!(u32_at(&page, 1792) >= 4 && u32_at(&page, 1796) >= 1, "IOCCSZ, IORCSZ");
        assert_eq!((u16_at(&page, 1800), page[1803]), (0, 1), "ICDOFF, MSDBD");
        assert_eq!((page[512], page[513]), (0x66, 0x44), "SQES, CQES");
        assert_eq!(u16_at(&page, 514), QUEUE_MOST, "MAXCMD");
        assert!(page[77] >= 5, "MDTS: nvme-cli reports 1,024 zones with 65,600 bytes");
        assert_eq!(&page[768..768 + NAME.len()], NAME.as_bytes());
        assert_eq!((page[111], page[76] & 2, page[525] & 1), (1, 2, 1));
        assert_eq!(page[4..24], *b"SERIAL              ");
    }

    #[test]
    fn namespaces_tell_what_they_hold() {
        let conventional = page(0, 1, 0).unwrap();
        assert_eq!((u64_at(&conventional, 0), u64_at(&conventional, 8)), (1_000, 1_000));
        assert_eq!((conventional[130], conventional[24], conventional[33]), (12, 0, 9));
        let zoned = page(0, 2, 0).unwrap();
        assert_eq!((u64_at(&zoned, 0), u64_at(&zoned, 8)), (16 * 1_024, 16_000));
        assert!(u64_at(&zoned, 16) <= u64_at(&zoned, 8), "NUSE <= NCAP");
        let descriptors = page(3, 2, 0).unwrap();
        assert_eq!(descriptors[..20], [&[2, 16, 0, 0][..], &[2; 16]].concat());
        assert_eq!(descriptors[20..29], [4, 1, 0, 0, 2, 0, 0, 0, 0], "CSI 2, and the end");
        assert_eq!(page(8, 1, 0).unwrap()[14], 1);
        for cns in [0, 3, 5, 8, 0x12] {
            for nsid in [0, 3, u32::MAX] {
                assert_eq!(page(cns, nsid, 0), Err(Status::INVALID_NAMESPACE), "{cns} {nsid}");
            }
        }
    }

    /// Of the fields Linux reads NSFEAT, NAWUPF, NABSPF and NABO (drivers/nvme/host/core.c, 7.3).
    #[test]
    fn atomic_writes_are_told_0s_based_and_a_boundary_keeps_them_from_the_controller() {
        let limit = |blocks, boundary| AtomicLimit { blocks, boundary };
        let with = |normal, power_fail, offset| {
            let atomic = Some(Atomicity { block_sectors: 8, normal, power_fail, offset });
            Namespace { atomic, ..crate::sample::plain(4_096, 1_000) }
        };
        let fields = |it: &Namespace| {
            let page = it.page(1).into_bytes();
            (page[24], [34, 36, 38, 40, 42, 44].map(|at| u16_at(&page, at)))
        };
        let plain = with(limit(8, 0), limit(4, 0), 0);
        assert_eq!(fields(&plain), (2, [7, 3, 0, 0, 0, 0]));
        let bounded = with(limit(8, 32), limit(4, 16), 3);
        assert_eq!(fields(&bounded), (2, [7, 3, 0, 31, 3, 15]));
        assert_eq!(fields(&crate::sample::plain(4_096, 1_000)), (0, [0; 6]));
        let controller = |namespaces: Vec<Namespace>| {
            let mut subsystem = subsystem();
            subsystem.namespaces = namespaces;
            let of = |limit: fn(&Atomicity) -> AtomicLimit| subsystem.atomic_everywhere(limit);
            (of(|it| it.normal), of(|it| it.power_fail))
        };
        assert_eq!(controller(vec![plain.clone()]), (7, 3));
        assert_eq!(controller(vec![plain.clone(), bounded]), (0, 0));
        assert_eq!(controller(vec![plain, crate::sample::zoned()]), (0, 0));
    }

    #[test]
    fn zones_are_told_0s_based_and_in_blocks() {
        let page = page(5, 2, 2).unwrap();
        assert_eq!((u16_at(&page, 0), u16_at(&page, 2)), (0, 2), "ZOC, OZCS with ZRWA");
        assert_eq!((u32_at(&page, 4), u32_at(&page, 8)), (5, 3), "MAR, MOR");
        assert_eq!((u32_at(&page, 44), u16_at(&page, 48), u16_at(&page, 50)), (3, 1, 16));
        assert_eq!((u64_at(&page, 2816), page[2824]), (1_024, 0), "ZSZE, ZDES");
        assert_eq!(append_limit(1 << 20), 0);
        assert_eq!(append_limit(64 << 10), 4);
        assert_eq!(append_limit(u64::MAX), 0);
    }

    #[test]
    fn lists_go_on_from_a_number_and_sets_are_kept_apart() {
        let list = |cns, after, set| {
            let page = page(cns, after, set).unwrap();
            (u32_at(&page, 0), u32_at(&page, 4), u32_at(&page, 8))
        };
        assert_eq!(list(2, 0, 0), (1, 2, 0));
        assert_eq!(list(2, 1, 0), (2, 0, 0));
        assert_eq!(list(7, 0, 0), (1, 0, 0));
        assert_eq!(list(7, 0, 2), (2, 0, 0));
        assert_eq!(page(2, u32::MAX, 0), Err(Status::INVALID_NAMESPACE));
        assert_eq!(page(5, 1, 2), Err(Status::INVALID_FIELD), "no zones there");
        for (cns, set) in [(6, 1), (4, 0), (0x20, 0), (0xff, 0)] {
            assert_eq!(page(cns, 1, set), Err(Status::INVALID_FIELD));
        }
        assert_eq!(u64_at(&page(0x1c, 0, 0).unwrap(), 0), 5);
        assert_eq!(u32_at(&page(0x13, 0, 0).unwrap(), 0), 1 | 1 << 16);
    }
}
