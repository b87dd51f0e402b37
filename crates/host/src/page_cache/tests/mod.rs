//! The page cache on a device whose every answer is known, and on a real drive.

mod content;
mod files;
mod order;
mod rules;
mod sectors;

use std::ops::{Deref, DerefMut};

use leyden_device::Stamp;
use leyden_sim::{Bytes, Ratio};

use super::*;
use crate::mock::{Mock, command};

/// Software on top of a cache: lets everything happen before it asks for something.
struct Cache {
    inner: PageCache<Stamp, Mock>,
    ended: Vec<Completion<Stamp>>,
}

impl Cache {
    fn submit(&mut self, now: Time, command: Command<Stamp>) {
        self.run_until(now);
        self.inner.submit(now, command);
    }

    fn run_until(&mut self, now: Time) {
        while let Some(event) = self.inner.next_event().filter(|&event| event <= now) {
            self.inner.advance(event, &mut self.ended);
        }
        self.inner.advance(now, &mut self.ended);
    }
}

impl Deref for Cache {
    type Target = PageCache<Stamp, Mock>;
    fn deref(&self) -> &Self::Target {
        &self.inner
    }
}

impl DerefMut for Cache {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.inner
    }
}

const DRIVE_UNITS: usize = 1_000;

/// 64 pages; the flusher begins above 16 dirty ones, writers wait above 32.
fn config() -> PageCacheConfig {
    PageCacheConfig {
        size: Bytes::new(64 * 4096),
        background_ratio: Ratio::from_percent(25),
        dirty_ratio: Ratio::from_percent(50),
        ..PageCacheConfig::default()
    }
}

fn cache_of(config: &PageCacheConfig) -> Cache {
    let mut mock = Mock::new(DRIVE_UNITS);
    mock.allows_overlaps = false;
    Cache { inner: PageCache::new(config, mock, 4096).unwrap(), ended: Vec::new() }
}

fn cache() -> Cache {
    cache_of(&config())
}

fn us(us: u64) -> Time {
    Time::from_ns(us * 1_000)
}

const SECOND: u64 = 1_000_000;

fn write(unit: u64, units: u32, stamp: u64) -> Command<Stamp> {
    Command::write(Lba(unit * 8), units * 8, stamp)
}

/// Lets everything happen up to `until_us`; returns what has ended since: microseconds, operation.
fn run(cache: &mut Cache, until_us: u64) -> Vec<(u64, Op)> {
    ends(cache, until_us).iter().map(|end| (end.time.as_ns() / 1_000, end.op)).collect()
}

fn ends(cache: &mut Cache, until_us: u64) -> Vec<Completion<Stamp>> {
    cache.run_until(us(until_us));
    std::mem::take(&mut cache.ended)
}

/// The commands that reached the device: microseconds, operation, first unit, units.
fn asked(cache: &Cache) -> Vec<(u64, Op, u64, u64)> {
    cache.device().log()
}
