//! The papers' claims, measured.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use leyden_config::Set;
use leyden_reproduce::{PAPERS, Paper};

use super::parse_set;

pub(crate) const EXAMPLES: &str = "\
Examples:
  leyden reproduce hexa dawid --out papers
  leyden reproduce --only hexa.figure1.fifo_flushes --only hexa.figure1.hexa_flushes
  leyden reproduce hexa --json | jq -r '.claims[] | [.id, .verdict] | @tsv'

Runs: about 170 for hexa and dawid each (hours; with --quick minutes), 40 for zombie-chasing, 90 for selective-plp and \
40 for journal-zones (minutes each).

A claim that differs is a result, not a failure: the exit code is 0 when every run was made.";

/// `leyden reproduce`.
#[derive(Debug, clap::Args)]
pub(crate) struct ReproduceArgs {
    /// The papers; default: all. Or `frontier`, alone: all protections, schedules and dumps against each other
    #[arg(value_name = "PAPER", value_parser = paper_parser())]
    pub(crate) papers: Vec<Paper>,
    /// List the claims
    #[arg(long)]
    pub(crate) list: bool,
    /// Measure this claim only, with the runs that it needs; may be repeated
    #[arg(long, value_name = "ID")]
    pub(crate) only: Vec<String>,
    /// Print the claims as JSON, and nothing else, on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Make the papers' figures too, and keep everything in this folder
    ///
    /// reproduce.html holds the claims and the figures, claims.json the claims, runs/ every finished
    /// run. Without it, only runs for the claims are made, and kept in ~/.cache/leyden/runs. Finished runs
    /// of the same build are reused: after Ctrl-C, repeat the command.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Parallel runs; default: the number of cores
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) jobs: Option<u16>,
    /// Measure Selective-PLP live: RocksDB's own db_bench on modelled drives, beside the same in virtual time
    ///
    /// Takes python3, db_bench and the plugin of docs/rocksdb.md, in `build`, beside this program, or named by
    /// LEYDEN_ROCKSDB. Prints Markdown; with --out, saves the measurements as live.json, and recordings of
    /// the runs beside it. Half an hour, mostly waiting; with --quick each cell is measured once.
    #[arg(long, conflicts_with_all = ["list", "only", "json", "jobs", "seeds", "set"])]
    pub(crate) live: bool,
    /// Take a first look: smaller drives and fewer requests
    #[arg(long)]
    pub(crate) quick: bool,
    /// Measure each claim with this many seeds; prints mean, minimum and maximum
    ///
    /// Figures are of the first seed. Selective-PLP's claims are means over three seeds already: each
    /// measurement takes the next three.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) seeds: u16,
    /// Override a key in every run, for another reading of the papers; may be repeated
    ///
    /// device.buffer.drain_to=0% writes out all of the buffer once it is half full;
    /// device.ftl.map.copies=dirty lets garbage collection make mapping pages dirty.
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_set)]
    pub(crate) set: Vec<Set>,
}

/// The names of the papers; their first words will do.
fn paper_parser() -> impl TypedValueParser<Value = Paper> {
    let name = |paper: Paper| match paper.name.split_once('-') {
        Some((first, _)) => PossibleValue::new(paper.name).alias(first),
        None => PossibleValue::new(paper.name),
    };
    PossibleValuesParser::new(PAPERS.into_iter().chain([Paper::FRONTIER]).map(name))
        .try_map(|name| Paper::by_name(&name).ok_or("no such paper"))
}
