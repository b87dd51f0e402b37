//! `leyden run`.

use std::io::Write;

use leyden_config::{Loaded, Saved, bundled, run_command};
use leyden_record::{Cache, Hints, Latency, Power, Recovery, RunRecord, Spread, Steadiness};
use leyden_run::{Outcome, check_same_inputs};

use leyden_report::format::{
    bytes, capacitance, count, latency, number, percent, rate, recorded, seconds,
};
use leyden_report::{PERCENTILES, metric_at};

use super::{
    Cancel, check_outputs, compare, explain, keep, load, overrides, run_one, verdict, warn,
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
    let Outcome { record, interrupted, .. } = run_one(&loaded, &run_command(file, &sets), cancel)?;
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
    mapping(record, &mut table);
    drive(record, &mut table);
    zones(record, &mut table);
    zoned_block(record, &mut table);
    cache(record, &mut table);
    hints(record, &mut table);
    power(record, &mut table);
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
    if host.trims > 0 {
        table.row(["trims", &count(host.trims)]);
    }
    if host.errors > 0 {
        table.row(["errors", &count(host.errors)]);
    }
    table.head(["throughput", ""]);
    table.row(["simulated time", &seconds(host.elapsed_s)]);
    if let Some(recorded) = recorded(host.recorded_s, host.elapsed_s) {
        table.row(["  as recorded", &recorded]);
    }
    table.row(["requests a second", &number(host.iops)]);
    table.row(["MiB a second", &number(host.mib_per_s)]);
}

/// The block device on a conventional and a zoned drive.
fn zoned_block(record: &RunRecord, table: &mut Table) {
    let Some(layer) = &record.zoned_block else { return };
    table.head(["zoned block device", ""]);
    table.row(["written by the host", &bytes(layer.host_bytes)]);
    table.row(["of that, journal", &bytes(layer.host_journal_bytes)]);
    if layer.separated_bytes > 0 {
        table.row(["to journal zones", &bytes(layer.separated_bytes)]);
    }
    table.row(["copied by reclaim", &bytes(layer.copied_bytes)]);
    let share = format!("{:.1} %", 100.0 * layer.journal_share_of_copies);
    table.row(["of that, journal", &share]);
    table.row(["chunks moved", &count(layer.reclaimed)]);
    table.row(["given up midway", &count(layer.aborted)]);
    table.row(["holes filled", &bytes(layer.filled_bytes)]);
    table.row(["tables written", &bytes(layer.metadata_bytes)]);
    let waf = format!(
        "{:.3} (layer {:.3}, conventional {:.3}, zoned {:.3})",
        layer.waf, layer.layer_waf, layer.conventional_waf, layer.zoned_waf
    );
    table.row(["write amplification", &waf]);
}

