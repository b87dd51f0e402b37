//! How large the cache is, and when it writes out.

use leyden_sim::{Bytes, ConfigError, Ratio, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A write-back cache with Linux's flusher. The defaults are Linux's, which are those of the paper
/// (Zombie Chasing, table 2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PageCacheConfig {
    /// Memory for cached data. Linux's ratios are of the memory that may become dirty (free, and in
    /// the page cache), which is this.
    pub size: Bytes,
    /// How often the flusher looks for old data (`vm.dirty_writeback_centisecs`). 0 s: never.
    pub writeback_interval: Span,
    /// How old it must be (`vm.dirty_expire_centisecs`).
    pub expire: Span,
    /// Share of the cache that may be dirty before the flusher writes out, at any age (`vm.dirty_background_ratio`).
    pub background_ratio: Ratio,
    /// Share of the cache that may be dirty or being written out before writers have to wait
    /// (`vm.dirty_ratio`).
    pub dirty_ratio: Ratio,
    /// Most write commands in flight (`nr_requests` of the block layer's queue).
    pub writeback_depth: u32,
    /// Time that it takes software to read or write one cached page.
    pub page_io: Span,
}

impl Default for PageCacheConfig {
    fn default() -> Self {
        Self {
            // The paper's main configuration (section 5.2.2).
            size: Bytes::new(4 << 30),
            writeback_interval: Span::from_ms(5_000),
            expire: Span::from_ms(30_000),
            background_ratio: Ratio::from_percent(10),
            dirty_ratio: Ratio::from_percent(20),
            writeback_depth: 128,
            // A system call for a page copied at some 5 GB/s.
            page_io: Span::from_us(1),
        }
    }
}

/// The fewest pages that a cache may have.
const FEWEST_PAGES: u64 = 16;

/// The configuration's limits, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// Pages of the cache.
    pub(super) pages: u32,
    /// At more dirty ones than this the flusher writes out.
    pub(super) background: u32,
    /// At more than this many dirty or being written, writers wait.
    pub(super) dirty: u32,
}

impl PageCacheConfig {
    /// Checks every value, for a drive of `drive_pages` mapping units of `unit_bytes`.
    pub fn check(&self, unit_bytes: u32, drive_pages: u64) -> Result<(), ConfigError> {
        self.limits(unit_bytes, drive_pages).map(|_| ())
    }

    /// Checks every value, for a drive of `drive_pages` pages of `page_bytes`.
    pub(super) fn limits(&self, page_bytes: u32, drive_pages: u64) -> Result<Limits, ConfigError> {
        let refuse = |key: &str, problem: String| Err(ConfigError::new(key, problem));
        let page_bytes = u64::from(page_bytes);
        let pages = self.size.get() / page_bytes;
        if pages < FEWEST_PAGES {
            let least = Bytes::new(FEWEST_PAGES * page_bytes);
            return refuse("size", format!("{} is less than {least}, 16 pages", self.size));
        }
        if pages > drive_pages {
            let drive = Bytes::new(drive_pages * page_bytes);
            return refuse("size", format!("{} is more than the drive has, {drive}", self.size));
        }
        let ratios =
            [("background_ratio", self.background_ratio), ("dirty_ratio", self.dirty_ratio)];
        for (key, ratio) in ratios {
            if ratio == Ratio::ZERO || ratio > Ratio::ONE {
                return refuse(key, format!("{ratio} is not above 0 % and up to 100 %"));
            }
        }
        if self.background_ratio >= self.dirty_ratio {
            let (background, dirty) = (self.background_ratio, self.dirty_ratio);
            let problem = format!(
                "{background} is not less than dirty_ratio, {dirty}: writers would wait before the \
                 flusher has begun"
            );
            return refuse("background_ratio", problem);
        }
        if !(1..=65_536).contains(&self.writeback_depth) {
            let problem = format!("{} is not in 1..=65536", self.writeback_depth);
            return refuse("writeback_depth", problem);
        }
        let most = Span::from_ms(1_000);
        if self.page_io > most {
            return refuse("page_io", format!("{} is more than {most}", self.page_io));
        }
        // Of few pages, a share may be less than one.
        let background = self.background_ratio.of(pages).max(1) as u32;
        let dirty = (self.dirty_ratio.of(pages) as u32).max(background + 1);
        Ok(Limits { pages: pages as u32, background, dirty })
    }
}
