//! The oracle beside a model of a drive that is right: a buffer, flash, and commands that happen at
//! some moment between their submission and their end. It must never complain; and it must, when
//! the model forgets what it promised.

use std::collections::BTreeMap;

use leyden_oracle::{Ended, Id, Op, Oracle, Problem, Promise, Request, Violation};
use leyden_sim::{Rng, Time};
use proptest::prelude::*;

const UNITS: u32 = 6;

/// A bug to plant.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Bug {
    None,
    /// A cut loses a unit of the buffer that is protected, or was flushed.
    ForgetsBuffered,
    /// A FLUSH completes and does nothing.
    IgnoresFlush,
    /// A FLUSH of a file does.
    IgnoresSync,
    /// FUA is ignored.
    IgnoresFua,
    /// Recovery brings back an older version.
    BringsBackOlder,
}

#[derive(Clone, Debug)]
struct Command {
    id: Id,
    request: Request,
    happened: bool,
    data: Vec<u64>,
}

struct Drive {
    promise: Promise,
    bug: Bug,
    buffer: BTreeMap<u32, (u64, bool)>,
    flash: Vec<u64>,
    /// The older contents of flash.
    before: Vec<u64>,
    running: Vec<Command>,
}

impl Drive {
    fn new(promise: Promise, bug: Bug) -> Self {
        let flash = vec![0; UNITS as usize];
        Self {
            promise,
            bug,
            buffer: BTreeMap::new(),
            before: flash.clone(),
            flash,
            running: vec![],
        }
    }

    fn evict(&mut self, unit: u32) {
        if let Some((stamp, _)) = self.buffer.remove(&unit) {
            let flash = &mut self.flash[unit as usize];
            self.before[unit as usize] = *flash;
            *flash = stamp;
        }
    }

    fn evict_all(&mut self) {
        for unit in 0..UNITS {
            self.evict(unit);
        }
    }

    fn happen(&mut self, index: usize) {
        let Command { id, request, .. } = self.running[index];
        self.running[index].happened = true;
        let units = request.lba as u32..request.lba as u32 + request.sectors;
        match request.op {
            Op::Read => {
                let read = |unit: u32| {
                    let buffered = self.buffer.get(&unit).map(|(stamp, _)| *stamp);
                    buffered.unwrap_or(self.flash[unit as usize])
                };
                self.running[index].data = units.map(read).collect();
            }
            Op::Flush if self.bug == Bug::IgnoresFlush => {}
            Op::Flush => self.evict_all(),
            Op::Sync if self.bug == Bug::IgnoresSync => {}
            // Nothing else.
            Op::Sync => units.for_each(|unit| self.evict(unit)),
            Op::Write | Op::Trim | Op::WriteZeroes => {
                let stamp = if request.op == Op::Write { id.0 } else { 0 };
                for unit in units {
                    let kept = request.plp && self.promise == Promise::Selective;
                    if !kept && self.buffer.get(&unit).is_some_and(|(_, kept)| *kept) {
                        self.evict(unit); // what is kept must not be replaced by what is not
                    }
                    self.buffer.insert(unit, (stamp, kept));
                    if request.fua && self.bug != Bug::IgnoresFua {
                        self.evict(unit);
                    }
                }
            }
        }
    }

    fn may_fail(&self, index: usize) -> bool {
        !matches!(self.running[index].request.op, Op::Read | Op::Flush | Op::Sync)
    }

    fn cut(&mut self, rng: &mut Rng) {
        for index in 0..self.running.len() {
            if !self.running[index].happened && rng.below(2) == 0 {
                self.happen(index);
            }
        }
        self.running.clear();
        if self.bug == Bug::ForgetsBuffered
            && let Some(&unit) = self.buffer.keys().next()
        {
            self.buffer.remove(&unit);
        }
        let buffered: Vec<u32> = self.buffer.keys().copied().collect();
        for unit in buffered {
            let kept = self.buffer[&unit].1 || self.promise == Promise::Full;
            if kept || rng.below(2) == 0 {
                self.evict(unit);
            }
        }
        self.buffer.clear();
        if self.bug == Bug::BringsBackOlder {
            let unit = rng.below(u64::from(UNITS)) as usize;
            self.flash[unit] = self.before[unit];
        }
    }
}

