//! Refuses jobs that make no sense, naming the key and the remedy.

use leyden_device::SECTOR_BYTES;
use leyden_sim::{Bytes, ConfigError, Ratio};

use super::place::{EmptyPart, zones_of};
use super::{BlockSize, Distribution, JobConfig, Pattern, SelfSimilar, Zipf};

/// The most requests a job may keep outstanding.
const OUTSTANDING_MAX: u64 = 1 << 20;

fn refuse<T>(key: impl Into<String>, problem: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError::new(key, problem))
}

/// The part of the device that a job uses.
#[derive(Clone, Debug)]
pub(super) struct Region {
    pub(super) first_sector: u64,
    pub(super) sectors: u64,
    pub(super) align_sectors: u64,
}

/// A job that makes sense.
pub(super) struct Checked {
    /// With ready-made mixes filled in.
    pub(super) config: JobConfig,
    pub(super) region: Region,
    /// Places at which even the largest request fits.
    pub(super) places: u64,
    /// Sectors of each thread's part of the region, a multiple of the alignment but for a single
    /// thread's.
    pub(super) part_sectors: u64,
}

impl Checked {
    pub(super) fn new(config: &JobConfig, capacity_sectors: u64) -> Result<Self, ConfigError> {
        check_pattern(config)?;
        let config = match config.pattern {
            Pattern::Jesd219 => config.with_jesd219(),
            Pattern::Sequential | Pattern::Random | Pattern::Shuffled | Pattern::ShuffledSame => {
                config.clone()
            }
        };
        check_shares(&config)?;
        check_pacing(&config)?;
        check_limits(&config)?;
        check_distribution("distribution", &config.distribution)?;
        if let Some(reads) = &config.read_distribution {
            check_distribution("read_distribution", reads)?;
        }
        let (smallest, largest) = check_sizes(&config.block_size)?;
        let region = region(&config, smallest, capacity_sectors)?;
        let largest_sectors = largest.get() / SECTOR_BYTES;
        if largest_sectors > region.sectors {
            return refuse(
                "block_size",
                format!(
                    "{largest} does not fit into the job's region of {}; use a smaller size or a \
                     larger `span`",
                    Bytes::new(region.sectors * SECTOR_BYTES)
                ),
            );
        }
        let part_sectors = part_sectors(&config, &region)?;
        Ok(Self {
            places: (region.sectors - largest_sectors) / region.align_sectors + 1,
            part_sectors,
            config,
            region,
        })
    }

    /// A part of a zoned distribution that has no place in so small a region.
    pub(super) fn too_small(
        &self,
        distribution: &Distribution,
        key: &str,
        empty: &EmptyPart,
    ) -> ConfigError {
        let space = zones_of(distribution)[empty.index].space;
        ConfigError::new(
            key,
            format!(
                "{space} of the job's region, which has {} places for requests, is no place at \
                 all; use a larger share, a larger `span` or a smaller `align`",
                self.places
            ),
        )
    }
}

fn check_pattern(config: &JobConfig) -> Result<(), ConfigError> {
    let default = JobConfig::default();
    let places = [
        ("distribution", config.distribution != default.distribution),
        ("read_distribution", config.read_distribution.is_some()),
    ];
    let mix = [
        ("read_share", config.read_share != default.read_share),
        ("trim_share", config.trim_share != default.trim_share),
        ("block_size", config.block_size != default.block_size),
        ("align", config.align.is_some()),
    ];
    let (pattern, conflicts) = match config.pattern {
        Pattern::Random => return Ok(()),
        Pattern::Sequential => ("sequential", places.to_vec()),
        Pattern::Shuffled | Pattern::ShuffledSame => {
            let name =
                if config.pattern == Pattern::Shuffled { "shuffled" } else { "shuffled_same" };
            if config.block_size.sizes().len() > 1 {
                let problem = format!(
                    "`pattern = \"{name}\"` takes every block once, so that all are of one size; give one"
                );
                return refuse("block_size", problem);
            }
            (name, [&places[..], &[("align", config.align.is_some())]].concat())
        }
        Pattern::Jesd219 => ("jesd219", [&places[..], &mix[..]].concat()),
    };
    match conflicts.iter().find(|(_, given)| *given) {
        Some((key, _)) => refuse(
            *key,
            format!(
                "has no meaning with `pattern = \"{pattern}\"`; remove it, or use `pattern = \"random\"`"
            ),
        ),
        None => Ok(()),
    }
}

