//! Crash tests in `#[test]`s: software that works on a block device in memory. No root, no mounts, microseconds a
//! state.

use std::sync::Arc;

use leyden_device::{Lba, SECTOR_BYTES};
use leyden_oracle::{Op, Request};
use leyden_sim::{Span, Time};

use crate::error::CrashError;
use crate::explore::{Explore, explore};
use crate::runner::{Runner, in_turn};
use crate::state::State;
use crate::summary::Summary;
use crate::timeline::Timeline;
use crate::verdict::Outcome;
use crate::view::View;

/// Between two commands, by the clock of a disk in memory.
const TICK: Span = Span::from_us(1);

/// Software that works on a [`Disk`].
pub trait Workload {
    /// Prepares the disk; what it does is all there when the work begins.
    fn setup(&mut self, disk: &mut Disk) {
        let _ = disk;
    }

    /// Does the work under test. [`Disk::acknowledge`] notes its promises to others.
    fn work(&mut self, disk: &mut Disk);

    /// Recovers what a power cut has left, and says what is wrong with it. `acks` are the promises that had
    /// been made.
    ///
    /// # Errors
    /// If something that was promised is not there; begins with `lost ` if it can be named.
    fn check(&self, disk: &mut Disk, acks: &[String]) -> Result<(), String>;
}

/// A block device in memory with a volatile cache: what was written and not flushed may be lost.
#[derive(Debug)]
pub struct Disk(Behind);

#[derive(Debug)]
enum Behind {
    /// Notes what it is asked.
    Recorded(Box<Timeline>),
    /// Shows a state.
    Shown(View),
}

impl Disk {
    /// Sectors of 512 bytes.
    pub fn capacity_sectors(&self) -> u64 {
        let timeline = self.timeline();
        u64::from(timeline.atoms()) * u64::from(timeline.atom_sectors())
    }

    /// Reads `sectors` sectors from `lba` on.
    ///
    /// # Panics
    /// If they are not all the disk's.
    pub fn read(&self, lba: u64, sectors: u32) -> Vec<u8> {
        assert!(lba + u64::from(sectors) <= self.capacity_sectors(), "beyond the disk");
        match &self.0 {
            Behind::Shown(view) => view.read(Lba(lba), sectors),
            Behind::Recorded(timeline) => {
                let at = timeline.events().len();
                let sector = |lba: u64| {
                    let of = u64::from(timeline.atom_sectors());
                    let atom = timeline.newest((lba / of) as u32, at).content;
                    let from = (lba % of * SECTOR_BYTES) as usize;
                    timeline.store().bytes(atom)[from..from + SECTOR_BYTES as usize].to_vec()
                };
                (lba..lba + u64::from(sectors)).flat_map(sector).collect()
            }
        }
    }

    /// Writes whole sectors.
    ///
    /// # Panics
    /// If `data` is none, or not all the disk's.
    pub fn write(&mut self, lba: u64, data: &[u8]) {
        assert!((data.len() as u64).is_multiple_of(SECTOR_BYTES), "a part of a sector");
        let sectors = (data.len() as u64 / SECTOR_BYTES) as u32;
        assert!(lba + u64::from(sectors) <= self.capacity_sectors(), "beyond the disk");
        match &mut self.0 {
            Behind::Shown(view) => view.change(Lba(lba), data.len(), Some(data)),
            Behind::Recorded(timeline) => {
                command(
                    timeline,
                    Request { op: Op::Write, lba, sectors, fua: false, plp: false },
                    data,
                );
            }
        }
    }

    /// Makes everything durable that was written.
    pub fn flush(&mut self) {
        if let Behind::Recorded(timeline) = &mut self.0 {
            command(
                timeline,
                Request { op: Op::Flush, lba: 0, sectors: 0, fua: false, plp: false },
                &[],
            );
        }
    }

    /// Promises something to somebody: it must be there after every power cut from now on.
    pub fn acknowledge(&mut self, what: &str) {
        if let Behind::Recorded(timeline) = &mut self.0 {
            timeline.mark(now(timeline), &format!("ack {what}\n"));
        }
    }

