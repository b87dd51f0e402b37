//! The runs of Hexa and Dawid, which share their set-up, and what their claims are measured by.
//!
//! A cell is a workload, a buffer size, a schedule and a protected share of the mapping table. The
//! scenarios are `scenarios/hexa/*.toml`; they say what the papers leave open and what we chose.

use super::measure::{Fold, Group, IOPS, MAP_PROGRAMS, Measure, PROGRAMS, Quantity, WRITEBACKS};
use super::spec::RunSpec;

/// The workloads: the name, and the scenario.
pub const WORKLOADS: [Workload; 3] = [
    Workload { name: "random writes", scenario: "hexa/random-write" },
    Workload { name: "JESD219", scenario: "hexa/jesd219" },
    Workload { name: "TPC-C", scenario: "hexa/tpcc" },
];

/// Sizes of the write buffer (Hexa, section V).
pub const BUFFERS: [&str; 2] = ["64 MiB", "1 GiB"];

/// Protected shares of the mapping table, in percent (Hexa, section V).
pub const SHARES: [u32; 7] = [1, 5, 10, 25, 50, 75, 100];

/// The schedules of the figures, with the letter that the papers use.
pub const SCHEDULES: &[(&str, &str)] =
    &[("fifo", "F"), ("hexa", "H"), ("dawid", "D"), ("harvest", "V")];

/// A workload of section V.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// As figures and notes call it.
    pub name: &'static str,
    /// The bundled scenario.
    pub scenario: &'static str,
}

/// How much is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// The scale of the verdicts.
    #[default]
    Full,
    /// For a first look: drive, area and buffers a quarter of the size (the trace keeps the drive,
    /// whose addresses it needs), and fewer requests.
    Quick,
}

/// A run of the papers' matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The workload.
    pub workload: Workload,
    /// Size of the write buffer, one of [`BUFFERS`].
    pub buffer: &'static str,
    /// The schedule's name.
    pub schedule: &'static str,
    /// The protected part of the mapping table.
    pub table: Table,
}

/// The protected part of the mapping table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Table {
    /// A share of it, percent.
    Share(u32),
    /// A journal of its changes (SpartanSSD).
    Journal,
    /// Nothing.
    Nothing,
}

impl Table {
    /// Its name.
    pub fn name(self) -> String {
        match self {
            Self::Share(share) => format!("{share} %"),
            Self::Journal => "journal".to_owned(),
            Self::Nothing => "none".to_owned(),
        }
    }
}

impl Cell {
    /// The run, with the buffer of the paper's prototype: section IV has a queue that "aggregates and batches" writes, of which none
    /// replaces another, and flushing that is invoked whenever half of it is occupied (decision 18).
    pub fn spec(&self, scale: Scale) -> RunSpec {
        self.on_a_drive(scale)
            .set("device.buffer.coalesce=false")
            .set("device.buffer.drain_to=50 %")
    }

    /// The run, with the buffer of a drive: a write replaces what is buffered of its address.
    pub fn on_a_drive(&self, scale: Scale) -> RunSpec {
        let protection = match self.table {
            Table::Share(100) => "full".to_owned(), // nothing is ever written back
            Table::Share(share) => format!("{{ policy = \"partial\", protected = \"{share} %\" }}"),
            Table::Journal => "journal".to_owned(),
            Table::Nothing => "none".to_owned(),
        };
        let size = match (scale, self.buffer) {
            (Scale::Quick, "64 MiB") => "16 MiB",
            (Scale::Quick, "1 GiB") => "256 MiB",
            (_, size) => size,
        };
        let spec = RunSpec::new(self.workload.scenario)
            .set(format!("device.buffer.size={size}"))
            .set(format!("device.buffer.schedule={}", self.schedule))
            .set(format!("device.ftl.map.protection={protection}"));
        match (scale, self.workload.scenario) {
            (Scale::Full, _) => spec,
            (Scale::Quick, "hexa/tpcc") => {
                spec.set("workload.trace.loops=1").set("run.ramp.requests=60_000")
            }
            // A quarter of the dies, each of the full size: what dies keep back is the same share.
            (Scale::Quick, _) => spec
                .set("device.nand.channels=4")
                .set("device.nand.dies_per_channel=4")
                .set("device.ftl.capacity=3 GiB")
                .set("workload.job.0.span=1 GiB")
                .set("workload.job.0.requests=400_000")
                .set("run.ramp.requests=100_000"),
        }
    }
}

/// Every cell of the figures.
pub fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for workload in WORKLOADS {
        for buffer in BUFFERS {
            for &(schedule, _) in SCHEDULES {
                let tables = SHARES.map(Table::Share);
                cells.extend(tables.map(|table| Cell { workload, buffer, schedule, table }));
            }
            // Schedules order writes by what they cost a table of which a share is protected.
            let others = [Table::Journal, Table::Nothing];
            cells.extend(others.map(|table| Cell { workload, buffer, schedule: "fifo", table }));
        }
    }
    cells
}

