//! Many runs, several at once.
//!
//! **Invariants**
//! - How many are made at once changes no result and not their order: runs share nothing that they change.
//! - No more are made at once than there is memory for; one is always made.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::{AgedDrives, DriveCache, Hooks, Outcome, Phase, RunError, machine, memory, run};
use leyden_config::Scenario;

/// How many runs to make at once, and how a caller watches and stops them.
#[derive(Clone, Copy)]
pub struct Plan<'a> {
    /// Threads, at most; 1 or more.
    pub jobs: usize,
    /// Once true, no further run is begun and those under way end soon.
    pub cancel: &'a AtomicBool,
    /// Told from any thread which run goes on, and which share of all work is done.
    pub progress: &'a (dyn Fn(usize, f64) + Sync),
    /// Told from any thread what is worth knowing of a run and is not of its results.
    pub note: &'a (dyn Fn(usize, &str) + Sync),
    /// Preconditioned drives of earlier commands.
    pub cache: Option<&'a DriveCache>,
}

/// Makes the runs of `scenarios`; drives that several of them begin with are preconditioned once.
///
/// The results are in the order of the scenarios. After a failure no further run is begun; runs that were
/// not made have `None`.
pub fn run_all(scenarios: &[&Scenario], plan: &Plan<'_>) -> Vec<Option<Result<Outcome, RunError>>> {
    let many = Many::new(scenarios, plan);
    each(plan, &many.sizes(), |index| many.run(index))
}

/// Makes the runs of `scenarios` as [`run_all`] does, and goes on after a failure. Each run's outcome is told to `ended`, from
/// any thread, and then forgotten; nothing further is begun once that returns false. A run that panics has failed.
pub fn run_each(
    scenarios: &[&Scenario],
    plan: &Plan<'_>,
    ended: &(dyn Fn(usize, Result<Outcome, RunError>) -> bool + Sync),
) {
    let many = Many::new(scenarios, plan);
    each(plan, &many.sizes(), |index| {
        let made = std::panic::catch_unwind(AssertUnwindSafe(|| many.run(index)));
        let outcome = made.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(RunError::Panicked(text.unwrap_or("for an unknown reason").to_owned()))
        });
        if ended(index, outcome) { Ok(()) } else { Err(()) }
    });
}

/// Runs to be made, and the drives that they share.
struct Many<'a> {
    scenarios: &'a [&'a Scenario],
    plan: &'a Plan<'a>,
    aged: AgedDrives,
    watch: Watch<'a>,
}

impl<'a> Many<'a> {
    fn new(scenarios: &'a [&'a Scenario], plan: &'a Plan<'a>) -> Self {
        let aged = AgedDrives::of(scenarios.iter().copied());
        Self { scenarios, plan, aged, watch: Watch::new(scenarios.len(), plan) }
    }

    fn sizes(&self) -> Vec<u64> {
        let size = |scenario: &&Scenario| {
            // Beside a shared drive stands the copy that others begin with.
            let copies = if self.aged.is_shared(scenario) { 2 } else { 1 };
            needs_bytes(scenario, self.plan).saturating_mul(copies)
        };
        self.scenarios.iter().map(size).collect()
    }

    fn run(&self, index: usize) -> Result<Outcome, RunError> {
        let mut tell = |phase, fraction| self.watch.tell(index, phase, fraction);
        let mut note = |text: &str| (self.plan.note)(index, text);
        let mut hooks = Hooks {
            cancel: Some(self.plan.cancel),
            progress: Some(&mut tell),
            note: Some(&mut note),
            aged: Some(&self.aged),
            cache: self.plan.cache,
        };
        run(self.scenarios[index], &mut hooks)
    }
}

/// Memory that a run takes, about. Runs that are made one by one need not be asked.
pub(crate) fn needs_bytes(scenario: &Scenario, plan: &Plan<'_>) -> u64 {
    if plan.jobs > 1 { memory::needs_bytes(scenario) } else { 0 }
}

/// How far many runs are.
pub(crate) struct Watch<'a> {
    plan: &'a Plan<'a>,
    shares: Mutex<Vec<f64>>,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(runs: usize, plan: &'a Plan<'a>) -> Self {
        Self { plan, shares: Mutex::new(vec![0.0; runs]) }
    }

    /// Run `index` has done `fraction` of `phase`: preconditioning and running count half each.
    pub(crate) fn tell(&self, index: usize, phase: Phase, fraction: f64) {
        let share = match phase {
            Phase::Preconditioning => fraction / 2.0,
            Phase::Running => f64::midpoint(1.0, fraction),
        };
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        shares[index] = share;
        let all = shares.iter().sum::<f64>() / shares.len() as f64;
        drop(shares);
        (self.plan.progress)(index, all);
    }
}

