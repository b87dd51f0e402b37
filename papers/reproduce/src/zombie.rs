//! The runs of Zombie Chasing, and what its claims are measured by.
//!
//! A cell is a point of figures 5 to 9 or table 3: a configuration of the drive, a page cache, the
//! locality of writes, reads per write, and a policy. The scenarios are `scenarios/zombie/*.toml`; they
//! say what the paper leaves open and what we chose.

use super::hexa::Scale;
use super::measure::{COPIES, ELAPSED, Fold, Group, KNOWN_SHARE, Measure, Quantity, WAF};
use super::spec::RunSpec;

/// A policy of table 1, of figure 9, or our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The paper's name, or one like it.
    pub name: &'static str,
    /// `device.ftl.gc.victim`.
    pub victim: &'static str,
    /// `device.ftl.zombie_block`.
    pub zombie_block: bool,
}

const fn policy(name: &'static str, victim: &'static str, zombie_block: bool) -> Policy {
    Policy { name, victim, zombie_block }
}

/// The policies of table 1.
pub const POLICIES: [Policy; 4] = [GC_GD, ZGC_GD, GC_CB, ZGC_CB];
/// The zombie block alone: victims are chosen as if there were no hints.
pub const BLOCK_ALONE: [Policy; 2] = [GC_GD_Z, GC_CB_Z];
/// Those of table 1, and our own, `z_deadline`.
pub const ALL: [Policy; 5] = [GC_GD, ZGC_GD, GC_CB, ZGC_CB, ZGC_DL];
/// Figure 9's: zombies are looked at when victims are chosen, but have no block of their own.
pub const WITHOUT_BLOCK: [Policy; 2] = [ZGC_GD_NZ, ZGC_CB_NZ];

const GC_GD: Policy = policy("GC-GD", "greedy", false);
const GC_CB: Policy = policy("GC-CB", "cost_benefit", false);
const GC_GD_Z: Policy = policy("GC-GD-Z", "greedy", true);
const GC_CB_Z: Policy = policy("GC-CB-Z", "cost_benefit", true);
const ZGC_GD: Policy = policy("ZGC-GD", "z_greedy", true);
const ZGC_CB: Policy = policy("ZGC-CB", "z_cost_benefit", true);
const ZGC_DL: Policy = policy("ZGC-DL", "z_deadline", true);
const ZGC_GD_NZ: Policy = policy("ZGC-GD-NZ", "z_greedy", false);
const ZGC_CB_NZ: Policy = policy("ZGC-CB-NZ", "z_cost_benefit", false);

/// The drive's configurations (section 5.1): how many banks, and the scenario.
pub const BANKS: [(u32, &str); 2] = [(4, "zombie/figure5"), (16, "zombie/figure5-16bank")];

/// Sizes of the page cache (section 5.2.2).
pub const CACHES: [&str; 2] = ["4 GiB", "2 GiB"];

/// Locality: (100 - h) % of the writes go to h % of the drive.
pub const LOCALITIES: [u32; 5] = [3, 6, 10, 20, 50];

/// Reads per write, in tenths (section 5.2.3).
pub const READS: [u32; 5] = [0, 2, 5, 10, 20];

/// How zombies are announced (section 5.2.5).
pub const CHANNELS: [&str; 3] = ["off", "piggyback", "command"];

/// Writes of 16 KiB in a run of 5.12 GiB.
const WRITES: u32 = 335_544;
/// The localities of the runs that a drive has made before the measured one, in their order: those with a larger h. They are
/// the scenarios' first jobs, of which each makes one request at least.
const PAST: [u32; 4] = [50, 20, 10, 6];
/// The job that is measured.
const MEASURED: &str = "workload.job.4";

/// A run of the micro-benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Banks: 4 or 16.
    pub banks: u32,
    /// Size of the page cache.
    pub cache: &'static str,
    /// h, in percent.
    pub locality: u32,
    /// Reads per write, in tenths.
    pub reads: u32,
    /// How zombies are announced.
    pub channel: &'static str,
    /// The policy.
    pub policy: Policy,
    /// A single run, which begins with an empty page cache, as each of the paper's does. What becomes dirty before the first
    /// write-back waits to be announced; how much of the cache the drive knows depends on that (table 3).
    pub is_cold: bool,
}