fn request(rng: &mut Rng) -> Request {
    let op = match rng.below(23) {
        0..8 => Op::Write,
        8..15 => Op::Read,
        15 => Op::Trim,
        16 => Op::WriteZeroes,
        17..20 => Op::Sync,
        _ => Op::Flush,
    };
    let lba = rng.below(u64::from(UNITS));
    let sectors = 1 + rng.below((u64::from(UNITS) - lba).min(3)) as u32;
    Request { op, lba, sectors, fua: rng.below(5) == 0, plp: rng.below(3) == 0 }
}

fn run(seed: u64, promise: Promise, bug: Bug, steps: u64) -> Result<(), Box<Violation>> {
    let mut rng = Rng::new(seed, "model");
    let mut oracle = Oracle::new(UNITS, 1, promise);
    let mut drive = Drive::new(promise, bug);
    for step in 0..steps {
        let at = Time::from_ns(step);
        let count = drive.running.len();
        let index = if count > 0 { rng.below(count as u64) as usize } else { 0 };
        match rng.below(100) {
            0 | 1 => {
                oracle.cut(at);
                drive.cut(&mut rng);
                oracle.restore(at);
            }
            2..8 => drive.evict(rng.below(u64::from(UNITS)) as u32),
            8 => oracle.compact(),
            _ if count == 0 || (count < 5 && rng.below(2) == 0) => {
                let request = request(&mut rng);
                let id = oracle.submit(at, request);
                drive.running.push(Command { id, request, happened: false, data: vec![] });
            }
            _ if drive.may_fail(index) && rng.below(30) == 0 => {
                // It may have happened or not.
                let command = drive.running.swap_remove(index);
                oracle.complete(at, command.id, Ended::Failed, &[])?;
            }
            _ if !drive.running[index].happened => drive.happen(index),
            _ => {
                let command = drive.running.swap_remove(index);
                oracle.complete(at, command.id, Ended::Done, &command.data)?;
            }
        }
    }
    Ok(())
}

fn promises() -> impl Strategy<Value = Promise> {
    prop_oneof![Just(Promise::None), Just(Promise::Full), Just(Promise::Selective)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn a_drive_that_is_right_is_left_in_peace(seed: u64, promise in promises()) {
        if let Err(violation) = run(seed, promise, Bug::None, 1_000) {
            prop_assert!(false, "{violation}");
        }
    }
}

#[test]
fn broken_promises_are_found() {
    let cases = [
        (Promise::Full, Bug::ForgetsBuffered),
        (Promise::Selective, Bug::ForgetsBuffered),
        (Promise::None, Bug::IgnoresFlush),
        (Promise::Selective, Bug::IgnoresFlush),
        (Promise::None, Bug::IgnoresSync),
        (Promise::None, Bug::IgnoresFua),
        (Promise::None, Bug::BringsBackOlder),
        (Promise::Full, Bug::BringsBackOlder),
    ];
    for (promise, bug) in cases {
        let found = (0..200).filter_map(|seed| run(seed, promise, bug, 1_000).err());
        let problems: Vec<Problem> = found.map(|violation| violation.problem).collect();
        // A file is a part of the drive, and other flushes cover it.
        let least = if bug == Bug::IgnoresSync { 20 } else { 80 };
        assert!(problems.len() > least, "{promise:?} {bug:?}: {}", problems.len());
        let lost = problems.iter().filter(|&&problem| problem == Problem::Lost).count();
        assert!(lost * 3 > problems.len(), "{promise:?} {bug:?}: {problems:?}");
    }
}
