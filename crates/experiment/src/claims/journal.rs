//! The runs of the journal-only zones paper, and what its claims are measured by.
//!
//! A cell is a traced workload, whether its journal has zones of its own, how fast it is replayed, and a seed. The
//! scenarios are `scenarios/journal-zones/*.toml`; they begin with mkfs, so the device is in the state that the file
//! system has brought it into.
//!
//! - Copies (figures 7 and 8) are counted in replays as recorded: reclaim works when the file system pauses.
//! - Bandwidth (figure 9) is that of replays as fast as the device takes them.
//! - The paper averages five runs, because timing decides what reclaim finds. Ours differ in that: a seed replays a
//!   per cent faster than the one before, or with two more requests outstanding.

use super::hexa::Scale;
use super::measure::{Fold, Group, Measure, Quantity};
use super::spec::RunSpec;
use crate::record::{RunRecord, ZonedBlock};

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
    /// What it is called in tables.
    pub name: &'static str,
    /// The file system.
    pub mode: Mode,
    /// The bundled scenario.
    scenario: &'static str,
}

const fn traced(mode: Mode, name: &'static str, scenario: &'static str) -> Traced {
    Traced { name, mode, scenario }
}

/// What is replayed.
pub const TRACES: [Traced; 6] = [
    traced(Mode::Ordered, "ordered, random", "journal-zones/ordered"),
    traced(Mode::Ordered, "ordered, sequential", "journal-zones/ordered-sequential"),
    traced(Mode::Journal, "journal, random", "journal-zones/journal"),
    traced(Mode::Journal, "journal, random, no fsync", "journal-zones/journal-lazy"),
    traced(Mode::Journal, "journal, sequential", "journal-zones/journal-sequential"),
    traced(Mode::Xfs, "XFS, random", "journal-zones/xfs"),
];

/// How fast a trace is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As recorded.
    Recorded,
    /// As fast as the device takes it.
    Fastest,
}

/// A run of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZonesCell {
    /// What is replayed.
    pub traced: Traced,
    /// The journal has zones of its own.
    pub separate: bool,
    /// How fast.
    pub pace: Pace,
    /// Which of [`SEEDS`].
    pub seed: u32,
}

impl ZonesCell {
    /// The run.
    pub fn spec(&self) -> RunSpec {
        let Self { traced, separate, pace, seed } = self;
        let spec = RunSpec::new(traced.scenario)
            .set(format!("host.zoned_block.journal.separate={separate}"));
        match pace {
            Pace::Recorded => spec.set(format!("workload.trace.speed={} %", 97 + seed)),
            Pace::Fastest => spec
                .set("workload.trace.mode=closed")
                .set(format!("workload.trace.queue_depth={}", 26 + 2 * seed)),
        }
    }
}

/// Every cell of figures 7 to 9, and XFS's beside them.
pub fn cells(scale: Scale) -> Vec<ZonesCell> {
    let mut cells = Vec::new();
    for traced in TRACES {
        for pace in [Pace::Recorded, Pace::Fastest] {
            for separate in [false, true] {
                let of = |&seed: &u32| ZonesCell { traced, separate, pace, seed };
                cells.extend(seeds(scale).iter().map(of));
            }
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

/// What reclaim copies.
const COPIES: Quantity = Quantity {
    name: "bytes copied by reclaim",
    of: |record| of(record, |layer| layer.copied_bytes as f64),
    is_exact: false,
};

/// Bandwidth of a trace: both runs transfer the same bytes.
const BANDWIDTH: Quantity =
    Quantity { name: "bandwidth", of: |record| record.host.mib_per_s, is_exact: false };

/// Of the traces of these modes: with journal zones, and without.
fn groups(modes: &[Mode], pace: Pace, scale: Scale) -> Vec<Group> {
    let of_modes = TRACES.into_iter().filter(|traced| modes.contains(&traced.mode));
    let pair = |traced: Traced, seed: u32| {
        let cell = |separate| ZonesCell { traced, separate, pace, seed }.spec();
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
    match id {
        "journal_zones.copies_cut" => Some(
            "where journals are copied, copies fall by half (data=journal, random). With sequential writes 7 chunks are \
             moved and no journal is among them; made to move 20 (host.zoned_block.low_free=60 %, high_free=80 %), reclaim \
             copies 214 MiB of journal, and separating it cuts the copies from 508 to 201 MiB. And the journal's zone is \
             one less for data: in ordered mode, where 1 to 5 % of what is copied is journal, copies rise. With one zone \
             more on the conventional drive (host.conventional.ftl.capacity=1088 MiB) 26 to 33 MiB are copied there, of \
             387 to 2,156 MiB without journal zones (docs/papers/journal-zones.md)",
        ),
        "journal_zones.journal_bandwidth" => Some(
            "with journal zones and without, reclaim copies 0 to 60 MiB of journal in such a replay, and begins as many \
             moves that are given up. Reclaim does cost bandwidth (21 % with random writes and fsync), but not by what it copies: \
             with copy_size of 8 KiB, 512 KiB and 4 MiB it copies 8 to 11 MiB, at 808, 771 and 603 MiB/s. A write waits \
             for the copy that is under way in its chunk (docs/papers/journal-zones.md)",
        ),
        _ => None,
    }
}

/// How the claim `id` is measured, if it is this paper's.
pub fn measure(id: &str, scale: Scale) -> Option<Measure> {
    let ext4 = [Mode::Ordered, Mode::Journal];
    let bandwidth =
        |mode| Measure::Ratios(BANDWIDTH, Fold::Mean, groups(&[mode], Pace::Fastest, scale));
    Some(match id {
        "journal_zones.journal_share_of_copies.max" => {
            Measure::OfBase(SHARE, Fold::Most, groups(&ext4, Pace::Recorded, scale))
        }
        "journal_zones.copies_cut" => {
            Measure::Cuts(COPIES, Fold::Range, groups(&ext4, Pace::Recorded, scale))
        }
        "journal_zones.ordered_bandwidth" => bandwidth(Mode::Ordered),
        "journal_zones.journal_bandwidth" => bandwidth(Mode::Journal),
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
            assert_runs(cells(scale).iter().map(ZonesCell::spec));
        }
    }

    #[test]
    fn the_claims_need_no_run_that_the_figures_have_not() {
        for scale in [Scale::Full, Scale::Quick] {
            let cells: Vec<RunSpec> = cells(scale).iter().map(ZonesCell::spec).collect();
            for claim in crate::claims::ClaimsFile::bundled().unwrap().claims {
                let measure = measure(&claim.id, scale);
                assert!(measure.iter().flat_map(Measure::needs).all(|spec| cells.contains(&spec)));
            }
        }
    }
}
