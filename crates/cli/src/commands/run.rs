//! `leyden run`.

use std::io::Write;

use leyden_config::{Loaded, Saved, bundled, run_command};
use leyden_record::{Latency, Power, Recovery, RunRecord, Spread, Steadiness};
use leyden_run::{Outcome, check_same_inputs};

use leyden_report::format::{
    bytes, capacitance, count, latency, number, percent, recorded, seconds,
};
use leyden_report::{Metric, PERCENTILES, metrics_of};

use super::{
    Cancel, cache, check_outputs, compare, explain, keep, load, overrides, run_one, verdict, warn,
};
use crate::args::RunArgs;
use crate::failure::Failure;
use crate::output::progress::note;
use crate::output::table::Table;
use crate::version;

/// Rows for power cuts, at most.
const CUTS_SHOWN: usize = 20;

pub(crate) fn main(args: &RunArgs, cancel: &Cancel) -> Result<(), Failure> {
    let Some(file) = args.file.as_deref().filter(|_| !args.list) else {
        return list();
    };
    let mut sets = overrides(&args.common.set, args.common.seed)?;
    let loaded = load(file, &mut sets, args.allow_underprovisioned)?;
    if args.common.seeds > 1 {
        return compare::over_seeds(file, sets, &args.common, cancel);
    }
    check_outputs(&args.common, &loaded)?;
    let saved = loaded.saved();
    if let Some(saved) = saved {
        check_same_inputs(&loaded.scenario.workload, &saved.inputs)
            .map_err(|error| explain(&loaded, error))?;
    }
    let drives = cache::drives(args.common.no_cache);
    let outcome = run_one(&loaded, &run_command(file, &sets), drives.as_ref(), cancel)?;
    let Outcome { record, interrupted, .. } = outcome;
    keep(&args.common, std::slice::from_ref(&record))?;
    if !args.common.json {
        show(&record, &mut anstream::stdout().lock())?;
    }
    record.warnings.iter().for_each(|warning| warn(warning));
    if interrupted {
        return Err(Failure::interrupted("the results are of the part that ran"));
    }
    if let Some(saved) = saved.filter(|_| sets.is_empty()) {
        compare_digests(saved, &record)?;
    }
    verdict(std::slice::from_ref(&record))
}

/// Whether a run that was made again has come out as it did.
fn compare_digests(saved: &Saved, record: &RunRecord) -> Result<(), Failure> {
    if saved.digest() == record.sim.digest {
        note("the digest is the same as in the record: everything happened as it did then");
        return Ok(());
    }
    let version = |version: &str, commit: &str| match commit {
        "" => version.to_owned(),
        commit => format!("{version} ({commit})"),
    };
    let then = version(&saved.leyden_version, &saved.commit);
    let now = version(&record.leyden_version, &record.commit);
    let differ = format!("the digest is {}, and was {}", record.sim.digest, saved.digest());
    if then == now && !saved.commit.is_empty() && !saved.commit.ends_with('+') {
        return Err(Failure::failed(anyhow::anyhow!(
            "{differ}, with the same build\n  help: this is a bug of Leyden's; please report it"
        )));
    }
    warn(&format!("{differ}: the record is of Leyden {then}, and this is {now}"));
    Ok(())
}

/// `leyden run --list`.
fn list() -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    let mut names = Vec::new();
    for (path, _) in bundled::SCENARIOS {
        let name = bundled::name(path);
        let loaded = Loaded::new(name, &[])?;
        names.push((name, loaded.scenario.description));
    }
    let width = names.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, description) in names {
        writeln!(out, "{name:width$}  {description}")?;
    }
    Ok(())
}

