//! Write amplification of skewed writes, and of writes beside TRIMs, against a model of its own.
//!
//! There is no closed form for them. The [`Model`] is a page-mapped drive in a hundred lines, with a buffer, one open
//! block and greedy victims. It shares no code with Leyden; only the numbers drawn are from the same generator.

#![expect(clippy::print_stdout, reason = "shows what was measured, with --nocapture")]

use leyden_device::{BlockDevice, Command, Config, Lba, NoData, Op, Ssd};
use leyden_sim::{Bytes, Ratio, Rng};

const BLOCKS: usize = 1024;
const UNITS_PER_BLOCK: usize = 64;
const OVER_PROVISIONING: u64 = 28;
/// Both collect in the background while so many blocks or fewer are free.
const SOFT_FREE_BLOCKS: usize = 2;
/// Dirty units that the buffer holds back: half of it.
const BUFFERED: usize = 32;
/// Capacities written before the measurement, and in it. A skewed workload takes its time to settle.
const BEFORE: u64 = 12;
const MEASURED: u64 = 6;
const SECTORS: u64 = 8;

/// Where writes go.
struct Work {
    name: &'static str,
    /// Cumulative probabilities of the units' ranks; ranks are scattered over the drive.
    below: Vec<f64>,
    /// Of the requests, what are TRIMs.
    trims: f64,
}

impl Work {
    fn new(name: &'static str, units: usize, trims: f64, weight: impl Fn(f64) -> f64) -> Self {
        let mut sum = 0.0;
        let below = (0..units).map(|rank| {
            sum += weight((rank as f64 + 0.5) / units as f64);
            sum
        });
        let mut below: Vec<f64> = below.collect();
        for share in &mut below {
            *share /= sum;
        }
        Self { name, below, trims }
    }

    fn all(units: usize) -> Vec<Self> {
        let hot = |space: f64| {
            move |at: f64| if at < space { (1.0 - space) / space } else { space / (1.0 - space) }
        };
        let ranks = units as f64;
        vec![
            Self::new("uniform", units, 0.0, |_| 1.0),
            Self::new("90 % of the writes to 10 %", units, 0.0, hot(0.1)),
            Self::new("80 % of the writes to 20 %", units, 0.0, hot(0.2)),
            Self::new("Zipf, theta 0.99", units, 0.0, |at| (at * ranks).powf(-0.99)),
            Self::new("half of the requests TRIMs", units, 0.5, |_| 1.0),
            Self::new("90/10, a fifth TRIMs", units, 0.2, hot(0.1)),
        ]
    }

    /// The next unit, and whether it is trimmed.
    fn draw(&self, rng: &mut Rng) -> (usize, bool) {
        let share = rng.unit_f64();
        let rank = self.below.partition_point(|&below| below < share).min(self.below.len() - 1);
        let unit = (rank as u64).wrapping_mul(2_654_435_761) % self.below.len() as u64; // odd, and no divisor of it
        (unit as usize, rng.unit_f64() < self.trims)
    }
}

/// A drive of one die.
struct Model {
    /// Where each unit lies on flash.
    at: Vec<Option<(usize, usize)>>,
    /// The unit in each place of each block.
    held: Vec<Vec<Option<usize>>>,
    valid: Vec<usize>,
    /// When a block last lost a unit, or was filled.
    changed: Vec<u64>,
    closed: Vec<bool>,
    free: Vec<usize>,
    open: usize,
    buffer: std::collections::VecDeque<usize>,
    is_buffered: Vec<bool>,
    clock: u64,
    from_host: u64,
    programmed: u64,
}

impl Model {
    fn new(units: usize) -> Self {
        let mut free: Vec<usize> = (0..BLOCKS).rev().collect();
        let open = free.pop().unwrap();
        Self {
            at: vec![None; units],
            held: vec![Vec::new(); BLOCKS],
            valid: vec![0; BLOCKS],
            changed: vec![0; BLOCKS],
            closed: vec![false; BLOCKS],
            free,
            open,
            buffer: std::collections::VecDeque::new(),
            is_buffered: vec![false; units],
            clock: 0,
            from_host: 0,
            programmed: 0,
        }
    }

    fn write(&mut self, unit: usize) {
        if self.is_buffered[unit] {
            return;
        }
        self.is_buffered[unit] = true;
        self.buffer.push_back(unit);
        if self.buffer.len() > BUFFERED {
            let oldest = self.buffer.pop_front().unwrap();
            self.is_buffered[oldest] = false;
            self.from_host += 1;
            self.program(oldest);
            while self.free.len() <= SOFT_FREE_BLOCKS {
                self.collect();
            }
        }
    }

