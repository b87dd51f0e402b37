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
    /// The zone is to be opened with a Zone Random Write Area.
    Opening,
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
    Open,
    Flush,
    /// The Zone Random Write Area is to be committed.
    Commit,
    Finish,
    NextZone,
}

#[derive(Clone, Debug)]
struct Stream {
    job: u32,
    zone: u32,
    /// Bytes asked for, of the zone.
    written: u64,
    in_flight: u32,
    since_flush: u32,
    /// Writes asked for so far.
    writes: u64,
    phase: Phase,
    /// A power cut has shown that its zone can't be written any more.
    is_failed: bool,
}

impl Stream {
    /// Goes on to another of the job's zones.
    fn go_on(&mut self, job: &mut Job) {
        if !self.is_failed {
            job.free.push_back((self.zone, true));
        }
        self.is_failed = false;
        let Some((zone, is_written)) = job.free.pop_front() else {
            self.phase = Phase::Over;
            return;
        };
        (self.zone, self.written) = (zone, 0);
        self.phase = if is_written { Phase::Resetting } else { first_phase(&job.config) };
    }

    /// The request for a zone without operations in flight; `None` if that is over.
    fn after(&mut self, after: After, layout: &ZoneLayout) -> Option<Request> {
        let (next, request) = match after {
            After::Reset | After::Open | After::NextZone => return None,
            After::Flush => (Phase::Writing, request(Op::Flush, 0, 0, Class::Data)),
            After::Commit => {
                let end = (self.written / SECTOR_BYTES).next_multiple_of(layout.area_step);
                let last = end.min(layout.capacity) - layout.block;
                let is_full = end >= layout.capacity;
                let next = if is_full { After::NextZone } else { After::Finish };
                (Phase::Draining(next), self.manage(ZoneAction::FlushZrwa, last, layout))
            }
            After::Finish => {
                (Phase::Draining(After::NextZone), self.manage(ZoneAction::Finish, 0, layout))
            }
        };
        self.phase = next;
        Some(request)
    }

    /// A command for the stream's zone; most name its first sector.
    fn manage(&self, action: ZoneAction, sector: u64, layout: &ZoneLayout) -> Request {
        let start = u64::from(self.zone) * layout.size;
        request(Op::Zone(action), start + sector, 0, Class::Wal)
    }

    /// The next write, and the phase after it.
    fn write(&mut self, config: &ZoneJobConfig, layout: &ZoneLayout) -> Request {
        let capacity = layout.capacity * SECTOR_BYTES;
        let block = layout.block * SECTOR_BYTES;
        let every = config.plp_every;
        let is_flagged = config.plp || every > 0 && self.writes.is_multiple_of(every.into());
        let first = self.written / block * block;
        self.written += config.block_size.get().min(capacity - self.written);
        let end = self.written.next_multiple_of(block);
        self.since_flush += 1;
        self.writes += 1;
        let is_log = config.pattern == ZonePattern::Log;
        if is_log && self.written >= config.finish_at.of(capacity) {
            self.phase = Phase::Draining(After::Commit);
        } else if self.written >= capacity {
            self.phase = Phase::Draining(After::NextZone);
        } else if self.written >= config.finish_at.of(capacity) {
            self.phase = Phase::Draining(After::Finish);
        }
        let start = u64::from(self.zone) * layout.size;
        let (op, lba) = match config.pattern {
            ZonePattern::Append => (Op::ZoneAppend, start),
            ZonePattern::Write | ZonePattern::Log => (Op::Write, start + first / SECTOR_BYTES),
        };
        let class = if is_flagged { Class::Wal } else { Class::Data };
        request(op, lba, (end - first) / SECTOR_BYTES, class)
    }
}

fn request(op: Op, lba: u64, sectors: u64, class: Class) -> Request {
    Request { at: Time::ZERO, op, lba: Lba(lba), sectors: sectors as u32, fua: false, class }
}

