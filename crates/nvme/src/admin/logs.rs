//! Log pages (Base 2.0, 5.16; ZNS 4.1.4).

use super::{Around, Done, OPCODES};
use crate::controller::Kind;
use crate::events::{CHANGED_NAMESPACES, CHANGED_ZONES, ERRORS};
use crate::io::{NVM_OPCODES, ZNS_OPCODES};
use crate::pci::QUEUE_OPCODES;
use crate::status::Status;
use crate::subsystem::{DISCOVERY_NQN, Subsystem};
use crate::tcp::ADMIN_CAPSULE_MOST;
use crate::wire::{Page, Sqe};

const SUPPORTED: u8 = 0x00;
pub(super) const HEALTH: u8 = 0x02;
const FIRMWARE: u8 = 0x03;
const EFFECTS: u8 = 0x05;
const DISCOVERY: u8 = 0x70;
const KNOWN: [u8; 7] =
    [SUPPORTED, ERRORS, HEALTH, FIRMWARE, CHANGED_NAMESPACES, EFFECTS, CHANGED_ZONES];

const ALL: u32 = u32::MAX;
const RETAIN: u32 = 1 << 15;
/// Zones that page BFh has room for.
const ZONES_MOST: usize = 511;
/// Namespaces that page 04h has room for.
const NAMESPACES_MOST: usize = 1_024;
/// 25 degrees Celsius: what is not modelled does not change.
const TEMPERATURE_K: u16 = 298;
/// Less spare than this is a warning.
const SPARE_LEAST: u8 = 10;
/// Bytes of a unit of data that the page counts in.
const DATA_UNIT: u64 = 512_000;
/// A command is supported; it changes blocks.
const IS_SUPPORTED: u32 = 1;
const CHANGES_BLOCKS: u32 = 2;
const CHANGING: [u8; 6] = [0x01, 0x08, 0x09, 0x19, 0x79, 0x7d];

/// How a drive is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Health {
    /// Spare blocks that are left, in percent.
    pub spare_percent: u8,
    /// Of the erases that its flash endures, those that are behind it, in percent; 255 at most.
    pub used_percent: u8,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Read commands.
    pub reads: u64,
    /// Write commands.
    pub writes: u64,
    /// Milliseconds in which its flash was at work.
    pub busy_ms: u64,
    /// Milliseconds since it was made.
    pub on_ms: u64,
    /// Power cuts.
    pub cuts: u64,
    /// Programs and erases that have failed, and reads.
    pub media_errors: u64,
}

impl Health {
    /// Of two drives together: the worse of what wears out, and the sum of what is counted.
    fn with(self, other: Self) -> Self {
        Self {
            spare_percent: self.spare_percent.min(other.spare_percent),
            used_percent: self.used_percent.max(other.used_percent),
            read_bytes: self.read_bytes.saturating_add(other.read_bytes),
            written_bytes: self.written_bytes.saturating_add(other.written_bytes),
            reads: self.reads.saturating_add(other.reads),
            writes: self.writes.saturating_add(other.writes),
            busy_ms: self.busy_ms.saturating_add(other.busy_ms),
            on_ms: self.on_ms.max(other.on_ms),
            cuts: self.cuts.saturating_add(other.cuts),
            media_errors: self.media_errors.saturating_add(other.media_errors),
        }
    }

    fn page(&self, errors: u64) -> Page {
        let mut page = Page::new(512);
        let count = |number: u64| u128::from(number);
        page.u8(0, u8::from(self.spare_percent < SPARE_LEAST))
            .u16(1, TEMPERATURE_K)
            .u8(3, self.spare_percent)
            .u8(4, SPARE_LEAST)
            .u8(5, self.used_percent)
            .u128(32, count(self.read_bytes.div_ceil(DATA_UNIT)))
            .u128(48, count(self.written_bytes.div_ceil(DATA_UNIT)))
            .u128(64, count(self.reads))
            .u128(80, count(self.writes))
            .u128(96, count(self.busy_ms / 60_000))
            .u128(112, count(self.cuts + 1))
            .u128(128, count(self.on_ms / 3_600_000))
            .u128(144, count(self.cuts))
            .u128(160, count(self.media_errors))
            .u128(176, count(errors));
        page
    }
}

