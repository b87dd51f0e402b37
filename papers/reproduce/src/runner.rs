//! Makes many runs on several threads, and keeps what is finished.
//!
//! **Invariants**: which thread makes a run, and in what order, changes no record; a run is kept the
//! moment it is finished, so that cancelling loses only what was under way.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::cache::{Cache, Found};
use super::spec::{Results, RunSpec};
use leyden_config::Set;
use leyden_run::{Hooks, RunError, run};

/// How a caller watches and stops the runs.
pub struct Runner<'a> {
    /// Where finished runs are kept.
    pub cache: &'a Cache,
    /// Threads; at least 1.
    pub threads: usize,
    /// The settings on top of every run, as `--set` takes them.
    pub sets: &'a [Set],
    /// Once true, no further run is begun and those under way end soon.
    pub cancel: &'a AtomicBool,
    /// Told what is done, from any thread.
    pub watch: &'a (dyn Fn(&Step<'_>) + Sync),
}

/// Something has been begun or is done.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Runs done, from the cache or not.
    pub done: usize,
    /// Runs in all.
    pub of: usize,
    /// The run that was begun.
    pub begun: Option<&'a RunSpec>,
}

/// The fate of one run.
enum Made {
    Record(Box<leyden_record::RunRecord>),
    Failed(String),
    Interrupted,
}