impl Cell {
    /// Figure 5's, of which the others are variations.
    pub const fn figure5(locality: u32, policy: Policy) -> Self {
        let (banks, cache, reads, channel) = (4, "4 GiB", 5, "piggyback");
        Self { banks, cache, locality, reads, channel, policy, is_cold: false }
    }

    /// Table 3's: a single run.
    pub const fn table3(reads: u32) -> Self {
        Self { reads, is_cold: true, ..Self::figure5(6, ZGC_GD) }
    }

    /// The run.
    pub fn spec(&self, scale: Scale) -> RunSpec {
        let writes = if scale == Scale::Quick { WRITES / 8 } else { WRITES };
        let mut spec = if self.is_cold {
            self.with_policy("zombie/micro").set("run.repeat=1")
        } else {
            let scenario = if self.banks == 4 { BANKS[0].1 } else { BANKS[1].1 };
            self.with_past(self.with_policy(scenario), writes)
        };
        let job = if self.is_cold { "workload.job.0" } else { MEASURED };
        if self.reads != 5 || self.is_cold || scale == Scale::Quick {
            let reads_ppm = u64::from(self.reads) * 1_000_000 / u64::from(10 + self.reads);
            let percent = reads_ppm as f64 / 10_000.0;
            spec = spec
                .set(format!("{job}.read_share={percent} %"))
                .set(format!("{job}.requests={}", writes + writes * self.reads / 10));
        }
        if scale == Scale::Quick {
            // An eighth of everything: the proportions stay.
            let blocks = 4096 / 8 * 4 / self.banks;
            let cache = if self.cache == "4 GiB" { "512 MiB" } else { "256 MiB" };
            spec.set(format!("device.nand.blocks_per_plane={blocks}"))
                .set(format!("host.page_cache.size={cache}"))
                .set(format!("host.hints.channel={}", self.channel))
        } else {
            if self.cache != "4 GiB" {
                spec = spec.set(format!("host.page_cache.size={}", self.cache));
            }
            if self.channel != "piggyback" {
                spec = spec.set(format!("host.hints.channel={}", self.channel));
            }
            spec
        }
    }

    fn with_policy(&self, scenario: &'static str) -> RunSpec {
        RunSpec::new(scenario)
            .set(format!("device.ftl.gc.victim={}", self.policy.victim))
            .set(format!("device.ftl.zombie_block={}", self.policy.zombie_block))
    }

    /// With this locality, behind the runs that come before it. What the scenario has anyway is not set.
    fn with_past(&self, mut spec: RunSpec, writes: u32) -> RunSpec {
        if self.locality != 6 {
            let (hot, share) = (self.locality, 100 - self.locality);
            spec = spec
                .set(format!("{MEASURED}.distribution.hot_cold.hot_share_of_space={hot} %"))
                .set(format!("{MEASURED}.distribution.hot_cold.hot_share_of_accesses={share} %"));
        }
        for (number, locality) in PAST.into_iter().enumerate() {
            let requests = if locality > self.locality { writes + writes / 2 } else { 1 };
            let as_it_is = if locality > 6 { WRITES + WRITES / 2 } else { 1 };
            if requests != as_it_is {
                spec = spec.set(format!("workload.job.{number}.requests={requests}"));
            }
        }
        spec
    }
}

/// PostgreSQL, traced with what its write-ahead log announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Database {
    /// The work.
    pub name: &'static str,
    /// The scenario.
    pub scenario: &'static str,
    /// Values of `device.ftl.log_stream`; a log on another disk needs no blocks of its own.
    pub log_streams: &'static [&'static str],
}

