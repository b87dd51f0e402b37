//! How often 1,000 seeds reach each line of the coverage list, at least.
//!
//! `floors.txt` has a quarter of what a campaign of its day reached: a change of the draws that reaches half of it fails
//! nothing, and one that hides a feature does. Each line of the list is there (`examples/floors.rs` prints a new one).

use crate::campaign::Summary;
use crate::subject::Subject;

const FLOORS: &str = include_str!("floors.txt");

/// A line of the coverage list that a campaign has not reached often enough.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shortfall {
    /// The line.
    pub name: String,
    /// How often it was reached.
    pub times: u64,
    /// How often it has to be.
    pub floor: u64,
}

/// A quarter of how often 1,000 seeds reach what `seeds` have reached so many `times`, in two digits; at least 1.
pub fn floor_of(times: u64, seeds: u64) -> u64 {
    let quarter = times * 250 / seeds.max(1);
    let step = 10_u64.pow(quarter.checked_ilog10().unwrap_or(0).saturating_sub(1));
    (quarter / step * step).max(1)
}

/// Lines of the list, each with its floor for 1,000 seeds.
fn floors(subject: Subject) -> impl Iterator<Item = (&'static str, u64)> {
    let lines = FLOORS.lines().filter_map(|line| line.split_once(' '));
    lines.filter(move |(of, _)| *of == subject.name()).filter_map(|(_, rest)| {
        let (floor, name) = rest.split_once(' ')?;
        Some((name, floor.parse().ok()?))
    })
}

/// The points that `summary`, of a campaign on such drives, has hit too seldom.
pub fn shortfalls(summary: &Summary, subject: Subject) -> Vec<Shortfall> {
    let least = |per_1000: u64| (per_1000 * summary.seeds / 1_000).max(1);
    let of = |name: &str| floors(subject).find(|(of, _)| *of == name).map_or(0, |(_, floor)| floor);
    let reached = summary.coverage.all(subject.names());
    let all = std::iter::once(("power cuts".to_owned(), summary.cuts)).chain(reached);
    let all = all.map(|(name, times)| Shortfall { floor: least(of(&name)), name, times });
    all.filter(|it| it.times < it.floor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Coverage, Tally};

    #[test]
    fn each_line_has_a_floor() {
        for subject in Subject::ALL {
            let names = subject.names();
            let mut count = 0;
            for (name, floor) in floors(subject) {
                assert!(name == "power cuts" || names.iter().any(|it| it == name), "{name}");
                assert!(floor > 0, "{name}");
                count += 1;
            }
            for name in &names {
                assert!(floors(subject).any(|(of, _)| of == name), "{subject:?}: {name}");
            }
            assert_eq!(count, names.len() + 1, "{subject:?}");
            let lines =
                FLOORS.lines().filter(|line| line.starts_with(&format!("{} ", subject.name())));
            assert_eq!(lines.count(), count);
        }
    }

    #[test]
    fn a_campaign_that_reaches_little_is_told_what() {
        let summary = Summary {
            seeds: 2_000,
            cuts: 1,
            violations: 0,
            cuts_per_s: 0.0,
            digest: String::new(),
            tally: Tally::default(),
            coverage: Coverage::default(),
            failed: Vec::new(),
        };
        let all = shortfalls(&summary, Subject::Zoned);
        let cuts = all.iter().find(|it| it.name == "power cuts").unwrap();
        assert!(cuts.times == 1 && cuts.floor > 10_000, "{cuts:?}");
        assert_eq!(all.len(), 1 + Subject::Zoned.names().len());
    }
}