    fn timeline(&self) -> &Timeline {
        match &self.0 {
            Behind::Recorded(timeline) => timeline,
            Behind::Shown(view) => view.timeline(),
        }
    }
}

fn now(timeline: &Timeline) -> Time {
    timeline.events().last().map_or(Time::ZERO, |(time, _)| *time + TICK)
}

/// Commands end as soon as they are submitted: only unflushed data is unsettled then.
fn command(timeline: &mut Timeline, request: Request, data: &[u8]) {
    let time = now(timeline);
    let command = timeline.submit(time, request, data);
    timeline.end(time + TICK, command, true);
}

/// A crash test of a [`Workload`].
///
/// ```
/// use leyden_crashtest::{CrashTest, Disk, Workload};
///
/// /// A counter in one sector.
/// struct Counter;
///
/// impl Workload for Counter {
///     fn work(&mut self, disk: &mut Disk) {
///         for number in 1..=20_u8 {
///             disk.write(0, &[number; 512]);
///             disk.flush(); // without it, the test below fails
///             disk.acknowledge(&number.to_string());
///         }
///     }
///     fn check(&self, disk: &mut Disk, acks: &[String]) -> Result<(), String> {
///         let promised = acks.last().map_or(0, |last| last.parse().unwrap());
///         let found = disk.read(0, 1)[0];
///         if found < promised { Err(format!("lost {promised}")) } else { Ok(()) }
///     }
/// }
///
/// CrashTest::new(64 << 10).run(&mut Counter).unwrap().assert_held();
/// ```
#[derive(Clone, Debug)]
pub struct CrashTest {
    capacity_bytes: u64,
    atom_bytes: u32,
    seed: u64,
    states: usize,
}

impl CrashTest {
    /// On a disk of so many bytes, whose sectors of 512 bytes are each kept or lost as a whole.
    pub const fn new(capacity_bytes: u64) -> Self {
        Self { capacity_bytes, atom_bytes: 512, seed: 1, states: 2_000 }
    }

    /// So many bytes are kept or lost as a whole.
    #[must_use]
    pub const fn atom_bytes(mut self, atom_bytes: u32) -> Self {
        self.atom_bytes = atom_bytes;
        self
    }

    /// The seed of random choices.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// At most so many states.
    #[must_use]
    pub const fn states(mut self, states: usize) -> Self {
        self.states = states;
        self
    }

    /// Does the work once, and checks what power cuts in it may leave.
    ///
    /// # Errors
    /// Never, as it stands: a workload in memory lacks nothing.
    pub fn run(&self, workload: &mut dyn Workload) -> Result<Summary, CrashError> {
        let timeline = Arc::new(self.record(workload));
        let view = View::new(Arc::clone(&timeline), Lba(0));
        let mut runner = InMemory { view, workload };
        let options = Explore::adversarial(self.seed, self.states);
        explore(&mut runner, &timeline, None, &options, &mut |_| {})
    }

    fn record(&self, workload: &mut dyn Workload) -> Timeline {
        let empty = Timeline::new(self.capacity_bytes, self.atom_bytes);
        let mut disk = Disk(Behind::Recorded(Box::new(empty.clone())));
        workload.setup(&mut disk);
        let mut timeline = empty;
        let prepared = disk.timeline();
        let touched: Vec<u32> = prepared.touched().collect();
        for atom in touched {
            let newest = prepared.newest(atom, prepared.events().len()).content;
            timeline.set_base(atom, prepared.store().bytes(newest));
        }
        let mut disk = Disk(Behind::Recorded(Box::new(timeline)));
        workload.work(&mut disk);
        match disk.0 {
            Behind::Recorded(timeline) => *timeline,
            Behind::Shown(_) => unreachable!("it was made to record"),
        }
    }
}

/// Tries states in this process.
struct InMemory<'a> {
    view: View,
    workload: &'a mut dyn Workload,
}

impl InMemory<'_> {
    /// The software's verdict on the shown state.
    fn check(&self, state: &State) -> Result<(), String> {
        self.check_promised(self.view.timeline().acks_before(state.at))
    }

    /// The same if only the first `acks` promises had been made.
    fn check_promised(&self, acks: usize) -> Result<(), String> {
        let acks = &self.view.timeline().acks()[..acks];
        self.workload.check(&mut Disk(Behind::Shown(self.view.clone())), acks)
    }
}

