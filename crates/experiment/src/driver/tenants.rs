//! What each of those that share the drive got of it: the jobs of a workload, the classes of a trace.
//!
//! Whoever is alone is not measured apart: what the host saw is what that one saw.

use leyden_device::Op;
use leyden_sim::Span;

use super::fill::{MIB, latency, ratio};
use super::measure::{Latencies, Sample};
use crate::record;

/// What one of them got.
#[derive(Clone, Debug)]
struct Tenant {
    reads: Latencies,
    writes: Latencies,
    flushes: Latencies,
    bytes: [u64; 2],
}

/// All of them, by the number that a [`Sample`] says.
#[derive(Clone, Debug)]
pub(super) struct Tenants {
    /// Empty if there is one only.
    names: Vec<String>,
    /// `None` of those that nothing has come of.
    tenants: Vec<Option<Box<Tenant>>>,
}

impl Tenants {
    pub(super) fn new(names: Vec<String>) -> Self {
        let tenants = vec![None; names.len()];
        Self { names, tenants }
    }

    /// Forgets what was measured.
    pub(super) fn begin(&mut self) {
        self.tenants.fill(None);
    }

    #[inline]
    pub(super) fn record(&mut self, sample: &Sample, latency_ns: u64) {
        let Some(tenant) = self.tenants.get_mut(usize::from(sample.tenant)) else { return };
        let tenant = tenant.get_or_insert_with(|| Box::new(Tenant::new()));
        match sample.op {
            Op::Read => {
                tenant.reads.record(latency_ns);
                tenant.bytes[0] += sample.bytes;
            }
            Op::Write => {
                tenant.writes.record(latency_ns);
                tenant.bytes[1] += sample.bytes;
            }
            Op::Flush => tenant.flushes.record(latency_ns),
            Op::Trim | Op::WriteZeroes | Op::WritePrepare => {}
        }
    }

    /// A row for each of whom something has come, if there are several.
    pub(super) fn rows(&self, elapsed: Span) -> Vec<record::Tenant> {
        let of_whom = self.names.iter().zip(&self.tenants);
        let rows: Vec<_> = of_whom
            .filter_map(|(name, tenant)| Some(tenant.as_ref()?.row(name, elapsed.as_secs_f64())))
            .collect();
        if rows.len() > 1 { rows } else { Vec::new() }
    }
}

impl Tenant {
    fn new() -> Self {
        Self {
            reads: Latencies::new(),
            writes: Latencies::new(),
            flushes: Latencies::new(),
            bytes: [0; 2],
        }
    }

    fn row(&self, name: &str, elapsed_s: f64) -> record::Tenant {
        let (reads, writes) = (self.reads.count(), self.writes.count());
        let [bytes_read, bytes_written] = self.bytes;
        record::Tenant {
            name: name.to_owned(),
            reads,
            writes,
            flushes: self.flushes.count(),
            bytes_read,
            bytes_written,
            iops: ratio((reads + writes) as f64, elapsed_s),
            mib_per_s: ratio((bytes_read + bytes_written) as f64 / MIB, elapsed_s),
            read_latency_us: latency(&self.reads),
            write_latency_us: latency(&self.writes),
            flush_latency_us: latency(&self.flushes),
        }
    }
}
