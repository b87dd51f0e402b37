//! How a claim becomes a figure: a quantity of one run, or ratios of a quantity between runs.

use super::file::Value;
use super::spec::{Results, RunSpec};
use super::verdict::Spread;
use leyden_record::RunRecord;

/// A figure of a run record.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// Its name in notes.
    pub name: &'static str,
    /// How to find it.
    pub of: fn(&RunRecord) -> f64,
    /// It is counted in a worked example.
    pub is_exact: bool,
}

/// Requests completed per simulated second.
pub(super) const IOPS: Quantity =
    Quantity { name: "IOPS", of: |record| record.host.iops, is_exact: false };

/// Mapping pages written back, and copied when they are collected.
pub(super) const MAP_PROGRAMS: Quantity = Quantity {
    name: "mapping pages programmed",
    of: |record| (record.flash.programs.map + record.flash.programs.gc_map) as f64,
    is_exact: false,
};

/// Pages programmed, whatever for.
pub(super) const PROGRAMS: Quantity = Quantity {
    name: "pages programmed",
    of: |record| {
        let programs = &record.flash.programs;
        (programs.user + programs.gc_user + programs.map + programs.gc_map) as f64
    },
    is_exact: false,
};

/// Mapping pages written back.
pub(super) const WRITEBACKS: Quantity = Quantity {
    name: "mapping pages written back",
    of: |record| record.map.writebacks as f64,
    is_exact: true,
};

/// Flash programs per page that the host has written.
pub(super) const WAF: Quantity =
    Quantity { name: "write amplification", of: |record| record.flash.waf, is_exact: false };

/// Simulated seconds.
pub(super) const ELAPSED: Quantity =
    Quantity { name: "elapsed time", of: |record| record.host.elapsed_s, is_exact: false };

/// Pages that garbage collection copied.
pub(super) const COPIES: Quantity =
    Quantity { name: "pages copied", of: |record| record.gc.copied_pages, is_exact: true };

/// Of the data that is dirty in the page cache, the share that the drive knows of.
pub(super) const KNOWN_SHARE: Quantity = Quantity {
    name: "share of dirty data known to the drive",
    of: |record| {
        record.hints.as_ref().and_then(|hints| hints.known_dirty_share).unwrap_or(f64::NAN)
    },
    is_exact: false,
};

/// How several ratios become one figure. Each group's ratios are averaged first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// The arithmetic mean of the groups.
    Mean,
    /// The group with the smallest ratio.
    Least,
    /// The group with the largest ratio.
    Most,
    /// From the group with the smallest ratio to the one with the largest.
    Range,
}

/// Runs and what each is held against, under a name.
#[derive(Clone, Debug)]
pub struct Group {
    /// The workload.
    pub name: &'static str,
    /// Run and baseline.
    pub pairs: Vec<(RunSpec, RunSpec)>,
}

/// How to measure a claim.
#[derive(Clone, Debug)]
pub enum Measure {
    /// The quantity of one run.
    Of(Quantity, RunSpec),
    /// The quantity of the baselines.
    OfBase(Quantity, Fold, Vec<Group>),
    /// Ratios of the quantity between runs and their baselines.
    Ratios(Quantity, Fold, Vec<Group>),
    /// By how much of the baselines' the runs' quantity is smaller.
    Cuts(Quantity, Fold, Vec<Group>),
}

impl Measure {
    /// A count in a worked example, which is the same at any scale.
    pub fn is_worked_example(&self) -> bool {
        matches!(self, Self::Of(quantity, _) if quantity.is_exact)
    }

