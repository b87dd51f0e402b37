//! The verifier against a slow twin: the whole history, searched for every unit read.

use leyden_device::{CommandId, Completion, Lba, Op, Output, Stamp, Status};
use leyden_sim::{Rng, Time};
use leyden_workload::{Class, Request};
use proptest::prelude::*;

use crate::driver::{Content, Verifier};

const UNITS: u64 = 6;
const UNIT_SECTORS: u64 = 8;
const SLOTS: usize = 5;
/// A stamp that no write was given.
const NEVER: u64 = 999_999;

/// A change of some units, as the twin remembers it: when it was submitted and completed, in steps
/// of the test.
#[derive(Clone, Debug)]
struct Change {
    units: Vec<u64>,
    value: u64,
    submitted: u64,
    completed: Option<u64>,
    failed: bool,
}

/// All that ever happened.
#[derive(Default)]
struct Twin {
    changes: Vec<Change>,
    /// A unit that a cache could not write out, and when.
    unwritten: Vec<(u64, u64)>,
}

impl Twin {
    /// Whether a read submitted at step `submitted`, completing now, may show `found` for `unit`.
    fn allows(&self, unit: u64, found: u64, submitted: u64) -> bool {
        let touching = || self.changes.iter().filter(|change| change.units.contains(&unit));
        let replaced = |at: Option<u64>| {
            touching().any(|later| {
                !later.failed
                    && at.is_some_and(|at| at < later.submitted)
                    && later.completed.is_some_and(|done| done < submitted)
            })
        };
        let initial = found == 0 && !replaced(Some(0));
        let mut doubts = self.unwritten.iter().filter(|(at, _)| *at == unit);
        let in_doubt = doubts.any(|(_, step)| !replaced(Some(*step)));
        initial
            || in_doubt && found != NEVER
            || touching().any(|change| change.value == found && !replaced(change.completed))
    }

    /// Every stamp there is.
    fn stamps(&self) -> Vec<u64> {
        let stamps = self.changes.iter().map(|change| change.value);
        stamps.chain([0, NEVER]).collect()
    }
}

/// A command under way in the test.
enum Under {
    Change(usize),
    Read { units: Vec<u64>, submitted: u64 },
    Flush,
}

fn touched(request: &Request) -> Vec<u64> {
    let (first, end) = (request.lba.0, request.lba.0 + u64::from(request.sectors));
    let covers = |unit: u64| first <= unit * UNIT_SECTORS && (unit + 1) * UNIT_SECTORS <= end;
    let overlaps = |unit: u64| first < (unit + 1) * UNIT_SECTORS && unit * UNIT_SECTORS < end;
    match request.op {
        Op::Flush | Op::WritePrepare | Op::ZoneAppend | Op::Copy | Op::Zone(_) | Op::ZoneReport => {
            Vec::new()
        }
        Op::Trim | Op::WriteZeroes => (0..UNITS).filter(|unit| covers(*unit)).collect(),
        Op::Read | Op::Write => (0..UNITS).filter(|unit| overlaps(*unit)).collect(),
    }
}

fn any_request(rng: &mut Rng) -> Request {
    let ops = [Op::Read, Op::Read, Op::Write, Op::Write, Op::Trim, Op::Flush];
    let lba = rng.below(UNITS * UNIT_SECTORS);
    Request {
        at: Time::ZERO,
        op: ops[rng.below(ops.len() as u64) as usize],
        lba: Lba(lba),
        sectors: 1 + rng.below((UNITS * UNIT_SECTORS - lba).min(3 * UNIT_SECTORS)) as u32,
        fua: false,
        class: Class::Unknown,
    }
}

fn completion(op: Op, slot: usize, data: &[u64], status: Status) -> Completion<Stamp> {
    Completion {
        id: CommandId(0),
        op,
        tag: slot as u32,
        submitted: Time::ZERO,
        time: Time::ZERO,
        status,
        output: match op {
            Op::Read => Output::Read(data.iter().map(|stamp| Stamp(*stamp)).collect()),
            _ => Output::None,
        },
    }
}