impl Subsystem {
    pub(super) fn log_page(&mut self, controller: u16, sqe: &Sqe, around: &Around) -> Done {
        let (cdw10, cdw11) = (sqe.cdw10.get(), sqe.cdw11.get());
        let dwords = u64::from(cdw10 >> 16) | u64::from(cdw11 & 0xffff) << 16;
        let bytes = (dwords + 1) * 4;
        let offset = u64::from(sqe.cdw12.get()) | u64::from(sqe.cdw13.get()) << 32;
        if bytes > u64::from(sqe.sgl.length.get()) {
            return Err(Status::SGL_LENGTH);
        }
        if !offset.is_multiple_of(4) {
            return Err(Status::INVALID_FIELD);
        }
        let (page, keep) = (cdw10 as u8, cdw10 & RETAIN != 0);
        let set = (sqe.cdw14.get() >> 24) as u8;
        let nsid = sqe.nsid.get();
        let kind = self.controller(controller)?.kind;
        let is_discovery = kind == Kind::Discovery;
        let page = match page {
            DISCOVERY if is_discovery => self.discovery_page(around),
            _ if is_discovery => return Err(Status::INVALID_LOG_PAGE),
            SUPPORTED => supported_page(),
            ERRORS => {
                let page = self.error_page(controller)?;
                self.controller_mut(controller)?.events.errors_seen(keep);
                page
            }
            HEALTH => self.health_page(controller, nsid, around)?,
            FIRMWARE => {
                let mut page = Page::new(512);
                page.u8(0, 1).text(8, 8, env!("CARGO_PKG_VERSION"));
                page
            }
            CHANGED_NAMESPACES => {
                let mut all = self.controller_mut(controller)?.events.changed_namespaces(keep);
                if all.len() > NAMESPACES_MOST {
                    all = vec![ALL];
                }
                let mut page = Page::new(4 * NAMESPACES_MOST);
                for (at, number) in all.into_iter().enumerate() {
                    page.u32(at * 4, number);
                }
                page
            }
            EFFECTS => effects_page(set, kind)?,
            CHANGED_ZONES => {
                self.namespace(nsid)?.zones.ok_or(Status::INVALID_LOG_PAGE)?;
                let all = self.controller_mut(controller)?.events.changed_zones(nsid, keep);
                changed_zones_page(&all)
            }
            _ => return Err(Status::INVALID_LOG_PAGE),
        };
        if offset > page.size() as u64 {
            return Err(Status::INVALID_FIELD);
        }
        Ok((0, page.part(offset, bytes as usize)))
    }

    fn health_page(&self, controller: u16, nsid: u32, around: &Around) -> Result<Page, Status> {
        let errors = self.controller(controller)?.errors_seen();
        let meant = match nsid {
            0 | ALL => &around.health[..],
            number => {
                self.namespace(number)?;
                around
                    .health
                    .get(number as usize - 1..)
                    .map_or(&[][..], |it| &it[..it.len().min(1)])
            }
        };
        let together = meant.iter().flatten().copied().reduce(Health::with);
        Ok(together.ok_or(Status::NOT_READY)?.page(errors))
    }

    fn error_page(&self, controller: u16) -> Result<Page, Status> {
        let mut page = Page::new(64 * crate::controller::ERRORS_MOST);
        for (at, entry) in self.controller(controller)?.errors().iter().enumerate() {
            let at = at * 64;
            page.u64(at, entry.count)
                .u16(at + 8, entry.queue)
                .u16(at + 10, entry.cid)
                .u16(at + 12, entry.status.field())
                .u16(at + 14, u16::MAX) // no place of a parameter
                .u64(at + 16, entry.start)
                .u32(at + 24, entry.namespace);
        }
        Ok(page)
    }

    /// The subsystems to connect to: this one, where the host has reached it, and discovery itself.
    fn discovery_page(&self, around: &Around) -> Page {
        let Some((address, port)) = around.address else { return Page::new(1_024) };
        let subsystems = [(self.name(), 2), (DISCOVERY_NQN, 3)];
        let mut page = Page::new(1_024 * (1 + subsystems.len()));
        page.u64(0, 1).u64(8, subsystems.len() as u64);
        for (at, (name, kind)) in subsystems.into_iter().enumerate() {
            let at = 1_024 * (at + 1);
            page.u8(at, 3) // TCP
                .u8(at + 1, if address.is_ipv4() { 1 } else { 2 })
                .u8(at + 2, kind)
                .u8(at + 3, 1 << 2 | 2) // no secure channel; flow control may be off
                .u16(at + 4, 1)
                .u16(at + 6, u16::MAX)
                .u16(at + 8, 32)
                .bytes(at + 32, port.to_string().as_bytes())
                .bytes(at + 256, name.as_bytes())
                .bytes(at + 512, address.to_string().as_bytes());
        }
        page
    }
}