    /// The same measurement with other seeds: the `n`-th, counted from 0. A worked example has no random numbers.
    #[must_use]
    pub fn replicate(&self, n: u16) -> Self {
        let spec = |spec: &RunSpec| spec.replicate(n);
        let groups = |groups: &[Group]| -> Vec<Group> {
            let group = |group: &Group| Group {
                name: group.name,
                pairs: group.pairs.iter().map(|(run, base)| (spec(run), spec(base))).collect(),
            };
            groups.iter().map(group).collect()
        };
        match self {
            Self::Of(quantity, _) if quantity.is_exact => self.clone(),
            Self::Of(quantity, run) => Self::Of(*quantity, spec(run)),
            Self::OfBase(quantity, fold, all) => Self::OfBase(*quantity, *fold, groups(all)),
            Self::Ratios(quantity, fold, all) => Self::Ratios(*quantity, *fold, groups(all)),
            Self::Cuts(quantity, fold, all) => Self::Cuts(*quantity, *fold, groups(all)),
        }
    }

    /// The figure over so many seeds, how far it goes between them, and what it is made of for the first; or
    /// why there is none. There is no range of a single seed, nor of a worked example.
    pub fn over_seeds(
        &self,
        results: &Results,
        seeds: u16,
    ) -> Result<(Value, Option<Spread>, String), String> {
        let (first, note) = self.evaluate(results)?;
        if seeds <= 1 || self.is_worked_example() {
            return Ok((first, None, note));
        }
        let others = (1..seeds).map(|n| Ok(self.replicate(n).evaluate(results)?.0));
        let values: Vec<Value> =
            std::iter::once(Ok(first)).chain(others).collect::<Result<_, String>>()?;
        let (value, spread) = Spread::of(&values);
        Ok((value, Some(spread), format!("{note} (of these {seeds} seeds, the first)")))
    }

    /// The runs that are needed.
    pub fn needs(&self) -> Vec<RunSpec> {
        match self {
            Self::Of(_, spec) => vec![spec.clone()],
            Self::OfBase(_, _, groups) | Self::Ratios(_, _, groups) | Self::Cuts(_, _, groups) => {
                let pairs = groups.iter().flat_map(|group| &group.pairs);
                pairs.flat_map(|(run, base)| [run.clone(), base.clone()]).collect()
            }
        }
    }

    /// The figure and what it is made of, or why there is none.
    pub fn evaluate(&self, results: &Results) -> Result<(Value, String), String> {
        match self {
            Self::Of(quantity, spec) => {
                let record = results.get(spec)?;
                let note = format!("{} in `{}`", quantity.name, results.command_of(spec));
                Ok((Value::One((quantity.of)(record)), note))
            }
            Self::OfBase(quantity, fold, groups) => {
                folded(*quantity, *fold, groups, results, |_, base| base)
            }
            Self::Ratios(quantity, fold, groups) => {
                folded(*quantity, *fold, groups, results, |run, base| run / base)
            }
            Self::Cuts(quantity, fold, groups) => {
                let (value, note) =
                    folded(*quantity, *fold, groups, results, |run, base| 1.0 - run / base)?;
                Ok((value, format!("less {note}")))
            }
        }
    }
}

fn folded(
    quantity: Quantity,
    fold: Fold,
    groups: &[Group],
    results: &Results,
    against: fn(f64, f64) -> f64,
) -> Result<(Value, String), String> {
    let mut means = Vec::new();
    let mut parts = Vec::new();
    for group in groups {
        let mut ratios = Vec::new();
        for (run, base) in &group.pairs {
            let (run, base) = (results.get(run)?, results.get(base)?);
            ratios.push(against((quantity.of)(run), (quantity.of)(base)));
        }
        let each: Vec<String> = ratios.iter().map(|&ratio| shown(ratio)).collect();
        parts.push(format!("{} {}", group.name, each.join(" / ")));
        means.push((group.name, mean(&ratios)));
    }
    let by = |a: &&(&str, f64), b: &&(&str, f64)| a.1.total_cmp(&b.1);
    let (what, figure) = match fold {
        Fold::Mean => {
            let all: Vec<f64> = means.iter().map(|(_, mean)| *mean).collect();
            ("mean".to_owned(), mean(&all))
        }
        Fold::Least => best(means.iter().min_by(by)),
        Fold::Most => best(means.iter().max_by(by)),
        Fold::Range => {
            let least = means.iter().map(|(_, mean)| *mean).fold(f64::INFINITY, f64::min);
            let most = means.iter().map(|(_, mean)| *mean).fold(f64::NEG_INFINITY, f64::max);
            let note = format!("{}: {}", quantity.name, parts.join("; "));
            return Ok((Value::Pair([least, most]), note));
        }
    };
    Ok((Value::One(figure), format!("{}, {what}: {}", quantity.name, parts.join("; "))))
}

