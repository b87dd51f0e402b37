//! The runs of the journal-only zones paper, and what its claims are measured by.
//!
//! A cell is a trace of a file system, whether its journal has zones of its own, and a seed. The traces are what
//! ext4 and XFS sent to their device; a seed begins the replay at another place, so that reclaim meets them in
//! another state (the paper says that its runs differ for that reason, and averages five). The scenarios are
//! `scenarios/journal-zones/*.toml`.

use super::hexa::Scale;
use super::measure::{Fold, Group, Measure, Quantity};
use super::spec::RunSpec;
use crate::record::{RunRecord, ZonedBlock};

/// Every figure is measured over these, as the paper's are over five runs.
pub const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];

/// A workload that was traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traced {
    /// What it is called in tables.
    pub name: &'static str,
    /// The bundled scenario.
    scenario: &'static str,
    /// The bundled trace.
    trace: &'static str,
    /// Which of the paper's figures it is of.
    mode: Mode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Ordered,
    Journal,
    /// Beside the paper.
    Xfs,
}

const fn traced(
    name: &'static str,
    scenario: &'static str,
    trace: &'static str,
    mode: Mode,
) -> Traced {
    Traced { name, scenario, trace, mode }
}

/// What is replayed.
pub const TRACES: [Traced; 5] = [
    traced(
        "ordered, random, fsync every 16",
        "journal-zones/ordered",
        "traces/ext4-ordered-randwrite4k-fsync16.csv.zst",
        Mode::Ordered,
    ),
    traced(
        "journal, random, fsync every 16",
        "journal-zones/journal",
        "traces/ext4-journal-randwrite4k-fsync16.csv.zst",
        Mode::Journal,
    ),
    traced(
        "journal, random",
        "journal-zones/journal",
        "traces/ext4-journal-randwrite4k.csv.zst",
        Mode::Journal,
    ),
    traced(
        "journal, sequential, fsync every 32",
        "journal-zones/journal",
        "traces/ext4-journal-seqwrite4k-fsync32.csv.zst",
        Mode::Journal,
    ),
    traced(
        "XFS, random, fsync every 16",
        "journal-zones/xfs",
        "traces/xfs-randwrite4k-fsync16.csv.zst",
        Mode::Xfs,
    ),
];

/// A run of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZonesCell {
    /// What is replayed.
    pub traced: Traced,
    /// The journal has zones of its own.
    pub separate: bool,
    /// Where the replay begins.
    pub seed: u64,
}

impl ZonesCell {
    /// The run.
    pub fn spec(&self, scale: Scale) -> RunSpec {
        let Self { traced, separate, seed } = self;
        let mut spec = RunSpec::new(traced.scenario)
            .set(format!("workload.trace.path={}", traced.trace))
            .set(format!("workload.trace.from={} ms", 300 * (seed - 1)))
            .set(format!("host.zoned_block.journal.separate={separate}"));
        if scale == Scale::Quick {
            spec = spec.set("workload.trace.loops=3");
        }
        spec.set(format!("seed={seed}"))
    }
}

/// Every cell of figures 7 to 9.
pub fn cells() -> Vec<ZonesCell> {
    let mut cells = Vec::new();
    for traced in TRACES {
        for separate in [false, true] {
            cells.extend(SEEDS.map(|seed| ZonesCell { traced, separate, seed }));
        }
    }
    cells
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

/// What reclaim copies.
const COPIES: Quantity = Quantity {
    name: "bytes copied by reclaim",
    of: |record| of(record, |layer| layer.copied_bytes as f64),
    is_exact: false,
};

/// Bandwidth.
const BANDWIDTH: Quantity =
    Quantity { name: "bandwidth", of: |record| record.host.iops, is_exact: false };

/// Of the traces of these modes: with journal zones, and without.
fn groups(modes: &[Mode], scale: Scale) -> Vec<Group> {
    let of_modes = TRACES.into_iter().filter(|traced| modes.contains(&traced.mode));
    let pair = |traced: Traced, seed: u64| {
        let cell = |separate| ZonesCell { traced, separate, seed }.spec(scale);
        (cell(true), cell(false))
    };
    of_modes
        .map(|traced| Group {
            name: traced.name,
            pairs: SEEDS.map(|seed| pair(traced, seed)).into(),
        })
        .collect()
}

/// How the claim `id` is measured, if it is this paper's.
pub fn measure(id: &str, scale: Scale) -> Option<Measure> {
    let ext4 = [Mode::Ordered, Mode::Journal];
    Some(match id {
        "journal_zones.journal_share_of_copies.max" => {
            Measure::OfBase(SHARE, Fold::Most, groups(&ext4, scale))
        }
        "journal_zones.copies_cut" => Measure::Cuts(COPIES, Fold::Range, groups(&ext4, scale)),
        "journal_zones.ordered_bandwidth" => {
            Measure::Ratios(BANDWIDTH, Fold::Mean, groups(&[Mode::Ordered], scale))
        }
        "journal_zones.journal_bandwidth" => {
            Measure::Ratios(BANDWIDTH, Fold::Mean, groups(&[Mode::Journal], scale))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::spec::tests::assert_runs;

    #[test]
    fn every_cell_is_a_scenario_and_no_two_are_the_same_run() {
        for scale in [Scale::Full, Scale::Quick] {
            assert_runs(cells().iter().map(|cell| cell.spec(scale)));
        }
    }

    #[test]
    fn the_claims_need_no_run_that_the_figures_have_not() {
        let cells: Vec<RunSpec> = cells().iter().map(|cell| cell.spec(Scale::Full)).collect();
        for claim in crate::claims::ClaimsFile::bundled().unwrap().claims {
            let measure = measure(&claim.id, Scale::Full);
            assert!(measure.iter().flat_map(Measure::needs).all(|spec| cells.contains(&spec)));
        }
    }
}