/// The record as a table.
pub(crate) fn show(record: &RunRecord, out: &mut dyn Write) -> std::io::Result<()> {
    let bold = anstyle::Style::new().bold();
    writeln!(out, "{bold}{}{bold:#}  seed {}", record.name, record.seed)?;
    writeln!(out)?;
    let mut table = Table::default();
    host(record, &mut table);
    tenants(record, &mut table);
    flash(record, &mut table);
    section(record, "Flash", &mut table);
    collection(record, &mut table);
    mapping(record, &mut table);
    section(record, "Write buffer", &mut table);
    section(record, "Wear and utilisation", &mut table);
    zones(record, &mut table);
    section(record, "Key-value store", &mut table);
    section(record, "Zoned block device", &mut table);
    section(record, "Page cache", &mut table);
    hints(record, &mut table);
    power(record, &mut table);
    section(record, "Recovery", &mut table);
    steadiness(record, &mut table);
    simulation(record, &mut table);
    table.write(out)
}

fn host(record: &RunRecord, table: &mut Table) {
    let host = &record.host;
    table.head(["host", "read", "write", "flush"]);
    table.row(["requests", &count(host.reads), &count(host.writes), &count(host.flushes)]);
    table.row(["data", &bytes(host.bytes_read), &bytes(host.bytes_written), ""]);
    let each = [&host.read_latency_us, &host.write_latency_us, &host.flush_latency_us];
    let counts = [host.reads, host.writes, host.flushes];
    let mut row = |name: &str, figure: &dyn Fn(u64, &Latency) -> Option<f64>| {
        let cells = each
            .iter()
            .zip(counts)
            .map(|(of, count)| figure(count, of).map_or_else(|| "-".to_owned(), latency));
        table.row(std::iter::once(name.to_owned()).chain(cells));
    };
    row("latency, mean", &|count, of| (count > 0).then_some(of.mean));
    for (name, percentile) in
        ["  median", "  99 %", "  99.9 %", "  99.99 %"].iter().zip(PERCENTILES)
    {
        row(name, &|count, of| percentile.of(count, of));
    }
    row("  largest", &|count, of| (count > 0).then_some(of.max));
    table.head(["throughput", ""]);
    if let Some(recorded) = recorded(host.recorded_s, host.elapsed_s) {
        table.row(["as recorded", &recorded]);
    }
    rows(record, "Host", table);
}

/// The zones by state, and what the drive did with them.
fn zones(record: &RunRecord, table: &mut Table) {
    let Some(zones) = &record.zones else { return };
    table.head(["zones", ""]);
    table.row(["zones", &format!("{} of {}", count(zones.zones), bytes(zones.capacity_bytes))]);
    for (state, number) in zones.states.iter().filter(|(_, number)| *number > 0) {
        table.row([format!("  {state}"), count(*number)]);
    }
    rows(record, "Zones", table);
}

/// The figures of each tenant of a shared drive.
fn tenants(record: &RunRecord, table: &mut Table) {
    if record.host.tenants.is_empty() {
        return;
    }
    table.head(["shared by", "requests a second", "reads, 99 %", "writes, 99 %"]);
    for tenant in &record.host.tenants {
        let [_, p99, ..] = PERCENTILES;
        let slow =
            |count: u64, of: &Latency| p99.of(count, of).map_or_else(|| "-".to_owned(), latency);
        table.row([
            tenant.name.clone(),
            number(tenant.iops),
            slow(tenant.reads, &tenant.read_latency_us),
            slow(tenant.writes, &tenant.write_latency_us),
        ]);
    }
}

fn flash(record: &RunRecord, table: &mut Table) {
    let flash = &record.flash;
    let (p, r) = (&flash.programs, &flash.reads);
    table.head(["flash pages", "programs", "reads"]);
    table.row(["for the host", &count(p.user), &count(r.host + r.rmw)]);
    table.row(["for garbage collection", &count(p.gc_user), &count(r.gc_user)]);
    if p.map + p.gc_map > 0 {
        table.row(["for the mapping table", &count(p.map + p.gc_map), "-"]);
    }
}

