//! Looks at a stack while it is driven.
//!
//! **What lives here**: when the drive and the layers on it are looked at, and what is made of what they
//! count. **What doesn't**: the layers, which are `leyden-host`'s.

use leyden_device::{Payload, Ssd, Stats};
use leyden_host::{HintChannelStats, Layers, PageCacheStats, Powered};
use leyden_sim::{Span, Time};

use super::outage::Outages;
use crate::driver::{Measured, Outage, Watch};
use crate::record;

/// The most moments at which zombies are counted; then every other is dropped, and the rest are twice
/// as far apart.
const MOST_LOOKS: usize = 2048;
/// How far they are apart at first.
const FIRST_INTERVAL: Span = Span::from_ms(1);

/// What was there at a moment, in bytes.
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
    /// When zombies and dirty data are counted next; never, on a bare drive.
    next: Time,
    interval: Span,
    looks: Vec<Look>,
    /// What the layers had counted when the measurement began.
    before: Layers,
    unit_bytes: u64,
}

impl<'a> Watcher<'a> {
    pub(super) fn new<P: Payload>(
        stack: &impl Powered<P, Drive = Ssd<P>>,
        outages: Outages<'a>,
    ) -> Self {
        let drive = stack.drive();
        let before = stack.layers();
        Self {
            outages,
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

    /// What came of hints, as a record says it.
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
        let (before, after) = (self.before.hints?, layers.hints?);
        let grown = |of: fn(&HintChannelStats) -> u64| of(&after) - of(&before);
        let drive = |of: fn(&leyden_device::HintStats) -> u64| {
            of(&measured.after.hints) - of(&measured.before.hints)
        };
        let zombies = drive(|hints| hints.overwritten_zombie_units);
        let live = drive(|hints| hints.overwritten_live_units);
        let known = if layers.cache.is_some() {
            self.mean(|look| look.zombies)
                / self.mean(|look| look.dirty + look.being_written).max(1.0)
        } else {
            zombies as f64 / (zombies + live).max(1) as f64
        };
        Some(record::Hints {
            channel: channel.to_owned(),
            announced: grown(|hints| hints.announced_units),
            false_announced: grown(|hints| hints.false_units),
            sent: grown(|hints| hints.sent_units),
            sent_hints: grown(|hints| hints.sent),
            commands: grown(|hints| hints.commands),
            withdrawn: grown(|hints| hints.withdrawn_units),
            repeated: grown(|hints| hints.repeated_units),
            dropped: grown(|hints| hints.dropped_units),
            missing: grown(|hints| hints.missing_units),
            beyond_end: grown(|hints| hints.beyond_end_units),
            waiting_peak: after.waiting_peak,
            heard_units: drive(|hints| hints.units + hints.repeated_units + hints.empty_units),
            repeated_units: drive(|hints| hints.repeated_units),
            empty_units: drive(|hints| hints.empty_units),
            overwritten_zombie_units: zombies,
            overwritten_live_units: live,
            zombie_bytes_mean: self.mean(|look| look.zombies),
            known_share: known,
        })
    }

    /// What the page cache did, as a record says it.
    pub(super) fn cache<P: Payload>(
        &self,
        stack: &impl Powered<P, Drive = Ssd<P>>,
    ) -> Option<record::Cache> {
        let (before, after) = (self.before.cache?, stack.layers().cache?);
        let grown = |of: fn(&PageCacheStats) -> u64| of(&after) - of(&before);
        let (hits, misses) = (grown(|cache| cache.hits), grown(|cache| cache.misses));
        Some(record::Cache {
            hits,
            misses,
            hit_ratio: hits as f64 / (hits + misses).max(1) as f64,
            dirtied: grown(|cache| cache.dirtied_pages),
            rewritten: grown(|cache| cache.rewritten_pages),
            partial_reads: grown(|cache| cache.partial_reads),
            evictions: grown(|cache| cache.evictions),
            writebacks: grown(|cache| cache.writebacks),
            written_back: grown(|cache| cache.written_back_pages),
            discarded: grown(|cache| cache.discarded_pages),
            failed: grown(|cache| cache.failed_pages),
            laps: grown(|cache| cache.laps),
            throttled_writes: grown(|cache| cache.throttled_writes),
            throttled_s: grown(|cache| cache.throttled.as_ns()) as f64 / 1e9,
            starved: grown(|cache| cache.starved),
            dirty_bytes_mean: self.mean(|look| look.dirty),
            dirty_bytes_peak: after.dirty_peak * self.unit_bytes,
            dirty_bytes_left: stack.layers().dirty_units * self.unit_bytes,
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
        self.outages.next_moment().min(self.next)
    }

    fn look(&mut self, now: Time, stack: &S) {
        if now >= self.outages.next_moment() {
            self.outages.look(stack.drive());
        }
        if now >= self.next {
            self.count_zombies(stack);
        }
    }

    fn next_cut(&self) -> Time {
        self.outages.next_cut()
    }

    fn cut(&mut self, now: Time, stack: &mut S, outstanding: u64) -> Outage<P> {
        self.outages.cut(now, stack, outstanding)
    }

    fn take_unwritten(&mut self, stack: &mut S) -> Vec<u32> {
        stack.take_lost_units()
    }

    fn found_lost(&mut self, units: u64) {
        self.outages.found_lost(units);
    }
}
