//! A run on a block device that a conventional and a zoned drive make up.

use leyden_config::{PreconditionConfig, Scenario};
use leyden_device::{
    Activity, NoData, Payload, SECTOR_BYTES, Ssd, Stamp, Stats, ZnsSsd, ZonedStats,
};
use leyden_host::zoned_block::{Pair, Stored, flash_of_both};
use leyden_host::{PageCache, Powered, ZonedBlock, ZonedBlockConfig, ZonedBlockStats};
use leyden_record::{Drive, Levels, RunRecord, Timeline, ZonedBlock as Record};
use leyden_sim::{Counted, Span, Time};
use leyden_workload::Request;

use super::conventional::play;
use super::{Bounds, Hooks, Outcome, Prepared, RunError, Subject, conduct};
use crate::driver::{Content, Measured, Options, Settler, Unchecked, Verifier, Watch};
use crate::run::follow::{Following, Visible};
use crate::run::precondition::Past;
use crate::run::recorded::{self, FinalState, wear};
use crate::run::repeated::Round;
use crate::run::{build_jobs, check, facts, in_device};

/// The device on two drives of ours.
type OnOurs<P> = ZonedBlock<P, Ssd<Stored<P>>, ZnsSsd<Stored<P>>>;

/// Counters of the layer and of both drives.
#[derive(Clone, Debug, Default)]
struct Counts {
    layer: ZonedBlockStats,
    conventional: Stats,
    zoned: Stats,
    zones: ZonedStats,
}

impl Counts {
    fn of<P: Payload>(device: &OnOurs<P>) -> Self {
        Self {
            layer: device.stats(),
            conventional: device.conventional().stats(),
            zoned: device.zoned().stats(),
            zones: device.zoned().zoned_stats(),
        }
    }

    fn since(&self, earlier: &Self) -> Self {
        Self {
            layer: self.layer.since(&earlier.layer),
            conventional: self.conventional.since(&earlier.conventional),
            zoned: self.zoned.since(&earlier.zoned),
            zones: self.zones.since(&earlier.zones),
        }
    }

    /// Both drives' flash as one.
    fn flash(&self) -> Stats {
        flash_of_both(&self.zoned, &self.conventional, self.layer.host_blocks)
    }
}

/// Watches the device: what was counted before the measurement is taken off.
struct LayerWatch {
    before: Counts,
    /// Follows what goes on, if that is asked for.
    following: Following,
}

impl LayerWatch {
    fn new<P: Payload, S: Powered<P, Drive = OnOurs<P>>>(
        stack: &S,
        round: Round<'_>,
        bounds: &Bounds<'_>,
    ) -> Self {
        let following = bounds.following(round, stack.now());
        Self { before: Counts::of(stack.drive()), following }
    }
}

impl<P: Payload, S: Powered<P, Drive = OnOurs<P>>> Watch<P, S> for LayerWatch {
    fn stats(&self, stack: &S) -> Stats {
        Counts::of(stack.drive()).flash()
    }

    fn begin(&mut self, stack: &S) {
        self.before = Counts::of(stack.drive());
    }

    fn next_moment(&self) -> Time {
        self.following.next_moment()
    }

    fn look(&mut self, now: Time, stack: &S) {
        self.following.look_if_due(now, stack.drive());
    }

    fn follows_commands(&self) -> bool {
        self.following.is_on()
    }

    fn submitted(&mut self, now: Time, slot: u32, arrived: Time, request: &Request) {
        self.following.submitted(now, slot, arrived, request);
    }

    fn gone(&mut self, time: Time, slot: u32) {
        self.following.gone(time, slot);
    }
}

/// The zoned drive's dies and channels come first.
impl<P: Payload> Visible for OnOurs<P> {
    fn levels(&self) -> Levels {
        let (zoned, conventional) = (self.zoned().levels(), self.conventional().levels());
        Levels {
            at: Span::ZERO,
            buffered_bytes: zoned.buffered_bytes + conventional.buffered_bytes,
            free_blocks: zoned.free_blocks + conventional.free_blocks,
            at_gate: conventional.at_gate,
        }
    }

    fn activities(&self) -> Vec<Activity> {
        let geometry = self.zoned().geometry();
        let (dies, channels) = (geometry.dies(), geometry.channels());
        let after = self.conventional().activity().map(|it| Activity {
            die: it.die + dies,
            channel: it.channel + channels,
            ..it
        });
        self.zoned().activity().chain(after).collect()
    }
}

fn layer(scenario: &Scenario) -> Result<&ZonedBlockConfig, RunError> {
    scenario.host.zoned_block.as_ref().ok_or_else(|| {
        let problem =
            "a conventional member is part of a zoned block device: add [host.zoned_block]";
        RunError::config("host.conventional", problem)
    })
}

