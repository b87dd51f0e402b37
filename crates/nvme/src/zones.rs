//! Reports of zones, as hosts get them.

use leyden_device::{ZoneFilter, ZoneState};
use zerocopy::IntoBytes;

use crate::io::Report;
use crate::wire::{ZONE_BYTES, ZoneDescriptor};

/// A zone as a drive tells of it. Places are in blocks of the namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ZoneSeen {
    /// Its state (ZS).
    pub state: u8,
    /// It has a Zone Random Write Area (ZRWAV).
    pub has_area: bool,
    /// The drive finished it (ZFC): its state changed by itself.
    pub is_changed: bool,
    /// Its first block.
    pub start: u64,
    /// Blocks that can be written.
    pub capacity: u64,
    /// Its write pointer; `None` where there is none.
    pub write_pointer: Option<u64>,
}

const SEQUENTIAL: u8 = 2;
const FINISHED: u8 = 1 << 0;
const WITH_AREA: u8 = 1 << 3;

fn descriptor(zone: &ZoneSeen) -> ZoneDescriptor {
    let changed = if zone.is_changed { FINISHED } else { 0 };
    ZoneDescriptor {
        kind: SEQUENTIAL,
        state: zone.state << 4,
        attributes: changed | if zone.has_area { WITH_AREA } else { 0 },
        capacity: zone.capacity.into(),
        start: zone.start.into(),
        write_pointer: zone.write_pointer.unwrap_or(u64::MAX).into(),
        ..ZoneDescriptor::default()
    }
}

/// The data of a report of `zones`, which are all from the first one asked for on.
pub fn report(asked: &Report, zones: impl Iterator<Item = ZoneSeen>) -> Vec<u8> {
    let matches = |zone: &ZoneSeen| match asked.filter {
        ZoneFilter::All => true,
        ZoneFilter::In(state) => ZoneState::with_code(zone.state) == Some(state),
    };
    let room = asked.bytes / ZONE_BYTES - 1;
    let mut data = vec![0; ZONE_BYTES];
    let mut count = 0_u64;
    for zone in zones.filter(matches) {
        if count < room as u64 {
            data.extend(descriptor(&zone).as_bytes());
        } else if asked.partial {
            break;
        }
        count += 1;
    }
    data[..8].copy_from_slice(&count.to_le_bytes());
    data.resize(asked.bytes, 0);
    data
}

#[cfg(test)]
mod tests {
    use super::*;
    use leyden_device::Lba;

    fn zones(count: u64) -> impl Iterator<Item = ZoneSeen> {
        (0..count).map(|at| ZoneSeen {
            state: if at % 2 == 0 { 1 } else { 0xe },
            has_area: at == 2,
            is_changed: false,
            start: at * 1_024,
            capacity: 1_000,
            write_pointer: (at % 2 == 0).then_some(at * 1_024),
        })
    }

    #[test]
    fn counts_are_of_all_zones_or_of_those_returned() {
        let asked = |bytes, partial, filter| Report { lba: Lba(0), bytes, filter, partial };
        let count = |data: &[u8]| u64::from_le_bytes(data[..8].try_into().unwrap());
        let all = report(&asked(64, false, ZoneFilter::All), zones(5));
        assert_eq!((count(&all), all.len()), (5, 64), "the head alone tells how many there are");
        let some = report(&asked(64 * 3, true, ZoneFilter::All), zones(5));
        assert_eq!((count(&some), some.len()), (2, 192));
        let full = ZoneFilter::In(ZoneState::Full);
        let full = report(&asked(64 * 9 + 4, true, full), zones(5));
        assert_eq!((count(&full), full.len()), (2, 64 * 9 + 4), "as long as asked, zeroes behind");
        assert_eq!((full[64], full[65]), (2, 0xe0), "type in the low, state in the high bits");
        assert_eq!(full[64 + 24..64 + 32], [0xff; 8], "no write pointer");
        assert_eq!(full[64 + 16..64 + 24], 1_024_u64.to_le_bytes());
        assert_eq!(full[64 * 3..], [0; 64 * 6 + 4]);
        let area = report(&asked(64 * 9, true, ZoneFilter::All), zones(5));
        assert_eq!(area[64 * 3 + 2], 8);
    }
}
