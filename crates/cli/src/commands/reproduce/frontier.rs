//! `leyden reproduce frontier`: every protection, schedule and dump held against all others.

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::anyhow;
use leyden_report::format::{count, latency, number};
use leyden_reproduce::frontier::{self, DUMPS, Design, Figures, Point, TABLES};
use leyden_reproduce::hexa::{SCHEDULES, WORKLOADS, Workload};
use leyden_reproduce::{Reproduction, render_reproduction};
use leyden_reproduce::{RunSpec, Scale};
use serde::Serialize;

use super::super::{Cancel, print_json, warn};
use super::{command_of, make, outcome};
use crate::args::ReproduceArgs;
use crate::failure::Failure;
use crate::output::atomic;
use crate::output::table::Table;
use crate::version::VERSION;

/// The designs under each workload.
type Frontiers = Vec<(Workload, Vec<Point>)>;

pub(super) fn main(args: &ReproduceArgs, cancel: &Cancel) -> Result<(), Failure> {
    if args.papers.len() > 1 || !args.only.is_empty() {
        let problem = "`frontier` makes no claims, and is reproduced alone\n  help: leyden reproduce frontier";
        return Err(Failure::usage(anyhow!(problem)));
    }
    if args.list {
        let names: String = frontier::designs().iter().map(|design| design.name() + "\n").collect();
        return anstream::stdout().lock().write_all(names.as_bytes()).map_err(Failure::io);
    }
    let scale = if args.quick { Scale::Quick } else { Scale::Full };
    let specs: BTreeSet<RunSpec> = frontier::needs(scale, args.seeds).collect();
    let results = make(args, &specs, cancel)?;
    results.warnings.iter().for_each(|warning| warn(warning));
    let of = |workload| (workload, frontier::points(workload, &results, scale, args.seeds));
    let frontiers: Frontiers = WORKLOADS.into_iter().map(of).collect();
    if let Some(folder) = &args.out {
        let mut json = serde_json::to_vec_pretty(&rows(&frontiers)).map_err(Failure::failed)?;
        json.push(b'\n');
        atomic::write(&folder.join("frontier.json"), &json)?;
        let page = render_reproduction(&Reproduction {
            version: VERSION,
            title: "The frontier of designs",
            command: &command_of(args),
            quick: args.quick,
            claims: &[],
            cells: &[],
            workloads: &[],
            zombies: &[],
            databases: &[],
            stores: &[],
            frontiers: &frontiers,
        });
        atomic::write(&folder.join("frontier.html"), page.map_err(Failure::failed)?.as_bytes())?;
    }
    if args.json {
        print_json(&rows(&frontiers))?;
    } else {
        show(&frontiers, args, &mut anstream::stdout().lock())?;
    }
    outcome(&results, &specs)
}

/// A design under a workload, as JSON has it.
#[derive(Serialize)]
struct Row {
    workload: &'static str,
    protected: String,
    schedule: &'static str,
    dump: &'static str,
    #[serde(flatten)]
    figures: Figures,
    /// `null` on the frontier.
    dominated_by: Option<String>,
}

fn rows(frontiers: &Frontiers) -> Vec<Row> {
    let row = |workload: &Workload, point: &Point| Row {
        workload: workload.name,
        protected: point.design.table.name(),
        schedule: point.design.schedule,
        dump: point.design.dump,
        figures: point.figures,
        dominated_by: point.dominated_by.map(|design| design.name()),
    };
    frontiers
        .iter()
        .flat_map(|(workload, points)| points.iter().map(|p| row(workload, p)))
        .collect()
}

fn on_frontier(points: &[Point]) -> impl Iterator<Item = &Point> {
    points.iter().filter(|point| point.dominated_by.is_none())
}

/// The designs that none dominates, and how many of each choice are among them.
fn show(frontiers: &Frontiers, args: &ReproduceArgs, out: &mut dyn Write) -> std::io::Result<()> {
    let mut table = Table::default();
    for (workload, points) in frontiers {
        table.head([
            workload.name,
            "IOPS",
            "writes, 99 %",
            "WAF",
            "recovery, ms",
            "capacitance, uF",
        ]);
        for Point { design, figures, .. } in on_frontier(points) {
            table.row([
                design.name(),
                count(figures.iops),
                latency(figures.write_p99_us),
                number(figures.waf),
                number(figures.recovery_ms),
                count(figures.capacitance_uf),
            ]);
        }
    }
    table.write(out)?;
    writeln!(out)?;
    choices(frontiers).write(out)?;
    let nowhere = frontier::designs().into_iter().filter(|design| {
        let dominated = |(_, points): &(Workload, Vec<Point>)| {
            !on_frontier(points).any(|point| point.design == *design)
        };
        frontiers.iter().all(dominated)
    });
    let (nowhere, all) = (nowhere.count(), frontier::designs().len());
    writeln!(out, "\n{nowhere} of {all} designs are dominated under every workload")?;
    if args.seeds > 1 {
        writeln!(out, "figures are means over {} seeds", args.seeds)?;
    }
    args.set.iter().try_for_each(|set| writeln!(out, "in every run: {set}"))
}

/// For every choice, how many of the designs that make it are on the frontier.
fn choices(frontiers: &Frontiers) -> Table {
    let mut table = Table::default();
    table.head(
        std::iter::once("designs on the frontier").chain(frontiers.iter().map(|(w, _)| w.name)),
    );
    let mut row = |name: String, makes: &dyn Fn(&Design) -> bool| {
        let of = |(_, points): &(Workload, Vec<Point>)| {
            let all = points.iter().filter(|point| makes(&point.design)).count();
            let on = on_frontier(points).filter(|point| makes(&point.design)).count();
            format!("{on} of {all}")
        };
        table.row(std::iter::once(name).chain(frontiers.iter().map(of)));
    };
    for protected in TABLES {
        row(format!("table: {}", protected.name()), &|design| design.table == protected);
    }
    for &(schedule, _) in SCHEDULES {
        row(format!("schedule: {schedule}"), &|design| design.schedule == schedule);
    }
    for dump in DUMPS {
        row(format!("dump: {dump}"), &|design| design.dump == dump);
    }
    table
}