/// The device, empty.
fn device<P: Payload>(scenario: &Scenario) -> Result<OnOurs<P>, RunError> {
    let layer = layer(scenario)?;
    let Some(conventional) = &scenario.host.conventional else {
        let problem = "the device needs a conventional drive for its random zones: add this table, which \
                       is like [device]";
        return Err(RunError::config("host.conventional", problem));
    };
    let conventional = Ssd::new(conventional, scenario.seed)
        .map_err(|error| error.within("conventional").within("host"))?;
    let zoned = ZnsSsd::new(&scenario.device, !scenario.seed).map_err(in_device)?;
    let shape = *zoned.zone_shape();
    let device = ZonedBlock::format(layer, Pair { conventional, zoned, shape }, scenario.seed);
    Ok(device.map_err(|error| error.within("zoned_block").within("host"))?)
}

/// Checks that `scenario` can be run.
pub(super) fn validate(scenario: &Scenario) -> Result<(), RunError> {
    let device = device::<NoData>(scenario)?;
    let unit = device.zoned().geometry().unit_bytes();
    if let Some(cache) = &scenario.host.page_cache {
        cache
            .check(unit, u64::from(device.mapping_units()))
            .map_err(|error| error.within("page_cache").within("host"))?;
    }
    let refused = [
        (
            device.needs_superblocks(),
            "host.zoned_block.journal.recognise",
            "a superblock is bytes, and a simulation has none: use \"class\" or \"range\"",
        ),
        (
            !scenario.run.cut.is_empty(),
            "run.cut",
            "power cuts of this device are tortured, and not yet listed",
        ),
        (
            scenario.host.channel().is_some(),
            "host.hints",
            "the drives below know nothing of the addresses that hints name",
        ),
        (
            scenario.run.ramp.settle.is_some(),
            "run.ramp.settle",
            "reclaim would have to settle, and is not watched: give run.ramp.requests",
        ),
        (
            scenario.precondition != PreconditionConfig::default(),
            "precondition",
            "the device begins empty: let a job write it, or replay the trace several times with a ramp",
        ),
    ];
    if let Some((_, key, problem)) = refused.into_iter().find(|&(is_refused, ..)| is_refused) {
        return Err(RunError::config(key, format!("{problem}; leave it out")));
    }
    if scenario.workload.trace.is_none() {
        build_jobs(&scenario.workload, scenario.seed, device_sectors(&device))?;
    }
    Ok(())
}

fn device_sectors<P: Payload>(device: &OnOurs<P>) -> u64 {
    leyden_device::BlockDevice::capacity_sectors(device)
}

/// Memory that both drives take, about, and the mapping units of the device.
pub(in crate::run) fn memory_bytes<P: Payload>(scenario: &Scenario) -> (u64, u32) {
    device::<P>(scenario)
        .map_or((0, 0), |device| (both_memory_bytes(&device), device.mapping_units()))
}

fn both_memory_bytes<P: Payload>(device: &OnOurs<P>) -> u64 {
    device.conventional().memory_bytes() + device.zoned().memory_bytes()
}

pub(super) fn run(
    scenario: &Scenario,
    hooks: &mut Hooks<'_>,
    bounds: &Bounds<'_>,
) -> Result<Outcome, RunError> {
    validate(scenario)?;
    let unit_sectors = scenario.device.ftl.mapping_unit.get() / SECTOR_BYTES;
    if scenario.run.stamps {
        run_with::<Stamp>(scenario, hooks, bounds, &|capacity| {
            Box::new(Verifier::new(capacity, unit_sectors))
        })
    } else {
        run_with::<NoData>(scenario, hooks, bounds, &|_| Box::new(Unchecked))
    }
}

fn run_with<P: Payload>(
    scenario: &Scenario,
    hooks: &mut Hooks<'_>,
    bounds: &Bounds<'_>,
    content: &dyn Fn(u64) -> Box<dyn Content<P>>,
) -> Result<Outcome, RunError> {
    let device = device::<P>(scenario)?;
    let unit = device.zoned().geometry().unit_bytes();
    let content = content(device_sectors(&device));
    match &scenario.host.page_cache {
        None => {
            let prepared = OnLayer::prepared(scenario, device, content, bounds);
            conduct(prepared, scenario, hooks, bounds)
        }
        Some(config) => {
            let cache = PageCache::new(config, device, unit)
                .map_err(|error| error.within("page_cache").within("host"))?;
            let prepared = OnLayer::prepared(scenario, cache, content, bounds);
            conduct(prepared, scenario, hooks, bounds)
        }
    }
}

struct OnLayer<'s, P: Payload, S> {
    scenario: &'s Scenario,
    stack: S,
    content: Box<dyn Content<P>>,
    watch: LayerWatch,
}

impl<'s, P: Payload, S: Powered<P, Drive = OnOurs<P>> + 's> OnLayer<'s, P, S> {
    fn prepared(
        scenario: &'s Scenario,
        stack: S,
        content: Box<dyn Content<P>>,
        bounds: &Bounds<'_>,
    ) -> Prepared<Box<dyn Subject + 's>> {
        let watch = LayerWatch::new(&stack, Round::first(scenario), bounds);
        let subject = Self { scenario, stack, content, watch };
        Prepared { subject: Box::new(subject), past: Past::default(), wall_s: 0.0 }
    }
}

