//! An LSM key-value store at work: a writer, a thread that flushes memtables, threads that compact, and resets
//! of zones that hold nothing any more.
//!
//! A memtable's way (counted from RocksDB): its log is appended to while it is filled; then the table is
//! written and synced, its directory is synced, the MANIFEST is written and synced, and the log is deleted.

use std::collections::VecDeque;

use leyden_device::{Lba, Op, SECTOR_BYTES, ZoneAction};
use leyden_sim::Time;

use super::fs::{File, FileKind, Fs, Run};
use super::lsm_config::rocksdb;
use super::lsm_figures::{Exposure, LsmFigures};
use super::lsm_threads::{Log, Step, Thread};
use super::pace::Pace;
use super::{Ask, Benchmark, Host, LsmConfig, SyncOrder, ZoneLayout, ZoneLeft};
use crate::{Class, Request};

/// Numbers of the store's threads: the writer, the flusher, the cleaner, then the compactors.
const WRITER: u32 = 0;
const FLUSHER: u32 = 1;
const CLEANER: u32 = 2;
const FIRST_COMPACTOR: u32 = 3;

/// The tenant that writes the logs.
pub const LOG: &str = "log";

/// The cleaner's action on a zone.
#[derive(Clone, Copy, Debug)]
enum Cleaning {
    Reset(u32),
    Finish,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct Lsm {
    config: LsmConfig,
    fs: Fs,
    block: u64,
    writer: Writer,
    pace: Pace,
    flusher: Thread,
    compactors: Vec<Thread>,
    /// Logs of memtables that wait to be flushed.
    immutable: VecDeque<Log>,
    /// Tables, the oldest first.
    tables: VecDeque<File>,
    /// How many of the oldest a power cut has left: flash holds them.
    durable_tables: usize,
    /// The file of metadata that is written, and the one before.
    meta: [File; 2],
    /// Bytes that wait to be compacted.
    to_compact: u64,
    /// How often the writer has gone on to another memtable.
    rotations: u64,
    cleaning: Option<Cleaning>,
    figures: LsmFigures,
    exposure: Exposure,
}

#[derive(Clone, Debug, Default)]
struct Writer {
    log: Log,
    /// Until when it is busy with puts.
    until: Time,
    /// Sectors of the append under way that are still to be asked for.
    left: u64,
    is_waiting: bool,
    stalled_since: Option<Time>,
}

impl Lsm {
    /// A store on an empty drive, from `start` on.
    pub fn new(config: &LsmConfig, layout: ZoneLayout, start: Time, seed: u64) -> Self {
        let mut pace =
            Pace::new(config.put_time, rocksdb::DELAYED_WRITE_RATE, rocksdb::SLOWDOWN_AT, seed);
        Self {
            fs: Fs::new(layout),
            block: layout.block,
            writer: Writer { until: start + pace.puts(), ..Writer::default() },
            pace,
            flusher: Thread::default(),
            compactors: vec![Thread::default()],
            immutable: VecDeque::new(),
            tables: VecDeque::new(),
            durable_tables: 0,
            meta: Default::default(),
            to_compact: 0,
            rotations: 0,
            cleaning: None,
            figures: LsmFigures::default(),
            exposure: Exposure { since: start, ..Exposure::default() },
            config: config.clone(),
        }
    }

    /// Counts from `start` until `now`.
    pub fn figures(&self, start: Time, now: Time) -> LsmFigures {
        let mut exposure = self.exposure.clone();
        exposure.set(now, exposure.bytes);
        let elapsed = now.since(start).as_ns().max(1);
        LsmFigures {
            exposed_mean: exposure.byte_ns as f64 / elapsed as f64,
            exposed_peak: exposure.peak,
            delayed: self.pace.delayed(),
            ..self.figures
        }
    }

    /// Sectors that hold `bytes`, in whole blocks.
    fn sectors(&self, bytes: u64) -> u64 {
        bytes.div_ceil(SECTOR_BYTES * self.block) * self.block
    }

    fn is_done(&self) -> bool {
        self.figures.puts >= self.config.puts
    }

