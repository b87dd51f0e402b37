//! Streams of writes that go round their job's zones.

use std::collections::VecDeque;

use leyden_device::{Lba, Op, SECTOR_BYTES, ZoneAction, ZoneState};
use leyden_sim::Time;

use super::{Ask, Host, ZoneJobConfig, ZoneLayout, ZoneLeft, ZonePattern};
use crate::{Class, Request};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The zone is to be reset.
    Resetting,
    /// A zone is being written.
    Writing,
    /// Waits for what is under way, to go on with the phase after.
    Draining(After),
    /// Zones have failed, and none is left for it.
    Over,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum After {
    Reset,
    Flush,
    Finish,
    NextZone,
}

#[derive(Clone, Debug)]
struct Stream {
    job: u32,
    zone: u32,
    /// Sectors asked for, of the zone.
    written: u64,
    in_flight: u32,
    since_flush: u32,
    /// Writes asked for so far.
    writes: u64,
    phase: Phase,
    /// A power cut has shown that its zone can't be written any more.
    is_failed: bool,
}

#[derive(Clone, Debug)]
struct Job {
    config: ZoneJobConfig,
    /// Zones that no stream has, the one written longest ago first; and whether it was written.
    free: VecDeque<(u32, bool)>,
    left: u64,
}

/// The streams of some jobs.
#[derive(Clone, Debug)]
pub struct Streams {
    layout: ZoneLayout,
    jobs: Vec<Job>,
    all: Vec<Stream>,
    /// Streams that may have something to ask for.
    ready: VecDeque<u32>,
    is_ready: Vec<bool>,
    in_flight: u64,
    total: u64,
}

impl Streams {
    /// The streams of `jobs`, which fit on the drive ([`ZoneJobConfig::check`]). Jobs get zones in their
    /// order.
    pub fn new(configs: &[ZoneJobConfig], layout: ZoneLayout) -> Self {
        let mut first = 0;
        let mut jobs = Vec::new();
        let mut streams = Vec::new();
        for (number, config) in (0..).zip(configs) {
            let zones = first..first + config.zones;
            first = zones.end;
            let mut free: VecDeque<_> = zones.map(|zone| (zone, false)).collect();
            for _ in 0..config.streams {
                let zone = free.pop_front().map_or(0, |(zone, _)| zone);
                streams.push(Stream {
                    job: number,
                    zone,
                    written: 0,
                    in_flight: 0,
                    since_flush: 0,
                    writes: 0,
                    phase: Phase::Writing,
                    is_failed: false,
                });
            }
            jobs.push(Job { config: config.clone(), free, left: config.requests });
        }
        let total = configs.iter().map(|config| config.requests).sum();
        let ready = (0..streams.len() as u32).collect();
        let is_ready = vec![true; streams.len()];
        Self { layout, jobs, all: streams, ready, is_ready, in_flight: 0, total }
    }

    /// What stream `number` asks for, if it may ask now.
    fn ask(&mut self, number: u32) -> Option<Request> {
        let layout = self.layout;
        let stream = &mut self.all[number as usize];
        let job = &mut self.jobs[stream.job as usize];
        let start = u64::from(stream.zone) * layout.size;
        let every = job.config.plp_every;
        let is_flagged = job.config.plp || every > 0 && stream.writes.is_multiple_of(every.into());
        let class = if is_flagged { Class::Wal } else { Class::Data };
        let request = |op, lba: u64, sectors: u64| Request {
            at: Time::ZERO,
            op,
            lba: Lba(lba),
            sectors: sectors as u32,
            fua: false,
            class,
        };
        if let Phase::Draining(after) = stream.phase {
            if stream.in_flight > 0 {
                return None;
            }
            stream.phase = Phase::Writing;
            match after {
                After::Reset => {}
                After::Flush => return Some(request(Op::Flush, 0, 0)),
                After::Finish => {
                    stream.phase = Phase::Draining(After::NextZone);
                    return Some(request(Op::Zone(ZoneAction::Finish), start, 0));
                }
                After::NextZone => {
                    if !stream.is_failed {
                        job.free.push_back((stream.zone, true));
                    }
                    stream.is_failed = false;
                    let Some((zone, is_written)) = job.free.pop_front() else {
                        stream.phase = Phase::Over;
                        return None;
                    };
                    (stream.zone, stream.written) = (zone, 0);
                    if is_written {
                        stream.phase = Phase::Resetting;
                    }
                    return self.ask(number);
                }
            }
        }
        if stream.phase == Phase::Resetting {
            // NVMe puts commands in no order: writes wait until it has ended.
            stream.phase = Phase::Draining(After::Reset);
            return Some(request(Op::Zone(ZoneAction::Reset), start, 0));
        }
        let is_due = job.config.flush_every > 0 && stream.since_flush >= job.config.flush_every;
        if is_due {
            stream.since_flush = 0;
            stream.phase = Phase::Draining(After::Flush);
            return self.ask(number);
        }
        if stream.phase == Phase::Over
            || job.left == 0
            || stream.in_flight >= job.config.queue_depth
        {
            return None;
        }
        let sectors = job.config.block_size.get() / SECTOR_BYTES;
        let limit = job.config.finish_at.of(layout.capacity);
        let sectors = sectors.min(layout.capacity - stream.written);
        let place = match job.config.pattern {
            ZonePattern::Append => (Op::ZoneAppend, start),
            ZonePattern::Write => (Op::Write, start + stream.written),
        };
        stream.written += sectors;
        stream.since_flush += 1;
        stream.writes += 1;
        job.left -= 1;
        if stream.written >= layout.capacity {
            stream.phase = Phase::Draining(After::NextZone);
        } else if stream.written >= limit {
            stream.phase = Phase::Draining(After::Finish);
        }
        Some(request(place.0, place.1, sectors))
    }