impl Runner for InMemory<'_> {
    fn run(
        &mut self,
        next: &mut dyn FnMut() -> Option<State>,
        done: &mut dyn FnMut(usize, State, Outcome) -> bool,
    ) -> Result<(), CrashError> {
        in_turn(next, done, |state| {
            self.view.show(state);
            Outcome::of(self.check(state))
        });
        Ok(())
    }

    fn run_promised(&mut self, state: &State, acks: usize) -> Result<Outcome, CrashError> {
        self.view.show(state);
        Ok(Outcome::of(self.check_promised(acks)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{RunVerdict, Stop};
    use crate::timeline::Event;
    use crate::verdict::Verdict;

    /// Records of one sector, one after the other: number, and a checksum that says that all of it is there.
    /// The sector before the first has the number of the last record that was acknowledged.
    struct Journal {
        records: u64,
        /// This flush is left out.
        forgets: Option<u64>,
        /// Promises before it flushes.
        is_hasty: bool,
    }

    const SOUND: Journal = Journal { records: 40, forgets: None, is_hasty: false };
    /// Sectors of a record.
    const LONG: u32 = 3;

    fn record(number: u64) -> Vec<u8> {
        let sector = |part: u64| {
            let mut sector = (number * 1_000 + part).to_le_bytes().to_vec();
            sector.resize(SECTOR_BYTES as usize, number as u8);
            sector
        };
        (0..u64::from(LONG)).flat_map(sector).collect()
    }

    impl Workload for Journal {
        fn work(&mut self, disk: &mut Disk) {
            for number in 1..=self.records {
                disk.write(number * u64::from(LONG), &record(number));
                if self.is_hasty {
                    disk.acknowledge(&number.to_string());
                }
                if self.forgets != Some(number) {
                    disk.flush();
                }
                if !self.is_hasty {
                    disk.acknowledge(&number.to_string());
                }
            }
        }

        fn check(&self, disk: &mut Disk, acks: &[String]) -> Result<(), String> {
            let whole = |number: &u64| disk.read(number * u64::from(LONG), LONG) == record(*number);
            let there = (1..=self.records).take_while(whole).count();
            // Recovery writes, too: what it writes must not be found in the next state.
            disk.write((there as u64 + 1) * u64::from(LONG), &record(there as u64 + 1));
            let promised = acks.len();
            if there < promised { Err(format!("lost {promised}")) } else { Ok(()) }
        }
    }

    fn run(mut journal: Journal) -> Summary {
        CrashTest::new(1 << 20).run(&mut journal).unwrap()
    }

    #[test]
    fn sound_software_holds_and_the_control_fails() {
        let summary = run(SOUND);
        assert_eq!(summary.verdict, RunVerdict::Held);
        assert_eq!(summary.models[0].stop, Stop::Exhausted);
        assert!(summary.models[0].states > 250, "{}", summary.models[0].states);
    }

    #[test]
    fn a_flush_that_is_left_out_is_found_within_a_hundred_states() {
        for nth in [1, 2, 17, 39] {
            let summary = run(Journal { forgets: Some(nth), ..SOUND });
            assert_eq!(summary.verdict, RunVerdict::Broken);
            let first = summary.models[0].findings[0].first;
            assert!(first <= 100, "flush {nth}: at state {first}");
        }
    }

    #[test]
    fn a_promise_before_its_flush_is_found_within_five_states() {
        let summary = run(Journal { is_hasty: true, ..SOUND });
        let finding = &summary.models[0].findings[0];
        assert_eq!(finding.verdict, Verdict::Lost);
        assert!(finding.first <= 5, "at state {}", finding.first);
        let model = &summary.models[0];
        let sum = |of: fn(&crate::Tally) -> usize| model.tallies.iter().map(of).sum::<usize>();
        assert_eq!(sum(|tally| tally.held), model.verdicts[&Verdict::Held]);
        assert_eq!((sum(|tally| tally.lost), sum(|tally| tally.broken)), (finding.count, 0));
        assert!(model.tallies.iter().any(|tally| tally.at == finding.state.at && tally.lost > 0));
        assert!(model.tallies.is_sorted_by_key(|tally| tally.at));
    }

    #[test]
    fn the_same_seed_tries_the_same_states() {
        let told = |seed| {
            let mut journal = Journal { is_hasty: true, ..SOUND };
            let summary = CrashTest::new(1 << 20).seed(seed).states(150).run(&mut journal).unwrap();
            let model = &summary.models[0];
            let findings: Vec<_> =
                model.findings.iter().map(|f| (f.count, f.first, f.state.clone())).collect();
            (model.states, model.repeats, model.verdicts.clone(), findings)
        };
        assert_eq!(told(7), told(7));
        assert_ne!(told(7), told(8));
    }

    /// Does not show the state that it is asked for, but what the last one has become.
    struct Leaky<'a>(InMemory<'a>);

    impl Runner for Leaky<'_> {
        fn run(
            &mut self,
            next: &mut dyn FnMut() -> Option<State>,
            done: &mut dyn FnMut(usize, State, Outcome) -> bool,
        ) -> Result<(), CrashError> {
            let mut number = 0;
            while let Some(state) = next() {
                let before: Vec<u8> = {
                    let disk = Disk(Behind::Shown(self.0.view.clone()));
                    disk.read(0, disk.capacity_sectors() as u32)
                };
                self.0.view.show(&state);
                // Sectors that the last check has written to are still there.
                let zeroes = [0; SECTOR_BYTES as usize];
                for (lba, sector) in (0..).zip(before.chunks_exact(SECTOR_BYTES as usize)) {
                    if self.0.view.read(Lba(lba), 1) == zeroes {
                        self.0.view.change(Lba(lba), SECTOR_BYTES as usize, Some(sector));
                    }
                }
                let verdict =
                    if self.0.check(&state).is_ok() { Verdict::Held } else { Verdict::Lost };
                done(number, state, Outcome::new(verdict, ""));
                number += 1;
            }
            Ok(())
        }

        fn run_promised(&mut self, state: &State, acks: usize) -> Result<Outcome, CrashError> {
            self.0.run_promised(state, acks)
        }
    }

    #[test]
    fn a_view_that_leaks_the_last_state_hides_lies_from_the_control() {
        let test = CrashTest::new(1 << 20);
        let mut workload = Journal { is_hasty: true, ..SOUND };
        let timeline = Arc::new(test.record(&mut workload));
        let view = View::new(Arc::clone(&timeline), Lba(0));
        let options = Explore::adversarial(1, 100);
        let told = |runner: &mut dyn Runner| {
            let summary = explore(runner, &timeline, None, &options, &mut |_| {}).unwrap();
            (summary.control.broken(), summary.models[0].broken())
        };
        let mut sound = InMemory { view: view.clone(), workload: &mut workload };
        let (noticed, broken) = told(&mut sound);
        let mut workload = Journal { is_hasty: true, ..SOUND };
        let mut leaky = Leaky(InMemory { view, workload: &mut workload });
        let (leaky_noticed, leaky_broken) = told(&mut leaky);
        // Within the 8 states of the control, and the 100 that follow.
        assert!(leaky_noticed < noticed, "{leaky_noticed} of {noticed}");
        assert!(leaky_broken < broken, "{leaky_broken} of {broken}");
    }

    #[test]
    fn findings_shrink_to_what_is_needed() {
        let test = CrashTest::new(1 << 20);
        let mut workload = Journal { forgets: Some(17), ..SOUND };
        let summary = test.run(&mut workload).unwrap();
        let finding = &summary.models[0].findings[0];
        let timeline = Arc::new(test.record(&mut workload));
        let cuts = crate::contract::cuts(&timeline, crate::cut::Flushes::All);
        let mut runner =
            InMemory { view: View::new(Arc::clone(&timeline), Lba(0)), workload: &mut workload };
        let (small, outcome, _) =
            crate::shrink::shrink(&mut runner, &finding.state, &cuts, u32::MAX).unwrap();
        assert_eq!(outcome.verdict, Verdict::Lost);
        let [(atom, _)] = small.lost[..] else { panic!("one sector is enough: {small:?}") };
        assert!((17 * LONG..18 * LONG).contains(&atom), "record 17, not atom {atom}");
    }

    /// Promises before the drive has heard of it.
    struct Eager;

    impl Workload for Eager {
        fn work(&mut self, disk: &mut Disk) {
            for number in 1..=9_u8 {
                disk.acknowledge(&number.to_string());
                disk.write(4, &[1; SECTOR_BYTES as usize]);
                disk.write(u64::from(number), &[number; SECTOR_BYTES as usize]);
                disk.flush();
            }
        }

        fn check(&self, disk: &mut Disk, acks: &[String]) -> Result<(), String> {
            let there = |ack: &String| disk.read(ack.parse().unwrap(), 1)[0] > 0;
            acks.iter().all(there).then_some(()).ok_or_else(|| "lost".to_owned())
        }
    }

    /// Why the first finding breaks, made small.
    fn explained(workload: &mut dyn Workload) -> (Arc<Timeline>, crate::why::Why) {
        let test = CrashTest::new(1 << 20);
        let summary = test.run(workload).unwrap();
        let state = &summary.models[0].findings[0].state;
        let timeline = Arc::new(test.record(workload));
        let cuts = crate::contract::cuts(&timeline, crate::cut::Flushes::All);
        let view = View::new(Arc::clone(&timeline), Lba(0));
        let mut runner = InMemory { view, workload };
        let (small, ..) = crate::shrink::shrink(&mut runner, state, &cuts, u32::MAX).unwrap();
        let why = crate::why::explain(&mut runner, &timeline, &small).unwrap().expect("it breaks");
        (timeline, why)
    }

    #[test]
    fn a_finding_names_the_promise_and_the_write_that_no_flush_covers() {
        let (timeline, why) = explained(&mut Journal { forgets: Some(17), ..SOUND });
        let promise = why.promise.expect("a promise is broken");
        assert_eq!((promise.line.as_str(), why.is_unsubmitted), ("17", false));
        assert_eq!(timeline.events()[promise.event].1, Event::Acknowledged(16));
        assert_eq!(why.needed.len(), 1);
        assert_eq!(why.needed[0].sector, 17 * u64::from(LONG));
        // The flush of record 16 comes before it, that of record 18 after it.
        let flush = |number: u64| {
            let write = |(_, event): &(Time, Event)| matches!(event, Event::Submitted(request) if request.lba == number * u64::from(LONG));
            timeline.events().iter().position(write).unwrap() + 2
        };
        assert_eq!(
            (why.between.flush_before, why.between.flush_after),
            (Some(flush(16)), Some(flush(18)))
        );
    }

    #[test]
    fn a_finding_names_the_write_that_came_after_its_promise() {
        let timeline = Arc::new(CrashTest::new(1 << 20).record(&mut Eager));
        let made = |(_, event): &(Time, Event)| *event == Event::Acknowledged(4);
        let at = timeline.events().iter().position(made).unwrap() + 1;
        let view = View::new(Arc::clone(&timeline), Lba(0));
        let mut runner = InMemory { view, workload: &mut Eager };
        let why = crate::why::explain(&mut runner, &timeline, &State::new(at, Vec::new()));
        let why = why.unwrap().expect("it breaks");
        let promise = why.promise.clone().expect("a promise is broken");
        assert_eq!(promise.line, "5");
        assert!(why.is_unsubmitted, "nothing has to be lost");
        let [needed] = &why.needed[..] else { panic!("{why:?}") };
        assert_eq!(needed.sector.to_string(), promise.line, "{why:?}");
        // The write of a sector that the check does not look at lies between, and no flush.
        assert_eq!(needed.event, promise.event + 3);
        let between: Vec<u64> = why.between.writes.iter().map(|it| it.sector).collect();
        assert_eq!((between, why.between.flushes.len()), (vec![4], 0));
        assert_eq!(why.between.flush_after, Some(needed.event + 2));
        assert!(timeline.events()[needed.event + 2].1.is_flush());
        assert!(why.lines().iter().any(|line| line == "no flush between"), "{:?}", why.lines());
    }
}
