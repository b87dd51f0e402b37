//! A job ready to yield requests.

use leyden_device::{Lba, Op};
use leyden_sim::{Bytes, BytesPerSec, ConfigError, Ratio, Rng, Span, Time};

use super::permute::Permutation;
use super::place::Places;
use super::size::Sizes;
use super::validate::{Checked, Region};
use super::{FsyncOf, JobConfig, Pattern};
use crate::{Class, Request};

/// The limits that the driver must keep to when it submits a job's requests. Limits that were not
/// given are the largest value of their type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pacing {
    /// Threads, each with its own queue.
    pub threads: u32,
    /// Requests that each thread keeps outstanding.
    pub queue_depth: u32,
    /// The most requests per second.
    pub iops_limit: Option<u64>,
    /// The most bytes per second.
    pub rate_limit: Option<BytesPerSec>,
    /// How long a thread rests, with nothing outstanding; zero: never.
    pub think_time: Span,
    /// After how many of its requests a thread rests.
    pub think_every: u64,
    /// After how many of its writes a thread flushes, with nothing else outstanding; 0: never.
    pub fsync_every: u64,
    /// The scope of such a flush.
    pub fsync_of: FsyncOf,
    /// Requests pass a page cache by.
    pub direct: bool,
    /// How long after the workload's start the job begins.
    pub start_delay: Span,
    /// Requests to submit, flushes not counted.
    pub requests: u64,
    /// Bytes to ask for.
    pub bytes: u64,
    /// How long after the job's start it submits nothing more.
    pub time: Span,
}

/// A checked job: its pacing, and its requests.
#[derive(Clone, Debug)]
pub struct Job {
    name: String,
    pacing: Pacing,
    mix: Mix,
    order: Order,
    region: Region,
    /// Requests drawn ahead, and how many of them have been handed out.
    ahead: Vec<Request>,
    handed_out: usize,
}

/// How many requests are drawn ahead.
const AHEAD: usize = 16;

/// The mix of requests.
#[derive(Clone, Debug)]
struct Mix {
    read_below_ppm: u64,
    trim_below_ppm: u64,
    fua: Ratio,
    sizes: Sizes,
    op_rng: Rng,
    fua_rng: Rng,
}

/// Where.
#[derive(Clone, Debug)]
enum Order {
    /// Each thread's next sector, from the start of its part.
    Sequential { cursors: Vec<u64>, part_sectors: u64 },
    /// Places for writes and trims, and for reads.
    Random(Box<[Places; 2]>),
    /// Every place once a pass.
    Shuffled(Box<Shuffle>),
}

/// Places in an order of their own.
#[derive(Clone, Debug)]
struct Shuffle {
    order: Permutation,
    places: u64,
    /// How many of this pass have been drawn.
    drawn: u64,
    /// Draws the next pass's order; `None` if all are alike.
    rng: Option<Rng>,
}

impl Shuffle {
    fn new(places: u64, is_same: bool, mut rng: Rng) -> Self {
        let order = Permutation::new(places, &mut rng);
        Self { order, places, drawn: 0, rng: (!is_same).then_some(rng) }
    }

    #[inline]
    fn draw(&mut self) -> u64 {
        if self.drawn == self.places {
            self.drawn = 0;
            if let Some(rng) = &mut self.rng {
                self.order = Permutation::new(self.places, rng);
            }
        }
        self.drawn += 1;
        self.order.apply(self.drawn - 1)
    }
}

impl JobConfig {
    /// Checks the job against a device of `capacity_sectors` and makes it ready. `index` is its
    /// place among the jobs of the workload: it and `seed` decide what is random.
    pub fn build(
        &self,
        seed: u64,
        index: usize,
        capacity_sectors: u64,
    ) -> Result<Job, ConfigError> {
        self.build_for(seed, index, capacity_sectors, "synth")
    }

    /// The same job for warm-up: hot places are the same, but requests are drawn from a stream of their
    /// own. If warm-up issued the first requests of the run itself, old blocks would hold exactly the data
    /// that is overwritten next, in that order.
    pub fn build_past(
        &self,
        seed: u64,
        index: usize,
        capacity_sectors: u64,
    ) -> Result<Job, ConfigError> {
        self.build_for(seed, index, capacity_sectors, "synth_past")
    }