    /// The writer's next request; `Err` has the time at which it continues by itself, if it does.
    fn write(&mut self, now: Time) -> Result<Request, Option<Time>> {
        if self.writer.is_waiting || self.is_done() {
            return Err(None);
        }
        let memtable = self.writer.log.puts * rocksdb::PAIR;
        if memtable >= self.config.write_buffer.get() && !self.rotate(now) {
            return Err(None);
        }
        if self.writer.left == 0 {
            if now < self.writer.until {
                return Err(Some(self.writer.until));
            }
            self.writer.left = self.append_sectors();
        }
        let (left, log) = (self.writer.left, &mut self.writer.log.file);
        let Some(run) = self.fs.extend(log, FileKind::Log, left) else { return Err(None) };
        self.writer.left -= run.sectors;
        self.writer.is_waiting = true;
        Ok(request(Op::Write, run, Class::Wal))
    }

    /// Goes on to another memtable, if there may be one. Otherwise the writer waits.
    fn rotate(&mut self, now: Time) -> bool {
        let flushing = usize::from(!self.flusher.steps.is_empty());
        let is_full = self.immutable.len() + flushing >= rocksdb::WRITE_BUFFERS as usize - 1;
        if is_full || self.waiting_tables() >= u64::from(rocksdb::STOP_AT) {
            self.writer.stalled_since.get_or_insert(now);
            return false;
        }
        if let Some(since) = self.writer.stalled_since.take() {
            self.figures.stalled += now.since(since);
            self.writer.until = self.writer.until.max(now);
        }
        self.rotations += 1;
        self.immutable.push_back(std::mem::take(&mut self.writer.log));
        true
    }

    /// Memtables' worth of tables that wait to be compacted.
    fn waiting_tables(&self) -> u64 {
        let table = self.config.write_buffer.get() * rocksdb::COMPACTION_FACTOR;
        self.to_compact / table
    }

    /// Sectors of the log that the puts of an append take.
    fn append_sectors(&self) -> u64 {
        self.sectors(rocksdb::LOG_RECORD * u64::from(rocksdb::PUTS_PER_APPEND))
    }

    fn table_sectors(&self) -> u64 {
        self.sectors(self.config.write_buffer.get())
    }

    /// Gives the flusher the next memtable.
    fn begin_flush(&mut self) {
        if !self.flusher.steps.is_empty() || self.is_done() {
            return;
        }
        let Some(log) = self.immutable.pop_front() else { return };
        let table = Step::Table { left: self.table_sectors(), kind: FileKind::Fresh };
        let steps = [
            table,
            Step::Flush,
            Step::Flush, // of the directory
            Step::Meta,
            Step::Flush,
            Step::Installed,
        ];
        self.flusher.steps = self.in_order(steps);
        self.flusher.log = log;
    }

    /// `steps`, with the FLUSH commands that the order of syncs sends.
    fn in_order<const N: usize>(&self, steps: [Step; N]) -> VecDeque<Step> {
        let sends_flush = self.config.order == SyncOrder::Sound;
        steps.into_iter().filter(|step| sends_flush || !matches!(step, Step::Flush)).collect()
    }

    /// Gives a compactor something to do.
    fn begin_compaction(&mut self, at: usize) {
        let table = self.config.write_buffer.get();
        if !self.compactors[at].steps.is_empty() || self.to_compact < table || self.is_done() {
            return;
        }
        self.to_compact -= table;
        let input = self.tables.front().cloned().unwrap_or_default();
        let steps = [
            Step::Read { file: input, at: 0 },
            Step::Table { left: self.table_sectors(), kind: FileKind::Compacted },
            Step::Flush,
            Step::Meta,
            Step::Flush,
            Step::Compacted,
        ];
        self.compactors[at].steps = self.in_order(steps);
    }

    fn thread(&mut self, owner: u32) -> &mut Thread {
        match owner {
            FLUSHER => &mut self.flusher,
            compactor => &mut self.compactors[(compactor - FIRST_COMPACTOR) as usize],
        }
    }