fn check_shares(config: &JobConfig) -> Result<(), ConfigError> {
    for (key, share) in [
        ("read_share", config.read_share),
        ("trim_share", config.trim_share),
        ("fua_share", config.fua_share),
    ] {
        share_at_most_one(key, share)?;
    }
    if config.read_share.as_ppm() + config.trim_share.as_ppm() > Ratio::ONE.as_ppm() {
        return refuse(
            "trim_share",
            format!(
                "{} trims and {} reads are more than all requests; lower one of them",
                config.trim_share, config.read_share
            ),
        );
    }
    Ok(())
}

fn share_at_most_one(key: impl Into<String>, share: Ratio) -> Result<(), ConfigError> {
    if share > Ratio::ONE {
        return refuse(
            key,
            format!(
                "{share} is more than all; use at most 100 % (a bare number is a fraction: 0.7 is 70 %)"
            ),
        );
    }
    Ok(())
}

fn check_pacing(config: &JobConfig) -> Result<(), ConfigError> {
    for (key, count) in [
        ("threads", u64::from(config.threads)),
        ("queue_depth", u64::from(config.queue_depth)),
        ("think_every", config.think_every),
        ("iops_limit", config.iops_limit.unwrap_or(1)),
    ] {
        if count == 0 {
            return refuse(key, "0 would never ask for anything; use at least 1");
        }
    }
    if config.rate_limit.is_some_and(|rate| rate.get() == 0) {
        return refuse("rate_limit", "0 B/s would never ask for anything; remove it or raise it");
    }
    let outstanding = u64::from(config.threads) * u64::from(config.queue_depth);
    if outstanding > OUTSTANDING_MAX {
        return refuse(
            "queue_depth",
            format!(
                "{} threads with {} requests each are {outstanding} at once; at most \
                 {OUTSTANDING_MAX} are possible",
                config.threads, config.queue_depth
            ),
        );
    }
    Ok(())
}

fn check_limits(config: &JobConfig) -> Result<(), ConfigError> {
    let limits = [
        ("requests", config.requests),
        ("bytes", config.bytes.map(Bytes::get)),
        ("time", config.time.map(leyden_sim::Span::as_ns)),
    ];
    if limits.iter().all(|(_, limit)| limit.is_none()) {
        return refuse(
            "time",
            "the job would never end; give at least one of `time`, `requests` and `bytes`",
        );
    }
    match limits.iter().find(|(_, limit)| *limit == Some(0)) {
        Some((key, _)) => {
            refuse(*key, "0 ends the job before its first request; raise it, or remove the job")
        }
        None => Ok(()),
    }
}

fn check_distribution(key: &str, distribution: &Distribution) -> Result<(), ConfigError> {
    match distribution {
        Distribution::Uniform => Ok(()),
        Distribution::Zipf(Zipf { theta, .. }) => {
            // Beyond 10, all but a thousandth of the requests go to one place.
            if theta.is_finite() && *theta > 0.0 && *theta <= 10.0 {
                return Ok(());
            }
            refuse(
                format!("{key}.zipf.theta"),
                format!("{theta} is no exponent; use one above 0 and up to 10, like 0.99"),
            )
        }
        Distribution::Pareto(law) => inner_share(format!("{key}.pareto.h"), law.h),
        Distribution::SelfSimilar(SelfSimilar { h, .. }) => {
            inner_share(format!("{key}.self_similar.h"), *h)?;
            if *h > Ratio::from_percent(50) {
                return refuse(
                    format!("{key}.self_similar.h"),
                    format!("{h} is more than 50 %, where the distribution is uniform; lower it"),
                );
            }
            Ok(())
        }
        Distribution::HotCold(law) => {
            inner_share(format!("{key}.hot_cold.hot_share_of_space"), law.hot_share_of_space)?;
            share_at_most_one(
                format!("{key}.hot_cold.hot_share_of_accesses"),
                law.hot_share_of_accesses,
            )
        }
        Distribution::Zones(law) => {
            let sum = |shares: &dyn Fn(&super::Zone) -> Ratio| -> u64 {
                law.zones.iter().map(|zone| shares(zone).as_ppm()).sum()
            };
            for (column, sum) in
                [("space", sum(&|zone| zone.space)), ("accesses", sum(&|zone| zone.accesses))]
            {
                if sum != Ratio::ONE.as_ppm() {
                    return refuse(
                        format!("{key}.zones.zones"),
                        format!(
                            "the zones' `{column}` sums to {}; it must be 100 %",
                            Ratio::from_ppm(sum)
                        ),
                    );
                }
            }
            Ok(())
        }
    }
}

