//! Samples: what the page draws of the time between two readings.

use std::time::Instant;

use hdrhistogram::Histogram;
use serde::Serialize;

use super::reading::{Bank, Buffer, Reading, Zones};
use crate::latencies::Kind;
use crate::switch::LayerReport;

/// Fewer commands have no 99th percentile.
const FOR_P99: u64 = 100;

/// A second of a drive, as the page receives it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Sample<'a> {
    /// Wall time since the server began.
    up_s: f64,
    /// The drive's clock.
    time_s: f64,
    is_on: bool,
    /// By kind of command.
    rates: [Rate; Kind::ALL.len()],
    /// Read and written.
    bytes_per_s: [f64; 2],
    /// Write amplification of the last seconds, and since the drive was opened; none while the host has written nothing.
    waf: [Option<f64>; 2],
    buffer: Option<Buffer>,
    map: Option<(u32, u32)>,
    banks: &'a [Bank],
    zones: Option<Zones>,
    layer: Option<&'a LayerReport>,
    pending: u64,
    failed: u64,
    host_share: Option<f64>,
    recorded: Option<Recording>,
}

/// Commands of one kind.
#[derive(Clone, Copy, Debug, Serialize)]
struct Rate {
    per_s: f64,
    p50_us: Option<f64>,
    p99_us: Option<f64>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Recording {
    bytes: u64,
    has_failed: bool,
}

impl Rate {
    fn new(between: &Histogram<u64>, span_s: f64) -> Self {
        let count = between.len();
        let us = |quantile: f64, least: u64| {
            (count >= least).then(|| between.value_at_quantile(quantile) as f64 / 1e3)
        };
        Self { per_s: count as f64 / span_s, p50_us: us(0.5, 1), p99_us: us(0.99, FOR_P99) }
    }
}

impl<'a> Sample<'a> {
    /// The sample at `now`, since `before`; with the units programmed and written some seconds ago.
    pub(super) fn new(
        before: &Reading,
        now: &'a Reading,
        began: Instant,
        (programmed, written): (u64, u64),
    ) -> Self {
        let span_s = now.at.duration_since(before.at).as_secs_f64().max(1e-3);
        let per_s = |of: fn(&Reading) -> u64| of(now).saturating_sub(of(before)) as f64 / span_s;
        let of = |kind| now.latencies.of(kind).since(before.latencies.of(kind));
        // A drive with another bank counts from 0 on.
        let (all_programmed, all_written) = now.amplified();
        let (programmed, written) =
            (all_programmed.saturating_sub(programmed), all_written.saturating_sub(written));
        Self {
            up_s: now.at.duration_since(began).as_secs_f64(),
            time_s: now.status.time_ns as f64 / 1e9,
            is_on: now.status.is_on,
            rates: Kind::ALL.map(|kind| Rate::new(&of(kind), span_s)),
            bytes_per_s: [per_s(|it| it.counts.read_bytes), per_s(|it| it.counts.written_bytes)],
            waf: [
                (written > 0).then(|| programmed as f64 / written as f64),
                (all_written > 0).then_some(now.status.waf),
            ],
            buffer: now.buffer,
            map: now.map,
            banks: &now.banks,
            zones: now.zones,
            layer: now.status.zoned_block.as_ref(),
            pending: now.status.pending,
            failed: now.status.failed,
            host_share: now.status.host_share,
            recorded: (now.recorded)
                .map(|it| Recording { bytes: it.bytes, has_failed: it.has_failed }),
        }
    }
}
