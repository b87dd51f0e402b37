//! Power cuts: what the host does, and what is found lost.

use leyden_device::{CommandId, Completion, Lba, NoData, Op, Output, Stamp, Stats, Status};
use leyden_oracle::Promise;
use leyden_sim::{Span, Time};
use leyden_workload::synth::JobConfig;
use leyden_workload::{Class, Request};

use super::mock::{Mock, Seen};
use super::{build, writes};
use crate::driver::{
    Content, DriveError, Measured, Options, Outage, Pace, Promises, Replay, Unchecked, Watch,
    replay, run_jobs,
};

/// Cuts at stated times, for 1 ms each.
struct Cuts {
    times: Vec<Time>,
    outstanding: Vec<u64>,
    looks: u64,
}

const OFF: Span = Span::from_ms(1);

impl Cuts {
    fn at(times: &[u64]) -> Self {
        let times = times.iter().map(|&us| Time::ZERO + Span::from_us(us)).collect();
        Self { times, outstanding: Vec::new(), looks: 0 }
    }
}

impl Watch<NoData, Mock> for Cuts {
    fn stats(&self, mock: &Mock) -> Stats {
        mock.stats()
    }

    fn next_moment(&self) -> Time {
        Time::ZERO + Span::from_us(70 * (self.looks + 1))
    }

    fn look(&mut self, _: Time, _: &Mock) {
        self.looks += 1;
    }

    fn next_cut(&self) -> Time {
        self.times.get(self.outstanding.len()).copied().unwrap_or(Time::MAX)
    }

    fn cut(&mut self, now: Time, mock: &mut Mock, outstanding: u64) -> Outage<NoData> {
        assert_eq!(now, self.next_cut(), "neither early nor late");
        self.outstanding.push(outstanding);
        mock.cut();
        Outage {
            at: now,
            back_at: now + OFF,
            lost: Vec::new(),
            uncertain: Vec::new(),
            left: (),
            zones: Vec::new(),
        }
    }
}

fn jobs(mock: &mut Mock, config: &JobConfig, cuts: &mut Cuts) -> Measured {
    run_jobs(mock, vec![build(config)], &mut Unchecked, cuts, Options::default()).unwrap()
}

#[test]
fn a_closed_loop_goes_on_with_the_next_requests() {
    // Four at once, 100 us each: a cut at 250 us finds four amid their work.
    let mut mock = Mock::new(Span::from_us(100), 4);
    let mut cuts = Cuts::at(&[250, 1_400]);
    let config = JobConfig { queue_depth: 4, ..writes(40) };
    let measured = jobs(&mut mock, &config, &mut cuts);
    assert_eq!(cuts.outstanding, [4, 4]);
    assert_eq!((measured.completions(), mock.submissions().len()), (32, 40));
    // Two rounds and a half, a round and a half, five rounds.
    assert_eq!(measured.elapsed(), Span::from_us(250 + 1_000 + 150 + 1_000 + 500));
    let dark = Time::ZERO + Span::from_us(250)..Time::ZERO + Span::from_us(1_250);
    let seen = |seen: &Seen| match *seen {
        Seen::Submitted(at, ..) | Seen::Completed(at, ..) | Seen::Announced(at, ..) => {
            dark.contains(&at)
        }
    };
    assert!(!mock.seen.iter().any(seen), "nothing happens without power");
    assert_eq!(cuts.looks, measured.elapsed().as_ns() / 70_000);
}

#[test]
fn commands_that_end_at_the_cut_have_ended() {
    let mut mock = Mock::new(Span::from_us(100), 1);
    let mut cuts = Cuts::at(&[200]);
    let measured = jobs(&mut mock, &writes(5), &mut cuts);
    assert_eq!((cuts.outstanding[0], measured.completions()), (0, 5));
    assert_eq!(measured.elapsed(), Span::from_us(1_500));
}

#[test]
fn a_flush_that_is_cut_off_does_not_hold_its_thread() {
    let mut mock = Mock::new(Span::from_us(100), 1);
    let mut cuts = Cuts::at(&[150]);
    let config = JobConfig { fsync_every: 1, ..writes(5) };
    let measured = jobs(&mut mock, &config, &mut cuts);
    assert_eq!((measured.traffic.writes.count(), measured.traffic.flushes.count()), (5, 4));
}

#[test]
fn a_trace_waits_for_the_power_and_repeats_nothing() {
    let request = |us: u64, lba: u64| Request {
        at: Time::ZERO + Span::from_us(us),
        op: Op::Write,
        lba: Lba(lba),
        sectors: 8,
        fua: false,
        class: Class::Unknown,
    };
    // One before the cut, one under way, one while there is no power, one after.
    let trace = [request(0, 0), request(240, 8), request(500, 16), request(2_000, 24)];
    let open = || Ok::<_, std::io::Error>(trace.into_iter().map(Ok::<_, std::io::Error>));
    let mut mock = Mock::new(Span::from_us(100), 4);
    let mut cuts = Cuts::at(&[250]);
    let config = Replay { pace: Pace::RECORDED, ..Replay::default() };
    let options = Options::default();
    let measured = replay(&mut mock, open, &config, &mut Unchecked, &mut cuts, options).unwrap();
    assert_eq!((cuts.outstanding[0], measured.completions()), (1, 3));
    let submitted: Vec<u64> = mock.submissions().iter().map(|(at, _)| at.as_ns() / 1_000).collect();
    assert_eq!(submitted, [0, 240, 1_250, 2_000]);
    assert_eq!(measured.traffic.writes.max_ns(), 850_000, "it has been waiting since its arrival");
}

/// A write of unit 1 that was acknowledged, then a cut that leaves `left` of units 0 to 3.
fn after_a_cut(promise: Promise, lost: &[u32], left: [u64; 4]) -> Result<Option<u64>, DriveError> {
    let mut promises = Promises::new(4, 8, promise);
    let write = Request {
        at: Time::ZERO,
        op: Op::Write,
        lba: Lba(8),
        sectors: 8,
        fua: false,
        class: Class::Unknown,
    };
    assert_eq!(promises.submit(0, Time::ZERO, &write), 1);
    let done = Completion {
        id: CommandId(0),
        op: Op::Write,
        tag: 0,
        submitted: Time::ZERO,
        time: Time::ZERO,
        status: Status::Success,
        output: Output::None,
    };
    promises.complete(0, &done).unwrap();
    promises.cut(&Outage {
        at: Time::from_ns(5),
        back_at: Time::from_ns(9),
        lost: lost.to_vec(),
        uncertain: Vec::new(),
        left: left.map(Stamp).to_vec(),
        zones: Vec::new(),
    })
}

#[test]
fn a_promise_that_is_not_kept_is_found() {
    assert_eq!(after_a_cut(Promise::Full, &[], [0, 1, 0, 0]).unwrap(), Some(0));
    // Not said by the drive: the run ends.
    let error = after_a_cut(Promise::Full, &[], [0; 4]).unwrap_err();
    assert!(matches!(error, DriveError::Promise(_)), "{error}");
    assert!(error.to_string().contains("a promised write was lost"), "{error}");
    // Said: counted. Said of what is there all the same: not lost.
    assert_eq!(after_a_cut(Promise::Full, &[1], [0; 4]).unwrap(), Some(1));
    assert_eq!(after_a_cut(Promise::Full, &[1], [0, 1, 0, 0]).unwrap(), Some(0));
    // Never promised: not lost; but never written is never right.
    assert_eq!(after_a_cut(Promise::None, &[], [0; 4]).unwrap(), Some(0));
    assert!(after_a_cut(Promise::None, &[], [0, 7, 0, 0]).is_err());
}
