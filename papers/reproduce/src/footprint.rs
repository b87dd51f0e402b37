//! The writes of a workload, apart from any drive: the left half of Dawid's tables 1 and 2.

use leyden_device::{Op, SECTOR_BYTES};
use leyden_workload::Request;

use super::hexa::{BUFFERS, Cell, Scale, Table, WORKLOADS};
use super::spec::Results;
use leyden_config::Scenario;
use leyden_run::RunError;
use leyden_run::driver::DriveError;
use leyden_run::{build_jobs, in_device};

/// The requests of a workload, reads left out of the footprints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkloadFacts {
    /// Requests.
    pub requests: u64,
    /// Bytes at different addresses that it writes.
    pub data_bytes: u64,
    /// Bytes of the mapping pages that these addresses are in.
    pub map_bytes: u64,
}

/// A row of Dawid's tables: a workload, and what it made the drive write in order of arrival with 1 % of
/// the mapping table protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadRow {
    /// The workload.
    pub name: &'static str,
    /// Recorded, not generated.
    pub traced: bool,
    /// The facts of the whole workload.
    pub facts: WorkloadFacts,
    /// Requests measured.
    pub requests: u64,
    /// Bytes that the host wrote in them.
    pub data_bytes: u64,
    /// Bytes of the mapping pages written back meanwhile.
    pub map_bytes: u64,
}

/// Dawid's tables, of the workloads whose run is there.
pub fn workload_rows(results: &Results, scale: Scale) -> Result<Vec<WorkloadRow>, RunError> {
    let mut rows = Vec::new();
    for workload in WORKLOADS {
        let cell = Cell { workload, buffer: BUFFERS[0], schedule: "fifo", table: Table::Share(1) };
        let spec = cell.spec(scale);
        let (Ok(record), Ok(loaded)) = (results.get(&spec), spec.load()) else {
            continue;
        };
        let scenario = &loaded.scenario;
        rows.push(WorkloadRow {
            name: workload.name,
            traced: scenario.workload.trace.is_some(),
            facts: workload_facts(scenario)?,
            requests: record.host.reads + record.host.writes,
            data_bytes: record.host.bytes_written,
            map_bytes: record.flash.programs.map * scenario.device.nand.page_size.get(),
        });
    }
    Ok(rows)
}

/// Goes through the scenario's workload once (a trace: one loop) without a drive.
pub fn workload_facts(scenario: &Scenario) -> Result<WorkloadFacts, RunError> {
    let device = &scenario.device;
    let unit_bytes = device.ftl.mapping_unit.get();
    let geometry = device.geometry().map_err(in_device)?;
    let units = u64::from(geometry.units()); // what the host can address is less
    let mut seen = Seen::new(units, unit_bytes / SECTOR_BYTES);
    if let Some(trace) = &scenario.workload.trace {
        let requests = trace.open().map_err(|error| DriveError::Open(Box::new(error)))?;
        for (number, request) in (1..).zip(requests) {
            let request =
                request.map_err(|error| DriveError::Trace { number, source: Box::new(error) })?;
            seen.add(&request);
        }
    } else {
        // A job without a span of its own would go to the drive's end; these have one.
        let capacity = units * unit_bytes / SECTOR_BYTES;
        let mut jobs = build_jobs(&scenario.workload, scenario.seed, capacity)?;
        for (job, config) in jobs.iter_mut().zip(&scenario.workload.job) {
            let threads = u64::from(config.threads);
            for request in 0..config.requests.unwrap_or(0) {
                seen.add(&job.next_request((request % threads) as u32));
            }
        }
    }
    let entries = device.ftl.map.entries_per_page(&geometry);
    Ok(seen.facts(u64::from(entries), u64::from(geometry.page_bytes()), unit_bytes))
}

/// Which units have been written.
struct Seen {
    requests: u64,
    unit_sectors: u64,
    written: Vec<bool>,
}

impl Seen {
    fn new(units: u64, unit_sectors: u64) -> Self {
        Self { requests: 0, unit_sectors, written: vec![false; units as usize] }
    }

    fn add(&mut self, request: &Request) {
        self.requests += 1;
        if request.op == Op::Write && request.sectors > 0 {
            let first = request.lba.0 / self.unit_sectors;
            let last = (request.lba.0 + u64::from(request.sectors) - 1) / self.unit_sectors;
            let end = (last as usize + 1).min(self.written.len());
            self.written[(first as usize).min(end)..end].fill(true);
        }
    }

    fn facts(&self, entries_per_page: u64, page_bytes: u64, unit_bytes: u64) -> WorkloadFacts {
        let units = self.written.iter().filter(|written| **written).count() as u64;
        let pages = self.written.chunks(entries_per_page as usize);
        let touched = pages.filter(|page| page.contains(&true)).count() as u64;
        WorkloadFacts {
            requests: self.requests,
            data_bytes: units * unit_bytes,
            map_bytes: touched * page_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunSpec;

    #[test]
    fn footprints_are_of_different_addresses() {
        let scenario = RunSpec::new("hexa/random-write")
            .set("workload.job.0.span=32 KiB")
            .set("workload.job.0.offset=8 MiB")
            .set("workload.job.0.requests=1000")
            .load()
            .unwrap()
            .scenario;
        let facts = workload_facts(&scenario).unwrap();
        // 8 MiB are the addresses of one mapping page: 2,048 entries of 4 KiB.
        let expected = WorkloadFacts { requests: 1000, data_bytes: 32 << 10, map_bytes: 8 << 10 };
        assert_eq!(facts, expected);
    }

    #[test]
    fn the_traces_facts_are_those_of_its_provenance() {
        let scenario = RunSpec::new("hexa/tpcc").load().unwrap().scenario;
        let facts = workload_facts(&scenario).unwrap();
        assert_eq!(facts.requests, 299_766, "scenarios/traces/PROVENANCE.md");
        assert!(facts.data_bytes < 4037 << 20, "less than is written");
        assert!(facts.map_bytes < 8192 << 10);
    }
}
