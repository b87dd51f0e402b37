//! The key figures of a single run, in large type.

use crate::{format, metrics};
use leyden_record::{Hints, Latency, Power, RunRecord};
use serde::Serialize;

/// A figure in large type with a sentence below.
#[derive(Serialize)]
pub(crate) struct Card {
    label: &'static str,
    value: String,
    unit: String,
    note: String,
}

/// Latencies of one kind of command.
#[derive(Serialize)]
pub(crate) struct LatencyCard {
    label: &'static str,
    /// What to say in place of the numbers.
    nothing: Option<&'static str>,
    numbers: Vec<Number>,
    note: String,
}

/// One number of a [`LatencyCard`].
#[derive(Serialize)]
struct Number {
    label: &'static str,
    value: String,
    unit: &'static str,
}

/// IOPS, bandwidth, write amplification, how busy the drive was; hints and power loss if the drive
/// knows of them.
pub(crate) fn cards(record: &RunRecord) -> Vec<Card> {
    let cards = [iops(record), bandwidth(record), write_amplification(record), busy(record)];
    let hints = record.hints.as_ref().map(|hints| zombie_hints(hints, record));
    let power = record.power.as_ref().map(|power| power_loss(power, record));
    cards.into_iter().chain(hints).chain(power).collect()
}

fn zombie_hints(hints: &Hints, record: &RunRecord) -> Card {
    let gc = &record.gc;
    let copied = format::percent(gc.copied_zombie_pages / gc.copied_pages.max(1.0));
    let sent = format::bytes(hints.sent as f64 * 4096.0);
    let (known, of) = match hints.known_dirty_share {
        Some(share) => (Some(share), "of the dirty data known to the drive"),
        None => (hints.known_overwrite_share, "of overwrites known of before"),
    };
    Card {
        label: "Zombie hints",
        value: known.map_or_else(|| format::DASH.to_owned(), format::percent),
        unit: of.to_owned(),
        note: format!(
            "{sent} announced to the drive by {}; {copied} of what garbage collection copied was \
             to be overwritten",
            hints.channel
        ),
    }
}

fn power_loss(power: &Power, record: &RunRecord) -> Card {
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
    let cuts = if power.made.is_empty() { "the peak" } else { "the costliest cut" };
    let short = if power.bank.shortfall_uf > 0.0 {
        format!("; the bank lacks {} of that", format::capacitance(power.bank.shortfall_uf))
    } else {
        String::new()
    };
    Card {
        label: "Power loss",
        value: format::capacitance(power.capacitance_uf),
        unit: format!("at {cuts}"),
        note: format!(
            "{worst} at worst{short}; a dump of {dump} at {cuts}{}{lost}",
            ready.unwrap_or_default()
        ),
    }
}

/// Read and write latencies.
pub(crate) fn latency_cards(record: &RunRecord) -> Vec<LatencyCard> {
    let host = &record.host;
    let reads = (host.reads, &host.read_latency_us);
    let writes = (host.writes, &host.write_latency_us);
    let flushes = (host.flushes, &host.flush_latency_us);
    let mut cards = vec![
        latency("Read latency", reads, "Nothing was read."),
        latency("Write latency", writes, "Nothing was written."),
    ];
    if host.flushes > 0 {
        cards.push(latency("Flush latency", flushes, ""));
    }
    cards
}

fn iops(record: &RunRecord) -> Card {
    let host = &record.host;
    let (value, suffix) = format::scaled(host.iops);
    let both = host.reads + host.writes;
    let note = if both == 0 {
        "nothing was read or written".to_owned()
    } else {
        let reads = format::percent(host.reads as f64 / both as f64);
        let commands = format::count(both as f64);
        format!("{commands} commands, {reads} of them reads")
    };
    Card { label: "IOPS", value: value + suffix, unit: String::new(), note }
}

fn bandwidth(record: &RunRecord) -> Card {
    let host = &record.host;
    Card {
        label: "Bandwidth",
        value: format::number(host.mib_per_s),
        unit: "MiB/s".to_owned(),
        note: format!(
            "{} read, {} written in {}",
            format::bytes(host.bytes_read as f64),
            format::bytes(host.bytes_written as f64),
            format::seconds(host.elapsed_s),
        ),
    }
}

fn write_amplification(record: &RunRecord) -> Card {
    let flash = &record.flash;
    let programs = &flash.programs;
    let all = programs.total();
    let (value, note) = if record.host.bytes_written == 0 {
        let note = "nothing was written".to_owned();
        (format::DASH.to_owned(), note)
    } else if all == 0 {
        (format::factor(flash.waf), "no page was programmed".to_owned())
    } else {
        let gc = (programs.gc_user + programs.gc_map) as f64 / all as f64;
        let map = programs.map as f64 / all as f64;
        let (gc, map) = (format::percent(gc), format::percent(map));
        let note = format!("{gc} of the programs were garbage collection, {map} mapping");
        (format::factor(flash.waf), note)
    };
    Card { label: "Write amplification", value, unit: String::new(), note }
}

fn busy(record: &RunRecord) -> Card {
    let busy = &record.utilisation;
    let most = busy.dies.iter().copied().fold(0.0, f64::max);
    let channels = metrics::mean_of(&busy.channels).unwrap_or(f64::NAN);
    Card {
        label: "Dies busy",
        value: format::percent(metrics::mean_of(&busy.dies).unwrap_or(f64::NAN)),
        unit: "of the time".to_owned(),
        note: format!(
            "the busiest {}; channels {}",
            format::percent(most),
            format::percent(channels)
        ),
    }
}

fn latency(
    label: &'static str,
    (count, latency): (u64, &Latency),
    nothing: &'static str,
) -> LatencyCard {
    if count == 0 {
        return LatencyCard {
            label,
            nothing: Some(nothing),
            numbers: Vec::new(),
            note: String::new(),
        };
    }
    let percentiles = metrics::PERCENTILES
        .iter()
        .filter_map(|percentile| Some((percentile.label, percentile.of(count, latency)?)));
    let numbers = percentiles.chain([("max", latency.max)]).map(|(label, us)| {
        let (value, unit) = format::latency_parts(us);
        Number { label, value, unit }
    });
    LatencyCard {
        label,
        nothing: None,
        numbers: numbers.collect(),
        note: format!(
            "mean {}, of {} commands",
            format::latency(latency.mean),
            format::count(count)
        ),
    }
}
