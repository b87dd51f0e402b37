//! Reads of a unit that was known and promised before promise their version at once, whichever
//! command wrote it, however that command ended, and whether or not the oracle still remembers it.

use leyden_oracle::{Ended, Id, Op, Oracle, Problem, Promise, Request, Violation};
use leyden_sim::Time;

const AT: Time = Time::ZERO;
const READ: Request = Request { op: Op::Read, lba: 0, sectors: 1, fua: false, plp: false };
const WRITE: Request = Request { op: Op::Write, ..READ };
const FUA: Request = Request { fua: true, ..WRITE };
const TRIM: Request = Request { op: Op::Trim, ..READ };
const FLUSH: Request = Request { op: Op::Flush, ..READ };

/// One unit.
struct Host(Oracle);

impl Host {
    fn new(promise: Promise) -> Self {
        Self(Oracle::new(1, 1, promise))
    }

    fn submit(&mut self, request: Request) -> Id {
        self.0.submit(AT, request)
    }

    fn end(&mut self, id: Id, ended: Ended) {
        self.0.complete(AT, id, ended, &[]).unwrap();
    }

    fn run(&mut self, request: Request, ended: Ended) -> u64 {
        let id = self.submit(request);
        self.end(id, ended);
        id.0
    }

    fn read(&mut self, stamp: u64) -> Result<(), Box<Violation>> {
        let id = self.submit(READ);
        self.0.complete(AT, id, Ended::Done, &[stamp])
    }

    fn cut(&mut self) {
        self.0.cut(AT);
        self.0.restore(AT);
    }

    fn compact(&mut self, compacts: bool) {
        let before = self.0.remembered();
        if compacts {
            self.0.compact();
            assert!(self.0.remembered() < before, "the example forgets something");
        }
    }
}

/// A write fails after `known` was read and promised; it did not happen, a read says; so it cannot
/// happen in a cut.
fn stays(mut host: Host, known: u64) {
    let failed = host.run(WRITE, Ended::Failed);
    host.read(known).unwrap();
    host.cut();
    assert_eq!(host.read(failed).unwrap_err().problem, Problem::Reappeared);
    assert!(host.read(known).is_ok());
}

#[test]
fn what_recovery_left_is_promised_however_its_command_ended() {
    for promise in [Promise::Full, Promise::None] {
        for compacts in [false, true] {
            let mut host = Host::new(promise);
            let left = host.run(WRITE, Ended::Failed);
            host.cut();
            host.read(left).unwrap();
            host.compact(compacts);
            stays(host, left);
        }
    }
}

#[test]
fn what_was_cut_off_and_left_is_promised() {
    for compacts in [false, true] {
        let mut host = Host::new(Promise::None);
        let left = host.submit(WRITE).0;
        host.cut();
        host.read(left).unwrap();
        host.compact(compacts);
        stays(host, left);
    }
}

#[test]
fn what_was_promised_at_once_stays_so_when_its_command_is_forgotten() {
    for compacts in [false, true] {
        let mut host = Host::new(Promise::None);
        let known = host.run(FUA, Ended::Done);
        host.read(known).unwrap();
        host.compact(compacts);
        stays(host, known);
    }
}

#[test]
fn what_was_flushed_stays_so_when_its_command_is_forgotten() {
    for compacts in [false, true] {
        let mut host = Host::new(Promise::None);
        let known = host.run(WRITE, Ended::Done);
        host.read(known).unwrap();
        host.run(FLUSH, Ended::Done);
        host.compact(compacts);
        stays(host, known);
    }
}

#[test]
fn a_forgotten_stamp_is_promised_also_after_a_cache_was_in_doubt() {
    let mut host = Host::new(Promise::Full);
    let known = host.run(WRITE, Ended::Done);
    host.read(known).unwrap();
    host.0.note_unwritten([]);
    host.compact(true);
    stays(host, known);
}

#[test]
fn what_failed_and_was_never_left_promises_nothing() {
    let mut host = Host::new(Promise::Full);
    let known = host.run(WRITE, Ended::Done);
    let failed = host.run(WRITE, Ended::Failed);
    host.read(failed).unwrap();
    host.cut();
    host.read(known).unwrap();
}

