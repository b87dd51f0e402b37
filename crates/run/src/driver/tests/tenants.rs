//! Tenants that share a drive are measured separately.

use std::convert::Infallible;

use leyden_device::{Lba, Op};
use leyden_sim::{Ratio, Span, Time};
use leyden_workload::synth::JobConfig;
use leyden_workload::{Class, ClassNames, Request};

use super::mock::Mock;
use super::{Options, run, writes};
use crate::driver::{Measured, Pace, Ramp, Replay, Unchecked, Units, replay};
use leyden_record::{RunRecord, Tenant};

const UNITS: Units =
    Units { page_bytes: 16_384, unit_bytes: 4_096, block_units: 1_024, is_cached: false };

fn tenants(measured: &Measured) -> Vec<Tenant> {
    let mut record = RunRecord::default();
    measured.fill(&UNITS, &mut record);
    record.host.tenants
}

fn mock() -> Mock {
    Mock::new(Span::from_us(10), 2)
}

#[test]
fn each_job_has_its_own_row_and_they_add_up() {
    let reader = JobConfig {
        name: "reader".into(),
        read_share: Ratio::from_percent(100),
        requests: Some(300),
        ..JobConfig::default()
    };
    let writer = JobConfig { fsync_every: 10, queue_depth: 4, ..writes(700) };
    let measured = run(&mut mock(), &[reader, writer], Options::default());
    let rows = tenants(&measured);
    assert_eq!(rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(), ["reader", "job 0"]);
    assert_eq!((rows[0].reads, rows[0].writes, rows[0].bytes_read), (300, 0, 300 * 4_096));
    assert_eq!((rows[1].reads, rows[1].writes, rows[1].flushes), (0, 700, 70));
    // Four at a time on a device that does two at once take longer than one at a time.
    assert!(rows[1].write_latency_us.mean > rows[0].read_latency_us.mean, "{rows:?}");
    let mut record = RunRecord::default();
    measured.fill(&UNITS, &mut record);
    assert!((rows[0].iops + rows[1].iops - record.host.iops).abs() < 1e-6);
    assert_eq!(rows[1].write_latency_us, record.host.write_latency_us);
}

#[test]
fn a_single_tenant_is_not_measured_separately() {
    let measured = run(&mut mock(), &[writes(100)], Options::default());
    assert_eq!(tenants(&measured), []);
}

#[test]
fn classes_of_a_trace_share_it_and_the_ramp_does_not_count() {
    let go = |requests: &[Request]| shares(requests, &ClassNames::default());
    let requests = of_classes(|n| if n % 4 == 0 { Class::Wal } else { Class::Data });
    assert_eq!(go(&requests), [("data".to_owned(), 15), ("wal".to_owned(), 5)]);
    assert_eq!(go(&of_classes(|_| Class::Data)), [], "a trace of one class");
}

/// They stand behind the known ones and in the order of their names, whichever came first.
#[test]
fn classes_that_a_trace_names_have_rows_by_their_names() {
    let classes = ClassNames::default();
    let called = |name: &str| classes.class(name).unwrap();
    let (index, heap) = (called("index"), called("heap"));
    let requests = of_classes(|n| match n % 4 {
        0 => index,
        1 => Class::Wal,
        _ => heap,
    });
    let rows = [("wal", 5), ("heap", 10), ("index", 5)].map(|(name, n)| (name.to_owned(), n));
    assert_eq!(shares(&requests, &classes), rows);
}

/// Forty writes.
fn of_classes(class: impl Fn(u64) -> Class) -> Vec<Request> {
    let write = |n| Request {
        at: Time::ZERO,
        op: Op::Write,
        lba: Lba(n * 8),
        sectors: 8,
        fua: false,
        class: class(n),
    };
    (0..40).map(write).collect()
}

/// The writes of each class in the second half.
fn shares(requests: &[Request], classes: &ClassNames) -> Vec<(String, u64)> {
    let open = || Ok::<_, Infallible>(requests.iter().map(|request| Ok::<_, Infallible>(*request)));
    let pace = Pace::QueueDepth(1);
    let config = Replay { pace, classes: classes.clone(), ..Replay::default() };
    let options = Options { ramp: Ramp { requests: 20, ..Ramp::default() }, ..Options::default() };
    let measured =
        replay(&mut mock(), open, &config, &mut Unchecked, &mut Mock::stats, options).unwrap();
    tenants(&measured).into_iter().map(|row| (row.name, row.writes)).collect()
}
