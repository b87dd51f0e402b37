//! Specifications of runs, each a bundled scenario with overrides, and their results.

use std::collections::BTreeMap;

use leyden_config::{LoadError, Loaded, Set, run_command};
use leyden_record::RunRecord;

/// The seed of a scenario that names none.
const FIRST_SEED: u64 = 1;

/// The seeds of a measurement that is a mean over several.
pub(super) const SEEDS: [u64; 3] = [1, 2, 3];

/// A run: a bundled scenario and what is set on top of it. Equal specifications are one run, however
/// many claims need it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunSpec {
    /// The bundled scenario's name.
    pub scenario: &'static str,
    /// Overrides, as `--set` takes them.
    pub sets: Vec<String>,
}

impl RunSpec {
    /// `scenario` as it is.
    pub fn new(scenario: &'static str) -> Self {
        Self { scenario, sets: Vec::new() }
    }

    /// With one more override.
    #[must_use]
    pub fn set(mut self, set: impl Into<String>) -> Self {
        self.sets.push(set.into());
        self
    }

    /// The same run with other random numbers: the `n`-th of its seeds, counted from 0. One with a seed of its
    /// own is of a mean over `SEEDS`; the next measurement takes as many next ones.
    #[must_use]
    pub fn replicate(&self, n: u16) -> Self {
        let mut replicate = self.clone();
        let seed_of =
            |set: &str| set.strip_prefix("seed=").and_then(|seed| seed.parse::<u64>().ok());
        let seeded = replicate.sets.iter_mut().find_map(|set| Some((seed_of(set)?, set)));
        match seeded {
            _ if n == 0 => {}
            Some((seed, set)) => {
                *set = format!("seed={}", seed + u64::from(n) * SEEDS.len() as u64);
            }
            None => replicate.sets.push(format!("seed={}", FIRST_SEED + u64::from(n))),
        }
        replicate
    }

    /// The scenario with its overrides.
    pub fn load(&self) -> Result<Loaded, LoadError> {
        self.load_with(&[])
    }

    /// The scenario with its overrides, and `more` of them.
    pub fn load_with(&self, more: &[Set]) -> Result<Loaded, LoadError> {
        let sets = self.sets.iter().map(|set| set.parse());
        let mut sets = sets.collect::<Result<Vec<Set>, _>>()?;
        sets.extend_from_slice(more);
        Loaded::new(self.scenario, &sets)
    }

    /// The command that makes this run alone.
    pub fn command(&self) -> String {
        self.command_with(&[])
    }

    /// The command that makes this run with `more` overrides.
    pub fn command_with(&self, more: &[Set]) -> String {
        let sets = self.sets.iter().cloned().chain(more.iter().map(ToString::to_string));
        run_command(self.scenario, &sets.collect::<Vec<String>>())
    }
}

/// The outcomes of the runs that were asked for.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// The settings on top of every run.
    pub sets: Vec<Set>,
    /// Finished runs.
    pub records: BTreeMap<RunSpec, RunRecord>,
    /// Runs that failed, and why.
    pub failures: BTreeMap<RunSpec, String>,
    /// How many of the finished runs came from the cache.
    pub cached: usize,
    /// Warnings: cache entries that were of no use.
    pub warnings: Vec<String>,
    /// The runs were cancelled before all were made.
    pub interrupted: bool,
}

impl Results {
    /// The record of `spec`, or why there is none.
    pub fn get(&self, spec: &RunSpec) -> Result<&RunRecord, String> {
        if let Some(record) = self.records.get(spec) {
            return Ok(record);
        }
        let why = match self.failures.get(spec) {
            Some(failure) => failure.lines().next().unwrap_or_default(), // places come after
            None => "interrupted before it was run",
        };
        Err(format!("{}: {why}", self.command_of(spec)))
    }

    /// The command that makes this run alone, as it was made.
    pub fn command_of(&self, spec: &RunSpec) -> String {
        spec.command_with(&self.sets)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Each of `specs` is a scenario, and no two are the same run.
    pub(crate) fn assert_runs(specs: impl Iterator<Item = RunSpec>) {
        let mut seen = BTreeSet::new();
        for spec in specs {
            if let Err(error) = spec.load() {
                panic!("{}: {error}", spec.command());
            }
            assert!(seen.insert(spec.clone()), "twice: {}", spec.command());
        }
        assert!(!seen.is_empty());
    }

    #[test]
    fn replicates_are_other_seeds_and_the_first_is_the_run_itself() {
        let plain = RunSpec::new("devices/hexa").set("device.buffer.size=1 GiB");
        assert_eq!(plain.replicate(0), plain);
        assert_eq!(plain.replicate(2), plain.clone().set("seed=3"));
        let seeded = plain.clone().set("seed=2").set("run.stamps=false");
        let next = plain.set("seed=5").set("run.stamps=false");
        assert_eq!(seeded.replicate(1), next);
    }

    #[test]
    fn a_specification_is_the_scenario_it_names() {
        let spec = RunSpec::new("devices/hexa").set("device.buffer.size=1 GiB");
        let loaded = spec.load().unwrap();
        assert_eq!(loaded.scenario.device.buffer.size.get(), 1 << 30);
        assert!(spec.clone().set("device.bufer.size=1").load().is_err());
        let missing = Results::default().get(&spec).unwrap_err();
        assert!(missing.contains("leyden run devices/hexa --set 'device.buffer.size=1 GiB'"));
    }
}