/// The figures of a group under its title, if there is something to show.
fn section(record: &RunRecord, title: &str, table: &mut Table) {
    if metrics_of(title).iter().any(|metric| is_shown(metric, record)) {
        table.head([title.to_lowercase(), String::new()]);
        rows(record, title, table);
    }
}

/// The rows of a group: each of its figures that was measured, under its own name; zeros of key figures only.
fn rows(record: &RunRecord, title: &str, table: &mut Table) {
    for metric in metrics_of(title).iter().filter(|metric| is_shown(metric, record)) {
        table.row([lower(metric.label), metric.text(metric.of(record))]);
    }
}

fn is_shown(metric: &Metric, record: &RunRecord) -> bool {
    let is_told = |value: f64| value != 0.0 || metric.is_key;
    metric.is_row && metric.of(record).is_some_and(is_told)
}

/// A label inside a table: `Write amplification` begins small, `IOPS` does not.
fn lower(label: &str) -> String {
    let mut label = label.to_owned();
    if label.get(1..2).is_none_or(|second| second != second.to_uppercase()) {
        label[..1].make_ascii_lowercase();
    }
    label
}

fn collection(record: &RunRecord, table: &mut Table) {
    if record.gc.policy.is_empty() {
        return;
    }
    table.head(["garbage collection", ""]);
    table.row(["victims chosen by", &record.gc.policy]);
    rows(record, "Garbage collection", table);
}

/// The mapping table, if the drive writes it while the power is on.
fn mapping(record: &RunRecord, table: &mut Table) {
    if record.map.writebacks + record.map.journal_pages > 0 {
        section(record, "Mapping table", table);
    }
}

/// How hints got to the drive, and what it knew by them.
fn hints(record: &RunRecord, table: &mut Table) {
    let Some(hints) = &record.hints else { return };
    table.head(["zombie hints", ""]);
    table.row(["sent by", &hints.channel]);
    rows(record, "Zombie hints", table);
}

/// How the drive came into its steady state, and whether it stayed there.
fn steadiness(record: &RunRecord, table: &mut Table) {
    let Steadiness { precondition, ramp, waf_by_third, repetitions } = &record.steadiness;
    if precondition.is_none() && ramp.is_none() && repetitions.is_empty() {
        return;
    }
    table.head(["steady state", "settled", "after capacities", "write amplification"]);
    for (name, settling) in [("when preconditioned", precondition), ("in the ramp", ramp)] {
        let Some(settling) = settling else { continue };
        let settled = if settling.settled { "yes" } else { "no" };
        table.row([name, settled, &number(settling.passes), &number(settling.waf)]);
    }
    if !repetitions.is_empty() {
        let wafs: Vec<String> = repetitions.iter().map(|run| number(run.waf)).collect();
        table.row(["each run", "", "", &wafs.join(" / ")]);
    }
    let thirds: Vec<String> = waf_by_third.iter().map(|waf| number(*waf)).collect();
    if !thirds.is_empty() {
        table.row(["measured, in thirds", "", "", &thirds.join(" / ")]);
    }
}

