//! Looks at a stack while it is driven.
//!
//! **What lives here**: when the drive and the layers on it are looked at, and what is made of what they
//! count. **What doesn't**: the layers, which are `leyden-host`'s.

use leyden_device::{Payload, Ssd, Stats};
use leyden_host::{Layers, Powered};
use leyden_sim::{Counted, Span, Time};

use leyden_workload::Request;

use super::follow::Following;
use super::outage::Outages;
use crate::driver::{Measured, Outage, Watch};
use leyden_record as record;

/// The most moments at which zombies are counted; then every other is dropped, and the rest are twice
/// as far apart.
const MOST_LOOKS: usize = 2048;
/// How far they are apart at first.
const FIRST_INTERVAL: Span = Span::from_ms(1);

/// Amounts at a moment, in bytes.
#[derive(Clone, Copy)]
struct Look {
    zombies: u64,
    dirty: u64,
    being_written: u64,
}

/// Looks at all layers: at the drive for what power cuts would cost, and at regular times for how much
/// of what the host will overwrite the drive knows of.
pub(super) struct Watcher<'a> {
    pub(super) outages: Outages<'a>,
    /// Follows what goes on, if that is asked for.
    pub(super) following: Following,
    /// When zombies and dirty data are counted next; never, on a bare drive.
    next: Time,
    interval: Span,
    looks: Vec<Look>,
    /// The layers' counters when the measurement began.
    before: Layers,
    unit_bytes: u64,
}

impl<'a> Watcher<'a> {
    pub(super) fn new<P: Payload>(
        stack: &impl Powered<P, Drive = Ssd<P>>,
        outages: Outages<'a>,
        following: Following,
    ) -> Self {
        let drive = stack.drive();
        let before = stack.layers();
        Self {
            outages,
            following,
            next: if before.hints.is_some() { drive.now() + FIRST_INTERVAL } else { Time::MAX },
            interval: FIRST_INTERVAL,
            looks: Vec::new(),
            before,
            unit_bytes: u64::from(drive.geometry().unit_bytes()),
        }
    }

    fn count_zombies<P: Payload>(&mut self, stack: &impl Powered<P, Drive = Ssd<P>>) {
        let layers = stack.layers();
        self.looks.push(Look {
            zombies: stack.drive().expected_units() * self.unit_bytes,
            dirty: layers.dirty_units * self.unit_bytes,
            being_written: layers.writeback_units * self.unit_bytes,
        });
        if self.looks.len() == MOST_LOOKS {
            let mut keep = false;
            self.looks.retain(|_| {
                keep = !keep;
                keep
            });
            self.interval = self.interval.saturating_mul(2);
        }
        self.next += self.interval;
    }

    fn mean(&self, of: impl Fn(&Look) -> u64) -> f64 {
        let sum: f64 = self.looks.iter().map(|look| of(look) as f64).sum();
        sum / self.looks.len().max(1) as f64
    }

    /// The outcome of hints, as a record says it.
    pub(super) fn hints<P: Payload>(
        &self,
        stack: &impl Powered<P, Drive = Ssd<P>>,
        measured: &Measured,
        channel: &str,
    ) -> Option<record::Hints> {
        if channel == OFF {
            return None;
        }
        let layers = stack.layers();
        let sent = layers.hints?.since(&self.before.hints?);
        let drive = measured.grown();
        let (heard, ftl) = (&drive.ssd.hints, &drive.ftl);
        let (zombies, live) = (ftl.overwritten_zombie_units, ftl.overwritten_live_units);
        let zombie_bytes_mean = self.mean(|look| look.zombies);
        let of_dirty =
            |_| zombie_bytes_mean / self.mean(|look| look.dirty + look.being_written).max(1.0);
        Some(record::Hints {
            channel: channel.to_owned(),
            announced: sent.announced_units,
            false_announced: sent.false_units,
            sent: sent.sent_units,
            sent_hints: sent.sent,
            commands: sent.commands,
            withdrawn: sent.withdrawn_units,
            repeated: sent.repeated_units,
            dropped: sent.dropped_units,
            missing: sent.missing_units,
            beyond_end: sent.beyond_end_units,
            waiting_peak: sent.waiting_peak.get(),
            heard_units: heard.units + heard.repeated_units + heard.empty_units,
            repeated_units: heard.repeated_units,
            empty_units: heard.empty_units,
            overwritten_zombie_units: zombies,
            overwritten_live_units: live,
            zombie_bytes_mean,
            known_dirty_share: layers.cache.map(of_dirty),
            known_overwrite_share: (zombies + live > 0)
                .then(|| zombies as f64 / (zombies + live) as f64),
        })
    }

    /// Statistics of the page cache, as a record has them.
    pub(super) fn cache<P: Payload>(
        &self,
        stack: &impl Powered<P, Drive = Ssd<P>>,
    ) -> Option<record::Cache> {
        let layers = stack.layers();
        let cache = layers.cache?.since(&self.before.cache?);
        Some(record::Cache {
            hits: cache.hits,
            misses: cache.misses,
            hit_ratio: cache.hits as f64 / (cache.hits + cache.misses).max(1) as f64,
            dirtied: cache.dirtied_pages,
            rewritten: cache.rewritten_pages,
            partial_reads: cache.partial_reads,
            direct: cache.direct_requests,
            evictions: cache.evictions,
            writebacks: cache.writebacks,
            written_back: cache.written_back_pages,
            discarded: cache.discarded_pages,
            failed: cache.failed_pages,
            laps: cache.laps,
            throttled_writes: cache.throttled_writes,
            throttled_s: cache.throttled.as_ns() as f64 / 1e9,
            starved: cache.starved,
            dirty_bytes_mean: self.mean(|look| look.dirty),
            dirty_bytes_peak: cache.dirty_peak.get() * self.unit_bytes,
            dirty_bytes_left: layers.dirty_units * self.unit_bytes,
        })
    }
}

/// The name of a way that leads nowhere.
pub(super) const OFF: &str = "off";

impl<P: Payload, S: Powered<P, Drive = Ssd<P>>> Watch<P, S> for Watcher<'_> {
    fn stats(&self, stack: &S) -> Stats {
        stack.drive().stats()
    }

    fn begin(&mut self, stack: &S) {
        self.before = stack.layers();
        self.looks.clear();
    }

    fn next_moment(&self) -> Time {
        self.outages.next_moment().min(self.next).min(self.following.next_moment())
    }

    fn look(&mut self, now: Time, stack: &S) {
        if now >= self.outages.next_moment() {
            self.outages.look(stack.drive());
        }
        if now >= self.next {
            self.count_zombies(stack);
        }
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

    fn next_cut(&self) -> Time {
        self.outages.next_cut()
    }

    fn cut(&mut self, now: Time, stack: &mut S, outstanding: u64) -> Outage<P> {
        self.outages.cut(now, stack, outstanding, |drive| (drive.whole(), Vec::new()))
    }

    fn take_unwritten(&mut self, stack: &mut S) -> Vec<u32> {
        stack.take_lost_units()
    }

    fn found_lost(&mut self, units: u64) {
        self.outages.found_lost(units);
    }
}
