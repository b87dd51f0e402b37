//! Run records that look like real ones, made up deterministically. Shared by the tests and the
//! example; nothing here has been simulated.

#![allow(dead_code, reason = "each user of this module needs another part of it")]

pub(crate) mod html;

use leyden_record::{
    Buffer, Flash, Gc, Host, Latency, Map, Programs, RECORD_VERSION, Reads, RunRecord, Series, Sim,
    Utilisation, Wear,
};
use serde_json::json;

/// The values of a made-up record.
pub(crate) struct Sample<'a> {
    /// Name of the run.
    pub(crate) name: &'a str,
    /// Name of the victim policy.
    pub(crate) policy: &'a str,
    /// Intervals of the series.
    pub(crate) intervals: usize,
    /// Share of reads among the commands, 0..=1.
    pub(crate) reads: f64,
    /// How well the device does: 1 is the baseline, more is faster and amplifies less.
    pub(crate) quality: f64,
    /// Channels and dies per channel.
    pub(crate) channels: usize,
    /// Dies on each.
    pub(crate) dies_per_channel: usize,
}

impl Default for Sample<'_> {
    fn default() -> Self {
        Self {
            name: "mixed 70/30, greedy",
            policy: "greedy",
            intervals: 240,
            reads: 0.7,
            quality: 1.0,
            channels: 8,
            dies_per_channel: 8,
        }
    }
}

/// Three runs on the same work.
pub(crate) fn comparison() -> Vec<RunRecord> {
    let with = |name, policy, quality| {
        let sample = Sample { name, policy, quality, ..Sample::default() };
        sample.record()
    };
    vec![
        with("greedy", "greedy", 1.0),
        with("cost-benefit", "cost_benefit", 1.12),
        with("z-greedy, hints", "z_greedy", 1.31),
    ]
}

/// A run in which nothing happened.
pub(crate) fn nothing() -> RunRecord {
    RunRecord {
        record_version: RECORD_VERSION,
        leyden_version: "0.1.0".into(),
        name: "nothing".into(),
        ..RunRecord::default()
    }
}