/// The first phase of a stream in an empty zone.
fn first_phase(config: &ZoneJobConfig) -> Phase {
    if config.pattern == ZonePattern::Log { Phase::Opening } else { Phase::Writing }
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
                    phase: first_phase(config),
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

    /// The next request of stream `number`, if it may send one now.
    fn ask(&mut self, number: u32) -> Option<Request> {
        let layout = self.layout;
        let stream = &mut self.all[number as usize];
        let job = &mut self.jobs[stream.job as usize];
        loop {
            match stream.phase {
                Phase::Over => return None,
                Phase::Draining(_) if stream.in_flight > 0 => return None,
                Phase::Draining(After::NextZone) => stream.go_on(job),
                Phase::Draining(after) => match stream.after(after, &layout) {
                    Some(request) => return Some(request),
                    None if after == After::Reset => stream.phase = first_phase(&job.config),
                    None => stream.phase = Phase::Writing,
                },
                Phase::Resetting => {
                    // NVMe puts commands in no order: writes wait until it has ended.
                    stream.phase = Phase::Draining(After::Reset);
                    return Some(stream.manage(ZoneAction::Reset, 0, &layout));
                }
                Phase::Opening => {
                    stream.phase = Phase::Draining(After::Open);
                    return Some(stream.manage(ZoneAction::Open, 0, &layout));
                }
                Phase::Writing
                    if job.config.flush_every > 0
                        && stream.since_flush >= job.config.flush_every =>
                {
                    stream.since_flush = 0;
                    stream.phase = Phase::Draining(After::Flush);
                }
                Phase::Writing if job.left == 0 || stream.in_flight >= job.config.queue_depth => {
                    return None;
                }
                Phase::Writing => {
                    job.left -= 1;
                    return Some(stream.write(&job.config, &layout));
                }
            }
        }
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
        // No stream has a request, and no completion will change that.
        if self.in_flight == 0 { Ask::End } else { Ask::Wait }
    }

    fn completed(&mut self, owner: u32, _: Time) {
        self.all[owner as usize].in_flight -= 1;
        self.in_flight -= 1;
        self.wake(owner);
    }

    /// Each stream continues where its zone ends now; requests that were cut off are not repeated.
    fn recovered(&mut self, _: Time, zones: &[ZoneLeft]) {
        for number in 0..self.all.len() as u32 {
            let stream = &mut self.all[number as usize];
            let zone = &zones[stream.zone as usize].descriptor;
            if stream.phase == Phase::Over {
                continue;
            }
            let config = &self.jobs[stream.job as usize].config;
            let is_log = config.pattern == ZonePattern::Log;
            let wp = zone.write_pointer.map_or(0, |wp| wp.0 - zone.start.0);
            // An area keeps its data above the write pointer, and a log continues behind it.
            let held = if is_log { zones[stream.zone as usize].held } else { wp };
            stream.written = held * SECTOR_BYTES;
            stream.phase = match zone.state {
                _ if stream.phase == Phase::Resetting => Phase::Resetting,
                ZoneState::Empty => first_phase(config),
                state if !state.is_active() => Phase::Draining(After::NextZone),
                _ if is_log && !zone.has_zrwa => Phase::Draining(After::Finish),
                _ if is_log && held >= config.finish_at.of(self.layout.capacity) => {
                    Phase::Draining(After::Commit)
                }
                _ => Phase::Writing,
            };
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
        let layout =
            ZoneLayout { zones: 6, size: 128, capacity: 96, block: 8, area: 0, area_step: 0 };
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
    /// The contents of the log's zones: each record, byte by byte.
    #[test]
    fn a_logs_records_share_blocks_and_its_zones_are_opened_committed_and_reset() {
        let layout =
            ZoneLayout { zones: 3, size: 128, capacity: 96, block: 8, area: 32, area_step: 16 };
        let (block, record) = (8 * 512, 925);
        let job = ZoneJobConfig {
            pattern: ZonePattern::Log,
            zones: 3,
            block_size: Bytes::new(record),
            requests: 200,
            ..ZoneJobConfig::default()
        };
        job.check(&layout, 3).unwrap();
        let mut host = Streams::new(&[job], layout);
        let (mut zones, mut bytes, mut writes, mut opened) = (Vec::new(), 0, 0, None);
        while let Ask::Submit { request, owner } = host.next(Time::ZERO) {
            let (zone, at) = (request.lba.0 / layout.size, request.lba.0 % layout.size * 512);
            match request.op {
                Op::Zone(ZoneAction::Open) => {
                    assert!(crate::zoned::wants_area(&request));
                    (opened, bytes) = (Some(zone), 0);
                    zones.push(zone);
                }
                Op::Write => {
                    assert_eq!(opened, Some(zone));
                    assert_eq!(at, bytes / block * block, "the block in which the last one ended");
                    bytes = (bytes + record).min(layout.capacity * 512);
                    assert_eq!(
                        at + u64::from(request.sectors) * 512,
                        bytes.next_multiple_of(block)
                    );
                    writes += 1;
                }
                Op::Zone(ZoneAction::FlushZrwa) => {
                    assert_eq!((bytes, at), (96 * 512, 88 * 512), "the last block is named");
                    opened = None;
                }
                Op::Zone(ZoneAction::Reset) => assert_eq!(opened, None),
                op => panic!("{op:?}"),
            }
            host.completed(owner, Time::ZERO);
        }
        assert_eq!((zones, writes), (vec![0, 1, 2, 0], 200));
    }

    #[test]
    fn a_log_that_no_drive_could_take_is_refused_by_name() {
        let layout =
            ZoneLayout { zones: 3, size: 128, capacity: 96, block: 8, area: 32, area_step: 16 };
        let log = || ZoneJobConfig {
            pattern: ZonePattern::Log,
            zones: 3,
            block_size: Bytes::new(925),
            ..ZoneJobConfig::default()
        };
        let refused = |job: ZoneJobConfig, area| {
            job.check(&ZoneLayout { area, ..layout }, 3).unwrap_err().key
        };
        assert_eq!(refused(log(), 0), "pattern");
        assert_eq!(refused(ZoneJobConfig { queue_depth: 2, ..log() }, 32), "queue_depth");
        let too_large = Bytes::new(24 * 512 + 1);
        assert_eq!(refused(ZoneJobConfig { block_size: too_large, ..log() }, 32), "block_size");
        assert_eq!(refused(ZoneJobConfig { block_size: Bytes::new(0), ..log() }, 32), "block_size");
    }
}