/// The zones, and the store on them.
fn zones(record: &RunRecord, table: &mut Table) {
    let Some(zones) = &record.zones else { return };
    table.head(["zones", ""]);
    table.row(["zones", &format!("{} of {}", count(zones.zones), bytes(zones.capacity_bytes))]);
    for (state, number) in zones.states.iter().filter(|(_, number)| *number > 0) {
        table.row([format!("  {state}"), count(*number)]);
    }
    table.row(["resets", &count(zones.resets)]);
    if zones.finishes > 0 {
        table.row(["finished early", &count(zones.finishes)]);
    }
    table.row(["closed to open others", &count(zones.implicit_closes)]);
    table.row(["protected region, peak", &bytes(zones.protected_peak_bytes)]);
    table.row(["  reset before it was programmed", &bytes(zones.discarded_protected_bytes)]);
    table.row(["unprotected region, peak", &bytes(zones.plain_peak_bytes)]);
    table.row(["  reset before it was programmed", &bytes(zones.discarded_plain_bytes)]);
    if zones.promoted_bytes > 0 {
        table.row(["protected with what lies above it", &bytes(zones.promoted_bytes)]);
    }
    let waits = &zones.flush_waits;
    if waits.flushes > 0 {
        let mean = |sum: u64| sum as f64 / waits.flushes as f64;
        table.row(["flushes that waited", &count(waits.flushes)]);
        table.row(["  for data, mean", &bytes(mean(waits.bytes) as u64)]);
        table.row(["  for data, most", &bytes(waits.bytes_peak)]);
        table.row(["  for zones, mean", &number(mean(waits.zones))]);
    }
    if record.flash.padded_units > 0 {
        table.row(["units of padding", &count(record.flash.padded_units)]);
    }
    let Some(store) = &zones.store else { return };
    table.head(["store", ""]);
    table.row(["pairs put", &count(store.puts)]);
    table.row(["  a second", &number(store.puts_per_s)]);
    table.row(["  MiB a second", &number(store.mib_per_s)]);
    table.row(["log appends, 99 %", &latency(store.log_append_p99_us)]);
    table.row(["memtables flushed", &count(store.flushed)]);
    if store.compacted > 0 {
        table.row(["tables compacted", &count(store.compacted)]);
    }
    table.row(["writer stopped", &seconds(store.stalled_s)]);
    table.row(["writer slowed down", &seconds(store.delayed_s)]);
    if store.exposed_bytes_peak > 0 {
        table.row(["tables exposed, peak", &bytes(store.exposed_bytes_peak)]);
    }
    if store.lost_puts > 0 {
        table.row(["pairs that power cuts took", &count(store.lost_puts)]);
    }
    if store.lost_table_bytes > 0 {
        table.row(["lost of tables, without a log", &bytes(store.lost_table_bytes)]);
    }
}

/// What each got of a drive that several share.
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
    table.head(["flash", ""]);
    figure(record, "flash.waf", table);
    figure(record, "flash.erases", table);
    if record.gc.policy.is_empty() {
        return;
    }
    table.head(["garbage collection", ""]);
    table.row(["victims chosen by", &record.gc.policy]);
    for key in ["gc.collections", "gc.victim_utilisation", "gc.zombie_share_of_copies"] {
        figure(record, key, table);
    }
}

/// The row of a figure, under its own name; none if there was nothing to measure.
fn figure(record: &RunRecord, key: &str, table: &mut Table) {
    let metric = metric_at(key).expect("a figure of the registry");
    let mut name = metric.label.to_owned();
    if let Some(value) = metric.of(record) {
        if let Some(first) = name.get_mut(..1) {
            first.make_ascii_lowercase();
        }
        table.row([name, metric.text(Some(value))]);
    }
}

/// The mapping table, if the drive writes it while the power is on.
fn mapping(record: &RunRecord, table: &mut Table) {
    let map = &record.map;
    if map.writebacks + map.journal_pages == 0 {
        return;
    }
    table.head(["mapping table", "pages"]);
    table.row(["in all", &count(map.pages)]);
    let protected = if map.journal_pages > 0 { "protected, of its journal" } else { "protected" };
    table.row([protected, &count(map.protected_pages)]);
    table.row(["dirty at once, most", &count(map.dirty_peak)]);
    table.row(["written back", &count(map.writebacks)]);
    if map.journal_pages > 0 {
        table.row(["written of its journal", &count(map.journal_pages)]);
    }
    table.row(["updates of dirty pages", &percent(map.hit_ratio)]);
}

fn drive(record: &RunRecord, table: &mut Table) {
    let mean = |shares: &[f64]| shares.iter().sum::<f64>() / shares.len().max(1) as f64;
    let (wear, buffer) = (&record.wear, &record.buffer);
    table.head(["drive", ""]);
    table.row(["dies busy", &percent(mean(&record.utilisation.dies))]);
    table.row(["channels busy", &percent(mean(&record.utilisation.channels))]);
    table.row(["write buffer, most held", &bytes(buffer.peak_bytes)]);
    table.row(["overwritten in the buffer", &count(buffer.coalesced_writes)]);
    table.row(["writes waiting for room", &seconds(buffer.stalls_s)]);
    let erases = format!("{} / {} / {}", wear.min, number(wear.mean), wear.max);
    table.row(["erases, least / mean / most", &erases]);
    if wear.bad_blocks > 0 {
        table.row(["bad blocks", &count(wear.bad_blocks)]);
    }
}