/// A ratio, or that there is none: of nothing to nothing.
fn shown(ratio: f64) -> String {
    if ratio.is_nan() { "none".to_owned() } else { format!("{ratio:.3}") }
}

fn best(group: Option<&(&str, f64)>) -> (String, f64) {
    group.map_or((String::new(), f64::NAN), |(name, ratio)| {
        (format!("best workload {name}"), *ratio)
    })
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(name: &'static str) -> RunSpec {
        RunSpec::new(name)
    }

    fn results(iops: &[(&'static str, f64)]) -> Results {
        let mut results = Results::default();
        for (name, iops) in iops {
            let mut record = RunRecord::default();
            record.host.iops = *iops;
            results.records.insert(spec(name), record);
        }
        results
    }

    fn measure(fold: Fold) -> Measure {
        let groups = vec![
            Group { name: "x", pairs: vec![(spec("a"), spec("b")), (spec("c"), spec("b"))] },
            Group { name: "y", pairs: vec![(spec("d"), spec("b"))] },
        ];
        Measure::Ratios(IOPS, fold, groups)
    }

    #[test]
    fn groups_are_averaged_and_then_folded() {
        let results = results(&[("a", 1.0), ("b", 2.0), ("c", 3.0), ("d", 4.0)]);
        let value = |fold| measure(fold).evaluate(&results).unwrap();
        let (figure, note) = value(Fold::Mean);
        assert_eq!(figure, Value::One(1.5), "the mean of 1 (of 0.5 and 1.5) and 2");
        assert_eq!(note, "IOPS, mean: x 0.500 / 1.500; y 2.000");
        assert_eq!(value(Fold::Least).0, Value::One(1.0));
        assert_eq!(value(Fold::Most).0, Value::One(2.0));
        assert!(value(Fold::Most).1.contains("best workload y"));
        assert_eq!(measure(Fold::Mean).needs().len(), 6);
    }

    #[test]
    fn seeds_make_a_mean_and_a_range() {
        let mut results = results(&[("a", 3.0), ("b", 2.0)]);
        for (name, iops) in [("a", 5.0), ("b", 2.0)] {
            let mut record = RunRecord::default();
            record.host.iops = iops;
            results.records.insert(spec(name).set("seed=2"), record);
        }
        let pairs = vec![(spec("a"), spec("b"))];
        let measure = Measure::Ratios(IOPS, Fold::Mean, vec![Group { name: "x", pairs }]);
        let (value, spread, note) = measure.over_seeds(&results, 2).unwrap();
        assert_eq!(value, Value::One(2.0));
        assert_eq!(spread, Some(Spread { seeds: 2, least: 1.5, most: 2.5 }));
        assert!(note.ends_with("x 1.500 (of these 2 seeds, the first)"), "{note}");
        assert_eq!(measure.over_seeds(&results, 1).unwrap().1, None);
        let why = measure.over_seeds(&results, 3).unwrap_err();
        assert!(why.contains("seed=3"), "{why}");
        let exact = Measure::Of(COPIES, spec("a"));
        assert_eq!(exact.over_seeds(&results, 3).unwrap().1, None, "there is nothing to vary");
    }

    #[test]
    fn a_run_that_is_missing_is_named() {
        let results = results(&[("a", 1.0), ("b", 2.0), ("c", 3.0)]);
        let why = measure(Fold::Mean).evaluate(&results).unwrap_err();
        assert!(why.starts_with("leyden run d: "), "{why}");
    }
}
