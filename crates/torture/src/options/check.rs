//! Bounds on options from outside: a seed file may be written by hand, or damaged.
//!
//! **What lives here**: bounds far beyond anything that is drawn, within which a run ends, fits in memory, and
//! asks of the drive what a host may ask. **What doesn't**: whether there can be such a drive, which the
//! drive says itself.

use leyden_device::{Region, SECTOR_BYTES};
use leyden_sim::{Ratio, Span};

use super::{Cut, Host, Options, Round, Verify, Work};

/// Mapping units of flash, at most.
const MOST_UNITS: u32 = 1 << 22;
/// Commands of a run, at most: a command's number is its 32-bit tag.
const MOST_COMMANDS: u64 = 1 << 24;
/// Commands under way, and units of a command, at most.
const MOST_AT_ONCE: u32 = 1 << 16;
/// Any time, at most.
const LONGEST: Span = Span::from_ms(3_600_000);
/// Thousandths: the mix's whole.
const WHOLE: u32 = 1_000;

impl Options {
    /// Checks what a run relies on.
    pub(crate) fn check(&self) -> Result<(), String> {
        let geometry = self.device.nand.geometry(self.device.ftl.mapping_unit);
        if let Ok(geometry) = &geometry
            && geometry.units() > MOST_UNITS
        {
            return Err(format!(
                "its drive has {} mapping units, and more than {MOST_UNITS} are not tortured",
                geometry.units()
            ));
        }
        if let Some(host) = &self.host {
            host.check(self.device.ftl.mapping_unit.get(), geometry.map_or(0, |it| it.units()))?;
        }
        self.work.check()?;
        if self.work.plp > Ratio::ZERO && self.device.buffer.region != Region::Selective {
            return Err("its plp is for drives whose buffer.region is selective".to_owned());
        }
        let commands: u64 = self.rounds.iter().map(|round| u64::from(round.commands)).sum();
        if commands > MOST_COMMANDS {
            return Err(format!("it has {commands} commands, and at most {MOST_COMMANDS} are run"));
        }
        self.rounds.iter().try_for_each(Round::check)
    }
}

impl Host {
    /// `flash_units`, of `unit_bytes`, are more than the drive has.
    fn check(&self, unit_bytes: u64, flash_units: u32) -> Result<(), String> {
        let hints = &self.hints;
        hints.check().map_err(|error| format!("its host.hints.{error}"))?;
        if hints.queue > MOST_AT_ONCE {
            let queue = hints.queue;
            return Err(format!("its host.hints.queue of {queue} is above {MOST_AT_ONCE}"));
        }
        let mut spans = vec![hints.late, hints.max_delay];
        if let Some(cache) = &self.page_cache {
            let unit_bytes = u32::try_from(unit_bytes).unwrap_or(0).max(SECTOR_BYTES as u32);
            let checked = cache.check(unit_bytes, flash_units.into());
            checked.map_err(|error| format!("its host.page_cache.{error}"))?;
            spans.extend([cache.writeback_interval, cache.expire, cache.page_io]);
        }
        match spans.into_iter().find(|&span| span > LONGEST) {
            Some(span) => Err(format!("its host waits {span}, and {LONGEST} is the most")),
            None => Ok(()),
        }
    }
}

impl Work {
    fn check(&self) -> Result<(), String> {
        for (name, number) in [
            ("queue_depth", self.queue_depth),
            ("largest_units", self.largest_units),
            ("tenants", self.tenants),
        ] {
            if !(1..=MOST_AT_ONCE).contains(&number) {
                return Err(format!("its {name} of {number} is not in 1..={MOST_AT_ONCE}"));
            }
        }
        for (name, share) in [("fill", self.fill), ("hot_part", self.hot_part)] {
            if share > Ratio::ONE {
                return Err(format!("its {name} of {share} is more than all"));
            }
        }
        let mix = &self.mix;
        let weights = [mix.reads, mix.trims, mix.write_zeroes, mix.flushes];
        match weights.into_iter().find(|&weight| weight > WHOLE) {
            Some(weight) => Err(format!("the weight {weight} in its mix is above {WHOLE}")),
            None => Ok(()),
        }
    }
}

