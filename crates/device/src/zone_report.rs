//! Results of Report Zones (NVMe Zoned Namespace Command Set 1.1, 3.4.2).

use leyden_ftl::zoned::ZoneState;

use crate::Lba;

/// Which zones a report tells of (ZNS 1.1, figure 35).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZoneFilter {
    /// All.
    All,
    /// Those in this state.
    In(ZoneState),
}

/// A zone as a report describes it (ZNS 1.1, figure 37).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZoneDescriptor {
    /// Its state (ZS).
    pub state: ZoneState,
    /// Its first block (ZSLBA).
    pub start: Lba,
    /// Sectors that can be written (ZCAP).
    pub capacity: u64,
    /// Its write pointer (WP); `None` where it tells nothing, in zones that can't be written.
    pub write_pointer: Option<Lba>,
    /// It has a Zone Random Write Area (ZRWAV).
    pub has_zrwa: bool,
    /// The controller changed its state (ZFC), and not the host.
    pub is_changed: bool,
    /// Its descriptor extension (ZDEV), if one was set.
    pub extension: Option<Box<[u8]>>,
}

/// The result of Report Zones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ZoneReport {
    /// Zones that match, from the first asked for on; of a partial report, those in `zones`.
    pub count: u64,
    /// In order.
    pub zones: Vec<ZoneDescriptor>,
}