#[test]
fn a_trim_that_failed_and_was_replaced_does_not_hide_a_later_one() {
    let mut host = Host::new(Promise::Full);
    host.run(TRIM, Ended::Failed);
    let trim = host.submit(TRIM);
    let write = host.run(WRITE, Ended::Done);
    host.end(trim, Ended::Done);
    // The two overlapped, and the trim stayed.
    host.read(0).unwrap();
    host.cut();
    assert_eq!(host.read(write).unwrap_err().problem, Problem::Reappeared);
}

/// A trim, and a FLUSH after it if `flushed`; then a cut after which the drive has forgotten where the unit lies.
fn forgotten_trim(flushes_trims: bool, flushed: bool) -> Host {
    let mut host = Host(Oracle::new(1, 1, Promise::None).flushing_trims(flushes_trims));
    assert_eq!((host.run(WRITE, Ended::Done), host.run(FLUSH, Ended::Done)), (1, 2));
    host.run(TRIM, Ended::Done);
    if flushed {
        host.run(FLUSH, Ended::Done);
    }
    host.0.cut(AT);
    host.0.note_uncertain([0]);
    host.0.restore(AT);
    host
}

#[test]
fn a_forgotten_trim_stays_if_flushes_write_trims_and_one_did() {
    for (flushes_trims, flushed) in [(false, false), (false, true), (true, false), (true, true)] {
        let undone = forgotten_trim(flushes_trims, flushed).read(1);
        assert_eq!(undone.is_err(), flushes_trims && flushed);
        forgotten_trim(flushes_trims, flushed).read(0).unwrap();
    }
}

#[test]
fn forgotten_zeroes_stay_if_they_were_forced() {
    for fua in [false, true] {
        let mut host = Host(Oracle::new(1, 1, Promise::None).flushing_trims(true));
        host.run(WRITE, Ended::Done);
        host.run(Request { op: Op::WriteZeroes, fua, ..WRITE }, Ended::Done);
        host.0.cut(AT);
        host.0.note_uncertain([0]);
        host.0.restore(AT);
        assert_eq!(host.read(1).is_err(), fua);
    }
}

#[test]
fn what_is_written_after_a_flushed_trim_may_be_found() {
    let mut host = Host(Oracle::new(1, 1, Promise::None).flushing_trims(true));
    host.run(WRITE, Ended::Done);
    host.run(TRIM, Ended::Done);
    host.run(FLUSH, Ended::Done);
    let newer = host.run(WRITE, Ended::Done);
    host.run(TRIM, Ended::Done);
    host.0.cut(AT);
    host.0.note_uncertain([0]);
    host.0.restore(AT);
    host.read(newer).unwrap();
    // Recovery has left it, and the trim after it is not flushed: it may come back.
    host.run(TRIM, Ended::Done);
    host.0.cut(AT);
    host.0.note_uncertain([0]);
    host.0.restore(AT);
    host.read(newer).unwrap();
}

/// A protected write leaves the buffer with the trim of its unit. If the drive then forgets where the unit lies, the
/// version before that write is what flash still holds.
#[test]
fn a_forgotten_trim_gives_up_what_was_protected_before_it() {
    let after_cut = |trim: fn(&mut Host)| {
        let mut host = Host::new(Promise::Selective);
        assert_eq!((host.run(WRITE, Ended::Done), host.run(FLUSH, Ended::Done)), (1, 2));
        host.run(Request { plp: true, ..WRITE }, Ended::Done);
        trim(&mut host);
        host.0.cut(AT);
        host.0.note_uncertain([0]);
        host.0.restore(AT);
        host.read(1)
    };
    assert_eq!(after_cut(|_| ()).unwrap_err().problem, Problem::Lost);
    after_cut(|host| _ = host.run(TRIM, Ended::Done)).unwrap();
    // The power failed while the trim was under way: the data had left the buffer all the same.
    after_cut(|host| _ = host.submit(TRIM)).unwrap();
    after_cut(|host| _ = host.run(TRIM, Ended::Failed)).unwrap();
}

/// Nothing of a unit was trimmed: what an earlier recovery gave up may be found when its place is forgotten.
#[test]
fn what_was_given_up_may_be_found_also_where_flushes_write_trims() {
    let mut host = Host(Oracle::new(1, 1, Promise::None).flushing_trims(true));
    host.run(WRITE, Ended::Done);
    host.run(FLUSH, Ended::Done);
    let given_up = host.run(WRITE, Ended::Done);
    host.cut();
    host.read(1).unwrap();
    host.0.cut(AT);
    host.0.note_uncertain([0]);
    host.0.restore(AT);
    host.read(given_up).unwrap();
}