    fn trim(&mut self, unit: usize) {
        if std::mem::take(&mut self.is_buffered[unit]) {
            self.buffer.retain(|&buffered| buffered != unit);
        }
        self.invalidate(unit);
    }

    fn invalidate(&mut self, unit: usize) {
        if let Some((block, place)) = self.at[unit].take() {
            self.held[block][place] = None;
            self.valid[block] -= 1;
            self.clock += 1;
            self.changed[block] = self.clock;
        }
    }

    fn program(&mut self, unit: usize) {
        self.invalidate(unit);
        self.programmed += 1;
        let block = self.open;
        self.at[unit] = Some((block, self.held[block].len()));
        self.held[block].push(Some(unit));
        self.valid[block] += 1;
        if self.held[block].len() == UNITS_PER_BLOCK {
            self.closed[block] = true;
            self.clock += 1;
            self.changed[block] = self.clock;
            self.open = self.free.pop().unwrap();
        }
    }

    /// Empties the block with the fewest valid units; among equals the one that changed longest ago.
    fn collect(&mut self) {
        let closed = (0..BLOCKS).filter(|&block| self.closed[block]);
        let victim = closed.min_by_key(|&block| (self.valid[block], self.changed[block])).unwrap();
        self.closed[victim] = false;
        for place in 0..UNITS_PER_BLOCK {
            if let Some(unit) = self.held[victim][place] {
                self.program(unit);
            }
        }
        self.held[victim].clear();
        self.free.insert(0, victim);
    }
}

/// Programs for each unit that left the buffer.
fn of_model(work: &Work, units: usize) -> f64 {
    let (mut model, mut rng) = (Model::new(units), Rng::new(2, "model"));
    for unit in 0..units {
        model.write(unit);
    }
    let mut go = |model: &mut Model, capacities: u64| {
        for _ in 0..capacities * units as u64 {
            match work.draw(&mut rng) {
                (unit, true) => model.trim(unit),
                (unit, false) => model.write(unit),
            }
        }
    };
    go(&mut model, BEFORE);
    let before = (model.programmed, model.from_host);
    go(&mut model, MEASURED);
    (model.programmed - before.0) as f64 / (model.from_host - before.1) as f64
}

fn drive() -> Ssd<NoData> {
    let mut config = Config::default();
    config.nand.channels = 1;
    config.nand.dies_per_channel = 1;
    config.nand.blocks_per_plane = BLOCKS as u32;
    config.nand.pages_per_block = UNITS_PER_BLOCK as u32;
    config.nand.page_size = Bytes::new(4096);
    config.ftl.over_provisioning = Ratio::from_percent(OVER_PROVISIONING);
    config.ftl.gc.soft_free_blocks = SOFT_FREE_BLOCKS as u32;
    config.buffer.size = Bytes::new(2 * BUFFERED as u64 * 4096);
    let mut ssd = Ssd::<NoData>::new(&config, 1).unwrap();
    ssd.set_untimed(true);
    ssd
}

/// The same of Leyden's drive.
fn of_drive(work: &Work) -> f64 {
    let (mut ssd, mut rng) = (drive(), Rng::new(1, "drive"));
    let units = u64::from(ssd.mapping_units());
    let mut done = Vec::new();
    let mut submit = |ssd: &mut Ssd<NoData>, op, unit: u64| {
        ssd.submit(ssd.now(), Command::new(op, Lba(unit * SECTORS), SECTORS as u32, ()));
        while let Some(time) = ssd.next_event() {
            ssd.advance(time, &mut done);
        }
        done.clear();
    };
    for unit in 0..units {
        submit(&mut ssd, Op::Write, unit);
    }
    let mut go = |ssd: &mut Ssd<NoData>, capacities: u64| {
        for _ in 0..capacities * units {
            let (unit, is_trim) = work.draw(&mut rng);
            submit(ssd, if is_trim { Op::Trim } else { Op::Write }, unit as u64);
        }
    };
    go(&mut ssd, BEFORE);
    let before = ssd.stats().ftl;
    go(&mut ssd, MEASURED);
    let after = ssd.stats().ftl;
    ssd.check();
    let copied = after.gc.copied_units - before.gc.copied_units;
    1.0 + copied as f64 / (after.user_units - before.user_units) as f64
}

#[test]
fn skewed_writes_and_trims_cost_what_a_model_of_its_own_says() {
    let units = drive().mapping_units() as usize;
    for work in Work::all(units) {
        let (drive, model) = (of_drive(&work), of_model(&work, units));
        println!(
            "{:28} drive {drive:.3} model {model:.3} {:+.1} %",
            work.name,
            100.0 * (drive / model - 1.0)
        );
        assert!((drive / model - 1.0).abs() < 0.01, "{}: {drive} {model}", work.name);
    }
}
