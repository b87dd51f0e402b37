//! The sentences below the figures that a report shows in large type.

use super::mean_of;
use crate::format;
use leyden_record::RunRecord;

pub(super) fn commands(record: &RunRecord) -> String {
    let host = &record.host;
    let both = host.reads + host.writes;
    if both == 0 {
        return "nothing was read or written".to_owned();
    }
    let reads = format::percent(host.reads as f64 / both as f64);
    format!("{} commands, {reads} of them reads", format::count(both as f64))
}

pub(super) fn bandwidth(record: &RunRecord) -> String {
    let host = &record.host;
    format!(
        "{} read, {} written in {}",
        format::bytes(host.bytes_read as f64),
        format::bytes(host.bytes_written as f64),
        format::seconds(host.elapsed_s),
    )
}

pub(super) fn programs(record: &RunRecord) -> String {
    let programs = &record.flash.programs;
    let all = programs.total();
    if record.host.bytes_written == 0 {
        return "nothing was written".to_owned();
    }
    if all == 0 {
        return "no page was programmed".to_owned();
    }
    let gc = format::percent((programs.gc_user + programs.gc_map) as f64 / all as f64);
    let map = format::percent(programs.map as f64 / all as f64);
    format!("{gc} of the programs were garbage collection, {map} mapping")
}

pub(super) fn busy(record: &RunRecord) -> String {
    let busy = &record.utilisation;
    let most = format::percent(busy.dies.iter().copied().fold(0.0, f64::max));
    let channels = format::percent(mean_of(&busy.channels).unwrap_or(f64::NAN));
    format!("the busiest {most}; channels {channels}")
}

pub(super) fn hints(record: &RunRecord) -> String {
    let Some(hints) = &record.hints else { return String::new() };
    let copied = format::percent(record.gc.copied_zombie_pages / record.gc.copied_pages.max(1.0));
    let sent = format::bytes(hints.sent as f64 * 4096.0);
    format!(
        "{sent} announced to the drive by {}; {copied} of the copies of garbage collection were zombies",
        hints.channel
    )
}

pub(super) fn dump(record: &RunRecord) -> String {
    let Some(power) = &record.power else { return String::new() };
    let worst = format::capacitance(power.worst.capacitance_uf);
    let dump = format::seconds(power.dump_ms.max / 1e3);
    let ready = record.recovery.as_ref().map(|recovery| {
        let ready = format::seconds(recovery.time_ms.max / 1e3);
        format!("; ready again after {ready}")
    });
    let lost = match power.lost_promised_writes {
        0 => String::new(),
        lost => format!("; {} promised writes lost", format::count(lost as f64)),
    };
    let cut = if power.made.is_empty() { "the peak" } else { "the costliest cut" };
    let short = if power.bank.shortfall_uf > 0.0 {
        format!("; the bank lacks {}", format::capacitance(power.bank.shortfall_uf))
    } else {
        String::new()
    };
    format!("{worst} at worst{short}; a dump of {dump} at {cut}{}{lost}", ready.unwrap_or_default())
}
