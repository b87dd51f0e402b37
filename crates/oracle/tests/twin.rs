//! The oracle against its slow twin, which keeps every candidate version of every unit in a list and
//! strikes out what the rules strike out; on histories that no drive would produce.

use leyden_oracle::{Ended, Id, Op, Oracle, Promise, Request};
use leyden_sim::{Rng, Time};
use proptest::prelude::*;

const UNITS: u64 = 4;
const UNIT_SECTORS: u64 = 2;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Version {
    id: u64,
    stamp: u64,
    submitted: u64,
    ended: Option<u64>,
    failed: bool,
    at_once: bool,
}

impl Version {
    fn is_older_than(&self, other: &Self) -> bool {
        self.ended.is_some_and(|ended| ended < other.submitted)
    }
}

#[derive(Clone, Debug)]
struct Unit {
    /// Every version ever, `id` 0 being the zeroes at the start.
    all: Vec<Version>,
    current: Vec<u64>,
    durable: Vec<u64>,
    /// Versions in `durable` that were submitted until then are promised, and of one stamp.
    known: u64,
    /// The version that the last recovery left, once a read has shown that.
    left: Option<u64>,
    /// When a cache failed to write it out, and when a flush had said so.
    unwritten: u64,
    given_up: u64,
    /// Nothing has replaced it since.
    is_unwritten: bool,
}

#[derive(Clone, Copy, Debug)]
enum Unflushed {
    Acknowledged { unit: usize, id: u64 },
    Seen { unit: usize, stamp: u64 },
}

#[derive(Clone, Debug)]
struct Command {
    id: Id,
    request: Request,
    submitted: u64,
    /// For a read: the candidates of each unit, and whether anything was in flight.
    seen: Vec<(Vec<u64>, bool)>,
}

struct Twin {
    promise: Promise,
    now: u64,
    last_cut: u64,
    units: Vec<Unit>,
    unflushed: Vec<(u64, Unflushed)>,
    /// Units that could not be written out, of which no flush has said so.
    unwritten: Vec<usize>,
}

/// The units that a command changes, with the stamps they get.
fn effects(request: &Request, id: u64) -> Vec<(usize, u64)> {
    let sectors = request.lba..request.lba + u64::from(request.sectors);
    let mut found = Vec::new();
    for unit in 0..UNITS {
        let inside = (unit * UNIT_SECTORS..(unit + 1) * UNIT_SECTORS)
            .filter(|sector| sectors.contains(sector))
            .count() as u64;
        let stamp = match request.op {
            Op::Trim | Op::WriteZeroes if inside == UNIT_SECTORS => 0,
            Op::Write | Op::WriteZeroes if inside > 0 => id,
            _ => continue,
        };
        found.push((unit as usize, stamp));
    }
    found
}

fn touched(request: &Request) -> std::ops::Range<usize> {
    let end = (request.lba + u64::from(request.sectors)).div_ceil(UNIT_SECTORS);
    (request.lba / UNIT_SECTORS) as usize..end as usize
}

impl Unit {
    fn version(&self, id: u64) -> &Version {
        self.all.iter().find(|version| version.id == id).unwrap()
    }

    /// `id` has certainly replaced what is older.
    fn replace(&self, set: &[u64], id: u64) -> Vec<u64> {
        let newer = self.version(id);
        let keep = |&other: &u64| !self.version(other).is_older_than(newer);
        set.iter().copied().filter(keep).collect()
    }

    /// Of what was submitted up to `tick`, only `stamp` is left.
    fn know(&self, set: &[u64], stamp: u64, tick: u64) -> Vec<u64> {
        let keep = |&id: &u64| {
            let version = self.version(id);
            version.submitted > tick || version.stamp == stamp
        };
        set.iter().copied().filter(keep).collect()
    }

    /// Of what was submitted up to `tick`, only `stamp` may be left by a cut.
    fn promise(&mut self, stamp: u64, tick: u64) {
        self.durable = self.know(&self.durable, stamp, tick);
        self.known = self.known.max(tick);
    }
}

