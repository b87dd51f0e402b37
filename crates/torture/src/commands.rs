//! The host's commands: each a function of the seed, its round and its number there.

use std::sync::LazyLock;

use leyden_device::{Hint, Lba};
use leyden_oracle::{Op, Request};
use leyden_sim::{Digest, Rng};

use crate::Options;

/// 600 requests of the TPC-C trace in scenarios/traces, from the 5,001st on: what, and which blocks of 4 KiB.
static TRACE: LazyLock<Vec<(Op, u64, u64)>> =
    LazyLock::new(|| include_str!("tpcc.txt").lines().map(recorded).collect());
const BLOCK_SECTORS: u64 = 8;
/// The most units of a file, unless a command is longer.
const MOST_FILE_UNITS: u64 = 64;

/// A line of the trace: the operation, the first block and the number of blocks.
fn recorded(line: &str) -> (Op, u64, u64) {
    let mut words = line.split(' ');
    let op = match words.next() {
        Some("R") => Op::Read,
        Some("F") => Op::Flush,
        _ => Op::Write,
    };
    let mut number = || words.next().and_then(|word| word.parse().ok()).unwrap_or(1);
    (op, number(), number())
}

/// Draws commands for a drive.
#[derive(Clone, Debug)]
pub(crate) struct Commands<'a> {
    options: &'a Options,
    units: u64,
    unit_sectors: u64,
}

impl<'a> Commands<'a> {
    pub(crate) fn new(options: &'a Options, units: u32, unit_sectors: u32) -> Self {
        Self { options, units: u64::from(units), unit_sectors: u64::from(unit_sectors) }
    }

    /// A generator for `number` in `round`, independent of all others.
    fn rng(&self, purpose: &str, round: u64, number: u64) -> Rng {
        let mut mixed = Digest::default();
        mixed.add(self.options.seed).add(round).add(number);
        Rng::new(mixed.value(), purpose)
    }

    /// Command `number` of `round`.
    pub(crate) fn command(&self, round: u64, number: u64) -> Request {
        let request = if self.options.work.trace {
            self.recorded(round, number)
        } else {
            self.drawn(round, number)
        };
        if request.op == Op::Flush { self.flush(round, number) } else { request }
    }

    /// A FLUSH in place of that command: through a page cache, some are of a file that lies about where the command
    /// would have gone.
    pub(crate) fn flush(&self, round: u64, number: u64) -> Request {
        let everything = Request { op: Op::Flush, lba: 0, sectors: 0, fua: false, plp: false };
        let Some(host) = self.options.host.as_ref().filter(|host| host.page_cache.is_some()) else {
            return everything;
        };
        let mut rng = self.rng("file", round, number);
        if !rng.chance(host.file_flushes) {
            return everything;
        }
        let (lba, sectors) = self.place(round, number);
        let longest = sectors.max(MOST_FILE_UNITS * self.unit_sectors);
        let sectors = (1 + rng.below(longest)).min(self.units * self.unit_sectors - lba) as u32;
        Request { op: Op::Sync, lba, sectors, ..everything }
    }

    fn drawn(&self, round: u64, number: u64) -> Request {
        let work = &self.options.work;
        let mut rng = self.rng("command", round, number);
        // Everything is drawn, whether it is used or not: so features are independent.
        let what = rng.below(1_000) as u32;
        let fua = rng.chance(work.fua);
        let inside = rng.chance(work.unaligned).then(|| (rng.next_u64(), rng.next_u64()));
        let plp = self.rng("plp", round, number).chance(work.plp);
        let (lba, sectors) = self.place(round, number);
        let (lba, sectors) = match inside {
            // Up to a unit's sectors off at either end, but at least one sector.
            Some((head, tail)) => {
                let head = (head % self.unit_sectors).min(sectors - 1);
                let tail = (tail % self.unit_sectors).min(sectors - head - 1);
                (lba + head, sectors - head - tail)
            }
            None => (lba, sectors),
        };
        let op = self.op(what);
        Request {
            op,
            lba,
            sectors: sectors as u32,
            fua: fua && op != Op::Flush,
            plp: plp && op == Op::Write,
        }
    }