fn inner_share(key: String, share: Ratio) -> Result<(), ConfigError> {
    if share == Ratio::ZERO || share >= Ratio::ONE {
        return refuse(
            key,
            format!(
                "{share} leaves one part of the space empty; use more than 0 % and less than 100 %"
            ),
        );
    }
    Ok(())
}

/// The smallest and the largest size.
fn check_sizes(block_size: &BlockSize) -> Result<(Bytes, Bytes), ConfigError> {
    let sizes = block_size.sizes();
    for size in sizes.iter() {
        whole_sectors("block_size", size.size)?;
        if u32::try_from(size.size.get() / SECTOR_BYTES).is_err() {
            return refuse("block_size", format!("{} is too large for a command", size.size));
        }
        if size.weight == 0 {
            return refuse(
                "block_size",
                format!("{} has the weight 0; give it a weight or remove it", size.size),
            );
        }
    }
    let smallest = sizes.iter().map(|size| size.size).min();
    let largest = sizes.iter().map(|size| size.size).max();
    smallest
        .zip(largest)
        .ok_or_else(|| ConfigError::new("block_size", "the list is empty; give at least one size"))
}

fn whole_sectors(key: &str, size: Bytes) -> Result<(), ConfigError> {
    if size.get() == 0 || !size.get().is_multiple_of(SECTOR_BYTES) {
        return refuse(
            key,
            format!("{size} is not a whole number of sectors; use a multiple of {SECTOR_BYTES} B"),
        );
    }
    Ok(())
}

fn region(config: &JobConfig, smallest: Bytes, capacity: u64) -> Result<Region, ConfigError> {
    let capacity = Bytes::new(capacity * SECTOR_BYTES);
    let align = config.align.unwrap_or(smallest);
    whole_sectors("align", align)?;
    if config.offset != Bytes::new(0) {
        whole_sectors("offset", config.offset)?;
    }
    let left = capacity.get().saturating_sub(config.offset.get());
    if left == 0 {
        return refuse(
            "offset",
            format!("{} is beyond the device, which holds {capacity}; lower it", config.offset),
        );
    }
    let span = config.span.unwrap_or(Bytes::new(left));
    whole_sectors("span", span)?;
    if span.get() > left {
        return refuse(
            "span",
            format!(
                "{span} from {} end beyond the device, which holds {capacity}; use at most {}",
                config.offset,
                Bytes::new(left)
            ),
        );
    }
    Ok(Region {
        first_sector: config.offset.get() / SECTOR_BYTES,
        sectors: span.get() / SECTOR_BYTES,
        align_sectors: align.get() / SECTOR_BYTES,
    })
}

fn part_sectors(config: &JobConfig, region: &Region) -> Result<u64, ConfigError> {
    if config.threads == 1 {
        return Ok(region.sectors);
    }
    let part = region.sectors / u64::from(config.threads);
    let part = part - part % region.align_sectors;
    if part == 0 && config.pattern == Pattern::Sequential {
        return refuse(
            "threads",
            format!(
                "the region is too small to be divided among {} sequential threads; use fewer, or \
                 a larger `span`",
                config.threads
            ),
        );
    }
    Ok(part)
}