fn supported_page() -> Page {
    let mut page = Page::new(1_024);
    for known in KNOWN {
        page.u32(usize::from(known) * 4, IS_SUPPORTED);
    }
    page
}

/// Commands of a command set, and what they do.
fn effects_page(set: u8, kind: Kind) -> Result<Page, Status> {
    let mut page = Page::new(4_096);
    let of_queues = if kind == Kind::Pci { &QUEUE_OPCODES[..] } else { &[] };
    for &opcode in OPCODES.iter().chain(of_queues) {
        page.u32(usize::from(opcode) * 4, IS_SUPPORTED);
    }
    let mut support = |opcodes: &[u8]| {
        for opcode in opcodes {
            let changes = if CHANGING.contains(opcode) { CHANGES_BLOCKS } else { 0 };
            page.u32(1_024 + usize::from(*opcode) * 4, IS_SUPPORTED | changes);
        }
    };
    match set {
        0 => support(&NVM_OPCODES),
        2 => {
            support(&NVM_OPCODES);
            support(&ZNS_OPCODES);
        }
        _ => return Err(Status::INVALID_FIELD),
    }
    Ok(page)
}

fn changed_zones_page(starts: &[u64]) -> Page {
    let mut page = Page::new(4_096);
    if starts.len() > ZONES_MOST {
        page.u16(0, u16::MAX);
        return page;
    }
    page.u16(0, starts.len() as u16);
    for (at, &start) in starts.iter().enumerate() {
        page.u64(8 + at * 8, start);
    }
    page
}

const _: () = assert!(ADMIN_CAPSULE_MOST >= 1_024, "Connect comes in a capsule");

#[cfg(test)]
mod tests {
    use super::super::tests::{ask, sqe};
    use super::super::{Answer, wants_health};
    use super::*;
    use crate::subsystem::tests::{NAME, ready, subsystem};

    fn get(page: u32, nsid: u32, bytes: u32, offset: u32, set: u32) -> Sqe {
        let mut get = sqe(0x02, nsid, page | (bytes / 4 - 1) << 16, 0, bytes);
        get.cdw12 = offset.into();
        get.cdw14 = (set << 24).into();
        get
    }

    fn health(used_percent: u8, cuts: u64) -> Health {
        let spare_percent = 100 - used_percent;
        Health { spare_percent, used_percent, cuts, written_bytes: 512_001, ..Health::default() }
    }

    #[test]
    fn health_is_of_one_drive_or_of_all() {
        let mut subsystem = subsystem();
        let number = ready(&mut subsystem);
        let mut around =
            Around { health: vec![Some(health(3, 2)), Some(health(95, 5))], ..Around::default() };
        let mut page = |nsid, around: &Around| {
            let get = get(2, nsid, 512, 0, 0);
            assert!(wants_health(&get));
            match subsystem.admin(number, &get, &[], around) {
                Answer::Done { status: Status::SUCCESS, data, .. } => Ok(data),
                Answer::Done { status, .. } => Err(status),
                Answer::Held => panic!("held"),
            }
        };
        let of = |page: &[u8]| (page[0], page[3], page[5], page[48], page[112], page[144]);
        assert_eq!(of(&page(1, &around).unwrap()), (0, 97, 3, 2, 3, 2));
        assert_eq!(of(&page(2, &around).unwrap()), (1, 5, 95, 2, 6, 5), "a warning: little spare");
        assert_eq!(of(&page(ALL, &around).unwrap()), (1, 5, 95, 3, 8, 7));
        assert_eq!(page(3, &around), Err(Status::INVALID_NAMESPACE));
        around.health[0] = None;
        assert_eq!(page(1, &around), Err(Status::NOT_READY), "it has no power");
        assert_eq!(of(&page(ALL, &around).unwrap()), (1, 5, 95, 2, 6, 5));
    }