    /// A thread's next request.
    fn go_on(&mut self, owner: u32, now: Time) -> Option<Request> {
        if self.thread(owner).is_waiting {
            return None;
        }
        loop {
            let io = self.sectors(self.config.table_io.get());
            let step = self.thread(owner).steps.front()?.clone();
            let asked = match step {
                Step::Read { file, at } => match file.at(at, io) {
                    Some(run) => {
                        let at = at + run.sectors;
                        self.thread(owner).steps[0] = Step::Read { file, at };
                        Some(request(Op::Read, run, Class::Data))
                    }
                    None => None,
                },
                Step::Table { left: 0, .. } => None,
                Step::Table { left, kind } => {
                    let mut table = std::mem::take(&mut self.thread(owner).table);
                    let run = self.fs.extend(&mut table, kind, left.min(io));
                    self.thread(owner).table = table;
                    let run = run?; // no zone is free: the cleaner is at work
                    self.thread(owner).steps[0] = Step::Table { left: left - run.sectors, kind };
                    Some(request(Op::Write, run, Class::Data))
                }
                Step::Meta => {
                    self.thread(owner).steps.pop_front();
                    Some(self.write_meta()?)
                }
                Step::Flush => {
                    self.thread(owner).steps.pop_front();
                    Some(request(Op::Flush, Run { lba: 0, sectors: 0 }, Class::Unknown))
                }
                Step::Installed => {
                    self.installed(now);
                    None
                }
                Step::Compacted => {
                    self.compacted(owner, now);
                    None
                }
            };
            if asked.is_some() {
                self.thread(owner).is_waiting = true;
                return asked;
            }
            self.thread(owner).steps.pop_front();
        }
    }

    /// A record of a block; files of them change when one has filled a zone.
    fn write_meta(&mut self) -> Option<Request> {
        let run = self.fs.extend(&mut self.meta[0], FileKind::Meta, self.block)?;
        let zone_full = self.meta[0].runs.len() > 1;
        if zone_full {
            self.fs.delete(&std::mem::take(&mut self.meta[1]));
            self.meta.swap(0, 1);
        }
        Some(request(Op::Write, run, Class::FsMeta))
    }

    fn installed(&mut self, now: Time) {
        self.figures.flushed += 1;
        let table = std::mem::take(&mut self.flusher.table);
        self.tables.push_back(table);
        self.note_exposure(now);
        let log = std::mem::take(&mut self.flusher.log);
        self.fs.delete(&log.file);
        if self.config.benchmark == Benchmark::Overwrite {
            let factor = rocksdb::COMPACTION_FACTOR;
            self.to_compact += factor * self.config.write_buffer.get();
        }
        self.pace.set(self.waiting_tables(), self.to_compact);
    }

    /// No FLUSH follows in the published order: every table whose log is deleted is exposed while it exists.
    fn note_exposure(&mut self, now: Time) {
        if self.config.order == SyncOrder::Published {
            let volatile = self.tables.iter().skip(self.durable_tables);
            let sectors: u64 = volatile.map(File::sectors).sum();
            self.exposure.set(now, sectors * SECTOR_BYTES);
        }
    }

    fn compacted(&mut self, owner: u32, now: Time) {
        self.figures.compacted += 1;
        self.pace.set(self.waiting_tables(), self.to_compact);
        let table = std::mem::take(&mut self.thread(owner).table);
        self.tables.push_back(table);
        self.delete_oldest();
        // Overwritten pairs are gone: the store does not grow beyond its pairs.
        let store = self.config.puts * rocksdb::PAIR;
        let table = self.config.write_buffer.get();
        if self.tables.len() as u64 * table > store.max(16 * table) {
            self.delete_oldest();
        }
        self.note_exposure(now);
    }

    fn delete_oldest(&mut self) {
        if let Some(table) = self.tables.pop_front() {
            self.fs.delete(&table);
            self.durable_tables = self.durable_tables.saturating_sub(1);
        }
    }

    /// Takes all logs, the oldest first.
    fn logs(&mut self) -> impl Iterator<Item = Log> + use<> {
        let oldest = std::mem::take(&mut self.flusher.log);
        let newest = std::mem::take(&mut self.writer.log);
        let between = std::mem::take(&mut self.immutable);
        [oldest].into_iter().chain(between).chain([newest])
    }

    /// Finds what is left of `log` after a power cut.
    fn replay(&mut self, log: &mut Log) {
        self.fs.cut_back(&mut log.file);
        let appends = log.file.sectors() / self.append_sectors();
        let kept = log.puts.min(appends * u64::from(rocksdb::PUTS_PER_APPEND));
        self.figures.lost_puts += log.puts - kept;
        log.puts = kept;
    }