/// Which runs have been begun, and what they take.
#[derive(Default)]
struct State {
    next: usize,
    running: usize,
    bytes: u64,
    /// One has failed: no further one is begun.
    has_failed: bool,
}

/// Does `work` for each of the runs, which take so many bytes each, in their order.
pub(crate) fn each<T: Send, E: Send>(
    plan: &Plan<'_>,
    sizes: &[u64],
    work: impl Fn(usize) -> Result<T, E> + Sync,
) -> Vec<Option<Result<T, E>>> {
    each_within(machine::room_bytes(), plan, sizes, work)
}

fn each_within<T: Send, E: Send>(
    room: u64,
    plan: &Plan<'_>,
    sizes: &[u64],
    work: impl Fn(usize) -> Result<T, E> + Sync,
) -> Vec<Option<Result<T, E>>> {
    let gate = Gate { room, sizes, state: Mutex::default(), ended: Condvar::new() };
    let results: Vec<Mutex<Option<Result<T, E>>>> =
        sizes.iter().map(|_| Mutex::new(None)).collect();
    let worker = || {
        while let Some(begun) = gate.begin(plan.cancel) {
            let result = work(begun.index);
            if result.is_err() {
                gate.lock().has_failed = true;
            }
            *results[begun.index].lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        }
    };
    // An edge: each thread makes whole runs.
    std::thread::scope(|scope| {
        for _ in 1..plan.jobs.min(sizes.len()) {
            scope.spawn(worker);
        }
        worker();
    });
    let taken = |result: Mutex<_>| result.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.into_iter().map(taken).collect()
}

/// Lets runs begin one after another, as there is room.
struct Gate<'a> {
    room: u64,
    sizes: &'a [u64],
    state: Mutex<State>,
    ended: Condvar,
}

impl<'a> Gate<'a> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next run, once there is room for it; `None` if there is none to begin.
    fn begin(&self, cancel: &AtomicBool) -> Option<Begun<'_, 'a>> {
        let mut state = self.lock();
        loop {
            if state.has_failed || cancel.load(Ordering::Relaxed) {
                return None;
            }
            let &bytes = self.sizes.get(state.next)?;
            if state.running == 0 || state.bytes.saturating_add(bytes) <= self.room {
                let index = state.next;
                state.next += 1;
                state.running += 1;
                state.bytes += bytes;
                return Some(Begun { gate: self, index, bytes });
            }
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A run under way; ends when dropped, after a panic too.
struct Begun<'g, 'a> {
    gate: &'g Gate<'a>,
    index: usize,
    bytes: u64,
}

impl Drop for Begun<'_, '_> {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        state.running -= 1;
        state.bytes -= self.bytes;
        drop(state);
        self.gate.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    fn plan(jobs: usize, cancel: &AtomicBool) -> Plan<'_> {
        Plan { jobs, cancel, progress: &|_, _| {}, note: &|_, _| {}, cache: None }
    }

    #[test]
    fn results_are_in_order_and_memory_is_bounded() {
        let (now, most) = (AtomicU64::new(0), AtomicU64::new(0));
        let cancel = AtomicBool::new(false);
        let sizes = [40, 40, 40, 30, 200, 10, 10, 10];
        let results = each_within(100, &plan(8, &cancel), &sizes, |index| {
            let bytes = now.fetch_add(sizes[index], Ordering::SeqCst) + sizes[index];
            most.fetch_max(if index == 4 { 0 } else { bytes }, Ordering::SeqCst);
            std::thread::sleep(std::time::Duration::from_millis(5));
            assert!(index != 4 || now.load(Ordering::SeqCst) == 200, "too large: alone");
            now.fetch_sub(sizes[index], Ordering::SeqCst);
            Ok::<_, ()>(index)
        });
        assert_eq!(results, (0..8).map(|index| Some(Ok(index))).collect::<Vec<_>>());
        assert!(most.into_inner() <= 100);
    }

    #[test]
    fn nothing_is_begun_after_a_failure_or_a_cancel() {
        let cancel = AtomicBool::new(false);
        let fail = |index| if index == 1 { Err("no") } else { Ok(index) };
        let results = each_within(100, &plan(1, &cancel), &[1; 4], fail);
        assert_eq!(results, [Some(Ok(0)), Some(Err("no")), None, None]);
        let results = each_within(100, &plan(2, &cancel), &[1; 4], |index| {
            cancel.store(true, Ordering::Relaxed);
            Ok::<_, ()>(index)
        });
        assert!(results[0].is_some() && results[2..].iter().all(Option::is_none), "{results:?}");
    }
}