/// The databases.
pub const DATABASES: [Database; 4] = [
    Database {
        name: "pgbench, checksums and full-page writes",
        scenario: "zombie/pgbench-a",
        log_streams: &["off", "recognised"],
    },
    Database {
        name: "pgbench, without them",
        scenario: "zombie/pgbench-d",
        log_streams: &["off", "recognised"],
    },
    Database {
        name: "pgbench, a larger database, its log elsewhere",
        scenario: "zombie/pgbench-large",
        log_streams: &["off"],
    },
    Database {
        name: "TPC-C, 5 warehouses",
        scenario: "zombie/tpcc",
        log_streams: &["off", "recognised"],
    },
];

/// A run of a database's trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseCell {
    /// The name of one of [`DATABASES`].
    pub database: &'static str,
    /// The policy.
    pub policy: Policy,
    /// `device.ftl.log_stream`.
    pub log: &'static str,
}

impl DatabaseCell {
    /// The run, always at full length: a trace is what it is.
    ///
    /// # Panics
    /// If there is no such database.
    pub fn spec(&self) -> RunSpec {
        let found = DATABASES.iter().find(|database| database.name == self.database);
        RunSpec::new(found.expect("one of the databases").scenario)
            .set(format!("device.ftl.gc.victim={}", self.policy.victim))
            .set(format!("device.ftl.zombie_block={}", self.policy.zombie_block))
            .set(format!("device.ftl.log_stream={}", self.log))
    }
}

/// Every run of a database's trace.
pub fn database_cells() -> Vec<DatabaseCell> {
    let mut cells = Vec::new();
    for Database { name: database, log_streams, .. } in DATABASES {
        for &log in log_streams {
            let policies = ALL.into_iter().chain(BLOCK_ALONE);
            cells.extend(policies.map(|policy| DatabaseCell { database, policy, log }));
        }
    }
    cells
}

/// Every cell of the figures and of table 3.
pub fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut add = |cell: Cell| {
        if !cells.contains(&cell) {
            cells.push(cell);
        }
    };
    for locality in LOCALITIES {
        for policy in ALL {
            let figure5 = Cell::figure5(locality, policy);
            add(figure5);
            add(Cell { cache: "2 GiB", ..figure5 }); // figure 6
            add(Cell { banks: 16, ..figure5 }); // figure 7
        }
        for policy in WITHOUT_BLOCK.into_iter().chain(BLOCK_ALONE) {
            add(Cell::figure5(locality, policy)); // figure 9, and what it leaves out
        }
    }
    for reads in READS {
        add(Cell::table3(reads));
    }
    for policy in POLICIES {
        for reads in READS {
            add(Cell { reads, ..Cell::figure5(6, policy) }); // figure 8
        }
        for channel in CHANNELS {
            add(Cell { channel, ..Cell::figure5(6, policy) }); // section 5.2.5
        }
    }
    cells
}

/// How the claim `id` is measured, if it is this paper's.
pub fn measure(id: &str, scale: Scale) -> Option<Measure> {
    let cut = |quantity: Quantity, cells: &[(Cell, Cell)]| {
        let specs = |&(run, base): &(Cell, Cell)| (run.spec(scale), base.spec(scale));
        let pairs = cells.iter().map(specs).collect();
        Measure::Cuts(quantity, Fold::Mean, vec![Group { name: "micro-benchmark", pairs }])
    };
    let at = Cell::figure5;
    let smaller = |policy| Cell { cache: "2 GiB", ..at(6, policy) };
    let known = |reads| Measure::Of(KNOWN_SHARE, Cell::table3(reads).spec(scale));
    Some(match id {
        "zombie.figure2.greedy_copies" => Measure::Of(COPIES, figure2("greedy")),
        "zombie.figure3.z_greedy_copies" => Measure::Of(COPIES, figure2("z_greedy")),
        "zombie.waf_cut.z_greedy.h6.4gib" => cut(WAF, &[(at(6, ZGC_GD), at(6, GC_GD))]),
        "zombie.waf_cut.z_cost_benefit.h6.4gib" => cut(WAF, &[(at(6, ZGC_CB), at(6, GC_CB))]),
        "zombie.elapsed_cut.z_greedy.h6.4gib" => cut(ELAPSED, &[(at(6, ZGC_GD), at(6, GC_GD))]),
        "zombie.waf_cut.z_greedy.h6.2gib" => cut(WAF, &[(smaller(ZGC_GD), smaller(GC_GD))]),
        "zombie.waf_cut.h50" => {
            cut(WAF, &[(at(50, ZGC_GD), at(50, GC_GD)), (at(50, ZGC_CB), at(50, GC_CB))])
        }
        "zombie.known_share.reads_per_write_0" => known(0),
        "zombie.known_share.reads_per_write_half" => known(5),
        "zombie.zombie_block_share.h6" => cut(WAF, &[(at(6, ZGC_GD), at(6, ZGC_GD_NZ))]),
        "zombie.zombie_block_share.h20" => cut(WAF, &[(at(20, ZGC_GD), at(20, ZGC_GD_NZ))]),
        _ => return None,
    })
}

