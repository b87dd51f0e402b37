//! A session: one drive and its host on one clock.
//!
//! **Invariants**: no two writes to one mapping unit are in flight; a command has a stamp of its own, and stamps grow.

use std::ops::Range;

use leyden_device::{
    BlockDevice, Command, Completion, Lba, Op, PowerLoss, SECTOR_BYTES, Ssd, Stamp, Stats, Status,
};
use leyden_sim::{Span, Time};
use leyden_workload::Request;
use leyden_workload::synth::JobConfig;

use crate::ask::{Answer, Open, Opened, Provisioned};
use crate::fill::fill;
use crate::latencies::{Kind, Latencies};
use crate::ledger::Ledger;
use crate::limits;
use crate::loss::{Cut, Restored};
use crate::sample::{Counts, Sample, buffer_of, capacity_bytes, cut_now};
use crate::stream::Stream;

/// Jobs of a workload.
const JOBS_MOST: usize = 16;
/// Time that one question may let pass.
const SPAN_MOST: Span = Span::from_ms(3_600_000);
/// Commands that may end in one question.
const COMMANDS_MOST: u64 = 1_000_000;
/// A century: a drive is not run for longer.
const TIME_MOST: Time = Time::from_ns(100 * 365 * 24 * 3_600_000_000_000);

/// A command in flight.
#[derive(Clone, Debug)]
struct Waiting {
    /// Its stream, if the workload has not been replaced since.
    stream: Option<usize>,
    stamp: u64,
    units: Range<u32>,
    bytes: u64,
    is_forced: bool,
    /// Tick of a flush in the ledger.
    tick: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Session {
    drive: Ssd<Stamp>,
    seed: u64,
    streams: Vec<Stream>,
    ledger: Ledger,
    now: Time,
    /// Commands in flight by tag.
    waiting: Vec<Option<Waiting>>,
    free_tags: Vec<u32>,
    stamp: u64,
    counts: Counts,
    latencies: Latencies,
    /// Counters before the first command.
    before: Stats,
    /// Time from which on the drive takes commands after the last return of the power.
    ready_at: Time,
    /// The cut that the power has not returned from.
    outage: Option<PowerLoss>,
    /// Completions of the last step; kept for its allocation.
    done: Vec<Completion<Stamp>>,
}

impl Session {
    /// A new drive in its state before the first command.
    ///
    /// # Errors
    /// If a value is impossible, or the drive too large for a browser.
    pub(crate) fn open(open: &Open) -> Result<(Self, Opened), String> {
        limits::check(open)?;
        let drive = Ssd::<Stamp>::new(&open.device, open.seed);
        let mut drive = drive.map_err(|error| format!("device.{error}"))?;
        // The jobs before the fill: a bad one is refused at once.
        let streams = streams(&open.jobs, open.seed, drive.capacity_sectors(), drive.now())?;
        if open.fill {
            fill(&mut drive, open.overwrite, open.seed)?;
        }
        let (region, now) = (open.device.buffer.region, drive.now());
        let mut session = Self {
            ledger: Ledger::new(drive.mapping_units(), region),
            seed: open.seed,
            streams,
            now,
            waiting: Vec::new(),
            free_tags: Vec::new(),
            stamp: 0,
            counts: Counts::default(),
            latencies: Latencies::default(),
            before: drive.stats(),
            ready_at: now,
            outage: None,
            done: Vec::new(),
            drive,
        };
        session.streams.iter_mut().for_each(|stream| stream.restart(now));
        let opened = session.opened();
        Ok((session, opened))
    }

    fn opened(&mut self) -> Opened {
        let drive = &self.drive;
        let bank = drive.power_supply().map(|supply| Provisioned {
            capacitance_nf: supply.bank.capacitance().as_nf(),
            energy_nj: supply.bank.energy().as_nj(),
            worst_capacitance_nf: supply.capacitance.as_nf(),
            worst_energy_nj: supply.need.energy.as_nj(),
        });
        Opened {
            capacity_bytes: capacity_bytes(drive),
            flash_bytes: drive.geometry().flash_bytes(),
            unit_bytes: drive.geometry().unit_bytes().into(),
            map_pages: self.before.map_pages.get(),
            bank,
            sample: self.sample(),
        }
    }