    fn clean(&mut self) -> Option<Request> {
        if self.cleaning.is_some() || self.is_done() {
            return None;
        }
        let (cleaning, action, lba) = if let Some(lba) = self.fs.take_unfinished() {
            (Cleaning::Finish, ZoneAction::Finish, lba)
        } else {
            let (zone, lba) = self.fs.take_dead()?;
            (Cleaning::Reset(zone), ZoneAction::Reset, lba)
        };
        self.cleaning = Some(cleaning);
        Some(request(Op::Zone(action), Run { lba, sectors: 0 }, Class::Unknown))
    }

    /// Memtables taken over, flushed and compacted so far.
    const fn ended(&self) -> u64 {
        self.figures.flushed + self.figures.compacted + self.rotations
    }

    fn ask(&mut self, now: Time) -> Ask {
        let submit = |request, owner| Ask::Submit { request, owner };
        if let Some(request) = self.clean() {
            return submit(request, CLEANER);
        }
        self.begin_flush();
        if let Some(request) = self.go_on(FLUSHER, now) {
            return submit(request, FLUSHER);
        }
        for at in 0..self.compactors.len() {
            self.begin_compaction(at);
            let owner = FIRST_COMPACTOR + at as u32;
            if let Some(request) = self.go_on(owner, now) {
                return submit(request, owner);
            }
        }
        match self.write(now) {
            Ok(request) => submit(request, WRITER),
            Err(Some(at)) => Ask::At(at),
            Err(None) => Ask::Wait,
        }
    }

    fn is_waiting(&self) -> bool {
        self.writer.is_waiting
            || self.flusher.is_waiting
            || self.cleaning.is_some()
            || self.compactors.iter().any(|thread| thread.is_waiting)
    }
}

pub(super) fn request(op: Op, run: Run, class: Class) -> Request {
    let (lba, sectors) = (Lba(run.lba), run.sectors as u32);
    Request { at: Time::ZERO, op, lba, sectors, fua: false, class }
}

impl Host for Lsm {
    fn next(&mut self, now: Time) -> Ask {
        if self.is_done() {
            return if self.is_waiting() { Ask::Wait } else { Ask::End };
        }
        // A step that ends without a request may let another thread continue.
        loop {
            let before = self.ended();
            match self.ask(now) {
                Ask::Wait if self.ended() > before => {}
                ask => return ask,
            }
        }
    }

    fn completed(&mut self, owner: u32, now: Time) {
        match owner {
            WRITER => {
                self.writer.is_waiting = false;
                if self.writer.left == 0 {
                    let puts = u64::from(rocksdb::PUTS_PER_APPEND);
                    self.figures.puts += puts;
                    self.writer.log.puts += puts;
                    self.writer.until = now + self.pace.puts();
                }
            }
            CLEANER => {
                if let Some(Cleaning::Reset(zone)) = self.cleaning.take() {
                    self.fs.reset(zone);
                }
            }
            owner => self.thread(owner).is_waiting = false,
        }
    }

    fn cut_off(&mut self, owner: u32, _: Time) {
        match owner {
            // Its puts were not acknowledged.
            WRITER => (self.writer.is_waiting, self.writer.left) = (false, 0),
            CLEANER => self.cleaning = None,
            owner => self.thread(owner).is_waiting = false,
        }
    }

    /// The store is opened again, as RocksDB does it: what is left of its logs is replayed, and flushed as tables;
    /// tables that were being written are given up.
    fn recovered(&mut self, now: Time, zones: &[ZoneLeft]) {
        self.fs.power_failed(zones);
        let mut logs: Vec<Log> = self.logs().filter(|log| log.puts > 0).collect();
        for log in &mut logs {
            self.replay(log);
        }
        self.immutable = logs.into();
        self.flusher = Thread::default();
        for compactor in &mut self.compactors {
            if !compactor.steps.is_empty() {
                *compactor = Thread::default();
                self.to_compact += self.config.write_buffer.get();
            }
        }
        for table in &mut self.tables {
            let before = table.sectors();
            self.fs.cut_back(table);
            self.figures.lost_table_bytes += (before - table.sectors()) * SECTOR_BYTES;
        }
        self.meta.iter_mut().for_each(|file| self.fs.cut_back(file));
        let logs = self.immutable.iter().map(|log| &log.file);
        self.fs.recount(logs.chain(&self.tables).chain(&self.meta));
        self.writer.stalled_since = None;
        self.durable_tables = self.tables.len();
        self.exposure.set(now, 0);
        self.pace.set(self.waiting_tables(), self.to_compact);
    }

