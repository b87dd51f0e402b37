//! The runs of Selective-PLP, and what its claims are measured by.
//!
//! A cell is a benchmark, the sizes of the buffer and of its protected region, what is protected, how a dump
//! is laid out, and a seed. The scenarios are `scenarios/selective-plp/*.toml`; they say what the paper leaves
//! open and what we chose.

use super::hexa::Scale;
use super::measure::{Fold, Group, Measure, Quantity};
use super::spec::{RunSpec, SEEDS};

/// Pairs that the store puts per simulated second.
const PUTS: Quantity = Quantity {
    name: "puts per second",
    of: |record| {
        let store = record.zones.as_ref().and_then(|zones| zones.store);
        store.map_or(f64::NAN, |store| store.puts_per_s)
    },
    is_exact: false,
};

/// The capacitance that the drive needs at worst.
const CAPACITANCE: Quantity = Quantity {
    name: "capacitance at worst",
    of: |record| record.power.as_ref().map_or(f64::NAN, |power| power.worst.capacitance_uf),
    is_exact: false,
};

/// How long a dump takes, over moments drawn from the seed.
const DUMP_TIME: Quantity = Quantity {
    name: "time of a dump",
    of: |record| record.power.as_ref().map_or(f64::NAN, |power| power.dump_ms.mean),
    is_exact: false,
};

/// Sizes of the whole buffer, in MiB (table 2, figures 10 and 11).
pub const BUFFERS: [(u32, &str); 4] =
    [(64, "64 MiB"), (128, "128 MiB"), (256, "256 MiB"), (512, "512 MiB")];

/// Sizes of the protected region in figure 12, in MiB; beside it there are 32 MiB.
pub const REGIONS: [(u32, &str); 5] =
    [(8, "8 MiB"), (16, "16 MiB"), (32, "32 MiB"), (64, "64 MiB"), (128, "128 MiB")];

/// The same in figure 13.
pub const DUMPED: [(u32, &str); 4] =
    [(32, "32 MiB"), (64, "64 MiB"), (128, "128 MiB"), (256, "256 MiB")];

/// A run of the paper's matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreCell {
    /// The bundled scenario.
    pub scenario: &'static str,
    /// The protected region: `none`, `full` or `selective`.
    pub region: &'static str,
    /// The whole buffer, MiB.
    pub buffer: u32,
    /// Its protected region, MiB; with `selective` only.
    pub protected: u32,
    /// How a dump is laid out.
    pub dump: &'static str,
    /// The change against the scenario: one of [`CHANGES`].
    pub change: Option<&'static str>,
    /// The seed.
    pub seed: u64,
}

/// Runs that tell what the ratios hang on: each changes one key of a scenario whose store is generated. The measured time of a put is
/// the processor's of this project's machine; others are slower or faster.
pub const CHANGES: [(&str, &str); 11] = [
    ("as measured: 3.2 us a put", "workload.lsm.put_time=3.2 us"),
    ("1.6 us a put", "workload.lsm.put_time=1.6 us"),
    ("6.4 us a put", "workload.lsm.put_time=6.4 us"),
    ("12.8 us a put", "workload.lsm.put_time=12.8 us"),
    ("25.6 us a put", "workload.lsm.put_time=25.6 us"),
    ("51.2 us a put", "workload.lsm.put_time=51.2 us"),
    ("102.4 us a put", "workload.lsm.put_time=102.4 us"),
    ("a zone on two chips", "device.zoned.dies_per_zone=2"),
    ("a zone on four chips", "device.zoned.dies_per_zone=4"),
    ("writes enter during a FLUSH", "device.buffer.zones.during_flush=admit"),
    ("the published order of syncs", "workload.lsm.order=published"),
];

/// The protected regions, in the order of the figures.
pub const REGIONS_COMPARED: [&str; 3] = ["none", "selective", "full"];