    fn build_for(
        &self,
        seed: u64,
        index: usize,
        capacity_sectors: u64,
        draws: &str,
    ) -> Result<Job, ConfigError> {
        let checked = Checked::new(self, capacity_sectors)?;
        let config = &checked.config;
        let rng = |purpose: &str| Rng::new(seed, &format!("{draws}/{index}/{purpose}"));
        let scatter = || Rng::new(seed, &format!("synth/{index}/scatter"));
        let read_below_ppm = config.read_share.as_ppm();
        let mix = Mix {
            read_below_ppm,
            trim_below_ppm: read_below_ppm + config.trim_share.as_ppm(),
            fua: config.fua_share,
            sizes: Sizes::new(&config.block_size.sizes(), rng("size")),
            op_rng: rng("op"),
            fua_rng: rng("fua"),
        };
        let order = if config.pattern == Pattern::Sequential {
            Order::Sequential {
                cursors: vec![0; config.threads as usize],
                part_sectors: checked.part_sectors,
            }
        } else if matches!(config.pattern, Pattern::Shuffled | Pattern::ShuffledSame) {
            let is_same = config.pattern == Pattern::ShuffledSame;
            Order::Shuffled(Box::new(Shuffle::new(checked.places, is_same, rng("place"))))
        } else {
            let places = checked.places;
            let reads = config.read_distribution.as_ref();
            let sampler = |distribution, key: &str, purpose| {
                Places::new(distribution, places, rng(purpose), scatter())
                    .map_err(|empty| checked.too_small(distribution, key, &empty))
            };
            Order::Random(Box::new([
                sampler(&config.distribution, "distribution", "place")?,
                match reads {
                    Some(reads) => sampler(reads, "read_distribution", "read_place")?,
                    None => sampler(&config.distribution, "distribution", "read_place")?,
                },
            ]))
        };
        let name = if self.name.is_empty() { format!("job {index}") } else { self.name.clone() };
        Ok(Job {
            name,
            pacing: pacing(config),
            mix,
            order,
            region: checked.region,
            ahead: Vec::with_capacity(AHEAD),
            handed_out: 0,
        })
    }
}

fn pacing(config: &JobConfig) -> Pacing {
    Pacing {
        threads: config.threads,
        queue_depth: config.queue_depth,
        iops_limit: config.iops_limit,
        rate_limit: config.rate_limit,
        think_time: config.think_time,
        think_every: config.think_every,
        fsync_every: config.fsync_every,
        fsync_of: config.fsync_of,
        direct: config.direct,
        start_delay: config.start_delay,
        requests: config.requests.unwrap_or(u64::MAX),
        bytes: config.bytes.map_or(u64::MAX, Bytes::get),
        time: config.time.unwrap_or(Span::from_ns(u64::MAX)),
    }
}

impl Job {
    /// The job's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How to submit the requests.
    pub fn pacing(&self) -> &Pacing {
        &self.pacing
    }

    /// The next request, for `thread` to submit. Endless: the driver minds the limits.
    ///
    /// # Panics
    /// If there is no such thread.
    #[inline]
    pub fn next_request(&mut self, thread: u32) -> Request {
        match self.ahead.get(self.handed_out) {
            Some(&request) => {
                self.handed_out += 1;
                request
            }
            None => self.draw(thread),
        }
    }

    /// Draws some requests ahead, once those drawn ahead before have been handed out, and yields
    /// them: a driver that knows what comes next can prepare for it. What is drawn stays the same.
    ///
    /// Yields nothing while there are any left, and nothing of sequential jobs, whose requests
    /// depend on the thread.
    #[inline]
    pub fn look_ahead(&mut self) -> &[Request] {
        if self.handed_out < self.ahead.len() || matches!(self.order, Order::Sequential { .. }) {
            return &[];
        }
        self.ahead.clear();
        self.handed_out = 0;
        for _ in 0..AHEAD {
            let request = self.draw(0);
            self.ahead.push(request);
        }
        &self.ahead
    }

    #[inline]
    fn draw(&mut self, thread: u32) -> Request {
        let op = self.mix.op();
        let mut sectors = self.mix.sizes.draw();
        let lba = match &mut self.order {
            Order::Random(places) => {
                let place = places[usize::from(op == Op::Read)].draw();
                self.region.first_sector + place * self.region.align_sectors
            }
            Order::Shuffled(shuffle) => {
                self.region.first_sector + shuffle.draw() * self.region.align_sectors
            }
            Order::Sequential { cursors, part_sectors } => {
                let cursor = &mut cursors[thread as usize];
                let at = *cursor;
                sectors = u64::from(sectors).min(*part_sectors - at) as u32;
                *cursor = (at + u64::from(sectors)).next_multiple_of(self.region.align_sectors);
                if *cursor >= *part_sectors {
                    *cursor = 0;
                }
                self.region.first_sector + u64::from(thread) * *part_sectors + at
            }
        };
        Request {
            at: Time::ZERO,
            op,
            lba: Lba(lba),
            sectors,
            fua: op == Op::Write && self.mix.draw_fua(),
            class: Class::Unknown,
        }
    }

    /// The region's first sector, and how many it has.
    pub const fn region(&self) -> (Lba, u64) {
        (Lba(self.region.first_sector), self.region.sectors)
    }
}

impl Mix {
    #[inline]
    fn op(&mut self) -> Op {
        // Nothing else draws from this generator: what is certain need not be drawn.
        if self.trim_below_ppm == 0 {
            return Op::Write;
        }
        if self.read_below_ppm >= Ratio::ONE.as_ppm() {
            return Op::Read;
        }
        let point = self.op_rng.below(Ratio::ONE.as_ppm());
        if point < self.read_below_ppm {
            Op::Read
        } else if point < self.trim_below_ppm {
            Op::Trim
        } else {
            Op::Write
        }
    }

    #[inline]
    fn draw_fua(&mut self) -> bool {
        self.fua != Ratio::ZERO && self.fua_rng.chance(self.fua)
    }
}