/// Noise between -1 and 1 that depends on its arguments only.
fn noise(stream: u64, i: usize) -> f64 {
    let mut x = (stream << 32) ^ i as u64 ^ 0x9e37_79b9_7f4a_7c15;
    for _ in 0..3 {
        x ^= x >> 29;
        x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    (x >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

impl Sample<'_> {
    /// The record.
    pub(crate) fn record(&self) -> RunRecord {
        let series = self.series();
        let host = self.host(&series);
        let flash = Self::flash(&series, &host);
        RunRecord {
            record_version: RECORD_VERSION,
            leyden_version: "0.1.0".into(),
            name: self.name.into(),
            reproduce: format!(
                "leyden run scenarios/bench/mixed.toml --seed 42 --set device.gc.policy={}",
                self.policy
            ),
            seed: 42,
            config: self.config(),
            warnings: Vec::new(),
            sim: self.sim(&host),
            gc: self.gc(&flash),
            map: Map {
                pages: 16_384,
                protected_pages: 1_638,
                dirty_peak: 1_638,
                writebacks: flash.programs.map,
                journal_pages: 0,
                hit_ratio: 0.934,
            },
            hints: None,
            cache: None,
            power: None,
            recovery: None,
            buffer: Buffer {
                peak_bytes: 62 << 20,
                stalls_s: 1.84 / self.quality,
                discarded_bytes: 3 << 20,
                coalesced_writes: 41_220,
                read_hits: 90_133,
            },
            wear: Self::wear(),
            utilisation: self.utilisation(),
            host,
            flash,
            series,
            ..RunRecord::default()
        }
    }

    /// Progress of interval `i`, 0..=1.
    fn progress(&self, i: usize) -> f64 {
        (i + 1) as f64 / self.intervals as f64
    }

    /// Write amplification rises to its plateau, then breathes.
    fn waf_at(&self, i: usize) -> f64 {
        let plateau = 1.0 + 1.6 / self.quality;
        let rise = 1.0 - (-5.0 * self.progress(i)).exp();
        1.0 + (plateau - 1.0) * rise + 0.05 * noise(1, i)
    }

    fn series(&self) -> Series {
        let interval_s = 60.0 / self.intervals as f64;
        let each = |f: &dyn Fn(usize) -> f64| (0..self.intervals).map(f).collect::<Vec<f64>>();
        let load = |i| 520e3 * self.quality / (0.55 + 0.35 * self.waf_at(i));
        let read_iops = each(&|i| load(i) * self.reads * (1.0 + 0.03 * noise(2, i)));
        let write_iops = each(&|i| load(i) * (1.0 - self.reads) * (1.0 + 0.05 * noise(3, i)));
        let read =
            |us: &dyn Fn(usize) -> f64| each(&|i| if self.reads > 0.0 { us(i) } else { 0.0 });
        let write =
            |us: &dyn Fn(usize) -> f64| each(&|i| if self.reads < 1.0 { us(i) } else { 0.0 });
        let busy = |i: usize| 0.6 + 0.12 * self.waf_at(i) + 0.03 * noise(4, i);
        Series {
            interval_s,
            start_s: 0.0,
            time_s: each(&|i| interval_s * (i + 1) as f64),
            read_mib_per_s: read_iops.iter().map(|r| r / 256.0).collect(),
            write_mib_per_s: write_iops.iter().map(|r| r / 256.0).collect(),
            read_mean_us: read(&|i| {
                78.0 + 22.0 * self.waf_at(i) / self.quality + 3.0 * noise(5, i)
            }),
            read_max_us: read(&|i| 900.0 + 700.0 * noise(6, i).powi(4) * self.waf_at(i) * 4.0),
            write_mean_us: write(&|i| 14.0 + 9.0 * self.waf_at(i) + 2.0 * noise(7, i)),
            read_p50_us: read(&|i| {
                70.0 + 20.0 * self.waf_at(i) / self.quality + 3.0 * noise(12, i)
            }),
            read_p99_us: read(&|i| 400.0 + 160.0 * self.waf_at(i) / self.quality),
            write_p50_us: write(&|i| 11.0 + 7.0 * self.waf_at(i)),
            write_p99_us: write(&|i| 900.0 + 300.0 * self.waf_at(i) / self.quality),
            flushes_per_s: write(&|_| 40.0),
            flush_mean_us: write(&|i| 700.0 + 20.0 * noise(15, i)),
            flush_p50_us: write(&|i| 690.0 + 20.0 * noise(15, i)),
            flush_p99_us: write(&|i| 900.0 + 200.0 * noise(16, i)),
            flush_max_us: write(&|i| 1300.0 + 900.0 * noise(17, i).powi(4)),
            queue_depth: each(&|i| 120.0 + 8.0 * noise(13, i)),
            buffered_bytes: each(&|i| 5e7 + 1e7 * noise(14, i)).iter().map(|v| *v as u64).collect(),
            free_blocks: each(&|i| 300.0 - 40.0 * self.waf_at(i))
                .iter()
                .map(|v| *v as u64)
                .collect(),
            write_max_us: write(&|i| 2200.0 + 9000.0 * noise(8, i).powi(6) / self.quality),
            waf: write(&|i| self.waf_at(i)),
            programs: (0..self.intervals).map(|i| self.programs_at(i, write_iops[i])).collect(),
            reads: (0..self.intervals)
                .map(|i| self.reads_at(i, read_iops[i], write_iops[i]))
                .collect(),
            die_busy: each(&|i| busy(i).min(0.99)),
            channel_busy: each(&|i| (busy(i) * 0.52).min(0.99)),
            read_iops,
            write_iops,
        }
    }

    fn programs_at(&self, i: usize, write_iops: f64) -> Programs {
        let user = write_iops / 4.0;
        let copied = (user * (self.waf_at(i) - 1.0)).max(0.0);
        Programs {
            user: user as u64,
            gc_user: (copied * 0.82) as u64,
            map: (copied * 0.14) as u64,
            gc_map: (copied * 0.04) as u64,
            dump: 0,
        }
    }

    fn reads_at(&self, i: usize, read_iops: f64, write_iops: f64) -> Reads {
        let programs = self.programs_at(i, write_iops);
        Reads {
            host: (read_iops * 0.96) as u64,
            rmw: (write_iops * 0.02) as u64,
            gc_user: programs.gc_user,
            recovery: 0,
        }
    }

    fn host(&self, series: &Series) -> Host {
        let total = |rates: &[f64]| rates.iter().map(|r| r * series.interval_s).sum::<f64>() as u64;
        let (reads, writes) = (total(&series.read_iops), total(&series.write_iops));
        let elapsed_s = series.time_s.last().copied().unwrap_or(0.0);
        let flushes = writes / 500;
        Host {
            reads,
            writes,
            flushes,
            bytes_read: reads * 4096,
            bytes_written: writes * 4096,
            elapsed_s,
            iops: (reads + writes) as f64 / elapsed_s,
            mib_per_s: (reads + writes) as f64 / 256.0 / elapsed_s,
            read_latency_us: self.latency(reads, 62.0, 0.23),
            write_latency_us: self.latency(writes, 11.0, 0.55),
            flush_latency_us: self.latency(flushes, 310.0, 0.30),
            ..Host::default()
        }
    }

    /// A distribution that starts at `floor` and whose logarithm grows with the nines.
    fn latency(&self, n: u64, floor: f64, slope: f64) -> Latency {
        if n == 0 {
            return Latency::default();
        }
        let last = (n as f64).log10();
        let at = |nines: f64| {
            // A knee near the 99th percentile, where garbage collection gets in the way.
            let knee = 1.0 / (1.0 + (-4.0 * (nines - 2.2)).exp());
            floor * 10_f64.powf((slope * nines + 0.7 * knee) / self.quality)
        };
        let steps = (last * 24.0) as usize;
        let body = (0..=steps).map(|i| {
            let nines = i as f64 / 24.0;
            (100.0 * (1.0 - 10_f64.powf(-nines)), at(nines))
        });
        Latency {
            mean: at(0.5),
            p50: at(0.301),
            p99: at(2.0_f64.min(last)),
            p999: at(3.0_f64.min(last)),
            p9999: at(4.0_f64.min(last)),
            max: at(last),
            distribution: body.chain([(100.0, at(last))]).collect(),
        }
    }

    fn flash(series: &Series, host: &Host) -> Flash {
        let programs = |get: fn(&Programs) -> u64| {
            let sum = series.programs.iter().map(|p| get(p) as f64 * series.interval_s);
            sum.sum::<f64>() as u64
        };
        let reads = |get: fn(&Reads) -> u64| {
            let sum = series.reads.iter().map(|r| get(r) as f64 * series.interval_s);
            sum.sum::<f64>() as u64
        };
        let programs = Programs {
            user: programs(|p| p.user),
            gc_user: programs(|p| p.gc_user),
            map: programs(|p| p.map),
            gc_map: programs(|p| p.gc_map),
            dump: 0,
        };
        let all = programs.user + programs.gc_user + programs.map + programs.gc_map;
        Flash {
            waf: if host.writes == 0 { 0.0 } else { all as f64 / programs.user as f64 },
            erases: all / 1152,
            reads: Reads {
                host: reads(|r| r.host),
                rmw: reads(|r| r.rmw),
                gc_user: reads(|r| r.gc_user),
                recovery: 0,
            },
            programs,
            padded_units: 1_204,
            ..Flash::default()
        }
    }

    fn gc(&self, flash: &Flash) -> Gc {
        Gc {
            policy: self.policy.into(),
            collections: flash.erases,
            wear_moves: 0,
            copied_pages: flash.programs.gc_user as f64,
            copied_zombie_pages: flash.programs.gc_user as f64 * 0.07,
            victim_utilisation: 0.58 / self.quality,
        }
    }

    fn sim(&self, host: &Host) -> Sim {
        let (wall_s, cpu_s) = (9.37, 9.31);
        let ios = (host.reads + host.writes) as f64;
        Sim {
            wall_s,
            host_ios_per_s: ios / wall_s,
            flash_ops_per_s: ios * 1.9 / wall_s,
            cpu_s,
            host_ios_per_cpu_s: ios / cpu_s,
            flash_ops_per_cpu_s: ios * 1.9 / cpu_s,
            precondition_wall_s: 3.2,
            peak_rss_mib: 212.4,
            bytes_per_mapping_unit: 9.6,
            checked: true,
            digest: format!("{:016x}", 0x51ab_9c03_7710_0000_u64 + (self.quality * 4096.0) as u64),
        }
    }

    fn wear() -> Wear {
        let bars = 40;
        let histogram = (0..bars).map(|i| {
            let distance = (f64::from(i) - 17.0) / 6.5;
            (
                u64::from(i as u32) * 3,
                (900.0 * (-distance * distance / 2.0).exp() * (1.0 + 0.08 * noise(9, i as usize)))
                    as u64,
            )
        });
        Wear { min: 2, mean: 52.3, max: 118, bad_blocks: 3, histogram: histogram.collect() }
    }

    fn utilisation(&self) -> Utilisation {
        let dies = self.channels * self.dies_per_channel;
        let busy = |stream, i, base: f64| (base + 0.12 * noise(stream, i)).clamp(0.0, 1.0);
        Utilisation {
            dies: (0..dies).map(|i| busy(10, i, 0.82 / self.quality)).collect(),
            channels: (0..self.channels).map(|i| busy(11, i, 0.44)).collect(),
        }
    }

    fn config(&self) -> serde_json::Value {
        json!({
            "seed": 42,
            "device": {
                "capacity": "256 GiB", "over_provisioning": 0.12,
                "geometry": {"channels": self.channels, "dies_per_channel": self.dies_per_channel,
                    "planes": 4, "pages_per_block": 1152, "page": "16 KiB"},
                "timing": {"read": "60 us", "program": "700 us", "erase": "3.5 ms", "channel": "1200 MiB/s"},
                "gc": {"policy": self.policy, "low_water": 0.04},
                "map": {"protection": "partial", "ratio": 0.1},
                "buffer": {"protection": "full", "size": "64 MiB", "schedule": "fifo"},
            },
            "workload": [{"kind": "random", "reads": self.reads, "size": "4 KiB", "queue_depth": 128}],
        })
    }
}