    /// The mix, laid out so that turning one kind off leaves the others what they are.
    fn op(&self, what: u32) -> Op {
        let mix = self.options.work.mix;
        let kinds = [
            (0, mix.reads, Op::Read),
            (500, mix.trims, Op::Trim),
            (650, mix.write_zeroes, Op::WriteZeroes),
            (750, mix.flushes, Op::Flush),
        ];
        let found =
            kinds.into_iter().find(|&(from, weight, _)| (from..from + weight).contains(&what));
        found.map_or(Op::Write, |(_, _, op)| op)
    }

    /// Ranges that the host says it will overwrite, with a command of its choice: some are, some are
    /// never written, trimmed, or beyond the drive's end.
    pub(crate) fn hints(&self, rng: &mut Rng) -> Vec<Hint> {
        let work = &self.options.work;
        if !rng.chance(work.hints) {
            return Vec::new();
        }
        let part = if rng.chance(work.hot) { work.hot_part.of(self.units) } else { self.units };
        let count = if rng.below(4) == 0 { 1 + rng.below(20) } else { 1 };
        let unit_sectors = self.unit_sectors;
        let hint = |_| {
            let first = rng.below(part + 2);
            let count = 1 + rng.below(u64::from(work.largest_units));
            Hint::covering(Lba(first * unit_sectors), (count * unit_sectors) as u32).next()
        };
        (0..count).filter_map(hint).collect()
    }

    /// A command of a recorded trace, wrapped around a drive that is smaller. Rounds begin anywhere in it.
    fn recorded(&self, round: u64, number: u64) -> Request {
        let at = round.wrapping_mul(97).wrapping_add(number) % TRACE.len() as u64;
        let (op, block, blocks) = TRACE[at as usize];
        let end = self.units * self.unit_sectors;
        let lba = block * BLOCK_SECTORS % end;
        let sectors = (blocks * BLOCK_SECTORS).min(end - lba);
        Request { op, lba, sectors: sectors as u32, fua: false, plp: false }
    }

    /// Whole units, of the part of the drive that the command's tenant has.
    fn place(&self, round: u64, number: u64) -> (u64, u64) {
        let work = &self.options.work;
        let mut back = 0;
        // Follow a sequence to its start; it is not long, as each link is a chance below 1.
        let mut rng = loop {
            let mut rng = self.rng("place", round, number - back);
            let goes_on = rng.chance(work.sequential) && back < number.min(64);
            if !goes_on {
                break rng;
            }
            back += 1;
        };
        let tenants = u64::from(work.tenants).min(self.units);
        let units = self.units / tenants;
        let hot = rng.chance(work.hot);
        let part = if hot { work.hot_part.of(units).max(1) } else { units };
        let length = 1 + rng.below(u64::from(work.largest_units).min(units));
        let start = rng.below(part) + back * length;
        let first = start % units;
        let length = length.min(units - first);
        let of_tenant = number % tenants * units;
        ((of_tenant + first) * self.unit_sectors, length * self.unit_sectors)
    }

    /// The writes that fill the drive at first, in order.
    pub(crate) fn fill(&self) -> impl Iterator<Item = Request> {
        let units = self.options.work.fill.of(self.units);
        let (step, sectors) = (8, self.unit_sectors);
        (0..units).step_by(step).map(move |first| Request {
            op: Op::Write,
            lba: first * sectors,
            sectors: ((units - first).min(step as u64) * sectors) as u32,
            fua: false,
            plp: false,
        })
    }

    /// A read of one of the places that are looked at after `round`.
    pub(crate) fn look(&self, round: u64, number: u64) -> Request {
        let mut rng = self.rng("look", round, number);
        let first = rng.below(self.units);
        let length = (1 + rng.below(16)).min(self.units - first);
        self.read(first, length)
    }

    /// Reads of the whole drive.
    pub(crate) fn all(&self) -> impl Iterator<Item = Request> {
        (0..self.units).step_by(32).map(|first| self.read(first, (self.units - first).min(32)))
    }

    fn read(&self, first: u64, length: u64) -> Request {
        Request {
            op: Op::Read,
            lba: first * self.unit_sectors,
            sectors: (length * self.unit_sectors) as u32,
            fua: false,
            plp: false,
        }
    }
}
