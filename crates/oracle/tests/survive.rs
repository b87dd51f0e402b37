//! Versions that may survive a cut are those that a read after it may return.

use leyden_oracle::{Ended, Id, Op, Oracle, Promise, Request};
use leyden_sim::{Rng, Time};

const UNITS: u64 = 4;
const SECTORS: u64 = 2;

fn request(rng: &mut Rng) -> Request {
    let op = match rng.below(8) {
        0..=3 => Op::Write,
        4 => Op::Trim,
        5 => Op::WriteZeroes,
        _ => Op::Flush,
    };
    let lba = rng.below(UNITS * SECTORS);
    let sectors = 1 + rng.below((UNITS * SECTORS - lba).min(5)) as u32;
    Request { op, lba, sectors, fua: rng.below(6) == 0, plp: false }
}

/// The stamps that a read after a cut now may return, found by asking for each.
fn readable(oracle: &Oracle, unit: u32, stamp: u64) -> bool {
    let mut after = oracle.clone();
    after.cut(Time::ZERO);
    after.restore(Time::ZERO);
    let lba = u64::from(unit) * SECTORS;
    let read = Request { op: Op::Read, lba, sectors: SECTORS as u32, fua: false, plp: false };
    let id = after.submit(Time::ZERO, read);
    after.complete(Time::ZERO, id, Ended::Done, &[stamp]).is_ok()
}

#[test]
fn what_may_survive_is_what_a_read_after_the_cut_may_return() {
    let (mut allowed, mut refused) = (0, 0);
    for seed in 0..60 {
        let mut rng = Rng::new(seed, "survive");
        let promise = [Promise::None, Promise::Full][rng.below(2) as usize];
        let mut oracle = Oracle::new(UNITS as u32, SECTORS as u32, promise);
        let mut open: Vec<Id> = Vec::new();
        let mut last = 0;
        for _ in 0..40 {
            if open.is_empty() || rng.below(2) == 0 {
                let id = oracle.submit(Time::ZERO, request(&mut rng));
                open.push(id);
                last = id.0;
            } else {
                let id = open.swap_remove(rng.below(open.len() as u64) as usize);
                let ended = if rng.below(10) == 0 { Ended::Failed } else { Ended::Done };
                oracle.complete(Time::ZERO, id, ended, &[]).unwrap();
            }
            for unit in 0..UNITS as u32 {
                for stamp in 0..=last {
                    let may = oracle.may_survive(unit, stamp);
                    assert_eq!(
                        may,
                        readable(&oracle, unit, stamp),
                        "seed {seed}, unit {unit}, {stamp}"
                    );
                    if may { allowed += 1 } else { refused += 1 }
                }
            }
        }
    }
    assert!(allowed > 1_000 && refused > 1_000, "{allowed} allowed, {refused} refused");
}