impl Round {
    fn check(&self) -> Result<(), String> {
        let number = self.number;
        if let Some((first, last)) = self.skip.iter().find(|(first, last)| first > last) {
            return Err(format!("round {number} leaves out commands {first} to {last}"));
        }
        let after = match self.cut {
            Cut::After(span) | Cut::AfterFlush(span) | Cut::Idle(span) => span,
            Cut::AtEvent { .. }
            | Cut::AtTablePage { .. }
            | Cut::AtStage { .. }
            | Cut::AtCopy { .. }
            | Cut::AfterTrims { .. }
            | Cut::AfterFailure { .. }
            | Cut::Never => Span::ZERO,
        };
        if let Some(span) = [self.off, after].into_iter().find(|&span| span > LONGEST) {
            return Err(format!("round {number} waits {span}, and {LONGEST} is the most"));
        }
        if self.off == Span::ZERO && self.cut != Cut::Never {
            return Err(format!("the power is never off in round {number}, and 1 ns is the least"));
        }
        if let Some(share) = self.again.iter().find(|&&share| share > Ratio::ONE) {
            return Err(format!("round {number} cuts at {share} of a recovery"));
        }
        match self.verify {
            Verify::Some(count) if u64::from(count) > MOST_COMMANDS => {
                Err(format!("round {number} looks at {count} places"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use leyden_host::{HintChannelConfig, PageCacheConfig};
    use leyden_sim::Bytes;

    use super::*;

    /// The complaint about options that were drawn, and then changed.
    fn refused(change: fn(&mut Options)) -> String {
        let mut options = Options::draw(1);
        options.check().unwrap();
        change(&mut options);
        options.check().unwrap_err()
    }

    #[test]
    fn what_no_run_could_be_is_named() {
        let message = refused(|options| options.device.nand.blocks_per_plane = 1 << 19);
        assert!(message.contains("more than 4194304 are not tortured"), "{message}");
        let message = refused(|options| options.work.queue_depth = 0);
        assert_eq!(message, "its queue_depth of 0 is not in 1..=65536");
        let message = refused(|options| options.work.largest_units = 0);
        assert_eq!(message, "its largest_units of 0 is not in 1..=65536");
        let message = refused(|options| options.work.fill = Ratio::from_percent(101));
        assert_eq!(message, "its fill of 101 % is more than all");
        let message = refused(|options| {
            (options.device.buffer.region, options.work.plp) = (Region::Full, Ratio::ONE);
        });
        assert_eq!(message, "its plp is for drives whose buffer.region is selective");
        let message = refused(|options| options.work.mix.flushes = u32::MAX);
        assert!(message.contains("4294967295 in its mix is above 1000"), "{message}");
        let message = refused(|options| options.rounds[0].commands = u32::MAX);
        assert!(message.contains("at most 16777216 are run"), "{message}");
        let message = refused(|options| options.rounds[0].skip = vec![(5, 2)]);
        assert_eq!(message, "round 0 leaves out commands 5 to 2");
        let message = refused(|options| options.rounds[0].off = Span::from_ms(1 << 40));
        assert!(message.starts_with("round 0 waits "), "{message}");
        let message = refused(|options| options.rounds[0].off = Span::ZERO);
        assert_eq!(message, "the power is never off in round 0, and 1 ns is the least");
        let message = refused(|options| options.rounds[0].again = vec![Ratio::from_percent(200)]);
        assert_eq!(message, "round 0 cuts at 200 % of a recovery");
    }

    #[test]
    fn what_no_host_could_be_is_named() {
        fn host(options: &mut Options) -> &mut Host {
            let hints = HintChannelConfig::default();
            let size = Bytes::new(16 * options.device.ftl.mapping_unit.get());
            let page_cache = Some(PageCacheConfig { size, ..PageCacheConfig::default() });
            let (failing_writes, file_flushes) = (Ratio::ZERO, Ratio::ZERO);
            options.host.insert(Host { page_cache, failing_writes, file_flushes, hints })
        }
        fn cache(options: &mut Options) -> &mut PageCacheConfig {
            host(options).page_cache.as_mut().unwrap()
        }
        let mut options = Options::draw(1);
        host(&mut options);
        options.check().unwrap();
        let message = refused(|options| cache(options).dirty_ratio = Ratio::from_percent(5));
        assert!(message.starts_with("its host.page_cache.background_ratio: 10 % "), "{message}");
        let message = refused(|options| cache(options).size = Bytes::new(1 << 40));
        assert!(message.contains("is more than the drive has"), "{message}");
        let message = refused(|options| cache(options).expire = Span::from_ms(1 << 40));
        assert!(message.starts_with("its host waits "), "{message}");
        let message = refused(|options| host(options).hints.batch = 0);
        assert_eq!(message, "its host.hints.batch: 0 is not in 1..=256");
        let message = refused(|options| host(options).hints.queue = 1 << 20);
        assert_eq!(message, "its host.hints.queue of 1048576 is above 65536");
    }

    #[test]
    fn commands_that_are_left_out_beyond_the_end_count_for_nothing() {
        let mut options = Options::draw(1);
        let round = &mut options.rounds[0];
        round.commands = 10;
        round.skip = vec![(0, 1), (8, u32::MAX), (20, 30)];
        assert_eq!(round.kept(), 6);
        options.check().unwrap();
    }
}
