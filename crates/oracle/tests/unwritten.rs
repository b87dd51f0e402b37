//! A cache that acknowledges writes and fails to write them out: what it must say, and what may be read.

use leyden_oracle::{Ended, Id, Op, Oracle, Problem, Promise, Request, Violation};
use leyden_sim::Time;

const AT: Time = Time::ZERO;

struct Host(Oracle);

impl Host {
    /// One unit, written and flushed once.
    fn new() -> (Self, u64) {
        let mut host = Self(Oracle::new(1, 1, Promise::None));
        let first = host.write(false);
        host.flush(Ended::Done);
        (host, first)
    }

    fn submit(&mut self, op: Op, fua: bool) -> Id {
        self.0.submit(AT, Request { op, lba: 0, sectors: 1, fua, plp: false })
    }

    fn write(&mut self, fua: bool) -> u64 {
        let id = self.submit(Op::Write, fua);
        self.0.complete(AT, id, Ended::Done, &[]).unwrap();
        id.0
    }

    fn flush(&mut self, ended: Ended) {
        let id = self.submit(Op::Flush, false);
        self.0.complete(AT, id, ended, &[]).unwrap();
    }

    /// Of the file that is all of the drive.
    fn sync(&mut self, ended: Ended) {
        let id = self.submit(Op::Sync, false);
        self.0.complete(AT, id, ended, &[]).unwrap();
    }

    fn read(&mut self, stamp: u64) -> Result<(), Box<Violation>> {
        let id = self.submit(Op::Read, false);
        self.0.complete(AT, id, Ended::Done, &[stamp])
    }

    fn cut(&mut self) {
        self.0.cut(AT);
        self.0.restore(AT);
    }
}

#[test]
fn what_could_not_be_written_may_be_read_until_it_is_gone() {
    let (mut host, old) = Host::new();
    let new = host.write(false);
    host.read(new).unwrap();
    host.0.note_unwritten([0]);
    host.read(new).unwrap();
    host.read(old).unwrap();
    host.read(new).unwrap();
    // The next write is as good as any.
    let newer = host.write(false);
    assert_eq!(host.read(old).unwrap_err().problem, Problem::Stale);
    host.read(newer).unwrap();
}

#[test]
fn a_flush_that_fails_gives_it_up() {
    let (mut host, old) = Host::new();
    host.write(false);
    host.0.note_unwritten([0]);
    host.flush(Ended::Failed);
    host.flush(Ended::Done);
    host.read(old).unwrap();
    host.cut();
    host.read(old).unwrap();
}

#[test]
fn so_does_one_of_its_file_and_the_next_of_everything_may_fail_as_well() {
    let (mut host, old) = Host::new();
    host.write(false);
    host.0.note_unwritten([0]);
    host.sync(Ended::Failed);
    host.flush(Ended::Failed);
    host.sync(Ended::Done);
    host.read(old).unwrap();
    host.cut();
    host.read(old).unwrap();
}

#[test]
fn a_flush_that_ends_well_promises_it() {
    for cuts in [false, true] {
        let (mut host, old) = Host::new();
        host.write(false);
        host.0.note_unwritten([0]);
        host.flush(Ended::Done);
        if cuts {
            host.cut();
        }
        let problem = if cuts { Problem::Lost } else { Problem::Stale };
        assert_eq!(host.read(old).unwrap_err().problem, problem);
    }
}

#[test]
fn a_read_that_is_under_way_keeps_what_it_might_have_found() {
    let (mut host, old) = Host::new();
    let read = host.submit(Op::Read, false);
    host.write(true);
    host.0.note_unwritten([0]);
    host.0.complete(AT, read, Ended::Done, &[old]).unwrap();
    assert_eq!(host.read(old).unwrap_err().problem, Problem::Stale);
}