impl Runner<'_> {
    /// Makes every run of `specs` that the cache does not hold.
    pub fn run(&self, specs: &BTreeSet<RunSpec>) -> Results {
        let specs: Vec<&RunSpec> = specs.iter().collect();
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let sets = self.sets.to_vec();
        let results = Mutex::new(Results { sets, ..Results::default() });
        let work = || {
            while !self.cancel.load(Ordering::Relaxed) {
                let Some(spec) = specs.get(next.fetch_add(1, Ordering::Relaxed)) else {
                    return;
                };
                let step =
                    Step { done: done.load(Ordering::Relaxed), of: specs.len(), begun: Some(spec) };
                (self.watch)(&step);
                self.one(spec, &results);
                let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                (self.watch)(&Step { done, begun: None, ..step });
            }
        };
        // An edge: each thread makes whole runs, which share nothing.
        std::thread::scope(|scope| {
            for _ in 1..self.threads.min(specs.len()) {
                scope.spawn(work);
            }
            work();
        });
        let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.interrupted = self.cancel.load(Ordering::Relaxed)
            && results.records.len() + results.failures.len() < specs.len();
        results
    }

    fn one(&self, spec: &RunSpec, results: &Mutex<Results>) {
        let mut warnings = Vec::new();
        let (made, cached) = self.make(spec, &mut warnings);
        let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
        results.warnings.append(&mut warnings);
        match made {
            Made::Record(record) => {
                results.cached += usize::from(cached);
                results.records.insert(spec.clone(), *record);
            }
            Made::Failed(why) => {
                results.failures.insert(spec.clone(), why);
            }
            Made::Interrupted => {}
        }
    }

    /// The run's record, and whether it was kept before.
    fn make(&self, spec: &RunSpec, warnings: &mut Vec<String>) -> (Made, bool) {
        let scenario = match spec.load_with(self.sets) {
            Ok(loaded) => loaded.scenario,
            Err(error) => return (Made::Failed(error.to_string()), false),
        };
        match self.cache.look_up(&scenario) {
            Found::Record(mut record) => {
                record.reproduce = spec.command_with(self.sets);
                return (Made::Record(record), true);
            }
            Found::Useless(problem) => warnings.push(format!("{problem}: the run is made again")),
            Found::Nothing => {}
        }
        let mut hooks = Hooks { cancel: Some(self.cancel), ..Hooks::default() };
        let mut record = match run(&scenario, &mut hooks) {
            Ok(outcome) if !outcome.interrupted => outcome.record,
            Ok(_) | Err(RunError::Interrupted) => return (Made::Interrupted, false),
            Err(error) => return (Made::Failed(error.to_string()), false),
        };
        record.reproduce = spec.command_with(self.sets);
        if let Err(error) = self.cache.keep(&scenario, &record) {
            let path = self.cache.path(&scenario);
            warnings.push(format!("{} cannot be written: {error}", path.display()));
        }
        (Made::Record(Box::new(record)), false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of a few milliseconds.
    fn tiny(seed: u32) -> RunSpec {
        RunSpec::new("bench/random-write")
            .set("device.nand={ channels = 2, dies_per_channel = 1, blocks_per_plane = 32, pages_per_block = 32 }")
            .set("device.buffer.size=256 KiB")
            .set("workload.job.0.requests=2000")
            .set("precondition.kind=fill")
            .set(format!("seed={seed}"))
    }

    fn go(cache: &Cache, threads: usize, specs: &[RunSpec], cancel: &AtomicBool) -> Results {
        let specs = specs.iter().cloned().collect();
        Runner { cache, threads, sets: &[], cancel, watch: &|_| {} }.run(&specs)
    }

    #[test]
    fn runs_are_made_once_and_the_same_on_any_number_of_threads() {
        let folder = tempfile::tempdir().unwrap();
        let cancel = AtomicBool::new(false);
        let cache = |name: &str| Cache::open(folder.path().join(name), "build").unwrap();
        let specs: Vec<_> = (1..=4).map(tiny).collect();
        let one = go(&cache("one"), 1, &specs, &cancel);
        let three = go(&cache("three"), 3, &specs, &cancel);
        assert_eq!((one.records.len(), one.cached, one.interrupted), (4, 0, false));
        let digests = |results: &Results| -> Vec<String> {
            results.records.values().map(|record| record.sim.digest.clone()).collect()
        };
        assert_eq!(digests(&one), digests(&three));
        let again = go(&cache("one"), 2, &specs, &cancel);
        assert_eq!(again.cached, 4);
        assert_eq!(again.records, one.records);
    }

    #[test]
    fn settings_on_top_are_in_every_run_and_in_its_command() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path(), "build").unwrap();
        let cancel = AtomicBool::new(false);
        let specs = [tiny(1), tiny(1).set("device.buffer.size=1 B")];
        let sets = ["device.buffer.drain_to=0 %".parse().unwrap()];
        let all = specs.iter().cloned().collect();
        let results =
            Runner { cache: &cache, threads: 1, sets: &sets, cancel: &cancel, watch: &|_| {} }
                .run(&all);
        let record = results.get(&specs[0]).unwrap();
        assert!(
            record.reproduce.ends_with("--set 'device.buffer.drain_to=0 %'"),
            "{}",
            record.reproduce
        );
        let plain = go(&cache, 1, &specs[..1], &cancel);
        let digest = &plain.get(&specs[0]).unwrap().sim.digest;
        assert_eq!(plain.cached, 0, "another run");
        assert_ne!(record.sim.digest, *digest);
        let why = results.get(&specs[1]).unwrap_err();
        assert!(why.contains("drain_to=0 %"), "{why}");
    }

    #[test]
    fn a_damaged_entry_is_made_again_with_a_warning() {
        let folder = tempfile::tempdir().unwrap();
        let cancel = AtomicBool::new(false);
        let cache = Cache::open(folder.path(), "build").unwrap();
        let specs = [tiny(1)];
        let first = go(&cache, 1, &specs, &cancel);
        let path = cache.path(&specs[0].load().unwrap().scenario);
        std::fs::write(&path, "{").unwrap();
        let second = go(&cache, 1, &specs, &cancel);
        assert_eq!(second.cached, 0);
        assert!(second.warnings[0].contains("made again"), "{:?}", second.warnings);
        let digest = |results: &Results| results.get(&specs[0]).unwrap().sim.digest.clone();
        assert_eq!(digest(&first), digest(&second));
        assert_eq!(go(&cache, 1, &specs, &cancel).cached, 1);
    }

    #[test]
    fn cancelling_keeps_what_is_finished_and_failures_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::open(folder.path(), "build").unwrap();
        let cancel = AtomicBool::new(false);
        let specs: Vec<_> = (1..=3).map(tiny).collect();
        let stop = |step: &Step<'_>| cancel.store(step.done == 1, Ordering::Relaxed);
        let set = specs.iter().cloned().collect();
        let results =
            Runner { cache: &cache, threads: 1, sets: &[], cancel: &cancel, watch: &stop }
                .run(&set);
        assert!(results.interrupted);
        assert_eq!(results.records.len(), 1);
        assert!(results.get(&specs[2]).unwrap_err().contains("interrupted"));
        cancel.store(false, Ordering::Relaxed);
        let bad = tiny(1).set("device.buffer.size=1 B");
        let results = go(&cache, 2, &[specs[0].clone(), specs[1].clone(), bad.clone()], &cancel);
        assert_eq!((results.cached, results.records.len(), results.failures.len()), (1, 2, 1));
        assert!(results.get(&bad).unwrap_err().contains("buffer.size"));
        assert!(!results.interrupted);
    }
}
