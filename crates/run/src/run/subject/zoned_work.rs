//! The host's work on a zoned drive in a run.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use leyden_buffer::Region;
use leyden_config::{Scenario, TraceConfig, TraceSource};
use leyden_device::{Op, Payload, SECTOR_BYTES, ZnsSsd, ZoneAction, ZoneState};
use leyden_record::{Store, Tenant};
use leyden_sim::Time;
use leyden_workload::zoned::{
    Ask, FileTrace, Host, LOG, Lsm, LsmFigures, Recorded, Streams, ZoneLayout, ZoneLeft, rocksdb,
};
use leyden_workload::{Class, Request};

use super::RunError;
use crate::driver::{
    self, Content, DriveError, Measured, OnZones, Options, Replay, Watch, ZoneProtection,
};

/// The host's work on a zoned drive.
pub(super) enum Work<'s> {
    Streams(Streams),
    Lsm(Box<Lsm>),
    Recorded(Box<Recorded>),
    Trace(&'s TraceConfig),
}

impl<'s> Work<'s> {
    /// The work of a run that begins at `start`; what is random in it comes from `seed`.
    pub(super) fn new(
        scenario: &'s Scenario,
        layout: ZoneLayout,
        start: Time,
        seed: u64,
    ) -> Result<Self, RunError> {
        let config = &scenario.workload;
        if let Some(recorded) = &config.recorded {
            let wrong = |error: String| RunError::config("workload.recorded.path", error);
            let source = TraceSource::called(Path::new(&recorded.path));
            let named = |error: String| wrong(format!("{}: {error}", recorded.path));
            let bytes = source.bytes().map_err(|error| named(error.to_string()))?;
            let trace = FileTrace::read(&bytes[..]).map_err(|error| named(error.to_string()))?;
            if recorded.skip >= trace.puts() {
                let problem =
                    format!("{} puts or more: the recording has {}", recorded.skip, trace.puts());
                return Err(RunError::config("workload.recorded.skip", problem));
            }
            let has_region = scenario.device.buffer.region != Region::None;
            let store = Recorded::new(recorded, Arc::new(trace), layout, has_region, start);
            return Ok(Self::Recorded(Box::new(store)));
        }
        if let Some(lsm) = &config.lsm {
            lsm.check(&layout).map_err(|error| error.within("workload.lsm"))?;
            return Ok(Self::Lsm(Box::new(Lsm::new(lsm, layout, start, seed))));
        }
        if let Some(trace) = &config.trace {
            return Ok(Self::Trace(trace));
        }
        if config.zone_job.is_empty() {
            let problem = "this drive has zones: add a [[workload.zone_job]], a [workload.lsm], a \
                           [workload.recorded], or a [workload.trace] of a zoned drive";
            return Err(RunError::config("workload", problem));
        }
        let mut left = layout.zones;
        for (number, job) in config.zone_job.iter().enumerate() {
            let place = format!("workload.zone_job.{number}");
            job.check(&layout, left).map_err(|error| error.within(&place))?;
            left -= job.zones;
        }
        Ok(Self::Streams(Streams::new(&config.zone_job, layout)))
    }

    /// A warning if a recording was not replayed to its end.
    pub(super) fn left(&self) -> Option<String> {
        let Self::Recorded(recorded) = self else { return None };
        let left = recorded.left();
        (left > 0).then(|| {
            format!(
                "{left} puts of the recording were not made: the drive has no zone free, or its power was cut; give \
                 it more zones, or fewer workload.recorded.puts"
            )
        })
    }

    /// Does it on `drive`, which offers `protection`.
    pub(super) fn run<P: Payload>(
        &mut self,
        drive: &mut ZnsSsd<P>,
        protection: ZoneProtection,
        content: &mut dyn Content<P>,
        watch: &mut dyn Watch<P, ZnsSsd<P>>,
        options: Options<'_>,
    ) -> Result<Measured, DriveError> {
        let host: &mut dyn Host = match self {
            Self::Streams(streams) => streams,
            Self::Lsm(lsm) => lsm.as_mut(),
            Self::Recorded(recorded) => recorded.as_mut(),
            Self::Trace(trace) => {
                let zone_sectors = layout(drive).size;
                let zones = Some(OnZones { zone_sectors, protection });
                let replay = Replay { zones, ..trace.replay() };
                return driver::replay(
                    drive,
                    || trace.open_naming(&replay.classes),
                    &replay,
                    content,
                    watch,
                    options,
                );
            }
        };
        driver::run_host(drive, host, protection, content, watch, options)
    }
}