    /// Replaces the workload. Commands in flight go on.
    ///
    /// # Errors
    /// If a job makes no sense.
    pub(crate) fn set_jobs(&mut self, jobs: &[JobConfig]) -> Result<(), String> {
        self.streams =
            streams(jobs, self.seed, self.drive.capacity_sectors(), self.now.max(self.ready_at))?;
        self.waiting.iter_mut().flatten().for_each(|waiting| waiting.stream = None);
        Ok(())
    }

    /// Lets up to `span` pass, and until `commands_most` commands have ended.
    ///
    /// # Errors
    /// If it is too much at once.
    pub(crate) fn advance(&mut self, span: Span, commands_most: u64) -> Result<(), String> {
        if span > SPAN_MOST {
            return Err(format!("span_ns: {span} is more than {SPAN_MOST}: ask several times"));
        }
        if self.now >= TIME_MOST {
            return Err("a century of simulated time has passed: open a new drive".to_owned());
        }
        if commands_most > COMMANDS_MOST {
            return Err(format!(
                "commands_most: {commands_most} is more than {COMMANDS_MOST}: ask several times"
            ));
        }
        let (until, mut left) = (self.now + span, commands_most);
        while left > 0 {
            let due = self.submit_due();
            let limit = due.map_or(until, |due| due.min(until));
            let mut done = std::mem::take(&mut self.done);
            self.now = if self.drive.next_event().is_some_and(|next| next <= limit) {
                self.drive.advance_until_completion(self.now, limit, &mut done)
            } else {
                limit
            };
            left = left.saturating_sub(done.len() as u64);
            let is_over = done.is_empty() && self.now >= until;
            done.drain(..).for_each(|ended| self.ended(&ended));
            self.done = done;
            if is_over {
                break;
            }
        }
        Ok(())
    }

    /// Submits what is due now; returns when the next command is due that waits for nothing else.
    fn submit_due(&mut self) -> Option<Time> {
        if !self.drive.is_ready() {
            return Some(self.ready_at).filter(|&ready_at| ready_at > self.now);
        }
        let mut next: Option<Time> = None;
        for index in 0..self.streams.len() {
            let unit_sectors = self.unit_sectors();
            loop {
                let ledger = &self.ledger;
                let busy = |it: &Request| ledger.is_being_written(&units_of(it, unit_sectors));
                let Some(request) = self.streams[index].next(self.now, busy) else { break };
                self.submit(index, &request);
            }
            next = [next, self.streams[index].due()].into_iter().flatten().min();
        }
        next.filter(|&due| due > self.now)
    }

    fn unit_sectors(&self) -> u64 {
        u64::from(self.drive.geometry().unit_bytes()) / SECTOR_BYTES
    }

    fn submit(&mut self, stream: usize, request: &Request) {
        self.stamp += 1;
        let (stamp, units) = (self.stamp, units_of(request, self.unit_sectors()));
        let mut waiting = Waiting {
            stream: Some(stream),
            stamp,
            units: units.clone(),
            bytes: u64::from(request.sectors) * SECTOR_BYTES,
            is_forced: request.fua,
            tick: 0,
        };
        let command = match request.op {
            Op::Write => {
                self.ledger.begin_write(units, stamp, request.fua);
                Command::write(request.lba, request.sectors, stamp).fua(request.fua)
            }
            Op::Flush => {
                waiting.tick = self.ledger.begin_flush(stamp);
                Command::flush()
            }
            _ => Command::read(request.lba, request.sectors),
        };
        let tag = self.free_tags.pop().unwrap_or(self.waiting.len() as u32);
        if tag as usize == self.waiting.len() {
            self.waiting.push(None);
        }
        self.waiting[tag as usize] = Some(waiting);
        self.drive.submit(self.now, command.tag(tag));
    }

    fn ended(&mut self, ended: &Completion<Stamp>) {
        let waiting = self.waiting[ended.tag as usize].take().expect("a command ends once");
        self.free_tags.push(ended.tag);
        if let Some(stream) = waiting.stream {
            self.streams[stream].ended(ended.op);
        }
        let is_done = ended.status == Status::Success;
        let counts = &mut self.counts;
        counts.failed += u64::from(!is_done);
        let kind = match ended.op {
            Op::Write => {
                let Waiting { units, stamp, is_forced, bytes, .. } = waiting;
                self.ledger.end_write(units, stamp, is_forced, is_done);
                counts.writes += u64::from(is_done);
                counts.written_bytes += if is_done { bytes } else { 0 };
                Kind::Write
            }
            Op::Flush => {
                self.ledger.end_flush(waiting.tick, waiting.stamp, is_done);
                counts.flushes += u64::from(is_done);
                Kind::Flush
            }
            _ => {
                counts.reads += u64::from(is_done);
                counts.read_bytes += if is_done { waiting.bytes } else { 0 };
                Kind::Read
            }
        };
        if is_done {
            self.latencies.record(kind, ended.time - ended.submitted);
        }
    }

