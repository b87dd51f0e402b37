//! `leyden size` of a zoned drive: what each part of its buffer costs, and what less capacitance would do for.

use std::io::Write;

use leyden_run::size::{SizedRegion, ZoneSizing};

use leyden_report::format::{bytes, capacitance, count, latency, number, percent};

use crate::commands::warn;
use crate::output::table::Table;

pub(super) fn show(sizing: &ZoneSizing, out: &mut dyn Write) -> std::io::Result<()> {
    let bold = anstyle::Style::new().bold();
    writeln!(out, "{bold}{}{bold:#}  seed {}", sizing.name, sizing.seed)?;
    writeln!(out)?;
    let mut table = Table::default();
    let is_store = sizing.regions.iter().any(|region| region.puts_per_s.is_some());
    let speed = if is_store { "pairs a second" } else { "requests a second" };
    table.head(["protected", "dump", "at worst", "mJ", "parts", "dump ms", speed, "write, 99 %"]);
    for region in &sizing.regions {
        table.row(row(region));
    }
    table.write(out)?;
    writeln!(out)?;
    let mut table = Table::default();
    let head = [
        "bank, of the worst case",
        "mJ",
        "protects",
        "zones open",
        "at most",
        "random write areas",
    ];
    table.head(head);
    for less in &sizing.with_less {
        table.row([
            percent(less.share),
            number(less.energy_mj),
            bytes(less.protected_bytes),
            count(less.open_zones),
            count(less.active_zones),
            count(less.areas),
        ]);
    }
    table.write(out)?;
    writeln!(out)?;
    writeln!(
        out,
        "*: the scenario's own. Speeds: runs of {} commands. Zones open: with as much of the protected region each\n\
         as the scenario's have. At most: with no more than a page each. Random write areas: beside the data that the\n\
         scenario's active zones gather.",
        count(sizing.commands),
    )
}

fn row(region: &SizedRegion) -> Vec<String> {
    let mark = if region.own { " *" } else { "" };
    let mut cells = vec![format!("{}{mark}", bytes(region.protected_bytes)), region.dump.clone()];
    if let Some(problem) = &region.problem {
        cells.push("impossible".to_owned());
        warn(&format!("{} protected: {problem}", bytes(region.protected_bytes)));
        return cells;
    }
    let worst = region.worst.unwrap_or_default();
    cells.extend([
        capacitance(worst.capacitance_uf),
        number(worst.energy_mj),
        count(worst.parts),
        number(worst.dump_ms),
    ]);
    if let (Some(speed), Some(p99)) = (region.puts_per_s.or(region.iops), region.write_p99_us) {
        cells.extend([number(speed), latency(p99)]);
    }
    cells
}
