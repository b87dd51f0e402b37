//! The runs of the journal-only zones paper, and what its claims are measured by.
//!
//! A cell is a traced workload, whether its journal has zones of its own, and a seed. The scenarios are
//! `scenarios/journal-zones/once-*.toml`; they begin with mkfs, so the device is in the state that the file system has brought
//! it into.
//!
//! - All figures are of the same runs, as the paper's are of runs of fio: as fast as the device goes, and a file system waits for
//!   its flushes only (`workload.trace.barriers`), for the device mapper lets any number of writes be outstanding.
//! - The paper averages five runs, because timing decides what reclaim finds. Ours differ in that: a seed lets twice as
//!   many requests be outstanding as the one before, from 1,024 on (a queue of NVMe's), and draws who goes on first when a
//!   chunk is moved (`host.zoned_block.writers_first`).

use super::hexa::Scale;
use super::measure::{Fold, Group, Measure, Quantity};
use super::spec::RunSpec;
use leyden_record::{RunRecord, ZonedBlock};

/// Every figure is measured over these, as the paper's are over five runs.
pub const SEEDS: [u32; 5] = [1, 2, 3, 4, 5];

/// Which of the paper's figures a workload is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// ext4 with data=ordered.
    Ordered,
    /// ext4 with data=journal.
    Journal,
    /// XFS, beside the paper.
    Xfs,
}

/// A workload that was traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traced {
    /// The name in tables.
    pub name: &'static str,
    /// The file system.
    pub mode: Mode,
    /// The bundled scenario.
    scenario: &'static str,
}

const fn traced(mode: Mode, name: &'static str, scenario: &'static str) -> Traced {
    Traced { name, mode, scenario }
}

/// The traces.
pub const TRACES: [Traced; 5] = [
    traced(Mode::Ordered, "ordered, random", "journal-zones/once-ordered"),
    traced(Mode::Ordered, "ordered, sequential", "journal-zones/once-ordered-sequential"),
    traced(Mode::Journal, "journal, random", "journal-zones/once-journal"),
    traced(Mode::Journal, "journal, sequential", "journal-zones/once-journal-sequential"),
    traced(Mode::Xfs, "XFS, random", "journal-zones/once-xfs"),
];

/// A run of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZonesCell {
    /// The trace.
    pub traced: Traced,
    /// The journal has zones of its own.
    pub separate: bool,
    /// Which of [`SEEDS`].
    pub seed: u32,
}

impl ZonesCell {
    /// The run.
    pub fn spec(&self) -> RunSpec {
        let Self { traced, separate, seed } = self;
        RunSpec::new(traced.scenario)
            .set(format!("host.zoned_block.journal.separate={separate}"))
            .set(format!("workload.trace.queue_depth={}", 512 << seed))
            .set(format!("seed={seed}"))
    }
}

/// Every cell of figures 7 to 9, and XFS's beside them.
pub fn cells(scale: Scale) -> Vec<ZonesCell> {
    let mut cells = Vec::new();
    for traced in TRACES {
        for separate in [false, true] {
            let of = |&seed: &u32| ZonesCell { traced, separate, seed };
            cells.extend(seeds(scale).iter().map(of));
        }
    }
    cells
}

/// With `--quick` one run for each figure: the traces are short.
const fn seeds(scale: Scale) -> &'static [u32] {
    match scale {
        Scale::Full => &SEEDS,
        Scale::Quick => &[3],
    }
}

fn of(record: &RunRecord, of: fn(&ZonedBlock) -> f64) -> f64 {
    record.zoned_block.as_ref().map_or(f64::NAN, of)
}

/// The share of journal blocks in what reclaim copies.
const SHARE: Quantity = Quantity {
    name: "journal's share of copies",
    of: |record| of(record, |layer| layer.journal_share_of_copies),
    is_exact: false,
};

/// The bytes that reclaim copies.
const COPIES: Quantity = Quantity {
    name: "bytes copied by reclaim",
    of: |record| of(record, |layer| layer.copied_bytes as f64),
    is_exact: false,
};

/// Bandwidth of a trace: both runs transfer the same bytes.
const BANDWIDTH: Quantity =
    Quantity { name: "bandwidth", of: |record| record.host.mib_per_s, is_exact: false };

/// Of the traces of these modes: with journal zones, and without.
fn groups(modes: &[Mode], scale: Scale) -> Vec<Group> {
    let of_modes = TRACES.into_iter().filter(|traced| modes.contains(&traced.mode));
    let pair = |traced: Traced, seed: u32| {
        let cell = |separate| ZonesCell { traced, separate, seed }.spec();
        (cell(true), cell(false))
    };
    let group = |traced: Traced| Group {
        name: traced.name,
        pairs: seeds(scale).iter().map(|&seed| pair(traced, seed)).collect(),
    };
    of_modes.map(group).collect()
}

/// Why our figure of the claim `id` is another, with what was run to find out.
pub fn reason(id: &str) -> Option<&'static str> {
    let is_of_reclaim =
        matches!(id, "journal_zones.journal_share_of_copies.max" | "journal_zones.copies_cut");
    is_of_reclaim.then_some(
        "data=journal with random writes, of the four workloads alone: reclaim gives up the move of the journal's chunk 36 to 68 times, \
         each time after its one run of 64 MiB is copied. Linux 6.1's dm-zoned does the same with the same requests: 3,813 MiB read, \
         93 % of them journal; so does Linux 5.10 under a live fio: 6,870 MiB, 82 %, and 3,387 with the journal elsewhere. How often \
         it does depends on the pace of the requests, which a replay has not. The other three workloads are within the bands: shares \
         of 27 to 59 %, cuts of 29 to 44 % \
         (docs/papers/journal-zones.md)",
    )
}

/// How the claim `id` is measured, if it is this paper's.
pub fn measure(id: &str, scale: Scale) -> Option<Measure> {
    let ext4 = [Mode::Ordered, Mode::Journal];
    let bandwidth = |mode| Measure::Ratios(BANDWIDTH, Fold::Mean, groups(&[mode], scale));
    Some(match id {
        "journal_zones.journal_share_of_copies.max" => {
            Measure::OfBase(SHARE, Fold::Most, groups(&ext4, scale))
        }
        "journal_zones.copies_cut" => Measure::Cuts(COPIES, Fold::Range, groups(&ext4, scale)),
        "journal_zones.ordered_bandwidth" => bandwidth(Mode::Ordered),
        "journal_zones.journal_bandwidth" => bandwidth(Mode::Journal),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::tests::assert_runs;

    #[test]
    fn every_cell_is_a_scenario_and_no_two_are_the_same_run() {
        for scale in [Scale::Full, Scale::Quick] {
            assert_runs(cells(scale).iter().map(ZonesCell::spec));
        }
    }

    #[test]
    fn the_claims_need_no_run_that_the_figures_have_not() {
        for scale in [Scale::Full, Scale::Quick] {
            let cells: Vec<RunSpec> = cells(scale).iter().map(ZonesCell::spec).collect();
            for claim in crate::ClaimsFile::bundled().unwrap().claims {
                let measure = measure(&claim.id, scale);
                assert!(measure.iter().flat_map(Measure::needs).all(|spec| cells.contains(&spec)));
            }
        }
    }
}