/// The costs of power cuts, made or possible ones, and the recoveries.
fn power(record: &RunRecord, table: &mut Table) {
    let Some(power) = &record.power else { return };
    let Power { worst, bank, dump_ms, energy_mj, .. } = power;
    let what = if power.made.is_empty() { "power loss" } else { "power loss, of the cuts" };
    table.head([what, "median", "99 %", "peak", "at worst", "the bank"]);
    table.row(spread("dump, ms", dump_ms, worst.dump_ms, String::new()));
    table.row(spread("energy, mJ", energy_mj, worst.energy_mj, number(bank.energy_mj)));
    let farads = [power.capacitance_uf, worst.capacitance_uf, bank.capacitance_uf].map(capacitance);
    let [peak, worst_farads, bank_farads] = farads;
    table.row(["capacitance", "", "", &peak, &worst_farads, &bank_farads]);
    let parts = [power.parts, worst.parts, bank.parts].map(count);
    table.row([&format!("parts, {}", bank.part), "", "", &parts[0], &parts[1], &parts[2]]);
    let promised = bytes(power.promised_bytes_peak);
    table.row(["promised, not on flash", "", "", &promised]);
    table.row(["mapping pages to save", "", "", &count(power.map_pages_peak)]);
    if bank.shortfall_mj > 0.0 {
        let missing =
            format!("{} mJ, {}", number(bank.shortfall_mj), capacitance(bank.shortfall_uf));
        table.row(["missing at worst", "", "", "", "", &missing]);
    }
    if let Some(sampled) = &power.sampled {
        let moments = format!("at {} moments", count(power.moments));
        table.head([&moments, "median", "99 %", "peak"]);
        table.row(spread("dump, ms", &sampled.dump_ms, 0.0, String::new()).drain(..4));
        table.row(spread("energy, mJ", &sampled.energy_mj, 0.0, String::new()).drain(..4));
        table.row(["capacitance", "", "", &capacitance(sampled.capacitance_uf)]);
    }
    for less in &power.with_less {
        table.row(["moments that lose data", "", "", "", "", &percent(less.losing)]);
        table.row(["lost at one, at most", "", "", "", "", &bytes(less.lost_bytes_max)]);
    }
    cuts(power, table);
    if let Some(recovery) = &record.recovery {
        self::recovery(power, recovery, table);
    }
}

/// A distribution.
fn spread(name: &str, of: &Spread, worst: f64, bank: String) -> Vec<String> {
    let cells = [of.p50, of.p99, of.max, worst].map(number).into_iter().chain([bank]);
    std::iter::once(name.to_owned()).chain(cells).collect()
}

/// The cuts that the run lists, a row each.
fn cuts(power: &Power, table: &mut Table) {
    if power.made.is_empty() {
        return;
    }
    let is_cached = power.made.iter().any(|cut| cut.dirty_units.is_some());
    let mut head = vec!["power cut at", "cut off", "promised", "dump, ms", "lost", "ready, ms"];
    head.extend(is_cached.then_some("dirty, cached"));
    table.head(head);
    for cut in power.made.iter().take(CUTS_SHOWN) {
        let ready = cut.ready_ms.map_or_else(|| "cut again".to_owned(), number);
        let mut cells = vec![
            seconds(cut.at_s),
            count(cut.commands_cut_off),
            bytes(cut.promised_bytes),
            number(cut.dump_ms),
            count(cut.lost_promised_writes),
            ready,
        ];
        cells.extend(cut.dirty_units.map(count));
        table.row(cells);
    }
    if power.made.len() > CUTS_SHOWN {
        table.row([format!("{} more: --json", count((power.made.len() - CUTS_SHOWN) as u64))]);
    }
}

fn recovery(power: &Power, recovery: &Recovery, table: &mut Table) {
    if power.made.is_empty() {
        table.head(["the cut at the end", "pages", "ms"]);
        table.row(["writes lost", &count(power.lost_promised_writes)]);
    } else {
        table.head(["recoveries", "pages", "ms"]);
        table.row(["writes lost, in all", &count(power.lost_promised_writes)]);
        table.row(["read, in all", &count(recovery.pages_scanned)]);
        table.row(["put back, in all", &count(recovery.pages_restored)]);
        table.row(["steps of the last:"]);
    }
    for step in &recovery.steps {
        table.row([&step.name.replace('_', " "), &count(step.pages), &number(step.time_ms)]);
    }
    table.row(["charging the bank", "", &number(recovery.charge_ms)]);
    let longest = if power.made.is_empty() { "ready after" } else { "ready after, at most" };
    table.row([longest, "", &number(recovery.time_ms.max)]);
}

fn simulation(record: &RunRecord, table: &mut Table) {
    table.head(["simulation", ""]);
    table.row(["build profile", version::PROFILE]);
    rows(record, "Simulation", table);
    table.row(["digest", &record.sim.digest]);
}