    #[test]
    fn effects_are_of_a_command_set() {
        let mut subsystem = subsystem();
        let number = ready(&mut subsystem);
        let mut effects = |set| ask(&mut subsystem, number, &get(5, 0, 4_096, 0, set));
        let nvm = effects(0).unwrap().1;
        let zns = effects(2).unwrap().1;
        // Without the last of these Linux makes a zoned disk read-only.
        for (offset, opcode) in [(1_508, 0x79), (1_512, 0x7a), (1_524, 0x7d)] {
            assert_eq!(offset, 1_024 + opcode * 4);
            assert_eq!((nvm[offset] & 1, zns[offset] & 1), (0, 1));
        }
        assert_eq!(nvm[1_024 + 4], 3, "Write");
        assert_eq!((nvm[0x06 * 4], nvm[0x80 * 4]), (1, 0));
        assert_eq!(effects(1), Err(Status::INVALID_FIELD));
    }

    #[test]
    fn parts_of_pages_are_read_at_any_offset_and_nothing_beyond() {
        let mut subsystem = subsystem();
        let number = ready(&mut subsystem);
        let mut read =
            |page, bytes, offset| ask(&mut subsystem, number, &get(page, ALL, bytes, offset, 0));
        assert_eq!(read(3, 8, 8).unwrap().1, *b"0.2.0   ");
        assert_eq!(read(3, 1_024, 0).unwrap().1[512..], [0; 512]);
        assert_eq!(read(3, 8, 516), Err(Status::INVALID_FIELD));
        assert_eq!(read(3, 8, 2), Err(Status::INVALID_FIELD));
        assert_eq!(read(0x70, 1_024, 0), Err(Status::INVALID_LOG_PAGE), "no discovery controller");
        for unknown in [0x06, 0x0c, 0x0d, 0x80, 0xff] {
            assert_eq!(read(unknown, 512, 0), Err(Status::INVALID_LOG_PAGE), "{unknown:#x}");
        }
        let mut long = get(3, ALL, 512, 0, 0);
        long.sgl.length = 508.into();
        assert_eq!(ask(&mut subsystem, number, &long), Err(Status::SGL_LENGTH));
    }

    #[test]
    fn commands_that_failed_are_in_the_error_log() {
        let mut subsystem = subsystem();
        let number = ready(&mut subsystem);
        let mut bad = sqe(0x02, 1, 77, 0, 0);
        bad.cid = 0x1234.into();
        subsystem.failed(number, 3, &bad, Status::LBA_OUT_OF_RANGE);
        let page = ask(&mut subsystem, number, &get(1, ALL, 64, 0, 0)).unwrap().1;
        assert_eq!((page[0], page[8], &page[10..12]), (1, 3, &[0x34, 0x12][..]));
        assert_eq!(page[12..14], Status::LBA_OUT_OF_RANGE.field().to_le_bytes());
        assert_eq!((page[16], page[24]), (77, 1));
    }

    #[test]
    fn discovery_names_the_address_that_the_host_used() {
        let subsystem = subsystem();
        let address = Some(("127.0.0.1".parse().unwrap(), 4_420));
        let page = subsystem.discovery_page(&Around { address, ..Around::default() }).into_bytes();
        assert_eq!((page[8], page.len()), (2, 3_072));
        let entry = &page[1_024..2_048];
        assert_eq!((entry[0], entry[1], entry[2], &entry[32..37]), (3, 1, 2, &b"4420\0"[..]));
        assert_eq!(&entry[256..256 + NAME.len()], NAME.as_bytes());
        assert_eq!(&entry[512..522], b"127.0.0.1\0");
        assert_eq!(page[2_048 + 2], 3);
    }

    #[test]
    fn more_zones_than_there_is_room_for_is_told_as_such() {
        let some = changed_zones_page(&[1_024, 2_048]).into_bytes();
        assert_eq!((some[0], &some[8..18]), (2, &[0, 4, 0, 0, 0, 0, 0, 0, 0, 8][..]));
        let all = changed_zones_page(&(0..512).collect::<Vec<_>>()).into_bytes();
        assert_eq!((&all[..2], &all[8..16]), (&[0xff, 0xff][..], &[0; 8][..]));
    }
}
