//! The coverage of a run, or of a campaign.
//!
//! **What lives here**: the points that there are ([`Point`]), how often each was hit ([`Coverage`]), and the
//! pairs of policies of a seed. A name that no run of a campaign reaches is a hole in the draws.

use std::collections::BTreeMap;

use leyden_buffer::Region;
use leyden_buffer::schedule::ScheduleConfig;
use leyden_ftl::gc::VictimConfig;
use leyden_ftl::map::ProtectionConfig;
use leyden_ftl::place::PlacementConfig;
use leyden_power::DumpConfig;
use serde::{Deserialize, Serialize};

use crate::Options;

macro_rules! points {
    ($($(#[doc = $doc:literal])+ $name:ident,)*) => {
        /// Something that can happen in a run.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Point {
            $($(#[doc = $doc])+ $name,)*
        }

        impl Point {
            /// All of them, each with what it is.
            const ALL: &[(Self, &str)] = &[$((Self::$name, concat!($($doc),+)),)*];
        }
    };
}

points! {
    /// cut: nothing was on its way
    CutIdle,
    /// cut: while data was being programmed
    CutDataProgram,
    /// cut: while a mapping page was being programmed
    CutMappingProgram,
    /// cut: while a page of the journal was being programmed
    CutJournalProgram,
    /// cut: while a block was being erased
    CutErase,
    /// cut: while a page was being read
    CutRead,
    /// cut: while a program waited for its channel
    CutWaitingProgram,
    /// cut: with a FLUSH in flight
    CutFlush,
    /// cut: with a flush of a file in flight
    CutSync,
    /// cut: with a FUA write in flight
    CutFua,
    /// cut: with a trim or write-zeroes in flight
    CutTrim,
    /// cut: during a recovery
    CutRecovery,
    /// cut: amid the dump of the cut before, the power having been back
    CutDump,
    /// cut: of a drive that can only be read
    CutReadOnly,
    /// cut: of a drive with atomic writes
    CutAtomicDrive,
    /// cut: with an atomic write of several units in flight
    CutAtomic,
    /// in flight: a program that the energy brought to its end
    EndedProgram,
    /// in flight: something that the cut has broken off
    BrokenOff,
    /// dump: of host data
    DumpUnits,
    /// dump: of mapping pages
    DumpMap,
    /// dump: of pages of the journal
    DumpJournal,
    /// dump: with a root of several pages
    DumpLargeRoot,
    /// dump: on a table of more than 256 mapping pages
    DumpLargeTable,
    /// dump: with less than two programs' energy to spare
    DumpTight,
    /// dump: a program fails
    DumpFailed,
    /// dump: done before the power came back
    DumpInTime,
    /// dump: the power came back in its midst
    DumpInterrupted,
    /// loss: of host data
    LossUnits,
    /// loss: of mapping pages
    LossMap,
    /// loss: of pages of the journal
    LossJournal,
    /// loss: of the root
    LossRoot,
    /// recovery: with a scan of all pages
    RecoveryScan,
    /// recovery: with a replay of the journal
    RecoveryReplay,
    /// recovery: with data put back
    RecoveryPutBack,
    /// recovery: with blocks of old dumps erased
    RecoveryErase,
    /// recovery: while the host's commands waited
    RecoveryEarly,
    /// fault: a program failed
    FaultProgram,
    /// fault: the program of a mapping page failed
    FaultMapping,
    /// fault: the program of a page of the journal failed
    FaultJournal,
    /// fault: an erase failed
    FaultErase,
    /// fault: a block was worn out
    FaultWear,
    /// fault: a drive became read-only
    FaultReadOnly,
    /// fault: a command ended with a write fault
    FaultWrite,
    /// fault: a page cache could not write a unit out
    FaultCache,
    /// fault: a FLUSH failed
    FaultFlush,
    /// fault: a flush of a file failed
    FaultSync,
    /// work: blocks were collected
    WorkCollection,
    /// work: mapping pages were written back
    WorkWriteback,
    /// work: mapping pages were moved
    WorkMapCopies,
    /// work: pages of the journal were written
    WorkJournal,
    /// work: units were written in part
    WorkPartial,
    /// work: writes were coalesced
    WorkCoalesced,
    /// work: writes waited for room
    WorkStalled,
    /// work: the drive was saved and loaded
    WorkReload,
    /// work: a file was flushed
    WorkSync,
    /// work: of several tenants
    WorkTenants,
    /// work: of a trace
    WorkTrace,
    /// zone: cut with an append in flight
    ZoneCutAppend,
    /// zone: cut with a copy in flight
    ZoneCutCopy,
    /// zone: cut with a reset or Finish in flight
    ZoneCutChange,
    /// zone: cut with a commit of a random write area in flight
    ZoneCutCommit,
    /// zone: cut with data in a random write area
    ZoneCutArea,
    /// zone: cut at an event
    ZoneCutEvent,
    /// zone: written in order
    ZoneWritten,
    /// zone: zeroes were written in order
    ZoneZeroes,
    /// zone: appended to
    ZoneAppended,
    /// zone: copied
    ZoneCopied,
    /// zone: read
    ZoneRead,
    /// zone: reset
    ZoneReset,
    /// zone: finished
    ZoneFinished,
    /// zone: opened by a command
    ZoneOpened,
    /// zone: closed by a command
    ZoneClosed,
    /// zone: opened with a random write area
    ZoneArea,
    /// zone: a part of a random write area was committed
    ZoneCommitted,
    /// zone: all were opened, closed or reset
    ZoneAll,
    /// zone: reported
    ZoneReported,
    /// zone: a FLUSH ended
    ZoneFlushed,
    /// zone: refused for want of active or open zones
    ZoneTooMany,
    /// zone: refused for want of random write areas
    ZoneNoArea,
    /// zone: a protected write above plain data was refused
    ZoneSequence,
    /// zone: an append found it full, or beyond its end
    ZoneFull,
    /// zone: became read-only or offline
    ZoneDead,
    /// zone: not dead at the end of a run
    ZoneAlive,
    /// zone: full after a cut
    ZoneFullAfterCut,
    /// zone: with a random write area after a cut
    ZoneAreaAfterCut,
    /// block: zones were reclaimed
    BlockReclaimed,
    /// block: a chunk was merged into its buffer zone
    BlockMerged,
    /// block: a move was given up
    BlockAborted,
    /// block: a writer waited for a zone
    BlockStarved,
    /// block: zones were reset
    BlockResets,
    /// block: blocks of a journal had zones of their own
    BlockSeparated,
    /// block: blocks of a journal left its zones
    BlockReleased,
    /// block: a zone was filled up
    BlockFilled,
    /// block: cut amid a commit, before the first set of tables was whole
    BlockCutFirstSet,
    /// block: cut amid a commit, before the second set of tables was whole
    BlockCutSecondSet,
}

/// How often each point was reached. One point counts at most once for each cut, or for each run.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Coverage(BTreeMap<String, u64>);

impl Coverage {
    /// The points that a run has hit, with its options.
    pub(crate) fn of_run(options: &Options, hits: &Hits) -> Self {
        let mut coverage = Self::default();
        for &(point, name) in Point::ALL {
            let count = hits.0[point as usize];
            if count > 0 {
                coverage.0.insert(name.trim().to_owned(), count);
            }
        }
        for name in drawn(options) {
            coverage.0.insert(name, 1);
        }
        coverage
    }

    /// The points that a run of zones or of two drives has hit, and the other points reached with it.
    pub(crate) fn of(hits: &Hits, drawn: Vec<String>) -> Self {
        let points = Point::ALL.iter().filter(|(point, _)| hits.0[*point as usize] > 0);
        let hits = points.map(|(point, name)| (name.trim().to_owned(), hits.0[*point as usize]));
        Self(hits.chain(drawn.into_iter().map(|name| (name, 1))).collect())
    }

    /// Those of `names` that were reached, and what was drawn.
    pub(crate) fn only(&self, names: &[String], drawn: Vec<String>) -> Self {
        let known = self.0.iter().filter(|(name, _)| names.contains(name));
        let known = known.map(|(name, &count)| (name.clone(), count));
        Self(known.chain(drawn.into_iter().map(|name| (name, 1))).collect())
    }

    /// Adds another's.
    pub fn add(&mut self, other: &Self) {
        for (name, count) in &other.0 {
            *self.0.entry(name.clone()).or_default() += count;
        }
    }

    /// How often each of `names` was reached, and whatever else, in order.
    pub fn all(&self, names: Vec<String>) -> impl Iterator<Item = (String, u64)> {
        let mut all: BTreeMap<String, u64> = names.into_iter().map(|name| (name, 0)).collect();
        all.extend(self.0.iter().map(|(name, &count)| (name.clone(), count)));
        all.into_iter()
    }

    /// True if `other` has reached what this has not.
    pub fn lacks(&self, other: &Self) -> bool {
        other.0.keys().any(|name| !self.0.contains_key(name))
    }

    /// The numbers, for checks of a state that was read.
    pub(crate) fn counts(&self) -> impl Iterator<Item = u64> {
        self.0.values().copied()
    }
}

/// The points that a run has hit so far.
#[derive(Clone, Debug)]
pub(crate) struct Hits([u64; Point::ALL.len()]);

impl Default for Hits {
    fn default() -> Self {
        Self([0; Point::ALL.len()])
    }
}

impl Point {
    /// All of them.
    pub(crate) fn every() -> impl Iterator<Item = Self> {
        Self::ALL.iter().map(|&(point, _)| point)
    }

    /// The point's name.
    pub(crate) fn name(self) -> String {
        Self::ALL[self as usize].1.trim().to_owned()
    }
}

/// Every pair of one of `of_a` with one of `of_b`.
pub(crate) fn pairs(a: &str, of_a: &[&str], b: &str, of_b: &[&str]) -> Vec<String> {
    of_a.iter().flat_map(|one| of_b.iter().map(move |other| pair(a, one, b, other))).collect()
}

impl Hits {
    pub(crate) fn hit(&mut self, point: Point) {
        self.0[point as usize] += 1;
    }

    pub(crate) fn hit_if(&mut self, is_hit: bool, point: Point) {
        self.0[point as usize] += u64::from(is_hit);
    }
}

pub(crate) const REGIONS: [Region; 3] = [Region::None, Region::Full, Region::Selective];

pub(crate) const fn region_name(region: Region) -> &'static str {
    match region {
        Region::None => "none",
        Region::Full => "full",
        Region::Selective => "selective",
    }
}

/// The coverage points of a run's options.
fn drawn(options: &Options) -> Vec<String> {
    let device = &options.device;
    let region = region_name(device.buffer.region);
    let protection = device.ftl.map.protection.name();
    let schedule = device.buffer.schedule.name();
    let dump = device.power.as_ref().map_or("off", |power| power.dump.name());
    let mut names = vec![
        pair("region", region, "protection", protection),
        pair("region", region, "dump", dump),
        pair("protection", protection, "dump", dump),
        pair("schedule", schedule, "protection", protection),
        pair("schedule", schedule, "region", region),
        pair("victim", device.ftl.gc.victim.name(), "placement", device.ftl.placement.name()),
        format!("unit: {}", device.ftl.mapping_unit),
        format!("page: {}", device.nand.page_size),
        format!("grain: {:?}", options.grain),
    ];
    if let Some(host) = &options.host {
        let layer = if host.page_cache.is_some() { "page cache" } else { "hints" };
        names.push(format!("host: {layer}"));
    }
    names
}

pub(crate) fn pair(a: &str, of_a: &str, b: &str, of_b: &str) -> String {
    format!("pair: {a} {of_a}, {b} {of_b}")
}

/// Every name that a campaign should reach.
pub(crate) fn names() -> Vec<String> {
    let of_zones = |name: &str| name.starts_with("zone: ") || name.starts_with("block: ");
    let mut names: Vec<String> = Point::ALL
        .iter()
        .map(|(_, name)| name.trim().to_owned())
        .filter(|name| !of_zones(name))
        .collect();
    let mut cross = |a: &str, of_a: &[&str], b: &str, of_b: &[&str]| {
        for one in of_a {
            names.extend(of_b.iter().map(|other| pair(a, one, b, other)));
        }
    };
    let regions = REGIONS.map(region_name);
    let protections: Vec<_> = ProtectionConfig::POLICIES.iter().map(|it| it.name).collect();
    let dumps: Vec<_> = DumpConfig::POLICIES.iter().map(|it| it.name).collect();
    let schedules: Vec<_> = ScheduleConfig::POLICIES.iter().map(|it| it.name).collect();
    let victims: Vec<_> = VictimConfig::POLICIES.iter().map(|it| it.name).collect();
    let placements: Vec<_> = PlacementConfig::POLICIES.iter().map(|it| it.name).collect();
    cross("region", &regions, "protection", &protections);
    cross("region", &regions, "dump", &dumps);
    cross("protection", &protections, "dump", &dumps);
    cross("schedule", &schedules, "protection", &protections);
    cross("schedule", &schedules, "region", &regions);
    cross("victim", &victims, "placement", &placements);
    for kib in ["512 B", "1 KiB", "2 KiB", "4 KiB", "8 KiB", "16 KiB"] {
        names.push(format!("unit: {kib}"));
    }
    for kib in ["512 B", "1 KiB", "2 KiB", "4 KiB", "8 KiB", "16 KiB", "32 KiB", "64 KiB"] {
        names.push(format!("page: {kib}"));
    }
    names.extend(
        ["grain: Unit", "grain: Sector", "host: page cache", "host: hints"].map(str::to_owned),
    );
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_stand_in_the_order_of_their_numbers() {
        for (number, &(point, name)) in Point::ALL.iter().enumerate() {
            assert_eq!(point as usize, number);
            assert!(name.trim().contains(": "), "{name}");
        }
    }

    #[test]
    fn what_is_drawn_has_a_name_that_is_known() {
        let known = names();
        for seed in 0..200 {
            for name in drawn(&Options::draw(seed)) {
                assert!(known.contains(&name), "{name}");
            }
        }
    }
}