    /// How far it is.
    pub(crate) const fn advanced(&self) -> Answer {
        let Counts { reads, writes, flushes, failed, .. } = self.counts;
        let (time_ns, ended) = (self.now.as_ns(), reads + writes + flushes + failed);
        Answer::Advanced { time_ns, ended }
    }

    /// The drive and its host now.
    pub(crate) fn sample(&mut self) -> Sample {
        let (drive, stats) = (&self.drive, self.drive.stats());
        let (dirty_map_pages, dirty_map_pages_most) = drive.dirty_map_pages();
        let (ftl, before) = (&stats.ftl, &self.before.ftl);
        Sample {
            time_ns: self.now.as_ns(),
            is_on: self.outage.is_none(),
            is_ready: drive.is_ready(),
            is_read_only: drive.is_read_only(),
            counts: self.counts,
            in_flight: drive.pending() as u64,
            latencies: self.latencies.take(),
            user_units: ftl.user_units - before.user_units,
            copied_units: ftl.gc.copied_units - before.gc.copied_units,
            map_programs: ftl.programs.map - before.programs.map,
            buffer: buffer_of(drive),
            dirty_map_pages,
            dirty_map_pages_most,
            cut_now: cut_now(drive),
            digest: drive.digest().to_string(),
        }
    }

    /// Cuts the power now. What is lost is what a copy of the drive shows that recovers at once.
    ///
    /// # Errors
    /// If the power is off, or never cut.
    pub(crate) fn cut(&mut self) -> Result<Cut, String> {
        if self.outage.is_some() {
            return Err("the power is off already: ask for `restore`".to_owned());
        }
        if self.drive.power_supply().is_none() {
            return Err(
                "device.power: without this table the power is never cut: open a drive that has it"
                    .to_owned(),
            );
        }
        let in_flight = self.drive.pending() as u64;
        let loss = self.drive.cut_power(self.now);
        self.ledger.cut();
        self.waiting.clear();
        self.free_tags.clear();
        let mut copy = self.drive.clone();
        copy.restore_power(self.now);
        let gone = self.ledger.gone(&copy.whole());
        let unit_bytes = u64::from(self.drive.geometry().unit_bytes());
        let cut = Cut::new(&loss, gone, in_flight, unit_bytes);
        self.outage = Some(loss);
        Ok(cut)
    }

    /// Brings the power back now.
    ///
    /// # Errors
    /// If it is there.
    pub(crate) fn restore(&mut self) -> Result<Restored, String> {
        let Some(loss) = self.outage.take() else {
            return Err("the power is on: ask for `cut` first".to_owned());
        };
        let recovery = self.drive.restore_power(self.now);
        self.ledger.settle(&self.drive.whole(), &loss);
        self.ready_at = recovery.ready_at;
        self.streams.iter_mut().for_each(|stream| stream.restart(recovery.ready_at));
        Ok(Restored::new(self.now.as_ns(), &recovery))
    }
}

/// The streams of a workload.
fn streams(
    jobs: &[JobConfig],
    seed: u64,
    capacity_sectors: u64,
    now: Time,
) -> Result<Vec<Stream>, String> {
    if jobs.len() > JOBS_MOST {
        return Err(format!("jobs: {} are more than {JOBS_MOST}", jobs.len()));
    }
    let stream = |(index, job)| Stream::new(job, seed, index, capacity_sectors, now);
    jobs.iter().enumerate().map(stream).collect()
}

/// The mapping units that a request touches.
fn units_of(request: &Request, unit_sectors: u64) -> Range<u32> {
    let Lba(first) = request.lba;
    let end = first + u64::from(request.sectors);
    (first / unit_sectors) as u32..end.div_ceil(unit_sectors) as u32
}