/// What the page cache kept from the drive, and what it cost.
fn cache(record: &RunRecord, table: &mut Table) {
    let Some(cache) = &record.cache else { return };
    let Cache { dirtied, rewritten, .. } = cache;
    table.head(["page cache", ""]);
    table.row(["pages read that were in it", &percent(cache.hit_ratio)]);
    let absorbed = *rewritten as f64 / (dirtied + rewritten).max(1) as f64;
    table.row(["pages written that were dirty already", &percent(absorbed)]);
    table.row(["pages written back", &count(cache.written_back)]);
    if cache.direct > 0 {
        table.row(["requests that passed it by", &count(cache.direct)]);
    }
    table.row(["writes held up by too much dirty data", &count(cache.throttled_writes)]);
    table.row(["  for", &seconds(cache.throttled_s)]);
    table.row(["dirty data, mean", &bytes(cache.dirty_bytes_mean as u64)]);
    table.row(["  most", &bytes(cache.dirty_bytes_peak)]);
    table.row(["  left at the end", &bytes(cache.dirty_bytes_left)]);
    if cache.failed > 0 {
        table.row(["pages lost: could not be written", &count(cache.failed)]);
    }
}

/// What the drive heard of coming writes, and how much of that it knew in time.
fn hints(record: &RunRecord, table: &mut Table) {
    let Some(hints) = &record.hints else { return };
    let Hints { announced, .. } = hints;
    let data = |units: u64| bytes(units * 4096);
    table.head(["zombie hints", ""]);
    table.row(["announced by the host", &data(*announced)]);
    let way = match hints.commands {
        0 => format!("sent by {}", hints.channel),
        commands => format!("sent in {} commands", count(commands)),
    };
    table.row([way, data(hints.sent)]);
    let lost = [
        ("  announced again while waiting", hints.repeated),
        ("  written before sent", hints.withdrawn),
        ("  dropped: too many waited", hints.dropped),
        ("  lost on the way", hints.missing),
        ("  beyond the drive's end", hints.beyond_end),
        ("announced falsely", hints.false_announced),
    ];
    for (name, units) in lost.into_iter().filter(|(_, units)| *units > 0) {
        table.row([name, &data(units)]);
    }
    if hints.empty_units > 0 {
        table.row(["units named that hold nothing", &count(hints.empty_units)]);
    }
    table.row(["known to be overwritten, mean", &bytes(hints.zombie_bytes_mean as u64)]);
    let shares = [
        ("  of what is dirty in the cache", hints.known_dirty_share),
        ("overwrites known of before", hints.known_overwrite_share),
    ];
    for (name, share) in shares {
        if let Some(share) = share {
            table.row([name, &percent(share)]);
        }
    }
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

/// What cuts have cost or would cost, and how the drive came back.
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
    let sim = &record.sim;
    table.head(["simulation", ""]);
    table.row(["build profile", version::PROFILE]);
    table.row(["wall time, preparing the drive", &format!("{:.2} s", sim.precondition_wall_s)]);
    table.row(["wall time, running", &format!("{:.2} s", sim.wall_s)]);
    table.row(["host I/Os a second", &rate(sim.host_ios_per_s)]);
    table.row(["flash operations a second", &rate(sim.flash_ops_per_s)]);
    table.row(["processor time, running", &format!("{:.2} s", sim.cpu_s)]);
    table.row(["  host I/Os a second", &rate(sim.host_ios_per_cpu_s)]);
    table.row(["  flash operations a second", &rate(sim.flash_ops_per_cpu_s)]);
    table.row(["peak memory", &format!("{} MiB", number(sim.peak_rss_mib))]);
    table.row(["digest", &sim.digest]);
}