/// The zones of `drive`, in sectors.
pub(super) fn layout<P: Payload>(drive: &ZnsSsd<P>) -> ZoneLayout {
    let shape = drive.zone_shape();
    let block = u64::from(drive.geometry().unit_bytes()) / SECTOR_BYTES;
    ZoneLayout {
        zones: shape.zones,
        size: u64::from(shape.size) * block,
        capacity: u64::from(shape.capacity) * block,
        block,
        area: u64::from(shape.zrwa_size) * block,
        area_step: u64::from(shape.zrwa_granularity) * block,
    }
}

/// A host that resets every zone that is not empty: the state that work on zones begins with.
pub(super) struct ResetAll {
    /// First sectors.
    zones: VecDeque<leyden_device::Lba>,
    in_flight: u32,
}

/// Resets under way at once.
const RESETS: u32 = 16;

impl ResetAll {
    pub(super) fn of<P: Payload>(drive: &ZnsSsd<P>) -> Self {
        let is_left =
            |state| !matches!(state, ZoneState::Empty | ZoneState::ReadOnly | ZoneState::Offline);
        let zones = drive.all_zones().into_iter().filter(|zone| is_left(zone.state));
        Self { zones: zones.map(|zone| zone.start).collect(), in_flight: 0 }
    }
}

impl Host for ResetAll {
    fn next(&mut self, _: Time) -> Ask {
        match (self.in_flight, self.zones.front()) {
            (0, None) => Ask::End,
            (RESETS, _) | (_, None) => Ask::Wait,
            (_, Some(&lba)) => {
                self.zones.pop_front();
                self.in_flight += 1;
                let op = Op::Zone(ZoneAction::Reset);
                let request =
                    Request { at: Time::ZERO, op, lba, sectors: 0, fua: false, class: Class::Data };
                Ask::Submit { request, owner: 0 }
            }
        }
    }

    fn completed(&mut self, _: u32, _: Time) {
        self.in_flight -= 1;
    }

    fn recovered(&mut self, _: Time, _: &[ZoneLeft]) {}

    fn fraction(&self) -> f64 {
        0.0
    }

    fn tenants(&self) -> Vec<String> {
        Vec::new()
    }

    fn tenant(&self, _: u32) -> u8 {
        0
    }
}

/// Statistics of the key-value store, if there is one.
pub(super) fn store(start: Time, now: Time, work: &Work<'_>, tenants: &[Tenant]) -> Option<Store> {
    let (figures, elapsed): (LsmFigures, _) = match work {
        Work::Streams(_) | Work::Trace(_) => return None,
        Work::Lsm(lsm) => (lsm.figures(start, now), now.since(start)),
        Work::Recorded(recorded) => recorded.figures(now),
    };
    let elapsed = elapsed.as_secs_f64();
    let log = tenants.iter().find(|tenant| tenant.name == LOG);
    let puts_per_s = if elapsed > 0.0 { figures.puts as f64 / elapsed } else { 0.0 };
    Some(Store {
        puts: figures.puts,
        puts_per_s,
        mib_per_s: puts_per_s * rocksdb::PAIR as f64 / 1_048_576.0,
        flushed: figures.flushed,
        compacted: figures.compacted,
        stalled_s: figures.stalled.as_secs_f64(),
        delayed_s: figures.delayed.as_secs_f64(),
        log_append_p99_us: log.map_or(0.0, |log| log.write_latency_us.p99),
        exposed_bytes_mean: figures.exposed_mean,
        exposed_bytes_peak: figures.exposed_peak,
        lost_puts: figures.lost_puts,
        lost_table_bytes: figures.lost_table_bytes,
    })
}