impl Twin {
    fn new(promise: Promise) -> Self {
        let zeroes =
            Version { id: 0, stamp: 0, submitted: 0, ended: Some(0), failed: false, at_once: true };
        let unit = Unit {
            all: vec![zeroes],
            current: vec![0],
            durable: vec![0],
            known: 0,
            left: None,
            unwritten: 0,
            given_up: 0,
            is_unwritten: false,
        };
        let units = vec![unit; UNITS as usize];
        Self { promise, now: 0, last_cut: 0, units, unflushed: vec![], unwritten: vec![] }
    }

    fn submit(&mut self, id: Id, request: Request) -> Command {
        self.now += 1;
        let fua = request.fua && request.op != Op::Trim;
        let at_once = match self.promise {
            Promise::Full => true,
            Promise::None => fua,
            Promise::Selective => fua || request.plp,
        };
        for (unit, stamp) in effects(&request, id.0) {
            let unit = &mut self.units[unit];
            let version = Version {
                id: id.0,
                stamp,
                submitted: self.now,
                ended: None,
                failed: false,
                at_once,
            };
            unit.all.push(version);
            unit.current.push(id.0);
            unit.durable.push(id.0);
        }
        let look = |unit: &Unit| {
            let quiet = unit.all.iter().all(|version| version.ended.is_some());
            (unit.current.clone(), quiet)
        };
        let is_read = request.op == Op::Read;
        let seen =
            if is_read { self.units[touched(&request)].iter().map(look).collect() } else { vec![] };
        Command { id, request, submitted: self.now, seen }
    }

    fn end(&mut self, unit: usize, id: u64, failed: bool) {
        let versions = &mut self.units[unit].all;
        let version = versions.iter_mut().find(|version| version.id == id).unwrap();
        version.ended = Some(self.now);
        version.failed = failed;
    }

    /// False if a read returned what it must not.
    fn complete(&mut self, command: &Command, ended: Ended, data: &[u64]) -> bool {
        self.now += 1;
        match command.request.op {
            Op::Read => {
                if ended == Ended::Failed {
                    return false;
                }
                for (index, unit) in touched(&command.request).enumerate() {
                    let (candidates, quiet) = &command.seen[index];
                    if !self.read(unit, command.submitted, candidates, *quiet, data[index]) {
                        return false;
                    }
                }
            }
            Op::Flush if ended == Ended::Done => {
                self.flushed(command.submitted, 0..UNITS as usize);
            }
            Op::Sync if ended == Ended::Done => {
                self.flushed(command.submitted, touched(&command.request));
            }
            Op::Flush => {
                for unit in self.unwritten.drain(..) {
                    self.units[unit].given_up = self.units[unit].unwritten;
                }
            }
            // A flush of everything says so once more.
            Op::Sync => {
                for unit in touched(&command.request) {
                    if self.unwritten.contains(&unit) {
                        self.units[unit].given_up = self.units[unit].unwritten;
                    }
                }
            }
            _ => {
                for (unit, _) in effects(&command.request, command.id.0) {
                    self.end(unit, command.id.0, ended == Ended::Failed);
                    if ended == Ended::Failed {
                        continue;
                    }
                    let id = command.id.0;
                    let unit_ = &mut self.units[unit];
                    let version = *unit_.version(id);
                    if version.at_once || version.submitted > unit_.unwritten {
                        unit_.current = unit_.replace(&unit_.current, id);
                    }
                    unit_.is_unwritten &= version.submitted <= unit_.unwritten;
                    if unit_.version(id).at_once {
                        unit_.durable = unit_.replace(&unit_.durable, id);
                    } else {
                        self.unflushed.push((self.now, Unflushed::Acknowledged { unit, id }));
                    }
                }
            }
        }
        true
    }