impl<P: Payload, S: Powered<P, Drive = OnOurs<P>>> Subject for OnLayer<'_, P, S> {
    fn now(&self) -> Time {
        self.stack.now()
    }

    fn settler(&self) -> Option<Settler> {
        None
    }

    fn between(&mut self, number: u32, bounds: &Bounds<'_>) -> Result<(), RunError> {
        let round = Round { scenario: self.scenario, number };
        self.watch = LayerWatch::new(&self.stack, round, bounds);
        Ok(())
    }

    fn drive(&mut self, number: u32, options: Options<'_>) -> Result<Measured, RunError> {
        let round = Round { scenario: self.scenario, number };
        play(&mut self.stack, &mut *self.content, round, &mut self.watch, options)
    }

    fn is_check_due(&self) -> bool {
        let device = self.stack.drive();
        let units = |geometry: &leyden_device::Geometry| u64::from(geometry.units());
        let units = units(device.zoned().geometry()) + units(device.conventional().geometry());
        check::is_due(self.scenario.run.check, units, &Counts::of(device).flash())
    }

    fn check(&self) {
        self.stack.check();
    }

    fn cuts_not_made(&self, _: &Measured) -> Option<String> {
        None
    }

    fn warnings(&self, _: &Measured) -> Vec<String> {
        Vec::new()
    }

    fn describe(&self, measured: &Measured, warnings: Vec<String>) -> RunRecord {
        let (scenario, device) = (self.scenario, self.stack.drive());
        let counts = Counts::of(device).since(&self.watch.before);
        let left = FinalState {
            geometry: *device.zoned().geometry(),
            is_cached: scenario.host.page_cache.is_some(),
            wear: wear(device.zoned().wear()),
            fingerprint: device.fingerprint(),
            memory_bytes: both_memory_bytes(device),
            mapping_units: device.mapping_units(),
        };
        let mut record = recorded::begin(scenario, left, measured, warnings);
        record.drive = Some(both(device));
        record.zoned_block = Some(Record {
            chunk_blocks: device.zone_blocks().into(),
            block_bytes: unit_bytes(device),
            chunks: device.chunks().collect(),
            random_zones: device.random_zones().collect(),
            ..layer_record(&counts, unit_bytes(device))
        });
        record
    }

    fn finish(self: Box<Self>, _: &Measured, _: &mut RunRecord) -> Option<Timeline> {
        self.watch.following.finish()
    }
}

/// Both drives as one: the capacity is the device's, and pages, blocks and units are the zoned drive's.
fn both<P: Payload>(device: &OnOurs<P>) -> Drive {
    let (zoned, conventional) = (facts::drive(device.zoned()), facts::drive(device.conventional()));
    Drive {
        capacity_bytes: device_sectors(device) * SECTOR_BYTES,
        flash_bytes: zoned.flash_bytes + conventional.flash_bytes,
        channels: zoned.channels + conventional.channels,
        dies: zoned.dies + conventional.dies,
        ..zoned
    }
}

fn unit_bytes<P: Payload>(device: &OnOurs<P>) -> u64 {
    u64::from(device.zoned().geometry().unit_bytes())
}

fn layer_record(counts: &Counts, unit: u64) -> Record {
    let layer = &counts.layer;
    let copied = layer.copied_journal_blocks + layer.copied_meta_blocks + layer.copied_data_blocks;
    let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    let written = layer.host_blocks + copied + layer.filled_blocks + layer.metadata_blocks;
    let (conventional, zoned) = (&counts.conventional.ftl, &counts.zoned.ftl);
    let flash = |ftl: &leyden_ftl::page_mapped::FtlStats| {
        ftl.user_units + ftl.padded_units + ftl.gc.copied_units
    };
    Record {
        host_bytes: layer.host_blocks * unit,
        host_journal_bytes: layer.host_journal_blocks * unit,
        host_meta_bytes: layer.host_meta_blocks * unit,
        separated_bytes: layer.separated_blocks * unit,
        direct_bytes: layer.direct_blocks * unit,
        copied_bytes: copied * unit,
        copied_journal_bytes: layer.copied_journal_blocks * unit,
        copied_meta_bytes: layer.copied_meta_blocks * unit,
        copied_data_bytes: layer.copied_data_blocks * unit,
        journal_share_of_copies: share(layer.copied_journal_blocks, copied),
        filled_bytes: layer.filled_blocks * unit,
        metadata_bytes: layer.metadata_blocks * unit,
        commits: layer.commits,
        reclaimed: layer.reclaimed,
        merged_into_buffer: layer.merged_into_buffer,
        aborted: layer.aborted,
        starved: layer.starved,
        resets: layer.resets,
        finishes: layer.finishes,
        layer_waf: share(written, layer.host_blocks),
        conventional_waf: share(flash(conventional), counts.conventional.ssd.units_written),
        zoned_waf: share(flash(zoned), counts.zones.units_written),
        waf: share(flash(conventional) + flash(zoned), layer.host_blocks),
        ..Record::default()
    }
}
