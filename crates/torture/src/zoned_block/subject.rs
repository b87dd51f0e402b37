//! Runs of block devices on two drives as torture has them of any kind.

use leyden_device::provision_of_zones;
use leyden_ftl::zoned::Config as Zones;
use leyden_host::zoned_block::ZonedBlockConfig;
use leyden_host::zoned_block::victim::ReclaimConfig;
use leyden_power::DumpConfig;
use leyden_sim::{Ratio, Rng};

use super::{ZonedBlockOptions, tell};
use crate::coverage::{Coverage, Point, REGIONS, pair, pairs, region_name};
use crate::options::plain_device;
use crate::subject::{Run, Subject};
use crate::{Options, Outcome, Round};

/// Mapping units of the zoned member's flash, at most.
const MOST_UNITS: u32 = 1 << 22;

/// Points that can be reached beside those named for such devices alone.
const POINTS: &[Point] = &[
    Point::CutFlush,
    Point::CutFua,
    Point::CutTrim,
    Point::CutRecovery,
    Point::RecoveryEarly,
    Point::WorkPartial,
    Point::FaultWrite,
    Point::ZoneAlive,
];
const MERGES: [&str; 2] = ["IntoBuffer", "NewZone"];

impl Run for ZonedBlockOptions {
    const SUBJECT: Subject = Subject::ZonedBlock;

    fn drawn(seed: u64) -> Self {
        Self::draw(seed)
    }

    fn seed(&self) -> u64 {
        self.run.seed
    }

    fn checked(&self) -> Result<(), String> {
        self.run.check().map_err(|problem| format!("run: {problem}"))?;
        if self.run.host.is_some() {
            return Err(
                "its run has a host of its own, and nothing stands on such a device".to_owned()
            );
        }
        let geometry = self.zoned.nand.geometry(self.zoned.ftl.mapping_unit);
        let units = geometry.map_or(0, |geometry| geometry.units());
        if units > MOST_UNITS {
            return Err(format!(
                "its zoned member has {units} mapping units, and {MOST_UNITS} is the most"
            ));
        }
        provision_of_zones(&self.zoned).map(drop).map_err(|error| error.to_string())
    }

    fn play(&self, tells: bool) -> (Outcome, Vec<String>) {
        tell(self, tells)
    }

    fn plain(&self) -> Self {
        let mut zoned = plain_device(&self.zoned);
        zoned.zoned = Some(Zones::default());
        let (layer, run) = (ZonedBlockConfig::default(), self.run.plain());
        Self { layer, journal_moves: 0, zoned, run }
    }

    fn rounds(&self) -> &[Round] {
        &self.run.rounds
    }

    fn rounds_mut(&mut self) -> Option<&mut Vec<Round>> {
        Some(&mut self.run.rounds)
    }

    fn end_after(&mut self, cuts: u64) {
        self.run.end_after(cuts);
    }

    fn extent(&self) -> String {
        self.run.extent()
    }

    /// Its work or its rounds are another seed's.
    fn cross(&mut self, blind: Self, rng: &mut Rng) {
        self.run.seed = blind.run.seed;
        match rng.below(3) {
            0 => self.run.work = Options { work: blind.run.work, ..self.run.clone() }.work,
            1 => self.run.rounds = blind.run.rounds,
            _ => {
                self.layer.writers_first = Ratio::from_percent(50 * rng.below(3));
                self.journal_moves = self.journal_moves.min(1 + rng.below(50) as u32);
            }
        }
        self.run.work.plp = Ratio::ZERO;
    }

    fn aim(&mut self, rng: &mut Rng) {
        self.run.aim(rng);
    }

    fn names() -> Vec<String> {
        let of_blocks = Point::every().filter(|point| point.name().starts_with("block: "));
        let mut names: Vec<String> =
            POINTS.iter().copied().chain(of_blocks).map(Point::name).collect();
        let dumps: Vec<_> = DumpConfig::POLICIES.iter().map(|it| it.name).collect();
        let victims: Vec<_> = ReclaimConfig::POLICIES.iter().map(|it| it.name).collect();
        names.extend(pairs("victim", &victims, "merge", &MERGES));
        names.extend(pairs("region of zones", &REGIONS.map(region_name), "dump", &dumps));
        names
    }
}

/// The points hit, of those that such devices can reach.
pub(super) fn reached(options: &ZonedBlockOptions, hits: &Coverage) -> Coverage {
    let ZonedBlockOptions { layer, zoned, .. } = options;
    let region = region_name(zoned.buffer.region);
    let dump = zoned.power.as_ref().map_or("off", |power| power.dump.name());
    let drawn = vec![
        pair("victim", layer.victim.name(), "merge", &format!("{:?}", layer.merge)),
        pair("region of zones", region, "dump", dump),
    ];
    hits.only(&ZonedBlockOptions::names(), drawn)
}