    fn fraction(&self) -> f64 {
        self.figures.puts as f64 / self.config.puts as f64
    }

    fn tenants(&self) -> Vec<String> {
        [LOG, "flush", "zones", "compaction"].map(str::to_owned).to_vec()
    }

    fn tenant(&self, owner: u32) -> u8 {
        owner.min(FIRST_COMPACTOR) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a store to a drive that does everything at once, and checks that zones are written in order.
    fn play(config: &LsmConfig) -> (LsmFigures, Vec<(u32, Request)>) {
        let layout =
            ZoneLayout { zones: 64, size: 8192, capacity: 8192, block: 8, area: 0, area_step: 0 };
        config.check(&layout).unwrap();
        let mut host = Lsm::new(config, layout, Time::ZERO, 1);
        let mut now = Time::ZERO;
        let mut wp = vec![0_u64; 64];
        let mut asked = Vec::new();
        loop {
            match host.next(now) {
                Ask::Submit { request, owner } => {
                    let zone = (request.lba.0 / layout.size) as usize;
                    match request.op {
                        Op::Write => {
                            assert_eq!(request.lba.0 % layout.size, wp[zone]);
                            wp[zone] += u64::from(request.sectors);
                        }
                        Op::Zone(_) => wp[zone] = 0,
                        Op::Read => {
                            let end = request.lba.0 % layout.size + u64::from(request.sectors);
                            assert!(end <= wp[zone], "reads what was not written");
                        }
                        _ => {}
                    }
                    asked.push((owner, request));
                    host.completed(owner, now);
                }
                Ask::At(at) => now = at,
                Ask::End => return (host.figures(Time::ZERO, now), asked),
                Ask::Wait => panic!("it waits for nothing"),
            }
        }
    }

    fn small(benchmark: Benchmark, order: SyncOrder) -> LsmConfig {
        let write_buffer = leyden_sim::Bytes::new(1 << 20);
        LsmConfig { benchmark, order, puts: 40_000, write_buffer, ..LsmConfig::default() }
    }

    #[test]
    fn a_memtable_is_flushed_as_rocksdb_does() {
        let (figures, asked) = play(&small(Benchmark::Fillseq, SyncOrder::Sound));
        assert_eq!((figures.puts, figures.compacted, figures.exposed_peak), (40_000, 0, 0));
        assert_eq!(figures.flushed, 34, "36 MB in memtables of 1 MiB; the last is not full");
        let of_flusher: Vec<Op> = asked
            .iter()
            .filter(|(owner, _)| *owner == FLUSHER)
            .map(|(_, request)| request.op)
            .take(5)
            .collect();
        assert_eq!(of_flusher, [Op::Write, Op::Flush, Op::Flush, Op::Write, Op::Flush]);
        let logs: u64 = asked.iter().filter(|(owner, _)| *owner == WRITER).count() as u64;
        assert_eq!(logs, 10_000);
        assert!(asked.iter().any(|(owner, _)| *owner == CLEANER), "logs are deleted");
    }

    #[test]
    fn overwrites_are_compacted_and_the_published_order_sends_no_flush() {
        for benchmark in [Benchmark::Fillseq, Benchmark::Overwrite] {
            let (figures, asked) = play(&small(benchmark, SyncOrder::Published));
            assert!(asked.iter().all(|(_, request)| request.op != Op::Flush));
            if benchmark == Benchmark::Overwrite {
                assert!(figures.compacted > 90, "{figures:?}");
            } else {
                assert_eq!(figures.exposed_peak, figures.flushed << 20, "no table is replaced");
            }
        }
        let (figures, asked) = play(&small(Benchmark::Overwrite, SyncOrder::Sound));
        assert!(figures.compacted > 90, "{figures:?}");
        assert!(asked.iter().any(|(_, request)| request.op == Op::Flush));
        assert_eq!(figures.exposed_peak, 0);
    }
}