    fn read(&mut self, unit: usize, read: u64, seen: &[u64], quiet: bool, stamp: u64) -> bool {
        let number = unit;
        let unit = &mut self.units[unit];
        let possible: Vec<Version> = unit
            .all
            .iter()
            .filter(|version| seen.contains(&version.id) || version.submitted > read)
            .filter(|version| version.stamp == stamp)
            .copied()
            .collect();
        if possible.is_empty() {
            return false;
        }
        let cut = self.last_cut;
        if unit.all.iter().filter(|v| v.stamp == stamp).all(|v| v.submitted <= cut) {
            if unit.left.is_some_and(|left| left != stamp) {
                return false;
            }
            unit.left = Some(stamp);
            unit.current = unit.know(&unit.current, stamp, cut);
            unit.promise(stamp, cut);
        }
        let last = unit.all.iter().map(|version| version.submitted).max().unwrap();
        if !quiet || last > read || unit.is_unwritten {
            // If nothing happened meanwhile, it must still be possible.
            let still = unit.current.iter().any(|&id| unit.version(id).stamp == stamp);
            return still || !quiet || last > read;
        }
        if !unit.current.iter().any(|&id| unit.version(id).stamp == stamp) {
            return false;
        }
        unit.current = unit.know(&unit.current, stamp, self.now);
        // Whichever of the zeroings it was: none of them may have failed, unless it is known.
        let candidates = unit.all.iter().filter(|version| version.stamp == stamp);
        let durable = |version: &&Version| unit.durable.contains(&version.id);
        let candidates: Vec<_> =
            if stamp == 0 { candidates.filter(durable).collect() } else { candidates.collect() };
        // A version that was promised before, and known, is promised at once.
        let is_known = |version: &&Version| durable(version) && version.submitted <= unit.known;
        if !candidates.is_empty() && candidates.iter().all(is_known) {
            unit.promise(stamp, self.now);
            return true;
        }
        if candidates.iter().any(|version| version.failed && !is_known(version)) {
            return true;
        }
        let at_once = if stamp == 0 {
            self.promise == Promise::Full
        } else {
            candidates.iter().all(|version| version.at_once)
        };
        if at_once {
            unit.promise(stamp, self.now);
        } else {
            self.unflushed.push((self.now, Unflushed::Seen { unit: number, stamp }));
        }
        true
    }

    fn flushed(&mut self, submitted: u64, units: std::ops::Range<usize>) {
        let is_flushed = |&(tick, what): &(u64, Unflushed)| match what {
            Unflushed::Acknowledged { unit, .. } | Unflushed::Seen { unit, .. } => {
                tick < submitted && units.contains(&unit)
            }
        };
        for &(tick, what) in self.unflushed.iter().filter(|what| is_flushed(what)) {
            match what {
                Unflushed::Acknowledged { unit, id } => {
                    let unit = &mut self.units[unit];
                    if unit.version(id).submitted > unit.given_up {
                        unit.durable = unit.replace(&unit.durable, id);
                    }
                }
                Unflushed::Seen { unit, stamp } => {
                    let unit = &mut self.units[unit];
                    if tick > unit.given_up {
                        unit.promise(stamp, tick);
                    }
                }
            }
        }
        // Durable versions are not lost by a cache, either.
        for unit in self.units[units.clone()].iter_mut().filter(|unit| unit.is_unwritten) {
            unit.current = unit.durable.clone();
        }
        self.unflushed.retain(|what| !is_flushed(what));
    }

    /// A cache could not write `numbers` out: reads may find what a cut might leave.
    fn note_unwritten(&mut self, numbers: &[usize], running: &mut [Command]) {
        self.now += 1;
        for &number in numbers {
            let unit = &mut self.units[number];
            (unit.unwritten, unit.is_unwritten) = (self.now, true);
            unit.current = unit.durable.clone();
            self.unwritten.push(number);
            for command in running.iter_mut().filter(|command| command.request.op == Op::Read) {
                let touched = touched(&command.request);
                if touched.contains(&number) {
                    let (seen, quiet) = &mut command.seen[number - touched.start];
                    seen.extend(&unit.current);
                    *quiet = false;
                }
            }
        }
    }