struct Race {
    rng: Rng,
    twin: Twin,
    verifier: Verifier,
    under: [Option<Under>; SLOTS],
}

impl Race {
    fn submit(&mut self, slot: usize, step: u64) {
        let request = any_request(&mut self.rng);
        let stamp = self.verifier.submit(slot as u32, Time::ZERO, &request);
        let units = touched(&request);
        self.under[slot] = Some(match request.op {
            Op::Read => Under::Read { units, submitted: step },
            Op::Flush => Under::Flush,
            op => {
                self.twin.changes.push(Change {
                    units,
                    value: if op == Op::Write { stamp } else { 0 },
                    submitted: step,
                    completed: None,
                    failed: false,
                });
                Under::Change(self.twin.changes.len() - 1)
            }
        });
    }

    fn fail_to_write_out(&mut self, step: u64) {
        let units: Vec<u64> = (0..UNITS).filter(|_| self.rng.below(3) == 0).collect();
        self.verifier.unwritten(units.iter().map(|&unit| unit as u32).collect());
        self.twin.unwritten.extend(units.into_iter().map(|unit| (unit, step)));
    }

    /// Completes the command in `slot`; reads return any stamps at all, and the verifier must say
    /// what the twin says.
    fn complete(&mut self, slot: usize, under: &Under, step: u64) -> Result<(), TestCaseError> {
        match under {
            Under::Flush => {
                let flushed = completion(Op::Flush, slot, &[], Status::Success);
                prop_assert_eq!(self.verifier.ended(slot, &flushed), Ok(()));
            }
            Under::Change(index) => {
                let failed = self.rng.below(10) == 0;
                let status = if failed { Status::WriteFault } else { Status::Success };
                let change = &mut self.twin.changes[*index];
                (change.completed, change.failed) = (Some(step), failed);
                let done = completion(Op::Write, slot, &[], status);
                prop_assert_eq!(self.verifier.ended(slot, &done), Ok(()));
            }
            Under::Read { units, submitted } => {
                let stamps = self.twin.stamps();
                let mut data = Vec::new();
                for unit in units {
                    let legal: Vec<u64> = stamps
                        .iter()
                        .copied()
                        .filter(|stamp| self.twin.allows(*unit, *stamp, *submitted))
                        .collect();
                    let wild = self.rng.below(30) == 0;
                    let from = if wild { &stamps } else { &legal };
                    data.push(from[self.rng.below(from.len() as u64) as usize]);
                }
                let wrong = units
                    .iter()
                    .zip(&data)
                    .find(|(unit, stamp)| !self.twin.allows(**unit, **stamp, *submitted));
                let read = completion(Op::Read, slot, &data, Status::Success);
                let verdict = self.verifier.ended(slot, &read);
                let found = verdict.err().map(|violation| (violation.unit, violation.found));
                prop_assert_eq!(found, wrong.map(|(unit, stamp)| (*unit, Some(*stamp))));
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn agrees_with_the_whole_history(seed: u64, caches: bool) {
        let mut race = Race {
            rng: Rng::new(seed, "verify"),
            twin: Twin::default(),
            verifier: Verifier::new(UNITS * UNIT_SECTORS, UNIT_SECTORS),
            under: [const { None }; SLOTS],
        };
        for step in 1..200 {
            if caches && race.rng.below(20) == 0 {
                race.fail_to_write_out(step);
                continue;
            }
            let slot = race.rng.below(SLOTS as u64) as usize;
            match race.under[slot].take() {
                None => race.submit(slot, step),
                Some(under) => race.complete(slot, &under, step)?,
            }
        }
    }
}

#[test]
fn violations_say_what_was_expected() {
    let mut verifier = Verifier::new(64, 8);
    let request = |op, lba, sectors| Request {
        at: Time::ZERO,
        op,
        lba: Lba(lba),
        sectors,
        fua: false,
        class: Class::Unknown,
    };
    let write = request(Op::Write, 8, 8);
    let stamp = verifier.submit(0, Time::ZERO, &write);
    verifier.ended(0, &completion(Op::Write, 0, &[], Status::Success)).unwrap();
    verifier.submit(1, Time::ZERO, &request(Op::Read, 0, 24));
    let good = completion(Op::Read, 1, &[0, stamp, 0], Status::Success);
    verifier.ended(1, &good).unwrap();
    verifier.submit(1, Time::ZERO, &request(Op::Read, 0, 24));
    let stale = completion(Op::Read, 1, &[0, 0, 0], Status::Success);
    let violation = verifier.ended(1, &stale).unwrap_err();
    assert_eq!((violation.unit, violation.found), (1, Some(0)));
    assert_eq!(violation.expected, [stamp]);
    assert!(violation.to_string().contains("returned stamp 0"), "{violation}");
    verifier.submit(1, Time::ZERO, &request(Op::Read, 0, 24));
    let short = completion(Op::Read, 1, &[0], Status::Success);
    assert_eq!(verifier.ended(1, &short).unwrap_err().found, None);
}

#[test]
fn data_that_a_cache_could_not_write_out_is_in_doubt_until_it_is_written_again() {
    let mut verifier = Verifier::new(64, 8);
    let request = |op| Request {
        at: Time::ZERO,
        op,
        lba: Lba(8),
        sectors: 8,
        fua: false,
        class: Class::Unknown,
    };
    let write = |verifier: &mut Verifier| {
        let stamp = verifier.submit(0, Time::ZERO, &request(Op::Write));
        verifier.ended(0, &completion(Op::Write, 0, &[], Status::Success)).unwrap();
        stamp
    };
    let finish = |verifier: &mut Verifier, stamp| {
        verifier.ended(1, &completion(Op::Read, 1, &[stamp], Status::Success))
    };
    let read = |verifier: &mut Verifier, stamp| {
        verifier.submit(1, Time::ZERO, &request(Op::Read));
        finish(verifier, stamp)
    };
    let (old, new) = (write(&mut verifier), write(&mut verifier));
    assert_eq!(read(&mut verifier, old).unwrap_err().expected, [new]);
    // This read and those after it may find what lies below.
    verifier.submit(1, Time::ZERO, &request(Op::Read));
    verifier.unwritten(vec![1]);
    finish(&mut verifier, old).unwrap();
    read(&mut verifier, new).unwrap();
    read(&mut verifier, old).unwrap();
    assert_eq!(read(&mut verifier, NEVER).unwrap_err().expected, [new]);
    let newer = write(&mut verifier);
    assert_eq!(read(&mut verifier, old).unwrap_err().expected, [newer]);
}

#[test]
fn the_real_device_passes() {
    use leyden_device::{BlockDevice, Config, Ssd};
    use leyden_sim::Ratio;
    use leyden_workload::synth::{BlockSize, JobConfig};

    use crate::driver::{Options, run_jobs};

    let mut config = Config::default();
    config.nand.channels = 2;
    config.nand.dies_per_channel = 1;
    config.nand.blocks_per_plane = 32;
    config.nand.pages_per_block = 32;
    config.ftl.over_provisioning = Ratio::from_percent(25);
    let mut ssd = Ssd::<Stamp>::new(&config, 1).unwrap();
    let capacity = ssd.capacity_sectors();
    let job = JobConfig {
        read_share: Ratio::from_percent(40),
        trim_share: Ratio::from_percent(5),
        block_size: BlockSize::One(leyden_sim::Bytes::new(6 * 1024)),
        align: Some(leyden_sim::Bytes::new(512)),
        span: Some(leyden_sim::Bytes::new(1 << 20)),
        queue_depth: 16,
        threads: 2,
        fsync_every: 50,
        requests: Some(20_000),
        ..JobConfig::default()
    };
    let jobs = vec![job.build(1, 0, capacity).unwrap()];
    let mut verifier = Verifier::new(capacity, 8);
    let measured = run_jobs(
        &mut ssd,
        jobs,
        &mut verifier,
        &mut |ssd: &Ssd<Stamp>| ssd.stats(),
        Options::default(),
    )
    .unwrap();
    assert_eq!(measured.failed.commands, 0);
    assert!(measured.traffic.writes.count() > 10_000);
}