/// How the claim `id` is measured, if it is one of these papers'.
pub fn measure(id: &str, scale: Scale) -> Option<Measure> {
    let against_full = |schedule, share, quantity, fold| {
        let base = Side { schedule: "fifo", share: Some(100) };
        ratios(scale, quantity, fold, &[share], Side { schedule, share: None }, base)
    };
    let against_fifo = |schedule, shares: &[u32], quantity, fold| {
        let base = Side { schedule: "fifo", share: None };
        ratios(scale, quantity, fold, shares, Side { schedule, share: None }, base)
    };
    Some(match id {
        "hexa.figure1.fifo_flushes" => Measure::Of(WRITEBACKS, figure1("fifo")),
        "hexa.figure1.hexa_flushes" => Measure::Of(WRITEBACKS, figure1("hexa")),
        "hexa.iops_vs_full.1pct" => against_full("hexa", 1, IOPS, Fold::Mean),
        "hexa.iops_vs_full.10pct" => against_full("hexa", 10, IOPS, Fold::Mean),
        "fifo.iops_vs_full.1pct" => against_full("fifo", 1, IOPS, Fold::Mean),
        "fifo.iops_vs_full.10pct" => against_full("fifo", 10, IOPS, Fold::Mean),
        "hexa.iops_vs_fifo.at_least_50pct" => {
            against_fifo("hexa", &[50, 75, 100], IOPS, Fold::Mean)
        }
        "dawid.map_writes_vs_fifo.10pct" => against_fifo("dawid", &[10], MAP_PROGRAMS, Fold::Least),
        "dawid.iops_vs_fifo.10pct" => against_fifo("dawid", &[10], IOPS, Fold::Most),
        "dawid.flash_writes_vs_full.10pct" => against_full("dawid", 10, PROGRAMS, Fold::Mean),
        "dawid.flash_writes_vs_full.30pct" => against_full("dawid", 30, PROGRAMS, Fold::Mean),
        _ => return None,
    })
}

/// Hexa's worked example, figure 1.
fn figure1(schedule: &str) -> RunSpec {
    RunSpec::new("hexa/figure1").set(format!("device.buffer.schedule={schedule}"))
}

/// A side of a ratio: a schedule, and the share that it has whatever the other's is.
#[derive(Clone, Copy)]
struct Side {
    schedule: &'static str,
    share: Option<u32>,
}

/// Ratios over all workloads, buffers and `shares`.
fn ratios(
    scale: Scale,
    quantity: Quantity,
    fold: Fold,
    shares: &[u32],
    run: Side,
    base: Side,
) -> Measure {
    let groups = WORKLOADS.map(|workload| {
        let mut pairs = Vec::new();
        for buffer in BUFFERS {
            for &share in shares {
                let cell = |side: Side| {
                    let table = Table::Share(side.share.unwrap_or(share));
                    Cell { workload, buffer, schedule: side.schedule, table }.spec(scale)
                };
                pairs.push((cell(run), cell(base)));
            }
        }
        Group { name: workload.name, pairs }
    });
    Measure::Ratios(quantity, fold, groups.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClaimsFile;
    use crate::spec::tests::assert_runs;
    use leyden_workload::trace::{self, OpenOptions};

    #[test]
    fn every_cell_is_a_scenario_and_no_two_are_the_same_run() {
        for scale in [Scale::Full, Scale::Quick] {
            assert_runs(cells().iter().map(|cell| cell.spec(scale)));
        }
    }

    #[test]
    fn quick_runs_keep_the_proportions() {
        let table = Table::Share(100);
        let cell = Cell { workload: WORKLOADS[0], buffer: "1 GiB", schedule: "fifo", table };
        let load = |scale| cell.spec(scale).load().unwrap().scenario;
        let (full, quick) = (load(Scale::Full), load(Scale::Quick));
        let sizes = |scenario: &leyden_config::Scenario| {
            let job = &scenario.workload.job[0];
            [
                u64::from(scenario.device.nand.channels * scenario.device.nand.dies_per_channel),
                scenario.device.buffer.size.get(),
                scenario.device.ftl.capacity.unwrap().get(),
                job.span.unwrap().get(),
            ]
        };
        assert_eq!(sizes(&full), sizes(&quick).map(|size| 4 * size));
    }

    #[test]
    fn figure_1_is_what_the_claims_file_says_of_it() {
        let setup = &ClaimsFile::bundled().unwrap().setup["hexa_figure1"];
        let numbers = |key: &str| -> Vec<u64> {
            let list = setup[key].as_array().unwrap();
            list.iter().map(|number| number.as_integer().unwrap() as u64).collect()
        };
        let number = |key: &str| setup[key].as_integer().unwrap() as u64;
        let scenario = figure1("fifo").load().unwrap().scenario;
        let device = &scenario.device;
        let unit = device.ftl.mapping_unit.get();
        assert_eq!(
            u64::from(device.ftl.map.entries_per_page.unwrap()),
            number("entries_per_mapping_page")
        );
        let entries = number("mapping_pages") * number("entries_per_mapping_page");
        assert_eq!(device.ftl.capacity.unwrap().get() / unit, entries);
        let text = include_str!("../figure1.csv");
        let reader = trace::Reader::new(
            std::path::Path::new("figure1.csv"),
            Box::new(text.as_bytes()),
            &OpenOptions::default(),
        );
        let writes: Vec<u64> = reader
            .unwrap()
            .map(Result::unwrap)
            .filter(|request| request.op == leyden_device::Op::Write)
            .map(|request| request.lba.0 * 512 / unit)
            .collect();
        let first = number("entries_per_mapping_page") * numbers("dirty_at_start")[0];
        let expected: Vec<u64> = [vec![first], numbers("requests")].concat();
        assert_eq!(writes, expected);
    }
}