    fn wake(&mut self, number: u32) {
        if !std::mem::replace(&mut self.is_ready[number as usize], true) {
            self.ready.push_back(number);
        }
    }
}

impl Host for Streams {
    fn next(&mut self, _: Time) -> Ask {
        while let Some(number) = self.ready.pop_front() {
            self.is_ready[number as usize] = false;
            if let Some(request) = self.ask(number) {
                self.all[number as usize].in_flight += 1;
                self.in_flight += 1;
                self.wake(number);
                return Ask::Submit { request, owner: number };
            }
        }
        // Nobody has anything to ask for, and nothing will end that could change that.
        if self.in_flight == 0 { Ask::End } else { Ask::Wait }
    }

    fn completed(&mut self, owner: u32, _: Time) {
        self.all[owner as usize].in_flight -= 1;
        self.in_flight -= 1;
        self.wake(owner);
    }

    /// Each stream goes on where its zone ends now; what was cut off is not asked for again.
    fn recovered(&mut self, _: Time, zones: &[ZoneLeft]) {
        for number in 0..self.all.len() as u32 {
            let stream = &mut self.all[number as usize];
            let zone = &zones[stream.zone as usize].descriptor;
            if stream.phase == Phase::Over {
                continue;
            }
            if stream.phase != Phase::Resetting {
                let is_over = !zone.state.is_active() && zone.state != ZoneState::Empty;
                stream.phase =
                    if is_over { Phase::Draining(After::NextZone) } else { Phase::Writing };
            }
            stream.written = zone.write_pointer.map_or(0, |wp| wp.0 - zone.start.0);
            stream.since_flush = 0;
            stream.is_failed = matches!(zone.state, ZoneState::ReadOnly | ZoneState::Offline);
            self.wake(number);
        }
    }

    fn fraction(&self) -> f64 {
        let left: u64 = self.jobs.iter().map(|job| job.left).sum();
        1.0 - left as f64 / self.total as f64
    }

    fn tenants(&self) -> Vec<String> {
        if self.jobs.len() < 2 || self.jobs.len() > 256 {
            return Vec::new();
        }
        let name = |(number, job): (usize, &Job)| match job.config.name.as_str() {
            "" => format!("zone job {number}"),
            name => name.to_owned(),
        };
        self.jobs.iter().enumerate().map(name).collect()
    }

    fn tenant(&self, owner: u32) -> u8 {
        if self.jobs.len() > 256 { 0 } else { self.all[owner as usize].job as u8 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leyden_sim::{Bytes, Ratio};

    /// Plays a host to a drive that does everything in order, and checks that it writes as a zone must be
    /// written. Returns what it asked for.
    fn play(configs: &[ZoneJobConfig], layout: ZoneLayout) -> Vec<Request> {
        let mut host = Streams::new(configs, layout);
        let mut wp = vec![0; layout.zones as usize];
        let mut asked = Vec::new();
        let mut under_way = VecDeque::new();
        loop {
            match host.next(Time::ZERO) {
                Ask::Submit { request, owner } => {
                    let zone = (request.lba.0 / layout.size) as usize;
                    let at = request.lba.0 % layout.size;
                    match request.op {
                        Op::Write => {
                            assert_eq!(at, wp[zone]);
                            wp[zone] += u64::from(request.sectors);
                        }
                        Op::ZoneAppend => wp[zone] += u64::from(request.sectors),
                        Op::Zone(ZoneAction::Reset) => wp[zone] = 0,
                        Op::Zone(ZoneAction::Finish) => wp[zone] = layout.capacity,
                        _ => {}
                    }
                    assert!(wp[zone] <= layout.capacity);
                    asked.push(request);
                    under_way.push_back(owner);
                }
                Ask::End => return asked,
                _ => host.completed(under_way.pop_front().unwrap(), Time::ZERO),
            }
        }
    }

    #[test]
    fn streams_write_zones_in_order_and_reset_them_when_they_come_round() {
        let layout = ZoneLayout { zones: 6, size: 128, capacity: 96, block: 8 };
        let job = ZoneJobConfig {
            pattern: ZonePattern::Write,
            streams: 2,
            zones: 3,
            block_size: Bytes::new(16 * 512),
            queue_depth: 4,
            flush_every: 5,
            requests: 60,
            ..ZoneJobConfig::default()
        };
        let appends = ZoneJobConfig {
            pattern: ZonePattern::Append,
            finish_at: Ratio::from_percent(50),
            flush_every: 0,
            plp_every: 4,
            ..job.clone()
        };
        job.check(&layout, 6).unwrap();
        assert_eq!(job.check(&layout, 2).unwrap_err().key, "zones");
        let asked = play(&[job, appends], layout);
        let count = |op| asked.iter().filter(|request| request.op == op).count();
        assert_eq!((count(Op::Write), count(Op::ZoneAppend)), (60, 60));
        let flagged = |op| {
            let is = |request: &&Request| request.op == op && request.class == Class::Wal;
            asked.iter().filter(is).count()
        };
        // About 30 writes of each of two streams, one in four.
        assert_eq!(flagged(Op::Write), 0);
        assert!((15..=16).contains(&flagged(Op::ZoneAppend)));
        assert!(count(Op::Flush) >= 10);
        assert!(count(Op::Zone(ZoneAction::Reset)) > 10);
        assert!(count(Op::Zone(ZoneAction::Finish)) > 10);
    }
}
