//! The frontier of designs: which protection, schedule and dump are worth building.
//!
//! The papers hold each design against one baseline of their choice. Here every protection of the mapping table runs
//! under every schedule and every dump, on the three workloads of Hexa and Dawid, and each design is held
//! against all others by five figures at once ([`Figures`]). One design dominates another if it is worse in none of them
//! and better in one.

use serde::Serialize;

use super::hexa::{BUFFERS, Cell, SCHEDULES, Scale, Table, WORKLOADS, Workload};
use super::spec::{Results, RunSpec};
use leyden_record::RunRecord;

/// The protected part of the mapping table.
pub const TABLES: [Table; 6] = [
    Table::Share(100),
    Table::Share(50),
    Table::Share(10),
    Table::Share(1),
    Table::Journal,
    Table::Nothing,
];

/// Where a dump goes: `device.power.dump`.
pub const DUMPS: [&str; 3] = ["in_place", "balanced", "balanced_slc"];

/// Figures closer than this share of each other count as equal: seeds differ by as much.
pub const TOLERANCE: f64 = 0.005;

/// A drive to be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Design {
    /// The protected part of the mapping table.
    pub table: Table,
    /// The schedule's name.
    pub schedule: &'static str,
    /// Where a dump goes, one of [`DUMPS`].
    pub dump: &'static str,
}

impl Design {
    /// The run of this design under `workload`. All have the same flash, blocks for data, and write buffer of 64 MiB.
    pub fn spec(&self, workload: Workload, scale: Scale) -> RunSpec {
        let (schedule, table) = (self.schedule, self.table);
        let cell = Cell { workload, buffer: BUFFERS[0], schedule, table };
        cell.on_a_drive(scale).set(format!("device.power.dump={}", self.dump))
    }

    /// Its name: protection, schedule and dump.
    pub fn name(&self) -> String {
        format!("{}, {}, {}", self.table.name(), self.schedule, self.dump)
    }
}

/// Every design.
pub fn designs() -> Vec<Design> {
    let mut designs = Vec::new();
    for table in TABLES {
        for &(schedule, _) in SCHEDULES {
            designs.extend(DUMPS.map(|dump| Design { table, schedule, dump }));
        }
    }
    designs
}

/// The figures by which a design is judged.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Requests completed per simulated second.
    pub iops: f64,
    /// Latency of writes that 99 % of them do not exceed, microseconds.
    pub write_p99_us: f64,
    /// Flash programs per page that the host has written.
    pub waf: f64,
    /// From the return of the power until the drive is ready, milliseconds, after a cut at the end of the run.
    pub recovery_ms: f64,
    /// The capacitance that the largest possible dump needs, microfarads.
    pub capacitance_uf: f64,
}

impl Figures {
    /// Those of a run; `None` without a power cut and a recovery.
    fn of(record: &RunRecord) -> Option<Self> {
        Some(Self {
            iops: record.host.iops,
            write_p99_us: record.host.write_latency_us.p99,
            waf: record.flash.waf,
            recovery_ms: record.recovery.as_ref()?.time_ms.max,
            capacitance_uf: record.power.as_ref()?.worst.capacitance_uf,
        })
    }

    /// All of them so that less is better.
    const fn costs(&self) -> [f64; 5] {
        [-self.iops, self.write_p99_us, self.waf, self.recovery_ms, self.capacitance_uf]
    }

    fn mean(of: &[Self]) -> Option<Self> {
        let count = of.len() as f64;
        let mean = |figure: fn(&Self) -> f64| of.iter().map(figure).sum::<f64>() / count;
        (!of.is_empty()).then(|| Self {
            iops: mean(|figures| figures.iops),
            write_p99_us: mean(|figures| figures.write_p99_us),
            waf: mean(|figures| figures.waf),
            recovery_ms: mean(|figures| figures.recovery_ms),
            capacitance_uf: mean(|figures| figures.capacitance_uf),
        })
    }

