//! `leyden size --worst` and `--fleet`: banks by arithmetic alone.

use std::io::Write;

use leyden_run::size::{Fleet, WorstBank, WorstCases};

use leyden_report::format::{bytes, capacitance, count, number, percent};

use super::real_share;
use crate::output::table::Table;

pub(super) fn protection(bank: &WorstBank) -> String {
    let mark = if bank.own { " *" } else { "" };
    match bank.protected {
        Some(share) => format!("{} {} %{mark}", bank.protection, real_share(share)),
        None => format!("{}{mark}", bank.protection),
    }
}

fn parts_with_esr(bank: &WorstBank) -> String {
    bank.parts_with_esr.map_or_else(|| "none will do".to_owned(), count)
}

pub(super) fn show(worst: &WorstCases, out: &mut dyn Write) -> std::io::Result<()> {
    let bold = anstyle::Style::new().bold();
    let (capacity, pages) = (bytes(worst.capacity_bytes), count(worst.table_pages));
    writeln!(out, "{bold}{}{bold:#}  {capacity}, {pages} mapping pages", worst.name)?;
    writeln!(out)?;
    let mut table = Table::default();
    let groups: Vec<(&str, &str)> =
        worst.banks.iter().map(|it| (it.dump.as_str(), it.part.as_str())).collect();
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for group in groups {
        if seen.contains(&group) {
            continue;
        }
        seen.push(group);
        let (dump, part) = group;
        let title = format!("{dump}, {part}");
        table.head([
            &title,
            "pages",
            "dump ms",
            "mJ",
            "at worst",
            "parts",
            "with ESR",
            "board cm2",
            "height mm",
        ]);
        for bank in worst.banks.iter().filter(|it| (it.dump.as_str(), it.part.as_str()) == group) {
            table.row(row(bank));
        }
    }
    table.write(out)?;
    writeln!(out)?;
    ranges(worst, out)
}

fn row(bank: &WorstBank) -> Vec<String> {
    if let Some(problem) = &bank.problem {
        return vec![protection(bank), format!("impossible: {problem}")];
    }
    vec![
        protection(bank),
        count(bank.pages),
        number(bank.dump_ms),
        number(bank.energy_mj),
        capacitance(bank.capacitance_uf),
        count(bank.parts),
        parts_with_esr(bank),
        number(bank.area_cm2),
        number(bank.height_mm),
    ]
}

/// How far each assumption moves the scenario's own bank.
fn ranges(worst: &WorstCases, out: &mut dyn Write) -> std::io::Result<()> {
    let mut table = Table::default();
    table.head(["assumption, of *", "from", "to", "capacitance", "to", "parts with ESR", "to"]);
    for range in &worst.ranges {
        let [from, to] = &range.values;
        let [low, high] = range.capacitance_uf.map(capacitance);
        let [few, many] = range.parts.map(count);
        table.row([range.what.clone(), from.clone(), to.clone(), low, high, few, many]);
    }
    table.write(out)?;
    writeln!(out)?;
    writeln!(
        out,
        "*: the scenario's own. With ESR: parts whose voltage behind their resistance stays above the converter's\n\
         minimum while all dies program. Board and height are those of these parts. Which figures have a source:\n\
         docs/power.md."
    )
}

/// The head of a table of banks.
pub(crate) const BANKS_HEAD: &str = "protection,protected,dump,part,own,pages,dump_ms,energy_mj,capacitance_uf,parts,\
                                     parts_with_esr,area_cm2,height_mm,problem\n";

/// A line for each bank.
pub(super) fn csv(worst: &WorstCases) -> String {
    let mut text = BANKS_HEAD.to_owned();
    for bank in &worst.banks {
        let optional = |value: Option<String>| value.unwrap_or_default();
        let cells = [
            bank.protection.clone(),
            optional(bank.protected.map(|share| share.to_string())),
            bank.dump.clone(),
            bank.part.clone(),
            bank.own.to_string(),
            bank.pages.to_string(),
            bank.dump_ms.to_string(),
            bank.energy_mj.to_string(),
            bank.capacitance_uf.to_string(),
            bank.parts.to_string(),
            optional(bank.parts_with_esr.map(|parts| parts.to_string())),
            bank.area_cm2.to_string(),
            bank.height_mm.to_string(),
            optional(
                bank.problem
                    .as_ref()
                    .map(|problem| format!("\"{}\"", problem.replace('"', "\"\""))),
            ),
        ];
        text += &cells.join(",");
        text.push('\n');
    }
    text
}

pub(super) fn show_fleet(fleet: &Fleet, out: &mut dyn Write) -> std::io::Result<()> {
    let bold = anstyle::Style::new().bold();
    let (drives, parts) = (count(fleet.drives), count(fleet.parts));
    writeln!(
        out,
        "{bold}{}{bold:#}  {drives} drives of {parts} parts, {} mJ at worst",
        fleet.name,
        number(fleet.need_mj)
    )?;
    writeln!(out)?;
    let mut table = Table::default();
    table.head([
        "life of the bank",
        "holds, mean, mJ",
        "deviation",
        "short at worst",
        "drives",
        "buffer held",
    ]);
    for age in &fleet.ages {
        table.row([
            percent(age.age),
            number(age.mean_mj),
            number(age.deviation_mj),
            format!("{:.1e}", age.short),
            count(age.drives_short.round() as u64),
            age.buffer_bytes.map_or_else(|| "none".to_owned(), bytes),
        ]);
    }
    table.head(["short at the end of life", "parts"]);
    for margin in &fleet.margins {
        table.row([
            format!("{:.0e}", margin.short),
            margin.parts.map_or_else(|| "none will do".to_owned(), count),
        ]);
    }
    table.write(out)?;
    writeln!(out)?;
    writeln!(
        out,
        "Short: the bank holds less than a dump needs at worst. Data is lost if the power then fails at such a moment.\n\
         Buffer held: the largest that all drives but one in 10,000 can dump, for firmware that measures its bank. With 0 B\n\
         it must write through; none: the mapping table alone takes more, so it must protect less of it.\n\
         Spread: each part's tolerance is three deviations; ageing deviates by a quarter of its mean, alike for all\n\
         parts of a drive (assumptions)."
    )
}
