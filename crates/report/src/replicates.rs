//! Runs that differ in nothing but their seed: one experiment, made several times. What is told of them is
//! the mean and how sure it is.

use crate::metrics::Metric;
use leyden_record::RunRecord;

/// The key whose values make replicates.
const SEED: &str = "seed";

/// The 97.5 % quantiles of Student's t, by degrees of freedom from 1 on.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];
/// The same for more degrees of freedom: that of the normal distribution is at most 4 % below it.
const T_BEYOND: f64 = 2.042;

/// One experiment: a run, or several that differ in their seed only.
#[derive(Clone, Debug)]
pub struct Replicates<'a> {
    /// Its name: the varied keys, without the seed.
    pub name: String,
    /// The runs.
    pub records: Vec<&'a RunRecord>,
}

/// A figure of an experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean over the runs.
    pub mean: f64,
    /// Half the width of its 95 % confidence interval; none of a single run.
    pub half_width: Option<f64>,
}

/// The experiments that `records` are of, in the order of their first runs.
pub fn replicates(records: &[RunRecord]) -> Vec<Replicates<'_>> {
    let mut experiments: Vec<(Vec<&str>, Replicates<'_>)> = Vec::new();
    for record in records {
        if record.varied.iter().all(|varied| varied.key != SEED) {
            let (key, name) = (Vec::new(), record.name.clone());
            experiments.push((key, Replicates { name, records: vec![record] }));
            continue;
        }
        let others = record.varied.iter().filter(|varied| varied.key != SEED);
        let values: Vec<&str> = others.map(|varied| varied.value.as_str()).collect();
        let mut key = vec![record.scenario.as_str()];
        key.extend(&values);
        if let Some((_, known)) = experiments.iter_mut().find(|(other, _)| *other == key) {
            known.records.push(record);
            continue;
        }
        let name = if values.is_empty() { record.scenario.clone() } else { values.join(" ") };
        experiments.push((key, Replicates { name, records: vec![record] }));
    }
    experiments.into_iter().map(|(_, experiment)| experiment).collect()
}

impl Replicates<'_> {
    /// The figure; none if a run has none.
    pub fn estimate(&self, metric: &Metric) -> Option<Estimate> {
        let values: Option<Vec<f64>> = self.records.iter().map(|r| metric.of(r)).collect();
        Estimate::of(&values?)
    }

    /// The least and the most of the figure's ratios over that of `first` with the same seed; none of a
    /// single run, and none unless both were made with the same seeds.
    pub fn ratios(&self, first: &Self, metric: &Metric) -> Option<[f64; 2]> {
        if self.records.len() < 2 || self.records.len() != first.records.len() {
            return None;
        }
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for record in &self.records {
            let base = first.records.iter().find(|base| base.seed == record.seed)?;
            let ratio = Metric::ratio(metric.of(base), metric.of(record))?;
            (least, most) = (least.min(ratio), most.max(ratio));
        }
        Some([least, most])
    }
}

impl Estimate {
    /// The mean of `values`, and its interval from their spread (Student 1908).
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        let n = values.len();
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let half_width = (n > 1).then(|| {
            let error = (squares / (n - 1) as f64 / n as f64).sqrt();
            T.get(n - 2).copied().unwrap_or(T_BEYOND) * error
        });
        (n > 0).then_some(Self { mean, half_width })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::metric_groups;
    use leyden_record::Varied;

    fn run(policy: &str, seed: u64, iops: f64) -> RunRecord {
        let varied = |key: &str, value: String| Varied { key: key.into(), value };
        let mut record = RunRecord { scenario: "hot".into(), ..RunRecord::default() };
        record.varied = vec![varied("gc", policy.into()), varied(SEED, seed.to_string())];
        record.host.iops = iops;
        record.seed = seed;
        record
    }

    #[test]
    fn ratios_are_taken_between_runs_of_the_same_seed() {
        let records = [
            run("greedy", 1, 10.0),
            run("greedy", 2, 20.0),
            run("fifo", 2, 30.0),
            run("fifo", 1, 12.0),
        ];
        let iops = &metric_groups()[0].metrics[0];
        let folded = replicates(&records);
        assert_eq!(folded[1].ratios(&folded[0], iops), Some([1.2, 1.5]));
        let others = [
            run("greedy", 1, 10.0),
            run("greedy", 2, 20.0),
            run("fifo", 2, 30.0),
            run("fifo", 3, 1.0),
        ];
        let folded = replicates(&others);
        assert_eq!(folded[1].ratios(&folded[0], iops), None, "seed 3 has nothing beside it");
    }

    #[test]
    fn seeds_are_folded_and_nothing_else() {
        let records = [
            run("greedy", 1, 10.0),
            run("fifo", 1, 5.0),
            run("greedy", 2, 12.0),
            run("greedy", 3, 14.0),
        ];
        let folded = replicates(&records);
        let names: Vec<_> = folded.iter().map(|it| (it.name.as_str(), it.records.len())).collect();
        assert_eq!(names, [("greedy", 3), ("fifo", 1)]);
        let iops = &metric_groups()[0].metrics[0];
        let estimate = folded[0].estimate(iops).unwrap();
        // Standard deviation 2 of 3 values: 4.303 x 2 / sqrt(3).
        assert!((estimate.mean - 12.0).abs() < 1e-12);
        assert!((estimate.half_width.unwrap() - 4.968_675).abs() < 1e-3, "{estimate:?}");
        assert_eq!(folded[1].estimate(iops), Some(Estimate { mean: 5.0, half_width: None }));
        assert_eq!(folded[1].ratios(&folded[0], iops), None, "one seed has no spread");
        let plain = [RunRecord::default(), RunRecord::default()];
        assert_eq!(replicates(&plain).len(), 2);
    }
}