    fn cut(&mut self) {
        self.now += 1;
        for unit in &mut self.units {
            for version in &mut unit.all {
                version.ended.get_or_insert(self.now);
            }
            unit.current = unit.durable.clone();
            unit.left = None;
            (unit.unwritten, unit.given_up, unit.is_unwritten) = (0, 0, false);
        }
        self.unflushed.clear();
        self.unwritten.clear();
        self.last_cut = self.now;
    }
}

fn request(rng: &mut Rng) -> Request {
    let op = match rng.below(20) {
        0..7 => Op::Write,
        7..14 => Op::Read,
        14..16 => Op::Trim,
        16..18 => Op::WriteZeroes,
        18 => Op::Sync,
        _ => Op::Flush,
    };
    let lba = rng.below(UNITS * UNIT_SECTORS);
    let sectors = 1 + rng.below((UNITS * UNIT_SECTORS - lba).min(5)) as u32;
    Request { op, lba, sectors, fua: rng.below(5) == 0, plp: rng.below(3) == 0 }
}

/// The result of a read: mostly a version that it may return, sometimes any stamp at all.
fn data(rng: &mut Rng, twin: &Twin, command: &Command, last: u64) -> Vec<u64> {
    let units = touched(&command.request);
    let pick = |unit: usize, rng: &mut Rng| {
        let versions = &twin.units[unit];
        let (seen, _) = &command.seen[unit - units.start];
        match rng.below(400) {
            0 => rng.below(last + 2),
            1 => versions.all[rng.below(versions.all.len() as u64) as usize].stamp,
            2 => versions.all.last().unwrap().stamp,
            _ => versions.version(seen[rng.below(seen.len() as u64) as usize]).stamp,
        }
    };
    units.clone().map(|unit| pick(unit, rng)).collect()
}

fn agree(
    seed: u64,
    promise: Promise,
    depth: usize,
    (compacts, caches): (bool, bool),
) -> Result<(), TestCaseError> {
    let mut rng = Rng::new(seed, "twin");
    let mut oracle = Oracle::new(UNITS as u32, UNIT_SECTORS as u32, promise);
    let mut twin = Twin::new(promise);
    let mut running: Vec<Command> = Vec::new();
    let mut last = 0;
    for step in 0..300 {
        let at = Time::from_ns(step);
        let choice = rng.below(100);
        if choice < 3 {
            oracle.cut(at);
            oracle.restore(at);
            twin.cut();
            running.clear();
        } else if caches && choice < 7 {
            let numbers: Vec<usize> = (0..UNITS as usize).filter(|_| rng.below(3) == 0).collect();
            oracle.note_unwritten(numbers.iter().map(|&unit| unit as u32));
            twin.note_unwritten(&numbers, &mut running);
        } else if compacts && choice < 10 {
            oracle.compact();
        } else if running.len() < depth && choice < 60 {
            let request = request(&mut rng);
            let id = oracle.submit(at, request);
            last = id.0;
            running.push(twin.submit(id, request));
        } else if !running.is_empty() {
            let command = running.swap_remove(rng.below(running.len() as u64) as usize);
            let is_read = command.request.op == Op::Read;
            let failed = rng.below(if is_read { 60 } else { 10 }) == 0;
            let ended = if failed { Ended::Failed } else { Ended::Done };
            let data = if is_read { data(&mut rng, &twin, &command, last) } else { Vec::new() };
            let mine = oracle.complete(at, command.id, ended, &data);
            let theirs = twin.complete(&command, ended, &data);
            prop_assert_eq!(mine.is_ok(), theirs, "{:?} returned {:?}: {:?}", command, data, mine);
            if !theirs {
                return Ok(());
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, ..ProptestConfig::default() })]

    #[test]
    fn the_oracle_agrees_with_its_twin(
        seed: u64,
        promise in prop_oneof![Just(Promise::None), Just(Promise::Full), Just(Promise::Selective)],
        depth in 1_usize..6,
        compacts: bool,
        caches: bool,
    ) {
        agree(seed, promise, depth, (compacts, caches))?;
    }
}
