//! A run on a block device that a conventional and a zoned drive make up.

use leyden_device::{NoData, Payload, SECTOR_BYTES, Ssd, Stamp, Stats, ZnsSsd, ZonedStats};
use leyden_host::zoned_block::{Pair, Stored, flash_of_both};
use leyden_host::{PageCache, Powered, ZonedBlock, ZonedBlockConfig, ZonedBlockStats};
use leyden_sim::Counted;

use super::recorded::{self, Left, wear};
use super::{Bounds, Hooks, Outcome, Phase, RunError, build_jobs, machine};
use crate::driver::{self, Content, Options, Unchecked, Verifier, Watch};
use leyden_config::{PreconditionConfig, Scenario, TraceConfig};
use leyden_record::ZonedBlock as Record;

/// The device on two drives of ours.
type OnOurs<P> = ZonedBlock<P, Ssd<Stored<P>>, ZnsSsd<Stored<P>>>;

/// What the layer and both drives count.
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
#[derive(Default)]
struct LayerWatch {
    before: Counts,
}

impl<P: Payload, S: Powered<P, Drive = OnOurs<P>>> Watch<P, S> for LayerWatch {
    fn stats(&self, stack: &S) -> Stats {
        Counts::of(stack.drive()).flash()
    }

    fn begin(&mut self, stack: &S) {
        self.before = Counts::of(stack.drive());
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
    let zoned = ZnsSsd::new(&scenario.device, !scenario.seed).map_err(super::in_device)?;
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
            "a superblock is bytes, and a simulation has none: \"class\" or \"range\" can be told",
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
            "what settles here is reclaim, and nothing watches that: give run.ramp.requests",
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

/// Runs `scenario`, whose drive is the zoned member.
pub(super) fn run(
    scenario: &Scenario,
    hooks: &mut Hooks<'_>,
    bounds: &Bounds<'_>,
) -> Result<Outcome, RunError> {
    validate(scenario)?;
    let unit_sectors = scenario.device.ftl.mapping_unit.get() / SECTOR_BYTES;
    if scenario.run.stamps {
        let content = |capacity| Verifier::new(capacity, unit_sectors);
        run_with::<Stamp, _>(scenario, hooks, bounds, content)
    } else {
        run_with::<NoData, _>(scenario, hooks, bounds, |_| Unchecked)
    }
}

fn run_with<P: Payload, C: Content<P>>(
    scenario: &Scenario,
    hooks: &mut Hooks<'_>,
    bounds: &Bounds<'_>,
    content: impl FnOnce(u64) -> C,
) -> Result<Outcome, RunError> {
    let device = device::<P>(scenario)?;
    let unit = device.zoned().geometry().unit_bytes();
    let mut content = content(device_sectors(&device));
    match &scenario.host.page_cache {
        None => play(device, &mut content, scenario, hooks, bounds),
        Some(config) => {
            let cache = PageCache::new(config, device, unit)
                .map_err(|error| error.within("page_cache").within("host"))?;
            play(cache, &mut content, scenario, hooks, bounds)
        }
    }
}

fn play<P, C, S>(
    mut stack: S,
    content: &mut C,
    scenario: &Scenario,
    hooks: &mut Hooks<'_>,
    bounds: &Bounds<'_>,
) -> Result<Outcome, RunError>
where
    P: Payload,
    C: Content<P>,
    S: Powered<P, Drive = OnOurs<P>>,
{
    let start = stack.now();
    let mut watch = LayerWatch { before: Counts::of(stack.drive()) };
    hooks.progress(Phase::Running, 0.0);
    let clocks = machine::Clocks::start();
    let cancel = hooks.cancel;
    let mut progress = |fraction| hooks.progress(Phase::Running, fraction);
    let options = Options {
        start,
        ramp: scenario.run.ramp,
        settler: None,
        cancel,
        limit: bounds.limit,
        progress: Some(&mut progress),
        expected_requests: None,
        direct: scenario.workload.trace.as_ref().is_some_and(TraceConfig::is_direct),
    };
    let measured = if let Some(trace) = &scenario.workload.trace {
        let replay = trace.replay();
        driver::replay(
            &mut stack,
            || trace.open_naming(&replay.classes),
            &replay,
            content,
            &mut watch,
            options,
        )?
    } else {
        let jobs = build_jobs(&scenario.workload, scenario.seed, stack.capacity_sectors())?;
        driver::run_jobs(&mut stack, jobs, content, &mut watch, options)?
    };
    let took = clocks.stop();
    stack.check();
    let counts = Counts::of(stack.drive()).since(&watch.before);
    let device = stack.drive();
    let left = Left {
        geometry: *device.zoned().geometry(),
        is_cached: scenario.host.page_cache.is_some(),
        wear: wear(device.zoned().wear()),
        fingerprint: device.fingerprint(),
        memory_bytes: device.conventional().memory_bytes() + device.zoned().memory_bytes(),
        mapping_units: device.mapping_units(),
    };
    let mut record = recorded::begin(scenario, left, &measured, Vec::new());
    let device = stack.drive();
    record.zoned_block = Some(Record {
        chunk_blocks: device.zone_blocks().into(),
        block_bytes: unit_bytes(device),
        chunks: device.chunks().collect(),
        random_zones: device.random_zones().collect(),
        ..layer_record(&counts, unit_bytes(device))
    });
    record.sim.checked = true;
    took.fill(&measured, &mut record);
    let (slowest, timeline) = ([None; 3], None);
    Ok(Outcome { record, interrupted: measured.interrupted, slowest, timeline })
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