/// The worked example of figures 2 and 3.
fn figure2(victim: &str) -> RunSpec {
    RunSpec::new("zombie/figure2").set(format!("device.ftl.gc.victim={victim}"))
}

/// Why our figure of the claim `id` is another, with what was run to find out.
pub fn reason(id: &str) -> Option<&'static str> {
    (id == "zombie.waf_cut.z_cost_benefit.h6.4gib").then_some(
        "blocks age in the time between two runs, which the paper does not tell: of 600 to 3,600 s this claim holds with 1,600 and \
         more, and with ages that count writes, not with the 1,000 of zombie/figure5 (docs/notebooks/2026-11-zombie-chasing.md)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::tests::assert_runs;
    use leyden_workload::synth::Distribution;

    #[test]
    fn every_cell_is_a_scenario_and_no_two_are_the_same_run() {
        for scale in [Scale::Full, Scale::Quick] {
            assert_runs(cells().iter().map(|cell| cell.spec(scale)));
        }
    }

    #[test]
    fn every_databases_run_is_a_scenario_and_no_two_are_the_same() {
        assert_runs(database_cells().iter().map(DatabaseCell::spec));
    }

    #[test]
    fn reads_are_the_share_of_requests_that_the_ratio_says() {
        let cell = Cell { reads: 20, ..Cell::figure5(6, ZGC_GD) };
        let jobs = &cell.spec(Scale::Full).load().unwrap().scenario.workload.job;
        assert_eq!(jobs[4].requests, Some(3 * u64::from(WRITES)));
        assert_eq!(jobs[4].read_share.as_ppm(), 666_666);
        let default = &Cell::figure5(6, GC_GD).spec(Scale::Full).load().unwrap().scenario;
        assert_eq!(default.workload.job[4].requests, Some(u64::from(WRITES + WRITES / 2)));
        assert_eq!(default.device.ftl.gc.victim.name(), "greedy");
    }

    #[test]
    fn a_drive_has_made_the_runs_with_a_larger_h() {
        for (locality, past) in [(50, 0), (20, 1), (10, 2), (6, 3), (3, 4)] {
            let spec = Cell::figure5(locality, GC_CB).spec(Scale::Full);
            let jobs = &spec.load().unwrap().scenario.workload.job;
            let requests: Vec<_> = jobs.iter().map(|job| job.requests.unwrap()).collect();
            let whole = u64::from(WRITES + WRITES / 2);
            let expected: Vec<_> = (0..4).map(|n| if n < past { whole } else { 1 }).collect();
            assert_eq!((&requests[..4], requests[4]), (&expected[..], whole), "h = {locality}");
            let localities = [&PAST[..], &[locality]].concat().into_iter().map(u64::from);
            for (job, locality) in jobs.iter().zip(localities) {
                let Distribution::HotCold(law) = &job.distribution else { panic!("{job:?}") };
                assert_eq!(law.hot_share_of_space.as_ppm(), locality * 10_000);
                assert_eq!(law.hot_share_of_accesses.as_ppm(), (100 - locality) * 10_000);
            }
        }
    }
}
