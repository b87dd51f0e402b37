//! The host layers: for a share of the seeds a page cache with a hint channel, or a hint channel alone.
//!
//! **Invariants**: they are drawn from a stream of their own, so that the rest of a seed stays the same.

use leyden_device::MOST_RANGES;
use leyden_host::{Channel, HintChannelConfig, PageCacheConfig};
use leyden_sim::{Bytes, Ratio, Rng, Span};
use serde::{Deserialize, Serialize};

use super::chance::{coin, spread};

/// The host layers between commands and the drive.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// A cache that commands go through first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_cache: Option<PageCacheConfig>,
    /// Share of the commands that change anything which fail on their way from the cache to the drive.
    #[serde(default)]
    pub failing_writes: Ratio,
    /// Share of the FLUSHes that are of a file, if there is a cache.
    #[serde(default)]
    pub file_flushes: Ratio,
    /// How hints get to the drive.
    pub hints: HintChannelConfig,
}

/// The fewest pages of a cache.
const FEWEST_PAGES: u64 = 16;

/// For a drive of `drive_pages` units of `unit_bytes`: in 4 of 16 cases a cache and a way for its hints,
/// in 1 the way alone.
pub(super) fn draw_host(rng: &mut Rng, drive_pages: u64, unit_bytes: u64) -> Option<Host> {
    let kind = rng.below(16);
    let pages = (FEWEST_PAGES - 1 + spread(rng, 256)).min(drive_pages);
    let page_cache = draw_page_cache(rng, Bytes::new(pages * unit_bytes));
    let mut hints = draw_hints(rng);
    // Few enough that some flushes still end well.
    let is_faulty = coin(rng);
    let failing_writes = Ratio::from_ppm(if is_faulty { 200 + spread(rng, 10_000) } else { 0 });
    draw_shape(rng, &mut hints);
    let file_flushes = draw_file_flushes(rng);
    match kind {
        0..4 if pages >= FEWEST_PAGES => {
            Some(Host { page_cache: Some(page_cache), failing_writes, file_flushes, hints })
        }
        0..5 => {
            let (failing_writes, file_flushes) = (Ratio::ZERO, Ratio::ZERO);
            Some(Host { page_cache: None, failing_writes, file_flushes, hints })
        }
        _ => None,
    }
}

/// Half of the caches hear of files.
fn draw_file_flushes(rng: &mut Rng) -> Ratio {
    let ppm = 1 + rng.below(1_000_000);
    if coin(rng) { Ratio::from_ppm(ppm) } else { Ratio::ZERO }
}

/// Times short enough for the flusher to work within a run.
fn draw_page_cache(rng: &mut Rng, size: Bytes) -> PageCacheConfig {
    let background = 1 + rng.below(60);
    PageCacheConfig {
        size,
        writeback_interval: if rng.below(8) > 0 {
            Span::from_us(100 * spread(rng, 2_500))
        } else {
            Span::ZERO
        },
        expire: Span::from_ns(spread(rng, 1 << 27)),
        background_ratio: Ratio::from_percent(background),
        dirty_ratio: Ratio::from_percent(background + 1 + rng.below(100 - background)),
        writeback_depth: spread(rng, 128) as u32,
        page_io: Span::from_ns(spread(rng, 10_000) - 1),
    }
}

/// A queue so short that hints are dropped, and every kind of error.
fn draw_hints(rng: &mut Rng) -> HintChannelConfig {
    let channels = [Channel::Off, Channel::Piggyback, Channel::Command];
    let mut rare = |most: u64| if rng.below(4) == 0 { spread(rng, most) } else { 0 };
    let late = Span::from_ns(rare(1 << 22));
    let (missing, false_share) = (rare(1_000_000), rare(1_000_000));
    HintChannelConfig {
        channel: channels[rng.below(3) as usize],
        batch: if coin(rng) { MOST_RANGES as u32 } else { spread(rng, 32) as u32 },
        max_delay: Span::from_ns(spread(rng, 1 << 24)),
        queue: spread(rng, 512) as u32,
        late,
        missing: Ratio::from_ppm(missing),
        false_share: Ratio::from_ppm(false_share),
        ..HintChannelConfig::default()
    }
}

/// In a quarter of the cases hints shorter than they could be, or neighbours apart. Drawn last: what a seed
/// drew before these keys were there stays.
fn draw_shape(rng: &mut Rng, hints: &mut HintChannelConfig) {
    if rng.below(4) == 0 {
        hints.max_sectors = 7 + spread(rng, u64::from(hints.max_sectors) - 7) as u32;
        hints.merge = coin(rng);
    }
}