/// The buffer of the runs with [`CHANGES`], in MiB.
const CHANGED_BUFFER: u32 = 128;

impl StoreCell {
    /// Figures 10 and 11: the region has 32 MiB.
    fn of_buffer(scenario: &'static str, region: &'static str, buffer: u32, seed: u64) -> Self {
        Self { scenario, region, buffer, protected: 32, dump: "balanced", change: None, seed }
    }

    /// Figures 12 and 13: 32 MiB beside the region.
    fn of_region(protected: u32, dump: &'static str, seed: u64) -> Self {
        let buffer = protected + 32;
        let (scenario, region) = (FILLSEQ, "selective");
        Self { scenario, region, buffer, protected, dump, change: None, seed }
    }

    /// The run.
    pub fn spec(&self, scale: Scale) -> RunSpec {
        let Self { region, buffer, protected, dump, seed, .. } = self;
        let mut spec = RunSpec::new(self.scenario)
            .set(format!("device.buffer.region={region}"))
            .set(format!("device.buffer.size={buffer} MiB"));
        if *region == "selective" {
            spec = spec.set(format!("device.buffer.protected_size={protected} MiB"));
        }
        if *dump != "balanced" {
            spec = spec.set(format!("device.power.dump={dump}"));
        }
        if scale == Scale::Quick {
            let workload = if self.scenario == GENERATED { "lsm" } else { "recorded" };
            spec = spec.set(format!("workload.{workload}.puts=200_000"));
        }
        if let Some(change) = self.change {
            spec = spec.set(change);
        }
        spec.set(format!("seed={seed}"))
    }
}

/// RocksDB's own requests.
const FILLSEQ: &str = "selective-plp/fillseq-recorded";
const OVERWRITE: &str = "selective-plp/overwrite-recorded";
/// Requests of a store of our own, whose time and order can be changed.
const GENERATED: &str = "selective-plp/fillseq";

/// Every cell of figures 10 to 13.
pub fn cells() -> Vec<StoreCell> {
    let mut cells = Vec::new();
    for seed in SEEDS {
        for scenario in [FILLSEQ, OVERWRITE] {
            for (buffer, _) in BUFFERS {
                for region in ["none", "selective", "full"] {
                    cells.push(StoreCell::of_buffer(scenario, region, buffer, seed));
                }
            }
        }
        let of_figure_12 = REGIONS.iter().map(|&(region, _)| (region, "balanced"));
        let of_figure_13 = DUMPED.iter().map(|&(region, _)| (region, "in_place"));
        let dumped = DUMPED.iter().map(|&(region, _)| (region, "balanced"));
        for (region, dump) in of_figure_12.chain(of_figure_13).chain(dumped) {
            let cell = StoreCell::of_region(region, dump, seed);
            if !cells.contains(&cell) {
                cells.push(cell);
            }
        }
    }
    for (_, change) in CHANGES {
        for region in REGIONS_COMPARED {
            let cell = StoreCell::of_buffer(GENERATED, region, CHANGED_BUFFER, SEEDS[0]);
            cells.push(StoreCell { change: Some(change), ..cell });
        }
    }
    cells
}

impl StoreCell {
    /// In figure 10.
    pub fn is_of_fillseq(&self) -> bool {
        self.is_of_buffers(FILLSEQ)
    }

    /// In figure 11.
    pub fn is_of_overwrite(&self) -> bool {
        self.is_of_buffers(OVERWRITE)
    }

    fn is_of_buffers(&self, scenario: &str) -> bool {
        let is_small_region = self.region != "selective" || self.protected == 32;
        let is_size = BUFFERS.iter().any(|&(size, _)| size == self.buffer);
        self.scenario == scenario
            && self.change.is_none()
            && self.dump == "balanced"
            && is_small_region
            && is_size
    }

    /// In figure 12.
    pub fn is_of_regions(&self) -> bool {
        self.is_beside_32_mib() && self.dump == "balanced" && self.protected <= 128
    }

