//! The run record says what was measured.

use leyden_sim::{Ratio, Span};
use leyden_workload::synth::JobConfig;

use super::mock::Mock;
use super::{Options, run, writes};
use crate::driver::Units;
use leyden_record::RunRecord;

const UNITS: Units =
    Units { page_bytes: 16_384, unit_bytes: 4_096, block_units: 1_024, is_cached: false };

#[test]
fn the_record_says_what_was_measured() {
    let mut mock = Mock::new(Span::from_us(10), 2);
    let config = JobConfig {
        queue_depth: 2,
        read_share: Ratio::from_percent(50),
        fsync_every: 10,
        ..writes(40_000)
    };
    let measured = run(&mut mock, &[config], Options::default());
    let mut record = RunRecord::default();
    measured.fill(&UNITS, &mut record);

    let host = &record.host;
    assert_eq!(host.reads + host.writes, 40_000);
    assert_eq!(host.flushes, host.writes / 10);
    assert!((host.read_latency_us.mean - 10.0).abs() < 1e-9);
    assert!((host.read_latency_us.p99 - 10.0).abs() < 0.01);
    assert!((host.write_latency_us.max - 10.0).abs() < 1e-9);
    assert!((host.iops - 40_000.0 / host.elapsed_s).abs() < 1e-6);
    let last = host.write_latency_us.distribution.last().copied();
    assert_eq!(last, Some((100.0, 10.0)));

    // Two pages of 16 KiB for each sector of 512 B that was written.
    assert!((record.flash.waf - 64.0).abs() < 1e-9);
    assert_eq!(record.sim.digest, measured.digest.to_string());
    assert!(
        (record.utilisation.dies[0] * host.elapsed_s * 1e9 - host.bytes_written as f64).abs() < 1.0
    );

    let series = &record.series;
    let lengths = [
        series.read_iops.len(),
        series.write_max_us.len(),
        series.waf.len(),
        series.programs.len(),
        series.die_busy.len(),
        series.channel_busy.len(),
    ];
    assert!(lengths.iter().all(|len| *len == series.time_s.len()), "{lengths:?}");
    let mut start = 0.0;
    let mut written = 0.0;
    for (iops, end) in series.write_iops.iter().zip(&series.time_s) {
        written += iops * (end - start);
        start = *end;
    }
    assert!((written - host.writes as f64).abs() < 1e-3, "{written}");
    assert!((start - host.elapsed_s).abs() < 1e-12);
}

#[test]
fn nothing_measured_fills_zeroes_not_nans() {
    let mut mock = Mock::new(Span::from_us(10), 2);
    mock.failing_from = 0;
    let measured = run(&mut mock, &[writes(1)], Options::default());
    let mut record = RunRecord::default();
    measured.fill(&UNITS, &mut record);
    assert_eq!(record.host.read_latency_us, leyden_record::Latency::default());
    assert!(record.flash.waf.abs() < f64::EPSILON);
    assert!(record.series.waf.iter().all(|waf| waf.is_finite()));
    assert_eq!(record.warnings.len(), 1);
}