    /// Worse than `other` in nothing, and better in something, by more than [`TOLERANCE`].
    pub fn dominates(&self, other: &Self) -> bool {
        let pairs = || self.costs().into_iter().zip(other.costs());
        let slack = |other: f64| TOLERANCE * other.abs();
        pairs().all(|(mine, theirs)| mine <= theirs + slack(theirs))
            && pairs().any(|(mine, theirs)| mine < theirs - slack(theirs))
    }
}

/// A design under a workload.
#[derive(Clone, Debug)]
pub struct Point {
    /// The design.
    pub design: Design,
    /// Its figures: means over the seeds.
    pub figures: Figures,
    /// The design with the most IOPS of those that dominate it; `None` on the frontier.
    pub dominated_by: Option<Design>,
}

/// Every run that so many seeds need.
pub fn needs(scale: Scale, seeds: u16) -> impl Iterator<Item = RunSpec> {
    let specs = WORKLOADS.into_iter().flat_map(move |workload| {
        designs().into_iter().map(move |design| design.spec(workload, scale))
    });
    specs.flat_map(move |spec| (0..seeds).map(move |n| spec.replicate(n)).collect::<Vec<_>>())
}

/// The designs under `workload` whose runs are finished, from the least capacitance to the most.
pub fn points(workload: Workload, results: &Results, scale: Scale, seeds: u16) -> Vec<Point> {
    let figures = |design: &Design| {
        let spec = design.spec(workload, scale);
        let all: Option<Vec<Figures>> =
            (0..seeds).map(|n| Figures::of(results.get(&spec.replicate(n)).ok()?)).collect();
        Figures::mean(&all?)
    };
    let found: Vec<_> =
        designs().iter().filter_map(|design| Some((*design, figures(design)?))).collect();
    judged(&found)
}

/// Holds every design against all others.
fn judged(found: &[(Design, Figures)]) -> Vec<Point> {
    let dominator = |figures: &Figures| {
        let better = found.iter().filter(|(_, other)| other.dominates(figures));
        better.max_by(|a, b| a.1.iops.total_cmp(&b.1.iops)).map(|(design, _)| *design)
    };
    let point = |&(design, figures): &(Design, Figures)| Point {
        design,
        figures,
        dominated_by: dominator(&figures),
    };
    let mut points: Vec<Point> = found.iter().map(point).collect();
    points.sort_by(|a, b| a.figures.capacitance_uf.total_cmp(&b.figures.capacitance_uf));
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::tests::assert_runs;

    #[test]
    fn every_design_is_a_scenario_and_no_two_are_the_same_run() {
        assert_runs(needs(Scale::Full, 1));
        assert_runs(needs(Scale::Quick, 2));
    }

    #[test]
    fn a_design_dominates_what_is_worse_and_no_trade() {
        let figures = |iops, capacitance_uf| Figures {
            iops,
            write_p99_us: 100.0,
            waf: 2.0,
            recovery_ms: 5.0,
            capacitance_uf,
        };
        let design = |dump| Design { table: Table::Nothing, schedule: "fifo", dump };
        let found = vec![
            (design("in_place"), figures(100.0, 10.0)),
            (design("balanced"), figures(90.0, 10.0)),
            (design("balanced_slc"), figures(80.0, 5.0)),
        ];
        let points = judged(&found);
        let of = |dump| points.iter().find(|point| point.design.dump == dump).unwrap();
        assert_eq!(of("balanced").dominated_by.map(|design| design.dump), Some("in_place"));
        assert_eq!(of("in_place").dominated_by, None);
        assert_eq!(of("balanced_slc").dominated_by, None, "it needs less capacitance");
        assert_eq!(points[0].design.dump, "balanced_slc", "sorted by capacitance");
        // A difference between seeds decides nothing.
        assert!(!figures(100.4, 10.0).dominates(&figures(100.0, 10.0)));
    }
}