    /// In figure 13.
    pub fn is_of_dumps(&self) -> bool {
        self.is_beside_32_mib() && self.protected >= 32
    }

    fn is_beside_32_mib(&self) -> bool {
        self.scenario == FILLSEQ
            && self.region == "selective"
            && self.change.is_none()
            && self.buffer == self.protected + 32
    }
}

/// Why a claim does not hold: what the runs with [`CHANGES`] tell.
pub fn reason(id: &str) -> Option<&'static str> {
    (id == "selective_plp.fillseq_vs_full").then_some(
        "a FLUSH waits until a table of 8 MiB is on the one chip of its zone, at a page in 140 us; with all of the \
         buffer protected nothing waits, and the host's processor is the bound. With a zone on more chips, or a \
         slower host, the two come closer; in the published order, which sends no FLUSH, they are equal (docs/papers/selective-plp.md)",
    )
}

/// How the claim `id` is measured, if it is this paper's.
pub fn measure(id: &str, scale: Scale) -> Option<Measure> {
    let by_buffer = |scenario, base: &'static str| {
        groups(&BUFFERS, |buffer, seed| {
            let cell = |region| StoreCell::of_buffer(scenario, region, buffer, seed).spec(scale);
            (cell("selective"), cell(base))
        })
    };
    Some(match id {
        "selective_plp.fillseq_vs_none" => {
            Measure::Ratios(PUTS, Fold::Mean, by_buffer(FILLSEQ, "none"))
        }
        "selective_plp.fillseq_vs_full" => {
            Measure::Ratios(PUTS, Fold::Mean, by_buffer(FILLSEQ, "full"))
        }
        "selective_plp.overwrite_vs_none" => {
            Measure::Ratios(PUTS, Fold::Most, by_buffer(OVERWRITE, "none"))
        }
        "selective_plp.capacitance_vs_full" => {
            Measure::Ratios(CAPACITANCE, Fold::Range, by_buffer(FILLSEQ, "full"))
        }
        "selective_plp.saturates_at_32mib" => {
            let of = |region, seed| StoreCell::of_region(region, "balanced", seed).spec(scale);
            let pairs = SEEDS.map(|seed| (of(128, seed), of(32, seed))).into();
            Measure::Ratios(PUTS, Fold::Mean, vec![Group { name: "128 over 32 MiB", pairs }])
        }
        "selective_plp.balanced_flush_latency_cut" => {
            let cuts = groups(&DUMPED, |region, seed| {
                let of = |dump| StoreCell::of_region(region, dump, seed).spec(scale);
                (of("balanced"), of("in_place"))
            });
            Measure::Cuts(DUMP_TIME, Fold::Mean, cuts)
        }
        _ => return None,
    })
}

/// A group for each size, of a pair for each seed.
fn groups(
    sizes: &[(u32, &'static str)],
    pair: impl Fn(u32, u64) -> (RunSpec, RunSpec),
) -> Vec<Group> {
    let group = |&(size, name): &(u32, &'static str)| Group {
        name,
        pairs: SEEDS.iter().map(|&seed| pair(size, seed)).collect(),
    };
    sizes.iter().map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::tests::assert_runs;

    #[test]
    fn every_cell_is_a_scenario_and_no_two_are_the_same_run() {
        for scale in [Scale::Full, Scale::Quick] {
            assert_runs(cells().iter().map(|cell| cell.spec(scale)));
        }
    }

    #[test]
    fn the_claims_need_no_run_that_the_figures_have_not() {
        let cells: Vec<RunSpec> = cells().iter().map(|cell| cell.spec(Scale::Full)).collect();
        for claim in crate::ClaimsFile::bundled().unwrap().claims {
            let measure = measure(&claim.id, Scale::Full);
            assert!(measure.iter().flat_map(Measure::needs).all(|spec| cells.contains(&spec)));
        }
    }
}
